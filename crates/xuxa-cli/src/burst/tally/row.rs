//! One message, and what is known of its way.

use super::Micros;
use crate::burst::schedule::Planned;
use crate::burst::value::Stage;
use crate::submission::Disposition;
use std::collections::{BTreeMap, BTreeSet};

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
    Failed(Disposition, String),
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
    /// It was routed again: no confirm comes any more, but perhaps of another copy.
    pub rerouted: bool,
}

/// Who was delivered to, as a log says it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Taker {
    /// Which of the message's recipients.
    Recipient(usize),
    /// Which entry of which MTA, where the line names none of them.
    Copy(String, Option<String>),
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
    /// Which MTAs have received it, each with the entry where the log gives one.
    pub(super) receipts: BTreeSet<(String, Option<String>)>,
    /// By the event logs: to whom, and when.
    pub(super) logged: BTreeMap<Taker, Micros>,
    /// By our own users: which one, which recipient that is, and when.
    pub(super) taken: Vec<(usize, Option<usize>, Micros)>,
    /// Deliveries to our own users of what they had.
    pub again: u32,
    /// Contents that arrived other than they were submitted.
    pub altered: u32,
    pub non_delivery: bool,
    /// Which stages its group has counted it for.
    pub(super) counted: [bool; 3],
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
        let copies = self.first_hop().filter(|transfer| !transfer.rerouted);
        let confirmed = copies.map(|transfer| transfer.confirmed);
        confirmed.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Where it is transferred to, and from which MTA.
    pub(crate) fn link(&self) -> Option<(&str, Option<&str>)> {
        self.first_hop().next().map(|t| (t.mta.as_str(), t.peer.as_deref()))
    }

    /// Whether a copy is on its way to the next MTA.
    pub(crate) fn is_in_transfer(&self) -> bool {
        self.first_hop().any(|transfer| transfer.confirmed.is_none() && !transfer.rerouted)
    }

    /// When the last recipient had it: each by a log, or by our own user.
    pub(crate) fn delivered(&self) -> Option<Micros> {
        let n = self.recipients;
        if self.logged.len() >= n {
            return self.logged.values().copied().max();
        }
        if self.taken.len() >= n {
            return self.taken.iter().map(|(_, _, at)| *at).max();
        }
        let taken = self.taken.iter().filter_map(|(_, recipient, at)| Some(((*recipient)?, *at)));
        let mut all: BTreeMap<usize, Micros> = taken.collect();
        all.extend(self.logged.iter().filter_map(|(taker, at)| match taker {
            Taker::Recipient(number) => Some((*number, *at)),
            Taker::Copy(..) => None,
        }));
        (all.len() >= n).then(|| all.into_values().max()).flatten()
    }

    /// Whether the logs know where each copy is: none went on to an MTA whose log is not seen.
    pub(crate) fn is_in_sight(&self) -> bool {
        let places = usize::from(self.accepted.is_some()) + self.receipts.len();
        places > self.transfers.iter().filter(|transfer| transfer.confirmed.is_some()).count()
    }

    /// What is shown while it runs: planned, submitted, accepted, in transfer, delivered.
    pub(crate) fn shown(&self) -> [bool; 5] {
        let is_accepted = self.submission == Submission::Accepted;
        let is_delivered = self.delivered().is_some();
        [true, self.submitted.is_some(), is_accepted, self.is_in_transfer(), is_delivered]
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

    pub(super) fn has_reached(&self, stage: Stage) -> bool {
        let reached = match stage {
            Stage::Accepted => self.submission == Submission::Accepted,
            Stage::Started => self.started().is_some() || self.delivered().is_some(),
            Stage::Delivered => self.delivered().is_some(),
        };
        reached || self.has_failed()
    }
}
