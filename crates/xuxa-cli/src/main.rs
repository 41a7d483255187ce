//! The client `xuxa`: submits messages at any precedence, and receives them.

mod burst;
mod extract;
mod inbox;
mod part;
mod profile;
mod quantity;
mod reading;
mod reason_text;
mod receive;
mod report;
mod send;
mod show;
mod submission;
mod terminal;

use crate::submission::{MtaAccess, Prepared};
use anyhow::{Result, bail};
use base::rng::Rng;
use base::{Precedence, Utc};
use clap::{Args, Parser, Subcommand, ValueEnum};
use p1::flags::ReportRequest;
use p772::{Charset, MessageType, PartForm};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use ua::{Clock, Interrupted, Message, Source};

/// Exit code of what Ctrl-C ended: 128 plus the number of SIGINT, as shells report it.
const INTERRUPTED: u8 = 130;

/// Submits test messages to an MTA over X.400 P3, and takes deliveries from it.
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
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Submit messages and wait for the MTA to accept them
    Send(Box<SendArgs>),
    /// Receive the deliveries that wait at the MTA
    Receive(ReceiveArgs),
    /// Submit the messages of a plan, and show the times of each stage
    Burst(burst::BurstArgs),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ReportArg {
    /// No report
    None,
    /// A report only of non-delivery
    #[default]
    NonDelivery,
    /// A report of delivery, too
    Delivery,
}

#[derive(Debug, Args)]
#[group(id = "body", required = true, multiple = false)]
struct Body {
    /// Generated text of this size; several sizes make several messages: 1kB,10kB,100kB,1MB,10MB
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = quantity::parse_size)]
    size: Vec<u64>,
    /// Send this file, with its name, as a file transfer body part, of any size
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Send this text
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

#[derive(Debug, Args)]
struct SendArgs {
    /// Recipient for action: an O/R address such as /C=XX/ADMD=NATO/PRMD=ACT/S=OPS
    #[arg(long, required = true, value_name = "ADDRESS")]
    to: Vec<String>,
    /// Recipient for information
    #[arg(long, value_name = "ADDRESS")]
    copy: Vec<String>,
    /// override, flash, immediate, priority, routine or deferred
    #[arg(long, short, default_value = "routine")]
    precedence: Precedence,
    /// Precedence for the recipients for information [default: as --precedence]
    #[arg(long, value_name = "PRECEDENCE")]
    copy_precedence: Option<Precedence>,
    #[command(flatten)]
    body: Body,
    /// Subject, up to 128 characters
    #[arg(long, short)]
    subject: Option<String>,
    /// Subject indicator code, 3 to 8 characters; up to 8 of them
    #[arg(long, value_name = "SIC")]
    sic: Vec<String>,
    /// exercise, operation, project or drill, with a name: exercise=STEADY
    #[arg(long, value_name = "KIND[=NAME]", value_parser = parse_message_type)]
    message_type: Option<MessageType>,
    /// Message instruction
    #[arg(long, value_name = "TEXT")]
    instruction: Vec<String>,
    /// Which reports to ask for
    #[arg(long, value_enum, default_value_t)]
    report: ReportArg,
    /// A civil interpersonal message (P22) instead of a military one (P772): its heading has no
    /// precedence, SIC, message type or instruction
    #[arg(long, conflicts_with_all = ["sic", "message_type", "instruction", "copy_precedence"])]
    civil: bool,
    /// Content identifier, 1 to 16 characters: the MTA accepts the same content with the same
    /// identifier once; the date-time group is part of the content
    #[arg(long, visible_alias = "content-id", value_name = "ID")]
    content_identifier: Option<String>,
    /// Date-time group of the heading, as in 260504030201Z [default: now]
    #[arg(long, value_name = "YYMMDDhhmmssZ", value_parser = parse_dtg)]
    dtg: Option<Utc>,
    /// How long to repeat a submission whose answer was lost: 500ms, 60s, 5min; 0s: never
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::parse_time)]
    retry_for: Duration,
    /// How long to wait for the answer after all of a submission was sent
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = quantity::parse_time)]
    answer_timeout: Duration,
}

