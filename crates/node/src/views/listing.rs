//! The queue, a page at a time, as an operator sees it.

use crate::config::Peer;
use crate::node::Node;
use crate::views::names::NameError;
use crate::views::reasons::utc;
use base::shown::line;
use base::{EntryId, Now, PeerId, Precedence};
use bytes::Bytes;
use node_api::queue::filter::{FilterError, QueueFilter};
pub use node_api::queue::page::{Cursor, QueuePage, QueueRequest, ROWS, RowDestination};
use node_api::queue::reroutes::list;
pub use node_api::queue::row::{QueueRow, RowRecipient};
use scheduler::{Destination, ItemState, Listed, NEVER, Reason};
use thiserror::Error;

/// Octets of records read for one page, or those of one row: a record may have thousands of
/// recipients.
const RECORDS: usize = 8 << 20;

/// A page whose rows lack what only their records have.
#[derive(Debug)]
pub struct Page {
    page: QueuePage,
    /// The place of each row.
    places: Vec<Cursor>,
    filter: QueueFilter,
    /// Whether the rows are to have all that their records have.
    full: bool,
}

impl Page {
    /// Fills in what only the records have, as `record` finds them. Where they are long, the page ends
    /// early and another one continues from there.
    #[must_use]
    pub fn describe(
        self,
        mut record: impl FnMut((Precedence, EntryId)) -> Option<Bytes>,
    ) -> QueuePage {
        let Page { mut page, places, filter, full } = self;
        let mut octets = 0;
        let mut last = None;
        let mut rows = Vec::new();
        for (mut row, place) in std::mem::take(&mut page.entries).into_iter().zip(places) {
            if octets >= RECORDS {
                page.next = last;
                break;
            }
            if filter.may_match(&row) {
                if let Some(record) = record((place.precedence, place.entry)) {
                    octets += record.len();
                    row.describe(&record);
                    if full || filter.is_deep() {
                        row.describe_fully(&record);
                    }
                }
                if filter.matches(&row) {
                    rows.push(row);
                }
            }
            last = Some(place);
        }
        page.entries = rows;
        page
    }
}

/// Why nothing is listed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ListingError {
    /// The entry that was asked for is replaced by others.
    #[error("there is no entry {id}: it was routed again, as {new}")]
    Rerouted {
        /// Which.
        id: EntryId,
        /// Those that replace it.
        new: String,
    },
    /// There is no such entry.
    #[error("there is no entry {0}: it may have gone")]
    NoEntry(EntryId),
    /// There is no such entry yet.
    #[error("entry {0} is not known: the queue is still being read after the start, ask again")]
    Reading(EntryId),
    /// [`QueueRequest::after`] is of no use.
    #[error(
        "`after` names a peer or mailbox that is not listed here (any more): the queue changed, or \
         the page was another list's; begin again without it"
    )]
    Cursor,
    /// The mailbox that was asked for does not exist, and nothing waits for it.
    #[error("there is no mailbox {0}: `mta user list` shows them")]
    NoMailbox(String),
    /// The peer that was asked for is not configured.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A condition that would mean everything, or cannot be read.
    #[error("a condition selects nothing: {0}")]
    Filter(#[from] FilterError),
}

