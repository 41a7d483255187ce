//! Scenarios that the tests begin with.
#![allow(dead_code, reason = "each test binary uses its part")]

use base::Precedence;
use dscp::Dscp;
use network::Topology;
use router::policy::RouterPolicy;
use sim::{
    BulkLoad, ReceiverClock, Scenario, SimulatedLoad, SimulatedMessage, SitePlacement,
    SubmissionStart, TcpSettings, UdpLoad, UserId,
};
use std::time::Duration;

pub(crate) const NAPLES: usize = 0;
pub(crate) const ACT: usize = 1;
pub(crate) const OPS: UserId = UserId { site: NAPLES, user: 0 };
/// The address of the receiving host of the plain pair.
pub(crate) const BOB: &str = "10.0.2.2";

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// `config/lab/topologies/pair.toml` with this rate and delay from the router to bob, and a site at
/// each host.
pub(crate) fn pair(rate: &str, delay_ms: u64) -> Scenario {
    let text = include_str!("../../../../../config/lab/topologies/pair.toml");
    let mut topology = Topology::read(text).unwrap();
    let link = &mut topology.links[1];
    link.rate = Some(rate.parse().unwrap());
    link.delay = format!("{delay_ms}ms").parse().unwrap();
    link.overhead = 0;
    let plain = policy(include_str!("../../../../../config/lab/policies/plain.toml"));
    scenario(topology, &[("plain", plain)], [("alice", "10.0.1.2"), ("bob", BOB)])
}

pub(crate) fn policy(text: &str) -> RouterPolicy {
    toml::from_str(text).unwrap()
}

/// Sites naples and act at these hosts.
pub(crate) fn scenario(
    topology: Topology,
    policies: &[(&str, RouterPolicy)],
    hosts: [(&str, &str); 2],
) -> Scenario {
    let hosts = places(hosts);
    Scenario {
        topology,
        policies: policies.iter().map(|(name, one)| ((*name).to_owned(), one.clone())).collect(),
        sites: sim::sites(&hosts, &sim::ChannelSetup::default()).unwrap(),
        messages: Vec::new(),
        loads: Vec::new(),
        tcp: TcpSettings::default(),
        disk: Duration::from_millis(1),
        seed: 7,
        until: seconds(3_600),
        probes: Vec::new(),
    }
}

/// The places of the plain pair with these channels.
pub(crate) fn sites(setup: &sim::ChannelSetup) -> Vec<sim::SimulatedSite> {
    sim::sites(&places([("alice", "10.0.1.2"), ("bob", BOB)]), setup).unwrap()
}

fn places(hosts: [(&str, &str); 2]) -> Vec<SitePlacement> {
    let places =
        ["naples", "act"].into_iter().zip(hosts).map(|(name, (host, address))| SitePlacement {
            name: name.into(),
            host: host.into(),
            address: address.parse().unwrap(),
            users: vec!["OPS".into()],
        });
    places.collect()
}

/// A message from naples to act.
pub(crate) fn message(
    precedence: Precedence,
    size: u64,
    start: SubmissionStart,
) -> SimulatedMessage {
    SimulatedMessage {
        name: format!("{precedence} of {size}"),
        from: OPS,
        to: "/C=XX/ADMD=NATO/PRMD=ACT/S=OPS".into(),
        precedence,
        size,
        start,
    }
}

pub(crate) fn flood(rate: u64, dscp: Dscp, to: &str) -> SimulatedLoad {
    SimulatedLoad::Udp(UdpLoad {
        name: "flood".into(),
        from: "alice".into(),
        source: None,
        to: to.parse().unwrap(),
        rate,
        payload: 972,
        dscp,
        start: Duration::ZERO,
        stop: None,
        jitter: 0.2,
        echo: false,
        clock: ReceiverClock::default(),
        keeps: false,
    })
}

pub(crate) fn bulk(octets: Option<u64>, to: &str) -> SimulatedLoad {
    SimulatedLoad::Tcp(BulkLoad {
        name: "bulk".into(),
        from: "alice".into(),
        to: to.parse().unwrap(),
        dscp: Dscp::CS0,
        octets,
        rate: None,
        segment: None,
        start: Duration::ZERO,
        stop: None,
    })
}
