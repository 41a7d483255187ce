//! `cargo xtask bench`: the figures of docs/performance.md, measured again.

mod disk;
mod relay;
mod report;

use crate::Outcome;
use crate::workspace::Workspace;
use clap::Subcommand;

/// Measures the product, in release builds, each beside what the machine itself can do.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Messages from a user at one MTA to a user at another: rates, latency, memory
    Relay(relay::Args),
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        match self.what {
            What::Relay(args) => args.run(workspace),
        }
    }
}
