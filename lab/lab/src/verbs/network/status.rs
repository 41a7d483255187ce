//! `lab status`: what a network has counted.

use emulator::client::ControlClient;
use emulator::table;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The network; may be left out where one is up
    name: Option<String>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let status = ControlClient::find(self.name.as_deref())?.status()?;
        if self.json {
            crate::verbs::print_json(&status)?;
            return Ok(ExitCode::SUCCESS);
        }
        let carried = status.carried;
        crate::verbs::print(&format!(
            "{}: data path {}, up {:.1} s; {} packets from hosts ({} more not read), \
             {} to hosts, {} not taken\n\n{}\n",
            status.name,
            status.path,
            status.uptime_seconds,
            carried.from_hosts.packets,
            carried.not_read,
            carried.to_hosts.packets,
            carried.not_taken,
            table(None, &status)
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}
