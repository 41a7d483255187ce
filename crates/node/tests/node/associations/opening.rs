//! When a node opens associations: how many at once, which first, what follows a refusal, and the
//! windows of scheduled channels. One node; at the other end of each channel a stack accepts or refuses,
//! or nothing answers.

use base::rng::Rng;
use base::{EntryId, Instant, PeerId, Precedence};
use bytes::Bytes;
use node::config::{Channel, Connection, Limits, Reopen};
use node::connect::ConnectOutcome;
use node::event::{Kind, LogLevel};
use node::{ChannelId, Input, ListenerId, Secret};
use osi::api::Dialogue;
use p1::bind::MtaBindError;
use proptest::prelude::*;
use status::ChannelStatus;
use std::time::Duration;
use testkit::bench::{Answer, CONNECT_TIMEOUT, facing};
use testkit::build::permanent;
use testkit::{Bench, Events, NAPLES, NOTHING, Pair};

const SECOND: Duration = Duration::from_secs(1);
/// Octets of a message that is queued.
const LENGTH: u64 = 1_000_000;

fn channel(index: u32, precedence: Precedence, connection: Connection) -> Channel {
    Channel { connection, ..permanent(index, &[precedence]) }
}

fn scheduled(windows: &str) -> Connection {
    Connection::Scheduled { windows: windows.parse().unwrap() }
}

fn facing_all(channels: Vec<Channel>, answers: Vec<Answer>, opening: usize) -> Bench {
    facing_queued(channels, answers, opening, &[])
}

/// With a message of each of these precedences; none holds another. The store does not return their
/// contents.
fn facing_queued(
    channels: Vec<Channel>,
    answers: Vec<Answer>,
    opening: usize,
    queued: &[Precedence],
) -> Bench {
    let mut bench = facing(channels, Limits { opening, ..Limits::default() });
    bench.script.answers = (0..).zip(answers).collect();
    bench.store.pieces = Some(0);
    if !queued.is_empty() {
        bench.queue_for("act", LENGTH);
    }
    for (id, precedence) in (1..).map(EntryId).zip(queued) {
        bench.queue(id, *precedence);
    }
    bench.start();
    bench
}

fn facing_one(answer: Answer) -> Bench {
    let only = channel(0, Precedence::Routine, Connection::Permanent);
    facing_all(vec![only], vec![answer], 8)
}

fn set_answer(bench: &mut Bench, answer: Answer) {
    bench.script.answers.insert(0, answer);
}

fn status(bench: &Bench) -> Vec<ChannelStatus> {
    bench.node.status(bench.clock()).peers.remove(0).channels
}

fn is_open(bench: &Bench, channel: usize) -> bool {
    status(bench)[channel].associations.iter().any(|a| a.state == "idle")
}

/// An operator opens a channel.
fn connect(bench: &mut Bench, request: u64, channel: u32) {
    let channel = ChannelId { peer: PeerId::of_name("act"), index: channel };
    bench.feed(Input::ConnectChannel { request, channel });
}

/// The answer to the operator.
fn answered(bench: &mut Bench) -> ConnectOutcome {
    assert_eq!(bench.connected.len(), 1, "{:?}", bench.connected);
    bench.connected.remove(0).1
}

/// The peer opens an association with this node on channel 0.
fn peer_binds(bench: &mut Bench) {
    bench.mta(ListenerId(0), "192.0.2.10", "MTA-ACT", "theirs");
}

