//! The distribution of times: minimum, mean, percentiles, maximum.

use hdrhistogram::Histogram;
use serde::Serialize;

/// The longest time in the histogram, in nanoseconds: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// Times, in nanoseconds.
#[derive(Debug)]
pub(crate) struct Spread {
    histogram: Option<Histogram<u64>>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// Statistics of times in nanoseconds; all zero where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The number of times.
    pub count: u64,
    /// The shortest.
    pub min: u64,
    /// The mean, rounded down.
    pub mean: u64,
    /// Half are not above it.
    pub p50: u64,
    /// 90 in 100 are not above it.
    pub p90: u64,
    /// 99 in 100 are not above it.
    pub p99: u64,
    /// 999 in 1,000 are not above it.
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

impl Spread {
    /// Percentiles within 0.1 %.
    pub(crate) fn fine() -> Spread {
        Spread::with_digits(3)
    }

    /// Percentiles within 1 %, in a tenth of the memory.
    pub(crate) fn coarse() -> Spread {
        Spread::with_digits(2)
    }

    fn with_digits(digits: u8) -> Spread {
        // It grows with what it has to hold.
        let histogram = Histogram::new(digits).ok();
        Spread { histogram, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    pub(crate) fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.sum += u128::from(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        if let Some(histogram) = &mut self.histogram {
            // Within the longest time it always has room.
            let _ = histogram.record(nanos.min(LONGEST));
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        if self.count == 0 {
            return Summary::default();
        }
        // A bucket's upper end may be above the largest that was in it.
        let quantile = |share: f64| {
            let value = self.histogram.as_ref().map_or(0, |all| all.value_at_quantile(share));
            value.clamp(self.min, self.max)
        };
        Summary {
            count: self.count,
            min: self.min,
            mean: u64::try_from(self.sum / u128::from(self.count)).unwrap_or(u64::MAX),
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: self.max,
        }
    }
}
