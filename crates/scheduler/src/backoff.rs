use base::rng::Rng;
use std::time::Duration;

/// Delay after the first failure, before jitter.
pub const FIRST_DELAY: Duration = Duration::from_secs(10);
/// No delay is longer, jitter included.
pub const LONGEST_DELAY: Duration = Duration::from_mins(10);

/// How long to wait after so many failures: [`FIRST_DELAY`] growing by half each time up to
/// [`LONGEST_DELAY`], made up to a fifth shorter by `seed`, so that what failed together does not
/// come back together.
pub fn delay(failures: u32, seed: u64) -> Duration {
    let longest = LONGEST_DELAY.as_micros() as u64;
    let mut full = FIRST_DELAY.as_micros() as u64;
    for _ in 1..failures {
        if full >= longest {
            break;
        }
        full += full / 2;
    }
    let full = full.min(longest);
    let shorter = Rng::new(seed ^ u64::from(failures) << 32).below(full / 5 + 1);
    Duration::from_micros(full - shorter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn grows_by_half_to_the_longest() {
        // 10 s * 1.5^11 is beyond 10 min.
        let mut full = 10.0f64;
        for failures in 1..20 {
            let d = delay(failures, 1).as_secs_f64();
            assert!(d <= full + 1e-3 && d >= full * 0.8 - 1e-3, "{failures}: {d} of {full}");
            full = (full * 1.5).min(600.0);
        }
    }

    proptest! {
        #[test]
        fn bounded_and_repeatable(failures: u32, seed: u64) {
            let d = delay(failures, seed);
            prop_assert!(d >= FIRST_DELAY * 4 / 5 && d <= LONGEST_DELAY);
            prop_assert_eq!(d, delay(failures, seed));
        }
    }
}
