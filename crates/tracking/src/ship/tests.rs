//! The copy against a store in memory that fails at any moment, before or after it has added.

use super::*;
use crate::event::Event;
use crate::writer::Writer;
use base::Utc;
use proptest::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// What the next calls of the archive come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// It is away.
    Away,
    /// It adds, and the answer is lost.
    AnswerLost,
    /// It adds, and has forgotten it later: a standby took over.
    Forgets,
}

#[derive(Debug)]
struct State {
    to: Place,
    events: Vec<Event>,
    fault: Fault,
    /// Before what was forgotten.
    older: Option<(Place, usize)>,
    ends: u32,
    appends: u32,
}

#[derive(Clone, Debug)]
struct Memory(Arc<Mutex<State>>);

impl Memory {
    fn new() -> Memory {
        let state = State {
            to: Place::default(),
            events: vec![],
            fault: Fault::None,
            older: None,
            ends: 0,
            appends: 0,
        };
        Memory(Arc::new(Mutex::new(state)))
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn fail(&self, fault: Fault) {
        self.with(|state| state.fault = fault);
    }

    fn numbers(&self) -> Vec<u64> {
        self.with(|state| state.events.iter().map(|event| event.time.0).collect())
    }
}

fn away() -> Failed {
    "away".into()
}

impl Archive for Memory {
    fn begin(&mut self, _: &Origin) -> Result<Place, Failed> {
        self.with(|state| match state.fault {
            Fault::Away => Err(away()),
            _ => Ok(state.to),
        })
    }

    fn append(&mut self, from: Place, to: Place, pages: &[Page]) -> Result<bool, Failed> {
        self.with(|state| {
            if state.fault == Fault::Away {
                return Err(away());
            }
            if let Some((to, events)) = state.older.take() {
                state.to = to;
                state.events.truncate(events);
            }
            if state.to != from {
                return Ok(false);
            }
            if state.fault == Fault::Forgets {
                state.older = Some((state.to, state.events.len()));
            }
            state.appends += 1;
            state.to = to;
            state.events.extend(pages.iter().flat_map(|page| Page::read(&page.octets).unwrap()));
            if state.fault == Fault::AnswerLost { Err(away()) } else { Ok(true) }
        })
    }

    fn prune(&mut self, limit: u64) -> Result<bool, Failed> {
        self.with(|state| Ok(state.events.len() as u64 > limit))
    }

