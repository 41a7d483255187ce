//! The whole network: no packet is lost without a report, duplicated or reordered. The outputs do
//! not depend on the times of calls, and the rates are the configured ones.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use dscp::Dscp;
use network::{HostId, Input, NetworkMachine, Output, TapDirection, Topology};
use proptest::prelude::*;
use router::packet::{HeaderFields, udp};
use router::policy::{Attachment, OctetSize, Queueing, RouterPolicy};
use router::time::SECOND;
use router::{Rate, Time};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The properties of a link of a generated network.
#[derive(Clone, Debug)]
struct Like {
    rate: Option<u32>,
    half: bool,
    delay_us: u32,
    jitter_us: u32,
    loss: f64,
    queue: usize,
}

/// The shapers of a router in a generated network, for input and output at each of its ports.
#[derive(Clone, Debug)]
struct Shaped {
    input: Option<(u32, u32)>,
    output: (u32, u32),
    interval_ms: Option<u32>,
    packets: usize,
}

fn shaped() -> impl Strategy<Value = Option<Shaped>> {
    let rate = || (100u32..20_000, 1u32..20_000);
    let interval = prop::option::of(1u32..50);
    let some = (prop::option::of(rate()), rate(), interval, 1usize..30).prop_map(
        |(input, output, interval_ms, packets)| Shaped { input, output, interval_ms, packets },
    );
    prop::option::of(some)
}

impl Shaped {
    fn policy(&self) -> RouterPolicy {
        let Shaped { input, output: (rate, burst), interval_ms, packets } = self;
        let mut text = String::new();
        if let Some((rate, burst)) = input {
            writeln!(
                text,
                "chains.in = [{{ kind = \"shape\", rate = \"{rate}kbit\", burst = \"{burst}B\", \
                 limit = {packets} }}]"
            )
            .unwrap();
        }
        // With an interval, the burst is that of its grant.
        let (burst, interval) = match interval_ms {
            None => (*burst, String::new()),
            Some(ms) => (0, format!("interval = \"{ms}ms\"\n")),
        };
        writeln!(
            text,
            "[queueings.out]\nkind = \"shaper\"\nrate = \"{rate}kbit\"\nburst = \"{burst}B\"\n\
             {interval}child = {{ kind = \"fifo\", limit = {{ packets = {packets} }} }}\n\
             [interfaces.\"*\"]\nqueueing = \"out\"\ninput = [{}]",
            if input.is_some() { "\"in\"" } else { "" }
        )
        .unwrap();
        toml::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text}"))
    }
}

fn like() -> impl Strategy<Value = Like> {
    let rate = prop_oneof![Just(None), (100u32..20_000).prop_map(Some)];
    let jitter = prop_oneof![Just(0u32), 0u32..5_000];
    let loss = prop_oneof![3 => Just(0.0), 1 => 0.0..0.2];
    (rate, any::<bool>(), 0u32..20_000, jitter, loss, 1usize..30).prop_map(
        |(rate, half, delay_us, jitter_us, loss, queue)| Like {
            rate,
            half: half && rate.is_some(),
            delay_us,
            jitter_us,
            loss,
            queue,
        },
    )
}

/// The link to a router's host, the link to the next router, and the shapers of the router.
type PartCounters = (Like, Like, Option<Shaped>);

