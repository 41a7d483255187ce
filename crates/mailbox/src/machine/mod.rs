//! All mailboxes of an MTA as one machine: who is bound to which, what each of them asked, and what is delivered.
//!
//! ```text
//!  bind, invoke, unbound ─▶ ┌───────────┐ ─▶ Bound, Respond, Alert
//!  deliver ───────────────▶ │ Mailboxes │ ─▶ Delivered, NotDelivered
//!  read, committed ───────▶ └───────────┘ ─▶ Read, Commit
//! ```
//!
//! A mailbox is opened on its first use: its totals and registrations are read, not its items. One commit of a mailbox
//! is in progress at a time, because each has its totals; the deliveries that come meanwhile make the next one together.
//! A session has one operation in progress; the others wait, in their order.

mod deliveries;
mod names;
mod open;
mod operations;
mod purge;
mod sessions;
mod source;

pub use deliveries::Arrival;
pub use names::{shared_names, shared_number};
pub use source::answer;

use crate::forward::Forwarding;
use crate::query::{Ask, Row};
use crate::quota::{Full, Quota};
use crate::retention::Rules;
use base::{AssociationId, BodyId, EntryId, Now, Precedence};
use bytes::Bytes;
use engine::Payload;
use engine::journal::{Batch, ItemId, MailboxId};
use names::Names;
use open::{Open, State};
use p1::p3::ChangeCredentials;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// The name under which the store has the numbers of all mailboxes.
pub const NAMES: &str = "mailboxes";

/// Pairs a question of this machine with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What is read of the store.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Read {
    /// The named values of a mailbox, and how many items the store counts.
    Open {
        /// The mailbox.
        mailbox: MailboxId,
        /// The names of its totals and its registrations.
        names: [String; 2],
    },
    /// Some of its items.
    Items(Ask),
}

/// The answer to a [`Read`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Found {
    /// Of [`Read::Open`].
    Opened {
        /// The two values; `None` where there is none.
        values: [Option<Bytes>; 2],
        /// Items of each precedence, in the order of [`Precedence::ALL`].
        counts: [u64; Precedence::ALL.len()],
    },
    /// Of [`Read::Items`].
    Items(Vec<Row>),
    /// It could not be read: why, for the log.
    Failed(String),
}

/// What an operation ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// A result. The content in it is pulled from this body, if there is one.
    Result {
        /// Its octets.
        payload: Payload,
        /// The body of the content, and its length in octets.
        content: Option<(BodyId, u64)>,
    },
    /// An error.
    Error {
        /// Its local code.
        code: i64,
        /// Its parameter, a whole BER element.
        parameter: Bytes,
    },
    /// The argument is not one of this operation: mistyped-argument (X.229 clause 9).
    Mistyped,
    /// There is no such operation: unrecognized-operation.
    Unrecognized,
}

