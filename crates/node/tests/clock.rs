//! A wall clock that jumps, in virtual time: nothing is given up by it before it was steady, or an
//! operator says that it is right.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "shared with other tests")]
mod world;

use base::{Precedence, Utc};
use node::Input;
use node::event::Kind;
use node::status::ClockStatus;
use p1::flags::ReportRequest;
use std::time::Duration;
use world::{ACT, Delivered, NAPLES, Setup, World, address};

const PLAIN: Setup = Setup { rts: |_| {}, node: |_| {} };
const HOUR: i64 = 3_600;

struct Run {
    world: World,
    sender: usize,
    reader: usize,
    submitted: usize,
}

impl Run {
    /// Flash waits in Naples for Act, which cannot be reached.
    fn new(flash: usize) -> Run {
        let mut world = World::with(5, PLAIN);
        world.link_up = false;
        let sender = world.user(NAPLES, "OPS", true);
        let reader = world.user(ACT, "OPS", true);
        world.bind(sender, NAPLES);
        world.bind(reader, ACT);
        let mut run = Run { world, sender, reader, submitted: 0 };
        run.submit(flash);
        run.run(60);
        assert_eq!(run.world.queued(NAPLES), flash);
        run
    }

    fn submit(&mut self, flash: usize) {
        for _ in 0..flash {
            self.submitted += 1;
            let (to, id) = ([address(ACT, "OPS")], format!("MESSAGE {}", self.submitted));
            let report = ReportRequest::NonDelivery;
            self.world.submit(self.sender, &to, Precedence::Flash, b"flash", &id, report);
        }
    }

    fn run(&mut self, seconds: i64) {
        self.world.run_for(Duration::from_secs(seconds.unsigned_abs()));
        // Users do not wait as long as some of these tests.
        for (user, site) in [(self.sender, NAPLES), (self.reader, ACT)] {
            if !self.world.is_bound(user) {
                self.world.bind(user, site);
            }
        }
        self.world.run_for(Duration::from_secs(1));
    }

    /// The wall clock of all is set to so much beside the true one.
    fn set(&mut self, seconds: i64) {
        self.world.clock_set = seconds * 1_000_000;
    }

    fn count(&self, kind: Kind) -> usize {
        self.world.sites[NAPLES].events.iter().filter(|(_, e)| e.kind == kind).count()
    }

    fn last(&self, kind: Kind) -> &str {
        let mut events = self.world.sites[NAPLES].events.iter().rev();
        events.find(|(_, e)| e.kind == kind).map_or("", |(_, e)| &e.detail)
    }

    fn doubt(&self) -> Option<ClockStatus> {
        let node = &self.world.sites[NAPLES].node;
        let status = node.status(self.world.clock());
        assert_eq!(status.clock, node.clock_status(self.world.clock()));
        status.clock
    }

    /// Everything is delivered once the way is free.
    fn deliver(&mut self) {
        self.world.link_up = true;
        self.run(2 * HOUR);
        let delivered = &self.world.users[self.reader].delivered;
        let identifiers: std::collections::BTreeSet<&str> = delivered
            .iter()
            .map(|d| match d {
                Delivered::Message { identifier, .. } => identifier.as_str(),
                Delivered::Report { .. } => panic!("{d:?}"),
            })
            .collect();
        assert_eq!((delivered.len(), identifiers.len()), (self.submitted, self.submitted));
        assert_eq!(self.count(Kind::Expired), 0);
        assert!(self.world.users[self.sender].delivered.is_empty(), "nothing is reported");
    }
}

#[test]
fn five_hours_forward_for_a_minute_expire_nothing() {
    let mut run = Run::new(50);
    run.set(5 * HOUR);
    run.run(58);
    let doubt = run.doubt().expect("nobody trusts it");
    assert!(doubt.because.contains("set forward by 18000 s"), "{doubt:?}");
    assert!(doubt.late == 50 && doubt.believed < doubt.since, "{doubt:?}");
    run.set(0);
    run.run(300);
    assert!(run.doubt().is_some(), "nor at once when it is back");
    assert!(run.last(Kind::ClockDoubted).contains("back by 18000 s again; nothing expires"));
    run.run(400);
    assert_eq!((run.doubt(), run.count(Kind::ClockTrusted)), (None, 1));
    assert!(run.last(Kind::ClockTrusted).contains("it was steady; 0 messages expire"));
    assert_eq!((run.count(Kind::Expired), run.world.queued(NAPLES)), (0, 50));
    run.deliver();
}

#[test]
fn what_passes_the_time_for_true_expires() {
    let mut run = Run::new(50);
    run.set(5 * HOUR);
    run.run(60);
    run.set(0);
    // 4 h after they were submitted; the clock has long been steady.
    run.run(4 * HOUR - 200);
    assert_eq!(run.count(Kind::Expired), 0);
    run.run(200);
    assert_eq!((run.count(Kind::Expired), run.count(Kind::ReportMade)), (50, 50));
}

