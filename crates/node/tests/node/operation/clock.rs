//! A wall clock that jumps, in virtual time: nothing expires by it until it was steady, or an operator
//! accepts it.

use base::{Precedence, Utc};
use node::Input;
use node::event::Kind;
use node::operator::Operator;
use node::site_orders::ClockAccepted;
use p1::flags::ReportRequest;
use status::ClockStatus;
use std::collections::BTreeSet;
use std::time::Duration;
use testkit::{ACT, Delivered, Events, NAPLES, NOTHING, Network, Pair};

const HOUR: i64 = 3_600;

/// This number of Flash waits in Naples for Act, which cannot be reached.
fn waiting(flash: usize) -> Pair {
    let mut network = Network::pair(5, NOTHING);
    network.line_up = false;
    let mut pair = Pair::join(network, true);
    pair.report = ReportRequest::NonDelivery;
    submit(&mut pair, flash);
    run(&mut pair, 60);
    assert_eq!(pair.queued(NAPLES), flash);
    pair
}

fn submit(pair: &mut Pair, flash: usize) {
    for _ in 0..flash {
        pair.submit(Precedence::Flash, 5);
    }
}

/// Runs for this time and a second. Users bind again: some tests take longer than their associations
/// stay open.
fn run(pair: &mut Pair, seconds: i64) {
    pair.run(seconds.unsigned_abs());
    pair.bind_all();
    pair.run(1);
}

/// Sets the wall clock of all sites this far from the true time.
fn set(pair: &mut Pair, seconds: i64) {
    pair.clock_set = seconds * 1_000_000;
}

fn last(pair: &Pair, kind: Kind) -> &str {
    &pair.sites[NAPLES].last(kind).detail
}

fn doubted(pair: &Pair) -> Option<ClockStatus> {
    let node = &pair.sites[NAPLES].node;
    let status = node.status(pair.clock());
    assert_eq!(status.clock, node.clock_status(pair.clock()));
    status.clock
}

/// Everything is delivered once the connection can be made.
fn deliver(pair: &mut Pair) {
    pair.line_up = true;
    run(pair, 2 * HOUR);
    let delivered = &pair.users[pair.reader].delivered;
    let identifiers: BTreeSet<&str> = delivered
        .iter()
        .map(|d| match d {
            Delivered::Message { identifier, .. } => identifier.as_str(),
            Delivered::Report { .. } => panic!("{d:?}"),
        })
        .collect();
    assert_eq!((delivered.len(), identifiers.len()), (pair.submitted, pair.submitted));
    assert_eq!(pair.count(NAPLES, Kind::Expired), 0);
    assert!(pair.users[pair.sender].delivered.is_empty(), "no report");
}

#[test]
fn a_clock_five_hours_ahead_for_a_minute_expires_nothing() {
    let mut pair = waiting(50);
    set(&mut pair, 5 * HOUR);
    run(&mut pair, 58);
    let doubt = doubted(&pair).expect("the clock is doubted");
    assert!(doubt.because.contains("set forward by 18000 s"), "{doubt:?}");
    assert!(doubt.late == 50 && doubt.believed < doubt.since, "{doubt:?}");
    set(&mut pair, 0);
    run(&mut pair, 300);
    assert!(doubted(&pair).is_some(), "still doubted right after it was set back");
    assert!(last(&pair, Kind::ClockDoubted).contains("back by 18000 s again; nothing expires"));
    run(&mut pair, 400);
    assert_eq!((doubted(&pair), pair.count(NAPLES, Kind::ClockTrusted)), (None, 1));
    assert!(last(&pair, Kind::ClockTrusted).contains("it was steady; 0 messages expire"));
    assert_eq!((pair.count(NAPLES, Kind::Expired), pair.queued(NAPLES)), (0, 50));
    deliver(&mut pair);
}

#[test]
fn a_message_expires_when_its_true_time_has_passed() {
    let mut pair = waiting(50);
    set(&mut pair, 5 * HOUR);
    run(&mut pair, 60);
    set(&mut pair, 0);
    // 4 h after the submission. The clock has been steady for a long time.
    run(&mut pair, 4 * HOUR - 200);
    assert_eq!(pair.count(NAPLES, Kind::Expired), 0);
    run(&mut pair, 200);
    assert_eq!((pair.count(NAPLES, Kind::Expired), pair.count(NAPLES, Kind::ReportMade)), (50, 50));
}

