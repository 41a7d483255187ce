//! Another route for entries of a peer that is no longer configured, or takes no content so long.
//!
//! The route may lead to a mailbox here. Then what was delivered there already is looked up first, as
//! for an arrival: the copy may have been delivered by another route meanwhile.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::commits::RETRY_AFTER;
use crate::commits::pending::{PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::error::EdgeError;
use crate::outbound::Outbound;
use crate::queue::is_at_rest;
use base::{EntryId, Now};
use bytes::Bytes;
use engine::journal::{Digest, Op};
use engine::{Concluded, NewEntry, NextHop, Record};

/// Copies that the event of a reroute names.
const MAX_NAMED: usize = 8;

impl Outbound {
    /// An entry goes where the routes lead now.
    pub(crate) fn reroute(&mut self, cx: &mut Context, now: Now, id: EntryId, record: &Record) {
        let keys = cx.engine.reroute_keys(record);
        if keys.is_empty() {
            return self.reroute_now(cx, now, id, record, &[]);
        }
        if !cx.commits.keys.reserve(&keys) {
            // A copy of it is arriving: its outcome is known in a moment.
            self.unrouted.read_later(now, RETRY_AFTER);
            return;
        }
        self.unrouted.reading.insert(id);
        let (precedence, record) = (record.precedence, Box::new(record.clone()));
        let token =
            cx.token(PendingAnswer::RerouteLookUp { entry: id, record, keys: keys.clone() });
        cx.output(Output::LookUp { token, precedence, keys });
    }

    pub(crate) fn reroute_looked_up(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: EntryId,
        record: &Record,
        keys: Vec<Digest>,
        result: Result<Vec<Option<Bytes>>, EdgeError>,
    ) {
        self.unrouted.reading.remove(&id);
        let listed = cx.queue.scheduler.listed(id);
        let rests = listed.is_some_and(|listed| is_at_rest(listed.at));
        match result {
            Ok(seen) if rests => {
                self.reroutes.keys.insert(id, keys);
                self.reroute_now(cx, now, id, record, &seen);
            }
            // It expired meanwhile, or takes its old route.
            Ok(_) => cx.commits.keys.release(&keys),
            Err(error) => {
                cx.commits.keys.release(&keys);
                cx.event(LogLevel::Error, Kind::StoreFailed, error.0).entry(id);
                self.unrouted.read_later(now, RETRY_AFTER);
            }
        }
    }

    /// What this batch replaces is durable: others may use its keys.
    pub(crate) fn reroutes_made(&mut self, cx: &mut Context, batch: &[Op]) {
        if self.reroutes.keys.is_empty() {
            return;
        }
        for op in batch {
            if let Op::DeleteEntry { id, .. } = op
                && let Some(keys) = self.reroutes.keys.remove(id)
            {
                cx.commits.keys.release(&keys);
            }
        }
    }

    /// Another node owns what this change removes, or has removed it: what follows from it is that node's to make.
    /// What is left here is handed in again.
    pub(crate) fn retry_fenced(&mut self, cx: &mut Context, now: Now, mut retry: PendingRetry) {
        if retry.is_fenced() {
            return cx.commits.retry_later(now, retry);
        }
        self.reroutes_made(cx, &retry.batch);
        cx.queue.held.give_back(&retry.batch);
        self.reroutes.forget(&retry.batch);
        if let Some(request) = retry.order {
            self.order_fenced(cx, request);
        }
    }

    fn reroute_now(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: EntryId,
        record: &Record,
        seen: &[Option<Bytes>],
    ) {
        let concluded = cx.engine.reroute(now.utc, record, seen);
        if let Some(back) = leads_back(cx, record, &concluded) {
            return self.wait_for_routes(cx, id, record, back);
        }
        // A report about it is not a copy.
        let copies = concluded.entries.iter().filter(|e| e.record.kind() == record.kind());
        let (ids, routes): (Vec<EntryId>, Vec<String>) =
            copies.map(|e| (e.id, self.route_of(cx, e))).unzip();
        let why = match record.next_hop {
            NextHop::Peer(_) if cx.engine.would_lose_critical(record) => {
                "its peer's form of P1 cannot carry it"
            }
            NextHop::Peer(_) if cx.engine.no_longer_fits(record) => {
                "its peer is not cleared for it any more"
            }
            NextHop::Peer(peer) if cx.config.peer(peer).is_some() => {
                "its peer takes no content so long"
            }
            _ => "its peer is not configured",
        };
        let mut detail = format!("{why}: routed again");
        for (n, route) in routes.iter().take(MAX_NAMED).enumerate() {
            detail.push_str(if n == 0 { ", as " } else { ", " });
            detail.push_str(route);
        }
        if routes.len() > MAX_NAMED {
            detail.push_str(&format!(" and {} more", routes.len() - MAX_NAMED));
        }
        cx.event(LogLevel::Warning, Kind::Rerouted, detail)
            .message(record.message.clone())
            .entry(id)
            .precedence(record.precedence)
            .bytes(record.body.map(|_| record.size))
            .became(ids.len());
        cx.outputs.log_notes(None, None, &record.message, &concluded.notes);
        self.blame.forget(id);
        let (mut batch, bodies) = cx.queue.forget_for(id, &concluded.entries);
        batch.extend(engine::put_seen(&concluded.seen));
        batch.extend(cx.queue.held.pass_on(id, &ids));
        self.reroutes.remember(id, &ids);
        let retry = PendingRetry::new(batch, concluded.entries, bodies);
        cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }

    /// The peer that it came by would report a loop, or discard it if it is a report.
    fn wait_for_routes(&mut self, cx: &mut Context, id: EntryId, record: &Record, back: String) {
        if let Some(keys) = self.reroutes.keys.remove(&id) {
            cx.commits.keys.release(&keys);
        }
        let detail = format!(
            "its peer is not configured, and its route leads to {back}, by which it came: it waits for other routes"
        );
        cx.event(LogLevel::Warning, Kind::Held, detail)
            .message(record.message.clone())
            .entry(id)
            .precedence(record.precedence);
        self.unrouted.led_back.insert(id, back);
    }

    /// A copy's entry and where it goes, in words.
    pub(crate) fn route_of(&self, cx: &Context, copy: &NewEntry) -> String {
        let id = copy.id;
        match &copy.record.next_hop {
            NextHop::Peer(peer) => {
                let name = cx.config.peer(*peer).map_or("?", |peer| peer.name.as_str());
                format!("{id} to peer {name}")
            }
            NextHop::Mailbox(address) => format!("{id} to mailbox {address}"),
        }
    }
}

/// The peer that an entry of a removed peer came by, if all its routes lead back there.
fn leads_back(cx: &Context, record: &Record, concluded: &Concluded) -> Option<String> {
    let NextHop::Peer(old) = record.next_hop else { return None };
    if cx.config.peer(old).is_some() {
        return None;
    }
    let back = |entry: &NewEntry| match entry.record.next_hop {
        NextHop::Peer(peer) => cx.config.peer(peer).filter(|peer| record.passed(&peer.mta.0)),
        NextHop::Mailbox(_) => None,
    };
    let mut back = concluded.entries.iter().map(back);
    let first = back.next()??.name.clone();
    back.all(|peer| peer.is_some()).then_some(first)
}
