//! What the machines of a node share.

pub(crate) mod associations;
pub(crate) mod connection_table;
pub(crate) mod holds;
pub(crate) mod issued;
pub(crate) mod level;
pub(crate) mod lifecycle;
pub(crate) mod looks;
pub(crate) mod marks;
pub(crate) mod queue;
pub(crate) mod recovery;
pub(crate) mod sending;
pub(crate) mod steps;
pub(crate) mod work;

use crate::api::Output;
use crate::association::Association;
use crate::commits::Commits;
use crate::commits::key_reservations::KeyReservations;
use crate::commits::pending::Pending;
use crate::config::configured::Configured;
use crate::config::{NodeConfig, Peer};
use crate::context::connection_table::ConnectionTable;
use crate::context::issued::Issued;
use crate::context::lifecycle::Lifecycle;
use crate::context::marks::Marked;
use crate::context::queue::Queue;
use crate::context::recovery::Recovery;
use crate::context::steps::Step;
use crate::context::work::Work;
use crate::ids::Token;
use crate::log::draft::EventDraft;
use crate::log::event::{Kind, Level};
use crate::log::rate::LogRateLimiter;
use crate::log::tally::Tally;
use base::rng::Rng;
use base::{AssociationId, Instant};
use engine::Engine;
use osi::api as stack;
use std::collections::VecDeque;

/// What every machine reads, and the tables in which they meet: the associations, the queue, and
/// what is under way at the edge.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: Configured,
    /// Removed channels as they were, as long as there are associations of them.
    pub(crate) former: Vec<Peer>,
    pub(crate) engine: Engine,
    pub(crate) queue: Queue,
    pub(crate) associations: Marked<AssociationId, Association>,
    /// The same by channel and address.
    pub(crate) connections: ConnectionTable,
    /// Associations to go on with in this input, and the deadlines of all.
    pub(crate) work: Work,
    /// What was cut off, in either direction, and waits for its association to be recovered.
    pub(crate) recovery: Recovery,
    pub(crate) commits: Commits,
    pub(crate) keys: KeyReservations,
    /// Long work of which a part is done, in the order in which it goes on, and since when it waits.
    pub(crate) steps: VecDeque<(Instant, Step)>,
    pub(crate) life: Lifecycle,
    pub(crate) issued: Issued,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) tally: Tally,
    pub(crate) log_rate: LogRateLimiter,
    pub(crate) rng: Rng,
}

impl Context {
    pub(crate) fn new(config: NodeConfig) -> Context {
        Context {
            engine: Engine::new(crate::config::engine_config(&config)),
            queue: Queue::new(crate::config::channel_rules(&config), config.hold),
            associations: Marked::default(),
            connections: ConnectionTable::default(),
            work: Work::default(),
            recovery: Recovery::default(),
            commits: Commits::default(),
            keys: KeyReservations::default(),
            steps: VecDeque::new(),
            life: Lifecycle::default(),
            issued: Issued::default(),
            outputs: VecDeque::new(),
            tally: Tally::default(),
            log_rate: LogRateLimiter::default(),
            rng: Rng::new(config.seed),
            former: Vec::new(),
            config: Configured::new(config),
        }
    }

    pub(crate) fn output(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(crate) fn token(&mut self, pending: Pending) -> Token {
        self.issued.token += 1;
        let token = Token(self.issued.token);
        self.commits.pending.insert(token, pending);
        token
    }

    pub(crate) fn event(
        &mut self,
        level: Level,
        kind: Kind,
        detail: impl Into<String>,
    ) -> EventDraft<'_> {
        EventDraft::new(level, kind, detail.into(), &mut self.outputs, &mut self.tally)
    }

    /// Queues a request for an association's stack.
    pub(crate) fn request(&mut self, id: AssociationId, request: stack::Request) {
        if let Some(link) = self.associations.get_mut(&id) {
            link.request(request);
            self.work.dirty.insert(id);
        }
    }

    /// How much was said so far, and to how many it is still to be said.
    #[cfg(debug_assertions)]
    pub(crate) fn progress(&self) -> (usize, u64, u64, usize) {
        (self.outputs.len(), self.issued.token, self.issued.association, self.work.dirty.len())
    }

    /// When to go on: at once, but after whatever else there is to do.
    pub(crate) fn steps_deadline(&self) -> Option<Instant> {
        self.steps.front().map(|(since, _)| *since)
    }
}
