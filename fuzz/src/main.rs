//! Runs fuzz targets: `cargo run -p fuzz --release -- all --seconds 60 --seed 1`.
//!
//! Each input follows from the seed and its number, so a run goes on with `--from`, and a finding
//! comes back with the same seed, `--from` its number and `--count 1`.

mod meter;
mod worker;

use anyhow::{Context, Result, bail};
use clap::Parser;
use fuzz::{TARGETS, Target, corpus, targets};
use std::process::ExitCode;
use std::time::Duration;
use worker::{Outcome, Plan};

/// Runs fuzz targets, or writes their corpus.
#[derive(Debug, Parser)]
#[command(name = "fuzz")]
struct Args {
    /// A target, several with commas between, or `all`. Without one the targets are listed.
    target: Option<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seed of the run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the first input.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Most inputs for each target.
    #[arg(long, default_value_t = u64::MAX)]
    count: u64,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    jobs: u64,
    /// Writes the seed corpus of the target from our encoders and the vectors, and runs nothing.
    #[arg(long)]
    make_corpus: bool,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let Some(target) = &args.target else {
        TARGETS.iter().for_each(|t| println!("{:14} {}", t.name, t.about));
        return Ok(ExitCode::SUCCESS);
    };
    let chosen = choose(target)?;
    if args.make_corpus {
        for target in chosen {
            println!("{:14} {} seeds", target.name, corpus::make(target)?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    println!("target             executions     exec/s  peak MiB  findings");
    let mut found = Vec::new();
    for target in chosen {
        let inputs = corpus::of(target)?;
        if inputs.is_empty() {
            bail!("{} has no corpus: run with --make-corpus first", target.name);
        }
        let plan = Plan {
            target,
            corpus: inputs.into_iter().map(|(_, octets)| octets).collect(),
            seed: args.seed,
            from: args.from,
            count: args.count,
            jobs: args.jobs.max(1),
            time: Duration::from_secs(args.seconds),
        };
        let outcome = worker::run(plan)?;
        report(target, &outcome);
        found.extend(outcome.findings);
    }
    for finding in &found {
        println!("\n{finding}");
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn choose(names: &str) -> Result<Vec<&'static Target>> {
    if names == "all" {
        return Ok(TARGETS.iter().collect());
    }
    let find = |name| targets::find(name).with_context(|| format!("no target is named {name:?}"));
    names.split(',').map(find).collect()
}

fn report(target: &Target, outcome: &Outcome) {
    let rate = outcome.executions as f64 / outcome.time.as_secs_f64().max(0.001);
    println!(
        "{:14} {:>14} {:>10.0} {:>9} {:>9}",
        target.name,
        outcome.executions,
        rate,
        outcome.peak_kib / 1024,
        outcome.findings.len()
    );
}
