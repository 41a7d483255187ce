//! Options of `xuxa send`, and the messages that they describe.

use crate::profile;
use crate::quantity;
use crate::send;
use crate::show;
use crate::submission::{MtaAccess, Prepared};
use crate::terminal;
use anyhow::{Result, bail};
use base::rng::Rng;
use base::{Precedence, Utc};
use clap::{Args, ValueEnum};
use p1::flags::ReportRequest;
use p772::{Charset, MessageType, PartForm};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use ua::{Clock, Message, Source};

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
pub(crate) struct SendArgs {
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
    pub retry_for: Duration,
    /// How long to wait for the answer after all of a submission was sent
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = quantity::parse_time)]
    pub answer_timeout: Duration,
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
            to: to.iter().cloned().map(Into::into).collect(),
            copy: copy.iter().cloned().map(Into::into).collect(),
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
            blind: None,
            heading: Default::default(),
            ipm_identifier: None,
            options: Default::default(),
            parts: Vec::new(),
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