/// What its caller is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Read; answered with [`Mailboxes::found`].
    Read {
        /// The ticket.
        ticket: Ticket,
        /// What.
        read: Read,
        /// The level of what waits for it.
        precedence: Precedence,
    },
    /// Commit; answered with [`Mailboxes::committed`].
    Commit {
        /// The ticket.
        ticket: Ticket,
        /// The highest precedence that waits for it.
        precedence: Precedence,
        /// The changes.
        batch: Batch,
    },
    /// A session is bound.
    Bound {
        /// Which.
        session: AssociationId,
        /// alert-indication of the bind result.
        alerted: bool,
    },
    /// A session cannot be bound: its mailbox cannot be opened.
    NotBound {
        /// Which.
        session: AssociationId,
        /// For the log.
        why: String,
    },
    /// An operation ended.
    Respond {
        /// Whose.
        session: AssociationId,
        /// Its invoke identifier.
        invoke: i64,
        /// Its local code.
        operation: i64,
        /// How.
        response: Response,
    },
    /// A user changes his credentials; answered with [`Mailboxes::credentials`].
    Credentials {
        /// Whose.
        session: AssociationId,
        /// The ticket.
        ticket: Ticket,
        /// Old and new ones.
        change: Box<ChangeCredentials>,
    },
    /// An alert for a session (X.413 8.7).
    Alert {
        /// Whose.
        session: AssociationId,
        /// The argument, a whole BER element.
        argument: Bytes,
    },
    /// A copy is in its mailbox, durably.
    Delivered {
        /// Its entry in the queue.
        entry: EntryId,
        /// Its item.
        item: ItemId,
        /// False where it was forwarded and deleted with the same commit: there is no item of this number.
        is_kept: bool,
    },
    /// A copy is not in its mailbox.
    NotDelivered {
        /// Its entry in the queue.
        entry: EntryId,
        /// The mailbox.
        mailbox: MailboxId,
        /// Why.
        why: Refusal,
    },
    /// A copy that comes is to be forwarded; answered with [`Mailboxes::forwarded`].
    Forward {
        /// Its entry in the queue.
        entry: EntryId,
        /// The user of its mailbox.
        address: String,
        /// Its content.
        body: BodyId,
        /// What is submitted in his name.
        copies: Vec<Forwarding>,
        /// What is submitted with them, if all are accepted.
        notice: Option<Forwarding>,
    },
    /// A copy that comes is not forwarded, though it should be: it goes into its mailbox.
    NotForwarded {
        /// Its entry in the queue.
        entry: EntryId,
        /// Why, for the log.
        why: String,
    },
    /// Items of a mailbox are deleted: what found no room may be delivered again.
    Room(MailboxId),
    /// Its rules gave up items: for the log.
    Retained(String),
    /// An operator's order for a mailbox ended.
    Purged {
        /// Which request.
        request: u64,
        /// How many items were deleted, or would be; or why not.
        result: Result<u64, String>,
    },
    /// It cannot be opened, or was counted: for the log.
    Note(String),
}

/// Why a copy is not in its mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no room.
    Full(Full),
    /// The item cannot be made of it.
    Unfit(String),
    /// The store did not commit, or could not read the mailbox.
    Failed(String),
}

/// What holds for every mailbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Settings {
    /// What a mailbox may hold.
    pub quota: Quota,
    /// How long it keeps its items.
    pub rules: Rules,
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// The commit of new numbers of mailboxes.
    Names,
    /// A mailbox that is being opened.
    Open(MailboxId),
    /// The query that changes a mailbox.
    Changing(MailboxId),
    /// A query of a session that changes nothing.
    Reading(MailboxId, AssociationId),
    /// The commit of a mailbox.
    Commit(MailboxId),
    /// The change of credentials of a session.
    Credentials(MailboxId, AssociationId),
}

impl Asked {
    /// The mailbox that it is about, if it is about one.
    fn mailbox(&self) -> Option<MailboxId> {
        match self {
            Asked::Names => None,
            Asked::Open(id)
            | Asked::Changing(id)
            | Asked::Reading(id, _)
            | Asked::Commit(id)
            | Asked::Credentials(id, _) => Some(*id),
        }
    }
}

/// All mailboxes.
#[derive(Debug, Default)]
pub struct Mailboxes {
    settings: Settings,
    names: Names,
    /// The numbers of mailboxes cannot be read: none can be opened, for it might get the number of another.
    broken: Option<String>,
    open: BTreeMap<MailboxId, Open>,
    sessions: BTreeMap<AssociationId, MailboxId>,
    asked: BTreeMap<Ticket, Asked>,
    last_ticket: u64,
    outputs: VecDeque<Output>,
}

impl Mailboxes {
    /// With these settings, from now on for every mailbox.
    pub fn configure(&mut self, settings: Settings) {
        for open in self.open.values_mut() {
            open.set_quota(settings.quota);
        }
        self.settings = settings;
    }

    /// Several nodes share the store: numbers are given so that all nodes give the same ones.
    pub fn share(&mut self) {
        self.names.is_shared = true;
    }

