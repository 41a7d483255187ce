//! The crash matrix: nodes and their real stores over disks that fail, in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod check;
mod scenario;

use scenario::{Case, Scenario};

#[test]
fn plain() {
    let case = Case { site: 0, faults: Vec::new(), mutant: None };
    let began = std::time::SystemTime::now();
    let mut scenario = Scenario::new(&case);
    scenario.play();
    println!("{:?}", began.elapsed());
    for s in &scenario.network.sites {
        println!("{} operations, {} opens, {:?}", s.store.operations(), s.store.opens, s.deaths);
        for (at, e) in &s.events { println!("{:>10.4} {:?} {}", at.0 as f64/1e6, e.kind, e.detail); }
    }
    println!("{:#?}", check::check(&scenario, &case));
}
