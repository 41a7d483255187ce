use super::*;
use crate::packet::{HeaderFields, compose, udp};
use crate::policy::{IpPrefix, IpProtocol, PacketClass, PortRange, RouterPolicy, TableFlow};
use crate::time::Time;
use dscp::Dscp;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Few addresses and ports, so that rules and packets often match.
fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        3 => (0..6u32).prop_map(|n| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 | n << 7 | n))),
        1 => (0..4u128).prop_map(|n| IpAddr::V6(Ipv6Addr::from(0xfd00 << 112 | n << 63 | n))),
    ]
}

fn prefix() -> impl Strategy<Value = IpPrefix> {
    let lengths = prop::sample::select(vec![0u8, 8, 23, 24, 31, 32, 64, 127, 128]);
    (address(), lengths).prop_map(|(address, length)| {
        let most = if address.is_ipv4() { 32 } else { 128 };
        IpPrefix::new(address, length.min(most)).unwrap()
    })
}

fn port() -> impl Strategy<Value = u16> {
    prop::sample::select(vec![0u16, 1, 1023, 1024, 5_000, 5_001, 5_004, 32_768, 65_534, 65_535])
}

fn ports() -> impl Strategy<Value = PortRange> {
    (port(), port()).prop_map(|(a, b)| PortRange { first: a.min(b), last: a.max(b) })
}

fn dscp() -> impl Strategy<Value = Dscp> {
    prop::sample::select(vec![0u8, 10, 46, 63]).prop_map(|number| Dscp::new(number).unwrap())
}

fn interfaces() -> [Name; 3] {
    ["a", "b", "c"].map(str::to_owned)
}

fn what() -> impl Strategy<Value = Match> {
    let dscps = prop_oneof![
        3 => Just(Vec::new()),
        2 => prop::collection::vec(dscp(), 1..4),
        1 => Just((0..63).map(|number| Dscp::new(number).unwrap()).collect()),
    ];
    (
        dscps,
        prop::option::weighted(0.2, prop::sample::select(interfaces().to_vec())),
        prop::option::of(prefix()),
        prop::option::of(prefix()),
        prop::option::weighted(0.3, prop::sample::select(vec![IpProtocol(6), IpProtocol(17)])),
        prop::option::weighted(0.3, ports()),
        prop::option::weighted(0.3, ports()),
    )
        .prop_filter("of one version", |(_, _, source, destination, ..)| {
            let versions = [source, destination].map(|is| is.map(|is| is.address().is_ipv4()));
            versions != [Some(true), Some(false)] && versions != [Some(false), Some(true)]
        })
        .prop_map(|(dscp, interface, source, destination, protocol, from, to)| Match {
            dscp,
            interface,
            source,
            destination,
            protocol,
            source_port: from,
            destination_port: to,
            table: None,
        })
}

fn packet() -> impl Strategy<Value = Packet> {
    (address(), address(), dscp(), prop::option::weighted(0.8, (port(), port())), 0..3usize)
        .prop_map(|(source, destination, dscp, ports, interface)| {
            let destination = match (source, destination) {
                (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => source,
                _ => destination,
            };
            let fields = HeaderFields { source, destination, protocol: 6, dscp, ecn: 0, ttl: 9 };
            let octets = match ports {
                Some(ports) => udp(&fields, ports, 0).unwrap(),
                None => compose(&fields, &[]).unwrap(),
            };
            Packet::read(octets, interface, Time::ZERO).unwrap()
        })
}

/// The definition: a linear search, field by field.
fn first(whats: impl IntoIterator<Item = Match>, packet: &Packet) -> Option<usize> {
    let (header, interfaces) = (packet.header(), interfaces());
    whats.into_iter().position(|what| {
        let within = |wanted: Option<PortRange>, port: Option<u16>| match (wanted, port) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(wanted), Some(port)) => wanted.first <= port && port <= wanted.last,
        };
        (what.dscp.is_empty() || what.dscp.contains(&header.dscp))
            && what.interface.is_none_or(|name| name == interfaces[packet.interface])
            && what.source.is_none_or(|prefix| prefix.contains(header.source))
            && what.destination.is_none_or(|prefix| prefix.contains(header.destination))
            && what.protocol.is_none_or(|protocol| protocol.0 == header.protocol)
            && within(what.source_port, header.ports.map(|ports| ports.0))
            && within(what.destination_port, header.ports.map(|ports| ports.1))
    })
}

