//! Transfers that were cut off, waiting for their association to be recovered (X.228 7.8).
//!
//! Both ends keep this in memory only: after a restart a `recover` is refused and the transfer
//! begins again, which the receiver's duplicate check makes harmless.

use crate::api::ChannelId;
use crate::marks::Due;
use base::{AssociationId, EntryId, Instant, PeerId};
use engine::journal::SpoolId;
use osi::api::ResumePoint;
use osi::rtse::InterruptedReceive;
use osi::session::service::ConnectionReference;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::RangeBounds;
use std::time::Duration;

/// How long a transfer that was cut off may be taken up again; on a scheduled channel, how long
/// after its next window has begun.
pub(crate) const KEPT: Duration = Duration::from_secs(600);
/// Most transfers kept of those we were receiving from one peer.
const MOST_RECEIVES: usize = 64;

/// A transfer of ours that was cut off.
#[derive(Clone, Debug)]
pub(crate) struct LostSend {
    pub entry: EntryId,
    pub point: ResumePoint,
    until: Instant,
}

/// A transfer to us that was cut off.
#[derive(Debug)]
pub(crate) struct LostReceive {
    pub channel: ChannelId,
    pub state: InterruptedReceive,
    pub spool: SpoolId,
    /// Where its association came from.
    pub remote: Option<IpAddr>,
    /// Whether either end of it could have the turn.
    pub two_way: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Recovery {
    sends: BTreeMap<ChannelId, VecDeque<LostSend>>,
    /// Given to associations that are asking for the recovery now.
    offered: BTreeMap<AssociationId, LostSend>,
    /// The peer chose the reference: it is told apart from others' by the peer.
    receives: BTreeMap<Lost, (Instant, LostReceive)>,
    /// Until when each is kept; not what is offered.
    ends: Due<Kept>,
}

type Lost = (PeerId, ConnectionReference);

/// What is kept for a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kept {
    Send(ChannelId, EntryId),
    Receive(Lost),
}

impl Recovery {
    /// Keeps a transfer of ours for the next association of its channel.
    pub(crate) fn keep_send(
        &mut self,
        channel: ChannelId,
        entry: EntryId,
        point: ResumePoint,
        until: Instant,
    ) {
        let lost = LostSend { entry, point, until };
        self.ends.set(Kept::Send(channel, entry), Some(until));
        self.sends.entry(channel).or_default().push_back(lost);
    }

    /// Keeps one that was offered and not decided, as long as it was to be kept.
    pub(crate) fn keep_again(&mut self, channel: ChannelId, lost: LostSend) {
        self.ends.set(Kept::Send(channel, lost.entry), Some(lost.until));
        self.sends.entry(channel).or_default().push_front(lost);
    }

    /// The association to recover with this new one, if one of the channel was cut off.
    pub(crate) fn offer(
        &mut self,
        channel: ChannelId,
        id: AssociationId,
    ) -> Option<ConnectionReference> {
        let lost = self.sends.get_mut(&channel)?.pop_front()?;
        self.ends.set(Kept::Send(channel, lost.entry), None);
        let reference = lost.point.reference.clone();
        self.offered.insert(id, lost);
        Some(reference)
    }

    /// Whether a channel has something to recover.
    pub(crate) fn has_send(&self, channel: ChannelId) -> bool {
        self.sends.get(&channel).is_some_and(|s| !s.is_empty())
    }

    /// The transfer that a channel goes on with first.
    pub(crate) fn first(&self, channel: ChannelId) -> Option<EntryId> {
        self.sends.get(&channel)?.front().map(|lost| lost.entry)
    }

    /// Gives up those of our transfers on these channels for which `leaves` says so: they begin again elsewhere.
    pub(crate) fn let_go(
        &mut self,
        of: impl RangeBounds<ChannelId>,
        leaves: impl Fn(ChannelId, EntryId) -> bool,
    ) -> Vec<EntryId> {
        let mut left = Vec::new();
        for (channel, sends) in self.sends.range_mut(of) {
            sends.retain(|lost| {
                let leaving = leaves(*channel, lost.entry);
                if leaving {
                    self.ends.set(Kept::Send(*channel, lost.entry), None);
                    left.push(lost.entry);
                }
                !leaving
            });
        }
        left
    }

