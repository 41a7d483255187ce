//! Memory limits of connections, per peer and in total: octets read and not yet stored, and octets
//! not yet written. While a peer is at its limit, none of its connections is read.

use super::monitoring::gauge::Gauge;
use crate::config::Site;
use base::PeerId;
use node::ListenerId;
use node::config::{Limits, ListenerService};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// To whom a connection's memory is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BudgetOwner {
    /// A peer.
    Peer(PeerId),
    /// The P3 users at one IP address.
    Users(IpAddr),
}

/// A connection's part in the memory of its peer and of all.
#[derive(Clone, Default)]
pub(super) struct Share {
    peer: Arc<Gauge>,
    all: Arc<Gauge>,
    limits: Arc<MemoryLimits>,
}

/// The limits, per peer and in total, in octets.
#[derive(Default)]
struct MemoryLimits {
    peer: AtomicUsize,
    all: AtomicUsize,
}

impl MemoryLimits {
    fn set(&self, limits: &Limits) {
        self.peer.store(limits.memory_per_peer, Relaxed);
        self.all.store(limits.memory, Relaxed);
    }
}

impl Share {
    /// A gauge whose octets count in this share.
    pub(super) fn gauge(&self) -> Arc<Gauge> {
        Arc::new(Gauge::within(&self.peer))
    }

    /// Returns once both limits leave room.
    pub(super) async fn room(&self) {
        self.peer.below(self.limits.peer.load(Relaxed)).await;
        self.all.below(self.limits.all.load(Relaxed)).await;
    }
}

/// The memory of all connections.
pub(super) struct Budgets {
    all: Arc<Gauge>,
    limits: Arc<MemoryLimits>,
    peers: BTreeMap<BudgetOwner, Weak<Gauge>>,
}

impl Budgets {
    pub(super) fn new(limits: &Limits) -> Budgets {
        let budgets =
            Budgets { all: Arc::default(), limits: Arc::default(), peers: BTreeMap::new() };
        budgets.set_limits(limits);
        budgets
    }

    /// Sets new limits.
    pub(super) fn set_limits(&self, limits: &Limits) {
        self.limits.set(limits);
    }

    /// A share for one more connection.
    pub(super) fn share(&mut self, owner: BudgetOwner) -> Share {
        let peer = self.peers.get(&owner).and_then(Weak::upgrade).unwrap_or_else(|| {
            // Drop the owners that have no connection left.
            self.peers.retain(|_, gauge| gauge.strong_count() > 0);
            let gauge = Arc::new(Gauge::within(&self.all));
            self.peers.insert(owner, Arc::downgrade(&gauge));
            gauge
        });
        Share { peer, all: Arc::clone(&self.all), limits: Arc::clone(&self.limits) }
    }

    /// A share for an accepted connection. Until a bind names the peer, the listener determines
    /// the owner.
    pub(super) fn share_at(&mut self, site: &Site, listener: ListenerId, remote: IpAddr) -> Share {
        self.share(match site.node.listener(listener).map(|l| &l.service) {
            Some(ListenerService::P1 { peer, .. }) => BudgetOwner::Peer(*peer),
            _ => BudgetOwner::Users(remote),
        })
    }
}
