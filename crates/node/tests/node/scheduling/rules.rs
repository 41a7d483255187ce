//! MINIMIZE, the minimum share, pre-emption, retry, alerts and expiry of two whole MTAs in virtual
//! time, asserted by the order and the times of events.

use base::Precedence::{self, *};
use base::{Instant, PeerId, Utc};
use node::api::Scope;
use node::config::{Hold, Minimize, NodeConfig, Target};
use node::event::Kind;
use node::metrics::Value;
use node::minimize::MinimizeOrder;
use node::operator::Operator;
use node::site_orders::MINIMIZED;
use node::{ChannelId, Input};
use osi::api::RtseParameters;
use status::Counters;
use std::time::Duration;
use testkit::{ACT, Delivered, Events, NAPLES, NOTHING, Pair, Setup, address, five_channels};

const ROUTINE_CHANNEL: u32 = 0;
const FLASH_CHANNEL: u32 = 3;
/// A channel without a connection.
const NOWHERE_CHANNEL: u32 = 9;

/// A pair with this configuration of both nodes, whose sender takes reports.
fn joined(node: fn(&mut NodeConfig)) -> Pair {
    Pair::with_reports(11, Setup { node, ..NOTHING })
}

/// Transfers begun `+`, confirmed `-`, failed `!`, paused `(`, resumed `)`, in order.
fn order_of(pair: &Pair) -> String {
    pair.sites[NAPLES].order(&[
        (Kind::TransferStarted, '+'),
        (Kind::TransferConfirmed, '-'),
        (Kind::TransferFailed, '!'),
        (Kind::Paused, '('),
        (Kind::Resumed, ')'),
    ])
}

// ----- expiry -------------------------------------------------------------------------------------

/// Naples reaches a third site only through Act, which cannot reach it. Flash expires after two minutes.
fn ghost(config: &mut NodeConfig) {
    five_channels(config);
    *config.times.expire.0.get_mut(Flash) = Duration::from_secs(120);
    let mut route = config.routes[1].clone();
    route.prefix = "/C=XX/ADMD=NATO/PRMD=GHOST".parse().unwrap();
    if config.mta.0 == "ACT" {
        let mut peer = config.peers[0].clone();
        peer.name = "ghost".to_owned();
        peer.channels.truncate(1);
        peer.channels[0].index = NOWHERE_CHANNEL;
        peer.channels[0].precedences = Precedence::ALL.to_vec();
        route.to = Target::Peer(peer.id());
        config.peers.push(peer);
    }
    config.routes.push(route);
}

fn to_ghost() -> Pair {
    let mut pair = joined(ghost);
    pair.block(NOWHERE_CHANNEL);
    pair.submit_to("/C=XX/ADMD=NATO/PRMD=GHOST/S=OPS", Flash, 1_000);
    pair.until(Kind::Submitted, 1);
    pair
}

fn reports(pair: &Pair) -> Vec<bool> {
    let is_delivery = |d: &Delivered| match d {
        Delivered::Report { delivered, .. } => *delivered,
        Delivered::Message { .. } => panic!("{d:?}"),
    };
    pair.network.users[pair.sender].delivered.iter().map(is_delivery).collect()
}

/// The counters of the sending site. The metrics have the same values.
fn counted(pair: &Pair) -> Counters {
    let (node, now) = (&pair.sites[NAPLES].node, pair.clock());
    let (counters, families) = (node.status(now).counters, node.metrics(now));
    let sum = |name: &str| {
        let family = families.iter().find(|family| family.name == name).unwrap();
        let counts = family.samples.iter().map(|sample| match sample.value {
            Value::Counter(count) => count,
            _ => panic!("{name}"),
        });
        counts.sum::<u64>()
    };
    assert_eq!(sum("mta_messages_submitted"), counters.submitted);
    assert_eq!(sum("mta_messages_transferred"), counters.transferred);
    assert_eq!(sum("mta_messages_expired"), counters.expired);
    assert_eq!(sum("mta_messages_overdue"), counters.overdue);
    assert_eq!(sum("mta_reports_made"), counters.reports_made);
    counters
}

