use super::*;
use crate::topology::{Outer, Topology};
use dscp::Dscp;
use proptest::prelude::*;
use router::packet::{HeaderFields, udp};
use std::net::IpAddr;

const TEXT: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.0.1.2/24", "fd00:1::2/64"]
[hosts.b.ports.eth0]
addresses = ["10.0.2.2/24", "fd00:2::2/64"]
[gateways.ga]
red.addresses = ["10.0.1.1/24", "fd00:1::1/64"]
black.addresses = ["192.168.1.1/30", "fd09::1/64"]
[gateways.gb]
red.addresses = ["10.0.2.1/24", "fd00:2::1/64"]
black.addresses = ["192.168.1.2/30", "fd09::2/64"]
overhead = 60
[[links]]
ends = ["a.eth0", "ga.red"]
[[links]]
ends = ["ga.black", "gb.black"]
[[links]]
ends = ["gb.red", "b.eth0"]
"#;

fn pair(change: impl Fn(&mut topology::TopologyGateway)) -> [Gateway; 2] {
    let mut topology = Topology::read(TEXT).unwrap();
    topology.gateways.values_mut().for_each(change);
    let plan = NetworkPlan::new(&topology).unwrap();
    ["ga", "gb"].map(|name| Gateway::new(&topology, &plan, plan.node(name).unwrap()).unwrap())
}

fn plain(six: bool, dscp: Dscp, ecn: u8, length: usize) -> Vec<u8> {
    let [source, destination]: [IpAddr; 2] = if six {
        ["fd00:1::2", "fd00:2::2"].map(|text| text.parse().unwrap())
    } else {
        ["10.0.1.2", "10.0.2.2"].map(|text| text.parse().unwrap())
    };
    let fields = HeaderFields { source, destination, protocol: 17, dscp, ecn, ttl: 9 };
    udp(&fields, (1, 2), length).unwrap()
}

/// The packet after this number of hops.
fn hops(octets: Vec<u8>, hops: usize) -> Vec<u8> {
    let mut packet = Packet::read(octets, RED, Time::ZERO).unwrap();
    (0..hops).for_each(|_| assert!(packet.decrement_ttl()));
    packet.into_octets()
}

fn sent(gateway: &mut Gateway, port: usize, octets: Vec<u8>) -> GatewayOutput {
    gateway.handle(Time::ZERO, port, octets);
    let action = gateway.poll().unwrap();
    assert_eq!(gateway.poll(), None);
    action
}

proptest! {
    #[test]
    fn what_went_in_comes_out(
        six in any::<bool>(),
        outer in prop_oneof![Just(Outer::V4), Just(Outer::V6)],
        value in 0u8..64,
        fixed in prop::option::of(0u8..64),
        ecn in 0u8..4,
        length in 60usize..1_400,
        compatibility in any::<bool>(),
    ) {
        let [mut near, mut far] = pair(|gateway| {
            gateway.outer = outer;
            gateway.dscp = fixed.map_or(Outward::Copy, |it| Outward::Fixed(Dscp::new(it).unwrap()));
            gateway.ecn = if compatibility { Ecn::Compatibility } else { Ecn::Normal };
        });
        let inner = plain(six, Dscp::new(value).unwrap(), ecn, length);
        let GatewayOutput::Send { port: BLACK, octets } = sent(&mut near, RED, inner.clone()) else {
            panic!("not sent")
        };
        let header = if outer == Outer::V4 { 20 } else { 40 };
        prop_assert_eq!(octets.len(), inner.len() + header + 38);
        let shown = Packet::read(octets.clone(), 0, Time::ZERO).unwrap();
        prop_assert_eq!(shown.header().dscp.number(), fixed.unwrap_or(value));
        prop_assert_eq!(shown.header().ecn, if compatibility { 0 } else { ecn });
        prop_assert_eq!((shown.header().protocol, shown.header().ports), (50, None));
        let octets = sent(&mut far, BLACK, octets);
        prop_assert_eq!(octets, GatewayOutput::Send { port: RED, octets: hops(inner, 2) });
    }

    /// No packet that arrives at the black side can cause a fault.
    #[test]
    fn damaged_packets_are_dropped_or_let_out(
        six in any::<bool>(),
        place in 0usize..200,
        value in any::<u8>(),
        cut in 0usize..200,
    ) {
        let [mut near, mut far] = pair(|gateway| {
            gateway.outer = if six { Outer::V6 } else { Outer::V4 };
        });
        let inner = plain(false, Dscp::CS3, 0, 100);
        let GatewayOutput::Send { mut octets, .. } = sent(&mut near, RED, inner) else { panic!() };
        octets.truncate(cut.max(1));
        if let Some(octet) = octets.get_mut(place) {
            *octet = value;
        }
        far.handle(Time::ZERO, BLACK, octets);
        prop_assert!(far.poll().is_some());
        prop_assert!(far.poll().is_none());
    }
}

