//! The command line: one verb a file.

mod channel;
mod check;
mod clock;
mod minimize;
mod output;
mod queue;
mod reload;
mod run;
mod status;
mod user;
mod watch;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Done.
const DONE: u8 = 0;
/// Failed.
const FAILED: u8 = 1;
/// Wrong usage or configuration.
const WRONG: u8 = 2;

/// Done in part.
const PARTLY: u8 = 3;

/// X.400 and STANAG 4406 message transfer agent.
#[derive(Debug, Parser)]
#[command(name = "mta", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Runs the daemon until SIGTERM or SIGINT.
    Run(run::Arguments),
    /// Checks a configuration file and shows what would run.
    Check(check::Arguments),
    /// Has the daemon read its configuration again.
    Reload(reload::Arguments),
    /// Shows what the daemon is doing.
    Status(status::Arguments),
    /// Opens a channel now, whatever it waits for.
    Channel(channel::Arguments),
    /// Shows what waits and why; holds entries back, and lets them go again.
    Queue(queue::Arguments),
    /// Orders MINIMIZE: lets only what is urgent enough go out.
    Minimize(minimize::Arguments),
    /// Shows whether the wall clock is trusted; accepts it after a jump.
    Clock(clock::Arguments),
    /// Adds, removes or lists the users who have a mailbox here.
    User(user::Arguments),
}

/// Carries out the command line: 0 done, 1 failed, 2 wrong usage or configuration, 3 done in
/// part.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ExitCode::from(match arguments.verb {
        Verb::Run(arguments) => run::run(arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Reload(arguments) => reload::run(&arguments),
        Verb::Status(arguments) => status::run(&arguments),
        Verb::Channel(arguments) => channel::run(&arguments),
        Verb::Queue(arguments) => queue::run(&arguments),
        Verb::Minimize(arguments) => minimize::run(&arguments),
        Verb::Clock(arguments) => clock::run(&arguments),
        Verb::User(arguments) => user::run(&arguments),
    })
}