#[derive(Debug, Args)]
struct ReceiveArgs {
    /// Stay bound and take new deliveries, until --count, --timeout or Ctrl-C (exit code 130)
    #[arg(long)]
    wait: bool,
    /// Stop after this number of deliveries; waits for them
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop after this number of seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Keep no contents, only their identifiers and digests
    #[arg(long)]
    discard: bool,
    /// Put the files in messages into this directory, under their names; if a name is taken, a
    /// number is added
    #[arg(long, value_name = "DIR")]
    extract: Option<PathBuf>,
}

/// Why an option of `send` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum OptionError {
    #[error("{0:?} is not one of exercise, operation, project, drill")]
    MessageType(String),
    #[error("invalid date-time group {0:?}: write 260504030201Z")]
    Dtg(String),
}

fn parse_message_type(text: &str) -> Result<MessageType, OptionError> {
    let (kind, name) = match text.split_once('=') {
        Some((kind, name)) => (kind, Some(name.to_owned())),
        None => (text, None),
    };
    let kind = match kind {
        "exercise" => MessageType::EXERCISE,
        "operation" => MessageType::OPERATION,
        "project" => MessageType::PROJECT,
        "drill" => MessageType::DRILL,
        _ => return Err(OptionError::MessageType(kind.to_owned())),
    };
    Ok(MessageType { kind, identifier: name })
}

fn parse_dtg(text: &str) -> Result<Utc, OptionError> {
    Utc::from_utc_time(text.as_bytes()).ok_or_else(|| OptionError::Dtg(text.to_owned()))
}

#[expect(clippy::disallowed_methods, reason = "a second Ctrl-C waits for nothing")]
fn end_at_once() -> ! {
    std::process::exit(i32::from(INTERRUPTED))
}

fn main() -> ExitCode {
    let cli = Cli::parse();
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

async fn run(cli: &Cli, interrupted: Interrupted) -> ExitCode {
    let is_terminal = std::io::stderr().is_terminal();
    if let Verb::Burst(args) = &cli.verb {
        if cli.pcap.is_some() {
            terminal::report_error(
                "--pcap writes one association, and a burst has several: leave it out",
            );
            return ExitCode::from(2);
        }
        let profiles =
            burst::Profiles { file: cli.config.as_deref(), name: cli.profile.as_deref() };
        return burst::burst(args, &profiles, cli.json, is_terminal, interrupted).await;
    }
    let profile = match profile::load(cli.config.as_deref(), cli.profile.as_deref()) {
        Ok(profile) => profile,
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            return ExitCode::from(2);
        }
    };
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
        answer_timeout: match &cli.verb {
            Verb::Send(args) => args.answer_timeout,
            Verb::Receive(_) | Verb::Burst(_) => ua::ANSWER_TIMEOUT,
        },
    };
    match &cli.verb {
        Verb::Send(args) => run_send(&access, args, cli.json).await,
        Verb::Receive(args) => run_receive(&access, args, cli.json).await,
        Verb::Burst(_) => ExitCode::SUCCESS,
    }
}

async fn run_send(access: &MtaAccess<'_>, args: &SendArgs, json: bool) -> ExitCode {
    let messages = match messages(access, args) {
        Ok(messages) => messages,
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            return ExitCode::from(2);
        }
    };
    let outcome = send::send(access, &messages, args.retry_for).await;
    if json {
        terminal::print_json(&outcome);
    } else if !outcome.messages.is_empty() {
        terminal::print(&show::sent(&outcome.messages).to_string());
    }
    for line in show::unsent(&outcome) {
        terminal::report_error(&line);
    }
    ExitCode::from(sent_code(&outcome))
}

/// A message in doubt decides the code: only then must the command be repeated unchanged.
fn sent_code(outcome: &send::SendOutcome) -> u8 {
    let all_sent = outcome.refused.is_empty() && outcome.not_sent.is_empty();
    match () {
        () if !outcome.in_doubt.is_empty() => 4,
        () if all_sent => 0,
        () if !outcome.messages.is_empty() => 3,
        () if outcome.is_wrong_use => 2,
        () => 1,
    }
}

