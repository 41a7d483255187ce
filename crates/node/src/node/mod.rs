//! The node itself: dispatch of inputs, the drain of its associations, and its deadline.

pub(crate) mod admitting;
pub(crate) mod answers;
pub(crate) mod binds;
pub(crate) mod checked;
pub(crate) mod dispatch;
pub(crate) mod ending;
pub(crate) mod indications;
pub(crate) mod opening;
pub(crate) mod progress;
pub(crate) mod recovery;
pub(crate) mod refused;
pub(crate) mod reload;
pub(crate) mod schedules;
pub(crate) mod settle;
mod shards;
pub(crate) mod store;
pub(crate) mod users;

use crate::admission::Admission;
use crate::api::operator::{Act, Operator};
use crate::api::shards::PeerAssociations;
use crate::api::{Input, Output};
use crate::arrivals::Arrivals;
use crate::commits::pending::ChannelOperation;
use crate::config::NodeConfig;
use crate::context::Context;
use crate::delivery::Delivery;
use crate::operations::Operations;
use crate::outbound::Outbound;
use crate::stores::Stores;
use base::{AssociationId, EntryId, Instant, Now, Precedence};
use osi::api as stack;
use scheduler::ChannelId;

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
    pub(crate) stores: Stores,
    pub(crate) operations: Operations,
}

impl Node {
    /// A node that knows its configuration and nothing else: hand in what the store holds with
    /// [`Input::Recovered`], then [`Input::Started`]; after the first entries perhaps
    /// [`Input::Serve`].
    pub fn new(config: NodeConfig) -> Node {
        Node {
            admission: Admission::new(&config.limits),
            arrivals: Arrivals::default(),
            outbound: Outbound::new(&config),
            delivery: Delivery::default(),
            stores: Stores::new(&config.store),
            operations: Operations::default(),
            cx: Context::new(config),
        }
    }

    /// The names of a channel's peer and of the channel, for the log.
    pub fn place(&self, id: ChannelId) -> Option<(&str, &str)> {
        self.cx.place(id)
    }

    /// Takes one input; drain `poll` afterwards.
    pub fn handle(&mut self, now: Now, input: Input) {
        let clock = now;
        let now = self.cx.watch_clock(clock);
        self.cx.outputs.tally_mut().set_time(now.utc);
        self.cx.engine.clock_may_be_ahead(now.utc.since(self.cx.queue.wall.earliest(clock)));
        match input {
            Input::RecoveredClock(value) => self.cx.recovered_clock(now, &value),
            Input::AcceptClock { by } => self.cx.accept_clock(now, &by),
            Input::RecoveredAcceptance(value) => self.cx.recovered_acceptance(now, &value),
            Input::RecoveredMinimize(value) => {
                self.operations.recovered_minimize(&mut self.cx, now, &value);
            }
            Input::RecoveredHolds(value) => self.cx.queue.recovered_holds(now.mono, &value),
            Input::Recovered { precedence, id, record } => {
                // A million of them may follow each other: nothing is begun before the next other input.
                return self.outbound.recovered(&mut self.cx, now, precedence, id, &record);
            }
            Input::RecoveredMailboxes(value) => {
                if let Err(error) = self.stores.mailboxes.recovered(&value) {
                    let detail = format!("the numbers of mailboxes: {error}");
                    self.stores.note(&mut self.cx, detail);
                }
            }
            Input::RecoveredLists(value) => {
                self.operations.recovered_lists(&mut self.cx, &value);
            }
            Input::OpenMailboxes => self.stores.mailboxes.open_all(),
            Input::Purge { request, mailbox, rules, try_only } => {
                self.stores.mailboxes.purge(now, request, &mailbox, rules, try_only);
            }
            Input::ChangeList { request, change, by, try_only } => {
                self.operations.change_list(&mut self.cx, request, &change, by, try_only);
            }
            Input::RecoveredDisabled(value) => {
                let ended = self.outbound.recovered_disabled(&mut self.cx, &value);
                ended.into_iter().for_each(|id| self.wind_down(now, id));
            }
            Input::RecoveredRegistration { mailbox, value } => {
                self.operations.recovered_registration(&mut self.cx, &mailbox, &value);
            }
            Input::RecoveredSends(value) => self.cx.kept_sends.recovered(&value),
            Input::RecoveredReception { spool, length, notes } => {
                self.arrivals.recovered_reception(&mut self.cx, now, spool, length, &notes);
            }
            Input::DiskSpace(space) => self.cx.disk_space(space),
            Input::Damaged { records, contents } => {
                self.outbound.found_damaged(&mut self.cx, now, &records, &contents);
            }
            Input::RecoveredBodies(bodies) => self.cx.drop_unneeded(bodies),
            Input::Shard(change) => self.shard_changed(now, change),
            Input::Serve => self.serve(now),
            Input::Started => {
                self.serve(now);
                self.outbound.log_late_at_start(&mut self.cx);
                self.cx.finish_recovery();
                self.cx.kept_sends.started();
            }
            Input::Connected { association } => {
                self.admission.connected(&mut self.cx, now, association);
            }
            Input::ConnectFailed { association, error } => {
                self.connect_failed(now, association, &error);
            }
            Input::Accepted { connection, listener, remote } => {
                self.admit(now, connection, listener, remote);
            }
            Input::MarkSeen { association, dscp } => {
                self.admission.mark_seen(&mut self.cx, association, dscp);
            }
            Input::Bytes { association, bytes } => {
                self.feed(now, association, stack::Input::Bytes(&bytes));
            }
            Input::Taken { association, octets } => self.taken(now, association, octets),
            Input::Closed { association, error } => {
                self.closed(now, association, error.as_deref());
            }
            Input::Synced { spool: _, token, result } => {
                self.arrivals.synced(&mut self.cx, now, token, result);
            }
            Input::SpoolFailed { spool, error } => {
                self.arrivals.spool_failed(&mut self.cx, spool, &error);
            }
            Input::Committed { token, result } => self.committed(now, token, result),
            Input::Loaded { token, result } => self.loaded(now, token, result),
            Input::LookedUp { token, result } => self.looked_up(now, token, result),
            Input::Forgot { token, result } => self.cx.commits.forgot(now, token, &result),
            Input::Content { token, result } => self.content_read(now, token, result),
            Input::MailboxRead { token, found } => self.mailbox_read(now, token, found),
            Input::PasswordChanged { token, mailbox, result } => {
                self.password_changed(now, token, &mailbox, result);
            }
            Input::Verified { token, right } => self.verified(now, token, right),
            Input::Tick => self.tick(now),
            Input::Mailboxes { addresses, stored, changed } => {
                self.users_changed(now, addresses, stored, &changed);
            }
            Input::Configure { config, edge } => self.configure(now, *config, &edge),
            Input::Minimize { scope, floor, until, by } => {
                self.operations.order_minimize(&mut self.cx, now, scope, (floor, until), &by);
            }
            Input::Unregister { request, mailbox, by } => {
                self.operations.unregister(&mut self.cx, request, mailbox, by);
                let ended = self.operations.next_registrations(&mut self.cx);
                self.answer_registrations(ended);
            }
            Input::Operate { request, entries, act, by } => {
                self.operate(now, request, entries, act, by);
            }
            Input::ConnectChannel { request, channel } => {
                self.outbound.connect_channel(&mut self.cx, now, request, channel);
            }
            Input::OrderChannel { request, channel, order, at_once, by } => {
                let operation = ChannelOperation::new(request, channel, by, at_once);
                let ended = self.outbound.order_channel(&mut self.cx, now, operation, order);
                ended.into_iter().for_each(|id| self.wind_down(now, id));
            }
            Input::Stop => self.stop(now),
            Input::PeerBoundElsewhere(peer) => {
                self.outbound.peer_has_bound(&mut self.cx, now, peer, "another node of the site");
                self.cx.recovery.bound_elsewhere(now.mono, peer);
            }
        }
        self.settle(now);
    }

