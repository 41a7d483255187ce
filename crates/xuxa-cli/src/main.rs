//! The client `xuxa`: submits messages at any precedence, receives them, and works on a mailbox.

mod book;
mod burst;
mod extract;
mod inbox;
mod init;
mod mailbox;
mod manual;
mod part;
mod probe;
mod profile;
mod quantity;
mod receive;
mod register;
mod send;
mod sent;
mod show;
mod submission;
mod terminal;
mod tui;

use crate::submission::MtaAccess;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use ua::{Clock, Interrupted};

/// Exit code of what Ctrl-C ended: 128 plus the number of SIGINT, as shells report it.
const INTERRUPTED: u8 = 130;

/// Submits messages to an MTA over X.400 P3, takes deliveries from it, and works on a mailbox in its message
/// store over P7.
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 done in part, 4 a message is in
/// doubt: the MTA may have accepted it or not; 130 ended by Ctrl-C: receive by the first, send and burst by
/// a second.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    /// File of profiles [default: ~/.config/xuxa/config.toml]
    #[arg(long, global = true, env = "XUXA_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Which profile to bind with
    #[arg(long, global = true, env = "XUXA_PROFILE", value_name = "NAME")]
    profile: Option<String>,
    /// One JSON object on standard output instead of a table
    #[arg(long, global = true)]
    json: bool,
    /// Write the association's traffic as pcapng, for Wireshark (-d tcp.port==PORT,tpkt); the file
    /// has passwords and contents in clear
    #[arg(long, global = true, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// How long an answer may take, that to a bind too; a submission's is counted once all of it was sent
    /// [default: 120s]
    #[arg(long, global = true, value_name = "TIME", value_parser = quantity::parse_time)]
    answer_timeout: Option<std::time::Duration>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Submit messages and wait for the MTA to accept them
    Send(Box<send::SendArgs>),
    /// Receive the deliveries that wait at the MTA
    Receive(receive::ReceiveArgs),
    /// Read, write and be alerted in a terminal interface, on the mailbox in the message store
    Tui,
    /// Submit the messages of a plan, and show the times of each stage
    Burst(burst::BurstArgs),
    /// Show what was sent, and what is known of it since
    Sent(sent::SentArgs),
    /// Ask whether a message could be delivered
    Probe(probe::ProbeArgs),
    /// Cancel a message whose delivery is deferred
    Cancel(probe::CancelArgs),
    /// Register at the MTA what it is to deliver: who gets the messages instead, or how long and how urgent
    /// they may be
    Register(register::RegisterArgs),
    /// Show and change the address book
    Book(book::BookArgs),
    /// Make a profile: ask for what it needs, and try it
    Init(init::InitArgs),
    /// Print the completion script of a shell
    Completion(manual::CompletionArgs),
    /// Write the manual pages
    Man(manual::ManArgs),
    #[command(flatten)]
    Mailbox(mailbox::MailboxVerb),
}

#[expect(clippy::disallowed_methods, reason = "a second Ctrl-C waits for nothing")]
fn end_at_once() -> ! {
    std::process::exit(i32::from(INTERRUPTED))
}

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            return ExitCode::from(2);
        }
    };
    let interrupted = Interrupted::default();
    let flag = interrupted.clone();
    // The second Ctrl-C ends the program immediately.
    let set = ctrlc::set_handler(move || {
        if flag.set() {
            end_at_once();
        }
    });
    if let Err(error) = set {
        terminal::report_error(&format!(
            "cannot handle Ctrl-C, which will end without an unbind: {error}"
        ));
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::report_error(&format!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(run(&cli, interrupted))
}

/// Parses the command line; a template adds its options to it.
fn parse() -> anyhow::Result<Cli> {
    let mut line: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let matches = Cli::command().get_matches_from(&line);
    let cli = Cli::from_arg_matches(&matches)?;
    let (Verb::Send(args), Some(given)) = (&cli.verb, matches.subcommand_matches("send")) else {
        return Ok(cli);
    };
    let Some(name) = &args.template else { return Ok(cli) };
    let config = init::config_file(cli.config.as_deref());
    let home = config.parent().unwrap_or(std::path::Path::new("."));
    let command = Cli::command();
    if let Some(send) = command.find_subcommand("send") {
        line.extend(send::template(home, name, send, given)?);
    }
    let cli = Cli::parse_from(line);
    Ok(cli)
}

async fn run(cli: &Cli, interrupted: Interrupted) -> ExitCode {
    let is_terminal = std::io::stderr().is_terminal();
    if let Verb::Burst(args) = &cli.verb {
        if cli.pcap.is_some() {
            terminal::report_error(
                "--pcap writes one association, and a burst has several: leave it out",
            );
            return ExitCode::from(2);
        }
        if cli.answer_timeout.is_some() {
            terminal::report_error(
                "give answer_timeout in the plan: a burst has no --answer-timeout",
            );
            return ExitCode::from(2);
        }
        let profiles =
            burst::Profiles { file: cli.config.as_deref(), name: cli.profile.as_deref() };
        return burst::burst(args, &profiles, cli.json, is_terminal, interrupted).await;
    }
    match &cli.verb {
        Verb::Init(args) => {
            let config = init::config_file(cli.config.as_deref());
            let answer_timeout = cli.answer_timeout.unwrap_or(ua::ANSWER_TIMEOUT);
            return init::run(args, &config, answer_timeout, interrupted).await;
        }
        Verb::Completion(args) => return manual::completion(args),
        Verb::Man(args) => return manual::man(args),
        _ => {}
    }
    let mut profile = match profile::load(cli.config.as_deref(), cli.profile.as_deref()) {
        Ok(profile) => profile,
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            return ExitCode::from(2);
        }
    };
    profile.answer_timeout = cli.answer_timeout;
    if let Some(path) = &cli.pcap {
        let shown = path.display();
        terminal::report_error(&format!(
            "warning: {shown} will contain passwords and contents in clear"
        ));
    }
    let access = MtaAccess {
        profile: &profile,
        pcap: cli.pcap.as_deref(),
        clock: Clock::start(),
        interrupted,
        progress: !cli.json && is_terminal,
        answer_timeout: cli.answer_timeout.unwrap_or(ua::ANSWER_TIMEOUT),
    };
    match &cli.verb {
        Verb::Send(args) => send::run(&access, args, cli.json).await,
        Verb::Receive(args) => receive::run(&access, args, cli.json).await,
        Verb::Tui => tui::run(&access).await,
        Verb::Register(args) => register::run(&access, args, cli.json).await,
        Verb::Probe(args) => probe::run(&access, args, cli.json).await,
        Verb::Cancel(args) => probe::cancel(&access, args, cli.json).await,
        Verb::Sent(args) => sent::run(&profile, args, cli.json),
        Verb::Book(args) => book::run(&profile, args, cli.json),
        Verb::Mailbox(verb) => mailbox::run(&access, verb, cli.json).await,
        // Handled above: they need no profile, or several.
        Verb::Burst(_) | Verb::Init(_) | Verb::Completion(_) | Verb::Man(_) => ExitCode::SUCCESS,
    }
}
