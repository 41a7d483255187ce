//! Memory that users and peers make a node hold: within the limits, and no longer than needed.

use node::config::Limits;
use node::event::Kind;
use osi::api::{Payload, Request};
use p1::flags::Priority;
use std::time::Duration;
use testkit::bench::{ACT_FLASH, ACT_ROUTINE, Outcome, ROME, two_peers, user_address};
use testkit::build::Submission;
use testkit::{Bench, Events};

fn bound(bench: &mut Bench, from: &str) -> base::AssociationId {
    let id = bench.user(from, "OPS", "secret");
    assert_eq!(bench.outcome(id), Outcome::Open);
    id
}

/// Sends 72,000 octets of content.
fn send_content(bench: &mut Bench, id: base::AssociationId) {
    (0..9).for_each(|_| bench.request(id, Request::Content(vec![0; 8_000].into())));
}

/// Begins a submission of OPS to this number of recipients, with a content of this length.
fn begin_submission(bench: &mut Bench, id: base::AssociationId, recipients: usize, length: u64) {
    submission_at(bench, id, Priority::Normal, recipients, length);
}

/// The same, with this priority.
fn submission_at(
    bench: &mut Bench,
    id: base::AssociationId,
    priority: Priority,
    recipients: usize,
    length: u64,
) {
    let to = (0..recipients).map(|n| user_address(&format!("U{n}")));
    let submission = Submission { priority, ..Submission::new(&user_address("OPS"), to) };
    bench.submit(id, &submission, length);
}

fn refused(bench: &Bench) -> Vec<&str> {
    bench.details(Kind::SubmissionRefused)
}

#[test]
fn memory_counts_parsed_recipients_and_all_associations_of_a_mailbox_together() {
    let mut bench = two_peers(Limits { memory_per_peer: 5 << 20, ..Limits::default() }, |_| {});
    let ids = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|from| bound(&mut bench, from));
    begin_submission(&mut bench, ids[0], 2_000, 100_000);
    send_content(&mut bench, ids[0]);
    let one = bench.node.holds().octets;
    assert!(one > 2_000 * 1_024, "{one}");
    begin_submission(&mut bench, ids[1], 2_000, 100_000);
    send_content(&mut bench, ids[1]);
    assert_eq!(bench.node.holds().octets, 2 * one);
    begin_submission(&mut bench, ids[2], 2_000, 100_000);
    send_content(&mut bench, ids[2]);
    let [why] = refused(&bench)[..] else { panic!("{:?}", refused(&bench)) };
    assert!(why.contains("limits.memory_per_peer"), "{why}");
    assert_eq!(bench.node.holds().octets, 2 * one);
    for id in ids {
        bench.close(id);
    }
    assert_eq!(bench.node.holds().octets, 0);
}

#[test]
fn memory_of_a_submission_is_counted_until_its_commit() {
    let mut bench = two_peers(Limits { memory_per_peer: 1 << 20, ..Limits::default() }, |_| {});
    bench.store.withholds = true;
    let id = bound(&mut bench, "192.0.2.1");
    begin_submission(&mut bench, id, 700, 3);
    bench.request(id, Request::Content(b"abc"[..].into()));
    let commit = bench.store.take_commit().expect("a commit");
    let held = bench.node.holds().octets;
    assert!(held > 700 * 1_024, "{held}");
    begin_submission(&mut bench, id, 700, 3);
    bench.request(id, Request::Content(b"abc"[..].into()));
    assert!(refused(&bench)[0].contains("limits.memory_per_peer"), "{:?}", refused(&bench));
    bench.finish_commit(commit, Ok(()));
    assert_eq!(bench.node.holds().octets, 0);
    begin_submission(&mut bench, id, 700, 3);
    bench.request(id, Request::Content(b"abc"[..].into()));
    let commit = bench.store.take_commit().expect("memory is free again");
    bench.finish_commit(commit, Err("full".to_owned()));
    assert_eq!(bench.node.holds().octets, 0);
}

#[test]
fn a_user_who_sends_an_argument_too_slowly_is_aborted() {
    let mut bench = two_peers(Limits::default(), |_| {});
    let minute = Duration::from_secs(60);
    let [slow, steady] = ["192.0.2.1", "192.0.2.2"].map(|from| bound(&mut bench, from));
    bench.withheld.insert(slow, Vec::new());
    begin_submission(&mut bench, slow, 4_000, 1 << 20);
    begin_submission(&mut bench, steady, 1, 1 << 20);
    let octets = bench.withheld.remove(&slow).unwrap();
    for octet in octets[..].chunks(100).take(4) {
        if bench.outcome(slow) == Outcome::Open {
            bench.send(slow, octet);
        }
        send_content(&mut bench, steady);
        bench.pass(minute);
    }
    assert!(matches!(bench.outcome(slow), Outcome::Aborted(_)), "{:?}", bench.outcome(slow));
    assert_eq!(bench.outcome(steady), Outcome::Open);
    let lost = bench.first(Kind::AssociationLost).1;
    assert!(lost.detail.contains("an argument did not come in time"), "{lost:?}");
}