#[test]
fn a_clock_that_stays_where_it_was_set_is_believed_once_it_was_steady() {
    let mut run = Run::new(50);
    run.set(5 * HOUR);
    run.run(500);
    assert_eq!(run.count(Kind::Expired), 0);
    assert_eq!(run.world.sites[NAPLES].node.status(run.world.clock()).counters.expired, 0);
    // Set by an hour more: it waits anew.
    run.set(6 * HOUR);
    run.run(500);
    assert_eq!(run.count(Kind::Expired), 0);
    run.run(200);
    assert_eq!((run.count(Kind::Expired), run.count(Kind::ReportMade)), (50, 50));
    assert_eq!(run.doubt(), None);
}

#[test]
fn or_once_an_operator_says_that_it_is_right() {
    let mut run = Run::new(50);
    run.world.feed(NAPLES, Input::AcceptClock);
    assert_eq!(run.count(Kind::ClockTrusted), 0, "there is nothing to accept");
    run.set(5 * HOUR);
    run.run(100);
    assert_eq!(run.count(Kind::Expired), 0);
    run.world.feed(NAPLES, Input::AcceptClock);
    run.run(5);
    assert_eq!((run.count(Kind::Expired), run.count(Kind::ReportMade)), (50, 50));
    assert!(run.last(Kind::ClockTrusted).contains("an operator said that it is right"));
    // It is durable: the next start finds it as it was.
    run.submit(1);
    run.run(5);
    run.world.crash(NAPLES);
    run.run(5);
    assert_eq!(run.doubt(), None);
}

#[test]
fn five_hours_back_for_a_minute_lose_nothing_of_what_came_meanwhile() {
    let mut run = Run::new(10);
    run.set(-5 * HOUR);
    run.run(10);
    run.submit(10);
    run.run(50);
    assert!(run.last(Kind::ClockDoubted).contains("set back by 18000 s"));
    run.set(0);
    run.run(2 * HOUR);
    assert_eq!(run.doubt(), None);
    run.deliver();
}

#[test]
fn what_came_while_it_was_ahead_has_its_time() {
    let mut run = Run::new(0);
    run.set(5 * HOUR);
    run.run(10);
    run.submit(10);
    run.run(50);
    run.set(0);
    run.run(HOUR);
    run.deliver();
}

#[test]
fn small_steps_are_followed_but_not_when_they_add_up() {
    let mut run = Run::new(50);
    run.set(50);
    run.run(200);
    assert_eq!((run.doubt(), run.count(Kind::ClockSet)), (None, 1));
    run.set(100);
    run.run(100);
    let doubt = run.doubt().expect("100 s in 5 minutes");
    assert!(doubt.because.contains("by 50 s (100 s together)"), "{doubt:?}");
    // One who goes on so gets nowhere.
    for step in 3..400 {
        run.set(step * 50);
        run.run(300);
        assert!(run.doubt().is_some());
    }
    assert!(run.world.clock_set > 5 * HOUR * 1_000_000);
    assert_eq!(run.count(Kind::Expired), 0);
    // Each by itself and with time between: they are followed.
    let mut run = Run::new(1);
    for step in 1..10 {
        run.set(step * 50);
        run.run(700);
        assert_eq!(run.doubt(), None);
    }
    assert_eq!(run.count(Kind::ClockSet), 9);
}

#[test]
fn a_slow_drift_is_no_step() {
    let mut run = Run::new(1);
    // 500 ppm, as much as a kernel slews.
    for minute in 1..600 {
        run.world.clock_set = minute * 30_000;
        run.world.run_for(Duration::from_secs(60));
    }
    assert_eq!((run.doubt(), run.count(Kind::ClockDoubted)), (None, 0));
}

#[test]
fn a_start_with_a_wrong_clock_is_noticed() {
    for hours in [5, -5] {
        let mut run = Run::new(50);
        run.run(120);
        // The clock is wrong when the machine starts, and set right a minute later.
        run.set(hours * HOUR);
        run.world.crash(NAPLES);
        run.run(60);
        let doubt = run.doubt().expect("it was another time when it last ran");
        let way = if hours > 0 { "ahead of" } else { "behind of" };
        assert!(doubt.because.contains(way), "{doubt:?}");
        // Nor does dying again make it right.
        run.world.crash(NAPLES);
        run.run(60);
        assert!(run.doubt().is_some());
        run.set(0);
        run.run(700);
        assert_eq!((run.doubt(), run.count(Kind::Expired)), (None, 0));
        run.deliver();
    }
}

#[test]
fn a_restart_without_delay_doubts_nothing_and_one_after_a_week_waits() {
    let mut run = Run::new(50);
    run.run(120);
    run.world.crash(NAPLES);
    run.run(5);
    assert_eq!((run.doubt(), run.count(Kind::ClockDoubted)), (None, 0));
    run.set(7 * 24 * HOUR);
    run.world.crash(NAPLES);
    run.run(590);
    assert_eq!(run.count(Kind::Expired), 0);
    assert_eq!(run.doubt().expect("it waits").late, 50);
    run.run(20);
    assert_eq!(run.count(Kind::Expired), 50);
    // Orderly stops note the time, too.
    run.world.feed(NAPLES, Input::Stop);
    run.run(5);
    let noted = &run.world.sites[NAPLES].store.meta[node::wall::CLOCK];
    let noted = Utc(u64::from_be_bytes(noted[..].try_into().unwrap()));
    assert!(run.world.clock().utc.since(noted) < Duration::from_secs(10));
}

