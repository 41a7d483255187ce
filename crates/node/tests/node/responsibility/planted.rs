//! Faults that are put in between a node and its store, to prove that the model finds them.

use base::rng::Rng;
use base::Now;
use engine::journal::{Batch, Op};
use node::{Input, Output};
use std::collections::VecDeque;
use std::time::Duration;
use testkit::{Death, Delays, Durable, FaultyStore, Opened, Reply};

/// A fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    None,
    /// A commit is answered at once, and durable only after the next.
    Hasty,
    /// Of an arrival's entries the second is not written.
    OneEntry,
    /// Entries stay when they are deleted.
    Undeleted,
    /// What was accepted is not remembered.
    Forgetful,
}

/// A store with a fault.
#[derive(Default)]
pub(super) struct Planted {
    pub(super) store: FaultyStore,
    fault: Fault,
    late: VecDeque<Batch>,
}

impl Planted {
    pub(super) fn new(fault: Fault) -> Planted {
        Planted { fault, ..Planted::default() }
    }

    fn spoil(&self, batch: &mut Batch) {
        let mut entries = 0;
        batch.retain(|op| match op {
            Op::PutEntry { .. } if self.fault == Fault::OneEntry => {
                entries += 1;
                entries != 2
            }
            Op::DeleteEntry { .. } => self.fault != Fault::Undeleted,
            Op::PutSeen { .. } => self.fault != Fault::Forgetful,
            _ => true,
        });
    }
}

impl Durable for Planted {
    fn handle(
        &mut self,
        now: Now,
        delays: &Delays,
        rng: &mut Rng,
        mut output: Output,
    ) -> Result<Reply, Output> {
        if let Output::Commit { token, batch, .. } = &mut output {
            self.spoil(batch);
            if self.fault == Fault::Hasty {
                self.late.push_back(std::mem::take(batch));
                if self.late.len() > 1
                    && let Some(batch) = self.late.pop_front()
                {
                    self.store.apply(batch).expect("a sound batch");
                }
                let answer = Input::Committed { token: *token, result: Ok(()) };
                return Ok(Reply::After(Duration::from_micros(10), answer));
            }
        }
        self.store.handle(now, delays, rng, output)
    }

    fn commit(&mut self, now: Now, rng: &mut Rng) -> Vec<Input> {
        Durable::commit(&mut self.store, now, rng)
    }

    fn die(&mut self, death: Death, made: usize, rng: &mut Rng) {
        self.late.clear();
        self.store.die(death, made, rng);
    }

    fn start(&mut self, now: Now) -> Result<Opened, String> {
        self.store.start(now)
    }
}
