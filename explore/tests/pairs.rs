//! Each layer's pairs, explored: `cargo test -p explore -- --nocapture` prints the table, `LONG=1` explores deeper.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use explore::operations::{self, Operator};
use explore::pair::{End, Move, Pair, Planted};
use explore::reliable::{self, Budget, Setting, Talker};
use explore::search::{Explored, Model, explore};
use explore::session::{self, Sessioner};
use osi::api::{Dialogue, Mode, Role};
use std::collections::BTreeSet;

const X410: Mode = Mode::X410 { protocol: Some(Mode::P1_1988) };

/// Everything that a user may do, once.
const ALL: Budget = Budget { transfers: 1, resumes: 1, turns: 1, stops: 1, failures: 1 };
/// One transfer and what resumes it.
const TRANSFER: Budget = Budget { transfers: 1, resumes: 1, turns: 0, stops: 0, failures: 0 };

/// The moves to explore: of every run, and with `LONG=1`.
struct Depth(usize, usize);

/// As deep as there are states.
const WHOLE: Depth = Depth(usize::MAX, usize::MAX);

/// Named states that a group of searches reached.
#[derive(Default)]
struct Group {
    reached: BTreeSet<String>,
}

impl Group {
    /// Explores and prints a row: name, depth, states, moves, ends, whether that is all.
    fn explore<M: Model>(&mut self, name: &str, first: M, depth: &Depth) -> Explored {
        let long = std::env::var_os("LONG").is_some();
        let found = explore(first, if long { depth.1 } else { depth.0 }, usize::MAX);
        if let Some(broken) = &found.broken {
            panic!("{name}: {}\n{:#?}", broken.what, broken.path);
        }
        assert!(found.complete || depth.0 < usize::MAX, "{name}");
        let all = if found.complete { "all" } else { "to this depth" };
        println!(
            "row\t{name}\t{}\t{}\t{}\t{}\t{all}",
            found.depth, found.states, found.moves, found.finals
        );
        self.reached.extend(found.reached.keys().cloned());
        found
    }

    /// All of these were reached.
    fn requires(&self, layer: &str, states: &[&str]) {
        let names = states.iter().map(|state| format!("{layer} {state}"));
        let missing: Vec<String> = names.filter(|name| !self.reached.contains(name)).collect();
        assert!(missing.is_empty(), "not reached: {missing:?}, but {:?}", self.reached);
    }
}

/// All states of X.225 that the table has.
const SESSION: &[&str] = &[
    "Sta01", "Sta01B", "Sta01C", "Sta02A", "Sta03", "Sta04B", "Sta05B", "Sta05C", "Sta08", "Sta09",
    "Sta10B", "Sta11B", "Sta11C", "Sta16", "Sta18", "Sta19", "Sta20", "Sta713",
];
const TRANSPORT: &[&str] = &["Closed", "Wfcc", "Open", "Closing", "Ended"];
/// X.227: but Sta4 and Sta6, which both users here leave within the input that leads to them: they
/// answer a release at once.
const ACSE: &[&str] = &["Sta0", "Sta1", "Sta2", "Sta3", "Sta5"];
const PRESENTATION: &[&str] = &["Stai0", "Stai1", "Stai2", "Stat0"];
const RTSE: &[&str] = &[
    "Sta00", "Sta01", "Sta02", "Sta03", "Sta10", "Sta11", "Sta20", "Sta21", "Sta22", "Sta23",
    "Sta24", "Sta30", "Sta31", "Sta32", "Sta40",
];
const ROSE: &[&str] = &["Sta00", "Sta01", "Sta02", "Sta10", "Sta20", "Sta21"];

fn opened<E: End>(pair: Pair<E>, open: E::Act, accept: E::Act) -> Pair<E> {
    pair.settled(Move::Act(0, open)).unwrap().settled(Move::Act(1, accept)).unwrap()
}

