//! The mask of a password.

use base::rng::Rng;
use guard::MASK;
use sha2::{Digest as _, Sha256};

/// The key of a recording: at random, and kept nowhere.
#[derive(Clone)]
pub struct Key(pub [u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// How passwords are masked.
#[derive(Debug)]
pub(super) enum Cipher {
    /// The same mask for every octet.
    Constant,
    /// Each octet by a permutation that follows from the key and from the octets before it. So equal passwords
    /// have equal masks, and different ones different masks, as the node compares them; and an octet can be
    /// masked before the next is there.
    Keyed(Key),
}

/// How far a password is masked.
#[derive(Debug, Default)]
pub(super) struct Progress(Option<[u8; 32]>);

impl Cipher {
    /// The mask of the next octet of a password. It is of the same class: printable, control, or beyond ASCII.
    pub(super) fn mask(&self, progress: &mut Progress, octet: u8) -> u8 {
        let Cipher::Keyed(Key(key)) = self else { return MASK };
        let before = progress.0.unwrap_or(*key);
        let after = Sha256::new().chain_update(key).chain_update(before).chain_update([octet]);
        progress.0 = Some(after.finalize().into());
        let class = class_of(octet);
        let at = class.iter().position(|of| *of == octet).unwrap_or_default();
        let permutation =
            Sha256::new().chain_update(b"permutation").chain_update(before).finalize();
        let seed = permutation.iter().take(8).fold(0, |seed, octet| seed << 8 | u64::from(*octet));
        shuffled(class, seed).get(at).copied().unwrap_or(MASK)
    }
}

fn class_of(octet: u8) -> Vec<u8> {
    match octet {
        0x20..=0x7E => (0x20..=0x7E).collect(),
        0x80.. => (0x80..=0xFF).collect(),
        _ => (0..0x20).chain([0x7F]).collect(),
    }
}

fn shuffled(mut of: Vec<u8>, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    for last in (1..of.len()).rev() {
        let other = usize::try_from(rng.below(last as u64 + 1)).unwrap_or_default();
        of.swap(last, other);
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masked(key: u8, password: &[u8]) -> Vec<u8> {
        let cipher = Cipher::Keyed(Key([key; 32]));
        let mut progress = Progress::default();
        password.iter().map(|octet| cipher.mask(&mut progress, *octet)).collect()
    }

    proptest! {
        #[test]
        fn equal_passwords_and_only_they_have_equal_masks(
            a in prop::collection::vec(any::<u8>(), 0..12),
            b in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            prop_assert_eq!(masked(1, &a), masked(1, &a));
            prop_assert_eq!(masked(1, &a) == masked(1, &b), a == b);
            prop_assert_eq!(masked(1, &a).len(), a.len());
            prop_assert_eq!(masked(1, &a).is_ascii(), a.is_ascii());
        }
    }

    #[test]
    fn a_mask_depends_on_the_key_and_differs_from_the_password() {
        let password = b"correct horse battery staple";
        assert_ne!(masked(1, password), masked(2, password));
        assert_ne!(masked(1, password), password);
        assert_eq!(masked(1, b"aaaa").len(), 4);
    }
}
