//! The numbers of entries: small ones that people can type, never two entries with one, and unique for the
//! store's life as far as the store remembers.
//!
//! A number is one more than the last. The store keeps a *mark*, above all numbers given out, which is
//! raised in the batch of an entry that comes near it: no commit is made for numbers alone. A start goes on at
//! the mark, or after the highest queued entry if that is above, so it leaves out at most 256 numbers.
//! Marks have a name for each precedence, because commits of one name are made in order, and a message must
//! not wait for the number of a lower one.
//!
//! Entries of earlier releases have the long form: the epoch of their start above 40 bits of a counter. While
//! one of them is queued at a start, that start gives out the long form too, in the order of arrival.

use crate::ids::COUNTER_BITS;
use crate::journal::{Batch, FIRST_ITEM, Op};
use base::{EntryId, Precedence};
use bytes::Bytes;

/// How far the mark is above the number that raised it.
const AHEAD: u64 = 256;

/// A mark is raised with each of so many numbers after a start, and then after so many numbers: fifteen batches with a mark may fail before numbers pass the one
/// that is durable.
const STEP: u64 = 16;

/// Numbers from here on have the long form.
const LONG: u64 = 1 << COUNTER_BITS;

/// The name of the value in the store that has the mark of a precedence.
#[must_use]
pub fn mark_name(precedence: Precedence) -> String {
    format!("entries/{}", precedence.number())
}

/// The first number of a start, from the values under [`mark_name`] and the highest number of a queued entry;
/// `None`: in the long form.
#[must_use]
pub fn first_entry<'a>(
    marks: impl IntoIterator<Item = &'a [u8]>,
    highest: Option<EntryId>,
) -> Option<EntryId> {
    let marks =
        marks.into_iter().filter_map(|mark| Some(u64::from_be_bytes(mark.try_into().ok()?)));
    let mark = marks.filter(|mark| *mark < LONG).max().unwrap_or(1);
    let first = mark.max(highest.map_or(0, |id| id.0.saturating_add(1)));
    (first < LONG).then_some(EntryId(first))
}

/// Gives out numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    first: u64,
    next: u64,
    mark: u64,
}

impl Numbers {
    /// `first`: no entry has this number or a higher one, or had.
    pub(crate) fn from(first: u64) -> Numbers {
        Numbers { first, next: first, mark: first }
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    pub(crate) fn next(&mut self) -> EntryId {
        let id = EntryId(self.next);
        self.next += 1;
        id
    }

    /// Adds a mark to a batch that has an entry near the last one.
    pub(crate) fn mark(&mut self, batch: &mut Batch) {
        let entries = batch.iter().filter_map(|op| match op {
            Op::PutEntry { id, precedence, .. } if id.0 < FIRST_ITEM => Some((id.0, *precedence)),
            _ => None,
        });
        let Some((highest, precedence)) = entries.max() else { return };
        // A start has nothing in hand: each of its first batches has the mark, as some may fail.
        let begun = highest >= self.first + STEP;
        // Long numbers have the epoch: they need no mark.
        if highest >= LONG || (begun && highest + AHEAD - STEP < self.mark) {
            return;
        }
        self.mark = self.mark.max(highest + AHEAD);
        let value = Bytes::copy_from_slice(&self.mark.to_be_bytes());
        batch.push(Op::PutMeta { name: mark_name(precedence), value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::QueueId;
    use base::rng::Rng;
    use std::collections::{BTreeMap, BTreeSet};

    fn put(id: EntryId, precedence: Precedence) -> Op {
        let queue = QueueId(0);
        Op::PutEntry { precedence, id, queue, record: Bytes::new() }
    }

    /// What a store holds: marks and entries.
    #[derive(Default)]
    struct Kept {
        marks: BTreeMap<String, Bytes>,
        queued: BTreeSet<EntryId>,
    }

    impl Kept {
        fn start(&self) -> Numbers {
            let marks = self.marks.values().map(|mark| &mark[..]);
            Numbers::from(first_entry(marks, self.queued.last().copied()).unwrap().0)
        }

        fn commit(&mut self, batch: Batch) {
            for op in batch {
                match op {
                    Op::PutEntry { id, .. } => assert!(self.queued.insert(id)),
                    Op::PutMeta { name, value } => _ = self.marks.insert(name, value),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn no_number_comes_twice_over_crashes_and_failed_commits() {
        for seed in 0..50 {
            let (mut rng, mut kept, mut seen) = (Rng::new(seed), Kept::default(), BTreeSet::new());
            let mut numbers = kept.start();
            for _ in 0..4000 {
                match rng.below(20) {
                    0 => numbers = kept.start(),
                    1 => _ = kept.queued.pop_last(),
                    2 => _ = kept.queued.pop_first(),
                    what => {
                        let level = Precedence::ALL[what as usize % Precedence::ALL.len()];
                        let mut batch = vec![put(numbers.next(), level)];
                        numbers.mark(&mut batch);
                        // A failed commit's number names nothing, and may come again.
                        if rng.below(4) > 0 {
                            let Op::PutEntry { id, .. } = batch[0] else { unreachable!() };
                            assert!(seen.insert(id), "{id} twice");
                            kept.commit(batch);
                        }
                    }
                }
            }
            assert!(seen.last().unwrap().0 < 4000 + 260 * AHEAD, "numbers stay small");
        }
    }

    #[test]
    fn the_first_of_a_new_store_is_one_and_a_start_without_work_leaves_none_out() {
        let kept = Kept::default();
        assert_eq!(kept.start().next(), EntryId(1));
        assert_eq!(kept.start().next(), EntryId(1));
    }

    #[test]
    fn one_batch_in_sixteen_has_a_mark_after_the_first() {
        let mut numbers = Numbers::from(1);
        let mut marks = 0;
        for _ in 0..160 {
            let mut batch = vec![put(numbers.next(), Precedence::Routine)];
            numbers.mark(&mut batch);
            marks += batch.len() - 1;
        }
        assert_eq!(marks, 16 + 144 / 16);
    }

    #[test]
    fn long_numbers_go_on_while_one_is_queued_and_damaged_marks_are_not_believed() {
        assert_eq!(first_entry([&b"x"[..]], Some(EntryId(7))), Some(EntryId(8)));
        assert_eq!(first_entry([&[255; 8][..]], None), Some(EntryId(1)));
        assert_eq!(first_entry([], Some(EntryId(LONG | 1))), None);
        assert_eq!(first_entry([&300u64.to_be_bytes()[..]], None), Some(EntryId(300)));
        let mut numbers = Numbers::from(LONG | 1);
        let mut batch = vec![put(numbers.next(), Precedence::Flash)];
        numbers.mark(&mut batch);
        assert_eq!(batch.len(), 1, "long numbers need no mark");
    }
}
