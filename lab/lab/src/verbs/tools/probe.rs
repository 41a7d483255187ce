//! `lab probe`: what this process may do, for `lab doctor`, whose own rights must stay as they are.

use std::process::ExitCode;
use testbed::{MachineProbe, Rights};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Move into a user namespace, even as root
    #[arg(long)]
    user: bool,
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let rights = if self.user { Rights::as_user() } else { Rights::as_root() };
        println!("{}", serde_json::to_string(&MachineProbe::with(rights))?);
        Ok(ExitCode::SUCCESS)
    }
}
