//! One run: the scenario is played under a case, and checked.

use crate::check::{Broken, Failure, check};
use crate::scenario::{Case, Scenario};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use store::safeguard::leave_out;
use testkit::real::Mutant;

/// The outcome of a run.
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

/// Operations of each site in a run without faults.
pub(crate) fn operations() -> [u64; 2] {
    let plain = run(&Case { site: 0, faults: Vec::new(), mutant: None });
    assert!(plain.failures.is_empty(), "without a fault: {:#?}", plain.failures);
    plain.operations
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

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { runs, struck, starts, failed } = self;
        write!(f, "{runs:8}{struck:8}{starts:8}{failed:8}")
    }
}

impl Tally {
    /// Above the numbers.
    pub(crate) const HEAD: &str = "    runs  struck  starts  broken";

    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.struck += u32::from(outcome.struck);
        self.starts += outcome.opens;
        self.failed += u32::from(!outcome.failures.is_empty());
    }
}
