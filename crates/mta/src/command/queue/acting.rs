//! The verbs of `mta queue` that change something.

use super::select::Filter;
use super::{entry, page, partly};
use crate::admin::{Answer, Request, ask, summary};
use crate::command::error::RequestError;
use crate::command::output::{agrees, print, print_error, print_json, progress};
use crate::command::{DONE, FAILED, PARTLY, WRONG};
use base::EntryId;
use node::listing::{QueuePage, QueueRequest, QueueRow};
use node::operator::{Act, ActOutcome, MAX_ORDERED};
use status_text::queue_to_text as to_text;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::path::Path;

/// Entries and outcomes that are shown one by one; of more, only those that are not done.
const SHOWN: usize = 20;

/// Which entries, and how.
#[derive(Debug, clap::Args)]
pub(super) struct Acting {
    /// Entries as `mta queue` shows them, such as e42. Or choose them with conditions.
    #[arg(value_name = "ENTRY", value_parser = entry)]
    entries: Vec<EntryId>,
    #[command(flatten)]
    filter: Filter,
    /// All entries of the queue.
    #[arg(long)]
    all: bool,
    /// Only list what would be touched.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before entries are deleted or expired.
    #[arg(long)]
    yes: bool,
}

/// Which entries, and where to.
#[derive(Debug, clap::Args)]
pub(super) struct Rerouting {
    #[command(flatten)]
    pub(super) which: Acting,
    /// The peer they go to, whatever the routes are. Without it they go where the routes lead now.
    #[arg(long, value_name = "PEER")]
    pub(super) to: Option<String>,
}

/// Carries out an order; the exit code.
pub(super) fn run(socket: &Path, act: &Act, which: &Acting, json: bool) -> u8 {
    let by_filter = which.filter.is_given() || which.all;
    match (which.entries.is_empty(), by_filter) {
        (true, false) => {
            print_error("name entries, choose them with conditions such as --peer, or write --all");
            return WRONG;
        }
        (false, true) => {
            print_error("name entries or choose them with conditions, not both");
            return WRONG;
        }
        _ => {}
    }
    let (mut entries, mut page) = match chosen(socket, which) {
        Ok(chosen) => chosen,
        Err(code) => return code,
    };
    if matches!(act, Act::Delete | Act::Expire) && by_filter && !which.all {
        leave_reports(act, &mut entries, &mut page);
    }
    if which.dry_run {
        return show_only(socket, act, &entries, &page, json);
    }
    if entries.is_empty() {
        if json {
            print_json(&BTreeMap::<String, ActOutcome>::new());
        } else {
            print("nothing matches\n");
        }
        return DONE;
    }
    if matches!(act, Act::Delete | Act::Expire) && !which.yes && !agreed(act, entries.len(), &page)
    {
        return WRONG;
    }
    let (outcomes, failed) = order(socket, act, &entries, by_filter);
    show_outcomes(act, &outcomes, json);
    if matches!(act, Act::Retry) && !json {
        show_disabled(socket, &outcomes);
    }
    if let Some(why) = failed {
        print_error(&why.to_string());
        return if outcomes.is_empty() { why.code() } else { PARTLY };
    }
    let known = outcomes.iter().filter(|(_, outcome)| is_as_ordered(act, outcome));
    partly(known.count(), entries.len())
}

/// Whether an outcome is what was ordered.
fn is_as_ordered(act: &Act, outcome: &ActOutcome) -> bool {
    match outcome {
        ActOutcome::Done | ActOutcome::Silent | ActOutcome::Doubted | ActOutcome::Unchanged => true,
        ActOutcome::Would(_) => true,
        ActOutcome::Became(_) => matches!(act, Act::Reroute { .. }),
        ActOutcome::InTransfer => matches!(act, Act::Hold | Act::Retry),
        ActOutcome::Unknown | ActOutcome::Refused(_) => false,
    }
}

/// The entries that are meant, with their rows where they are needed; after printing an error, the exit
/// code.
fn chosen(socket: &Path, which: &Acting) -> Result<(Vec<EntryId>, QueuePage), u8> {
    let failed = |why: RequestError| {
        print_error(&why.to_string());
        FAILED
    };
    if which.entries.is_empty() {
        let (page, unread) = which.filter.selection()?.read(socket, usize::MAX).map_err(failed)?;
        // Conditions that were not looked for everywhere are not carried out in part.
        if let Some(why) = unread {
            let why = format!("nothing was ordered, as the queue could not be read whole: {why}");
            return Err(failed(RequestError::Refused(why)));
        }
        let entries = page.entries.iter().filter_map(|row| entry(&row.entry).ok()).collect();
        return Ok((entries, page));
    }
    let mut rows = QueuePage::default();
    if which.dry_run {
        for id in &which.entries {
            let asked = QueueRequest { entry: Some(*id), limit: 1, ..QueueRequest::default() };
            match page(socket, &asked) {
                Ok(page) => rows.entries.extend(page.entries),
                Err(why) => print_error(&why.to_string()),
            }
        }
    }
    Ok((which.entries.clone(), rows))
}