/// A chain of routers, each with a host, as text.
fn chain(parts: &[PartCounters]) -> String {
    let mut text = String::new();
    for (n, (own, _, shaped)) in parts.iter().enumerate() {
        writeln!(text, "[hosts.h{n}.ports.eth0]\naddresses = [\"10.1.{n}.2/24\"]").unwrap();
        writeln!(text, "queue = {}", own.queue).unwrap();
        if shaped.is_some() {
            writeln!(text, "[routers.r{n}]\npolicy = \"shaped{n}\"").unwrap();
        }
        writeln!(text, "[routers.r{n}.ports]\nhost.addresses = [\"10.1.{n}.1/24\"]").unwrap();
        if n > 0 {
            writeln!(text, "left.addresses = [\"10.2.{n}.2/30\"]").unwrap();
        }
        if n + 1 < parts.len() {
            writeln!(text, "right.addresses = [\"10.2.{}.1/30\"]", n + 1).unwrap();
        }
    }
    let mut link = |one: String, other: String, like: &Like| {
        writeln!(text, "[[links]]\nends = [\"{one}\", \"{other}\"]").unwrap();
        if let Some(rate) = like.rate {
            writeln!(text, "rate = \"{rate}kbit\"").unwrap();
        }
        let duplex = if like.half { "half" } else { "full" };
        let Like { delay_us, jitter_us, loss, .. } = like;
        writeln!(text, "duplex = \"{duplex}\"\nloss = {loss}").unwrap();
        writeln!(text, "delay = \"{delay_us}us\"\njitter = \"{jitter_us}us\"").unwrap();
    };
    for (n, (own, next, _)) in parts.iter().enumerate() {
        link(format!("h{n}.eth0"), format!("r{n}.host"), own);
        if n + 1 < parts.len() {
            link(format!("r{n}.right"), format!("r{}.left", n + 1), next);
        }
    }
    text
}

#[derive(Clone, Debug)]
struct Sent {
    from: usize,
    to: usize,
    length: usize,
    wait_us: u64,
}

fn sent() -> impl Strategy<Value = Sent> {
    let wait = prop_oneof![Just(0u64), 0u64..3_000];
    (0usize..4, 0usize..4, 40usize..1_500, wait).prop_map(|(from, to, length, wait_us)| Sent {
        from,
        to,
        length,
        wait_us,
    })
}

/// A packet with its number and sender in it.
fn packet(from: usize, to: usize, number: u32, length: usize) -> Vec<u8> {
    let [source, destination] = [from, to].map(|n| [10, 1, n as u8, 2].into());
    let fields =
        HeaderFields { source, destination, protocol: 17, dscp: Dscp::CS2, ecn: 0, ttl: 64 };
    let mut octets = udp(&fields, (from as u16, to as u16), length).unwrap();
    let end = octets.len();
    octets[end - 4..].copy_from_slice(&number.to_be_bytes());
    octets
}

fn number(octets: &[u8]) -> u32 {
    u32::from_be_bytes(octets[octets.len() - 4..].try_into().unwrap())
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    delivered: Vec<(HostId, u32, Time)>,
    recycled: usize,
}

impl Seen {
    fn drain(&mut self, network: &mut NetworkMachine) {
        while let Some(output) = network.poll() {
            match output {
                Output::Deliver { host, octets, at, .. } => {
                    self.delivered.push((host, number(&octets), at));
                }
                Output::Recycle(_) => self.recycled += 1,
                Output::Tap { .. } => panic!("nobody asked"),
            }
        }
    }
}

fn network(text: &str, seed: u64) -> NetworkMachine {
    NetworkMachine::new(&Topology::read(text).unwrap(), &BTreeMap::new(), seed).unwrap()
}

