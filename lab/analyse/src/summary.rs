//! Least, mean, most and percentiles of durations, in bounded memory.

/// Slices of an octave: a percentile is right within 1/16 of itself.
const SLICES: u64 = 8;
/// Durations below 2 to the power of this many nanoseconds (a microsecond) are one slice.
const LEAST: u32 = 10;
/// Most slices: durations beyond 2^50 ns (13 days) are the last.
const MAX_SLICES: usize = (SLICES as usize) * (50 - LEAST as usize) + 1;

/// Durations in nanoseconds, which may be negative where two clocks differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    count: u64,
    sum: i128,
    least: i64,
    most: i64,
    slices: Vec<u32>,
}

impl Summary {
    /// One more.
    pub fn push(&mut self, nanos: i64) {
        if self.count == 0 {
            (self.least, self.most) = (nanos, nanos);
        }
        self.count += 1;
        self.sum += i128::from(nanos);
        self.least = self.least.min(nanos);
        self.most = self.most.max(nanos);
        let slice = slice_of(u64::try_from(nanos).unwrap_or(0));
        if self.slices.len() <= slice {
            self.slices.resize(slice + 1, 0);
        }
        if let Some(count) = self.slices.get_mut(slice) {
            *count = count.saturating_add(1);
        }
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least; none of nothing.
    pub fn least(&self) -> Option<i64> {
        (self.count > 0).then_some(self.least)
    }

    /// The most; none of nothing.
    pub fn most(&self) -> Option<i64> {
        (self.count > 0).then_some(self.most)
    }

    /// The mean; none of nothing.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The value that `part` (0 to 1) of all do not exceed, within 1/16 of it; none where some are
    /// negative, as then clocks differ and there is no zero.
    pub fn percentile(&self, part: f64) -> Option<f64> {
        if self.count == 0 || self.least < 0 {
            return None;
        }
        let wanted = (self.count as f64 * part).ceil().max(1.0);
        let mut so_far = 0.0;
        for (place, count) in self.slices.iter().enumerate() {
            so_far += f64::from(*count);
            if so_far >= wanted {
                return Some(middle_of(place).clamp(self.least as f64, self.most as f64));
            }
        }
        Some(self.most as f64)
    }

    /// Those of another, too.
    pub fn merge(&mut self, other: &Summary) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            self.clone_from(other);
            return;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        if self.slices.len() < other.slices.len() {
            self.slices.resize(other.slices.len(), 0);
        }
        for (to, from) in self.slices.iter_mut().zip(&other.slices) {
            *to = to.saturating_add(*from);
        }
    }
}

fn slice_of(nanos: u64) -> usize {
    if nanos < 1 << LEAST {
        return 0;
    }
    let octave = nanos.ilog2();
    let within = (nanos >> (octave - SLICES.ilog2())) - SLICES;
    let slice = 1 + u64::from(octave - LEAST) * SLICES + within;
    usize::try_from(slice).unwrap_or(MAX_SLICES).min(MAX_SLICES - 1)
}

fn middle_of(slice: usize) -> f64 {
    let Some(above) = slice.checked_sub(1) else { return f64::from(1 << (LEAST - 1)) };
    let (octave, within) = (above as u64 / SLICES + u64::from(LEAST), above as u64 % SLICES);
    let unit = 2f64.powi(i32::try_from(octave).unwrap_or(i32::MAX)) / SLICES as f64;
    unit * (SLICES as f64 + within as f64 + 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_list(
            mut values in proptest::collection::vec(1_024i64..10_000_000_000, 1..300),
            part in 0.01f64..1.0, cut in 0usize..300,
        ) {
            let (mut summary, mut rest) = (Summary::default(), Summary::default());
            for (place, value) in values.iter().enumerate() {
                if place < cut { summary.push(*value) } else { rest.push(*value) }
            }
            summary.merge(&rest);
            values.sort_unstable();
            let exact = values[(values.len() as f64 * part).ceil() as usize - 1] as f64;
            let printed = summary.percentile(part).unwrap();
            prop_assert!((printed - exact).abs() <= exact / 15.0, "{printed} {exact}");
            prop_assert_eq!(summary.least(), values.first().copied());
            prop_assert_eq!(summary.most(), values.last().copied());
            let mean = values.iter().sum::<i64>() as f64 / values.len() as f64;
            prop_assert!((summary.mean().unwrap() - mean).abs() <= mean * 1e-9);
        }
    }

    #[test]
    fn any_duration_has_a_place() {
        let mut summary = Summary::default();
        for value in [0, 1, 1_023, 1_024, i64::MAX] {
            summary.push(value);
        }
        assert!(summary.slices.len() <= MAX_SLICES);
        assert_eq!(summary.percentile(1.0), Some(middle_of(MAX_SLICES - 1)));
        summary.push(-1);
        assert_eq!((summary.percentile(0.5), summary.least()), (None, Some(-1)));
        assert_eq!(Summary::default().percentile(0.5), None);
    }
}