fn messages(access: &MtaAccess<'_>, args: &SendArgs) -> Result<Vec<Prepared>> {
    let address = |text: &String| profile::address("recipient", text);
    let to = args.to.iter().map(address).collect::<Result<Vec<_>>>()?;
    let copy = args.copy.iter().map(address).collect::<Result<Vec<_>>>()?;
    let originator = access.profile.user()?;
    let bodies = bodies(&args.body)?;
    if args.content_identifier.is_some() && bodies.len() > 1 {
        bail!("--content-identifier names one message, and there are {} sizes", bodies.len());
    }
    let mut made = Vec::new();
    for (number, (form, source)) in bodies.into_iter().enumerate() {
        let message = Message {
            precedence: args.precedence,
            copy_precedence: args.copy_precedence,
            to: to.clone(),
            copy: copy.clone(),
            subject: args.subject.clone(),
            sics: args.sic.clone(),
            message_type: args.message_type.clone(),
            instructions: args.instruction.clone(),
            report: match args.report {
                ReportArg::None => ReportRequest::None,
                ReportArg::NonDelivery => ReportRequest::NonDelivery,
                ReportArg::Delivery => ReportRequest::Report,
            },
            civil: args.civil,
            originator: originator.clone(),
            authorised_at: args.dtg.unwrap_or_else(Clock::utc),
            content_identifier: match &args.content_identifier {
                Some(given) => given.clone(),
                None => content_identifier(number),
            },
            form,
            source,
        };
        check_identifier(&message.content_identifier)?;
        made.push(Prepared::new(message)?);
    }
    Ok(made)
}

fn bodies(body: &Body) -> Result<Vec<(PartForm, Source)>> {
    if let Some(path) = &body.file {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        return Ok(vec![(PartForm::File { name }, Source::open(path)?)]);
    }
    if let Some(text) = &body.text {
        let charset = Charset::for_text(text);
        let octets = charset.encode(text).into();
        return Ok(vec![(PartForm::Text(charset), Source::Octets(octets))]);
    }
    let canned = |size: &u64| (PartForm::Text(Charset::Ascii), Source::Canned(*size));
    Ok(body.size.iter().map(canned).collect())
}

/// A unique content identifier, from time, process and a number, in 16 characters.
fn content_identifier(number: usize) -> String {
    let seed = Clock::utc().0 ^ u64::from(std::process::id()) << 44;
    let mut rng = Rng::new(seed.wrapping_add(number as u64));
    format!("{:016X}", rng.next_u64())
}

fn check_identifier(identifier: &str) -> Result<()> {
    let printable = |c: char| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c);
    if identifier.is_empty() || identifier.len() > 16 || !identifier.chars().all(printable) {
        bail!(
            "content identifier {identifier:?}: 1 to 16 characters of PrintableString (X.411 8.2.1.1.1.35)"
        );
    }
    Ok(())
}

async fn run_receive(access: &MtaAccess<'_>, args: &ReceiveArgs, json: bool) -> ExitCode {
    let opened = || {
        let inbox = inbox::Inbox::open(&access.profile.inbox(), !args.discard)?;
        let files = args.extract.as_deref().map(extract::Extraction::open).transpose()?;
        anyhow::Ok((inbox, files))
    };
    let (mut inbox, files) = match opened() {
        Ok(opened) => opened,
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            return ExitCode::from(2);
        }
    };
    if inbox.unreadable_lines() > 0 {
        terminal::report_error(&format!(
            "warning: {} lines of received.log in {} cannot be read: messages that they named are kept again \
             if the MTA repeats their delivery",
            inbox.unreadable_lines(),
            access.profile.inbox().display()
        ));
    }
    let until = receive::Until {
        wait: args.wait,
        count: args.count,
        timeout: args.timeout.map(Duration::from_secs),
    };
    let mut lines = Vec::new();
    let mut to = receive::To { inbox: &mut inbox, files: files.as_ref() };
    let outcome = receive::receive(access, &mut to, until, |line| {
        if let Some(warning) = show::warning(line) {
            terminal::report_error(&warning);
        }
        if !json && args.wait {
            let line = std::slice::from_ref(line);
            terminal::print(&format!("{}\n{}", show::received(line), show::details(line)));
        }
        lines.push(line.clone());
    })
    .await;
    if json {
        terminal::print_json(&serde_json::json!({ "deliveries": lines }));
    } else if !args.wait {
        if lines.is_empty() && matches!(outcome, Ok(0)) {
            terminal::print("no delivery waits");
        } else if !lines.is_empty() {
            terminal::print(&format!("{}\n{}", show::received(&lines), show::details(&lines)));
        }
    }
    let code = received_code(args, lines.len(), outcome);
    // One code at whatever moment Ctrl-C came: in a bind, between deliveries or within one.
    if access.is_interrupted() { ExitCode::from(INTERRUPTED) } else { code }
}

