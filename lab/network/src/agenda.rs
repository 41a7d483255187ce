//! The deadlines of a fixed number of parts, and which part is due first.

use router::Time;

const NEVER: Time = Time(u64::MAX);

/// A tournament of deadlines. The earliest is known at once; a change costs as many steps as the
/// number of parts has bits. Of parts due at the same time the lower number is first, so the order
/// of events is fixed. Its size is constant.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// The leaves are the second half; each inner position has the winner of its two children.
    winners: Vec<u32>,
    due: Vec<Time>,
    leaves: usize,
}

impl Deadlines {
    pub(crate) fn new(parts: usize) -> Deadlines {
        let leaves = parts.max(1).next_power_of_two();
        let mut agenda =
            Deadlines { winners: vec![0; leaves * 2], due: vec![NEVER; leaves], leaves };
        for place in 0..leaves {
            if let Some(leaf) = agenda.winners.get_mut(leaves + place) {
                *leaf = u32::try_from(place).unwrap_or(u32::MAX);
            }
        }
        for place in 0..leaves {
            agenda.play(place);
        }
        agenda
    }

    /// Sets the deadline of a part, or removes it.
    pub(crate) fn set(&mut self, part: usize, due: Option<Time>) {
        let due = due.unwrap_or(NEVER);
        match self.due.get_mut(part) {
            Some(old) if *old != due => *old = due,
            _ => return,
        }
        self.play(part);
    }

    /// The part that is due first, and its deadline.
    pub(crate) fn first(&self) -> Option<(usize, Time)> {
        let winner = *self.winners.get(1)? as usize;
        let due = self.due.get(winner).copied()?;
        (due != NEVER).then_some((winner, due))
    }

    fn play(&mut self, part: usize) {
        let mut place = (self.leaves + part) / 2;
        while place > 0 {
            let pair = [self.winners.get(place * 2), self.winners.get(place * 2 + 1)];
            let [Some(left), Some(right)] = pair else { return };
            let winner = if self.due_of(*right) < self.due_of(*left) { *right } else { *left };
            if let Some(here) = self.winners.get_mut(place) {
                *here = winner;
            }
            place /= 2;
        }
    }

    fn due_of(&self, part: u32) -> Time {
        self.due.get(part as usize).copied().unwrap_or(NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_earliest(
            parts in 1usize..20,
            changes in prop::collection::vec((0usize..20, prop::option::of(0u64..10)), 0..60),
        ) {
            let mut agenda = Deadlines::new(parts);
            let mut model = vec![None; parts];
            for (part, due) in changes {
                agenda.set(part % parts, due.map(Time));
                model[part % parts] = due;
                let first = model.iter().enumerate().filter_map(|(n, due)| Some(((*due)?, n))).min();
                prop_assert_eq!(agenda.first(), first.map(|(due, part)| (part, Time(due))));
            }
        }
    }
}
