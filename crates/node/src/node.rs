//! The node itself: dispatch of inputs, the drain of its associations, and its deadline.

use crate::api::{ChannelId, Input, Output};
use crate::association::{Association, Phase, Purpose};
use crate::config::NodeConfig;
use crate::context::{Context, FORGET_EVERY};
use crate::event::Kind;
use crate::machines::{Admission, Arrivals, Delivery, Operations, Outbound};
use base::{AssociationId, Instant, Now};
use osi::api as stack;

/// A whole MTA: machines that own their state, and what they share. It takes what comes in to the
/// machine that it is for, and what one of them gives to another. See [`crate::api`] for the
/// contract.
#[derive(Debug)]
pub struct Node {
    pub(crate) cx: Context,
    pub(crate) admission: Admission,
    pub(crate) arrivals: Arrivals,
    pub(crate) outbound: Outbound,
    pub(crate) delivery: Delivery,
    pub(crate) operations: Operations,
}

impl Node {
    /// A node that knows its configuration and nothing else: hand in what the store holds with
    /// [`Input::Recovered`], then [`Input::Started`].
    pub fn new(config: NodeConfig) -> Node {
        Node {
            admission: Admission::new(&config.limits),
            arrivals: Arrivals::default(),
            outbound: Outbound::new(&config),
            delivery: Delivery::default(),
            operations: Operations::default(),
            cx: Context::new(config),
        }
    }

    /// An identifier for a connection the edge accepted.
    pub fn next_association(&mut self) -> AssociationId {
        self.cx.issued.next_association()
    }

    /// The names of a channel's peer and of the channel, for the log.
    pub fn place(&self, id: ChannelId) -> Option<(&str, &str)> {
        self.cx.place(id)
    }

    /// Takes one input; drain `poll` afterwards.
    pub fn handle(&mut self, now: Now, input: Input) {
        let clock = now;
        let now = self.cx.watch_clock(clock);
        self.cx.engine.clock_may_be_ahead(now.utc.since(self.cx.queue.wall.earliest(clock)));
        match input {
            Input::RecoveredClock(value) => self.cx.recovered_clock(now, &value),
            Input::AcceptClock => self.cx.accept_clock(now),
            Input::RecoveredHolds(value) => self.cx.recovered_holds(&value),
            Input::Recovered { precedence, id, record } => {
                self.outbound.recovered(&mut self.cx, now, precedence, id, &record);
            }
            Input::RecoveredBodies(bodies) => self.cx.drop_unneeded(bodies),
            Input::Started => {
                self.cx.life.started = true;
                self.cx.log_clock_at_start(now);
                self.cx.life.started_at = Some(now.utc);
                self.operations.look_at_minimize(&mut self.cx, now);
                self.cx.log_late_at_start(now);
                self.keep_schedules(now);
                self.outbound.touch_all(&mut self.cx);
                self.cx.commits.forget_at = Some(now.mono + FORGET_EVERY);
            }
            Input::Connected { association } => self.cx.connected(now, association),
            Input::ConnectFailed { association, error } => {
                self.connect_failed(now, association, &error);
            }
            Input::Accepted { association, listener, remote } => {
                self.accepted(now, association, listener, remote);
            }
            Input::MarkSeen { association, dscp } => self.cx.mark_seen(association, dscp),
            Input::Bytes { association, bytes } => {
                self.feed(now, association, stack::Input::Bytes(&bytes));
            }
            Input::Taken { association, octets } => self.taken(now, association, octets),
            Input::Closed { association, error } => {
                self.closed(now, association, error.as_deref());
            }
            Input::Synced { spool: _, token, result } => {
                self.arrivals.synced(&mut self.cx, now, token, result)
            }
            Input::SpoolFailed { spool, error } => {
                self.arrivals.spool_failed(&mut self.cx, spool, &error)
            }
            Input::Committed { token, result } => self.committed(now, token, result),
            Input::Loaded { token, result } => self.loaded(now, token, result),
            Input::LookedUp { token, result } => self.looked_up(now, token, result),
            Input::Forgot { token, result } => self.cx.commits.forgot(now, token, &result),
            Input::Content { token, result } => self.cx.content(token, result),
            Input::Verified { token, right } => self.verified(now, token, right),
            Input::Tick => self.tick(now),
            Input::Mailboxes { addresses, changed } => {
                self.cx.engine.set_mailboxes(addresses.iter().cloned().collect());
                self.cx.config.mailboxes = addresses;
                self.admission.end_users(&mut self.cx, &changed);
            }
            Input::Configure { config, edge } => self.configure(now, *config, &edge),
            Input::Minimize { scope, floor, until } => {
                self.operations.order_minimize(&mut self.cx, now, scope, floor, until);
            }
            Input::Operate { request, entries, hold } => {
                self.outbound.hold_or_release(&mut self.cx, now, request, entries, hold);
            }
            Input::ConnectChannel { request, channel } => {
                self.outbound.connect_channel(&mut self.cx, now, request, channel);
            }
            Input::Stop => self.stop(now),
        }
        self.settle(now);
    }

