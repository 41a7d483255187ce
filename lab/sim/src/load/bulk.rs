//! TCP loads: a connection that carries octets one way. The position of an octet decides its value.

use crate::load::content::Content;
use crate::outcome::LoadCount;
use crate::scenario::BulkLoad;
use crate::sim::simulated_hosts::{Owner, ScheduledEvent, SimulatedHosts};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;
use virtual_tcp::{ConnectionId, HostEvent};

/// The most octets that wait above TCP.
const MAX_AHEAD: usize = 64 << 10;
/// Octets written in one piece.
const PIECE: usize = 16 << 10;
/// A load with a rate writes at least this at once: a segment.
const SEGMENT: u64 = 1_448;
/// After this time a failed connection is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// An end of a bulk connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkSide {
    /// Connects and sends.
    Source,
    /// Receives.
    Sink,
}

/// A TCP load.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) load: BulkLoad,
    place: usize,
    /// Indexes of the hosts.
    from: usize,
    pub(crate) to: usize,
    local: IpAddr,
    content: Content,
    connection: Option<ConnectionId>,
    /// The time from the beginning at which the connection opened.
    since: Duration,
    closed: bool,
    stopped: bool,
    /// The receiver's connection ended before it had all.
    broken: bool,
    pub(crate) count: LoadCount,
    /// Octets not yet received: the end of each piece written, and when it was written.
    in_transit: VecDeque<(u64, Duration)>,
    /// The delay of the last piece, in nanoseconds.
    took: Option<i64>,
}

impl Transfer {
    pub(crate) fn new(
        load: &BulkLoad,
        place: usize,
        (from, to): (usize, usize),
        local: IpAddr,
        content: Content,
    ) -> Transfer {
        Transfer {
            load: load.clone(),
            place,
            from,
            to,
            local,
            content,
            connection: None,
            since: Duration::ZERO,
            closed: false,
            stopped: false,
            broken: false,
            count: LoadCount::default(),
            in_transit: VecDeque::new(),
            took: None,
        }
    }

    /// Whether it has an end that is not reached.
    pub(crate) fn is_awaited(&self) -> bool {
        let never = self.stopped && self.connection.is_none();
        self.load.octets.is_some() && self.count.done.is_none() && !never && !self.broken
    }

    /// The counts so far.
    pub(crate) fn count(&self, simulated: &SimulatedHosts) -> LoadCount {
        let mut count = self.count.clone();
        let waiting = self.connection.zip(simulated.hosts.get(self.from));
        let waiting = waiting.map_or(0, |(id, host)| host.waiting(id));
        count.sent.octets = count.sent.octets.saturating_sub(waiting as u64);
        count
    }

    /// Connects.
    pub(crate) fn begin(&mut self, simulated: &mut SimulatedHosts) {
        let (now, load) = (simulated.now, &self.load);
        if self.stopped || self.connection.is_some() {
            return;
        }
        let Some(host) = simulated.host(self.from) else { return };
        let id = host.connect(now, self.local, load.to, load.dscp);
        if let Some(octets) = load.segment {
            host.limit_segments(id, octets);
        }
        let owner = Owner::Bulk { load: self.place, side: BulkSide::Source };
        simulated.owners.insert((self.from, id), owner);
        self.connection = Some(id);
    }

    /// Ends after the octets written so far.
    pub(crate) fn stop(&mut self, simulated: &mut SimulatedHosts) {
        self.stopped = true;
        self.go_on(simulated);
    }

    /// The sink has accepted the connection.
    pub(crate) fn accepted(&self, simulated: &mut SimulatedHosts, id: ConnectionId) {
        let owner = Owner::Bulk { load: self.place, side: BulkSide::Sink };
        simulated.owners.insert((self.to, id), owner);
    }

