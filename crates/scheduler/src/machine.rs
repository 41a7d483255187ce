//! The machine: its verbs for items and channels, and the indices below them.

use crate::growth::Open;
use crate::items::{Destination, Item, Items, Slot, State};
use crate::peer::{Channel, Peer};
use crate::preempt::Transfer;
use crate::queue::{Place, Queues};
use crate::retry;
use crate::rules::{Associations, ChannelId, ChannelRules, Policy};
use crate::steps::Counted;
use base::{EntryId, Instant, PeerId, Precedence};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The rules other than order that let a transfer start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartReason {
    /// Rule 2: the highest precedence it passes, all of whose channels are down.
    pub passes: Option<Precedence>,
    /// Rule 5: the channel is a fallback for this precedence.
    pub fallback: bool,
    /// Rule 7: rule 1 holds it, but its share pays for it.
    pub share: bool,
}

impl fmt::Display for StartReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        let mut part = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            let separator = if std::mem::take(&mut first) { "" } else { "; " };
            write!(f, "{separator}{text}")
        };
        if let Some(above) = self.passes {
            part(f, format_args!("by rule 2, work-conserving: {above} has no channel"))?;
        }
        if self.fallback {
            part(f, format_args!("by rule 5, fallback: its own channel is down"))?;
        }
        if self.share {
            part(f, format_args!("by rule 7, minimum share"))?;
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
    pub reason: StartReason,
}

/// The machine. Every verb costs O(log n) in the number of items; those that apply the rules look
/// besides at six precedences, and the channels and transfers of one peer.
///
/// Time is handed in; where it steps back, it stands. After each verb, [`Scheduler::expired`],
/// [`Scheduler::overdue`] and [`Scheduler::pauses`] are to be asked until they give nothing.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) now: Instant,
    pub(crate) policy: Policy,
    /// Rule 6, of the switch.
    pub(crate) floor: Option<Precedence>,
    pub(crate) items: Items,
    /// What is in transfer.
    pub(crate) transfers: BTreeMap<EntryId, Transfer>,
    pub(crate) peers: BTreeMap<PeerId, Peer>,
    pub(crate) mailboxes: BTreeMap<u32, Queues>,
    /// When time alone next does something to an item.
    pub(crate) timers: BTreeSet<Counted<(Instant, EntryId)>>,
    /// When the rules for a peer may next answer differently.
    pub(crate) deadlines: BTreeSet<(Instant, PeerId)>,
    /// Given up, and not told yet.
    pub(crate) expired: BTreeSet<(Instant, EntryId)>,
    /// Whether expiry waits, and what would have expired meanwhile.
    pub(crate) expiry_waits: bool,
    pub(crate) spared: BTreeSet<EntryId>,
    /// Overdue, and not told yet.
    pub(crate) overdue: BTreeSet<(Instant, EntryId)>,
    /// Paused or going on, and not told yet.
    pub(crate) pausing: BTreeSet<EntryId>,
    /// The associations that should be opened, but for those of `stale`.
    pub(crate) wanting: BTreeMap<ChannelId, Open>,
    pub(crate) stale: BTreeSet<PeerId>,
    /// Peers with a change that was not told yet, and mailboxes.
    pub(crate) changed: BTreeSet<PeerId>,
    pub(crate) changed_mailboxes: BTreeSet<u32>,
}

impl Scheduler {
    /// An empty scheduler for these channels; all are taken as closed.
    pub fn new(rules: impl IntoIterator<Item = ChannelRules>, policy: Policy) -> Scheduler {
        let mut scheduler = Scheduler {
            now: Instant(0),
            policy,
            floor: None,
            items: Items::default(),
            transfers: BTreeMap::new(),
            peers: BTreeMap::new(),
            mailboxes: BTreeMap::new(),
            timers: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            expired: BTreeSet::new(),
            expiry_waits: false,
            spared: BTreeSet::new(),
            overdue: BTreeSet::new(),
            pausing: BTreeSet::new(),
            wanting: BTreeMap::new(),
            stale: BTreeSet::new(),
            changed: BTreeSet::new(),
            changed_mailboxes: BTreeSet::new(),
        };
        scheduler.configure(Instant(0), rules, policy);
        scheduler
    }

    // ----- items ----------------------------------------------------------------------------------

    /// Takes an item. False where its identifier is already here: nothing changes then.
    pub fn insert(&mut self, now: Instant, item: Item) -> bool {
        self.tick(now);
        if self.items.contains(item.id) || !self.items.insert(Slot::new(&item)) {
            return false;
        }
        self.settle(item.id);
        self.refresh_to(item.destination);
        self.tick(now); // it may be overdue already
        true
    }

