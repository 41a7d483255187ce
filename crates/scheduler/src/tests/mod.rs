//! Property tests: the machine against its model over random histories, and its invariants.

mod both;
#[cfg(debug_assertions)]
mod cost;
mod examples;
mod model;
mod rows;
mod share;
mod simulation;

use crate::*;
use base::{EntryId, Instant, PeerId, Precedence, Utc};
use both::{Both, CHANNELS, Verb};
use proptest::prelude::*;
use std::time::Duration;

pub(super) const PEER: PeerId = PeerId(7);

fn rules(index: u32, precedences: &[Precedence], fallback: &[Precedence]) -> ChannelRules {
    ChannelRules {
        id: ChannelId { peer: PEER, index },
        precedences: precedences.to_vec(),
        fallback: fallback.to_vec(),
        permanent: index.is_multiple_of(2),
        max: 2 - index % 2,
        grow_at: 2 + index,
        keep: Duration::from_secs(4),
    }
}

/// Three channels to one peer: one precedence has two, one has only a fallback. A second peer has
/// one channel, which carries all but Flash. Other variants change rules, or lack a channel.
fn network(variant: usize) -> Vec<ChannelRules> {
    use Precedence::*;
    let mut other = rules(0, &[Deferred, Routine, Priority, Immediate, Override], &[]);
    other.id.peer = PeerId(8);
    let mut all = vec![
        rules(0, &[Routine], &[Flash, Override, Deferred]),
        rules(1, &[Priority, Immediate, Routine], &[]),
        rules(2, &[Flash, Override], &[Immediate]),
        other,
    ];
    match variant {
        0 => {}
        1 => {
            (all[0].max, all[0].permanent, all[2].grow_at) = (3, false, 1);
            all[1].precedences = vec![Priority, Immediate];
        }
        _ => _ = all.remove(variant - 2),
    }
    all
}

const IDS: std::ops::Range<u64> = 0..30;

fn item() -> impl Strategy<Value = Item> {
    // Most could start at once; acceptance times step back as the wall clock may.
    let not_before = prop_oneof![3 => Just(0u64), 1 => 0u64..60_000_000];
    let time = || prop_oneof![2 => Just(u64::MAX), 1 => 0u64..120_000_000];
    let size = prop_oneof![4 => 0u64..1000, 1 => 0u64..20_000];
    (IDS, 0u32..8, 0usize..6, size, 0u64..10, not_before, time(), time()).prop_map(
        |(id, to, p, size, accepted, not_before, expires, alert_at)| Item {
            destination: match to {
                0 => Destination::Mailbox(id as u32 % 2),
                1 => Destination::Peer(PeerId(8)),
                _ => Destination::Peer(PEER),
            },
            size,
            accepted: Utc(accepted),
            not_before: Instant(not_before),
            expires: Instant(expires),
            alert_at: Instant(alert_at),
            ..message(id, Precedence::ALL[p])
        },
    )
}

fn destination() -> impl Strategy<Value = Destination> {
    prop_oneof![
        Just(Destination::Mailbox(0)),
        Just(Destination::Peer(PeerId(8))),
        Just(Destination::Peer(PEER)),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let hold =
        prop_oneof![1 => Just(Hold::Off), 4 => Just(Hold::Conserving), 3 => Just(Hold::Strict)];
    let share = proptest::option::of(1u8..=50);
    (hold, share, any::<bool>()).prop_map(|(hold, share, preempt)| Policy {
        hold,
        share,
        preempt,
        ..Policy::default()
    })
}

fn verb() -> impl Strategy<Value = Verb> {
    let floor = proptest::option::of((0usize..6).prop_map(|p| Precedence::ALL[p]));
    prop_oneof![
        6 => item().prop_map(Verb::Insert),
        10 => (0..CHANNELS).prop_map(Verb::Next),
        1 => (0u32..2).prop_map(Verb::Mailbox),
        2 => IDS.prop_map(Verb::Progress),
        3 => IDS.prop_map(Verb::Finished),
        1 => (IDS, any::<u64>()).prop_map(|(id, seed)| Verb::Retry(id, seed)),
        1 => IDS.prop_map(Verb::PutBack),
        1 => IDS.prop_map(Verb::Hold),
        1 => IDS.prop_map(Verb::Release),
        1 => IDS.prop_map(Verb::Hasten),
        1 => IDS.prop_map(Verb::GiveUp),
        1 => (IDS, IDS, destination()).prop_map(|(id, new, to)| Verb::Reroute(id, new, to)),
        1 => (0usize..12, floor).prop_map(|(which, lowest)| Verb::Floor(which, lowest)),
        1 => (0usize..6, policy()).prop_map(|(variant, policy)| Verb::Configure(variant, policy)),
        3 => Just(Verb::Drain),
        4 => Just(Verb::OpenWanted),
        6 => (0..CHANNELS).prop_map(Verb::Opened),
        1 => (0..CHANNELS).prop_map(Verb::OpenFailed),
        1 => (0..CHANNELS).prop_map(Verb::Lost),
        1 => (0..CHANNELS, any::<bool>()).prop_map(|(channel, on)| Verb::Bar(channel, on)),
        1 => (0..CHANNELS).prop_map(Verb::PeerOpens),
        1 => (0..CHANNELS).prop_map(Verb::PeerCloses),
        1 => (0..CHANNELS, 0u32..3).prop_map(|(channel, some)| Verb::Receives(channel, some)),
        3 => prop_oneof![0u64..2_000_000, Just(5_000_000), 0u64..40_000_000].prop_map(Verb::Wait),
        1 => (0u64..10_000_000).prop_map(Verb::StepBack),
        1 => (-20_000_000i64..20_000_000).prop_map(Verb::Shift),
        1 => any::<bool>().prop_map(Verb::ExpiryWaits),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn agrees_with_the_model_and_forgets_nothing(
        policy in policy(),
        verbs in proptest::collection::vec(verb(), 0..120),
    ) {
        let mut both = Both::new(policy);
        for verb in verbs {
            both.step(verb);
        }
        both.drain();
    }
}

pub(super) fn message(id: u64, precedence: Precedence) -> Item {
    Item {
        id: EntryId(id),
        destination: Destination::Peer(PEER),
        precedence,
        size: 1000,
        accepted: Utc(id),
        not_before: Instant(0),
        expires: NEVER,
        alert_at: NEVER,
        body: None,
    }
}

pub(super) fn at(seconds: u64) -> Instant {
    Instant(0) + Duration::from_secs(seconds)
}
