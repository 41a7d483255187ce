//! Which entries a verb of `mta queue` is about.

use super::{elsewhere, page};
use crate::command::error::RequestError;
use crate::command::output::progress;
use crate::command::{WRONG, argument};
use crate::config::canonical_address;
use base::{Precedence, quantity};
use node::filter::QueueFilter;
use node::listing::{QueuePage, QueueRequest, QueueRow, ROWS};
use std::path::Path;
use std::time::Duration;

/// Conditions; all that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub(super) struct Filter {
    /// Only messages to this peer.
    #[arg(long, value_name = "NAME", conflicts_with = "mailbox", value_parser = argument::text)]
    peer: Option<String>,
    /// Only messages to this mailbox.
    #[arg(long, value_name = "ADDRESS", value_parser = argument::address)]
    mailbox: Option<String>,
    /// Only messages that this channel carries.
    #[arg(
        long,
        value_name = "PEER/CHANNEL",
        conflicts_with_all = ["peer", "mailbox"],
        value_parser = argument::text,
    )]
    channel: Option<String>,
    /// Only this precedence: deferred, routine, priority, immediate, flash or override.
    #[arg(long, value_name = "LEVEL")]
    precedence: Option<Precedence>,
    /// Only this state: ready, held, held_by_operator, delayed, in_transfer, stalled, paused,
    /// expired or elsewhere (another node of the site has it).
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<String>,
    /// Only entries that are here for this time or longer: 90s, 30min or 2h.
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    older: Option<Duration>,
    /// Only entries that are here for this time at most.
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    newer: Option<Duration>,
    /// Only contents of this size or more: 10kB, 1MiB.
    #[arg(long, value_name = "SIZE", value_parser = quantity::octets)]
    min_size: Option<u64>,
    /// Only contents of this size at most.
    #[arg(long, value_name = "SIZE", value_parser = quantity::octets)]
    max_size: Option<u64>,
    /// Only from this originator: an O/R address, some attributes of one (S=OPS;PRMD=NAPLES), or a word that
    /// one of its values contains, in any case.
    #[arg(long, value_name = "ADDRESS", value_parser = argument::part)]
    originator: Option<String>,
    /// Only to this recipient, as for --originator.
    #[arg(long, value_name = "ADDRESS", value_parser = argument::part)]
    recipient: Option<String>,
    /// Only with this MTS identifier or content identifier, or a part of one, in any case.
    #[arg(long, value_name = "TEXT", value_parser = argument::text)]
    identifier: Option<String>,
}

fn state(text: &str) -> Result<String, String> {
    let name = text.replace([' ', '-'], "_");
    match QueueRow::STATES.contains(&name.as_str()) {
        true => Ok(name),
        false => Err(format!("write one of {}", QueueRow::STATES.join(", "))),
    }
}

impl Filter {
    /// Whether there is any condition.
    pub(super) fn is_given(&self) -> bool {
        *self != Filter::default()
    }

    /// What the daemon is asked for.
    pub(super) fn selection(&self) -> Result<Selection, u8> {
        let mailbox = self.mailbox.as_deref().map(canonical_address).transpose();
        let mailbox = mailbox.map_err(|_| WRONG)?;
        Ok(Selection(QueueRequest {
            peer: self.peer.clone(),
            mailbox,
            channel: self.channel.clone(),
            precedence: self.precedence,
            filter: QueueFilter {
                min_size: self.min_size,
                max_size: self.max_size,
                min_age: self.older.map(|time| time.as_secs()),
                max_age: self.newer.map(|time| time.as_secs()),
                state: self.state.clone(),
                originator: self.originator.clone(),
                recipient: self.recipient.clone(),
                identifier: self.identifier.clone(),
            },
            entry: None,
            after: None,
            limit: ROWS,
        }))
    }
}

/// A request for rows, without a place to begin.
pub(super) struct Selection(QueueRequest);

impl Selection {
    /// Adds what other nodes of the site have. A channel is one of this node.
    ///
    /// # Errors
    /// The rest could not be read.
    fn read_elsewhere(
        &self,
        socket: &Path,
        most: usize,
        found: &mut QueuePage,
    ) -> Result<(), RequestError> {
        let mut after = None;
        while found.entries.len() < most && found.next.is_none() && self.0.channel.is_none() {
            let limit = (most - found.entries.len()).min(ROWS);
            let asked = QueueRequest { limit, ..self.0.clone() };
            let page = elsewhere(socket, &asked, after)?;
            found.entries.extend(page.rows);
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
        found.more |= after.is_some();
        Ok(())
    }

    /// The first rows, this many at most; and why there may be others, where what other nodes of the site have could
    /// not be read.
    pub(super) fn read(
        &self,
        socket: &Path,
        most: usize,
    ) -> Result<(QueuePage, Option<RequestError>), RequestError> {
        let mut found = QueuePage::default();
        loop {
            // Conditions are checked after a page was made: another page may have the rest.
            let limit = match self.0.filter == QueueFilter::default() {
                true => (most - found.entries.len()).min(ROWS),
                false => ROWS,
            };
            let asked = QueueRequest { after: found.next.take(), limit, ..self.0.clone() };
            let page = page(socket, &asked)?;
            found.entries.extend(page.entries);
            found.next = page.next;
            found.reading_queue |= page.reading_queue;
            if found.entries.len() > ROWS {
                progress(Some(&format!("{} entries found", found.entries.len())));
            }
            if found.entries.len() >= most || found.next.is_none() {
                break;
            }
        }
        let unread = self.read_elsewhere(socket, most, &mut found).err();
        progress(None);
        found.more |= found.entries.len() > most;
        found.entries.truncate(most);
        Ok((found, unread))
    }
}
