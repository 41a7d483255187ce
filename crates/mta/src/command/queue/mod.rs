//! `mta queue`: lists waiting messages and why they wait; holds, releases, retries, reroutes, expires and
//! deletes entries.

mod acting;
mod listing;
mod select;
mod show;

use super::error::{ArgumentError, RequestError};
use super::output::{Daemon, print_error};
use super::{DONE, FAILED, PARTLY, WRONG};
use crate::admin::{Answer, Request, ask};
use crate::command::queue::acting::{Acting, Rerouting};
use crate::command::queue::select::Filter;
use base::EntryId;
use node::listing::{QueuePage, QueueRequest};
use node::operator::Act;
use site_view::{ElsewherePage, ElsewhereRequest, Place};
use std::path::Path;

/// Lists waiting messages and why they wait; holds, releases, retries, reroutes, expires and deletes them.
///
/// STATE is one of: ready (starts as soon as an association of a permitted channel is free), held (by
/// a rule of the scheduler; the reason follows), held by operator, delayed (waits after a failure,
/// or is deferred), in transfer, stalled (in transfer, and nothing was confirmed or taken for `stall`),
/// paused (its transfer waits for a higher one), expired (given up; its report is being committed).
///
/// Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 done in part, or a part of the queue could not be
/// read, 6 an order has no answer and may be carried out still.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = false)]
pub(super) struct Arguments {
    #[command(flatten)]
    daemon: Daemon,
    #[command(flatten)]
    listing: Listing,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<QueueAction>,
}

#[derive(Debug, clap::Args)]
struct Listing {
    #[command(flatten)]
    filter: Filter,
    /// Show at most this many entries.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

#[derive(Debug, clap::Subcommand)]
enum QueueAction {
    /// Lists entries, as without a verb.
    List(Listing),
    /// Shows all that is known of entries: recipients, last error, each reason for waiting.
    Show(Entries),
    /// Holds entries until they are released, across restarts too. A held entry does not block
    /// others.
    Hold(Acting),
    /// Releases held entries.
    Release(Acting),
    /// Tries entries again now: ends their wait after a failure, and that of their peer's channels.
    Retry(Acting),
    /// Sends entries by another route: to a peer, or where the routes lead now. Held ones stay held.
    Reroute(Rerouting),
    /// Gives entries up; their originators get non-delivery reports.
    Expire(Acting),
    /// Deletes entries. Nobody gets a report.
    Delete(Acting),
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
    if arguments.listing.filter.is_given() && arguments.action.is_some() {
        print_error("write conditions such as --peer after the verb: mta queue hold --peer NAME");
        return WRONG;
    }
    let Some(socket) = arguments.daemon.socket() else { return WRONG };
    let json = arguments.json;
    let act = |act: Act, which| acting::run(&socket, &act, which, json);
    match &arguments.action {
        None => listing::run(&socket, &arguments.listing, json),
        Some(QueueAction::List(listing)) => listing::run(&socket, listing, json),
        Some(QueueAction::Show(which)) => show::run(&socket, &which.entries, json),
        Some(QueueAction::Hold(which)) => act(Act::Hold, which),
        Some(QueueAction::Release(which)) => act(Act::Release, which),
        Some(QueueAction::Retry(which)) => act(Act::Retry, which),
        Some(QueueAction::Reroute(which)) => {
            act(Act::Reroute { to: which.to.clone() }, &which.which)
        }
        Some(QueueAction::Expire(which)) => act(Act::Expire, which),
        Some(QueueAction::Delete(which)) => act(Act::Delete, which),
    }
}

fn page(socket: &Path, asked: &QueueRequest) -> Result<QueuePage, RequestError> {
    match ask(socket, &Request::Queue { asked: asked.clone() })? {
        Answer::Queue(page) => Ok(page),
        // Another node may have it.
        other if asked.entry.is_some() => match elsewhere(socket, asked, None)? {
            found if found.rows.is_empty() => Err(other.into()),
            found => Ok(QueuePage { entries: found.rows, ..QueuePage::default() }),
        },
        other => Err(other.into()),
    }
}

/// Rows of entries that other nodes of the site have.
fn elsewhere(
    socket: &Path,
    asked: &QueueRequest,
    after: Option<Place>,
) -> Result<ElsewherePage, RequestError> {
    let asked = ElsewhereRequest { asked: asked.clone(), after };
    match ask(socket, &Request::Elsewhere { asked })? {
        Answer::Elsewhere(page) => Ok(page),
        other => Err(other.into()),
    }
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

    #[test]
    fn entries_are_written_as_shown() {
        assert_eq!(entry("e42"), Ok(EntryId(42)));
        for wrong in ["42", "e", "e-1", "x42", ""] {
            assert!(entry(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!([partly(0, 2), partly(1, 2), partly(2, 2)], [FAILED, PARTLY, DONE]);
    }
}
