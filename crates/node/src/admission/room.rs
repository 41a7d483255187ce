//! Whether there is room for one more association of a peer.

use crate::admission::Admission;
use crate::config::levels::{self, Levels};
use crate::context::Context;
use base::ip_prefix::{Origin, Prefix};
use base::{AssociationId, Precedence};
use guard::Limit;
use scheduler::ChannelId;
use std::net::IpAddr;

/// A half-open connection that has to make room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MakesRoom {
    pub id: AssociationId,
    pub origin: Origin,
    pub limit: Limit,
}

impl Admission {
    /// Whether there is room for one more connection, and who has to make it first.
    ///
    /// # Errors
    /// The limit that is reached, where nobody can make room.
    pub(crate) fn find_room(
        &self,
        cx: &Context,
        origin: Origin,
        known: bool,
        level: Option<Precedence>,
    ) -> Result<Option<MakesRoom>, Limit> {
        let p3 = level.is_none();
        let limits = cx.config.limits;
        let (all, strangers) = cx.associations.connections().half_open();
        // At least one place, where there are two, stays for configured addresses.
        let kept = (limits.half_open / 4).max(usize::from(limits.half_open > 1));
        let half_open = all >= limits.half_open || (!known && strangers + kept >= limits.half_open);
        // Users, of whom some are not known yet, cannot take what peers need.
        let users_share = limits.associations - limits.associations / 4;
        let users = p3 && cx.associations.connections().user_count() >= users_share;
        let there = cx.associations.len() - self.turned_away.len();
        let associations = there >= limits.associations;
        let kept = there + self.kept_for_higher(cx, level) >= limits.associations;
        let of_address =
            if cx.associations.connections().from(origin) >= limits.associations_per_address {
                Some(Limit::PerAddress)
            } else if cx.associations.connections().half_open_from(origin)
                >= limits.half_open_per_address
            {
                Some(Limit::HalfOpenPerAddress)
            } else {
                None
            };
        let Some(limit) = of_address
            .or(half_open.then_some(Limit::HalfOpen))
            .or((users || associations).then_some(Limit::Associations))
            .or(kept.then_some(Limit::Kept))
        else {
            return Ok(None);
        };
        // The one that makes room counts at each limit reached. Strangers come first, and make room
        // alone where the new one is a stranger from elsewhere.
        let users = users || (p3 && kept && !associations);
        let found = match of_address {
            Some(_) => cx
                .associations
                .connections()
                .oldest_from(origin, users)
                .map(|oldest| (oldest, origin)),
            None => cx.associations.connections().oldest(true, users).or_else(|| {
                known.then(|| cx.associations.connections().oldest(false, users)).flatten()
            }),
        };
        let (oldest, from) = found.ok_or(limit)?;
        Ok(Some(MakesRoom { id: oldest, origin: from, limit }))
    }

    /// The address that a connection is counted for, and whether its address is one of a peer's in the
    /// configuration. An address that it names within a /64 is counted alone, so that
    /// strangers there are not taken for the peer.
    pub(crate) fn whose(&self, cx: &Context, remote: IpAddr) -> (Origin, bool) {
        let peers = &cx.config.peers;
        let exact = peers.iter().any(|peer| peer.addresses.contains(&remote));
        let from = peers.iter().flat_map(|peer| &peer.from).filter(|p| p.contains(remote));
        let narrowest = match exact {
            true => Some(Prefix::from(remote)),
            false => from.max_by_key(|p| p.length()).copied(),
        };
        match narrowest {
            Some(prefix) if remote.is_ipv6() && prefix.length() > 64 => {
                (Origin::Configured(prefix), true)
            }
            _ => (Origin::from(remote), narrowest.is_some()),
        }
    }

    /// The limit that one more association of a peer on this channel exceeds, if any.
    pub(crate) fn is_one_too_many(&self, cx: &Context, channel: ChannelId) -> Option<Limit> {
        let limits = &cx.config.limits;
        let theirs =
            |id: &AssociationId| cx.associations.get(id).is_some_and(|l| !l.is_initiator());
        if cx.associations.connections().channel(channel).filter(theirs).count()
            >= limits.associations_per_channel
        {
            return Some(Limit::PerChannel);
        }
        let most = limits.associations_per_peer;
        let of_peer = cx.associations.connections().of_peer(channel.peer);
        let level = cx.peer_and_channel(channel).and_then(|(_, c)| levels::of_channel(c));
        let Some(level) = level else { return (of_peer >= most).then_some(Limit::PerPeer) };
        let count = |id| cx.associations.connections().channel(id).count();
        let levels = Levels::new(&cx.config, Some(channel.peer), count);
        let kept = levels.kept_of_peer(level, most);
        // Ours are not refused, and must not use up its share.
        let counted = match levels.has_share(level, most) {
            true => of_peer,
            false => cx.associations.connections().peer(channel.peer).filter(theirs).count(),
        };
        match (counted >= most, counted + kept >= most) {
            (true, _) => Some(Limit::PerPeer),
            (false, true) => Some(Limit::KeptOfPeer),
            (false, false) => None,
        }
    }

    /// How many places an incoming connection on a channel of this level leaves free for higher ones.
    /// The connection of a user has no level.
    pub(crate) fn kept_for_higher(&self, cx: &Context, level: Option<Precedence>) -> usize {
        let most = cx.config.limits.associations;
        // Far from the limit nothing need be counted.
        if cx.associations.len() < most / 2 {
            return 0;
        }
        let count = |id| cx.associations.connections().channel(id).count();
        let kept = Levels::new(&cx.config, None, count).kept_of_all(level, most);
        // Those that are about to bind as peers are in these places, or make room.
        kept.saturating_sub(cx.associations.connections().future_peers())
    }
}
