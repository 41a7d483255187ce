//! `mta queue`: lists waiting messages, and holds and releases them.

use super::error::{ArgumentError, RequestError};
use super::output::{Daemon, age, dash, print, print_error, print_json, table, trimmed};
use super::{DONE, FAILED, PARTLY, WRONG};
use crate::admin::{Answer, Request, ask};
use crate::config::canonical_address;
use base::{EntryId, Precedence};
use node::listing::{QueuePage, QueueRequest, QueueRow, ROWS};
use node::operator::HoldOutcome;
use std::path::Path;

/// Largest number of entries in one request.
const MAX_ENTRIES: usize = 500;

/// Lists waiting messages and why they wait; holds and releases entries.
///
/// STATE is one of: ready (starts as soon as an association of a permitted channel is free), held (by
/// a rule of the scheduler; the reason follows), held by operator, delayed (waits after a failure,
/// or is deferred), in transfer, paused (its transfer waits for a higher one), expired (given up; its
/// report is being committed).
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = false)]
pub(super) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,
    #[command(flatten)]
    filter: Filter,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<QueueAction>,
}

#[derive(Debug, clap::Args)]
struct Filter {
    /// Only messages to this peer.
    #[arg(long, value_name = "NAME", conflicts_with = "mailbox")]
    peer: Option<String>,
    /// Only messages to this mailbox.
    #[arg(long, value_name = "ADDRESS")]
    mailbox: Option<String>,
    /// Only this precedence: deferred, routine, priority, immediate, flash or override.
    #[arg(long, value_name = "LEVEL")]
    precedence: Option<Precedence>,
    /// Show at most this many entries.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(Debug, clap::Subcommand)]
enum QueueAction {
    /// Shows all fields of entries.
    Show(Entries),
    /// Holds entries until they are released, across restarts too. A held entry does not block
    /// others.
    Hold(Entries),
    /// Releases held entries.
    Release(Entries),
}

#[derive(Debug, clap::Args)]
struct Entries {
    /// Entries as `mta queue` shows them, such as e42.
    #[arg(value_name = "ENTRY", required = true, value_parser = entry)]
    entries: Vec<EntryId>,
}

fn entry(text: &str) -> Result<EntryId, ArgumentError> {
    let number = text.strip_prefix('e').and_then(|number| number.parse().ok());
    number.map(EntryId).ok_or(ArgumentError::Entry)
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let Filter { peer, mailbox, precedence, limit: _ } = &arguments.filter;
    let filtered = peer.is_some() || mailbox.is_some() || precedence.is_some();
    if filtered && arguments.action.is_some() {
        print_error(
            "--peer, --mailbox and --precedence choose what is listed: name entries instead",
        );
        return WRONG;
    }
    let Some(socket) = arguments.daemon.socket() else { return WRONG };
    let json = arguments.json;
    match &arguments.action {
        None => list(&socket, &arguments.filter, json),
        Some(QueueAction::Show(which)) => show(&socket, &which.entries, json),
        Some(QueueAction::Hold(which)) => operate(&socket, &which.entries, true, json),
        Some(QueueAction::Release(which)) => operate(&socket, &which.entries, false, json),
    }
}

fn page(socket: &Path, asked: QueueRequest) -> Result<QueuePage, RequestError> {
    match ask(socket, &Request::Queue { asked })? {
        Answer::Queue(page) => Ok(page),
        other => Err(other.into()),
    }
}

fn list(socket: &Path, filter: &Filter, json: bool) -> u8 {
    let mailbox = match filter.mailbox.as_deref().map(canonical_address).transpose() {
        Ok(mailbox) => mailbox,
        Err(error) => {
            print_error(&format!("--mailbox: invalid O/R address: {error}"));
            return WRONG;
        }
    };
    let mut shown = QueuePage::default();
    let mut left = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    loop {
        let asked = QueueRequest {
            peer: filter.peer.clone(),
            mailbox: mailbox.clone(),
            precedence: filter.precedence,
            entry: None,
            after: shown.next.take(),
            limit: left.min(ROWS),
        };
        match page(socket, asked) {
            Ok(page) => {
                left = left.saturating_sub(page.entries.len());
                shown.entries.extend(page.entries);
                shown.next = page.next;
                shown.reading_queue |= page.reading_queue;
            }
            Err(why) => {
                print_error(&why.to_string());
                return FAILED;
            }
        }
        if left == 0 || shown.next.is_none() {
            break;
        }
    }
    if json {
        print_json(&shown);
    } else {
        print(&to_text(&shown));
    }
    DONE
}

fn to_text(page: &QueuePage) -> String {
    let mut rows = table([
        "ENTRY",
        "TO",
        "PRECEDENCE",
        "BYTES",
        "AGE",
        "STATE",
        "ORIGINATOR",
        "MTS IDENTIFIER",
    ]);
    for row in &page.entries {
        rows.add_row([
            row.entry.clone(),
            next_hop(row),
            row.precedence.to_string(),
            row.size.to_string(),
            age(row.age_seconds) + if row.overdue { " !" } else { "" },
            state(row),
            row.originator.clone().unwrap_or_else(dash),
            row.mts_id.clone().unwrap_or_else(dash),
        ]);
    }
    let mut text = match (page.entries.is_empty(), page.reading_queue) {
        (true, true) => String::new(),
        (true, false) => "nothing waits\n".to_owned(),
        (false, _) => trimmed(&rows),
    };
    if page.reading_queue {
        text.push_str("the queue is still being read: entries are missing here\n");
    }
    if page.next.is_some() {
        text.push_str("there is more: --limit N shows N entries, --peer and --precedence choose\n");
    }
    if page.entries.iter().any(|row| row.overdue) {
        text.push_str("! waits for longer than its precedence allows\n");
    }
    text
}

/// Next hop of the entry.
fn next_hop(row: &QueueRow) -> String {
    let to = row.peer.clone().or_else(|| row.mailbox.clone()).unwrap_or_else(dash);
    if row.removed { to + " (removed)" } else { to }
}

/// State, with its cause or progress.
fn state(row: &QueueRow) -> String {
    let words = row.state.replace('_', " ");
    if let Some(why) = &row.held_because {
        return format!("{words}: {why}");
    }
    if let Some(until) = &row.delayed_until {
        return format!("{words} until {until}");
    }
    let rate = row.rate_kbit_s.map(|kbit_s| format!(", {}", super::status::rate(kbit_s)));
    match (&row.channel, row.bytes_confirmed) {
        (Some(channel), Some(done)) => {
            format!("{words} on {channel}, {done} confirmed{}", rate.unwrap_or_default())
        }
        (Some(channel), None) => format!("{words} on {channel}"),
        (None, _) => words,
    }
}

fn show(socket: &Path, entries: &[EntryId], json: bool) -> u8 {
    let mut found = QueuePage::default();
    for id in entries {
        let asked = QueueRequest { entry: Some(*id), limit: 1, ..QueueRequest::default() };
        match page(socket, asked) {
            Ok(page) => found.entries.extend(page.entries),
            Err(why) => print_error(&why.to_string()),
        }
    }
    if json {
        print_json(&found);
    } else {
        for row in &found.entries {
            // One field per line, in the order and with the names of the JSON.
            let fields = serde_json::to_value(row).unwrap_or_default();
            for (name, value) in fields.as_object().into_iter().flatten() {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                print(&format!("{name:<16} {}\n", base::shown::line(&value)));
            }
            print("\n");
        }
    }
    partly(found.entries.len(), entries.len())
}

fn operate(socket: &Path, entries: &[EntryId], hold: bool, json: bool) -> u8 {
    let mut outcomes = Vec::new();
    for some in entries.chunks(MAX_ENTRIES) {
        match ask(socket, &Request::Operate { entries: some.to_vec(), hold }) {
            Ok(Answer::Operated(done)) => outcomes.extend(done),
            Ok(other) => print_error(&RequestError::from(other).to_string()),
            Err(error) => print_error(&error.to_string()),
        }
    }
    let word = if hold { "held" } else { "released" };
    if json {
        let named = outcomes.iter().map(|(id, outcome)| (id.to_string(), outcome.clone()));
        print_json(&named.collect::<std::collections::BTreeMap<_, _>>());
    } else {
        for (id, outcome) in &outcomes {
            print(&match outcome {
                HoldOutcome::Became(new) => {
                    let new = new.iter().map(EntryId::to_string).collect::<Vec<_>>().join(" ");
                    format!("{id} was rerouted and is now {new}: use that number\n")
                }
                HoldOutcome::Done => format!("{id} {word}\n"),
                HoldOutcome::InTransfer => format!(
                    "{id} is in transfer, which continues: it is held only if the transfer fails\n"
                ),
                HoldOutcome::Unchanged if hold => format!("{id} was held already\n"),
                HoldOutcome::Unchanged => format!("{id} was not held\n"),
                HoldOutcome::Unknown => format!("{id} is not in the queue: it may have gone\n"),
            });
        }
    }
    let known = outcomes
        .iter()
        .filter(|(_, outcome)| !matches!(outcome, HoldOutcome::Unknown | HoldOutcome::Became(_)));
    partly(known.count(), entries.len())
}

fn partly(done: usize, of: usize) -> u8 {
    match done {
        0 => FAILED,
        done if done < of => PARTLY,
        _ => DONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(entry: &str, state: &str) -> QueueRow {
        let fields = serde_json::json!({
            "entry": entry, "state": state, "peer": "act", "precedence": "routine", "size": 10_000,
            "mts_id": "[/C=IT/ADMD=NET/PRMD=NAPLES/;1.42]",
            "originator": "/C=IT/ADMD=NET/PRMD=NAPLES/S=OPS/",
            "accepted": "", "age_seconds": 12.34, "failures": 0, "overdue": false,
        });
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_page_as_text() {
        let held = QueueRow {
            held_because: Some("flash e7 is in transfer".to_owned()),
            overdue: true,
            ..row("e8", "held")
        };
        let until = Some("2026-01-02T03:04:05.000000Z".to_owned());
        let delayed =
            QueueRow { delayed_until: until, age_seconds: 7_260.0, ..row("e9", "delayed") };
        let sending = QueueRow {
            precedence: Precedence::Flash,
            channel: Some("flash".to_owned()),
            bytes_confirmed: Some(65_536),
            rate_kbit_s: Some(511.6),
            ..row("e7", "in_transfer")
        };
        let bare = QueueRow { mts_id: None, originator: None, ..row("e10", "held_by_operator") };
        let mut page =
            QueuePage { entries: vec![sending, held, delayed, bare], ..QueuePage::default() };
        insta::assert_snapshot!(to_text(&page));
        page.entries.clear();
        assert_eq!(to_text(&page), "nothing waits\n");
        page.reading_queue = true;
        assert_eq!(to_text(&page), "the queue is still being read: entries are missing here\n");
    }

    #[test]
    fn entries_are_written_as_shown() {
        assert_eq!(entry("e42"), Ok(EntryId(42)));
        for wrong in ["42", "e", "e-1", "x42", ""] {
            assert!(entry(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!([partly(0, 2), partly(1, 2), partly(2, 2)], [FAILED, PARTLY, DONE]);
    }
}
