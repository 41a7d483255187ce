//! Class-based weighted fair queueing with low-latency branches (Cisco's CBWFQ and LLQ).
//!
//! Priority branches send first, in their order. A token bucket polices each to its rate and burst
//! while any packet waits, also in the branch itself: an arriving packet that does not conform is
//! dropped. So never more than the burst and one packet of a priority branch are ahead of the
//! others, also of packets that arrive later. While nothing waits, the line keeps up, and all
//! packets pass. A packet that conforms and is queued takes its tokens. The other branches share
//! what priority leaves, by the virtual times of [`Fair`] in proportion to their reservations: the lowest
//! finish time sends, as Cisco's lowest sequence number does.
//! Bandwidth that a branch does not use goes to the others in the same proportion.

use super::BranchOrder;
use super::fair::Fair;
use crate::discipline::Readiness;
use crate::meter::Bucket;
use crate::time::Time;

/// The reservation of a branch.
#[derive(Clone, Debug)]
pub(crate) enum Reservation {
    /// Priority, policed by this bucket.
    Priority(Bucket),
    /// A share in proportion to this weight, above 0.
    Weight(f64),
}

/// Priority branches first, then the others by reservation.
#[derive(Debug)]
pub(crate) struct ClassBased {
    /// For each branch: the bucket of a priority branch.
    policers: Vec<Option<Bucket>>,
    fair: Fair,
}

impl ClassBased {
    /// An order for branches with these reservations.
    pub(crate) fn new(reserved: Vec<Reservation>) -> ClassBased {
        let weight = |reserved: &Reservation| match reserved {
            Reservation::Priority(_) => 0.0,
            // The smallest reservation is still above 0, so its branch takes part.
            Reservation::Weight(weight) => weight.max(f64::MIN_POSITIVE),
        };
        let weights: Vec<f64> = reserved.iter().map(weight).collect();
        let policer = |reserved| match reserved {
            Reservation::Priority(bucket) => Some(bucket),
            Reservation::Weight(_) => None,
        };
        let policers = reserved.into_iter().map(policer).collect();
        ClassBased { policers, fair: Fair::by_finish(&weights) }
    }
}

impl BranchOrder for ClassBased {
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
            bucket.decrement(octets as u64);
        }
    }

    fn next(&mut self, branches: &[Readiness]) -> Option<usize> {
        let mut priority = self.policers.iter().zip(branches);
        let first = priority
            .position(|(policer, ready)| policer.is_some() && matches!(ready, Readiness::Now(_)));
        first.or_else(|| self.fair.next(branches))
    }

    fn sent(&mut self, place: usize, length: usize) {
        if let Some(None) = self.policers.get(place) {
            self.fair.sent(place, length);
        }
    }
}
