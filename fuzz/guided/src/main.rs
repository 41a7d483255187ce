//! The fuzz targets under libFuzzer: `cargo xtask guided`, docs/fuzzing.md.
//!
//! The target is the one that the variable `FUZZ_TARGET` names. Half of the inputs are made by libFuzzer's own mutations, the
//! others by those of the crate `fuzz`, which know BER and TPKT.

#![no_main]

use base::rng::Rng;
use fuzz::{Target, mutate, targets};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::sync::OnceLock;

fn target() -> &'static Target {
    static TARGET: OnceLock<&Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        targets::find(&name).unwrap_or_else(|| {
            eprintln!("FUZZ_TARGET={name:?} names nothing; `cargo run -p fuzz` lists them");
            std::process::exit(2)
        })
    })
}

fuzz_target!(|octets: &[u8]| (target().run)(octets));

fuzz_mutator!(|octets: &mut [u8], size: usize, most: usize, seed: u32| {
    let mut rng = Rng::new(u64::from(seed));
    let most = most.min(octets.len());
    match octets.get(..size.min(most)).filter(|_| rng.below(2) == 0) {
        Some(input) => {
            let mut changed = mutate::mutate(&mut rng, &[input.to_vec()]);
            changed.truncate(most);
            octets[..changed.len()].copy_from_slice(&changed);
            changed.len()
        }
        None => fuzzer_mutate(octets, size, most),
    }
});
