//! The rules one by one, as an operator would tell them.

use super::*;
use Precedence::*;

const ROUTINE: ChannelId = ChannelId { peer: PEER, index: 0 };
const FLASH: ChannelId = ChannelId { peer: PEER, index: 1 };

fn two_channels(hold: Hold, fallback: &[Precedence]) -> Scheduler {
    let mut routine = rules(0, &[Deferred, Routine], fallback);
    let mut flash = rules(1, &[Priority, Immediate, Flash, Override], &[]);
    (routine.max, flash.max, routine.grow_at, flash.grow_at) = (1, 1, 4, 4);
    (routine.permanent, flash.permanent) = (true, true);
    Scheduler::new([routine, flash], Policy { hold, ..Policy::default() })
}

fn up(ours: u32, free: u32) -> Associations {
    Associations { ours, usable: ours, free, ..Associations::default() }
}

const LOST: Associations =
    Associations { ours: 0, changing: 0, usable: 0, free: 0, failing: true, barred: false };

fn started(s: &mut Scheduler, now: u64, channel: ChannelId) -> Option<(u64, Licence)> {
    s.next(at(now), channel).map(|start| (start.id.0, start.licence))
}

const PLAIN: Licence = Licence { passes: None, fallback: false, share: false };

#[test]
fn a_higher_message_starts_beside_a_lower_one_and_holds_the_next() {
    let mut s = two_channels(Hold::Conserving, &[]);
    s.associations(at(0), ROUTINE, up(1, 1));
    s.associations(at(0), FLASH, up(1, 1));
    s.insert(at(0), message(1, Routine));
    s.insert(at(0), message(2, Routine));
    assert_eq!(started(&mut s, 0, ROUTINE), Some((1, PLAIN)));
    s.insert(at(1), message(3, Flash));
    s.insert(at(1), message(4, Flash));
    assert_eq!(started(&mut s, 1, FLASH), Some((3, PLAIN)), "at once, nothing is pre-empted");
    s.finished(EntryId(1));
    assert_eq!(started(&mut s, 2, ROUTINE), None);
    assert_eq!(s.held_because(EntryId(2)), Some(Reason::InTransfer(Flash, EntryId(3))));
    let told = s.newly_held(at(2), ROUTINE);
    assert_eq!(
        told.map(|(id, why)| (id.0, why.to_string())),
        Some((2, "flash e3 is in transfer".into()))
    );
    assert_eq!(s.newly_held(at(2), ROUTINE), None, "once");
    s.finished(EntryId(3));
    assert_eq!(s.held_because(EntryId(2)), Some(Reason::Waiting(Flash, EntryId(4))));
    assert_eq!(s.status(ROUTINE).held(), [0, 1, 0, 0, 0, 0]);
    assert_eq!(started(&mut s, 3, FLASH), Some((4, PLAIN)));
    s.finished(EntryId(4));
    assert_eq!(started(&mut s, 4, ROUTINE), Some((2, PLAIN)));
}

#[test]
fn only_what_could_go_itself_holds() {
    let mut s = two_channels(Hold::Strict, &[]);
    s.associations(at(0), ROUTINE, up(1, 1));
    s.associations(at(0), FLASH, up(1, 1));
    s.insert(at(0), message(1, Routine));
    s.insert(at(0), Item { not_before: at(100), ..message(2, Flash) });
    assert_eq!(s.peek(at(0), ROUTINE).map(|s| s.id.0), Some(1), "deferred");
    assert_eq!(s.peek(at(100), ROUTINE), None);
    s.hold(EntryId(2));
    assert_eq!(s.peek(at(101), ROUTINE).map(|s| s.id.0), Some(1), "held by an operator");
    s.release(at(102), EntryId(2));
    assert_eq!(started(&mut s, 102, FLASH), Some((2, PLAIN)));
    assert_eq!(s.peek(at(102), ROUTINE), None);
    let again = s.retry(at(103), EntryId(2), 0).unwrap();
    assert_eq!(s.peek(at(103), ROUTINE).map(|s| s.id.0), Some(1), "in its own backoff");
    assert_eq!(s.peek(again, ROUTINE), None);
}

#[test]
fn a_transfer_without_progress_stops_holding() {
    let mut s = two_channels(Hold::Strict, &[]);
    s.associations(at(0), ROUTINE, up(1, 1));
    s.associations(at(0), FLASH, up(1, 1));
    s.insert(at(0), message(1, Flash));
    s.insert(at(0), message(2, Routine));
    assert_eq!(started(&mut s, 0, FLASH), Some((1, PLAIN)));
    s.progress(at(10), EntryId(1));
    assert_eq!(s.deadline(), Some(at(25)));
    assert_eq!(s.peek(at(24), ROUTINE), None);
    assert_eq!(s.peek(at(25), ROUTINE).map(|s| s.id.0), Some(2));
    s.progress(at(26), EntryId(1));
    assert_eq!(s.peek(at(26), ROUTINE), None, "alive again");
}

#[test]
fn lower_ones_pass_a_message_without_a_channel_unless_strict() {
    for (hold, after) in [(Hold::Conserving, true), (Hold::Strict, false)] {
        let mut s = two_channels(hold, &[]);
        s.associations(at(0), ROUTINE, up(1, 1));
        s.associations(at(10), FLASH, LOST);
        s.insert(at(10), message(1, Flash));
        s.insert(at(10), message(2, Routine));
        assert_eq!(s.peek(at(14), ROUTINE), None);
        // Tries to open it do not begin the count again.
        let opening = Associations { ours: 1, changing: 1, ..LOST };
        s.associations(at(14), FLASH, opening);
        assert_eq!(s.deadline(), Some(at(15)));
        let licence = Licence { passes: Some(Flash), ..PLAIN };
        assert_eq!(started(&mut s, 15, ROUTINE), after.then_some((2, licence)));
    }
}