/// Conditions choose messages and probes: who withdraws a message does not mean the reports about it.
fn leave_reports(act: &Act, entries: &mut Vec<EntryId>, page: &mut QueuePage) {
    let reports = page.entries.extract_if(.., |row| row.kind.as_deref() == Some("report"));
    let reports: BTreeSet<String> = reports.map(|row| row.entry).collect();
    if reports.is_empty() {
        return;
    }
    entries.retain(|id| !reports.contains(&id.to_string()));
    let (number, are) = if reports.len() == 1 {
        ("1 report".to_owned(), "is")
    } else {
        (format!("{} reports", reports.len()), "are")
    };
    let verb = act.name();
    print_error(&format!(
        "{number} {are} left alone: to {verb} a report, write its entry, or --all"
    ));
}

/// What an order would touch, and the outcome for each entry where the daemon is asked for that.
fn show_only(socket: &Path, act: &Act, entries: &[EntryId], page: &QueuePage, json: bool) -> u8 {
    let asks = matches!(act, Act::Reroute { .. } | Act::Expire | Act::Delete);
    let trial = Act::Trial(Box::new(act.clone()));
    let (outcomes, failed) =
        if asks { order(socket, &trial, entries, false) } else { Default::default() };
    if let Some(why) = failed {
        print_error(&why.to_string());
        return FAILED;
    }
    let others = outcomes.iter().filter(|(_, o)| !matches!(o, ActOutcome::Would(_)));
    let would = entries.len() - others.clone().count();
    if json {
        let named = outcomes.iter().map(|(id, outcome)| (id.to_string(), outcome.clone()));
        let named: BTreeMap<String, ActOutcome> = named.collect();
        print_json(&serde_json::json!({ "entries": page.entries, "outcomes": named }));
    } else {
        print(&if page.entries.is_empty() {
            "nothing matches\n".to_owned()
        } else {
            to_text(page)
        });
        let is_reroute = matches!(act, Act::Reroute { .. });
        let shown =
            outcomes.iter().filter(|(_, o)| is_reroute || !matches!(o, ActOutcome::Would(_)));
        for (id, outcome) in shown.take(SHOWN) {
            print(&in_words(act, *id, outcome));
        }
        let of = if would == 1 { "entry" } else { "entries" };
        print(&format!("{}: {would} {of}; nothing was done (--dry-run)\n", act.name()));
    }
    let found = if asks { would } else { page.entries.len() };
    match found {
        0 if !entries.is_empty() => FAILED,
        found if found < entries.len() => PARTLY,
        _ => DONE,
    }
}

/// Asks whether it is meant. Who cannot be asked has to write --yes.
fn agreed(act: &Act, count: usize, page: &QueuePage) -> bool {
    let what = match (act, count) {
        (Act::Delete, _) => "deleted, and nobody gets a report",
        (_, 1) => "given up, and its originator gets a non-delivery report",
        _ => "given up, and their originators get non-delivery reports",
    };
    let entries = if count == 1 { "1 entry is".to_owned() } else { format!("{count} entries are") };
    let is_asked = std::io::stdin().is_terminal();
    if is_asked && !page.entries.is_empty() && page.entries.len() <= SHOWN {
        print(&to_text(page));
    }
    agrees(
        &format!("{entries} {what}."),
        &format!("{entries} to be {what}: write --yes (--dry-run lists them)"),
    )
}

/// How the operator chose the entries, for the log: what was written after the verb.
fn conditions(act: &Act) -> String {
    let words = std::env::args().skip_while(|word| word != act.name()).skip(1);
    words.filter(|word| word != "--yes").collect::<Vec<_>>().join(" ")
}

/// Orders it, in parts. Gives the outcomes, and why it was not carried out to its end.
fn order(
    socket: &Path,
    act: &Act,
    entries: &[EntryId],
    is_chosen: bool,
) -> (Vec<(EntryId, ActOutcome)>, Option<RequestError>) {
    let mut outcomes = Vec::new();
    let conditions = is_chosen.then(|| conditions(act));
    for some in entries.chunks(MAX_ORDERED) {
        if entries.len() > MAX_ORDERED {
            progress(Some(&format!("{}: {} of {}", act.name(), outcomes.len(), entries.len())));
        }
        let (entries, conditions) = (some.to_vec(), conditions.clone());
        let asked = Request::Operate { entries, act: act.clone(), conditions };
        let answer = ask(socket, &asked).map_err(RequestError::from);
        match answer {
            Ok(Answer::Operated(done)) => outcomes.extend(done),
            Ok(other) => {
                progress(None);
                return (outcomes, Some(other.into()));
            }
            Err(error) => {
                progress(None);
                return (outcomes, Some(error));
            }
        }
    }
    progress(None);
    (outcomes, None)
}