// ----- how many at once ---------------------------------------------------------------------------

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn at_most_the_limit_is_opened_at_once_and_all_open_in_the_end(
        limit in 1usize..10,
        channels in proptest::collection::vec((any::<bool>(), 0usize..6), 1..40),
        cuts in proptest::collection::vec((0u32..40, 1u64..60), 0..8),
    ) {
        let configs = (0..).zip(&channels).map(|(index, (_, level))| {
            channel(index, Precedence::ALL[*level], Connection::Permanent)
        });
        let answers = channels.iter().map(|(dead, _)| match dead {
            true => Answer::Nothing,
            false => Answer::Accept,
        });
        let mut bench = facing_all(configs.collect(), answers.collect(), limit);
        for (channel, seconds) in cuts {
            bench.pass(Duration::from_secs(seconds));
            bench.cut(channel % channels.len() as u32);
        }
        bench.pass(1_800 * SECOND);
        prop_assert!(bench.most_opening <= limit, "{} of {limit}", bench.most_opening);
        for (n, (dead, _)) in channels.iter().enumerate() {
            prop_assert_eq!(is_open(&bench, n), !dead, "channel {}", n);
            // Channels of lower precedence are tried, too.
            prop_assert!(bench.script.connects_of(n as u32).len() > if *dead { 3 } else { 0 }, "channel {}", n);
        }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_half_of_each_is_random(
        first in 1u64..5_000,
        longest in 5_000u64..100_000,
        seed in any::<u64>(),
    ) {
        let mut only = channel(0, Precedence::Routine, Connection::Permanent);
        let (first, longest) = (Duration::from_millis(first), Duration::from_millis(longest));
        only.reopen = Reopen { first, longest, ..Reopen::default() };
        let mut bench = facing_all(vec![only], vec![Answer::Nothing], 8);
        // Another point in the node's random sequence.
        for _ in 0..Rng::new(seed).below(3) {
            bench.pass(CONNECT_TIMEOUT);
        }
        bench.pass(1_000 * SECOND);
        let tries = bench.script.connects_of(0);
        for (n, pair) in tries.windows(2).enumerate() {
            let wait = pair[1].since(pair[0] + CONNECT_TIMEOUT);
            let whole = (first * 2u32.saturating_pow(n as u32)).min(longest);
            prop_assert!(wait >= whole / 2 && wait <= whole, "try {}: {:?} of {:?}", n, wait, whole);
        }
        prop_assert!(tries.len() > 5);
    }
}

#[test]
fn waits_are_spread_over_their_range() {
    let only = channel(0, Precedence::Routine, Connection::Permanent);
    let mut bench = facing_all(vec![only], vec![Answer::Nothing], 8);
    bench.pass(100_000 * SECOND);
    let waits: Vec<f64> = bench
        .script
        .connects_of(0)
        .windows(2)
        .skip(6)
        .map(|pair| pair[1].since(pair[0] + CONNECT_TIMEOUT).as_secs_f64())
        .collect();
    assert!(waits.len() > 1_000);
    for quarter in 0..4 {
        let (from, until) = (30.0 + 7.5 * f64::from(quarter), 37.5 + 7.5 * f64::from(quarter));
        let share = waits.iter().filter(|w| (from..until).contains(*w)).count() * 100 / waits.len();
        assert!((20..30).contains(&share), "{share} % from {from} s");
    }
}

#[test]
fn eight_dead_routine_channels_do_not_keep_a_flash_out() {
    let mut channels: Vec<Channel> =
        (0..12).map(|n| channel(n, Precedence::Routine, Connection::Permanent)).collect();
    channels.push(channel(12, Precedence::Flash, Connection::Permanent));
    let mut answers = vec![Answer::Nothing; 12];
    answers.push(Answer::Accept);
    let mut bench = facing_all(channels, answers, 8);
    assert_eq!(bench.script.connects[0], (Instant(0), 12), "the highest is first");
    assert!(is_open(&bench, 12));
    for _ in 0..30 {
        bench.pass(SECOND * 13);
        bench.cut(12);
        let full = bench.opening.len();
        bench.pass(SECOND);
        assert!(is_open(&bench, 12), "it waits for its own second only, with {full} being opened");
    }
    assert_eq!(bench.most_opening, 8);
}

// ----- refusals -----------------------------------------------------------------------------------

