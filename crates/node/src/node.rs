//! The node itself: dispatch of inputs, the drain of its associations, and its deadline.

use crate::access::Access;
use crate::agenda::Agenda;
use crate::api::{ChannelId, Input, Output, Token};
use crate::association::{Association, Drain, Phase, Purpose};
use crate::blame::Blame;
use crate::breaks::Breaks;
use crate::channel::ChannelState;
use crate::config::{NodeConfig, Peer};
use crate::configured::Configured;
use crate::connection_table::ConnectionTable;
use crate::event::{Event, Kind, Level};
use crate::late::Late;
use crate::log_rate::LogRateLimiter;
use crate::marks::{Due, Marked};
use crate::memory::Memory;
use crate::minimize::Minimizing;
use crate::pending::{Pending, PendingRetry};
use crate::queue::Queue;
use crate::receiving::Arrival;
use crate::recovery::Recovery;
use crate::reload::UnroutedEntries;
use crate::reroute::Reroutes;
use crate::slices::Step;
use crate::tally::Tally;
use base::rng::Rng;
use base::{AssociationId, BodyId, EntryId, Instant, Now, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, Digest, Op, SpoolId};
use engine::{Brief, Engine, NewEntry, NextHop, Record};
use osi::api as stack;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Wait before a failed change that must be made is tried again.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How often keys whose time is over are dropped from the store.
pub(crate) const FORGET_EVERY: Duration = Duration::from_secs(600);

/// Keys dropped by one commit: 10 ms of work, or less, that others' commits wait for.
const FORGET_MOST: usize = 500;

/// Pause before the next of them are dropped, in which others commit.
const FORGET_PAUSE: Duration = Duration::from_millis(50);

/// A whole MTA. See [`crate::api`] for the contract.
#[derive(Debug)]
pub struct Node {
    pub(crate) config: Configured,
    pub(crate) engine: Engine,
    pub(crate) queue: Queue,
    pub(crate) associations: Marked<AssociationId, Association>,
    /// The same by channel and address, and those being turned away.
    pub(crate) connections: ConnectionTable,
    pub(crate) turned_away: BTreeSet<AssociationId>,
    pub(crate) access: Access,
    pub(crate) log_rate: LogRateLimiter,
    pub(crate) memory: Memory,
    pub(crate) breaks: Breaks,
    pub(crate) channels: Marked<ChannelId, ChannelState>,
    /// What is to be looked at, because something it depends on was touched or is due.
    pub(crate) agenda: Agenda,
    pub(crate) pending: BTreeMap<Token, Pending>,
    /// What is being received, by its spool.
    pub(crate) arrivals: BTreeMap<SpoolId, Arrival>,
    /// Long work of which a part is done, in the order in which it goes on, and since when it waits.
    pub(crate) steps: VecDeque<(Instant, Step)>,
    /// Keys whose commit is under way.
    pub(crate) committing: BTreeSet<Digest>,
    /// Changes the store could not make that must be made: tried again at the time given.
    retries: BTreeMap<(Instant, u64), PendingRetry>,
    last_retry: u64,
    /// How many retries the store is being asked to pay.
    paying: usize,
    /// Arrivals that wait for keys of others, and whether some were freed.
    pub(crate) blocked: Vec<SpoolId>,
    pub(crate) unblock: bool,
    /// Entries that an operator holds, some of them perhaps gone.
    pub(crate) held: BTreeSet<EntryId>,
    /// Records of what was queued by the input that is being handled: what starts at once needs no
    /// other look at the disk.
    pub(crate) fresh: BTreeMap<EntryId, Record>,
    /// Whose fault it was where associations ended under transfers.
    pub(crate) blame: Blame,
    /// When the store is next asked to forget old keys.
    forget_at: Option<Instant>,
    /// The request to forget some that is under way.
    forgetting: Option<Token>,
    pub(crate) recovery: Recovery,
    /// Associations that end because the configuration changed, and removed channels as they were,
    /// as long as there are associations of them.
    pub(crate) draining: BTreeSet<AssociationId>,
    pub(crate) former: Vec<Peer>,
    pub(crate) unrouted: UnroutedEntries,
    pub(crate) reroutes: Reroutes,
    pub(crate) late: Late,
    pub(crate) minimizing: Minimizing,
    pub(crate) tally: Tally,
    /// When it was started.
    pub(crate) started_at: Option<Utc>,
    pub(crate) rng: Rng,
    pub(crate) started: bool,
    /// A record of the store could not be read: what it needs is not known.
    unreadable: bool,
    pub(crate) stopping: bool,
    stopped: bool,
    outputs: VecDeque<Output>,
    dirty: BTreeSet<AssociationId>,
    deadlines: Due<AssociationId>,
    last_token: u64,
    last_association: u64,
    last_spool: u64,
    last_reference: u64,
}

