//! `lab down`: the end of a network.

use emulator::client::ControlClient;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The network; may be left out where one is up
    name: Option<String>,
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        ControlClient::find(self.name.as_deref())?.down()?;
        Ok(ExitCode::SUCCESS)
    }
}
