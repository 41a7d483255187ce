//! Covering arrays: of all combinations of values a few, so that each pair of values of two parameters
//! is in one of them, and then as many triples as there is room for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Most combinations of which some are chosen.
pub(super) const MAX_COMBINATIONS: usize = 100_000;
/// Most parameters: there are 560 triples of them.
pub(super) const MAX_PARAMETERS: usize = 16;

/// A combination: the place of the value of each parameter.
type Cell = Vec<usize>;

/// The first `most` cells for parameters with so many values each. Each cell is the one with the most
/// new pairs and, of those, the most new triples. So all pairs come first, and fewer cells are a beginning
/// of more. The same values always give the same cells. There are fewer where no triple is left, and
/// none where there are too many combinations or parameters.
pub(super) fn cells(sizes: &[usize], most: usize) -> Vec<Cell> {
    if sizes.len() > MAX_PARAMETERS {
        return Vec::new();
    }
    let all = sizes.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    let Some(all) = all.filter(|all| (1..=MAX_COMBINATIONS).contains(all)) else {
        return Vec::new();
    };
    let mut pairs = Seen::new(sizes, &places(sizes.len(), 2));
    let mut triples = Seen::new(sizes, &places(sizes.len(), 3));
    let mut score =
        |cell: &[usize], take: bool| (pairs.new_in(cell, take), triples.new_in(cell, take));
    // The number of new ones in a cell never grows: what was counted before is the most there can be,
    // and only the first of the heap is counted again.
    let candidates = (0..all).map(|place| {
        let cell = cell(sizes, spread(place, all));
        (score(&cell, false), Reverse(place))
    });
    let mut heap: BinaryHeap<((usize, usize), Reverse<usize>)> = candidates.collect();
    let mut chosen = Vec::new();
    while chosen.len() < most {
        let Some((before, Reverse(place))) = heap.pop() else { break };
        let cell = cell(sizes, spread(place, all));
        let now = score(&cell, false);
        if now != before {
            heap.push((now, Reverse(place)));
            continue;
        }
        // One parameter has no pairs, and two have no triples: then every combination counts.
        if now == (0, 0) && sizes.len() > 2 {
            break;
        }
        score(&cell, true);
        chosen.push(cell);
    }
    chosen
}

/// Another order of 0 to `all`, in which neighbours are far from each other.
fn spread(place: usize, all: usize) -> usize {
    let far = (all * 618 / 1_000).max(1);
    let step = (far..).find(|step| greatest_divisor(*step, all) == 1).unwrap_or(1);
    // Both are at most MAX_COMBINATIONS.
    place * step % all
}

fn greatest_divisor(one: usize, other: usize) -> usize {
    if other == 0 { one } else { greatest_divisor(other, one % other) }
}

/// The combination with a number, the last parameter changing fastest.
fn cell(sizes: &[usize], number: usize) -> Cell {
    let mut rest = number;
    let mut cell = vec![0; sizes.len()];
    for (place, size) in cell.iter_mut().zip(sizes).rev() {
        *place = rest % size;
        rest /= size;
    }
    cell
}

/// All sets of `of` parameters, each in ascending order.
fn places(parameters: usize, of: usize) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..of {
        let longer = |set: &Vec<usize>| -> Vec<Vec<usize>> {
            let from = set.last().map_or(0, |last| last + 1);
            (from..parameters).map(|next| [set.as_slice(), &[next]].concat()).collect()
        };
        sets = sets.iter().flat_map(longer).collect();
    }
    sets
}

/// Which combinations of the values of some parameters were chosen.
struct Seen<'a> {
    sizes: &'a [usize],
    /// The parameters of each set, and whether each combination of their values was chosen.
    sets: Vec<(Vec<usize>, Vec<bool>)>,
}

