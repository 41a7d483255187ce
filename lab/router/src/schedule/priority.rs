//! Strict priority: the first branch with a packet always sends first.

use super::Order;
use crate::discipline::Ready;

/// The order of the branches is their priority.
#[derive(Debug)]
pub(crate) struct Priority;

impl Order for Priority {
    const KIND: &'static str = "priority";

    fn next(&mut self, branches: &[Ready]) -> Option<usize> {
        branches.iter().position(|ready| matches!(ready, Ready::Now(_)))
    }
}
