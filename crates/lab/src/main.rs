//! The program `lab`: what has to run inside a namespace.

use clap::{Parser, Subcommand};
use lab::{capture, middle, tool};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// Works on interfaces of the network namespace it is started in, until standard input ends.
#[derive(Parser)]
#[command(name = "lab", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Record all frames of an interface into a pcap file
    Capture {
        /// Its name
        interface: String,
        /// What is written
        file: PathBuf,
    },
    /// Pass all frames between two interfaces, the DSCP of every packet cleared
    Bleach {
        /// The one
        from: String,
        /// The other
        to: String,
    },
}

static END: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let cli = Cli::parse();
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        let _ = std::io::stdin().lock().read_to_end(&mut rest);
        END.store(true, Ordering::Relaxed);
    });
    let ready = || {
        let mut stdout = std::io::stdout().lock();
        let _ = writeln!(stdout, "{}", tool::READY).and_then(|()| stdout.flush());
    };
    let done = match &cli.verb {
        Verb::Capture { interface, file } => capture::record(interface, file, ready, &END),
        Verb::Bleach { from, to } => middle::bleach_between([from, to], ready, &END),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}
