//! Class-based weighted fair queueing with low-latency branches (Cisco's CBWFQ and LLQ).
//!
//! Priority branches go first, in their order. Each is policed to its rate and burst by a token bucket
//! while any other branch has a packet waiting: then what the bucket does not hold is dropped as it
//! comes. While nobody else waits, it passes whatever comes, and its bucket is paid only for what is
//! within the rate. The other branches share what priority leaves, by the virtual times of [`Fair`] in
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
            Reserved::Weight(weight) => *weight,
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

    fn admit(&mut self, now: Time, place: usize, length: usize, others_wait: bool) -> bool {
        match self.policers.get_mut(place) {
            Some(Some(bucket)) => bucket.take(now, length as u64) || !others_wait,
            _ => true,
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
