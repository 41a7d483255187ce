//! What TCP and UDP make of a line, without messages.

use crate::setting::*;
use dscp::Dscp;
use sim::{BulkLoad, Congestion, InterfaceProbe, SimulatedLoad, run};
use std::time::Duration;

/// 1,448 octets of payload in packets of 1,500.
const PAYLOAD_SHARE: f64 = 1_448.0 / 1_500.0;

#[test]
fn tcp_alone_fills_the_line_and_loses_no_octet() {
    for congestion in [Congestion::Reno, Congestion::Cubic] {
        // A window smaller than the queue loses nothing; a larger one does.
        for (window, least) in [(100_000, 0.98), (512 << 10, 0.65)] {
            let mut scenario = pair("512kbit", 10);
            scenario.tcp.congestion = congestion;
            scenario.tcp.receive_buffer = window;
            scenario.loads.push(bulk(Some(5_000_000), "10.0.2.2:9"));
            let outcome = run(&scenario).unwrap();
            let load = &outcome.loads[0];
            assert!(outcome.complete);
            assert_eq!((load.sent.octets, load.received.octets), (5_000_000, 5_000_000));
            assert_eq!((load.wrong, load.error.as_deref()), (0, None));
            let ends = outcome.tcp.iter().filter(|one| one.remote.port() == 9);
            let resent: Vec<u64> = ends.map(|one| one.sent.resent_octets).collect();
            assert_eq!(resent.len(), 1);
            assert_eq!(resent[0] == 0, window < 150_000, "{congestion:?}: {resent:?}");
            let share = load.received.rate().unwrap() / 512_000.0 / PAYLOAD_SHARE;
            println!("{congestion:?}, window {window}: {share:.3} of the line, {resent:?} resent");
            assert!((least..1.001).contains(&share), "{congestion:?}, {window}: {share}");
        }
    }
}

#[test]
fn a_host_reaches_itself_without_the_network() {
    let mut scenario = pair("512kbit", 10);
    scenario.sites.clear();
    scenario.loads.push(bulk(Some(1_000_000), "10.0.1.2:9"));
    let outcome = run(&scenario).unwrap();
    let load = &outcome.loads[0];
    assert!(outcome.complete && load.wrong == 0, "{load:?}");
    assert!(load.done.unwrap() < Duration::from_millis(100), "{load:?}");
}

#[test]
fn a_transfer_keeps_to_its_rate_and_stops_at_its_end() {
    let mut scenario = pair("2Mbit", 10);
    scenario.until = seconds(40);
    scenario.loads.push(SimulatedLoad::Tcp(BulkLoad {
        name: "paced".into(),
        from: "alice".into(),
        to: "10.0.2.2:9".parse().unwrap(),
        dscp: Dscp::CS1,
        octets: None,
        rate: Some(200_000),
        segment: None,
        start: seconds(5),
        stop: Some(seconds(25)),
    }));
    let outcome = run(&scenario).unwrap();
    let load = &outcome.loads[0];
    let expected = 20 * 200_000 / 8;
    assert!((expected - 10_000..=expected).contains(&load.sent.octets), "{load:?}");
    assert_eq!(load.received.octets, load.sent.octets);
    assert!(load.received.first.unwrap() > seconds(5));
    assert!(load.done.unwrap() > seconds(25) && load.done.unwrap() < seconds(26), "{load:?}");
    assert_eq!(outcome.ended, seconds(40), "nothing ends it before its time");
}

#[test]
fn the_segments_of_a_transfer_can_be_short() {
    let packets = |segment| {
        let mut scenario = pair("2Mbit", 10);
        scenario.sites.clear();
        let SimulatedLoad::Tcp(bulk) = bulk(Some(100_000), "10.0.2.2:9") else { panic!() };
        scenario.loads.push(SimulatedLoad::Tcp(BulkLoad { segment, ..bulk }));
        let outcome = run(&scenario).unwrap();
        assert_eq!(outcome.loads[0].received.octets, 100_000);
        let connection = outcome.tcp.iter().find(|of| of.remote.port() == 9).unwrap();
        connection.sent.segments
    };
    let (whole, short, least) = (packets(None), packets(Some(500)), packets(Some(1)));
    assert!((60..100).contains(&whole), "{whole}");
    assert!((200..300).contains(&short), "{short}");
    assert!((1_100..1_500).contains(&least), "as short as Linux has them: {least}");
}