impl<'a> Seen<'a> {
    fn new(sizes: &'a [usize], sets: &[Vec<usize>]) -> Seen<'a> {
        let count = |set: &[usize]| set.iter().filter_map(|place| sizes.get(*place)).product();
        let sets = sets.iter().map(|set| (set.clone(), vec![false; count(set)]));
        Seen { sizes, sets: sets.collect() }
    }

    /// How many combinations of a cell were not chosen yet; with `take` they are from now on.
    fn new_in(&mut self, cell: &[usize], take: bool) -> usize {
        let mut new = 0;
        for (set, seen) in &mut self.sets {
            let values =
                set.iter().filter_map(|place| cell.get(*place).zip(self.sizes.get(*place)));
            let number = values.fold(0, |number, (value, size)| number * size + value);
            if let Some(seen) = seen.get_mut(number) {
                new += usize::from(!*seen);
                *seen |= take;
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The combinations of `of` values that cells have, each with the parameters.
    fn covered(cells: &[Cell], of: usize) -> BTreeSet<(Vec<usize>, Vec<usize>)> {
        let sets = places(cells[0].len(), of);
        let in_cell = |cell: &Cell| -> Vec<(Vec<usize>, Vec<usize>)> {
            sets.iter().map(|set| (set.clone(), set.iter().map(|at| cell[*at]).collect())).collect()
        };
        cells.iter().flat_map(in_cell).collect()
    }

    /// The combinations of `of` values that there are.
    fn wanted(sizes: &[usize], of: usize) -> usize {
        places(sizes.len(), of)
            .iter()
            .map(|set| set.iter().map(|at| sizes[*at]).product::<usize>())
            .sum()
    }

    #[test]
    fn every_pair_is_in_a_cell_before_triples_count() {
        for sizes in [&[5, 5, 9, 5, 2, 2][..], &[5, 5, 5, 2, 2], &[3, 3, 3, 3], &[2, 7], &[4, 1, 3]]
        {
            let all = cells(sizes, 150);
            let needed = (1..=all.len()).find(|n| covered(&all[..*n], 2).len() == wanted(sizes, 2));
            let needed = needed.unwrap();
            // The two longest parameters alone need their product.
            let mut longest = sizes.to_vec();
            longest.sort_unstable();
            let least: usize = longest.iter().rev().take(2).product();
            assert!((least..=least + least / 2).contains(&needed), "{sizes:?}: {needed}");
            // A cell without a new pair comes only once all pairs are covered.
            for n in 1..needed {
                assert!(
                    covered(&all[..n], 2).len() < covered(&all[..=n], 2).len(),
                    "{sizes:?}: {n}"
                );
            }
            for n in needed..all.len() {
                assert!(
                    covered(&all[..n], 3).len() < covered(&all[..=n], 3).len(),
                    "{sizes:?}: {n}"
                );
            }
            let unlike: BTreeSet<&Cell> = all.iter().collect();
            assert_eq!(unlike.len(), all.len(), "no cell twice");
        }
    }

    #[test]
    fn where_there_is_room_every_triple_is_in_a_cell() {
        for sizes in [&[3, 4, 2, 2][..], &[5, 4, 3]] {
            let all = cells(sizes, 1_000);
            assert_eq!(covered(&all, 3).len(), wanted(sizes, 3));
        }
        assert_eq!(cells(&[5, 4, 3], 1_000).len(), 60, "all there are");
    }

    #[test]
    fn fewer_cells_are_the_beginning_of_more() {
        let sizes = [5, 5, 9, 5, 2, 2];
        let (all, few) = (cells(&sizes, 150), cells(&sizes, 14));
        assert_eq!((few.len(), all.len()), (14, 150));
        assert_eq!(all[..14], few);
        assert_eq!(cells(&sizes, 150), all);
    }

    #[test]
    fn few_parameters_and_too_many_combinations() {
        assert_eq!(cells(&[4], 3).len(), 3);
        assert_eq!(cells(&[4], 9).len(), 4);
        assert_eq!(cells(&[], 9), [Vec::<usize>::new()]);
        assert_eq!(cells(&[100, 100, 100], 9), Vec::<Cell>::new());
        assert_eq!(cells(&[3, 0], 9), Vec::<Cell>::new());
    }
}