#[test]
fn a_message_that_expires_at_the_second_mta_is_reported_to_its_originator_at_the_first() {
    let mut pair = to_ghost();
    let submitted = pair.timed(NAPLES, Kind::Submitted).next().unwrap().0;
    pair.run(60);
    assert_eq!(pair.queued(ACT), 1);
    pair.crash(ACT);
    pair.run(100);
    let expired: Vec<_> = pair.timed(ACT, Kind::Expired).collect();
    let [(at, event)] = expired[..] else { panic!("{expired:?}") };
    // The trace counts whole seconds.
    let age = at.since(submitted);
    assert!(age > Duration::from_secs(118) && age <= Duration::from_secs(120), "{age:?}");
    assert_eq!((event.precedence, event.message.is_some()), (Some(Flash), true));
    assert!(event.detail.contains("peer ghost"), "{}", event.detail);
    assert_eq!(reports(&pair), [false]);
    assert_eq!((pair.queued(ACT), pair.queued(NAPLES)), (0, 0));
    assert!(pair.sites[ACT].store.bodies.is_empty());
}

#[test]
fn a_report_that_could_not_be_committed_is_made_at_the_next_start() {
    let mut pair = to_ghost();
    pair.run(100);
    pair.sites[ACT].store.full = true;
    pair.run(150);
    assert_eq!(pair.timed(ACT, Kind::Expired).count(), 1);
    assert_eq!(reports(&pair), [false; 0], "not before it is durable");
    pair.sites[ACT].store.full = false;
    pair.crash(ACT);
    pair.run_for(Duration::from_secs(1));
    // The full disk stored neither the report nor the time, so the clock is doubted first.
    assert_eq!(pair.timed(ACT, Kind::Expired).count(), 1);
    pair.feed(ACT, Input::AcceptClock { by: Operator::default() });
    assert_eq!(pair.timed(ACT, Kind::ClockTrusted).count(), 1);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.timed(ACT, Kind::Expired).count(), 2, "it is expired already: at once");
    pair.run(30);
    assert_eq!(reports(&pair), [false], "once");
    assert_eq!(pair.queued(ACT), 0);
}

#[test]
fn a_message_in_a_mailbox_does_not_expire() {
    let mut pair = joined(|config| {
        five_channels(config);
        *config.times.expire.0.get_mut(Flash) = Duration::from_secs(120);
    });
    pair.submit_to(&address(ACT, "LOG"), Flash, 1_000);
    pair.run(4_000);
    assert_eq!(pair.timed(ACT, Kind::Expired).count(), 0);
    let late: Vec<_> = pair.timed(ACT, Kind::Overdue).collect();
    assert_eq!(late.len(), 1, "but it is reported as overdue: {late:?}");
    let reader = pair.user(ACT, "LOG", true);
    pair.bind(reader, ACT);
    pair.run(5);
    assert_eq!(pair.users[reader].delivered.len(), 1);
}

#[test]
fn a_message_in_a_mailbox_beyond_the_latest_delivery_time_is_reported() {
    let mut pair = joined(five_channels);
    pair.network.users[pair.sender].latest = Some(pair.clock().utc + Duration::from_secs(100));
    pair.submit_to(&address(ACT, "LOG"), Flash, 1_000);
    pair.run(90);
    assert_eq!(reports(&pair), [false; 0]);
    pair.crash(ACT);
    pair.run(15);
    assert_eq!(reports(&pair), [false]);
    let reader = pair.user(ACT, "LOG", true);
    pair.bind(reader, ACT);
    pair.run(5);
    assert_eq!(pair.users[reader].delivered, []);
    assert_eq!(pair.queued(ACT), 0);
}

