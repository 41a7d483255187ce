//! What the layers of the stack exchange.

use super::{Seed, hex, named, written};
use crate::mutate;
use crate::targets::association::{p1_config, p1_plan, p3_config, p3_plan};
use crate::targets::checked::{CheckedAssociation, converse};
use crate::tree::{self, Node};
use base::ber::Tag;
use osi::api::{Config, Dialogue, Role, Service};

/// Associations that differ in what their streams look like.
fn variants() -> Vec<(&'static str, Config)> {
    let with = |change: fn(&mut osi::api::RtseParameters)| {
        let mut config = p1_config();
        if let Service::Rtse(rtse) = &mut config.service {
            change(rtse);
        }
        config
    };
    let mut small = p1_config();
    small.tpdu_size = Some(128);
    vec![
        ("checkpoints", p1_config()),
        ("no-checkpoints", with(|rtse| rtse.checkpoint_size = 0)),
        ("indefinite", with(|rtse| rtse.indefinite_lengths = true)),
        ("monologue", with(|rtse| rtse.dialogue = Dialogue::Monologue)),
        ("small-tpdus", small),
    ]
}

/// The octets that the two ends send.
fn conversation(config: &Config) -> (Vec<u8>, Vec<u8>) {
    let plan = if config.service == Service::Rose { p3_plan() } else { p1_plan() };
    let mut initiator = CheckedAssociation::new(config.clone(), Role::Initiator, plan.clone());
    // A responder that was given the turn would send as well: it never is.
    let mut responder = CheckedAssociation::new(config.clone(), Role::Responder, plan);
    let output = converse(&mut initiator, &mut responder);
    assert!(initiator.is_closed() && initiator.count("Released") == 1, "{:?}", initiator.observed);
    output
}

/// Streams of a P1 initiator.
pub fn p1_responder() -> Vec<Seed> {
    let named = variants().into_iter();
    named.map(|(name, config)| (name.to_owned(), conversation(&config).0)).collect()
}

/// Streams of a P1 responder.
pub fn p1_initiator() -> Vec<Seed> {
    let named = variants().into_iter();
    named.map(|(name, config)| (name.to_owned(), conversation(&config).1)).collect()
}

/// The stream of a P3 initiator.
pub fn p3_responder() -> Vec<Seed> {
    named(&[("operations", conversation(&p3_config()).0)])
}

/// The stream of a P3 responder.
pub fn p3_initiator() -> Vec<Seed> {
    named(&[("results", conversation(&p3_config()).1)])
}

/// Packets of every kind.
pub fn packets() -> Vec<Seed> {
    let (from, to) = conversation(&p3_config());
    named(&[
        ("initiator", from),
        ("responder", to),
        // Connection request as fielded agents send it, and an empty DT before the end.
        ("request", hex("03 00 00 16 11 e0 00 00 00 01 00 c0 01 0d c1 02 00 01 c2 02 00 01")),
        ("empty-data", hex("03 00 00 07 02 f0 00 03 00 00 0b 02 f0 80 01 00 01 00")),
        ("disconnect", hex("03 00 00 0b 06 80 00 01 00 02 80")),
        ("error", hex("03 00 00 0d 08 70 00 01 02 c1 02 0d ff")),
    ])
}

/// The TSDUs in a stream, none of which is cut into several TPDUs.
fn tsdus(stream: &[u8]) -> Vec<Vec<u8>> {
    let packets = mutate::packets(stream).unwrap_or_default();
    let data = packets.iter().filter_map(|p| p.strip_prefix(&[2, 0xf0, 0x80]));
    data.map(<[u8]>::to_vec).collect()
}

/// TSDUs of both ends, each once.
pub fn spdus() -> Vec<Seed> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    for config in [p1_config(), p3_config()] {
        let (a, b) = conversation(&config);
        for tsdu in tsdus(&a).into_iter().chain(tsdus(&b)) {
            let first = tsdu.get(..4).map(<[u8]>::to_vec);
            if tsdu.len() < 400 && !all.iter().any(|t| t.get(..4).map(<[u8]>::to_vec) == first) {
                all.push(tsdu);
            }
        }
    }
    let mut seeds: Vec<Seed> =
        (1..).zip(all).map(|(n, tsdu)| (format!("tsdu-{n:02}"), tsdu)).collect();
    seeds.extend(named(&[
        ("resume", hex("01 00 1d 1d 21 14 09 06 04 04 \"user\" 0b 00 29 03 02 01 01 2a 03 \"123\" 29 03 02 01 02")),
        ("interrupt", hex("01 00 19 03 32 01 05")),
        ("discard", hex("01 00 39 03 32 01 00")),
        ("exception", hex("02 00 30 03 32 01 01")),
        ("please", hex("02 03 10 01 01")),
        ("give-control", hex("15 00")),
        ("abort", hex("19 03 11 01 03")),
        ("segment", hex("01 00 01 03 19 01 01 \"data\"")),
    ]));
    seeds
}

/// The BER at the end of the TSDUs of a stream.
fn ppdus_of(stream: &[u8]) -> Vec<Vec<Node>> {
    let starts_ppdu = |rest: &[u8]| matches!(rest.first(), Some(0x31 | 0x61 | 0x30 | 0xa0));
    let last_ber = |tsdu: &Vec<u8>| {
        let starts = (2..tsdu.len()).filter_map(|at| tsdu.get(at..));
        starts.filter(|rest| starts_ppdu(rest)).find_map(tree::parse)
    };
    tsdus(stream).iter().filter_map(last_ber).collect()
}

