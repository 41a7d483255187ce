//! The machine: frames in, rows out as soon as they are complete, and the sums at the end.

use crate::flow::{Conversation, Key, TRIES};
use crate::link::{self, Passed};
use crate::message::{Association, Passing, Transfer, looks_like_tpkt};
use crate::packet::{self, Packet, Segment};
use crate::path::Paths;
use crate::report::{
    Aggregate, Application, Flow, Hop, Interval, Message, Over, Point, Totals, Volume,
};
use crate::table::BoundedTable;
use crate::tcp::{SegmentKind, TcpCounts};
use crate::{LinkType, Series, Summary, Time};
use dscp::Dscp;
use std::collections::{BTreeMap, VecDeque};

/// Bounds on what is kept, and on how fine it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows at once; the one that was idle for longest is removed for a new one.
    pub flows: usize,
    /// TPKT connections that are followed at once.
    pub associations: usize,
    /// Octets of TCP that wait for those before them, in all connections together.
    pub waiting: usize,
    /// Packets that wait to be seen at another point.
    pub sightings: usize,
    /// Nanoseconds that a packet may be in transit between the first and the last point, the
    /// difference of their clocks included.
    pub window: u64,
    /// The largest number of points that are distinguished, at most 65,535.
    pub points: usize,
    /// Nanoseconds of an interval, to begin with.
    pub interval: u64,
    /// Most intervals of a series.
    pub intervals: usize,
}

impl Default for Limits {
    /// 20,000 flows, 512 associations, 64 MiB, 262,144 packets within 10 s, 64 points, 1,024
    /// intervals of 100 ms or more.
    fn default() -> Limits {
        Limits {
            flows: 20_000,
            associations: 512,
            waiting: 64 << 20,
            sightings: 1 << 18,
            window: 10_000_000_000,
            points: 64,
            interval: 100_000_000,
            intervals: 1_024,
        }
    }
}

/// A frame as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Where: what [`Analysis::point`] gave.
    pub point: usize,
    /// Octets that it had.
    pub original: u32,
    /// As many of them as were captured.
    pub octets: &'a [u8],
}

/// A row that is complete.
#[derive(Clone, Debug)]
pub enum Output {
    /// One direction of a flow.
    Flow(Box<Flow>),
    /// The transfer of a message.
    Message(Box<Message>),
}

/// What is known of a capture so far.
#[derive(Clone, Debug)]
pub struct Analysis {
    limits: Limits,
    points: Vec<Point>,
    /// Places of points that a frame names itself (SLL2).
    within: BTreeMap<(usize, u32), usize>,
    aggregates: BTreeMap<(u16, u8), Box<Aggregate>>,
    flows: BoundedTable<Key, Box<Conversation>>,
    paths: Paths,
    totals: Totals,
    outputs: VecDeque<Output>,
    associations: usize,
    waiting: usize,
    finished: bool,
    now: Time,
}

impl Analysis {
    /// Of nothing yet.
    pub fn new(limits: Limits) -> Analysis {
        Analysis {
            limits,
            points: Vec::new(),
            within: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            flows: BoundedTable::new(limits.flows),
            paths: Paths::new(&limits),
            totals: Totals::default(),
            outputs: VecDeque::new(),
            associations: 0,
            waiting: 0,
            finished: false,
            now: Time(0),
        }
    }

    /// A further point; its place. Beyond the limit, the last one's.
    pub fn point(&mut self, name: String, link: LinkType) -> usize {
        if self.points.len() < self.limits.points.clamp(1, usize::from(u16::MAX)) {
            self.points.push(Point { name, link, span: None, frames: 0 });
        } else {
            self.totals.points_passed += 1;
        }
        self.points.len() - 1
    }

    /// All points so far.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The counts so far.
    pub fn totals(&self) -> Totals {
        Totals { sightings_evicted: self.paths.evicted, ..self.totals }
    }

    /// The sums by point and code point, so far.
    pub fn aggregates(&self) -> impl Iterator<Item = (usize, &Aggregate)> {
        self.aggregates.iter().map(|((point, _), of)| (usize::from(*point), of.as_ref()))
    }

    /// The outcome of packets between points; complete after [`Analysis::finish`].
    pub fn hops(&self) -> Vec<Hop> {
        self.paths.hops()
    }

    /// Flows that are kept now, and octets that wait in them: at most the bounds of [`Limits`].
    pub fn kept(&self) -> (usize, usize) {
        (self.flows.len(), self.waiting)
    }

    /// A row that is complete. After [`Analysis::finish`] the rows of all flows follow.
    pub fn poll(&mut self) -> Option<Output> {
        if self.outputs.is_empty() && self.finished {
            let (key, conversation) = self.flows.pop()?;
            self.over(&key, *conversation, Over::Capture);
        }
        self.outputs.pop_front()
    }

