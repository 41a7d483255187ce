//! The machine.

use crate::plan::{Own, Plan, plan};
use crate::reach::Reach;
use crate::rows::{Acquired, Fence, NodeEpoch, NodeRow, Renewal, ShardRow};
use base::Instant;
use engine::journal::QueueId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// The settings of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Its name: no two nodes of a site have the same one.
    pub name: String,
    /// The length of its lease: how long the site waits for a node that does not answer. From 1 s to 60 s.
    pub lease: Duration,
    /// The shards of its peers, with their names.
    pub peers: BTreeMap<QueueId, String>,
}

/// A call of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Becomes a node.
    Join,
    /// Prolongs the lease.
    Renew {
        /// The node gives all its shards away.
        draining: bool,
    },
    /// Writes that nodes whose leases have ended are dead.
    Bury(Vec<NodeEpoch>),
    /// Owns a shard.
    Acquire {
        /// The shard.
        shard: QueueId,
        /// What people call it.
        name: String,
    },
    /// Gives a shard away.
    Release {
        /// The shard.
        shard: QueueId,
        /// What people call it.
        name: String,
    },
    /// Asks the owner for a shard.
    Ask(QueueId),
    /// Asks for it no longer.
    Withdraw(QueueId),
    /// Reads all nodes and shards.
    Look,
}

impl Call {
    /// Whether it is about the lease: it does not wait for other calls.
    #[must_use]
    pub fn is_of_lease(&self) -> bool {
        matches!(self, Call::Join | Call::Renew { .. })
    }
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// To [`Call::Join`].
    Joined(NodeEpoch),
    /// To [`Call::Renew`].
    Renewed(Renewal),
    /// To [`Call::Acquire`].
    Acquired(Acquired),
    /// To [`Call::Look`].
    Looked {
        /// The nodes that are not dead.
        nodes: Vec<NodeRow>,
        /// The shards.
        shards: Vec<ShardRow>,
    },
    /// To the others.
    Done,
    /// The call failed, or its end is unknown.
    Failed,
}

/// What happens to the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// [`Membership::deadline`] has come.
    Tick,
    /// The call about the lease ended.
    OfLease(Answer),
    /// The other call ended.
    Ended(Answer),
    /// Nodes or shards in the store have changed, perhaps.
    Changed,
    /// The store refused a commit: it has no lease of this node, or none of now.
    Refused,
    /// The node has let go of a shard, as [`Output::Leave`] asked.
    Left(QueueId),
    /// The node keeps a shard for now: somebody is bound to it.
    Stays(QueueId),
    /// A user binds here to the mailbox of this shard and address.
    Wanted(QueueId, String),
    /// Nobody waits for that mailbox any more.
    NotWanted(QueueId),
    /// The peers of another configuration.
    Peers(BTreeMap<QueueId, String>),
    /// The node is to give all its shards away.
    Drain,
    /// The node is to take shards again.
    Undrain,
    /// The peers with open associations at this node have changed.
    Associations {
        /// All of them, by shard.
        open: BTreeSet<QueueId>,
        /// Those that opened all of theirs, and that can be sent to on one.
        held: BTreeSet<QueueId>,
    },
    /// The peer of this shard has called another node.
    CalledElsewhere(QueueId),
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output {
    /// A call of the store: at most one about the lease and one other are in progress.
    Call(Call),
    /// The process is a node of the site, with this number.
    Joined(NodeEpoch),
    /// The node owns a shard from now on: it reads its entries.
    Gained(QueueId, String, Fence),
    /// The node owns it no longer: it ends the associations at once and forgets the entries.
    Lost(QueueId),
    /// The node lets transfers of it end and then answers [`Input::Left`], or [`Input::Stays`].
    Leave(QueueId),
    /// The node owns nothing, because it gave all away as [`Input::Drain`] asked.
    Drained,
    /// The lease is over, or holds again: without it the node acknowledges nothing.
    Lease(bool),
}

/// Pause before a failed call about the lease is made again.
const RETRY: Duration = Duration::from_millis(200);

/// A node of a site.
#[derive(Clone, Debug)]
pub struct Membership {
    settings: Settings,
    epoch: Option<NodeEpoch>,
    /// The lease lasts at least until then by this node's clock; `None`: it is over.
    lease: Option<Instant>,
    /// When the call about the lease that is in progress was made.
    renewing: Option<Instant>,
    renew_at: Instant,
    /// The other call that is in progress.
    calling: Option<Call>,
    /// The lease ended since that call was made: its answer is of no meaning.
    stale: bool,
    todo: VecDeque<Call>,
    look_at: Instant,
    /// The last look began then.
    looked: Instant,
    owned: BTreeMap<QueueId, (String, Fence)>,
    shards: BTreeSet<QueueId>,
    leaving: BTreeSet<QueueId>,
    /// Those of them that the node has let go of, until the store knows.
    left: BTreeSet<QueueId>,
    wanted: BTreeMap<QueueId, String>,
    draining: bool,
    drained: bool,
    reach: Reach,
    /// What the last look found.
    nodes: Vec<NodeRow>,
    owners: BTreeMap<QueueId, NodeEpoch>,
    outputs: VecDeque<Output>,
}

