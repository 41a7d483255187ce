//! The program `lab`: hosts, routers and links on one machine, and real traffic through them.

#[cfg(feature = "studies")]
mod analyse;
mod verbs;

use clap::Parser;
use std::process::ExitCode;

/// Hosts, routers and links on one machine, and real traffic through them.
#[derive(Parser)]
#[command(name = "lab", version)]
struct Cli {
    #[command(subcommand)]
    verb: verbs::Verb,
}

fn main() -> ExitCode {
    match Cli::parse().verb.run() {
        Ok(code) => code,
        Err(error) => {
            verbs::note(&format!("lab: {error:#}"));
            ExitCode::from(verbs::code_of(&error))
        }
    }
}
