//! `lab exec` and `lab inside`: programs in a host.

use emulator::client::ControlClient;
use emulator::inside;
use std::ffi::OsString;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The network; may be left out where one is up
    #[arg(long)]
    lab: Option<String>,
    /// The host
    host: String,
    /// The program and its arguments; it ends with the network, and so does what it leaves behind
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let client = ControlClient::find(self.lab.as_deref())?;
        let route = client.enter(&self.host)?;
        inside::run(&route, client.name(), &self.command).map(ExitCode::from)
    }
}

/// What `lab exec` starts first inside.
#[derive(clap::Args)]
pub(crate) struct Inside {
    /// The process that started it
    parent: u32,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl Inside {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        inside::first(self.parent, &self.command).map(ExitCode::from)
    }
}
