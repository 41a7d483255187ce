//! A Bloom filter of the remembered keys: nearly every arrival is new, and needs no look-up.
//!
//! Its size is fixed, and it drops nothing while the process lives. With many keys it answers
//! "perhaps" more often (at 1 million keys for 1 new key in 6,000, at 10 million for 1 in 4), and
//! then the database is read.

use engine::journal::Digest;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// 2 to this power bits: 4 MiB.
const BITS_LOG2: u32 = 25;

#[derive(Debug)]
pub(crate) struct Sieve {
    words: Box<[AtomicU64]>,
    /// Whether it contains all keys of the database.
    complete: AtomicBool,
}

impl Default for Sieve {
    fn default() -> Sieve {
        let words = (0..1usize << (BITS_LOG2 - 6)).map(|_| AtomicU64::new(0)).collect();
        Sieve { words, complete: AtomicBool::new(false) }
    }
}

/// The four bits of a key. Keys are digests, so any part of them serves as a hash.
fn places(key: &Digest) -> impl Iterator<Item = (usize, u64)> {
    key.0.chunks_exact(8).map(|part| {
        let mut octets = [0; 8];
        octets.copy_from_slice(part);
        let place = u64::from_be_bytes(octets) >> (64 - BITS_LOG2);
        (usize::try_from(place >> 6).unwrap_or(0), 1 << (place & 63))
    })
}

impl Sieve {
    pub(crate) fn insert(&self, key: &Digest) {
        for (word, bit) in places(key) {
            if let Some(word) = self.words.get(word) {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    /// From now on a key it does not contain is not in the database.
    pub(crate) fn complete(&self) {
        self.complete.store(true, Ordering::Release);
    }

    /// Whether this key is certainly not in the database.
    pub(crate) fn lacks(&self, key: &Digest) -> bool {
        let has = |(word, bit): (usize, u64)| {
            self.words.get(word).is_none_or(|word| word.load(Ordering::Relaxed) & bit != 0)
        };
        self.complete.load(Ordering::Acquire) && !places(key).all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    #[test]
    fn what_is_in_is_never_denied_and_what_is_not_mostly_is() {
        let (sieve, mut rng) = (Sieve::default(), Rng::new(7));
        let mut key = || Digest(std::array::from_fn(|_| rng.next_u64() as u8));
        let keys: Vec<Digest> = (0..100_000).map(|_| key()).collect();
        keys.iter().for_each(|key| sieve.insert(key));
        let others: Vec<Digest> = (0..10_000).map(|_| key()).collect();
        assert!(!others.iter().any(|key| sieve.lacks(key)), "not before all are there");
        sieve.complete();
        assert!(!keys.iter().any(|key| sieve.lacks(key)));
        let denied = others.iter().filter(|key| sieve.lacks(key)).count();
        assert!(denied > 9_990, "{denied}");
    }
}
