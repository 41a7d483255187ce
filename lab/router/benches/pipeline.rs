//! Packets a second through a whole router: `cargo bench -p router --bench pipeline`. The aim is
//! 1,000,000 packets of 128 octets on one core.

#![expect(clippy::expect_used, reason = "what cannot be made cannot be measured")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dscp::Dscp;
use router::Time;
use router::packet::{HeaderFields, udp};
use router::router::{Input, InterfaceSetup, Output, Router, RouterSetup};
use std::hint::black_box;
use std::time::Duration;

/// Marking by addresses and ports, a two-rate meter, and a shaper over classes with droppers.
const POLICY: &str = r#"
[classes.flash]
match = [{ source = "10.1.1.0/24", destination_port = "5003-5004", protocol = "tcp" }]
[classes.routine]
match = [{ source = "10.1.1.0/24", destination_port = "5000-5002", protocol = "udp" }]
[classes.cs1]
match = [{ dscp = ["CS1"] }]
[classes.cs2]
match = [{ dscp = ["CS2"] }]
[classes.ef]
match = [{ dscp = ["EF"] }]

[[chains.edge]]
kind = "mark"
class = "flash"
dscp = "CS3"
[[chains.edge]]
kind = "mark"
class = "routine"
dscp = "CS1"
[[chains.edge]]
kind = "meter"
class = "cs1"
meter = { kind = "two-rate", cir = "10Gbit", cbs = "10MB", pir = "20Gbit", pbs = "10MB" }

[queueings.wan]
kind = "shaper"
rate = "100Gbit"
burst = "1MB"
[queueings.wan.child]
kind = "class-based"
[[queueings.wan.child.branches]]
class = "ef"
share = { priority = { rate = "1Gbit" } }
[[queueings.wan.child.branches]]
class = "cs1"
share = { percent = 40 }
[queueings.wan.child.branches.queueing]
kind = "fifo"
[queueings.wan.child.branches.queueing.dropper]
kind = "wred"
[queueings.wan.child.branches.queueing.dropper.lines.CS1]
min = 30
max = 40
denominator = 10
[[queueings.wan.child.branches]]
class = "cs2"
share = { percent = 40 }

[interfaces.lan]
input = ["edge"]
[interfaces.wan]
queueing = "wan"
"#;

/// Packets that arrive together, as from a device that has a few packets ready.
const BATCH: usize = 32;
/// Packets that fill the queues before the measurement.
const FILL: usize = 2_000;

/// A router and the memory of its packets.
struct Direction {
    router: Router,
    /// Packets that arrive in turn.
    packets: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    now: Time,
    came: usize,
    /// The output line takes one packet for every two that arrive, so that packets always wait. If
    /// false, it takes all.
    congested: bool,
}

impl Direction {
    fn new(policy: &str, packets: Vec<Vec<u8>>, congested: bool) -> Direction {
        let interface = |name: &str, address: [u8; 4], paced| InterfaceSetup {
            name: name.to_owned(),
            addresses: vec![(address.into(), 24)],
            mtu: 1500,
            paced,
        };
        let lan = interface("lan", [10, 1, 1, 1], false);
        let wan = interface("wan", [10, 1, 2, 1], congested);
        let policy = toml::from_str(policy).expect("the policy above");
        let setup = RouterSetup { interfaces: vec![lan, wan], policy, ..RouterSetup::default() };
        let router = Router::new(&setup).expect("the policy above");
        Direction { router, packets, spare: Vec::new(), now: Time::ZERO, came: 0, congested }
    }

    fn run(&mut self, packets: usize) {
        for _ in 0..packets {
            self.now = self.now + Duration::from_micros(1);
            self.came += 1;
            let Some(fresh) = self.packets.get(self.came / 2 % self.packets.len()) else { return };
            let mut octets = self.spare.pop().unwrap_or_default();
            octets.clear();
            octets.extend_from_slice(fresh);
            self.router.handle(self.now, Input::Packet { interface: 0, octets });
            self.drain();
            if self.congested && self.came.is_multiple_of(2) {
                self.router.handle(self.now, Input::Free { interface: 1 });
                self.drain();
            }
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.router.poll() {
            match output {
                Output::Send { packet, .. } | Output::Dropped { packet, .. } => {
                    self.spare.push(black_box(packet).into_octets());
                }
                other => drop(black_box(other)),
            }
        }
    }
}

fn packet(length: usize, dscp: Dscp, port: u16) -> Vec<u8> {
    let fields = HeaderFields {
        source: [10, 1, 1, 7].into(),
        destination: [10, 1, 2, 9].into(),
        protocol: 17,
        dscp,
        ecn: 0,
        ttl: 64,
    };
    udp(&fields, (4_000, port), length).expect("a packet")
}

fn pipeline(c: &mut Criterion) {
    let mut group = c.benchmark_group("pipeline");
    group.throughput(Throughput::Elements(BATCH as u64));
    for length in [128, 1_500] {
        // The policy marks it CS1.
        let routine = packet(length, Dscp::CS0, 5_001);
        let others = [Dscp::EF, Dscp::CS2, Dscp::CS0].map(|dscp| packet(length, dscp, 9));
        let all: Vec<_> = others.into_iter().chain([routine.clone()]).collect();
        let cases = [
            ("plain", Direction::new("", vec![routine.clone()], false)),
            ("classes", Direction::new(POLICY, vec![routine], false)),
            ("congested", Direction::new(POLICY, all, true)),
        ];
        for (name, mut direction) in cases {
            direction.run(FILL);
            assert_eq!(
                direction.router.inside() > 100,
                direction.congested,
                "{}",
                direction.router.inside()
            );
            group.bench_function(format!("{name}/{length}"), |bench| {
                bench.iter(|| direction.run(BATCH));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
