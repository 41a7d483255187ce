//! Rule 9 in the node: copies whose time is over end in a report, and copies that are late are logged
//! for the operator. Copies whose content is damaged end in a report as well.
//!
//! The scheduler names them. What the log shows of them is in their records, which are on disk. Records
//! are read a few at a time: after a long outage a whole queue may have expired.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::{LateReason, PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::error::{self, ReadError};
use crate::outbound::Outbound;
use crate::queue::is_at_rest;
use base::{EntryId, Instant, Now};
use bytes::Bytes;
use engine::{NextHop, Record};
use scheduler::Reason;
use std::time::Duration;

/// Most records read at once, or not yet durably reported.
const MAX_READ: usize = 64;

/// When one that could not be read is tried again.
const AGAIN: Duration = Duration::from_secs(60);

/// An owner logs that an entry is late within this time, unless it is lost then: so the next one does.
const LOGGED: Duration = Duration::from_secs(60);

impl Outbound {
    /// Notes one that came from another node, where that one has logged that it is late.
    pub(crate) fn note_taken_over(&mut self, cx: &Context, now: Now, id: EntryId) {
        let was_logged =
            cx.queue.get(id).is_some_and(|item| now.mono.since(item.alert_at) >= LOGGED);
        if was_logged && cx.queue.copies.is_complete() {
            self.late.logged.insert(id);
        }
    }

    /// Counts copies that were late already when they were recovered: they were logged before, one by one.
    pub(crate) fn count_late_at_start(&mut self, cx: &mut Context, now: Now) {
        while !cx.queue.copies.is_complete()
            && let Some(id) = cx.queue.scheduler.overdue(now.mono)
        {
            self.late.at_start += 1;
            let item = cx.queue.get(id);
            cx.outputs.tally_mut().overdue_at_start(item.map(|item| item.precedence));
        }
    }

    /// Logs in one line how many were late at the start.
    pub(crate) fn log_late_at_start(&mut self, cx: &mut Context) {
        let late = std::mem::take(&mut self.late.at_start);
        if late > 0 {
            let detail = format!("{late} messages were late already at the start");
            cx.event(LogLevel::Warning, Kind::Overdue, detail);
        }
    }

    /// Where the record could not be read, the next hop and the time of acceptance are not known: the
    /// alert shows the rest.
    fn log_overdue(&self, cx: &mut Context, now: Now, id: EntryId, record: Option<&Record>) {
        let Some(item) = cx.queue.get(id) else { return };
        let limit = *cx.config.times.alert.0.get(item.precedence);
        // What its time counts from: our acceptance, or the end of its deferral.
        let age = (now.mono.since(item.alert_at) + limit).as_secs();
        let limit = limit.as_secs();
        let mut detail = match record {
            Some(record) => {
                format!("for {} since {age} s, more than {limit} s", self.whom(cx, record))
            }
            None => format!("since {age} s, more than {limit} s; its record cannot be read"),
        };
        if let Some(reason) = cx.queue.scheduler.held_because(id) {
            let by_user = reason == Reason::Operator && !cx.queue.held.contains(&id);
            detail = match by_user {
                true => format!("{detail}: its user holds it back"),
                false => format!("{detail}: {reason}"),
            };
        }
        let mut event = cx
            .event(LogLevel::Warning, Kind::Overdue, detail)
            .entry(id)
            .precedence(item.precedence);
        if let Some(record) = record {
            event = event.message(record.message.clone());
        }
        drop(event);
    }

    /// Who is to get it, for the log.
    fn whom(&self, cx: &Context, record: &Record) -> String {
        match &record.next_hop {
            NextHop::Peer(id) => match cx.config.peer(*id) {
                Some(peer) => format!("peer {}", peer.name),
                None => "a peer that is no longer configured".to_owned(),
            },
            NextHop::Mailbox(address) => format!("mailbox {address}"),
        }
    }

    fn room_for_late(&self, cx: &Context) -> usize {
        cx.room_for_retries(self.late.reading, MAX_READ)
    }

