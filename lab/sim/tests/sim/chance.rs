//! Random scenarios: for any loss, delay and order of packets, each message arrives once and as it
//! was, each octet of a transfer comes, the seed decides everything, and time goes on.

use crate::setting::*;
use base::Precedence;
use dscp::Dscp;
use network::topology::Duplex;
use proptest::prelude::*;
use sim::{Congestion, Scenario, SimulatedMessage, SubmissionStart, UserId, run};
use std::time::Duration;

fn messages() -> impl Strategy<Value = Vec<SimulatedMessage>> {
    let one = (0usize..6, 1u64..150_000, 0u64..8_000, any::<bool>());
    let one = one.prop_map(|(precedence, size, at, back)| {
        let start = SubmissionStart::At(Duration::from_millis(at));
        let one = message(Precedence::ALL[precedence], size, start);
        if !back {
            return one;
        }
        let to = "/C=XX/ADMD=NATO/PRMD=NAPLES/S=OPS".to_owned();
        SimulatedMessage { from: UserId { site: ACT, user: 0 }, to, ..one }
    });
    prop::collection::vec(one, 1..8)
}

prop_compose! {
    fn scenarios()(
        messages in messages(),
        (rate, delay, jitter) in (100u64..4_000, 0u64..300, 0u64..100),
        (loss, reorder, half) in (0.0f64..0.08, any::<bool>(), any::<bool>()),
        (mtu, reno, window) in (600usize..1_600, any::<bool>(), 4_096usize..300_000),
        (flooded, v6, delayed, seed) in (any::<bool>(), any::<bool>(), any::<bool>(), any::<u64>()),
        octets in prop::option::of(1u64..200_000),
    ) -> Scenario {
        let mut scenario = pair(&format!("{rate}kbit"), delay);
        let link = &mut scenario.topology.links[1];
        link.jitter = format!("{jitter}ms").parse().unwrap();
        (link.loss, link.reorder) = (loss, reorder);
        link.duplex = if half { Duplex::Half } else { Duplex::Full };
        link.mtu = if v6 { mtu.max(1_280) } else { mtu };
        if !v6 {
            let hosts = scenario.topology.hosts.values_mut().flat_map(|host| host.ports.values_mut());
            let routers = scenario.topology.routers.values_mut();
            let ports = routers.flat_map(|router| router.ports.values_mut());
            let all = hosts.map(|port| &mut port.addresses);
            let all = all.chain(ports.map(|port| &mut port.addresses));
            all.for_each(|addresses| addresses.retain(|address| address.ip().is_ipv4()));
        }
        scenario.messages = messages;
        scenario.tcp.congestion = if reno { Congestion::Reno } else { Congestion::Cubic };
        scenario.tcp.receive_buffer = window;
        scenario.tcp.delayed_ack = delayed.then_some(Duration::from_millis(40));
        (scenario.seed, scenario.until) = (seed, seconds(4 * 3_600));
        let to = if v6 { "[fd00:0:0:2::2]:9" } else { "10.0.2.2:9" };
        scenario.loads.extend(octets.map(|octets| bulk(Some(octets), to)));
        if flooded {
            let mut load = flood(rate * 700, Dscp::CS1, to);
            let sim::SimulatedLoad::Udp(udp) = &mut load else { unreachable!() };
            udp.payload = 400;
            udp.stop = Some(seconds(60));
            scenario.loads.push(load);
        }
        scenario
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..<_>::default() })]
    #[test]
    fn every_message_arrives_once_and_as_it_was(scenario in scenarios()) {
        let outcome = run(&scenario).unwrap();
        let is_bulk = |load: &&sim::SimulatedLoad| matches!(load, sim::SimulatedLoad::Tcp(_));
        let bulks = scenario.loads.iter().filter(is_bulk).count();
        prop_assert!(outcome.complete, "{:?}", outcome);
        for times in &outcome.messages {
            prop_assert!(times.intact && times.deliveries == 1, "{:?}", times);
            let order = [times.submitted, times.started, times.delivered];
            prop_assert!(order.is_sorted() && times.confirmed >= times.started, "{:?}", times);
        }
        // A line that loses much may be silent for longer than a connection lives.
        let has_ended = |load: &sim::LoadCount| load.done.is_some() || load.error.is_some();
        prop_assert!(bulks == 0 || outcome.loads.iter().any(has_ended), "{:?}", outcome.loads);
        for load in outcome.loads.iter().filter(|load| load.done.is_some()) {
            prop_assert_eq!((load.wrong, load.received.octets), (0, load.sent.octets));
        }
        // A machine that is due and does nothing would be asked at each microsecond.
        let most = 200_000 + outcome.ended.as_secs() * 3_000;
        prop_assert!(outcome.steps < most, "{} steps in {:?}", outcome.steps, outcome.ended);
        prop_assert_eq!(run(&scenario).unwrap(), outcome);
    }
}
