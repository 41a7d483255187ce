//! One run: the scenario is played under a case, and checked.

use crate::check::{Broken, Failure, check};
use crate::scenario::{Case, Scenario};
use std::panic::{AssertUnwindSafe, catch_unwind};
use store::safeguard::leave_out;
use testkit::real::Mutant;

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub failures: Vec<Failure>,
    /// Changing operations of the disks.
    pub operations: [u64; 2],
    /// Ends of processes, and starts, beyond those of the scenario.
    pub opens: u32,
    /// Whether all faults happened.
    pub struck: bool,
}

/// Plays a case.
pub(crate) fn run(case: &Case) -> Outcome {
    if let Some(Mutant::Without(safeguard)) = case.mutant {
        leave_out(Some(safeguard));
    }
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut scenario = Scenario::new(case);
        scenario.play();
        let stores = || scenario.network.sites.iter().map(|site| &site.store);
        let operations: Vec<u64> = stores().map(|store| store.operations()).collect();
        Outcome {
            failures: check(&scenario, case),
            operations: [operations[0], operations[1]],
            opens: stores().map(|store| store.opens).sum(),
            struck: stores().all(|store| store.faults_left() == 0),
        }
    }));
    leave_out(None);
    played.unwrap_or_else(|why| {
        let text = why.downcast_ref::<String>().cloned();
        let text = text.or_else(|| why.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Outcome {
            failures: vec![(Broken::Panicked, text.unwrap_or_default())],
            operations: [0; 2],
            opens: 0,
            struck: true,
        }
    })
}

/// The sums of many runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub runs: u32,
    pub struck: u32,
    pub starts: u32,
    pub failed: u32,
}

impl Tally {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.struck += u32::from(outcome.struck);
        self.starts += outcome.opens;
        self.failed += u32::from(!outcome.failures.is_empty());
    }
}
