//! What connections hold in memory, by peer and in all: octets read and not stored, octets not yet
//! written. While a peer holds as much as it may, none of its connections is read.

use super::gauge::Gauge;
use crate::config::Site;
use base::PeerId;
use node::ListenerId;
use node::config::{Limits, ListenerService};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
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
    all: Arc<Gauge>,
    most: Arc<Most>,
}

/// How much it may be: for one, and in all.
#[derive(Default)]
struct Most {
    peer: AtomicUsize,
    all: AtomicUsize,
}

impl Most {
    fn set(&self, limits: &Limits) {
        self.peer.store(limits.memory_per_peer, Relaxed);
        self.all.store(limits.memory, Relaxed);
    }
}

impl Share {
    /// A gauge whose octets count here.
    pub(super) fn gauge(&self) -> Arc<Gauge> {
        Arc::new(Gauge::within(&self.peer))
    }

    /// Returns once there is room.
    pub(super) async fn room(&self) {
        self.peer.below(self.most.peer.load(Relaxed)).await;
        self.all.below(self.most.all.load(Relaxed)).await;
    }
}

/// All of them.
pub(super) struct Budgets {
    all: Arc<Gauge>,
    most: Arc<Most>,
    peers: BTreeMap<Payer, Weak<Gauge>>,
}

impl Budgets {
    pub(super) fn new(limits: &Limits) -> Budgets {
        let budgets = Budgets { all: Arc::default(), most: Arc::default(), peers: BTreeMap::new() };
        budgets.set_limits(limits);
        budgets
    }

    /// So much from now on.
    pub(super) fn set_limits(&self, limits: &Limits) {
        self.most.set(limits);
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
        Share { peer, all: Arc::clone(&self.all), most: Arc::clone(&self.most) }
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
