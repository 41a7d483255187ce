//! Tables 4-1 and 4-3 of the DEGEB study: each class alone is offered 100 Mbit/s.

use super::*;
use crate::time::SECOND;
use std::collections::BTreeSet;

/// The shipped policy. The sums of its shares, from the lowest, are the printed limits.
const POLICY: &str = include_str!("../../../../../config/lab/policies/degeb-edge.toml");

/// The chain of the edge router.
fn edge() -> Run {
    Run::chain(&policy(POLICY), "edge")
}

/// Name, TOS octet sent, limit in Mbit/s, loss as printed in percent, TOS octets received.
const PRINTED: [(&str, u8, f64, f64, &[u8]); 11] = [
    ("EF", 0xb8, 10.0, 89.0, &[0xb8]),
    ("AF11", 0x28, 76.0, 22.0, &[0x28, 0x30, 0x38]),
    ("AF12", 0x30, 46.0, 52.0, &[0x30, 0x38]),
    ("AF13", 0x38, 21.0, 78.0, &[0x38]),
    ("AF21", 0x48, 46.0, 51.0, &[0x48, 0x50, 0x58]),
    ("AF22", 0x50, 26.0, 72.0, &[0x50, 0x58]),
    ("AF23", 0x58, 11.0, 88.0, &[0x58]),
    ("AF31", 0x68, 16.0, 83.0, &[0x68, 0x70, 0x78]),
    ("AF32", 0x70, 6.0, 94.0, &[0x70, 0x78]),
    ("AF33", 0x78, 1.0, 99.0, &[0x78]),
    ("BE", 0x00, 30.0, 68.0, &[0x00]),
];

/// Offers this rate in packets of 1,000 octets for two seconds. Returns rate (Mbit/s), loss
/// (percent) and TOS octets of the packets that passed in the second one.
fn offer(tos: u8, mbit: u64) -> (f64, f64, BTreeSet<u8>) {
    let mut run = edge();
    let gap = 8_000_000 / mbit;
    let count = 2 * SECOND / gap;
    for n in 0..count {
        run.take(Time(n * gap), packet(n as u32, 1, Dscp::from_tos(tos), 1_000));
    }
    assert_eq!(run.out.len() + run.dropped.len(), count as usize);
    let steady: Vec<_> = run.out.iter().filter(|(at, _)| *at >= Time(SECOND)).collect();
    let octets: usize = steady.iter().map(|(_, packet)| packet.length()).sum();
    let through = octets as f64 * 8.0 / 1e6;
    let seen = steady.iter().map(|(_, packet)| packet.dscp().tos()).collect();
    (through, 100.0 * (1.0 - through / mbit as f64), seen)
}

#[test]
fn each_class_gets_its_printed_limit_and_code_points() {
    for (name, tos, limit, loss, received) in PRINTED {
        let (through, lost, seen) = offer(tos, 100);
        assert!((through / limit - 1.0).abs() < 0.01, "{name}: {through} Mbit/s");
        // The measured losses differ by up to 3 points from those that the limits give: 51 for 46
        // of 100.
        assert!((lost - loss).abs() < 3.5, "{name}: {lost} % lost");
        assert_eq!(seen, received.iter().copied().collect(), "{name}");
    }
}

#[test]
fn within_its_own_share_every_class_stays_what_it_is() {
    let own = [("EF", 10), ("AF11", 30), ("AF12", 25), ("AF13", 21), ("AF21", 20), ("AF22", 15)];
    for (name, share) in own {
        let (_, tos, ..) = PRINTED.into_iter().find(|row| row.0 == name).unwrap();
        let (through, _, seen) = offer(tos, share);
        assert!((through / share as f64 - 1.0).abs() < 0.001, "{name}: {through} Mbit/s");
        assert_eq!(seen, [tos].into(), "{name}");
    }
}

#[test]
fn other_classes_are_not_demoted() {
    let mut run = edge();
    for n in 0..100 {
        run.take(Time::ZERO, packet(n, 1, Dscp::assured(4, 1).unwrap(), 1_500));
    }
    assert_eq!(run.out.len(), 100);
    assert_eq!(run.sums(2).0.packets, 0);
}
