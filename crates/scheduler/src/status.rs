//! The status of the queues for operators.

use crate::items::{Destination, Item, SlotState};
use crate::machine::Scheduler;
use crate::peer::{Peer, View};
use crate::queue::{Key, PrecedenceQueue};
use crate::rules::ChannelId;
use crate::rules::hold::Reason;
use crate::rules::minimize::Floor;
use base::{BodyId, EntryId, Instant, Precedence, Utc};
use std::collections::BTreeSet;

/// The items of one precedence for one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelStatus {
    /// Waiting items: delayed and held ones included, transfers and expired ones not.
    pub queued: u64,
    /// Octets of their content.
    pub bytes: u64,
    /// Acceptance time of the oldest.
    pub oldest: Option<Utc>,
    /// Of these, those rule 1 holds.
    pub held: u64,
    /// Of these, those below a floor (rule 6).
    pub minimized: u64,
    /// Of these, those an operator holds.
    pub operator: u64,
    /// Of these, those with a deferral or a backoff of their own.
    pub delayed: u64,
    /// The first accepted item that a rule or an operator holds: when, which, and why.
    pub first_held: Option<(Utc, EntryId, Reason)>,
    /// Transfers.
    pub in_transfer: u64,
    /// Of these, the paused ones (rule 8).
    pub paused: u64,
    /// Expired items whose report is not yet durable (rule 9).
    pub expired: u64,
    /// Overdue items, whatever their state.
    pub overdue: u64,
}

/// The items of a channel or a mailbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// By [`Precedence::number`].
    pub levels: [LevelStatus; 6],
}

impl QueueStatus {
    /// Those of one precedence.
    pub fn level(&self, precedence: Precedence) -> &LevelStatus {
        self.levels.get(usize::from(precedence.number())).unwrap_or(&EMPTY)
    }

    /// Waiting items, by [`Precedence::number`].
    pub fn queued(&self) -> [u64; 6] {
        self.levels.map(|level| level.queued)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.queued == 0)
    }

    /// Octets of content of the waiting items.
    pub fn bytes(&self) -> u64 {
        self.levels.iter().fold(0, |sum, level| sum.saturating_add(level.bytes))
    }

    /// Acceptance time of the oldest waiting item.
    pub fn oldest(&self) -> Option<Utc> {
        self.levels.iter().filter_map(|level| level.oldest).min()
    }

    /// Items held by a rule or an operator, by [`Precedence::number`].
    pub fn held(&self) -> [u64; 6] {
        self.levels.map(|level| level.held + level.minimized + level.operator)
    }

    /// The first accepted of the held items, and why it is held.
    pub fn first_held(&self) -> Option<(EntryId, Reason)> {
        let held = self.levels.iter().filter_map(|level| level.first_held);
        held.min_by_key(|(at, id, _)| (*at, *id)).map(|(_, id, reason)| (id, reason))
    }
}

const EMPTY: LevelStatus = LevelStatus {
    queued: 0,
    bytes: 0,
    oldest: None,
    held: 0,
    minimized: 0,
    operator: 0,
    delayed: 0,
    first_held: None,
    in_transfer: 0,
    paused: 0,
    expired: 0,
    overdue: 0,
};

/// The state of an item, and what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemState {
    /// It starts as soon as an association that may carry it is free.
    Ready,
    /// A rule or an operator holds it.
    Held(Reason),
    /// It waits until this time.
    Delayed(Instant),
    /// It is in transfer, to a peer on this channel.
    InTransfer {
        /// `None` for a mailbox.
        channel: Option<ChannelId>,
        /// Paused by rule 8.
        paused: bool,
    },
    /// It expired; its report is not durable yet.
    Expired,
}

/// One line of a queue's listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The item.
    pub item: Item,
    /// Its state.
    pub at: ItemState,
    /// Failures of its transfer.
    pub failures: u32,
    /// Whether it is overdue.
    pub overdue: bool,
}

