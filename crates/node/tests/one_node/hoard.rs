//! What users make a node hold, in memory and in time: within the limits, and no longer than needed.

use crate::rig::{ACT_FLASH, ACT_ROUTINE, Outcome, ROME, Rig, user_address};
use node::config::Limits;
use node::event::Kind;
use osi::api::{Payload, Request};
use std::time::Duration;

fn bound(rig: &mut Rig, from: &str) -> base::AssociationId {
    let id = rig.user(from, "OPS", "secret");
    assert_eq!(rig.outcome(id), Outcome::Open);
    id
}

/// 72,000 octets of content.
fn give(rig: &mut Rig, id: base::AssociationId) {
    (0..9).for_each(|_| rig.request(id, Request::Content(vec![0; 8_000].into())));
}

fn refused(rig: &Rig) -> Vec<&str> {
    let of = rig.events.iter().filter(|e| e.kind == Kind::SubmissionRefused);
    of.map(|e| e.detail.as_str()).collect()
}

#[test]
fn a_recipient_counts_as_what_it_takes_once_parsed_and_a_mailbox_as_one() {
    let mut rig = Rig::new(Limits { memory_per_peer: 5 << 20, ..Limits::default() });
    let ids = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|from| bound(&mut rig, from));
    rig.begin_submission(ids[0], 2_000, 100_000);
    give(&mut rig, ids[0]);
    let one = rig.node.holds().octets;
    assert!(one > 2_000 * 1_024, "{one}");
    rig.begin_submission(ids[1], 2_000, 100_000);
    give(&mut rig, ids[1]);
    assert_eq!(rig.node.holds().octets, 2 * one);
    rig.begin_submission(ids[2], 2_000, 100_000);
    give(&mut rig, ids[2]);
    let [why] = refused(&rig)[..] else { panic!("{:?}", refused(&rig)) };
    assert!(why.contains("limits.memory_per_peer"), "{why}");
    assert_eq!(rig.node.holds().octets, 2 * one);
    for id in ids {
        rig.feed(node::Input::Closed { association: id, error: None });
    }
    assert_eq!(rig.node.holds().octets, 0);
}

#[test]
fn what_is_being_committed_is_held_until_it_is() {
    let mut rig = Rig::new(Limits { memory_per_peer: 1 << 20, ..Limits::default() });
    rig.commits = false;
    let id = bound(&mut rig, "192.0.2.1");
    rig.begin_submission(id, 700, 3);
    rig.request(id, Request::Content(b"abc"[..].into()));
    let token = rig.uncommitted.pop().expect("a commit");
    let held = rig.node.holds().octets;
    assert!(held > 700 * 1_024, "{held}");
    rig.begin_submission(id, 700, 3);
    rig.request(id, Request::Content(b"abc"[..].into()));
    assert!(refused(&rig)[0].contains("limits.memory_per_peer"), "{:?}", refused(&rig));
    rig.feed(node::Input::Committed { token, result: Ok(()) });
    assert_eq!(rig.node.holds().octets, 0);
    rig.begin_submission(id, 700, 3);
    rig.request(id, Request::Content(b"abc"[..].into()));
    let token = rig.uncommitted.pop().expect("room again");
    rig.feed(node::Input::Committed { token, result: Err("full".to_owned().into()) });
    assert_eq!(rig.node.holds().octets, 0);
}

#[test]
fn who_dawdles_over_an_argument_is_not_waited_for() {
    let mut rig = Rig::new(Limits::default());
    let minute = Duration::from_secs(60);
    let [slow, steady] = ["192.0.2.1", "192.0.2.2"].map(|from| bound(&mut rig, from));
    rig.slow.insert(slow, Vec::new());
    rig.begin_submission(slow, 4_000, 1 << 20);
    rig.begin_submission(steady, 1, 1 << 20);
    let octets = rig.slow.remove(&slow).unwrap();
    for octet in octets[..].chunks(100).take(4) {
        if rig.outcome(slow) == Outcome::Open {
            rig.say(slow, octet);
        }
        give(&mut rig, steady);
        rig.pass(minute);
    }
    assert!(matches!(rig.outcome(slow), Outcome::Aborted(_)), "{:?}", rig.outcome(slow));
    assert_eq!(rig.outcome(steady), Outcome::Open);
    let lost = rig.events.iter().find(|e| e.kind == Kind::AssociationLost).expect("a line");
    assert!(lost.detail.contains("an argument did not come in time"), "{lost:?}");
}

#[test]
fn limits_envelope_is_for_submissions_too() {
    let mut rig = Rig::new(Limits { envelope: 20_000, ..Limits::default() });
    let id = bound(&mut rig, "192.0.2.1");
    for recipients in [100, 1_000] {
        assert!(refused(&rig).is_empty(), "{:?}", refused(&rig));
        rig.begin_submission(id, recipients, 1);
        rig.request(id, Request::Content(b"x"[..].into()));
    }
    assert_eq!(refused(&rig).len(), 1);
}

#[test]
fn what_is_deferred_is_not_said_to_wait() {
    let mut rig = Rig::new(Limits::default());
    let id = bound(&mut rig, "192.0.2.1");
    let day = Duration::from_secs(86_400);
    rig.deferred = Some(rig.clock().utc + day);
    rig.begin_submission(id, 1, 3);
    rig.request(id, Request::Content(b"abc"[..].into()));
    assert_eq!(rig.events.iter().filter(|e| e.kind == Kind::Submitted).count(), 1);
    rig.feed(node::Input::Closed { association: id, error: None });
    let early = bound(&mut rig, "192.0.2.1");
    assert_eq!(rig.waiting(early), 0);
    rig.feed(node::Input::Closed { association: early, error: None });
    rig.pass(day + Duration::from_secs(1));
    let due = bound(&mut rig, "192.0.2.1");
    assert_eq!(rig.waiting(due), 1);
}

