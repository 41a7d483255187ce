//! The machine: items, where they are, and the verbs.

use crate::backoff::delay;
use crate::growth::Open;
use crate::hold::{Reason, Standing};
use crate::peer::{Channel, Peer};
use crate::queue::{Place, QueueStatus, Queues, status};
use crate::rules::{Associations, ChannelId, ChannelRules, Policy};
use base::{EntryId, Instant, PeerId, Precedence, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Whom an item waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// A peer, on any channel that may carry it.
    Peer(PeerId),
    /// A mailbox, by a number of the caller's.
    Mailbox(u32),
}

/// What the scheduler is told of one copy of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its entry in the durable queue.
    pub id: EntryId,
    /// Where it goes.
    pub destination: Destination,
    /// Its precedence.
    pub precedence: Precedence,
    /// Octets of content.
    pub size: u64,
    /// When we accepted it: the order within its precedence.
    pub accepted: Utc,
    /// Not to be started earlier (deferred delivery); `Instant(0)` where there is no such time.
    pub not_before: Instant,
}

/// The rules other than order that let a transfer start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Licence {
    /// Rule 2: the highest precedence it passes, all of whose channels are down.
    pub passes: Option<Precedence>,
    /// Rule 5: the channel is a fallback for this precedence.
    pub fallback: bool,
}

impl fmt::Display for Licence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.passes {
            write!(f, "by rule 2, work-conserving: {above} has no channel")?;
        }
        if self.passes.is_some() && self.fallback {
            f.write_str("; ")?;
        }
        if self.fallback {
            f.write_str("by rule 5, fallback: its own channel is down")?;
        }
        Ok(())
    }
}

/// A transfer to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Of which item.
    pub id: EntryId,
    /// Its precedence.
    pub precedence: Precedence,
    /// What besides the order lets it start.
    pub licence: Licence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Delayed { until: Instant },
    Operator { until: Instant },
    InTransfer { channel: Option<ChannelId>, progress: Instant },
}

impl State {
    fn place(self) -> Place {
        match self {
            State::Ready => Place::Ready,
            State::Delayed { .. } => Place::Delayed,
            State::Operator { .. } => Place::Operator,
            State::InTransfer { progress, .. } => Place::InTransfer(progress),
        }
    }
}

#[derive(Clone, Debug)]
struct Known {
    item: Item,
    state: State,
    failures: u32,
    /// An operator holds it, or will once its transfer ends.
    operator: bool,
    /// It was given out by [`Scheduler::newly_held`].
    told: bool,
}

/// The machine. Every verb costs O(log n) in the number of items; those that apply the rules look
/// besides at six precedences and the channels of one peer, [`Scheduler::wanted`] and
/// [`Scheduler::deadline`] at all channels.
///
/// Time is handed in; where it steps back, it stands.
#[derive(Clone, Debug)]
pub struct Scheduler {
    now: Instant,
    policy: Policy,
    items: BTreeMap<EntryId, Known>,
    peers: BTreeMap<PeerId, Peer>,
    mailboxes: BTreeMap<u32, Queues>,
    delayed: BTreeSet<(Instant, EntryId)>,
}

impl Scheduler {
    /// An empty scheduler for these channels; all are taken as closed.
    pub fn new(rules: impl IntoIterator<Item = ChannelRules>, policy: Policy) -> Scheduler {
        let mut peers: BTreeMap<PeerId, Peer> = BTreeMap::new();
        for rules in rules {
            let peer = peers.entry(rules.id.peer).or_default();
            peer.channels.insert(rules.id.index, Channel::new(rules));
        }
        Scheduler {
            now: Instant(0),
            policy,
            items: BTreeMap::new(),
            peers,
            mailboxes: BTreeMap::new(),
            delayed: BTreeSet::new(),
        }
    }

    // ----- items ----------------------------------------------------------------------------------

    /// Takes an item. False where its identifier is already here: nothing changes then.
    pub fn insert(&mut self, now: Instant, item: Item) -> bool {
        self.tick(now);
        if self.items.contains_key(&item.id) {
            return false;
        }
        let (id, until) = (item.id, item.not_before);
        let state = State::Ready;
        self.items.insert(id, Known { item, state, failures: 0, operator: false, told: false });
        self.wait(id, until);
        true
    }

