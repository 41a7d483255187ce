//! What an operator orders of queued entries: retry, reroute, expire, delete. Holds are durable values of
//! their own ([`crate::operations`]).
//!
//! An order is carried out as a whole, in one commit. Its entries start no transfer from the order to
//! that commit. One that is in transfer is left alone; one whose interrupted transfer waits to be resumed
//! is not in transfer for this purpose: the transfer is given up.

use crate::api::Output;
use crate::api::event::LogLevel;
use crate::api::operator::{Act, ActError, ActOutcome, IN_DOUBT, MAX_ORDERED, Operator};
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::error::{self, EdgeError, ReadError};
use crate::outbound::Outbound;
use crate::queue::is_at_rest;
use base::{EntryId, Now};
use bytes::Bytes;
use engine::journal::{Batch, Digest};
use engine::{Concluded, NewEntry};
use node_api::queue::orders::Order;
use scheduler::{Destination, ItemState};
use std::collections::{BTreeMap, BTreeSet};

impl Outbound {
    /// An operator orders something of these entries, other than a hold.
    pub(crate) fn order(
        &mut self,
        cx: &mut Context,
        now: Now,
        request: u64,
        entries: Vec<EntryId>,
        act: Act,
        by: Operator,
    ) {
        let (act, is_trial) = match act {
            Act::Trial(act) => (*act, true),
            act => (act, false),
        };
        let to = match &act {
            Act::Reroute { to: Some(name) } => {
                match cx.config.peers.iter().find(|p| p.name == *name) {
                    Some(peer) => Some(peer.id()),
                    None => return refuse(cx, request, ActError::NoPeer(name.clone())),
                }
            }
            _ => None,
        };
        if entries.len() > MAX_ORDERED {
            return refuse(cx, request, ActError::TooLong);
        }
        let mut order = Order::new(act, is_trial, by, to);
        let entries: BTreeSet<EntryId> = entries.into_iter().collect();
        if order.act == Act::Retry {
            self.retry_ordered(cx, now, &mut order, &entries);
            let result = Ok(order.outcomes);
            return cx.output(Output::Operated { request, result });
        }
        let mut resting = Vec::new();
        for id in entries {
            if !is_trial {
                self.give_up_resuming(cx, now, id);
            }
            match self.at_rest(cx, id) {
                Ok(()) => resting.push(id),
                Err(outcome) => order.put(id, outcome),
            }
        }
        for id in &resting {
            // It starts nothing meanwhile.
            cx.queue.scheduler.hold(*id);
        }
        for id in resting {
            let Some(item) = cx.queue.get(id) else { continue };
            order.reading.insert(id);
            let token = cx.token(PendingAnswer::OrderLoad { order: request, entry: id });
            cx.output(Output::Load { token, precedence: item.precedence, id });
        }
        let nothing_to_read = order.reading.is_empty();
        self.orders.insert(request, order);
        if nothing_to_read {
            self.order_read(cx, now, request);
        }
    }

    /// An interrupted transfer that waits to be resumed ends.
    fn give_up_resuming(&self, cx: &mut Context, now: Now, id: EntryId) {
        for entry in cx.recovery.let_go(.., |_, entry| entry == id) {
            cx.queue.scheduler.put_back(now.mono, entry);
        }
    }

    /// Whether nothing of this entry is in transfer; else what is answered.
    fn at_rest(&self, cx: &Context, id: EntryId) -> Result<(), ActOutcome> {
        if cx.queue.get(id).is_none() {
            let became = self.reroutes.became(id).map(|new| ActOutcome::Became(new.to_vec()));
            return Err(became.unwrap_or(ActOutcome::Unknown));
        }
        match cx.queue.scheduler.listed(id).map(|listed| listed.at) {
            Some(ItemState::InTransfer { .. }) => Err(ActOutcome::InTransfer),
            Some(ItemState::Expired) => {
                let why = "its time is over: its report is being made".to_owned();
                Err(ActOutcome::Refused(why))
            }
            Some(_) if cx.queue.cancelling.contains(&id) => {
                Err(ActOutcome::Refused("its originator cancels it".to_owned()))
            }
            Some(_) if self.is_being_ordered(id) => {
                Err(ActOutcome::Refused("another order for it is being carried out".to_owned()))
            }
            Some(_) if self.unrouted.reading.contains(&id) => {
                Err(ActOutcome::Refused("it is being routed again: ask again".to_owned()))
            }
            Some(_) => Ok(()),
            None => Err(ActOutcome::Unknown),
        }
    }

