//! Processes that die and are started again.

use super::durable::{Durable, Opened};
use super::{Happening, Network};
use crate::sites;
use node::Input;
use std::time::Duration;

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

/// The time until a process that its store ended is started again, and between two attempts.
const RESTART: Duration = Duration::from_secs(2);

/// The time until the next part of the queue is read.
const PART: Duration = Duration::from_millis(2);

impl Network {
    /// A site loses its power and is started again: what was not durable is gone.
    pub fn crash(&mut self, site: usize) {
        let mut made = 0;
        while made < self.sites[site].store.waiting() && self.rng.below(2) == 0 {
            made += 1;
        }
        self.crash_as(site, Death::Power, made);
    }
}

impl<S: Durable> Network<S> {
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

    /// A process dies and is started again at once. Of the commits asked for, the disk made `made`, and
    /// nobody was answered.
    pub fn crash_as(&mut self, site: usize, death: Death, made: usize) {
        self.kill(site, death, made, false);
        self.start(site);
    }

    /// A process dies, and is started again after so long.
    pub fn crash_for(&mut self, site: usize, time: Duration) {
        self.kill(site, Death::Process, 0, true);
        self.sites[site].sleeps_until = self.now;
        self.later(time, Happening::Start(site, self.sites[site].epoch));
    }

    /// A process that is to stop in order has stopped: it is started again after so long.
    pub fn close_for(&mut self, site: usize, time: Duration) {
        self.sites[site].store.close();
        self.crash_for(site, time);
    }

    fn kill(&mut self, site: usize, death: Death, made: usize, stays_down: bool) {
        let s = &mut self.sites[site];
        s.store.die(death, made, &mut self.rng);
        s.end_tape();
        s.epoch += 1;
        s.deaths.push(self.now);
        s.is_down = stays_down;
        self.lose_connections(site, death == Death::Power);
    }

    /// Whether the store has ended the process: it is started again a moment later.
    pub(super) fn has_ended(&mut self, site: usize) -> bool {
        let Some(death) = self.sites[site].store.end() else { return false };
        self.kill(site, death, 0, true);
        self.later(RESTART, Happening::Start(site, self.sites[site].epoch));
        true
    }

    /// Starts the process of a site that is down, now or as soon as it can.
    pub(super) fn start(&mut self, site: usize) {
        let now = self.clock_at(site);
        let s = &mut self.sites[site];
        let opened = s.store.start(now);
        if let Some(death) = s.store.end() {
            s.store.die(death, 0, &mut self.rng);
            s.deaths.push(self.now);
        }
        let Ok(Opened { epoch: number, first, inputs }) = opened else {
            s.is_down = true;
            let again = Happening::Start(site, s.epoch);
            return self.later(RESTART, again);
        };
        if !self.suffix.is_empty() {
            s.config = sites::config(site, s.epoch, self.setup, self.suffix, &s.others);
        }
        s.config.epoch = number.unwrap_or(s.epoch);
        s.renew(now, first);
        (s.is_down, s.stopped) = (false, false);
        let epoch = s.epoch;
        for input in inputs {
            // It may die again while it starts.
            if self.sites[site].epoch == epoch {
                self.feed(site, input);
            }
        }
        self.later(PART, Happening::Part(site, epoch));
        if let Some(interval) = S::LOOKS {
            self.later(interval, Happening::Look(site, epoch));
        }
    }

    /// Hands over the next part of the queue, if there is one.
    pub(super) fn part(&mut self, site: usize, epoch: u32) {
        let s = &mut self.sites[site];
        let own = (s.node.first_entry(), s.node.first_body());
        let part = s.store.part(own);
        if self.has_ended(site) {
            return;
        }
        let Some(inputs) = part else { return };
        for input in inputs {
            if self.sites[site].epoch == epoch {
                self.feed(site, input);
            }
        }
        self.later(PART, Happening::Part(site, epoch));
    }

    /// Looks at the room on the disk.
    pub(super) fn look(&mut self, site: usize, epoch: u32) {
        let now = self.clock_at(site);
        let space = self.sites[site].store.look(now);
        if self.has_ended(site) {
            return;
        }
        if let Some(input) = space {
            self.feed(site, input);
        }
        if let Some(interval) = S::LOOKS.filter(|_| self.sites[site].epoch == epoch) {
            self.later(interval, Happening::Look(site, epoch));
        }
    }

    /// A process ends in order, as with a signal, and is started again.
    pub fn restart(&mut self, site: usize) {
        if self.sites[site].is_down {
            return;
        }
        self.feed(site, Input::Stop);
        self.run_for(Duration::from_secs(1));
        // It may have died meanwhile, and be down.
        if self.sites[site].is_down || !self.sites[site].stopped {
            return;
        }
        let s = &mut self.sites[site];
        s.store.close();
        let death = s.store.end().unwrap_or(Death::Process);
        self.kill(site, death, 0, true);
        self.later(RESTART, Happening::Start(site, self.sites[site].epoch));
    }
}
