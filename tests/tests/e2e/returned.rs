//! Contents that return with reports of non-delivery, and answers to probes, as users have them.

use super::SOON;
use super::store::Mailbox;
use super::tshark::Decoded;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use testbed::{Pair, PeerSettings, Site};

/// The one delivery that `xuxa receive` takes.
fn delivery(site: &Site) -> Value {
    let run = site.xuxa("OPS", &["--json", "receive", "--count", "1", "--timeout", "120"]).unwrap();
    let answer: Value = run.json().unwrap();
    let deliveries = answer["deliveries"].as_array().unwrap();
    assert_eq!(deliveries.len(), 1, "{answer}");
    deliveries[0].clone()
}

/// The report is of non-delivery and returns the content of this length and digest, which is kept in a file.
fn assert_returned(site: &Site, report: &Value, length: u64, sha256: &str) {
    assert_eq!(report["kind"], "report", "{report}");
    assert_eq!(report["recipients"][0]["delivered"], false, "{report}");
    assert_eq!(report["returned"]["length"], length, "{report}");
    assert_eq!(report["returned"]["sha256"], sha256);
    let file = site.path().join(report["returned"]["file"].as_str().unwrap());
    let kept = Sha256::digest(std::fs::read(file).unwrap());
    let kept: String = kept.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(kept, sha256, "the file is the content");
}

#[test]
fn ten_megabytes_return_octet_for_octet() {
    let pair = Pair::start(PeerSettings::default()).unwrap();
    let nobody = pair.act.address("NOBODY");
    let arguments = ["--to", &nobody, "--size", "10MB", "--return-content"];
    let sent = pair.naples.send("OPS", &arguments).unwrap().messages;
    let report = delivery(&pair.naples);
    assert_returned(&pair.naples, &report, sent[0].content_length, &sent[0].content_sha256);
    assert_eq!(report["recipients"][0]["diagnostic"], "unrecognised-OR-name");
    assert_eq!(report["recipients"][0]["supplementary"], "no such recipient here");

    // Who did not ask gets a report alone.
    pair.naples.send("OPS", &["--to", &nobody, "--size", "1kB"]).unwrap();
    assert_eq!(delivery(&pair.naples)["returned"], Value::Null);
    for site in [&pair.naples, &pair.act] {
        site.wait_until("nothing is queued", SOON, |s| s.waiting() == 0).unwrap();
    }
}

#[test]
fn tshark_reads_the_report_and_its_content() {
    // One way only, so that ACT must open an association of its own for its report.
    let peer = PeerSettings { monologue: true, ..PeerSettings::default() }.on_demand("1s");
    let mut pair = Pair::start(peer).unwrap();
    let to = pair.act.address("OPS");
    let arguments = ["--to", &to, "--size", "300kB", "--return-content", "--latest", "+40s"];
    let sent = pair.naples.send("OPS", &arguments).unwrap().messages;
    pair.act.wait_until("the message", SOON, |s| s.waiting() == 1).unwrap();
    pair.act.stop().unwrap();
    let capture = pair.act.path().join("p1.pcapng");
    pair.act.run_with(&["--pcap", &capture.display().to_string()]);
    pair.act.start().unwrap();
    // Nobody takes it there before its latest delivery time.
    let report = delivery(&pair.naples);
    let (length, sha256) = (sent[0].content_length, sent[0].content_sha256.clone());
    assert_returned(&pair.naples, &report, length, &sha256);
    assert_eq!(report["recipients"][0]["diagnostic"], "maximum-time-expired");
    pair.act.wait_until("the release", SOON, |s| s.associations().count() == 0).unwrap();
    pair.act.stop().unwrap();

    let port = super::captures::port_of(&pair.naples).parse().unwrap();
    let decoded = Decoded::from_capture(&capture, port);
    assert_eq!((decoded.count("p1.report_element"), decoded.count("p1.message_element")), (1, 0));
    assert_eq!(decoded.contents("p1.returned_content"), [(length, sha256)]);
    assert_eq!(decoded.values("p1.non_delivery_diagnostic_code"), ["5"]);
}

#[test]
fn a_message_store_keeps_a_returned_content() {
    let mailbox = Mailbox::new(&[]);
    let nobody = mailbox.site.address("NOBODY");
    let arguments = ["--json", "send", "--to", &nobody, "--size", "2MB", "--return-content"];
    let sent: Value = mailbox.site.xuxa("OPS", &arguments).unwrap().json().unwrap();
    let sent = &sent["messages"][0];
    mailbox.site.wait_until("the report", SOON, |s| s.counters.delivered == 1).unwrap();
    let fetched = mailbox.xuxa(&["fetch", "1"]);
    assert_eq!(fetched["content_length"], sent["content_length"]);
    assert_eq!(fetched["content_sha256"], sent["content_sha256"]);
    let read = mailbox.xuxa(&["read", "1"]);
    assert_eq!(read["recipients"][0]["diagnostic"], "unrecognised-OR-name");
    assert_eq!(read["kind"], "report");
    mailbox.xuxa(&["delete", "1"]);
}

#[test]
fn a_probe_waits_for_its_answer() {
    let pair = Pair::start(PeerSettings::default()).unwrap();
    let (ops, nobody) = (pair.act.address("OPS"), pair.act.address("NOBODY"));
    let probe = |arguments: &[&str]| {
        let all = [&["--json", "probe", "--wait", "60"], arguments].concat();
        let run = pair.naples.xuxa_beside("OPS", &all).unwrap().wait(SOON * 2).unwrap();
        (run.code, run.json_anyway::<Value>().unwrap())
    };
    let (code, answer) = probe(&["--to", &ops, "--size", "1MB"]);
    assert_eq!(code, 0, "{answer}");
    assert_eq!(answer["recipients"][0]["delivered"], true, "{answer}");
    let (code, answer) = probe(&["--to", &ops, "--to", &nobody]);
    assert_eq!(code, 3, "{answer}");
    let outcomes = answer["recipients"].as_array().unwrap();
    let failed: Vec<_> = outcomes.iter().filter(|line| line["delivered"] == false).collect();
    assert_eq!((outcomes.len(), failed.len()), (2, 1), "{answer}");
    assert_eq!(failed[0]["diagnostic"], "unrecognised-OR-name");
    // Beyond what the MTA accepts.
    let (code, answer) = probe(&["--to", &ops, "--size", "5GiB"]);
    assert_eq!(code, 3, "{answer}");
    assert_eq!(answer["recipients"][0]["diagnostic"], "content-too-long", "{answer}");
    assert_eq!(
        pair.act.receive_waiting("OPS").unwrap().deliveries.len(),
        0,
        "a probe is not delivered"
    );
}
