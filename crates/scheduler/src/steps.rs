//! Keys whose comparisons the tests count: the cost of a verb in steps, not in seconds.

use std::cmp::Ordering;

/// A key of an index. Ordered as what it wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted<T>(pub(crate) T);

impl<T: Ord> Ord for Counted<T> {
    fn cmp(&self, other: &Counted<T>) -> Ordering {
        step();
        self.0.cmp(&other.0)
    }
}

impl<T: Ord> PartialOrd for Counted<T> {
    fn partial_cmp(&self, other: &Counted<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One more thing was looked at: a key, a channel, a precedence, a transfer.
#[cfg(not(test))]
pub(crate) fn step() {}

#[cfg(test)]
pub(crate) use counting::{step, taken};

#[cfg(test)]
mod counting {
    use std::cell::Cell;

    std::thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(crate) fn step() {
        STEPS.set(STEPS.get() + 1);
    }

    /// Steps since this was last asked.
    pub(crate) fn taken() -> u64 {
        STEPS.replace(0)
    }
}