#[test]
fn channels_with_waiting_messages_are_opened_first_then_by_precedence() {
    let levels = [1, 2, 3, 4, 5].map(|level: usize| Precedence::ALL[level]);
    let channels = (0..).zip(levels).map(|(index, p)| channel(index, p, Connection::Permanent));
    let waiting = [Precedence::Routine, Precedence::Priority];
    let mut bench = facing_queued(channels.collect(), vec![Answer::Nothing; 5], 2, &waiting);
    let order = |bench: &Bench| bench.script.connects.iter().map(|(_, c)| *c).collect::<Vec<_>>();
    assert_eq!(order(&bench), [1, 0], "Priority, then Routine");
    // No peer answers. While those two wait to be tried again, the highest of the others are opened.
    bench.pass(CONNECT_TIMEOUT);
    assert_eq!(order(&bench)[2..], [4, 3]);
    // One failure is not enough: channels with waiting messages come first again.
    bench.pass(SECOND);
    let mut again = order(&bench)[4..].to_vec();
    again.sort_unstable();
    assert_eq!(again, [0, 1]);
    // They have failed twice: the others come first.
    bench.pass(CONNECT_TIMEOUT);
    assert_eq!(order(&bench)[6..], [4, 3]);
    assert_eq!(bench.most_opening, 2);
}

#[test]
fn a_busy_peer_is_tried_again_soon() {
    let mut bench = facing_one(Answer::Refuse(MtaBindError::Busy));
    let event = bench.last(Kind::AssociationRefused);
    assert_eq!(event.level, LogLevel::Warning);
    assert!(event.detail.starts_with("refused: busy"), "{}", event.detail);
    bench.pass(SECOND);
    assert_eq!(bench.script.connects.len(), 2);
    set_answer(&mut bench, Answer::Accept);
    bench.pass(3 * SECOND);
    assert!(is_open(&bench, 0));
}

#[test]
fn after_a_refused_password_the_wait_is_long_and_the_log_names_what_to_check() {
    for error in [
        MtaBindError::AuthenticationError,
        MtaBindError::UnacceptableSecurityContext,
        MtaBindError::InadequateAssociationConfidentiality,
    ] {
        let mut bench = facing_one(Answer::Refuse(error));
        let event = bench.last(Kind::AssociationRefused);
        assert_eq!(event.level, LogLevel::Error);
        for part in ["\"MTA-HERE\"", "password", "own_name", "\"act\"", "next try in "] {
            assert!(event.detail.contains(part), "{part} in {}", event.detail);
        }
        let shown = status(&bench)[0].last_error.clone().unwrap();
        assert!(shown.contains(&error.to_string()), "{shown}");
        bench.pass(299 * SECOND);
        assert_eq!(bench.script.connects.len(), 1);
        set_answer(&mut bench, Answer::Accept);
        bench.pass(302 * SECOND);
        assert_eq!(bench.script.connects.len(), 2);
        assert!(is_open(&bench, 0));
        assert_eq!(status(&bench)[0].last_error, None);
        // It works now: after a lost connection the wait is short again.
        bench.pass(60 * SECOND);
        bench.cut(0);
        bench.pass(SECOND);
        assert!(is_open(&bench, 0));
    }
}

#[test]
fn a_bind_of_the_peer_at_another_node_ends_the_wait_once_in_half_a_minute() {
    let mut bench = facing_one(Answer::Refuse(MtaBindError::AuthenticationError));
    bench.feed(Input::PeerBoundElsewhere(PeerId::of_name("another")));
    bench.pass(SECOND);
    assert_eq!(bench.script.connects.len(), 1, "it is not this peer");
    let here = PeerId::of_name("act");
    for _ in 0..20 {
        bench.feed(Input::PeerBoundElsewhere(here));
        bench.pass(SECOND);
    }
    assert_eq!(bench.script.connects.len(), 2, "it refuses what it is announced for");
    let ended = &bench.last(Kind::WaitEnded).detail;
    assert!(ended.contains("bound to another node"), "{ended}");
    set_answer(&mut bench, Answer::Accept);
    bench.pass(20 * SECOND);
    bench.feed(Input::PeerBoundElsewhere(here));
    bench.pass(SECOND);
    assert!(is_open(&bench, 0));
}

