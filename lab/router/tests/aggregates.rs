//! Routers inside a DiffServ network classify by the code point alone (RFC 2475 2.3.3.1). Two
//! packets with the same code point and length have the same disposition, whatever their other
//! fields.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may")]

use dscp::Dscp;
use proptest::prelude::*;
use router::packet::{HeaderFields, checksum, compose};
use router::policy::{Match, RouterPolicy};
use router::router::{Input, InterfaceRoute, InterfaceSetup, Output, Router, RouterSetup};
use router::{Cause, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// The position of the output interface.
const OUT: usize = 2;

/// The shipped policies of interior routers, by name.
fn inside() -> Vec<(String, RouterPolicy)> {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/lab/policies");
    let files = std::fs::read_dir(policies).unwrap().map(|file| file.unwrap().path());
    let named = files.map(|file| (file.file_stem().unwrap().to_str().unwrap().to_owned(), file));
    let mut inside: Vec<(String, RouterPolicy)> = named
        .filter(|(name, _)| name.ends_with("-core") || name.ends_with("-interior"))
        .map(|(name, file)| {
            let policy = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            (name, policy)
        })
        .collect();
    inside.sort_by(|one, other| one.0.cmp(&other.0));
    inside
}

#[test]
fn their_policies_name_nothing_but_code_points() {
    let inside = inside();
    let names: Vec<&str> = inside.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bern-interior", "degeb-core"]);
    for (name, policy) in &inside {
        assert!(policy.chains.is_empty() && policy.tables.is_empty(), "{name}");
        for one in policy.classes.values().flat_map(|class| &class.matches) {
            assert_eq!(*one, Match { dscp: one.dscp.clone(), ..Match::default() }, "{name}");
            assert!(!one.dscp.is_empty(), "{name}");
        }
    }
}

/// The fields of a packet other than its code point and length.
#[derive(Clone, Copy, Debug)]
struct Look {
    is_v6: bool,
    /// The input interface.
    interface: usize,
    source: u32,
    destination: u32,
    protocol: u8,
    ports: [u8; 4],
    /// Whether the packet is a later fragment of a datagram, which has no ports.
    is_fragment: bool,
    ecn: u8,
    ttl: u8,
}

/// A packet that arrives, and the state of the line.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    dscp: Dscp,
    length: usize,
    /// Two variants of the packet with this code point and length.
    looks: [Look; 2],
    /// Microseconds after the previous packet.
    gap: u64,
    /// Whether the line is free then.
    free: bool,
}

fn look() -> impl Strategy<Value = Look> {
    let ends = (any::<bool>(), 0usize..OUT, any::<u32>(), any::<u32>());
    let protocol = prop::sample::select(vec![1u8, 6, 17, 47, 50, 58, 89, 132]);
    let rest = (protocol, any::<[u8; 4]>(), any::<bool>(), 0u8..4, 2u8..);
    (ends, rest).prop_map(|((is_v6, interface, source, destination), rest)| {
        let (protocol, ports, is_fragment, ecn, ttl) = rest;
        Look { is_v6, interface, source, destination, protocol, ports, is_fragment, ecn, ttl }
    })
}

fn arrival() -> impl Strategy<Value = Arrival> {
    // Mostly code points that the policies name, so that their queues fill.
    let known = prop::sample::select(vec![0u8, 10, 12, 14, 18, 26, 34, 46, 48]);
    let dscp = prop_oneof![4 => known, 1 => 0u8..64].prop_map(|number| Dscp::new(number).unwrap());
    let free = prop::bool::weighted(0.2);
    (dscp, 72usize..=1_500, [look(), look()], 0u64..200, free)
        .prop_map(|(dscp, length, looks, gap, free)| Arrival { dscp, length, looks, gap, free })
}

fn octets(look: &Look, dscp: Dscp, length: usize) -> Vec<u8> {
    let v6 = |net: u16, host: u32| -> IpAddr {
        let [high, low] = [(host >> 16) as u16, host as u16];
        Ipv6Addr::new(0xfd00, net, 0, 0, 0, 0, high, low).into()
    };
    let v4 = |net: u8, host: u32| -> IpAddr {
        let [_, a, b, c] = host.to_be_bytes();
        Ipv4Addr::new(net, a, b, c).into()
    };
    let (source, destination) = match look.is_v6 {
        true => (v6(7, look.source), v6(8, look.destination)),
        false => (v4(20, look.source), v4(30, look.destination)),
    };
    let Look { protocol, ecn, ttl, .. } = *look;
    let mut fields = HeaderFields { source, destination, protocol, dscp, ecn, ttl };
    let mut payload = vec![0; length - if look.is_v6 { 40 } else { 20 }];
    payload[..4].copy_from_slice(&look.ports);
    if look.is_v6 && look.is_fragment {
        fields.protocol = 44;
        // Next header, reserved, an offset of 1,480 without further fragments, identification.
        payload.splice(..8, [protocol, 0, 0x05, 0xc8, 1, 2, 3, 4]);
    }
    let mut octets = compose(&fields, &payload).unwrap();
    if !look.is_v6 && look.is_fragment {
        octets[6..8].copy_from_slice(&[0, 185]);
        octets[10..12].fill(0);
        let sum = checksum(&octets[..20]).to_be_bytes();
        octets[10..12].copy_from_slice(&sum);
    }
    octets
}

