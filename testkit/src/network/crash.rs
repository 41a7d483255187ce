//! Processes that die and are started again.

use super::Network;
use crate::sites;
use node::{Input, Node};

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// With its machine: what was written and has not arrived is lost.
    Power,
    /// Alone: its kernel sends what was written, and closes.
    Process,
}

/// A crash to come.
#[derive(Clone, Copy, Debug)]
pub struct Strike {
    /// After so many outputs of the site, from the beginning; events do not count.
    pub after: u64,
    /// The end of the process.
    pub death: Death,
    /// Whether the disk makes the commits asked for; nobody is answered.
    pub commits: bool,
}

impl Network {
    /// Counts an output, and crashes the site if it is time.
    pub(super) fn is_struck(&mut self, site: usize) -> bool {
        let s = &mut self.sites[site];
        s.outputs += 1;
        let due = s.strikes.front().is_some_and(|strike| strike.after <= s.outputs);
        let Some(strike) = s.strikes.pop_front_if(|_| due) else { return false };
        let made = if strike.commits { usize::MAX } else { 0 };
        self.crash_as(site, strike.death, made);
        true
    }

    /// A site loses its power and is started again: what was not durable is gone.
    pub fn crash(&mut self, site: usize) {
        let mut made = 0;
        while made < self.sites[site].store.waiting() && self.rng.below(2) == 0 {
            made += 1;
        }
        self.crash_as(site, Death::Power, made);
    }

    /// A process dies and is started again. Of the commits asked for, the disk made `made`, and
    /// nobody was answered.
    pub fn crash_as(&mut self, site: usize, death: Death, made: usize) {
        let s = &mut self.sites[site];
        s.store.crash(made, &mut self.rng);
        s.epoch += 1;
        if !self.suffix.is_empty() {
            s.config = sites::config(site, s.epoch, self.setup, self.suffix, &s.others);
        }
        s.config.epoch = s.epoch;
        s.node = Node::new(s.config.clone());
        let epoch = s.epoch;
        self.lose_connections(site, death == Death::Power);
        let inputs: Vec<Input> = self.sites[site].store.recovered();
        for input in inputs {
            // It may die again while it starts.
            if self.sites[site].epoch == epoch {
                self.feed(site, input);
            }
        }
    }
}
