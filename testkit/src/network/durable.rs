//! What the network asks of the store of a site: that in memory, or the real one over a disk in memory.

use super::Death;
use crate::store::{Delays, FaultyStore, Reply};
use base::rng::Rng;
use base::{EntryId, Instant, Now};
use node::shards::PeerAssociations;
use node::{Input, Output};
use std::time::Duration;

/// What a process found when it opened its store.
#[derive(Debug)]
pub struct Opened {
    /// The number of this start; `None`: the count of starts.
    pub epoch: Option<u32>,
    /// The first number of an entry of this start; `None`: from the epoch.
    pub first: Option<EntryId>,
    /// What its node is handed first.
    pub inputs: Vec<Input>,
}

/// What a store wants after it was handed something.
#[derive(Debug)]
pub enum Follow {
    /// The node gets an input.
    Node(Input),
    /// The store is called with this number after so long.
    Later(Duration, u64),
}

/// A store in virtual time.
pub trait Durable {
    /// How often the edge looks at the room on the disk; `None`: never.
    const LOOKS: Option<Duration> = None;

    /// Does what a node asks of its store.
    ///
    /// # Errors
    /// The output is not for the store.
    fn handle(
        &mut self,
        now: Now,
        delays: &Delays,
        rng: &mut Rng,
        output: Output,
    ) -> Result<Reply, Output>;

    /// Makes commits that are due; gives the answers.
    fn commit(&mut self, now: Now, rng: &mut Rng) -> Vec<Input>;

    /// Commits are not made for now.
    fn is_stuck(&self) -> bool {
        false
    }

    /// Does what commits have deferred, where nothing waits.
    fn tidy(&mut self, _now: Now) {}

    /// The room on the disk.
    fn look(&mut self, _now: Now) -> Option<Input> {
        None
    }

    /// How the process has ended, if the last call has ended it.
    fn end(&mut self) -> Option<Death> {
        None
    }

    /// Whether its machine has no power: the answers of the last call are lost.
    fn is_off(&self) -> bool {
        false
    }

    /// The process is dead. Of the commits that wait, the disk makes `made`, and nobody is answered.
    fn die(&mut self, death: Death, made: usize, rng: &mut Rng);

    /// A process starts.
    ///
    /// # Errors
    /// It cannot, for now.
    fn start(&mut self, now: Now) -> Result<Opened, String>;

    /// The next part of the queue, for a node whose own entries and bodies have numbers from `own` on; `None` once
    /// all is read.
    fn part(&mut self, _own: (u64, u64)) -> Option<Vec<Input>> {
        None
    }

    /// The process ends in order.
    fn close(&mut self) {}

    /// Before the node gets an input at this time.
    fn before(&mut self, _now: Now, _rng: &mut Rng) {}

    /// The node's associations with peers, after a step of it that has changed them.
    fn with_peers(&mut self, _now: Now, _found: PeerAssociations, _rng: &mut Rng) {}

    /// What follows from the last calls, one thing after the other.
    fn follow(&mut self) -> Option<Follow> {
        None
    }

    /// When [`Durable::before`] has something to do, by the clock of the site.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// What [`Follow::Later`] asked for is due, also if its process has died meanwhile. `real` is the time by no
    /// site's clock.
    fn happen(&mut self, _real: Instant, _now: Now, _number: u64, _rng: &mut Rng) {}

    /// Whether that waits for a process that hangs; otherwise it happens elsewhere.
    fn is_for_process(&self, _number: u64) -> bool {
        true
    }
}

impl Durable for FaultyStore {
    fn handle(
        &mut self,
        now: Now,
        delays: &Delays,
        rng: &mut Rng,
        output: Output,
    ) -> Result<Reply, Output> {
        FaultyStore::handle(self, now, delays, rng, output)
    }

    fn commit(&mut self, _: Now, rng: &mut Rng) -> Vec<Input> {
        FaultyStore::commit(self, rng).into_iter().collect()
    }

    fn is_stuck(&self) -> bool {
        self.stuck
    }

    fn die(&mut self, _: Death, made: usize, rng: &mut Rng) {
        self.crash(made, rng);
    }

    fn start(&mut self, _: Now) -> Result<Opened, String> {
        Ok(Opened { epoch: None, first: None, inputs: self.recovered() })
    }
}
