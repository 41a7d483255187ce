//! Figures over many messages: how long they took and the outcome of each, by precedence and peer.

mod html;
mod text;

use crate::event::{Event, LOST};
use crate::source::Source;
use base::{Precedence, Utc};
use hdrhistogram::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The name in the place of a peer for deliveries to mailboxes of this MTA.
pub const MAILBOXES: &str = "(mailboxes)";

/// The name in the place of a peer for what users here submitted.
pub const USERS: &str = "(users)";

/// Intervals of a picture over time.
const INTERVALS: u64 = 60;

/// Longest duration that is distinguished, in microseconds: 30 days.
const LONGEST: u64 = 30 * 86_400 * 1_000_000;

/// Durations in microseconds, with two significant digits.
#[derive(Clone, Debug, Default)]
struct Durations(Option<Histogram<u64>>);

impl Durations {
    fn add(&mut self, us: u64) {
        // These bounds are sound, so there is always one.
        let histogram = match &mut self.0 {
            Some(histogram) => Some(histogram),
            empty => {
                *empty = Histogram::new_with_bounds(1, LONGEST, 2).ok();
                empty.as_mut()
            }
        };
        if let Some(histogram) = histogram {
            histogram.saturating_record(us);
        }
    }

    fn spread(&self) -> Option<Spread> {
        let histogram = self.0.as_ref().filter(|histogram| !histogram.is_empty())?;
        Some(Spread {
            count: histogram.len(),
            p50_us: histogram.value_at_quantile(0.50),
            p95_us: histogram.value_at_quantile(0.95),
            p99_us: histogram.value_at_quantile(0.99),
        })
    }
}

/// How durations are spread, in microseconds with two significant digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// How many there were.
    pub count: u64,
    /// Half took no longer.
    pub p50_us: u64,
    /// 95 of 100 took no longer.
    pub p95_us: u64,
    /// 99 of 100 took no longer.
    pub p99_us: u64,
}

/// What messages of a precedence did in this direction.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Their precedence; absent where it is not known.
    pub precedence: Option<Precedence>,
    /// To or from which peer, or [`MAILBOXES`] or [`USERS`].
    pub peer: String,
    /// Accepted from there: messages, probes and reports.
    pub accepted: u64,
    /// Octets of their contents.
    pub accepted_octets: u64,
    /// Confirmed by that peer, or delivered.
    pub passed_on: u64,
    /// Octets of their contents.
    pub passed_on_octets: u64,
    /// From acceptance to the peer's confirm, or to delivery.
    pub took: Option<Spread>,
    /// From the first time that a higher message or an operator held it, to the start of its transfer.
    pub held: Option<Spread>,
    /// Copies whose time was over.
    pub expired: u64,
    /// Submissions and transfers that were refused, and copies that were given up.
    pub rejected: u64,
}

/// Figures of a time.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// From then, RFC 3339.
    pub since: String,
    /// Until then.
    pub until: String,
    /// Events that were read.
    pub events: u64,
    /// Events that are missing in this time.
    pub lost: u64,
    /// How often the daemon was killed: of each time the events of its last half second may be missing.
    pub kills: u64,
    /// By precedence, the highest first, and peer.
    pub rows: Vec<Row>,
    /// Microseconds of an interval.
    pub interval_us: u64,
    /// Messages passed on in each interval, from `since` on.
    pub over_time: Vec<u64>,
}

#[derive(Default)]
struct Counted {
    accepted: (u64, u64),
    passed_on: (u64, u64),
    took: Durations,
    held: Durations,
    expired: u64,
    rejected: u64,
}

/// What is known of a copy that has not ended yet.
#[derive(Default)]
struct Open {
    peer: Option<String>,
    held: Option<Utc>,
}

#[derive(Default)]
struct Counting {
    rows: BTreeMap<(Option<Precedence>, String), Counted>,
    open: BTreeMap<u64, Open>,
    events: u64,
    lost: u64,
    kills: u64,
    first: Option<Utc>,
    last: Utc,
    passed_on: Vec<Utc>,
}

impl Figures {
    /// Of the events within these times. What is open at its end is not counted.
    pub fn read(events: &dyn Source, times: (Utc, Utc)) -> Figures {
        let mut counting = Counting::default();
        events.scan(times, &mut |event| {
            counting.count(event);
            ControlFlow::Continue(())
        });
        counting.done(times)
    }
}

