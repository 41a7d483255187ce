//! The machine: verbs for items and channels, and the indices they use.

use crate::items::{Destination, Item, Items, Slot, SlotState};
use crate::peer::{ChannelState, Peer};
use crate::queue::{Place, Queues};
use crate::rules::growth::Open;
use crate::rules::preempt::Transfer;
use crate::rules::retry;
use crate::rules::{Associations, ChannelId, ChannelRules, Policy};
use base::steps::Counted;
use base::{EntryId, Instant, PeerId, Precedence};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The rules besides the order that permit a transfer to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartReason {
    /// Rule 2: the highest precedence it passes, all of whose channels are down.
    pub passes: Option<Precedence>,
    /// Rule 5: the channel is a fallback for this precedence.
    pub fallback: bool,
    /// Rule 7: rule 1 holds it, but its share permits it.
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

/// A transfer to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its item.
    pub id: EntryId,
    /// Its precedence.
    pub precedence: Precedence,
    /// The rules besides the order that permit it.
    pub reason: StartReason,
}

/// The machine. Every verb costs O(log n) in the number of items; verbs that apply the rules also
/// visit six precedences, and the channels and transfers of one peer.
///
/// The caller supplies the time; if it goes back, the machine keeps the latest one. After each
/// verb the caller drains [`Scheduler::expired`], [`Scheduler::overdue`] and [`Scheduler::pauses`]
/// until they are empty.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) now: Instant,
    pub(crate) policy: Policy,
    /// Rule 6: the floor of the whole MTA.
    pub(crate) floor: Option<Precedence>,
    pub(crate) items: Items,
    /// The transfers.
    pub(crate) transfers: BTreeMap<EntryId, Transfer>,
    pub(crate) peers: BTreeMap<PeerId, Peer>,
    pub(crate) mailboxes: BTreeMap<u32, Queues>,
    /// The next time at which each item's state changes by itself.
    pub(crate) timers: BTreeSet<Counted<(Instant, EntryId)>>,
    /// The next time at which the rules for a peer may give another answer.
    pub(crate) deadlines: BTreeSet<(Instant, PeerId)>,
    /// Expired, and not yet returned to the caller.
    pub(crate) expired: BTreeSet<(Instant, EntryId)>,
    /// Whether expiry is suspended, and the items that would have expired meanwhile.
    pub(crate) expiry_waits: bool,
    pub(crate) spared: BTreeSet<EntryId>,
    /// Overdue, and not yet returned to the caller.
    pub(crate) overdue: BTreeSet<(Instant, EntryId)>,
    /// Paused or resumed, and not yet returned to the caller.
    pub(crate) pausing: BTreeSet<EntryId>,
    /// Associations to open, except those of peers in `stale`.
    pub(crate) wanting: BTreeMap<ChannelId, Open>,
    pub(crate) stale: BTreeSet<PeerId>,
    /// Peers and mailboxes with a change not yet returned to the caller.
    pub(crate) changed: BTreeSet<PeerId>,
    pub(crate) changed_mailboxes: BTreeSet<u32>,
}

impl Scheduler {
    /// An empty scheduler for these channels, all assumed closed.
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

    /// Adds an item. False, and no change, if its identifier is already present.
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

    /// Starts the next transfer on a free association of this channel.
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

    /// The transfer that [`Scheduler::next`] would start.
    pub fn peek(&mut self, now: Instant, channel: ChannelId) -> Option<Start> {
        self.tick(now);
        let (peer, config) = self.channel(channel)?;
        peer.pick(&self.view(), config)
    }

    /// The delivery that [`Scheduler::next_for_mailbox`] would start.
    pub fn first_for_mailbox(&mut self, now: Instant, mailbox: u32) -> Option<EntryId> {
        self.tick(now);
        self.mailboxes.get(&mailbox)?.first()
    }

    /// Starts the next delivery to this mailbox.
    pub fn next_for_mailbox(&mut self, now: Instant, mailbox: u32) -> Option<EntryId> {
        self.tick(now);
        let id = self.mailboxes.get(&mailbox)?.first()?;
        self.start(id, None, false);
        Some(id)
    }

