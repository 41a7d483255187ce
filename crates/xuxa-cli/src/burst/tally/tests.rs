use super::*;
use crate::burst::schedule::messages;
use crate::submission::Disposition;

/// Two groups: three messages to one recipient, and one to two.
fn tally() -> Tally {
    let text = "to = \"/C=IT/ADMD=NET/S=A\"\n[[group]]\nname = \"a\"\nprecedence = \"routine\"\n\
                size = \"1kB\"\ncount = 3\n[[group]]\nname = \"b\"\nprecedence = \"flash\"\n\
                size = \"1kB\"\nto = [\"/C=IT/ADMD=NET/S=A\", \"/C=IT/ADMD=NET/S=B\"]\n";
    let plan = BurstPlan::read(text).unwrap();
    let planned = messages(&plan).unwrap();
    let users = ["A", "B"].map(recipient);
    Tally::new(&plan, planned, users.to_vec(), 0xABCD_0123)
}

fn event(mta: &str, kind: EventKind, id: &str, entry: &str, time_us: u64) -> MessageEvent {
    MessageEvent {
        time_us,
        mta: mta.to_owned(),
        kind,
        mts_identifier: id.to_owned(),
        entry: Some(entry.to_owned()),
        peer: Some("act".to_owned()),
        recipient: None,
    }
}

fn recipient(surname: &str) -> ORAddress {
    format!("/C=IT/ADMD=NET/S={surname}").parse().unwrap()
}

#[test]
fn recipients_are_counted_from_logs_and_from_our_own_users() {
    let mut tally = tally();
    tally.begins(3, 100, 1_200);
    tally.accepted(3, 120, "m3", 1);
    tally.taken(3, 0, 150, true);
    let to = |name: &str, at| MessageEvent {
        recipient: Some(format!("/c=it/admd=net/s={name}").parse().unwrap()),
        ..event("C", EventKind::Delivered, "m3", "4", at)
    };
    tally.event(to("a", 140));
    assert_eq!(tally.rows[3].delivered(), None, "the same recipient, from both sources");
    tally.event(to("b", 170));
    assert_eq!(tally.rows[3].delivered(), Some(170));
    tally.begins(0, 100, 1_200);
    let live: Vec<[u64; 5]> = tally.live.values().map(|running| running.counts).collect();
    assert_eq!(live, [[3, 1, 0, 0, 0], [1, 1, 1, 0, 1]]);
    let flash = &tally.live[&Precedence::Flash];
    assert_eq!(flash.times.quantiles().count, 1);
}

#[test]
fn deliveries_are_seen_where_the_logs_cover_the_whole_path() {
    let mut tally = tally();
    for (number, id) in [(0, "m0"), (1, "m1"), (2, "m2")] {
        tally.begins(number, 100, 1_200);
        tally.accepted(number, 120, id, 1);
        assert!(!tally.sees_deliveries(0), "no log knows of it");
    }
    for id in ["m0", "m1", "m2"] {
        tally.event(event("A", EventKind::Accepted, id, id, 110));
    }
    assert!(tally.sees_deliveries(0), "all are known to be at A still");
    for kind in [EventKind::TransferStarted, EventKind::TransferConfirmed] {
        tally.event(event("A", kind, "m0", "m0", 130));
    }
    assert!(!tally.sees_deliveries(0), "one has gone where no log is seen");
    tally.event(event("B", EventKind::Received, "m0", "1", 129));
    assert!(tally.sees_deliveries(0));
    for kind in [EventKind::TransferStarted, EventKind::TransferConfirmed] {
        tally.event(event("B", kind, "m0", "1", 140));
    }
    assert!(!tally.sees_deliveries(0), "further on");
    tally.event(event("D", EventKind::Delivered, "m1", "1", 150));
    assert!(tally.sees_deliveries(0), "the log of who delivers is seen: the others are missing");
}

