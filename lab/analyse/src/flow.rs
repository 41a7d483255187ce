//! A flow at one point: packets with the same addresses, protocol and ports, in both directions.

use crate::message::Association;
use crate::numbered::Numbered;
use crate::packet::{Packet, Segment, flag};
use crate::path::Hash;
use crate::report::{Application, Endpoint, Flow, Over, Volume};
use crate::tcp::{Acknowledged, RoundTrip, SegmentKind, TcpCounts, Track};
use crate::{Limits, Received, Series, Summary, Time};
use dscp::Dscp;
use load_header::LoadHeader;
use smallvec::SmallVec;

/// Intervals of a flow's series.
const INTERVALS: usize = 64;
/// Segments of a connection in which the begin of a TPKT packet is looked for.
pub(crate) const TRIES: u8 = 32;

/// What makes packets one flow. The hash comes first: it decides nearly every comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    hash: u64,
    pub(crate) point: u16,
    pub(crate) protocol: u8,
    /// The lower end, and the other.
    pub(crate) ends: [Endpoint; 2],
}

impl Key {
    /// A packet's flow, and which direction it is: 0 from the lower end.
    pub(crate) fn new(point: u16, packet: &Packet<'_>) -> (Key, usize) {
        let ports = packet.ports();
        let source = Endpoint { address: packet.source, port: ports.map(|ports| ports.0) };
        let destination =
            Endpoint { address: packet.destination, port: ports.map(|ports| ports.1) };
        let (ends, side) = if source <= destination {
            ([source, destination], 0)
        } else {
            ([destination, source], 1)
        };
        let mut hash = Hash::default();
        for end in &ends {
            hash.address(end.address);
            hash.word(end.port.map_or(1 << 16, u64::from));
        }
        hash.word(u64::from(packet.protocol) << 16 | u64::from(point));
        (Key { hash: hash.0, point, protocol: packet.protocol, ends }, side)
    }

    /// The direction's name at every point.
    pub(crate) fn direction(&self, side: usize) -> u64 {
        let mut hash = Hash::default();
        for end in &self.ends {
            hash.address(end.address);
            hash.word(end.port.map_or(1 << 16, u64::from));
        }
        hash.word(u64::from(self.protocol) << 1 | side as u64);
        hash.0
    }
}

/// TCP of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tcp {
    pub(crate) track: Track,
    pub(crate) trip: RoundTrip,
    initial: Option<u32>,
}

/// Load of `lab load` in one direction.
#[derive(Clone, Debug)]
struct Load {
    run: u32,
    flow: u32,
    numbered: Numbered,
}

/// One direction.
#[derive(Clone, Debug)]
pub(crate) struct Half {
    span: (Time, Time),
    volume: Volume,
    payload_octets: u64,
    marks: SmallVec<[(u8, u64); 1]>,
    pub(crate) tcp: Option<Box<Tcp>>,
    pub(crate) round_trip: Summary,
    load: Option<Box<Load>>,
    /// Of earlier loads on the same ports.
    before: Option<Received>,
    delay: Summary,
    series: Series<u64>,
}

impl Half {
    fn new(now: Time, limits: &Limits) -> Half {
        Half {
            span: (now, now),
            volume: Volume::default(),
            payload_octets: 0,
            marks: SmallVec::new(),
            tcp: None,
            round_trip: Summary::default(),
            load: None,
            before: None,
            delay: Summary::default(),
            series: Series::new(limits.interval, INTERVALS),
        }
    }

    /// Counts a packet.
    pub(crate) fn packet(&mut self, now: Time, packet: &Packet<'_>, frame: u32) {
        self.span = (self.span.0.min(now), self.span.1.max(now));
        self.volume.push(packet.length, frame);
        if let Some(octets) = self.series.at(now) {
            *octets += u64::from(packet.length);
        }
        let dscp = packet.dscp.number();
        match self.marks.iter_mut().find(|(mark, _)| *mark == dscp) {
            Some((_, packets)) => *packets += 1,
            None => self.marks.push((dscp, 1)),
        }
    }