    /// An operator orders something of these entries.
    fn operate(&mut self, now: Now, request: u64, entries: Vec<EntryId>, act: Act, by: Operator) {
        let hold = match act {
            Act::Hold => true,
            Act::Release => false,
            Act::Retry | Act::Reroute { .. } | Act::Expire | Act::Delete | Act::Trial(_) => {
                return self.outbound.order(&mut self.cx, now, request, entries, act, by);
            }
        };
        let became = |id| self.outbound.reroutes.became(id).map(<[_]>::to_vec);
        self.operations.hold_or_release(&mut self.cx, became, now, request, entries, (hold, by));
    }

    /// Serves from now on, if it does not yet.
    fn serve(&mut self, now: Now) {
        self.outbound.count_late_at_start(&mut self.cx, now);
        if self.cx.life.is_started() {
            return;
        }
        self.cx.life.start(now.utc);
        self.cx.log_clock_at_start(now);
        self.operations.look_at_minimize(&mut self.cx, now);
        self.keep_schedules(now);
        self.outbound.touch_all(&mut self.cx);
        self.cx.commits.start(now);
        self.stores.start(&self.cx, now);
    }

    /// Entries have numbers from here on: none has or had one of them ([`engine::numbers`]).
    #[must_use]
    pub fn numbering_entries(mut self, first: Option<EntryId>) -> Node {
        if let Some(first) = first {
            self.cx.engine.number_entries(first);
        }
        self
    }

    /// The number below which are all entries of earlier starts, and none of this one.
    #[must_use]
    pub fn first_entry(&self) -> u64 {
        self.cx.engine.first_entry()
    }

    /// The number below which are all bodies of earlier starts, and none of this one.
    #[must_use]
    pub fn first_body(&self) -> u64 {
        self.cx.engine.first_number()
    }

    /// The next thing to be done, until `None`.
    pub fn poll(&mut self) -> Option<Output> {
        self.cx.outputs.poll()
    }

    /// The peers that have open associations with this node, if that has changed since the last call.
    pub fn take_with_peers(&mut self) -> Option<PeerAssociations> {
        self.cx.associations.take_with_peers()
    }

    /// When to hand in [`Input::Tick`].
    pub fn deadline(&self) -> Option<Instant> {
        [
            self.cx.associations.deadline(),
            self.cx.queue.scheduler.deadline(),
            self.outbound.agenda.deadline(),
            self.cx.commits.deadline(),
            self.cx.recovery.deadline(),
            self.cx.kept_sends.deadline(),
            self.outbound.unrouted_deadline(&self.cx),
            self.cx.clock_deadline(),
            self.cx.outputs.deadline(),
            self.outbound.late_deadline(&self.cx),
            self.operations.minimizing.deadline(),
            self.admission.access.deadline(),
            self.cx.steps.deadline(),
            self.stores.deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The precedence that an association serves now: that of what it carries once that is known;
    /// before, the highest that its channel may carry, or, where a user submits, the highest that is not
    /// urgent.
    #[must_use]
    pub fn level(&self, id: AssociationId) -> Precedence {
        self.arrivals.level_with_arrival(&self.cx, id)
    }
}