#[test]
fn a_clock_that_stays_set_is_trusted_once_it_was_steady() {
    let mut pair = waiting(50);
    set(&mut pair, 5 * HOUR);
    run(&mut pair, 500);
    assert_eq!(pair.count(NAPLES, Kind::Expired), 0);
    assert_eq!(pair.sites[NAPLES].node.status(pair.clock()).counters.expired, 0);
    // Set by another hour: the wait begins again.
    set(&mut pair, 6 * HOUR);
    run(&mut pair, 500);
    assert_eq!(pair.count(NAPLES, Kind::Expired), 0);
    run(&mut pair, 200);
    assert_eq!((pair.count(NAPLES, Kind::Expired), pair.count(NAPLES, Kind::ReportMade)), (50, 50));
    assert_eq!(doubted(&pair), None);
}

fn accept() -> Input {
    Input::AcceptClock { by: Operator::default() }
}

/// What the store of a site has when an operator accepted the clock of another node.
fn accepted(pair: &Pair, after: i64) -> Input {
    let at = Utc(pair.clock().utc.0.saturating_add_signed(after * 1_000_000));
    let accepted = ClockAccepted { at, by: "uid 7".to_owned() };
    Input::RecoveredAcceptance(accepted.encode().into())
}

#[test]
fn what_an_operator_accepts_at_another_node_is_trusted_where_the_time_is_the_same() {
    let mut pair = waiting(50);
    let early = accepted(&pair, 0);
    set(&mut pair, 5 * HOUR);
    run(&mut pair, 100);
    // Before the step, and of a clock that shows something else.
    pair.feed(NAPLES, early);
    let other = accepted(&pair, 4 * HOUR);
    pair.feed(NAPLES, other);
    run(&mut pair, 5);
    assert_eq!(pair.count(NAPLES, Kind::Expired), 0);
    let same = accepted(&pair, -10);
    pair.feed(NAPLES, same);
    run(&mut pair, 5);
    assert_eq!(pair.count(NAPLES, Kind::Expired), 50);
    assert!(last(&pair, Kind::ClockTrusted).contains("uid 7 accepted that of another node"));
}

#[test]
fn a_doubted_clock_is_trusted_once_an_operator_accepts_it() {
    let mut pair = waiting(50);
    pair.feed(NAPLES, accept());
    assert_eq!(pair.count(NAPLES, Kind::ClockTrusted), 0, "there is nothing to accept");
    set(&mut pair, 5 * HOUR);
    run(&mut pair, 100);
    assert_eq!(pair.count(NAPLES, Kind::Expired), 0);
    pair.feed(NAPLES, accept());
    run(&mut pair, 5);
    assert_eq!((pair.count(NAPLES, Kind::Expired), pair.count(NAPLES, Kind::ReportMade)), (50, 50));
    assert!(last(&pair, Kind::ClockTrusted).contains("an operator accepted it"));
    // The trusted time is durable: the next start does not doubt the clock.
    submit(&mut pair, 1);
    run(&mut pair, 5);
    pair.crash(NAPLES);
    run(&mut pair, 5);
    assert_eq!(doubted(&pair), None);
}

#[test]
fn a_clock_five_hours_back_for_a_minute_loses_no_message_of_that_minute() {
    let mut pair = waiting(10);
    set(&mut pair, -5 * HOUR);
    run(&mut pair, 10);
    submit(&mut pair, 10);
    run(&mut pair, 50);
    assert!(last(&pair, Kind::ClockDoubted).contains("set back by 18000 s"));
    set(&mut pair, 0);
    run(&mut pair, 2 * HOUR);
    assert_eq!(doubted(&pair), None);
    deliver(&mut pair);
}

#[test]
fn messages_accepted_while_the_clock_was_ahead_do_not_expire_early() {
    let mut pair = waiting(0);
    set(&mut pair, 5 * HOUR);
    run(&mut pair, 10);
    submit(&mut pair, 10);
    run(&mut pair, 50);
    set(&mut pair, 0);
    run(&mut pair, HOUR);
    deliver(&mut pair);
}

