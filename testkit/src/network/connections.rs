//! The connections of a network: two wires each, and an end at each side.

use super::{Durable, End, Happening, Network, pair};
use crate::wire::{Wire, WireArrival, WireMoment};
use base::{AssociationId, Instant};
use bytes::Bytes;
use node::{Input, ListenerId};
use std::time::Duration;

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// That which connected.
    Near,
    /// That which was connected to.
    Far,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        }
    }
}

/// A connection. An end that is gone no longer sends or receives; the other one may not know.
#[derive(Debug)]
pub(super) struct Connection {
    ends: [Option<End>; 2],
    /// The wire to each side.
    wires: [Box<dyn Wire>; 2],
    /// The latest time at which each wire is to be polled, if that is not past.
    polls: [Option<Instant>; 2],
    pub(super) channel: Option<u32>,
    /// The sites that it joins.
    between: Option<(usize, usize)>,
}

impl Connection {
    fn joins_sites(&self) -> bool {
        self.channel.is_some()
    }
}

impl<S: Durable> Network<S> {
    /// Somebody connects to a listener of a site.
    pub(super) fn open(
        &mut self,
        near: End,
        site: usize,
        listener: ListenerId,
        from: Option<(usize, u32)>,
    ) {
        self.made += 1;
        let id = self.made;
        let wires = match (from, &self.lines) {
            // Each leads to its side.
            (Some((near, _)), Some(lines)) => [lines(site, near), lines(near, site)],
            _ => [(self.wire)(), (self.wire)()],
        };
        let channel = from.map(|(_, channel)| channel);
        let between = from.map(|(near, _)| pair(near, site));
        let ends = [Some(near), None];
        self.connections.insert(id, Connection { ends, wires, polls: [None; 2], channel, between });
        self.ends.insert(near, (id, Side::Near));
        self.later(self.latency, Happening::Connected(id, site, listener));
    }

    /// The far end is there; gives the near one.
    pub(super) fn attach(&mut self, id: u64, far: End) -> Option<End> {
        let connection = self.connections.get_mut(&id)?;
        let near = connection.ends[0]?;
        connection.ends[1] = Some(far);
        self.ends.insert(far, (id, Side::Far));
        Some(near)
    }