/// Sends all packets; ticks at every deadline between them, or only at the end.
fn run(parts: &[PartCounters], all: &[Sent], seed: u64, prompt: bool) -> Seen {
    let routers = parts.len();
    let shaped = parts
        .iter()
        .enumerate()
        .filter_map(|(n, (.., shaped))| Some((format!("shaped{n}"), shaped.as_ref()?.policy())));
    let topology = Topology::read(&chain(parts)).unwrap();
    let mut network = NetworkMachine::new(&topology, &shaped.collect(), seed).unwrap();
    let mut seen = Seen::default();
    let mut now = Time::ZERO;
    for (n, one) in all.iter().enumerate() {
        let next = Time(now.0 + one.wait_us * 1_000);
        while prompt && let Some(due) = network.deadline().filter(|due| *due < next) {
            network.handle(due, Input::Tick);
            seen.drain(&mut network);
        }
        now = next;
        let (from, to) = (one.from % routers, one.to % routers);
        let host = network.host(&format!("h{from}")).unwrap();
        let octets = packet(from, to, n as u32, one.length);
        network.handle(now, Input::Packet { host, port: 0, octets });
        seen.drain(&mut network);
        assert_eq!(seen.delivered.len() + seen.recycled + network.inside(), n + 1);
    }
    while prompt && let Some(due) = network.deadline() {
        network.handle(due, Input::Tick);
        seen.drain(&mut network);
    }
    network.handle(Time(now.0 + 3_600 * SECOND), Input::Tick);
    seen.drain(&mut network);
    assert_eq!((network.inside(), network.deadline()), (0, None));
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_is_lost_unsaid_doubled_or_reordered(
        parts in prop::collection::vec((like(), like(), shaped()), 1..4),
        all in prop::collection::vec(sent(), 1..150),
        seed in any::<u64>(),
    ) {
        let seen = run(&parts, &all, seed, true);
        prop_assert_eq!(seen.delivered.len() + seen.recycled, all.len());
        let mut last = BTreeMap::new();
        for (host, number, at) in &seen.delivered {
            let one = &all[*number as usize];
            let (from, to) = (one.from % parts.len(), one.to % parts.len());
            prop_assert_eq!(host.0, to, "hosts come first, by name");
            if let Some((before, earlier)) = last.insert((from, to), (*number, *at)) {
                prop_assert!(before < *number && earlier <= *at);
            }
        }
        prop_assert_eq!(&run(&parts, &all, seed, true), &seen, "the same seed");
        let late = run(&parts, &all, seed, false);
        prop_assert_eq!(late, seen, "whenever one looks");
    }
}

const PAIR: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.1.0.2/24"]
[hosts.b.ports.eth0]
addresses = ["10.1.1.2/24"]
[routers.r]
policy = "shaped"
[routers.r.ports]
a.addresses = ["10.1.0.1/24"]
b.addresses = ["10.1.1.1/24"]
[[links]]
ends = ["a.eth0", "r.a"]
rate = "1Gbit"
[[links]]
ends = ["r.b", "b.eth0"]
rate = "RATE"
"#;

/// Keeps a queue of 60 packets filled for 10 s. Returns the octets a second that arrive in the last
/// 9 s.
fn throughput(text: &str, policy: RouterPolicy, wanted: Rate) -> f64 {
    let topology = Topology::read(text).unwrap();
    let policies = BTreeMap::from([("shaped".to_owned(), policy)]);
    let mut network = NetworkMachine::new(&topology, &policies, 1).unwrap();
    let host = network.host("a").unwrap();
    let (mut now, mut spare) = (Time::ZERO, Vec::new());
    let (mut octets, mut first, mut last) = (0usize, None, Time::ZERO);
    let gap = wanted.nanos_for(1_500);
    for _ in 0..60 {
        spare.push(packet(0, 1, 0, 1_500));
    }
    while now.0 < 10 * SECOND {
        while let Some(mut packet) = spare.pop() {
            packet.splice(8..12, [64, 17, 0, 0]);
            let sum = router::packet::checksum(&packet[..20]).to_be_bytes();
            packet.splice(10..12, sum);
            network.handle(now, Input::Packet { host, port: 0, octets: packet });
        }
        while let Some(output) = network.poll() {
            match output {
                Output::Deliver { octets: packet, at, .. } => {
                    if at.0 > SECOND {
                        octets += if first.is_some() { packet.len() } else { 0 };
                        first.get_or_insert(at);
                        last = at;
                    }
                    spare.push(packet);
                }
                other => panic!("{other:?}"),
            }
        }
        // Late by up to ten packets, as an edge may be.
        now = Time(now.0 + gap * (1 + now.0 % 10));
        network.handle(now, Input::Tick);
    }
    octets as f64 * 8.0 * SECOND as f64 / last.since(first.unwrap()) as f64
}

