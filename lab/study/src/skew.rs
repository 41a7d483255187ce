//! The skew of one clock against another, found from probes: c(t) = a t + b.
//!
//! One-way delays over an idle path, measured with the clocks of both ends, lie along a line. Its slope
//! is the drift of the receiver's clock against the sender's. Its height is their offset and the delay
//! of the idle path. There are two fits, as in the Bern study: by least squares, which one late probe
//! distorts, and by least absolute deviation, which is subtracted from delays.
//!
//! One-way delays do not distinguish the offset from the delay of the idle path. The network gives that
//! delay, and it stays in the delays.

use serde::{Deserialize, Serialize};

/// Most probes that are looked at: of more, every second, third ...
const MAX_PROBES: usize = 10_000;
/// Halvings of the slopes between which the best one is: 2^-60 of the first.
const HALVINGS: u32 = 60;
/// A drift is one where it is so many times what chance makes of none.
const SURE: f64 = 6.0;

/// A line over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FittedLine {
    /// The height of the line when probing begins, in ms.
    pub offset_ms: f64,
    /// Its slope: 1 is a microsecond a second.
    pub drift_ppm: f64,
}

impl FittedLine {
    /// Its height at a time in seconds, in ms.
    pub fn at(self, seconds: f64) -> f64 {
        self.offset_ms + self.drift_ppm * 1e-3 * seconds
    }

    fn new(slope: f64, offset_ms: f64) -> FittedLine {
        FittedLine { offset_ms, drift_ppm: slope * 1e3 }
    }
}

/// The clock skew that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Skew {
    /// Probes that came.
    pub probes: usize,
    /// The delay of the idle path, in ms.
    pub idle_ms: f64,
    /// By least squares: with the idle path.
    pub least_squares: FittedLine,
    /// By least absolute deviation: with the idle path.
    pub least_absolute: FittedLine,
    /// What is taken off: the latter without the idle path; and without a slope that chance would make
    /// of probes that were as far from the line as these.
    pub removed: FittedLine,
}

/// Finds it from probes: seconds, and the delay in ms as the clocks have it. `None` where there are
/// fewer than two moments.
pub fn find(probes: &[(f64, f64)], idle_ms: f64) -> Option<Skew> {
    let finite = probes.iter().copied().filter(|(at, ms)| at.is_finite() && ms.is_finite());
    let finite: Vec<(f64, f64)> = finite.collect();
    let every = finite.len().div_ceil(MAX_PROBES).max(1);
    let probes: Vec<(f64, f64)> = finite.iter().copied().step_by(every).collect();
    let least_squares = least_squares(&probes)?;
    let least_absolute = least_absolute(&probes)?;
    let robust = if is_sure(&probes, least_absolute) {
        least_absolute
    } else {
        FittedLine {
            offset_ms: median(probes.iter().map(|(_, ms)| *ms).collect())?,
            drift_ppm: 0.0,
        }
    };
    let removed = FittedLine { offset_ms: robust.offset_ms - idle_ms, ..robust };
    Some(Skew { probes: finite.len(), idle_ms, least_squares, least_absolute, removed })
}

/// The line with the least sum of squares.
pub fn least_squares(probes: &[(f64, f64)]) -> Option<FittedLine> {
    let count = probes.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| probes.iter().map(of).sum::<f64>() / count;
    let (at, height) = (mean(|one| one.0), mean(|one| one.1));
    let squares: f64 = probes.iter().map(|one| (one.0 - at).powi(2)).sum();
    let products: f64 = probes.iter().map(|one| (one.0 - at) * (one.1 - height)).sum();
    let slope = products / squares;
    slope.is_finite().then(|| FittedLine::new(slope, height - slope * at))
}

