//! Every target on its corpus, on every input that ever broke it, and on mutations of both.

#![expect(clippy::expect_used, reason = "a test")]

use fuzz::{TARGETS, corpus, input};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Mutated inputs of a target: 5,000 where one takes microseconds, fewer where each sets up whole
/// associations or a whole node, so that the test stays within half a minute. `cargo xtask test` fuzzes
/// besides.
fn mutations(target: &str) -> u64 {
    match target {
        "presentation" | "acse" | "rtse" | "rose" => 400,
        "p1-responder" | "p1-initiator" | "p3-responder" | "p3-initiator" => 1_000,
        "node-p1" | "node-p3" | "node-p7" | "node-initiator" | "node-delivery" => 60,
        "config" | "observed" | "kept" => 1_000,
        "apdu" | "p3-submission" | "p3-delivery" | "p772" | "peek" => 2_500,
        _ => 5_000,
    }
}

/// Runs one target; gives what broke.
fn replay(target: &fuzz::Target) -> Vec<String> {
    let inputs = corpus::inputs(target).expect("a corpus that can be read");
    assert!(!inputs.is_empty(), "{} has no corpus", target.name);
    let mut broken = Vec::new();
    let mut run = |what: &dyn Fn() -> String, octets: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| (target.run)(octets))).is_err() {
            broken.push(what());
        }
    };
    for (name, octets) in &inputs {
        run(&|| format!("{}: {name}", target.name), octets);
    }
    let octets: Vec<Vec<u8>> = inputs.into_iter().map(|(_, octets)| octets).collect();
    for number in 0..mutations(target.name) {
        run(&|| format!("{}: mutation {number}", target.name), &input(target, &octets, 0, number));
    }
    broken
}

#[test]
fn every_target_holds_on_its_corpus_and_mutations_of_it() {
    // Two threads, whatever the number of targets: each takes every second one.
    let broken: Vec<String> = std::thread::scope(|scope| {
        let half = |from: usize| {
            move || TARGETS.iter().skip(from).step_by(2).flat_map(replay).collect::<Vec<_>>()
        };
        let threads = [scope.spawn(half(0)), scope.spawn(half(1))];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(broken.is_empty(), "{} inputs break something: {broken:#?}", broken.len());
}
