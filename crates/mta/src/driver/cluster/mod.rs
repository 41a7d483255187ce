//! A node of a site, for the driver: it makes the calls and reads what [`Ownership`] wants, and passes the node its
//! inputs.

mod calls;
pub(super) mod site;

pub(crate) use calls::ClusterAnswer;

use crate::config::section::store::engine::ClusterNode;
use crate::driver::inbox::Inbox;
use crate::driver::{Driver, DriverAnswer, DriverError};
use base::{Instant, Precedence};
use calls::{Calls, Names};
use engine::NextHop;
use engine::journal::{Batch, QueueId};
use membership::{Membership, Settings};
use node::{CommitError, EdgeError, Token};
use ownership::{BatchEnd, Notice, Output, Ownership, changes_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::cluster::reads::Found;
use store::cluster::{Cluster, Fence, NodeEpoch};
use store::{Committed, QueueStore, StoreError};

/// This node of its site.
pub(super) struct Membered {
    machine: Ownership,
    cluster: Arc<dyn Cluster>,
    calls: Calls,
}

/// A store that several nodes share, and which of them this is.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    pub(crate) cluster: Arc<dyn Cluster>,
    pub(crate) store: Arc<dyn QueueStore>,
    pub(crate) node: ClusterNode,
    pub(crate) epoch: NodeEpoch,
}

impl Membered {
    /// A node that has joined at this moment, or later.
    pub(super) fn start(
        joined: &Joined,
        peers: BTreeMap<QueueId, String>,
        answers: &Arc<Inbox>,
        asked: Instant,
    ) -> Result<Membered, DriverError> {
        let Joined { cluster, store, node, epoch } = joined;
        let settings = Settings { name: node.name.clone(), lease: node.lease, peers };
        let machine = Ownership::joined(settings, asked, *epoch);
        let names = Names { node: node.name.clone(), lease: node.lease };
        let calls = Calls::start((cluster, store), answers, &names)
            .map_err(|e| DriverError::Broken(format!("cannot start a thread: {e}")))?;
        Ok(Membered { machine, cluster: Arc::clone(cluster), calls })
    }

    /// What a node does last, when all its batches have ended: others need not wait until its lease is over.
    pub(super) fn parting(self) -> impl FnOnce() + Send + 'static {
        let (cluster, own) = (Arc::clone(&self.cluster), self.machine.membership().epoch());
        drop(self.calls);
        move || {
            if let Some(Err(error)) = own.map(|own| cluster.bury(&[own])) {
                tracing::warn!(%error, "the shards of this node are free only when its lease is over");
            }
        }
    }

    /// What it knows of its site.
    pub(super) fn membership(&self) -> &Membership {
        self.machine.membership()
    }
}

/// The shards of these peers, with their names.
pub(super) fn shards_of(config: &node::config::NodeConfig) -> BTreeMap<QueueId, String> {
    let of = |peer: &node::config::Peer| (NextHop::Peer(peer.id()).queue(), peer.name.clone());
    config.peers.iter().map(of).collect()
}

/// A next hop for the log: a peer by its number, as its name may be gone.
fn in_words(hop: &NextHop) -> String {
    match hop {
        NextHop::Peer(peer) => peer.to_string(),
        NextHop::Mailbox(address) => address.clone(),
    }
}

fn log(notice: &Notice) {
    match notice {
        Notice::Joined(epoch) => tracing::info!(%epoch, "a node of the site"),
        Notice::Gained(shard, fence) => {
            tracing::info!(shard, fence = fence.0, "this node has a shard");
        }
        Notice::Lost(hop) => {
            tracing::warn!(shard = %in_words(hop), "this node has lost a shard");
        }
        Notice::Nameless(shard) => tracing::warn!(shard = shard.0, "a shard without a name"),
        Notice::LeaseEnded => {
            tracing::error!("the lease of this node has ended: it takes nothing");
        }
    }
}

impl Driver {
    /// When the site is to be looked at.
    pub(super) fn site_deadline(&self) -> Option<Instant> {
        self.member.as_ref().and_then(|member| member.machine.deadline())
    }

    /// The node begins as one of several.
    pub(super) fn begin_as_member(&mut self) {
        self.site_input(ownership::Input::Begin);
    }

    /// A lease that is over is noticed before the node does anything.
    pub(super) fn look_at_lease(&mut self) {
        let now = self.clock.now().mono;
        if self.site_deadline().is_some_and(|deadline| deadline <= now) {
            self.site_input(ownership::Input::Tick);
            self.site_wants();
        }
    }