fn level(queue: &PrecedenceQueue, by_rule: Option<Reason>) -> LevelStatus {
    let ready = queue.ready.len();
    let fronts = [queue.ready.first(), queue.delayed.first(), queue.operator.first()];
    let held_ready = queue.ready.first().zip(by_rule).map(|((at, id), why)| (at, id, why));
    let held_operator = queue.operator.first().map(|(at, id)| (at, id, Reason::Operator));
    let held = [held_ready, held_operator].into_iter().flatten();
    let (in_transfer, paused) = queue.in_transfer();
    let is_minimized = matches!(by_rule, Some(Reason::Minimize(_)));
    LevelStatus {
        queued: queue.waiting(),
        bytes: queue.bytes,
        oldest: fronts.into_iter().flatten().map(|(accepted, _)| accepted).min(),
        held: if by_rule.is_some() && !is_minimized { ready } else { 0 },
        minimized: if is_minimized { ready } else { 0 },
        operator: queue.operator.len(),
        delayed: queue.delayed.len(),
        first_held: held.min_by_key(|(at, id, _)| (*at, *id)),
        in_transfer,
        paused,
        expired: queue.expired.len(),
        overdue: queue.overdue,
    }
}

fn collect<'q>(
    queues: impl Iterator<Item = (Precedence, &'q PrecedenceQueue, Option<Reason>)>,
) -> QueueStatus {
    let mut status = QueueStatus::default();
    for (precedence, queue, by_rule) in queues {
        if let Some(at) = status.levels.get_mut(usize::from(precedence.number())) {
            *at = level(queue, by_rule);
        }
    }
    status
}

/// Most lines per call of [`Scheduler::list`].
pub const MAX_LISTED: usize = 10_000;

impl Scheduler {
    /// An item with its current times.
    pub fn get(&self, id: EntryId) -> Option<Item> {
        self.items.get(id).map(|slot| slot.item())
    }

    /// The items with these contents. O(n) for all items queued.
    pub fn with_bodies(&self, bodies: &BTreeSet<BodyId>) -> Vec<EntryId> {
        let of = |id: &EntryId| self.items.get(*id).and_then(|slot| slot.item().body);
        self.items.ids().filter(|id| of(id).is_some_and(|body| bodies.contains(&body))).collect()
    }

    /// Whether the item is in transfer.
    pub fn is_in_transfer(&self, id: EntryId) -> bool {
        self.items.get(id).is_some_and(|slot| slot.state == SlotState::InTransfer)
    }

    /// When the item's transfer last made progress, or began or went on after a pause; `None` while it is
    /// paused, and of an item that is not in transfer.
    pub fn last_progress(&self, id: EntryId) -> Option<Instant> {
        self.transfers.get(&id).filter(|transfer| !transfer.paused).map(|t| t.progress)
    }

    /// Failures of the item's transfer, at most 255.
    pub fn failures(&self, id: EntryId) -> u32 {
        self.items.get(id).map_or(0, |slot| u32::from(slot.failures))
    }

