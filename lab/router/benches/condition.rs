//! Packets a second through each part before the queues, 128 octets each: `cargo bench -p router
//! --bench condition`. The aim for the whole pipeline is 1,000,000 on one core, so a part has a
//! small fraction of a microsecond.

#![expect(clippy::expect_used, reason = "what cannot be made cannot be measured")]

use base::rng::Rng;
use criterion::{BatchSize, Bencher, Criterion, Throughput, criterion_group, criterion_main};
use dscp::Dscp;
use router::meter::ColourMeter;
use router::packet::{HeaderFields, udp};
use router::policy::{IpPrefix, IpProtocol, Match, PortRange, RouterPolicy, TableFlow};
use router::{Classifier, Colour, Conditioner, FlowTables, Packet, PacketVerdict, Time, condition};
use std::collections::VecDeque;
use std::fmt::Write;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const LENGTH: usize = 128;
/// Packets of different flows in circulation: more than the nearest cache holds.
const PACKETS: u32 = 4_096;

fn source(n: u32) -> IpAddr {
    Ipv4Addr::from(0x0a00_0000 + n).into()
}

fn ports(n: u32) -> (u16, u16) {
    (1_024 + (n % 1_000) as u16, 5_000 + (n % 5) as u16)
}

/// The packet of flow number n.
fn octets(n: u32, dscp: Dscp) -> Vec<u8> {
    let destination = Ipv4Addr::new(10, 255, 0, 1).into();
    let fields =
        HeaderFields { source: source(n), destination, protocol: 17, dscp, ecn: 0, ttl: 64 };
    udp(&fields, ports(n), LENGTH).expect("one version")
}

fn packet(n: u32, dscp: Dscp) -> Packet {
    Packet::read(octets(n, dscp), 0, Time::ZERO).expect("a packet")
}

/// Packets of several flows, in an irregular order.
fn packets(flows: u32, dscp: Dscp) -> VecDeque<Packet> {
    let mut rng = Rng::new(7);
    (0..PACKETS).map(|_| packet(rng.below(u64::from(flows)) as u32, dscp)).collect()
}

/// Passes packets through this function, again and again.
fn round(
    bencher: &mut Bencher<'_>,
    mut packets: VecDeque<Packet>,
    mut pass: impl FnMut(Packet) -> Packet,
) {
    bencher.iter(|| {
        let packet = packets.pop_front().expect("they come back");
        packets.push_back(pass(packet));
    });
}

fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet");
    group.throughput(Throughput::Elements(1));
    group.bench_function("read", |bencher| {
        round(bencher, packets(PACKETS, Dscp::CS0), |packet| {
            Packet::read(packet.into_octets(), 0, Time::ZERO).expect("a packet")
        });
    });
    group.bench_function("mark and decrement", |bencher| {
        let mut n = 0u8;
        round(bencher, packets(PACKETS, Dscp::CS0), |mut packet| {
            n = n.wrapping_add(1);
            packet.set_dscp(Dscp::from_tos(n << 2));
            let _ = black_box(packet.decrement_ttl());
            packet
        });
    });
    group.finish();
}

/// The match of a flow, in two forms: five fields, or a prefix and a range of ports.
fn exact(n: u32) -> Match {
    let (from, to) = ports(n);
    let one = |port| Some(PortRange { first: port, last: port });
    Match {
        source: IpPrefix::new(source(n), 32),
        destination: IpPrefix::new(Ipv4Addr::new(10, 255, 0, 1).into(), 32),
        protocol: Some(IpProtocol(17)),
        source_port: one(from),
        destination_port: one(to),
        ..Match::default()
    }
}

/// Prefixes of ten lengths, with and without a range of ports.
fn mixed(n: u32) -> Match {
    let length = 23 + (n % 10) as u8;
    let range = Some(PortRange { first: 5_000, last: 5_004 }).filter(|_| n.is_multiple_of(2));
    Match { source: IpPrefix::new(source(n), length), destination_port: range, ..Match::default() }
}

fn table(flows: u32, what: fn(u32) -> Match) -> FlowTables {
    let policy: RouterPolicy = toml::from_str("[tables.t]").expect("a policy");
    let mut tables = FlowTables::new(&policy, &[]).expect("tables");
    for n in 0..flows {
        tables.add("t", flow(n, what)).expect("a flow");
    }
    tables
}

fn flow(n: u32, what: fn(u32) -> Match) -> TableFlow {
    TableFlow { name: n.to_string(), matches: what(n), mark: None, rate: None, burst: None }
}

