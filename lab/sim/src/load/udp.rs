//! UDP loads: datagrams at a rate, and what of them arrives.

use crate::outcome::{LoadCount, MAX_SAMPLES};
use crate::scenario::{ReceiverClock, UdpLoad};
use base::rng::Rng;
use dscp::Dscp;
use router::Time;
use router::packet::{self, HeaderFields};
use std::net::IpAddr;
use std::time::Duration;

/// Octets of a UDP header.
const HEADER: usize = 8;
/// The least payload: the number of the datagram, and when it was sent.
pub(crate) const MIN_PAYLOAD: usize = 16;
/// The source port of the first load.
const FIRST_PORT: u16 = 40_000;
/// The most UDP loads.
pub(crate) const MAX_UDP: usize = 10_000;
const PROTOCOL: u8 = 17;

/// A load that is sent.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) load: UdpLoad,
    /// Place of the host that sends.
    pub(crate) host: usize,
    /// Place of the host that receives.
    to: usize,
    fields: HeaderFields,
    ports: (u16, u16),
    length: usize,
    number: u64,
    rng: Rng,
    count: LoadCount,
    /// Of the last packet that came, in nanoseconds by the clocks of both ends.
    delay: Option<i64>,
    /// What is taken off the receiver's clock.
    corrected: ReceiverClock,
}

/// Octets of the packets of a load.
pub(crate) fn length(load: &UdpLoad) -> usize {
    load.payload + HEADER + if load.to.is_ipv4() { 20 } else { 40 }
}

impl Source {
    pub(crate) fn new(
        load: &UdpLoad,
        place: usize,
        (host, to): (usize, usize),
        source: IpAddr,
        seed: u64,
    ) -> Option<Source> {
        let port = FIRST_PORT.checked_add(u16::try_from(place).ok()?)?;
        let fields = HeaderFields {
            source,
            destination: load.to.ip(),
            protocol: PROTOCOL,
            dscp: load.dscp,
            ecn: 0,
            ttl: 64,
        };
        Some(Source {
            host,
            to,
            fields,
            ports: (port, load.to.port()),
            length: length(load),
            number: 0,
            rng: Rng::new(seed),
            count: LoadCount::default(),
            delay: None,
            corrected: ReceiverClock::default(),
            load: load.clone(),
        })
    }

    /// When it ends, where that is before the run does.
    pub(crate) fn stop(&self) -> Option<Duration> {
        self.load.stop
    }

