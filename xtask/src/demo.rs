//! `cargo xtask demo`: builds the programs, and has `lab demo` show them.

use crate::Outcome;
use crate::workspace::Workspace;

/// Builds the programs, starts two sites in namespaces of their own, sends messages of five sizes
/// (1 kB to 10 MB) and six precedences from one to the other, and checks what arrives and which
/// mark every packet carries; cleans up. Exit code 3 where there are no namespaces: then the sites
/// stand on loopback, and no mark is seen.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON object on standard output instead of a table
    #[arg(long)]
    json: bool,
    /// Unoptimised programs: built sooner, and slower
    #[arg(long)]
    debug: bool,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        // Of `lab` the demonstration alone: its studies pull simulation, routers and pictures.
        let mut arguments =
            vec!["build", "-p", "mta", "-p", "xuxa-cli", "-p", "lab", "--no-default-features"];
        let profile = if self.debug { "debug" } else { "release" };
        if !self.debug {
            arguments.push("--release");
        }
        workspace.cargo(&arguments).run_aside()?;
        let lab = workspace.built(profile)?.join("lab");
        let json: &[&str] = if self.json { &["--json"] } else { &[] };
        let arguments = [&["demo"], json].concat();
        Err(workspace.command(&lab.display().to_string(), &arguments).become_it())
    }
}