    /// When to read one again that could not be read, where there is room: what makes room wakes us.
    pub(crate) fn late_deadline(&self, cx: &Context) -> Option<Instant> {
        let first = self.late.again.first().map(|(at, _)| *at);
        first.filter(|_| self.room_for_late(cx) > 0)
    }

    /// Has the records of copies read that have expired or become late, as many at once as may be.
    pub(crate) fn read_late(&mut self, cx: &mut Context, now: Now) {
        while self.room_for_late(cx) > 0 {
            let again = self.late.again.first().copied().filter(|(at, _)| *at <= now.mono);
            let (id, why) = if let Some((at, id)) = again {
                self.late.again.remove(&(at, id));
                (id, LateReason::Expired)
            } else if let Some(id) = cx.queue.take_damaged() {
                (id, LateReason::Damaged)
            } else if let Some(id) = cx.queue.scheduler.expired(now.mono) {
                (id, LateReason::Expired)
            } else if let Some(id) = cx.queue.scheduler.overdue(now.mono) {
                if self.late.logged.remove(&id) {
                    continue;
                }
                (id, LateReason::Overdue)
            } else {
                return;
            };
            let Some(item) = cx.queue.get(id) else { continue };
            let token = cx.token(PendingAnswer::Late { entry: id, why });
            self.late.reading += 1;
            cx.output(Output::Load { token, precedence: item.precedence, id });
        }
    }

    /// The record of one that has expired or is late.
    pub(crate) fn late_loaded(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: EntryId,
        why: LateReason,
        result: Result<Option<Bytes>, ReadError>,
    ) {
        self.late.reading = self.late.reading.saturating_sub(1);
        if cx.queue.get(id).is_none() {
            return; // it went meanwhile
        }
        match (error::record(result), why) {
            (Ok(record), LateReason::Expired) => self.expire(cx, now, id, &record),
            (Ok(record), LateReason::Damaged) => {
                if cx.queue.scheduler.listed(id).is_some_and(|listed| is_at_rest(listed.at)) {
                    self.report_damaged(cx, now, id, &record);
                } else {
                    // Tried again meanwhile.
                    cx.queue.damaged.insert(id);
                }
            }
            (Ok(record), LateReason::Overdue) => self.log_overdue(cx, now, id, Some(&record)),
            (Err(error), _) if error.is_damage() => {
                self.set_record_aside(cx, now, None, id, &error);
            }
            (Err(error), _) if cx.queue.went(id, &error) => {}
            (Err(error), why) => {
                cx.event(LogLevel::Error, Kind::StoreFailed, error.to_string()).entry(id);
                match why {
                    LateReason::Expired => _ = self.late.again.insert((now.mono + AGAIN, id)),
                    LateReason::Damaged => _ = cx.queue.damaged.insert(id),
                    // The alert does not wait for the store.
                    LateReason::Overdue => self.log_overdue(cx, now, id, None),
                }
            }
        }
    }

    /// The time of a copy is over: it is forgotten, and its report queued, in one commit.
    pub(crate) fn expire(&mut self, cx: &mut Context, now: Now, id: EntryId, record: &Record) {
        let expires = record.expires(&cx.config.times.expire);
        // By the clock that the queue goes by: by another one it might expire again and again.
        let wall = &cx.queue.wall;
        if wall.is_doubted() || expires.is_none_or(|at| wall.instant(at) > now.mono) {
            // The wall clock was set, or more time was allowed since.
            cx.queue.begin_again(now, id, record, &cx.config.times);
            if cx.queue.held.contains(&id) {
                cx.queue.scheduler.hold(id);
            }
            return;
        }
        let age = now.utc.since(record.first_arrival).as_secs();
        let detail = format!("not passed on to {} in time: {age} s old", self.whom(cx, record));
        cx.event(LogLevel::Warning, Kind::Expired, detail)
            .message(record.message.clone())
            .entry(id)
            .precedence(record.precedence)
            .accepted(Some(record.accepted));
        self.blame.forget(id);
        let concluded = cx.engine.expire(now.utc, record);
        cx.outputs.log_notes(None, None, &record.message, &concluded.notes);
        let (batch, bodies) = cx.queue.replace(id, record, &concluded);
        let retry = PendingRetry::new(batch, concluded.entries, bodies);
        cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
    }
}
