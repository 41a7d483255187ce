//! The cost of each verb in steps: key comparisons, and channels, precedences and transfers
//! visited. Steps, not seconds, so the result is the same on every machine.

use super::*;
use base::steps::taken;

const PEERS: u32 = 50;

fn peer(n: u32) -> PeerId {
    PeerId(1000 + n)
}

/// This many items queued for the first of many peers, with one transfer running.
fn waiting(count: u64, policy: Policy) -> Scheduler {
    let of_peer = |n| {
        network(0).into_iter().take(3).map(move |mut rules| {
            rules.id.peer = peer(n);
            rules
        })
    };
    let mut s = Scheduler::new((0..PEERS).flat_map(of_peer), policy);
    let up = Associations { ours: 1, usable: 1, free: 1, ..Associations::default() };
    for n in 0..PEERS {
        for index in 0..3 {
            s.associations(at(1), ChannelId { peer: peer(n), index }, up);
        }
    }
    for id in 0..count {
        s.insert(at(1), item(id));
    }
    s
}

fn item(id: u64) -> Item {
    let precedence = Precedence::ALL[id as usize % 5];
    let destination =
        if id % 8 == 7 { Destination::Mailbox(1) } else { Destination::Peer(peer(0)) };
    Item {
        destination,
        not_before: if id % 8 == 6 { at(5_000_000 + id) } else { Instant(0) },
        expires: at(1_000_000 + id),
        alert_at: at(2_000_000 + id),
        ..message(id, precedence)
    }
}

/// Most steps of each verb, over some rounds on a queue of this length.
fn steps(count: u64, policy: Policy) -> Vec<(&'static str, u64)> {
    let mut s = waiting(count, policy);
    let mut most: Vec<(&'static str, u64)> = Vec::new();
    let mut note = |verb: &'static str| {
        let steps = taken();
        match most.iter_mut().find(|(name, _)| *name == verb) {
            Some((_, known)) => *known = steps.max(*known),
            None => most.push((verb, steps)),
        }
    };
    let channel = |index| ChannelId { peer: peer(0), index };
    let mut now = at(2);
    taken();
    for turn in 0..40u64 {
        let new = count + turn;
        s.insert(now, item(new));
        note("insert");
        let middle = EntryId(count / 2 + turn * 8);
        s.hold(middle);
        note("hold");
        s.held_because(middle);
        note("held_because");
        s.release(now, middle);
        note("release");
        let start = s.next(now, channel(2));
        note("next");
        let start = start.expect("Flash waits").id;
        s.progress(now, start);
        note("progress");
        s.newly_held(now, channel(0));
        note("newly_held");
        s.peek(now, channel(0));
        note("peek");
        s.wanted(now).count();
        note("wanted");
        s.put_back(now, start);
        note("put_back");
        let start = s.next(now, channel(2)).expect("Flash waits").id;
        taken();
        s.retry(now, start, turn);
        note("retry");
        let start = s.next(now, channel(2)).expect("Flash waits").id;
        taken();
        s.finished(start);
        note("finished");
        let busy = Associations { ours: 1, usable: 1, ..Associations::default() };
        s.associations(now, channel(1), busy);
        note("associations");
        s.has_surplus(now, channel(0));
        note("has_surplus");
        s.status(channel(0));
        note("status");
        s.deadline();
        note("deadline");
        let to = Destination::Peer(peer(0));
        s.list(to, Precedence::Routine, Some((Utc(count / 2), EntryId(count / 2))), 10);
        note("list, 10 lines");
        s.next_for_mailbox(now, 1);
        note("next_for_mailbox");
        s.set_floor(now, Scope::Peer(peer(0)), None);
        note("set_floor of a peer");
        let expires = s.get(EntryId(turn)).map(|item| item.expires);
        taken();
        assert!(expires.is_none_or(|at| at > now));
        now = now + Duration::from_millis(1);
        s.tick(now);
        note("tick");
        while s.changed(now).is_some() {}
        while s.changed_mailbox(now).is_some() {}
        note("changed");
        assert_eq!((s.expired(now), s.overdue(now), s.pauses(now)), (None, None, None));
        note("expired, overdue, pauses");
    }
    // One item expires, and one is overdue.
    now = at(1_000_000);
    s.tick(now);
    while s.expired(now).is_some() {}
    let mut given_up = 0;
    for later in 0..20 {
        now = at(1_000_001 + later);
        taken();
        given_up += usize::from(s.expired(now).is_some());
        note("expired, one");
    }
    assert!(given_up > 0);
    most
}

#[test]
fn no_verb_grows_by_more_than_the_logarithm() {
    let on = Policy { share: Some(10), preempt: true, ..Policy::default() };
    for policy in [Policy::default(), on] {
        let counts = [1_000, 100_000, 1_000_000];
        let [few, many, most] = counts.map(|count| steps(count, policy));
        println!("{:<26}{:>8}{:>9}{:>9}", "steps with so many queued", 1_000, 100_000, 1_000_000);
        for ((few, many), most) in few.iter().zip(&many).zip(&most) {
            println!("{:<26}{:>8}{:>9}{:>9}", few.0, few.1, many.1, most.1);
            // From a thousand on, the logarithm grows by 5/3 and 2; nodes are more or less full.
            assert!(many.1 <= few.1 * 5 / 3 * 5 / 4 + 20, "{}", few.0);
            assert!(most.1 <= few.1 * 2 * 5 / 4 + 20, "{}", few.0);
        }
    }
}