#[test]
fn after_a_password_refused_during_recovery_the_wait_is_long_and_all_is_sent_again() {
    let mut bench = facing_queued(
        vec![channel(0, Precedence::Routine, Connection::Permanent)],
        vec![Answer::Accept],
        8,
        &[Precedence::Routine],
    );
    bench.read_on(10);
    assert_eq!(bench.count(Kind::TransferStarted), 1);
    set_answer(&mut bench, Answer::Refuse(MtaBindError::AuthenticationError));
    bench.cut(0);
    bench.pass(5 * SECOND);
    assert_eq!((bench.script.connects.len(), bench.count(Kind::TransferStarted)), (2, 1));
    let refused = bench.last(Kind::AssociationRefused);
    assert!(refused.detail.contains("check password and own_name"), "{}", refused.detail);
    assert_eq!(refused.level, LogLevel::Error);
    // A new association would be refused as well: none is tried before the long wait ends.
    bench.pass(290 * SECOND);
    assert_eq!(bench.script.connects.len(), 2);
    set_answer(&mut bench, Answer::Accept);
    bench.read_on(usize::MAX);
    bench.pass(320 * SECOND);
    assert_eq!((bench.script.connects.len(), bench.count(Kind::TransferConfirmed)), (3, 1));
    let started = &bench.last(Kind::TransferStarted).detail;
    assert!(started.starts_with("1000000 octets"), "from its beginning: {started}");
}

#[test]
fn a_recovery_refused_by_a_busy_peer_is_tried_again() {
    // Reasons 1 and 131 are congestion. 133 gives no reason: recovery is tried a few times only.
    for (refusal, tries) in [
        (Answer::Refuse(MtaBindError::Busy), 9),
        (Answer::Session(1), 9),
        (Answer::Session(131), 9),
        (Answer::Session(133), 4),
    ] {
        let mut bench = facing_queued(
            vec![channel(0, Precedence::Routine, Connection::Permanent)],
            vec![Answer::Accept],
            8,
            &[Precedence::Routine],
        );
        bench.read_on(10);
        set_answer(&mut bench, refusal);
        bench.cut(0);
        while bench.script.connects.len() < tries + 1 {
            bench.pass(SECOND / 10);
        }
        let waits: Vec<_> =
            bench.script.connects.windows(2).skip(1).map(|w| w[1].0.since(w[0].0)).collect();
        assert!(waits[0] >= SECOND / 2 && waits[2] >= 2 * SECOND, "{refusal:?}: {waits:?}");
        assert_eq!(bench.script.recoveries, tries, "{refusal:?}: each asks for recovery");
        assert_eq!(bench.count(Kind::TransferStarted), 1);
    }
}

#[test]
fn the_other_dialogue_mode_is_tried_at_once_and_remembered() {
    use Dialogue::{Monologue, TwoWayAlternate};
    let mut bench = facing_one(Answer::Only(Monologue));
    assert!(is_open(&bench, 0), "without any wait");
    assert_eq!(bench.script.proposed, [TwoWayAlternate, Monologue]);
    let event = bench.last(Kind::AssociationRefused);
    assert_eq!(event.level, LogLevel::Warning);
    let next =
        "two-way-alternate was proposed, next is monologue; they refused at bind; next try at once";
    assert!(event.detail.ends_with(next), "{}", event.detail);
    bench.pass(60 * SECOND);
    bench.cut(0);
    bench.pass(SECOND);
    assert_eq!(bench.script.proposed, [TwoWayAlternate, Monologue, Monologue]);
    // The peer gets another configuration.
    set_answer(&mut bench, Answer::Only(TwoWayAlternate));
    bench.pass(60 * SECOND);
    bench.cut(0);
    bench.pass(SECOND);
    assert!(is_open(&bench, 0));
    assert_eq!(bench.script.proposed[3..], [Monologue, TwoWayAlternate]);
}

#[test]
fn a_peer_that_accepts_neither_dialogue_mode_is_tried_rarely() {
    use Dialogue::{Monologue, TwoWayAlternate};
    let mut bench = facing_one(Answer::Refuse(MtaBindError::UnacceptableDialogueMode));
    assert_eq!(bench.script.proposed, [TwoWayAlternate, Monologue]);
    let event = bench.last(Kind::AssociationRefused);
    assert_eq!(event.level, LogLevel::Error);
    assert!(event.detail.contains("neither"), "{}", event.detail);
    bench.pass(299 * SECOND);
    assert_eq!(bench.script.connects.len(), 2);
    bench.pass(302 * SECOND);
    assert_eq!(
        bench.script.proposed[2..],
        [TwoWayAlternate, Monologue],
        "each mode once, then a long wait"
    );
    set_answer(&mut bench, Answer::Only(Monologue));
    bench.pass(602 * SECOND);
    assert_eq!(bench.script.proposed[4..], [TwoWayAlternate, Monologue]);
    assert!(is_open(&bench, 0), "the change at the peer is noticed");
}

