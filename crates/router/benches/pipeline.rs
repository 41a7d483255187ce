//! Packets a second through a whole router: `cargo bench -p router --bench pipeline`. The aim is
//! 1,000,000 packets of 128 octets on one core.

#![expect(clippy::expect_used, reason = "what cannot be made cannot be measured")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dscp::Dscp;
use router::Time;
use router::packet::{Fields, udp};
use router::router::{Input, InterfaceSetup, Output, Router, Setup};
use std::hint::black_box;
use std::time::Duration;

/// Marking by addresses and ports, a two-rate meter, and a shaper over classes with their droppers.
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

/// What comes in one go, as from a device that has a few packets ready.
const BATCH: usize = 32;

fn router(policy: &str) -> Router {
    let interface = |name: &str, address: [u8; 4]| InterfaceSetup {
        name: name.to_owned(),
        addresses: vec![(address.into(), 24)],
        mtu: 1500,
        paced: false,
    };
    let interfaces = vec![interface("lan", [10, 1, 1, 1]), interface("wan", [10, 1, 2, 1])];
    let policy = toml::from_str(policy).expect("the policy above");
    Router::new(&Setup { interfaces, policy, ..Setup::default() }).expect("the policy above")
}

fn packet(length: usize) -> Vec<u8> {
    let fields = Fields {
        source: [10, 1, 1, 7].into(),
        destination: [10, 1, 2, 9].into(),
        protocol: 17,
        dscp: Dscp::CS0,
        ecn: 0,
        ttl: 64,
    };
    udp(&fields, (4_000, 5_001), length).expect("a packet")
}

fn pipeline(c: &mut Criterion) {
    let mut group = c.benchmark_group("pipeline");
    group.throughput(Throughput::Elements(BATCH as u64));
    for (name, policy) in [("plain", ""), ("classes", POLICY)] {
        for length in [128, 1_500] {
            let mut router = router(policy);
            let fresh = packet(length);
            let mut spare: Vec<Vec<u8>> = (0..BATCH).map(|_| Vec::with_capacity(2_048)).collect();
            let mut now = Time::ZERO;
            group.bench_function(format!("{name}/{length}"), |bench| {
                bench.iter(|| {
                    for _ in 0..BATCH {
                        now = now + Duration::from_micros(1);
                        let mut octets = spare.pop().unwrap_or_default();
                        octets.clear();
                        octets.extend_from_slice(&fresh);
                        router.handle(now, Input::Packet { interface: 0, octets });
                        while let Some(output) = router.poll() {
                            match output {
                                Output::Send { packet, .. } | Output::Dropped { packet, .. } => {
                                    spare.push(black_box(packet).into_octets());
                                }
                                other => drop(black_box(other)),
                            }
                        }
                    }
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, pipeline);
criterion_main!(benches);
