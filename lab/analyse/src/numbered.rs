//! Packets with consecutive numbers and their sending times: loss, order and jitter.

use crate::Time;

/// How far back it is known which numbers were there.
const WINDOW: u64 = 1_024;
/// Words of the window.
const WORDS: usize = (WINDOW / 64) as usize;

/// One numbered flow.
#[derive(Clone, Debug)]
pub(crate) struct Numbered {
    first: u64,
    highest: u64,
    received: u64,
    duplicates: u64,
    late: u64,
    /// A bit for each of the last [`WINDOW`] numbers.
    seen: [u64; WORDS],
    /// How many were sent, once the sender has reported it.
    sent: Option<u64>,
    jitter: Jitter,
}

/// What was counted of numbered packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Received {
    /// Different ones that passed.
    pub packets: u64,
    /// That should have, by their numbers: from 0 (or from the first seen, where the capture began
    /// in the middle) to the last.
    pub expected: u64,
    /// Repeated ones.
    pub duplicates: u64,
    /// That passed after a later one.
    pub reordered: u64,
    /// Jitter at the end and on average, in nanoseconds (RFC 3550 6.4.1).
    pub jitter: Option<(f64, f64)>,
}

/// Numbers below this are where a flow begins: its first packets may be lost.
const BEGIN: u64 = 64;

impl Numbered {
    pub(crate) fn new(number: u64) -> Numbered {
        let first = if number < BEGIN { 0 } else { number };
        Numbered {
            first,
            highest: first,
            received: 0,
            duplicates: 0,
            late: 0,
            seen: [0; WORDS],
            sent: None,
            jitter: Jitter::default(),
        }
    }

    /// A packet of this number, sent at `sent` of a clock that need not be ours.
    pub(crate) fn packet(&mut self, now: Time, number: u64, sent: u64) {
        if number.wrapping_sub(self.highest) < 1 << 62 && number > self.highest {
            self.advance(number);
        } else if number < self.highest {
            self.late += 1;
        }
        // Older than what is remembered: counted as one that was missing.
        let remembered = self.highest.saturating_sub(number) < WINDOW;
        let (word, bit) = place(number);
        match self.seen.get_mut(word).filter(|_| remembered) {
            Some(word) if *word & bit != 0 => {
                self.duplicates += 1;
                self.late = self.late.saturating_sub(u64::from(number < self.highest));
                return;
            }
            Some(word) => *word |= bit,
            None => {}
        }
        self.received += 1;
        self.first = self.first.min(number);
        self.jitter.packet(now, sent);
    }

    /// The sender reports how many it sent.
    pub(crate) fn end(&mut self, sent: u64) {
        self.sent = Some(sent);
    }

    fn advance(&mut self, to: u64) {
        let steps = (to - self.highest).min(WINDOW);
        for number in to - steps + 1..=to {
            let (word, bit) = place(number);
            if let Some(word) = self.seen.get_mut(word) {
                *word &= !bit;
            }
        }
        self.highest = to;
    }

    /// What was received; nothing where the flow's packets are not in the capture, only the report of its end.
    pub(crate) fn finish(&self) -> Option<Received> {
        if self.received == 0 {
            return None;
        }
        let by_number = (self.highest - self.first).saturating_add(1);
        let printed = self.sent.map_or(0, |sent| sent.saturating_sub(self.first));
        // A sender that lies about its numbers is not believed beyond what arithmetic allows.
        let expected = by_number.max(printed).max(self.received);
        Some(Received {
            packets: self.received,
            expected,
            duplicates: self.duplicates,
            reordered: self.late,
            jitter: self.jitter.finish(),
        })
    }
}

fn place(number: u64) -> (usize, u64) {
    ((number / 64 % WORDS as u64) as usize, 1 << (number % 64))
}

/// Interarrival jitter (RFC 3550 6.4.1): the smoothed difference of transit times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jitter {
    before: Option<(Time, u64)>,
    now: f64,
    sum: f64,
    count: u64,
}

