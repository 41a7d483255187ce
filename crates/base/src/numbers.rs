//! Numbers that things keep when a configuration is read anew.

use std::collections::BTreeMap;

/// The numbers in use, by a key of the things that they stand for, and the next new one. A number
/// is never given to another thing, though the first is gone: it may still be known by it somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers<K> {
    given: BTreeMap<K, u32>,
    next: u32,
}

impl<K> Default for Numbers<K> {
    fn default() -> Numbers<K> {
        Numbers { given: BTreeMap::new(), next: 0 }
    }
}

impl<K: Ord> Numbers<K> {
    /// None in use yet, but what was given before is not new any more.
    pub fn after(before: &Numbers<K>) -> Numbers<K> {
        Numbers { given: BTreeMap::new(), next: before.next }
    }

    /// The number of this thing: the one it had before, or else a new one.
    pub fn give(&mut self, before: &Numbers<K>, key: K) -> u32 {
        if let Some(number) = self.given.get(&key) {
            return *number;
        }
        let number = before.given.get(&key).copied().unwrap_or_else(|| {
            let new = self.next;
            self.next = self.next.saturating_add(1);
            new
        });
        self.given.insert(key, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_keeps_its_number_and_none_is_given_twice() {
        let none = Numbers::default();
        let mut first = Numbers::after(&none);
        let numbers = ["routine", "flash", "override"].map(|name| first.give(&none, name));
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(first.give(&none, "flash"), 1, "asked again");

        let mut second = Numbers::after(&first);
        let numbers = ["new", "override", "routine"].map(|name| second.give(&first, name));
        assert_eq!(numbers, [3, 2, 0]);

        let mut third = Numbers::after(&second);
        assert_eq!(third.give(&second, "flash"), 4, "it was gone: it is another one now");
    }
}
