//! Transfers that were cut off, waiting for their association to be recovered (X.228 7.8).
//!
//! The end that opened the association asks for the recovery, whichever end was sending; the other end
//! waits for that. Where the peer's configuration allows it, a sender that waited for a while asks itself.
//!
//! This is in memory. What survives the end of the process (a sender's resume point, a receiver's content with its
//! notes) is in the store, and comes back here at the start.

use crate::lost::{HeldPart, LostReceive, LostSend, LostTransfers};
use base::marks::Due;
use base::{AssociationId, EntryId, Instant, PeerId};
use engine::journal::SpoolId;
use guard::guesses::Guesses;
use osi::rtse::InterruptedReceive;
use osi::session::service::ConnectionReference;
use scheduler::ChannelId;
use scheduler::agenda::channels_of;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::RangeBounds;
use std::time::Duration;

/// How long a transfer that was cut off may be resumed; on a scheduled channel, how long
/// after its next window has begun.
pub const KEPT: Duration = Duration::from_secs(600);

/// How long a transfer of ours waits for a peer that alone may recover its association.
pub const PEERS_TURN: Duration = Duration::from_secs(60);

/// How long it waits for the peer where we may ask as well: usually the peer is faster, and one of
/// two that ask at once fails.
pub const PEERS_LEAD: Duration = Duration::from_secs(5);

/// A transfer in either direction survives the end of the process once it takes longer: a short one begins
/// again at little cost.
pub const NOTED_AFTER: Duration = Duration::from_secs(1);

/// Or once its content is longer, in octets.
pub const NOTED_BEYOND: u64 = 1 << 20;

/// Most transfers kept of those we were receiving from one peer.
const MAX_RECEIVES: usize = 64;

/// How often a recovery is asked for without an answer: some peers do not know recoveries.
const MAX_ASKED: u8 = 5;

/// What a channel asks for the recovery of.
#[derive(Clone, Debug)]
pub struct Offered {
    /// On which channel.
    pub channel: ChannelId,
    /// The association that is named.
    pub reference: ConnectionReference,
    /// What was in transfer on it.
    pub lost: LostTransfers,
}

/// What waits for its association to be recovered.
#[derive(Debug, Default)]
pub struct Recovery {
    sends: BTreeMap<ChannelId, VecDeque<LostSend>>,
    /// Given to associations that are asking for the recovery now.
    offered: BTreeMap<AssociationId, Offered>,
    /// The peer chose the reference, so the peer is part of the key.
    receives: BTreeMap<ReceiveKey, LostReceive>,
    /// Until when each is kept; not what is offered.
    ends: Due<KeptTransfer>,
    /// From when on we ask for what the peer was to ask for.
    asks: Due<(ChannelId, EntryId)>,
    /// Recoveries asked for that there are none of, by the address that they came from.
    pub wrong: Guesses<(ChannelId, Option<IpAddr>)>,
}

type ReceiveKey = (PeerId, ConnectionReference);

/// What is kept for a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KeptTransfer {
    Send(ChannelId, EntryId),
    Receive(ReceiveKey),
}

impl Recovery {
    /// Keeps a transfer of ours; where we may not ask yet for its recovery, we do from `asks_at` on.
    pub fn keep_send(&mut self, channel: ChannelId, lost: LostSend, asks_at: Option<Instant>) {
        self.ends.set(KeptTransfer::Send(channel, lost.entry), Some(lost.until));
        self.asks.set((channel, lost.entry), asks_at.filter(|_| !lost.asks));
        self.sends.entry(channel).or_default().push_back(lost);
    }

    /// Nothing more is resumed of our transfers to this peer: gives their entries. What is offered stays with its
    /// association.
    pub fn forget_sends(&mut self, peer: PeerId) -> Vec<EntryId> {
        let of_peer = |channel: &&ChannelId| channel.peer == peer;
        let channels: Vec<ChannelId> = self.sends.keys().filter(of_peer).copied().collect();
        let mut forgotten = Vec::new();
        for channel in channels {
            for lost in self.sends.remove(&channel).into_iter().flatten() {
                self.ends.set(KeptTransfer::Send(channel, lost.entry), None);
                self.asks.set((channel, lost.entry), None);
                forgotten.push(lost.entry);
            }
        }
        forgotten
    }