#[test]
fn limits_envelope_applies_to_submissions() {
    let mut bench = two_peers(Limits { envelope: 20_000, ..Limits::default() }, |_| {});
    let id = bound(&mut bench, "192.0.2.1");
    for recipients in [100, 1_000] {
        assert!(refused(&bench).is_empty(), "{:?}", refused(&bench));
        begin_submission(&mut bench, id, recipients, 1);
        bench.request(id, Request::Content(b"x"[..].into()));
    }
    assert_eq!(refused(&bench).len(), 1);
}

#[test]
fn deferred_messages_are_not_counted_as_waiting() {
    let mut bench = two_peers(Limits::default(), |_| {});
    let id = bound(&mut bench, "192.0.2.1");
    let day = Duration::from_secs(86_400);
    let deferred = Some(bench.clock().utc + day);
    let ops = user_address("OPS");
    let submission = Submission { deferred, ..Submission::new(&ops, [ops.clone()]) };
    bench.submit(id, &submission, 3);
    bench.request(id, Request::Content(b"abc"[..].into()));
    assert_eq!(bench.count(Kind::Submitted), 1);
    bench.close(id);
    let early = bound(&mut bench, "192.0.2.1");
    assert_eq!(bench.messages_waiting(early), 0);
    bench.close(early);
    bench.pass(day + Duration::from_secs(1));
    let due = bound(&mut bench, "192.0.2.1");
    assert_eq!(bench.messages_waiting(due), 1);
}

#[test]
fn a_removed_user_or_one_with_a_new_password_is_unbound() {
    let mut bench = two_peers(Limits::default(), |_| {});
    let [one, two] = ["192.0.2.1", "192.0.2.2"].map(|from| bound(&mut bench, from));
    let ops = engine::canonical(&user_address("OPS").parse().unwrap());
    let (addresses, changed) = (vec![ops.clone()], vec!["somebody else".to_owned()]);
    bench.feed(node::Input::Mailboxes { addresses, stored: Default::default(), changed });
    bench.settle();
    assert_eq!(bench.outcome(one), Outcome::Open, "another user changed");
    bench.verifies = false;
    let late = bench.user("192.0.2.3", "OPS", "secret");
    bench.feed(node::Input::Mailboxes {
        addresses: Vec::new(),
        stored: Default::default(),
        changed: vec![ops],
    });
    bench.verifies = true;
    bench.settle();
    for id in [one, two] {
        assert!(matches!(bench.outcome(id), Outcome::Aborted(_)), "{:?}", bench.outcome(id));
    }
    let late = bench.outcome(late);
    assert_eq!(
        late,
        Outcome::Refused("authentication-error".to_owned()),
        "checked against the old password"
    );
    let lost = bench.of_kind(Kind::AssociationLost);
    let unbound = lost.filter(|e| e.detail.contains("the user is gone, or has another password"));
    assert_eq!(unbound.count(), 2);
}

#[test]
fn transfers_of_two_peers_with_the_same_connection_identifier_are_kept_apart() {
    let mut bench = two_peers(Limits::default(), |_| {});
    let peers = [(ACT_FLASH, "192.0.2.10", "MTA-ACT"), (ROME, "198.51.100.7", "MTA-ROME")]
        .map(|(listener, from, name)| bench.mta(listener, from, name, "theirs"));
    for id in peers {
        begin_transfer(&mut bench, id, 9_000);
        assert_eq!(bench.outcome(id), Outcome::Open);
    }
    let held = bench.node.holds().octets;
    assert!(held > 8_000, "{held}");
    for id in peers {
        bench.feed(node::Input::Closed { association: id, error: Some("reset".to_owned()) });
    }
    assert_eq!(bench.node.holds().octets, held, "both may be recovered");
    bench.pass(Duration::from_secs(601));
    assert_eq!(bench.node.holds().octets, 0);
}

const THERE: &str = "192.0.2.10";

/// The peer binds, and loses its association within a transfer.
fn cut_off(bench: &mut Bench) {
    let id = bench.mta(ACT_FLASH, THERE, "MTA-ACT", "theirs");
    begin_transfer(bench, id, 9_000);
    assert_eq!(bench.outcome(id), Outcome::Open);
    bench.feed(node::Input::Closed { association: id, error: Some("reset".to_owned()) });
}

