//! Properties of every step: no packet is lost or created, no packet overtakes another of its flow,
//! the counters agree with the packets, and only the DS field changes.

use super::*;
use crate::policy::{Match, TableFlow};
use crate::time::Rate;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// One step of every kind. The table has flows 1 to 3. The shapers classify by source alone: a
/// shaper that classifies by code point lets parts of a flow overtake others, as configured.
const STEPS: [&str; 10] = [
    "kind='mark', dscp='AF12'",
    "kind='drop', class='some'",
    "kind='meter', class='some', meter={kind='token-bucket', rate='1Mbit', burst=500}, red='drop'",
    "kind='meter', meter={kind='single-rate', cir='1Mbit', cbs=900, ebs=500, colour_aware=true}, \
     green='drop-precedence', yellow='drop-precedence', red={mark='LE'}",
    "kind='demote', af_class=1, rates=['1Mbit','500kbit','200kbit'], burst=500",
    "kind='mark-flows', table='t'",
    "kind='meter-flows', table='t', green={mark='EF'}, red='drop-precedence'",
    "kind='shape-flows', table='t', limit=5, delay='8ms'",
    "kind='shape', class='first', rate='1Mbit', burst=700, limit=6",
    "kind='shape', class='listed', rate='500kbit', burst=300, limit=6",
];

fn chain(steps: &[usize]) -> RouterPolicy {
    let steps: Vec<_> = steps.iter().map(|step| format!("{{{}}}", STEPS[*step])).collect();
    policy(&format!(
        r#"
        [classes.some]
        match = [{{ source = "10.0.0.1" }}, {{ dscp = ["AF11", "CS1"] }}]
        [classes.first]
        match = [{{ source = "10.0.0.1" }}]
        [classes.listed]
        match = [{{ table = "t" }}]
        [tables.t]
        flows = [
            {{ name = "1", match = {{ source = "10.0.0.1" }}, rate = "1Mbit", burst = 400 }},
            {{ name = "2", match = {{ source = "10.0.0.2" }}, rate = "300kbit", mark = "AF11" }},
            {{ name = "3", match = {{ source = "10.0.0.3" }}, mark = "AF13" }},
        ]
        [chains]
        test = [{}]
        "#,
        steps.join(",\n")
    ))
}

/// A packet arrives; or a flow of the table is removed, added again with another rate (last or
/// before another flow), or replaced. Flow 4 matches all packets.
#[derive(Clone, Debug)]
enum Event {
    Packet { gap: u64, host: u8, dscp: Dscp, length: usize },
    Remove(u8),
    Add(u8, Option<u64>),
    AddBefore(u8, Option<u64>, u8),
    Replace(u8, Option<u64>),
}

fn rate() -> impl Strategy<Value = Option<u64>> {
    prop::option::of(50_000..2_000_000u64)
}

