//! `xuxa sent`: what was sent, and what is known of it since.

use crate::profile::Profile;
use crate::{show, terminal};
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use ua::sent::{SentLog, SentMessage, State};

#[derive(Debug, Args)]
pub(crate) struct SentArgs {
    /// The newest messages only, this number of them
    #[arg(long, value_name = "N", default_value_t = 50)]
    count: usize,
    /// Only messages whose identifier, subject or recipient has this text
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

/// Runs `xuxa sent`.
pub(crate) fn run(profile: &Profile, args: &SentArgs, json: bool) -> ExitCode {
    let log = SentLog::new(profile.sent_log());
    let sent = match log.read() {
        Ok(sent) => sent,
        Err(error) => {
            terminal::report_error(&format!("cannot read {}: {error}", log.path().display()));
            return ExitCode::FAILURE;
        }
    };
    if sent.unreadable > 0 {
        let path = log.path().display();
        terminal::report_error(&format!(
            "warning: {} lines of {path} cannot be read and are skipped",
            sent.unreadable
        ));
    }
    let wanted = |message: &&SentMessage| args.text.as_ref().is_none_or(|text| has(message, text));
    let found: Vec<&SentMessage> = sent.messages.iter().filter(wanted).collect();
    let found = found.get(found.len().saturating_sub(args.count)..).unwrap_or_default();
    if json {
        let messages: Vec<_> = found.iter().map(|message| as_json(message)).collect();
        terminal::print_json(&json!({ "messages": messages }));
    } else if found.is_empty() {
        terminal::print("nothing was sent");
    } else {
        terminal::print(&table(found));
    }
    ExitCode::SUCCESS
}

fn has(message: &SentMessage, text: &str) -> bool {
    let text = text.to_lowercase();
    let s = &message.submitted;
    let fields = [&s.mts_identifier, &s.ipm, &s.content_identifier];
    let recipients = message.recipients.iter().map(|(name, _)| name);
    let mut all = fields.into_iter().chain(&s.subject).chain(recipients);
    all.any(|field| field.to_lowercase().contains(&text))
}

fn table(found: &[&SentMessage]) -> String {
    let mut table =
        show::table(&["DTG", "precedence", "to", "subject", "state", "MTS identifier"], &[]);
    for message in found {
        let s = &message.submitted;
        let first = message.recipients.first().map(|(name, _)| name.clone()).unwrap_or_default();
        let more = match message.recipients.len() {
            0 | 1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let subject =
            if s.probe { "(a probe)".to_owned() } else { s.subject.clone().unwrap_or_default() };
        let id = match s.mts_identifier.is_empty() {
            true => format!("content id {}", s.content_identifier),
            false => s.mts_identifier.clone(),
        };
        let state = message.summary();
        table.add_row([s.dtg.clone(), s.precedence.clone(), first + &more, subject, state, id]);
    }
    let mut out = table.to_string();
    for message in found.iter().filter(|message| is_mixed(message)) {
        out.push_str(&format!("\n{}\n", base::shown::line(&message.submitted.mts_identifier)));
        for (name, state) in message.recipients.iter().take(MAX_SHOWN) {
            let line = format!("{name}: {state}");
            out.push_str(&format!("  {}\n", base::shown::line(&line)));
        }
        let more = message.recipients.len().saturating_sub(MAX_SHOWN);
        if more > 0 {
            out.push_str(&format!("  and {more} more; --json has all\n"));
        }
    }
    out
}

/// Most recipients that are shown with their states.
const MAX_SHOWN: usize = 20;

fn is_mixed(message: &SentMessage) -> bool {
    let mut states = message.recipients.iter().map(|(_, state)| state);
    let first = states.next();
    states.any(|state| Some(state) != first)
}

fn as_json(message: &SentMessage) -> serde_json::Value {
    let recipients: Vec<_> = message
        .recipients
        .iter()
        .map(|(name, state)| {
            let kind = match state {
                State::InDoubt => "in_doubt",
                State::NotSent(_) => "not_sent",
                State::Accepted => "accepted",
                State::Cancelled => "cancelled",
                State::Delivered(_) => "delivered",
                State::NotDelivered(_) => "not_delivered",
                State::NotRead(_) => "not_read",
                State::Read(_) => "read",
            };
            json!({ "recipient": name, "state": kind, "words": state.to_string() })
        })
        .collect();
    json!({
        "message": message.submitted,
        "state": message.summary(),
        "recipients": recipients,
    })
}