fn router(policy: &RouterPolicy) -> Router {
    let interface = |name: &str, v4: [u8; 4], v6: &str, paced| InterfaceSetup {
        name: name.to_owned(),
        addresses: vec![(v4.into(), 24), (v6.parse().unwrap(), 64)],
        mtu: 1_500,
        paced,
    };
    let interfaces = vec![
        interface("one", [10, 1, 1, 1], "fd01::1", false),
        interface("two", [10, 1, 2, 1], "fd02::1", false),
        interface("out", [10, 1, 3, 1], "fd03::1", true),
    ];
    let to_out = |to: &str| InterfaceRoute { to: to.parse().unwrap(), interface: OUT };
    let routes = vec![to_out("0.0.0.0/0"), to_out("::/0")];
    let policy = policy.clone();
    Router::new(&RouterSetup { interfaces, routes, policy, seed: 5, ..RouterSetup::default() })
        .unwrap()
}

/// The dispositions of packets: code points and lengths, in the order in which they left or were
/// dropped, and the counters of every part of the output interface.
#[derive(Debug, Default, PartialEq)]
struct Disposition {
    left: Vec<(Dscp, usize)>,
    dropped: Vec<(Dscp, usize, Cause)>,
    counted: Vec<String>,
}

fn disposition(policy: &RouterPolicy, arrivals: &[Arrival], which: usize) -> Disposition {
    let mut router = router(policy);
    let mut disposition = Disposition::default();
    let mut now = Time(1_000_000);
    let mut take = |router: &mut Router| {
        while let Some(output) = router.poll() {
            match output {
                Output::Send { packet, .. } => {
                    disposition.left.push((packet.dscp(), packet.length()));
                }
                Output::Dropped { packet, cause } => {
                    disposition.dropped.push((packet.dscp(), packet.length(), cause));
                }
                other => panic!("{other:?}"),
            }
        }
    };
    for arrival in arrivals {
        now = Time(now.0 + arrival.gap * 1_000);
        let look = &arrival.looks[which];
        let octets = octets(look, arrival.dscp, arrival.length);
        router.handle(now, Input::Packet { interface: look.interface, octets });
        take(&mut router);
        if arrival.free {
            router.handle(now, Input::Free { interface: OUT });
            take(&mut router);
        }
    }
    let parts = router.report();
    let out = parts.iter().filter(|part| part.path.starts_with("out"));
    let rows = out.flat_map(|part| {
        part.counters.used().map(move |(dscp, row)| format!("{} {dscp} {row:?}", part.path))
    });
    disposition.counted = rows.collect();
    disposition
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn what_has_one_code_point_is_treated_alike(
        arrivals in prop::collection::vec(arrival(), 1..600),
    ) {
        for (name, policy) in inside() {
            let [one, other] = [0, 1].map(|which| disposition(&policy, &arrivals, which));
            prop_assert!(!one.left.is_empty());
            prop_assert_eq!(&one, &other, "{}", name);
        }
    }
}

/// The converse: the test detects a policy that tests other fields.
#[test]
fn a_policy_that_looks_further_is_found_out() {
    let (_, mut policy) = inside().swap_remove(1);
    let class = policy.classes.get_mut("ef").unwrap();
    class.matches[0].protocol = Some(toml::Value::from("udp").try_into().unwrap());
    let plain = Look {
        is_v6: false,
        interface: 0,
        source: 1,
        destination: 2,
        protocol: 17,
        ports: [0, 1, 0, 2],
        is_fragment: false,
        ecn: 0,
        ttl: 64,
    };
    let looks = [plain, Look { protocol: 6, ..plain }];
    let arrival = |dscp| Arrival { dscp, length: 100, looks, gap: 1, free: false };
    // The first leaves at once. Of the next two, EF precedes, unless the policy takes it for best
    // effort.
    let mut arrivals = vec![arrival(Dscp::CS0), arrival(Dscp::CS0), arrival(Dscp::EF)];
    arrivals.push(Arrival { free: true, ..arrival(Dscp::CS0) });
    let [one, other] = [0, 1].map(|which| disposition(&policy, &arrivals, which));
    assert_eq!((one.left[1].0, other.left[1].0), (Dscp::EF, Dscp::CS0));
}
