//! What is to happen, in the order of time; what is due at the same moment, in the order in which it
//! was entered.

use router::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Debug)]
struct ScheduledItem<T> {
    at: Time,
    number: u64,
    what: T,
}

impl<T> PartialEq for ScheduledItem<T> {
    fn eq(&self, other: &ScheduledItem<T>) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<T> Eq for ScheduledItem<T> {}

impl<T> PartialOrd for ScheduledItem<T> {
    fn partial_cmp(&self, other: &ScheduledItem<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for ScheduledItem<T> {
    /// The heap has its greatest first: that is the earliest.
    fn cmp(&self, other: &ScheduledItem<T>) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// The agenda.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    lines: BinaryHeap<ScheduledItem<T>>,
    entered: u64,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Agenda<T> {
        Agenda { lines: BinaryHeap::new(), entered: 0 }
    }

    pub(crate) fn enter(&mut self, at: Time, what: T) {
        self.entered += 1;
        self.lines.push(ScheduledItem { at, number: self.entered, what });
    }

    pub(crate) fn first(&self) -> Option<Time> {
        self.lines.peek().map(|line| line.at)
    }

    /// Takes the first event that is due by then.
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