#[test]
fn hundreds_of_messages_that_expire_together_are_all_reported() {
    let mut pair = joined(|config| {
        five_channels(config);
        *config.times.expire.0.get_mut(Routine) = Duration::from_secs(60);
    });
    pair.line_up = false;
    pair.cut();
    for _ in 0..300 {
        pair.submit(Routine, 10);
    }
    pair.until(Kind::Submitted, 300);
    pair.run(90);
    assert_eq!(pair.events(Kind::Expired).count(), 300);
    assert_eq!(reports(&pair).len(), 300);
    assert_eq!(pair.queued(NAPLES), 0);
    let counters = counted(&pair);
    assert_eq!((counters.submitted, counters.expired, counters.reports_made), (300, 300, 300));
}

/// 200 Routine that will expire at Naples soon, while the line is down.
fn about_to_expire() -> Pair {
    let mut pair = joined(|config| {
        five_channels(config);
        *config.times.expire.0.get_mut(Routine) = Duration::from_secs(60);
    });
    pair.line_up = false;
    pair.cut();
    for _ in 0..200 {
        pair.submit(Routine, 10);
    }
    pair.until(Kind::Submitted, 200);
    pair
}

#[test]
fn few_messages_expire_at_once_while_the_disk_does_not_answer() {
    let mut pair = about_to_expire();
    pair.sites[NAPLES].store.stuck = true;
    pair.run(600);
    let expired = pair.events(Kind::Expired).count();
    assert!((32..=64).contains(&expired), "{expired}");
    pair.sites[NAPLES].store.stuck = false;
    pair.run(60);
    assert_eq!(reports(&pair).len(), 200);
}

#[test]
fn few_messages_expire_at_once_while_the_disk_refuses() {
    let mut pair = about_to_expire();
    pair.sites[NAPLES].store.full = true;
    pair.run(600);
    let expired = pair.events(Kind::Expired).count();
    assert!((32..=64).contains(&expired), "{expired}");
    pair.sites[NAPLES].store.full = false;
    pair.run(60);
    assert_eq!(reports(&pair).len(), 200);
    assert_eq!(pair.queued(NAPLES), 0);
}

// ----- the wall clock is set ----------------------------------------------------------------------

const YEARS_6: i64 = 6 * 365 * 86_400;

/// A Flash for Act, which cannot be reached, and a Flash for a local user. Both are deferred by `until`
/// seconds, by a wall clock that is later set by `step` seconds. Returns the times of the alert, the
/// expiry and the local delivery, in seconds from the submission.
fn deferred_over_a_step(until: i64, step: i64) -> [Vec<u64>; 3] {
    let mut pair = joined(|config| {
        five_channels(config);
        *config.times.expire.0.get_mut(Flash) = Duration::from_secs(300);
    });
    pair.line_up = false;
    pair.cut();
    let begun = pair.now;
    let here = pair.user(NAPLES, "LOG", true);
    pair.bind(here, NAPLES);
    let at = pair.clock().utc.0.saturating_add_signed(until * 1_000_000);
    pair.network.users[pair.sender].deferred = Some(Utc(at));
    pair.submit(Flash, 100);
    pair.submit_to(&address(NAPLES, "LOG"), Flash, 100);
    pair.until(Kind::Submitted, 2);
    pair.run(50);
    pair.clock_set = step * 1_000_000;
    pair.run(5_000);
    assert_eq!(pair.events(Kind::ClockDoubted).count(), 1);
    [Kind::Overdue, Kind::Expired, Kind::Delivered].map(|kind| {
        let at = pair.timed(NAPLES, kind).map(|(at, _)| at.since(begun).as_secs());
        at.collect::<Vec<_>>()
    })
}

