//! Taking up what is durable.

use crate::api::event::{Kind, LogLevel};
use crate::context::Context;
use crate::outbound::Outbound;
use base::{EntryId, Now, Precedence};
use bytes::Bytes;
use engine::{Brief, NewEntry, NextHop, Record};

impl Outbound {
    pub(crate) fn recovered(
        &mut self,
        cx: &mut Context,
        now: Now,
        precedence: Precedence,
        id: EntryId,
        record: &Bytes,
    ) {
        // Not its envelope: there may be a million of them.
        match Record::peek(record) {
            // Another node has it meanwhile.
            Ok(brief) if !cx.queue.owns(&brief.next_hop) => {}
            // It is known, or concluded.
            Ok(_) if cx.queue.get(id).is_some() || cx.commits.removals.has(id) => {}
            Ok(brief) => {
                self.enqueue(cx, now, id, precedence, &brief);
                self.note_taken_over(cx, now, id);
                if brief.not_before.is_some_and(|at| cx.queue.wall.gone >= Some(at)) {
                    cx.queue.deferred.keep(id);
                }
                self.take_up_sending(cx, now, id);
                self.reroute_if_too_long(cx, now, id, &brief, record);
            }
            Err(error) => {
                cx.life.note_unreadable();
                cx.event(LogLevel::Error, Kind::StoreFailed, format!("unreadable record: {error}"))
                    .entry(id);
            }
        }
    }

    /// A content beyond a bound that is new: routing again reports it.
    fn reroute_if_too_long(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: EntryId,
        brief: &Brief<'_>,
        record: &Bytes,
    ) {
        let NextHop::Peer(peer) = *brief.next_hop else { return };
        let most = cx.config.peer(peer).and_then(|peer| peer.content_max);
        if most.is_some_and(|most| brief.size > most)
            && let Ok(record) = Record::decode(record)
        {
            self.reroute(cx, now, id, &record);
        }
    }

    /// Takes up an entry that is durable.
    pub(crate) fn enqueue(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: EntryId,
        precedence: Precedence,
        brief: &Brief<'_>,
    ) {
        if !cx.queue.owns(&brief.next_hop) {
            return;
        }
        if let NextHop::Peer(peer) = *brief.next_hop {
            self.note_unrouted(cx, peer);
        }
        cx.queue.insert(now, id, precedence, brief, &cx.config.times);
        if cx.queue.held.contains(&id) {
            cx.queue.scheduler.hold(id);
        }
    }

    pub(crate) fn enqueue_new(&mut self, cx: &mut Context, now: Now, entries: Vec<NewEntry>) {
        for entry in entries {
            self.enqueue(cx, now, entry.id, entry.precedence, &entry.record.brief());
            cx.queue.keep_fresh(entry.id, entry.record);
        }
    }
}
