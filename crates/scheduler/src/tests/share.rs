//! Rule 7: nothing starves, and the cost for higher precedences.

use super::*;
use Precedence::*;

const LOW: ChannelId = ChannelId { peer: PEER, index: 0 };
const HIGH: ChannelId = ChannelId { peer: PEER, index: 1 };
const UP: Associations = Associations {
    ours: 1,
    changing: 0,
    usable: 1,
    free: 1,
    receiving: 0,
    failing: false,
    barred: false,
};

/// Two channels, or one for all.
fn scheduler(share: Option<u8>, one: bool) -> Scheduler {
    let policy = Policy { share, ..Policy::default() };
    let lower = [Deferred, Routine, Priority];
    let upper = [Immediate, Flash, Override];
    let rules = if one {
        vec![rules(1, &Precedence::ALL, &[])]
    } else {
        vec![rules(0, &lower, &[]), rules(1, &upper, &[])]
    };
    let mut s = Scheduler::new(rules, policy);
    s.associations(at(0), HIGH, UP);
    s.associations(at(0), LOW, UP);
    s
}

fn sized(id: u64, precedence: Precedence, size: u64) -> Item {
    Item { size, ..message(id, precedence) }
}

#[test]
fn credit_grows_until_it_covers_a_large_message() {
    for one in [false, true] {
        let mut s = scheduler(Some(10), one);
        s.insert(at(0), sized(0, Routine, 10_000_000));
        s.insert(at(0), sized(1, Priority, 5));
        let (mut octets, mut ids) = (0, 2..);
        let start = loop {
            // The next Flash arrives before the last one ends: without a share nothing else would
            // start.
            let id = ids.next().unwrap();
            s.insert(at(1), sized(id, Flash, 1_000));
            if let Some(start) = s.next(at(1), LOW).or_else(|| s.next(at(1), HIGH))
                && start.precedence < Flash
            {
                break start;
            } else if id > 2 {
                octets += 1_000;
                s.finished(EntryId(id - 1));
            }
        };
        assert_eq!(start.id, EntryId(0), "the older one, though lower");
        let share = StartReason { share: true, ..StartReason::default() };
        assert_eq!(
            (start.reason, start.reason.to_string()),
            (share, "by rule 7, minimum share".into())
        );
        assert!((90_000_000..90_200_000).contains(&octets), "{octets}");
    }
}

#[test]
fn nothing_is_saved_up_and_nothing_else_is_weakened() {
    let mut s = scheduler(Some(50), false);
    s.insert(at(0), sized(1, Routine, 1_000));
    s.insert(at(0), sized(2, Routine, 1_000));
    s.insert(at(0), sized(3, Flash, 1_000));
    assert_eq!(s.peek(at(0), LOW), None, "nothing is earned yet");
    assert_eq!(s.next(at(0), HIGH).map(|start| start.id.0), Some(3));
    assert_eq!(s.peek(at(0), LOW).map(|start| start.id.0), Some(1));
    s.set_floor(at(0), Scope::Mta, Some(Flash));
    assert_eq!(s.peek(at(0), LOW), None, "below the floor");
    assert_eq!(
        s.held_because(EntryId(1)).map(|why| why.to_string()),
        Some("MINIMIZE: nothing below flash goes out".into())
    );
    s.set_floor(at(0), Scope::Mta, None);
    s.hold(EntryId(1));
    assert_eq!(s.next(at(0), LOW).map(|start| start.id.0), Some(2), "the other is held");
    s.release(at(0), EntryId(1));
    assert_eq!(s.peek(at(0), LOW), None, "the credit is spent");
    // All of them leave; credit earned while nothing is held is not kept.
    for id in [1, 2, 3] {
        s.finished(EntryId(id));
    }
    for id in 10..20 {
        s.insert(at(1), sized(id, Flash, 1_000_000));
        assert!(s.next(at(1), HIGH).is_some());
        s.finished(EntryId(id));
    }
    s.insert(at(2), sized(20, Flash, 1_000));
    s.insert(at(2), sized(21, Routine, 1_000));
    assert_eq!(s.peek(at(2), LOW), None);
}

proptest! {
    /// Higher messages arrive without end, each before the last is done. Held ones start in the
    /// order of their acceptance, within the octets of higher ones that `docs/scheduler.md`
    /// states.
    #[test]
    fn with_a_share_nothing_starves(
        share in 1u8..=50,
        one in any::<bool>(),
        low in proptest::collection::vec((0usize..4, 0u64..50_000), 1..12),
        high in proptest::collection::vec(0u64..5_000, 1..20),
    ) {
        let mut s = scheduler(Some(share), one);
        // One is in transfer already, so all others are held.
        s.insert(at(0), sized(10_000, Flash, 1));
        s.next(at(0), HIGH).expect("nothing is above it");
        for (id, (p, size)) in (0..).zip(&low) {
            s.insert(at(0), sized(id, Precedence::ALL[*p], *size));
        }
        let ratio = |z: u64| z.max(1) * u64::from(100 - share) / u64::from(share) + 100;
        let (mut started, mut octets, mut last, mut empty) = (0, 0, 10_000, 0u64);
        for (id, size) in (10_001..).zip(high.iter().cycle()) {
            s.insert(at(0), sized(id, Flash, *size));
            // A free association of the lower channel, or else of the higher one.
            let by_share = |start: &Start| start.reason.share;
            let by_share = |s: &mut Scheduler| {
                let on = [LOW, HIGH].into_iter().find(|c| s.peek(at(0), *c).filter(by_share).is_some());
                on.and_then(|channel| s.next(at(0), channel))
            };
            while let Some(start) = by_share(&mut s) {
                prop_assert_eq!(start.id, EntryId(started), "in order of acceptance");
                s.finished(start.id);
                (started, octets, empty) = (started + 1, 0, 0);
            }
            let Some((_, size)) = low.get(started as usize) else { break };
            prop_assert!(octets <= ratio(*size) + 5_000 + 100 * empty, "{} octets passed {}", octets, size);
            let next = s.next(at(0), HIGH).expect("the new one");
            octets += s.get(next.id).expect("it is in transfer").size;
            empty += 1;
            s.finished(EntryId(last));
            last = next.id.0;
        }
        prop_assert_eq!(started, low.len() as u64);
    }
}

#[test]
fn without_a_share_they_wait() {
    let mut s = scheduler(None, false);
    s.insert(at(0), sized(1, Flash, 1_000));
    s.next(at(0), HIGH).unwrap();
    s.insert(at(0), sized(0, Routine, 1));
    for id in 2..5_000 {
        s.insert(at(0), sized(id, Flash, 1_000));
        assert_eq!(s.next(at(0), HIGH).map(|start| start.id.0), Some(id));
        s.finished(EntryId(id - 1)).unwrap();
        assert_eq!(s.peek(at(0), LOW), None);
    }
}
