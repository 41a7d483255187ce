//! Which entries were shown.

use std::collections::BTreeSet;

/// Numbers that are remembered. Only those of the last alerts come twice: in a list and as an alert.
const REMEMBERED: usize = 10_000;

/// The entries that were shown.
#[derive(Debug, Default)]
pub(super) struct Seen(BTreeSet<u32>);

impl Seen {
    /// Whether this number comes for the first time.
    pub(super) fn is_first(&mut self, number: u32) -> bool {
        let first = self.0.insert(number);
        if self.0.len() > REMEMBERED {
            self.0.pop_first();
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_shown_once() {
        let mut seen = Seen::default();
        assert!(seen.is_first(7) && !seen.is_first(7) && seen.is_first(8));
        (0..2 * REMEMBERED as u32).for_each(|number| _ = seen.is_first(number));
        assert!(!seen.is_first(2 * REMEMBERED as u32 - 1) && seen.0.len() == REMEMBERED);
    }
}
