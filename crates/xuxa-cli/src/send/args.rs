//! Options of `xuxa send`, and the messages that they describe.

use crate::quantity;
use crate::send;
use crate::send::envelope::EnvelopeArgs;
use crate::send::heading::{CivilArgs, MilitaryArgs, parse_time};
use crate::send::names::Names;
use crate::show;
use crate::submission::{MtaAccess, Prepared};
use crate::terminal;
use anyhow::{Context as _, Result, bail};
use base::rng::Rng;
use base::{Precedence, Utc};
use clap::{Args, ValueEnum};
use p1::flags::ReportRequest;
use p772::{Charset, Heading, MessageType, PartForm};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use ua::sent::SentLog;
use ua::{BodyPart, Clock, Message, Recipient, Source};

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
struct Body {
    /// Generated text of this size; several sizes make several messages: 1kB,10kB,100kB,1MB,10MB
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = quantity::parse_size)]
    #[arg(conflicts_with_all = ["text", "file"], required_unless_present_any = ["text", "file", "template"])]
    size: Vec<u64>,
    /// Send this file, with its name, as a file transfer body part, of any size; repeat for more
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Send this text; `-` reads standard input. With --file: the first body part
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// Recipient for action: an O/R address such as /C=XX/ADMD=NATO/PRMD=ACT/S=OPS, or a name or group
    /// of the address book. Requests follow in brackets: ops[rn,nrn,return,reply,report=delivery]
    #[arg(long, value_name = "ADDRESS", required_unless_present_any = ["copy", "bcc", "template"])]
    to: Vec<String>,
    /// Recipient for information
    #[arg(long, value_name = "ADDRESS")]
    copy: Vec<String>,
    /// Blind recipient: gets a submission of its own, and no other recipient sees it
    #[arg(long, value_name = "ADDRESS")]
    bcc: Vec<String>,
    /// Requests to all recipients: rn, nrn, return, reply, acp127-positive, -negative, -transfer
    #[arg(long, value_name = "REQUESTS", value_delimiter = ',')]
    request: Vec<String>,
    /// override, flash, immediate, priority, routine or deferred
    #[arg(long, short, default_value = "routine")]
    precedence: Precedence,
    /// Precedence for the recipients for information [default: as --precedence]
    #[arg(long, value_name = "PRECEDENCE")]
    copy_precedence: Option<Precedence>,
    #[command(flatten)]
    body: Body,
    /// Options from the file templates/NAME.toml beside the profiles; options given here replace its
    #[arg(long, value_name = "NAME")]
    pub template: Option<String>,
    /// Subject, up to 128 characters
    #[arg(long, short)]
    subject: Option<String>,
    /// Subject indicator code, 3 to 8 characters; up to 8 of them
    #[arg(long, value_name = "SIC")]
    sic: Vec<String>,
    /// exercise, operation, project, drill or a number up to 255, with a name: exercise=STEADY
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
    /// Date-time group of the heading, as in 260504030201Z or 040302ZMAY26 [default: now]
    #[arg(long, value_name = "YYMMDDhhmmssZ", value_parser = parse_time)]
    dtg: Option<Utc>,
    #[command(flatten)]
    envelope: EnvelopeArgs,
    #[command(flatten)]
    civil_fields: CivilArgs,
    #[command(flatten)]
    military_fields: MilitaryArgs,
    /// How long to repeat a submission whose answer was lost: 500ms, 60s, 5min; 0s: never
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::parse_time)]
    #[arg(help_heading = "Submission")]
    pub retry_for: Duration,
}

/// Why an option of `send` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum OptionError {
    #[error("{0:?} is not one of exercise, operation, project, drill, nor a number up to 255")]
    MessageType(String),
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
        number => number.parse().map_err(|_| OptionError::MessageType(kind.to_owned()))?,
    };
    Ok(MessageType { kind, identifier: name })
}

