//! A token bucket in exact arithmetic. Its unit is a billionth of a bit: a rate of one bit a second
//! adds one unit each nanosecond. Nothing is rounded, so nothing drifts.

use crate::time::{Rate, SECOND, Time};

/// Units of one octet.
const OCTET: i128 = 8 * SECOND as i128;

/// A token bucket: it fills at a rate up to its size, and packets remove tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: u64,
    size: i128,
    /// Negative if [`Bucket::decrement`] removed more than there was.
    tokens: i128,
    at: Time,
}

impl Bucket {
    /// A full bucket of this size in octets.
    pub fn new(rate: Rate, octets: u64) -> Bucket {
        let size = i128::from(octets) * OCTET;
        Bucket { rate: rate.bits(), size, tokens: size, at: Time::ZERO }
    }

    /// An empty bucket of this size in octets.
    pub fn empty(rate: Rate, octets: u64) -> Bucket {
        Bucket { tokens: 0, ..Bucket::new(rate, octets) }
    }

    /// Sets rate and size in octets from `now` on. Tokens remain, up to the new size.
    pub fn change(&mut self, now: Time, rate: Rate, octets: u64) {
        self.refill(now);
        self.rate = rate.bits();
        self.size = i128::from(octets) * OCTET;
        self.tokens = self.tokens.min(self.size);
    }

    /// Adds the tokens since the last fill, and returns those that exceed the size. A time before
    /// the last fill adds nothing.
    #[inline]
    fn fill(&mut self, now: Time) -> i128 {
        let come = i128::from(self.rate) * i128::from(now.since(self.at));
        self.at = self.at.max(now);
        self.put(come)
    }

    /// Adds tokens, and returns those that exceed the size.
    #[inline]
    fn put(&mut self, tokens: i128) -> i128 {
        let there = self.tokens + tokens;
        self.tokens = there.min(self.size);
        there - self.tokens
    }

    /// Adds the tokens since the last fill.
    #[inline]
    pub fn refill(&mut self, now: Time) {
        let _ = self.fill(now);
    }

    /// Adds the tokens since the last fill; those that exceed the size go into the other bucket.
    #[inline]
    pub(super) fn refill_over(&mut self, now: Time, other: &mut Bucket) {
        let over = self.fill(now);
        let _ = other.put(over);
    }

    /// Whether the bucket had tokens for this number of octets at the last fill.
    #[inline]
    pub fn has(&self, octets: u64) -> bool {
        self.tokens >= i128::from(octets) * OCTET
    }

    /// Removes tokens for this number of octets, even if there are fewer.
    #[inline]
    pub fn decrement(&mut self, octets: u64) {
        self.tokens -= i128::from(octets) * OCTET;
    }

    /// Removes tokens for this number of octets if they are there now; else nothing.
    #[inline]
    pub fn take(&mut self, now: Time, octets: u64) -> bool {
        self.refill(now);
        let has = self.has(octets);
        if has {
            self.decrement(octets);
        }
        has
    }

    /// When a packet of `octets` conforms, with `ahead` octets before it, if nothing else takes
    /// tokens: when its tokens are there, or the bucket is full. This is the first such nanosecond,
    /// and not before the last fill.
    pub fn due(&self, ahead: u64, octets: u64) -> Time {
        let needed = (i128::from(octets) * OCTET).min(self.size) + i128::from(ahead) * OCTET;
        let missing = u128::try_from(needed - self.tokens).unwrap_or(0);
        let rate = self.rate.max(1);
        // A division of 128 bits is slow, and rarely needed.
        let nanos = match u64::try_from(missing) {
            Ok(missing) => missing.div_ceil(rate),
            Err(_) => u64::try_from(missing.div_ceil(u128::from(rate))).unwrap_or(u64::MAX),
        };
        Time(self.at.0.saturating_add(nanos))
    }
}