#[test]
fn a_copy_that_was_routed_again_is_not_waited_for() {
    let mut tally = tally();
    tally.begins(0, 100, 1_200);
    tally.accepted(0, 120, "m0", 1);
    tally.event(event("A", EventKind::Accepted, "m0", "1", 110));
    tally.event(event("A", EventKind::TransferStarted, "m0", "1", 130));
    assert!(tally.rows[0].is_in_transfer());
    tally.event(event("A", EventKind::Rerouted, "m0", "1", 140));
    assert!(!tally.rows[0].is_in_transfer());
    assert_eq!(tally.rows[0].confirmed(), None);
    tally.event(event("A", EventKind::TransferStarted, "m0", "2", 150));
    tally.event(event("A", EventKind::TransferConfirmed, "m0", "2", 160));
    assert_eq!(tally.rows[0].confirmed(), Some(160));
    assert_eq!(tally.rows[0].started(), Some(130));
}

#[test]
fn a_message_is_followed_from_mta_to_mta() {
    let mut tally = tally();
    tally.assign(0, 0, Some(90));
    tally.begins(0, 100, 1_200);
    tally.accepted(0, 130, "m0", 1);
    for (mta, kind, at) in [
        ("A", EventKind::Accepted, 120),
        ("A", EventKind::TransferStarted, 140),
        ("B", EventKind::Received, 180),
        ("A", EventKind::TransferConfirmed, 190),
        // On to the next: neither start nor confirm of the first hop.
        ("B", EventKind::TransferStarted, 185),
        ("C", EventKind::Received, 220),
        ("B", EventKind::TransferConfirmed, 230),
        ("C", EventKind::Delivered, 260),
    ] {
        tally.event(event(mta, kind, "m0", "1", at));
    }
    let row = &tally.rows[0];
    assert_eq!(
        (row.due, row.submitted, row.accepted, row.answered),
        (Some(90), Some(100), Some(120), Some(130))
    );
    assert_eq!((row.started(), row.received, row.confirmed()), (Some(140), Some(180), Some(190)));
    assert_eq!(row.delivered(), Some(260));
    assert_eq!(row.sender_and_peer(), Some(("A", Some("act"))));
    assert!(!row.is_out_of_order());
}

#[test]
fn events_that_come_before_the_answer_are_kept_for_it() {
    let mut tally = tally();
    tally.event(event("A", EventKind::Accepted, "foreign", "1", 1));
    assert_eq!(tally.early.len(), 0, "no submission is in progress: the event is not ours");
    tally.begins(0, 100, 1_200);
    tally.begins(1, 100, 1_200);
    tally.event(event("A", EventKind::Accepted, "m1", "2", 110));
    tally.event(event("A", EventKind::Accepted, "m0", "1", 111));
    tally.event(event("A", EventKind::Accepted, "foreign", "3", 112));
    tally.accepted(0, 120, "m0", 1);
    assert_eq!((tally.rows[0].accepted, tally.early.len()), (Some(111), 2));
    tally.accepted(1, 121, "m1", 1);
    assert_eq!(tally.rows[1].accepted, Some(110));
    assert_eq!(tally.early.len(), 0, "the rest belongs to no message of this run");
    tally.begins(2, 130, 1_200);
    for n in 0..=early::MAX as u64 {
        tally.event(event("A", EventKind::Accepted, &format!("f{n}"), "1", n));
    }
    assert_eq!((tally.early.len(), tally.dropped), (early::MAX, 1));
}