/// Asks for a recovery; whether it was granted.
fn recovers(bench: &mut Bench, from: &str, is_right: bool) -> bool {
    let id = bench.recovery(ACT_FLASH, from, is_right);
    bench.outcome(id) == Outcome::Open
}

/// A recovery has no password: its name is what there is, and that of a peer can be guessed.
#[test]
fn the_name_of_a_lost_association_cannot_be_guessed_for_long_until_the_peer_binds() {
    let mut bench = two_peers(Limits::default(), |_| {});
    cut_off(&mut bench);
    (0..15).for_each(|_| assert!(!recovers(&mut bench, THERE, false)));
    assert!(recovers(&mut bench, THERE, true), "a few wrong ones");
    let mut bench = two_peers(Limits::default(), |_| {});
    cut_off(&mut bench);
    (0..16).for_each(|_| assert!(!recovers(&mut bench, THERE, false)));
    assert!(!recovers(&mut bench, THERE, true), "guessed");
    cut_off(&mut bench);
    assert!(recovers(&mut bench, THERE, true), "bound since");
}

/// Who cannot be given the association does not keep the peer from it.
#[test]
fn wrong_names_from_elsewhere_or_while_nothing_is_lost_do_not_count() {
    let mut bench = two_peers(Limits::default(), |_| {});
    (0..40).for_each(|_| assert!(!recovers(&mut bench, THERE, false)));
    cut_off(&mut bench);
    for from in ["192.0.2.11", "198.51.100.7"] {
        (0..40).for_each(|_| assert!(!recovers(&mut bench, from, false)));
    }
    assert!(recovers(&mut bench, THERE, true));
}

/// Sends the first octets of an envelope of 66,000.
fn begin_transfer(bench: &mut Bench, id: base::AssociationId, octets: usize) {
    let head = [0xa0, 0x83, 1, 1, 0xcb, 0x31, 0x83, 1, 1, 0xc6, 0x9f, 0x7f, 0x83, 1, 1, 0xbf];
    let mut begun = head.to_vec();
    begun.resize(octets, 0);
    let tail = bytes::Bytes::new();
    let payload = Payload { head: begun.into(), content_length: 66_000 - octets as u64, tail };
    bench.request(id, Request::Transfer { payload, resume: None });
}

#[test]
fn stalled_transfers_of_a_low_channel_leave_memory_for_a_high_channel() {
    use base::Precedence::{Flash, Override, Routine};
    let limits = Limits { memory_per_peer: 1 << 20, envelope: 128 << 10, ..Limits::default() };
    let mut bench = two_peers(limits, |config| {
        let channels = &mut config.peers[0].channels;
        channels[0].precedences = vec![Routine];
        channels[1].precedences = vec![Flash, Override];
    });
    for _ in 0..24 {
        let id = bench.mta(ACT_ROUTINE, "192.0.2.10", "MTA-ACT", "theirs");
        begin_transfer(&mut bench, id, 60_000);
    }
    let failed = |bench: &Bench| bench.count(Kind::ReceiveFailed);
    assert_eq!(failed(&bench), 24 - 13, "twelve sixteenths, and the beginning of one more");
    for _ in 0..2 {
        let id = bench.mta(ACT_FLASH, "192.0.2.10", "MTA-ACT", "theirs");
        begin_transfer(&mut bench, id, 60_000);
        assert!(!bench.has_failed(id), "{:?}", bench.events.last());
    }
}

/// The memory of its level decides whether an unfinished submission is refused.
#[test]
fn stalled_routine_submissions_leave_memory_for_flash_and_override() {
    let mut bench = two_peers(Limits::default(), |_| {});
    for _ in 0..12 {
        let id = bound(&mut bench, "192.0.2.1");
        submission_at(&mut bench, id, Priority::NonUrgent, 5_500, 100_000);
        send_content(&mut bench, id);
    }
    assert!(!refused(&bench).is_empty(), "they have used all memory of their level");
    let why = refused(&bench)[0].to_owned();
    assert!(why.contains("of which 16777216 are kept for higher levels"), "{why}");
    let before = refused(&bench).len();
    let id = bound(&mut bench, "192.0.2.1");
    submission_at(&mut bench, id, Priority::Urgent, 1_000, 3);
    bench.request(id, Request::Content(b"abc"[..].into()));
    assert_eq!(refused(&bench).len(), before, "{:?}", refused(&bench));
    assert_eq!(bench.count(Kind::Submitted), 1);
}
