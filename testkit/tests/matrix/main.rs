//! The crash matrix: nodes and their real stores over disks that fail, in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod check;
mod run;
mod scenario;
mod variants;

use run::{Tally, run};
use scenario::Case;
use variants::VARIANTS;

/// Every place with every variant; an ordinary run takes a sample.
fn is_long() -> bool {
    std::env::var_os("LONG").is_some_and(|long| long == "1")
}

/// Operations of each site in a run without faults.
fn operations() -> [u64; 2] {
    let plain = run(&Case { site: 0, faults: Vec::new(), mutant: None });
    assert!(plain.failures.is_empty(), "without a fault: {:#?}", plain.failures);
    plain.operations
}

#[test]
fn variants() {
    let counts = operations();
    println!("{counts:?}");
    let mut failed = 0;
    for variant in VARIANTS {
        let began = std::time::SystemTime::now();
        let mut tally = Tally::default();
        for site in 0..2 {
            for n in 1..=counts[site] {
                let case = Case { site, faults: variant.faults(n, 0), mutant: None };
                let outcome = run(&case);
                tally.add(&outcome);
                if !outcome.failures.is_empty() {
                    failed += 1;
                    println!("{} site {site} n {n}: {:?}", variant.name, outcome.failures);
                }
            }
        }
        println!("{:12} {tally:?} {:?}", variant.name, began.elapsed().unwrap());
    }
    assert_eq!(failed, 0);
}

/// Shows one run: `CASE=variant:site:n`.
#[test]
fn show() {
    let Ok(case) = std::env::var("CASE") else { return };
    let mut words = case.split(':');
    let name = words.next().unwrap();
    let site: usize = words.next().unwrap().parse().unwrap();
    let n = words.next().unwrap().parse().unwrap();
    let seed = words.next().map_or(0, |seed| seed.parse().unwrap());
    let variant = VARIANTS.iter().find(|variant| variant.name == name).unwrap();
    let case = Case { site, faults: variant.faults(n, seed), mutant: None };
    let mut scenario = scenario::Scenario::new(&case);
    scenario.play();
    let mut lines = Vec::new();
    for (site, s) in scenario.network.sites.iter().enumerate() {
        lines.extend(s.events.iter().map(|(at, event)| (*at, site, format!("{:?} {:?} {:?} {}", event.kind, event.message.as_deref().map(|m| m.rsplit_once(";").map(|x| x.1.to_owned())), event.entry, event.detail))));
        lines.extend(s.deaths.iter().map(|at| (*at, site, "death".to_owned())));
    }
    lines.sort();
    for (at, site, line) in lines {
        println!("{:>12.6} {site} {line}", at.0 as f64 / 1e6);
    }
    println!("{:#?}", check::check(&scenario, &case));
}

#[test]
fn sweep() {
    let Ok(case) = std::env::var("SWEEP") else { return };
    let words: Vec<&str> = case.split(':').collect();
    let variant = VARIANTS.iter().find(|variant| variant.name == words[0]).unwrap();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    for n in number(2)..number(3) {
        for seed in 0..number(4) {
            let case = Case { site: number(1) as usize, faults: variant.faults(n, seed), mutant: None };
            let outcome = run(&case);
            if !outcome.failures.is_empty() {
                println!("{n}:{seed} {:?}", outcome.failures);
            }
        }
    }
}
