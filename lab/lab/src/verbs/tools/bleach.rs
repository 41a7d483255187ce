//! `lab bleach`: what stands between two sites and clears their marks.

use std::process::ExitCode;
use testbed::middle;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The one
    from: String,
    /// The other
    to: String,
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        crate::verbs::end_with_standard_input();
        middle::bleach_between([&self.from, &self.to], crate::verbs::print_ready)?;
        Ok(ExitCode::SUCCESS)
    }
}
