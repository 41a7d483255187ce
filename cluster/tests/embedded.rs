//! The trial with one node on the embedded store: what it has to find is known there, so this is a check of the trial.

#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

use cluster::{Fault, Plan, run};
use std::time::Duration;
use testbed::Programs;

fn plan() -> Plan {
    Plan {
        time: Duration::from_secs(12),
        seed: 1,
        first: Vec::new(),
        nodes: 1,
        embedded: true,
        disk: None,
        mailbox: true,
        lease: 4,
        pace: Duration::from_millis(500),
        settle: Duration::from_secs(120),
        keep: false,
        programs: Programs::find().unwrap(),
        progress: false,
    }
}

#[test]
fn one_node_on_the_embedded_store_keeps_all_and_the_trial_finds_it() {
    let first = vec![(Fault::Hold(0), Duration::from_millis(500))];
    let report = run(&Plan { first, ..plan() }).unwrap();
    let verdict = &report.verdict;
    assert!(verdict.is_kept(), "{}", report.table());
    assert!(verdict.acknowledged > 20 && verdict.delivered == verdict.expected, "{verdict:?}");
    assert!(!report.faults.is_empty() && report.settled.is_some(), "{}", report.table());
    assert!(verdict.held > 0, "{}", report.table());
    assert_eq!(report.ended, Vec::<String>::new());
    assert_eq!(report.json()["kept"], true);
}

/// A Flash is acknowledged, and its store is gone before it leaves.
#[test]
fn the_trial_finds_what_a_node_loses_with_its_store() {
    let first = vec![(Fault::StoreLost(0), Duration::from_millis(100))];
    let (time, settle) = (Duration::ZERO, Duration::from_secs(5));
    let report = run(&Plan { first, time, settle, ..plan() }).unwrap();
    let lost = &report.verdict.lost;
    assert!(lost.iter().any(|line| line.starts_with("1-P0 (flash) to east/WATCH")), "{lost:?}");
    assert_eq!(report.json()["kept"], false);
    assert!(report.table().contains("kept: "), "{}", report.table());
    for path in &report.kept {
        std::fs::remove_dir_all(path).unwrap();
    }
}