/// What an operator sees of a channel that could not be opened: whose part, the layer, the reason, the next try.
#[test]
fn a_channel_that_does_not_open_shows_whose_part_the_layer_the_reason_and_the_wait() {
    for (answer, part, layer, reason) in [
        (Answer::NoRoute, "no_answer", "tcp", ""),
        (Answer::Silence, "no_answer", "transport", "limits.bind_timeout"),
        (Answer::Session(129), "they_refused", "session", "reason 129: session selector unknown"),
        (Answer::Session(131), "they_refused", "session", "congestion"),
        (
            Answer::Refuse(MtaBindError::AuthenticationError),
            "they_refused",
            "bind",
            "MTABindError authentication-error (2)",
        ),
    ] {
        let mut bench = facing_one(answer);
        let now = bench.clock();
        let Some(failure) = status(&bench)[0].failure.clone() else {
            assert_eq!(answer, Answer::Silence, "TCP is still tried");
            continue;
        };
        assert_eq!((&*failure.part, &*failure.layer), (part, layer), "{failure:?}");
        assert!(failure.reason.contains(reason), "{failure:?}");
        assert_eq!((failure.failures, failure.at), (1, now.utc.to_string()));
        let left = failure.next_try_seconds.unwrap();
        let at = now.utc + Duration::from_secs_f64(left);
        assert_eq!(failure.next_try, Some(at.to_string()));
        // The event has the same.
        let refused = bench
            .events
            .iter()
            .filter(|(_, e)| matches!(e.kind, Kind::AssociationRefused | Kind::AssociationLost));
        let details: Vec<&str> = refused.map(|(_, e)| e.detail.as_str()).collect();
        let words = part.replace('_', " ");
        let end = format!("; {words} at {layer}; next try in {left:.1} s, at ");
        assert!(details.len() == 1 && details[0].contains(&end), "{end} in {details:?}");
        set_answer(&mut bench, Answer::Accept);
        bench.pass(601 * SECOND);
        assert!(is_open(&bench, 0));
        assert_eq!(status(&bench)[0].failure, None);
    }
}

// ----- what ends a wait ----------------------------------------------------------------------------

/// A channel that waits for up to ten minutes: the peer refused our password, and would accept it now.
fn refused_then_accepted() -> Bench {
    let mut bench = facing_one(Answer::Refuse(MtaBindError::AuthenticationError));
    bench.pass(20 * SECOND);
    assert_eq!(bench.script.connects.len(), 1);
    set_answer(&mut bench, Answer::Accept);
    bench
}

#[test]
fn busy_after_a_refused_password_names_the_password_until_one_is_accepted() {
    let mut bench = facing_one(Answer::Refuse(MtaBindError::AuthenticationError));
    set_answer(&mut bench, Answer::Refuse(MtaBindError::Busy));
    bench.reload(|config| config.peers[0].own_password = Secret(Bytes::from_static(b"new")));
    bench.pass(SECOND);
    let detail = bench.last(Kind::AssociationRefused).detail.clone();
    for part in
        ["refused: busy", "it refused our name or password before", "`mta reload` at the peer"]
    {
        assert!(detail.contains(part), "{part} in {detail}");
    }
    set_answer(&mut bench, Answer::Accept);
    bench.pass(20 * SECOND);
    assert!(is_open(&bench, 0));
    set_answer(&mut bench, Answer::Refuse(MtaBindError::Busy));
    bench.cut(0);
    bench.pass(SECOND);
    let detail = &bench.last(Kind::AssociationRefused).detail;
    assert!(detail.contains("busy") && !detail.contains("before"), "{detail}");
}

#[test]
fn a_reload_ends_the_wait_after_a_refused_password() {
    let mut bench = refused_then_accepted();
    bench.reload(|_| {});
    assert!(is_open(&bench, 0), "at once, although nothing of the channel changed");
    assert_eq!(bench.last(Kind::WaitEnded).level, LogLevel::Info);
}