    /// The transfer that starts on a free association of this channel; it is in transfer from now.
    pub fn next(&mut self, now: Instant, channel: ChannelId) -> Option<Start> {
        let start = self.peek(now, channel)?;
        let size = self.items.get(start.id)?.size;
        let peer = self.peers.get(&channel.peer)?;
        let credit = peer.credit_after(&self.view(), start.precedence, size, start.reason.share);
        if let Some(peer) = self.peers.get_mut(&channel.peer) {
            peer.credit = credit;
        }
        self.start(start.id, Some(channel), start.reason.share);
        Some(start)
    }

    /// What [`Scheduler::next`] would start.
    pub fn peek(&mut self, now: Instant, channel: ChannelId) -> Option<Start> {
        self.tick(now);
        let (peer, config) = self.channel(channel)?;
        peer.pick(&self.view(), config)
    }

    /// The item that goes next to this mailbox; it is in transfer from now on.
    pub fn next_for_mailbox(&mut self, now: Instant, mailbox: u32) -> Option<EntryId> {
        self.tick(now);
        let id = self.mailboxes.get(&mailbox)?.first()?;
        self.start(id, None, false);
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
        if !self.transfers.contains_key(&id) {
            return false;
        }
        self.take_out(id);
        if let Some(transfer) = self.transfers.get_mut(&id) {
            transfer.progress = self.now;
        }
        self.put_in(id);
        self.refresh_of(id);
        true
    }

    /// The transfer succeeded, or the item was given up: it is forgotten, whatever its state.
    pub fn finished(&mut self, id: EntryId) -> Option<Item> {
        self.take_out(id);
        let succeeded = self.end_transfer(id).is_some();
        let slot = self.items.remove(id)?;
        let (to, precedence) = (slot.destination(), slot.precedence);
        self.expired.remove(&(slot.expires(), id));
        self.overdue.remove(&(slot.alert_at(), id));
        self.spared.remove(&id);
        let queues = self.queues_mut(to);
        queues.at(precedence).overdue -= u64::from(slot.is_overdue());
        queues.tidy(precedence);
        match to {
            Destination::Mailbox(mailbox) if queues.is_empty() => {
                self.mailboxes.remove(&mailbox);
            }
            Destination::Mailbox(_) => {}
            Destination::Peer(peer) => {
                if let Some(peer) = self.peers.get_mut(&peer).filter(|_| succeeded) {
                    peer.failures = retry::Failures::default();
                }
                self.refresh(peer);
            }
        }
        Some(slot.item())
    }

    /// The transfer failed: the item waits, longer each time, as its precedence's [`crate::Retry`]
    /// says. Gives the time it may go again; `None` where the item is not in transfer.
    pub fn retry(&mut self, now: Instant, id: EntryId, seed: u64) -> Option<Instant> {
        self.tick(now);
        self.take_out(id);
        let transfer = self.end_transfer(id);
        if transfer.is_none() {
            self.put_in(id);
        }
        let (transfer, now) = (transfer?, self.now);
        let slot = self.items.get_mut(id)?;
        slot.failures = slot.failures.saturating_add(1);
        let (failures, precedence) = (u32::from(slot.failures), slot.precedence);
        let to = slot.destination();
        let of_peer = match to {
            Destination::Peer(peer) => self.peers.get_mut(&peer),
            Destination::Mailbox(_) => None,
        };
        let retry = retry::of(&self.policy.retry, precedence);
        let of_peer = of_peer.map_or(0, |peer| peer.failures.failed(now, transfer.started, &retry));
        let until = now + retry.delay(failures.max(of_peer), seed ^ id.0);
        self.items.get_mut(id)?.until = until;
        self.settle(id);
        self.refresh_to(to);
        Some(until)
    }

    /// The transfer did not happen for no fault of the item's (its association was lost): it may
    /// go again at once. False where the item is not in transfer.
    pub fn put_back(&mut self, now: Instant, id: EntryId) -> bool {
        self.tick(now);
        self.take_out(id);
        let ended = self.end_transfer(id).is_some();
        self.settle(id);
        self.refresh_of(id);
        ended
    }

    /// An item that is not wanted before `until`, for no fault known to be its own: neither it nor its
    /// peer counts a failure. One in transfer comes back. False where it is unknown or given up.
    pub fn delay(&mut self, now: Instant, id: EntryId, until: Instant) -> bool {
        self.tick(now);
        if self.items.get(id).is_none_or(|slot| slot.state == State::Expired) {
            return false;
        }
        self.take_out(id);
        self.end_transfer(id);
        if let Some(slot) = self.items.get_mut(id) {
            slot.until = until;
        }
        self.settle(id);
        self.refresh_of(id);
        true
    }