    /// The capture is over.
    pub fn finish(&mut self) {
        self.finished = true;
        self.paths.finish();
    }

    /// A frame passed. Then [`Analysis::poll`] is called until it gives nothing.
    pub fn handle(&mut self, now: Time, frame: Frame<'_>) {
        self.now = now;
        self.totals.frames += 1;
        let Some(point) = self.points.get_mut(frame.point) else { return };
        let link = point.link;
        let carried = match link::carried(link, frame.octets) {
            Ok(carried) => carried,
            Err(passed) => {
                point.frame(now);
                match passed {
                    Passed::NotIp => self.totals.not_ip += 1,
                    Passed::Short => self.totals.cut += 1,
                    Passed::Link(_) => self.totals.unknown_link += 1,
                }
                return;
            }
        };
        let place = match carried.interface {
            Some(number) => self.interface(frame.point, number),
            None => frame.point,
        };
        if let Some(point) = self.points.get_mut(place) {
            point.frame(now);
        }
        let header = u32::try_from(carried.header).unwrap_or(u32::MAX);
        let read = packet::read(carried.octets, frame.original.saturating_sub(header));
        let (Ok(packet), Ok(place)) = (read, u16::try_from(place)) else {
            self.totals.broken += 1;
            return;
        };
        self.totals.packets += 1;
        self.totals.truncated += u64::from((frame.octets.len() as u64) < u64::from(frame.original));
        self.packet(now, place, &packet, frame.original);
    }

    /// The point of an interface that frames of another point name.
    fn interface(&mut self, point: usize, number: u32) -> usize {
        if let Some(place) = self.within.get(&(point, number)) {
            return *place;
        }
        let Some(of) = self.points.get(point) else { return point };
        let (name, link) = (format!("{}#{number}", of.name), of.link);
        let place = self.point(name, link);
        if self.within.len() < self.limits.points {
            self.within.insert((point, number), place);
        }
        place
    }

    fn packet(&mut self, now: Time, point: u16, packet: &Packet<'_>, frame: u32) {
        let (key, side) = Key::new(point, packet);
        if self.points.len() > 1 {
            self.paths.packet(now, point, packet, key.direction(side));
        }
        let segment = packet.segment();
        let aggregate = self.aggregates.entry((point, packet.dscp.number()));
        let limits = self.limits;
        let aggregate =
            aggregate.or_insert_with(|| Box::new(Aggregate::new(packet.dscp, now, &limits)));
        aggregate.packet(now, packet, frame);
        let another = match (self.flows.touch(&key), &segment) {
            (None, _) => true,
            (Some(known), Some(segment)) if known.is_another(side, segment) => true,
            _ => false,
        };
        if another {
            self.open(key);
        }
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let Some((half, new)) = flow.half(side, now, &limits) else { return };
        half.packet(now, packet, frame);
        if let Some(aggregate) = self.aggregates.get_mut(&(point, packet.dscp.number())) {
            aggregate.flows += u64::from(new);
        }
        if let Some((payload, length)) = packet.datagram()
            && half.datagram(now, payload, length)
        {
            flow.application = Application::Load;
        }
        if let Some(segment) = segment {
            self.segment(now, (&key, side), &segment, packet.dscp);
        }
    }

    /// Makes room for a new flow in the place of one with the same key, or of the one that was idle
    /// for longest.
    fn open(&mut self, key: Key) {
        if let Some((old, conversation)) = self.flows.insert(key, Box::new(Conversation::new())) {
            let over = match old == key {
                true if conversation.is_closed() => Over::Closed,
                true => Over::Replaced,
                false if conversation.is_closed() => Over::Closed,
                false => {
                    self.totals.flows_evicted += 1;
                    Over::Evicted
                }
            };
            self.over(&old, *conversation, over);
        }
    }

    fn segment(&mut self, now: Time, of: (&Key, usize), segment: &Segment<'_>, dscp: Dscp) {
        let (key, side) = of;
        let Some(flow) = self.flows.get_mut(key) else { return };
        let Some(done) = flow.segment(now, side, segment, dscp) else { return };
        if let Some(aggregate) = self.aggregates.get_mut(&(key.point, dscp.number())) {
            aggregate.segment(now, done.seen, done.duplicate_ack, segment);
        }
        if let Some((dscp, nanos)) = done.trip
            && let Some(aggregate) = self.aggregates.get_mut(&(key.point, dscp))
        {
            let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
            aggregate.round_trip.push(nanos);
            if let Some(bin) = aggregate.series.at(now) {
                bin.round_trip.push(nanos);
            }
        }
        if segment.length == 0 {
            return;
        }
        if flow.association.is_none() {
            if flow.tries >= TRIES {
                return;
            }
            flow.tries += 1;
            if !looks_like_tpkt(segment.payload) {
                return;
            }
            if self.associations >= self.limits.associations {
                self.totals.associations_passed += 1;
                flow.tries = TRIES;
                return;
            }
            self.associations += 1;
            flow.association = Some(Box::new(Association::new(self.limits.interval)));
        }
        let again = flow.again();
        let Some(association) = flow.association.as_mut() else { return };
        let before = association.held();
        let room = self.limits.waiting.saturating_sub(self.waiting);
        let mut ended = Vec::new();
        let (payload, length) = (segment.payload, u64::from(segment.length));
        let passing = Passing { now, side, from: done.from, payload, length, dscp, again };
        association.segment(&passing, room, &mut ended);
        self.waiting = (self.waiting + association.held()).saturating_sub(before);
        flow.application = association.application;
        for transfer in ended {
            self.message(key, transfer);
        }
    }

