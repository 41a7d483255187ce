//! The network of the published study: LAN, router, crypto gateway and wide area, at each end.

use crate::setting::*;
use base::Precedence;
use dscp::Dscp;
use network::Topology;
use sim::{InterfaceProbe, ReceiverClock, Scenario, SimulatedLoad, SubmissionStart, UdpLoad, run};
use std::time::Duration;

fn nato() -> Scenario {
    let text = include_str!("../../../../config/lab/topologies/nato.toml");
    let topology = Topology::read(text).unwrap();
    let three = policy(include_str!("../../../../config/lab/policies/nato-three-queues.toml"));
    let hosts = [("naples", "10.10.64.10"), ("act", "10.10.65.10")];
    let mut scenario = scenario(topology, &[("nato-three-queues", three)], hosts);
    scenario.probes.push(InterfaceProbe {
        router: "naples-sar".into(),
        interface: "wan".into(),
        interval: seconds(1),
    });
    scenario
}

fn load(dscp: Dscp) -> SimulatedLoad {
    SimulatedLoad::Udp(UdpLoad {
        name: "load".into(),
        from: "naples".into(),
        source: None,
        to: "10.10.65.10:9".parse().unwrap(),
        rate: 1_000_000,
        payload: 972,
        dscp,
        start: seconds(1),
        stop: None,
        jitter: 0.2,
        echo: false,
        clock: ReceiverClock::default(),
        keeps: false,
    })
}

#[test]
fn messages_cross_gateways_whether_or_not_packets_fit_into_their_tunnels() {
    for black in [1_600, 1_500, 1_400] {
        let mut scenario = nato();
        for link in &mut scenario.topology.links {
            link.mtu = link.mtu.min(black);
        }
        for precedence in Precedence::ALL {
            scenario.messages.push(message(precedence, 100_000, SubmissionStart::At(seconds(2))));
        }
        let outcome = run(&scenario).unwrap();
        assert!(outcome.complete && outcome.messages.iter().all(|one| one.intact), "{black}");
        let resent: u64 = outcome.tcp.iter().map(|one| one.sent.resent_octets).sum();
        let sent: u64 = outcome.tcp.iter().map(|one| one.sent.octets).sum();
        assert!(resent * 5 < sent, "no packet was too long: {resent} of {sent}");
        let used: Vec<Dscp> = outcome.series[0].rows.iter().map(|row| row.dscp).collect();
        for dscp in [Dscp::CS0, Dscp::CS1, Dscp::CS2, Dscp::CS3, Dscp::CS4] {
            assert!(used.contains(&dscp), "{dscp}");
        }
    }
}

/// The study's loaded rows: a load in another queue leaves a message its reserved half, one in its
/// own queue takes more.
#[test]
fn a_reserved_queue_is_kept_from_the_load_in_another() {
    let time = |dscp: Option<Dscp>| {
        let mut scenario = nato();
        scenario.until = seconds(600);
        scenario.messages.push(message(
            Precedence::Immediate,
            1_000_000,
            SubmissionStart::At(seconds(5)),
        ));
        scenario.loads = dscp.map(load).into_iter().collect();
        let outcome = run(&scenario).unwrap();
        outcome.messages[0].delivered.map(|at| at - outcome.messages[0].started.unwrap())
    };
    let [alone, beside, within] = [None, Some(Dscp::CS1), Some(Dscp::CS2)].map(time);
    let (alone, beside) = (alone.unwrap(), beside.unwrap());
    assert!(alone > seconds(16) && alone < seconds(20), "{alone:?}");
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    assert!((1.8..2.6).contains(&ratio), "half of the line: {alone:?} {beside:?}");
    assert!(within.unwrap_or(Duration::MAX) > beside * 3 / 2, "{within:?} {beside:?}");
}

/// How much virtual time a second of real time makes: `cargo test -p sim --test nato -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn an_hour_of_load_beside_ten_megabytes() {
    let mut scenario = nato();
    scenario.until = seconds(3_600);
    scenario.messages.push(message(
        Precedence::Immediate,
        10_000_000,
        SubmissionStart::At(seconds(5)),
    ));
    scenario.loads.push(load(Dscp::CS2));
    let begun = std::time::Instant::now();
    let outcome = run(&scenario).unwrap();
    let real = begun.elapsed();
    println!(
        "{:?} of virtual time in {real:?}: {:.0} a second, {} steps of {:?}; {:?}",
        outcome.ended,
        outcome.ended.as_secs_f64() / real.as_secs_f64(),
        outcome.steps,
        real / u32::try_from(outcome.steps).unwrap(),
        outcome.messages[0],
    );
}
