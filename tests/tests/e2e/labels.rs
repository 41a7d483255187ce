//! Security labels and clearances, as operators configure and users meet them.

use super::tshark::Decoded;
use super::{SOON, assert_arrived};
use std::fs;
use testbed::answer::{DeliveryReport, ReportedRecipient};
use testbed::{Pair, PeerSettings, Site};

const POLICY: &str = "1.3.26.0.4406.0.5.1";

/// The site's peer is cleared for these labels from now on.
fn clear_peer(site: &Site, labels: &str) {
    let text = fs::read_to_string(site.config()).unwrap();
    let kept = text.lines().filter(|line| !line.starts_with("clearance ="));
    let text: String = kept.map(|line| format!("{line}\n")).collect();
    let cleared = text.replace("mta_name =", &format!("clearance = {labels}\nmta_name ="));
    assert_ne!(cleared, text);
    fs::write(site.config(), cleared).unwrap();
    let reload = site.mta(&["reload"]).unwrap();
    assert_eq!(reload.code, 0, "{}", reload.stderr);
    assert!(reload.stdout.contains("clearance"), "{}", reload.stdout);
}

fn label(classification: &str) -> String {
    format!("{POLICY}/{classification}")
}

/// The one recipient of the one report that waits for OPS.
fn reported(site: &Site) -> ReportedRecipient {
    let received = site.receive("OPS", 1).unwrap();
    let reports: Vec<&DeliveryReport> = received.reports().collect();
    let [report] = reports[..] else { panic!("{received:?}") };
    let [recipient] = &report.recipients[..] else { panic!("{report:?}") };
    recipient.clone()
}

fn assert_violation(recipient: &ReportedRecipient) {
    assert!(!recipient.delivered);
    assert_eq!(recipient.reason.as_deref(), Some("transfer-failure-for-security-reason"));
    assert_eq!(recipient.diagnostic.as_deref(), Some("security-policy-violation"));
}

#[test]
fn a_label_goes_to_whom_is_cleared_for_it_and_no_further() {
    let mut pair = Pair::start(PeerSettings::default().on_demand("1s")).unwrap();
    let capture = pair.act.path().join("p1.pcapng");
    pair.act.stop().unwrap();
    pair.act.run_with(&["--pcap", &capture.display().to_string()]);
    pair.act.start().unwrap();
    let to = pair.act.address("OPS");
    let send = |label: &str| {
        pair.naples.xuxa("OPS", &["send", "--to", &to, "--size", "1kB", "--label", label, "--json"])
    };
    let sent = |label: &str| {
        let run = send(label).unwrap();
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.json::<testbed::answer::SendOutput>().unwrap().messages
    };

    // Naples lets Act have what is restricted.
    clear_peer(&pair.naples, &format!("[\"{}\", \"unlabelled\"]", label("restricted")));
    let restricted = sent(&label("restricted"));
    assert_arrived(&restricted, &pair.act.receive("OPS", 1).unwrap());
    sent(&label("secret"));
    assert_violation(&reported(&pair.naples));

    // Act takes from Naples only what is unclassified.
    clear_peer(&pair.act, &format!("[\"{}\"]", label("unclassified")));
    sent(&label("restricted"));
    assert_violation(&reported(&pair.naples));

    // The user himself.
    let text = fs::read_to_string(pair.naples.config()).unwrap();
    let user = pair.naples.address("OPS");
    let users =
        format!("\n[[clearance]]\naddress = \"{user}\"\nlabels = [\"{}\"]\n", label("restricted"));
    fs::write(pair.naples.config(), text + &users).unwrap();
    assert_eq!(pair.naples.mta(&["reload"]).unwrap().code, 0);
    let refused = send(&label("secret")).unwrap();
    assert_eq!(refused.code, 1, "{}", refused.stdout);
    assert!(refused.stderr.contains("security"), "{}", refused.stderr);
    assert_eq!(pair.act.receive_waiting("OPS").unwrap().deliveries.len(), 0);

    // What tshark reads of the labels that went over the line: not that of secret.
    let idle = |status: &testbed::answer::MtaStatus| status.associations().count() == 0;
    pair.act.wait_until("the release", SOON, idle).unwrap();
    let check: serde_json::Value = pair.act.mta(&["check", "--json"]).unwrap().json().unwrap();
    let listen = check["plan"]["channels"][0]["listen"][0].as_str().unwrap().to_owned();
    pair.act.stop().unwrap();
    let port = listen.rsplit_once(':').unwrap().1.parse().unwrap();
    let decoded = Decoded::from_capture(&capture, port);
    let first = decoded.values("p1.security_policy_identifier").first().map(ToString::to_string);
    assert_eq!(first.as_deref(), Some(POLICY));
    let classes = decoded.values("p1.security_classification");
    assert!(!classes.is_empty() && classes.iter().all(|class| *class == "2"), "{classes:?}");
}