fn flow(name: usize, matches: Match) -> TableFlow {
    TableFlow { name: name.to_string(), matches, mark: None, rate: None, burst: None }
}

fn table_policy() -> RouterPolicy {
    toml::from_str("[tables.t]\n[tables.u]\n").unwrap()
}

proptest! {
    #[test]
    fn classifiers_find_the_first_class(
        classes in prop::collection::vec(prop::collection::vec(what(), 0..4), 0..12),
        others in any::<bool>(),
        packets in prop::collection::vec(packet(), 1..20),
    ) {
        let mut policy = RouterPolicy::default();
        let names: Vec<_> = (0..classes.len()).map(|n| format!("c{n}")).collect();
        for (name, matches) in names.iter().zip(&classes) {
            policy.classes.insert(name.clone(), PacketClass { matches: matches.clone() });
        }
        let mut order: Vec<_> = names.iter().map(|name| Some(name.as_str())).collect();
        if others {
            order.insert(0, None);
        }
        let classifier = Classifier::new(&policy, &interfaces(), &order, "x").unwrap();
        let tables = FlowTables::default();
        for packet in packets {
            let all = classes.iter().enumerate().flat_map(|(n, of)| of.iter().map(move |is| (n, is)));
            let all: Vec<_> = all.collect();
            let place = first(all.iter().map(|(_, is)| (*is).clone()), &packet);
            let should = place.map(|at| all[at].0 + usize::from(others));
            let should = should.or(others.then_some(0));
            prop_assert_eq!(classifier.find(&packet, &tables), should);
        }
    }

    #[test]
    fn aggregates_find_the_first_class(
        classes in prop::collection::vec(prop::collection::vec(0..64u8, 0..9), 1..9),
    ) {
        let mut policy = RouterPolicy::default();
        let names: Vec<_> = (0..classes.len()).map(|n| format!("c{n}")).collect();
        for (name, points) in names.iter().zip(&classes) {
            let dscp = points.iter().map(|point| Dscp::new(*point).unwrap()).collect();
            let matches = vec![Match { dscp, ..Match::default() }];
            policy.classes.insert(name.clone(), PacketClass { matches });
        }
        let order: Vec<_> = names.iter().map(|name| Some(name.as_str())).collect();
        let classifier = Classifier::new(&policy, &[], &order, "x").unwrap();
        prop_assert!(matches!(classifier.finder, Finder::Aggregate(_)));
        for point in 0..64 {
            let fields = HeaderFields {
                source: Ipv4Addr::LOCALHOST.into(),
                destination: Ipv4Addr::LOCALHOST.into(),
                protocol: 1,
                dscp: Dscp::new(point).unwrap(),
                ecn: 1,
                ttl: 1,
            };
            let octets = compose(&fields, &[]).unwrap();
            let packet = Packet::read(octets, 0, Time::ZERO).unwrap();
            let should = classes.iter().position(|of| of.is_empty() || of.contains(&point));
            prop_assert_eq!(classifier.find(&packet, &FlowTables::default()), should);
        }
    }

    /// Flows are added and removed in any order. The table finds what a list of its current flows
    /// finds.
    #[test]
    fn tables_find_the_first_flow_whatever_changed(
        events in prop::collection::vec((any::<prop::sample::Index>(), what()), 1..60),
        packets in prop::collection::vec(packet(), 1..12),
    ) {
        let mut tables = FlowTables::new(&table_policy(), &interfaces()).unwrap();
        let mut list: VecDeque<(usize, Match)> = VecDeque::new();
        for (n, (index, matches)) in events.into_iter().enumerate() {
            if !list.is_empty() && index.index(3) == 0 {
                let (name, was) = list.remove(index.index(list.len())).unwrap();
                let removed = tables.remove("t", &name.to_string()).unwrap();
                prop_assert_eq!(removed.matches, was);
            } else if !list.is_empty() && index.index(7) == 0 {
                let at = index.index(list.len());
                tables.replace("t", flow(list[at].0, matches.clone())).unwrap();
                list[at].1 = matches;
            } else if !list.is_empty() && index.index(2) == 0 {
                let at = index.index(list.len());
                let other = list[at].0.to_string();
                tables.add_before("t", flow(n, matches.clone()), &other).unwrap();
                list.insert(at, (n, matches));
            } else {
                tables.add("t", flow(n, matches.clone())).unwrap();
                list.push_back((n, matches));
            }
            for packet in &packets {
                let place = first(list.iter().map(|(_, is)| is.clone()), packet);
                let should = place.map(|at| list[at].0.to_string());
                prop_assert_eq!(tables.find(0, packet).map(|is| is.name.clone()), should);
                prop_assert!(tables.find(1, packet).is_none());
            }
        }
        let names: Vec<_> = tables.flows(0).map(|flow| flow.name.clone()).collect();
        let should: Vec<_> = list.iter().map(|(name, _)| name.to_string()).collect();
        prop_assert_eq!(names, should);
        for (name, _) in list {
            tables.remove("t", &name.to_string()).unwrap();
        }
        prop_assert!(packets.iter().all(|packet| tables.find(0, packet).is_none()));
    }
}

