//! Runs a recording through the node, and compares what it gives out with what it gave out in the run.

use crate::fingerprint::{Fingerprint, Fingerprints, OutputKind};
use crate::format::{End, Record};
use crate::header::Header;
use crate::names::Names;
use crate::words;
use base::Now;
use node::status::Status;
use node::{Input, Node, Output};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use thiserror::Error;

/// Most outputs of a step: more than any has.
const MAX_OUTPUTS: usize = 1 << 20;

/// One step of a replay.
#[derive(Debug)]
pub struct Step {
    /// Its number, from 1 on.
    pub number: u64,
    /// The clocks of the run.
    pub now: Now,
    /// The input, in words.
    pub input: String,
    /// What the node gave out.
    pub outputs: Vec<Output>,
}

/// The outputs of a step are not those of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step.
    pub step: u64,
    /// Its clocks.
    pub now: Now,
    /// Its input, in words.
    pub input: String,
    /// The number of the first output that differs, from 1 on.
    pub output: usize,
    /// That of the run, if there was one.
    pub recorded: Option<OutputKind>,
    /// That of the replay in words, if there is one.
    pub replayed: Option<String>,
    /// The last step up to this one of whose input octets were overwritten, if there is one, and how many: the likely
    /// cause.
    pub blanked: Option<(u64, u64)>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { step, input, output, recorded, replayed, blanked, .. } = self;
        write!(f, "step {step} ({input}), output {output}: ")?;
        match (recorded, replayed) {
            (Some(recorded), None) => write!(f, "{recorded:?} in the run, none in the replay"),
            (None, Some(replayed)) => write!(f, "none in the run, in the replay: {replayed}"),
            (Some(recorded), Some(replayed)) => {
                write!(f, "{recorded:?} in the run, in the replay: {replayed}")
            }
            (None, None) => f.write_str("none"),
        }?;
        match blanked {
            Some((step, octets)) => write!(
                f,
                "; {octets} octets of the input of step {step} were overwritten, as they might have had a password"
            ),
            None => Ok(()),
        }
    }
}

/// A record that cannot follow those before it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlayError {
    /// The recording has no contents.
    #[error("a recording without contents is for reading only")]
    Stripped,
    /// Outputs without an input, a second header, or a record after the last.
    #[error("a record that does not belong after step {0}")]
    Order(u64),
    /// The configuration makes no node: why.
    #[error("the configuration in it makes no node: {0}")]
    Header(String),
    /// The node panics in this step: why.
    #[error("the node panics in step {0}: {1}")]
    Panic(u64, String),
}

/// Runs what may panic: with a file from outside, or as it did in the run.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        base::shown::line(text.unwrap_or("without words")).chars().take(MAX_PANIC).collect()
    })
}

/// Most characters that are shown of a panic.
const MAX_PANIC: usize = 400;

/// Runs one recording.
#[derive(Debug)]
pub struct Player {
    node: Node,
    fingerprints: Fingerprints,
    names: Names,
    steps: u64,
    /// The last step, whose recorded outputs have not come yet.
    last: Option<Last>,
    end: Option<End>,
    /// The last step of whose input octets were overwritten, and how many.
    blanked: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Last {
    now: Now,
    input: String,
    outputs: Vec<(Fingerprint, String)>,
}

impl Player {
    /// Makes the node of a recording.
    ///
    /// # Errors
    /// The recording has no contents, or a configuration that makes no node.
    pub fn new(header: &Header) -> Result<Player, PlayError> {
        if header.stripped {
            return Err(PlayError::Stripped);
        }
        let node = guarded(|| header.node()).map_err(PlayError::Header)?;
        let fingerprints = Fingerprints::default();
        let names = Names::from_config(&header.config);
        Ok(Player { node, fingerprints, names, steps: 0, last: None, end: None, blanked: None })
    }

    /// What `mta status` shows of the node as it is now.
    ///
    /// # Errors
    /// The node panics.
    pub fn status(&self, now: Now) -> Result<Status, PlayError> {
        guarded(|| self.node.status(now)).map_err(|why| PlayError::Panic(self.steps, why))
    }

    /// The names of its configuration.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Steps so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Why the recording ended, once that is known.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Whether the last input has no outputs in the recording: the process ended while the node took it.
    #[must_use]
    pub fn is_within_step(&self) -> bool {
        self.last.is_some()
    }

    /// Runs an input through the node.
    ///
    /// # Errors
    /// The node panics. It takes nothing more.
    pub fn input(&mut self, now: Now, input: Input) -> Result<Step, PlayError> {
        self.steps += 1;
        self.names.input(&input);
        let shown = words::input(&input, &self.names);
        self.fingerprints.input(&input);
        let node = &mut self.node;
        let ran = guarded(|| {
            node.handle(now, input);
            std::iter::from_fn(|| node.poll()).take(MAX_OUTPUTS).collect::<Vec<Output>>()
        });
        let outputs = ran.map_err(|why| {
            self.end = Some(End::Stopped);
            PlayError::Panic(self.steps, why)
        })?;
        let names = &self.names;
        let of = |output| (self.fingerprints.fingerprint(output), words::output(output, names));
        let last = Last { now, input: shown.clone(), outputs: outputs.iter().map(of).collect() };
        self.last = Some(last);
        Ok(Step { number: self.steps, now, input: shown, outputs })
    }

    /// Compares the outputs of the last input with those of the run.
    ///
    /// # Errors
    /// There was no input.
    pub fn compare(&mut self, recorded: &[Fingerprint]) -> Result<Option<Difference>, PlayError> {
        let last = self.last.take().ok_or(PlayError::Order(self.steps))?;
        let longest = recorded.len().max(last.outputs.len());
        let differs = |at: &usize| {
            recorded.get(*at) != last.outputs.get(*at).map(|(fingerprint, _)| fingerprint)
        };
        Ok((0..longest).find(differs).map(|at| Difference {
            step: self.steps,
            now: last.now,
            input: last.input.clone(),
            output: at + 1,
            recorded: recorded.get(at).map(|fingerprint| fingerprint.kind),
            replayed: last.outputs.get(at).map(|(_, words)| words.clone()),
            blanked: self.blanked,
        }))
    }

    /// Takes the next record after the header. Gives the step that it ran, or how a step differs.
    ///
    /// # Errors
    /// The record does not belong here.
    pub fn record(&mut self, record: Record) -> Result<Played, PlayError> {
        if self.end.is_some() {
            return Err(PlayError::Order(self.steps));
        }
        match record {
            Record::Input(now, input) if self.last.is_none() => {
                Ok(Played::Step(Box::new(self.input(now, input)?)))
            }
            Record::Outputs(recorded) => {
                Ok(self.compare(&recorded)?.map_or(Played::Equal, |d| Played::Differs(Box::new(d))))
            }
            Record::End(end) => {
                self.end = Some(end);
                Ok(Played::Ended)
            }
            Record::Blanked(octets) if self.last.is_none() => {
                self.blanked = Some((self.steps + 1, octets));
                Ok(Played::Equal)
            }
            Record::Shown(..) => Err(PlayError::Stripped),
            Record::Input(..) | Record::Header(_) | Record::Blanked(_) => {
                Err(PlayError::Order(self.steps))
            }
        }
    }
}

/// What a record was.
#[derive(Debug)]
pub enum Played {
    /// An input, which the node took.
    Step(Box<Step>),
    /// The outputs of the run, which those of the replay equal.
    Equal,
    /// The outputs of the run, which those of the replay do not equal.
    Differs(Box<Difference>),
    /// The last record.
    Ended,
}
