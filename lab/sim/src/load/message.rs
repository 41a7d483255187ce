//! Messages in transit: what happens to each, and what starts because of it.

use crate::load::content::Content;
use crate::outcome::SimulatedTimes;
use crate::scenario::{MessageStage, SimulatedMessage, SubmissionStart};
use base::AssociationId;
use node::event::{Kind, LogEvent};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What is known of a message by its identifier, before it is known whose it is.
#[derive(Clone, Debug, Default)]
struct Marks {
    started: Option<Duration>,
    confirmed: Option<Duration>,
    associations: Vec<AssociationId>,
    undeliverable: bool,
}

/// All messages of a scenario.
#[derive(Debug)]
pub(crate) struct Messages {
    messages: Vec<SimulatedMessage>,
    seed: u64,
    pub(crate) times: Vec<SimulatedTimes>,
    by_identifier: BTreeMap<String, usize>,
    early: BTreeMap<(usize, String), Marks>,
    /// Messages that start now because of others, and when.
    starts: VecDeque<(Duration, usize)>,
}

impl Messages {
    pub(crate) fn new(messages: &[SimulatedMessage], seed: u64) -> Messages {
        Messages {
            messages: messages.to_vec(),
            seed,
            times: vec![SimulatedTimes::default(); messages.len()],
            by_identifier: BTreeMap::new(),
            early: BTreeMap::new(),
            starts: VecDeque::new(),
        }
    }

    pub(crate) fn get(&self, number: usize) -> Option<&SimulatedMessage> {
        self.messages.get(number)
    }

    pub(crate) fn content(&self, number: usize) -> Content {
        Content::new(self.seed, number)
    }

    /// The next message that starts because of another, and when.
    pub(crate) fn start(&mut self) -> Option<(Duration, usize)> {
        self.starts.pop_front()
    }

    /// Whether nothing more is to come of any.
    pub(crate) fn are_done(&self) -> bool {
        self.times.iter().enumerate().all(|(number, _)| self.is_done(number))
    }

    fn is_done(&self, number: usize) -> bool {
        let Some(times) = self.times.get(number) else { return true };
        let sent = times.started.is_none() || times.confirmed.is_some();
        times.refused.is_some() || (times.delivered.is_some() && sent) || self.never_starts(number)
    }

    /// Whether what it waits for will not be.
    fn never_starts(&self, number: usize) -> bool {
        let mut at = number;
        for _ in 0..self.messages.len() {
            match self.messages.get(at).map(|message| message.start) {
                Some(SubmissionStart::After { message, stage, .. })
                    if self.times.get(number).is_some_and(|times| times.submitted.is_none()) =>
                {
                    let before = self.times.get(message);
                    let reached = before.is_some_and(|before| at_stage(before, stage).is_some());
                    if before.is_some_and(|before| before.refused.is_some()) && !reached {
                        return true;
                    }
                    at = message;
                }
                _ => return false,
            }
        }
        false
    }

    pub(crate) fn submitted(&mut self, now: Duration, number: usize) {
        if let Some(times) = self.times.get_mut(number) {
            times.submitted.get_or_insert(now);
        }
    }

    pub(crate) fn answered(
        &mut self,
        now: Duration,
        number: usize,
        result: Result<String, String>,
    ) {
        let site = self.messages.get(number).map(|message| message.from.site);
        let (Some(times), Some(site)) = (self.times.get_mut(number), site) else { return };
        match result {
            Err(why) => times.refused = Some(why),
            Ok(identifier) => {
                times.accepted.get_or_insert(now);
                times.identifier = Some(identifier.clone());
                self.by_identifier.insert(identifier.clone(), number);
                self.reached(number, MessageStage::Accepted);
                if let Some(marks) = self.early.remove(&(site, identifier)) {
                    self.mark(number, &marks);
                }
            }
        }
    }

    /// Handles an event of a node.
    pub(crate) fn event(&mut self, now: Duration, site: usize, event: &LogEvent) {
        let Some(identifier) = &event.message else { return };
        let mut marks = Marks::default();
        match event.kind {
            Kind::TransferStarted => {
                marks.started = Some(now);
                marks.associations.extend(event.association);
            }
            Kind::TransferConfirmed => marks.confirmed = Some(now),
            Kind::NonDelivery | Kind::Expired | Kind::GivenUp => marks.undeliverable = true,
            _ => return,
        }
        match self.by_identifier.get(identifier).copied() {
            Some(number) => {
                let is_first = self.get(number).is_some_and(|message| message.from.site == site);
                if is_first || marks.undeliverable {
                    self.mark(number, &marks);
                }
            }
            None => {
                // Its user has not yet received its identifier.
                let early = self.early.entry((site, identifier.clone())).or_default();
                early.started = early.started.or(marks.started);
                early.confirmed = early.confirmed.or(marks.confirmed);
                early.undeliverable |= marks.undeliverable;
                early.associations.extend(marks.associations);
            }
        }
    }

    fn mark(&mut self, number: usize, marks: &Marks) {
        let Some(times) = self.times.get_mut(number) else { return };
        times.started = times.started.or(marks.started);
        times.started_last = marks.started.or(times.started_last);
        times.confirmed = times.confirmed.or(marks.confirmed);
        times.associations.extend(&marks.associations);
        if marks.undeliverable {
            times.refused = Some("it could not be delivered".to_owned());
        }
        if marks.started.is_some() {
            self.reached(number, MessageStage::Started);
        }
    }

    /// A message is whole at its recipient: so many of its octets were not right.
    pub(crate) fn delivered(&mut self, now: Duration, number: usize, octets: u64, wrong: u64) {
        let size = self.get(number).map(|message| message.size);
        let Some(times) = self.times.get_mut(number) else { return };
        times.deliveries += 1;
        let is_whole = wrong == 0 && size == Some(octets);
        times.intact = is_whole && (times.intact || times.delivered.is_none());
        if times.delivered.is_none() {
            times.delivered = Some(now);
            self.reached(number, MessageStage::Delivered);
        }
    }

    /// Starts what waited for this.
    fn reached(&mut self, number: usize, stage: MessageStage) {
        let Some(reached) = self.times.get(number).and_then(|times| at_stage(times, stage)) else {
            return;
        };
        for (next, message) in self.messages.iter().enumerate() {
            let SubmissionStart::After { message: before, stage: wanted, delay } = message.start
            else {
                continue;
            };
            let waits = self.times.get(next).is_some_and(|times| times.submitted.is_none());
            if before == number && wanted == stage && waits {
                self.starts.push_back((reached + delay, next));
            }
        }
    }
}

fn at_stage(times: &SimulatedTimes, stage: MessageStage) -> Option<Duration> {
    match stage {
        MessageStage::Accepted => times.accepted,
        MessageStage::Started => times.started,
        MessageStage::Delivered => times.delivered,
    }
}
