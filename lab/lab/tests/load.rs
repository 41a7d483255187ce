//! Load from a sender to a receiver, over loopback and between namespaces.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may")]

use dscp::Dscp;
use router::policy::Span;
use router::time::Rate;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Stdio;
use std::time::Duration;
use testbed::{Cable, Namespace};
use traffic::{
    Ahead, Ending, FlowPlan, LoadClock, LoadPlan, Pacing, Received, Receiver, Reception, Sender,
    Sent, Transport,
};

fn receiver(listen: &str, flows: usize) -> Receiver {
    let (listen, interval) = (listen.parse().unwrap(), Duration::from_millis(100));
    // Only a receiver that misses the ends waits so long.
    let limit = Duration::from_secs(60);
    let ahead = Ahead::default();
    Receiver::bind(Reception { listen, limit, flows, interval, echo: false, ahead }).unwrap()
}

fn flow(to: SocketAddr, dscp: Dscp) -> FlowPlan {
    FlowPlan { dscp, ..FlowPlan::udp(to, Rate::from_bits(800_000).unwrap(), 172) }
}

fn both(receiver: Receiver, plan: LoadPlan) -> (Sent, Received) {
    let receiving = std::thread::spawn(|| receiver.run());
    let sent = Sender::new(plan).unwrap().run().unwrap();
    (sent, receiving.join().unwrap().unwrap())
}

#[test]
fn what_is_sent_over_loopback_is_counted_by_flow_and_mark() {
    let receiver = receiver("[::]:0", 4);
    let port = receiver.address().port();
    let (v4, v6) = (SocketAddr::from((Ipv4Addr::LOCALHOST, port)), format!("[::1]:{port}"));
    let tcp = FlowPlan {
        transport: Transport::Tcp,
        size: 5_000,
        packets: Some(12),
        segment: Some(500),
        congestion: Some("reno".into()),
        ..flow(v4, Dscp::CS2)
    };
    let mut plan =
        LoadPlan::single(FlowPlan { copies: 2, packets: Some(40), ..flow(v4, Dscp::EF) });
    plan.flows.push(FlowPlan {
        packets: Some(30),
        jitter: 20,
        ..flow(v6.parse().unwrap(), Dscp::CS1)
    });
    plan.flows.push(tcp);
    // Bounded by the packets; the time is room for a busy machine.
    plan.time = Span(Duration::from_secs(30));
    plan.run = 77;
    let (sent, received) = both(receiver, plan);

    let counts: Vec<u64> = sent.flows.iter().map(|flow| flow.sent).collect();
    assert_eq!(counts, [40, 40, 30, 12], "{sent:?}");
    assert!(sent.flows.iter().all(|flow| flow.errors.is_empty()), "{sent:?}");
    assert_eq!((received.ending, received.clock), (Ending::AllEnded, LoadClock::Monotonic));
    let measured = &received.measured;
    assert_eq!((measured.counts.received, measured.counts.lost), (122, 0), "{measured:?}");
    assert_eq!((measured.counts.duplicates, measured.counts.reordered), (0, 0));
    let marks: Vec<Vec<(u8, u64)>> =
        measured.flows.iter().map(|f| f.dscp.clone().into_iter().collect()).collect();
    assert_eq!(marks, [vec![(46, 40)], vec![(46, 40)], vec![(8, 30)], vec![]]);
    let sizes: Vec<(u64, u64)> =
        measured.flows.iter().map(|f| (f.counts.payload_octets, f.counts.ip_octets)).collect();
    assert_eq!(sizes, [(6_880, 8_000), (6_880, 8_000), (5_160, 6_600), (60_000, 60_000)]);
    assert!(measured.flows.iter().all(|f| f.ended && f.key.run == 77 && f.negative_delays == 0));
    assert!(measured.delay.min > 0 && measured.delay.max >= measured.delay.p99);
}

#[test]
fn what_is_sent_back_is_measured_where_it_was_sent() {
    let (interval, limit) = (Duration::from_millis(100), Duration::from_secs(60));
    let setup = Reception {
        listen: "[::]:0".parse().unwrap(),
        limit,
        flows: 2,
        interval,
        echo: true,
        ahead: Ahead::default(),
    };
    let receiver = Receiver::bind(setup).unwrap();
    let port = receiver.address().port();
    let of = |ip: &str, dscp| {
        let to = SocketAddr::new(ip.parse().unwrap(), port);
        FlowPlan { packets: Some(20), echo: true, ..flow(to, dscp) }
    };
    let mut plan = LoadPlan::single(of("127.0.0.1", Dscp::EF));
    plan.flows.push(of("::1", Dscp::AF11));
    plan.time = Span(Duration::from_secs(30));
    let (sent, received) = both(receiver, plan);
    assert_eq!(received.measured.counts.received, 40);
    let back = sent.back.unwrap();
    assert_eq!((back.counts.sent, back.counts.received, back.counts.lost), (40, 40, 0), "{back:?}");
    let marks: Vec<Vec<(u8, u64)>> =
        back.flows.iter().map(|flow| flow.dscp.clone().into_iter().collect()).collect();
    assert_eq!(marks, [vec![(46, 20)], vec![(10, 20)]]);
    assert!(back.delay.min > 0 && back.flows.iter().all(|flow| flow.negative_delays == 0));
    assert!(back.flows.iter().all(|flow| flow.ended));
}