    /// Gives up transfers to us on these channels.
    pub(crate) fn let_go_receives(&mut self, leaves: impl Fn(ChannelId) -> bool) -> Vec<SpoolId> {
        let left = self.receives.extract_if(.., |_, (_, lost)| leaves(lost.channel));
        let left: Vec<(Lost, SpoolId)> = left.map(|(key, (_, lost))| (key, lost.spool)).collect();
        left.into_iter()
            .map(|(key, spool)| {
                self.ends.set(Kept::Receive(key), None);
                spool
            })
            .collect()
    }

    /// Whether this association is asking for a recovery.
    pub(crate) fn is_offered(&self, id: AssociationId) -> bool {
        self.offered.contains_key(&id)
    }

    /// What this association was to recover, once that is decided.
    pub(crate) fn take_offered(&mut self, id: AssociationId) -> Option<LostSend> {
        self.offered.remove(&id)
    }

    /// Keeps a transfer to us; gives one of the same peer that has to make room.
    pub(crate) fn keep_receive(&mut self, lost: LostReceive, until: Instant) -> Option<SpoolId> {
        let peer = lost.channel.peer;
        let key = (peer, lost.state.reference());
        self.ends.set(Kept::Receive(key.clone()), Some(until));
        let replaced = self.receives.insert(key, (until, lost));
        if self.receives_of(peer).count() <= MOST_RECEIVES {
            return replaced.map(|(_, l)| l.spool);
        }
        let oldest = self.receives_of(peer).min_by_key(|(_, (until, _))| *until);
        let oldest = oldest.map(|(key, _)| key.clone());
        oldest.and_then(|key| self.remove_receive(&key)).map(|l| l.spool)
    }

    /// Those of one peer.
    fn receives_of(&self, peer: PeerId) -> impl Iterator<Item = (&Lost, &(Instant, LostReceive))> {
        let from = (peer, ConnectionReference::default());
        self.receives.range(from..).take_while(move |((of, _), _)| *of == peer)
    }

    fn remove_receive(&mut self, key: &Lost) -> Option<LostReceive> {
        self.ends.set(Kept::Receive(key.clone()), None);
        self.receives.remove(key).map(|(_, lost)| lost)
    }

    /// The transfer to us of this association, if it came over this channel and from the same
    /// address: a recovery carries no password.
    pub(crate) fn take_receive(
        &mut self,
        channel: ChannelId,
        remote: Option<IpAddr>,
        reference: &ConnectionReference,
    ) -> Option<LostReceive> {
        // A transfer that was cut off twice is known by the names of both associations.
        let meant = |l: &LostReceive| {
            l.channel == channel && l.remote == remote && l.state.is_known_by(reference)
        };
        let found = self.receives_of(channel.peer).find(|(_, (_, l))| meant(l));
        let key = found.map(|(key, _)| key.clone())?;
        self.remove_receive(&key)
    }

    /// When the first one is given up.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.ends.first()
    }

    /// Gives up what was kept long enough: entries that have to begin again, arrivals to forget.
    pub(crate) fn expire(&mut self, now: Instant) -> (Vec<EntryId>, Vec<SpoolId>) {
        let (mut entries, mut spools) = (Vec::new(), Vec::new());
        while let Some(kept) = self.ends.pop(now) {
            match kept {
                Kept::Send(channel, entry) => {
                    if let Some(sends) = self.sends.get_mut(&channel) {
                        sends.retain(|lost| lost.entry != entry);
                    }
                    entries.push(entry);
                }
                Kept::Receive(key) => {
                    spools.extend(self.receives.remove(&key).map(|(_, lost)| lost.spool));
                }
            }
        }
        (entries, spools)
    }
}
