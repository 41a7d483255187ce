//! The command line of `mta`: one file per verb.

mod argument;
mod backup;
mod channel;
mod check;
mod clock;
mod cluster;
mod list;
mod mailbox;
mod minimize;
mod output;
mod queue;
mod recording;
mod reload;
mod run;
mod status;
mod store;
mod tracking;
mod try_peer;
mod user;
mod watch;

use argument::error;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Exit code: done.
const DONE: u8 = 0;
/// Exit code: failed.
const FAILED: u8 = 1;
/// Exit code: wrong usage or configuration.
const WRONG: u8 = 2;

/// Exit code: done in part.
const PARTLY: u8 = 3;

/// Exit code: an order has no answer, and may be carried out still.
const IN_DOUBT: u8 = 6;

/// X.400 and STANAG 4406 message transfer agent.
#[derive(Debug, Parser)]
#[command(
    name = "mta",
    version,
    after_help = "MTA_CONFIG names the configuration file for verbs without --config.\n\
                  Something to do: docs/tasks.md. Something is wrong: docs/troubleshooting.md."
)]
struct Arguments {
    /// Wrap and cut nothing in tables: lines are as long as what they show. Without this they have the width of
    /// the terminal, or of COLUMNS.
    #[arg(long, global = true)]
    wide: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Runs the daemon until SIGTERM or SIGINT.
    Run(run::Arguments),
    /// Checks a configuration file and shows what would run.
    Check(check::Arguments),
    /// Makes the daemon read its configuration again.
    Reload(reload::Arguments),
    /// Shows what the daemon is doing.
    Status(status::Arguments),
    /// Opens a channel now, ends its associations, disables or enables it.
    Channel(channel::Arguments),
    /// Lists waiting messages and why they wait; holds and releases entries.
    Queue(queue::Arguments),
    /// Shows, adds, changes and removes distribution lists.
    List(list::Arguments),
    /// Lists mailboxes, and deletes what they hold.
    Mailbox(mailbox::Arguments),
    /// Shows a message's way through this MTA, or lists messages: what happened, and when.
    Trace(tracking::trace::Arguments),
    /// Shows how long messages took, by precedence and peer: text, JSON or a page.
    Report(tracking::report::Arguments),
    /// Shows events of messages and what operators ordered, one by one.
    Events(tracking::events::Arguments),
    /// Orders MINIMIZE: only messages of a precedence and above start.
    Minimize(minimize::Arguments),
    /// Shows whether the wall clock is trusted; accepts it after a jump.
    Clock(clock::Arguments),
    /// Shows a site of several nodes: nodes, shards, servers of its database.
    Cluster(cluster::Arguments),
    /// Gives the shards of this node to the others, and ends the daemon.
    Drain(cluster::drain::Arguments),
    /// Checks the queue and the contents on disk for damage, and repairs them.
    Store(store::Arguments),
    /// Runs a recording of `mta run --record` through the same node, and compares what it gives out.
    Replay(recording::replay::Arguments),
    /// Copies a recording without contents.
    Record(recording::strip::Arguments),
    /// Copies queue, mailboxes and users to a new directory, while the daemon works.
    Backup(backup::BackupArguments),
    /// Puts a backup into the data directory.
    Restore(backup::RestoreArguments),
    /// Opens one association with a peer, or waits for one, and explains every layer of it.
    Try(try_peer::Arguments),
    /// Adds, removes or lists the users who have a mailbox on this MTA.
    User(user::Arguments),
}

/// Runs the command line. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 done in
/// part, 6 an order is in doubt: it may be carried out still. Those of `check` and `cluster status` have 4 and 5 besides.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.wide {
        output::be_wide();
    }
    ExitCode::from(match arguments.verb {
        Verb::Run(arguments) => run::run(arguments),
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Reload(arguments) => reload::run(&arguments),
        Verb::Status(arguments) => status::run(&arguments),
        Verb::Channel(arguments) => channel::run(&arguments),
        Verb::Queue(arguments) => queue::run(&arguments),
        Verb::List(arguments) => list::run(&arguments),
        Verb::Mailbox(arguments) => mailbox::run(&arguments),
        Verb::Trace(arguments) => tracking::trace::run(arguments),
        Verb::Report(arguments) => tracking::report::run(&arguments),
        Verb::Events(arguments) => tracking::events::run(&arguments),
        Verb::Minimize(arguments) => minimize::run(&arguments),
        Verb::Clock(arguments) => clock::run(&arguments),
        Verb::Cluster(arguments) => cluster::run(&arguments),
        Verb::Drain(arguments) => cluster::drain::run(&arguments),
        Verb::Replay(arguments) => recording::replay::run(&arguments),
        Verb::Record(arguments) => recording::strip::run(&arguments),
        Verb::Backup(arguments) => backup::back_up(&arguments),
        Verb::Restore(arguments) => backup::restore(&arguments),
        Verb::Store(arguments) => store::run(&arguments),
        Verb::Try(arguments) => try_peer::run(&arguments),
        Verb::User(arguments) => user::run(&arguments),
    })
}
