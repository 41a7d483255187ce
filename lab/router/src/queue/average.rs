//! The average queue of random early detection (Floyd and Jacobson 1993, section 4).
//!
//! At each arriving packet, kept or not, with q packets waiting before it:
//!
//! ```text
//! q > 0:  average += (q - average) / 2^n                n: weight exponent, default 9
//! q = 0:  average *= (1 - 1/2^n)^m                      m: idle time / transmission time
//! ```
//!
//! After an idle time, the average is as if m packets had arrived at an empty queue. A queue does
//! not know the rate that its scheduler and line leave it, so it measures the transmission time:
//! the time in which packets waited, divided by the packets that left in it. Both sums are halved
//! together every [`MEMORY`] packets. They are kept apart because under a shaper with an interval
//! many packets leave at one instant and the next ones much later: a mean of the times between
//! departures would be dominated by the last one. Before any packet waited there is no measurement,
//! and an idle time counts as one packet.
//!
//! The average is an integer in units of 2^-32 packets.

use crate::time::Time;

/// Weight exponent if a policy gives none: Cisco's default.
pub(crate) const DEFAULT_EXPONENT: u8 = 9;

/// Packets after which the earlier measurements count half: many grants of a shaper, and seconds on
/// a slow line.
const MEMORY: u64 = 1_024;

/// One packet in the units of an average.
pub(crate) const ONE: u64 = 1 << 32;

/// An exponentially weighted moving average of the waiting packets.
#[derive(Clone, Debug)]
pub(crate) struct Average {
    exponent: u32,
    value: u64,
}

impl Average {
    /// An average of zero; `exponent` is n, 1 to 16.
    pub(crate) fn new(exponent: u8) -> Average {
        Average { exponent: u32::from(exponent).clamp(1, 16), value: 0 }
    }

    /// A packet arrived while `waiting` packets wait, above 0 or without a known idle time.
    pub(crate) fn meet(&mut self, waiting: usize) {
        let waiting = (waiting as u64).saturating_mul(ONE);
        if waiting >= self.value {
            self.value += (waiting - self.value) >> self.exponent;
        } else {
            self.value -= (self.value - waiting) >> self.exponent;
        }
    }

    /// The queue was idle for the time of this number of packets.
    pub(crate) fn idle(&mut self, packets: u64) {
        const WHOLE: u128 = 1 << 62;
        let (mut power, mut square) = (WHOLE, WHOLE - (WHOLE >> self.exponent));
        let mut left = packets;
        while left > 0 && power > 0 {
            if left & 1 == 1 {
                power = power * square / WHOLE;
            }
            square = square * square / WHOLE;
            left >>= 1;
        }
        self.value = u64::try_from(u128::from(self.value) * power / WHOLE).unwrap_or(0);
    }

    /// The average in units of 2^-32 packets.
    pub(crate) fn value(&self) -> u64 {
        self.value
    }

    /// The average in packets.
    pub(crate) fn packets(&self) -> f64 {
        self.value as f64 / ONE as f64
    }
}

/// Measures the transmission time of a packet, and how long the queue was empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleTime {
    /// Time of the last departure that left packets behind, or of the arrival at the empty queue.
    busy_since: Option<Time>,
    /// Nanoseconds in which packets waited.
    busy: u64,
    /// Packets that left in this time.
    left: u64,
    /// Time at which the queue became empty, or was last seen empty.
    empty_since: Option<Time>,
}

impl IdleTime {
    /// A packet left; `left` packets remain.
    pub(crate) fn went(&mut self, now: Time, left: usize) {
        // A packet that arrives at an empty queue and leaves at once does not measure the
        // transmission time.
        let at_once = |before| self.empty_since.is_some() && before == now;
        if let Some(before) = self.busy_since.filter(|before| !at_once(*before)) {
            self.busy = self.busy.saturating_add(now.since(before));
            self.left += 1;
            if self.left >= MEMORY {
                (self.busy, self.left) = (self.busy / 2, self.left / 2);
            }
        }
        self.busy_since = (left > 0).then_some(now);
        self.empty_since = (left == 0).then_some(now);
    }

    /// A packet arrived at the empty queue. Returns the number of packets that the idle time counts
    /// for.
    pub(crate) fn ended(&mut self, now: Time) -> u64 {
        self.busy_since = Some(now);
        let Some(since) = self.empty_since.replace(now) else { return 0 };
        let idle = u128::from(now.since(since)) * u128::from(self.left);
        match self.busy {
            0 => 1,
            busy => u64::try_from(idle / u128::from(busy)).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    #[test]
    fn it_follows_the_recurrence() {
        let mut average = Average::new(3);
        let mut model = 0.0_f64;
        for waiting in (0..200).map(|n| (n * 7) % 40) {
            average.meet(waiting);
            model += (waiting as f64 - model) / 8.0;
            assert!((average.packets() - model).abs() < 1e-6, "{waiting}");
        }
        for packets in [0, 1, 2, 5, 40] {
            average.idle(packets);
            model *= (1.0_f64 - 1.0 / 8.0).powi(packets as i32);
            assert!((average.packets() - model).abs() < 1e-6, "{packets} packets");
        }
        average.idle(u64::MAX);
        assert_eq!(average.value(), 0);
    }

    #[test]
    fn the_transmission_time_is_measured() {
        let mut idle = IdleTime::default();
        assert_eq!(idle.ended(Time(10)), 0, "nothing went yet");
        for (at, left) in [(100, 2), (200, 1), (300, 0)] {
            idle.went(Time(at), left);
        }
        assert_eq!(idle.ended(Time(1_350)), 10);
        assert_eq!(idle.ended(Time(1_550)), 2, "counted once");
        idle.ended(Time(5_000));
        idle.went(Time(5_000), 1);
        idle.went(Time(5_100), 0);
        assert_eq!(idle.ended(Time(6_100)), 10, "idle time is not transmission time");
        idle.ended(Time(7_000));
        idle.went(Time(7_000), 0);
        assert_eq!(idle.ended(Time(8_000)), 10, "an idle line takes no time");
    }

    #[test]
    fn lumps_of_a_shaper_are_averaged() {
        // 42 packets at the begin of each second, at once or at the rate of a fast line.
        for apart in [0, 120_000] {
            let mut idle = IdleTime::default();
            idle.ended(Time(0));
            for lump in 1..=60_u64 {
                for place in 0..42 {
                    let left = if (lump, place) == (60, 41) { 0 } else { 50 };
                    idle.went(Time(lump * SECOND + place * apart), left);
                }
            }
            let end = 60 * SECOND + 41 * apart;
            let packets = idle.ended(Time(end + 10 * SECOND));
            assert!(packets.abs_diff(420) <= 20, "{packets} packets in 10 s, {apart} ns apart");
        }
    }
}
