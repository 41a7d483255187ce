//! The shipped topologies: every host reaches every other one, by the routes in the snapshots.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

use network::{HostId, Input, NetworkMachine, NetworkPlan, Output, Topology, plan::RouteNextHop};
use router::packet::{HeaderFields, udp};
use router::policy::{Match, RouterPolicy};
use router::time::SECOND;
use router::{Cause, Time};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

const SHIPPED: [(&str, &str); 4] = [
    ("pair", include_str!("../../../config/lab/topologies/pair.toml")),
    ("nato", include_str!("../../../config/lab/topologies/nato.toml")),
    ("bern", include_str!("../../../config/lab/topologies/bern.toml")),
    ("degeb", include_str!("../../../config/lab/topologies/degeb.toml")),
];

const POLICIES: [(&str, &str); 6] = [
    ("plain", include_str!("../../../config/lab/policies/plain.toml")),
    ("nato-three-queues", include_str!("../../../config/lab/policies/nato-three-queues.toml")),
    ("bern-ef-af", include_str!("../../../config/lab/policies/bern-ef-af.toml")),
    ("bern-interior", include_str!("../../../config/lab/policies/bern-interior.toml")),
    ("degeb-edge", include_str!("../../../config/lab/policies/degeb-edge.toml")),
    ("degeb-core", include_str!("../../../config/lab/policies/degeb-core.toml")),
];

fn built(text: &str) -> NetworkMachine {
    let topology = Topology::read(text).unwrap();
    let policies: BTreeMap<String, RouterPolicy> = POLICIES
        .iter()
        .map(|(name, text)| ((*name).to_owned(), toml::from_str(text).unwrap()))
        .collect();
    NetworkMachine::new(&topology, &policies, 1).unwrap()
}

/// Runs until nothing is in flight. Returns the deliveries.
fn run(network: &mut NetworkMachine) -> Vec<(HostId, Vec<u8>)> {
    let mut delivered = Vec::new();
    loop {
        while let Some(output) = network.poll() {
            match output {
                Output::Deliver { host, octets, .. } => delivered.push((host, octets)),
                Output::Recycle(octets) => panic!("lost: {octets:?}"),
                Output::Tap { .. } => {}
            }
        }
        let Some(due) = network.deadline() else { return delivered };
        network.handle(due, Input::Tick);
    }
}

fn probe(source: IpAddr, destination: IpAddr) -> Vec<u8> {
    let dscp = dscp::Dscp::CS3;
    let fields = HeaderFields { source, destination, protocol: 17, dscp, ecn: 0, ttl: 64 };
    udp(&fields, (5003, 5003), 1_000).unwrap()
}

#[test]
fn every_host_reaches_every_other() {
    for (name, text) in SHIPPED {
        let mut network = built(text);
        let hosts: Vec<(usize, Vec<IpAddr>)> = network
            .plan()
            .hosts()
            .map(|(place, node)| {
                let addresses = node.ports.iter().flat_map(|port| &port.addresses);
                (place, addresses.map(|address| address.ip()).collect())
            })
            .collect();
        let mut now = Time::ZERO;
        let mut sent = 0;
        for (from, own) in &hosts {
            for (to, far) in hosts.iter().filter(|(to, _)| to != from) {
                for destination in far {
                    let source = own.iter().find(|one| one.is_ipv4() == destination.is_ipv4());
                    let octets = probe(*source.unwrap(), *destination);
                    now = Time(now.0 + SECOND);
                    let input =
                        Input::Packet { host: HostId(*from), port: 0, octets: octets.clone() };
                    network.handle(now, input);
                    let delivered = run(&mut network);
                    let [(host, got)] = delivered.as_slice() else {
                        panic!("{name}: {source:?} to {destination}: {delivered:?}")
                    };
                    assert_eq!(host.0, *to, "{name}: {source:?} to {destination}");
                    assert_eq!(got[got.len() - 900..], octets[100..], "{name}: the same payload");
                    sent += 1;
                }
            }
        }
        assert!(sent >= 4, "{name}");
        let dropped: u64 = network
            .report()
            .iter()
            .flat_map(|part| part.counters.used().map(|(_, row)| row.dropped_in_all().packets))
            .sum();
        assert_eq!((dropped, network.inside()), (0, 0), "{name}");
    }
}