#[test]
fn a_deferred_message_is_sent_and_expires_by_the_corrected_clock() {
    // The clock is set 6 years forward while they wait. It is trusted after 10 steady minutes.
    let [overdue, expired, delivered] = deferred_over_a_step(YEARS_6 + 2_000, YEARS_6);
    let near = |times: &[u64], at: u64| times.first().is_some_and(|t| (at..at + 3).contains(t));
    // The times in the message are whole seconds.
    assert!(near(&overdue, 2_059), "{overdue:?}");
    assert!(near(&expired, 2_299), "{expired:?}");
    assert!(near(&delivered, 1_999), "{delivered:?}");
    assert_eq!((overdue.len(), expired.len()), (1, 1));
    // A message whose time comes before that is sent, and expires, when the clock is trusted.
    for times in deferred_over_a_step(YEARS_6 + 200, YEARS_6) {
        assert!(times.iter().all(|t| (650..720).contains(t)) && !times.is_empty(), "{times:?}");
    }
    // With the clock set back, the message waits an hour longer.
    let [overdue, expired, delivered] = deferred_over_a_step(100, -3_600);
    assert!((3_758..3_762).contains(&overdue[0]), "{overdue:?}");
    assert!((3_998..4_002).contains(&expired[0]), "{expired:?}");
    assert!((3_698..3_702).contains(&delivered[0]), "{delivered:?}");
}

#[test]
fn a_message_longer_than_the_peer_accepts_is_reported_at_once() {
    let mut pair = joined(|config| {
        five_channels(config);
        config.peers[0].content_max = Some(1_000);
    });
    pair.submit(Flash, 1_001);
    pair.submit(Flash, 1_000);
    pair.run(5);
    assert_eq!(reports(&pair), [false]);
    assert_eq!(pair.delivered(), [2]);
    assert_eq!(pair.events(Kind::TransferStarted).count(), 1);
}

// ----- alerts -------------------------------------------------------------------------------------

#[test]
fn an_overdue_message_is_logged_once_at_its_time_over_a_restart() {
    let mut pair = joined(five_channels);
    pair.line_up = false;
    pair.cut();
    pair.submit(Override, 1_000);
    pair.submit(Flash, 1_000);
    pair.until(Kind::Submitted, 2);
    let submitted = pair.now;
    pair.run(45);
    pair.crash(NAPLES);
    pair.run(100);
    pair.line_up = true;
    pair.run(100);
    let alerts: Vec<_> = pair
        .timed(NAPLES, Kind::Overdue)
        .map(|(at, e)| (e.precedence, at.since(submitted).as_secs_f64().round() as u64))
        .collect();
    // At the start one line states how many are overdue already, without naming them.
    assert_eq!(alerts, [(Some(Override), 30), (None, 45), (Some(Flash), 60)]);
    assert_eq!(counted(&pair).overdue, 2, "the line at the start counts as one");
    let flash = pair.events(Kind::Overdue).last().unwrap();
    assert!(flash.message.is_some() && flash.detail.contains("60 s"), "{}", flash.detail);
    let mut delivered = pair.delivered();
    delivered.sort_unstable();
    assert_eq!(delivered, [1, 2]);
}

#[test]
fn a_message_in_time_causes_no_alert() {
    let mut pair = joined(five_channels);
    pair.submit(Override, 1_000);
    pair.run(200);
    assert_eq!(pair.events(Kind::Overdue).count(), 0);
    pair.finish(240);
}

// ----- retry --------------------------------------------------------------------------------------

/// The waits between tries of this precedence, in seconds, at a site whose peer cannot store anything.
fn waits_of_retries(precedence: Precedence) -> Vec<f64> {
    let mut pair = joined(five_channels);
    pair.sites[ACT].store.full = true;
    pair.submit(precedence, 1_000);
    pair.run(400);
    let starts = pair.timed(NAPLES, Kind::TransferStarted).map(|(at, _)| at);
    let starts: Vec<Instant> = starts.collect();
    pair.sites[ACT].store.full = false;
    pair.run(400);
    pair.finish(240);
    starts.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect()
}

#[test]
fn waits_grow_by_half_and_low_precedences_wait_longer() {
    for (precedence, first) in [(Flash, 10.0), (Priority, 30.0), (Routine, 60.0)] {
        let waits = waits_of_retries(precedence);
        assert!(waits.len() >= 2, "{precedence}: {waits:?}");
        let mut full: f64 = first;
        for wait in waits {
            assert!(wait >= full * 0.8 && wait < full + 1.0, "{precedence}: {wait} of {full}");
            full *= 1.5;
        }
    }
}

