//! Class-based weighted fair queueing with low-latency branches (Cisco's CBWFQ and LLQ).
//!
//! Priority branches go first, in their order. Each is policed to its rate and burst by a token bucket
//! while anything waits, be it in the branch itself: then what the bucket does not hold is dropped as it
//! comes. So no more of it than the burst and a packet is ever ahead of the others, also of those that
//! come later. While nothing waits, the line keeps up, and it passes whatever comes. The bucket is paid
//! for what is within the rate and kept. The other branches share what priority leaves, by the virtual times of [`Fair`] in
//! proportion to their reservations; what a branch does not use goes to the others in the same
//! proportion.

use super::Order;
use super::fair::Fair;
use crate::discipline::Ready;
use crate::meter::Bucket;
use crate::time::Time;

/// What a branch may count on.
#[derive(Clone, Debug)]
pub(crate) enum Reserved {
    /// First of all, as long as the bucket holds.
    Priority(Bucket),
    /// In proportion to this, above 0.
    Weight(f64),
}

/// Priority first, then by reservations.
#[derive(Debug)]
pub(crate) struct ClassBased {
    /// By branch: the bucket of a priority branch.
    policers: Vec<Option<Bucket>>,
    fair: Fair,
}

impl ClassBased {
    /// What is reserved for each branch.
    pub(crate) fn new(reserved: Vec<Reserved>) -> ClassBased {
        let weight = |reserved: &Reserved| match reserved {
            Reserved::Priority(_) => 0.0,
            // However little that is, it takes part.
            Reserved::Weight(weight) => weight.max(f64::MIN_POSITIVE),
        };
        let weights: Vec<f64> = reserved.iter().map(weight).collect();
        let policer = |reserved| match reserved {
            Reserved::Priority(bucket) => Some(bucket),
            Reserved::Weight(_) => None,
        };
        let policers = reserved.into_iter().map(policer).collect();
        ClassBased { policers, fair: Fair::new(&weights) }
    }
}

impl Order for ClassBased {
    const KIND: &'static str = "class-based";

    fn admit(&mut self, now: Time, place: usize, length: usize, waits: bool) -> bool {
        match self.policers.get_mut(place) {
            Some(Some(bucket)) => {
                bucket.refill(now);
                bucket.has(length as u64) || !waits
            }
            _ => true,
        }
    }

    fn kept(&mut self, place: usize, octets: usize) {
        if let Some(Some(bucket)) = self.policers.get_mut(place)
            && bucket.has(octets as u64)
        {
            bucket.pay(octets as u64);
        }
    }

    fn next(&mut self, branches: &[Ready]) -> Option<usize> {
        let mut priority = self.policers.iter().zip(branches);
        let first = priority
            .position(|(policer, ready)| policer.is_some() && matches!(ready, Ready::Now(_)));
        first.or_else(|| self.fair.next(branches))
    }

    fn sent(&mut self, place: usize, length: usize) {
        if let Some(None) = self.policers.get(place) {
            self.fair.sent(place, length);
        }
    }
}
