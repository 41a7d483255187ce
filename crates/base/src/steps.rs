//! Keys whose comparisons are counted: tests measure the cost of a verb in steps, not in seconds.
//! Counted in debug builds only. The node counts its steps too.

use std::cmp::Ordering;

/// A key of an index, ordered as the wrapped key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<T>(pub T);

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

/// Counts one step: a key, a channel, a precedence or a transfer visited.
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

    /// Counts one step: a key, a channel, a precedence or a transfer visited.
    pub fn step() {
        STEPS.set(STEPS.get() + 1);
    }

    /// Steps of this thread since the last call.
    pub fn taken() -> u64 {
        STEPS.replace(0)
    }
}