#[test]
fn one_to_several_is_delivered_when_all_have_it() {
    let mut tally = tally();
    tally.begins(3, 100, 1_200);
    tally.accepted(3, 120, "m3", 1);
    for (entry, at) in [("1", 200), ("1", 210)] {
        tally.event(event("B", EventKind::Delivered, "m3", entry, at));
    }
    assert_eq!(tally.rows[3].delivered(), None, "the same copy, logged twice");
    assert!(!tally.has_reached(1, Stage::Delivered));
    tally.event(event("B", EventKind::Delivered, "m3", "2", 220));
    assert_eq!(tally.rows[3].delivered(), Some(220));
    assert!(tally.has_reached(1, Stage::Delivered));
    // Two copies to two peers: started with the first, confirmed with the last.
    for (entry, at) in [("7", 130), ("8", 150)] {
        tally.event(event("A", EventKind::TransferStarted, "m3", entry, at));
    }
    tally.event(event("A", EventKind::TransferConfirmed, "m3", "8", 170));
    assert_eq!((tally.rows[3].started(), tally.rows[3].confirmed()), (Some(130), None));
    tally.event(event("A", EventKind::TransferConfirmed, "m3", "7", 175));
    assert_eq!(tally.rows[3].confirmed(), Some(175));
}

#[test]
fn a_transfer_that_failed_counts_from_its_first_start() {
    let mut tally = tally();
    tally.begins(0, 100, 1_200);
    tally.accepted(0, 120, "m0", 1);
    for at in [130, 150] {
        tally.event(event("A", EventKind::TransferStarted, "m0", "1", at));
    }
    let row = &tally.rows[0];
    assert_eq!((row.started(), row.transfers[0].starts, row.confirmed()), (Some(130), 2, None));
}

#[test]
fn what_our_own_users_take_is_counted_without_logs() {
    let mut tally = tally();
    tally.begins(3, 100, 1_200);
    tally.taken(3, 0, 150, true);
    assert_eq!(tally.rows[3].delivered(), None);
    tally.taken(3, 0, 160, true);
    tally.taken(3, 1, 170, false);
    let row = &tally.rows[3];
    assert_eq!((row.delivered(), row.again, row.altered), (Some(170), 1, 1));
    assert_eq!(tally.by_content_identifier("ABCD012300000003"), Some(3));
    for other in ["ABCD012300000004", "ABCD012400000003", "", "é234567é90", "ABCD0123"] {
        assert_eq!(tally.by_content_identifier(other), None, "{other}");
    }
}

#[test]
fn a_stage_is_reached_by_what_comes_so_far_and_what_never_will() {
    let mut tally = tally();
    for number in 0..3 {
        tally.begins(number, 100, 1_200);
    }
    tally.accepted(0, 110, "m0", 1);
    tally.accepted(1, 111, "m1", 1);
    assert!(!tally.has_reached(0, Stage::Accepted));
    let reason = "no".to_owned();
    let (is_wrong_use, is_away) = (false, false);
    let failure =
        Failure { disposition: Disposition::Refused, tries: 1, reason, is_wrong_use, is_away };
    tally.failed(2, &failure);
    assert!(tally.has_reached(0, Stage::Accepted) && !tally.has_reached(0, Stage::Started));
    assert_eq!(tally.in_progress, 0);
    tally.event(event("A", EventKind::TransferStarted, "m0", "1", 120));
    tally.event(event("A", EventKind::NonDelivery, "m1", "2", 121));
    assert!(tally.has_reached(0, Stage::Started) && !tally.has_reached(0, Stage::Delivered));
    tally.taken(0, 0, 130, true);
    assert!(tally.has_reached(0, Stage::Delivered) && !tally.have_all_reached(Stage::Delivered));
    assert!(tally.is_incomplete(), "its acceptance and its confirm are not known yet");
    tally.event(event("A", EventKind::Accepted, "m0", "1", 109));
    tally.event(event("A", EventKind::TransferConfirmed, "m0", "1", 129));
    assert!(!tally.is_incomplete());
}

#[test]
fn clocks_that_differ_are_noticed() {
    let mut tally = tally();
    tally.begins(0, 100, 1_200);
    tally.accepted(0, 130, "m0", 1);
    tally.event(event("A", EventKind::Accepted, "m0", "1", 99));
    assert!(tally.rows[0].is_out_of_order());
}
