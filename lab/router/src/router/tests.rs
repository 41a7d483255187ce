use super::*;
use crate::packet::{HeaderFields, udp};
use dscp::Dscp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

const POLICY: &str = r#"
[classes.flash]
match = [{ destination_port = 5003 }]
[classes.cs3]
match = [{ dscp = ["CS3"] }]

[[chains.mark]]
kind = "mark"
class = "flash"
dscp = "CS3"

[[chains.smooth]]
kind = "shape"
class = "cs3"
rate = "8Mbit"
burst = "1500B"
limit = 3

[queueings.wan]
kind = "shaper"
rate = "8Mbit"
burst = "0B"
child.kind = "priority"
child.branches = [{ class = "cs3" }, { queueing = { kind = "fifo", limit = { packets = 5 } } }]

[interfaces.lan]
input = ["mark"]
[interfaces.wan]
queueing = "wan"
"#;

fn interface(name: &str, v4: [u8; 4], v6: &str, paced: bool) -> InterfaceSetup {
    let addresses = vec![(v4.into(), 24), (v6.parse().unwrap(), 64)];
    InterfaceSetup { name: name.to_owned(), addresses, mtu: 1500, paced }
}

fn router(policy: &str, paced: bool) -> Router {
    let interfaces = vec![
        interface("lan", [10, 1, 1, 1], "fd01::1", paced),
        interface("wan", [10, 1, 2, 1], "fd02::1", paced),
    ];
    let policy = toml::from_str(policy).unwrap();
    Router::new(&RouterSetup { interfaces, policy, ..RouterSetup::default() }).unwrap()
}