    /// The next thing to be done, until `None`.
    pub fn poll(&mut self) -> Option<Output> {
        self.cx.outputs.pop_front()
    }

    /// When to hand in [`Input::Tick`].
    pub fn deadline(&self) -> Option<Instant> {
        let retries = self.cx.commits.retries.first_key_value().map(|((at, _), _)| *at);
        [
            self.cx.work.deadlines.first(),
            self.cx.queue.scheduler.deadline(),
            self.outbound.agenda.deadline(),
            retries,
            self.cx.commits.forget_at,
            self.cx.recovery.deadline(),
            self.outbound.unrouted_deadline(&self.cx),
            self.cx.clock_deadline(),
            self.cx.log_rate.deadline(),
            self.outbound.late_deadline(&self.cx),
            self.operations.minimizing.deadline(),
            self.admission.access.deadline(),
            self.cx.steps_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Hands something to an association's stack; its outputs are drained by `settle`.
    pub(crate) fn feed(&mut self, now: Now, id: AssociationId, input: stack::Input<'_>) {
        if let Some(link) = self.cx.associations.get_mut(&id) {
            link.stack.handle(now.mono, input);
            self.drain(now, id);
            self.cx.work.dirty.insert(id);
        }
    }

    /// Until nothing moves any more: drains every touched association, then gives idle ones work.
    fn settle(&mut self, now: Now) {
        loop {
            while let Some(id) = self.cx.work.dirty.pop_first() {
                self.pump(now, id);
            }
            self.arrivals.retry_blocked(&mut self.cx, now);
            self.mind_channels(now);
            let touched = self.cx.associations.take_marks();
            self.end_drained(now, &touched);
            self.outbound.read_unrouted(&mut self.cx, now);
            self.outbound.note_touched(&mut self.cx, touched);
            self.dispatch(now);
            self.cx.pause_and_go_on(now);
            if self.cx.work.dirty.is_empty() && !self.outbound.has_more_to_dispatch(&self.cx) {
                break;
            }
        }
        self.cx.queue.fresh.clear();
        #[cfg(debug_assertions)]
        self.check_settled(now);
        self.outbound.see_to_late(&mut self.cx, now);
        let at_work = !self.cx.commits.pending.is_empty() || !self.cx.steps.is_empty();
        if self.cx.life.stopping
            && !self.cx.life.stopped
            && self.cx.associations.is_empty()
            && !at_work
        {
            self.cx.life.stopped = true;
            self.cx.output(Output::Stopped);
        }
    }

    /// Hands queued requests to a stack, one after each drain, and files its deadline.
    fn pump(&mut self, now: Now, id: AssociationId) {
        while let Some(link) = self.cx.associations.get_mut(&id) {
            let Some(request) = link.requests.pop_front() else { break };
            link.stack.handle(now.mono, stack::Input::Request(request));
            self.drain(now, id);
        }
        self.cx.plan_look(now, id);
        if let Some(link) = self.cx.associations.get(&id) {
            self.cx.work.deadlines.set(id, link.deadline());
        }
    }

    fn drain(&mut self, now: Now, id: AssociationId) {
        while let Some(output) =
            self.cx.associations.get_mut(&id).and_then(|link| link.stack.poll())
        {
            match output {
                stack::Output::Send(bytes) => {
                    self.cx.output(Output::Write { association: id, bytes });
                }
                stack::Output::Close => self.cx.output(Output::Close { association: id }),
                stack::Output::Indication(indication) => self.indication(now, id, indication),
            }
        }
    }

    fn indication(&mut self, now: Now, id: AssociationId, indication: stack::Indication) {
        let Some(link) = self.cx.associations.get(&id) else { return };
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
        let link = self.cx.associations.remove(&id)?;
        self.cx.work.deadlines.set(id, None);
        self.outbound.agenda.gone(id, link.channel());
        self.cx.work.dirty.remove(&id);
        self.admission.turned_away.remove(&id);
        self.cx.connections.gone(id, link.channel(), link.origin);
        if let Some(origin) = link.origin {
            self.admission.access.forget(id, origin, link.presented);
        }
        self.operations.is_drained(&mut self.cx, id);
        Some(link)
    }

    fn closed(&mut self, now: Now, id: AssociationId, error: Option<&str>) {
        if let Some(link) = self.cx.associations.get_mut(&id) {
            // What made us end it says more than how it ended.
            let why = link.transport_error.take();
            link.transport_error = why.or_else(|| error.map(str::to_owned));
        }
        self.feed(now, id, stack::Input::Eof);
        let Some(link) = self.cx.associations.get_mut(&id) else { return };
        if link.phase != Phase::Over {
            // The stack said nothing: the connection went before it was of any use.
            self.association_over(now, id, Kind::AssociationLost, "the connection closed");
        }
        self.remove_association(id);
    }

    fn tick(&mut self, now: Now) {
        while let Some(id) = self.cx.work.deadlines.pop(now.mono) {
            if self.cx.associations.get_mut(&id).is_some_and(|link| link.take_due_look(now.mono)) {
                self.cx.look(id);
            }
            if let Some(link) = self.cx.associations.get_mut(&id) {
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
        self.outbound.close_idle(&mut self.cx, now);
        self.cx.log_limited(now);
        self.admission.verify_waiting(&mut self.cx, now);
        self.operations.tick_minimize(&mut self.cx, now);
        self.cx.retry_due(now);
        self.cx.forget_seen(now);
        self.step_on(now);
        self.cx.keep_clock(now);
    }

    fn stop(&mut self, now: Now) {
        let again = std::mem::replace(&mut self.cx.life.stopping, true);
        if !again {
            self.cx.write_clock(now);
        }
        let ids: Vec<AssociationId> = self.cx.associations.keys().copied().collect();
        for id in ids {
            if again
                && self.cx.associations.get(&id).is_some_and(|link| link.phase != Phase::Connecting)
            {
                self.cx.request(id, stack::Request::Abort(stack::AbortReason::TemporaryProblem));
            } else {
                self.wind_down(now, id);
            }
        }
    }

    /// Brings one association to its end, even if its connection is still being made.
    pub(crate) fn wind_down(&mut self, now: Now, id: AssociationId) {
        let Some(link) = self.cx.associations.get(&id) else { return };
        if link.phase != Phase::Connecting {
            return self.cx.finish(id);
        }
        let why = match (self.cx.life.stopping, link.leaving) {
            (true, _) => "stopping",
            (false, true) => "its window has ended",
            (false, false) => "its channel has changed",
        };
        self.cx.output(Output::Close { association: id });
        self.association_over(now, id, Kind::AssociationReleased, why);
    }
}