impl Node {
    /// A node that knows its configuration and nothing else: hand in what the store holds with
    /// [`Input::Recovered`], then [`Input::Started`].
    pub fn new(config: NodeConfig) -> Node {
        let mut channels = Marked::default();
        for (id, _) in config.peers.iter().flat_map(Peer::channels) {
            channels.insert(id, ChannelState::default());
        }
        let engine = Engine::new(crate::config::engine_config(&config));
        Node {
            engine,
            queue: Queue::new(crate::config::channel_rules(&config), config.hold),
            associations: Marked::default(),
            connections: ConnectionTable::default(),
            turned_away: BTreeSet::new(),
            access: Access::new(&config.limits),
            log_rate: LogRateLimiter::default(),
            memory: Memory::default(),
            breaks: Breaks::default(),
            channels,
            agenda: Agenda::default(),
            pending: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            steps: VecDeque::new(),
            committing: BTreeSet::new(),
            retries: BTreeMap::new(),
            last_retry: 0,
            paying: 0,
            blocked: Vec::new(),
            unblock: false,
            held: BTreeSet::new(),
            fresh: BTreeMap::new(),
            blame: Blame::default(),
            forget_at: None,
            forgetting: None,
            recovery: Recovery::default(),
            draining: BTreeSet::new(),
            former: Vec::new(),
            unrouted: UnroutedEntries::default(),
            reroutes: Reroutes::default(),
            late: Late::default(),
            minimizing: Minimizing::default(),
            tally: Tally::default(),
            started_at: None,
            rng: Rng::new(config.seed),
            started: false,
            unreadable: false,
            stopping: false,
            stopped: false,
            outputs: VecDeque::new(),
            dirty: BTreeSet::new(),
            deadlines: Due::default(),
            last_token: 0,
            last_association: 0,
            last_spool: 0,
            last_reference: 0,
            config: Configured::new(config),
        }
    }

    /// An identifier for a connection the edge accepted.
    pub fn next_association(&mut self) -> AssociationId {
        self.last_association += 1;
        AssociationId(self.last_association)
    }

    /// Takes one input; drain [`Node::poll`] afterwards.
    pub fn handle(&mut self, now: Now, input: Input) {
        let clock = now;
        let now = self.watch_clock(clock);
        self.engine.clock_may_be_ahead(now.utc.since(self.queue.wall.earliest(clock)));
        match input {
            Input::RecoveredClock(value) => self.recovered_clock(now, &value),
            Input::AcceptClock => self.accept_clock(now),
            Input::RecoveredHolds(value) => self.recovered_holds(&value),
            Input::Recovered { precedence, id, record } => {
                self.recovered(now, precedence, id, &record);
            }
            Input::RecoveredBodies(bodies) => self.drop_unneeded(bodies),
            Input::Started => {
                self.started = true;
                self.log_clock_at_start(now);
                self.started_at = Some(now.utc);
                self.look_at_minimize(now);
                self.log_late_at_start(now);
                self.keep_schedules(now);
                self.touch_all();
                self.forget_at = Some(now.mono + FORGET_EVERY);
            }
            Input::Connected { association } => self.connected(now, association),
            Input::ConnectFailed { association, error } => {
                self.connect_failed(now, association, &error);
            }
            Input::Accepted { association, listener, remote } => {
                self.accepted(now, association, listener, remote);
            }
            Input::MarkSeen { association, dscp } => self.mark_seen(association, dscp),
            Input::Bytes { association, bytes } => {
                self.feed(now, association, stack::Input::Bytes(&bytes));
            }
            Input::Taken { association, octets } => self.taken(now, association, octets),
            Input::Closed { association, error } => {
                self.closed(now, association, error.as_deref());
            }
            Input::Synced { spool: _, token, result } => self.synced(now, token, result),
            Input::SpoolFailed { spool, error } => self.spool_failed(spool, &error),
            Input::Committed { token, result } => self.committed(now, token, result),
            Input::Loaded { token, result } => self.loaded(now, token, result),
            Input::LookedUp { token, result } => self.looked_up(now, token, result),
            Input::Forgot { token, result } => self.forgot(now, token, &result),
            Input::Content { token, result } => self.content(token, result),
            Input::Verified { token, right } => self.verified(now, token, right),
            Input::Tick => self.tick(now),
            Input::Mailboxes { addresses, changed } => {
                self.engine.set_mailboxes(addresses.iter().cloned().collect());
                self.config.mailboxes = addresses;
                self.end_users(&changed);
            }
            Input::Configure { config, edge } => self.configure(now, *config, &edge),
            Input::Minimize { scope, floor, until } => {
                self.order_minimize(now, scope, floor, until);
            }
            Input::Operate { request, entries, hold } => {
                self.hold_or_release(now, request, entries, hold);
            }
            Input::ConnectChannel { request, channel } => {
                self.connect_channel(now, request, channel);
            }
            Input::Stop => self.stop(now),
        }
        self.settle(now);
    }

