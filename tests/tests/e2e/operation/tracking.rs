//! What an operator sees of a message afterwards: `mta trace` and `mta report`, while the daemon runs, after
//! a kill and while it is stopped.

use super::SOON;
use serde_json::Value;
use testbed::{Pair, PeerSettings, Site};

fn json(site: &Site, arguments: &[&str]) -> Value {
    let run = site.mta(arguments).unwrap();
    assert_eq!(run.code, 0, "{arguments:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// The way of a message once all of it is known: it is stored half a second after it happened.
fn way(site: &Site, id: &str, reports: usize) -> Value {
    let mut found = Value::Null;
    let is_whole = |way: &Value| {
        let its = way["reports"].as_array().map_or(0, Vec::len);
        way["outcome"]["waiting"] == 0
            && its == reports
            && (0..its).all(|n| way["reports"][n]["outcome"]["waiting"] == 0)
    };
    site.wait_until("the way is tracked", SOON, |_| {
        let run = site.mta(&["trace", "--json", id]).unwrap();
        found = serde_json::from_str(&run.stdout).unwrap_or_default();
        is_whole(&found)
    })
    .unwrap_or_else(|error| panic!("{error}: {found:#}"));
    found
}

fn kinds(way: &Value) -> Vec<&str> {
    way["steps"].as_array().unwrap().iter().map(|step| step["event"].as_str().unwrap()).collect()
}

#[test]
fn a_message_and_its_report_are_traced_on_both_sides() {
    let mut pair = Pair::start(PeerSettings::default()).unwrap();
    let (to, nobody) = (pair.act.address("OPS"), pair.act.address("NOBODY"));
    let arguments = ["--to", &to, "--to", &nobody, "--size", "1kB", "--precedence", "flash"];
    let sent = pair.naples.send("OPS", &arguments).unwrap();
    let id = sent.messages[0].mts_identifier.clone();
    assert_eq!(pair.act.receive("OPS", 1).unwrap().messages().count(), 1);
    assert_eq!(pair.naples.receive("OPS", 1).unwrap().deliveries.len(), 1, "the report");

    let there = way(&pair.act, &id, 1);
    let here = way(&pair.naples, &id, 1);
    assert_eq!(kinds(&here), ["submitted", "transfer_started", "transfer_confirmed"]);
    assert_eq!(kinds(&here["reports"][0]), ["received", "delivered"]);
    assert_eq!(here["recipient_count"], 2);
    assert_eq!(here["content_id"], sent.messages[0].content_identifier);
    assert_eq!(here["outcome"]["transferred"][0]["to"], "act");
    assert_eq!(here["reports"][0]["subject"], id);
    let reported = here["reports"][0]["steps"][0]["detail"].as_str().unwrap();
    assert!(reported.contains("/s=nobody not delivered (unable-to-transfer, unrec"), "{reported}");
    let words = here["outcome"]["words"].as_str().unwrap();
    assert!(words.ends_with("; reported as not delivered"), "{words}");
    let mut seen = kinds(&there);
    seen.sort_unstable();
    assert_eq!(seen, ["delivered", "non_delivery", "received", "report_made"]);
    assert_eq!(there["outcome"]["delivered"].as_array().unwrap().len(), 1);
    let made = ["report_made", "transfer_started", "transfer_confirmed"];
    assert_eq!(kinds(&there["reports"][0]), made);

    // What is durable is there after a kill, and what is written before a stop.
    pair.act.kill().unwrap();
    assert_eq!(json(&pair.act, &["trace", "--json", &id]), there);
    assert_eq!(pair.naples.stop().unwrap().code(), Some(0));
    assert_eq!(json(&pair.naples, &["trace", "--json", &id]), here);

    let text = pair.act.mta(&["trace", &id]).unwrap().stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let last =
        text.lines().skip_while(|line| !line.starts_with("Known here: delivered to")).count();
    assert!((1..=4).contains(&last), "its outcome comes last: {text}");
    assert_found_otherwise(&pair.act, &id, &here);
    assert_reported(&pair.naples);
}

/// Who does not know the identifier finds the message, too.
fn assert_found_otherwise(site: &Site, id: &str, way: &Value) {
    let (from, to) = (way["originator"].as_str().unwrap(), way["recipients"][0].as_str().unwrap());
    let content = way["content_id"].as_str().unwrap();
    for arguments in [
        &["--originator", from][..],
        &["--recipient", to, "--since", "1h"],
        &["--recipient", to, "--originator", from],
    ] {
        let list = json(site, &[&["trace", "--json"][..], arguments].concat());
        assert_eq!(list.as_array().unwrap().len(), 1, "{arguments:?}");
        assert_eq!(list[0]["mts_id"], id, "{arguments:?}");
    }
    assert_eq!(json(site, &["trace", "--json", content])["mts_id"], id);
    let list = json(site, &["trace", "--json", "--since", "1h"]);
    let entry = list[0]["entries"][0].as_str().unwrap();
    assert_eq!(json(site, &["trace", "--json", entry])["mts_id"], id);
    assert_eq!(json(site, &["trace", "--json", "--until", "1h"]), Value::Array(Vec::new()));
    let unknown = site.mta(&["trace", "[/C=XX/;1]"]).unwrap();
    assert_eq!(unknown.code, 1);
    assert!(unknown.stderr.contains("messages are tracked here since 2"), "{}", unknown.stderr);
}

fn assert_reported(site: &Site) {
    let page = site.path().join("report.html");
    let arguments = ["report", "--since", "1h", "--json", "--html", page.to_str().unwrap()];
    let figures = json(site, &arguments);
    let rows = figures["rows"].as_array().unwrap();
    let row = |peer: &str, what: &str| {
        let its = |row: &&Value| row["peer"] == peer && row[what].as_u64() > Some(0);
        rows.iter().find(its).unwrap_or_else(|| panic!("{peer}: {what}: {figures:#}"))
    };
    assert_eq!(row("act", "passed_on")["took"]["count"], 1);
    assert_eq!(row("(users)", "accepted")["accepted"], 1);
    assert_eq!(row("(mailboxes)", "passed_on")["passed_on"], 1, "the report");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("act") && !page.contains("http"), "{page}");
    let text = site.mta(&["report", "--since", "1h"]).unwrap().stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_site_that_tracks_nothing_names_the_section() {
    let mut site = Site::builder("naples").set("tracking.enabled", false).build().unwrap();
    site.start().unwrap();
    site.send("OPS", &["--to", &site.address("OPS"), "--size", "1kB"]).unwrap();
    let run = site.mta(&["trace", "--since", "1h"]).unwrap();
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("look at [tracking]"), "{}", run.stderr);
}