#[test]
fn a_class_may_be_a_table() {
    let mut policy = table_policy();
    let by_table = |table: &str| Match { table: Some(table.to_owned()), ..Match::default() };
    for (name, table) in [("first", "t"), ("second", "u")] {
        policy.classes.insert(name.to_owned(), PacketClass { matches: vec![by_table(table)] });
    }
    let order = [Some("first"), Some("second"), None];
    let classifier = Classifier::new(&policy, &interfaces(), &order, "x").unwrap();
    let mut tables = FlowTables::new(&policy, &interfaces()).unwrap();
    let fields = HeaderFields {
        source: Ipv4Addr::LOCALHOST.into(),
        destination: Ipv4Addr::LOCALHOST.into(),
        protocol: 17,
        dscp: Dscp::EF,
        ecn: 0,
        ttl: 1,
    };
    let packet = Packet::read(udp(&fields, (1, 2), 0).unwrap(), 0, Time::ZERO).unwrap();
    assert_eq!(classifier.find(&packet, &tables), Some(2));
    let before = tables.version();
    tables.add("u", flow(0, Match::default())).unwrap();
    assert_eq!(classifier.find(&packet, &tables), Some(1));
    tables.add("t", flow(0, Match::default())).unwrap();
    assert_eq!(classifier.find(&packet, &tables), Some(0));
    assert_eq!((tables.version(), tables.version_of(0)), (before + 2, 1));
}

#[test]
fn senseless_flows_are_refused() {
    let mut tables = FlowTables::new(&table_policy(), &interfaces()).unwrap();
    tables.add("t", flow(1, Match::default())).unwrap();
    let refused = |tables: &mut FlowTables, table: &str, flow: TableFlow| {
        tables.add(table, flow).unwrap_err().to_string()
    };
    let wrong = refused(&mut tables, "t", flow(1, Match::default()));
    assert_eq!(wrong, "tables.t.1: a flow of this name is there already");
    assert_eq!(refused(&mut tables, "v", flow(2, Match::default())), "tables.v.2: no table \"v\"");
    let nested = Match { table: Some("u".into()), ..Match::default() };
    assert!(refused(&mut tables, "t", flow(2, nested)).ends_with("cannot refer to a table"));
    let elsewhere = Match { interface: Some("z".into()), ..Match::default() };
    assert_eq!(
        refused(&mut tables, "t", flow(2, elsewhere)),
        "tables.t.2.interface: no \"z\" here"
    );
    assert_eq!(tables.remove("t", "2").unwrap_err().to_string(), "no flow \"2\"");
    assert_eq!(tables.remove("v", "1").unwrap_err().to_string(), "no table \"v\"");
    assert_eq!(tables.version(), 1);
}