    /// Whether any mailbox has an item, in transfer or not.
    pub fn has_for_mailboxes(&self) -> bool {
        !self.mailboxes.is_empty() // an empty one is dropped
    }

    /// The peer confirmed part of a transfer, or the transfer resumes after an interruption. False
    /// if the item is not in transfer.
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

    /// Removes an item, whatever its state: its transfer succeeded, or it was given up.
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

    /// The transfer of an item was cut off by the end of the process: it is in transfer on this channel
    /// again, and is about to be resumed. False if it is not for that peer, or waits for something else.
    pub fn take_up(&mut self, now: Instant, id: EntryId, channel: ChannelId) -> bool {
        self.tick(now);
        let is_ready = self.items.get(id).is_some_and(|slot| {
            let is_its = slot.destination() == Destination::Peer(channel.peer);
            slot.state == SlotState::Ready && is_its
        });
        let starts = is_ready && self.channel(channel).is_some();
        if starts {
            self.start(id, Some(channel), false);
        }
        starts
    }

    /// The transfer failed: the item waits for a delay that grows as its precedence's
    /// [`crate::Retry`] defines. Returns the end of the delay; `None` if the item is not in
    /// transfer.
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
        let retry = retry::for_precedence(&self.policy.retry, precedence);
        let of_peer = of_peer.map_or(0, |peer| peer.failures.failed(now, transfer.started, &retry));
        let until = now + retry.delay(failures.max(of_peer), seed ^ id.0);
        self.items.get_mut(id)?.until = until;
        self.settle(id);
        self.refresh_to(to);
        Some(until)
    }

    /// The transfer ended through no fault of the item (its association was lost): it may start
    /// again at once. False if the item is not in transfer.
    pub fn put_back(&mut self, now: Instant, id: EntryId) -> bool {
        self.tick(now);
        self.take_out(id);
        let ended = self.end_transfer(id).is_some();
        self.settle(id);
        self.refresh_of(id);
        ended
    }

    /// Delays an item until `until` without counting a failure of it or its peer. An item in
    /// transfer returns to the queue. False if it is unknown or expired.
    pub fn delay(&mut self, now: Instant, id: EntryId, until: Instant) -> bool {
        self.tick(now);
        if self.items.get(id).is_none_or(|slot| slot.state == SlotState::Expired) {
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

    /// Ends an item's delay: of a retry, of [`Scheduler::delay`] or a deferral. False if it has
    /// none.
    pub fn hasten(&mut self, now: Instant, id: EntryId) -> bool {
        self.tick(now);
        if self.items.get(id).is_none_or(|slot| slot.state != SlotState::Delayed) {
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

    /// An operator holds an item: it does not start, and holds no other. A transfer continues, and
    /// the item is held if it returns. False if it is unknown, already held, or expired.
    pub fn hold(&mut self, id: EntryId) -> bool {
        self.set_operator(id, true)
    }

    /// An operator releases an item. False if no operator held it.
    pub fn release(&mut self, now: Instant, id: EntryId) -> bool {
        self.tick(now);
        self.set_operator(id, false)
    }

    fn set_operator(&mut self, id: EntryId, on: bool) -> bool {
        let may = |slot: &Slot| slot.is_operators() != on && slot.state != SlotState::Expired;
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

    /// Sets the state of a channel's associations. The caller calls this before any question about
    /// the channel, and after every change.
    pub fn associations(&mut self, now: Instant, channel: ChannelId, seen: Associations) {
        self.tick(now);
        let now = self.now;
        let Some(known) = self.channel_mut(channel) else { return };
        if known.associations != seen {
            known.see(now, seen);
            self.refresh(channel.peer);
        }
    }

    /// The associations to open now, at most one per channel. The caller may be slow: an
    /// association not opened is returned again.
    pub fn wanted(&mut self, now: Instant) -> impl Iterator<Item = Open> + '_ {
        self.tick(now);
        self.renew_wanting();
        self.wanting.values().copied()
    }

    /// Whether [`Scheduler::wanted`] includes this channel.
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

    /// A peer for which the answers on starting, closing or opening have changed: each once per
    /// change.
    pub fn changed(&mut self, now: Instant) -> Option<PeerId> {
        self.tick(now);
        self.changed.pop_first()
    }

    /// A mailbox to which a delivery may start that could not before: each once per change.
    pub fn changed_mailbox(&mut self, now: Instant) -> Option<u32> {
        self.tick(now);
        self.changed_mailboxes.pop_first()
    }

    /// Whether [`Scheduler::changed`] or [`Scheduler::changed_mailbox`] has a result, at the
    /// latest time supplied.
    pub fn has_changes(&self) -> bool {
        !self.changed.is_empty() || !self.changed_mailboxes.is_empty()
    }

    /// Whether one free association of ours on this channel should be closed. The caller asks
    /// before it starts the next message on it.
    pub fn has_surplus(&mut self, now: Instant, channel: ChannelId) -> bool {
        self.tick(now);
        self.channel(channel).is_some_and(|(peer, config)| peer.has_surplus(&self.view(), config))
    }

    /// Whether this channel counts as down.
    pub fn is_down(&self, channel: ChannelId) -> bool {
        self.channel(channel).is_some_and(|(_, c)| c.is_down(&self.view()))
    }

    /// Whether a channel that could carry this precedence to a peer has an association.
    pub fn has_channel(&self, peer: PeerId, precedence: Precedence) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.has_channel(&self.view(), precedence))
    }

    // ----- inside ---------------------------------------------------------------------------------

    pub(crate) fn channel(&self, id: ChannelId) -> Option<(&Peer, &ChannelState)> {
        let peer = self.peers.get(&id.peer)?;
        Some((peer, peer.by_index.get(&id.index)?))
    }

    pub(crate) fn channel_mut(&mut self, id: ChannelId) -> Option<&mut ChannelState> {
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
        (slot.state, slot.until) = (SlotState::InTransfer, Instant(0));
        let precedence = slot.precedence;
        let (started, progress) = (now, now);
        let new = Transfer { channel, started, progress, by_share, paused: false, notified: false };
        self.transfers.insert(id, new);
        if let Some(channel) = channel.and_then(|id| self.channel_mut(id)) {
            channel.started(precedence);
        }
        self.put_in(id);
        self.refresh_of(id);
    }

    /// Ends the transfer of an item taken out of its index; its state is then computed anew.
    fn end_transfer(&mut self, id: EntryId) -> Option<Transfer> {
        let transfer = self.transfers.remove(&id)?;
        self.pausing.remove(&id);
        let slot = self.items.get_mut(id)?;
        slot.state = SlotState::Ready;
        let precedence = slot.precedence;
        if let Some(channel) = transfer.channel.and_then(|id| self.channel_mut(id)) {
            channel.ended(precedence);
        }
        Some(transfer)
    }

    fn place(&self, slot: &Slot) -> Place {
        match slot.state {
            SlotState::Ready => Place::Ready,
            SlotState::Delayed => Place::Delayed,
            SlotState::Operator => Place::Operator,
            SlotState::Expired => Place::Expired,
            SlotState::InTransfer => {
                self.transfers.get(&slot.id).map_or(Place::Paused, Transfer::place)
            }
        }
    }

    /// Adds an item to the index of its state.
    pub(crate) fn put_in(&mut self, id: EntryId) {
        let Some(slot) = self.items.get(id).copied() else { return };
        if let Some(at) = slot.timer() {
            self.timers.insert(Counted((at, id)));
        }
        let place = self.place(&slot);
        let queue = self.queues_mut(slot.destination()).at(slot.precedence);
        queue.insert(place, slot.key(), slot.size);
    }

    /// Removes an item from its index, before its state changes.
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

    /// Recomputes a peer after a change or at its deadline.
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
