//! Values by interval of time, in bounded memory: where there are too many intervals they become
//! twice as long, and two become one.

use crate::Time;

/// A value of one interval.
pub trait Bin: Copy + Default {
    /// Two intervals become one.
    fn add(&mut self, other: &Self);
}

/// Values by interval. Intervals begin at multiples of their length since 1970, so that those of
/// several series lie one upon the other.
#[derive(Clone, Debug)]
pub struct Series<B> {
    width: u64,
    most: usize,
    first: u64,
    bins: Vec<B>,
}

impl<B: Bin> Series<B> {
    /// With intervals of `width` nanoseconds (at least one), at most `most` of them (at least two).
    pub fn new(width: u64, most: usize) -> Series<B> {
        Series { width: width.max(1), most: most.max(2), first: 0, bins: Vec::new() }
    }

    /// The interval of this moment. One before the first interval counts in that.
    pub fn at(&mut self, now: Time) -> Option<&mut B> {
        if self.bins.is_empty() {
            self.first = now.0 / self.width;
        }
        while now.0 / self.width >= self.first.saturating_add(self.most as u64) {
            self.coarsen();
        }
        let place = usize::try_from((now.0 / self.width).saturating_sub(self.first)).ok()?;
        if place >= self.bins.len() {
            self.bins.resize(place + 1, B::default());
        }
        self.bins.get_mut(place)
    }

    /// Length of an interval, in nanoseconds.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// Begin of each interval and what it holds, from the first to the last.
    pub fn iter(&self) -> impl Iterator<Item = (Time, &B)> {
        let begin = |place: u64| Time((self.first + place).saturating_mul(self.width));
        (0u64..).zip(&self.bins).map(move |(place, bin)| (begin(place), bin))
    }

    /// The same with intervals at least as long as `width`.
    #[must_use]
    pub fn coarsened(mut self, width: u64) -> Series<B> {
        while self.width < width {
            self.coarsen();
        }
        self
    }

    /// Twice as long intervals.
    fn coarsen(&mut self) {
        let first = self.first / 2;
        let mut bins: Vec<B> = Vec::with_capacity(self.bins.len() / 2 + 1);
        for (place, bin) in (0u64..).zip(&self.bins) {
            let to = usize::try_from((self.first + place) / 2 - first).unwrap_or(usize::MAX);
            match bins.get_mut(to) {
                Some(sum) => sum.add(bin),
                None => bins.push(*bin),
            }
        }
        (self.first, self.bins) = (first, bins);
        self.width = self.width.saturating_mul(2);
    }
}

impl Bin for u64 {
    fn add(&mut self, other: &u64) {
        *self = self.saturating_add(*other);
    }
}

/// A sum and how many values it is of: its quotient is their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mean {
    /// The sum.
    pub sum: i64,
    /// The number of values in the sum.
    pub count: u64,
}

impl Mean {
    /// One more.
    pub fn push(&mut self, value: i64) {
        self.sum = self.sum.saturating_add(value);
        self.count += 1;
    }

    /// The mean; none of nothing.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

impl Bin for Mean {
    fn add(&mut self, other: &Mean) {
        self.sum = self.sum.saturating_add(other.sum);
        self.count += other.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_and_everything_lies_in_its_interval(
            width in 1u64..50, most in 2usize..10,
            mut moments in proptest::collection::vec(0u64..100_000, 1..100),
        ) {
            moments.sort_unstable();
            let mut series = Series::<u64>::new(width, most);
            for at in &moments {
                *series.at(Time(*at)).unwrap() += 1;
                prop_assert!(series.bins.len() <= most);
            }
            for (begin, count) in series.iter() {
                let span = begin.0..begin.0 + series.width();
                let there = moments.iter().filter(|at| span.contains(at)).count();
                prop_assert_eq!(*count, there as u64);
            }
            prop_assert_eq!(series.iter().map(|(_, count)| count).sum::<u64>(), moments.len() as u64);
        }
    }

    #[test]
    fn a_leap_of_time_ends() {
        let mut series = Series::<u64>::new(1, 4);
        *series.at(Time(5)).unwrap() += 1;
        *series.at(Time(u64::MAX)).unwrap() += 1;
        *series.at(Time(0)).unwrap() += 1;
        assert!(series.bins.len() <= 4);
        assert_eq!(series.iter().map(|(_, count)| count).sum::<u64>(), 3);
    }
}
