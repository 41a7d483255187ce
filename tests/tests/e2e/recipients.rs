//! Many recipients: one copy for each next hop, and reports to the originator.

use super::{SOON, assert_same, is_address};
use testbed::answer::DeliveryReport;
use testbed::{Pair, PeerSettings, Site};

fn pair_with_two_users_each() -> Pair {
    Pair::builder(PeerSettings::default())
        .unwrap()
        .each(|site| site.users(&["OPS", "LOG"]))
        .start()
        .unwrap()
}

/// The only line of a report.
fn line(report: &DeliveryReport) -> &testbed::answer::ReportedRecipient {
    assert_eq!(report.recipients.len(), 1, "{report:?}");
    &report.recipients[0]
}

fn is_about(line: &testbed::answer::ReportedRecipient, site: &Site, user: &str) -> bool {
    is_address(&line.recipient, &site.address(user))
}

#[test]
fn one_copy_goes_to_each_next_hop_and_each_recipient_gets_one() {
    let pair = pair_with_two_users_each();
    let (naples, act) = (&pair.naples, &pair.act);
    let (a, b, c) = (act.address("OPS"), act.address("LOG"), naples.address("LOG"));
    let unknown = act.address("NOBODY");
    let sent = naples
        .send("OPS", &["--to", &a, "--copy", &b, "--to", &c, "--to", &unknown, "--size", "10kB"])
        .unwrap();
    let sent = &sent.messages[0];
    for (site, user) in [(act, "OPS"), (act, "LOG"), (naples, "LOG")] {
        let received = site.receive(user, 1).unwrap();
        let message = received.messages().next().expect("a message");
        assert_eq!(message.mts_identifier, sent.mts_identifier);
        assert_same(sent, message);
        assert_eq!(site.receive_waiting(user).unwrap().deliveries.len(), 0, "{user}: only one");
    }
    // The unknown one is ACT's affair: its report comes back over P1.
    let received = naples.receive("OPS", 1).unwrap();
    let report = received.reports().next().expect("a report");
    assert_eq!(report.mts_identifier, sent.mts_identifier);
    assert_eq!(report.content_identifier.as_deref(), Some(&*sent.content_identifier));
    let line = line(report);
    assert!(is_about(line, act, "NOBODY"), "{line:?}");
    assert!(!line.delivered);
    assert_eq!(line.reason.as_deref(), Some("unable-to-transfer"));
    assert_eq!(line.diagnostic.as_deref(), Some("unrecognised-OR-name"));

    let done = naples.wait_until("confirms", SOON, |s| s.counters.transferred == 1);
    let at_naples = done.unwrap().counters;
    assert_eq!(at_naples.submitted, 1, "three recipients at ACT share one copy");
    assert_eq!(at_naples.received, 1, "the report");
    let at_act =
        act.wait_until("confirms", SOON, |s| s.counters.transferred == 1).unwrap().counters;
    assert_eq!((at_act.received, at_act.delivered, at_act.reports_made), (1, 2, 1));
}

#[test]
fn nobody_here_and_nowhere_to_go_are_both_reported() {
    let pair = pair_with_two_users_each();
    let naples = &pair.naples;
    for to in [naples.address("NOBODY"), "/C=US/ADMD=ELSEWHERE/S=OPS".to_owned()] {
        let sent = naples.send("OPS", &["--to", &to, "--size", "1kB"]).unwrap();
        let received = naples.receive("OPS", 1).unwrap();
        let report = received.reports().next().expect("a report");
        assert_eq!(report.mts_identifier, sent.messages[0].mts_identifier);
        let line = line(report);
        assert!(is_address(&line.recipient, &to), "{line:?}");
        assert!(!line.delivered);
        assert_eq!(line.reason.as_deref(), Some("unable-to-transfer"), "{to}");
        assert_eq!(line.diagnostic.as_deref(), Some("unrecognised-OR-name"), "{to}");
    }
}

#[test]
fn reports_come_as_they_were_asked_for() {
    let pair = pair_with_two_users_each();
    let (naples, act) = (&pair.naples, &pair.act);
    let to = act.address("OPS");
    let sent = naples.send("OPS", &["--to", &to, "--size", "1kB", "--report", "delivery"]).unwrap();
    assert_eq!(act.receive("OPS", 1).unwrap().messages().count(), 1);
    let received = naples.receive("OPS", 1).unwrap();
    let report = received.reports().next().expect("a report");
    assert_eq!(report.mts_identifier, sent.messages[0].mts_identifier);
    let line = line(report);
    assert!(line.delivered && is_about(line, act, "OPS"), "{line:?}");
    assert!(line.delivery_time.as_deref().is_some_and(|time| time.ends_with('Z')), "{line:?}");

    // Not asked for: delivered without a word, and lost on an unknown one without a word.
    for (user, report) in [("OPS", "non-delivery"), ("NOBODY", "none")] {
        let to = act.address(user);
        naples.send("OPS", &["--to", &to, "--size", "1kB", "--report", report]).unwrap();
    }
    assert_eq!(act.receive("OPS", 1).unwrap().messages().count(), 1);
    act.wait_until("both dealt with", SOON, |s| s.counters.received == 3).unwrap();
    // A message sent later and delivered overtakes nothing that would still be in transit.
    let last = act.send("OPS", &["--to", &naples.address("OPS"), "--size", "1kB"]).unwrap();
    let received = naples.receive("OPS", 1).unwrap();
    assert_eq!(received.reports().count(), 0, "no report was asked for");
    assert_eq!(received.messages().next().unwrap().mts_identifier, last.messages[0].mts_identifier);
}