/// The line with the least sum of distances. For a slope the best height is the median of what is left;
/// over slopes the sum is convex, so halving finds the least.
pub fn least_absolute(probes: &[(f64, f64)]) -> Option<FittedLine> {
    let first = least_squares(probes)?.drift_ppm * 1e-3;
    let at = probes.iter().map(|one| one.0).sum::<f64>() / probes.len() as f64;
    let left = |slope: f64| -> Vec<f64> {
        probes.iter().map(|one| one.1 - slope * (one.0 - at)).collect()
    };
    // Whether a greater slope is worse: what stays above the median pulls up at its place in time.
    let is_steep = |slope: f64| -> Option<bool> {
        let left = left(slope);
        let middle = median(left.clone())?;
        let pull = probes.iter().zip(&left).map(|(one, left)| {
            let side = left.partial_cmp(&middle).map_or(0.0, |order| f64::from(order as i8));
            side * (one.0 - at)
        });
        Some(pull.sum::<f64>() < 0.0)
    };
    let mut width = first.abs().max(1e-6);
    let (mut low, mut high) = (first - width, first + width);
    for _ in 0..HALVINGS {
        match (is_steep(low)?, is_steep(high)?) {
            (false, true) => break,
            _ => {
                width *= 2.0;
                (low, high) = (first - width, first + width);
            }
        }
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if is_steep(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    let slope = f64::midpoint(low, high);
    let height = median(left(slope))?;
    Some(FittedLine::new(slope, height - slope * at))
}

/// Whether its slope is more than chance: the probes' distances from it, without the farthest, as a
/// measure of chance.
fn is_sure(probes: &[(f64, f64)], line: FittedLine) -> bool {
    let distances = probes.iter().map(|one| (one.1 - line.at(one.0)).abs()).collect();
    let at = probes.iter().map(|one| one.0).sum::<f64>() / probes.len().max(1) as f64;
    let squares: f64 = probes.iter().map(|one| (one.0 - at).powi(2)).sum();
    // The median distance is 0.67 standard deviations where chance is as usual.
    let deviation = median(distances).unwrap_or(f64::INFINITY) / 0.674_5;
    (line.drift_ppm * 1e-3).abs() > SURE * deviation / squares.sqrt()
}

/// The upper one of the two in the middle, where there are two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let (_, value, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::rng::Rng;

    const TRUE: FittedLine = FittedLine { offset_ms: -3.5, drift_ppm: 42.0 };

    /// Ten probes a second, each up to so many ms late; of these one in ten by 20 ms more.
    fn probes(seconds: u32, noise: f64, outliers: bool) -> Vec<(f64, f64)> {
        let mut rng = Rng::new(9);
        let mut unit = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let one = |number: u32| {
            let at = f64::from(number) * 0.1;
            // All late ones in the last half: nothing evens them out.
            let late = outliers && number.is_multiple_of(5) && number > seconds * 5;
            (at, TRUE.at(at) + 1.0 + noise * unit() + if late { 20.0 } else { 0.0 })
        };
        (0..seconds * 10).map(one).collect()
    }

    fn near(one: FittedLine, other: FittedLine, ppm: f64, ms: f64) -> bool {
        (one.drift_ppm - other.drift_ppm).abs() < ppm
            && (one.offset_ms - other.offset_ms).abs() < ms
    }

    #[test]
    fn both_find_a_drift_of_clean_probes() {
        let skew = find(&probes(120, 0.0, false), 1.0).unwrap();
        let with_path = FittedLine { offset_ms: TRUE.offset_ms + 1.0, ..TRUE };
        assert!(near(skew.least_squares, with_path, 1e-6, 1e-6), "{skew:?}");
        assert!(near(skew.least_absolute, with_path, 1e-3, 1e-3), "{skew:?}");
        assert!(near(skew.removed, TRUE, 1e-3, 1e-3), "{skew:?}");
    }

    #[test]
    fn only_the_robust_one_finds_it_beside_late_ones() {
        let skew = find(&probes(120, 0.1, true), 1.05).unwrap();
        assert!(near(skew.removed, TRUE, 1.0, 0.05), "{skew:?}");
        assert!((skew.least_squares.drift_ppm - TRUE.drift_ppm).abs() > 20.0, "{skew:?}");
    }

    #[test]
    fn of_one_clock_nothing_is_taken_off() {
        let noise: Vec<(f64, f64)> =
            probes(2, 0.2, false).iter().map(|(at, ms)| (*at, ms - TRUE.at(*at))).collect();
        let skew = find(&noise, 1.1).unwrap();
        assert_eq!(skew.removed.drift_ppm, 0.0, "{skew:?}");
        assert!(skew.removed.offset_ms.abs() < 0.1, "{skew:?}");
    }

    #[test]
    fn the_least_sum_is_no_greater_than_that_of_any_line_through_two_probes() {
        for seed in 1..20 {
            let mut rng = Rng::new(seed);
            let mut number = || (rng.below(2_000) as f64 - 1_000.0) / 10.0;
            let probes: Vec<(f64, f64)> = (0..15).map(|_| (number(), number())).collect();
            let sum = |line: FittedLine| -> f64 {
                probes.iter().map(|(at, ms)| (ms - line.at(*at)).abs()).sum()
            };
            let found = sum(least_absolute(&probes).unwrap());
            for one in &probes {
                for other in probes.iter().filter(|other| other.0 != one.0) {
                    let slope = (other.1 - one.1) / (other.0 - one.0);
                    let line = FittedLine::new(slope, one.1 - slope * one.0);
                    assert!(found <= sum(line) + 1e-6, "{seed}: {found} > {}", sum(line));
                }
            }
        }
    }

    #[test]
    fn too_few_probes_give_no_line() {
        assert_eq!(find(&[], 0.0), None);
        assert_eq!(find(&[(1.0, 2.0)], 0.0), None);
        assert_eq!(find(&[(1.0, 2.0), (1.0, 3.0), (f64::NAN, 1.0)], 0.0), None);
    }
}