    /// Another node has this mailbox from now on: what is known of it here is forgotten, and nothing is answered.
    pub fn forget(&mut self, address: &str) {
        let Some(id) = self.number(address) else { return };
        self.open.remove(&id);
        self.sessions.retain(|_, of| *of != id);
        self.asked.retain(|_, asked| asked.mailbox() != Some(id));
    }

    /// The value of [`NAMES`] found in the store at the start, or, where several nodes share the store, later.
    ///
    /// # Errors
    /// It cannot be read: no mailbox can be opened, for it might get the number of another.
    pub fn recovered(&mut self, value: &[u8]) -> Result<(), crate::ValueError> {
        let recovered = self.names.recovered(value);
        self.broken = recovered.as_ref().err().map(|error| format!("{NAMES}: {error}"));
        recovered
    }

    /// The next thing to be done, until `None`.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Whether [`Mailboxes::poll`] has something.
    #[must_use]
    pub fn has_outputs(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Whether nothing is in progress.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.asked.is_empty()
    }

    /// The number of the mailbox of this address, if it has one.
    #[must_use]
    pub fn number(&self, address: &str) -> Option<MailboxId> {
        self.names.number(address)
    }

    /// The numbers of all mailboxes.
    pub fn numbers(&self) -> impl Iterator<Item = MailboxId> + '_ {
        self.names.numbers()
    }

    /// The addresses of all mailboxes, also of users who were removed.
    pub fn addresses(&self) -> impl Iterator<Item = String> {
        self.names.addresses().into_iter()
    }

    /// What an open mailbox holds.
    #[must_use]
    pub fn totals(&self, address: &str) -> Option<crate::Totals> {
        match &self.open.get(&self.number(address)?)?.state {
            State::Ready(ready) => Some(*ready.mailbox.totals()),
            _ => None,
        }
    }

    fn ticket(&mut self, asked: Asked) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.asked.insert(ticket, asked);
        ticket
    }

    /// Answers [`Output::Read`].
    pub fn found(&mut self, now: Now, ticket: Ticket, found: Found) {
        match self.asked.remove(&ticket) {
            Some(Asked::Open(id)) => self.opened(now, id, found),
            Some(Asked::Changing(id)) => self.changing_found(now, id, found),
            Some(Asked::Reading(id, session)) => self.reading_found(now, id, session, found),
            _ => {}
        }
    }

    /// Answers [`Output::Commit`]: it is durable, or nothing of it was made, and why.
    pub fn committed(&mut self, now: Now, ticket: Ticket, result: Result<(), String>) {
        match self.asked.remove(&ticket) {
            Some(Asked::Names) => self.names_committed(now, result),
            Some(Asked::Commit(id)) => self.mailbox_committed(now, id, result),
            _ => {}
        }
    }

    /// Answers [`Output::Commit`] of the numbers of mailboxes: another node has changed them, and nothing was made.
    /// [`Mailboxes::recovered`] came before.
    pub fn changed(&mut self, now: Now, ticket: Ticket) {
        match self.asked.remove(&ticket) {
            Some(Asked::Names) => self.names_changed(now),
            Some(other) => {
                self.asked.insert(ticket, other);
                self.committed(now, ticket, Err("another node has changed it".to_owned()));
            }
            None => {}
        }
    }

    /// The mailbox of this address, which is being opened if it is not open.
    fn mailbox(&mut self, address: &str) -> MailboxId {
        let (id, is_new) = self.names.give(address);
        if is_new {
            self.open.insert(id, Open::new(State::Unnamed));
            self.commit_names();
        } else if let Entry::Vacant(open) = self.open.entry(id) {
            open.insert(Open::new(State::Opening));
            self.read_open(id);
        }
        id
    }

    /// Starts what a mailbox may do now: the next commit, the next operations.
    fn advance(&mut self, now: Now, id: MailboxId) {
        self.commit_next(now, id);
        self.start_operations(now, id);
    }
}

#[cfg(test)]
mod tests;