    /// Our transfers that were cut off, those included whose recovery is being asked for.
    pub fn sends(&self) -> impl Iterator<Item = (ChannelId, &LostSend)> {
        let waiting = self
            .sends
            .iter()
            .flat_map(|(channel, all)| all.iter().map(move |lost| (*channel, lost)));
        let asked = self.offered.values();
        let asked = asked.filter_map(|of| Some((of.channel, of.lost.send.as_ref()?)));
        waiting.chain(asked)
    }

    /// Whether a channel has something to ask the recovery of.
    pub fn wants(&self, channel: ChannelId) -> bool {
        self.first(channel).is_some()
            || self.receives_of(channel.peer).any(|(_, l)| l.channel == channel && l.asks())
    }

    /// The transfer that a channel resumes first.
    pub fn first(&self, channel: ChannelId) -> Option<EntryId> {
        self.sends.get(&channel)?.iter().find(|lost| lost.asks).map(|lost| lost.entry)
    }

    /// Channels on which we may ask from now on for what the peer did not.
    pub fn start_asking(&mut self, now: Instant) -> Vec<ChannelId> {
        let mut channels = Vec::new();
        while let Some((channel, entry)) = self.asks.pop(now) {
            let sends = self.sends.get_mut(&channel).into_iter().flatten();
            for lost in sends.filter(|lost| lost.entry == entry) {
                lost.asks = true;
            }
            channels.push(channel);
        }
        channels
    }

    /// Whether a transfer waits for the recovery of an association of a channel that came from there.
    pub fn waits_for(&self, channel: ChannelId, from: Option<IpAddr>) -> bool {
        self.sends.get(&channel).into_iter().flatten().any(|lost| lost.remote == from)
            || self.receives_of(channel.peer).any(|(_, l)| l.channel == channel && l.remote == from)
    }

    /// The peer bound with its password. Where it recovers nothing soon after, it never does.
    pub fn bound_afresh(&mut self, now: Instant, channel: ChannelId) {
        self.wrong.forget(|(on, _)| *on == channel);
        self.recovers_soon(now, channel..=channel);
    }

    /// The peer bound to another node of the site, where it recovers nothing of ours. It may do so here still.
    pub fn bound_elsewhere(&mut self, now: Instant, peer: PeerId) {
        self.recovers_soon(now, channels_of(peer));
    }

    /// What the peer alone may recover on these channels it recovers soon, or never.
    fn recovers_soon(&mut self, now: Instant, channels: impl RangeBounds<ChannelId>) {
        let soon = now + PEERS_LEAD;
        for (channel, sends) in self.sends.range_mut(channels) {
            let sends = sends.iter_mut();
            for lost in sends.filter(|l| !l.asks && l.until > soon && l.until <= now + PEERS_TURN) {
                lost.until = soon;
                self.ends.set(KeptTransfer::Send(*channel, lost.entry), Some(lost.until));
            }
        }
    }

    fn take_send(
        &mut self,
        channel: ChannelId,
        meant: impl Fn(&LostSend) -> bool,
    ) -> Option<LostSend> {
        let sends = self.sends.get_mut(&channel)?;
        let lost = sends.iter().position(meant).and_then(|at| sends.remove(at))?;
        self.ends.set(KeptTransfer::Send(channel, lost.entry), None);
        self.asks.set((channel, lost.entry), None);
        Some(lost)
    }

    /// Gives up those of our transfers on these channels that `leaves` selects: they begin again
    /// elsewhere.
    pub fn let_go(
        &mut self,
        of: impl RangeBounds<ChannelId>,
        leaves: impl Fn(ChannelId, EntryId) -> bool,
    ) -> Vec<EntryId> {
        let mut left = Vec::new();
        for (channel, sends) in self.sends.range_mut(of) {
            sends.retain(|lost| {
                let leaving = leaves(*channel, lost.entry);
                if leaving {
                    self.ends.set(KeptTransfer::Send(*channel, lost.entry), None);
                    self.asks.set((*channel, lost.entry), None);
                    left.push(lost.entry);
                }
                !leaving
            });
        }
        left
    }
}

impl Recovery {
    /// Keeps a transfer to us; gives one of the same peer that has to make room.
    pub fn keep_receive(&mut self, lost: LostReceive) -> Option<SpoolId> {
        let peer = lost.channel.peer;
        let key = (peer, lost.state.reference());
        self.ends.set(KeptTransfer::Receive(key.clone()), Some(lost.until));
        let replaced = self.receives.insert(key, lost);
        if self.receives_of(peer).count() <= MAX_RECEIVES {
            return replaced.as_ref().and_then(LostReceive::part);
        }
        let oldest = self.receives_of(peer).min_by_key(|(_, lost)| lost.until);
        let oldest = oldest.map(|(key, _)| key.clone());
        oldest.and_then(|key| self.remove_receive(&key)).as_ref().and_then(LostReceive::part)
    }