#[test]
fn a_user_removed_or_with_another_password_is_bound_no_more() {
    let mut rig = Rig::new(Limits::default());
    let [one, two] = ["192.0.2.1", "192.0.2.2"].map(|from| bound(&mut rig, from));
    let ops = engine::canonical(&user_address("OPS").parse().unwrap());
    let (addresses, changed) = (vec![ops.clone()], vec!["somebody else".to_owned()]);
    rig.feed(node::Input::Mailboxes { addresses, changed });
    rig.run();
    assert_eq!(rig.outcome(one), Outcome::Open, "not concerned");
    rig.verifies = false;
    let late = rig.user("192.0.2.3", "OPS", "secret");
    rig.feed(node::Input::Mailboxes { addresses: Vec::new(), changed: vec![ops] });
    rig.verifies = true;
    rig.run();
    for id in [one, two] {
        assert!(matches!(rig.outcome(id), Outcome::Aborted(_)), "{:?}", rig.outcome(id));
    }
    let late = rig.outcome(late);
    assert_eq!(late, Outcome::Refused("authentication-error".to_owned()), "checked by the old one");
    let lost = rig.events.iter().filter(|e| e.kind == Kind::AssociationLost);
    let told = lost.filter(|e| e.detail.contains("the user is gone, or has another password"));
    assert_eq!(told.count(), 2);
}

#[test]
fn two_peers_that_chose_one_name_do_not_lose_each_other_s_transfers() {
    let mut rig = Rig::new(Limits::default());
    let peers = [(ACT_FLASH, "192.0.2.10", "MTA-ACT"), (ROME, "198.51.100.7", "MTA-ROME")]
        .map(|(listener, from, name)| rig.mta(listener, from, name, "theirs"));
    for id in peers {
        begin_transfer(&mut rig, id, 9_000);
        assert_eq!(rig.outcome(id), Outcome::Open);
    }
    let held = rig.node.holds().octets;
    assert!(held > 8_000, "{held}");
    for id in peers {
        rig.feed(node::Input::Closed { association: id, error: Some("reset".to_owned()) });
    }
    assert_eq!(rig.node.holds().octets, held, "both may be recovered");
    rig.pass(Duration::from_secs(601));
    assert_eq!(rig.node.holds().octets, 0);
}

/// The first octets of an envelope of 66,000.
fn begin_transfer(rig: &mut Rig, id: base::AssociationId, octets: usize) {
    let head = [0xa0, 0x83, 1, 1, 0xcb, 0x31, 0x83, 1, 1, 0xc6, 0x9f, 0x7f, 0x83, 1, 1, 0xbf];
    let mut begun = head.to_vec();
    begun.resize(octets, 0);
    let tail = bytes::Bytes::new();
    let payload = Payload { head: begun.into(), content_length: 66_000 - octets as u64, tail };
    rig.request(id, Request::Transfer { payload, resume: None });
}

#[test]
fn transfers_that_stall_on_a_low_channel_leave_memory_to_the_high_one() {
    use base::Precedence::{Flash, Override, Routine};
    let limits = Limits { memory_per_peer: 1 << 20, envelope: 128 << 10, ..Limits::default() };
    let mut rig = Rig::with(limits, |config| {
        let channels = &mut config.peers[0].channels;
        channels[0].precedences = vec![Routine];
        channels[1].precedences = vec![Flash, Override];
    });
    for _ in 0..24 {
        let id = rig.mta(ACT_ROUTINE, "192.0.2.10", "MTA-ACT", "theirs");
        begin_transfer(&mut rig, id, 60_000);
    }
    let failed = |rig: &Rig| rig.events.iter().filter(|e| e.kind == Kind::ReceiveFailed).count();
    assert_eq!(failed(&rig), 24 - 13, "twelve sixteenths, and the front of one more");
    for _ in 0..2 {
        let id = rig.mta(ACT_FLASH, "192.0.2.10", "MTA-ACT", "theirs");
        begin_transfer(&mut rig, id, 60_000);
        assert!(!rig.failed(id), "{:?}", rig.events.last());
    }
}

/// What breaks off in the middle of an envelope is refused, or not, by what is kept for its level.
#[test]
fn stalled_routine_submissions_leave_memory_to_flash_and_override() {
    use p1::flags::Priority;
    let mut rig = Rig::new(Limits::default());
    for _ in 0..12 {
        let id = bound(&mut rig, "192.0.2.1");
        rig.submission_at(id, Priority::NonUrgent, 5_500, 100_000);
        give(&mut rig, id);
    }
    assert!(!refused(&rig).is_empty(), "they took all they may");
    let why = refused(&rig)[0].to_owned();
    assert!(why.contains("of which 16777216 are kept for higher levels"), "{why}");
    let before = refused(&rig).len();
    let id = bound(&mut rig, "192.0.2.1");
    rig.submission_at(id, Priority::Urgent, 1_000, 3);
    rig.request(id, Request::Content(b"abc"[..].into()));
    assert_eq!(refused(&rig).len(), before, "{:?}", refused(&rig));
    assert_eq!(rig.events.iter().filter(|e| e.kind == Kind::Submitted).count(), 1);
}
