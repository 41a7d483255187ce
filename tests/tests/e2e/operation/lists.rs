//! A distribution list, from the verb that makes it to its members at two sites, with tshark reading the
//! copy and the report on the wire.

use super::SOON;
use crate::e2e::captures::port_of;
use crate::e2e::tshark::Decoded;
use std::path::PathBuf;
use testbed::{Pair, PeerSettings, Site};

fn list(site: &Site, arguments: &[&str]) -> (i32, String) {
    let run = site.mta(&[&["list"][..], arguments].concat()).unwrap();
    (run.code, run.stdout + &run.stderr)
}

/// From its next start on the daemon records its first P1 association.
fn record(site: &mut Site) -> PathBuf {
    let capture = site.path().join("p1.pcapng");
    site.run_with(&["--pcap", &capture.display().to_string()]);
    capture
}

fn decoded(capture: &std::path::Path, of: &Site) -> Decoded {
    Decoded::from_capture(capture, port_of(of).parse().unwrap())
}

#[test]
fn an_exempted_member_gets_nothing_and_the_others_get_it() {
    let mut site = Site::builder("naples").users(&["OPS", "LOG"]).build().unwrap();
    site.start().unwrap();
    let staff = site.address("STAFF");
    let (ops, log) = (site.address("OPS"), site.address("LOG"));
    assert_eq!(list(&site, &["add", &staff, "--member", &ops, "--member", &log]).0, 0);
    for (exempted, other) in [(&ops, "LOG"), (&log, "OPS")] {
        site.send("OPS", &["--to", &staff, "--size", "1kB", "--exempt", exempted]).unwrap();
        assert_eq!(site.receive(other, 1).unwrap().messages().count(), 1, "{other}");
        // Both copies are made by one commit.
        site.wait_until("nothing is for the exempted one", SOON, |s| s.waiting() == 0).unwrap();
    }
}

#[test]
fn a_list_reaches_its_members_and_its_reports_come_back_through_it() {
    // One way only, so that ACT must open an association of its own for its report.
    let peer = PeerSettings { monologue: true, ..PeerSettings::default() }.on_demand("1s");
    let mut pair = Pair::start(peer).unwrap();
    let staff = pair.naples.address("STAFF");
    let (ours, theirs) = (pair.naples.address("OPS"), pair.act.address("OPS"));
    let nobody = pair.naples.address("NOBODY");
    let add = ["add", &staff, "--member", &ours, "--member", &theirs, "--member", &nobody];
    assert_eq!(list(&pair.naples, &[&add[..], &["--dry-run"]].concat()).0, 0);
    assert!(list(&pair.naples, &["show"]).1.contains("there is no distribution list"));
    let (code, text) = list(&pair.naples, &add);
    assert!(code == 0 && text.contains("has 3 members"), "{text}");
    assert_eq!(list(&pair.naples, &add).0, 1, "it is there");
    let (code, text) = list(&pair.naples, &["add", &ours, "--member", &theirs]);
    assert!(code == 1 && text.contains("the address of a user"), "{text}");

    // Lists are in the store: a kill and a reload leave them as they are.
    pair.naples.kill().unwrap();
    let messages = record(&mut pair.naples);
    pair.naples.start().unwrap();
    assert_eq!(pair.naples.mta(&["reload"]).unwrap().code, 0);
    assert!(list(&pair.naples, &["show", &staff]).1.contains("NOBODY"));

    pair.naples.send("OPS", &["--to", &staff, "--size", "20kB"]).unwrap();
    let here = pair.naples.receive("OPS", 2).unwrap();
    assert_eq!((here.messages().count(), here.reports().count()), (1, 1), "and who is nobody's");
    // Nobody takes it at ACT, and its operator ends it.
    pair.act.wait_until("the member's copy", SOON, |s| s.waiting() == 1).unwrap();
    pair.act.stop().unwrap();
    let reports = record(&mut pair.act);
    pair.act.start().unwrap();
    let run = pair.act.mta(&["queue", "expire", "--all", "--yes"]).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(pair.naples.receive("OPS", 1).unwrap().reports().count(), 1);
    for site in [&pair.naples, &pair.act] {
        site.wait_until("nothing is queued", SOON, |s| s.waiting() == 0).unwrap();
    }
    assert_eq!(list(&pair.naples, &["remove", &staff]).0, 0);
    pair.naples.send("OPS", &["--to", &staff, "--size", "1kB"]).unwrap();
    assert_eq!(pair.naples.receive("OPS", 1).unwrap().reports().count(), 1, "nobody's address");
    pair.naples.stop().unwrap();
    pair.act.stop().unwrap();

    assert_eq!(decoded(&messages, &pair.act).count("p1.DLExpansion_element"), 1);
    let report = decoded(&reports, &pair.naples);
    assert_eq!(report.count("p1.report_element"), 1);
    assert_eq!(report.count("p1.OriginatorAndDLExpansion_element"), 2, "the originator, the list");
}

/// What a list passes on has left it; and who withdraws messages does not mean the reports about them.
#[test]
fn a_report_that_a_list_passed_on_has_an_end_and_reports_are_left_alone() {
    let pair = Pair::start(PeerSettings::default()).unwrap();
    let staff = pair.act.address("STAFF");
    let nobody = pair.act.address("NOBODY");
    assert_eq!(list(&pair.act, &["add", &staff, "--member", &nobody]).0, 0);
    let sent = pair.naples.send("OPS", &["--to", &staff, "--size", "1kB"]).unwrap();
    let sent = sent.messages[0].mts_identifier.clone();
    pair.naples.wait_until("the report", SOON, |s| s.counters.received == 1).unwrap();
    pair.act.wait_until("nothing is queued", SOON, |s| s.waiting() == 0).unwrap();

    let order = |arguments: &[&str]| {
        let run = pair.naples.mta(&[&["queue", "expire"], arguments].concat()).unwrap();
        (run.code, run.stdout + &run.stderr)
    };
    let (code, text) = order(&["--older", "0s", "--yes"]);
    assert!(code == 0 && text.contains("1 report is left alone"), "{text}");
    assert_eq!(pair.naples.receive("OPS", 1).unwrap().reports().count(), 1);

    let passed_on =
        |lines: &str| lines.contains("confirmed by naples") && !lines.contains("waits here");
    let trace = || {
        let found = pair.act.mta(&["trace", &sent, "--json"]).unwrap().stdout;
        // An event can be found half a second after it happened.
        let found: serde_json::Value = serde_json::from_str(&found).unwrap_or_default();
        let report = found["reports"][0]["mts_id"].as_str();
        report.map_or(found.to_string(), |id| pair.act.mta(&["trace", id]).unwrap().stdout)
    };
    let mut text = String::new();
    for _ in 0..300 {
        text = trace();
        if passed_on(&text) {
            return;
        }
    }
    panic!("{text}");
}