#[test]
fn a_short_transfer_does_not_cut_off_what_is_sent_for_a_time() {
    let mut scenario = pair("2Mbit", 10);
    scenario.until = seconds(100);
    scenario.sites.clear();
    scenario.loads.push(bulk(Some(1_000), "10.0.2.2:9"));
    let SimulatedLoad::Udp(mut udp) = flood(1_000_000, Dscp::CS1, "10.0.2.2:10") else { panic!() };
    (udp.start, udp.stop) = (seconds(0), Some(seconds(5)));
    scenario.loads.push(SimulatedLoad::Udp(udp));
    let outcome = run(&scenario).unwrap();
    let sent = outcome.loads[1].sent.octets;
    assert!((610_000..=640_000).contains(&sent), "{sent} of 5 s at 1 Mbit/s");
    assert_eq!(outcome.loads[1].received.packets, outcome.loads[1].sent.packets);
    assert!(outcome.ended < seconds(20), "and it ends then: {:?}", outcome.ended);
}

#[test]
fn a_flood_in_the_same_fifo_starves_tcp() {
    let mut scenario = pair("512kbit", 10);
    scenario.until = seconds(300);
    scenario.sites.clear();
    scenario.loads.push(bulk(None, "10.0.2.2:9"));
    let alone = run(&scenario).unwrap().loads[0].received.octets;
    scenario.loads.push(flood(1_000_000, Dscp::CS0, "10.0.2.2:10"));
    let probe = |interface: &str| InterfaceProbe {
        router: "middle".into(),
        interface: interface.into(),
        interval: seconds(1),
    };
    scenario.probes = vec![probe("bob"), probe("alice")];
    let outcome = run(&scenario).unwrap();
    let [tcp, udp] = &outcome.loads[..] else { panic!() };
    assert!(alone > 18_000_000, "{alone}");
    assert!(tcp.received.octets * 20 < alone, "{} of {alone}", tcp.received.octets);
    // About half of the flood comes through, after the whole queue.
    let rate = udp.received.rate().unwrap();
    assert!((480_000.0..513_000.0).contains(&rate), "{rate}");
    let delay = udp.delay.unwrap();
    assert!(delay > Duration::from_millis(1_200) && delay < seconds(3), "{delay:?}");
    let jitter = udp.jitter.percentile(0.5).unwrap();
    assert!(jitter < Duration::from_millis(40), "{jitter:?}");
    assert_eq!(udp.dscp_seen, [(Dscp::CS0, udp.received.packets)].into());
    assert_eq!(udp.over_time.iter().sum::<u64>(), udp.received.octets);
    assert_eq!(udp.over_time.len(), 3_000);
    // 6,400 octets in each step, as packets come.
    assert!(udp.over_time[100..].iter().all(|octets| (4_000..9_000).contains(octets)));
    assert_eq!(udp.sent.packets, 125 * 300);

    // What the probe saw adds up with what the load counted at its two ends.
    let rows = &outcome.series[0].rows;
    assert!(rows.iter().all(|row| row.dscp == Dscp::CS0), "all is best effort");
    assert_eq!(rows.len(), 300);
    let sum = |of: fn(&sim::ProbeRow) -> u64| rows.iter().map(of).sum::<u64>();
    let (sent, dropped) = (sum(|row| row.sent.packets), sum(|row| row.dropped.packets));
    let ends = outcome.tcp.iter().filter(|one| one.host == "alice");
    let others: u64 = ends.map(|one| one.sent.segments).sum();
    let came = sent + dropped + rows.last().unwrap().waiting.packets;
    // One packet of the flood may be on the line to the router.
    assert!(udp.sent.packets + others - came <= 2, "{} {others} {came}", udp.sent.packets);
    assert!(rows.iter().skip(5).all(|row| row.waiting.packets > 80 && row.dropped.packets > 30));
    assert!(outcome.series[1].rows.iter().all(|row| row.dropped.packets == 0));
}