#[test]
fn a_fallback_carries_what_has_no_channel_and_holds_for_it() {
    let mut s = two_channels(Hold::Conserving, &[Flash]);
    s.associations(at(0), ROUTINE, up(1, 1));
    s.associations(at(0), FLASH, LOST);
    for (id, precedence) in [(1, Routine), (2, Priority), (3, Flash)] {
        s.insert(at(0), message(id, precedence));
    }
    assert_eq!(s.peek(at(4), ROUTINE), None, "its own channel may come back");
    let fallback = Licence { fallback: true, ..PLAIN };
    assert_eq!(started(&mut s, 5, ROUTINE), Some((3, fallback)));
    assert_eq!(s.peek(at(6), ROUTINE), None, "Routine waits for it");
    s.finished(EntryId(3));
    // Priority has neither a channel nor a fallback.
    let passes = Licence { passes: Some(Priority), ..PLAIN };
    assert_eq!(started(&mut s, 7, ROUTINE), Some((1, passes)));
}

#[test]
fn an_override_behind_a_long_flash_gets_an_association_of_its_own() {
    let mut s = two_channels(Hold::Conserving, &[]);
    s.associations(at(0), ROUTINE, up(1, 1));
    s.associations(at(0), FLASH, up(1, 1));
    s.insert(at(0), message(1, Flash));
    assert_eq!(started(&mut s, 0, FLASH), Some((1, PLAIN)));
    s.associations(at(0), FLASH, up(1, 0));
    s.insert(at(1), message(2, Flash));
    assert_eq!(s.wanted(at(1)).count(), 0, "equals wait");
    s.insert(at(1), message(3, Override));
    let opens: Vec<Open> = s.wanted(at(1)).collect();
    assert_eq!(opens, [Open { channel: FLASH, urgent: true }]);
    s.associations(at(1), FLASH, Associations { ours: 2, changing: 1, ..up(1, 0) });
    assert_eq!(s.wanted(at(1)).count(), 0);
    s.associations(at(2), FLASH, up(2, 1));
    assert!(!s.has_surplus(at(2), FLASH));
    assert_eq!(started(&mut s, 2, FLASH), Some((3, PLAIN)));
    s.associations(at(2), FLASH, up(2, 0));
    s.insert(at(3), message(4, Override));
    assert_eq!(s.wanted(at(3)).count(), 0, "one slot is reserved, not two");
    s.finished(EntryId(3));
    s.associations(at(3), FLASH, up(2, 1));
    assert_eq!(started(&mut s, 3, FLASH), Some((4, PLAIN)));
    s.finished(EntryId(4));
    s.associations(at(4), FLASH, up(2, 1));
    assert!(s.has_surplus(at(4), FLASH), "it is closed rather than given the second Flash");
}

#[test]
fn a_crowd_opens_associations_and_a_pause_closes_them() {
    let mut one = rules(0, &Precedence::ALL, &[]);
    (one.max, one.grow_at, one.permanent) = (3, 4, false);
    let mut s = Scheduler::new([one], Policy::default());
    assert_eq!(s.wanted(at(0)).count(), 0, "on demand");
    for id in 0..4 {
        s.insert(at(0), message(id, Routine));
    }
    assert_eq!(s.wanted(at(0)).next(), Some(Open { channel: ROUTINE, urgent: false }));
    s.associations(at(0), ROUTINE, up(1, 1));
    s.next(at(0), ROUTINE);
    s.associations(at(0), ROUTINE, up(1, 0));
    assert_eq!(s.wanted(at(0)).count(), 0, "three wait");
    s.insert(at(0), message(9, Routine));
    assert_eq!(s.wanted(at(0)).count(), 1);
    s.associations(at(0), ROUTINE, up(2, 1));
    assert!(!s.has_surplus(at(0), ROUTINE));
    s.next(at(0), ROUTINE);
    s.associations(at(0), ROUTINE, up(2, 0));
    assert_eq!(s.wanted(at(0)).count(), 0);
    s.finished(EntryId(0));
    s.associations(at(1), ROUTINE, up(2, 1));
    assert_eq!(s.deadline(), Some(at(5)), "one second and `keep`");
    assert!(!s.has_surplus(at(4), ROUTINE), "free for three seconds");
    s.next(at(4), ROUTINE);
    s.associations(at(4), ROUTINE, up(2, 0));
    s.associations(at(4), ROUTINE, up(2, 1));
    assert!(!s.has_surplus(at(7), ROUTINE), "it was used meanwhile");
    assert!(s.has_surplus(at(8), ROUTINE));
    s.associations(at(8), ROUTINE, Associations { ours: 2, changing: 1, ..up(1, 1) });
    s.associations(at(9), ROUTINE, up(1, 1));
    assert!(!s.has_surplus(at(60), ROUTINE), "the last one stays");
}

#[test]
fn mailboxes_are_served_in_order_without_holding() {
    let mut s = two_channels(Hold::Strict, &[]);
    for (id, precedence, mailbox) in [(1, Routine, 5), (2, Flash, 5), (3, Routine, 6)] {
        s.insert(
            at(0),
            Item { destination: Destination::Mailbox(mailbox), ..message(id, precedence) },
        );
    }
    assert_eq!(s.next_for_mailbox(at(0), 5), Some(EntryId(2)));
    assert_eq!(s.next_for_mailbox(at(0), 5), Some(EntryId(1)), "beside it");
    assert_eq!(s.next_for_mailbox(at(0), 5), None);
    assert_eq!(s.mailbox_status(6).queued(), [0, 1, 0, 0, 0, 0]);
}
