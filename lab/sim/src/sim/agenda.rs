//! What is to happen, in the order of time; what is due at the same moment, in the order in which it
//! was entered.

use router::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Debug)]
struct Line<T> {
    at: Time,
    number: u64,
    what: T,
}

impl<T> PartialEq for Line<T> {
    fn eq(&self, other: &Line<T>) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<T> Eq for Line<T> {}

impl<T> PartialOrd for Line<T> {
    fn partial_cmp(&self, other: &Line<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Line<T> {
    /// The heap has its greatest first: that is the earliest.
    fn cmp(&self, other: &Line<T>) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// The agenda.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    lines: BinaryHeap<Line<T>>,
    entered: u64,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Agenda<T> {
        Agenda { lines: BinaryHeap::new(), entered: 0 }
    }

    pub(crate) fn enter(&mut self, at: Time, what: T) {
        self.entered += 1;
        self.lines.push(Line { at, number: self.entered, what });
    }

    pub(crate) fn first(&self) -> Option<Time> {
        self.lines.peek().map(|line| line.at)
    }

    /// What is due by then.
    pub(crate) fn due(&mut self, now: Time) -> Option<T> {
        self.first().filter(|at| *at <= now)?;
        self.lines.pop().map(|line| line.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_of_one_moment_the_first_entered() {
        let mut agenda = Agenda::new();
        for (at, what) in [(5, "c"), (3, "a"), (5, "d"), (3, "b"), (9, "e")] {
            agenda.enter(Time(at), what);
        }
        let due: Vec<_> = std::iter::from_fn(|| agenda.due(Time(5))).collect();
        assert_eq!(due, ["a", "b", "c", "d"]);
        assert_eq!(agenda.first(), Some(Time(9)));
    }
}
