//! A token bucket in exact arithmetic: its tokens are billionths of a bit, of which a rate of one
//! bit a second gives one each nanosecond. Nothing is rounded, so nothing drifts.

use crate::time::{Rate, SECOND, Time};

/// Tokens of one octet.
const OCTET: i128 = 8 * SECOND as i128;

/// Fills at a rate up to its size; who sends takes out what he sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: u64,
    size: i128,
    /// Negative where [`Bucket::pay`] took more than there was.
    tokens: i128,
    at: Time,
}

impl Bucket {
    /// A full one of so many octets.
    pub fn new(rate: Rate, octets: u64) -> Bucket {
        let size = i128::from(octets) * OCTET;
        Bucket { rate: rate.bits(), size, tokens: size, at: Time::ZERO }
    }

    /// An empty one.
    pub fn empty(rate: Rate, octets: u64) -> Bucket {
        Bucket { tokens: 0, ..Bucket::new(rate, octets) }
    }

    /// Another rate and size from now on; what is in it stays, up to the new size.
    pub fn change(&mut self, now: Time, rate: Rate, octets: u64) {
        self.refill(now);
        self.rate = rate.bits();
        self.size = i128::from(octets) * OCTET;
        self.tokens = self.tokens.min(self.size);
    }

    /// Adds what has come since the last time, and gives back the tokens that found no room. A time
    /// before the last adds nothing.
    #[inline]
    fn fill(&mut self, now: Time) -> i128 {
        let come = i128::from(self.rate) * i128::from(now.since(self.at));
        self.at = self.at.max(now);
        self.put(come)
    }

    /// Adds so many tokens, and gives back those that found no room.
    #[inline]
    fn put(&mut self, tokens: i128) -> i128 {
        let there = self.tokens + tokens;
        self.tokens = there.min(self.size);
        there - self.tokens
    }

    /// Adds what has come since the last time.
    #[inline]
    pub fn refill(&mut self, now: Time) {
        let _ = self.fill(now);
    }

    /// Adds what has come since the last time; what finds no room goes into the other.
    #[inline]
    pub(super) fn refill_over(&mut self, now: Time, other: &mut Bucket) {
        let over = self.fill(now);
        let _ = other.put(over);
    }

    /// Whether so many octets are in it, as of the last time.
    #[inline]
    pub fn has(&self, octets: u64) -> bool {
        self.tokens >= i128::from(octets) * OCTET
    }

    /// Takes out so many octets, even if there are fewer.
    #[inline]
    pub fn pay(&mut self, octets: u64) {
        self.tokens -= i128::from(octets) * OCTET;
    }

    /// Takes out so many octets if they are there now.
    #[inline]
    pub fn take(&mut self, now: Time, octets: u64) -> bool {
        self.refill(now);
        let has = self.has(octets);
        if has {
            self.pay(octets);
        }
        has
    }

    /// When so many octets may go, with so many ahead of them, if nothing else is taken out: as soon
    /// as they are in it, or it is full. The first nanosecond at which that is so, and not before
    /// the last time it was filled.
    pub fn due(&self, ahead: u64, octets: u64) -> Time {
        let needed = (i128::from(octets) * OCTET).min(self.size) + i128::from(ahead) * OCTET;
        let missing = u128::try_from(needed - self.tokens).unwrap_or(0);
        let rate = self.rate.max(1);
        // Dividing 128 bits is slow, and hardly ever needed.
        let nanos = match u64::try_from(missing) {
            Ok(missing) => missing.div_ceil(rate),
            Err(_) => u64::try_from(missing.div_ceil(u128::from(rate))).unwrap_or(u64::MAX),
        };
        Time(self.at.0.saturating_add(nanos))
    }
}
