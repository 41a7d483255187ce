//! The laboratory network: its text, and what comes in at a crypto gateway.

use network::gateway::{BLACK, Gateway, GatewayOutput, RED};
use network::plan::NetworkPlan;
use network::{Input, NetworkMachine, Output, PortId, Topology};
use router::packet::{HeaderFields, Packet, udp};
use router::router::{Input as Seen, Output as RouterOutput};
use router::{Cause, InterfaceSetup, Router, RouterSetup, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;
use translation::policy_file::PolicyFile;

/// Longest text looked at, in octets.
const TEXT: usize = 4_096;
/// Packets are followed for so long, in nanoseconds: lines may have an hour's delay.
const WHILE: u64 = 7_200_000_000_000;
/// Events followed: a packet passes each router 64 times at most.
const EVENTS: usize = 20_000;

pub(super) fn topology(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets.get(..TEXT).unwrap_or(octets));
    let mut topology = match Topology::read(&text) {
        Ok(topology) => topology,
        Err(wrong) => return assert!(!wrong.path.is_empty() && !wrong.what.is_empty()),
    };
    for router in topology.routers.values_mut() {
        router.policy = None;
    }
    let mut network = match NetworkMachine::new(&topology, &BTreeMap::new(), 1) {
        Ok(network) => network,
        Err(wrong) => return assert!(!wrong.path.is_empty() && !wrong.what.is_empty()),
    };
    let plan = network.plan().clone();
    let hosts: Vec<(usize, Vec<IpAddr>)> = plan
        .hosts()
        .map(|(place, host)| {
            let addresses = host.ports.iter().flat_map(|port| &port.addresses);
            (place, addresses.map(|address| address.ip()).collect())
        })
        .collect();
    for node in 0..plan.nodes.len() {
        network.handle(Time::ZERO, Input::Tap { port: PortId { node, port: 0 }, on: true });
    }
    let (mut sent, mut ended) = (0usize, 0usize);
    for (place, own) in hosts.iter().take(4) {
        for (_, far) in hosts.iter().take(4) {
            let [Some(source), Some(destination)] = [own.first(), far.last()] else { continue };
            let dscp = dscp::Dscp::CS3;
            let (source, destination) = (*source, *destination);
            let fields = HeaderFields { source, destination, protocol: 17, dscp, ecn: 2, ttl: 64 };
            let Some(octets) = udp(&fields, (5_003, 5_003), 1_280) else { continue };
            let host = network::HostId(*place);
            network.handle(Time::ZERO, Input::Packet { host, port: 0, octets });
            sent += 1;
        }
    }
    for _ in 0..EVENTS {
        while let Some(output) = network.poll() {
            ended += usize::from(!matches!(output, Output::Tap { .. }));
        }
        let Some(due) = network.deadline().filter(|due| due.0 < WHILE) else { break };
        network.handle(due, Input::Tick);
    }
    // Packets that are too long may be divided; none comes from nowhere but a piece or an answer.
    assert!(network.inside() > 0 || ended >= sent, "{sent} sent, {ended} accounted for");
}

/// Packets led through a router of any policy.
const PACKETS: u64 = 200;
/// Octets of a policy: the shipped ones are below.
const POLICY: usize = 8_192;

pub(super) fn policy(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets.get(..POLICY).unwrap_or(octets));
    let file = match PolicyFile::parse("policy.toml", &text) {
        Ok(file) => file,
        Err(mistake) => return assert!(!mistake.render(false).is_empty()),
    };
    let interface = |name: &str, address: &str| InterfaceSetup {
        name: name.to_owned(),
        addresses: vec![(address.parse().expect("an address"), 24)],
        mtu: 1_500,
        paced: false,
    };
    let interfaces = vec![interface("lan", "10.0.1.1"), interface("wan", "10.0.2.1")];
    let setup = RouterSetup { interfaces, policy: file.policy().clone(), ..RouterSetup::default() };
    let mut router = match Router::new(&setup) {
        Ok(router) => router,
        Err(wrong) => return assert!(!file.mistake(&wrong).render(false).is_empty()),
    };
    let (mut ended, mut now) = (0, Time::ZERO);
    for number in 0..PACKETS {
        now = Time(now.0 + number * 10_007);
        let dscp = dscp::Dscp::new((number % 64) as u8).unwrap_or_default();
        let [source, destination] = ["10.0.1.7", "10.0.2.9"].map(|a| a.parse().expect("one"));
        let fields = HeaderFields { source, destination, protocol: 17, dscp, ecn: 2, ttl: 64 };
        let ports = (5_000 + (number % 7) as u16, 5_003);
        let Some(octets) = udp(&fields, ports, 40 + (number * 37 % 1_400) as usize) else {
            continue;
        };
        router.handle(now, Seen::Packet { interface: 0, octets });
        ended += drained(&mut router);
        while let Some(due) = router.deadline().filter(|due| *due <= now) {
            router.handle(due.max(now), Seen::Tick);
            ended += drained(&mut router);
        }
    }
    assert_eq!(ended + router.inside() as u64, PACKETS, "a packet is lost, or there twice");
}