    /// Ends an item's delay, be it of a retry, of [`Scheduler::delay`] or a deferral. False where
    /// there is none.
    pub fn hasten(&mut self, now: Instant, id: EntryId) -> bool {
        self.tick(now);
        if self.items.get(id).is_none_or(|slot| slot.state != State::Delayed) {
            return false;
        }
        self.take_out(id);
        if let Some(slot) = self.items.get_mut(id) {
            slot.until = Instant(0);
        }
        self.settle(id);
        self.refresh_of(id);
        true
    }

    /// Ends the delays of all items for a peer whose transfers failed; deferrals stay.
    pub fn hasten_failed(&mut self, now: Instant, peer: PeerId) {
        let Some(known) = self.peers.get(&peer) else { return };
        let delayed = known.queues.iter().flat_map(|(_, queue)| queue.delayed.after(None));
        let failed = |id: &EntryId| self.items.get(*id).is_some_and(|slot| slot.failures > 0);
        let ids: Vec<EntryId> = delayed.map(|(_, id)| id).filter(failed).collect();
        for id in ids {
            self.hasten(now, id);
        }
    }

    /// An operator holds an item: it does not start, and holds nothing. One in transfer goes on,
    /// and is held if it comes back. False where it is unknown, held already, or given up.
    pub fn hold(&mut self, id: EntryId) -> bool {
        self.set_operator(id, true)
    }

    /// An operator lets an item go again. False where it was not held by one.
    pub fn release(&mut self, now: Instant, id: EntryId) -> bool {
        self.tick(now);
        self.set_operator(id, false)
    }

    fn set_operator(&mut self, id: EntryId, on: bool) -> bool {
        let may = |slot: &Slot| slot.is_operators() != on && slot.state != State::Expired;
        if !self.items.get(id).is_some_and(may) {
            return false;
        }
        self.take_out(id);
        if let Some(slot) = self.items.get_mut(id) {
            slot.set_operators(on);
        }
        self.settle(id);
        self.refresh_of(id);
        true
    }

    // ----- channels -------------------------------------------------------------------------------

    /// How a channel's associations stand. To be told before any question about the channel, and
    /// whenever they change.
    pub fn associations(&mut self, now: Instant, channel: ChannelId, seen: Associations) {
        self.tick(now);
        let now = self.now;
        let Some(known) = self.channel_mut(channel) else { return };
        if known.associations != seen {
            known.see(now, seen);
            self.refresh(channel.peer);
        }
    }