    fn is_being_ordered(&self, id: EntryId) -> bool {
        self.orders.values().any(|order| order.has(id))
    }

    /// Their waits end, and those of their peers' channels.
    fn retry_ordered(
        &mut self,
        cx: &mut Context,
        now: Now,
        order: &mut Order,
        entries: &BTreeSet<EntryId>,
    ) {
        let mut peers = BTreeSet::new();
        for id in entries {
            let Some(listed) = cx.queue.scheduler.listed(*id) else {
                let outcome = self.at_rest(cx, *id).err().unwrap_or(ActOutcome::Unknown);
                order.put(*id, outcome);
                continue;
            };
            cx.queue.deferred.pass(now.mono);
            let outcome = match listed.at {
                ItemState::InTransfer { .. } => ActOutcome::InTransfer,
                ItemState::Held(scheduler::Reason::Operator) => {
                    let is_operators = cx.queue.held.contains(id);
                    let why = match is_operators {
                        true => "an operator holds it: release it",
                        false => "its user holds it back",
                    };
                    ActOutcome::Refused(why.to_owned())
                }
                ItemState::Delayed(_) if cx.queue.deferred.has(*id) => {
                    ActOutcome::Refused("its originator deferred it".to_owned())
                }
                ItemState::Delayed(_) => {
                    cx.queue.scheduler.hasten(now.mono, *id);
                    ActOutcome::Done
                }
                ItemState::Expired => ActOutcome::Unchanged,
                ItemState::Ready | ItemState::Held(_) => ActOutcome::Done,
            };
            if outcome == ActOutcome::Done {
                if let Destination::Peer(peer) = listed.item.destination {
                    peers.insert(peer);
                }
                cx.event(LogLevel::Info, order.kind(), "")
                    .entry(*id)
                    .precedence(listed.item.precedence)
                    .by(&order.by);
            }
            order.put(*id, outcome);
        }
        for peer in peers {
            let channels = self.channels.keys_in(scheduler::agenda::channels_of(peer));
            for channel in channels.collect::<Vec<_>>() {
                self.end_waits(cx, now, channel, "an operator has its messages tried again");
            }
        }
    }

    /// The record of an entry was read for an order.
    pub(crate) fn order_loaded(
        &mut self,
        cx: &mut Context,
        now: Now,
        request: u64,
        id: EntryId,
        result: Result<Option<Bytes>, ReadError>,
    ) {
        let Some(order) = self.orders.get_mut(&request) else { return };
        order.reading.remove(&id);
        match error::record(result) {
            Ok(record) if cx.queue.get(id).is_some() => _ = order.records.insert(id, record),
            Ok(_) => order.put(id, ActOutcome::Unknown),
            Err(error) if cx.queue.went(id, &error) => order.put(id, ActOutcome::Unknown),
            // It is to be gone, whatever it is.
            Err(_) if order.act == Act::Delete => _ = order.unread.insert(id),
            Err(error) => {
                order.put(id, ActOutcome::Refused(error.to_string()));
                let_start(cx, now, id);
            }
        }
        if order.reading.is_empty() {
            self.order_read(cx, now, request);
        }
    }

    /// All records of an order were read.
    fn order_read(&mut self, cx: &mut Context, now: Now, request: u64) {
        let Some(mut order) = self.orders.remove(&request) else { return };
        if matches!(order.act, Act::Reroute { .. }) {
            reserve_keys(cx, now, &mut order);
            let all: Vec<Digest> = order.keys.values().flatten().copied().collect();
            if !all.is_empty() {
                let level = order.records.values().map(|record| record.precedence).max();
                let token = cx.token(PendingAnswer::OrderLookUp { order: request });
                self.orders.insert(request, order);
                let precedence = level.unwrap_or(base::Precedence::Routine);
                return cx.output(Output::LookUp { token, precedence, keys: all });
            }
        }
        let ids = order.records.keys().copied().chain(std::mem::take(&mut order.unread));
        let ids: Vec<EntryId> = ids.collect();
        self.carry_out(cx, now, request, order, &ids, &BTreeMap::new());
    }