    /// Counts the payload of UDP; whether it is a load's.
    pub(crate) fn datagram(&mut self, now: Time, payload: &[u8], length: u32) -> bool {
        self.payload_octets += u64::from(length);
        let Some(header) = LoadHeader::read(payload) else { return false };
        let (run, flow) = (header.run, header.flow);
        if self.load.as_ref().is_none_or(|load| (load.run, load.flow) != (run, flow)) {
            let numbered = Numbered::new(if header.end { 0 } else { header.sequence });
            let before = self.load.replace(Box::new(Load { run, flow, numbered }));
            if let Some(before) = before {
                self.before = sum(self.before, before.numbered.finish());
            }
        }
        let Some(load) = &mut self.load else { return true };
        if header.end {
            load.numbered.end(header.sequence);
        } else {
            load.numbered.packet(now, header.sequence, header.sent);
            if header.realtime {
                self.delay.push(now.signed_since(Time(header.sent)));
            }
        }
        true
    }

    pub(crate) fn payload(&mut self, octets: u32) {
        self.payload_octets += u64::from(octets);
    }

    fn numbered(&self) -> Option<Received> {
        sum(self.before, self.load.as_ref().and_then(|load| load.numbered.finish()))
    }

    /// How many of its segments were sent again.
    pub(crate) fn again(&self) -> u64 {
        self.tcp.as_ref().map_or(0, |tcp| tcp.track.counts.retransmissions)
    }
}

/// Both together; jitter is that of the later one.
fn sum(before: Option<Received>, load: Option<Received>) -> Option<Received> {
    let (Some(before), Some(load)) = (before, load) else { return load.or(before) };
    Some(Received {
        packets: before.packets + load.packets,
        expected: before.expected.saturating_add(load.expected),
        duplicates: before.duplicates + load.duplicates,
        reordered: before.reordered + load.reordered,
        jitter: load.jitter.or(before.jitter),
    })
}

/// Both directions.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) halves: [Option<Half>; 2],
    pub(crate) application: Application,
    pub(crate) association: Option<Box<Association>>,
    /// Segments that were searched for TPKT without success.
    pub(crate) tries: u8,
    /// Directions that have ended: bits.
    finished: u8,
    reset: bool,
}

/// The effect of a segment on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) seen: SegmentKind,
    /// The number of its first octet of data, where its place is known.
    pub(crate) from: u64,
    /// Whether the acknowledgement in it repeats the one before.
    pub(crate) duplicate_ack: bool,
    /// Round-trip time of the other direction, and the code point of what was acknowledged.
    pub(crate) trip: Option<(u8, u64)>,
}

impl Conversation {
    pub(crate) fn new() -> Conversation {
        Conversation {
            halves: [None, None],
            application: Application::Unknown,
            association: None,
            tries: 0,
            finished: 0,
            reset: false,
        }
    }

    /// A direction; whether it is new.
    pub(crate) fn half(
        &mut self,
        side: usize,
        now: Time,
        limits: &Limits,
    ) -> Option<(&mut Half, bool)> {
        let half = self.halves.get_mut(side)?;
        let new = half.is_none();
        Some((half.get_or_insert_with(|| Half::new(now, limits)), new))
    }

    /// Whether this segment is the first of another connection with the same ports.
    pub(crate) fn is_another(&self, side: usize, segment: &Segment<'_>) -> bool {
        let half = self.halves.get(side).and_then(Option::as_ref);
        let Some(tcp) = half.and_then(|half| half.tcp.as_ref()) else {
            // A direction that begins anew after the connection was over.
            return self.reset && segment.has(flag::SYN);
        };
        let opens = segment.has(flag::SYN) && !segment.has(flag::ACK);
        if opens && tcp.track.has_begun() {
            return self.is_closed() || tcp.initial != Some(segment.sequence);
        }
        !segment.has(flag::RST) && !tcp.track.is_near(segment.sequence)
    }

