//! `lab run`, loads: made in the process of the routers, with paths that are probed and clocks that
//! drift, in either environment.

use super::namespace;
use super::study::{lab, numbers};
use serde_json::Value;

/// A flow whose receiver's clock is wrong, over a slow line, alone and beside a flood.
const STUDY: &str = r#"
title = "Loads for a test"
network.topology = "pair"

[[experiment]]
name = "loads"
title = "A flow and a flood"
shows = "What is lost, and what a clock does."
[[experiment.run]]
name = "alone"
limit = "30s"
loads = [
    { name = "flow", from = "alice", to = "bob", port = 5001, rate = "400kbit", payload = 500, time = "1s", probing = "2s", clock = { ahead_ms = -50.0, drift_ppm = 2000.0 } },
]
[[experiment.run]]
name = "flooded"
limit = "30s"
loads = [
    { name = "flow", from = "alice", to = "bob", rate = "400kbit", payload = 500, time = "1s" },
    { name = "flood", from = "alice", to = "bob", rate = "30Mbit", inside = true, dscp = "CS1" },
]

[[over_time]]
number = 1
title = "delay"
value = "delay_ms"
items = [["alone", "loads/alone/flow"]]
"#;

fn check(results: &Value, environment: &str) {
    let row = |item: &str| {
        let rows = results["rows"].as_array().unwrap();
        rows.iter().find(|row| row["item"] == item).unwrap().clone()
    };
    let number =
        |of: &Value, key: &str| of[key].as_f64().unwrap_or_else(|| panic!("{key}: {of:#}"));
    let flow = row("loads/alone/flow");
    assert_eq!(flow["environment"], environment);
    // Without the correction, it would arrive 50 ms before it was sent, and be reported as 0.
    let skew = &flow["skew"];
    let removed = &skew["removed"];
    assert!((number(removed, "offset_ms") + 50.0).abs() < 10.0, "{flow:#}");
    assert!((number(removed, "drift_ppm") - 2_000.0).abs() < 1_500.0, "{flow:#}");
    assert!(number(&skew["least_squares"], "drift_ppm").is_finite(), "{flow:#}");
    assert!(number(&flow, "delay_ms") < 30.0, "{flow:#}");
    assert_eq!(number(&flow, "loss_percent"), 0.0);
    let measured = &results["measured"][0]["loads"][0];
    assert!(measured["delay_over_time"].as_array().unwrap().len() >= 4, "{measured}");

    // The line takes a third of the flood.
    let flood = row("loads/flooded/flood");
    assert!((50.0..80.0).contains(&number(&flood, "loss_percent")), "{flood:#}");
    assert_eq!(flood["inside"].as_bool().unwrap_or(false), environment == "testbed", "{flood:#}");
    assert_eq!(flood["dscp_name"], "CS1");
    assert!(number(&row("loads/flooded/flow"), "loss_percent") > 5.0);
}

#[test]
fn loads_are_made_and_clocks_are_found_on_testbed_and_in_simulation() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("study.toml"), STUDY).unwrap();
    let run = |more: &[&str]| {
        let arguments = ["run", "study.toml", "--json", "-", "--quiet"];
        numbers(&lab(directory.path(), &[&arguments[..], more].concat()).output().unwrap())
    };
    check(&run(&["--simulation", "--out", "virtual"]), "simulation");
    assert!(directory.path().join("virtual/pictures/figure-01.svg").exists());
    if namespace("loads_are_made").is_none() {
        return;
    }
    let results = run(&["--scale", "0.5", "--out", "real"]);
    check(&results, "testbed");
    assert_eq!(results["rows"][0]["scale"], 0.5);
}