    /// The number of items, in any state.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.len() == 0
    }

    /// The first message of a precedence that a free association of this channel would start now
    /// but for rule 1 or 6, with the reason: once for each message.
    pub fn newly_held(&mut self, now: Instant, channel: ChannelId) -> Option<(EntryId, Reason)> {
        self.tick(now);
        let (peer, config) = self.channel(channel)?;
        let view = self.view();
        let found = peer.queues.iter().find_map(|(precedence, queue)| {
            peer.would_carry(&view, config, precedence)?;
            let id =
                queue.first().filter(|id| self.items.get(*id).is_some_and(|s| !s.is_notified()))?;
            peer.held(&view, precedence).map(|reason| (id, reason))
        })?;
        if let Some(slot) = self.items.get_mut(found.0) {
            slot.set_notified();
        }
        Some(found)
    }

    /// Why an item is held, at the latest time supplied; `None` if it is not.
    pub fn held_because(&self, id: EntryId) -> Option<Reason> {
        let slot = self.items.get(id)?;
        match (slot.state, slot.destination()) {
            (SlotState::Operator, _) => Some(Reason::Operator),
            (SlotState::Ready, Destination::Peer(peer)) => {
                self.peers.get(&peer)?.held(&self.view(), slot.precedence)
            }
            _ => None,
        }
    }

    /// The floor in force on a channel, and its scope: the highest of the three.
    pub fn floor_on(&self, channel: ChannelId) -> Option<Floor> {
        let (peer, config) = self.channel(channel)?;
        peer.floor_on(&self.view(), config)
    }

    /// The items of a channel, at the latest time supplied. A precedence that several channels
    /// share is counted at the first of them.
    pub fn status(&self, channel: ChannelId) -> QueueStatus {
        let Some((peer, _)) = self.channel(channel) else { return QueueStatus::default() };
        let home = |precedence| peer.channels().find(|c| c.owns(precedence));
        self.collect(peer, |p| home(p).is_some_and(|c| c.rules.id == channel))
    }

    fn collect(&self, peer: &Peer, of: impl Fn(Precedence) -> bool) -> QueueStatus {
        let view: View<'_> = self.view();
        let queues = peer.queues.iter().filter(|(precedence, _)| of(*precedence));
        collect(queues.map(|(precedence, queue)| (precedence, queue, peer.held(&view, precedence))))
    }

    /// The items of a peer or a mailbox as a whole.
    pub fn status_of(&self, to: Destination) -> QueueStatus {
        match to {
            Destination::Peer(peer) => self
                .peers
                .get(&peer)
                .map_or(QueueStatus::default(), |peer| self.collect(peer, |_| true)),
            Destination::Mailbox(mailbox) => self.mailbox_status(mailbox),
        }
    }

    /// The items of a mailbox.
    pub fn mailbox_status(&self, mailbox: u32) -> QueueStatus {
        let queues = self.mailboxes.get(&mailbox).into_iter().flat_map(|queues| queues.iter());
        collect(queues.map(|(precedence, queue)| (precedence, queue, None)))
    }

    /// The items for a mailbox that could be delivered now, the highest precedence first. O(n) for all of
    /// them.
    pub fn ready_for_mailbox(&self, mailbox: u32) -> Vec<EntryId> {
        let queues = self.mailboxes.get(&mailbox).into_iter().flat_map(|queues| queues.iter());
        queues.flat_map(|(_, queue)| queue.ready.after(None)).map(|(_, id)| id).collect()
    }

    /// The items of a precedence for a destination, in order, in any state: at most `limit` of
    /// them and [`MAX_LISTED`], after an acceptance time and identifier if given. The cost
    /// follows the number listed, not the number queued.
    pub fn list(
        &self,
        to: Destination,
        precedence: Precedence,
        after: Option<(Utc, EntryId)>,
        limit: usize,
    ) -> Vec<Listed> {
        let Some(queue) = self.queues(to).and_then(|queues| queues.get(precedence)) else {
            return Vec::new();
        };
        let limit = limit.min(MAX_LISTED);
        let mut keys: Vec<Key> = [&queue.ready, &queue.delayed, &queue.operator, &queue.expired]
            .into_iter()
            .flat_map(|place| place.after(after).take(limit))
            .collect();
        let transfers = queue.transfers().filter_map(|(id, _)| Some(self.items.get(id)?.key()));
        keys.extend(transfers.filter(|key| after.is_none_or(|after| *key > after)));
        keys.sort_unstable();
        keys.truncate(limit);
        keys.into_iter().filter_map(|(_, id)| self.listed(id)).collect()
    }

    /// One item, as [`Scheduler::list`] returns it.
    pub fn listed(&self, id: EntryId) -> Option<Listed> {
        let slot = self.items.get(id)?;
        let at = match slot.state {
            SlotState::Ready | SlotState::Operator => {
                self.held_because(id).map_or(ItemState::Ready, ItemState::Held)
            }
            SlotState::Delayed => ItemState::Delayed(slot.until),
            SlotState::Expired => ItemState::Expired,
            SlotState::InTransfer => {
                let transfer = self.transfers.get(&id)?;
                ItemState::InTransfer { channel: transfer.channel, paused: transfer.paused }
            }
        };
        let (failures, overdue) = (u32::from(slot.failures), slot.is_overdue());
        Some(Listed { item: slot.item(), at, failures, overdue })
    }
}