#[test]
fn small_steps_are_accepted_but_not_when_they_add_up() {
    let mut pair = waiting(50);
    set(&mut pair, 50);
    run(&mut pair, 200);
    assert_eq!((doubted(&pair), pair.count(NAPLES, Kind::ClockSet)), (None, 1));
    set(&mut pair, 100);
    run(&mut pair, 100);
    let doubt = doubted(&pair).expect("100 s in 5 minutes");
    assert!(doubt.because.contains("by 50 s (100 s together)"), "{doubt:?}");
    // More steps like this change nothing.
    for step in 3..400 {
        set(&mut pair, step * 50);
        run(&mut pair, 300);
        assert!(doubted(&pair).is_some());
    }
    assert!(pair.clock_set > 5 * HOUR * 1_000_000);
    assert_eq!(pair.count(NAPLES, Kind::Expired), 0);
    // Single steps with time between them are accepted.
    let mut pair = waiting(1);
    for step in 1..10 {
        set(&mut pair, step * 50);
        run(&mut pair, 700);
        assert_eq!(doubted(&pair), None);
    }
    assert_eq!(pair.count(NAPLES, Kind::ClockSet), 9);
}

#[test]
fn a_slow_drift_is_not_a_step() {
    let mut pair = waiting(1);
    // 500 ppm, as much as a kernel slews.
    for minute in 1..600 {
        pair.clock_set = minute * 30_000;
        pair.run_for(Duration::from_secs(60));
    }
    assert_eq!((doubted(&pair), pair.count(NAPLES, Kind::ClockDoubted)), (None, 0));
}

#[test]
fn a_start_with_a_wrong_clock_is_noticed() {
    for hours in [5, -5] {
        let mut pair = waiting(50);
        run(&mut pair, 120);
        // The clock is wrong when the machine starts, and is corrected a minute later.
        set(&mut pair, hours * HOUR);
        pair.crash(NAPLES);
        run(&mut pair, 60);
        let doubt = doubted(&pair).expect("its time differs from that of the last run");
        let side = if hours > 0 { "ahead of" } else { "behind of" };
        assert!(doubt.because.contains(side), "{doubt:?}");
        // Another crash does not make it trusted.
        pair.crash(NAPLES);
        run(&mut pair, 60);
        assert!(doubted(&pair).is_some());
        set(&mut pair, 0);
        run(&mut pair, 700);
        assert_eq!((doubted(&pair), pair.count(NAPLES, Kind::Expired)), (None, 0));
        deliver(&mut pair);
    }
}

#[test]
fn after_a_quick_restart_the_clock_is_trusted_and_after_a_week_it_is_doubted() {
    let mut pair = waiting(50);
    run(&mut pair, 120);
    pair.crash(NAPLES);
    run(&mut pair, 5);
    assert_eq!((doubted(&pair), pair.count(NAPLES, Kind::ClockDoubted)), (None, 0));
    set(&mut pair, 7 * 24 * HOUR);
    pair.crash(NAPLES);
    run(&mut pair, 590);
    assert_eq!(pair.count(NAPLES, Kind::Expired), 0);
    assert_eq!(doubted(&pair).expect("it waits").late, 50);
    run(&mut pair, 20);
    assert_eq!(pair.count(NAPLES, Kind::Expired), 50);
    // An orderly stop stores the time, too.
    pair.feed(NAPLES, Input::Stop);
    run(&mut pair, 5);
    let noted = &pair.sites[NAPLES].store.meta[node::wall::CLOCK];
    let noted = node::wall::Noted::read(noted).expect("two times");
    assert!(pair.clock().utc.since(noted.trusted) < Duration::from_secs(10));
}

#[test]
fn a_jump_sends_no_deferred_message_early_and_deletes_no_key() {
    let mut pair = waiting(0);
    pair.line_up = true;
    submit(&mut pair, 1);
    run(&mut pair, 5);
    let keys = pair.sites[NAPLES].store.seen.len() + pair.sites[ACT].store.seen.len();
    assert!(keys > 0);
    let at = pair.clock().utc + Duration::from_secs(7_200);
    pair.network.users[pair.sender].deferred = Some(at);
    submit(&mut pair, 1);
    run(&mut pair, 5);
    set(&mut pair, 20 * 24 * HOUR);
    run(&mut pair, 60);
    set(&mut pair, 0);
    run(&mut pair, 60);
    set(&mut pair, 20 * 24 * HOUR);
    run(&mut pair, 580);
    assert_eq!(pair.network.users[pair.reader].delivered.len(), 1, "the deferred one waits");
    let held = pair.sites[NAPLES].store.seen.len() + pair.sites[ACT].store.seen.len();
    assert!(held >= keys, "{held} of {keys}");
    set(&mut pair, 0);
    run(&mut pair, 7_200);
    assert_eq!(pair.network.users[pair.reader].delivered.len(), 2);
}

