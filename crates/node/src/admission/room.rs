//! Whether there is room for one more association of a peer.

use crate::admission::Admission;
use crate::config::address_prefix::{Origin, Prefix};
use crate::config::limits::Limit;
use crate::context::Context;
use crate::limits::levels::{self, Levels};
use base::{AssociationId, Precedence};
use scheduler::ChannelId;
use std::net::IpAddr;

impl Admission {
    /// Whom a connection is counted against, and whether its address is one of a peer's in the
    /// configuration. What the configuration tells apart within a /64 counts for itself, so that
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

    /// Whether a peer that bound on this channel is one too many, and which limit says so.
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
        let levels = Levels::of(&cx.config, Some(channel.peer), count);
        let kept = levels.kept_of_peer(level, most);
        // Its share is not for ours to take: they are not refused.
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

    /// How many places a newcomer on a channel of this level leaves free for higher ones; on none, a
    /// user.
    pub(crate) fn kept_for_higher(&self, cx: &Context, level: Option<Precedence>) -> usize {
        let most = cx.config.limits.associations;
        // Far from the limit it is not worth counting.
        if cx.associations.len() < most / 2 {
            return 0;
        }
        let count = |id| cx.associations.connections().channel(id).count();
        let kept = Levels::of(&cx.config, None, count).kept_of_all(level, most);
        // Those that are about to bind as peers are in these places, or make room.
        kept.saturating_sub(cx.associations.connections().future_peers())
    }
}
