//! `cargo xtask bench`: the figures of docs/performance.md, measured again.

mod all;
mod backlog;
mod disk;
mod figures;
mod flood;
mod nodes;
mod relay;
mod restart;
mod results;
mod resume;
mod router;
mod running;
mod slow;
mod stages;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use testbed::{Pair, Site};
use workspace::Workspace;
use xtask::{Outcome, workspace};

/// Measures the product, in release builds, each beside what the machine itself can do.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Args {
    #[command(subcommand)]
    what: What,
}

fn main() -> ExitCode {
    let args = Args::parse();
    Outcome::code(Workspace::find().and_then(|workspace| args.run(&workspace)))
}

#[derive(Subcommand)]
enum What {
    /// Messages from a user at one MTA to a user at another: rates, latency, memory
    Relay(relay::Args),
    /// A Flash while 5,000 Routine are queued, beside the same Flash on an empty system
    Backlog(backlog::Args),
    /// A Flash while Routine floods both MTAs, at 70 % of what they can relay and beyond it
    Flood(flood::Args),
    /// The start with a million messages queued, and what each takes of memory
    Restart(restart::Args),
    /// 10 MB cut off at 90 percent: what is sent again, by who opened the association
    Resume(resume::Args),
    /// Sites of one node and of several, on their own files and on PostgreSQL: rates, and costs of a message
    Nodes(nodes::Args),
    /// Packets a second and delay of the lab's data paths, beside the kernel's forwarding
    Router(router::Args),
    /// Messages over lines of 2.4 to 64 kbit/s, in simulated time, beside the line's own time
    Slow(slow::Args),
    /// All of them but the router's and the slow lines', for docs/performance.md
    All(all::Args),
}

impl Args {
    fn run(self, workspace: &Workspace) -> Result<Outcome> {
        match self.what {
            What::Relay(args) => args.run(workspace),
            What::Backlog(args) => args.run(workspace),
            What::Flood(args) => args.run(workspace),
            What::Restart(args) => args.run(workspace),
            What::Resume(args) => args.run(workspace),
            What::Nodes(args) => args.run(workspace),
            What::Router(args) => args.run(workspace),
            What::Slow(args) => args.run(workspace),
            What::All(args) => args.run(workspace),
        }
    }
}

/// The release builds that are measured, and those that measure.
#[derive(Clone)]
struct Programs {
    site: testbed::Programs,
    load: PathBuf,
    fill: PathBuf,
}

/// The programs of this directory; where none is given they are built.
fn build(workspace: &Workspace, directory: Option<&Path>) -> Result<Programs> {
    let directory = match directory {
        Some(directory) => directory.to_owned(),
        None => {
            let arguments =
                ["build", "--release", "-p", "mta", "-p", "xuxa-cli", "-p", "lab", "-p", "load"];
            let fill = ["-p", "store", "--bins", "--example", "fill"];
            workspace.cargo(&[&arguments[..], &fill].concat()).run_aside()?;
            workspace.built("release")?
        }
    };
    Ok(Programs {
        site: testbed::Programs::in_directory(&directory)?,
        load: directory.join("load"),
        fill: directory.join("examples/fill"),
    })
}

/// User number `n` of a site.
fn user(n: usize) -> String {
    format!("U{n:02}")
}

/// Where a user binds, and as whom.
fn login(site: &Site, user: &str) -> load::Login {
    load::Login {
        mta: site.p3(),
        address: site.address(user),
        password_file: site.password_file(user),
    }
}

/// Stops both daemons; leaves their logs where something went wrong.
fn close<T>(pair: &mut Pair, measured: Result<T>) -> Result<T> {
    if measured.is_err() && !testbed::clock::is_interrupted() {
        for path in pair.keep() {
            eprintln!("logs are kept in {}", path.join("logs").display());
        }
    }
    let measured = measured?;
    for site in [&mut pair.naples, &mut pair.act] {
        let status = site.stop().context("at the end of a measurement")?;
        if !status.success() {
            bail!("the daemon of {} ended with {status}", site.name());
        }
    }
    Ok(measured)
}