    /// Gives up the transfers to us from a peer of which a part is here, where `leaves` selects it.
    pub fn let_go_parts(&mut self, peer: PeerId, leaves: impl Fn(SpoolId) -> bool) -> Vec<SpoolId> {
        let parts = self.receives_of(peer).filter_map(|(key, lost)| Some((key, lost.part()?)));
        let leaving = parts.filter(|(_, spool)| leaves(*spool));
        let leaving: Vec<_> = leaving.map(|(key, spool)| (key.clone(), spool)).collect();
        leaving
            .into_iter()
            .inspect(|(key, _)| drop(self.remove_receive(key)))
            .map(|of| of.1)
            .collect()
    }

    /// Those of one peer.
    fn receives_of(&self, peer: PeerId) -> impl Iterator<Item = (&ReceiveKey, &LostReceive)> {
        let from = (peer, ConnectionReference::default());
        self.receives.range(from..).take_while(move |((of, _), _)| *of == peer)
    }

    fn remove_receive(&mut self, key: &ReceiveKey) -> Option<LostReceive> {
        self.ends.set(KeptTransfer::Receive(key.clone()), None);
        self.receives.remove(key)
    }

    fn take_receive(
        &mut self,
        channel: ChannelId,
        meant: impl Fn(&LostReceive) -> bool,
    ) -> Option<LostReceive> {
        let of = self.receives_of(channel.peer);
        let found = of.filter(|(_, l)| l.channel == channel).find(|(_, l)| meant(l));
        let key = found.map(|(key, _)| key.clone())?;
        self.remove_receive(&key)
    }

    /// Gives up transfers to us on these channels.
    pub fn let_go_receives(&mut self, leaves: impl Fn(ChannelId) -> bool) -> Vec<SpoolId> {
        let left: Vec<(ReceiveKey, LostReceive)> =
            self.receives.extract_if(.., |_, lost| leaves(lost.channel)).collect();
        for (key, _) in &left {
            self.ends.set(KeptTransfer::Receive(key.clone()), None);
        }
        left.iter().filter_map(|(_, lost)| lost.part()).collect()
    }

    /// A transfer whose association was lost as it ended is secured; gives its channel.
    pub fn secured(&mut self, spool: SpoolId) -> Option<ChannelId> {
        let ended = |l: &&mut LostReceive| l.held == HeldPart::Ended(spool);
        let lost = self.receives.values_mut().find(ended)?;
        lost.held = HeldPart::Secured;
        lost.state.complete();
        Some(lost.channel)
    }

    /// A transfer whose association was lost as it ended could not be secured: it has to begin again.
    pub fn not_secured(&mut self, spool: SpoolId) {
        let ended = self.receives.iter().find(|(_, l)| l.held == HeldPart::Ended(spool));
        if let Some(key) = ended.map(|(key, _)| key.clone()) {
            self.remove_receive(&key);
        }
    }
}

impl Recovery {
    /// What this new association of the channel is to ask the recovery of, if there is anything:
    /// the lost association, and what is left of a transfer to us on it.
    pub fn offer(
        &mut self,
        channel: ChannelId,
        id: AssociationId,
    ) -> Option<(ConnectionReference, Option<InterruptedReceive>)> {
        let mut send = self.take_send(channel, |lost| lost.asks);
        let (reference, mut receive) = match &send {
            Some(lost) => {
                let reference = lost.resumption.point.reference.clone();
                let same = |l: &LostReceive| l.asks() && l.is_known_by(&reference);
                let receive = self.take_receive(channel, same);
                (reference, receive)
            }
            None => {
                let lost = self.take_receive(channel, LostReceive::asks)?;
                (lost.lost_on.clone(), Some(lost))
            }
        };
        let asked = send.iter_mut().map(|l| &mut l.asked);
        for asked in asked.chain(receive.iter_mut().map(|l| &mut l.asked)) {
            *asked += 1;
        }
        let state = receive.as_ref().map(|lost| lost.state.clone());
        let lost = LostTransfers { send, receive };
        self.offered.insert(id, Offered { channel, reference: reference.clone(), lost });
        Some((reference, state))
    }