impl Jitter {
    /// A packet, sent at `sent` of a clock that runs as fast as ours; gives the jitter by now.
    pub(crate) fn packet(&mut self, now: Time, sent: u64) -> Option<f64> {
        let before = self.before.replace((now, sent))?;
        let transit =
            now.signed_since(before.0).saturating_sub(Time(sent).signed_since(Time(before.1)));
        self.now += (transit.unsigned_abs() as f64 - self.now) / 16.0;
        self.sum += self.now;
        self.count += 1;
        Some(self.now)
    }

    /// At the end, and on average.
    pub(crate) fn finish(&self) -> Option<(f64, f64)> {
        (self.count > 0).then(|| (self.now, self.sum / self.count as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Loss, repetition and reordering within the window, against a set of all numbers.
        #[test]
        fn it_counts_as_a_set_of_all_numbers_does(
            lost in proptest::collection::btree_set(0u64..500, 0..100),
            twice in proptest::collection::btree_set(0u64..500, 0..50),
            swaps in proptest::collection::vec((0usize..500, 0usize..500), 0..50),
            printed in any::<bool>(),
        ) {
            let mut order: Vec<u64> = (0..500).filter(|n| !lost.contains(n)).collect();
            order.extend(twice.iter().filter(|n| !lost.contains(n)));
            let length = order.len();
            for (a, b) in swaps {
                order.swap(a % length, b % length);
            }
            let mut flow = Numbered::new(order[0]);
            let (mut set, mut highest, mut late, mut twice) = (BTreeSet::new(), None, 0, 0);
            for number in &order {
                flow.packet(Time(0), *number, 0);
                if set.insert(*number) {
                    late += u64::from(highest.is_some_and(|high| *number < high));
                } else {
                    twice += 1;
                }
                highest = highest.max(Some(*number));
            }
            if printed {
                flow.end(500);
            }
            let found = flow.finish().unwrap();
            let first = if order[0] < BEGIN { 0 } else { *set.first().unwrap() };
            let to = if printed { 500 } else { highest.unwrap() + 1 };
            prop_assert_eq!(found.packets, set.len() as u64);
            prop_assert_eq!(found.expected, to - first);
            prop_assert_eq!((found.duplicates, found.reordered), (twice, late));
        }
    }

    #[test]
    fn of_a_long_flow_none_is_taken_for_an_earlier_one() {
        let mut flow = Numbered::new(0);
        for number in (0..5_000).filter(|number| number % 10 != 7) {
            flow.packet(Time(0), number, 0);
        }
        let found = flow.finish().unwrap();
        assert_eq!((found.packets, found.expected, found.duplicates), (4_500, 5_000, 0));
    }

    #[test]
    fn jitter_is_that_of_the_standard_and_needs_no_common_clock() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.packet(Time(1_000_000), 77), None);
        assert_eq!(jitter.packet(Time(1_000_100), 177), Some(0.0));
        // 160 later than the pace: J = 160 / 16.
        assert_eq!(jitter.packet(Time(1_000_360), 277), Some(10.0));
        // And back again: J += (160 - 10) / 16.
        assert_eq!(jitter.packet(Time(1_000_300), 377), Some(10.0 + 150.0 / 16.0));
    }

    #[test]
    fn absurd_numbers_do_no_harm() {
        let mut flow = Numbered::new(u64::MAX);
        for number in [u64::MAX, 0, u64::MAX, 1 << 63, 5] {
            flow.packet(Time(number), number, u64::MAX - number);
        }
        flow.end(u64::MAX);
        let found = flow.finish().unwrap();
        assert!(found.expected >= found.packets);
    }

    #[test]
    fn of_a_flow_whose_end_alone_is_captured_nothing_is_counted() {
        let mut flow = Numbered::new(0);
        flow.end(750);
        assert_eq!(flow.finish(), None);
    }
}
