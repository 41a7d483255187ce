//! How much a configuration may ask for: a few lines can name each other so that every one of them
//! doubles the work.

/// Units of work that are done for one configuration. One takes some 30 ns (a release build), all of
/// them about a second; and a policy made with them is a file of a few MB, as long as one may be.
pub(crate) const MAX_UNITS: u64 = 20_000_000;
/// Units for each match that is made, and may be thrown away.
const MAKE: u64 = 5;
/// Units for each match that a class of the policy has: it is checked, written and read.
const KEEP: u64 = 1_000;
/// Units for each match that a classifier of a chain or a queueing looks at.
const LOOK: u64 = 160;
/// Units for each class of a policy map that is gone through.
const CLASS: u64 = 20;
/// Units for each branch of a queueing: up to a kilobyte of the policy.
const BRANCH: u64 = 4_000;

/// What may still be done. Once it is spent, whatever asks gives up, and the configuration is refused
/// as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    left: Option<u64>,
}

impl Work {
    pub(crate) fn new(units: u64) -> Work {
        Work { left: Some(units) }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left.is_none()
    }

    /// Takes so many units; false where they are not left.
    fn spend(&mut self, units: u64) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(units));
        self.left.is_some()
    }

    fn each(&mut self, count: usize, units: u64) -> bool {
        self.spend((count as u64).saturating_mul(units))
    }

    /// Two sets of code points, or as much, are looked at.
    pub(crate) fn compares(&mut self, a: usize, b: usize) -> bool {
        self.spend(1 + (a as u64).saturating_mul(b as u64) / 64)
    }

    pub(crate) fn makes(&mut self, matches: usize) -> bool {
        self.each(matches, MAKE)
    }

    pub(crate) fn keeps(&mut self, matches: usize) -> bool {
        self.each(matches, KEEP)
    }

    pub(crate) fn looks_at(&mut self, matches: usize) -> bool {
        self.each(matches, LOOK)
    }

    pub(crate) fn goes_through(&mut self, classes: usize) -> bool {
        self.each(classes.max(1), CLASS)
    }

    pub(crate) fn branches(&mut self, branches: usize) -> bool {
        self.each(branches, BRANCH)
    }
}

/// What is said of a configuration that asks for more.
pub(crate) const TOO_MUCH: &str = "its classes and policies stand in one another so often, or give so \
    large a policy, that to follow them takes too long: import it in parts";