    fn end(&mut self) -> Result<(), Failed> {
        self.with(|state| state.ends += 1);
        Ok(())
    }
}

fn origin() -> Origin {
    Origin { directory: 7, node: "n1".to_owned() }
}

fn write(writer: &mut Writer, durable: &Durable, numbers: std::ops::Range<u64>) {
    for n in numbers {
        let detail = "x".repeat(1_000);
        assert!(writer.append(&Event { time: Utc(n), detail, ..Event::default() }));
    }
    writer.write().map_err(|(error, _)| error).unwrap();
    writer.sync().unwrap();
    durable.put(writer.place());
}

#[derive(Clone, Debug)]
enum Act {
    Write(u64),
    Round(Fault),
    Restart,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let faults = [Fault::None, Fault::Away, Fault::AnswerLost, Fault::Forgets];
    let act = prop_oneof![
        3 => (1_u64..900).prop_map(Act::Write),
        4 => proptest::sample::select(faults.to_vec()).prop_map(Act::Round),
        1 => Just(Act::Restart),
    ];
    proptest::collection::vec(act, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever happens between batches, each event comes once, and in order.
    #[test]
    fn nothing_is_missing_and_nothing_is_there_twice(acts in acts()) {
        let directory = tempfile::tempdir().unwrap();
        let (durable, memory) = (Durable::default(), Memory::new());
        let mut writer = Writer::open(directory.path(), 1 << 30).unwrap();
        let new = || Work::new(directory.path(), origin(), durable.clone(), u64::MAX, memory.clone());
        let mut work = new();
        let mut next = 0;
        for act in acts {
            match act {
                Act::Write(count) => {
                    write(&mut writer, &durable, next..next + count);
                    next += count;
                }
                Act::Round(fault) => {
                    memory.fail(fault);
                    work.round();
                }
                Act::Restart => work = new(),
            }
        }
        memory.fail(Fault::None);
        // What was forgotten is noticed with the next page.
        write(&mut writer, &durable, next..next + 1);
        while work.round() != Round::Done {}
        prop_assert_eq!(memory.numbers(), (0..=next).collect::<Vec<_>>());
    }
}

#[test]
fn a_backlog_is_worked_off_in_pieces_and_an_outage_is_waited_for_longer_and_longer() {
    let directory = tempfile::tempdir().unwrap();
    let (durable, memory) = (Durable::default(), Memory::new());
    let mut writer = Writer::open(directory.path(), 1 << 30).unwrap();
    let mut work = Work::new(directory.path(), origin(), durable.clone(), u64::MAX, memory.clone());
    write(&mut writer, &durable, 0..2_000);
    memory.fail(Fault::Away);
    let waits: Vec<u64> = (0..7)
        .map(|_| {
            let round = work.round();
            assert_eq!(round, Round::Failed);
            work.wait_after(round).as_secs()
        })
        .collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
    memory.fail(Fault::None);
    let mut rounds = 0;
    while work.round() != Round::Done {
        rounds += 1;
        assert_eq!(work.wait_after(Round::More), BEHIND);
        let most = tail::READ as u64 / 1_000;
        assert!(memory.numbers().len() as u64 <= (rounds + 1) * most);
    }
    assert!(rounds >= 3, "2 MB are four pieces: {rounds}");
    memory.fail(Fault::Away);
    write(&mut writer, &durable, 2_000..2_001);
    assert_eq!(work.round(), Round::Failed);
    assert_eq!(work.wait_after(Round::Failed), RETRY.0, "a success ends the growth");
}

#[test]
fn a_copy_that_is_too_long_is_pruned_until_it_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let (durable, memory) = (Durable::default(), Memory::new());
    let mut writer = Writer::open(directory.path(), 1 << 30).unwrap();
    let mut work = Work::new(directory.path(), origin(), durable.clone(), 10, memory.clone());
    write(&mut writer, &durable, 0..20);
    assert_eq!(work.round(), Round::More);
    assert_eq!(work.round(), Round::More);
    memory.with(|state| state.events.truncate(5));
    assert_eq!((work.round(), work.until_prune), (Round::Done, PRUNE));
}

#[test]
fn an_end_in_order_copies_the_rest_and_states_it() {
    let directory = tempfile::tempdir().unwrap();
    let (durable, memory) = (Durable::default(), Memory::new());
    let mut writer = Writer::open(directory.path(), 1 << 30).unwrap();
    let start = || {
        Shipper::start(directory.path(), origin(), durable.clone(), u64::MAX, memory.clone())
            .unwrap()
    };
    let shipper = start();
    write(&mut writer, &durable, 0..2_000);
    drop(shipper);
    assert_eq!(memory.numbers().len(), 2_000);
    assert_eq!(memory.with(|state| state.ends), 1);
    // With the archive away nothing is stated.
    memory.fail(Fault::Away);
    let shipper = start();
    write(&mut writer, &durable, 2_000..2_001);
    drop(shipper);
    assert_eq!(memory.with(|state| state.ends), 1);
}

#[test]
fn a_directory_keeps_its_number() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tracking");
    assert_eq!(Origin::read(&path, "n1").unwrap(), None);
    let first = Origin::open(&path, "n1", 5).unwrap();
    assert_eq!(first, Origin { directory: 5, node: "n1".to_owned() });
    assert_eq!(Origin::open(&path, "n2", 6).unwrap().directory, 5);
    // One that was cut off is made anew.
    std::fs::write(path.join(NAME), "0000").unwrap();
    assert_eq!(Origin::read(&path, "n1").unwrap(), None);
    assert_eq!(Origin::open(&path, "n1", 8).unwrap().directory, 8);
}

#[test]
fn a_directory_of_which_more_was_copied_uses_no_place_twice() {
    let directory = tempfile::tempdir().unwrap();
    let (durable, memory) = (Durable::default(), Memory::new());
    let mut writer = Writer::open(directory.path(), 1 << 30).unwrap();
    write(&mut writer, &durable, 0..10);
    let beyond = Place::new(3, 500);
    memory.with(|state| state.to = beyond);
    writer.go_on_after(beyond).unwrap();
    write(&mut writer, &durable, 10..20);
    let mut work = Work::new(directory.path(), origin(), durable, u64::MAX, memory.clone());
    while work.round() != Round::Done {}
    assert_eq!(memory.numbers(), (10..20).collect::<Vec<_>>());
}