/// Runs `xuxa send`.
pub(crate) async fn run(access: &MtaAccess<'_>, args: &SendArgs, json: bool) -> ExitCode {
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

/// What differs between the copies of a message.
struct Copy {
    blind: Option<Recipient>,
    content_identifier: String,
    ipm_identifier: String,
}

fn messages(access: &MtaAccess<'_>, args: &SendArgs) -> Result<Vec<Prepared>> {
    if !is_repetition(access, args) {
        args.envelope.check(Clock::utc())?;
    }
    let names = Names::load(access.profile)?;
    let [to, copy, bcc] = [&args.to, &args.copy, &args.bcc];
    let [to, copy, bcc] = [
        names.recipients(to, &args.request)?,
        names.recipients(copy, &args.request)?,
        names.recipients(bcc, &args.request)?,
    ];
    [&to, &copy, &bcc].into_iter().for_each(|all| names.warn(all));
    let originator = access.profile.user()?;
    let mut heading = Heading::default();
    args.civil_fields.apply(&mut heading, &names)?;
    args.military_fields.apply(&mut heading, &names)?;
    let mut options = args.envelope.options(&names)?;
    options.exempted = args.military_fields.exempted(&names)?;
    let authorised_at = args.dtg.unwrap_or_else(Clock::utc);
    let sizes = args.body.size.len().max(1);
    if args.content_identifier.is_some() && sizes > 1 {
        bail!("--content-identifier names one message, and there are {sizes} sizes");
    }
    let text = args.body.text.as_deref().map(text).transpose()?;
    let mut made = Vec::new();
    for number in 0..sizes {
        for one in copies(args, number, &to, &copy, &bcc)? {
            let (parts, last) = body(&args.body, number, text.as_deref())?;
            let message = Message {
                precedence: args.precedence,
                copy_precedence: args.copy_precedence,
                to: to.clone(),
                copy: copy.clone(),
                blind: one.blind,
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
                authorised_at,
                content_identifier: one.content_identifier,
                ipm_identifier: Some(one.ipm_identifier),
                heading: Box::new(heading.clone()),
                options: options.clone(),
                parts,
                form: last.form,
                source: last.source,
            };
            made.push(Prepared::new(message)?);
        }
    }
    Ok(made)
}

/// The copy for all whom everybody sees, and one for each blind recipient. A content identifier that
/// was given makes that of the other copies too: a repetition of the command has the same ones.
fn copies(
    args: &SendArgs,
    number: usize,
    to: &[Recipient],
    copy: &[Recipient],
    bcc: &[Recipient],
) -> Result<Vec<Copy>> {
    let first = match &args.content_identifier {
        Some(given) => given.clone(),
        None => content_identifier(number),
    };
    check_identifier(&first)?;
    let seen = (!to.is_empty() || !copy.is_empty()).then_some(None);
    let blind = bcc.iter().cloned().map(Some);
    let mut copies = Vec::new();
    for (n, blind) in seen.into_iter().chain(blind).enumerate() {
        let content_identifier = match n {
            0 => first.clone(),
            n => format!("{}.{n}", first.get(..12).unwrap_or(&first)),
        };
        check_identifier(&content_identifier)?;
        copies.push(Copy { blind, content_identifier, ipm_identifier: first.clone() });
    }
    Ok(copies)
}

/// Whether the record has a message with the content identifier that was given: its repetition has the same times,
/// which may be past by now.
fn is_repetition(access: &MtaAccess<'_>, args: &SendArgs) -> bool {
    let log = SentLog::new(access.profile.sent_log());
    args.content_identifier.as_ref().is_some_and(|given| {
        log.read().is_ok_and(|sent| {
            sent.messages.iter().any(|message| message.submitted.content_identifier == *given)
        })
    })
}

/// Longest text that is read from standard input, octets: a longer one is sent as a file.
const MAX_STDIN: u64 = 64 << 20;

/// The text of `--text`; `-` is standard input.
fn text(given: &str) -> Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut octets = Vec::new();
    let read = std::io::stdin().lock().take(MAX_STDIN + 1).read_to_end(&mut octets);
    read.context("cannot read standard input")?;
    if octets.len() as u64 > MAX_STDIN {
        bail!("standard input has more than 64 MiB: put it into a file and send it with --file");
    }
    // What is not UTF-8 is taken as Latin-1, so that no octet is lost.
    Ok(Charset::Ascii.decode(&octets))
}

/// The body parts of one copy: all but the last, and the last.
fn body(body: &Body, number: usize, text: Option<&str>) -> Result<(Vec<BodyPart>, BodyPart)> {
    let mut parts: Vec<BodyPart> = text.map(BodyPart::text).into_iter().collect();
    for path in &body.file {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        parts.push(BodyPart { form: PartForm::File { name }, source: Source::open(path)? });
    }
    if let Some(size) = body.size.get(number) {
        parts
            .push(BodyPart { form: PartForm::Text(Charset::Ascii), source: Source::Canned(*size) });
    }
    let last = parts.pop().context("give the body: --text, --file or --size")?;
    Ok((parts, last))
}

/// A unique content identifier, from time, process and a number, in 16 characters.
pub(crate) fn content_identifier(number: usize) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_a_civil_heading_cannot_hold_are_refused() {
        use clap::Parser as _;
        use clap::error::ErrorKind;
        let parse = |more: &[&str]| {
            let all = [&["xuxa", "send", "--to", "/C=XX/S=A", "--text", "x"], more].concat();
            crate::Cli::try_parse_from(all).map(drop).map_err(|error| error.kind())
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
