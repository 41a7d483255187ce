//! A site: its node, its store and what it did.

use super::Operated;
use super::crash::Strike;
use crate::events::Events;
use crate::store::{Delays, FaultyStore};
use crate::tape::Tape;
use base::{EntryId, Instant, Now};
use node::Node;
use node::config::NodeConfig;
use node::event::LogEvent;
use std::collections::VecDeque;

/// A site.
pub struct Site<S = FaultyStore> {
    /// Its node.
    pub node: Node,
    /// Its store.
    pub store: S,
    /// Its present configuration.
    pub config: NodeConfig,
    /// The number of times it was started.
    pub epoch: u32,
    /// No process runs.
    pub is_down: bool,
    /// When its processes died.
    pub deaths: Vec<Instant>,
    /// Its events, each with its time.
    pub events: Vec<(Instant, LogEvent)>,
    /// Whether it has stopped in order.
    pub stopped: bool,
    /// The answers to operators, each with the number of its request.
    pub operated: Vec<(u64, Operated)>,
    /// Answers to orders that delete items of mailboxes.
    pub purged: Vec<(u64, Result<u64, String>)>,
    /// Answers to changes of distribution lists.
    pub lists_changed: Vec<(u64, Result<(), node::lists::ListsError>)>,
    /// Outputs so far, of all its processes; events do not count.
    pub outputs: u64,
    /// The crashes that are still due, in order of their time.
    pub strikes: VecDeque<Strike>,
    /// Whether it may open connections.
    pub may_connect: bool,
    /// Whether it finds every password of a peer wrong.
    pub distrusts: bool,
    /// Whether its process hangs: octets of peers are lost.
    pub frozen: bool,
    /// Its process is stopped, and gets what comes when it continues.
    pub sleeps_until: Instant,
    /// Both its clocks gain so many microseconds in a second.
    pub gains: i64,
    /// Its wall clock is ahead by so many microseconds.
    pub clock_set: i64,
    /// Delays of its disk, if they are not those of the network.
    pub delays: Option<Delays>,
    /// The sites to which it has a link.
    pub(super) others: Vec<usize>,
    /// The recordings of its processes that have ended, the oldest first, if nodes are recorded.
    pub recordings: Vec<Vec<u8>>,
    pub(super) tape: Option<Tape>,
}

impl<S> Site<S> {
    pub(super) fn new(config: NodeConfig, others: Vec<usize>, store: S) -> Site<S> {
        Site {
            node: Node::new(config.clone()),
            store,
            config,
            epoch: 1,
            is_down: true,
            deaths: Vec::new(),
            events: Vec::new(),
            stopped: false,
            operated: Vec::new(),
            purged: Vec::new(),
            lists_changed: Vec::new(),
            outputs: 0,
            strikes: VecDeque::new(),
            may_connect: true,
            distrusts: false,
            frozen: false,
            sleeps_until: Instant(0),
            gains: 0,
            clock_set: 0,
            delays: None,
            others,
            recordings: Vec::new(),
            tape: None,
        }
    }

    /// What its monotonic clock has at this time.
    #[must_use]
    pub fn local(&self, real: Instant) -> Instant {
        let gained = i128::from(real.0) * i128::from(self.gains) / 1_000_000;
        Instant(u64::try_from(i128::from(real.0) + gained).unwrap_or(0))
    }

    /// The first time at which its monotonic clock has this.
    pub(super) fn real(&self, local: Instant) -> Instant {
        let rate = 1_000_000 + i128::from(self.gains);
        let mut real = u64::try_from(i128::from(local.0) * 1_000_000 / rate).unwrap_or(u64::MAX);
        while self.local(Instant(real)) < local {
            real += 1;
        }
        Instant(real)
    }

    /// A new process has this node.
    pub(super) fn renew(&mut self, now: Now, first: Option<EntryId>) {
        self.end_tape();
        self.node = Node::new(self.config.clone()).numbering_entries(first);
        let origin = format!("{}, process {}", self.config.mta.0, self.epoch);
        self.tape = Tape::begin(&origin, now, &self.config, first);
    }

    /// Its recordings, with that of the present process.
    pub fn take_recordings(&mut self) -> Vec<Vec<u8>> {
        self.end_tape();
        std::mem::take(&mut self.recordings)
    }

    /// Its process is over, and its recording.
    pub(super) fn end_tape(&mut self) {
        let tape = self.tape.take().filter(|tape| tape.used);
        self.recordings.extend(tape.map(Tape::end));
    }
}

/// With the variable `RECORD_TESTS`, what was recorded is replayed.
impl<S> Drop for Site<S> {
    fn drop(&mut self) {
        if let Some(tape) = self.tape.take() {
            tape.judge();
        }
    }
}

impl<S> Events for Site<S> {
    fn all(&self) -> &[(Instant, LogEvent)] {
        &self.events
    }
}
