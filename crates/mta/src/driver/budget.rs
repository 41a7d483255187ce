//! What connections hold in memory, by peer and in all: octets read and not stored, octets not yet
//! written. While a peer holds as much as it may, none of its connections is read.

use super::gauge::Gauge;
use crate::config::Site;
use base::PeerId;
use node::ListenerId;
use node::config::{Limits, ListenerService};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

/// Who holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Payer {
    /// A peer.
    Peer(PeerId),
    /// The users at an address.
    Users(IpAddr),
}

/// Part of a connection in its peer's memory.
#[derive(Clone, Default)]
pub(super) struct Share {
    peer: Arc<Gauge>,
    most: usize,
    all: Arc<Gauge>,
    most_of_all: usize,
}

impl Share {
    /// A gauge whose octets count here.
    pub(super) fn gauge(&self) -> Arc<Gauge> {
        Arc::new(Gauge::within(&self.peer))
    }

    /// Returns once there is room.
    pub(super) async fn room(&self) {
        self.peer.below(self.most).await;
        self.all.below(self.most_of_all).await;
    }
}

/// All of them.
pub(super) struct Budgets {
    all: Arc<Gauge>,
    most: usize,
    most_of_all: usize,
    peers: BTreeMap<Payer, Weak<Gauge>>,
}

impl Budgets {
    pub(super) fn new(limits: &Limits) -> Budgets {
        let (most, most_of_all) = (limits.memory_per_peer, limits.memory);
        Budgets { all: Arc::default(), most, most_of_all, peers: BTreeMap::new() }
    }

    /// The share of one more connection.
    pub(super) fn share(&mut self, payer: Payer) -> Share {
        let peer = self.peers.get(&payer).and_then(Weak::upgrade).unwrap_or_else(|| {
            // Those whose last connection is gone.
            self.peers.retain(|_, gauge| gauge.strong_count() > 0);
            let gauge = Arc::new(Gauge::within(&self.all));
            self.peers.insert(payer, Arc::downgrade(&gauge));
            gauge
        });
        let (most, most_of_all) = (self.most, self.most_of_all);
        Share { peer, most, all: Arc::clone(&self.all), most_of_all }
    }

    /// The same for a connection that was accepted. Until somebody has bound, it is the listener
    /// that tells whose it is.
    pub(super) fn share_at(&mut self, site: &Site, listener: ListenerId, remote: IpAddr) -> Share {
        self.share(match site.node.listener(listener).map(|l| &l.service) {
            Some(ListenerService::P1 { peer, .. }) => Payer::Peer(*peer),
            _ => Payer::Users(remote),
        })
    }
}
