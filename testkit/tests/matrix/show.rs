//! Prints one run, for whoever looks for the cause of a failure.

use crate::check::check;
use crate::scenario::Scenario;
use crate::variants::Place;

#[test]
fn show() {
    let Ok(place) = std::env::var("SHOW") else { return };
    let case = place.parse::<Place>().unwrap().case();
    let mut scenario = Scenario::new(&case);
    scenario.play();
    let mut lines = Vec::new();
    for (site, s) in scenario.network.sites.iter().enumerate() {
        let of = |event: &node::event::LogEvent| {
            let message = event.message.as_deref().unwrap_or_default();
            format!("{:?} {message} {}", event.kind, event.detail)
        };
        lines.extend(s.events.iter().map(|(at, event)| (*at, site, of(event))));
        lines.extend(s.deaths.iter().map(|at| (*at, site, "the process ended".to_owned())));
    }
    lines.sort();
    for (at, site, line) in lines {
        println!("{:>12.6} {site} {line}", at.0 as f64 / 1e6);
    }
    println!("{:#?}", check(&scenario, &case));
}