    /// The associations of the node with its peers have changed, perhaps: that decides where the peers belong.
    pub(super) fn look_at_peers(&mut self) {
        if self.member.is_some()
            && let Some(found) = self.node.take_with_peers()
        {
            self.site_input(ownership::Input::Associations(found));
        }
    }

    /// Something happened to what this node owns. What follows for the node comes behind its step.
    pub(super) fn site_input(&mut self, input: ownership::Input) {
        let now = self.clock.now().mono;
        if let Some(member) = &mut self.member {
            member.machine.handle(now, input);
            self.go_on();
        }
    }

    /// Carries out what the site wants, with the steps of the node that it wants.
    pub(super) fn site_wants(&mut self) {
        while let Some(output) = self.member.as_mut().and_then(|member| member.machine.poll()) {
            self.site_output(output);
        }
    }

    fn site_output(&mut self, output: Output) {
        let last = self.disk.last_batch();
        let Some(member) = &mut self.member else { return };
        match output {
            Output::Call(call) => member.calls.make(call, last),
            Output::Read { shard, fence, after, value } => {
                member.calls.read((shard, fence), after, value);
            }
            Output::LookForNews(places) => member.calls.look_for_news(places),
            Output::Announce(shard) => member.calls.announce(shard),
            Output::ReadRegistrations(name) => member.calls.read_registrations(name),
            Output::ReadUsers => self.reload_users(None),
            Output::ReadValue(name) => self.disk.read_value(name),
            Output::AfterBatches(shard, fence) => self.after_batches(shard, fence),
            Output::Node(input) => self.step(input),
            Output::Drained => {
                tracing::info!("this node has given all its shards away");
                self.orders.drained = true;
            }
            Output::Noted(notice) => log(&notice),
        }
    }

    /// A thread has answered.
    pub(super) fn cluster_answer(&mut self, answer: ClusterAnswer) {
        use ownership::Input;
        self.site_input(match answer {
            ClusterAnswer::OfLease(answer) => Input::OfLease(answer),
            ClusterAnswer::Ended(answer) => Input::Ended(answer),
            ClusterAnswer::Changed(changes) => Input::Changed(changes),
            ClusterAnswer::Found(Found::Value(name, value)) => Input::Registered(name, value),
            ClusterAnswer::Found(Found::Unread(name)) => Input::RegistrationsUnread(name),
            ClusterAnswer::Found(Found::News(found)) => Input::News(found),
            ClusterAnswer::Found(Found::Page(shard, fence, read)) => {
                if let Err(error) = &read {
                    tracing::warn!(%error, "the entries of a shard cannot be read");
                }
                let (value, page) = read.map_or((None, None), |(value, page)| (value, Some(page)));
                Input::Page { shard, fence, value, page }
            }
            ClusterAnswer::Value(_, Ok(None)) => return,
            ClusterAnswer::Value(name, Ok(Some(value))) => Input::Value(name, value),
            ClusterAnswer::Value(name, Err(error)) => {
                tracing::warn!(name, %error, "a value of the site cannot be read: it is tried again");
                Input::ValueUnread(name)
            }
            ClusterAnswer::Left(shard, fence) => Input::BatchesEnded(shard, fence),
        });
    }

    /// A batch was refused, for another node has changed a value that it was to replace. The node knows what the values
    /// are now before it gets the answer, and makes its own change again on top of them.
    pub(super) fn values_changed(
        &mut self,
        token: Token,
        values: Result<Vec<node::Input>, StoreError>,
    ) {
        let refused = match values {
            Ok(values) => {
                values.into_iter().for_each(|value| self.input(value));
                CommitError::Changed
            }
            Err(error) => CommitError::NotDone(EdgeError(error.to_string())),
        };
        self.site_input(ownership::Input::Committed(token, BatchEnd::NotDone));
        self.input(node::Input::Committed { token, result: Err(refused) });
    }

    fn after_batches(&mut self, shard: QueueId, fence: Fence) {
        let answers = Arc::clone(&self.inbox);
        let ended = Box::new(move |_: Committed| {
            let left = DriverAnswer::Cluster(ClusterAnswer::Left(shard, fence));
            answers.answer(Precedence::Override, left);
        });
        // Commits of this level come after all others.
        self.disk.after_all(ended);
    }

    /// Another configuration holds.
    pub(super) fn peers_changed(&mut self) {
        let peers = shards_of(&self.site.node);
        self.site_input(ownership::Input::Peers(peers));
    }

    /// A batch is handed to the committer.
    pub(super) fn note_batch(&mut self, token: Token, batch: &Batch) {
        if self.member.is_some() {
            self.site_input(ownership::Input::Committing(token, changes_of(batch)));
        }
    }
}
