//! Names that somebody guesses at who has not shown a password.

use std::collections::BTreeMap;

/// Wrong names, by where they came, since a password was right there: more are guesses, and then no name is right
/// any more.
pub const MAX_WRONG: u8 = 16;

/// How often a wrong name came.
#[derive(Debug)]
pub struct Guesses<K>(BTreeMap<K, u8>);

impl<K> Default for Guesses<K> {
    fn default() -> Guesses<K> {
        Guesses(BTreeMap::new())
    }
}

impl<K: Ord> Guesses<K> {
    /// A wrong name came.
    pub fn was_wrong(&mut self, at: K) {
        let wrong = self.0.entry(at).or_default();
        *wrong = wrong.saturating_add(1);
    }

    /// Whether so many came that none is right.
    pub fn are_over(&self, at: &K) -> bool {
        self.0.get(at).is_some_and(|wrong| *wrong >= MAX_WRONG)
    }

    /// A password was right where these came.
    pub fn forget(&mut self, came: impl Fn(&K) -> bool) {
        self.0.retain(|at, _| !came(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_guessed_for_long_until_a_password_is_right() {
        let mut guesses = Guesses::default();
        for _ in 0..MAX_WRONG {
            assert!(!guesses.are_over(&1));
            guesses.was_wrong(1);
        }
        assert!(guesses.are_over(&1) && !guesses.are_over(&2));
        guesses.forget(|at| *at == 1);
        assert!(!guesses.are_over(&1));
    }
}