#[test]
fn congestion_outside_is_marked_inside() {
    // RFC 6040 4.2, Figure 4: rows are inner fields 00, 01, 10, 11; columns outer ones.
    let wanted = [
        [Some(0), Some(0), Some(0), None],
        [Some(1), Some(1), Some(1), Some(3)],
        [Some(2), Some(1), Some(2), Some(3)],
        [Some(3); 4],
    ];
    for (inner, row) in (0u8..).zip(wanted) {
        for (outer, wanted) in (0u8..).zip(row) {
            for six in [false, true] {
                let [mut near, mut far] = pair(|_| {});
                let octets = plain(six, Dscp::AF11, inner, 200);
                let GatewayOutput::Send { octets, .. } = sent(&mut near, RED, octets) else {
                    panic!()
                };
                let marked = header::with_ecn(octets, outer);
                match (sent(&mut far, BLACK, marked), wanted) {
                    (GatewayOutput::Send { octets, .. }, Some(ecn)) => {
                        let wanted = hops(plain(six, Dscp::AF11, ecn, 200), 2);
                        assert_eq!(octets, wanted, "{inner} {outer}");
                    }
                    (GatewayOutput::Drop { cause: Cause::Forced, .. }, None) => {}
                    other => panic!("{inner} {outer}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn what_is_too_long_is_divided_or_refused() {
    let [mut near, _] = pair(|_| {});
    near.handle(Time::ZERO, RED, plain(false, Dscp::CS1, 0, 1_500));
    let lengths: Vec<usize> = std::iter::from_fn(|| near.poll())
        .map(|action| match action {
            GatewayOutput::Send { port: BLACK, octets } => octets.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lengths.len(), 2, "{lengths:?}");
    assert!(lengths.iter().all(|length| *length <= 1_500), "{lengths:?}");
    near.handle(Time::ZERO, RED, plain(true, Dscp::CS1, 0, 1_443));
    assert!(matches!(near.poll(), Some(GatewayOutput::Drop { cause: Cause::TooLong, .. })));
    // Packet Too Big with the inner MTU, from the red address to the sender.
    let Some(GatewayOutput::Send { port: RED, octets }) = near.poll() else { panic!("no answer") };
    let answer = Packet::read(octets, 0, Time::ZERO).unwrap();
    assert_eq!(answer.header().source, "fd00:1::1".parse::<IpAddr>().unwrap());
    assert_eq!(answer.header().destination, "fd00:1::2".parse::<IpAddr>().unwrap());
    assert_eq!(answer.octets()[40..48][..2], [2, 0]);
    assert_eq!(answer.octets()[44..48], 1_442u32.to_be_bytes());
    let mut four = plain(false, Dscp::CS1, 0, 1_443);
    (four[6], four[10]) = (0x40, four[10].wrapping_sub(0x40));
    near.handle(Time::ZERO, RED, four);
    assert!(matches!(near.poll(), Some(GatewayOutput::Drop { cause: Cause::TooLong, .. })));
    let Some(GatewayOutput::Send { port: RED, octets }) = near.poll() else { panic!("no answer") };
    assert_eq!(octets[20..22], [3, 4], "fragmentation needed");
    assert_eq!(octets[26..28], 1_442u16.to_be_bytes());
    let fits = plain(true, Dscp::CS1, 0, 1_442);
    assert!(matches!(sent(&mut near, RED, fits), GatewayOutput::Send { port: BLACK, .. }));
}

#[test]
fn only_the_peers_packets_are_let_in() {
    let [mut near, mut far] = pair(|_| {});
    let GatewayOutput::Send { octets, .. } = sent(&mut near, RED, plain(false, Dscp::CS0, 0, 90))
    else {
        panic!()
    };
    let mut number = octets.clone();
    number[23] ^= 1;
    for wrong in [number, plain(false, Dscp::CS0, 0, 90)] {
        assert!(matches!(
            sent(&mut far, BLACK, wrong),
            GatewayOutput::Drop { cause: Cause::NoRoute, .. }
        ));
    }
    // To a destination without a tunnel, and back to the side of the sender.
    for destination in ["10.9.9.9", "10.0.1.7"] {
        let destination = destination.parse().unwrap();
        let source = "10.0.1.2".parse().unwrap();
        let fields =
            HeaderFields { source, destination, protocol: 17, dscp: Dscp::CS0, ecn: 0, ttl: 9 };
        let octets = udp(&fields, (1, 2), 100).unwrap();
        near.handle(Time::ZERO, RED, octets);
        let action = near.poll().unwrap();
        assert!(matches!(action, GatewayOutput::Drop { cause: Cause::NoRoute, .. }), "{action:?}");
        let Some(GatewayOutput::Send { port: RED, octets }) = near.poll() else {
            panic!("no answer")
        };
        assert_eq!(octets[20..22], [3, 0], "no route");
    }
    assert!(matches!(sent(&mut far, BLACK, octets), GatewayOutput::Send { port: RED, .. }));
}

#[test]
fn an_echo_request_is_answered() {
    let [mut near, _] = pair(|_| {});
    let [source, destination] = ["10.0.1.2", "10.0.1.1"].map(|text| text.parse().unwrap());
    let fields = HeaderFields { source, destination, protocol: 1, dscp: Dscp::CS2, ecn: 0, ttl: 9 };
    let octets = router::packet::compose(&fields, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]).unwrap();
    near.handle(Time::ZERO, RED, octets.clone());
    assert_eq!(near.poll(), Some(GatewayOutput::Taken { octets }));
    let Some(GatewayOutput::Send { port: RED, octets: reply }) = near.poll() else {
        panic!("no reply")
    };
    assert_eq!((reply[20], &reply[16..20]), (0, &[10, 0, 1, 2][..]));
}

/// Queries to a far gateway, and its answers, pass the tunnel.
#[test]
fn a_far_gateway_answers_through_the_tunnel() {
    // Its own red address; and a host behind it, whose packet it must not forward.
    for (destination, ttl, kind) in [("10.0.2.1", 9, 0), ("10.0.2.2", 2, 11)] {
        let [mut near, mut far] = pair(|_| {});
        let [source, destination] = ["10.0.1.2", destination].map(|text| text.parse().unwrap());
        let fields =
            HeaderFields { source, destination, protocol: 1, dscp: Dscp::CS2, ecn: 0, ttl };
        let echo = [8, 0, 0xf7, 0xff, 0, 0, 0, 0];
        let octets = router::packet::compose(&fields, &echo).unwrap();
        let GatewayOutput::Send { port: BLACK, octets } = sent(&mut near, RED, octets) else {
            panic!()
        };
        far.handle(Time::ZERO, BLACK, octets);
        match far.poll() {
            Some(GatewayOutput::Taken { .. }) => assert_eq!(kind, 0),
            Some(GatewayOutput::Drop { cause: Cause::Expired, .. }) => assert_eq!(kind, 11),
            other => panic!("{other:?}"),
        }
        let Some(GatewayOutput::Send { port: BLACK, octets }) = far.poll() else {
            panic!("no answer")
        };
        let GatewayOutput::Send { port: RED, octets } = sent(&mut near, BLACK, octets) else {
            panic!()
        };
        let answer = Packet::read(octets, RED, Time::ZERO).unwrap();
        assert_eq!(answer.header().source, "10.0.2.1".parse::<IpAddr>().unwrap());
        assert_eq!(
            (answer.header().ttl, answer.octets()[20]),
            (63, kind),
            "one gateway on its path"
        );
    }
}

#[test]
fn the_sender_of_an_expired_packet_gets_an_error() {
    let [mut near, _] = pair(|_| {});
    let [source, destination] = ["10.0.1.2", "10.0.2.2"].map(|text| text.parse().unwrap());
    let fields =
        HeaderFields { source, destination, protocol: 17, dscp: Dscp::CS0, ecn: 0, ttl: 1 };
    near.handle(Time::ZERO, RED, udp(&fields, (1, 2), 100).unwrap());
    assert!(matches!(near.poll(), Some(GatewayOutput::Drop { cause: Cause::Expired, .. })));
    let Some(GatewayOutput::Send { port: RED, octets }) = near.poll() else { panic!("no answer") };
    assert_eq!((octets[20], &octets[12..16]), (11, &[10, 0, 1, 1][..]), "time exceeded");
}