    /// The next thing to be done, until `None`.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to hand in [`Input::Tick`].
    pub fn deadline(&self) -> Option<Instant> {
        let retries = self.retries.first_key_value().map(|((at, _), _)| *at);
        [
            self.deadlines.first(),
            self.queue.scheduler.deadline(),
            self.agenda.deadline(),
            retries,
            self.forget_at,
            self.recovery.deadline(),
            self.unrouted_deadline(),
            self.clock_deadline(),
            self.log_rate.deadline(),
            self.late_deadline(),
            self.minimizing.deadline(),
            self.access.deadline(),
            self.steps_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    // ----- inside -------------------------------------------------------------------------------

    pub(crate) fn output(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    pub(crate) fn token(&mut self, pending: Pending) -> Token {
        self.last_token += 1;
        let token = Token(self.last_token);
        self.pending.insert(token, pending);
        token
    }

    /// A number for a transfer, unlike that of any token.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.last_token += 1;
        self.last_token
    }

    pub(crate) fn next_spool(&mut self) -> SpoolId {
        self.last_spool += 1;
        SpoolId(self.last_spool)
    }

    /// A number for a session connection reference, unique with the epoch.
    pub(crate) fn next_reference(&mut self) -> u64 {
        self.last_reference += 1;
        self.last_reference
    }

    pub(crate) fn event(
        &mut self,
        level: Level,
        kind: Kind,
        detail: impl Into<String>,
    ) -> EventDraft<'_> {
        EventDraft {
            event: Event {
                level,
                kind,
                association: None,
                channel: None,
                message: None,
                entry: None,
                precedence: None,
                bytes: None,
                detail: bounded(detail.into()),
            },
            outputs: &mut self.outputs,
            tally: &mut self.tally,
        }
    }

    /// Marks an association as having requests to hand to its stack.
    pub(crate) fn touch(&mut self, id: AssociationId) {
        self.dirty.insert(id);
    }

    /// Queues a request for an association's stack.
    pub(crate) fn request(&mut self, id: AssociationId, request: stack::Request) {
        if let Some(link) = self.associations.get_mut(&id) {
            link.request(request);
            self.dirty.insert(id);
        }
    }

    /// Hands something to an association's stack; its outputs are drained by [`Node::settle`].
    pub(crate) fn feed(&mut self, now: Now, id: AssociationId, input: stack::Input<'_>) {
        if let Some(link) = self.associations.get_mut(&id) {
            link.stack.handle(now.mono, input);
            self.drain(now, id);
            self.dirty.insert(id);
        }
    }

    /// Until nothing moves any more: drains every touched association, then gives idle ones work.
    fn settle(&mut self, now: Now) {
        loop {
            while let Some(id) = self.dirty.pop_first() {
                self.pump(now, id);
            }
            self.retry_blocked(now);
            self.mind_channels(now);
            let touched = self.associations.take_marks();
            self.end_drained(now, &touched);
            self.read_unrouted(now);
            self.note_touched(touched);
            self.dispatch(now);
            self.pause_and_go_on(now);
            if self.dirty.is_empty() && !self.has_more_to_dispatch() {
                break;
            }
        }
        self.fresh.clear();
        #[cfg(debug_assertions)]
        self.check_settled(now);
        self.see_to_late(now);
        let at_work = !self.pending.is_empty() || !self.steps.is_empty();
        if self.stopping && !self.stopped && self.associations.is_empty() && !at_work {
            self.stopped = true;
            self.output(Output::Stopped);
        }
    }

    /// How much was said so far, and to how many it is still to be said.
    #[cfg(debug_assertions)]
    pub(crate) fn progress(&self) -> (usize, u64, u64, usize) {
        (self.outputs.len(), self.last_token, self.last_association, self.dirty.len())
    }

    /// Hands queued requests to a stack, one after each drain, and files its deadline.
    fn pump(&mut self, now: Now, id: AssociationId) {
        while let Some(link) = self.associations.get_mut(&id) {
            let Some(request) = link.requests.pop_front() else { break };
            link.stack.handle(now.mono, stack::Input::Request(request));
            self.drain(now, id);
        }
        self.plan_look(now, id);
        if let Some(link) = self.associations.get(&id) {
            self.deadlines.set(id, link.deadline());
        }
    }

    fn drain(&mut self, now: Now, id: AssociationId) {
        while let Some(output) = self.associations.get_mut(&id).and_then(|link| link.stack.poll()) {
            match output {
                stack::Output::Send(bytes) => {
                    self.output(Output::Write { association: id, bytes });
                }
                stack::Output::Close => self.output(Output::Close { association: id }),
                stack::Output::Indication(indication) => self.indication(now, id, indication),
            }
        }
    }

    fn indication(&mut self, now: Now, id: AssociationId, indication: stack::Indication) {
        let Some(link) = self.associations.get(&id) else { return };
        match link.purpose {
            Purpose::Initiator { channel } => {
                self.initiator_indication(now, id, channel, indication);
            }
            Purpose::Responder { channel, .. } => {
                self.responder_indication(now, id, channel, indication);
            }
            Purpose::User { .. } => self.user_indication(now, id, indication),
        }
    }

    /// Removes an association whose connection has ended.
    pub(crate) fn remove_association(&mut self, id: AssociationId) -> Option<Association> {
        let link = self.associations.remove(&id)?;
        self.deadlines.set(id, None);
        self.agenda.gone(id, link.channel());
        self.dirty.remove(&id);
        self.turned_away.remove(&id);
        self.connections.gone(id, link.channel(), link.origin);
        if let Some(origin) = link.origin {
            self.access.forget(id, origin, link.presented);
        }
        self.is_drained(id);
        Some(link)
    }

    fn closed(&mut self, now: Now, id: AssociationId, error: Option<&str>) {
        if let Some(link) = self.associations.get_mut(&id) {
            // What made us end it says more than how it ended.
            let why = link.transport_error.take();
            link.transport_error = why.or_else(|| error.map(str::to_owned));
        }
        self.feed(now, id, stack::Input::Eof);
        let Some(link) = self.associations.get_mut(&id) else { return };
        if link.phase != Phase::Over {
            // The stack said nothing: the connection went before it was of any use.
            self.association_over(now, id, Kind::AssociationLost, "the connection closed");
        }
        self.remove_association(id);
    }

    fn tick(&mut self, now: Now) {
        while let Some(id) = self.deadlines.pop(now.mono) {
            if self.associations.get_mut(&id).is_some_and(|link| link.take_due_look(now.mono)) {
                self.look(id);
            }
            if let Some(link) = self.associations.get_mut(&id) {
                let late = |at: Option<Instant>| at.is_some_and(|at| at <= now.mono);
                let late_with = [
                    (&mut link.bind_deadline, "no association in time (limits.bind_timeout)"),
                    (&mut link.delivery_deadline, "the user did not answer a delivery in time"),
                    (&mut link.argument_deadline, "an argument did not come in time"),
                    (&mut link.turn_deadline, "the peer did not give the turn in time"),
                ];
                let why = late_with.into_iter().find_map(|(at, why)| {
                    late(*at).then(|| {
                        *at = None;
                        why
                    })
                });
                if let Some(why) = why {
                    link.transport_error = Some(why.to_owned());
                    link.request(stack::Request::Abort(stack::AbortReason::TemporaryProblem));
                }
            }
            self.feed(now, id, stack::Input::Tick);
        }
        self.mind_recovery(now);
        self.mind_channels(now);
        self.close_idle(now);
        self.log_limited(now);
        self.verify_waiting(now);
        self.tick_minimize(now);
        self.retry_due(now);
        self.forget_seen(now);
        self.step_on(now);
        self.keep_clock(now);
    }

    /// Lets the store forget keys whose time is over.
    fn forget_seen(&mut self, now: Now) {
        if self.forget_at.is_some_and(|at| at > now.mono) {
            return;
        }
        self.forget_at = Some(now.mono + FORGET_EVERY);
        if self.queue.wall.is_doubted() {
            return; // what is forgotten by a wrong clock may be taken again
        }
        self.write_clock(now);
        // Not among what is pending: nobody waits for it, a stop does not either.
        self.last_token += 1;
        let token = Token(self.last_token);
        self.forgetting = Some(token);
        self.output(Output::ForgetSeen { token, before: now.utc, most: FORGET_MOST });
    }

    /// Some keys are forgotten: the next, where there are more, after a pause. After a failure it is
    /// tried again at the usual time.
    fn forgot(&mut self, now: Now, token: Token, result: &Result<bool, String>) {
        if self.forgetting.take_if(|asked| *asked == token).is_some() && *result == Ok(true) {
            self.forget_at = Some(now.mono + FORGET_PAUSE);
        }
    }

    /// The store is asked to pay a retry.
    pub(crate) fn asks_to_pay(&mut self) {
        self.paying += 1;
    }

    /// A retry was paid, or goes back to the others.
    pub(crate) fn retry_answered(&mut self) {
        self.paying = self.paying.saturating_sub(1);
    }

    /// How many more records may be read whose reading ends in a retry, of at most so many: each is
    /// whole in memory until it is paid. None while some wait: the store takes nothing now.
    pub(crate) fn room_for_retries(&self, reading: usize, most: usize) -> usize {
        if !self.started || self.stopping || !self.retries.is_empty() {
            return 0;
        }
        most.saturating_sub(reading + self.paying)
    }

    /// A change that could not be made is tried again in a while.
    pub(crate) fn retry_later(&mut self, now: Now, retry: PendingRetry) {
        self.last_retry += 1;
        self.retries.insert((now.mono + RETRY_AFTER, self.last_retry), retry);
    }

    fn retry_due(&mut self, now: Now) {
        while let Some(first) = self.retries.first_entry().filter(|e| e.key().0 <= now.mono) {
            let mut retry = first.remove();
            self.renew_held(&mut retry.batch);
            self.commit(retry.batch.clone(), Pending::Retry(retry));
        }
    }

    fn recovered(&mut self, now: Now, precedence: Precedence, id: EntryId, record: &Bytes) {
        // Not its envelope: there may be a million of them.
        match Record::peek(record) {
            Ok(brief) => {
                self.enqueue(now, id, precedence, &brief);
                self.reroute_if_too_long(now, id, &brief, record);
            }
            Err(error) => {
                self.unreadable = true;
                self.event(Level::Error, Kind::StoreFailed, format!("unreadable record: {error}"))
                    .entry(id);
            }
        }
    }

    /// By a bound that is new: routed again, it is reported.
    fn reroute_if_too_long(&mut self, now: Now, id: EntryId, brief: &Brief<'_>, record: &Bytes) {
        let NextHop::Peer(peer) = *brief.next_hop else { return };
        let most = self.config.peer(peer).and_then(|peer| peer.content_max);
        if most.is_some_and(|most| brief.size > most)
            && let Ok(record) = Record::decode(record)
        {
            self.reroute(now, id, &record);
        }
    }

    /// Drops of these contents those that no entry needs.
    fn drop_unneeded(&mut self, bodies: Vec<BodyId>) {
        if self.unreadable || self.started {
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

    /// Takes up an entry that is durable.
    pub(crate) fn enqueue(
        &mut self,
        now: Now,
        id: EntryId,
        precedence: Precedence,
        brief: &Brief<'_>,
    ) {
        if let NextHop::Peer(peer) = *brief.next_hop {
            self.note_stray(peer);
        }
        self.queue.insert(now, id, precedence, brief, &self.config.times);
        if self.held.contains(&id) {
            self.queue.scheduler.hold(id);
        }
    }

    pub(crate) fn enqueue_new(&mut self, now: Now, entries: Vec<NewEntry>) {
        for entry in entries {
            self.enqueue(now, entry.id, entry.precedence, &entry.record.brief());
            self.fresh.insert(entry.id, entry.record);
        }
    }

    fn stop(&mut self, now: Now) {
        let again = std::mem::replace(&mut self.stopping, true);
        if !again {
            self.write_clock(now);
        }
        let ids: Vec<AssociationId> = self.associations.keys().copied().collect();
        for id in ids {
            if again
                && self.associations.get(&id).is_some_and(|link| link.phase != Phase::Connecting)
            {
                self.request(id, stack::Request::Abort(stack::AbortReason::TemporaryProblem));
            } else {
                self.wind_down(now, id);
            }
        }
    }

    /// Brings one association to its end: releases it where idle, interrupts a long transfer at its
    /// next checkpoint, lets the rest finish.
    pub(crate) fn wind_down(&mut self, now: Now, id: AssociationId) {
        let Some(link) = self.associations.get(&id) else { return };
        let interrupts = self.stopping || link.leaving || link.drain == Some(Drain::Removed);
        match link.phase {
            Phase::Connecting => {
                let why = match (self.stopping, link.leaving) {
                    (true, _) => "stopping",
                    (false, true) => "its window has ended",
                    (false, false) => "its channel has changed",
                };
                self.output(Output::Close { association: id });
                self.association_over(now, id, Kind::AssociationReleased, why);
            }
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
            Phase::Releasing | Phase::Refusing | Phase::Over => {}
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

/// What the log says of the copies of a message that were committed together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Copies {
    /// The one, where there is no other.
    entry: Option<EntryId>,
    precedence: Option<Precedence>,
    bytes: Option<u64>,
}

impl Copies {
    pub(crate) fn of(message: &str, entries: &[NewEntry]) -> Copies {
        let mut its = entries.iter().filter(|entry| entry.record.message == message);
        let Some(first) = its.next() else { return Copies::default() };
        Copies {
            entry: its.next().is_none().then_some(first.id),
            precedence: Some(first.precedence),
            bytes: first.record.body.map(|_| first.record.size),
        }
    }
}

/// An event being put together; it is given out when dropped.
pub(crate) struct EventDraft<'a> {
    event: Event,
    outputs: &'a mut VecDeque<Output>,
    tally: &'a mut Tally,
}

/// Most octets of an event's detail: it may quote what a peer sent.
const MAX_DETAIL: usize = 500;

/// The beginning of a text that is too long for the log, marked as one.
fn bounded(mut detail: String) -> String {
    if detail.len() > MAX_DETAIL {
        detail.truncate(detail.floor_char_boundary(MAX_DETAIL));
        detail.push('…');
    }
    detail
}

impl EventDraft<'_> {
    pub(crate) fn association(mut self, id: AssociationId) -> Self {
        self.event.association = Some(id);
        self
    }
    pub(crate) fn channel(mut self, channel: Option<ChannelId>) -> Self {
        self.event.channel = channel;
        self
    }
    pub(crate) fn message(mut self, message: impl Into<String>) -> Self {
        self.event.message = Some(message.into());
        self
    }
    pub(crate) fn entry(mut self, entry: EntryId) -> Self {
        self.event.entry = Some(entry);
        self
    }
    pub(crate) fn precedence(mut self, precedence: Precedence) -> Self {
        self.event.precedence = Some(precedence);
        self
    }
    pub(crate) fn bytes(mut self, bytes: Option<u64>) -> Self {
        self.event.bytes = bytes;
        self
    }
    /// A message and what was committed for it.
    pub(crate) fn committed(mut self, message: String, copies: Copies) -> Self {
        self.event.entry = copies.entry;
        self.event.precedence = copies.precedence;
        self.event.bytes = copies.bytes;
        self.message(message)
    }
}

impl Drop for EventDraft<'_> {
    fn drop(&mut self) {
        let blank = Event {
            level: Level::Info,
            kind: self.event.kind,
            association: None,
            channel: None,
            message: None,
            entry: None,
            precedence: None,
            bytes: None,
            detail: String::new(),
        };
        self.tally.count(&self.event);
        self.outputs.push_back(Output::Event(std::mem::replace(&mut self.event, blank)));
    }
}