    /// The transfer that starts on a free association of this channel; it is in transfer from now.
    pub fn next(&mut self, now: Instant, channel: ChannelId) -> Option<Start> {
        let start = self.peek(now, channel)?;
        self.start(start.id, Some(channel));
        Some(start)
    }

    /// What [`Scheduler::next`] would start.
    pub fn peek(&mut self, now: Instant, channel: ChannelId) -> Option<Start> {
        self.tick(now);
        let (peer, config) = self.channel(channel)?;
        let (precedence, licence) = peer.startable(self.now, &self.policy, config).next()?;
        let id = peer.queues.get(precedence)?.first()?;
        Some(Start { id, precedence, licence })
    }

    /// The item that goes next to this mailbox; it is in transfer from now on.
    pub fn next_for_mailbox(&mut self, now: Instant, mailbox: u32) -> Option<EntryId> {
        self.tick(now);
        let id = self.mailboxes.get(&mailbox)?.first()?;
        self.start(id, None);
        Some(id)
    }

    /// Whether there is anything for any mailbox, in transfer or not.
    pub fn has_for_mailboxes(&self) -> bool {
        !self.mailboxes.is_empty() // an empty one is dropped
    }

    /// The peer confirmed part of a transfer, or it goes on after having been cut off. False where
    /// the item is not in transfer.
    pub fn progress(&mut self, now: Instant, id: EntryId) -> bool {
        self.tick(now);
        match self.items.get(&id).map(|known| known.state) {
            Some(State::InTransfer { channel, .. }) => {
                let progress = self.now;
                self.change(id, State::InTransfer { channel, progress });
                true
            }
            _ => false,
        }
    }

    /// The transfer succeeded, or the item was given up: it is forgotten, whatever its state.
    pub fn finished(&mut self, id: EntryId) -> Option<Item> {
        self.take_out(id);
        self.items.remove(&id).map(|known| known.item)
    }

    /// The transfer failed: the item waits for 10 s, each time 1.5 times longer up to 10 min, with
    /// a jitter of a fifth that `seed` decides. Gives the time it may go again; `None` where the
    /// item is not in transfer.
    pub fn retry(&mut self, now: Instant, id: EntryId, seed: u64) -> Option<Instant> {
        self.tick(now);
        let known = self.items.get_mut(&id)?;
        let State::InTransfer { .. } = known.state else { return None };
        known.failures = known.failures.saturating_add(1);
        let until = self.now + delay(known.failures, seed ^ id.0);
        self.take_out(id);
        self.wait(id, until);
        Some(until)
    }

    /// The transfer did not happen for no fault of the item's (its association was lost): it may
    /// go again at once. False where the item is not in transfer.
    pub fn put_back(&mut self, now: Instant, id: EntryId) -> bool {
        self.tick(now);
        match self.items.get(&id).map(|known| known.state) {
            Some(State::InTransfer { .. }) => {
                self.take_out(id);
                self.wait(id, Instant(0));
                true
            }
            _ => false,
        }
    }

    /// An operator holds an item: it does not start, and holds nothing. One in transfer goes on,
    /// and is held if it comes back. False where it is unknown or held already.
    pub fn hold(&mut self, id: EntryId) -> bool {
        let Some(known) = self.items.get_mut(&id).filter(|known| !known.operator) else {
            return false;
        };
        known.operator = true;
        let until = match known.state {
            State::InTransfer { .. } => return true,
            State::Delayed { until } | State::Operator { until } => until,
            State::Ready => Instant(0),
        };
        self.take_out(id);
        self.wait(id, until);
        true
    }

    /// An operator lets an item go again. False where it was not held by one.
    pub fn release(&mut self, now: Instant, id: EntryId) -> bool {
        self.tick(now);
        let Some(known) = self.items.get_mut(&id).filter(|known| known.operator) else {
            return false;
        };
        known.operator = false;
        if let State::Operator { until } = known.state {
            self.take_out(id);
            self.wait(id, until);
        }
        true
    }