/// Reports what is missing of the deliveries; returns the exit code.
fn received_code(args: &ReceiveArgs, received: usize, outcome: Result<u64>) -> ExitCode {
    let wanted = args.count.filter(|wanted| (received as u64) < *wanted);
    match outcome {
        Ok(left) => {
            if let Some(wanted) = wanted {
                terminal::report_error(&format!("received {received} of {wanted} deliveries"));
                ExitCode::from(if received == 0 { 1 } else { 3 })
            } else if left > 0 {
                terminal::report_error(&format!(
                    "{left} messages still wait: the MTA has not delivered them, try again later"
                ));
                ExitCode::from(3)
            } else {
                ExitCode::SUCCESS
            }
        }
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            ExitCode::from(match received > 0 || error.is::<receive::StillWaiting>() {
                true => 3,
                false if error.is::<profile::Wrong>() => 2,
                false => 1,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_a_civil_heading_cannot_hold_are_refused() {
        use clap::error::ErrorKind;
        let parse = |more: &[&str]| {
            let all = [&["xuxa", "send", "--to", "/C=XX/S=A", "--text", "x"], more].concat();
            Cli::try_parse_from(all).map(drop).map_err(|error| error.kind())
        };
        assert_eq!(parse(&["--civil", "--dtg", "260504030201Z", "--precedence", "flash"]), Ok(()));
        for military in [
            ["--sic", "ABC"],
            ["--message-type", "drill"],
            ["--instruction", "BY HAND"],
            ["--copy-precedence", "routine"],
        ] {
            assert_eq!(parse(&military), Ok(()));
            let both = [&["--civil"][..], &military].concat();
            assert_eq!(parse(&both), Err(ErrorKind::ArgumentConflict), "{military:?}");
        }
    }

    #[test]
    fn a_message_in_doubt_has_its_own_exit_code() {
        let unsent = || {
            vec![send::Unsent {
                content_identifier: "A".to_owned(),
                dtg: "260504030201Z".to_owned(),
                precedence: Precedence::Flash,
                size: 1,
                tries: 1,
                reason: "the association ended".to_owned(),
            }]
        };
        let outcome = send::SendOutcome::default;
        assert_eq!(sent_code(&outcome()), 0);
        assert_eq!(sent_code(&send::SendOutcome { refused: unsent(), ..outcome() }), 1);
        let wrong = send::SendOutcome { not_sent: unsent(), is_wrong_use: true, ..outcome() };
        assert_eq!(sent_code(&wrong), 2);
        let both = send::SendOutcome { not_sent: unsent(), in_doubt: unsent(), ..outcome() };
        assert_eq!(sent_code(&both), 4);
        let json = serde_json::json!(both);
        assert_eq!(json["in_doubt"][0]["content_identifier"], "A");
        assert_eq!(
            (&json["messages"], &json["refused"]),
            (&serde_json::json!([]), &json["messages"])
        );
        let lines = show::unsent(&both);
        assert!(lines[0].contains("--content-identifier A --dtg 260504030201Z"), "{lines:?}");
        assert_eq!(lines.last().unwrap(), "0 accepted, 1 in doubt, 0 refused, 1 not sent");
    }
}