impl Membership {
    /// A node that is to join.
    #[must_use]
    pub fn new(settings: Settings) -> Membership {
        Membership {
            settings,
            epoch: None,
            lease: None,
            renewing: None,
            renew_at: Instant(0),
            calling: None,
            stale: false,
            todo: VecDeque::new(),
            look_at: Instant(0),
            looked: Instant(0),
            owned: BTreeMap::new(),
            shards: BTreeSet::new(),
            leaving: BTreeSet::new(),
            left: BTreeSet::new(),
            wanted: BTreeMap::new(),
            draining: false,
            drained: false,
            reach: Reach::default(),
            nodes: Vec::new(),
            owners: BTreeMap::new(),
            outputs: VecDeque::new(),
        }
    }

    /// When the next [`Input::Tick`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let renew = self.renewing.is_none().then_some(self.renew_at);
        let look = (self.calling.is_none() && self.lease.is_some()).then_some(self.look_at);
        [renew, look, self.lease].into_iter().flatten().min()
    }

    /// What is wanted next.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Its number, once it has joined.
    #[must_use]
    pub fn epoch(&self) -> Option<NodeEpoch> {
        self.epoch
    }

    /// Whether the lease lasts at this moment.
    #[must_use]
    pub fn is_member(&self, now: Instant) -> bool {
        self.lease.is_some_and(|until| now < until)
    }

    /// The shards it owns, with their names and fences.
    pub fn owned(&self) -> impl Iterator<Item = (QueueId, &str, Fence)> {
        self.owned.iter().map(|(shard, (name, fence))| (*shard, name.as_str(), *fence))
    }

    /// The fence of a shard that it owns.
    #[must_use]
    pub fn fence(&self, shard: QueueId) -> Option<Fence> {
        self.owned.get(&shard).map(|(_, fence)| *fence)
    }

    /// Whether it owns a shard.
    #[must_use]
    pub fn owns(&self, shard: QueueId) -> bool {
        self.owned.contains_key(&shard)
    }

    /// The name of a node, as far as it is known.
    #[must_use]
    pub fn name_of(&self, epoch: NodeEpoch) -> Option<&str> {
        self.nodes.iter().find(|node| node.epoch == epoch).map(|node| node.name.as_str())
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The nodes that the last look found.
    #[must_use]
    pub fn nodes(&self) -> &[NodeRow] {
        &self.nodes
    }

    /// The node that has a shard, by the last look.
    #[must_use]
    pub fn owner_of(&self, shard: QueueId) -> Option<NodeEpoch> {
        self.owners.get(&shard).copied()
    }

    /// What is left of the lease at this moment, as the node counts it; zero without one.
    #[must_use]
    pub fn lease_left(&self, now: Instant) -> Duration {
        self.lease.map_or(Duration::ZERO, |until| until.since(now))
    }

    /// Whether it gives its shards away, or has.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// Whether it has given all its shards away, as [`Input::Drain`] asked.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.drained
    }

    /// Takes an input. A lease that is over is given up before anything else.
    pub fn handle(&mut self, now: Instant, input: Input) {
        if self.lease.is_some_and(|until| until <= now) {
            self.end_lease();
        }
        match input {
            Input::Tick => {}
            Input::OfLease(answer) => self.lease_answered(now, &answer),
            Input::Ended(answer) => self.call_ended(now, answer),
            Input::Changed => self.look_at = self.look_at.min(now),
            Input::Refused => self.renew_at = self.renew_at.min(now),
            Input::Left(shard) => {
                if self.leaving.contains(&shard) && self.left.insert(shard) {
                    self.todo.push_front(self.release(shard));
                }
            }
            Input::Stays(shard) if self.left.contains(&shard) => {}
            Input::Stays(shard) => _ = self.leaving.remove(&shard),
            Input::Wanted(shard, name) => {
                self.wanted.insert(shard, name);
                self.look_at = now;
            }
            Input::NotWanted(shard) => _ = self.wanted.remove(&shard),
            Input::Peers(peers) => {
                self.settings.peers = peers;
                self.look_at = now;
            }
            Input::Drain => {
                self.draining = true;
                (self.renew_at, self.look_at) = (now, now);
            }
            Input::Undrain => {
                (self.draining, self.drained) = (false, false);
                (self.renew_at, self.look_at) = (now, now);
            }
            Input::Associations { open, held } => self.reach.changed(now, open, held),
            Input::CalledElsewhere(shard) => self.reach.called_elsewhere(shard),
        }
        self.go_on(now);
    }

    /// Makes the calls that are due.
    fn go_on(&mut self, now: Instant) {
        if self.renewing.is_none() && self.renew_at <= now {
            self.renewing = Some(now);
            let call = match self.epoch {
                None => Call::Join,
                Some(_) => Call::Renew { draining: self.draining },
            };
            self.outputs.push_back(Output::Call(call));
        }
        if self.lease.is_none() || self.calling.is_some() {
            return;
        }
        // A node that takes over thousands of shards would see nothing else for long: who wants a mailbox waits for it,
        // and another node's lease may end. A look after each call would cost more than the calls.
        let is_long_ago = self.looked + self.settings.lease / 4 <= now;
        let looks = self.look_at <= now && (self.todo.is_empty() || is_long_ago);
        let next = if looks { Some(Call::Look) } else { self.todo.pop_front() };
        if looks {
            self.looked = now;
        }
        if let Some(call) = next {
            self.stale = false;
            self.calling = Some(call.clone());
            self.outputs.push_back(Output::Call(call));
        }
    }

    fn lease_answered(&mut self, now: Instant, answer: &Answer) {
        let Some(asked) = self.renewing.take() else { return };
        self.renew_at = now + RETRY;
        match answer {
            Answer::Joined(epoch) => {
                self.epoch = Some(*epoch);
                self.outputs.push_back(Output::Joined(*epoch));
                self.prolong(now, asked);
            }
            Answer::Renewed(Renewal::Renewed) => self.prolong(now, asked),
            Answer::Renewed(Renewal::Dead) => {
                self.end_lease();
                self.epoch = None;
                self.renew_at = now;
            }
            _ => {}
        }
    }

    /// The lease was renewed by a call that was made then.
    fn prolong(&mut self, now: Instant, asked: Instant) {
        let until = asked + (self.settings.lease - self.settings.lease / 8);
        if until <= now {
            return;
        }
        if self.lease.replace(until).is_none() {
            self.outputs.push_back(Output::Lease(true));
            self.look_at = now;
        }
        self.renew_at = now.max(asked + self.settings.lease / 4);
    }

    /// Owns nothing any more, as far as it knows.
    fn end_lease(&mut self) {
        if self.lease.take().is_some() {
            self.outputs.push_back(Output::Lease(false));
        }
        for shard in std::mem::take(&mut self.shards) {
            self.lose(shard);
        }
        self.todo.clear();
        self.stale = true;
    }

    fn release(&self, shard: QueueId) -> Call {
        let name = self.owned.get(&shard).map_or_else(String::new, |(name, _)| name.clone());
        Call::Release { shard, name }
    }

    fn lose(&mut self, shard: QueueId) {
        self.shards.remove(&shard);
        self.leaving.remove(&shard);
        self.left.remove(&shard);
        if self.owned.remove(&shard).is_some() {
            self.outputs.push_back(Output::Lost(shard));
        }
    }

    fn call_ended(&mut self, now: Instant, answer: Answer) {
        let Some(call) = self.calling.take() else { return };
        if self.stale {
            return;
        }
        match (call, answer) {
            (Call::Acquire { shard, name }, Answer::Acquired(Acquired::Ours(fence))) => {
                self.lose(shard);
                self.shards.insert(shard);
                self.owned.insert(shard, (name.clone(), fence));
                self.wanted.remove(&shard);
                self.reach.gained(now, shard);
                self.outputs.push_back(Output::Gained(shard, name, fence));
            }
            (Call::Acquire { .. }, Answer::Acquired(Acquired::Dead)) => {
                self.end_lease();
                self.renew_at = now;
            }
            (Call::Look, Answer::Looked { nodes, shards }) => self.looked(now, nodes, &shards),
            (Call::Release { shard, .. }, Answer::Done) => {
                self.leaving.remove(&shard);
                self.left.remove(&shard);
                self.shards.remove(&shard);
                self.owned.remove(&shard);
                self.look_at = now;
            }
            (Call::Bury(_), Answer::Done) => self.look_at = now,
            (Call::Ask(shard), Answer::Done) => {
                if let Some(epoch) = self.epoch {
                    self.reach.has_asked(now, epoch, shard);
                }
                self.look_at = self.look_at.min(now + RETRY);
            }
            _ => self.look_at = self.look_at.min(now + RETRY),
        }
    }

    fn looked(&mut self, now: Instant, nodes: Vec<NodeRow>, rows: &[ShardRow]) {
        self.look_at = now + self.settings.lease / 4;
        let Some(epoch) = self.epoch else { return };
        let lease = self.settings.lease;
        let before = |shard| self.owners.get(&shard).copied();
        self.reach.looked(now, (epoch, lease), (&nodes, rows), before);
        let own = Own {
            epoch,
            now,
            lease,
            reach: &self.reach,
            draining: self.draining,
            shards: &self.shards,
            leaving: &self.leaving,
            peers: &self.settings.peers,
            wanted: &self.wanted,
        };
        let Plan { calls, lost, leave } = plan(&own, &nodes, rows);
        self.nodes = nodes;
        let owner = |row: &ShardRow| Some((row.shard, row.owner?.0));
        self.owners = rows.iter().filter_map(owner).collect();
        // What was left of the plan before is in this one, or obsolete.
        self.todo = self.left.iter().map(|shard| self.release(*shard)).chain(calls).collect();
        lost.into_iter().for_each(|shard| self.lose(shard));
        for shard in leave {
            self.leaving.insert(shard);
            self.outputs.push_back(Output::Leave(shard));
        }
        if self.draining && self.shards.is_empty() && !self.drained {
            self.drained = true;
            self.outputs.push_back(Output::Drained);
        }
    }
}
