//! When a flow's packets are due: by theoretical time, so that being late once does not slow it.

use base::rng::Rng;
use std::time::Duration;

/// The schedule of one flow. Times are nanoseconds since its start.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Nanoseconds between packets as a fraction: bits and bits a second.
    bits: u128,
    bits_per_second: u128,
    jitter: u64,
    rng: Rng,
    number: u64,
    /// What was given up of the schedule, in nanoseconds.
    shift: u64,
    catch_up: u64,
}

/// The most a packet may be moved by, in percent of the interval: so packets never change places.
pub const MAX_JITTER: u8 = 50;

impl Pace {
    /// Packets of so many octets at so many bits a second; each moved by up to `jitter` percent of
    /// the interval, to both sides, at random by the seed. Lateness up to `catch_up` is caught up,
    /// what is beyond it is given up.
    pub fn new(octets: u64, rate: u64, jitter: u8, seed: u64, catch_up: Duration) -> Pace {
        let (bits, bits_per_second) = (u128::from(octets) * 8, u128::from(rate.max(1)));
        let interval = bits * 1_000_000_000 / bits_per_second;
        let most = interval * u128::from(jitter.min(MAX_JITTER)) / 100;
        Pace {
            bits,
            bits_per_second,
            jitter: u64::try_from(most).unwrap_or(u64::MAX),
            rng: Rng::new(seed),
            number: 0,
            shift: 0,
            catch_up: u64::try_from(catch_up.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// When the next packet is due. Each call is for one more.
    pub fn next_due(&mut self) -> u64 {
        let exact = self.bits * u128::from(self.number) * 1_000_000_000 / self.bits_per_second;
        let exact = u64::try_from(exact).unwrap_or(u64::MAX).saturating_add(self.shift);
        self.number = self.number.saturating_add(1);
        if self.jitter == 0 {
            return exact;
        }
        // The first one may only be late: there is nothing before the start.
        let moved = self.rng.below(self.jitter.saturating_mul(2).saturating_add(1));
        exact.saturating_add(moved).saturating_sub(self.jitter)
    }

    /// What was due then goes only now. Beyond the bound the schedule moves; gives by how much, in
    /// nanoseconds.
    pub fn late(&mut self, due: u64, now: u64) -> u64 {
        let given_up = now.saturating_sub(due).saturating_sub(self.catch_up);
        self.shift = self.shift.saturating_add(given_up);
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUND: Duration = Duration::from_millis(100);

    #[test]
    fn the_schedule_is_exact_for_ever() {
        // 1,500 octets at 7 bit/s in thirds: no rounding adds up.
        let mut pace = Pace::new(1_500, 7_000_000, 0, 1, BOUND);
        let due: Vec<u64> = (0..700_001).map(|_| pace.next_due()).collect();
        assert_eq!((due[0], due[1], due[7]), (0, 1_714_285, 12_000_000));
        assert_eq!(due[700_000], 1_200_000_000_000);
    }

    #[test]
    fn lateness_is_caught_up_within_the_bound_only() {
        let mut pace = Pace::new(125, 1_000_000, 0, 1, BOUND);
        let _ = pace.next_due();
        let due = pace.next_due();
        assert_eq!(pace.late(due, due + 60_000_000), 0);
        assert_eq!(pace.next_due(), 2_000_000, "still the old schedule");
        assert_eq!(pace.late(2_000_000, 202_000_000), 100_000_000);
        assert_eq!(pace.next_due(), 103_000_000, "the bound is left to catch up");
    }

    proptest! {
        #[test]
        fn jitter_moves_within_its_share_and_keeps_the_order(
            octets in 60u64..1_500, rate in 1_000u64..1_000_000_000, percent in 0u8..=50, seed: u64,
        ) {
            let (mut moved, mut exact) = (
                Pace::new(octets, rate, percent, seed, BOUND),
                Pace::new(octets, rate, 0, seed, BOUND),
            );
            let interval = octets * 8 * 1_000_000_000 / rate;
            let mut before = 0;
            for _ in 0..100 {
                let (is, should) = (moved.next_due(), exact.next_due());
                prop_assert!(is.abs_diff(should) <= interval * u64::from(percent) / 100);
                prop_assert!(is >= before || before - is <= 1);
                before = is;
            }
        }
    }
}