#[test]
fn senders_with_the_same_run_are_distinguished() {
    let receiver = receiver("127.0.0.1:0", 2);
    let to = receiver.address();
    let receiving = std::thread::spawn(|| receiver.run());
    let senders = [Dscp::EF, Dscp::CS1].map(|dscp| {
        let mut plan = LoadPlan::single(FlowPlan { packets: Some(30), ..flow(to, dscp) });
        plan.time = Span(Duration::from_secs(30));
        std::thread::spawn(|| Sender::new(plan).unwrap().run().unwrap())
    });
    for sender in senders {
        assert_eq!(sender.join().unwrap().flows[0].sent, 30);
    }
    let measured = receiving.join().unwrap().unwrap().measured;
    assert_eq!((measured.counts.received, measured.counts.duplicates), (60, 0), "{measured:?}");
    let mut marks: Vec<_> = measured.flows.iter().map(|flow| flow.dscp.clone()).collect();
    marks.sort();
    assert_eq!(marks, [[(8, 30)].into(), [(46, 30)].into()]);
}

#[test]
fn time_bounds_a_load_and_its_rate_is_what_was_asked() {
    let receiver = receiver("127.0.0.1:0", 1);
    let mut plan = LoadPlan::single(flow(receiver.address(), Dscp::CS0));
    plan.time = Span(Duration::from_millis(500));
    plan.pacing = Pacing::Busy;
    plan.clock = LoadClock::Realtime;
    // All lateness is caught up, so the count does not depend on the machine.
    plan.catch_up = Span(Duration::from_secs(60));
    let (sent, received) = both(receiver, plan);
    // 200 octets at 800 kbit/s: one every 2 ms, the first at once and none at 500 ms. A machine that
    // keeps the sender until the end is late, and what is not sent because of it is reported.
    let flow = &sent.flows[0];
    assert_eq!(flow.sent * 2_000_000 + flow.cut, 500_000_000, "{sent:?}");
    assert_eq!(flow.given_up, 0);
    assert!(flow.sent > 0, "{sent:?}");
    assert_eq!(received.measured.counts.received, sent.flows[0].sent);
    assert_eq!((received.clock, received.measured.counts.lost), (LoadClock::Realtime, 0));
}

#[test]
fn nobody_there_is_counted_and_sending_goes_on() {
    // A port that was free a moment ago.
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut plan = LoadPlan::single(FlowPlan { packets: Some(20), ..flow(port, Dscp::CS0) });
    plan.time = Span(Duration::from_secs(30));
    let sent = Sender::new(plan).unwrap().run().unwrap();
    assert_eq!(sent.flows[0].sent, 20);
    assert!(sent.flows[0].errors["ECONNREFUSED"] > 0, "{sent:?}");

    let tcp = FlowPlan { transport: Transport::Tcp, ..flow(port, Dscp::CS0) };
    let sent = Sender::new(LoadPlan::single(tcp)).unwrap().run().unwrap();
    assert_eq!((sent.flows[0].sent, sent.flows[0].errors["ECONNREFUSED"]), (0, 1));
}

#[test]
fn foreign_packets_are_reported_and_a_receiver_ends_in_time() {
    let (listen, interval) = ("127.0.0.1:0".parse().unwrap(), Duration::from_millis(100));
    let limit = Duration::from_millis(400);
    let receiver = Receiver::bind(Reception {
        listen,
        limit,
        flows: 1,
        interval,
        echo: false,
        ahead: Ahead::default(),
    })
    .unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"not a load", receiver.address()).unwrap();
    let received = receiver.run().unwrap();
    assert_eq!((received.ending, received.measured.foreign), (Ending::TimeOver, 1));
    assert_eq!(received.measured.counts.received, 0);
}

/// The programs, in two namespaces joined by a cable that is slower than the load.
#[test]
fn the_programs_measure_a_cable_between_namespaces() {
    let program = env!("CARGO_BIN_EXE_lab");
    let shaped = || -> anyhow::Result<Cable> {
        let cable = Cable::new(Namespace::new()?)?;
        cable.naples.shape(400_000)?;
        Ok(cable)
    };
    let cable = match shaped() {
        Ok(cable) => cable,
        Err(why) => {
            let _ = writeln!(std::io::stderr().lock(), "    SKIPPED load in namespaces: {why:#}");
            return;
        }
    };
    for address in cable.act.addresses().all() {
        let to = SocketAddr::new(address, 5_000).to_string();
        let mut receive = cable.act.namespace().entrance().command(program);
        receive.args(["load", "receive", "5000", "--for", "60s", "--json"]);
        let mut receiving = receive.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(receiving.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening at [::]:5000"), "{line}");

        // 400 packets in 80 ms; 50 wait, and 233 a second go.
        let words = ["load", "send", &to, "--rate", "8Mbit", "--size", "152", "--packets", "400"];
        let more = ["--dscp", "CS1", "--for", "30s", "--json"];
        let sent = cable.naples.namespace().entrance().run(program, &[&words[..], &more].concat());
        let received = receiving.wait_with_output().unwrap();
        let sent: serde_json::Value = serde_json::from_str(&sent.unwrap()).unwrap();
        let received: serde_json::Value = serde_json::from_slice(&received.stdout).unwrap();
        let number = |key: &str| received[key].as_u64().unwrap_or_else(|| panic!("{received}"));
        assert_eq!((sent["sent"].as_u64(), number("sent")), (Some(400), 400));
        assert_eq!(number("received") + number("lost"), 400, "{received}");
        assert!(number("lost") > 0 && number("received") >= 50, "{received}");
        assert_eq!(received["ending"], "all-ended");
        let seen = &received["flows"][0]["dscp_seen"];
        assert_eq!((&seen[0]["dscp"], seen.as_array().map(Vec::len)), (&8.into(), Some(1)));
        let octets = number("received") * if address.is_ipv4() { 180 } else { 200 };
        assert_eq!(number("ip_size"), octets);
    }
}
