//! The distribution of times.

use std::collections::BTreeMap;
use std::time::Duration;

/// Significant bits of a time: percentiles are within 1 %.
const BITS: u32 = 7;

/// Times, counted in buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// By the least time of each bucket, in nanoseconds.
    counts: BTreeMap<u64, u64>,
    count: u64,
    sum: u128,
    most: u64,
}

impl Spread {
    pub(crate) fn add(&mut self, nanos: u64) {
        let coarse = u64::BITS.saturating_sub(nanos.leading_zeros()).saturating_sub(BITS);
        *self.counts.entry(nanos >> coarse << coarse).or_default() += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
        self.most = self.most.max(nanos);
    }

    /// Takes in those of another.
    pub fn merge(&mut self, other: &Spread) {
        for (nanos, count) in &other.counts {
            *self.counts.entry(*nanos).or_default() += count;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.most = self.most.max(other.most);
    }

    /// The number of times that were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean; `None` where there are none.
    pub fn mean(&self) -> Option<Duration> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        u64::try_from(mean).ok().map(Duration::from_nanos)
    }

    /// The longest; `None` where there are none.
    pub fn most(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos(self.most))
    }

    /// The time that this share of them, 0 to 1, is not above, to 1 % below it: 0.5 is the median.
    /// `None` where there are none.
    pub fn percentile(&self, share: f64) -> Option<Duration> {
        let wanted = (self.count as f64 * share.clamp(0.0, 1.0)).ceil().max(1.0) as u64;
        let mut below = 0;
        let reached = |(_, count): &(&u64, &u64)| {
            below += **count;
            below >= wanted
        };
        self.counts.iter().find(reached).map(|(nanos, _)| Duration::from_nanos(*nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_near_those_of_all_times(
            mut times in prop::collection::vec(any::<u64>().prop_map(|n| n >> (n % 64)), 1..200),
            share in 0.0f64..=1.0,
        ) {
            let mut spread = Spread::default();
            times.iter().for_each(|nanos| spread.add(*nanos));
            times.sort_unstable();
            let wanted = (times.len() as f64 * share).ceil().max(1.0) as usize;
            let right = times[wanted - 1];
            let found = spread.percentile(share).unwrap().as_nanos() as u64;
            prop_assert!(found <= right && right - found <= right / 64, "{found} for {right}");
            prop_assert_eq!(spread.most(), times.last().map(|most| Duration::from_nanos(*most)));
        }
    }

    #[test]
    fn together_they_are_as_if_added_to_one() {
        let of = |times: &[u64]| {
            let mut spread = Spread::default();
            times.iter().for_each(|nanos| spread.add(*nanos));
            spread
        };
        let mut both = of(&[5, 700, 700]);
        both.merge(&of(&[700, 1_000_000]));
        assert_eq!(both, of(&[5, 700, 700, 700, 1_000_000]));
    }

    #[test]
    fn nothing_has_no_spread() {
        let none = Spread::default();
        assert_eq!((none.mean(), none.most(), none.percentile(0.5)), (None, None, None));
    }
}
