//! Every target on its corpus, on every input that ever broke it, and on mutations of both.

#![expect(clippy::expect_used, reason = "a test")]

use fuzz::{TARGETS, corpus, input};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Mutated inputs of a target: 1,000, with LONG=1 5,000, where one takes microseconds, fewer where each sets up whole
/// associations or a whole node. `cargo xtask test` fuzzes besides.
fn mutations(target: &str) -> u64 {
    let is_long = std::env::var_os("LONG").is_some_and(|long| long == "1");
    let all = match target {
        "presentation" | "acse" | "rtse" | "rose" => 400,
        "p1-responder" | "p1-initiator" | "p3-responder" | "p3-initiator" => 1_000,
        "node-p1" | "node-p3" | "node-p7" | "node-initiator" | "node-delivery" => 60,
        "config" | "observed" | "kept" => 1_000,
        "apdu" | "p3-submission" | "p3-delivery" | "p772" | "peek" => 2_500,
        _ => 5_000,
    };
    if is_long { all } else { all / 5 }
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
    // Two threads, whatever the number of targets: each takes the next one.
    let next = AtomicUsize::new(0);
    let take = || TARGETS.get(next.fetch_add(1, Ordering::Relaxed));
    let some = || std::iter::from_fn(take).flat_map(replay).collect::<Vec<_>>();
    let broken: Vec<String> = std::thread::scope(|scope| {
        let threads = [scope.spawn(some), scope.spawn(some)];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(broken.is_empty(), "{} inputs break something: {broken:#?}", broken.len());
}