// ----- MINIMIZE -----------------------------------------------------------------------------------

#[test]
fn minimize_begins_and_ends_with_its_windows() {
    let mut pair = joined(|config| {
        five_channels(config);
        let windows = "00:05-00:20".parse().unwrap();
        config.minimize = Some(Minimize { floor: Immediate, windows });
    });
    pair.submit(Routine, 1_000);
    pair.run(299);
    assert_eq!(pair.delivered(), [1], "before the window");
    pair.run(2);
    pair.submit(Routine, 1_000);
    pair.submit(Immediate, 1_000);
    pair.run(600);
    assert_eq!(pair.delivered(), [1, 3]);
    let status = pair.sites[NAPLES].node.status(pair.clock());
    let because = status.peers[0].channels[0].held_because.clone().unwrap();
    assert!(because.contains("MINIMIZE"), "{because}");
    // A restart in between changes nothing.
    pair.crash(NAPLES);
    pair.run(200);
    assert_eq!(pair.delivered(), [1, 3]);
    pair.run(120);
    assert_eq!(pair.delivered(), [1, 3, 2]);
    let changes: Vec<_> =
        pair.timed(NAPLES, Kind::Minimize).map(|(at, _)| at.since(Instant(0)).as_secs()).collect();
    assert_eq!(changes, [300, 902, 1_200], "begins, in force at the restart, ends");
}

#[test]
fn minimize_of_a_channel_does_not_apply_to_others() {
    let mut pair = joined(|config| {
        five_channels(config);
        let windows = "00:00-00:10".parse().unwrap();
        let floor = Override;
        config.peers[0].channels[FLASH_CHANNEL as usize].minimize =
            Some(Minimize { floor, windows });
    });
    pair.submit(Flash, 1_000);
    pair.submit(Routine, 1_000);
    pair.run(60);
    assert_eq!(pair.delivered(), [2], "and the Flash holds nothing");
    pair.run(600);
    assert_eq!(pair.delivered(), [2, 1]);
}

#[test]
fn an_operator_orders_and_withdraws_minimize() {
    let mut pair = joined(|config| {
        five_channels(config);
        let windows = "00:10-00:30".parse().unwrap();
        config.minimize = Some(Minimize { floor: Flash, windows });
    });
    let order = |pair: &mut Pair, floor, until: Option<u64>| {
        let until = until.map(|s| Utc(pair.clock().utc.0 - pair.now.0 + s * 1_000_000));
        let by = Operator { uid: 7, name: None };
        pair.feed(NAPLES, Input::Minimize { scope: Scope::Mta, floor, until, by });
    };
    order(&mut pair, Some(Priority), Some(100));
    pair.submit(Routine, 1_000);
    pair.run(90);
    assert_eq!(pair.delivered(), [0; 0]);
    let in_force = |pair: &Pair| {
        let status = pair.sites[NAPLES].node.minimize_status(pair.clock());
        status.into_iter().map(|m| (m.on, m.floor, m.by, m.until)).collect::<Vec<_>>()
    };
    let ends = |pair: &Pair, s: u64| {
        let start = pair.clock().utc.0 - pair.now.0;
        Some(Utc(start + s * 1_000_000).to_string())
    };
    let all = "all peers".to_owned();
    assert_eq!(
        in_force(&pair),
        [(all.clone(), Some(Priority), "operator".to_owned(), ends(&pair, 100))]
    );
    pair.run(20);
    assert_eq!(pair.delivered(), [1], "it ended by itself");
    assert_eq!(in_force(&pair), [(all, None, "windows".to_owned(), ends(&pair, 600))]);
    order(&mut pair, Some(Priority), None);
    pair.submit(Routine, 1_000);
    pair.run(60);
    order(&mut pair, None, None);
    pair.run(5);
    assert_eq!(pair.delivered(), [1, 2], "withdrawn");
    // In a configured window an operator can suspend it.
    pair.run(500);
    pair.submit(Routine, 1_000);
    pair.run(60);
    assert_eq!(pair.delivered(), [1, 2]);
    order(&mut pair, None, Some(1_000));
    pair.run(5);
    assert_eq!(pair.delivered(), [1, 2, 3]);
    pair.run(400);
    pair.submit(Routine, 1_000);
    pair.run(60);
    assert_eq!(pair.delivered(), [1, 2, 3], "in force again");
    pair.run(1_000);
    assert_eq!(pair.delivered(), [1, 2, 3, 4]);
}

