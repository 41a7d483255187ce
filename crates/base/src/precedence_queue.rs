//! A queue by precedence: the highest first, in order within each, and a share for what is passed.

use crate::precedence::{PerPrecedence, Precedence};
use std::collections::VecDeque;

/// Of so many that are taken, one at least is the one that has waited longest of all, whatever its
/// precedence: nothing waits for ever, and what is highest waits for one such at most.
pub const SHARE: u32 = 8;

/// Counts how often what has waited longest was passed. Apart from [`PrecedenceQueue`] for those who
/// keep what waits in another way.
#[derive(Clone, Debug, Default)]
pub struct Share {
    passed: u32,
}

impl Share {
    /// Whether what has waited longest is next, instead of something higher and younger.
    pub fn is_due(&mut self) -> bool {
        self.passed += 1;
        let due = self.passed >= SHARE;
        if due {
            self.passed = 0;
        }
        due
    }
}

/// Things that wait, each with a precedence.
#[derive(Clone, Debug)]
pub struct PrecedenceQueue<T> {
    levels: PerPrecedence<VecDeque<(u64, T)>>,
    last: u64,
    share: Share,
}

impl<T> Default for PrecedenceQueue<T> {
    fn default() -> PrecedenceQueue<T> {
        PrecedenceQueue {
            levels: PerPrecedence::from_fn(|_| VecDeque::new()),
            last: 0,
            share: Share::default(),
        }
    }
}

impl<T> PrecedenceQueue<T> {
    /// Puts one behind those of its precedence.
    pub fn push(&mut self, precedence: Precedence, item: T) {
        self.last += 1;
        self.levels.get_mut(precedence).push_back((self.last, item));
    }

    /// The highest precedence of which something waits.
    pub fn highest(&self) -> Option<Precedence> {
        Precedence::ALL.into_iter().rev().find(|level| !self.levels.get(*level).is_empty())
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.highest().is_none()
    }

    /// The number of waiting values, of all precedences.
    pub fn len(&self) -> usize {
        self.levels.iter().map(|(_, level)| level.len()).sum()
    }

    /// Takes what is highest, whatever has waited longer.
    pub fn pop_highest(&mut self) -> Option<T> {
        let highest = self.highest()?;
        self.levels.get_mut(highest).pop_front().map(|(_, item)| item)
    }

    /// Takes what is next.
    pub fn pop(&mut self) -> Option<T> {
        let highest = self.highest()?;
        let firsts = self.levels.iter().filter_map(|(level, of)| Some((of.front()?.0, level)));
        let longest = firsts.min().map_or(highest, |(_, level)| level);
        let passes = longest != highest;
        let level = if passes && self.share.is_due() { longest } else { highest };
        self.levels.get_mut(level).pop_front().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_highest_goes_first_and_each_in_order() {
        let mut queue = PrecedenceQueue::default();
        for (at, level) in ["routine", "flash", "routine", "override", "flash"].iter().enumerate() {
            queue.push(level.parse().unwrap(), at);
        }
        assert_eq!((queue.highest(), queue.len()), (Some(Precedence::Override), 5));
        let order: Vec<usize> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [3, 1, 4, 0, 2]);
        assert!(queue.is_empty());
    }

    #[test]
    fn one_of_eight_is_what_waited_longest() {
        let mut queue = PrecedenceQueue::default();
        queue.push(Precedence::Routine, "routine");
        queue.push(Precedence::Priority, "priority");
        for _ in 0..40 {
            queue.push(Precedence::Flash, "flash");
        }
        let order: Vec<&str> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!((order[7], order[15]), ("routine", "priority"));
        assert!(order.iter().enumerate().all(|(at, one)| [7, 15].contains(&at) || *one == "flash"));
    }

    proptest! {
        /// However much higher comes, each is taken after at most [`SHARE`] times as many as waited
        /// before it.
        #[test]
        fn nothing_is_lost_and_nothing_starves(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0usize..6), 1..400)
        ) {
            let mut queue = PrecedenceQueue::default();
            let mut model: Vec<(usize, Precedence)> = Vec::new();
            let mut due: Vec<(usize, usize)> = Vec::new();
            let (mut count, mut taken) = (0, 0);
            for step in steps {
                match step {
                    Some(level) => {
                        let level = Precedence::ALL[level];
                        queue.push(level, count);
                        due.push((count, taken + (model.len() + 1) * SHARE as usize));
                        model.push((count, level));
                        count += 1;
                    }
                    None => {
                        let Some(item) = queue.pop() else {
                            prop_assert!(model.is_empty());
                            continue;
                        };
                        taken += 1;
                        let at = model.iter().position(|(of, _)| *of == item).unwrap();
                        let (_, level) = model[at];
                        let first = model.iter().find(|(_, of)| *of == level).unwrap().0;
                        prop_assert_eq!(item, first, "out of order within its precedence");
                        model.remove(at);
                        due.retain(|(of, _)| *of != item);
                        prop_assert!(due.iter().all(|(_, by)| taken < *by), "starved");
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.highest(), model.iter().map(|(_, level)| *level).max());
            }
        }
    }
}
