//! Weighted fair queueing: every branch sends in proportion to its weight.

use super::BranchOrder;
use super::fair::Fair;
use crate::discipline::Readiness;

/// The order by the virtual times of [`Fair`].
#[derive(Debug)]
pub(crate) struct WeightedFair(Fair);

impl WeightedFair {
    /// The weights of the branches, above 0.
    pub(crate) fn new(weights: &[f64]) -> WeightedFair {
        WeightedFair(Fair::new(weights))
    }
}

impl BranchOrder for WeightedFair {
    const KIND: &'static str = "weighted-fair";

    fn next(&mut self, branches: &[Readiness]) -> Option<usize> {
        self.0.next(branches)
    }

    fn sent(&mut self, place: usize, length: usize) {
        self.0.sent(place, length);
    }
}