    /// When the next datagram is sent; `None` after the last. The time counts from the start, so that
    /// errors do not accumulate, and jitter never changes the order.
    pub(crate) fn next(&mut self) -> Option<Time> {
        let bits = self.length as u128 * 8 * 1_000_000_000;
        let nanos = |number: u64| u128::from(number) * bits / u128::from(self.load.rate.max(1));
        let at = nanos(self.number);
        let between = (nanos(self.number + 1) - at) as f64 * self.load.jitter;
        let unit = (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let moved = at.saturating_add_signed((between * (2.0 * unit - 1.0)) as i128);
        let at = Time::ZERO + self.load.start;
        let at = Time(at.0.saturating_add(u64::try_from(moved).unwrap_or(u64::MAX)));
        let over = self.load.stop.is_some_and(|stop| at >= Time::ZERO + stop);
        (!over).then_some(at)
    }

    /// The datagram that goes now.
    pub(crate) fn datagram(&mut self, now: Time) -> Option<Vec<u8>> {
        let mut payload = vec![0; self.load.payload];
        if let Some((number, rest)) = payload.split_first_chunk_mut::<8>() {
            *number = self.number.to_be_bytes();
            if let Some(at) = rest.first_chunk_mut::<8>() {
                *at = now.0.to_be_bytes();
            }
        }
        self.number += 1;
        let octets = packet::datagram(&self.fields, self.ports, &payload)?;
        self.count.sent.add(now.duration_since(Time::ZERO), octets.len());
        Some(octets)
    }

    /// The counts so far.
    pub(crate) fn count(&self) -> LoadCount {
        LoadCount { delay: self.count.delays.percentile(0.5), ..self.count.clone() }
    }

    /// One of its datagrams came to where it ends.
    fn received(&mut self, now: Time, length: usize, dscp: Dscp, payload: &[u8]) {
        self.count.came(now.duration_since(Time::ZERO), length);
        *self.count.dscp_seen.entry(dscp).or_default() += 1;
        let Some(sent) = payload.get(8..16).and_then(|octets| octets.first_chunk::<8>()) else {
            return;
        };
        let took = now.since(Time(u64::from_be_bytes(*sent)));
        if self.load.echo {
            self.count.round_trips.add(took);
            return;
        }
        let clocks = self.load.clock.ahead_at(now.0) - self.corrected.ahead_at(now.0);
        let took = i64::try_from(took).unwrap_or(i64::MAX).saturating_add(clocks);
        let at = now.duration_since(Time::ZERO);
        if self.load.keeps && self.count.samples.len() < MAX_SAMPLES {
            self.count.samples.push((at, took));
        }
        let before = self.delay.replace(took);
        self.count.took(at, took, before);
    }

    /// What was kept of each datagram that came.
    pub(crate) fn samples(&self) -> &[(Duration, i64)] {
        &self.count.samples
    }

    /// From now on this is taken off the receiver's clock.
    pub(crate) fn correct(&mut self, clock: ReceiverClock) {
        self.corrected = clock;
    }

    /// What the host that it came to sends back of it.
    fn answer(&self, dscp: Dscp, payload: &[u8]) -> Option<Vec<u8>> {
        let HeaderFields { source, destination, .. } = self.fields;
        let back = HeaderFields { source: destination, destination: source, dscp, ..self.fields };
        packet::datagram(&back, (self.ports.1, self.ports.0), payload)
    }

    /// Whether a packet has its addresses and ports, as it went or as it comes back.
    fn is_its(&self, header: &packet::PacketHeader, back: bool) -> bool {
        let HeaderFields { source, destination, .. } = self.fields;
        let (from, to) = self.ports;
        let (ends, ports) = match back {
            false => ((source, destination), (from, to)),
            true => ((destination, source), (to, from)),
        };
        (header.source, header.destination) == ends && header.ports == Some(ports)
    }
}

/// Counts a packet that came to a host; gives the host that it came to and what it sends back, where
/// it does.
pub(crate) fn arrive(
    now: Time,
    packet: &router::Packet,
    sources: &mut [Option<Source>],
) -> Option<(usize, Vec<u8>)> {
    let header = packet.header();
    let (from, to) = header.ports.filter(|_| header.protocol == PROTOCOL && !header.fragment)?;
    let payload = packet.octets().get(header.transport + HEADER..)?;
    let (there, back) = (place(from, sources, header, false), place(to, sources, header, true));
    let is_back = there.is_none();
    let source = sources.get_mut(there.or(back)?)?.as_mut()?;
    match (source.load.echo, is_back) {
        (true, false) => return Some((source.to, source.answer(header.dscp, payload)?)),
        // Only echoes are sent back.
        (false, true) => {}
        _ => source.received(now, packet.length(), header.dscp, payload),
    }
    None
}

/// The load that a port belongs to, where a packet is its.
fn place(
    port: u16,
    sources: &[Option<Source>],
    header: &packet::PacketHeader,
    back: bool,
) -> Option<usize> {
    let place = usize::from(port.checked_sub(FIRST_PORT)?);
    let source = sources.get(place)?.as_ref()?;
    source.is_its(header, back).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rate: u64, jitter: f64) -> UdpLoad {
        UdpLoad {
            name: "flood".into(),
            from: "a".into(),
            source: None,
            to: "10.0.2.2:9".parse().unwrap(),
            rate,
            payload: 972,
            dscp: Dscp::CS1,
            start: Duration::from_secs(1),
            stop: Some(Duration::from_secs(11)),
            jitter,
            echo: false,
            clock: ReceiverClock::default(),
            keeps: false,
        }
    }

    #[test]
    fn the_rate_is_that_of_whole_packets_whatever_the_jitter() {
        for jitter in [0.0, 0.2, 0.5] {
            let mut source =
                Source::new(&load(1_000_000, jitter), 0, (0, 1), "10.0.1.2".parse().unwrap(), 5)
                    .unwrap();
            let mut last = Time::ZERO;
            while let Some(at) = source.next() {
                assert!(at >= last, "{jitter}");
                last = at;
                source.datagram(at).unwrap();
            }
            let sent = source.count.sent;
            assert!((1_249..=1_250).contains(&sent.packets), "{jitter}: {sent:?}");
            assert_eq!(sent.octets, sent.packets * 1_000);
        }
    }

