//! `load PLAN`: runs a plan (JSON) and prints its outcome (JSON).

use anyhow::{Context as _, Result};
use clap::Parser;
use std::path::PathBuf;

/// Many P3 users in one process: `cargo xtask bench relay` runs it.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// File with the plan, as JSON
    plan: PathBuf,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let text = std::fs::read_to_string(&args.plan)
        .with_context(|| format!("cannot read {}", args.plan.display()))?;
    let plan = serde_json::from_str(&text)
        .with_context(|| format!("{} is not a plan", args.plan.display()))?;
    println!("{}", serde_json::to_string(&load::run(plan)?)?);
    Ok(())
}
