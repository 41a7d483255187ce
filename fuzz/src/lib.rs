//! Fuzz targets: one function per decoder and per role of the stack, which takes any octets, must
//! return, and asserts what has to hold whatever they are.
//!
//! There is no coverage feedback: [`mutate`] knows BER and TPKT instead, so that damage reaches the
//! inner layers, and each input follows from a seed and a number alone. See `docs/fuzzing.md`.

#![expect(clippy::panic, clippy::expect_used, reason = "a broken invariant is a finding")]

pub mod corpus;
pub mod hex;
pub mod mutate;
pub mod seeds;
pub mod targets;
pub mod tree;

pub use targets::{TARGETS, Target};

use base::rng::Rng;

/// The input of this number in the run of this seed; it follows from nothing else.
pub fn input(target: &Target, corpus: &[Vec<u8>], seed: u64, number: u64) -> Vec<u8> {
    let mut mixed = Rng::new(seed ^ hash(target.name.as_bytes()));
    let mut rng =
        Rng::new(mixed.next_u64().wrapping_add(number.wrapping_mul(0xD1B5_4A32_D192_ED03)));
    mutate::mutate(&mut rng, corpus)
}

/// FNV-1a with 64 bits: seeds what a target decides from its input.
pub fn hash(octets: &[u8]) -> u64 {
    octets.iter().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
    })
}