    /// What is remembered under the keys of an order.
    pub(crate) fn order_looked_up(
        &mut self,
        cx: &mut Context,
        now: Now,
        request: u64,
        result: Result<Vec<Option<Bytes>>, EdgeError>,
    ) {
        let Some(mut order) = self.orders.remove(&request) else { return };
        let ids: Vec<EntryId> = order.records.keys().copied().collect();
        let found = match result {
            Ok(found) => found,
            Err(error) => {
                for id in ids {
                    order.put(id, ActOutcome::Refused(error.to_string()));
                    let_start(cx, now, id);
                }
                order.records.clear();
                return self.carry_out(cx, now, request, order, &[], &BTreeMap::new());
            }
        };
        let mut found = found.into_iter();
        let seen = order.keys.iter().map(|(id, keys)| {
            let its = keys.iter().map(|_| found.next().flatten()).collect();
            (*id, its)
        });
        let seen = seen.collect();
        self.carry_out(cx, now, request, order, &ids, &seen);
    }

    /// Makes one change of all of an order.
    fn carry_out(
        &mut self,
        cx: &mut Context,
        now: Now,
        request: u64,
        mut order: Order,
        ids: &[EntryId],
        seen: &BTreeMap<EntryId, Vec<Option<Bytes>>>,
    ) {
        let mut retry = PendingRetry::alone(Batch::new());
        retry.order = Some(request);
        let mut holds_changed = false;
        for id in ids {
            let seen = seen.get(id).map(Vec::as_slice).unwrap_or_default();
            let given = order.is_trial.then(|| cx.engine.given());
            let concluded = self.conclude_ordered(cx, now, &order, *id, seen);
            if let Some(given) = given {
                cx.engine.take_back(given);
            }
            match concluded {
                Ok(concluded) if order.is_trial => {
                    let mut would = self.would(cx, &order.act, &concluded);
                    if cx.queue.in_doubt.contains(id) {
                        would.push_str(": ");
                        would.push_str(IN_DOUBT);
                    }
                    order.put(*id, ActOutcome::Would(would));
                    let_start(cx, now, *id);
                }
                Ok(concluded) => {
                    let is_silent = order.act == Act::Expire && concluded.entries.is_empty();
                    let is_doubted = cx.queue.in_doubt.contains(id);
                    let copies = self.replace(cx, &order, *id, concluded, &mut retry);
                    holds_changed |= cx.queue.held.take(*id, &copies);
                    let is_reroute = matches!(order.act, Act::Reroute { .. });
                    let outcome = match is_reroute && !copies.is_empty() {
                        true => ActOutcome::Became(copies),
                        false if is_doubted && !is_reroute => ActOutcome::Doubted,
                        false if is_silent => ActOutcome::Silent,
                        false => ActOutcome::Done,
                    };
                    order.put(*id, outcome);
                }
                Err(why) => {
                    order.put(*id, ActOutcome::Refused(why));
                    let_start(cx, now, *id);
                    let keys = order.keys.remove(id).unwrap_or_default();
                    cx.commits.keys.release(&keys);
                }
            }
        }
        order.records.clear();
        if holds_changed {
            retry.batch.push(cx.queue.held.put());
        }
        let is_empty = retry.batch.is_empty();
        self.orders.insert(request, order);
        if is_empty {
            return self.order_done(cx, request);
        }
        cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }

    /// What an order would do with an entry.
    fn would(&self, cx: &Context, act: &Act, concluded: &Concluded) -> String {
        match act {
            Act::Reroute { .. } => {
                // Without the number, which only a copy that is made keeps.
                let route = |copy: &NewEntry| {
                    let text = self.route_of(cx, copy);
                    text.split_once(' ').map_or_else(String::new, |(_, to)| to.to_owned())
                };
                let routes: Vec<String> = concluded.entries.iter().map(route).collect();
                format!("would go {}", routes.join(", "))
            }
            Act::Expire if concluded.entries.is_empty() => {
                "would be given up, and nobody gets a report".to_owned()
            }
            Act::Expire => "would be given up, and its originator gets a report".to_owned(),
            _ => "would be deleted".to_owned(),
        }
    }

    /// What takes an entry's place.
    fn conclude_ordered(
        &self,
        cx: &mut Context,
        now: Now,
        order: &Order,
        id: EntryId,
        seen: &[Option<Bytes>],
    ) -> Result<Concluded, String> {
        // Released meanwhile, it may have started.
        let rests = cx.queue.scheduler.listed(id).is_some_and(|listed| is_at_rest(listed.at));
        if !rests || cx.queue.cancelling.contains(&id) {
            return Err("it has gone, or is in transfer, meanwhile".to_owned());
        }
        if order.act == Act::Delete {
            return Ok(Concluded::default());
        }
        let Some(record) = order.records.get(&id) else {
            return Err("its record is gone".to_owned());
        };
        if order.act == Act::Expire {
            return Ok(cx.engine.expire_by_order(now.utc, record));
        }
        let concluded = cx.engine.reroute_by_order(now.utc, record, order.to, seen)?;
        match order.to.and_then(|to| cx.config.peer(to)) {
            Some(peer) if record.passed(&peer.mta.0) => {
                Err(format!("it came by {}, which would report a loop", peer.name))
            }
            _ => Ok(concluded),
        }
    }