/// It is a value of the store: the next start has it, and every other node of a site.
#[test]
fn an_order_of_minimize_outlives_its_process() {
    let mut pair = joined(five_channels);
    let by = Operator { uid: 7, name: None };
    let order = |scope, floor, until: Option<u64>, pair: &Pair| {
        let until = until.map(|s| pair.clock().utc + Duration::from_secs(s));
        Input::Minimize { scope, floor, until, by: by.clone() }
    };
    let peer = PeerId::of_name("act");
    let flash = Scope::Channel(ChannelId { peer, index: FLASH_CHANNEL });
    for (scope, floor, until) in [
        (Scope::Mta, Immediate, None),
        (flash, Override, Some(500)),
        (Scope::Peer(peer), Flash, Some(5)),
    ] {
        let order = order(scope, Some(floor), until, &pair);
        pair.feed(NAPLES, order);
    }
    pair.run(20);
    let in_force = |pair: &Pair, site: usize| {
        let status = pair.sites[site].node.minimize_status(pair.clock());
        status.into_iter().map(|m| (m.on, m.floor, m.ordered_by)).collect::<Vec<_>>()
    };
    let ordered = |on: &str, floor| (on.to_owned(), Some(floor), Some("uid 7".to_owned()));
    let expected = [ordered("all peers", Immediate), ordered("act/flash", Override)];
    assert_eq!(in_force(&pair, NAPLES), expected);
    pair.crash(NAPLES);
    pair.run(20);
    assert_eq!(in_force(&pair, NAPLES), expected);
    // Another node has it from the store. It knows no peer of that name: that order waits for it.
    let value = pair.sites[NAPLES].store.meta.get(MINIMIZED).cloned().expect("a value");
    pair.feed(ACT, Input::RecoveredMinimize(value));
    assert_eq!(in_force(&pair, ACT), expected[..1]);
    let withdrawn = order(Scope::Mta, None, None, &pair);
    pair.feed(NAPLES, withdrawn);
    pair.run(5);
    let value = pair.sites[NAPLES].store.meta.get(MINIMIZED).cloned().expect("a value");
    pair.feed(ACT, Input::RecoveredMinimize(value));
    assert_eq!((in_force(&pair, NAPLES).len(), in_force(&pair, ACT).len()), (1, 0));
}

// ----- minimum share ------------------------------------------------------------------------------

/// How many Routine were transferred before the last of 40 Flash.
fn routine_among_flash(node: fn(&mut NodeConfig)) -> usize {
    let mut pair = joined(node);
    pair.line_up = false;
    pair.cut();
    for _ in 0..40 {
        pair.submit(Flash, 10_000);
        pair.submit(Routine, 10_000);
    }
    pair.until(Kind::Submitted, 80);
    pair.line_up = true;
    pair.until(Kind::TransferConfirmed, 80);
    let starts: Vec<_> = pair.events(Kind::TransferStarted).collect();
    let last = starts.iter().rposition(|e| e.precedence == Some(Flash)).unwrap();
    let before: Vec<_> = starts[..last].iter().filter(|e| e.precedence == Some(Routine)).collect();
    assert!(before.iter().all(|e| e.detail.contains("by rule 7")), "{before:?}");
    let count = before.len();
    pair.finish(240);
    count
}

#[test]
fn a_minimum_share_lets_some_lower_messages_start() {
    // Strict: no message starts only because the channel of the other is still down.
    let strict = |config: &mut NodeConfig| {
        five_channels(config);
        config.hold.hold = Hold::Strict;
    };
    assert_eq!(routine_among_flash(strict), 0);
    let with_share = routine_among_flash(|config| {
        five_channels(config);
        config.hold.hold = Hold::Strict;
        config.hold.share = Some(20);
    });
    // A fifth of the octets: 10 to 40 Flash.
    assert!((5..=11).contains(&with_share), "{with_share}");
}

