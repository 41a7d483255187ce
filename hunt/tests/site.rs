//! Whole sites of several nodes over a model of the database, from one seed each.
//!
//! `SEEDS=10000 cargo test -p hunt --release --test site` plays more of them; `SEED=7` one, with its story.

#![allow(clippy::panic, clippy::print_stdout, reason = "a test fails by panicking")]

use hunt::site::{Mutant, SiteWorld, play};

/// Seeds that are played where no other number is given.
const SEEDS: u64 = 40;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

#[test]
fn nothing_is_lost_doubled_or_sent_by_two_nodes() {
    let one = number("SEED");
    let seeds = one.map_or(0..number("SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let from = number("FROM").unwrap_or(0);
    let (mut delivered, mut repeated, mut fenced, mut doubted, mut gained) = (0, 0, 0, 0, 0);
    let mut held = 0;
    let mut failed = Vec::new();
    for seed in seeds {
        let seed = seed + from;
        let played = play(&SiteWorld::from_seed(seed), None, one.is_some());
        if one.is_some() {
            println!("{}", played.story);
        }
        if !played.broken.is_empty() {
            failed.push(format!("seed {seed}: {}", played.broken.join("; ")));
        }
        delivered += played.delivered;
        repeated += played.repeated;
        fenced += played.fenced;
        doubted += played.doubted;
        gained += played.gained;
        held += played.held;
    }
    println!(
        "{delivered} copies, {repeated} repeated, {gained} shards gained, {held} held, {fenced} \
         commits fenced, {doubted} in doubt"
    );
    assert!(failed.is_empty(), "{} fail:\n{}", failed.len(), failed.join("\n"));
    assert!(one.is_some() || repeated > 0 && fenced > 0 && doubted > 0 && held > 0);
}

fn found(mutant: Mutant) -> Option<u64> {
    let most = number("SEEDS").unwrap_or(400).clamp(400, 2_000);
    (0..most).find(|seed| {
        let played = play(&SiteWorld::from_seed(*seed), Some(mutant), false);
        if let Some(why) = played.broken.first() {
            println!("{mutant:?}: seed {seed}: {why}");
        }
        !played.broken.is_empty()
    })
}

#[test]
fn mutants_are_found() {
    let all = [
        Mutant::FenceNotChecked,
        Mutant::KeyNotChecked,
        Mutant::RightsNotChecked,
        Mutant::LongLease,
        Mutant::LostNotForgotten,
        Mutant::PageBringsBack,
        Mutant::HoldsNotTaken,
        Mutant::HoldsOverwritten,
    ];
    let missed: Vec<Mutant> = all.into_iter().filter(|mutant| found(*mutant).is_none()).collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
