//! `lab record`: all frames of an interface, for who watches a cable.

use std::path::PathBuf;
use std::process::ExitCode;
use testbed::capture;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its name
    interface: String,
    /// What is written
    file: PathBuf,
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        crate::verbs::end_with_standard_input();
        capture::record(&self.interface, &self.file, crate::verbs::print_ready)?;
        Ok(ExitCode::SUCCESS)
    }
}
