//! What the program does, a file for each verb.

mod analyse;
mod bleach;
mod capture;
mod demo;
mod doctor;
mod down;
mod exec;
mod export_tc;
mod import_ios;
mod list;
mod load;
mod probe;
mod record;
mod router;
mod run;
mod status;
mod up;

use base::shown;
use clap::Subcommand;
use lab::clock;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Send thirty messages between two sites on this machine, and show their marks
    Demo(demo::Args),
    /// Repeat a study, and put what is measured beside what was printed
    Run(run::Args),
    /// Say what this machine can do, which data path will be taken, and what to install or allow
    Doctor(doctor::Args),
    /// Send load, or receive and measure it
    Load(load::Args),
    /// Make a policy of a Cisco IOS configuration, and say what could not be mapped
    ImportIos(import_ios::Args),
    /// Print the nearest tc script to a policy, and what it leaves out
    ExportTc(export_tc::Args),
    /// Keep a network up, with a live view of what passes
    Up(up::Args),
    /// End a network
    Down(down::Args),
    /// The networks that are up
    List(list::Args),
    /// What a network has counted, by router, part and code point
    Status(status::Args),
    /// Change a router while it runs
    Router(router::Args),
    /// Run a program inside a host
    Exec(exec::Args),
    /// Write what passes an interface as pcapng
    Capture(capture::Args),
    /// Say what a capture has by code point, flow and message: throughput, loss, delay, marks
    Analyse(analyse::Args),
    /// The first process of those that `lab exec` starts
    #[command(hide = true)]
    Inside(exec::Inside),
    /// What `lab doctor` asks of another process
    #[command(hide = true)]
    Probe(probe::Args),
    /// Record all frames of an interface of this namespace into a pcap file
    #[command(hide = true)]
    Record(record::Args),
    /// Pass all frames between two interfaces, the DSCP of every packet cleared
    #[command(hide = true)]
    Bleach(bleach::Args),
}

impl Verb {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Verb::Demo(args) => args.run(),
            Verb::Run(args) => args.run(),
            Verb::Doctor(args) => args.run(),
            Verb::Load(args) => args.run(),
            Verb::ImportIos(args) => args.run(),
            Verb::ExportTc(args) => args.run(),
            Verb::Up(args) => args.run(),
            Verb::Down(args) => args.run(),
            Verb::List(args) => args.run(),
            Verb::Status(args) => args.run(),
            Verb::Router(args) => args.run(),
            Verb::Exec(args) => args.run(),
            Verb::Capture(args) => args.run(),
            Verb::Analyse(args) => args.run(),
            Verb::Inside(args) => args.run(),
            Verb::Probe(args) => args.run(),
            Verb::Record(args) => args.run(),
            Verb::Bleach(args) => args.run(),
        }
    }
}

/// The exit code for what went wrong: 2 where a file or an argument was, else 1.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    if error.chain().any(|cause| cause.is::<lab::Usage>()) { 2 } else { 1 }
}

/// Ends the work of a verb that others started once its standard input ends, at the latest with
/// who started it.
fn end_with_standard_input() {
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        let _ = std::io::stdin().lock().read_to_end(&mut rest);
        clock::interrupt();
    });
}

/// Prints a text, of which no terminal obeys anything. That nobody reads to its end is no mistake.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(shown::text(text).as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints one JSON object.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", shown::json(&serde_json::to_string_pretty(value)?)))
}

/// Prints to standard error what is of the program, not what it was asked for.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", shown::text(text));
}

/// Tells who started this that it is at work.
fn say_ready() {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{}", lab::tool::READY).and_then(|()| stdout.flush());
}
