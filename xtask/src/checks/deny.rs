//! `cargo xtask deny`: licences, banned crates, sources and advisories (`deny.toml`).

use crate::Outcome;
use crate::workspace::Workspace;

/// The cargo-deny we install: its configuration format changes between versions.
const VERSION: &str = "0.20.2";

/// Runs cargo-deny, installing it (some minutes of compiling) where it is missing.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        if workspace.cargo(&["deny", "--version"]).output().is_err() {
            println!("cargo-deny is missing: installing {VERSION}, which takes some minutes");
            workspace.cargo(&["install", "cargo-deny", "--locked", "--version", VERSION]).run()?;
        }
        let rules = workspace
            .cargo(&["deny", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"])
            .succeeds()?;
        let advisories = advisories(workspace)?;
        Ok(if rules { advisories } else { Outcome::Failed })
    }
}

/// Checks the advisories if their database can be fetched; reports if not.
fn advisories(workspace: &Workspace) -> anyhow::Result<Outcome> {
    if let Err(error) = workspace.cargo(&["deny", "fetch", "db"]).output() {
        let reason = format!("{error:#}");
        let reason = reason.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
        println!("SKIPPED advisories: the database cannot be fetched ({reason})");
        return Ok(Outcome::PassedInPart);
    }
    workspace
        .cargo(&["deny", "check", "--disable-fetch", "advisories"])
        .succeeds()
        .map(Outcome::from_passed)
}
