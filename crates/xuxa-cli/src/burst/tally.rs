//! The state of each message, from the client's own times and the events of the MTAs.

mod early;
mod row;

use super::event::{EventKind, MessageEvent};
use super::plan::{BurstPlan, Group};
use super::schedule::Planned;
use super::summary::{Stretch, Times};
use super::value::Stage;
use crate::submission::Failure;
use base::Precedence;
use early::Early;
use p1::names::ORAddress;
pub(crate) use row::{MessageRow, Submission, Taker, Transfer};
use std::collections::{BTreeMap, BTreeSet};

/// Microseconds since the Unix epoch.
pub(crate) type Micros = u64;

/// All messages.
#[derive(Debug)]
pub(crate) struct Tally {
    pub rows: Vec<MessageRow>,
    by_identifier: BTreeMap<String, usize>,
    /// How many of each group have reached each stage, or can no longer reach it.
    reached: Vec<[u64; 3]>,
    counts: Vec<u64>,
    in_progress: u64,
    early: Early,
    /// Recipients by group, and our own users.
    recipients: Vec<Vec<ORAddress>>,
    users: Vec<ORAddress>,
    /// The progress display, updated with each change.
    pub live: BTreeMap<Precedence, Running>,
    /// Events dropped before their message was known.
    pub dropped: u64,
}

/// State of the messages of one precedence: each of [`MessageRow::shown`], and the times to delivery.
#[derive(Debug)]
pub(crate) struct Running {
    pub counts: [u64; 5],
    pub times: Times,
}

const STAGES: [Stage; 3] = [Stage::Accepted, Stage::Started, Stage::Delivered];

impl Tally {
    /// Tallies the messages of a plan. `tag` distinguishes this run from others: an MTA answers a
    /// repeated content identifier with the first MTS identifier. `users` are our recipients.
    pub(crate) fn new(
        plan: &BurstPlan,
        planned: Vec<Planned>,
        users: Vec<ORAddress>,
        tag: u32,
    ) -> Tally {
        let to = |group: &Group| group.to.iter().map(|name| name.address.clone()).collect();
        let mut live = BTreeMap::new();
        for planned in &planned {
            let none = || Running { counts: [0; 5], times: Times::from_micros(std::iter::empty()) };
            let [planned, ..] = &mut live.entry(planned.precedence).or_insert_with(none).counts;
            *planned += 1;
        }
        let recipients =
            |planned: &Planned| plan.groups.get(planned.group).map_or(1, |g| g.to.len());
        let row = |planned: Planned| MessageRow {
            recipients: recipients(&planned),
            content_identifier: format!("{tag:08X}{:08X}", planned.number),
            from: 0,
            content_length: 0,
            submission: Submission::default(),
            tries: 0,
            mts_identifier: None,
            due: None,
            submitted: None,
            answered: None,
            accepted: None,
            mta: None,
            transfers: Vec::new(),
            received: None,
            receipts: BTreeSet::new(),
            logged: BTreeMap::new(),
            taken: Vec::new(),
            again: 0,
            altered: 0,
            non_delivery: false,
            counted: [false; 3],
            planned,
        };
        Tally {
            rows: planned.into_iter().map(row).collect(),
            by_identifier: BTreeMap::new(),
            reached: vec![[0; 3]; plan.groups.len()],
            counts: plan.groups.iter().map(|group| group.count).collect(),
            in_progress: 0,
            early: Early::default(),
            recipients: plan.groups.iter().map(to).collect(),
            users,
            live,
            dropped: 0,
        }
    }

    /// The message of this run that a content identifier names.
    pub(crate) fn by_content_identifier(&self, identifier: &str) -> Option<usize> {
        let number = usize::from_str_radix(identifier.get(8..)?, 16).ok()?;
        let row = self.rows.get(number)?;
        (row.content_identifier == identifier).then_some(number)
    }

    /// Whether all messages of a group have reached a stage, or can no longer reach it.
    pub(crate) fn has_reached(&self, group: usize, stage: Stage) -> bool {
        let reached = self.reached.get(group).and_then(|r| r.get(stage as usize));
        reached == self.counts.get(group)
    }

    /// The same for all messages.
    pub(crate) fn have_all_reached(&self, stage: Stage) -> bool {
        (0..self.counts.len()).all(|group| self.has_reached(group, stage))
    }

    /// Assigns a submission to a profile of its group, and to the planned time, if any.
    pub(crate) fn assign(&mut self, number: usize, from: usize, due: Option<Micros>) {
        if let Some(row) = self.rows.get_mut(number) {
            (row.from, row.due) = (from, due);
        }
    }

    /// A submission begins, the first time or again.
    pub(crate) fn begins(&mut self, number: usize, at: Micros, content_length: u64) {
        let is_first = |row: &MessageRow| row.submission == Submission::Waiting;
        self.in_progress += u64::from(self.rows.get(number).is_some_and(is_first));
        self.change(number, |row| {
            row.submission = Submission::InProgress;
            row.submitted.get_or_insert(at);
            row.content_length = content_length;
        });
    }

    /// The MTA has answered with an MTS identifier.
    pub(crate) fn accepted(&mut self, number: usize, at: Micros, identifier: &str, tries: u32) {
        self.ends(number);
        self.change(number, |row| {
            row.submission = Submission::Accepted;
            row.answered = Some(at);
            row.tries = tries;
            row.mts_identifier = Some(identifier.to_owned());
        });
        self.by_identifier.insert(identifier.to_owned(), number);
        for event in self.early.take(identifier) {
            self.happened(number, event);
        }
        if self.in_progress == 0 {
            self.early.clear();
        }
    }

