//! Rows in order of their identifiers, in little memory: identifiers are given in ascending order, so
//! rows are kept in full runs of an array, not in the half-full nodes of a general tree.

use std::collections::BTreeMap;
use std::ops::Range;

/// Most rows of a chunk.
const CHUNK: usize = 512;

/// Chunks with fewer rows than this are joined with their neighbour.
const FEW: usize = CHUNK / 4;

/// A map from identifiers to small rows.
#[derive(Debug)]
pub(super) struct Rows<R> {
    /// By their first identifier. None is empty.
    chunks: BTreeMap<u64, Vec<(u64, R)>>,
    count: usize,
}

impl<R> Default for Rows<R> {
    fn default() -> Rows<R> {
        Rows { chunks: BTreeMap::new(), count: 0 }
    }
}

impl<R: Copy> Rows<R> {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The number of rows with these identifiers.
    pub(super) fn count(&self, of: Range<u64>) -> usize {
        let all = self.chunks.first_key_value().is_none_or(|(first, _)| *first >= of.start)
            && self
                .chunks
                .last_key_value()
                .and_then(|(_, chunk)| chunk.last())
                .is_none_or(|(last, _)| *last < of.end);
        if all {
            return self.count;
        }
        let first =
            self.chunks.range(..=of.start).next_back().map_or(of.start, |(first, _)| *first);
        let chunks = self.chunks.range(first..of.end).map(|(_, chunk)| chunk);
        let counts = chunks.map(|chunk| {
            let before = |end: u64| chunk.partition_point(|(id, _)| *id < end);
            before(of.end) - before(of.start)
        });
        counts.sum()
    }

    /// The highest identifier below this one.
    pub(super) fn last_before(&self, end: u64) -> Option<u64> {
        let (_, chunk) = self.chunks.range(..end).next_back()?;
        let at = chunk.partition_point(|(id, _)| *id < end).checked_sub(1)?;
        chunk.get(at).map(|(id, _)| *id)
    }

    pub(super) fn get(&self, id: u64) -> Option<R> {
        let (_, chunk) = self.chunks.range(..=id).next_back()?;
        let at = chunk.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        chunk.get(at).map(|(_, row)| *row)
    }

    /// Adds a row, in place of an earlier one, which it returns.
    pub(super) fn insert(&mut self, id: u64, row: R) -> Option<R> {
        // Below all: it becomes the first of the first chunk.
        let first = match self.chunks.range(..=id).next_back() {
            Some((first, _)) => *first,
            None => match self.chunks.first_key_value().map(|(first, _)| *first) {
                Some(first) => {
                    let chunk = self.chunks.remove(&first).unwrap_or_default();
                    self.chunks.insert(id, chunk);
                    id
                }
                None => id,
            },
        };
        let chunk = self.chunks.entry(first).or_default();
        match chunk.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(at) => return chunk.get_mut(at).map(|(_, old)| std::mem::replace(old, row)),
            // Ascending identifiers fill a chunk, and then begin another.
            Err(at) if at == CHUNK => {
                self.chunks.insert(id, vec![(id, row)]);
            }
            Err(at) => {
                chunk.insert(at, (id, row));
                if chunk.len() > CHUNK {
                    let upper = chunk.split_off(CHUNK / 2);
                    if let Some((first, _)) = upper.first() {
                        self.chunks.insert(*first, upper);
                    }
                }
            }
        }
        self.count += 1;
        None
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<R> {
        let first = *self.chunks.range(..=id).next_back()?.0;
        let chunk = self.chunks.get_mut(&first)?;
        let at = chunk.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        let (_, row) = chunk.remove(at);
        self.count -= 1;
        let (is_first, length) = (at == 0, chunk.len());
        if is_first || length < FEW {
            self.rearrange(first);
        }
        Some(row)
    }

    /// A chunk lost its first row, or has few rows left.
    fn rearrange(&mut self, first: u64) {
        let Some(mut chunk) = self.chunks.remove(&first) else { return };
        if chunk.len() < FEW
            && let Some((_, before)) = self.chunks.range_mut(..first).next_back()
            && before.len() + chunk.len() <= CHUNK / 2
        {
            before.append(&mut chunk);
        } else if let Some(first) = chunk.first().map(|(first, _)| *first) {
            if chunk.len() < FEW {
                chunk.shrink_to(CHUNK / 2);
            }
            self.chunks.insert(first, chunk);
        }
    }

    /// The rows after an identifier, or all, in order.
    pub(super) fn after(&self, after: Option<u64>) -> impl Iterator<Item = (u64, R)> + '_ {
        let from = after.map_or(0, |id| id.saturating_add(1));
        let first = self.chunks.range(..=from).next_back().map_or(from, |(first, _)| *first);
        let is_last = after == Some(u64::MAX);
        let chunks = self.chunks.range(first..).map(|(_, chunk)| chunk);
        let rows = chunks.flat_map(move |chunk| {
            let start = chunk.partition_point(|(id, _)| *id < from);
            chunk.get(start..).unwrap_or_default().iter().copied()
        });
        rows.filter(move |_| !is_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_map(
            steps in prop::collection::vec((0u64..6_000, any::<bool>(), any::<u32>()), 0..400),
            ascending in 0u64..3_000,
            removed in 0u64..3_000,
        ) {
            let (mut rows, mut model) = (Rows::default(), BTreeMap::new());
            for id in 1_000..1_000 + ascending {
                prop_assert_eq!(rows.insert(id, 7), model.insert(id, 7));
            }
            for (id, is_put, row) in steps {
                if is_put {
                    prop_assert_eq!(rows.insert(id, row), model.insert(id, row));
                } else {
                    prop_assert_eq!(rows.remove(id), model.remove(&id));
                }
            }
            for id in 1_000..1_000 + removed {
                prop_assert_eq!(rows.remove(id), model.remove(&id));
            }
            prop_assert_eq!(rows.len(), model.len());
            prop_assert!(rows.chunks.iter().all(|(first, c)| c.len() <= CHUNK && c[0].0 == *first));
            for after in [None, Some(0), Some(999), Some(2_500), Some(u64::MAX)] {
                let found: Vec<(u64, u32)> = rows.after(after).collect();
                let later = model.iter().filter(|(id, _)| after.is_none_or(|after| **id > after));
                prop_assert_eq!(found, later.map(|(id, row)| (*id, *row)).collect::<Vec<_>>());
            }
            for id in (0..7_000).step_by(97) {
                prop_assert_eq!(rows.get(id), model.get(&id).copied());
            }
        }
    }

    #[test]
    fn ascending_rows_fill_their_chunks() {
        let mut rows = Rows::default();
        for id in 0..10_000 {
            assert_eq!(rows.insert(id, ()), None);
        }
        assert_eq!(rows.chunks.len(), 10_000usize.div_ceil(CHUNK));
        for id in 0..9_000 {
            assert_eq!(rows.remove(id), Some(()));
        }
        assert!(rows.chunks.len() <= 3, "{}", rows.chunks.len());
    }
}