    /// Keeps what was offered and not decided, as long as it was to be kept; gives what was asked
    /// for too often, which is given up, and what has to make room.
    pub fn keep_again(&mut self, offered: Offered) -> (LostTransfers, Option<SpoolId>) {
        let Offered { channel, lost: LostTransfers { send, receive }, .. } = offered;
        let (mut given_up, mut replaced) = (LostTransfers::default(), None);
        if let Some(lost) = send {
            if lost.asked >= MAX_ASKED {
                given_up.send = Some(lost);
            } else {
                self.ends.set(KeptTransfer::Send(channel, lost.entry), Some(lost.until));
                self.sends.entry(channel).or_default().push_front(lost);
            }
        }
        if let Some(lost) = receive {
            if lost.asked >= MAX_ASKED {
                given_up.receive = Some(lost);
            } else {
                replaced = self.keep_receive(lost);
            }
        }
        (given_up, replaced)
    }

    /// The peer answers, if only that it is busy: it knows recoveries.
    pub fn was_answered(&mut self, id: AssociationId) {
        if let Some(Offered { lost: LostTransfers { send, receive }, .. }) =
            self.offered.get_mut(&id)
        {
            let asked = send.iter_mut().map(|l| &mut l.asked);
            for asked in asked.chain(receive.iter_mut().map(|l| &mut l.asked)) {
                *asked = 0;
            }
        }
    }

    /// Whether this association is asking for a recovery.
    pub fn is_offered(&self, id: AssociationId) -> bool {
        self.offered.contains_key(&id)
    }

    /// What this association was to recover, once that is decided.
    pub fn take_offered(&mut self, id: AssociationId) -> Option<Offered> {
        self.offered.remove(&id)
    }

    /// The association by which we ask for the recovery that the peer asks for as well, and whether
    /// it is for us to ask.
    pub fn asked_by_us(
        &self,
        channel: ChannelId,
        reference: &ConnectionReference,
    ) -> Option<(AssociationId, bool)> {
        self.offered.iter().filter(|(_, o)| o.channel == channel).find_map(|(id, offered)| {
            let LostTransfers { send, receive } = &offered.lost;
            let send = send.as_ref().filter(|l| l.is_known_by(reference)).map(|l| l.ours);
            let receive = receive.as_ref().filter(|l| l.is_known_by(reference)).map(|l| l.ours);
            Some((*id, send.or(receive)?))
        })
    }

    /// Whether a transfer to us on this association has ended and is being committed.
    pub fn is_committing(&self, channel: ChannelId, of: &ConnectionReference) -> bool {
        let ended = |l: &LostReceive| matches!(l.held, HeldPart::Ended(_));
        self.receives_of(channel.peer)
            .any(|(_, l)| l.channel == channel && l.is_known_by(of) && ended(l))
    }

    /// What was lost with this association of the channel, if `may` permits it to the peer, by who
    /// opened it and where it came from: a recovery carries no password.
    pub fn take(
        &mut self,
        channel: ChannelId,
        reference: &ConnectionReference,
        may: impl Fn(bool, Option<IpAddr>) -> bool,
    ) -> LostTransfers {
        let send = self.take_send(channel, |l| l.is_known_by(reference) && may(l.ours, l.remote));
        let receive =
            self.take_receive(channel, |l| l.is_known_by(reference) && may(l.ours, l.remote));
        LostTransfers { send, receive }
    }

    /// When something is to be done.
    pub fn deadline(&self) -> Option<Instant> {
        [self.ends.first(), self.asks.first()].into_iter().flatten().min()
    }

    /// Gives up what was kept long enough: entries that have to begin again, arrivals to forget.
    pub fn expire(&mut self, now: Instant) -> (Vec<(ChannelId, LostSend)>, Vec<SpoolId>) {
        let (mut entries, mut spools) = (Vec::new(), Vec::new());
        while let Some(kept) = self.ends.pop(now) {
            match kept {
                KeptTransfer::Send(channel, entry) => {
                    let lost = self.take_send(channel, |lost| lost.entry == entry);
                    entries.extend(lost.map(|lost| (channel, lost)));
                }
                KeptTransfer::Receive(key) => {
                    spools.extend(self.receives.remove(&key).as_ref().and_then(LostReceive::part));
                }
            }
        }
        (entries, spools)
    }
}