#[test]
fn session_and_transport() {
    let pair =
        |n| Pair::new(Sessioner::new(Role::Initiator, n), Sessioner::new(Role::Responder, n));
    let mut group = Group::default();
    group.explore("session, from rest", pair(0), &Depth(12, 22));
    let connected = opened(pair(1), session::Act::Connect, session::Act::Accept);
    group.explore("session, connected", connected, &Depth(6, 9));
    group.requires("session", SESSION);
    group.requires("cotp", TRANSPORT);
    group.requires("user", &["released"]);
}

#[test]
fn acse_presentation_and_operations() {
    let pair = |n| Pair::new(Operator::new(Role::Initiator, n), Operator::new(Role::Responder, n));
    let open = |n| opened(pair(n), operations::Act::Open, operations::Act::Accept);
    let mut group = Group::default();
    group.explore("operations, from rest", pair(0), &Depth(14, 22));
    group.explore("operations, associated", open(1), &Depth(7, 10));
    group.explore("operations, no timers", open(1).calm(), &Depth(9, usize::MAX));
    group.requires("acse", ACSE);
    // The collision of two releases (X.227 7.2.3.5).
    group.requires("acse", &["Sta7"]);
    group.requires("presentation", PRESENTATION);
    group.requires("rose", ROSE);
    group.requires("user", &["released", "answered"]);
}

fn talkers(mode: Mode, dialogue: Dialogue, window: u32, budget: Budget) -> Pair<Talker> {
    let setting = Setting { mode, dialogue, content: 1100, window, budget };
    Pair::new(Talker::new(setting, Role::Initiator), Talker::new(setting, Role::Responder))
}

fn associated(pair: Pair<Talker>) -> Pair<Talker> {
    opened(pair, reliable::Act::Open, reliable::Act::Accept)
}

fn reliable_transfer(name: &str, mode: Mode, dialogue: Dialogue) {
    let mut group = Group::default();
    let row = |what: &str| format!("{name}, {what}");
    let pair = |window, budget| talkers(mode, dialogue, window, budget);
    let none = Budget { transfers: 0, resumes: 0, ..ALL };
    group.explore(&row("from rest"), pair(1, none), &Depth(11, 20));
    group.explore(&row("associated"), associated(pair(1, ALL)), &Depth(7, 13));
    let turns = u8::from(dialogue == Dialogue::TwoWayAlternate);
    let stops = associated(pair(2, Budget { stops: 1, ..TRANSFER }).calm());
    group.explore(&row("stopped and resumed"), stops, &WHOLE);
    let both = associated(pair(1, Budget { turns, resumes: 0, ..TRANSFER }).calm());
    group.explore(&row("transfers of both"), both, &WHOLE);
    let recovers = associated(pair(1, TRANSFER).calm().further(1));
    group.explore(&row("recovered"), recovers, &WHOLE);
    let everything = Budget { stops: 1, failures: 1, ..TRANSFER };
    let fails = associated(pair(1, everything).calm().further(1));
    group.explore(&row("stopped, refused and recovered"), fails, &Depth(9, usize::MAX));
    group.requires("rtse", RTSE);
    group.requires("session", &["Sta04B", "Sta05B", "Sta05C", "Sta10B", "Sta19"]);
    group.requires("user", &["released", "confirmed", "paused", "resumes", "recovered"]);
    group.requires("user", &["confirmed after a recovery"]);
    if dialogue == Dialogue::TwoWayAlternate {
        group.requires("session", &["Sta18"]);
        group.requires("user", &["has the turn as responder"]);
    }
    if mode == Mode::Normal {
        group.requires("acse", ACSE);
        group.requires("presentation", PRESENTATION);
    }
}

#[test]
fn rtse_in_a_monologue() {
    reliable_transfer("rtse, monologue", Mode::Normal, Dialogue::Monologue);
}

#[test]
fn rtse_two_way_alternate() {
    reliable_transfer("rtse, two-way alternate", Mode::Normal, Dialogue::TwoWayAlternate);
}

