//! What the program does, a file for each verb.

#[cfg(feature = "studies")]
mod analyse;
mod demo;
#[cfg(feature = "studies")]
mod doctor;
#[cfg(feature = "studies")]
mod load;
#[cfg(feature = "studies")]
mod network;
#[cfg(feature = "studies")]
mod policy;
#[cfg(feature = "studies")]
mod report;
#[cfg(feature = "studies")]
mod run;
mod tools;

use base::shown;
use clap::Subcommand;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use testbed::clock;

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Send thirty messages between two sites on this machine, and show their marks
    Demo(demo::Args),
    /// Repeat a study, and compare it with the printed figures
    #[cfg(feature = "studies")]
    Run(run::Args),
    /// Print the tables of results that `lab run --summary` stored, as Markdown
    #[cfg(feature = "studies")]
    Report(report::Args),
    /// Show what this machine can do, which data path the lab takes, and what to install or allow
    #[cfg(feature = "studies")]
    Doctor(doctor::Args),
    /// Send load, or receive and measure it
    #[cfg(feature = "studies")]
    Load(load::Args),
    /// Make a policy of a Cisco IOS configuration, and list what could not be mapped
    #[cfg(feature = "studies")]
    ImportIos(policy::import_ios::Args),
    /// Make a Cisco IOS configuration of a policy, or list all that IOS has not
    #[cfg(feature = "studies")]
    ExportIos(policy::export_ios::Args),
    /// Print the nearest tc script to a policy, and what it leaves out
    #[cfg(feature = "studies")]
    ExportTc(policy::export_tc::Args),
    /// Keep a network up, with a live view of its traffic
    #[cfg(feature = "studies")]
    Up(network::up::Args),
    /// End a network
    #[cfg(feature = "studies")]
    Down(network::down::Args),
    /// List the networks that are up
    #[cfg(feature = "studies")]
    List(network::list::Args),
    /// Show the counters of a network by router, part and code point
    #[cfg(feature = "studies")]
    Status(network::status::Args),
    /// Change a router while it runs
    #[cfg(feature = "studies")]
    Router(network::router::Args),
    /// Run a program inside a host
    #[cfg(feature = "studies")]
    Exec(network::exec::Args),
    /// Write the packets of an interface as pcapng
    #[cfg(feature = "studies")]
    Capture(network::capture::Args),
    /// Analyse a capture by code point, flow and message: throughput, loss, delay, marks
    #[cfg(feature = "studies")]
    Analyse(analyse::Args),
    /// The first process of those that `lab exec` starts
    #[command(hide = true)]
    #[cfg(feature = "studies")]
    Inside(network::exec::Inside),
    /// What `lab doctor` asks of another process
    #[command(hide = true)]
    #[cfg(feature = "studies")]
    Probe(tools::probe::Args),
    /// Record all frames of an interface of this namespace into a pcap file
    #[command(hide = true)]
    Record(tools::record::Args),
    /// Pass all frames between two interfaces, the DSCP of every packet cleared
    #[command(hide = true)]
    Bleach(tools::bleach::Args),
}

impl Verb {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Verb::Demo(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Run(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Report(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Doctor(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Load(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::ImportIos(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::ExportTc(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::ExportIos(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Up(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Down(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::List(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Status(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Router(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Exec(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Capture(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Analyse(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Inside(args) => args.run(),
            #[cfg(feature = "studies")]
            Verb::Probe(args) => args.run(),
            Verb::Record(args) => args.run(),
            Verb::Bleach(args) => args.run(),
        }
    }
}

/// The exit code for an error: 2 where a file or an argument is wrong, else 1.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    if is_usage(error) { 2 } else { 1 }
}

#[cfg(feature = "studies")]
fn is_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<text::UsageError>())
}

#[cfg(not(feature = "studies"))]
fn is_usage(_: &anyhow::Error) -> bool {
    false
}

/// Ends the work of a verb once its standard input ends, and so with the process that started it at
/// the latest.
fn end_with_standard_input() {
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        let _ = std::io::stdin().lock().read_to_end(&mut rest);
        clock::interrupt();
    });
}

/// Prints a text without control characters. A closed pipe is not an error.
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

/// Prints a note of the program itself to standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", shown::text(text));
}

/// Notifies the process that started this that it works now.
fn print_ready() {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{}", testbed::tool::READY).and_then(|()| stdout.flush());
}
