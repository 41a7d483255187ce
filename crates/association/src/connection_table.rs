//! Associations by channel, by mailbox and by address, so that nothing looks through all of them, and
//! half-open connections by age.
//!
//! A connection is *half-open* if somebody else opened it and nobody has bound on it yet. Half-open
//! connections are kept apart: however many there are, work for channels and mailboxes does not see
//! them.

use base::ip_prefix::Origin;
use base::steps::step;
use base::{AssociationId, PeerId};
use scheduler::ChannelId;
use std::collections::{BTreeMap, BTreeSet};

/// What one address holds.
#[derive(Debug, Default)]
struct OriginCount {
    /// Connections, bound or not.
    all: usize,
    /// Half-open connections; and of them those that may have to make room, which are all but those
    /// whose password is being checked.
    half_open: usize,
    idle: BTreeSet<AssociationId>,
    /// Those of `idle` on listeners for users.
    idle_users: BTreeSet<AssociationId>,
}

impl OriginCount {
    fn idle(&self, users: bool) -> &BTreeSet<AssociationId> {
        if users { &self.idle_users } else { &self.idle }
    }

    fn set_idle(&mut self, id: AssociationId, user: bool) {
        self.idle.insert(id);
        if user {
            self.idle_users.insert(id);
        }
    }

    fn not_idle(&mut self, id: AssociationId) {
        self.idle.remove(&id);
        self.idle_users.remove(&id);
    }
}

/// The connections, counted by who made them.
#[derive(Debug, Default)]
pub struct ConnectionTable {
    /// P1: ours from the beginning, the peers' once bound.
    channels: BTreeMap<ChannelId, BTreeSet<AssociationId>>,
    /// P3, once bound, with the number of the mailbox; and by that number.
    users: BTreeMap<AssociationId, u32>,
    mailboxes: BTreeMap<u32, BTreeSet<AssociationId>>,
    /// Half-open connections on listeners for users.
    future_users: BTreeSet<AssociationId>,
    origins: BTreeMap<Origin, OriginCount>,
    /// Half-open connections, and whether the configuration names their address.
    half_open: BTreeMap<AssociationId, (Origin, bool)>,
    strangers: usize,
}

impl ConnectionTable {
    /// Somebody connected.
    pub fn arrived(&mut self, id: AssociationId, origin: Origin, known: bool, p3: bool) {
        let tally = self.origins.entry(origin).or_default();
        tally.all += 1;
        tally.half_open += 1;
        tally.set_idle(id, p3);
        self.half_open.insert(id, (origin, known));
        self.strangers += usize::from(!known);
        if p3 {
            self.future_users.insert(id);
        }
    }

    /// The password of a connection is being checked: it need not make room.
    pub fn checking(&mut self, id: AssociationId) {
        if let Some((origin, _)) = self.half_open.get(&id)
            && let Some(tally) = self.origins.get_mut(origin)
        {
            tally.not_idle(id);
        }
    }

    /// Nothing is checked for a connection: it may have to make room.
    pub fn checked(&mut self, id: AssociationId) {
        if let Some((origin, _)) = self.half_open.get(&id)
            && let Some(tally) = self.origins.get_mut(origin)
        {
            tally.set_idle(id, self.future_users.contains(&id));
        }
    }

    fn end_half_open(&mut self, id: AssociationId) {
        let Some((origin, known)) = self.half_open.remove(&id) else { return };
        self.strangers -= usize::from(!known);
        self.future_users.remove(&id);
        if let Some(tally) = self.origins.get_mut(&origin) {
            tally.half_open = tally.half_open.saturating_sub(1);
            tally.not_idle(id);
        }
    }

    /// A peer bound, or we open one.
    pub fn on_channel(&mut self, id: AssociationId, channel: ChannelId) {
        self.end_half_open(id);
        self.channels.entry(channel).or_default().insert(id);
    }

    /// A user bound to the mailbox of this number.
    pub fn user(&mut self, id: AssociationId, mailbox: u32) {
        self.end_half_open(id);
        self.users.insert(id, mailbox);
        self.mailboxes.entry(mailbox).or_default().insert(id);
    }