    /// An end is gone; whether it was there.
    fn detach(&mut self, end: End) -> bool {
        let Some((id, side)) = self.ends.remove(&end) else { return false };
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.ends[side as usize] = None;
            if connection.ends == [None, None] {
                self.connections.remove(&id);
            }
        }
        true
    }

    /// Does something with the wire that leads away from an end.
    fn with_wire(&mut self, from: End, act: impl FnOnce(&mut dyn Wire, WireMoment<'_>)) {
        let Some(&(id, side)) = self.ends.get(&from) else { return };
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (to, now, latency) = (side.other(), self.now, self.latency);
        let wire = &mut *connection.wires[to as usize];
        act(wire, WireMoment { now, latency, rng: &mut self.rng });
        self.poll_later(id, to);
    }

    /// Polls a wire when it is due, once for each time.
    fn poll_later(&mut self, id: u64, side: Side) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let at = connection.wires[side as usize].deadline().map(|at| at.max(self.now));
        if let Some(at) = at.filter(|_| connection.polls[side as usize] != at) {
            connection.polls[side as usize] = Some(at);
            self.at(at, Happening::Arrival(id, side));
        }
    }

    /// An end writes octets.
    pub fn send(&mut self, from: End, octets: Bytes) {
        let id = self.ends.get(&from).map(|(id, _)| id);
        if id.and_then(|id| self.connections.get(id)).is_some_and(Connection::joins_sites) {
            self.carried += octets.len() as u64;
        }
        self.with_wire(from, |wire, moment| wire.write(moment, octets));
    }

    /// One end closes: it is gone a moment later, the other one after what was sent.
    pub fn close(&mut self, end: End) {
        self.later(Duration::from_micros(10), Happening::Closed(end));
        self.with_wire(end, |wire, moment| wire.close(moment));
    }

    /// One end is gone at once.
    pub(super) fn drop_end(&mut self, end: End) {
        self.with_wire(end, |wire, moment| wire.close(moment));
        self.detach(end);
    }

    pub(super) fn measure(&mut self, site: usize, association: AssociationId) {
        let mut octets = None;
        let end = self.end(site, association);
        self.with_wire(end, |wire, _| octets = wire.measure());
        if let Some(octets) = octets {
            self.answer(site, Duration::ZERO, Input::Taken { association, octets });
        }
    }

    /// Hands over what has arrived at a side by now.
    pub(super) fn arrive(&mut self, id: u64, side: Side) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.polls[side as usize].take_if(|at| *at <= self.now);
        }
        while let Some(connection) = self.connections.get_mut(&id) {
            let Some(arrival) = connection.wires[side as usize].poll(self.now) else {
                return self.poll_later(id, side);
            };
            if arrival == WireArrival::Lost {
                return self.lose(id);
            }
            let Some(end) = connection.ends[side as usize] else { continue };
            match (arrival, end) {
                (WireArrival::End | WireArrival::Lost, _) => self.closed(end),
                (WireArrival::Octets(_), End::Node(site, ..)) if self.sites[site].frozen => {}
                (WireArrival::Octets(bytes), End::Node(site, _, association)) => {
                    self.feed(site, Input::Bytes { association, bytes });
                }
                (WireArrival::Octets(octets), End::User(..)) => self.user_octets(end, &octets),
                (WireArrival::Octets(octets), End::Store(..)) => self.reader_octets(end, &octets),
            }
        }
    }

    /// A connection is lost: both ends notice.
    pub(super) fn lose(&mut self, id: u64) {
        let ends = self.connections.get(&id).map_or([None; 2], |connection| connection.ends);
        for end in ends.into_iter().flatten() {
            match end {
                End::Node(..) => self.unplug(end),
                End::User(..) | End::Store(..) => self.closed(end),
            }
        }
    }

    /// An end is closed in order.
    pub(super) fn closed(&mut self, end: End) {
        if !self.detach(end) {
            return;
        }
        match end {
            End::Node(site, _, association) => {
                self.feed(site, Input::Closed { association, error: None });
            }
            End::User(..) => self.user_closed(end),
            End::Store(..) => self.reader_closed(end),
        }
    }

    /// The ends of sites whose connections are like this.
    fn site_ends(&self, which: impl Fn(&Connection) -> bool) -> Vec<End> {
        let its = self.ends.iter().filter(|(end, (id, _))| {
            matches!(end, End::Node(..)) && self.connections.get(id).is_some_and(&which)
        });
        its.map(|(end, _)| *end).collect()
    }

    /// Cuts the connections of one channel, and lets none be made.
    pub fn block(&mut self, channel: u32) {
        self.blocked.insert(channel);
        for end in self.site_ends(|connection| connection.channel == Some(channel)) {
            self.unplug(end);
        }
    }

    /// Cuts every connection between the sites: what is in progress is lost.
    pub fn cut(&mut self) {
        for end in self.site_ends(Connection::joins_sites) {
            self.unplug(end);
        }
    }

    /// Cuts every connection between the sites; this site does not notice.
    pub fn cut_unnoticed_by(&mut self, site: usize) {
        self.cut_ends(self.site_ends(Connection::joins_sites), Some(site));
    }

    /// Cuts every connection between two sites; one of them may not notice.
    pub fn cut_between(&mut self, a: usize, b: usize, unnoticed_by: Option<usize>) {
        let both = pair(a, b);
        let ends = self.site_ends(|connection| connection.between == Some(both));
        self.cut_ends(ends, unnoticed_by);
    }

    fn cut_ends(&mut self, ends: Vec<End>, unnoticed_by: Option<usize>) {
        for end in ends {
            match end {
                // What asks for a connection is repeated by TCP, until there is one or an error.
                End::Node(at, ..) if Some(at) == unnoticed_by => {
                    if !self.is_connecting(end) {
                        self.detach(end);
                    }
                }
                _ => self.unplug(end),
            }
        }
    }

    fn is_connecting(&self, end: End) -> bool {
        let connection = self.ends.get(&end).and_then(|(id, _)| self.connections.get(id));
        connection.is_some_and(|connection| connection.ends[1].is_none())
    }

    /// Polls every wire between the sites when it is due: something changed that wires do not know of.
    pub fn poll_lines(&mut self) {
        let joins = self.connections.iter().filter(|(_, connection)| connection.joins_sites());
        let ids: Vec<u64> = joins.map(|(id, _)| *id).collect();
        for id in ids {
            self.poll_later(id, Side::Near);
            self.poll_later(id, Side::Far);
        }
    }

    /// Whether there is any connection between the sites.
    pub fn is_joined(&self) -> bool {
        self.connections.values().any(Connection::joins_sites)
    }

    /// An end is cut off, and notices.
    fn unplug(&mut self, end: End) {
        if !self.detach(end) {
            return;
        }
        if let End::Node(site, _, association) = end {
            let error = Some("connection reset".to_owned());
            self.feed(site, Input::Closed { association, error });
        }
    }

    /// The ends of a site are gone at once. Where octets in progress are lost, the other ends notice
    /// at once, otherwise after those.
    pub(super) fn lose_connections(&mut self, site: usize, with_octets: bool) {
        let its = self.ends.iter();
        let its = its.filter(|(end, _)| matches!(end, End::Node(at, ..) if *at == site));
        let its: Vec<(End, (u64, Side))> = its.map(|(end, at)| (*end, *at)).collect();
        for (end, (id, side)) in its {
            if !with_octets {
                self.drop_end(end);
                continue;
            }
            let connection = self.connections.get(&id);
            let other = connection.and_then(|c| c.ends[side.other() as usize]);
            self.detach(end);
            match other {
                Some(other @ End::Node(..)) => self.unplug(other),
                Some(other @ End::User(..)) => {
                    self.detach(other);
                    self.user_closed(other);
                }
                Some(other @ End::Store(..)) => {
                    self.detach(other);
                    self.reader_closed(other);
                }
                None => {}
            }
        }
    }
}
