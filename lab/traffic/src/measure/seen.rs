//! Which sequences of a flow have arrived: the highest, and a window behind it.

/// How far behind the highest a sequence is remembered.
pub const WINDOW: u64 = 16_384;

const WORDS: usize = (WINDOW / 64) as usize;

/// The sequences of a flow that have arrived.
#[derive(Debug)]
pub(crate) struct SequenceWindow {
    /// One above the highest that arrived.
    next: u64,
    /// A bit for each sequence of the window, at its place modulo the window.
    bits: Box<[u64]>,
}

/// How a sequence relates to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SequenceVerdict {
    /// Above all that came before; so many were passed over.
    Next {
        /// Sequences between the highest so far and this one.
        skipped: u64,
    },
    /// Below the highest, and new.
    Late,
    /// It came before.
    Again,
    /// Too far below the highest to be in the window.
    Stale,
}

impl SequenceVerdict {
    /// Whether it came for the first time.
    pub(crate) fn is_new(self) -> bool {
        matches!(self, SequenceVerdict::Next { .. } | SequenceVerdict::Late)
    }
}

impl SequenceWindow {
    pub(crate) fn new() -> SequenceWindow {
        SequenceWindow { next: 0, bits: vec![0; WORDS].into_boxed_slice() }
    }

    /// One above the highest that arrived.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    pub(crate) fn take(&mut self, sequence: u64) -> SequenceVerdict {
        if sequence >= self.next {
            let skipped = sequence - self.next;
            if skipped >= WINDOW {
                self.bits.fill(0);
            } else {
                (self.next..sequence).for_each(|passed| self.set(passed, false));
            }
            self.set(sequence, true);
            // The highest number of all is not counted on: nothing sends that many.
            self.next = sequence.saturating_add(1);
            return SequenceVerdict::Next { skipped };
        }
        if self.next - sequence > WINDOW {
            return SequenceVerdict::Stale;
        }
        if self.get(sequence) {
            return SequenceVerdict::Again;
        }
        self.set(sequence, true);
        SequenceVerdict::Late
    }

    fn place(sequence: u64) -> (usize, u64) {
        let at = sequence % WINDOW;
        ((at / 64) as usize, 1 << (at % 64))
    }

    fn get(&self, sequence: u64) -> bool {
        let (word, bit) = SequenceWindow::place(sequence);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }

    fn set(&mut self, sequence: u64, to: bool) {
        let (word, bit) = SequenceWindow::place(sequence);
        if let Some(word) = self.bits.get_mut(word) {
            *word = if to { *word | bit } else { *word & !bit };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_verdict() {
        let mut seen = SequenceWindow::new();
        assert_eq!(seen.take(0), SequenceVerdict::Next { skipped: 0 });
        assert_eq!(seen.take(3), SequenceVerdict::Next { skipped: 2 });
        assert_eq!(seen.take(1), SequenceVerdict::Late);
        assert_eq!(seen.take(1), SequenceVerdict::Again);
        assert_eq!(seen.take(WINDOW + 2), SequenceVerdict::Next { skipped: WINDOW - 2 });
        assert_eq!(seen.take(2), SequenceVerdict::Stale);
        assert_eq!(seen.take(3), SequenceVerdict::Again);
        assert_eq!(seen.take(4), SequenceVerdict::Late);
        assert_eq!(seen.take(10 * WINDOW), SequenceVerdict::Next { skipped: 9 * WINDOW - 3 });
        assert_eq!(seen.take(10 * WINDOW - 1), SequenceVerdict::Late);
        assert_eq!(
            seen.take(u64::MAX),
            SequenceVerdict::Next { skipped: u64::MAX - 10 * WINDOW - 1 }
        );
    }

    proptest! {
        /// Against a set of all that came, with steps up to twice the window.
        #[test]
        fn the_window_agrees_with_a_set(steps in prop::collection::vec(
            prop_oneof![0i64..4, -6i64..6, -20_000i64..33_000], 1..200)) {
            let (mut seen, mut all, mut at) = (SequenceWindow::new(), BTreeSet::new(), 0i64);
            for step in steps {
                at = (at + step).max(0);
                let sequence = at as u64;
                let next = all.last().map_or(0, |highest: &u64| highest + 1);
                let expected = if sequence >= next {
                    SequenceVerdict::Next { skipped: sequence - next }
                } else if sequence + WINDOW < next {
                    SequenceVerdict::Stale
                } else if all.contains(&sequence) {
                    SequenceVerdict::Again
                } else {
                    SequenceVerdict::Late
                };
                prop_assert_eq!(seen.take(sequence), expected);
                if expected.is_new() {
                    all.insert(sequence);
                }
            }
        }
    }
}