#[test]
fn rtse_of_1984_in_a_monologue() {
    reliable_transfer("x410, monologue", X410, Dialogue::Monologue);
}

#[test]
fn rtse_of_1984_two_way_alternate() {
    reliable_transfer("x410, two-way alternate", X410, Dialogue::TwoWayAlternate);
}

/// Two checkpoints within the window.
fn long_transfers(budget: Budget, further: usize) -> Pair<Talker> {
    let (mode, dialogue) = (Mode::Normal, Dialogue::Monologue);
    let setting = Setting { mode, dialogue, content: 2200, window: 2, budget };
    let [a, b] = [Role::Initiator, Role::Responder].map(|role| Talker::new(setting, role));
    associated(Pair::new(a, b).calm().further(further))
}

#[test]
fn recovered_twice() {
    let pair = long_transfers(Budget { resumes: 2, ..TRANSFER }, 2);
    let depth = Depth(24, usize::MAX);
    Group::default().explore("rtse, monologue, recovered twice", pair, &depth);
}

/// Stopped twice, refused, and all over again.
#[test]
fn two_transfers_one_after_the_other() {
    let budget = Budget { transfers: 2, resumes: 1, turns: 0, stops: 2, failures: 1 };
    let (pair, depth) = (long_transfers(budget, 0), Depth(9, usize::MAX));
    Group::default().explore("rtse, monologue, two transfers", pair, &depth);
}

/// Transfers of both ends, and what each left is resumed on another association.
#[test]
fn both_recover() {
    let budget = Budget { turns: 1, ..TRANSFER };
    let pair = talkers(Mode::Normal, Dialogue::TwoWayAlternate, 1, budget).calm().further(1);
    let depth = Depth(14, usize::MAX);
    Group::default().explore("rtse, two-way alternate, both recovered", associated(pair), &depth);
}

// ----- that faults are found --------------------------------------------------------------------

/// What is found in these moves, and how many led to it.
fn broken<M: Model>(first: M) -> (String, usize) {
    let found = explore(first, 12, 200_000).broken.unwrap();
    println!("found after {}: {} {:?}", found.path.len(), found.what, found.path);
    (found.what, found.path.len())
}

#[test]
fn a_release_response_that_is_lost_is_found() {
    // A DT of X.224 with the DISCONNECT SPDU.
    let lost = Planted::Lost(0, &[2, 0xF0, 0x80, 10]);
    let open = associated(talkers(Mode::Normal, Dialogue::Monologue, 1, TRANSFER));
    let (what, moves) = broken(open.planted(lost));
    assert_eq!(what, "A waits for its peer, and nothing of the peer is due");
    assert_eq!(moves, 1, "the release");
}

#[test]
fn an_end_that_ignores_an_abort_is_found() {
    let open = associated(talkers(Mode::Normal, Dialogue::TwoWayAlternate, 1, TRANSFER));
    let (what, _) = broken(open.planted(Planted::Deaf(1)));
    assert_eq!(what, "after an abort of A: A closed true, B closed false");
}

#[test]
fn a_timer_that_does_not_run_is_found() {
    let pair = talkers(X410, Dialogue::Monologue, 1, TRANSFER);
    let (what, moves) = broken(pair.planted(Planted::Stopped(0)));
    assert_eq!(what, "A waits for a peer that is gone, and has no deadline");
    assert_eq!(moves, 1, "the association is asked for");
}

#[test]
fn a_transfer_that_is_confirmed_before_it_is_secured_is_found() {
    let setting = Setting {
        mode: Mode::Normal,
        dialogue: Dialogue::Monologue,
        content: 10,
        window: 1,
        budget: TRANSFER,
    };
    let hasty = Talker::new(setting, Role::Responder).hasty();
    let pair = associated(Pair::new(Talker::new(setting, Role::Initiator), hasty));
    let (what, _) = broken(pair);
    assert_eq!(what, "A has 1 successes, and the other gave 0");
}
