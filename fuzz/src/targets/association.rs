//! Whole associations: octets of a peer in, divided anyhow.

use super::checked::{AssociationPlan, CheckedAssociation, Seen};
use base::rng::Rng;
use bytes::Bytes;
use osi::api::{Config, Role, Selectors};
use osi::profiles;
use osi::session::service::ConnectionReference;

/// The stack of a P1 association, with small checkpoints.
pub fn p1_config() -> Config {
    let mut config = profiles::p1(Selectors::default(), Selectors::default(), reference());
    if let osi::api::Service::Rtse(rtse) = &mut config.service {
        rtse.checkpoint_size = 1;
        rtse.window = 2;
    }
    config
}

/// The stack of a P3 association.
pub fn p3_config() -> Config {
    profiles::p3(Selectors::default(), Selectors::default(), reference())
}

/// The stack of a P7 association.
pub fn p7_config() -> Config {
    profiles::p7(Selectors::default(), Selectors::default(), reference())
}

fn reference() -> ConnectionReference {
    ConnectionReference {
        user: Bytes::from_static(b"user"),
        common: Bytes::from_static(b"260101000000Z"),
        additional: Bytes::new(),
    }
}

/// What the user of a P1 association does: two transfers, one of several checkpoints.
pub fn p1_plan() -> AssociationPlan {
    let element = |n: usize| {
        let [_, _, high, low] = (n as u32).to_be_bytes();
        let mut unit = vec![0x04, 0x82, high, low];
        unit.resize(n + 4, b'x');
        Bytes::from(unit)
    };
    AssociationPlan {
        bind: Bytes::from_static(&[5, 0]),
        units: vec![(0, element(3_000)), (0, element(20))],
        release: true,
    }
}

/// What the user of a P3 association does: two invocations.
pub fn p3_plan() -> AssociationPlan {
    let unit = Bytes::from_static(b"\x30\x0c\x04\x0ahelloworld");
    AssociationPlan {
        bind: Bytes::from_static(&[5, 0]),
        units: vec![(3, unit.clone()), (4, unit)],
        release: true,
    }
}

pub(super) fn p1_responder(octets: &[u8]) {
    run(octets, &p1_config(), Role::Responder, &p1_plan());
}

pub(super) fn p1_initiator(octets: &[u8]) {
    run(octets, &p1_config(), Role::Initiator, &p1_plan());
}

pub(super) fn p3_responder(octets: &[u8]) {
    run(octets, &p3_config(), Role::Responder, &p3_plan());
}

pub(super) fn p3_initiator(octets: &[u8]) {
    run(octets, &p3_config(), Role::Initiator, &p3_plan());
}

fn run(octets: &[u8], config: &Config, role: Role, plan: &AssociationPlan) {
    let whole = observe(octets, config, role, plan, &mut |packet| packet.len());
    let mut rng = Rng::new(crate::hash(octets));
    let most = crate::mutate::one_of(&mut rng, [1, 8, 70_000]);
    let cuts = observe(octets, config, role, plan, &mut |_| 1 + rng.below(most) as usize);
    agree(&whole, &cuts);
}

/// The indications are the same; but if the association was aborted, the last ones before the fault
/// may be missing.
fn agree(a: &[Seen], b: &[Seen]) {
    let aborted =
        |observed: &Seen| matches!(observed, Seen::Reported(s) if s.starts_with("Aborted"));
    let (Some((last_a, a_before)), Some((last_b, b_before))) = (a.split_last(), b.split_last())
    else {
        assert_eq!(a, b);
        return;
    };
    if !aborted(last_a) || !aborted(last_b) {
        assert_eq!(a, b, "the cuts change the indications");
        return;
    }
    let (short, long) =
        if a_before.len() <= b_before.len() { (a_before, b_before) } else { (b_before, a_before) };
    let same = short.len().saturating_sub(1);
    for (n, (x, y)) in short.iter().zip(long).enumerate() {
        match (x, y) {
            (Seen::Data(x, _), Seen::Data(y, _)) if n == same => {
                assert!(x.starts_with(y) || y.starts_with(x), "other data: {x:?} and {y:?}");
            }
            _ => assert_eq!(x, y, "the cuts change the indications"),
        }
    }
}

/// The indications to the user. The packets come one after the other, each after the answers to the one
/// before, as from a peer that waits; within a packet the octets are divided by `size`.
fn observe(
    octets: &[u8],
    config: &Config,
    role: Role,
    plan: &AssociationPlan,
    size: &mut dyn FnMut(&[u8]) -> usize,
) -> Vec<Seen> {
    let mut association = CheckedAssociation::new(config.clone(), role, plan.clone());
    for packet in packets(octets) {
        let mut rest = packet;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(size(rest).clamp(1, rest.len()));
            association.feed_part(piece);
            rest = after;
        }
        association.settle();
    }
    association.finish();
    without_broken_off(association.observed)
}

/// Without the data of a unit that its fault broke off: how much of it was indicated before depends on
/// the cuts, and the user ignores it.
fn without_broken_off(observed: Vec<Seen>) -> Vec<Seen> {
    let mut kept: Vec<Seen> = Vec::new();
    for one in observed {
        if one.is("Faulty") && matches!(kept.last(), Some(Seen::Data(_, false))) {
            kept.pop();
        }
        kept.push(one);
    }
    kept
}

/// A stream at its packets' borders; octets that are not a packet are the last piece.
pub(super) fn packets(mut octets: &[u8]) -> Vec<&[u8]> {
    let mut packets = Vec::new();
    while !octets.is_empty() {
        let length = match octets {
            [3, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])).max(4),
            _ => octets.len(),
        };
        let (packet, rest) = octets.split_at(length.min(octets.len()));
        packets.push(packet);
        octets = rest;
    }
    packets
}