#[test]
fn lines_and_shapers_keep_their_rate_over_ten_seconds() {
    for text in ["512kbit", "2Mbit", "10Mbit", "100Mbit"] {
        let rate: Rate = text.parse().unwrap();
        let line = throughput(&PAIR.replace("RATE", text), RouterPolicy::default(), rate);
        let child = Box::new(Queueing::default());
        let (burst, interval) = (OctetSize(3_000), None);
        let shaper = Queueing::Shaper { rate, burst, interval, overhead: 0, child };
        let queueing = Some("shaper".to_owned());
        let policy = RouterPolicy {
            queueings: BTreeMap::from([("shaper".to_owned(), shaper)]),
            interfaces: BTreeMap::from([(
                "b".to_owned(),
                Attachment { queueing, ..Attachment::default() },
            )]),
            ..RouterPolicy::default()
        };
        let shaped = throughput(&PAIR.replace("RATE", "1Gbit"), policy, rate);
        for measured in [line, shaped] {
            let off = (measured / rate.bits() as f64 - 1.0).abs();
            assert!(off < 0.001, "{text}: {line} by the line, {shaped} by the shaper");
        }
    }
}

#[test]
fn a_tap_sees_both_ways_while_it_is_on() {
    let policies = BTreeMap::from([("shaped".to_owned(), RouterPolicy::default())]);
    let topology = Topology::read(&PAIR.replace("RATE", "12Mbit")).unwrap();
    let mut network = NetworkMachine::new(&topology, &policies, 1).unwrap();
    let port = network.plan().port("r.b").unwrap();
    let mut seen = Vec::new();
    for (n, on) in [true, false].into_iter().enumerate() {
        let start = Time(n as u64 * SECOND);
        network.handle(start, Input::Tap { port, on });
        for (from, to) in [(0, 1), (1, 0)] {
            let octets = packet(from, to, n as u32, 1_500);
            network.handle(start, Input::Packet { host: HostId(from), port: 0, octets });
        }
        network.handle(Time(start.0 + SECOND / 2), Input::Tick);
        while let Some(output) = network.poll() {
            if let Output::Tap { port: at_port, direction, at, octets } = output {
                assert_eq!(at_port, port);
                seen.push((direction, at, number(&octets), octets[8]));
            }
        }
    }
    // 12 µs to the router at 1 Gbit/s; 1 ms from host b.
    let wanted =
        [(TapDirection::Out, Time(12_000), 0, 63), (TapDirection::In, Time(1_000_000), 0, 64)];
    assert_eq!(seen, wanted);
}

#[test]
fn faults_of_policies_are_reported_by_name() {
    let topology = Topology::read(&PAIR.replace("RATE", "12Mbit")).unwrap();
    let wrong = NetworkMachine::new(&topology, &BTreeMap::new(), 1).unwrap_err();
    assert_eq!(wrong.path, "routers.r.policy");
    let queueing = Some("none".to_owned());
    let attachment = Attachment { queueing, ..Attachment::default() };
    let interfaces = BTreeMap::from([("b".to_owned(), attachment)]);
    let policy = RouterPolicy { interfaces, ..RouterPolicy::default() };
    let policies = BTreeMap::from([("shaped".to_owned(), policy)]);
    let wrong = NetworkMachine::new(&topology, &policies, 1).unwrap_err();
    assert_eq!(wrong.path, "policies.shaped (of routers.r): interfaces.b.queueing");
}