// ----- pre-emption --------------------------------------------------------------------------------

fn preempting(config: &mut NodeConfig) {
    five_channels(config);
    config.hold.preempt = true;
    for channel in config.peers.iter_mut().flat_map(|peer| &mut peer.channels) {
        channel.rts.longest_pause = Duration::from_mins(15);
    }
}

/// A Routine half sent, then a Flash: what happened until both were confirmed.
fn flash_beside_a_routine(rts: fn(&mut RtseParameters), node: fn(&mut NodeConfig)) -> String {
    let mut pair = Pair::with_reports(11, Setup { rts, node });
    pair.submit(Routine, 3_000_000);
    pair.until(Kind::TransferStarted, 1);
    pair.run(1);
    pair.submit(Flash, 1_000_000);
    pair.until(Kind::TransferConfirmed, 2);
    let order = order_of(&pair);
    pair.finish(240);
    order
}

#[test]
fn a_lower_transfer_pauses_during_a_higher_one() {
    let order = flash_beside_a_routine(|_| {}, preempting);
    assert_eq!(order, "+routine +flash (routine -flash )routine -routine");
}

#[test]
fn without_preempt_a_lower_transfer_continues_beside_a_higher_one() {
    let order = flash_beside_a_routine(|_| {}, five_channels);
    assert_eq!(order, "+routine +flash -flash -routine");
}

#[test]
fn without_checkpoints_a_lower_transfer_does_not_pause() {
    let order = flash_beside_a_routine(|rts| rts.checkpoint_size = 0, preempting);
    assert!(!order.contains('('), "{order}");
}

/// A Routine that pauses behind a checkpoint for a Flash that takes 40 s and more, longer than the
/// transfer timeout.
fn paused() -> Pair {
    let mut pair = joined(preempting);
    pair.latency = Duration::from_millis(100);
    pair.submit(Routine, 500_000);
    pair.until(Kind::TransferStarted, 1);
    pair.run(2);
    pair.submit(Flash, 2_500_000);
    pair.until(Kind::Paused, 1);
    pair
}

fn routine_done(pair: &Pair) -> Option<u64> {
    let status = pair.sites[NAPLES].node.status(pair.clock());
    let channel = &status.peers[0].channels[ROUTINE_CHANNEL as usize];
    channel.associations.iter().find_map(|a| a.bytes_done)
}

#[test]
fn a_long_pause_ends_no_association() {
    let mut pair = paused();
    let done = routine_done(&pair);
    assert!(done.is_some());
    pair.run(35);
    assert_eq!(order_of(&pair), "+routine +flash (routine", "the Flash is still in progress");
    assert_eq!(routine_done(&pair), done, "nothing was sent meanwhile");
    pair.until(Kind::TransferConfirmed, 2);
    assert_eq!(order_of(&pair), "+routine +flash (routine -flash )routine -routine");
    assert_eq!(pair.events(Kind::AssociationLost).count(), 0);
    pair.finish(240);
}

#[test]
fn an_association_lost_during_a_pause_is_recovered_and_pauses_again() {
    let mut pair = paused();
    pair.block(ROUTINE_CHANNEL);
    pair.run(3);
    pair.blocked.clear();
    pair.run(20);
    let order = order_of(&pair);
    assert!(order.starts_with("+routine +flash (routine"), "{order}");
    assert!(!order.contains("-flash"), "{order}");
    pair.until(Kind::TransferConfirmed, 2);
    let order = order_of(&pair);
    assert!(order.find("-flash").unwrap() < order.find("-routine").unwrap(), "{order}");
    assert!(order.ends_with("-flash )routine -routine"), "{order}");
    pair.finish(240);
}

