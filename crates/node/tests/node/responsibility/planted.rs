//! Faults that are put in between a node and its store, to prove that the model finds them.

use base::rng::Rng;
use base::{EntryId, Now, Precedence};
use engine::journal::{Batch, Op};
use node::{Input, Output};
use testkit::{Death, Delays, Durable, FaultyStore, Opened, Reply};

/// A fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    None,
    /// A commit is answered, and its entries are durable only after the next.
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
    /// The entries that the last commit wrote.
    last: Vec<(Precedence, EntryId)>,
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
        if let Output::Commit { batch, .. } = &mut output {
            self.spoil(batch);
            let put = batch.iter().filter_map(|op| match op {
                Op::PutEntry { precedence, id, .. } => Some((*precedence, *id)),
                _ => None,
            });
            let put: Vec<_> = put.collect();
            if !put.is_empty() {
                self.last = put;
            }
        }
        self.store.handle(now, delays, rng, output)
    }

    fn commit(&mut self, now: Now, rng: &mut Rng) -> Vec<Input> {
        Durable::commit(&mut self.store, now, rng)
    }

    fn die(&mut self, death: Death, made: usize, rng: &mut Rng) {
        self.store.die(death, made, rng);
        if self.fault == Fault::Hasty {
            for key in self.last.drain(..) {
                self.store.entries.remove(&key);
            }
        }
    }

    fn start(&mut self, now: Now) -> Result<Opened, String> {
        self.store.start(now)
    }
}