    /// Takes an entry out of the queue. Gives the copies that take its place.
    fn replace(
        &mut self,
        cx: &mut Context,
        order: &Order,
        id: EntryId,
        concluded: Concluded,
        retry: &mut PendingRetry,
    ) -> Vec<EntryId> {
        let record = order.records.get(&id);
        let precedence = cx.queue.get(id).map(|item| item.precedence);
        let copies: Vec<EntryId> = match (&order.act, record) {
            (Act::Reroute { .. }, Some(record)) => {
                let its = concluded.entries.iter().filter(|e| e.record.kind() == record.kind());
                its.map(|entry| entry.id).collect()
            }
            _ => Vec::new(),
        };
        let routes = concluded.entries.iter().filter(|e| copies.contains(&e.id));
        let detail = routes.map(|copy| self.route_of(cx, copy)).collect::<Vec<_>>().join(", ");
        let detail = if detail.is_empty() { detail } else { format!("as {detail}") };
        let mut draft = cx.event(LogLevel::Warning, order.kind(), detail).entry(id).by(&order.by);
        if let Some(precedence) = precedence {
            draft = draft.precedence(precedence);
        }
        if let Some(record) = record {
            draft = draft.message(record.message.clone()).bytes(record.body.map(|_| record.size));
        }
        if matches!(order.act, Act::Reroute { .. }) {
            draft = draft.became(copies.len());
        }
        drop(draft);
        if let Some(record) = record {
            cx.outputs.log_notes(None, None, &record.message, &concluded.notes);
        }
        self.blame.forget(id);
        let (batch, bodies) = cx.queue.forget_for(id, &concluded.entries);
        retry.batch.extend(batch);
        retry.bodies.extend(bodies);
        retry.batch.extend(engine::put_seen(&concluded.seen));
        retry.entries.extend(concluded.entries);
        self.reroutes.remember(id, &copies);
        copies
    }

    /// Nothing of it was made: another node owns some of its entries.
    pub(crate) fn order_fenced(&mut self, cx: &mut Context, request: u64) {
        if let Some(order) = self.orders.get_mut(&request) {
            for (_, outcome) in &mut order.outcomes {
                let why =
                    "another node of the site has it, or had it meanwhile: nothing was changed";
                *outcome = ActOutcome::Refused(why.to_owned());
            }
        }
        self.order_done(cx, request);
    }

    /// What an order changed is durable.
    pub(crate) fn order_done(&mut self, cx: &mut Context, request: u64) {
        let Some(mut order) = self.orders.remove(&request) else { return };
        for keys in std::mem::take(&mut order.keys).into_values() {
            cx.commits.keys.release(&keys);
        }
        order.outcomes.sort_by_key(|(id, _)| *id);
        cx.output(Output::Operated { request, result: Ok(order.outcomes) });
    }
}

/// Reserves what shows whether a copy was delivered here before. One whose keys others have
/// reserved is left alone: a copy of it is arriving.
fn reserve_keys(cx: &mut Context, now: Now, order: &mut Order) {
    let mut busy = Vec::new();
    for (id, record) in &order.records {
        let keys = cx.engine.reroute_keys(record);
        if keys.is_empty() {
            continue;
        }
        if cx.commits.keys.reserve(&keys) {
            order.keys.insert(*id, keys);
        } else {
            busy.push(*id);
        }
    }
    for id in busy {
        order.records.remove(&id);
        order.put(id, ActOutcome::Refused("a copy of it is arriving: ask again".to_owned()));
        let_start(cx, now, id);
    }
}

/// The order leaves this entry as it is.
fn let_start(cx: &mut Context, now: Now, id: EntryId) {
    if !cx.queue.held.contains(&id) && !cx.queue.cancelling.contains(&id) {
        cx.queue.scheduler.release(now.mono, id);
    }
}

fn refuse(cx: &mut Context, request: u64, error: ActError) {
    cx.output(Output::Operated { request, result: Err(error) });
}
