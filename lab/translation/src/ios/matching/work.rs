//! Limits the work for a configuration: a few lines can refer to one another so that each of them
//! doubles the work.

/// Work units for one configuration. One unit takes some 30 ns in a release build, all of them
/// about a second. A policy that takes all of them is a file of a few MB, the longest that may be
/// read.
pub(crate) const MAX_UNITS: u64 = 20_000_000;
/// Units for each match that is computed, whether it is kept or not.
const MAKE: u64 = 5;
/// Units for each match in a class of the policy, which is checked, written and read.
const KEEP: u64 = 1_000;
/// Units for each match of a classifier in a chain or a queueing.
const LOOK: u64 = 160;
/// Units for each class of a policy map that is visited.
const CLASS: u64 = 20;
/// Units for each branch of a queueing, which takes up to a kilobyte of the policy.
const BRANCH: u64 = 4_000;

/// The work units that are left. When they are spent, every operation gives up, and the
/// configuration is refused as a whole.
#[derive(Clone, Debug)]
pub(crate) struct WorkBudget {
    left: Option<u64>,
}

impl WorkBudget {
    pub(crate) fn new(units: u64) -> WorkBudget {
        WorkBudget { left: Some(units) }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left.is_none()
    }

    /// Takes units; `false` if too few are left.
    fn spend(&mut self, units: u64) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(units));
        self.left.is_some()
    }

    fn each(&mut self, count: usize, units: u64) -> bool {
        self.spend((count as u64).saturating_mul(units))
    }

    /// Compares two sets of matches, or does equal work.
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

/// The error for a configuration that needs more work.
pub(crate) const TOO_MUCH: &str = "its classes and policies stand in one another so often, or give so \
    large a policy, that to follow them takes too long: import it in parts";
