//! Strict priority: the first branch with a packet always sends first.

use super::BranchOrder;
use crate::discipline::Readiness;

/// The order of the branches is their priority.
#[derive(Debug)]
pub(crate) struct StrictPriority;

impl BranchOrder for StrictPriority {
    const KIND: &'static str = "priority";

    fn next(&mut self, branches: &[Readiness]) -> Option<usize> {
        branches.iter().position(|ready| matches!(ready, Readiness::Now(_)))
    }
}