    fn message(&mut self, key: &Key, transfer: Transfer) {
        let [low, high] = key.ends;
        let (source, destination) = if transfer.side == 0 { (low, high) } else { (high, low) };
        self.totals.messages += 1;
        self.outputs.push_back(Output::Message(Box::new(Message {
            point: usize::from(key.point),
            source,
            destination,
            span: transfer.span,
            sent: transfer.sent,
            octets: transfer.octets,
            marks: transfer.marks,
            retransmissions: transfer.retransmissions,
            checkpoints: transfer.checkpoints,
            resumed: transfer.resumed,
            gaps: transfer.gaps,
            outcome: transfer.outcome,
            envelope: transfer.envelope,
            series: transfer.series,
        })));
    }

    /// A flow is over: its rows are complete.
    fn over(&mut self, key: &Key, mut flow: Conversation, over: Over) {
        if let Some(mut association) = flow.association.take() {
            self.associations = self.associations.saturating_sub(1);
            self.waiting = self.waiting.saturating_sub(association.held());
            let mut ended = Vec::new();
            association.finish(self.now, flow.again(), &mut ended);
            for transfer in ended {
                self.message(key, transfer);
            }
        }
        for side in [0, 1] {
            let Some(row) = flow.row(key, side, over) else { continue };
            self.totals.flows += 1;
            let mark = row.marks.iter().max_by_key(|(_, packets)| *packets);
            if let (Some((dscp, _)), Some(numbered)) = (mark, &row.numbered)
                && let Some(aggregate) = self.aggregates.get_mut(&(key.point, dscp.number()))
            {
                aggregate.numbered.0 += numbered.packets;
                aggregate.numbered.1 = aggregate.numbered.1.saturating_add(numbered.expected);
            }
            if let (Some((dscp, _)), Some(tcp)) = (mark, &row.tcp)
                && let Some(aggregate) = self.aggregates.get_mut(&(key.point, dscp.number()))
            {
                aggregate.tcp.missing_octets += tcp.missing_octets;
                aggregate.tcp.lost_before += tcp.lost_before;
                aggregate.tcp.spurious += tcp.spurious;
            }
            self.outputs.push_back(Output::Flow(Box::new(row)));
        }
    }
}

impl Point {
    fn frame(&mut self, now: Time) {
        self.frames += 1;
        self.span = Some(self.span.map_or((now, now), |(a, b)| (a.min(now), b.max(now))));
    }
}

impl Aggregate {
    fn new(dscp: Dscp, now: Time, limits: &Limits) -> Aggregate {
        Aggregate {
            dscp,
            volume: Volume::default(),
            span: (now, now),
            flows: 0,
            tcp: TcpCounts::default(),
            round_trip: Summary::default(),
            numbered: (0, 0),
            series: Series::<Interval>::new(limits.interval, limits.intervals),
        }
    }

    fn packet(&mut self, now: Time, packet: &Packet<'_>, frame: u32) {
        self.volume.push(packet.length, frame);
        self.span = (self.span.0.min(now), self.span.1.max(now));
        if let Some(bin) = self.series.at(now) {
            bin.packets += 1;
            bin.octets += u64::from(packet.length);
        }
    }

    fn segment(
        &mut self,
        now: Time,
        seen: SegmentKind,
        duplicate_ack: bool,
        segment: &Segment<'_>,
    ) {
        let counts = &mut self.tcp;
        counts.duplicate_acks += u64::from(duplicate_ack);
        counts.zero_windows += u64::from(segment.window == 0 && segment.length > 0);
        match seen {
            SegmentKind::Nothing => return,
            SegmentKind::Probe => counts.probes += 1,
            _ => counts.segments += 1,
        }
        match seen {
            SegmentKind::OutOfOrder => counts.out_of_order += 1,
            SegmentKind::Again(octets) => {
                counts.retransmissions += 1;
                counts.retransmitted_octets += octets;
                if let Some(bin) = self.series.at(now) {
                    bin.retransmissions += 1;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
