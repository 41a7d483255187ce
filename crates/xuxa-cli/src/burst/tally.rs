//! What became of each message, from the client's own moments and the events of the MTAs.

use super::event::{Event, Kind};
use super::plan::Plan;
use super::schedule::Planned;
use super::value::Stage;
use crate::submission::{Failure, Fate};
use std::collections::{BTreeMap, VecDeque};

/// Most events kept of messages whose identifier the MTA has not told us yet.
const MOST_EARLY: usize = 65_536;

/// Microseconds since the Unix epoch.
pub(crate) type Micros = u64;

/// How a submission stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Submission {
    /// Not begun.
    #[default]
    Waiting,
    /// Begun, not answered.
    UnderWay,
    Accepted,
    /// Ended without being accepted: how, and why.
    Failed(Fate, String),
}

/// One copy on its way from an MTA to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub mta: String,
    pub entry: Option<String>,
    pub peer: Option<String>,
    /// Its first start, and how often it was started.
    pub started: Micros,
    pub starts: u32,
    pub confirmed: Option<Micros>,
}

/// One message.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub planned: Planned,
    /// Which profile of its group submits it.
    pub from: usize,
    pub recipients: usize,
    pub content_identifier: String,
    /// Octets of heading and text; 0 until it is submitted.
    pub content_length: u64,
    pub submission: Submission,
    pub tries: u32,
    pub mts_identifier: Option<String>,
    /// When it was to start by the plan.
    pub due: Option<Micros>,
    /// When its first octet was handed over, first.
    pub submitted: Option<Micros>,
    /// When the answer was here.
    pub answered: Option<Micros>,
    /// When the MTA had committed it, and which.
    pub accepted: Option<Micros>,
    pub mta: Option<String>,
    pub transfers: Vec<Transfer>,
    /// When the next MTA had committed it.
    pub received: Option<Micros>,
    /// By the event logs: which entry of which MTA, and when.
    deliveries: Vec<(String, Option<String>, Micros)>,
    /// By our own users: which one, and when.
    taken: Vec<(usize, Micros)>,
    /// Deliveries to our own users of what they had.
    pub again: u32,
    /// Contents that arrived other than they were submitted.
    pub altered: u32,
    pub non_delivery: bool,
    /// Which stages its group has counted it for.
    counted: [bool; 3],
}

impl Row {
    /// Its copies on the first hop, where it is known which one that is.
    fn first_hop(&self) -> impl Iterator<Item = &Transfer> {
        let here = |t: &&Transfer| self.mta.as_ref().is_none_or(|mta| *mta == t.mta);
        self.transfers.iter().filter(here)
    }

    /// When its transfer to the next MTA began.
    pub(crate) fn started(&self) -> Option<Micros> {
        self.first_hop().map(|transfer| transfer.started).min()
    }

