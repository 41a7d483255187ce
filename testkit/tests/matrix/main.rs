//! The crash matrix: two nodes with their real stores over disks that fail, in virtual time.
//!
//! One scenario has every kind of work that a store does for an MTA. It is run again for each changing
//! operation of either disk and each variant of a fault at that operation, to the end; then the checkers
//! look for broken promises. Mutants show that the checkers notice what they are to notice.
//!
//! An ordinary run takes a sample, the same each time. `LONG=1` takes every place, and several seeds for
//! what is left to chance; `SEED=n` takes another sample, `EVERY=n` each `n`th operation. `SHOW=variant:site:operation:seed` prints one run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod check;
mod mutants;
mod orders;
mod plan;
mod run;
mod scenario;
mod show;
mod variants;

use mutants::{MUTANTS, find, find_near, rows};
use run::{Tally, operations, run};
use variants::{Place, VARIANTS, Variant};

/// Of so many operations an ordinary run takes one.
const STEP: u64 = 3;

/// The seeds of a long run.
const SEEDS: u64 = 6;

fn is_long() -> bool {
    std::env::var_os("LONG").is_some_and(|long| long == "1")
}

/// The number of the sample.
fn sample() -> u64 {
    std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Of so many operations one is taken.
fn every() -> u64 {
    let asked = std::env::var("EVERY").ok().and_then(|step| step.parse().ok());
    asked.unwrap_or(STEP).max(1)
}

/// The places of a variant that are tried.
fn places(variant: &Variant, counts: [u64; 2]) -> Vec<Place> {
    let (step, seeds) = if is_long() { (1, SEEDS) } else { (every() * variant.cost, 1) };
    let seeds = if variant.is_seeded { seeds } else { 1 };
    let first = 1 + sample() % step;
    let mut places = Vec::new();
    for (site, count) in counts.into_iter().enumerate() {
        for n in (first..=count).step_by(step as usize) {
            let at = |seed| Place { variant: Some(variant.name), site, n, seed: sample() + seed };
            places.extend((0..seeds).map(at));
        }
    }
    places
}

/// Tries these variants at their places, and prints what was run.
fn try_variants(names: &[&str]) {
    let counts = operations();
    let mut broken = Vec::new();
    let mut rows = vec![format!("{:16}{}", "variant", Tally::HEAD)];
    for variant in VARIANTS.iter().filter(|variant| names.contains(&variant.name)) {
        let mut tally = Tally::default();
        for place in places(variant, counts) {
            let outcome = run(&place.case());
            tally.add(&outcome);
            if !outcome.failures.is_empty() {
                broken.push(format!("SHOW=\"{place}\": {:?}", outcome.failures));
            }
        }
        rows.push(format!("{:16}{tally}", variant.name));
    }
    println!("operations of the two disks: {counts:?}\n{}", rows.join("\n"));
    assert!(broken.is_empty(), "{} places: {:#?}", broken.len(), &broken[..broken.len().min(12)]);
}

#[test]
fn a_power_failure_at_any_operation_breaks_no_promise() {
    try_variants(&["lost", "kept", "torn", "twice", "killed"]);
}

#[test]
fn a_power_failure_after_any_operation_breaks_no_promise() {
    try_variants(&["lost, made", "kept, made", "torn, made", "rot"]);
}

#[test]
fn a_failed_operation_breaks_no_promise() {
    try_variants(&["failed", "failing", "failed, lost", "failed, torn", "killed, torn"]);
}

#[test]
fn a_full_disk_breaks_no_promise() {
    try_variants(&[
        "no room once",
        "no room at all",
        "full",
        "full for long",
        "full, torn",
        "killed, lost",
    ]);
}

#[test]
fn a_disk_that_cannot_be_read_breaks_no_promise() {
    try_variants(&["unread", "unread, killed", "unreadable", "killed, unreadable"]);
}

#[test]
fn the_variants_are_all_tried() {
    assert_eq!(VARIANTS.len(), 24, "those of the tests above");
}

/// Each mutant is noticed where the table has it, or near there: operations may have other numbers by now.
#[test]
fn the_checkers_notice_every_mutant_of_the_table() {
    let (mut counts, mut lines, mut wrong) = (None, Vec::new(), Vec::new());
    for row in rows() {
        let Some((place, checker)) = row.noticed else {
            if is_long() {
                let counts = *counts.get_or_insert_with(operations);
                let found = find(row.mutant, counts, 5).map(|(place, _)| place.to_string());
                wrong.extend(found.map(|place| format!("{}: noticed at {place}", row.name)));
            }
            lines.push(format!("{:50} survives", row.name));
            continue;
        };
        let found = find_near(row.mutant, place);
        match found {
            Some((place, broken)) => {
                lines.push(format!("{:50} {broken:?} ({checker}) at {place}", row.name));
            }
            None => wrong.push(format!("{}: not noticed", row.name)),
        }
    }
    println!("{}", lines.join("\n"));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Prints the table anew: `FIND=1`, or a part of the names.
#[test]
fn find_mutants() {
    let Ok(which) = std::env::var("FIND") else { return };
    let counts = operations();
    for (name, mutant) in MUTANTS.iter().filter(|(name, _)| which == "1" || *name == which) {
        match find(*mutant, counts, step()) {
            Some((place, broken)) => println!("{name} | {place} | {broken:?}"),
            None => println!("{name} | survives | "),
        }
    }
}

/// Of so many operations the search for mutants takes one: `STEP`.
fn step() -> usize {
    std::env::var("STEP").ok().and_then(|step| step.parse().ok()).unwrap_or(1)
}
