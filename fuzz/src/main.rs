//! Runs fuzz targets: `cargo run -p fuzz --release -- all --seconds 60 --seed 1 --jobs 2`.
//!
//! Each target has a process of its own, so that its memory and its processor time are its own, and
//! one that is lost takes no other with it. Each input follows from the seed and its number, so a
//! run continues with `--from`, and a finding is repeated with the same seed, `--from` its number and
//! `--count 1`.

mod log;
mod meter;
mod pool;
mod worker;

use anyhow::{Context, Result, bail};
use clap::Parser;
use fuzz::{TARGETS, Target, corpus, targets};
use log::{Log, LogRow};
use pool::Run;
use std::path::PathBuf;
use std::process::ExitCode;

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
    /// Targets at once, a process each.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Adds a row to this file as each target ends; targets that have a row there, of the same seed
    /// and time, are skipped.
    #[arg(long)]
    log: Option<PathBuf>,
    /// Writes the seed corpus of the target from our encoders and the vectors, and runs nothing.
    #[arg(long)]
    make_corpus: bool,
    /// Writes the inputs of the target as octets into this folder, and runs nothing.
    #[arg(long, value_name = "FOLDER")]
    octets: Option<PathBuf>,
    /// Runs one target in this process.
    #[arg(long, hide = true)]
    alone: bool,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let Some(names) = &args.target else {
        TARGETS.iter().for_each(|t| println!("{:16} {}", t.name, t.about));
        return Ok(ExitCode::SUCCESS);
    };
    let mut chosen = choose(names)?;
    if args.make_corpus {
        for target in chosen {
            println!("{:16} {} seeds", target.name, corpus::make(target)?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(folder) = &args.octets {
        for target in chosen {
            std::fs::create_dir_all(folder)?;
            for (name, octets) in corpus::inputs(target)? {
                std::fs::write(folder.join(name), octets)?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    for target in &chosen {
        if corpus::inputs(target)?.is_empty() {
            bail!("{} has no corpus: run with --make-corpus first", target.name);
        }
    }
    let Args { seconds, seed, from, count, .. } = args;
    let run = Run { seconds, seed, from, count, jobs: args.jobs.max(1) };
    if args.alone {
        let Some(target) = chosen.first() else { bail!("no target") };
        return alone(target, run);
    }
    let done = Log::rows(args.log.as_deref());
    chosen.retain(|target| !done.iter().any(|row| row.is_of(target.name, seed, seconds)));
    let what = format!("fuzz {names} --seconds {seconds} --seed {seed} --jobs {}", run.jobs);
    let log = Log::open(args.log.as_deref(), &what)?;
    println!("{}", log::heads());
    let clean = pool::run(chosen, run, log)?;
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One target, in this process: the row is for the one that started it.
fn alone(target: &'static Target, run: Run) -> Result<ExitCode> {
    let progress = pool::progress(std::process::id());
    if let Some(directory) = progress.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let outcome = worker::run(pool::plan(target, run, Some(progress))?)?;
    println!("{}", LogRow::from_outcome(target.name, run.seed, run.seconds, &outcome));
    outcome.findings.iter().for_each(|finding| eprintln!("\n{finding}"));
    Ok(ExitCode::SUCCESS)
}

fn choose(names: &str) -> Result<Vec<&'static Target>> {
    if names == "all" {
        return Ok(TARGETS.iter().collect());
    }
    let find = |name| targets::find(name).with_context(|| format!("no target is named {name:?}"));
    names.split(',').map(find).collect()
}