    /// When the next MTA had confirmed all of it.
    pub(crate) fn confirmed(&self) -> Option<Micros> {
        let confirmed = self.first_hop().map(|transfer| transfer.confirmed);
        confirmed.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Where it is transferred to, and from which MTA.
    pub(crate) fn link(&self) -> Option<(&str, Option<&str>)> {
        self.first_hop().next().map(|t| (t.mta.as_str(), t.peer.as_deref()))
    }

    /// When the last recipient had it.
    pub(crate) fn delivered(&self) -> Option<Micros> {
        let logged = self.deliveries.iter().map(|(_, _, at)| *at);
        let taken = self.taken.iter().map(|(_, at)| *at);
        match self.recipients {
            n if self.deliveries.len() >= n => logged.max(),
            n if self.taken.len() >= n => taken.max(),
            _ => None,
        }
    }

    /// Nothing more becomes of it.
    pub(crate) fn has_failed(&self) -> bool {
        self.non_delivery || matches!(self.submission, Submission::Failed(..))
    }

    /// Whether moments that follow each other do not: clocks were set, or differ between hosts.
    pub(crate) fn is_out_of_order(&self) -> bool {
        let pairs = [
            (self.submitted, self.accepted),
            (self.accepted, self.started()),
            (self.started(), self.received),
            (self.started(), self.confirmed()),
            (self.submitted, self.delivered()),
        ];
        pairs.into_iter().any(|pair| matches!(pair, (Some(a), Some(b)) if b < a))
    }

    fn has_reached(&self, stage: Stage) -> bool {
        let reached = match stage {
            Stage::Accepted => self.submission == Submission::Accepted,
            Stage::Started => self.started().is_some() || self.delivered().is_some(),
            Stage::Delivered => self.delivered().is_some(),
        };
        reached || self.has_failed()
    }
}

/// All messages.
#[derive(Debug)]
pub(crate) struct Tally {
    pub rows: Vec<Row>,
    by_identifier: BTreeMap<String, usize>,
    /// How many of each group have reached each stage, or can no more.
    reached: Vec<[u64; 3]>,
    counts: Vec<u64>,
    under_way: u64,
    early: VecDeque<Event>,
    /// Events forgotten before it was known whose they are.
    pub dropped: u64,
}

const STAGES: [Stage; 3] = [Stage::Accepted, Stage::Started, Stage::Delivered];

impl Tally {
    /// Of the messages of a plan. `tag` tells this run from others: the content identifier of what
    /// is submitted again with the same is answered with the first MTS identifier.
    pub(crate) fn new(plan: &Plan, planned: Vec<Planned>, tag: u32) -> Tally {
        let recipients =
            |planned: &Planned| plan.groups.get(planned.group).map_or(1, |g| g.to.len());
        let row = |planned: Planned| Row {
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
            deliveries: Vec::new(),
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
            under_way: 0,
            early: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Which message of this run a content identifier names.
    pub(crate) fn by_content_identifier(&self, identifier: &str) -> Option<usize> {
        let number = usize::from_str_radix(identifier.get(8..)?, 16).ok()?;
        let row = self.rows.get(number)?;
        (row.content_identifier == identifier).then_some(number)
    }

    /// Whether all of a group have come so far, or can no more.
    pub(crate) fn has_reached(&self, group: usize, stage: Stage) -> bool {
        let reached = self.reached.get(group).and_then(|r| r.get(stage as usize));
        reached == self.counts.get(group)
    }

    /// Whether all messages have.
    pub(crate) fn have_all_reached(&self, stage: Stage) -> bool {
        (0..self.counts.len()).all(|group| self.has_reached(group, stage))
    }

    /// A submission is to begin: by which of its group's profiles, and when, where the plan says.
    pub(crate) fn assign(&mut self, number: usize, from: usize, due: Option<Micros>) {
        if let Some(row) = self.rows.get_mut(number) {
            (row.from, row.due) = (from, due);
        }
    }

    /// A submission begins, the first time or again.
    pub(crate) fn begins(&mut self, number: usize, at: Micros, content_length: u64) {
        if let Some(row) = self.rows.get_mut(number) {
            self.under_way += u64::from(row.submission == Submission::Waiting);
            row.submission = Submission::UnderWay;
            row.submitted.get_or_insert(at);
            row.content_length = content_length;
        }
    }

    /// The MTA has answered with an MTS identifier.
    pub(crate) fn accepted(&mut self, number: usize, at: Micros, identifier: &str, tries: u32) {
        let Some(row) = self.rows.get_mut(number) else {
            return;
        };
        self.under_way -= u64::from(row.submission == Submission::UnderWay);
        row.submission = Submission::Accepted;
        row.answered = Some(at);
        row.tries = tries;
        row.mts_identifier = Some(identifier.to_owned());
        self.by_identifier.insert(identifier.to_owned(), number);
        let early = std::mem::take(&mut self.early);
        for event in early {
            match event.mts_identifier == identifier {
                true => self.happened(number, event),
                false if self.under_way > 0 => self.early.push_back(event),
                false => {}
            }
        }
        self.count(number);
    }

    /// The submission ended otherwise.
    pub(crate) fn failed(&mut self, number: usize, failure: &Failure) {
        let Some(row) = self.rows.get_mut(number) else {
            return;
        };
        self.under_way -= u64::from(row.submission == Submission::UnderWay);
        row.submission = Submission::Failed(failure.fate, failure.reason.clone());
        row.tries = failure.tries;
        self.count(number);
    }

    /// One of our users has taken it; and whether it was as it was submitted.
    pub(crate) fn taken(&mut self, number: usize, user: usize, at: Micros, is_whole: bool) {
        let Some(row) = self.rows.get_mut(number) else {
            return;
        };
        row.altered += u32::from(!is_whole);
        match row.taken.iter().any(|(other, _)| *other == user) {
            true => row.again += 1,
            false => row.taken.push((user, at)),
        }
        self.count(number);
    }

    /// An MTA has logged this.
    pub(crate) fn event(&mut self, event: Event) {
        match self.by_identifier.get(&event.mts_identifier) {
            Some(number) => self.happened(*number, event),
            // It may be of one whose answer is still on its way here.
            None if self.under_way > 0 => {
                if self.early.len() >= MOST_EARLY {
                    self.early.pop_front();
                    self.dropped += 1;
                }
                self.early.push_back(event);
            }
            None => {}
        }
    }

    fn happened(&mut self, number: usize, event: Event) {
        let Some(row) = self.rows.get_mut(number) else {
            return;
        };
        let Event { time_us, mta, kind, entry, peer, .. } = event;
        let same = |t: &&mut Transfer| t.mta == mta && t.entry == entry;
        match kind {
            Kind::Accepted => {
                row.accepted.get_or_insert(time_us);
                row.mta.get_or_insert(mta);
            }
            Kind::TransferStarted => match row.transfers.iter_mut().find(same) {
                Some(transfer) => transfer.starts += 1,
                None => row.transfers.push(Transfer {
                    mta,
                    entry,
                    peer,
                    started: time_us,
                    starts: 1,
                    confirmed: None,
                }),
            },
            Kind::TransferConfirmed => {
                if let Some(transfer) = row.transfers.iter_mut().find(same) {
                    transfer.confirmed.get_or_insert(time_us);
                }
            }
            Kind::Received => row.received = Some(row.received.map_or(time_us, |r| r.min(time_us))),
            Kind::Delivered => {
                let known = |(at, of, _): &(String, Option<String>, _)| *at == mta && *of == entry;
                if !row.deliveries.iter().any(known) {
                    row.deliveries.push((mta, entry, time_us));
                }
            }
            Kind::NonDelivery => row.non_delivery = true,
        }
        self.count(number);
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

    /// Messages delivered whose way is not known to its end: events of them are still to come.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.rows.iter().any(|row| {
            row.delivered().is_some() && (row.accepted.is_none() || row.confirmed().is_none())
        })
    }
}

#[cfg(test)]
mod tests;
