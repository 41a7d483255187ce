//! `lab record`: all frames of an interface, for who watches a cable.

use lab::capture;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its name
    interface: String,
    /// What is written
    file: PathBuf,
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        super::end_with_standard_input();
        capture::record(&self.interface, &self.file, super::say_ready)?;
        Ok(ExitCode::SUCCESS)
    }
}