/// A paused transfer loses its association twice; `after` is the time from its new start to the next loss.
fn paused_and_cut_off_twice(after: Duration) {
    let mut pair = paused();
    let done = routine_done(&pair);
    assert!(done.is_some_and(|done| done > 0), "{done:?}");
    for starts in [3, 4] {
        pair.block(ROUTINE_CHANNEL);
        pair.run(1);
        pair.blocked.clear();
        pair.until(Kind::TransferStarted, starts);
        // It has to pause, so no more of it is confirmed.
        pair.run_for(after);
    }
    assert!(!order_of(&pair).contains("-flash"), "{}", order_of(&pair));
    pair.until(Kind::TransferConfirmed, 2);
    let routine = pair.events(Kind::TransferStarted).filter(|e| e.precedence == Some(Routine));
    let starts: Vec<&str> = routine.map(|e| e.detail.as_str()).collect();
    assert!(starts.len() >= 3, "{starts:?}");
    assert!(starts[1..].iter().all(|detail| detail.starts_with("resumed")), "{starts:?}");
    pair.finish(240);
}

#[test]
fn a_pause_that_loses_its_association_twice_is_resumed() {
    // Before and after the peer has received the request to resume.
    for ms in [5, 120, 300] {
        paused_and_cut_off_twice(Duration::from_millis(ms));
    }
}

#[test]
fn a_paused_transfer_continues_when_the_higher_one_loses_its_channel() {
    let mut pair = paused();
    pair.block(FLASH_CHANNEL);
    pair.until(Kind::Resumed, 1);
    pair.until(Kind::TransferConfirmed, 1);
    let order = order_of(&pair);
    assert!(order.ends_with("-routine"), "{order}");
    pair.blocked.clear();
    pair.finish(240);
}

#[test]
fn a_paused_transfer_continues_when_the_higher_one_stalls() {
    let mut pair = paused();
    let at = pair.now;
    // The content of the Flash cannot be read for a while. The Routine reads nothing.
    pair.delays.read = Duration::from_secs(25);
    pair.until(Kind::Resumed, 1);
    let after = pair.now.since(at);
    assert!(after >= Duration::from_secs(14) && after < Duration::from_secs(20), "{after:?}");
    pair.delays.read = Duration::from_micros(50);
    pair.finish(240);
}

#[test]
fn a_stop_interrupts_a_paused_transfer() {
    let mut pair = paused();
    pair.feed(NAPLES, Input::Stop);
    pair.run(5);
    assert!(pair.sites[NAPLES].stopped, "{}", order_of(&pair));
    pair.crash(NAPLES);
    pair.finish(240);
}

#[test]
fn an_order_names_a_peer_or_a_channel() {
    let pair = joined(five_channels);
    let (node, now) = (&pair.sites[NAPLES].node, pair.clock());
    let scope = |peer: Option<&str>, channel: Option<&str>| {
        let (peer, channel) = (peer.map(str::to_owned), channel.map(str::to_owned));
        let order = MinimizeOrder { peer, channel, floor: Some(Flash), seconds: Some(u64::MAX) };
        match node.minimize_input(now, &order, Operator::default())? {
            Input::Minimize { scope, floor: Some(Flash), until: Some(until), .. } => {
                assert_eq!(until.since(now.utc), Duration::from_secs(366 * 86_400));
                Ok::<_, node::names::NameError>(scope)
            }
            other => panic!("{other:?}"),
        }
    };
    let peer = PeerId::of_name("act");
    let channel = ChannelId { peer, index: FLASH_CHANNEL };
    assert_eq!(scope(None, None), Ok(Scope::Mta));
    assert_eq!(scope(Some("act"), None), Ok(Scope::Peer(peer)));
    assert_eq!(scope(None, Some("act/flash")), Ok(Scope::Channel(channel)));
    let wrong = scope(Some("atc"), None).unwrap_err().to_string();
    assert_eq!(wrong, "there is no peer \"atc\"; there are: act");
    let wrong = scope(None, Some("flash")).unwrap_err().to_string();
    assert!(wrong.contains("no channel \"flash\"") && wrong.contains("act/flash"), "{wrong}");
}
