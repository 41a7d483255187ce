//! Round-trip time from this point to the receiver and back: from a segment to the acknowledgement
//! that names its end (RFC 6298 3, Karn), or where it was sent twice the one that echoes its
//! timestamp (RFC 7323 4).

use crate::Time;
use std::collections::VecDeque;

/// Most segments that wait for their acknowledgement; of more, the oldest give no time.
const MAX_WAITING: usize = 128;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    end: u64,
    at: Time,
    value: Option<u32>,
    dscp: u8,
    again: bool,
}

/// Segments of one direction that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrip {
    waiting: VecDeque<Waiting>,
    /// The least so far, in nanoseconds.
    pub(crate) least: Option<u64>,
}

impl RoundTrip {
    /// A segment that ends before this number passed for the first time.
    pub(crate) fn sent(&mut self, now: Time, end: u64, value: Option<u32>, dscp: u8) {
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting { end, at: now, value, dscp, again: false });
    }

    /// It passed again, or out of order.
    pub(crate) fn sent_again(&mut self, now: Time, from: u64, to: u64, value: Option<u32>) {
        for waiting in &mut self.waiting {
            if waiting.end > from && waiting.end <= to {
                (waiting.at, waiting.value, waiting.again) = (now, value, true);
            }
        }
    }

    /// Everything before this number is acknowledged; gives the code point of the segment that ends
    /// there, and the time since.
    pub(crate) fn acknowledged(
        &mut self,
        now: Time,
        number: u64,
        echo: Option<u32>,
    ) -> Option<(u8, u64)> {
        let mut last = None;
        while self.waiting.front().is_some_and(|waiting| waiting.end <= number) {
            last = self.waiting.pop_front();
        }
        let last = last.filter(|last| last.end == number)?;
        if last.again && (last.value.is_none() || last.value != echo) {
            return None;
        }
        let nanos = now.since(last.at);
        self.least = Some(self.least.map_or(nanos, |least| least.min(nanos)));
        Some((last.dscp, nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_counts_from_the_segment_whose_end_it_names() {
        let mut trip = RoundTrip::default();
        trip.sent(Time(10), 100, None, 24);
        trip.sent(Time(20), 200, None, 24);
        assert_eq!(trip.acknowledged(Time(120), 200, None), Some((24, 100)));
        assert_eq!(trip.acknowledged(Time(130), 200, None), None);
        trip.sent(Time(140), 300, None, 0);
        assert_eq!(trip.acknowledged(Time(150), 299, None), None, "a part of it");
        assert_eq!(trip.acknowledged(Time(160), 300, None), Some((0, 20)));
        assert_eq!(trip.least, Some(20));
    }

    #[test]
    fn what_was_sent_twice_counts_only_with_its_timestamp() {
        let mut trip = RoundTrip::default();
        trip.sent(Time(10), 100, Some(1), 0);
        trip.sent_again(Time(50), 0, 100, Some(5));
        assert_eq!(trip.acknowledged(Time(60), 100, Some(1)), None, "of the first copy, perhaps");
        trip.sent(Time(70), 200, Some(7), 0);
        trip.sent_again(Time(90), 100, 200, Some(9));
        assert_eq!(trip.acknowledged(Time(99), 200, Some(9)), Some((0, 9)));
        trip.sent(Time(100), 300, None, 0);
        trip.sent_again(Time(110), 200, 300, None);
        assert_eq!(trip.acknowledged(Time(120), 300, None), None, "Karn");
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut trip = RoundTrip::default();
        for n in 1..10_000 {
            trip.sent(Time(n), n * 10, None, 0);
        }
        assert_eq!(trip.waiting.len(), MAX_WAITING);
    }
}
