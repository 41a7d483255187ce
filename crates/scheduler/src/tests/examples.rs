//! The rules one by one, as examples for an operator.

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

const LOST: Associations = Associations {
    ours: 0,
    changing: 0,
    usable: 0,
    free: 0,
    receiving: 0,
    failing: true,
    barred: false,
};

fn started(s: &mut Scheduler, now: u64, channel: ChannelId) -> Option<(u64, StartReason)> {
    s.next(at(now), channel).map(|start| (start.id.0, start.reason))
}

const PLAIN: StartReason = StartReason { passes: None, fallback: false, share: false };

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
    let listed = s.newly_held(at(2), ROUTINE);
    assert_eq!(
        listed.map(|(id, why)| (id.0, why.to_string())),
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
fn a_delay_counts_no_failure_and_is_ended_before_its_time() {
    let mut s = two_channels(Hold::Conserving, &[]);
    s.associations(at(0), FLASH, up(1, 1));
    s.associations(at(0), ROUTINE, up(1, 1));
    s.insert(at(0), message(1, Flash));
    s.insert(at(0), message(2, Routine));
    assert_eq!(started(&mut s, 0, FLASH), Some((1, PLAIN)));
    assert!(s.delay(at(1), EntryId(1), at(500)), "from its transfer");
    assert_eq!(started(&mut s, 1, FLASH), None);
    assert_eq!(s.peek(at(1), ROUTINE).map(|s| s.id.0), Some(2), "it holds nothing meanwhile");
    assert!(s.hasten(at(2), EntryId(1)));
    assert!(!s.hasten(at(2), EntryId(1)), "there is none any more");
    assert_eq!(started(&mut s, 2, FLASH), Some((1, PLAIN)));
    let wait = s.retry(at(3), EntryId(1), 0).unwrap().since(at(3));
    assert!(wait <= Duration::from_secs(10), "its first failure: {wait:?}");
    assert!(s.delay(at(4), EntryId(1), at(90)), "while it waits, too");
    assert_eq!(started(&mut s, 89, FLASH), None);
    assert_eq!(started(&mut s, 90, FLASH), Some((1, PLAIN)));
    assert!(!s.delay(at(90), EntryId(7), at(99)) && !s.hasten(at(90), EntryId(7)));
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
        // Attempts to open it do not restart the count.
        let opening = Associations { ours: 1, changing: 1, ..LOST };
        s.associations(at(14), FLASH, opening);
        assert_eq!(s.deadline(), Some(at(15)));
        let reason = StartReason { passes: Some(Flash), ..PLAIN };
        assert_eq!(started(&mut s, 15, ROUTINE), after.then_some((2, reason)));
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
    let fallback = StartReason { fallback: true, ..PLAIN };
    assert_eq!(started(&mut s, 5, ROUTINE), Some((3, fallback)));
    assert_eq!(s.peek(at(6), ROUTINE), None, "Routine waits for it");
    s.finished(EntryId(3));
    // Priority has neither a channel nor a fallback.
    let passes = StartReason { passes: Some(Priority), ..PLAIN };
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
fn a_flash_does_not_wait_for_the_peers_transfer_to_end() {
    let mut s = two_channels(Hold::Conserving, &[]);
    s.associations(at(0), ROUTINE, up(1, 1));
    let receiving = |ours, free| Associations { receiving: 1, ..up(ours, free) };
    s.insert(at(0), message(1, Flash));
    s.associations(at(0), FLASH, up(1, 0));
    assert_eq!(s.wanted(at(0)).count(), 0, "it is becoming free");
    s.associations(at(0), FLASH, receiving(1, 0));
    let opens: Vec<Open> = s.wanted(at(0)).collect();
    assert_eq!(opens, [Open { channel: FLASH, urgent: true }]);
    s.associations(at(1), FLASH, receiving(2, 1));
    assert!(!s.has_surplus(at(1), FLASH), "it is about to be used");
    assert_eq!(started(&mut s, 1, FLASH), Some((1, PLAIN)));
    s.associations(at(1), FLASH, receiving(2, 0));
    s.insert(at(2), message(2, Flash));
    assert_eq!(s.wanted(at(2)).count(), 0);
    s.finished(EntryId(1));
    s.associations(at(2), FLASH, receiving(2, 1));
    assert!(!s.has_surplus(at(2), FLASH), "the next uses it, too");
    s.finished(EntryId(2));
    assert!(s.has_surplus(at(2), FLASH));
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

#[test]
fn minimize_bars_what_is_below_the_floor_and_it_holds_nothing() {
    let mut s = two_channels(Hold::Strict, &[Priority]);
    s.associations(at(0), ROUTINE, up(1, 1));
    s.associations(at(0), FLASH, up(1, 1));
    s.insert(at(0), message(1, Routine));
    s.insert(at(0), message(2, Priority));
    s.insert(at(0), message(3, Flash));
    s.set_floor(at(0), Scope::Channel(FLASH), Some(Immediate));
    assert_eq!(started(&mut s, 0, FLASH), Some((3, PLAIN)), "not below it");
    s.finished(EntryId(3));
    assert_eq!(s.peek(at(0), FLASH), None, "Priority is barred from its channel");
    let why = s.held_because(EntryId(2)).map(|why| why.to_string());
    assert_eq!(why, Some("MINIMIZE: nothing below immediate on its channel".into()));
    assert_eq!(
        s.peek(at(0), ROUTINE).map(|s| s.id.0),
        Some(1),
        "no fallback; and it holds nothing"
    );
    s.set_floor(at(0), Scope::Peer(PEER), Some(Priority));
    assert_eq!(s.peek(at(0), ROUTINE), None);
    assert_eq!(s.status(ROUTINE).level(Routine).minimized, 1);
    let listed = s.newly_held(at(0), ROUTINE).map(|(id, why)| (id.0, why.to_string()));
    assert_eq!(listed, Some((1, "MINIMIZE: nothing below priority to this peer".into())));
    let floors = [ROUTINE, FLASH].map(|c| s.floor_on(c).map(|floor| floor.lowest));
    assert_eq!(floors, [Some(Priority), Some(Immediate)], "the highest counts");
    s.insert(at(0), Item { destination: Destination::Mailbox(1), ..message(9, Deferred) });
    s.set_floor(at(0), Scope::Mta, Some(Override));
    assert_eq!(s.next_for_mailbox(at(0), 1), Some(EntryId(9)), "mailboxes are not concerned");
    for scope in [Scope::Mta, Scope::Peer(PEER), Scope::Channel(FLASH)] {
        s.set_floor(at(1), scope, None);
    }
    assert_eq!(started(&mut s, 1, FLASH), Some((2, PLAIN)));
}

#[test]
fn a_transfer_is_paused_while_a_higher_one_makes_progress() {
    let (mut s, policy) = (two_channels(Hold::Conserving, &[]), Policy::default());
    let channels = || {
        [
            rules(0, &[Deferred, Routine], &[]),
            rules(1, &[Priority, Immediate, Flash, Override], &[]),
        ]
    };
    s.configure(at(0), channels(), Policy { preempt: true, ..policy });
    s.associations(at(0), ROUTINE, up(1, 1));
    s.associations(at(0), FLASH, up(1, 1));
    s.insert(at(0), message(1, Routine));
    assert_eq!(started(&mut s, 0, ROUTINE), Some((1, PLAIN)));
    s.insert(at(1), message(2, Flash));
    assert_eq!(s.pauses(at(1)), None, "what waits pauses nothing");
    assert_eq!(started(&mut s, 1, FLASH), Some((2, PLAIN)));
    assert_eq!(s.pauses(at(1)), Some((EntryId(1), true)));
    assert_eq!(s.pauses(at(1)), None, "once");
    assert_eq!(s.deadline(), Some(at(16)));
    assert_eq!(s.pauses(at(16)), Some((EntryId(1), false)), "the Flash stalls");
    s.progress(at(17), EntryId(2));
    assert_eq!(s.pauses(at(17)), Some((EntryId(1), true)));
    s.insert(at(17), message(3, Flash));
    s.finished(EntryId(2));
    assert_eq!(started(&mut s, 17, FLASH), Some((3, PLAIN)));
    assert_eq!(s.pauses(at(17)), None, "it need not go on in between");
    s.insert(at(40), message(4, Deferred));
    s.progress(at(40), EntryId(3));
    s.finished(EntryId(3));
    assert_eq!(s.pauses(at(40)), Some((EntryId(1), false)));
    assert_eq!(s.peek(at(54), ROUTINE), None, "and did not stall while it was paused");
    assert_eq!(s.peek(at(55), ROUTINE).map(|s| s.id.0), Some(4));
}

#[test]
fn what_would_expire_while_expiry_waits_goes_on() {
    let mut s = two_channels(Hold::Strict, &[]);
    s.associations(at(0), FLASH, up(1, 1));
    for (id, expires) in [(1, 5), (2, 10), (3, 20), (4, 30)] {
        s.insert(at(0), Item { expires: at(expires), ..message(id, Flash) });
    }
    // One was found to have expired, another was returned as expired.
    s.tick(at(5));
    s.let_expiry_wait(at(5), true);
    assert_eq!((s.expired(at(5)), s.spared_count()), (None, 1));
    s.let_expiry_wait(at(12), false);
    assert_eq!(s.expired(at(12)), Some(EntryId(1)));
    s.let_expiry_wait(at(12), true);
    assert_eq!((s.expired(at(25)), s.spared_count()), (None, 2), "2 and 3, and 1 stays reported");
    assert!(s.deadline().is_none_or(|next| next >= at(30)));
    assert_eq!(started(&mut s, 25, FLASH), Some((2, PLAIN)), "it goes as if it were in time");
    // Set forward and back: item 3 is in time again by then.
    s.shift(at(25), Shift::Later(Duration::from_secs(10)));
    assert_eq!(s.spared_count(), 0, "and 2 is in transfer");
    s.let_expiry_wait(at(26), false);
    assert_eq!((s.expired(at(26)), s.spared_count()), (None, 0));
    assert_eq!((s.expired(at(30)), s.expired(at(40))), (Some(EntryId(3)), Some(EntryId(4))));
    assert!(s.put_back(at(41), EntryId(2)));
    assert_eq!(s.expired(at(41)), Some(EntryId(2)));
}

#[test]
fn what_expires_leaves_the_queues_and_stays_until_it_is_done_with() {
    let mut s = two_channels(Hold::Strict, &[]);
    s.associations(at(0), ROUTINE, up(1, 1));
    s.associations(at(0), FLASH, up(1, 1));
    s.insert(at(0), Item { expires: at(9), ..message(1, Flash) });
    s.insert(at(0), Item { expires: at(10), alert_at: at(5), ..message(2, Flash) });
    s.insert(at(0), message(3, Routine));
    assert_eq!(started(&mut s, 1, FLASH), Some((1, PLAIN)));
    assert_eq!(s.overdue(at(4)), None);
    assert_eq!((s.overdue(at(5)), s.overdue(at(5))), (Some(EntryId(2)), None));
    s.progress(at(9), EntryId(1));
    assert_eq!(s.expired(at(9)), None, "it may still arrive");
    assert_eq!((s.expired(at(10)), s.expired(at(10))), (Some(EntryId(2)), None));
    assert!(!s.hold(EntryId(2)) && s.get(EntryId(2)).is_some());
    let level = *s.status(FLASH).level(Flash);
    assert_eq!((level.queued, level.expired, level.overdue, level.in_transfer), (0, 1, 1, 1));
    assert!(s.put_back(at(11), EntryId(1)));
    assert_eq!(s.peek(at(11), FLASH), None, "nor does it start again");
    assert_eq!(s.peek(at(11), ROUTINE).map(|s| s.id.0), Some(3), "nor hold");
    assert_eq!(s.expired(at(11)), Some(EntryId(1)));
    assert!(s.finished(EntryId(2)).is_some());
    assert_eq!(s.overdue_count(Destination::Peer(PEER), Flash), 0);
}

#[test]
fn what_comes_new_to_a_failing_peer_waits_as_long() {
    let mut s = two_channels(Hold::Off, &[]);
    s.associations(at(0), FLASH, up(2, 2));
    s.insert(at(0), message(1, Flash));
    let mut now = at(0);
    for _ in 0..4 {
        s.next(now, FLASH).unwrap();
        now = s.retry(now + Duration::from_secs(1), EntryId(1), 0).unwrap();
    }
    s.insert(now, message(2, Override));
    s.next(now, FLASH).unwrap();
    let failed = now + Duration::from_secs(1);
    let wait = s.retry(failed, EntryId(2), 0).unwrap().since(failed);
    let full = Duration::from_secs(10) * 81 / 16;
    assert!(wait <= full + Duration::from_millis(1) && wait >= full * 4 / 5, "{wait:?}");
    s.next(now + Duration::from_secs(60), FLASH).unwrap();
    s.finished(EntryId(2));
    s.insert(now, message(3, Override));
    s.next(now, FLASH).unwrap();
    let wait = s.retry(failed, EntryId(3), 0).unwrap();
    assert!(wait.since(now + Duration::from_secs(60)) <= Duration::from_secs(10), "cleared");
}

#[test]
fn a_scheduled_channel_outside_its_windows_is_down_at_once() {
    let mut s = two_channels(Hold::Conserving, &[Flash]);
    s.associations(at(0), ROUTINE, up(1, 1));
    s.associations(at(0), FLASH, Associations { barred: true, ..up(1, 0) });
    s.insert(at(0), message(1, Flash));
    assert_eq!(s.peek(at(0), ROUTINE), None, "its association is usable still");
    s.associations(at(0), FLASH, Associations { barred: true, ..Associations::default() });
    assert!(s.is_down(FLASH) && s.wanted(at(0)).count() == 0);
    assert_eq!(s.peek(at(0), ROUTINE).map(|s| s.reason.fallback), Some(true));
    s.associations(at(9), FLASH, Associations::default());
    assert!(!s.is_down(FLASH));
    assert_eq!(s.wanted(at(9)).count(), 1);
}

#[test]
fn a_changed_configuration_moves_no_item() {
    let mut s = two_channels(Hold::Conserving, &[]);
    s.associations(at(0), FLASH, up(1, 1));
    s.insert(at(0), message(1, Flash));
    s.insert(at(0), message(2, Flash));
    assert_eq!(started(&mut s, 0, FLASH), Some((1, PLAIN)));
    let routine = || rules(0, &Precedence::ALL, &[]);
    s.configure(at(1), [routine()], Policy::default());
    s.associations(at(1), ROUTINE, up(1, 1));
    assert_eq!(
        s.listed(EntryId(1)).map(|l| l.at),
        Some(ItemState::InTransfer { channel: Some(FLASH), paused: false })
    );
    assert_eq!(started(&mut s, 1, ROUTINE), Some((2, PLAIN)), "the channel that is left has it");
    // The channel returns, with its earlier transfer: an Override is above that.
    s.configure(at(2), [routine(), rules(1, &[Flash, Override], &[])], Policy::default());
    s.associations(at(2), FLASH, up(1, 0));
    s.insert(at(2), message(3, Override));
    assert!(s.wanted(at(2)).any(|open| open == Open { channel: FLASH, urgent: true }));
    assert!(s.put_back(at(3), EntryId(1)));
    assert!(s.wanted(at(3)).all(|open| !open.urgent), "nothing is in transfer there any more");
}

#[test]
fn what_failed_at_a_peer_starts_at_once_on_command_and_a_deferral_stays() {
    let mut s = two_channels(Hold::Off, &[]);
    s.associations(at(0), FLASH, up(1, 1));
    s.insert(at(0), Item { not_before: at(500), ..message(99, Override) });
    let mut waits = Vec::new();
    for n in 1..=7 {
        s.insert(at(n), message(n, Flash));
        assert_eq!(started(&mut s, n, FLASH), Some((n, PLAIN)));
        waits.push(s.retry(at(n), EntryId(n), 0).unwrap().since(at(n)));
    }
    // Seven failed within the first delay, of 8 to 10 s: they count once for the peer.
    let longest = Duration::from_secs(10);
    assert!(waits.iter().all(|wait| *wait <= longest), "{waits:?}");
    assert_eq!(s.peek(at(7), FLASH), None);
    s.hasten_failed(at(7), PEER);
    for n in 1..=7 {
        assert_eq!(started(&mut s, 7, FLASH), Some((n, PLAIN)));
        s.finished(EntryId(n));
    }
    assert_eq!(started(&mut s, 7, FLASH), None, "deferred");
}