#[test]
fn a_changed_reopen_shortens_a_wait_in_progress() {
    let mut bench = facing_one(Answer::Refuse(MtaBindError::AuthenticationError));
    bench.pass(20 * SECOND);
    bench.reload(|config| config.peers[0].channels[0].reopen.refused = 10 * SECOND);
    bench.pass(100 * SECOND);
    let tries = bench.script.connects_of(0);
    assert!(tries.windows(2).skip(1).all(|t| t[1].since(t[0]) <= 10 * SECOND), "{tries:?}");
    assert!(tries.len() > 10);
}

#[test]
fn a_bind_of_the_peer_ends_the_wait() {
    let mut bench = refused_then_accepted();
    peer_binds(&mut bench);
    assert_eq!(bench.count(Kind::AssociationOpened), 2, "the peer's, and then this node's");
    assert_eq!(bench.script.connects.len(), 2);
    // The same after a line that was down.
    let mut bench = facing_one(Answer::Nothing);
    bench.pass(200 * SECOND);
    while bench.opening.len() == 1 {
        bench.pass(SECOND);
    }
    set_answer(&mut bench, Answer::Accept);
    peer_binds(&mut bench);
    assert!(is_open(&bench, 0));
}

#[test]
fn an_operator_opens_a_channel_and_gets_the_result() {
    let mut bench = refused_then_accepted();
    connect(&mut bench, 1, 0);
    assert_eq!(answered(&mut bench), ConnectOutcome::Opened);
    connect(&mut bench, 2, 0);
    assert_eq!(answered(&mut bench), ConnectOutcome::Open { associations: 1 });

    let mut bench = facing_one(Answer::Refuse(MtaBindError::AuthenticationError));
    bench.pass(20 * SECOND);
    connect(&mut bench, 3, 0);
    let ConnectOutcome::Failed { reason } = answered(&mut bench) else { panic!() };
    assert!(reason.contains("authentication-error"), "{reason}");
    connect(&mut bench, 4, 7);
    let ConnectOutcome::Failed { reason } = answered(&mut bench) else { panic!() };
    assert!(reason.contains("no such channel"), "{reason}");
    set_answer(&mut bench, Answer::Only(Dialogue::Monologue));
    connect(&mut bench, 5, 0);
    assert_eq!(
        answered(&mut bench),
        ConnectOutcome::Opened,
        "the other dialogue mode is tried in the same request"
    );

    // No answer from the peer: the result comes at the end of the try.
    let mut bench = facing_one(Answer::Nothing);
    bench.pass(100 * SECOND);
    connect(&mut bench, 6, 0);
    bench.pass(CONNECT_TIMEOUT);
    let ConnectOutcome::Failed { reason } = answered(&mut bench) else { panic!() };
    assert!(reason.contains("no answer within 10s"), "{reason}");

    let closed = channel(0, Precedence::Routine, scheduled("06:00-08:00"));
    let mut bench = facing_all(vec![closed], vec![Answer::Accept], 8);
    connect(&mut bench, 7, 0);
    assert_eq!(answered(&mut bench), ConnectOutcome::Opened, "outside its windows too");
    bench.pass(14 * 60 * SECOND);
    assert!(is_open(&bench, 0));
    bench.pass(62 * SECOND);
    assert!(!is_open(&bench, 0), "for a quarter of an hour");
    assert!(status(&bench)[0].closed.as_ref().unwrap().starts_with("outside its windows"));
    let on_demand = Connection::OnDemand { idle_close: 60 * SECOND };
    let quiet = channel(0, Precedence::Routine, on_demand);
    let mut bench = facing_all(vec![quiet], vec![Answer::Accept], 8);
    assert!(bench.script.connects.is_empty());
    connect(&mut bench, 8, 0);
    assert_eq!(answered(&mut bench), ConnectOutcome::Opened, "also without traffic");
    connect(&mut bench, 9, 0);
    bench.reload(|config| config.peers.clear());
    bench.pass(SECOND);
}

