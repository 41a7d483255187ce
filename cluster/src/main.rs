//! `cluster`: the trial of a site of several nodes on PostgreSQL.

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use cluster::{Plan, run};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use testbed::Programs;

/// Runs a site of several nodes on one PostgreSQL database with two standbys, and two foreign sites, all as real
/// processes, under traffic and faults drawn from a seed; counts what was lost, doubled or altered. Ends with 0 if
/// nothing was, 1 if something was, 2 if the trial could not be done, 3 without PostgreSQL.
#[derive(Debug, Parser)]
struct Args {
    /// Faults for so many minutes
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Draws messages and faults; the times of the processes differ from run to run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Nodes of the site: 1 to 9
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
    /// Disk of each server of the database in MB, for faults that fill it; 0: none, and no such faults. Takes root
    #[arg(long, default_value_t = 0)]
    disk: u32,
    /// Milliseconds between two submissions of one user, on average
    #[arg(long, default_value_t = 700)]
    pace: u64,
    /// Longest wait for the end of all deliveries, in seconds
    #[arg(long, default_value_t = 180)]
    settle: u64,
    /// Prints one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Writes the faults with their times into this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Keeps all directories
    #[arg(long)]
    keep: bool,
    /// The directory of mta and xuxa; default: that of this program
    #[arg(long, value_name = "DIRECTORY")]
    programs: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(error) = ctrlc::set_handler(testbed::clock::interrupt) {
        eprintln!("cluster: no handler of Ctrl-C: {error}");
    }
    match trial(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("cluster: {error:#}");
            let is_missing = error.chain().any(|cause| cause.is::<database::Missing>());
            ExitCode::from(if is_missing { 3 } else { 2 })
        }
    }
}

fn trial(args: &Args) -> Result<bool> {
    if !(1..=9).contains(&args.nodes) || !(0.0..=24.0 * 60.0).contains(&args.minutes) {
        bail!("1 to 9 nodes, and at most a day");
    }
    let plan = Plan {
        time: Duration::from_secs_f64(args.minutes * 60.0),
        seed: args.seed,
        // However short the trial is, a hold is tried, for longer than a lease.
        first: vec![(cluster::Fault::Hold(0), Duration::from_secs(u64::from(args.lease) + 2))],
        nodes: if args.embedded { 1 } else { args.nodes },
        embedded: args.embedded,
        disk: (args.disk > 0).then_some(args.disk),
        mailbox: !args.no_mailbox,
        lease: args.lease,
        pace: Duration::from_millis(args.pace),
        settle: Duration::from_secs(args.settle),
        keep: args.keep,
        programs: programs(args.programs.as_deref())?,
        progress: std::io::stderr().is_terminal(),
    };
    let report = run(&plan)?;
    if let Some(path) = &args.log {
        std::fs::write(path, report.story()).with_context(|| format!("{}", path.display()))?;
    }
    if args.json {
        println!("{:#}", report.json());
    } else {
        print!("{}", report.table());
    }
    Ok(report.verdict.is_kept())
}

/// `mta` and `xuxa`; `lab` is not needed.
fn programs(directory: Option<&Path>) -> Result<Programs> {
    let own = std::env::current_exe().context("where the running program is")?;
    let near = own.parent().context("the directory of the running program")?;
    let directory = directory.unwrap_or(near);
    let [mta, xuxa] = ["mta", "xuxa"].map(|name| directory.join(name));
    for path in [&mta, &xuxa] {
        if !path.is_file() {
            bail!("no program {}: cargo build -p mta -p xuxa-cli", path.display());
        }
    }
    let absolute = |path: PathBuf| std::path::absolute(path).context("the programs");
    Ok(Programs { mta: absolute(mta)?, xuxa: absolute(xuxa)?, lab: PathBuf::new() })
}
