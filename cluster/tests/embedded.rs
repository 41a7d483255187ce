//! The trial with one node on the embedded store: what it measures is known there, so this is a check of the trial.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

use cluster::{Plan, run};
use std::time::Duration;
use testbed::Programs;

#[test]
fn one_node_on_the_embedded_store_keeps_all_and_the_trial_sees_it() {
    let plan = Plan {
        time: Duration::from_secs(12),
        seed: 1,
        nodes: 1,
        embedded: true,
        disk: None,
        lease: 4,
        pace: Duration::from_millis(500),
        settle: Duration::from_secs(120),
        keep: false,
        programs: Programs::find().unwrap(),
        progress: false,
    };
    let report = run(&plan).unwrap();
    let verdict = &report.verdict;
    assert!(verdict.is_kept(), "{}", report.table());
    assert!(verdict.acknowledged > 20 && verdict.delivered == verdict.expected, "{verdict:?}");
    assert!(!report.faults.is_empty() && report.settled.is_some(), "{}", report.table());
    assert_eq!(report.ended, Vec::<String>::new());
    assert_eq!(report.json()["kept"], true);
}
