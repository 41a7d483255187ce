//! A node of a site, for the driver: its lease, its shards, and the entries that other nodes put into them.

mod calls;

pub(crate) use calls::ClusterAnswer;

use crate::config::section::store::engine::ClusterNode;
use crate::driver::inbox::Inbox;
use crate::driver::{Driver, DriverAnswer, DriverError};
use base::{EntryId, Instant, PeerId, Precedence};
use bytes::Bytes;
use calls::{Calls, Names};
use engine::NextHop;
use engine::journal::{Batch, Op, QueueId};
use membership::{Answer, Membership, Output, Settings};
use node::shards::ShardChange;
use node::{Input, Token};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::Committed;
use store::cluster::reading::Reading;
use store::cluster::{Changes, Cluster, NodeEpoch, ShardPage};

/// How long a user waits for his mailbox to come from another node.
const MAILBOX_WAIT: Duration = Duration::from_secs(5);

/// An input with a value.
type Taking = fn(Bytes) -> Input;

/// Values that all nodes of a site share, and what the node takes them with.
const SITE_VALUES: [(&str, Taking); 4] = [
    (node::operator::HELD, Input::RecoveredHolds),
    (node::channel_order::DISABLED, Input::RecoveredDisabled),
    (node::lists::LISTS, Input::RecoveredLists),
    (node::mailbox::machine::NAMES, Input::RecoveredMailboxes),
];

/// This node of its site.
pub(super) struct Membered {
    machine: Membership,
    cluster: Arc<dyn Cluster>,
    calls: Calls,
    /// The shards that it owns.
    shards: BTreeMap<QueueId, (NextHop, Reading)>,
    /// What batches that are being committed do to entries.
    batches: BTreeMap<Token, Vec<EntryChange>>,
    /// Users with the right password whose mailbox is not here yet.
    users: Vec<WaitingUser>,
    /// The machine takes an input: its outputs are carried out after it.
    is_busy: bool,
}

enum EntryChange {
    Put(QueueId, EntryId),
    Delete(EntryId),
}

struct WaitingUser {
    token: Token,
    shard: QueueId,
    until: Instant,
}

