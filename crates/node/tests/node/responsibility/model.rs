//! The model: who is responsible for which message and recipient, whatever happens.
//!
//! The originator until his MTA accepts, an MTA until the next one has it durably, the last one until the
//! user has it or a report is issued; a report has its holder in the same way.

use std::collections::{BTreeMap, BTreeSet};

/// A recipient: the site of his MTA, and his surname.
pub(super) type Name = (usize, &'static str);

/// Who is responsible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    Originator,
    Mta(usize),
    /// The recipient has it, or the originator the report.
    User,
    /// An operator deleted it.
    Nobody,
}

/// A message for one recipient, or the report that it was not delivered to him.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Duty {
    pub(super) message: usize,
    pub(super) recipient: Name,
    pub(super) is_report: bool,
}

/// The whole model.
#[derive(Default)]
pub(super) struct Model {
    pub(super) holders: BTreeMap<Duty, Holder>,
    /// Where it goes first: an operator rerouted it, or it is the report of a member to his list.
    via: BTreeMap<Duty, usize>,
    /// The site of each message's originator.
    origin: BTreeMap<usize, usize>,
    /// Pairs of sites without a line, and users who are not bound.
    pub(super) down: BTreeSet<(usize, usize)>,
    pub(super) away: BTreeSet<Name>,
}

/// The list, and its members.
pub(super) const LIST: Name = (0, "STAFF");
pub(super) const MEMBERS: [Name; 2] = [(0, "LOG"), (1, "LOG")];
/// Nobody has this name; its MTA redirects what comes for it.
pub(super) const REDIRECTED: Name = (1, "NOBODY");
pub(super) const ALTERNATE: Name = (2, "LOG");

impl Model {
    pub(super) fn submitted(&mut self, message: usize, from: usize, to: &[Name]) {
        self.origin.insert(message, from);
        for recipient in to {
            let duty = Duty { message, recipient: *recipient, is_report: false };
            self.holders.insert(duty, Holder::Originator);
        }
    }

    pub(super) fn deleted(&mut self, duty: Duty) {
        self.holders.insert(duty, Holder::Nobody);
    }

    pub(super) fn rerouted(&mut self, duty: Duty, via: usize) {
        self.via.insert(duty, via);
    }

    /// It is not delivered: the MTA that gives it up is responsible for the report. Of a report there is none.
    pub(super) fn given_up(&mut self, duty: Duty, site: usize) {
        self.holders.remove(&duty);
        let report = Duty { is_report: true, ..duty };
        let end = if duty.is_report { Holder::Nobody } else { Holder::Mta(site) };
        self.holders.insert(report, end);
        self.via.remove(&duty);
        if MEMBERS.contains(&duty.recipient) && !duty.is_report {
            self.via.insert(report, LIST.0);
        }
    }

    fn becomes(&mut self, duty: Duty, site: usize, recipients: &[Name]) {
        self.holders.remove(&duty);
        for recipient in recipients {
            self.holders.insert(Duty { recipient: *recipient, ..duty }, Holder::Mta(site));
        }
    }

    /// All that can go on has gone on. Crashes and cuts change nothing of it.
    pub(super) fn settle(&mut self) {
        while let Some((duty, holder)) =
            self.holders.clone().into_iter().find(|(duty, holder)| self.step(*duty, *holder))
        {
            debug_assert!(self.holders.get(&duty) != Some(&holder), "{duty:?}");
        }
    }

    fn step(&mut self, duty: Duty, holder: Holder) -> bool {
        let origin = self.origin[&duty.message];
        let site = match holder {
            Holder::Originator => return self.moves(duty, Holder::Mta(origin)),
            Holder::Mta(site) => site,
            Holder::User | Holder::Nobody => return false,
        };
        let to = if duty.is_report { (origin, "OPS") } else { duty.recipient };
        if self.via.get(&duty) == Some(&site) {
            self.via.remove(&duty);
        }
        let next = self.via.get(&duty).copied().unwrap_or(to.0);
        match to {
            _ if next != site && self.down.contains(&(site.min(next), site.max(next))) => false,
            _ if next != site => self.moves(duty, Holder::Mta(next)),
            LIST => (self.becomes(duty, site, &MEMBERS), true).1,
            REDIRECTED => (self.becomes(duty, site, &[ALTERNATE]), true).1,
            (_, "NOBODY" | "NIL") => (self.given_up(duty, site), true).1,
            user if self.away.contains(&user) => false,
            _ => self.moves(duty, Holder::User),
        }
    }

    fn moves(&mut self, duty: Duty, to: Holder) -> bool {
        self.holders.insert(duty, to);
        true
    }
}