fn both() -> Vec<Vec<Node>> {
    let mut all = Vec::new();
    for config in [p1_config(), p3_config()] {
        let (a, b) = conversation(&config);
        all.extend(ppdus_of(&a));
        all.extend(ppdus_of(&b));
    }
    all.retain(|nodes| tree::write(nodes).len() < 500);
    all.dedup();
    all
}

/// PPDUs.
pub fn ppdus() -> Vec<Seed> {
    let mut seeds: Vec<Seed> =
        (1..).zip(both()).map(|(n, nodes)| (format!("ppdu-{n:02}"), tree::write(&nodes))).collect();
    seeds.extend(named(&[
        ("refused", hex("30 12 a5 09 30 07 80 01 02 81 02 51 01 8a 01 02 61 02 30 00")),
        ("abort-provider", hex("30 06 80 01 01 81 01 03")),
        (
            "abort-user",
            hex("a0 80 61 80 30 80 02 01 01 a0 80 64 80 80 01 00 00 00 00 00 00 00 00 00 00 00"),
        ),
    ]));
    seeds
}

/// Elements of these tags anywhere in the PPDUs, each once.
fn inside(wanted: impl Fn(Tag) -> bool) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for mut nodes in both() {
        for number in 0..tree::count(&nodes) {
            tree::visit(&mut nodes, number, &mut |list, at| {
                let Some(node) = list.get(at).filter(|node| wanted(node.tag)) else { return };
                let octets = tree::write(std::slice::from_ref(node));
                if !found.contains(&octets) {
                    found.push(octets);
                }
            });
        }
    }
    found
}

/// ACSE APDUs.
pub fn acse() -> Vec<Seed> {
    let apdus = inside(|tag| (0..5).any(|n| n != 1 && tag == Tag::application(n)));
    let mut seeds: Vec<Seed> =
        (1..).zip(apdus).map(|(n, apdu)| (format!("apdu-{n:02}"), apdu)).collect();
    seeds.extend(named(&[
        ("accepted", hex("61 80 a1 06 06 04 56 00 01 06 a2 03 02 01 00 a3 05 a1 03 02 01 00 be 80 28 80 06 02 51 01 02 01 03 a0 80 05 00 00 00 00 00 00 00 00 00")),
        ("release", hex("62 03 80 01 00")),
        ("released", hex("63 03 80 01 00")),
        ("abort", hex("64 03 80 01 00")),
        ("titles", hex("60 80 80 02 07 80 a1 80 06 04 56 00 01 06 00 00 a6 05 06 03 2a 03 04 be 80 28 80 02 01 03 a0 80 05 00 00 00 00 00 00 00 00 00")),
    ]));
    seeds
}

/// RTSE APDUs.
pub fn rtse() -> Vec<Seed> {
    named(&[
        ("rtorq", hex("b0 80 80 01 3f 81 01 03 82 01 01 a3 80 a0 80 05 00 00 00 00 00 00 00")),
        ("rtorq-definite", hex("b0 0f 80 01 3f 81 01 03 82 01 01 a3 04 a0 02 05 00")),
        ("rtoac", hex("b1 0e 80 01 3f 81 01 03 a2 06 a0 04 31 02 05 00")),
        ("recover", hex("b0 80 80 01 01 81 01 03 a3 80 a1 80 04 04 \"user\" 17 0d \"260101000000Z\" 00 00 00 00 00 00")),
        ("rtorj", hex("b2 80 a1 80 b2 03 02 01 00 00 00 00 00")),
        ("rttp", hex("02 01 03")),
        ("rttr", hex("04 0a 28 08 02 01 05 a0 03 a0 01 00")),
        ("rttr-segments", hex("24 80 04 04 28 80 02 01 04 03 05 a0 80 04 06 05 00 00 00 00 00 00 00")),
        ("rtab", hex("b6 06 80 01 07 81 01 00")),
    ])
    .into_iter()
    .chain((1..).zip(inside(|tag| (16..23).any(|n| tag == Tag::context(n)))).map(|(n, apdu)| {
        (format!("sent-{n:02}"), apdu)
    }))
    .collect()
}

/// ROSE APDUs.
pub fn rose() -> Vec<Seed> {
    named(&[
        ("invoke", hex("a1 0c 02 01 01 02 01 03 30 04 04 02 \"hi\"")),
        (
            "invoke-indefinite",
            hex("a1 80 02 01 02 02 01 04 30 80 24 80 04 01 \"h\" 00 00 00 00 00 00"),
        ),
        ("invoke-linked", hex("a1 0b 02 01 07 80 01 01 02 01 05 05 00")),
        ("result", hex("a2 0a 02 01 01 30 05 02 01 03 05 00")),
        ("result-empty", hex("a2 03 02 01 01")),
        ("error", hex("a3 08 02 01 01 02 01 06 05 00")),
        ("error-empty", hex("a3 06 02 01 01 02 01 02")),
        ("reject", hex("a4 06 02 01 01 81 01 00")),
        ("reject-unknown", hex("a4 05 05 00 80 01 02")),
        ("global", hex("a1 0a 02 01 01 06 03 2a 03 04 05 00")),
    ])
    .into_iter()
    .chain([(
        "bind".to_owned(),
        written(|w| w.constructed(Tag::context(16), |w| w.null(base::ber::universal::NULL))),
    )])
    .collect()
}
