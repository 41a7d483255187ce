//! `lab bleach`: what stands between two sites and clears their marks.

use lab::middle;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The one
    from: String,
    /// The other
    to: String,
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        super::end_with_standard_input();
        middle::bleach_between([&self.from, &self.to], super::say_ready)?;
        Ok(ExitCode::SUCCESS)
    }
}
