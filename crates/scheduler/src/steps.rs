//! Keys whose comparisons the tests count: the cost of a verb in steps, not in seconds. Counted in
//! debug builds only; whoever asks the scheduler may count what it looks at itself.

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
#[cfg(not(debug_assertions))]
pub fn step() {}

#[cfg(debug_assertions)]
pub use counting::{step, taken};

#[cfg(debug_assertions)]
mod counting {
    use std::cell::Cell;

    std::thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    /// One more thing was looked at: a key, a channel, a precedence, a transfer.
    pub fn step() {
        STEPS.set(STEPS.get() + 1);
    }

    /// Steps of this thread since this was last asked.
    pub fn taken() -> u64 {
        STEPS.replace(0)
    }
}
