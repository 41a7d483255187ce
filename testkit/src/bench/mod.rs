//! One node, and at the other end of each connection a stack or literal octets that a test plays by
//! hand. Disks take no time. A wire carries what the node writes; what the other end writes comes at
//! once.

mod client;
mod configurations;
mod connections;
mod script;
mod store;

use crate::events::Events;
use crate::network::Operated;
use crate::store::{Delays, FaultyStore, Reply};
use crate::tape::Tape;
use crate::wire::{Direct, Wire};
use base::rng::Rng;
use base::{AssociationId, EntryId, Instant, Now, Precedence, Utc};
use bytes::Bytes;
use connections::Connection;
use engine::journal::Batch;
use engine::{NextHop, Record};
use node::changes::EdgeChanges;
use node::channel_order::ChannelOutcome;
use node::config::NodeConfig;
use node::connect::ConnectOutcome;
use node::event::{Kind, LogEvent};
use node::{EdgeError, Input, Node, Output, PasswordProblem, Principal, Secret, Token};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

pub use client::{ClientAnswer, Outcome};
pub use configurations::{
    ACT_FLASH, ACT_ROUTINE, P3, P7, ROME, facing, message_store, queued_record, two_peers,
    user_address,
};
pub use script::{Answer, Disposition, Script};
pub use store::envelope;

/// What a connection to nobody takes.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A function that hands an input to the node, for tests that measure.
pub type Handler = Box<dyn FnMut(&mut Node, Now, Input)>;

/// One node and who is around it.
pub struct Bench {
    /// The node.
    pub node: Node,
    /// Its configuration.
    pub config: NodeConfig,
    /// The time.
    pub now: Instant,
    /// The wall clock was set forward by so much.
    pub step: Duration,
    /// Its store.
    pub store: FaultyStore,
    /// Its events, each with its time.
    pub events: Vec<(Instant, LogEvent)>,
    /// The behaviour of the peer.
    pub script: Script,
    /// Makes the wires of new connections.
    pub wire: Box<dyn Fn() -> Box<dyn Wire>>,
    /// Whether the other end closes what the node closes; otherwise the test does.
    pub closes: bool,
    /// Whether the node gets a tick at once when it is due.
    pub ticks: bool,
    /// Most inputs, octets and answers at one moment.
    pub most_steps: u32,
    /// Hands inputs to the node, where that is measured.
    pub handler: Option<Handler>,
    /// Octets that the node wrote.
    pub written: BTreeMap<AssociationId, Vec<u8>>,
    /// Connections that the node has dropped.
    pub dropped: BTreeSet<AssociationId>,
    /// Connections that the node has closed.
    pub closed: BTreeSet<AssociationId>,
    /// Passwords to be checked.
    pub passwords: VecDeque<(Token, Principal, Secret)>,
    /// Whether they are checked at once.
    pub verifies: bool,
    /// The number of passwords that were checked.
    pub verified: usize,
    /// Whether a password is right.
    pub trusts: fn(&Principal, &Secret) -> bool,
    /// Whether a password is changed: of which mailbox, and the old one.
    pub changes: fn(&str, &Secret) -> Result<(), PasswordProblem>,
    /// Passwords that were changed: of which mailbox, and the new one.
    pub changed: Vec<(String, Secret)>,
    /// What these clients send is collected here, and handed in by the test.
    pub withheld: BTreeMap<AssociationId, Vec<u8>>,
    /// Connections for which the node waits.
    pub opening: BTreeSet<AssociationId>,
    /// Most of them at a time.
    pub most_opening: usize,
    /// What operators were answered who opened a channel.
    pub connected: Vec<(u64, ConnectOutcome)>,
    /// Answers to orders for channels.
    pub ordered: Vec<(u64, Result<ChannelOutcome, EdgeError>)>,
    /// Answers to orders for entries.
    pub operated: Vec<(u64, Operated)>,
    /// Shards that were left, and whether they stay.
    pub left: Vec<(NextHop, bool)>,
    /// Whether the node has stopped in order.
    pub stopped: bool,
    tape: Option<Tape>,
    rng: Rng,
    /// Records of the entries that are queued here begin as this one.
    template: Option<Record>,
    /// Octets of their contents.
    size: u64,
    connections: BTreeMap<AssociationId, Connection>,
    /// Connections that nobody answers, and when they fail.
    silent: BTreeMap<AssociationId, Instant>,
    inputs: VecDeque<Input>,
    /// Connections whose wires may have something.
    busy: VecDeque<AssociationId>,
}

/// With the variable `RECORD_TESTS`, what was recorded is replayed.
impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(tape) = self.tape.take() {
            tape.judge();
        }
    }
}

impl Events for Bench {
    fn all(&self) -> &[(Instant, LogEvent)] {
        &self.events
    }
}