#[test]
fn a_jump_does_not_end_an_order_of_minimize() {
    let mut pair = waiting(1);
    let order = Input::Minimize {
        scope: scheduler::Scope::Mta,
        floor: Some(Precedence::Override),
        until: Some(pair.clock().utc + Duration::from_secs(3_600)),
        by: Operator::default(),
    };
    pair.feed(NAPLES, order);
    let floor = |pair: &Pair| {
        let status = pair.sites[NAPLES].node.status(pair.clock());
        status.minimize.first().and_then(|m| m.floor)
    };
    set(&mut pair, 5 * HOUR);
    run(&mut pair, 200);
    assert_eq!(floor(&pair), Some(Precedence::Override));
    set(&mut pair, 0);
    run(&mut pair, 700);
    assert_eq!(floor(&pair), Some(Precedence::Override));
    run(&mut pair, 3_000);
    assert_eq!(floor(&pair), None);
}

/// Submits a message deferred by 2 h, by the user's clock.
fn defer(pair: &mut Pair) {
    let at = pair.clock().utc + Duration::from_secs(7_200);
    pair.network.users[pair.sender].deferred = Some(at);
    submit(pair, 1);
    pair.network.users[pair.sender].deferred = None;
}

#[test]
fn a_start_with_a_clock_ahead_sends_no_deferred_message_early() {
    let mut pair = waiting(0);
    pair.line_up = true;
    defer(&mut pair);
    run(&mut pair, 120);
    for _ in 0..2 {
        set(&mut pair, 5 * HOUR);
        pair.crash(NAPLES);
        run(&mut pair, 60);
        assert!(doubted(&pair).is_some());
        assert_eq!(pair.network.users[pair.reader].delivered.len(), 0);
    }
    set(&mut pair, 0);
    run(&mut pair, 2 * HOUR - 400);
    assert_eq!((doubted(&pair), pair.network.users[pair.reader].delivered.len()), (None, 0));
    run(&mut pair, 300);
    assert_eq!(pair.network.users[pair.reader].delivered.len(), 1);
    // If that clock is right, the message leaves once it is trusted.
    defer(&mut pair);
    run(&mut pair, 120);
    set(&mut pair, 5 * HOUR);
    pair.crash(NAPLES);
    run(&mut pair, 500);
    assert_eq!(pair.network.users[pair.reader].delivered.len(), 1);
    run(&mut pair, 200);
    assert_eq!(pair.network.users[pair.reader].delivered.len(), 2);
}

#[test]
fn a_message_deferred_while_the_clock_is_ahead_is_not_sent_early() {
    let mut pair = waiting(0);
    pair.line_up = true;
    run(&mut pair, 10);
    let at = pair.clock().utc + Duration::from_secs(7_200);
    set(&mut pair, 5 * HOUR);
    run(&mut pair, 10);
    pair.network.users[pair.sender].deferred = Some(at);
    submit(&mut pair, 1);
    run(&mut pair, 60);
    assert_eq!(pair.network.users[pair.reader].delivered.len(), 0);
    set(&mut pair, 0);
    run(&mut pair, 7_300);
    assert_eq!(pair.network.users[pair.reader].delivered.len(), 1);
}

/// While the queue is empty the time is stored every ten minutes.
#[test]
fn after_a_kill_and_a_quick_start_the_clock_is_trusted() {
    for flash in [0, 1] {
        for after in [10, 55, 119, 299, 590, 700, 1_195] {
            let mut pair = waiting(flash);
            run(&mut pair, after);
            pair.crash(NAPLES);
            run(&mut pair, 50);
            pair.crash(NAPLES);
            run(&mut pair, 5);
            let doubts = pair.count(NAPLES, Kind::ClockDoubted);
            assert_eq!((doubted(&pair), doubts), (None, 0), "{flash} {after}");
        }
    }
    // With a message in the queue the time is stored every minute, so a jump of 300 s is noticed.
    let mut pair = waiting(1);
    run(&mut pair, 1_195);
    set(&mut pair, 300);
    pair.crash(NAPLES);
    run(&mut pair, 5);
    assert!(doubted(&pair).is_some());
}