    /// An association is gone.
    pub fn gone(&mut self, id: AssociationId, channel: Option<ChannelId>, origin: Option<Origin>) {
        self.end_half_open(id);
        if let Some(mailbox) = self.users.remove(&id)
            && let Some(users) = self.mailboxes.get_mut(&mailbox)
        {
            users.remove(&id);
            if users.is_empty() {
                self.mailboxes.remove(&mailbox);
            }
        }
        if let Some(channel) = channel
            && let Some(ids) = self.channels.get_mut(&channel)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.channels.remove(&channel);
            }
        }
        if let Some(origin) = origin
            && let Some(tally) = self.origins.get_mut(&origin)
        {
            tally.all = tally.all.saturating_sub(1);
            if tally.all == 0 {
                self.origins.remove(&origin);
            }
        }
    }

    // ----- counts ---------------------------------------------------------------------------------

    /// The associations of a channel, oldest first.
    pub fn channel(
        &self,
        channel: ChannelId,
    ) -> impl DoubleEndedIterator<Item = AssociationId> + use<'_> {
        self.channels.get(&channel).into_iter().flatten().copied().inspect(|_| step())
    }

    /// The associations of a peer, channel by channel.
    pub fn peer(&self, peer: PeerId) -> impl Iterator<Item = AssociationId> + use<'_> {
        let first = ChannelId { peer, index: 0 };
        let last = ChannelId { peer, index: u32::MAX };
        self.channels.range(first..=last).flat_map(|(_, ids)| ids).copied().inspect(|_| step())
    }

    /// Those of all channels.
    pub fn peers(&self) -> impl Iterator<Item = AssociationId> + use<'_> {
        self.channels.values().flatten().copied()
    }

    /// The users bound to a mailbox, oldest first.
    pub fn users(&self, mailbox: u32) -> impl Iterator<Item = AssociationId> + use<'_> {
        self.mailboxes.get(&mailbox).into_iter().flatten().copied().inspect(|_| step())
    }

    /// The mailbox that a user is bound to.
    pub fn mailbox(&self, id: AssociationId) -> Option<u32> {
        self.users.get(&id).copied()
    }

    /// All that are bound, peers and users.
    #[cfg(debug_assertions)]
    pub fn bound(&self) -> BTreeSet<AssociationId> {
        let peers = self.channels.values().flatten().copied();
        peers.chain(self.users.keys().copied()).collect()
    }

    /// Users bound or about to.
    pub fn user_count(&self) -> usize {
        self.users.len() + self.future_users.len()
    }

    /// Half-open ones on the channels of peers.
    pub fn future_peers(&self) -> usize {
        self.half_open.len() - self.future_users.len()
    }

    /// Associations with a peer.
    pub fn of_peer(&self, peer: PeerId) -> usize {
        self.peer(peer).count()
    }

    /// Connections from an address.
    pub fn from(&self, origin: Origin) -> usize {
        self.origins.get(&origin).map_or(0, |tally| tally.all)
    }

    /// Half-open ones from an address.
    pub fn half_open_from(&self, origin: Origin) -> usize {
        self.origins.get(&origin).map_or(0, |tally| tally.half_open)
    }

    /// Half-open ones in all, and how many of them come from addresses nobody configured.
    pub fn half_open(&self) -> (usize, usize) {
        (self.half_open.len(), self.strangers)
    }

    /// The oldest half-open one of an address that may have to make room; of future users, if asked.
    pub fn oldest_from(&self, origin: Origin, users: bool) -> Option<AssociationId> {
        self.origins.get(&origin)?.idle(users).first().copied()
    }

    /// The oldest of the address that holds the most of them, among strangers or all.
    pub fn oldest(&self, strangers_only: bool, users: bool) -> Option<(AssociationId, Origin)> {
        let candidates = self.origins.iter().filter_map(|(origin, tally)| {
            let idle = tally.idle(users);
            let oldest = idle.first()?;
            // All of an origin are known, or none.
            let (_, known) = self.half_open.get(oldest)?;
            (!strangers_only || !known).then_some((idle.len(), *oldest, *origin))
        });
        // Of equals the one whose oldest is the oldest of all.
        let most = candidates.max_by_key(|(count, oldest, _)| (*count, std::cmp::Reverse(*oldest)));
        most.map(|(_, oldest, origin)| (oldest, origin))
    }
}