    /// Whether both directions have ended, or one was reset.
    pub(crate) fn is_closed(&self) -> bool {
        self.reset || self.finished == 3
    }

    /// Segments that each direction has sent again.
    pub(crate) fn again(&self) -> [u64; 2] {
        let [a, b] = &self.halves;
        [a, b].map(|half| half.as_ref().map_or(0, Half::again))
    }

    /// A segment of this direction.
    pub(crate) fn segment(
        &mut self,
        now: Time,
        side: usize,
        segment: &Segment<'_>,
        dscp: Dscp,
    ) -> Option<Done> {
        let [low, high] = &mut self.halves;
        let (own, other) = if side == 0 { (low, high) } else { (high, low) };
        let own = own.as_mut()?;
        own.payload(segment.length);
        let own_tcp = own.tcp.get_or_insert_default();
        let other_tcp = other.as_mut().and_then(|other| other.tcp.as_deref_mut());
        let closed = other_tcp.as_ref().is_some_and(|tcp| tcp.track.is_closed());
        // From the sender over here to the receiver and back: both directions as seen from here.
        let least = other_tcp.as_ref().and_then(|tcp| tcp.trip.least);
        let round = match (own_tcp.trip.least, least) {
            (None, None) => None,
            (own, other) => Some(own.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
        if segment.has(flag::SYN) && own_tcp.initial.is_none() {
            own_tcp.initial = Some(segment.sequence);
        }
        let seen = own_tcp.track.segment(now, segment, closed, round);
        let begin = own_tcp.track.unwrap(segment.sequence);
        let from = begin + u64::from(segment.has(flag::SYN));
        let end = begin + u64::from(segment.span());
        let value = segment.timestamps.map(|(value, _)| value);
        match seen {
            SegmentKind::New => own_tcp.trip.sent(now, end, value, dscp.number()),
            SegmentKind::Again(_) | SegmentKind::OutOfOrder => {
                own_tcp.trip.sent_again(now, begin, end, value);
            }
            SegmentKind::Nothing | SegmentKind::Probe => {}
        }
        self.finished |= u8::from(segment.has(flag::FIN)) << side.min(1);
        self.reset |= segment.has(flag::RST);
        let mut done = Done { seen, from, duplicate_ack: false, trip: None };
        let bare = segment.span() == 0;
        if let (Some(tcp), Some(number)) = (other_tcp, segment.acknowledged) {
            match tcp.track.acknowledge(number, bare) {
                Acknowledged::UpTo(number) => {
                    let echo = segment.timestamps.map(|(_, echo)| echo);
                    done.trip = tcp.trip.acknowledged(now, number, echo);
                }
                Acknowledged::Again => {
                    own_tcp.track.counts.duplicate_acks += 1;
                    done.duplicate_ack = true;
                }
                Acknowledged::Nothing => {}
            }
        }
        if let (Some((_, nanos)), Some(other)) = (done.trip, other) {
            other.round_trip.push(i64::try_from(nanos).unwrap_or(i64::MAX));
        }
        Some(done)
    }

    /// The row of a direction.
    pub(crate) fn row(&mut self, key: &Key, side: usize, over: Over) -> Option<Flow> {
        let half = self.halves.get_mut(side)?.take()?;
        let [low, high] = key.ends;
        let (source, destination) = if side == 0 { (low, high) } else { (high, low) };
        let named = |(number, packets): &(u8, u64)| Some((Dscp::new(*number)?, *packets));
        let tcp: Option<TcpCounts> = half.tcp.as_ref().map(|tcp| tcp.track.finish());
        Some(Flow {
            point: usize::from(key.point),
            protocol: key.protocol,
            source,
            destination,
            application: self.application,
            span: half.span,
            volume: half.volume,
            payload_octets: half.payload_octets,
            marks: half.marks.iter().filter_map(named).collect(),
            tcp,
            numbered: half.numbered(),
            round_trip: half.round_trip,
            delay: half.delay,
            over: if over == Over::Capture && self.is_closed() { Over::Closed } else { over },
            series: half.series,
        })
    }
}
