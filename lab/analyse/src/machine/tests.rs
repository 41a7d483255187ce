//! Whole captures, made here packet by packet.

mod between;
mod bounds;
mod messages;

use super::*;
use crate::packet::flag;
use crate::report::TransferOutcome;
use std::net::Ipv4Addr;

const MS: u64 = 1_000_000;

/// A packet to be made.
#[derive(Clone, Copy)]
struct Sent<'a> {
    source: u32,
    destination: u32,
    ports: (u16, u16),
    dscp: Dscp,
    ttl: u8,
    identification: u16,
    protocol: u8,
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    payload: &'a [u8],
}

const TCP: Sent<'static> = Sent {
    source: 1,
    destination: 2,
    ports: (40_000, 5_000),
    dscp: Dscp::CS0,
    ttl: 64,
    identification: 0,
    protocol: 6,
    sequence: 0,
    acknowledged: 0,
    flags: flag::ACK,
    payload: &[],
};

const UDP: Sent<'static> = Sent { protocol: 17, ..TCP };

impl Sent<'_> {
    fn octets(&self) -> Vec<u8> {
        let transport = if self.protocol == 6 { 20 } else { 8 };
        let length = (20 + transport + self.payload.len()) as u16;
        let mut octets = vec![0x45, self.dscp.tos()];
        octets.extend(length.to_be_bytes());
        octets.extend(self.identification.to_be_bytes());
        octets.extend([0x40, 0, self.ttl, self.protocol, 0, 0]);
        for host in [self.source, self.destination] {
            octets.extend(Ipv4Addr::from_bits(0x0a00_0000 | host).octets());
        }
        octets.extend(self.ports.0.to_be_bytes());
        octets.extend(self.ports.1.to_be_bytes());
        if self.protocol == 6 {
            octets.extend(self.sequence.to_be_bytes());
            octets.extend(self.acknowledged.to_be_bytes());
            octets.extend([0x50, self.flags, 1, 0, 0, 0, 0, 0]);
        } else {
            octets.extend((length - 20).to_be_bytes());
            octets.extend([0, 0]);
        }
        octets.extend(self.payload);
        octets
    }
}

/// An analysis, and the rows that came out of it.
struct Bench {
    analysis: Analysis,
    flows: Vec<Flow>,
    messages: Vec<Message>,
}

impl Bench {
    fn new(limits: Limits, points: usize) -> Bench {
        let mut analysis = Analysis::new(limits);
        for place in 0..points {
            assert_eq!(analysis.point(format!("p{place}"), LinkType::Raw), place);
        }
        Bench { analysis, flows: Vec::new(), messages: Vec::new() }
    }

    fn packet(&mut self, at: u64, point: usize, sent: &Sent<'_>) {
        let octets = sent.octets();
        let original = octets.len() as u32;
        self.analysis.handle(Time(at), Frame { point, original, octets: &octets });
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.analysis.poll() {
            match output {
                Output::Flow(flow) => self.flows.push(*flow),
                Output::Message(message) => self.messages.push(*message),
            }
        }
    }

    fn finish(&mut self) {
        self.analysis.finish();
        self.drain();
    }

    fn aggregate(&self, point: usize, dscp: Dscp) -> &Aggregate {
        let mut all = self.analysis.aggregates();
        all.find(|(at, of)| *at == point && of.dscp == dscp).unwrap().1
    }
}

#[test]
fn a_connection_is_two_rows_with_loss_and_round_trip_time() {
    let mut bench = Bench::new(Limits::default(), 1);
    let there = Sent { dscp: Dscp::CS3, ..TCP };
    let back = Sent { source: 2, destination: 1, ports: (5_000, 40_000), ..there };
    let data = [7; 100];
    let steps = [
        (0, Sent { sequence: 99, flags: flag::SYN, ..there }),
        (40, Sent { sequence: 499, acknowledged: 100, flags: flag::SYN | flag::ACK, ..back }),
        (41, Sent { sequence: 100, acknowledged: 500, ..there }),
        (42, Sent { sequence: 100, acknowledged: 500, payload: &data, ..there }),
        // A segment is lost behind this point, one before it.
        (43, Sent { sequence: 200, acknowledged: 500, payload: &data, ..there }),
        (44, Sent { sequence: 400, acknowledged: 500, payload: &data, ..there }),
        (92, Sent { sequence: 500, acknowledged: 200, ..back }),
        (93, Sent { sequence: 500, acknowledged: 200, ..back }),
        (140, Sent { sequence: 200, acknowledged: 500, payload: &data, ..there }),
        (141, Sent { sequence: 300, acknowledged: 500, payload: &data, ..there }),
        (200, Sent { sequence: 500, acknowledged: 500, ..back }),
        (300, Sent { sequence: 500, acknowledged: 500, flags: flag::ACK | flag::FIN, ..there }),
        (340, Sent { sequence: 500, acknowledged: 501, flags: flag::ACK | flag::FIN, ..back }),
    ];
    for (ms, sent) in &steps {
        bench.packet(ms * MS, 0, sent);
    }
    bench.finish();
    let [low, high] = &bench.flows[..] else { panic!("{:?}", bench.flows) };
    assert_eq!((low.source.to_string().as_str(), low.over), ("10.0.0.1:40000", Over::Closed));
    let tcp = low.tcp.unwrap();
    // SYN, five of data of which one came twice, FIN.
    assert_eq!((tcp.segments, tcp.retransmissions, tcp.lost_before), (7, 2, 1));
    assert_eq!((tcp.out_of_order, tcp.missing_octets, tcp.duplicate_acks), (0, 0, 0));
    assert_eq!(high.tcp.unwrap().duplicate_acks, 1);
    assert_eq!((low.payload_octets, low.marks.as_slice()), (500, &[(Dscp::CS3, 8)][..]));
    // 40 of the SYN, 50 of the first data, 40 of the FIN; what was sent twice gives none.
    let trips = &low.round_trip;
    assert_eq!(
        (trips.count(), trips.least(), trips.most()),
        (4, Some(40_000_000), Some(156_000_000))
    );
    let aggregate = bench.aggregate(0, Dscp::CS3);
    assert_eq!(aggregate.volume.packets, steps.len() as u64);
    assert_eq!(aggregate.volume.octets, 13 * 40 + 500);
    assert_eq!((aggregate.tcp.retransmissions, aggregate.flows), (2, 2));
    let in_bins: u64 = aggregate.series.iter().map(|(_, bin)| bin.octets).sum();
    assert_eq!(in_bins, aggregate.volume.octets);
}