impl Node {
    /// A page of the queue.
    ///
    /// # Errors
    /// A peer, an entry or a place to continue from that is not there, in words.
    pub fn queue_page(&self, now: Now, asked: &QueueRequest) -> Result<Page, ListingError> {
        asked.filter.check()?;
        let limit = asked.limit.clamp(1, ROWS);
        if let Some(id) = asked.entry {
            let listed = self.cx.queue.scheduler.listed(id);
            let listed = listed.ok_or_else(|| match self.outbound.reroutes.became(id) {
                Some(new) => ListingError::Rerouted { id, new: list(new) },
                None if self.is_reading_queue() => ListingError::Reading(id),
                None => ListingError::NoEntry(id),
            })?;
            return Ok(self.page(now, asked, &[listed], false));
        }
        let mut found: Vec<Listed> = Vec::new();
        let carried = asked.channel.as_deref().map(|name| self.carried_by(name)).transpose()?;
        let all = match &carried {
            Some((peer, _)) => vec![Destination::Peer(*peer)],
            None => self.destinations(asked)?,
        };
        let carries = |p: Precedence| carried.as_ref().is_none_or(|(_, all)| all.contains(&p));
        let begin = asked.after.as_ref().map(|after| match after.to {
            RowDestination::Peer(peer) => Destination::Peer(peer),
            RowDestination::Mailbox(number) => Destination::Mailbox(number),
        });
        if begin.is_some_and(|begin| !all.contains(&begin)) {
            return Err(ListingError::Cursor);
        }
        let behind = all.into_iter().skip_while(|to| begin.is_some_and(|begin| begin != *to));
        for to in behind {
            for precedence in Precedence::ALL.into_iter().rev() {
                let after = asked.after.as_ref().filter(|_| begin == Some(to));
                if asked.precedence.is_some_and(|only| only != precedence)
                    || !carries(precedence)
                    || after.is_some_and(|after| precedence > after.precedence)
                {
                    continue;
                }
                let key = after.filter(|after| after.precedence == precedence);
                let key = key.map(|after| (after.accepted, after.entry));
                // One more than wanted shows whether there is another page.
                let left = limit + 1 - found.len();
                found.extend(self.cx.queue.scheduler.list(to, precedence, key, left));
            }
            if found.len() > limit {
                break;
            }
        }
        let more = found.len() > limit;
        found.truncate(limit);
        Ok(self.page(now, asked, &found, more))
    }

    fn destinations(&self, asked: &QueueRequest) -> Result<Vec<Destination>, ListingError> {
        match (&asked.peer, &asked.mailbox) {
            (Some(name), _) => {
                let removed =
                    Some(PeerId::of_name(name)).filter(|id| self.outbound.is_unrouted(*id));
                let peer = removed.map_or_else(|| self.peer_named(name).map(Peer::id), Ok)?;
                Ok(vec![Destination::Peer(peer)])
            }
            (None, Some(address)) => {
                let number = self.cx.queue.mailbox_number(address);
                // A mailbox for which nothing came yet has no number.
                if number.is_none() && !self.cx.config.mailboxes.contains(address) {
                    return Err(ListingError::NoMailbox(address.clone()));
                }
                Ok(number.map(Destination::Mailbox).into_iter().collect())
            }
            (None, None) => {
                let peers = self.cx.config.peers.iter().map(|peer| Destination::Peer(peer.id()));
                let mailboxes = self.cx.queue.mailboxes().map(|(n, _)| Destination::Mailbox(n));
                let removed = self.outbound.unrouted_peers().map(Destination::Peer);
                Ok(peers.chain(removed).chain(mailboxes).collect())
            }
        }
    }

    /// The peer of a channel, and what the channel carries.
    fn carried_by(&self, name: &str) -> Result<(PeerId, Vec<Precedence>), ListingError> {
        let id = self.channel_named(name)?;
        let carried = self.cx.peer_and_channel(id).map(|(_, channel)| {
            Precedence::ALL.into_iter().filter(|p| channel.precedences.contains(p)).collect()
        });
        Ok((id.peer, carried.unwrap_or_default()))
    }

    /// A peer's name; its identifier where that is all we know of one that was removed.
    fn name_of(&self, id: PeerId) -> String {
        let former = || self.cx.outputs.tally().former_peer(id).map(str::to_owned);
        let name = self.cx.config.peer(id).map(|peer| peer.name.clone());
        name.or_else(former).unwrap_or_else(|| id.to_string())
    }

    fn is_removed(&self, to: Destination) -> bool {
        matches!(to, Destination::Peer(id) if self.cx.config.peer(id).is_none())
    }