fn classify(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("classify");
    group.throughput(Throughput::Elements(1));
    let mut policy = String::from("[classes]\n");
    for point in 0..64 {
        writeln!(policy, "c{point}.match = [{{ dscp = [{point}] }}]").expect("a string");
    }
    let policy: RouterPolicy = toml::from_str(&policy).expect("a policy");
    let names: Vec<String> = (0..64).map(|point| format!("c{point}")).collect();
    let names: Vec<_> = names.iter().map(|name| Some(name.as_str())).collect();
    let classifier = Classifier::new(&policy, &[], &names, "x").expect("classes");
    let tables = FlowTables::default();
    group.bench_function("behaviour aggregate of 64", |bencher| {
        round(bencher, packets(PACKETS, Dscp::EF), |packet| {
            black_box(classifier.find(&packet, &tables));
            packet
        });
    });
    for (name, what) in [("five fields", exact as fn(u32) -> Match), ("mixed prefixes", mixed)] {
        for flows in [1, 10, 100, 1_000, 10_000] {
            let tables = table(flows, what);
            group.bench_function(format!("{name}, {flows} flows"), |bencher| {
                round(bencher, packets(flows, Dscp::CS0), |packet| {
                    black_box(tables.find(0, &packet));
                    packet
                });
            });
        }
    }
    let mut tables = table(10_000, exact);
    group.bench_function("add and remove beside 10000 flows", |bencher| {
        bencher.iter_batched(
            || flow(10_000, exact),
            |flow| {
                tables.add("t", flow).expect("a flow");
                tables.remove("t", "10000").expect("it is there")
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn meters(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("meter");
    group.throughput(Throughput::Elements(1));
    for (name, text) in [
        ("token bucket", "kind='token-bucket', rate='1Gbit', burst=1500"),
        ("single rate", "kind='single-rate', cir='700Mbit', cbs=1500, ebs=3000, colour_aware=true"),
        ("two rates", "kind='two-rate', cir='500Mbit', cbs=1500, pir='900Mbit', pbs=3000"),
    ] {
        let policy: RouterPolicy =
            toml::from_str(&format!("chains.c = [{{ kind='meter', meter={{{text}}} }}]"))
                .expect("a policy");
        let steps = policy.chains.get("c").expect("a chain");
        let Some(router::policy::ChainStep::Meter { meter, .. }) = steps.first() else {
            continue;
        };
        let mut meter = ColourMeter::new(meter, "c").expect("a meter");
        let mut now = Time::ZERO;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                now.0 += 1_000;
                black_box(meter.colour(now, LENGTH as u64, Colour::Green))
            });
        });
    }
    group.finish();
}

/// 256 flows whose rates add up to 1,000,000 packets a second.
fn flows_of_256() -> String {
    let mut text = String::from("tables.t.flows = [\n");
    for n in 0..256 {
        let ip = source(n);
        let row =
            format!("name='{n}', match={{source='{ip}'}}, mark='EF', rate='4Mbit', burst=128");
        writeln!(text, "{{ {row} }},").expect("a string");
    }
    text + "]\n"
}

fn chain(text: &str) -> (Box<dyn Conditioner>, FlowTables) {
    let policy: RouterPolicy = toml::from_str(text).expect("a policy");
    let steps = policy.chains.get("c").expect("a chain");
    let mut built = condition::build(&policy, &[], steps, "chains.c").expect("a chain");
    (built.pop().expect("one step"), FlowTables::new(&policy, &[]).expect("tables"))
}

fn conditions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("condition");
    group.throughput(Throughput::Elements(1));
    let table = flows_of_256();
    let class = "[classes.some]\nmatch = [{ source = '10.0.0.0/8', protocol = 'udp' }]\n";
    let bucket = "meter={kind='token-bucket', rate='1Gbit', burst=1500}";
    let colours = "meter={kind='two-rate', cir='500Mbit', cbs=1500, pir='900Mbit', pbs=3000}, \
                   green='drop-precedence', yellow='drop-precedence', red='drop-precedence'";
    let shares = "rates=['300Mbit','300Mbit','300Mbit'], burst=1500";
    for (name, before, step) in [
        ("mark", class, "kind='mark', class='some', dscp='EF'".to_owned()),
        ("policer", class, format!("kind='meter', class='some', {bucket}, red='drop'")),
        ("three colours", class, format!("kind='meter', class='some', {colours}")),
        ("demote", "", format!("kind='demote', af_class=1, {shares}")),
        ("mark 256 flows", &table, "kind='mark-flows', table='t'".to_owned()),
        ("meter 256 flows", &table, "kind='meter-flows', table='t', red='drop'".to_owned()),
    ] {
        let (mut step, tables) = chain(&format!("chains.c = [{{{step}}}]\n{before}"));
        let mut now = Time::ZERO;
        group.bench_function(name, |bencher| {
            round(bencher, packets(256, Dscp::AF11), |mut packet| {
                now.0 += 1_000;
                packet.set_dscp(Dscp::AF11);
                match step.take(now, packet, &tables) {
                    PacketVerdict::Pass(packet) | PacketVerdict::Drop(packet, _) => packet,
                    PacketVerdict::Hold => packet_that_is_not_held(),
                }
            });
        });
    }
    let (mut step, tables) =
        chain(&format!("{table}\nchains.c = [{{kind='shape-flows', table='t'}}]"));
    group.bench_function("shape 256 flows", |bencher| shape(bencher, step.as_mut(), &tables));
    group.finish();
}

fn packet_that_is_not_held() -> Packet {
    packet(0, Dscp::CS0)
}

/// Every flow always has packets waiting: each arriving packet is held, and another one leaves.
fn shape(bencher: &mut Bencher<'_>, step: &mut dyn Conditioner, tables: &FlowTables) {
    let mut free: VecDeque<Packet> = (0..256 * 8).map(|n| packet(n % 256, Dscp::EF)).collect();
    let mut now = Time::ZERO;
    for _ in 0..256 * 4 {
        let packet = free.pop_front().expect("there are more");
        let _ = step.take(now, packet, tables);
    }
    bencher.iter(|| {
        now.0 += 1_000;
        if let Some(packet) = free.pop_front() {
            match step.take(now, packet, tables) {
                PacketVerdict::Pass(packet) | PacketVerdict::Drop(packet, _) => {
                    free.push_back(packet);
                }
                PacketVerdict::Hold => {}
            }
        }
        while let Some(packet) = step.release(now) {
            free.push_back(packet);
        }
        black_box(step.deadline())
    });
}

fn quick() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30)
}

criterion_group! {
    name = benches;
    config = quick();
    targets = read, classify, meters, conditions
}
criterion_main!(benches);
