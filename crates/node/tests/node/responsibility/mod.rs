//! Who is responsible for which message and recipient: three nodes beside a model of a page.

mod model;
mod planted;
mod play;

use model::{LIST, Name, REDIRECTED};
use planted::Fault;
use play::Play;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// Whom messages are for.
const RECIPIENTS: [Name; 7] =
    [(0, "OPS"), (1, "OPS"), (2, "OPS"), (2, "NOBODY"), (2, "NIL"), LIST, REDIRECTED];

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// OPS of a site submits: for which of [`RECIPIENTS`], how many octets, and how long that goes on alone.
    Submit { from: usize, to: u8, size: usize, millis: u64 },
    /// A process dies, and is started again.
    Crash { site: usize, power: bool, durable: bool, millis: u64 },
    /// A connection is cut.
    Cut { line: usize, millis: u64 },
    /// All is at rest; then a line goes down, or is up again.
    Line { line: usize, up: bool },
    /// The same; then LOG of a site goes, or comes.
    User { site: usize, bound: bool },
    /// The same; then an operator orders something of an entry.
    Operate { site: usize, entry: usize, act: Act },
}

/// What an operator orders.
#[derive(Clone, Copy, Debug)]
enum Act {
    Delete,
    Expire,
    Reroute,
}

fn op() -> impl Strategy<Value = Op> {
    let act = prop_oneof![Just(Act::Delete), Just(Act::Expire), Just(Act::Reroute)];
    prop_oneof![
        5 => (0..3usize, 1..128u8, prop_oneof![Just(50), Just(9_000)], 0..120u64)
            .prop_map(|(from, to, size, millis)| Op::Submit { from, to, size, millis }),
        2 => (0..3usize, any::<bool>(), any::<bool>(), 0..120u64)
            .prop_map(|(site, power, durable, millis)| Op::Crash { site, power, durable, millis }),
        2 => (0..3usize, 0..120u64).prop_map(|(line, millis)| Op::Cut { line, millis }),
        2 => (0..3usize, any::<bool>()).prop_map(|(line, up)| Op::Line { line, up }),
        1 => (0..3usize, any::<bool>()).prop_map(|(site, bound)| Op::User { site, bound }),
        2 => (0..3usize, 0..4usize, act)
            .prop_map(|(site, entry, act)| Op::Operate { site, entry, act }),
    ]
}

/// Plays, and compares with the model at each rest.
fn played(ops: &[Op], seed: u64, fault: Fault) -> Result<(), String> {
    let mut play = Play::new(seed, fault);
    for op in ops {
        play.step(*op)?;
    }
    play.rest()?;
    // With all lines up and all users there, nothing stays behind.
    play.step(Op::Line { line: 0, up: true })?;
    play.step(Op::Line { line: 1, up: true })?;
    play.step(Op::Line { line: 2, up: true })?;
    for site in 0..3 {
        play.step(Op::User { site, bound: true })?;
    }
    play.rest()?;
    play.is_over()
}

/// `LONG=1` plays more.
fn config() -> ProptestConfig {
    let cases = if std::env::var_os("LONG").is_some() { 3_000 } else { 64 };
    ProptestConfig { cases, max_shrink_iters: 400, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_queues_are_those_of_the_model(
        ops in prop::collection::vec(op(), 1..14),
        seed in 0..1_000u64,
    ) {
        if let Err(why) = played(&ops, seed, Fault::None) {
            return Err(TestCaseError::fail(why));
        }
    }
}

/// What finds a fault, and after how many plays.
fn found(fault: Fault) -> (usize, String) {
    let mut runner = TestRunner::deterministic();
    let ops = prop::collection::vec(op(), 1..14);
    for number in 1..=100 {
        let ops = ops.new_tree(&mut runner).unwrap().current();
        if let Err(why) = played(&ops, number as u64, fault) {
            return (number, why);
        }
    }
    panic!("{fault:?} is not found");
}

#[test]
fn a_submission_that_is_acknowledged_before_it_is_durable_is_found() {
    let (number, why) = found(Fault::Hasty);
    assert!(why.contains("nobody has"), "{number}: {why}");
}

#[test]
fn a_recipient_that_is_not_queued_is_found() {
    let (number, why) = found(Fault::OneEntry);
    assert!(why.contains("nobody has"), "{number}: {why}");
}

#[test]
fn an_entry_that_stays_when_the_next_hop_is_responsible_is_found() {
    let (number, why) = found(Fault::Undeleted);
    assert!(why.contains("the nodes have"), "{number}: {why}");
}

#[test]
fn what_is_accepted_twice_is_found() {
    let (number, why) = found(Fault::Forgetful);
    assert!(why.contains("the nodes have"), "{number}: {why}");
}