#[test]
fn ports_used_again_are_another_flow() {
    let mut bench = Bench::new(Limits::default(), 1);
    for (at, sequence) in [(0, 5), (10, 5), (20, 900_000)] {
        bench.packet(at, 0, &Sent { sequence, flags: flag::SYN, ..TCP });
    }
    // Over, and the same number again.
    bench.packet(21, 0, &Sent { sequence: 900_001, flags: flag::RST, ..TCP });
    bench.packet(22, 0, &Sent { sequence: 900_000, flags: flag::SYN, ..TCP });
    // A jump without a SYN: the capture has missed it.
    bench.packet(30, 0, &Sent { sequence: 3 << 30, payload: &[1; 9], ..TCP });
    bench.finish();
    let ends: Vec<Over> = bench.flows.iter().map(|flow| flow.over).collect();
    assert_eq!(ends, [Over::Replaced, Over::Closed, Over::Replaced, Over::Capture]);
    assert_eq!(bench.flows[0].tcp.unwrap().retransmissions, 1, "the SYN that came twice");
}

#[test]
fn load_is_recognised_by_its_payload_and_its_loss_counted() {
    let mut bench = Bench::new(Limits::default(), 1);
    let header = |sequence: u64, end: u8| {
        let mut payload = b"XLOD\x01\0\0\0".to_vec();
        payload[5] = end;
        payload.extend([0, 0, 0, 9, 0, 0, 0, 1]);
        payload.extend(sequence.to_be_bytes());
        payload.extend((sequence * 20 * MS).to_be_bytes());
        payload.extend([0, 0, 0, 64, 0, 0, 0, 0]);
        payload.resize(64, 0);
        payload
    };
    for n in (0..50u64).filter(|n| n % 10 != 3) {
        let payload = header(n, 0);
        // Every second one is 8 ms late.
        let at = n * 20 * MS + n % 2 * 8 * MS;
        bench.packet(at, 0, &Sent { dscp: Dscp::EF, payload: &payload, ..UDP });
    }
    let payload = header(52, 1);
    bench.packet(1_100 * MS, 0, &Sent { dscp: Dscp::EF, payload: &payload, ..UDP });
    bench.finish();
    let flow = &bench.flows[0];
    let found = flow.numbered.unwrap();
    assert_eq!(flow.application, Application::Load);
    assert_eq!((found.packets, found.expected, found.reordered, found.duplicates), (45, 52, 0, 0));
    let (end, _) = found.jitter.unwrap();
    assert!((5.0 * MS as f64..8.0 * MS as f64).contains(&end), "{end}");
    assert_eq!(bench.aggregate(0, Dscp::EF).numbered, (45, 52));
}

#[test]
fn what_is_no_ip_is_counted_and_nothing_else() {
    let mut analysis = Analysis::new(Limits::default());
    let ethernet = analysis.point("e".into(), LinkType::Ethernet);
    let other = analysis.point("o".into(), LinkType::Other(147));
    let arp = [&[0; 12][..], &[8, 6, 0, 1]].concat();
    let broken = [&[0; 12][..], &[8, 0, 0x45, 0]].concat();
    for (point, octets) in
        [(ethernet, &arp[..]), (ethernet, &arp[..9]), (ethernet, &broken), (other, &arp), (9, &arp)]
    {
        analysis.handle(Time(5), Frame { point, original: 60, octets });
    }
    let totals = analysis.totals();
    assert_eq!((totals.frames, totals.packets), (5, 0));
    assert_eq!((totals.not_ip, totals.cut, totals.broken, totals.unknown_link), (1, 1, 1, 1));
    assert_eq!(analysis.points()[ethernet].frames, 3);
}

#[test]
fn interfaces_that_frames_name_are_points_of_their_own() {
    let mut analysis = Analysis::new(Limits::default());
    let any = analysis.point("any".into(), LinkType::Sll2);
    for interface in [3u8, 4, 3] {
        let head = [8, 0, 0, 0, 0, 0, 0, interface, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0];
        let frame = [&head[..], &TCP.octets()].concat();
        let original = frame.len() as u32;
        analysis.handle(Time(5), Frame { point: any, original, octets: &frame });
    }
    let names: Vec<_> = analysis.points().iter().map(|of| (of.name.as_str(), of.frames)).collect();
    assert_eq!(names, [("any", 0), ("any#3", 2), ("any#4", 1)]);
}
