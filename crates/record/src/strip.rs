//! A copy of a recording without contents, for reading only: each step in words.
//!
//! What a node gives out follows from contents too, so a copy without them cannot run. The recording runs
//! once, while it is copied, and the copy has what `mta replay` shows of it.

use crate::format::{RecordRef, Shown, append, preamble};
use crate::header::Header;
use crate::names::Names;
use crate::player::{PlayError, Played, Player, Step};
use crate::words;
use crate::{End, Record};
use node::Output;

/// Copies one recording.
#[derive(Debug)]
pub struct Stripper {
    player: Player,
    made: Vec<u8>,
    number: u64,
}

impl Stripper {
    /// Begins with the header.
    ///
    /// # Errors
    /// The recording has no contents.
    pub fn new(header: &Header) -> Result<Stripper, PlayError> {
        let player = Player::new(header)?;
        let mut stripper = Stripper { player, made: preamble(), number: 0 };
        let header = Header { stripped: true, ..header.clone() };
        stripper.put(&RecordRef::Header(&header));
        Ok(stripper)
    }

    /// The next record.
    ///
    /// # Errors
    /// It does not belong here.
    pub fn record(&mut self, record: Record) -> Result<(), PlayError> {
        let end = if let Record::End(end) = &record { Some(end.clone()) } else { None };
        let begun = match &record {
            Record::Input(now, input) => Some((*now, words::input(input, self.player.names()))),
            _ => None,
        };
        let played = match (self.player.record(record), begun) {
            // As in the run: it is what the copy is made for.
            (Err(PlayError::Panic(_, why)), Some((now, input))) => {
                let events = vec![format!("the node panics: {why}")];
                self.put(&RecordRef::Shown(now, &Shown { input, outputs: Vec::new(), events }));
                return Ok(());
            }
            (played, _) => played?,
        };
        match played {
            Played::Step(step) => {
                let (now, shown) = (step.now, shown(&step, self.player.names()));
                self.put(&RecordRef::Shown(now, &shown));
            }
            Played::Ended => self.put(&RecordRef::End(&end.unwrap_or(End::Stopped))),
            Played::Equal | Played::Differs(_) => {}
        }
        Ok(())
    }

    /// What is to be written: moved behind what is in `to`.
    pub fn take(&mut self, to: &mut Vec<u8>) {
        to.append(&mut self.made);
    }

    fn put(&mut self, record: &RecordRef<'_>) {
        // Words are short: each has its bound.
        if append(&mut self.made, self.number, record).is_ok() {
            self.number += 1;
        }
    }
}

/// A step in words.
#[must_use]
pub fn shown(step: &Step, names: &Names) -> Shown {
    let (mut outputs, mut events) = (Vec::new(), Vec::new());
    for output in &step.outputs {
        let to = if matches!(output, Output::Event(_)) { &mut events } else { &mut outputs };
        to.push(words::output(output, names));
    }
    Shown { input: step.input.clone(), outputs, events }
}
