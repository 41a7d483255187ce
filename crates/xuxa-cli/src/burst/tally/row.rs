//! One message, and what is known of its path.

use super::Micros;
use crate::burst::schedule::Planned;
use crate::burst::value::Stage;
use crate::submission::Disposition;
use std::collections::{BTreeMap, BTreeSet};

/// State of a submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Submission {
    /// Not begun.
    #[default]
    Waiting,
    /// Begun, not answered.
    InProgress,
    Accepted,
    /// Ended without being accepted: how, and why.
    Failed(Disposition, String),
}

/// One copy in transfer from an MTA to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub mta: String,
    pub entry: Option<String>,
    pub peer: Option<String>,
    /// Its first start, and how often it was started.
    pub started: Micros,
    pub starts: u32,
    pub confirmed: Option<Micros>,
    /// It was rerouted: its confirm does not come; another copy may have one.
    pub rerouted: bool,
}

/// The recipient of a delivery, as a log names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Taker {
    /// The recipient's place among those of the message, from 0.
    Recipient(usize),
    /// The MTA and its entry, if the line names no recipient.
    Copy(String, Option<String>),
}

/// One message.
#[derive(Clone, Debug)]
pub(crate) struct MessageRow {
    pub planned: Planned,
    /// The profile of its group that submits it.
    pub from: usize,
    pub recipients: usize,
    pub content_identifier: String,
    /// Octets of heading and text; 0 until it is submitted.
    pub content_length: u64,
    pub submission: Submission,
    pub tries: u32,
    pub mts_identifier: Option<String>,
    /// Its start by the plan.
    pub due: Option<Micros>,
    /// When its first octet was sent, in the first attempt.
    pub submitted: Option<Micros>,
    /// The time at which the submission's result or error arrived.
    pub answered: Option<Micros>,
    /// When the MTA had committed it, and which.
    pub accepted: Option<Micros>,
    pub mta: Option<String>,
    pub transfers: Vec<Transfer>,
    /// When the next MTA had committed it.
    pub received: Option<Micros>,
    /// The MTAs that have received it, each with the entry if the log names it.
    pub(super) receipts: BTreeSet<(String, Option<String>)>,
    /// Deliveries in the event logs, with their times.
    pub(super) logged: BTreeMap<Taker, Micros>,
    /// Deliveries to our own users: the user, the recipient's number, the time.
    pub(super) taken: Vec<(usize, Option<usize>, Micros)>,
    /// Repeated deliveries to our own users.
    pub again: u32,
    /// Contents that differ from the submitted one.
    pub altered: u32,
    pub non_delivery: bool,
    /// The stages for which its group has counted it.
    pub(super) counted: [bool; 3],
}

impl MessageRow {
    /// Its copies on the first hop, if that is known.
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

    /// The MTA that transfers it, and the peer that it transfers it to.
    pub(crate) fn sender_and_peer(&self) -> Option<(&str, Option<&str>)> {
        self.first_hop().next().map(|t| (t.mta.as_str(), t.peer.as_deref()))
    }

    /// Whether a transfer of a copy to the next MTA is not yet confirmed.
    pub(crate) fn is_in_transfer(&self) -> bool {
        self.first_hop().any(|transfer| transfer.confirmed.is_none() && !transfer.rerouted)
    }

    /// When it was delivered to its last recipient, by a log or by our own user.
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

    /// Whether the logs cover each copy: none went to an MTA whose log is not read.
    pub(crate) fn is_in_sight(&self) -> bool {
        let places = usize::from(self.accepted.is_some()) + self.receipts.len();
        places > self.transfers.iter().filter(|transfer| transfer.confirmed.is_some()).count()
    }

    /// The columns of the progress display: planned, submitted, accepted, in transfer, delivered.
    pub(crate) fn shown(&self) -> [bool; 5] {
        let is_accepted = self.submission == Submission::Accepted;
        let is_delivered = self.delivered().is_some();
        [true, self.submitted.is_some(), is_accepted, self.is_in_transfer(), is_delivered]
    }

    /// Whether it has failed, so that no further event changes it.
    pub(crate) fn has_failed(&self) -> bool {
        self.non_delivery || matches!(self.submission, Submission::Failed(..))
    }

    /// Whether its moments are out of order: clocks were set, or differ between hosts.
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
