//! `cargo xtask cluster`: a site of several nodes on PostgreSQL, with real processes, under traffic and faults.

use crate::Outcome;
use crate::tools;
use crate::workspace::Workspace;

/// Runs a site of several nodes on one PostgreSQL database with two standbys, and two foreign sites, under traffic and
/// faults drawn from a seed: killed, hung and stopped nodes, cut networks, a lost primary, full disks. Counts what was
/// lost, doubled or altered, and measures how long a Flash takes whose node is killed. Ends with 0 if all was kept, 1 if
/// not, 2 if the trial could not be done, 3 without PostgreSQL.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Faults for so many minutes
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Draws messages and faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Nodes of the site
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// One node on the embedded store, without a database: a check of the trial itself
    #[arg(long)]
    embedded: bool,
    /// No messages to the mailbox of the message store: P1 and P3 alone
    #[arg(long)]
    no_mailbox: bool,
    /// Seconds of a lease of a node
    #[arg(long, default_value_t = 4)]
    lease: u32,
    /// Disk of each server of the database in MB, for faults that fill it (as root); 0: none
    #[arg(long, default_value_t = 0)]
    disk: u32,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Write the faults with their times into this file
    #[arg(long, value_name = "FILE")]
    log: Option<String>,
    /// Keep all directories, also where all is well
    #[arg(long)]
    keep: bool,
    /// Use the programs built for development, which are slower and built sooner
    #[arg(long)]
    debug: bool,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        if !self.embedded {
            tools::try_postgresql(workspace)?;
        }
        let packages = ["-p", "mta", "-p", "xuxa-cli", "-p", "cluster"];
        let mut build = vec!["build", "--quiet"];
        build.extend((!self.debug).then_some("--release"));
        workspace.cargo(&[&build[..], &packages[..]].concat()).run_aside()?;
        let built = workspace.built(if self.debug { "debug" } else { "release" })?;
        let program = built.join("cluster").display().to_string();
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
        add("--minutes", self.minutes.to_string());
        add("--seed", self.seed.to_string());
        add("--nodes", self.nodes.to_string());
        add("--lease", self.lease.to_string());
        add("--disk", self.disk.to_string());
        if let Some(log) = self.log {
            add("--log", log);
        }
        for (is_set, name) in [
            (self.embedded, "--embedded"),
            (self.no_mailbox, "--no-mailbox"),
            (self.json, "--json"),
            (self.keep, "--keep"),
        ] {
            arguments.extend(is_set.then(|| name.to_owned()));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        // Its exit code is the result: 3 is not 1.
        Err(workspace.command(&program, &arguments).called("cluster").become_it())
    }
}