    /// A submission that may have begun is over.
    fn ends(&mut self, number: usize) {
        let is_in_progress = |row: &MessageRow| row.submission == Submission::InProgress;
        self.in_progress -= u64::from(self.rows.get(number).is_some_and(is_in_progress));
    }

    /// Changes a row, and what is counted of it.
    fn change(&mut self, number: usize, change: impl FnOnce(&mut MessageRow)) {
        let Some(row) = self.rows.get_mut(number) else {
            return;
        };
        let before = row.shown();
        change(row);
        let after = row.shown();
        if let Some(live) = self.live.get_mut(&row.planned.precedence) {
            for ((count, before), after) in live.counts.iter_mut().zip(before).zip(after) {
                *count = (*count + u64::from(after)).saturating_sub(u64::from(before));
            }
            let [.., was_delivered] = before;
            if !was_delivered && let Some(time) = Stretch::Delivery.duration(row) {
                live.times.record(time);
            }
        }
        self.count(number);
    }

    /// The submission failed.
    pub(crate) fn failed(&mut self, number: usize, failure: &Failure) {
        self.ends(number);
        self.change(number, |row| {
            row.submission = Submission::Failed(failure.disposition, failure.reason.clone());
            row.tries = failure.tries;
        });
    }

    /// One of our users has taken it; `is_whole`: with the submitted content.
    pub(crate) fn taken(&mut self, number: usize, user: usize, at: Micros, is_whole: bool) {
        let name = self.users.get(user);
        let recipient = name.and_then(|name| self.recipient(number, name));
        self.change(number, |row| {
            row.altered += u32::from(!is_whole);
            match row.taken.iter().any(|(other, ..)| *other == user) {
                true => row.again += 1,
                false => row.taken.push((user, recipient, at)),
            }
        });
    }

    /// An MTA has logged this.
    pub(crate) fn event(&mut self, event: MessageEvent) {
        match self.by_identifier.get(&event.mts_identifier) {
            Some(number) => self.happened(*number, event),
            // It may belong to a submission whose answer is in transit.
            None if self.in_progress > 0 => {
                self.dropped += u64::from(self.early.put(event));
            }
            None => {}
        }
    }

    fn happened(&mut self, number: usize, event: MessageEvent) {
        let recipient = event.recipient.as_ref().and_then(|to| self.recipient(number, to));
        self.change(number, |row| happened(row, event, recipient));
    }

    /// The number of this recipient in its message.
    fn recipient(&self, number: usize, address: &ORAddress) -> Option<usize> {
        let recipients = self.recipients.get(self.rows.get(number)?.planned.group)?;
        let is_it = |to: &ORAddress| to.attributes() == address.attributes();
        recipients.iter().position(is_it)
    }

    /// Counts the stages a message has reached, each once.
    fn count(&mut self, number: usize) {
        let Some(row) = self.rows.get_mut(number) else {
            return;
        };
        let Some(reached) = self.reached.get_mut(row.planned.group) else {
            return;
        };
        for (stage, reached) in STAGES.into_iter().zip(reached) {
            let now = row.has_reached(stage);
            if let Some(counted) = row.counted.get_mut(stage as usize)
                && now
                && !*counted
            {
                *counted = true;
                *reached += 1;
            }
        }
    }

    /// Whether the logs show the deliveries of a group: they showed one, or no message has gone to
    /// an MTA whose log is not read.
    pub(crate) fn sees_deliveries(&self, group: usize) -> bool {
        let of = |row: &&MessageRow| {
            row.planned.group == group && row.submission == Submission::Accepted
        };
        let mut rows = self.rows.iter().filter(of);
        rows.clone().any(|row| row.delivered().is_some())
            || rows.all(|row| row.has_failed() || row.is_in_sight())
    }

    /// Whether events of delivered messages are missing.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.rows.iter().any(|row| {
            row.delivered().is_some() && (row.accepted.is_none() || row.confirmed().is_none())
        })
    }
}

/// Applies an MTA's event; `recipient` is the one of a delivery.
fn happened(row: &mut MessageRow, event: MessageEvent, recipient: Option<usize>) {
    let MessageEvent { time_us, mta, kind, entry, peer, .. } = event;
    let same = |t: &&mut Transfer| t.mta == mta && t.entry == entry;
    match kind {
        EventKind::Accepted => {
            row.accepted.get_or_insert(time_us);
            row.mta.get_or_insert(mta);
        }
        EventKind::TransferStarted => match row.transfers.iter_mut().find(same) {
            Some(transfer) => transfer.starts += 1,
            None => row.transfers.push(Transfer {
                mta,
                entry,
                peer,
                started: time_us,
                starts: 1,
                confirmed: None,
                rerouted: false,
            }),
        },
        EventKind::TransferConfirmed => {
            if let Some(transfer) = row.transfers.iter_mut().find(same) {
                transfer.confirmed.get_or_insert(time_us);
            }
        }
        EventKind::Rerouted => {
            if let Some(transfer) = row.transfers.iter_mut().find(same) {
                transfer.rerouted = true;
            }
        }
        EventKind::Received => {
            row.received = Some(row.received.map_or(time_us, |r| r.min(time_us)));
            row.receipts.insert((mta, entry));
        }
        EventKind::Delivered => {
            let taker = recipient.map_or_else(|| Taker::Copy(mta, entry), Taker::Recipient);
            row.logged.entry(taker).or_insert(time_us);
        }
        EventKind::NonDelivery => row.non_delivery = true,
    }
}

#[cfg(test)]
mod tests;