impl Counting {
    fn row(&mut self, event: &Event, peer: Option<&str>) -> &mut Counted {
        let peer = peer.unwrap_or("-").to_owned();
        self.rows.entry((event.precedence, peer)).or_default()
    }

    fn count(&mut self, event: Event) {
        self.events += 1;
        self.first = Some(self.first.map_or(event.time, |first| first.min(event.time)));
        self.last = self.last.max(event.time);
        let octets = event.bytes.unwrap_or(0);
        let peer = event.peer.as_deref();
        match &*event.kind {
            LOST => match event.detail.parse().unwrap_or(0) {
                0 => self.kills += 1,
                count => self.lost += count,
            },
            "submitted" => add(&mut self.row(&event, Some(USERS)).accepted, octets),
            "received" => add(&mut self.row(&event, peer).accepted, octets),
            "transfer_confirmed" => self.passed_on(&event, peer, octets),
            "delivered" => self.passed_on(&event, Some(MAILBOXES), octets),
            "held" | "operator_held" => {
                let Some(entry) = event.entry else { return };
                let open = self.open.entry(entry).or_default();
                open.held.get_or_insert(event.time);
                if event.peer.is_some() {
                    open.peer = event.peer;
                }
            }
            "transfer_started" => {
                let Some(entry) = event.entry else { return };
                let open = self.open.entry(entry).or_default();
                let held = open.held.take();
                open.peer = event.peer.clone();
                if let Some(since) = held {
                    self.row(&event, event.peer.as_deref())
                        .held
                        .add(event.time.0.saturating_sub(since.0));
                }
            }
            "expired" | "operator_expired" => {
                let open = event.entry.and_then(|entry| self.open.remove(&entry));
                let known = open.and_then(|open| open.peer);
                self.row(&event, peer.or(known.as_deref())).expired += 1;
            }
            "submission_refused" => self.row(&event, Some(USERS)).rejected += 1,
            "receive_failed" | "given_up" | "non_delivery" => self.row(&event, peer).rejected += 1,
            "delivery_failed" if event.detail.starts_with("for good") => {
                self.row(&event, Some(MAILBOXES)).rejected += 1;
            }
            _ => {}
        }
    }

    fn passed_on(&mut self, event: &Event, peer: Option<&str>, octets: u64) {
        if let Some(entry) = event.entry {
            self.open.remove(&entry);
        }
        self.passed_on.push(event.time);
        let row = self.row(event, peer);
        add(&mut row.passed_on, octets);
        if let Some(accepted) = event.accepted {
            row.took.add(event.time.0.saturating_sub(accepted.0));
        }
    }

    fn done(self, (since, until): (Utc, Utc)) -> Figures {
        // Of an open time only what there is.
        let since = if since.0 == 0 { self.first.unwrap_or_default() } else { since };
        let until = if until.0 == u64::MAX { self.last.max(since) } else { until };
        let interval_us = (until.0.saturating_sub(since.0) / INTERVALS + 1).max(1);
        let mut over_time = vec![0; INTERVALS as usize];
        for at in self.passed_on {
            let interval = at.0.saturating_sub(since.0) / interval_us;
            if let Some(count) = over_time.get_mut(interval as usize) {
                *count += 1;
            }
        }
        let row = |((precedence, peer), counted): ((Option<Precedence>, String), Counted)| Row {
            precedence,
            peer,
            accepted: counted.accepted.0,
            accepted_octets: counted.accepted.1,
            passed_on: counted.passed_on.0,
            passed_on_octets: counted.passed_on.1,
            took: counted.took.spread(),
            held: counted.held.spread(),
            expired: counted.expired,
            rejected: counted.rejected,
        };
        let mut rows: Vec<Row> = self.rows.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.precedence.cmp(&a.precedence).then_with(|| a.peer.cmp(&b.peer)));
        Figures {
            since: since.to_string(),
            until: until.to_string(),
            events: self.events,
            lost: self.lost,
            kills: self.kills,
            rows,
            interval_us,
            over_time,
        }
    }
}

fn add(counts: &mut (u64, u64), octets: u64) {
    counts.0 += 1;
    counts.1 = counts.1.saturating_add(octets);
}