// ----- windows -----------------------------------------------------------------------------------

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn a_scheduled_channel_is_open_in_its_windows_only() {
    let only = channel(0, Precedence::Routine, scheduled("thu 06:00-08:00; 22:00-02:00"));
    let mut bench = facing_all(vec![only], vec![Answer::Accept], 8);
    assert!(is_open(&bench, 0), "thursday, midnight");
    bench.pass(2 * HOUR - SECOND);
    assert!(is_open(&bench, 0));
    bench.pass(SECOND);
    assert!(!is_open(&bench, 0));
    assert_eq!(bench.last(Kind::AssociationReleased).level, LogLevel::Info);
    let closed = "outside its windows, opens at 2026-01-01T06:00:00.000000Z";
    assert_eq!(status(&bench)[0].closed.as_deref(), Some(closed));
    assert!(bench.last(Kind::WindowChanged).detail.starts_with("outside its windows until"));
    bench.pass(4 * HOUR - SECOND);
    assert_eq!(bench.script.connects.len(), 1, "none is opened outside the window");
    bench.pass(SECOND);
    assert!(is_open(&bench, 0));
    assert_eq!(status(&bench)[0].closed, None);
    assert_eq!(bench.script.connects.len(), 2);
    // A loss inside the window: opened again.
    bench.cut(0);
    bench.pass(SECOND);
    assert!(is_open(&bench, 0));
    bench.pass(2 * HOUR);
    assert!(!is_open(&bench, 0));
}

#[test]
fn an_opening_in_progress_ends_with_its_window() {
    let only = channel(0, Precedence::Routine, scheduled("00:00-02:00; 06:00-07:00"));
    let mut bench = facing_all(vec![only], vec![Answer::Nothing], 8);
    bench.pass(2 * HOUR);
    let before = bench.script.connects.len();
    assert!(bench.opening.is_empty() && before > 100);
    set_answer(&mut bench, Answer::Accept);
    bench.pass(4 * HOUR);
    assert_eq!(bench.script.connects.len(), before + 1, "at once when the next window begins");
    assert!(is_open(&bench, 0));
}

#[test]
fn a_changed_wall_clock_is_noticed_within_a_minute() {
    let only = channel(0, Precedence::Routine, scheduled("06:00-08:00"));
    let mut bench = facing_all(vec![only], vec![Answer::Accept], 8);
    bench.pass(HOUR);
    assert!(bench.script.connects.is_empty());
    bench.step = 6 * HOUR;
    bench.pass(60 * SECOND);
    assert!(is_open(&bench, 0));
    bench.step = Duration::ZERO;
    bench.pass(60 * SECOND);
    assert!(!is_open(&bench, 0));
}

/// A peer that closes the connection shortly after each message is of use: the next message waits no longer than after the
/// first loss.
#[test]
fn a_peer_that_closes_after_each_confirmed_message_is_tried_again_soon() {
    let mut pair = Pair::new(1, NOTHING);
    for number in 1..=8 {
        pair.submit(Precedence::Flash, 100);
        let from = pair.now;
        while pair.sites[NAPLES].count(Kind::TransferConfirmed) < number {
            pair.network.run_for(Duration::from_millis(20));
            assert!(pair.now.since(from) < Duration::from_secs(5), "message {number}");
        }
        assert!(pair.now.since(from) <= Duration::from_millis(1_300), "message {number}");
        pair.network.cut();
    }
}

/// A peer may send back what it got.
#[test]
fn our_password_is_in_no_event_and_no_status_whatever_the_peer_sends() {
    let only = channel(0, Precedence::Routine, Connection::Permanent);
    let mut bench = facing(vec![only], Limits::default());
    let own = bench.config.peers[0].own_password.0.clone();
    let own = String::from_utf8(own.to_vec()).unwrap();
    assert!(own.len() > 3, "{own}");
    bench.script.name = format!("the password {own} is wrong");
    bench.start();
    bench.settle();
    let refused = bench.details(Kind::AssociationRefused).concat();
    assert!(refused.contains("the password (our password) is wrong"), "{refused}");
    let shown = format!("{:?} {:?}", bench.all(), status(&bench));
    assert!(!shown.contains(&own), "{shown}");
}