    /// Handles an event of one of its ends.
    pub(crate) fn event(
        &mut self,
        simulated: &mut SimulatedHosts,
        side: BulkSide,
        event: HostEvent,
    ) {
        match (side, event) {
            (BulkSide::Source, HostEvent::Connected { .. }) => {
                self.since = simulated.since();
                self.go_on(simulated);
            }
            (BulkSide::Source, HostEvent::Room { .. }) => self.go_on(simulated),
            (BulkSide::Source, HostEvent::Failed { id, error }) => {
                simulated.owners.remove(&(self.from, id));
                self.connection = None;
                self.count.error = Some(error);
                simulated.later(AGAIN, ScheduledEvent::Begin { load: self.place });
            }
            (BulkSide::Source, HostEvent::Closed { id, error }) => {
                simulated.owners.remove(&(self.from, id));
                if !self.closed {
                    let why = error.unwrap_or_else(|| "the receiver closed".to_owned());
                    self.count.error = Some(why);
                }
                self.closed = true;
            }
            (BulkSide::Sink, HostEvent::Bytes { bytes, .. }) => {
                self.count.wrong += self.content.wrong(self.count.received.octets, &bytes);
                self.came(simulated.since(), bytes.len());
                if Some(self.count.received.octets) == self.load.octets {
                    self.count.done = Some(simulated.since());
                }
            }
            (BulkSide::Sink, HostEvent::Closed { id, error }) => {
                simulated.owners.remove(&(self.to, id));
                let has_all = self.closed && self.count.received.octets == self.count.sent.octets;
                if has_all {
                    self.count.done.get_or_insert(simulated.since());
                } else {
                    // Of a silence of the line that was too long for it, perhaps.
                    let why = error.unwrap_or_else(|| "the sender closed".to_owned());
                    self.count.error.get_or_insert(why);
                    self.broken = true;
                }
            }
            _ => {}
        }
    }

    /// Octets have been received.
    fn came(&mut self, now: Duration, octets: usize) {
        self.count.came(now, octets);
        while let Some((_, written)) =
            self.in_transit.pop_front_if(|(end, _)| *end <= self.count.received.octets)
        {
            let took = i64::try_from(now.saturating_sub(written).as_nanos()).unwrap_or(i64::MAX);
            let before = self.took.replace(took);
            self.count.took(now, took, before);
        }
    }

    /// Writes as many octets as room and rate allow.
    pub(crate) fn go_on(&mut self, simulated: &mut SimulatedHosts) {
        let (Some(id), false) = (self.connection, self.closed) else { return };
        let (now, since) = (simulated.now, simulated.since());
        let end = if self.stopped { 0 } else { self.load.octets.unwrap_or(u64::MAX) };
        let passed = since.saturating_sub(self.since);
        let allowed = self.load.rate.map_or(u64::MAX, |rate| {
            let octets = u128::from(rate) * passed.as_nanos() / 8_000_000_000;
            u64::try_from(octets).unwrap_or(u64::MAX)
        });
        let Some(host) = simulated.host(self.from) else { return };
        loop {
            let written = self.count.sent.octets;
            let room = MAX_AHEAD.saturating_sub(host.waiting(id)).min(PIECE);
            let part = end.min(allowed).saturating_sub(written).min(room as u64);
            // Whole segments, except the last.
            if part == 0 || (part < SEGMENT && written + part < end) {
                break;
            }
            let piece = self.content.piece(written, usize::try_from(part).unwrap_or(0));
            self.count.sent.add(since, piece.len());
            self.in_transit.push_back((self.count.sent.octets, since));
            host.write(now, id, piece);
        }
        let written = self.count.sent.octets;
        if written >= end {
            self.closed = true;
            return host.close(now, id);
        }
        match self.load.rate {
            Some(rate) if allowed < written + SEGMENT => {
                let octets = (written + SEGMENT).saturating_sub(allowed);
                let nanos = u128::from(octets) * 8_000_000_000 / u128::from(rate.max(1)) + 1;
                let wait = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
                simulated.later(wait, ScheduledEvent::Go { load: self.place });
            }
            _ => host.want_room(now, id, MAX_AHEAD / 2),
        }
    }
}
