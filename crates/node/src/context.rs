//! What the machines of a node share.

use crate::api::{Output, Token};
use crate::association::{Association, Drain, Phase, Purpose};
use crate::commits::Commits;
use crate::config::{NodeConfig, Peer};
use crate::configured::Configured;
use crate::connection_table::ConnectionTable;
use crate::event::{Kind, Level};
use crate::event_draft::EventDraft;
use crate::issued::Issued;
use crate::key_reservations::KeyReservations;
use crate::lifecycle::Lifecycle;
use crate::log_rate::LogRateLimiter;
use crate::marks::Marked;
use crate::pending::{Pending, PendingRetry};
use crate::queue::Queue;
use crate::recovery::Recovery;
use crate::slices::Step;
use crate::tally::Tally;
use crate::work::Work;
use base::rng::Rng;
use base::{AssociationId, BodyId, Instant, Now};
use engine::Engine;
use engine::journal::{Batch, Op};
use osi::api as stack;
use std::collections::VecDeque;
use std::time::Duration;

/// How often keys whose time is over are dropped from the store.
pub(crate) const FORGET_EVERY: Duration = Duration::from_secs(600);

/// Keys dropped by one commit: 10 ms of work, or less, that others' commits wait for.
const FORGET_MOST: usize = 500;

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
}

impl Context {
    // ----- inside -------------------------------------------------------------------------------

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

    /// Lets the store forget keys whose time is over.
    pub(crate) fn forget_seen(&mut self, now: Now) {
        if self.commits.forget_at.is_some_and(|at| at > now.mono) {
            return;
        }
        self.commits.forget_at = Some(now.mono + FORGET_EVERY);
        if self.queue.wall.is_doubted() {
            return; // what is forgotten by a wrong clock may be taken again
        }
        self.write_clock(now);
        // Not among what is pending: nobody waits for it, a stop does not either.
        self.issued.token += 1;
        let token = Token(self.issued.token);
        self.commits.forgetting = Some(token);
        self.output(Output::ForgetSeen { token, before: now.utc, most: FORGET_MOST });
    }

    /// How many more records may be read whose reading ends in a retry, of at most so many: each is
    /// whole in memory until it is paid. None while some wait: the store takes nothing now.
    pub(crate) fn room_for_retries(&self, reading: usize, most: usize) -> usize {
        if !self.life.started || self.life.stopping || !self.commits.retries.is_empty() {
            return 0;
        }
        most.saturating_sub(reading + self.commits.retrying)
    }

    pub(crate) fn retry_due(&mut self, now: Now) {
        while let Some(first) = self.commits.retries.first_entry().filter(|e| e.key().0 <= now.mono)
        {
            let mut retry = first.remove();
            self.renew_held(&mut retry.batch);
            self.commit(retry.batch.clone(), Pending::Retry(retry));
        }
    }

    /// Drops of these contents those that no entry needs.
    pub(crate) fn drop_unneeded(&mut self, bodies: Vec<BodyId>) {
        if self.life.unreadable || self.life.started {
            return;
        }
        let unneeded = bodies.into_iter().filter(|body| !self.queue.needs(*body));
        let batch: Batch = unneeded.map(|id| Op::DeleteBody { id }).collect();
        if !batch.is_empty() {
            let detail = format!("{} contents that nothing needed any more", batch.len());
            self.event(Level::Info, Kind::Discarded, detail);
            let retry = PendingRetry { batch, entries: Vec::new(), bodies: Vec::new() };
            self.commit(retry.batch.clone(), Pending::Retry(retry));
        }
    }

    /// Brings an association with a connection to its end: releases it where idle, interrupts a
    /// long transfer at its next checkpoint, lets the rest finish.
    pub(crate) fn finish(&mut self, id: AssociationId) {
        let Some(link) = self.associations.get(&id) else { return };
        let interrupts = self.life.stopping || link.leaving || link.drain == Some(Drain::Removed);
        match link.phase {
            Phase::Opening => {
                self.request(id, stack::Request::Abort(stack::AbortReason::TemporaryProblem));
            }
            Phase::Open if link.is_idle() => self.release(id),
            Phase::Open => {
                let sends = link.sending.as_ref().is_some_and(|s| !s.confirmed);
                let is_p1 = link.channel().is_some();
                // A peer's transfer to us, or a delivery, may finish; the edge bounds the wait.
                if sends && is_p1 && interrupts && !link.interrupting {
                    if let Some(link) = self.associations.get_mut(&id) {
                        link.interrupting = true;
                    }
                    self.request(id, stack::Request::Interrupt);
                }
            }
            Phase::Connecting | Phase::Releasing | Phase::Refusing | Phase::Over => {}
        }
    }

    pub(crate) fn release(&mut self, id: AssociationId) {
        if let Some(link) = self.associations.get_mut(&id) {
            link.phase = Phase::Releasing;
            // Who did not open a P1 association, or has not the turn, may not release it
            // (X.228 7.2.1): it aborts.
            let request = match link.purpose {
                Purpose::Initiator { .. } if link.turn => stack::Request::Release,
                _ => stack::Request::Abort(stack::AbortReason::TemporaryProblem),
            };
            self.request(id, request);
        }
    }
}