/// How many packets went out or no further.
fn drained(router: &mut Router) -> u64 {
    let mut ended = 0;
    while let Some(output) = router.poll() {
        assert!(!matches!(output, RouterOutput::Refused { .. }), "{output:?}");
        ended += 1;
    }
    ended
}

const PAIR: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24", "fd00:1::2/64"]
[hosts.b.ports.eth0]
addresses = ["10.0.2.2/24", "fd00:2::2/64"]
[gateways.ga]
red.addresses = ["10.0.1.1/24", "fd00:1::1/64"]
black.addresses = ["192.168.1.1/30"]
[gateways.gb]
red.addresses = ["10.0.2.1/24", "fd00:2::1/64"]
black.addresses = ["192.168.1.2/30"]
[[links]]
ends = ["a.eth0", "ga.red"]
[[links]]
ends = ["ga.black", "gb.black"]
[[links]]
ends = ["gb.red", "b.eth0"]
"#;

fn pair() -> [Gateway; 2] {
    let topology = Topology::read(PAIR).expect("a topology of ours");
    let plan = NetworkPlan::new(&topology).expect("a topology of ours");
    ["ga", "gb"].map(|name| {
        let place = plan.node(name).expect("a gateway of ours");
        Gateway::new(&topology, &plan, place).expect("a gateway of ours")
    })
}

/// What this packet becomes as it comes in at the red side, taken out again by the far gateway.
pub(crate) fn hidden(octets: Vec<u8>) -> Option<Vec<u8>> {
    let [mut near, _] = pair();
    near.handle(Time::ZERO, RED, octets);
    match near.poll()? {
        GatewayOutput::Send { octets, .. } => Some(octets),
        GatewayOutput::Drop { .. } | GatewayOutput::Taken { .. } => None,
    }
}

/// A packet that both gateways have forwarded; `None` for what is none, or has no hops left for it.
fn forwarded(octets: &[u8]) -> Option<Vec<u8>> {
    let mut packet = Packet::read(octets.to_vec(), RED, Time::ZERO).ok()?;
    (packet.decrement_ttl() && packet.decrement_ttl()).then(|| packet.into_octets())
}

pub(super) fn gateway(octets: &[u8]) {
    let [mut near, mut far] = pair();
    near.handle(Time::ZERO, RED, octets.to_vec());
    let mut pieces = 0;
    let mut is_answer = false;
    while let Some(action) = near.poll() {
        pieces += 1;
        // What follows one that goes no further is an answer, and so is what goes out of the red port.
        is_answer |= !matches!(action, GatewayOutput::Send { .. });
        let GatewayOutput::Send { port: BLACK, octets: outer } = action else { continue };
        assert!(outer.len() <= 1_500, "an outer packet of {} octets", outer.len());
        far.handle(Time::ZERO, BLACK, outer);
        match far.poll() {
            Some(GatewayOutput::Send { port: RED, octets: inner }) => assert!(
                is_answer || octets.len() > 1_442 || forwarded(octets) == Some(inner),
                "it comes out as it went in, two hops later"
            ),
            // For the far gateway itself, or at its last hop.
            Some(
                GatewayOutput::Taken { .. } | GatewayOutput::Drop { cause: Cause::Expired, .. },
            ) => {}
            other => panic!("what one gateway made the other does not take: {other:?}"),
        }
        while far.poll().is_some() {}
    }
    assert!(pieces > 0, "neither sent nor dropped");
    far.handle(Time::ZERO, BLACK, octets.to_vec());
    let actions: Vec<GatewayOutput> = std::iter::from_fn(|| far.poll()).collect();
    let ended = actions.iter().filter(|one| !matches!(one, GatewayOutput::Send { .. })).count();
    assert!(
        ended == 1 || (ended == 0 && actions.len() == 1),
        "one packet has one outcome: {actions:?}"
    );
}