const SITES: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.1.0.2/24"]
[hosts.b.ports.eth0]
addresses = ["10.1.1.2/24"]
[routers.r.ports]
a.addresses = ["10.1.0.1/24"]
g.addresses = ["10.2.0.1/30"]
[gateways.ga]
red.addresses = ["10.2.0.2/30"]
black.addresses = ["192.168.0.1/30"]
[gateways.gb]
red.addresses = ["10.1.1.1/24"]
black.addresses = ["192.168.0.2/30"]
[[links]]
ends = ["a.eth0", "r.a"]
[[links]]
ends = ["r.g", "ga.red"]
[[links]]
ends = ["ga.black", "gb.black"]
[[links]]
ends = ["gb.red", "b.eth0"]
"#;

#[test]
fn a_sender_gets_errors_about_its_packets() {
    let mut network = network(SITES, 1);
    let mut answers = Vec::new();
    let addressed = |octets: &mut Vec<u8>, at: usize, value: u8| {
        octets[at] = value;
        octets.splice(10..12, [0, 0]);
        let sum = router::packet::checksum(&octets[..20]).to_be_bytes();
        octets.splice(10..12, sum);
    };
    // Don't Fragment; a time to live of 1; a destination that nobody has.
    for (at, value) in [(6, 0x40), (8, 1), (16, 11)] {
        let mut octets = packet(0, 1, 0, 1_500);
        addressed(&mut octets, at, value);
        network.handle(Time(1), Input::Packet { host: HostId(0), port: 0, octets });
        while let Some(output) = network.poll() {
            if let Output::Deliver { host, octets, .. } = output {
                assert_eq!(host, HostId(0));
                answers.push((octets[12..16].to_vec(), octets[20..28].to_vec()));
            }
        }
    }
    let [gateway, router] = [vec![10, 2, 0, 2], vec![10, 1, 0, 1]];
    let kinds: Vec<_> = answers.iter().map(|(from, icmp)| (from, icmp[0], icmp[1])).collect();
    assert_eq!(kinds, [(&gateway, 3, 4), (&router, 11, 0), (&router, 3, 0)]);
    assert_eq!(answers[0].1[6..8], 1_442u16.to_be_bytes());
}

/// Packets that `x` sends by its red port enter the red port of `y`, which sends them to `x` again.
const CIRCLE: &str = r#"
[hosts.a.ports.eth0]
addresses = ["10.1.0.2/24"]
[gateways.z]
red.addresses = ["10.1.0.1/24"]
black.addresses = ["192.168.0.1/30"]
routes = [{ to = "10.9.0.0/16", via = "x" }]
[gateways.x]
red.addresses = ["10.2.0.1/30"]
black.addresses = ["192.168.0.5/30"]
[gateways.y]
red.addresses = ["10.2.0.2/30"]
black.addresses = ["192.168.0.9/30"]
routes = [{ to = "10.9.0.0/16", via = "x" }]
[routers.wan.ports]
z.addresses = ["192.168.0.2/30"]
x.addresses = ["192.168.0.6/30"]
y.addresses = ["192.168.0.10/30"]
[[links]]
ends = ["a.eth0", "z.red"]
[[links]]
ends = ["z.black", "wan.z"]
[[links]]
ends = ["x.black", "wan.x"]
[[links]]
ends = ["y.black", "wan.y"]
[[links]]
ends = ["x.red", "y.red"]
"#;

#[test]
fn what_goes_round_between_gateways_comes_to_an_end() {
    let mut network = network(CIRCLE, 1);
    let mut octets = packet(0, 1, 0, 1_000);
    octets.splice(16..20, [10, 9, 0, 1]);
    octets.splice(10..12, [0, 0]);
    let sum = router::packet::checksum(&octets[..20]).to_be_bytes();
    octets.splice(10..12, sum);
    network.handle(Time(1), Input::Packet { host: HostId(0), port: 0, octets });
    let ended = std::iter::from_fn(|| network.poll());
    assert!(ended.count() >= 1 && network.inside() == 0);
    let expired: u64 = network
        .report()
        .iter()
        .flat_map(|part| part.counters.used())
        .map(|(_, row)| row.dropped[router::Cause::Expired as usize].packets)
        .sum();
    assert_eq!(expired, 1);
}