fn show_outcomes(act: &Act, outcomes: &[(EntryId, ActOutcome)], json: bool) {
    if json {
        let named = outcomes.iter().map(|(id, outcome)| (id.to_string(), outcome.clone()));
        return print_json(&named.collect::<BTreeMap<_, _>>());
    }
    let is_long = outcomes.len() > SHOWN;
    let shown = outcomes.iter().filter(|(_, outcome)| !is_long || !is_as_ordered(act, outcome));
    for (id, outcome) in shown.take(SHOWN) {
        print(&in_words(act, *id, outcome));
    }
    if is_long {
        print(&format!("{}: {}\n", act.name(), summary(outcomes)));
    }
}

/// Names the channels that keep entries back though they are tried again: those that operators disabled.
fn show_disabled(socket: &Path, outcomes: &[(EntryId, ActOutcome)]) {
    let done = outcomes.iter().filter(|(_, outcome)| *outcome == ActOutcome::Done);
    for (id, _) in done.take(SHOWN) {
        let asked = QueueRequest { entry: Some(*id), limit: 1, ..QueueRequest::default() };
        // One that has gone was not kept back.
        let Ok(page) = page(socket, &asked) else { continue };
        page.entries.iter().filter_map(disabled).for_each(|line| print(&line));
    }
}

fn disabled(row: &QueueRow) -> Option<String> {
    let channels = &row.disabled_channels;
    let (first, are) = (channels.first()?, if channels.len() == 1 { "is" } else { "are" });
    Some(format!(
        "{} waits all the same: its channel {} {are} disabled: `mta channel enable {first}`\n",
        row.entry,
        channels.join(", ")
    ))
}

fn in_words(act: &Act, id: EntryId, outcome: &ActOutcome) -> String {
    let word = match act {
        Act::Hold => "held",
        Act::Release => "released",
        Act::Retry => "is tried again",
        Act::Reroute { .. } => "has no copy left: all was delivered before",
        Act::Expire => "given up: its originator gets a report",
        Act::Delete => "deleted",
        Act::Trial(_) => "would be touched",
    };
    let new = |new: &[EntryId]| new.iter().map(EntryId::to_string).collect::<Vec<_>>().join(" ");
    match (outcome, act) {
        (ActOutcome::Became(ids), Act::Reroute { .. }) => {
            format!("{id} rerouted, now {}\n", new(ids))
        }
        (ActOutcome::Became(ids), _) => {
            format!("{id} was rerouted and is now {}: use that number\n", new(ids))
        }
        (ActOutcome::Done, _) => format!("{id} {word}\n"),
        (ActOutcome::Silent, _) => format!("{id} given up: nobody asked for a report\n"),
        (ActOutcome::Doubted, _) => format!("{id} {word}. But {}\n", node::operator::IN_DOUBT),
        (ActOutcome::Would(how), _) => format!("{id} {how}\n"),
        (ActOutcome::InTransfer, Act::Hold) => {
            format!("{id} is in transfer, which continues: it is held only if the transfer fails\n")
        }
        (ActOutcome::InTransfer, _) => format!(
            "{id} is in transfer: nothing was done with it; mta queue show {id} shows its progress, and \
             `mta channel disconnect PEER/CHANNEL --now` cuts it\n"
        ),
        (ActOutcome::Unchanged, Act::Hold) => format!("{id} was held already\n"),
        (ActOutcome::Unchanged, Act::Release) => format!("{id} was not held\n"),
        (ActOutcome::Unchanged, _) => format!("{id} is unchanged\n"),
        (ActOutcome::Unknown, _) => {
            format!("{id} is not in the queue: it may have gone; see mta trace {id}\n")
        }
        (ActOutcome::Refused(why), _) => format!("{id} stays as it is: {why}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_in_words() {
        let all = [
            (Act::Delete, ActOutcome::Done),
            (Act::Reroute { to: None }, ActOutcome::Became(vec![EntryId(7), EntryId(8)])),
            (Act::Reroute { to: None }, ActOutcome::Done),
            (Act::Delete, ActOutcome::Doubted),
            (Act::Expire, ActOutcome::InTransfer),
            (Act::Hold, ActOutcome::InTransfer),
            (Act::Release, ActOutcome::Became(vec![EntryId(7)])),
            (Act::Retry, ActOutcome::Refused("its originator deferred it".to_owned())),
        ];
        let text: String =
            all.iter().map(|(act, outcome)| in_words(act, EntryId(3), outcome)).collect();
        insta::assert_snapshot!(text);
    }
}
