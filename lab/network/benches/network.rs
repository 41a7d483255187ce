//! Packets a second through a whole network: lines, routers and gateways, in virtual time.

#![expect(clippy::expect_used, clippy::panic, reason = "a bench")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dscp::Dscp;
use network::{HostId, Input, NetworkMachine, Output, Topology};
use router::packet::{HeaderFields, udp};
use router::policy::RouterPolicy;
use router::{Rate, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;

const PACKETS: u64 = 1_000;

struct Direction {
    network: NetworkMachine,
    host: HostId,
    fields: HeaderFields,
    now: Time,
    /// Time between packets, so that none is dropped.
    gap: u64,
    spare: Vec<Vec<u8>>,
}

/// `slowest` is the rate of the slowest line on the path in bits a second.
fn path(text: &str, ends: [&str; 2], slowest: u64, length: usize) -> Direction {
    let mut topology = Topology::read(text).expect("a topology");
    for router in topology.routers.values_mut() {
        router.policy = None;
    }
    let network = NetworkMachine::new(&topology, &BTreeMap::<String, RouterPolicy>::new(), 1)
        .expect("a network");
    let [source, destination]: [IpAddr; 2] = ends.map(|name| {
        let host = topology.hosts.get(name).expect("a host");
        host.ports.values().next().expect("a port").addresses.first().expect("an address").ip()
    });
    let host = network.host(ends[0]).expect("a host");
    let fields =
        HeaderFields { source, destination, protocol: 17, dscp: Dscp::CS3, ecn: 0, ttl: 64 };
    let gap = Rate::from_bits(slowest).expect("a rate").nanos_for(length as u64 + 100);
    Direction { network, host, fields, now: Time::ZERO, gap, spare: Vec::new() }
}

impl Direction {
    /// Sends packets one after the other. Returns the number of deliveries.
    fn run(&mut self, like: &[u8]) -> u64 {
        let mut delivered = 0;
        for _ in 0..PACKETS {
            let mut octets = self.spare.pop().unwrap_or_default();
            octets.clear();
            octets.extend_from_slice(like);
            self.now = Time(self.now.0 + self.gap);
            self.network.handle(self.now, Input::Packet { host: self.host, port: 0, octets });
            while let Some(output) = self.network.poll() {
                match output {
                    Output::Deliver { octets, .. } => {
                        delivered += 1;
                        self.spare.push(octets);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        delivered
    }
}

fn networks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("network");
    let shipped = [
        ("pair", include_str!("../../../config/lab/topologies/pair.toml"), ["alice", "bob"]),
        ("nato", include_str!("../../../config/lab/topologies/nato.toml"), ["naples", "act"]),
    ];
    for (name, text, ends) in shipped {
        let slowest = if name == "pair" { 10_000_000 } else { 2_000_000 };
        for length in [128, 1_500] {
            let mut path = path(text, ends, slowest, length);
            let like = udp(&path.fields, (5_003, 5_003), length).expect("a packet");
            group.throughput(Throughput::Elements(PACKETS));
            group.bench_function(format!("{name}/{length}"), |bench| {
                bench.iter(|| path.run(&like));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, networks);
criterion_main!(benches);
