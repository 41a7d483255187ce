//! How much a configuration may ask for: a few lines can name each other so that every one of them
//! doubles the work.

/// Units of work that are done for one configuration: a second or two. A comparison of two matches
/// is one or a few of them.
const UNITS_MAX: u64 = 2_000_000;
/// Units for each match of a class: it has to be kept and written.
const MATCH: u64 = 10;
/// Units for each branch of a queueing.
const BRANCH: u64 = 100;

/// What may still be done. Once it is spent, whatever asks gives up, and the configuration is refused
/// as a whole.
#[derive(Clone, Debug)]
pub(super) struct Work {
    left: Option<u64>,
}

impl Work {
    pub(super) fn new() -> Work {
        Work { left: Some(UNITS_MAX) }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.left.is_none()
    }

    /// Takes so many units; false where they are not left.
    pub(super) fn spend(&mut self, units: u64) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(units));
        self.left.is_some()
    }

    /// Two sets of code points, or as much, are looked at.
    pub(super) fn compares(&mut self, a: usize, b: usize) -> bool {
        self.spend(1 + (a as u64).saturating_mul(b as u64) / 64)
    }

    pub(super) fn keeps(&mut self, matches: usize) -> bool {
        self.spend((matches as u64).saturating_mul(MATCH))
    }

    pub(super) fn branches(&mut self, branches: usize) -> bool {
        self.spend((branches as u64).saturating_mul(BRANCH))
    }
}

/// What is said of a configuration that asks for more.
pub(super) const TOO_MUCH: &str = "its classes and policies stand in one another so often that to \
    follow them takes too long: import it in parts";
