//! A disk that fills up: lower precedences are refused first, and taken again by themselves.

use base::Precedence::{Flash, Immediate, Priority, Routine};
use node::event::Kind;
use node::{DiskSpace, Input};
use osi::api::RtseParameters;
use testkit::{ACT, NAPLES, NOTHING, Pair, Setup, five_channels};

const RESERVE: u64 = 1600 << 20;

fn report(pair: &mut Pair, site: usize, free: u64) {
    pair.network.feed(
        site,
        Input::DiskSpace(DiskSpace { free: free << 20, reserve: RESERVE, no_room_for: None }),
    );
}

#[test]
fn submissions_of_lower_precedences_are_refused_and_it_is_shown_why() {
    let mut pair = Pair::new(3, NOTHING);
    report(&mut pair, NAPLES, 700);
    for precedence in [Routine, Priority, Immediate, Flash] {
        pair.submit(precedence, 3_000);
    }
    pair.run(30);
    assert_eq!(pair.count(NAPLES, Kind::SubmissionRefused), 2);
    let mut delivered = pair.delivered();
    delivered.sort_unstable();
    assert_eq!(delivered, [3, 4]);
    let event = pair.events(Kind::SpaceLow).next().unwrap();
    assert!(event.detail.contains("priority and lower are refused"), "{}", event.detail);
    let disk = pair.sites[NAPLES].node.status(pair.clock()).disk.unwrap();
    assert_eq!((disk.free, disk.reserve, disk.refused), (700 << 20, RESERVE, Some(Priority)));
    // Only a change is logged.
    report(&mut pair, NAPLES, 690);
    report(&mut pair, NAPLES, 2_000);
    pair.submit(Routine, 3_000);
    pair.run(30);
    assert_eq!((pair.delivered().len(), pair.count(NAPLES, Kind::SpaceLow)), (3, 1));
    assert_eq!(pair.count(NAPLES, Kind::SpaceBack), 1);
}

#[test]
fn a_peer_keeps_what_is_refused_and_sends_it_when_there_is_room() {
    let mut pair = Pair::new(4, NOTHING);
    report(&mut pair, ACT, 10);
    for precedence in [Routine, Routine, Flash] {
        pair.submit(precedence, 30_000);
    }
    pair.run(60);
    assert_eq!(pair.delivered(), [3], "{}", pair.transfers());
    assert!(pair.count(ACT, Kind::ReceiveFailed) > 0);
    report(&mut pair, ACT, 2_000);
    pair.finish(1_200);
}

/// On a monologue channel nothing but refused messages could come: its bind is refused as busy.
#[test]
fn a_channel_of_refused_precedences_is_busy() {
    use osi::api::Dialogue::{Monologue, TwoWayAlternate};
    for (dialogue, refused) in [(Monologue, true), (TwoWayAlternate, false)] {
        let rts = match dialogue {
            Monologue => |rts: &mut RtseParameters| rts.dialogue = Monologue,
            TwoWayAlternate => |rts: &mut RtseParameters| rts.dialogue = TwoWayAlternate,
        };
        let mut pair = Pair::new(5, Setup { rts, node: five_channels });
        report(&mut pair, ACT, 1_000);
        pair.network.cut();
        pair.run(5);
        for precedence in [Routine, Routine, Flash, Immediate] {
            pair.submit(precedence, 3_000);
        }
        pair.run(60);
        let mut delivered = pair.delivered();
        delivered.sort_unstable();
        assert_eq!(delivered, [3, 4], "{}", pair.transfers());
        let refusals: Vec<&str> = pair
            .timed(ACT, Kind::AssociationRefused)
            .map(|(_, event)| event.detail.as_str())
            .filter(|why| why.contains("busy") && why.contains("routine is not taken with"))
            .collect();
        assert_eq!(!refusals.is_empty(), refused, "{dialogue:?}: {refusals:?}");
        assert_eq!(pair.count(ACT, Kind::ReceiveFailed) > 0, !refused, "{dialogue:?}");
        report(&mut pair, ACT, 2_000);
        pair.finish(1_200);
    }
}
