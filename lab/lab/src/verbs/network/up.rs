//! `lab up`: a network, kept up.

use anyhow::{Result, anyhow};
use emulator::{DataPathKind, NetworkOptions};
use router::policy::Span;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The topology's file, or the name of one that is part of this program: bern, degeb, nato, pair
    topology: PathBuf,
    /// The file of a policy that the topology names; else NAME.toml beside it, in policies/ or in
    /// ../policies/, or one of this program for a topology of this program
    #[arg(long, value_name = "NAME=FILE", value_parser = policy)]
    policy: Vec<(String, PathBuf)>,
    /// The network's name; that of the topology's file where absent
    #[arg(long)]
    name: Option<String>,
    /// How packets get from the hosts to the routers; see `lab doctor`
    #[arg(long, value_enum)]
    path: Option<DataPathKind>,
    /// For droppers, jitter and loss
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long, as in 90s or 5min; else until Ctrl-C or `lab down`
    #[arg(long = "for", value_name = "DURATION")]
    time: Option<Span>,
    /// Show nothing while it is up
    #[arg(long)]
    quiet: bool,
    /// End once standard input ends, at the latest with whoever started this
    #[arg(long)]
    with_input: bool,
    /// At the end, all counters as one JSON object
    #[arg(long)]
    json: bool,
}

fn policy(text: &str) -> Result<(String, PathBuf)> {
    let (name, file) = text.split_once('=').ok_or_else(|| anyhow!("write NAME=FILE"))?;
    Ok((name.to_owned(), file.into()))
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let options = NetworkOptions {
            topology: self.topology,
            topologies: runner::topologies(),
            policies: self.policy,
            shipped_policies: runner::policies(),
            name: self.name,
            path: self.path,
            seed: self.seed,
            time: self.time.map(|time| time.0),
            quiet: self.quiet,
            with_input: self.with_input,
        };
        let status = emulator::run(&options)?;
        if self.json {
            crate::verbs::print_json(&status)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