impl Bench {
    /// A node of this configuration that is not started yet. Every password is right, every peer
    /// accepts and takes everything.
    pub fn new(config: NodeConfig) -> Bench {
        let name = config.peers.first().map(|peer| peer.mta.0.clone()).unwrap_or_default();
        Bench {
            node: Node::new(config.clone()),
            tape: Tape::begin("bench", Now::default(), &config, None),
            config,
            now: Instant(0),
            step: Duration::ZERO,
            store: FaultyStore::default(),
            events: Vec::new(),
            script: Script { name, ..Script::default() },
            wire: Box::new(|| Box::<Direct>::default()),
            closes: true,
            ticks: false,
            most_steps: 10_000_000,
            handler: None,
            written: BTreeMap::new(),
            dropped: BTreeSet::new(),
            closed: BTreeSet::new(),
            passwords: VecDeque::new(),
            verifies: true,
            verified: 0,
            trusts: |_, _| true,
            changes: |_, _| Ok(()),
            changed: Vec::new(),
            withheld: BTreeMap::new(),
            opening: BTreeSet::new(),
            most_opening: 0,
            connected: Vec::new(),
            ordered: Vec::new(),
            operated: Vec::new(),
            left: Vec::new(),
            stopped: false,
            rng: Rng::new(7),
            template: None,
            size: 1_000,
            connections: BTreeMap::new(),
            silent: BTreeMap::new(),
            inputs: VecDeque::new(),
            busy: VecDeque::new(),
        }
    }

    /// The node starts.
    pub fn start(&mut self) {
        self.feed(Input::Started);
    }

    /// The time on both clocks.
    pub fn clock(&self) -> Now {
        Now { mono: self.now, utc: Utc(crate::NEW_YEAR + self.now.0) + self.step }
    }

    /// Entries that are queued from now on have contents of so many octets and are for this peer.
    pub fn queue_for(&mut self, peer: &str, size: u64) {
        let mut record = queued_record();
        record.next_hop = NextHop::Peer(base::PeerId::of_name(peer));
        (record.size, record.not_before) = (size, None);
        (record.accepted, record.first_arrival) = (self.clock().utc, self.clock().utc);
        (self.template, self.size, self.store.ones) = (Some(record), size, true);
    }

    /// An entry is durable now. How it got there is no matter.
    pub fn queue(&mut self, id: EntryId, precedence: Precedence) {
        let template = self.template.clone().expect("queue_for comes first");
        let record = Record { precedence, message: format!("[/C=XX/;{id}]"), ..template };
        self.queue_record(id, precedence, record.encode());
    }

    /// The same for another next hop.
    pub fn queue_to(&mut self, id: EntryId, next_hop: NextHop, precedence: Precedence) {
        let template = self.template.clone().expect("queue_for comes first");
        let message = format!("[/C=XX/;{id}]");
        let record = Record { precedence, next_hop, message, ..template };
        self.queue_record(id, precedence, record.encode());
    }

    /// The same with this record.
    pub fn queue_record(&mut self, id: EntryId, precedence: Precedence, record: Bytes) {
        self.store.entries.insert((precedence, id), record.clone());
        self.feed(Input::Recovered { precedence, id, record });
    }

    /// Whether an entry is still in the store.
    pub fn is_queued(&self, entry: EntryId) -> bool {
        self.store.entries.keys().any(|(_, id)| *id == entry)
    }

    /// Hands the node an input and carries out its outputs, and all that follows at this moment.
    pub fn feed(&mut self, input: Input) {
        self.inputs.push_back(input);
        self.settle();
    }

    /// Carries octets and answers until nothing is left to do at this moment.
    pub fn settle(&mut self) {
        let mut steps = 0u32;
        loop {
            steps += 1;
            assert!(steps < self.most_steps, "the bench does not come to rest");
            if self.verifies
                && let Some((token, principal, password)) = self.passwords.pop_front()
            {
                self.verified += 1;
                let right = (self.trusts)(&principal, &password);
                self.inputs.push_back(Input::Verified { token, right });
            } else if let Some(input) = self.inputs.pop_front() {
                self.handle(input);
            } else if let Some(id) = self.busy.pop_front() {
                self.arrive(id);
            } else {
                return;
            }
        }
    }