#[test]
fn what_passes_a_port_can_be_captured() {
    let mut scenario = pair("512kbit", 10);
    scenario.until = seconds(20);
    scenario.loads.push(flood(300_000, Dscp::AF11, "10.0.2.2:10"));
    let start = sim::SubmissionStart::At(seconds(10));
    scenario.messages.push(message(base::Precedence::Flash, 10_000, start));
    let mut sim = sim::Sim::new(&scenario).unwrap();
    assert_eq!(sim.tap("bob.eth9"), None);
    let ports = ["middle.bob", "bob.eth0"].map(|port| sim.tap(port).unwrap());
    let (mut load, mut flash) = ([0; 2], [0; 2]);
    let mut last = [Duration::ZERO; 2];
    let mut more = true;
    while more {
        more = sim.step().unwrap();
        while let Some(captured) = sim.captured() {
            assert!(captured.at <= sim.now());
            let port = ports.iter().position(|port| *port == captured.port).unwrap();
            let toward = [network::TapDirection::Out, network::TapDirection::In][port];
            if captured.direction != toward {
                continue;
            }
            assert!(captured.at >= last[port]);
            last[port] = captured.at;
            let packet = router::Packet::read(captured.octets, 0, router::Time::ZERO).unwrap();
            match packet.dscp() {
                Dscp::AF11 => load[port] += 1,
                Dscp::CS3 => flash[port] += packet.length(),
                _ => {}
            }
        }
    }
    let received = sim.outcome().loads[0].received.packets;
    assert!(received > 200 && load[1] == received, "{load:?} {received}");
    assert!(load[0] - load[1] <= 2, "on the line: {load:?}");
    assert!(flash[1] > 10_000 && flash[0] >= flash[1], "{flash:?}");
}

#[test]
fn an_invalid_scenario_is_refused() {
    type Change = fn(&mut sim::Scenario);
    let cases: [(Change, &str, &str); 8] = [
        (|s| s.sites[0].host = "carol".into(), "sites[0].host", "alice, bob"),
        (|s| s.sites[1].address = [10, 0, 9, 9].into(), "sites[1].address", "10.0.9.9"),
        (|s| s.loads = vec![flood(0, Dscp::CS0, "10.0.2.2:9")], "loads[0].rate", "1 bit/s"),
        (|s| s.loads = vec![flood(9, Dscp::CS0, "10.0.9.9:9")], "loads[0].to", "10.0.9.9"),
        (|s| s.loads = vec![bulk(None, "10.0.2.2:5000")], "loads[0].to", "5000"),
        (|s| s.tcp.receive_buffer = 1, "tcp.receive_buffer", "4 KiB"),
        (
            |s| {
                let start = sim::SubmissionStart::At(Duration::ZERO);
                s.messages.push(message(base::Precedence::Flash, 0, start));
            },
            "messages[0].size",
            "1 octet",
        ),
        (
            |s| {
                let (router, interface) = ("middle".into(), "wan".into());
                s.probes.push(InterfaceProbe { router, interface, interval: seconds(1) });
            },
            "probes[0]",
            "wan",
        ),
    ];
    for (change, path, what) in cases {
        let mut scenario = pair("512kbit", 10);
        change(&mut scenario);
        let Err(sim::ScenarioError::Scenario(wrong)) = sim::Sim::new(&scenario).map(|_| ()) else {
            panic!("{path} passes")
        };
        assert!(wrong.path == path && wrong.what.contains(what), "{path}: {wrong}");
    }
    let mut scenario = pair("512kbit", 10);
    scenario.policies.clear();
    assert!(matches!(sim::Sim::new(&scenario), Err(sim::ScenarioError::Network(_))));
}