    /// An item as it was inserted.
    pub fn get(&self, id: EntryId) -> Option<&Item> {
        self.items.get(&id).map(|known| &known.item)
    }

    /// How often the item's transfer failed.
    pub fn failures(&self, id: EntryId) -> u32 {
        self.items.get(&id).map_or(0, |known| known.failures)
    }

    /// How many items there are, in any state.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    // ----- channels -------------------------------------------------------------------------------

    /// How a channel's associations stand. To be told before any question about the channel, and
    /// whenever they change.
    pub fn associations(&mut self, now: Instant, channel: ChannelId, seen: Associations) {
        self.tick(now);
        let now = self.now;
        if let Some(channel) = self.channel_mut(channel) {
            channel.see(now, seen);
        }
    }

    /// The associations that should be opened now, one a channel at most. The caller may be late:
    /// what is not opened is wanted again.
    pub fn wanted(&mut self, now: Instant) -> impl Iterator<Item = Open> + '_ {
        self.tick(now);
        self.peers.values().flat_map(|peer| {
            peer.channels.values().filter_map(|c| peer.wanted(self.now, &self.policy, c))
        })
    }

    /// Whether one free association of ours on this channel should be closed. To be asked before
    /// it is given the next message.
    pub fn has_surplus(&mut self, now: Instant, channel: ChannelId) -> bool {
        self.tick(now);
        self.channel(channel)
            .is_some_and(|(peer, config)| peer.has_surplus(self.now, &self.policy, config))
    }

    /// Whether this channel counts as down.
    pub fn is_down(&self, channel: ChannelId) -> bool {
        self.channel(channel).is_some_and(|(_, c)| c.is_down(self.now, self.policy.patience))
    }

    /// Whether a channel that could carry this precedence to a peer is there.
    pub fn has_way(&self, peer: PeerId, precedence: Precedence) -> bool {
        let peer = self.peers.get(&peer);
        peer.is_some_and(|peer| peer.has_way(self.now, self.policy.patience, precedence))
    }

    // ----- what an operator sees ------------------------------------------------------------------

    /// The first message of a precedence that a free association of this channel would start now
    /// but for rule 1, with the reason: once for each message.
    pub fn newly_held(&mut self, now: Instant, channel: ChannelId) -> Option<(EntryId, Reason)> {
        self.tick(now);
        let (peer, config) = self.channel(channel)?;
        let found = peer.queues.iter().find_map(|(precedence, queue)| {
            peer.may_carry(self.now, self.policy.patience, config, precedence)?;
            let id = queue.first().filter(|id| self.items.get(id).is_some_and(|k| !k.told))?;
            match peer.standing(self.now, &self.policy, precedence) {
                Standing::Held(reason) => Some((id, reason)),
                Standing::Free { .. } => None,
            }
        })?;
        if let Some(known) = self.items.get_mut(&found.0) {
            known.told = true;
        }
        Some(found)
    }

    /// Why an item is held, by the time last handed in; `None` where it is not.
    pub fn held_because(&self, id: EntryId) -> Option<Reason> {
        let known = self.items.get(&id)?;
        match (known.state, known.item.destination) {
            (State::Operator { .. }, _) => Some(Reason::Operator),
            (State::Ready, Destination::Peer(peer)) => {
                let peer = self.peers.get(&peer)?;
                match peer.standing(self.now, &self.policy, known.item.precedence) {
                    Standing::Held(reason) => Some(reason),
                    Standing::Free { .. } => None,
                }
            }
            _ => None,
        }
    }

    /// What waits for a channel, by the time last handed in. A precedence that several channels
    /// share is counted at the first of them.
    pub fn status(&self, channel: ChannelId) -> QueueStatus {
        let Some((peer, _)) = self.channel(channel) else { return QueueStatus::default() };
        let home = |precedence| peer.channels.values().find(|c| c.owns(precedence));
        let queues =
            peer.queues.iter().filter(|(p, _)| home(*p).is_some_and(|c| c.rules.id == channel));
        status(queues.map(|(precedence, queue)| {
            let standing = peer.standing(self.now, &self.policy, precedence);
            (precedence, queue, matches!(standing, Standing::Held(_)))
        }))
    }

    /// What waits for a mailbox.
    pub fn mailbox_status(&self, mailbox: u32) -> QueueStatus {
        let queues = self.mailboxes.get(&mailbox).into_iter().flat_map(Queues::iter);
        status(queues.map(|(precedence, queue)| (precedence, queue, false)))
    }

    // ----- time -----------------------------------------------------------------------------------

    /// Makes ready what was delayed until now or earlier. Every verb that takes a time does so.
    pub fn tick(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some((until, id)) = self.delayed.first().copied() {
            if until > self.now {
                break;
            }
            self.take_out(id);
            self.wait(id, Instant(0));
        }
    }

    /// When to ask again though nothing happened: an item's delay ends, a transfer stalls, or a
    /// channel begins to count as down.
    pub fn deadline(&self) -> Option<Instant> {
        let delayed = self.delayed.first().map(|(until, _)| *until);
        let rules = self.peers.values().filter_map(|p| p.deadline(self.now, &self.policy));
        delayed.into_iter().chain(rules).min()
    }

    // ----- inside ---------------------------------------------------------------------------------

    fn channel(&self, id: ChannelId) -> Option<(&Peer, &Channel)> {
        let peer = self.peers.get(&id.peer)?;
        Some((peer, peer.channels.get(&id.index)?))
    }

    fn channel_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.peers.get_mut(&id.peer)?.channels.get_mut(&id.index)
    }

    fn start(&mut self, id: EntryId, channel: Option<ChannelId>) {
        let progress = self.now;
        self.change(id, State::InTransfer { channel, progress });
    }

    fn change(&mut self, id: EntryId, state: State) {
        self.take_out(id);
        self.put_in(id, state);
    }

    /// Puts an item that is nowhere where it waits until then.
    fn wait(&mut self, id: EntryId, until: Instant) {
        let operator = self.items.get(&id).is_some_and(|known| known.operator);
        let state = match (operator, until > self.now) {
            (true, _) => State::Operator { until },
            (false, true) => State::Delayed { until },
            (false, false) => State::Ready,
        };
        self.put_in(id, state);
    }

    fn put_in(&mut self, id: EntryId, state: State) {
        let Some(known) = self.items.get_mut(&id) else { return };
        known.state = state;
        let Item { destination, precedence, accepted, size, .. } = known.item;
        match state {
            State::Delayed { until } => {
                self.delayed.insert((until, id));
            }
            State::InTransfer { channel: Some(channel), .. } => {
                if let Some(channel) = self.channel_mut(channel) {
                    channel.started(precedence);
                }
            }
            _ => {}
        }
        let queues = match destination {
            Destination::Peer(peer) => &mut self.peers.entry(peer).or_default().queues,
            Destination::Mailbox(mailbox) => self.mailboxes.entry(mailbox).or_default(),
        };
        queues.at(precedence).insert(state.place(), accepted, id, size);
    }

    /// Takes an item from where it is; its state is to be set anew.
    fn take_out(&mut self, id: EntryId) {
        let Some(known) = self.items.get(&id) else { return };
        let Item { destination, precedence, accepted, size, .. } = known.item;
        let state = known.state;
        match state {
            State::Delayed { until } => {
                self.delayed.remove(&(until, id));
            }
            State::InTransfer { channel: Some(channel), .. } => {
                if let Some(channel) = self.channel_mut(channel) {
                    channel.ended(precedence);
                }
            }
            _ => {}
        }
        let queues = match destination {
            Destination::Peer(peer) => self.peers.get_mut(&peer).map(|p| &mut p.queues),
            Destination::Mailbox(mailbox) => self.mailboxes.get_mut(&mailbox),
        };
        let Some(queues) = queues else { return };
        queues.at(precedence).remove(state.place(), accepted, id, size);
        queues.tidy(precedence);
        if let Destination::Mailbox(mailbox) = destination
            && self.mailboxes.get(&mailbox).is_some_and(Queues::is_empty)
        {
            self.mailboxes.remove(&mailbox);
        }
    }
}