/// Takes minutes if each change visits every flow.
#[test]
fn ten_thousand_flows_come_and_go() {
    let mut tables = FlowTables::new(&table_policy(), &interfaces()).unwrap();
    let of = |n: u32| Match {
        source: Some(IpPrefix::new(Ipv4Addr::from(0x0a00_0000 + n).into(), 32).unwrap()),
        destination_port: Some(PortRange { first: 5_000, last: 5_004 }),
        ..Match::default()
    };
    for n in 0..10_000u32 {
        tables.add("t", flow(n as usize, of(n))).unwrap();
    }
    let fields = HeaderFields {
        source: Ipv4Addr::from(0x0a00_0000 + 9_999).into(),
        destination: Ipv4Addr::LOCALHOST.into(),
        protocol: 17,
        dscp: Dscp::EF,
        ecn: 0,
        ttl: 1,
    };
    let packet = Packet::read(udp(&fields, (1, 5_003), 0).unwrap(), 0, Time::ZERO).unwrap();
    assert_eq!(tables.find(0, &packet).unwrap().name, "9999");
    for n in 0..10_000 {
        tables.remove("t", &n.to_string()).unwrap();
    }
    assert!(tables.find(0, &packet).is_none());
}

/// Any number of flows fits between two flows.
#[test]
fn flows_added_before_the_last_one_stay_in_order() {
    let mut tables = FlowTables::new(&table_policy(), &interfaces()).unwrap();
    tables.add("t", flow(1_000, Match::default())).unwrap();
    for n in 0..200 {
        tables.add_before("t", flow(n, Match::default()), "1000").unwrap();
    }
    let names: Vec<usize> = tables.flows(0).map(|flow| flow.name.parse().unwrap()).collect();
    assert_eq!(names, (0..200).chain([1_000]).collect::<Vec<usize>>());
    let wrong = tables.add_before("t", flow(300, Match::default()), "301").unwrap_err();
    assert_eq!(wrong.to_string(), "tables.t.300: no flow \"301\" to stand before");
    let wrong = tables.replace("t", flow(300, Match::default())).unwrap_err();
    assert!(wrong.what.starts_with("no flow of this name to replace"), "{wrong}");
}

/// Rules with a wide range of source ports and narrow ranges of destination ports are indexed by
/// the narrow ranges: a search checks few of ten thousand rules.
#[test]
fn a_wide_range_of_ports_does_not_make_rules_alike() {
    let mut index = Index::default();
    let whats = |n: u16| Match {
        source_port: Some(PortRange { first: 1, last: 65_534 }),
        destination_port: Some(PortRange { first: n * 6 + 1, last: n * 6 + 5 }),
        ..Match::default()
    };
    let rules: Vec<_> = (0..10_000)
        .map(|n| MatchRule::new(&RouterPolicy::default(), &[], &whats(n), "x").unwrap())
        .collect();
    for (number, rule) in rules.iter().enumerate() {
        index.insert(rule, number as u64, number);
    }
    let fields = HeaderFields {
        source: Ipv4Addr::LOCALHOST.into(),
        destination: Ipv4Addr::LOCALHOST.into(),
        protocol: 17,
        dscp: Dscp::EF,
        ecn: 0,
        ttl: 1,
    };
    let packet = Packet::read(udp(&fields, (9, 59_999), 0).unwrap(), 0, Time::ZERO).unwrap();
    let looked = std::cell::Cell::new(0);
    let found = index.find(&packet, |number| {
        looked.set(looked.get() + 1);
        rules[number].matches(&packet, &FlowTables::default())
    });
    assert_eq!(found, Some(9_999));
    assert!(looked.get() <= 4, "looked at {} rules", looked.get());
}
