//! The end of each transmission: exact, so that no drift accumulates.

use router::time::SECOND;
use router::{Rate, Time};

/// The theoretical departure time of a medium, in nanoseconds and a fraction.
///
/// While transmissions follow each other without a pause, each begins exactly at the end of the
/// previous one, fractions included. So the rate is exact over any number of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct MediumClock {
    rate: Option<Rate>,
    ends: Time,
    /// The fraction of a nanosecond beyond `ends`, with the rate in bits a second as denominator.
    fraction: u64,
}

impl MediumClock {
    pub(super) fn new(rate: Option<Rate>) -> MediumClock {
        MediumClock { rate, ends: Time::ZERO, fraction: 0 }
    }

    /// The time at which the medium is free: the end of the last transmission, rounded up.
    pub(super) fn free(&self) -> Time {
        Time(self.ends.0.saturating_add(u64::from(self.fraction > 0)))
    }

    /// Begins a transmission of `octets` octets at `now`, or when the medium is free. Returns its
    /// end, rounded up.
    pub(super) fn send(&mut self, now: Time, octets: usize) -> Time {
        if now > self.free() {
            (self.ends, self.fraction) = (now, 0);
        }
        let Some(rate) = self.rate else { return self.free() };
        let parts = u128::from(self.fraction) + octets as u128 * 8 * u128::from(SECOND);
        let bits = u128::from(rate.bits());
        let whole = u64::try_from(parts / bits).unwrap_or(u64::MAX);
        self.ends = Time(self.ends.0.saturating_add(whole));
        self.fraction = u64::try_from(parts % bits).unwrap_or(0);
        self.free()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_a_nanosecond_is_not_lost() {
        // 3 bit/s: an octet takes 2.666... s.
        let mut clock = MediumClock::new(Rate::from_bits(3));
        assert_eq!(clock.send(Time(5), 1), Time(2_666_666_672));
        for _ in 0..2 {
            clock.send(clock.free(), 1);
        }
        assert_eq!(clock.free(), Time(8_000_000_005), "three octets are 8 s to the nanosecond");
        assert_eq!(clock.send(Time(9_000_000_000), 1), Time(11_666_666_667), "after a pause");
        assert_eq!(MediumClock::new(None).send(Time(7), 1_500), Time(7));
    }
}