/// A store that several nodes share, and which of them this is.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    pub(crate) cluster: Arc<dyn Cluster>,
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
        let Joined { cluster, node, epoch } = joined;
        let settings = Settings { name: node.name.clone(), lease: node.lease, peers };
        let mut machine = Membership::new(settings);
        machine.handle(asked, membership::Input::Tick);
        while machine.poll().is_some() {}
        machine.handle(asked, membership::Input::OfLease(Answer::Joined(*epoch)));
        let names = Names { node: node.name.clone(), lease: node.lease };
        let calls = Calls::start(cluster, answers, &names)
            .map_err(|e| DriverError::Broken(format!("cannot start a thread: {e}")))?;
        let (shards, batches) = (BTreeMap::new(), BTreeMap::new());
        let cluster = Arc::clone(cluster);
        Ok(Membered { machine, cluster, calls, shards, batches, users: Vec::new(), is_busy: false })
    }

    /// What a node does last, when all its batches have ended: others need not wait until its lease is over.
    pub(super) fn parting(self) -> impl FnOnce() + Send + 'static {
        let (cluster, own) = (Arc::clone(&self.cluster), self.machine.epoch());
        drop(self.calls);
        move || {
            if let Some(Err(error)) = own.map(|own| cluster.bury(&[own])) {
                tracing::warn!(%error, "the shards of this node are free only when its lease is over");
            }
        }
    }

    /// Takes note of what a batch will do.
    fn note(&mut self, token: Token, batch: &Batch) {
        let change = |op: &Op| match op {
            Op::PutEntry { id, queue, .. } => Some(EntryChange::Put(*queue, *id)),
            Op::DeleteEntry { id, .. } => Some(EntryChange::Delete(*id)),
            _ => None,
        };
        let changes: Vec<EntryChange> = batch.iter().filter_map(change).collect();
        if !changes.is_empty() {
            self.batches.insert(token, changes);
        }
    }

    /// The batch is durable, or not.
    fn committed(&mut self, token: Token, is_durable: bool) {
        let Some(changes) = self.batches.remove(&token) else { return };
        for change in changes.into_iter().filter(|_| is_durable) {
            match change {
                EntryChange::Put(shard, id) => {
                    if let Some((_, reading)) = self.shards.get_mut(&shard) {
                        reading.put(id);
                    }
                }
                EntryChange::Delete(id) => {
                    self.shards.values_mut().for_each(|(_, reading)| reading.delete(id));
                }
            }
        }
    }

    fn read(&mut self, shard: QueueId) {
        if let Some((_, reading)) = self.shards.get_mut(&shard)
            && let Some(after) = reading.changed()
        {
            self.calls.read(shard, after);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let users = self.users.iter().map(|user| user.until);
        users.chain(self.machine.deadline()).min()
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

/// The next hop of a shard. Mailboxes have their addresses for names.
fn hop(shard: QueueId, name: &str) -> Option<NextHop> {
    if shard.is_of_mailbox() {
        return (!name.is_empty()).then(|| NextHop::Mailbox(name.to_owned()));
    }
    u32::try_from(shard.0).ok().map(|peer| NextHop::Peer(PeerId(peer)))
}

impl Driver {
    /// When the site is to be looked at.
    pub(super) fn cluster_deadline(&self) -> Option<Instant> {
        self.member.as_ref().and_then(Membered::deadline)
    }

    /// The node begins as one of several.
    pub(super) fn begin_as_member(&mut self) {
        if self.member.is_some() {
            self.input(Input::Shard(ShardChange::Several));
            self.cluster_input(membership::Input::Tick);
        }
    }

    /// A lease that is over is noticed before the node does anything.
    pub(super) fn look_at_lease(&mut self, now: Instant) {
        let is_due = |member: &Membered| !member.is_busy && member.deadline() <= Some(now);
        if self.member.as_ref().is_some_and(|m| m.deadline().is_some() && is_due(m)) {
            self.users_that_waited(now);
            self.cluster_input(membership::Input::Tick);
        }
    }

    pub(super) fn cluster_input(&mut self, input: membership::Input) {
        let now = self.clock.now().mono;
        let Some(member) = &mut self.member else { return };
        member.machine.handle(now, input);
        if std::mem::replace(&mut member.is_busy, true) {
            return; // who is at it carries out all
        }
        while let Some(output) = self.member.as_mut().and_then(|member| member.machine.poll()) {
            self.cluster_output(output);
        }
        if let Some(member) = &mut self.member {
            member.is_busy = false;
        }
    }

    fn cluster_output(&mut self, output: Output) {
        let last = self.disk.last_batch();
        let Some(member) = &mut self.member else { return };
        match output {
            Output::Call(call) => member.calls.make(call, last),
            Output::Joined(epoch) => tracing::info!(%epoch, "a node of the site"),
            Output::Gained(shard, name, fence) => match hop(shard, &name) {
                Some(hop) => {
                    tracing::info!(shard = name, fence = fence.0, "this node has a shard");
                    member.shards.insert(shard, (hop.clone(), Reading::default()));
                    member.read(shard);
                    self.input(Input::Shard(ShardChange::Gained(hop)));
                }
                None => tracing::warn!(shard = shard.0, "a shard without a name"),
            },
            Output::Lost(shard) => {
                if let Some((hop, _)) = member.shards.remove(&shard) {
                    tracing::warn!(shard = %in_words(&hop), "this node has lost a shard");
                    self.input(Input::Shard(ShardChange::Lost(hop)));
                }
            }
            Output::Leave(shard) => match member.shards.get(&shard) {
                Some((hop, _)) => {
                    let hop = hop.clone();
                    self.input(Input::Shard(ShardChange::Leave(hop)));
                }
                None => self.cluster_input(membership::Input::Left(shard)),
            },
            Output::Drained => {
                tracing::info!("this node has given all its shards away");
                self.drained = true;
            }
            Output::Lease(holds) => {
                if !holds {
                    tracing::error!("the lease of this node has ended: it takes nothing");
                }
                self.input(Input::Shard(ShardChange::Lease(holds)));
            }
        }
    }

    /// A thread has answered.
    pub(super) fn cluster_answer(&mut self, answer: ClusterAnswer) {
        match answer {
            ClusterAnswer::OfLease(answer) => {
                self.cluster_input(membership::Input::OfLease(answer));
            }
            ClusterAnswer::Ended(answer) => self.cluster_input(membership::Input::Ended(answer)),
            ClusterAnswer::Changed(changes) => self.site_changed(&changes),
            ClusterAnswer::Page(shard, page) => match page {
                Ok(page) => self.shard_page(shard, page),
                Err(error) => {
                    tracing::warn!(%error, "the entries of a shard cannot be read");
                    if let Some((_, reading)) =
                        self.member.as_mut().and_then(|m| m.shards.get_mut(&shard))
                    {
                        reading.failed();
                    }
                }
            },
            ClusterAnswer::Left(shard, fence) => {
                let Some(member) = &mut self.member else { return };
                if member.machine.fence(shard) != fence {
                    return; // it is another ownership by now
                }
                member.shards.remove(&shard);
                self.cluster_input(membership::Input::Left(shard));
            }
        }
    }

    fn site_changed(&mut self, changes: &Changes) {
        let Some(member) = &mut self.member else { return };
        // Nothing named: it is the look from time to time.
        let all = changes.all || (changes.shards.is_empty() && changes.values.is_empty());
        let changed = |(shard, (_, reading)): (&QueueId, &(NextHop, Reading))| {
            (all || reading.is_due() || changes.shards.contains(shard)).then_some(*shard)
        };
        let changed: Vec<QueueId> = member.shards.iter().filter_map(changed).collect();
        changed.into_iter().for_each(|shard| member.read(shard));
        self.values_changed(changes);
        if changes.members || changes.all {
            self.cluster_input(membership::Input::Changed);
        }
    }

    /// Reads the values of the site that another node has written.
    fn values_changed(&mut self, changes: &Changes) {
        for (name, input) in SITE_VALUES {
            if !changes.all && !changes.values.iter().any(|changed| changed == name) {
                continue;
            }
            match self.disk.value(name) {
                Ok(Some(value)) => self.input(input(value)),
                Ok(None) => {}
                Err(error) => tracing::warn!(name, %error, "a value of the site cannot be read"),
            }
        }
    }

    fn shard_page(&mut self, shard: QueueId, page: ShardPage) {
        let Some(member) = &mut self.member else { return };
        let Some((_, reading)) = member.shards.get_mut(&shard) else { return };
        let (entries, more) = reading.page(page);
        if more {
            member.read(shard);
        }
        let is_any = !entries.is_empty();
        for store::Entry { precedence, id, record } in entries {
            self.input(Input::Recovered { precedence, id, record });
        }
        if is_any {
            self.input(Input::Tick);
        }
        // Who binds now gets what waits.
        self.users_of(shard);
    }

    /// The node has left a shard, but for batches that are being committed.
    pub(super) fn shard_left(&mut self, hop: &NextHop, stays: bool) {
        let shard = hop.queue();
        if stays {
            return self.cluster_input(membership::Input::Stays(shard));
        }
        let fence = self.member.as_ref().and_then(|member| member.machine.fence(shard));
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
        self.cluster_input(membership::Input::Peers(peers));
    }

    /// A batch is handed to the committer.
    pub(super) fn note_batch(&mut self, token: Token, batch: &Batch) {
        if let Some(member) = &mut self.member {
            member.note(token, batch);
        }
    }

    /// A batch has ended.
    pub(super) fn batch_ended(&mut self, token: Token, is_durable: bool) {
        if let Some(member) = &mut self.member {
            member.committed(token, is_durable);
        }
    }

    /// A user has the right password: he is served once his mailbox is here. Gives whether he is now.
    pub(super) fn is_mailbox_here(&mut self, token: Token, mailbox: &str) -> bool {
        let now = self.clock.now().mono;
        let shard = NextHop::Mailbox(mailbox.to_owned()).queue();
        let Some(member) = &mut self.member else { return true };
        if member.machine.owns(shard) {
            return true;
        }
        member.users.push(WaitingUser { token, shard, until: now + MAILBOX_WAIT });
        self.cluster_input(membership::Input::Wanted(shard, mailbox.to_owned()));
        false
    }

    /// A mailbox is here.
    fn users_of(&mut self, shard: QueueId) {
        self.serve_users(|user| user.shard == shard);
    }

    /// Those who waited long enough are refused by the node, if it is elsewhere.
    fn users_that_waited(&mut self, now: Instant) {
        self.serve_users(|user| user.until <= now);
    }

    fn serve_users(&mut self, is_served: impl Fn(&WaitingUser) -> bool) {
        let Some(member) = &mut self.member else { return };
        let users = std::mem::take(&mut member.users);
        let (served, waiting): (Vec<_>, Vec<_>) = users.into_iter().partition(is_served);
        member.users = waiting;
        for WaitingUser { token, shard, .. } in served {
            let others = self
                .member
                .as_ref()
                .is_some_and(|member| member.users.iter().any(|user| user.shard == shard));
            if !others {
                self.cluster_input(membership::Input::NotWanted(shard));
            }
            self.input(Input::Verified { token, right: true });
        }
    }
}
