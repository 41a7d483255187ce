//! Every packet of every channel carries the channel's mark, both ways, from the first to the last.

use super::{CHANNELS, assert_arrived, namespace, one_way, pair, programs, send, wait_until_open};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::net::IpAddr;
use testbed::frame::{ACK, FIN, RST, SYN};
use testbed::{Cable, Capture, CapturedSegment, Pair, PairBuilder};

const PRECEDENCES: [&str; 6] =
    ["deferred", "routine", "priority", "immediate", "flash", "override"];

/// Starts both, sends a message of each precedence both ways, ends one site in order and lets the
/// other break off.
fn exercise(cable: &Cable, builder: PairBuilder) -> Vec<CapturedSegment> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("all.pcap");
    let capture = Capture::start(&cable.act, &programs(), &file).unwrap();
    let mut pair = builder.start().unwrap();
    // Each channel is open both ways.
    wait_until_open(&pair, 2 * CHANNELS.len());
    for (from, to) in [(&pair.naples, &pair.act), (&pair.act, &pair.naples)] {
        let sent = PRECEDENCES.map(|precedence| send(from, to, precedence, "100kB"));
        assert_arrived(&sent, &to.receive("OPS", sent.len()).unwrap());
    }
    break_off(&mut pair);
    assert_eq!(pair.naples.stop().unwrap().code(), Some(0));
    capture.finish().unwrap()
}

/// ACT is killed while octets wait that it has not read: its kernel resets the connections. Then it
/// comes back and is ended in order.
fn break_off(pair: &mut Pair) {
    pair.act.signal(Signal::SIGSTOP).unwrap();
    for precedence in PRECEDENCES {
        send(&pair.naples, &pair.act, precedence, "100kB");
    }
    let sending = |status: &testbed::answer::MtaStatus| {
        status.associations().filter(|a| a.state == "sending").count() == CHANNELS.len()
    };
    pair.naples.wait_until("transfers that are not read", super::SOON, sending).unwrap();
    pair.act.kill().unwrap();
    pair.act.start().unwrap();
    let received = pair.act.receive("OPS", PRECEDENCES.len()).unwrap();
    assert_eq!(received.messages().count(), PRECEDENCES.len());
    wait_until_open(pair, 2 * CHANNELS.len());
    assert_eq!(pair.act.stop().unwrap().code(), Some(0));
}

/// What a connection must have shown on each channel, over each of these pairs of addresses.
fn assert_marked(packets: &[CapturedSegment], expected: &[[IpAddr; 2]]) {
    for (channel, port, mark) in CHANNELS {
        let of_it: Vec<&CapturedSegment> = packets
            .iter()
            .filter(|p| [p.segment.source.port(), p.segment.destination.port()].contains(&port))
            .collect();
        let other: Vec<_> = of_it.iter().filter(|p| p.segment.dscp != mark).take(5).collect();
        assert!(other.is_empty(), "{channel}, {mark}: {other:?} of {}", of_it.len());
        for [client, server] in expected {
            let seen = |of_server: bool, flags: u8, not: u8| {
                of_it.iter().any(|packet| {
                    let segment = &packet.segment;
                    let (near, far) = (segment.source, segment.destination);
                    let (from, to) = if of_server { (near, far) } else { (far, near) };
                    (from.ip(), from.port(), to.ip()) == (*server, port, *client)
                        && segment.has(flags)
                        && segment.flags & not == 0
                })
            };
            let direction = format!("{channel} from {client} to {server}");
            assert!(seen(false, SYN, ACK), "{direction}: SYN");
            assert!(seen(true, SYN | ACK, 0), "{direction}: SYN-ACK");
            for of_server in [false, true] {
                assert!(seen(of_server, ACK, SYN | FIN | RST), "{direction}: data and ACK");
            }
            assert!(seen(false, FIN, 0) || seen(true, FIN, 0), "{direction}: FIN");
        }
        assert!(of_it.iter().any(|packet| packet.segment.has(RST)), "{channel}: RST");
        assert!(last_acks(&of_it, port) > 0, "{channel}: the ACK after a FIN");
    }
}

/// Connections whose last packet is a bare ACK after FINs of both sides: that of TIME-WAIT.
fn last_acks(packets: &[&CapturedSegment], port: u16) -> usize {
    let clients: BTreeSet<_> =
        packets
            .iter()
            .map(|p| {
                if p.segment.source.port() == port {
                    p.segment.destination
                } else {
                    p.segment.source
                }
            })
            .collect();
    let ended = clients.iter().filter(|client| {
        let of_it: Vec<_> = packets
            .iter()
            .filter(|p| p.segment.source == **client || p.segment.destination == **client)
            .collect();
        let fins: BTreeSet<_> =
            of_it.iter().filter(|p| p.segment.has(FIN)).map(|p| p.segment.source).collect();
        let last = of_it.last().map(|p| p.segment);
        fins.len() == 2 && last.is_some_and(|s| s.has(ACK) && s.flags & (FIN | RST) == 0)
    });
    ended.count()
}

#[test]
fn every_packet_over_ipv4() {
    let Some(namespace) = namespace("every_packet_over_ipv4") else { return };
    let cable = Cable::new(namespace).unwrap();
    let packets = exercise(&cable, pair(&cable, one_way()));
    let (naples, act) = (cable.naples.addresses().v4.into(), cable.act.addresses().v4.into());
    assert_marked(&packets, &[[naples, act], [act, naples]]);
}

#[test]
fn every_packet_over_ipv6() {
    let Some(namespace) = namespace("every_packet_over_ipv6") else { return };
    let cable = Cable::new(namespace).unwrap();
    let (naples, act) = (cable.naples.addresses().v6.into(), cable.act.addresses().v6.into());
    let packets = exercise(&cable, pair(&cable, one_way()).over([naples, act]));
    assert_marked(&packets, &[[naples, act], [act, naples]]);
}

/// Both listen at both kinds of address; Naples connects over IPv4 and ACT over IPv6.
#[test]
fn every_packet_of_dual_stack_hosts() {
    let Some(namespace) = namespace("every_packet_of_dual_stack_hosts") else { return };
    let cable = Cable::new(namespace).unwrap();
    let [naples, act] = [cable.naples.addresses(), cable.act.addresses()];
    let ports = CHANNELS.map(|(_, port, _)| port);
    let builder = pair(&cable, one_way())
        .over(["0.0.0.0".parse().unwrap(); 2])
        .and_at(["::".parse().unwrap(); 2])
        .naples_connects(ports.map(|port| (act.v4, port).into()).to_vec())
        .act_connects(ports.map(|port| (naples.v6, port).into()).to_vec());
    let packets = exercise(&cable, builder);
    let v4 = [naples.v4.into(), act.v4.into()];
    let v6 = [act.v6.into(), naples.v6.into()];
    assert_marked(&packets, &[v4, v6]);
}
