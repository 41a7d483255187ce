//! Packets a second through each queueing: one arrives and one leaves, with some 20 waiting, of
//! eight code points and 64 flows, 128 octets each. Each step takes the transmission time of a
//! packet at 1 Gbit/s.

#![expect(clippy::expect_used, reason = "what cannot be made cannot be measured")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dscp::Dscp;
use router::packet::{HeaderFields, udp};
use router::policy::RouterPolicy;
use router::queueing::build;
use router::{FlowTables, Packet, Time};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

const LENGTH: usize = 128;
/// The transmission time of a packet at 1 Gbit/s, in nanoseconds.
const STEP: u64 = 1_024;
const WAITING: usize = 20;
const PACKETS: u16 = 64;

/// Name, and queueing in TOML.
const QUEUEINGS: [(&str, &str); 14] = [
    ("fifo", "kind = 'fifo'"),
    ("thresholds", "kind = 'fifo'\ndropper = { kind = 'thresholds', packets = { CS0 = 10 } }"),
    ("push-out", "kind = 'fifo'\nlimit = { packets = 20 }\ndropper = { kind = 'push-out' }"),
    (
        "red",
        "kind = 'fifo'\ndropper = { kind = 'red', line = { min = 10, max = 40, denominator = 10 } }",
    ),
    (
        "wred",
        "kind = 'fifo'\n[queueings.wan.dropper]\nkind = 'wred'\n[queueings.wan.dropper.lines]\n\
         CS0 = { min = 15, max = 30, denominator = 10 }\nCS1 = { min = 30, max = 40, denominator = 10 }",
    ),
    (
        "trio",
        "kind = 'fifo'\ndropper = { kind = 'trio', green = { from = 80, all = 100 }, \
         yellow = { from = 20, all = 80 }, red = { from = 0, all = 20 } }",
    ),
    ("fair flows", "kind = 'fair-flows'"),
    ("fair flows, always full", "kind = 'fair-flows'\nlimit = 20"),
    ("priority", "kind = 'priority'\nbranches = [{ class = 'EF' }, { class = 'CS3' }, {}]"),
    ("round-robin", "kind = 'round-robin'\nbranches = [{ class = 'EF' }, { class = 'CS3' }, {}]"),
    (
        "weighted-fair",
        "kind = 'weighted-fair'\nbranches = [{ class = 'EF', share = { weight = 4 } }, { class = 'CS3' }, {}]",
    ),
    (
        "class-based",
        "kind = 'class-based'\nrate = '1Gbit'\nbranches = [{ class = 'EF', share = { priority = { rate = \
         '300Mbit' } } }, { class = 'CS3', share = { percent = 30 } }, {}]",
    ),
    ("shaper", "kind = 'shaper'\nrate = '1Gbit'\nburst = 10000\nchild = { kind = 'fifo' }"),
    (
        "shaper over class-based with WRED",
        "kind = 'shaper'\nrate = '1Gbit'\nburst = 10000\n[queueings.wan.child]\nkind = 'class-based'\n\
         [[queueings.wan.child.branches]]\nclass = 'EF'\nshare = { priority = { rate = '300Mbit' } }\n\
         [[queueings.wan.child.branches]]\nclass = 'CS3'\nshare = { percent = 30 }\n\
         [[queueings.wan.child.branches]]\n[queueings.wan.child.branches.queueing]\nkind = 'fifo'\n\
         [queueings.wan.child.branches.queueing.dropper]\nkind = 'wred'\n\
         [queueings.wan.child.branches.queueing.dropper.lines]\n\
         CS0 = { min = 15, max = 20, denominator = 10 }\nCS1 = { min = 30, max = 40, denominator = 10 }\n\
         CS2 = { min = 40, max = 60, denominator = 10 }",
    ),
];

fn packet(number: u16) -> Packet {
    let dscp = Dscp::new((number % 8) as u8 * 8).expect("below 64");
    let fields = HeaderFields {
        source: Ipv4Addr::new(10, 0, 0, 1).into(),
        destination: Ipv4Addr::new(10, 0, 1, 1).into(),
        protocol: 17,
        dscp: if dscp == Dscp::CS5 { Dscp::EF } else { dscp },
        ecn: 0,
        ttl: 64,
    };
    let octets = udp(&fields, (number, 5_000), LENGTH).expect("one version, and short");
    Packet::read(octets, 0, Time::ZERO).expect("just made")
}

fn queueings(c: &mut Criterion) {
    let mut group = c.benchmark_group("queueing, push + ready + pop");
    group.throughput(Throughput::Elements(1));
    for (name, queueing) in QUEUEINGS {
        let classes = "[classes.EF]\nmatch = [{ dscp = ['EF'] }]\n[classes.CS3]\n\
                       match = [{ dscp = ['CS3'] }]\n[queueings.wan]\n";
        let policy: RouterPolicy =
            toml::from_str(&format!("{classes}{queueing}")).expect("it is right");
        let wan = policy.queueings.get("wan").expect("it is there");
        let mut tree = build(&policy, &[], wan, "wan", 1).expect("it is right");
        let tables = FlowTables::default();
        let mut free: VecDeque<Packet> = (0..PACKETS).map(packet).collect();
        let mut discarded = Vec::new();
        let mut now = Time(1_000_000_000);
        group.bench_function(name, |b| {
            b.iter(|| {
                now.0 += STEP;
                let came = free.pop_front().expect("more than can wait");
                tree.push(now, came, &tables, &mut discarded);
                free.extend(discarded.drain(..).map(|(packet, _)| packet));
                let ready = tree.ready(now);
                if tree.backlog().packets > WAITING {
                    free.extend(tree.pop(now));
                }
                ready
            });
        });
    }
    group.finish();
}

criterion_group!(benches, queueings);
criterion_main!(benches);