fn flow(number: u8, rate: Option<u64>) -> TableFlow {
    let prefix = if number == 4 { "10.0.0.0/24".to_owned() } else { format!("10.0.0.{number}") };
    let source = Some(prefix.parse().unwrap());
    TableFlow {
        name: number.to_string(),
        matches: Match { source, ..Match::default() },
        mark: None,
        rate: rate.and_then(Rate::from_bits),
        burst: None,
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let points = ["AF11", "AF12", "AF13", "CS1", "CS0", "EF"].map(|name| name.parse().unwrap());
    let packet = (0..2_000_000u64, 1..5u8, prop::sample::select(points.to_vec()), 32..400usize)
        .prop_map(|(gap, host, dscp, length)| Event::Packet { gap, host, dscp, length });
    let event = prop_oneof![
        20 => packet,
        1 => (1..5u8).prop_map(Event::Remove),
        1 => (1..5u8, rate()).prop_map(|(n, r)| Event::Add(n, r)),
        1 => (1..5u8, rate(), 1..5u8).prop_map(|(n, r, other)| Event::AddBefore(n, r, other)),
        1 => (1..5u8, rate()).prop_map(|(n, r)| Event::Replace(n, r)),
    ];
    prop::collection::vec(event, 1..150)
}

proptest! {
    #[test]
    fn every_chain_keeps_its_promises(
        steps in prop::collection::vec(0..STEPS.len(), 1..4),
        events in events(),
    ) {
        let mut run = Run::new(&chain(&steps));
        let mut sent = BTreeMap::new();
        let mut now = Time::ZERO;
        for (n, event) in events.into_iter().enumerate() {
            match event {
                Event::Packet { gap, host, dscp, length } => {
                    now.0 += gap;
                    let packet = packet(n as u32, host, dscp, length);
                    sent.insert(n as u32, packet.clone());
                    run.take(now, packet);
                    let there = run.out.len() + run.dropped.len() + run.held();
                    prop_assert_eq!(there, sent.len());
                }
                Event::Remove(flow) => {
                    let _ = run.tables.remove("t", &flow.to_string());
                }
                Event::Add(number, rate) => {
                    let _ = run.tables.add("t", flow(number, rate));
                }
                Event::AddBefore(number, rate, other) => {
                    let _ = run.tables.add_before("t", flow(number, rate), &other.to_string());
                }
                Event::Replace(number, rate) => {
                    let _ = run.tables.replace("t", flow(number, rate));
                }
            }
            agree(&run)?;
        }
        run.drain();
        agree(&run)?;
        let mut seen = BTreeMap::new();
        let mut last = BTreeMap::new();
        for (_, packet) in &run.out {
            let before = last.insert(host(packet), number(packet));
            prop_assert!(before < Some(number(packet)), "{} overtakes {:?}", number(packet), before);
        }
        for packet in run.out.iter().map(|is| &is.1).chain(run.dropped.iter().map(|is| &is.0)) {
            prop_assert!(seen.insert(number(packet), ()).is_none(), "twice");
            let mut was = sent[&number(packet)].clone();
            was.set_dscp(packet.dscp());
            prop_assert_eq!(was.octets(), packet.octets());
        }
        prop_assert_eq!(seen.len(), sent.len());
    }

    /// The counters of a single step equal the packets that entered and left it, by code point.
    #[test]
    fn counters_are_what_was_seen(step in 0..STEPS.len(), events in events()) {
        let mut run = Run::new(&chain(&[step]));
        let mut now = Time::ZERO;
        let mut sent = BTreeMap::new();
        for (n, event) in events.into_iter().enumerate() {
            if let Event::Packet { gap, host, dscp, length } = event {
                now.0 += gap;
                sent.insert(n as u32, dscp);
                run.take(now, packet(n as u32, host, dscp, length));
            }
        }
        run.drain();
        let (came, went, dropped, marked) = run.sums(0);
        prop_assert_eq!(came.octets, went.octets + dropped.octets);
        let octets: usize = run.dropped.iter().map(|(is, _)| is.length()).sum();
        prop_assert_eq!((dropped.packets, dropped.octets), (run.dropped.len() as u64, octets as u64));
        let changed = run.out.iter().filter(|(_, is)| is.dscp() != sent[&number(is)]).count();
        prop_assert_eq!(marked, changed as u64);
        for (dscp, row) in run.counters(0).used() {
            let out = run.out.iter().filter(|(_, is)| is.dscp() == dscp).count() as u64;
            let into = sent.values().filter(|is| **is == dscp).count() as u64;
            prop_assert!(row.went.packets <= out && row.came.packets <= into);
            if STEPS[step].starts_with("kind='mark',") || step == 3 {
                prop_assert_eq!((row.went.packets, row.came.packets), (out, into));
            }
        }
    }
}

/// In each step, the packets that entered equal those that passed, were dropped, or are held.
fn agree(run: &Run) -> Result<(), TestCaseError> {
    for (place, step) in run.steps.iter().enumerate() {
        let (came, went, dropped, _) = run.sums(place);
        let held = step.held() as u64;
        prop_assert_eq!(came.packets, went.packets + dropped.packets + held);
        prop_assert_eq!(run.counters(place).depth.now().packets, held);
        prop_assert_eq!(step.deadline().is_some(), held > 0);
    }
    Ok(())
}