fn at(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

fn octets(to: IpAddr, port: u16, ttl: u8, length: usize) -> Vec<u8> {
    let source = if to.is_ipv4() { "10.1.1.7" } else { "fd01::7" };
    let source = source.parse().unwrap();
    let fields =
        HeaderFields { source, destination: to, protocol: 17, dscp: Dscp::CS0, ecn: 1, ttl };
    udp(&fields, (9, port), length).unwrap()
}

fn sends(router: &mut Router) -> Vec<(usize, Packet)> {
    let mut sent = Vec::new();
    while let Some(output) = router.poll() {
        match output {
            Output::Send { interface, packet } => sent.push((interface, packet)),
            other => panic!("{other:?}"),
        }
    }
    sent
}

fn there() -> IpAddr {
    [10, 1, 2, 9].into()
}

#[test]
fn a_packet_is_marked_forwarded_and_goes_out_with_one_hop_less() {
    for to in [there(), "fd02::9".parse().unwrap()] {
        let mut router = router(POLICY, false);
        router.handle(at(0), Input::Packet { interface: 0, octets: octets(to, 5003, 9, 100) });
        let sent = sends(&mut router);
        let [(1, packet)] = sent.as_slice() else { panic!("{sent:?}") };
        let read = Packet::read(packet.octets().to_vec(), 1, at(0)).unwrap();
        assert_eq!((read.dscp(), read.header().ttl, read.header().ecn), (Dscp::CS3, 8, 1));
    }
}

/// The limit applies whatever the limits of the queues.
#[test]
fn an_interface_bounds_what_waits_in_all_its_queues() {
    let mut router = router(POLICY, true);
    router.interfaces[1].max_octets = 3_000;
    // The first packet is on the line. Of the waiting ones, two are in one queue and one in the
    // other.
    for (port, length) in [(7, 1_000), (7, 1_000), (5003, 1_000), (7, 1_000)] {
        let octets = octets(there(), port, 9, length);
        router.handle(at(0), Input::Packet { interface: 0, octets });
    }
    assert_eq!((sends(&mut router).len(), router.inside()), (1, 3));
    for port in [7, 5003] {
        let octets = octets(there(), port, 9, 100);
        router.handle(at(0), Input::Packet { interface: 0, octets });
        let dropped = router.poll();
        assert!(
            matches!(dropped, Some(Output::Dropped { cause: Cause::Limit, .. })),
            "{dropped:?}"
        );
    }
    let row = *router.interfaces[1].counters.row(Dscp::CS3);
    assert_eq!(row.dropped[Cause::Limit as usize].octets, 100);
    router.handle(at(1_000), Input::Free { interface: 1 });
    assert_eq!(sends(&mut router).len(), 1);
    router.handle(at(1_000), Input::Packet { interface: 0, octets: octets(there(), 7, 9, 1_000) });
    assert_eq!((router.poll().is_none(), router.inside()), (true, 3), "there is room again");
}

#[test]
fn the_shaper_holds_back_and_the_higher_goes_first() {
    let mut router = router(POLICY, false);
    // 1,000 octets take a millisecond.
    for (port, length) in [(7, 1_500), (7, 1_000), (5003, 1_000)] {
        let octets = octets(there(), port, 9, length);
        router.handle(at(0), Input::Packet { interface: 0, octets });
    }
    assert_eq!(sends(&mut router).len(), 1);
    assert_eq!(router.inside(), 2);
    let mut order = Vec::new();
    for _ in 0..2 {
        let due = router.deadline().unwrap();
        router.handle(due, Input::Tick);
        order.extend(sends(&mut router).iter().map(|(_, packet)| (due, packet.dscp())));
    }
    assert_eq!(order, [(at(1_500), Dscp::CS3), (at(2_500), Dscp::CS0)]);
    assert_eq!((router.deadline(), router.inside()), (None, 0));
}

#[test]
fn a_paced_interface_takes_one_packet_at_a_time() {
    let mut router = router("", true);
    for _ in 0..3 {
        let octets = octets(there(), 7, 9, 100);
        router.handle(at(0), Input::Packet { interface: 0, octets });
    }
    for left in [2, 1, 0] {
        assert_eq!(sends(&mut router).len(), 1);
        assert_eq!(router.inside(), left);
        assert_eq!(router.deadline(), None, "it waits for the line, not for time");
        router.handle(at(5), Input::Free { interface: 1 });
    }
    assert!(sends(&mut router).is_empty());
}

#[test]
fn what_a_chain_held_goes_on_through_the_rest() {
    let held = POLICY.replace("input = [\"mark\"]", "input = [\"mark\", \"smooth\"]");
    let mut router = router(&held, false);
    for _ in 0..6 {
        let octets = octets(there(), 5003, 9, 1_000);
        router.handle(at(0), Input::Packet { interface: 0, octets });
    }
    let (mut sent, mut dropped) = (Vec::new(), 0);
    while let Some(due) = router.deadline() {
        while let Some(output) = router.poll() {
            match output {
                Output::Send { .. } => sent.push(0),
                Output::Dropped { cause: Cause::ShaperFull, .. } => dropped += 1,
                other => panic!("{other:?}"),
            }
        }
        router.handle(due, Input::Tick);
        while let Some(output) = router.poll() {
            assert!(matches!(output, Output::Send { .. }), "{output:?}");
            sent.push(due.0 / 1_000);
        }
    }
    // The chain releases them at 0, 0.5, 1.5 and 2.5 ms; the shaper after it a millisecond apart.
    assert_eq!(dropped, 2, "one is in the burst, three may wait");
    assert_eq!(sent, [0, 1_000, 2_000, 3_000]);
}

#[test]
fn senders_of_undeliverable_packets_get_errors() {
    let mut setup = vec![
        interface("lan", [10, 1, 1, 1], "fd01::1", false),
        interface("wan", [10, 1, 2, 1], "fd02::1", false),
    ];
    setup[1].mtu = 1_280;
    let setup = RouterSetup { interfaces: setup, ..RouterSetup::default() };
    let there6: IpAddr = "fd02::9".parse().unwrap();
    // Destination, hops, length; for IPv4: type, code; for IPv6: type, code.
    for (to, ttl, length, icmp_type) in [
        (there(), 1, 100, (11, 0)),
        ([10, 1, 3, 9].into(), 9, 100, (3, 0)),
        (there6, 1, 100, (3, 0)),
        ("fd03::9".parse().unwrap(), 9, 100, (1, 0)),
        (there6, 9, 1_400, (2, 0)),
    ] {
        let mut router = Router::new(&setup).unwrap();
        router.handle(at(0), Input::Packet { interface: 0, octets: octets(to, 7, ttl, length) });
        let Some(Output::Dropped { packet: dropped, .. }) = router.poll() else { panic!() };
        let answers = sends(&mut router);
        let [(0, answer)] = answers.as_slice() else { panic!("{to}: {answers:?}") };
        let own: [IpAddr; 2] = [[10, 1, 1, 1].into(), "fd01::1".parse().unwrap()];
        assert!(own.contains(&answer.header().source), "{to}");
        assert_eq!(answer.header().destination, dropped.header().source);
        let icmp = &answer.octets()[answer.header().transport..];
        assert_eq!((icmp[0], icmp[1]), icmp_type, "{to}");
    }
    // A packet that may be fragmented is fragmented.
    let mut router = Router::new(&setup).unwrap();
    router.handle(at(0), Input::Packet { interface: 0, octets: octets(there(), 7, 9, 1_400) });
    assert_eq!(sends(&mut router).len(), 2);
}

#[test]
fn an_echo_request_to_the_router_is_answered_and_a_flood_is_not() {
    let mut router = router(POLICY, false);
    let fields = HeaderFields {
        source: [10, 1, 1, 7].into(),
        destination: [10, 1, 2, 1].into(),
        protocol: 1,
        dscp: Dscp::CS0,
        ecn: 0,
        ttl: 1,
    };
    let mut echo = vec![8, 0, 0, 0, 0, 1, 0, 1];
    echo.resize(1_000, 7);
    let sum = crate::packet::checksum(&echo);
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    let request = crate::packet::compose(&fields, &echo).unwrap();
    let mut replies = 0;
    for _ in 0..1_000 {
        router.handle(at(0), Input::Packet { interface: 0, octets: request.clone() });
        while let Some(output) = router.poll() {
            match output {
                Output::Send { interface: 0, packet } => {
                    assert_eq!(packet.header().source, fields.destination);
                    assert_eq!(packet.octets()[20..22], [0, 0]);
                    replies += 1;
                }
                Output::Arrived { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(replies, 62, "64,000 octets of 1,020");
}

#[test]
fn what_is_no_packet_is_refused_and_counted() {
    let mut router = router(POLICY, false);
    let mut broken = octets(there(), 7, 9, 100);
    broken[9] ^= 1;
    router.handle(at(0), Input::Packet { interface: 0, octets: broken });
    let Some(Output::Refused { why, .. }) = router.poll() else { panic!() };
    assert_eq!(why, Malformed::Checksum);
    let report = router.report();
    let lan = report.iter().find(|part| part.path == "lan").unwrap();
    assert_eq!(lan.counters.row(Dscp::CS0).dropped_in_all().packets, 1);
}

#[test]
fn a_wrong_setup_names_its_key() {
    let wrong = |policy: &str| {
        let interfaces = vec![interface("lan", [10, 1, 1, 1], "fd01::1", false)];
        let policy = toml::from_str(policy).unwrap();
        let setup = RouterSetup { interfaces, policy, ..RouterSetup::default() };
        Router::new(&setup).unwrap_err().to_string()
    };
    for (policy, message) in [
        ("[interfaces.wan]", "interfaces.wan: this router has no such interface; it has lan"),
        (
            "[interfaces.lan]\ninput = ['x']",
            "interfaces.lan.input: no chain \"x\": write one under [chains]",
        ),
        (
            "[interfaces.'*']\nqueueing = 'x'",
            "interfaces.lan.queueing: no queueing \"x\": write one under [queueings]",
        ),
    ] {
        assert_eq!(wrong(policy), message);
    }
}

/// The dispositions of the packets of a whole run. A fragmented packet counts with its first
/// fragment.
#[derive(Debug, Default, PartialEq)]
struct Disposition {
    sent: Vec<(Time, usize, Vec<u8>)>,
    dropped: BTreeMap<Cause, usize>,
    arrived: usize,
}

impl Disposition {
    fn drain(&mut self, router: &mut Router, now: Time) {
        while let Some(output) = router.poll() {
            match output {
                Output::Send { interface, packet } => {
                    self.sent.push((now, interface, packet.into_octets()));
                }
                Output::Dropped { cause, packet } => {
                    if !packet.header().later_fragment {
                        *self.dropped.entry(cause).or_default() += 1;
                    }
                }
                Output::Arrived { .. } => self.arrived += 1,
                Output::Refused { why, .. } => panic!("{why}"),
            }
        }
    }

    /// Handles every deadline until then, each at its time.
    fn advance(&mut self, router: &mut Router, until: Time) {
        let mut at_once = 0;
        let mut last = None;
        while let Some(due) = router.deadline().filter(|due| *due <= until) {
            at_once = if last.replace(due) == Some(due) { at_once + 1 } else { 0 };
            assert!(at_once < 10, "it wants the same moment again and again");
            router.handle(due, Input::Tick);
            self.drain(router, due);
        }
    }
}

#[derive(Clone, Debug)]
struct Sent {
    gap_ns: u64,
    to: IpAddr,
    port: u16,
    ttl: u8,
    length: usize,
}

fn run(router: &mut Router, traffic: &[Sent]) -> Disposition {
    let mut disposition = Disposition::default();
    let mut now = Time::ZERO;
    for sent in traffic {
        now = Time(now.0 + sent.gap_ns);
        disposition.advance(router, now);
        let octets = octets(sent.to, sent.port, sent.ttl, sent.length);
        router.handle(now, Input::Packet { interface: 0, octets });
        disposition.drain(router, now);
    }
    disposition.advance(router, Time(u64::MAX));
    disposition
}

fn sent() -> impl Strategy<Value = Sent> {
    // A host at either side, the router itself, an unknown network, and multicast.
    let v4 = ["10.1.1.9", "10.1.2.9", "10.1.2.1", "10.1.3.9", "224.0.0.1"];
    let v6 = ["fd01::9", "fd02::9", "fd02::1", "fd03::9", "ff02::1"];
    let to = prop::sample::select([v4, v6].concat());
    let port = prop::sample::select(vec![7u16, 5003]);
    (0u64..2_000_000, to, port, 1u8..3, 48usize..4_000).prop_map(
        |(gap_ns, to, port, ttl, length)| Sent {
            gap_ns,
            to: to.parse().unwrap(),
            port,
            ttl,
            length,
        },
    )
}

proptest! {
    #[test]
    fn every_packet_is_sent_taken_or_dropped_and_a_run_repeats(
        traffic in prop::collection::vec(sent(), 1..100),
    ) {
        let held = POLICY.replace("input = [\"mark\"]", "input = [\"mark\", \"smooth\"]");
        let (mut one, mut two) = (router(&held, false), router(&held, false));
        let disposition = run(&mut one, &traffic);
        prop_assert_eq!(&run(&mut two, &traffic), &disposition);
        prop_assert_eq!((one.inside(), one.deadline()), (0, None));
        let read = |octets: &Vec<u8>| Packet::read(octets.clone(), 0, Time::ZERO).unwrap();
        // Packets that the router originates are ICMP, and go to the sender.
        let (mut whole, mut errors) = (0, 0);
        for (_, interface, octets) in &disposition.sent {
            let packet = read(octets);
            prop_assert!(packet.length() <= 1_500);
            let header = packet.header();
            let to_wan = ["10.1.2.9", "fd02::9"].contains(&header.destination.to_string().as_str());
            prop_assert_eq!(*interface, usize::from(to_wan));
            match header.protocol {
                1 | 58 => errors += 1,
                _ => whole += usize::from(!header.later_fragment),
            }
        }
        let dropped: usize = disposition.dropped.values().sum();
        prop_assert_eq!(whole + dropped + disposition.arrived, traffic.len());
        let of = |cause: Cause| disposition.dropped.get(&cause).copied().unwrap_or(0);
        let count = |what: &dyn Fn(&Sent) -> bool| traffic.iter().filter(|sent| what(sent)).count();
        let multicast = |sent: &Sent| match sent.to {
            IpAddr::V4(to) => to.is_multicast(),
            IpAddr::V6(to) => to.is_multicast(),
        };
        let own = |sent: &Sent| ["10.1.2.1", "fd02::1"].contains(&sent.to.to_string().as_str());
        let expired = |sent: &Sent| sent.ttl == 1 && !multicast(sent) && !own(sent);
        let mut missing = 0;
        for (counted, wanted) in [
            (of(Cause::Martian), count(&multicast)),
            (disposition.arrived, count(&own)),
            (of(Cause::Expired), count(&expired)),
        ] {
            prop_assert!(counted <= wanted);
            missing += wanted - counted;
        }
        // Packets that the chain dropped went no further.
        prop_assert!(missing <= of(Cause::ShaperFull));
        prop_assert!(errors <= of(Cause::Expired) + of(Cause::NoRoute) + of(Cause::TooLong));
        if traffic.len() < 20 {
            prop_assert_eq!(errors, of(Cause::Expired) + of(Cause::NoRoute) + of(Cause::TooLong));
        }
    }
}

#[test]
fn a_changed_table_holds_for_what_waits() {
    let policy = r#"
        [[tables.premium.flows]]
        name = "slow"
        match = { destination_port = 5003 }
        rate = "8bit"
        burst = "100B"
        [[chains.shape]]
        kind = "shape-flows"
        table = "premium"
        [interfaces.lan]
        input = ["shape"]
    "#;
    let mut router = router(policy, false);
    for _ in 0..2 {
        let octets = octets(there(), 5003, 9, 100);
        router.handle(at(0), Input::Packet { interface: 0, octets });
    }
    assert_eq!(sends(&mut router).len(), 1);
    assert_eq!(router.deadline(), Some(Time::ZERO + Duration::from_secs(100)));
    router.change(at(5), |tables| tables.remove("premium", "slow")).unwrap();
    assert_eq!((sends(&mut router).len(), router.inside(), router.deadline()), (1, 0, None));
}
