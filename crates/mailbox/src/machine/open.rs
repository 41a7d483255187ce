//! A mailbox that is open, or being opened.

use super::deliveries::Coming;
use super::operations::{Job, Operation};
use super::purge::Purge;
use super::{Asked, Found, Mailboxes, Output, Read, Refusal};
use crate::delivery::{Delivered, Mailbox};
use crate::query::{Access, Query};
use crate::quota::Quota;
use crate::registrations::Registrations;
use crate::totals::Totals;
use base::{AssociationId, Now, Precedence};
use engine::journal::{Batch, MailboxId};
use std::collections::{BTreeMap, VecDeque};

/// How far a mailbox has come.
#[derive(Debug)]
pub(super) enum State {
    /// Its number is to be committed.
    Unnamed,
    /// Its number is being committed.
    Naming,
    /// Its values are being read.
    Opening,
    /// It is open.
    Ready(Box<Ready>),
}

/// A session of a user.
#[derive(Debug)]
pub(super) struct Session {
    pub access: Access,
    /// Its bind is answered.
    pub is_bound: bool,
    /// Operations that wait for their turn.
    pub waiting: VecDeque<Operation>,
    /// An operation of it is in progress.
    pub is_busy: bool,
}

/// A mailbox with what is known of it.
#[derive(Debug)]
pub(super) struct Open {
    pub state: State,
    pub sessions: BTreeMap<AssociationId, Session>,
    /// Copies that come.
    pub coming: VecDeque<Coming>,
    /// Orders that came before it was open.
    pub purges: Vec<Purge>,
    /// The level of the highest that waits for it.
    pub level: Precedence,
}

/// What is done with a mailbox for nobody's operation.
#[derive(Debug)]
pub(super) struct Chore {
    pub query: Query,
    /// The operator's order that it carries out.
    pub order: Option<u64>,
}

impl From<Query> for Chore {
    fn from(query: Query) -> Chore {
        Chore { query, order: None }
    }
}

/// What an open mailbox does.
#[derive(Debug)]
pub(super) struct Ready {
    pub mailbox: Mailbox,
    pub registrations: Registrations,
    /// The operation that changes it.
    pub changing: Option<Job>,
    /// Operations that change nothing, by their session.
    pub reading: BTreeMap<AssociationId, Job>,
    /// A batch of the changing operation that waits to be committed.
    pub wanted: Option<Batch>,
    /// The commit in progress.
    pub committing: Option<Committing>,
    /// The totals changed beside an operation.
    pub is_dirty: bool,
    /// Its totals do not agree with its items until it is counted.
    pub is_doubted: bool,
    /// It is to be counted, or rid of what is too old, as soon as nothing changes it.
    pub chores: VecDeque<Chore>,
}

/// What a commit in progress is for.
#[derive(Debug)]
pub(super) enum Committing {
    Deliveries(Vec<(Coming, Delivered)>),
    Changing,
    /// Of the totals alone.
    Totals,
}

impl Ready {
    /// Whether no chore waits or is being done.
    pub(super) fn is_quiet(&self) -> bool {
        self.chores.is_empty() && self.changing.as_ref().is_none_or(|job| !job.is_chore())
    }
}

impl Open {
    pub(super) fn new(state: State) -> Open {
        Open {
            state,
            sessions: BTreeMap::new(),
            coming: VecDeque::new(),
            purges: Vec::new(),
            level: Precedence::Deferred,
        }
    }

    pub(super) fn set_quota(&mut self, quota: Quota) {
        if let State::Ready(ready) = &mut self.state {
            ready.mailbox.set_quota(quota);
        }
    }

    pub(super) fn ready(&mut self) -> Option<&mut Ready> {
        match &mut self.state {
            State::Ready(ready) => Some(ready),
            _ => None,
        }
    }
}

impl Mailboxes {
    pub(super) fn read_open(&mut self, id: MailboxId) {
        let ticket = self.ticket(Asked::Open(id));
        let names = [Totals::name(id), Registrations::name(id)];
        let read = Read::Open { mailbox: id, names };
        let precedence = self.open.get(&id).map_or(Precedence::Deferred, |open| open.level);
        self.outputs.push_back(Output::Read { ticket, read, precedence });
    }

    pub(super) fn opened(&mut self, now: Now, id: MailboxId, found: Found) {
        let (values, counts) = match found {
            Found::Opened { values, counts } => (values, counts),
            Found::Items(_) => return self.cannot_open(now, id, "another answer"),
            Found::Failed(why) => return self.cannot_open(now, id, &why),
        };
        let [totals, registrations] = values;
        let mailbox = Mailbox::open(id, totals.as_deref(), self.settings.quota);
        let registrations = Registrations::decode(registrations.as_deref());
        let (mailbox, registrations) = match (mailbox, registrations) {
            (Ok(mailbox), Ok(registrations)) => (mailbox, registrations),
            (Err(error), _) => {
                let why = format!("{}: {error}", Totals::name(id));
                return self.cannot_open(now, id, &why);
            }
            (_, Err(error)) => {
                let why = format!("{}: {error}", Registrations::name(id));
                return self.cannot_open(now, id, &why);
            }
        };
        let recount = (!mailbox.agrees(counts)).then(|| Query::recount(&mailbox));
        if recount.is_some() {
            let note = format!("mailbox {}: its totals do not agree with its items: counted", id.0);
            self.outputs.push_back(Output::Note(note));
        }
        let Some(open) = self.open.get_mut(&id) else { return };
        open.state = State::Ready(Box::new(Ready {
            mailbox,
            registrations,
            changing: None,
            reading: BTreeMap::new(),
            wanted: None,
            committing: None,
            is_dirty: false,
            is_doubted: recount.is_some(),
            chores: recount.into_iter().map(Chore::from).collect(),
        }));
        for purge in std::mem::take(&mut open.purges) {
            self.purge_open(id, purge);
        }
        self.answer_binds(id);
        self.advance(now, id);
    }

    /// A mailbox cannot be opened: what waits for it is refused, and the next use tries again.
    pub(super) fn cannot_open(&mut self, _now: Now, id: MailboxId, why: &str) {
        let Some(open) = self.open.remove(&id) else { return };
        self.outputs.push_back(Output::Note(format!("mailbox {} cannot be opened: {why}", id.0)));
        for session in open.sessions.into_keys() {
            self.sessions.remove(&session);
            self.outputs.push_back(Output::NotBound { session, why: why.to_owned() });
        }
        for purge in open.purges {
            let result = Err(format!("the mailbox cannot be opened: {why}"));
            self.outputs.push_back(Output::Purged { request: purge.request, result });
        }
        for coming in open.coming {
            let why = Refusal::Failed(why.to_owned());
            self.outputs.push_back(Output::NotDelivered {
                entry: coming.entry(),
                mailbox: id,
                why,
            });
        }
    }
}