    #[test]
    fn a_datagram_is_counted_where_it_belongs() {
        let mut loads = load(1_000_000, 0.0);
        for to in ["10.0.2.2:9", "[fd00::2]:9"] {
            loads.to = to.parse().unwrap();
            let from = if loads.to.is_ipv4() { "10.0.1.2" } else { "fd00::1" };
            let source = Source::new(&loads, 1, (0, 1), from.parse().unwrap(), 5).unwrap();
            let mut sources = [None, Some(source)];
            let [_, Some(one)] = &mut sources else { unreachable!() };
            let octets = one.datagram(Time(5_000)).unwrap();
            let packet = router::Packet::read(octets, 0, Time::ZERO).unwrap();
            assert_eq!(arrive(Time(7_000), &packet, &mut sources), None);
            let count = &sources[1].as_ref().unwrap().count;
            assert_eq!(count.received.octets, count.sent.octets);
            assert_eq!(count.delays.most(), Some(Duration::from_micros(2)));
            assert_eq!(count.dscp_seen, [(Dscp::CS1, 1)].into());
            assert_eq!(count.over_time, [count.sent.octets]);
            arrive(Time(7_000), &packet, &mut sources[..1]);
            assert_eq!(sources[1].as_ref().unwrap().count.received.packets, 1);
        }
    }

    #[test]
    fn an_echo_is_sent_back_as_it_came_and_measured_where_it_was_sent() {
        let loads = UdpLoad { echo: true, ..load(1_000_000, 0.0) };
        let source = Source::new(&loads, 1, (3, 4), "10.0.1.2".parse().unwrap(), 5).unwrap();
        let mut sources = [None, Some(source)];
        let octets = sources[1].as_mut().unwrap().datagram(Time(5_000)).unwrap();
        let mut there = router::Packet::read(octets, 0, Time::ZERO).unwrap();
        assert!(there.set_dscp(Dscp::AF12));
        let (host, octets) = arrive(Time(7_000), &there, &mut sources).unwrap();
        assert_eq!((host, sources[1].as_ref().unwrap().count.received.packets), (4, 0));
        let back = router::Packet::read(octets, 0, Time::ZERO).unwrap();
        assert_eq!(back.header().source, there.header().destination);
        assert_eq!((back.length(), back.header().dscp), (there.length(), Dscp::AF12));
        assert_eq!(arrive(Time(9_000), &back, &mut sources), None);
        let count = &sources[1].as_ref().unwrap().count;
        assert_eq!(count.round_trips.most(), Some(Duration::from_micros(4)));
        assert_eq!((count.received.packets, count.delays.count()), (1, 0));
        assert_eq!(count.dscp_seen, [(Dscp::AF12, 1)].into());
    }

    #[test]
    fn a_clock_that_is_ahead_is_seen_and_taken_off() {
        let clock = ReceiverClock { ahead: 3e6, faster: 50e-6 };
        let load = UdpLoad { clock, keeps: true, ..load(1_000_000, 0.0) };
        let mut source = Source::new(&load, 0, (0, 1), "10.0.1.2".parse().unwrap(), 5).unwrap();
        let come = |source: &mut Source, at: u64| {
            let octets = source.datagram(Time(at)).unwrap();
            let packet = router::Packet::read(octets, 0, Time::ZERO).unwrap();
            let header = packet.header();
            let payload = &packet.octets()[header.transport + HEADER..];
            source.received(Time(at + 1_000), 1_000, Dscp::CS1, payload);
        };
        come(&mut source, 0);
        come(&mut source, 10_000_000_000);
        let took: Vec<i64> = source.count().samples.iter().map(|(_, took)| *took).collect();
        assert_eq!(took, [3_001_000, 3_501_000]);
        source.correct(clock);
        come(&mut source, 20_000_000_000);
        assert_eq!(source.count().samples[2].1, 1_000);
        assert_eq!(source.count().delay_over_time[200].nanos, 1_000);
    }
}
