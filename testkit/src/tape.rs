//! Recordings of the nodes of tests and simulations: in memory, and of the same format as the daemon's.

use base::{EntryId, Now};
use node::config::NodeConfig;
use node::{Input, Output};
use record::format::Record;
use record::mask::Key;
use record::player::Played;
use record::{Decoder, Header, Player, Recorder};
use std::cell::Cell;

thread_local! {
    static RECORDS: Cell<bool> = const { Cell::new(false) };
}

/// From now on, whether nodes that are made on this thread are recorded. With the variable `RECORD_TESTS` all are,
/// and every recording is replayed where its node is dropped.
pub fn record_nodes(on: bool) {
    RECORDS.set(on);
}

fn is_of_tests() -> bool {
    std::env::var_os("RECORD_TESTS").is_some()
}

/// The recording of one node.
#[derive(Debug)]
pub(crate) struct Tape {
    recorder: Recorder,
    made: Vec<u8>,
    /// It has an input.
    pub(crate) used: bool,
}

impl Tape {
    /// A recording of the node that is made of these, if nodes are recorded.
    pub(crate) fn begin(
        origin: &str,
        now: Now,
        config: &NodeConfig,
        first: Option<EntryId>,
    ) -> Option<Tape> {
        if !RECORDS.get() && !is_of_tests() {
            return None;
        }
        let header = Header::new(origin.to_owned(), now, config.clone(), first);
        let recorder = Recorder::new(&header, u64::MAX, Key([7; 32]));
        Some(Tape { recorder, made: Vec::new(), used: false })
    }

    pub(crate) fn input(&mut self, now: Now, input: &Input) {
        self.used = true;
        self.recorder.input(now, input);
    }

    pub(crate) fn output(&mut self, output: &Output) {
        self.recorder.output(output);
    }

    pub(crate) fn step_ended(&mut self) {
        self.recorder.step_ended();
        self.recorder.take(&mut self.made);
    }

    /// The octets of the recording.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.recorder.take(&mut self.made);
        self.made
    }

    /// Replays the recording of a test that has passed, if all are.
    pub(crate) fn judge(self) {
        if is_of_tests() && !std::thread::panicking() {
            assert_replays(&self.end());
        }
    }
}

/// Runs a recording through a node; gives the number of steps.
///
/// # Panics
/// It cannot be read, or its outputs are not those of the run.
pub fn assert_replays(recording: &[u8]) -> u64 {
    let mut decoder = Decoder::default();
    decoder.push(recording);
    let Ok(Some(Record::Header(header))) = decoder.next() else { panic!("no header") };
    let mut player = Player::new(&header).expect("it has contents");
    while let Some(record) = decoder.next().expect("a record") {
        match player.record(record).expect("a record in its place") {
            Played::Differs(difference) => panic!("{}: {difference}", header.origin),
            Played::Step(_) | Played::Equal | Played::Ended => {}
        }
    }
    assert_eq!(decoder.left(), 0, "the recording is whole");
    player.steps()
}