    fn handle(&mut self, input: Input) {
        let now = self.clock();
        if let Some(tape) = &mut self.tape {
            tape.input(now, &input);
        }
        match &mut self.handler {
            Some(handler) => handler(&mut self.node, now, input),
            None => self.node.handle(now, input),
        }
        if self.ticks && self.node.deadline().is_some_and(|at| at <= self.now) {
            self.inputs.push_back(Input::Tick);
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.node.poll() {
            if let Some(tape) = &mut self.tape {
                tape.output(&output);
            }
            self.carry_out(output);
        }
        if let Some(tape) = &mut self.tape {
            tape.step_ended();
        }
    }

    /// Another process begins, with a new node of the present configuration.
    pub fn renew(&mut self) {
        self.node = Node::new(self.config.clone());
        self.tape = Tape::begin("bench", self.clock(), &self.config, None);
    }

    /// The node is not recorded: the test hands it inputs itself.
    pub fn leave_unrecorded(&mut self) {
        self.tape = None;
    }

    /// The recording of the node so far, if nodes are recorded ([`crate::record_nodes`]).
    pub fn take_recording(&mut self) -> Option<Vec<u8>> {
        self.tape.take().map(Tape::end)
    }

    fn carry_out(&mut self, output: Output) {
        if let Output::ReadContent { association, .. } = &output
            && let Some(connection) = self.connections.get_mut(association)
            && connection.wire.is_full()
        {
            connection.wanted = Some(output);
            return;
        }
        let (now, delays) = (self.clock(), Delays::default());
        let output = match self.store.handle(now, &delays, &mut self.rng, output) {
            Ok(Reply::None) => return,
            Ok(Reply::After(_, input)) => return self.inputs.push_back(input),
            Ok(Reply::Commit(_)) => {
                let input = self.store.commit(&mut self.rng);
                return self.inputs.extend(input);
            }
            Err(output) => output,
        };
        match output {
            Output::Connect { association, channel } => {
                self.open_connection(association, channel.index);
            }
            Output::Write { association, bytes } => self.write(association, bytes),
            Output::Measure { association } => {
                let connection = self.connections.get_mut(&association);
                if let Some(octets) = connection.and_then(|c| c.wire.measure()) {
                    self.inputs.push_back(Input::Taken { association, octets });
                }
            }
            Output::Close { association } => {
                self.closed.insert(association);
                self.opening.remove(&association);
                if self.closes && self.forget(association) {
                    self.inputs.push_back(Input::Closed { association, error: None });
                }
            }
            Output::Drop { association } => {
                self.dropped.insert(association);
                self.opening.remove(&association);
                self.forget(association);
            }
            Output::Verify { token, principal, password } => {
                self.passwords.push_back((token, principal, password));
            }
            Output::ChangePassword { token, mailbox, old, new } => {
                let result = (self.changes)(&mailbox, &old);
                if result.is_ok() {
                    self.changed.push((mailbox.clone(), new));
                }
                self.inputs.push_back(Input::PasswordChanged { token, mailbox, result });
            }
            Output::Event(event) => self.note(*event),
            Output::ChannelConnected { request, outcome } => {
                self.connected.push((request, outcome));
            }
            Output::ChannelOrdered { request, result } => {
                self.ordered.push((request, result.map(|done| *done)));
            }
            Output::Operated { request, result } => self.operated.push((request, result)),
            Output::ShardLeft { shard, stays } => self.left.push((shard, stays)),
            Output::Stopped => self.stopped = true,
            // Nobody waits for the others, or the store has taken them.
            _ => {}
        }
    }

    fn note(&mut self, event: LogEvent) {
        let over = matches!(
            event.kind,
            Kind::AssociationOpened
                | Kind::AssociationLost
                | Kind::AssociationRefused
                | Kind::AssociationReleased
        );
        if let Some(id) = event.association {
            if over {
                self.opening.remove(&id);
            }
            if event.kind == Kind::TransferStarted
                && let Some(connection) = self.connections.get_mut(&id)
            {
                connection.entry = event.entry;
            }
        }
        self.events.push((self.now, event));
    }

    /// The configuration is read again, and perhaps is another one.
    pub fn reload(&mut self, change: impl FnOnce(&mut NodeConfig)) {
        change(&mut self.config);
        let config = Box::new(self.config.clone());
        self.feed(Input::Configure { config, edge: EdgeChanges::default() });
    }

    /// The disk reads so many pieces of contents more, and then hangs.
    pub fn read_on(&mut self, pieces: usize) {
        if let Some(input) = self.store.read_on(pieces) {
            self.feed(input);
        }
    }

    /// A commit that was withheld is made, or fails.
    pub fn finish_commit(&mut self, commit: (Token, Batch), result: Result<(), String>) {
        let input = self.store.answer_commit(commit, result);
        self.feed(input);
    }

    /// Time passes.
    pub fn pass(&mut self, time: Duration) {
        self.pass_until(time, |_| false);
    }

    /// Time passes until something is so, for so long at most.
    pub fn pass_until(&mut self, time: Duration, mut is_so: impl FnMut(&Bench) -> bool) {
        let until = self.now + time;
        while !is_so(self) {
            let there = self.connections.iter().filter(|(_, connection)| !connection.gone);
            let arrivals = there.filter_map(|(id, c)| Some((c.wire.deadline()?, *id)));
            let arrivals: Vec<(Instant, AssociationId)> = arrivals.collect();
            let arrival = arrivals.iter().map(|(at, _)| *at).min();
            let failure = self.silent.values().min().copied();
            let all = [arrival, failure, self.node.deadline()];
            let Some(at) = all.into_iter().flatten().min().filter(|at| *at <= until) else {
                self.now = until;
                return self.settle();
            };
            self.now = self.now.max(at);
            let due = arrivals.into_iter().filter(|(at, _)| *at <= self.now);
            self.busy.extend(due.map(|(_, id)| id));
            let due = self.silent.iter().filter(|(_, at)| **at <= self.now);
            for association in due.map(|(id, _)| *id).collect::<Vec<_>>() {
                self.silent.remove(&association);
                self.opening.remove(&association);
                let error = "no answer within 10s".to_owned();
                self.feed(Input::ConnectFailed { association, error });
            }
            self.settle();
            if self.node.deadline().is_some_and(|at| at <= self.now) {
                self.feed(Input::Tick);
            }
        }
    }
}