#[test]
fn what_is_deferred_does_not_leave_early_and_no_key_is_forgotten() {
    let mut run = Run::new(0);
    run.world.link_up = true;
    run.submit(1);
    run.run(5);
    let keys = run.world.sites[NAPLES].store.seen.len() + run.world.sites[ACT].store.seen.len();
    assert!(keys > 0);
    let at = run.world.clock().utc + Duration::from_secs(7_200);
    run.world.users[run.sender].deferred = Some(at);
    run.submit(1);
    run.run(5);
    run.set(20 * 24 * HOUR);
    run.run(60);
    run.set(0);
    run.run(60);
    run.set(20 * 24 * HOUR);
    run.run(580);
    assert_eq!(run.world.users[run.reader].delivered.len(), 1, "the other waits");
    let held = run.world.sites[NAPLES].store.seen.len() + run.world.sites[ACT].store.seen.len();
    assert!(held >= keys, "{held} of {keys}");
    run.set(0);
    run.run(7_200);
    assert_eq!(run.world.users[run.reader].delivered.len(), 2);
}

#[test]
fn an_order_of_minimize_does_not_end_by_a_jump() {
    let mut run = Run::new(1);
    let order = Input::Minimize {
        scope: scheduler::Scope::Mta,
        floor: Some(Precedence::Override),
        until: Some(run.world.clock().utc + Duration::from_secs(3_600)),
    };
    run.world.feed(NAPLES, order);
    let floor = |run: &Run| {
        let status = run.world.sites[NAPLES].node.status(run.world.clock());
        status.minimize.first().and_then(|m| m.floor)
    };
    run.set(5 * HOUR);
    run.run(200);
    assert_eq!(floor(&run), Some(Precedence::Override));
    run.set(0);
    run.run(700);
    assert_eq!(floor(&run), Some(Precedence::Override));
    run.run(3_000);
    assert_eq!(floor(&run), None);
}

/// Submits one that is deferred by 2 h, by the clock that the user has.
fn defer(run: &mut Run) {
    let at = run.world.clock().utc + Duration::from_secs(7_200);
    run.world.users[run.sender].deferred = Some(at);
    run.submit(1);
    run.world.users[run.sender].deferred = None;
}

#[test]
fn what_is_deferred_does_not_leave_early_at_a_start_with_a_clock_that_is_ahead() {
    let mut run = Run::new(0);
    run.world.link_up = true;
    defer(&mut run);
    run.run(120);
    for _ in 0..2 {
        run.set(5 * HOUR);
        run.world.crash(NAPLES);
        run.run(60);
        assert!(run.doubt().is_some());
        assert_eq!(run.world.users[run.reader].delivered.len(), 0);
    }
    run.set(0);
    run.run(2 * HOUR - 400);
    assert_eq!((run.doubt(), run.world.users[run.reader].delivered.len()), (None, 0));
    run.run(300);
    assert_eq!(run.world.users[run.reader].delivered.len(), 1);
    // If it is right all the same, it leaves once it is trusted.
    defer(&mut run);
    run.run(120);
    run.set(5 * HOUR);
    run.world.crash(NAPLES);
    run.run(500);
    assert_eq!(run.world.users[run.reader].delivered.len(), 1);
    run.run(200);
    assert_eq!(run.world.users[run.reader].delivered.len(), 2);
}

#[test]
fn what_comes_deferred_while_the_clock_is_ahead_waits_too() {
    let mut run = Run::new(0);
    run.world.link_up = true;
    run.run(10);
    let at = run.world.clock().utc + Duration::from_secs(7_200);
    run.set(5 * HOUR);
    run.run(10);
    run.world.users[run.sender].deferred = Some(at);
    run.submit(1);
    run.run(60);
    assert_eq!(run.world.users[run.reader].delivered.len(), 0);
    run.set(0);
    run.run(7_300);
    assert_eq!(run.world.users[run.reader].delivered.len(), 1);
}

/// With nothing in the queue the time is noted every ten minutes.
#[test]
fn a_kill_and_a_start_at_once_doubt_nothing() {
    for flash in [0, 1] {
        for after in [10, 55, 119, 299, 590, 700, 1_195] {
            let mut run = Run::new(flash);
            run.run(after);
            run.world.crash(NAPLES);
            run.run(50);
            run.world.crash(NAPLES);
            run.run(5);
            let told = run.count(Kind::ClockDoubted);
            assert_eq!((run.doubt(), told), (None, 0), "{flash} {after}");
        }
    }
    // What waits tells when it was there last.
    let mut run = Run::new(1);
    run.run(1_195);
    run.set(300);
    run.world.crash(NAPLES);
    run.run(5);
    assert!(run.doubt().is_some());
}