#[test]
fn routes_are_those_looked_at() {
    for (name, text) in SHIPPED {
        let plan = NetworkPlan::new(&Topology::read(text).unwrap()).unwrap();
        let mut shown = String::new();
        for node in &plan.nodes {
            writeln!(shown, "{} {}", node.kind.key().trim_end_matches('s'), node.name).unwrap();
            for route in &node.routes {
                let next_hop = match route.next_hop {
                    RouteNextHop::Port(port) => node.ports[port].name.clone(),
                    RouteNextHop::Tunnel(tunnel) => {
                        let tunnel = &plan.tunnels[tunnel];
                        let far = &plan.nodes[tunnel.to].name;
                        format!("tunnel to {far}, {} octets inside", tunnel.inner_mtu)
                    }
                };
                writeln!(shown, "  {:<24} {next_hop}", route.to.to_string()).unwrap();
            }
        }
        insta::assert_snapshot!(format!("routes_{name}"), shown);
    }
}

#[test]
fn degeb_counts_routers_by_the_address() {
    for (number, ttl) in [(3, 61), (4, 60), (5, 59)] {
        for (host, source, destination) in [("source", 1, 3), ("sink", 3, 1)] {
            let mut network = built(SHIPPED[3].1);
            let octets = probe([10, source, number, 2].into(), [10, destination, number, 2].into());
            let host = network.host(host).unwrap();
            network.handle(Time::ZERO, Input::Packet { host, port: 0, octets });
            assert_eq!(run(&mut network)[0].1[8], ttl, "{number} from {source}");
        }
    }
}

/// Interior routers read the DSCP and change nothing; their edge routers queue by it.
#[test]
fn interior_routers_know_behaviour_aggregates_alone() {
    for (topology, edge, inside) in
        [(2, "ingress", &["interior", "egress"][..]), (3, "ei", &["c1", "c2", "c3"])]
    {
        let topology = Topology::read(SHIPPED[topology].1).unwrap();
        let policy = |router: &str| -> RouterPolicy {
            let name = topology.routers[router].policy.as_deref().unwrap();
            let (_, text) = POLICIES.iter().find(|(known, _)| *known == name).unwrap();
            toml::from_str(text).unwrap()
        };
        let edge = policy(edge);
        assert!(!edge.chains.is_empty());
        for router in inside {
            let policy = policy(router);
            assert!(policy.chains.is_empty() && policy.tables.is_empty(), "{router}");
            let matches = policy.classes.values().flat_map(|class| &class.matches);
            for one in matches {
                let dscp = Match { dscp: one.dscp.clone(), ..Match::default() };
                assert_eq!(*one, dscp, "{router}");
            }
            assert_eq!(policy.queueings, edge.queueings, "{router}");
        }
    }
}

#[test]
fn at_nato_the_mark_is_seen_outside_and_the_path_is_counted() {
    let mut network = built(SHIPPED[1].1);
    let host = network.host("naples").unwrap();
    let octets = probe([10, 10, 64, 10].into(), [10, 10, 65, 10].into());
    network.handle(Time::ZERO, Input::Packet { host, port: 0, octets });
    assert_eq!(run(&mut network).len(), 1);
    let report = network.report();
    for path in
        ["naples-crypto.black/line", "wan.act/line", "naples-crypto/red", "act-crypto/black"]
    {
        let part = report.iter().find(|part| part.path == path).expect(path);
        let row = part.counters.row(dscp::Dscp::CS3);
        assert_eq!((row.came.packets, row.went.packets), (1, 1), "{path}");
        let octets = if path.contains("red") { 1_000 } else { 1_058 };
        assert_eq!(row.came.octets, octets, "{path}");
        assert_eq!(row.dropped[Cause::Lost as usize].packets, 0);
    }
}