    fn page(&self, now: Now, asked: &QueueRequest, found: &[Listed], more: bool) -> Page {
        let places: Vec<Cursor> = found.iter().map(Cursor::new).collect();
        let entries = found.iter().map(|listed| self.row(now, listed)).collect();
        let next = places.last().filter(|_| more).cloned();
        let reading_queue = self.is_reading_queue();
        let (filter, full) = (asked.filter.clone(), asked.entry.is_some());
        Page { page: QueuePage { entries, next, more: false, reading_queue }, places, filter, full }
    }

    fn row(&self, now: Now, listed: &Listed) -> QueueRow {
        let item = &listed.item;
        let (peer, mailbox) = match item.destination {
            Destination::Peer(id) => (Some(self.name_of(id)), None),
            Destination::Mailbox(number) => {
                let name = self.cx.queue.mailboxes().find(|(n, _)| *n == number);
                (None, name.map(|(_, address)| address.to_owned()))
            }
        };
        let mut row = QueueRow {
            peer,
            removed: self.is_removed(item.destination),
            mailbox,
            size: item.size,
            age_seconds: now.utc.since(item.accepted).as_secs_f64(),
            expires: (item.expires != NEVER).then(|| utc(now, item.expires).to_string()),
            failures: listed.failures,
            overdue: listed.overdue,
            ..QueueRow::bare(item.id, item.precedence, item.accepted)
        };
        self.set_state(now, &mut row, listed);
        row.waits_for = self.reasons(now, listed, &row);
        row.disabled_channels = self.only_disabled(listed);
        if let Some((at, error)) = self.cx.outputs.tally().failure(item.id) {
            (row.last_error, row.last_error_at) =
                (Some(line(error).into_owned()), Some(at.to_string()));
        }
        row
    }

    fn set_state(&self, now: Now, row: &mut QueueRow, listed: &Listed) {
        // What an operator holds too is his.
        let by_user = match listed.at {
            ItemState::Ready | ItemState::Held(Reason::Operator) => self
                .delivery
                .held_in_words(&self.cx, &listed.item)
                .filter(|_| !self.cx.queue.held.contains(&listed.item.id)),
            _ => None,
        };
        if let Some(by) = by_user {
            (row.held_because, row.state) = (Some(by), "held".to_owned());
            return;
        }
        let state = match listed.at {
            ItemState::Ready => "ready",
            ItemState::Held(Reason::Operator) => "held_by_operator",
            ItemState::Held(reason) => {
                row.held_because = Some(reason.to_string());
                "held"
            }
            ItemState::Delayed(until) => {
                row.delayed_until = Some(utc(now, until).to_string());
                "delayed"
            }
            ItemState::InTransfer { channel, paused } => {
                let names = channel.and_then(|channel| self.cx.place(channel));
                row.channel = names.map(|(_, channel)| channel.to_owned());
                let id = listed.item.id;
                let stalled = self.cx.stalled_since(now, id).filter(|_| channel.is_some());
                let mut sending =
                    self.cx.associations.values().filter_map(|association| association.sending());
                if let Some(sending) = sending.find(|sending| sending.entry == id) {
                    let confirmed = stalled.map(|_| sending.confirmed_octets());
                    row.bytes_confirmed = sending.meter.octets().or(confirmed);
                    row.bytes_total = sending.started.map(|_| sending.total);
                    row.rate_kbit_s = sending.meter.kbit_s(now.mono);
                }
                let last = self.cx.queue.scheduler.last_progress(id);
                let last = last.filter(|_| channel.is_some());
                row.last_progress = last.map(|at| utc(now, at).to_string());
                match stalled {
                    _ if paused => "paused",
                    Some(_) => "stalled",
                    None => "in_transfer",
                }
            }
            ItemState::Expired => "expired",
        };
        row.state = state.to_owned();
    }
}