    /// The associations that should be opened now, one a channel at most. The caller may be late:
    /// what is not opened is wanted again.
    pub fn wanted(&mut self, now: Instant) -> impl Iterator<Item = Open> + '_ {
        self.tick(now);
        self.renew_wanting();
        self.wanting.values().copied()
    }

    /// Whether [`Scheduler::wanted`] names this channel.
    pub fn is_wanted(&mut self, now: Instant, channel: ChannelId) -> bool {
        self.tick(now);
        self.renew_wanting();
        self.wanting.contains_key(&channel)
    }

    fn renew_wanting(&mut self) {
        while let Some(peer) = self.stale.pop_first() {
            let of_peer = ChannelId { peer, index: 0 }..=ChannelId { peer, index: u32::MAX };
            let old: Vec<ChannelId> = self.wanting.range(of_peer).map(|(id, _)| *id).collect();
            for id in old {
                self.wanting.remove(&id);
            }
            let Some(known) = self.peers.get(&peer) else { continue };
            let view = self.view();
            let new: Vec<Open> = known.channels().filter_map(|c| known.wanted(&view, c)).collect();
            self.wanting.extend(new.into_iter().map(|open| (open.channel, open)));
        }
    }

    /// A peer to which something may start, close or open that could not before, or the other way
    /// round: each once after a change.
    pub fn changed(&mut self, now: Instant) -> Option<PeerId> {
        self.tick(now);
        self.changed.pop_first()
    }

    /// A mailbox for which something may start that could not before: each once after a change.
    pub fn changed_mailbox(&mut self, now: Instant) -> Option<u32> {
        self.tick(now);
        self.changed_mailboxes.pop_first()
    }

    /// Whether [`Scheduler::changed`] or [`Scheduler::changed_mailbox`] has something to tell, by
    /// the time last handed in.
    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty() || !self.changed_mailboxes.is_empty()
    }

    /// Whether one free association of ours on this channel should be closed. To be asked before
    /// it is given the next message.
    pub fn has_surplus(&mut self, now: Instant, channel: ChannelId) -> bool {
        self.tick(now);
        self.channel(channel).is_some_and(|(peer, config)| peer.has_surplus(&self.view(), config))
    }

    /// Whether this channel counts as down.
    pub fn is_down(&self, channel: ChannelId) -> bool {
        self.channel(channel).is_some_and(|(_, c)| c.is_down(&self.view()))
    }

    /// Whether a channel that could carry this precedence to a peer is there.
    pub fn has_way(&self, peer: PeerId, precedence: Precedence) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.has_way(&self.view(), precedence))
    }

    // ----- inside ---------------------------------------------------------------------------------

    pub(crate) fn channel(&self, id: ChannelId) -> Option<(&Peer, &Channel)> {
        let peer = self.peers.get(&id.peer)?;
        Some((peer, peer.by_index.get(&id.index)?))
    }

    pub(crate) fn channel_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.peers.get_mut(&id.peer)?.by_index.get_mut(&id.index)
    }

    pub(crate) fn queues(&self, to: Destination) -> Option<&Queues> {
        match to {
            Destination::Peer(peer) => self.peers.get(&peer).map(|peer| &peer.queues),
            Destination::Mailbox(mailbox) => self.mailboxes.get(&mailbox),
        }
    }

    pub(crate) fn queues_mut(&mut self, to: Destination) -> &mut Queues {
        match to {
            Destination::Peer(peer) => {
                &mut self.peers.entry(peer).or_insert_with(|| Peer::new(peer)).queues
            }
            Destination::Mailbox(mailbox) => self.mailboxes.entry(mailbox).or_default(),
        }
    }

    fn start(&mut self, id: EntryId, channel: Option<ChannelId>, by_share: bool) {
        let now = self.now;
        self.take_out(id);
        let Some(slot) = self.items.get_mut(id) else { return };
        (slot.state, slot.until) = (State::InTransfer, Instant(0));
        let precedence = slot.precedence;
        let (started, progress) = (now, now);
        let new = Transfer { channel, started, progress, by_share, paused: false, told: false };
        self.transfers.insert(id, new);
        if let Some(channel) = channel.and_then(|id| self.channel_mut(id)) {
            channel.started(precedence);
        }
        self.put_in(id);
        self.refresh_of(id);
    }

    /// Ends the transfer of an item that was taken out; it is ready, or what it belongs to.
    fn end_transfer(&mut self, id: EntryId) -> Option<Transfer> {
        let transfer = self.transfers.remove(&id)?;
        self.pausing.remove(&id);
        let slot = self.items.get_mut(id)?;
        slot.state = State::Ready;
        let precedence = slot.precedence;
        if let Some(channel) = transfer.channel.and_then(|id| self.channel_mut(id)) {
            channel.ended(precedence);
        }
        Some(transfer)
    }

    fn place(&self, slot: &Slot) -> Place {
        match slot.state {
            State::Ready => Place::Ready,
            State::Delayed => Place::Delayed,
            State::Operator => Place::Operator,
            State::Expired => Place::Expired,
            State::InTransfer => {
                self.transfers.get(&slot.id).map_or(Place::Paused, Transfer::place)
            }
        }
    }

    /// Files an item under its state.
    pub(crate) fn put_in(&mut self, id: EntryId) {
        let Some(slot) = self.items.get(id).copied() else { return };
        if let Some(at) = slot.timer() {
            self.timers.insert(Counted((at, id)));
        }
        let place = self.place(&slot);
        let queue = self.queues_mut(slot.destination()).at(slot.precedence);
        queue.insert(place, slot.key(), slot.size);
    }

    /// Takes an item from where it is filed, before its state changes.
    pub(crate) fn take_out(&mut self, id: EntryId) {
        let Some(slot) = self.items.get(id).copied() else { return };
        if let Some(at) = slot.timer() {
            self.timers.remove(&Counted((at, id)));
        }
        let place = self.place(&slot);
        let queue = self.queues_mut(slot.destination()).at(slot.precedence);
        queue.remove(place, slot.key(), slot.size);
    }

    fn refresh_of(&mut self, id: EntryId) {
        if let Some(to) = self.items.get(id).map(Slot::destination) {
            self.refresh_to(to);
        }
    }

    pub(crate) fn refresh_to(&mut self, to: Destination) {
        match to {
            Destination::Peer(peer) => self.refresh(peer),
            Destination::Mailbox(mailbox) => _ = self.changed_mailboxes.insert(mailbox),
        }
    }

    /// Something about a peer changed, or its deadline has come.
    pub(crate) fn refresh(&mut self, peer: PeerId) {
        self.repause(peer);
        let view = self.view();
        let next = self.peers.get(&peer).and_then(|known| known.next_deadline(&view));
        self.changed.insert(peer);
        self.stale.insert(peer);
        let Some(known) = self.peers.get_mut(&peer) else { return };
        let old = std::mem::replace(&mut known.deadline, next);
        if known.is_idle() {
            self.peers.remove(&peer);
        }
        if old == next {
            return;
        }
        if let Some(old) = old {
            self.deadlines.remove(&(old, peer));
        }
        if let Some(next) = next {
            self.deadlines.insert((next, peer));
        }
    }
}
