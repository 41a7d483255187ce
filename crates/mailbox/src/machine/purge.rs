//! What an operator has deleted from a mailbox.

use super::open::{Chore, State};
use super::{Mailboxes, Output};
use crate::query::{Outcome, Query, Step};
use crate::retention::Rules;
use base::{Now, Utc};
use engine::journal::MailboxId;

/// An order to delete items.
#[derive(Debug)]
pub(super) struct Purge {
    /// Pairs it with its answer.
    pub request: u64,
    rules: Rules,
    at: Utc,
    is_trial: bool,
}

impl Mailboxes {
    /// An operator has deleted what these rules give up, or with `is_trial` counted: ends with [`Output::Purged`].
    /// A user's operations wait meanwhile.
    pub fn purge(&mut self, now: Now, request: u64, address: &str, rules: Rules, is_trial: bool) {
        if self.number(address).is_none() {
            let result = Err(format!(
                "{address} has no mailbox in the message store: `mta mailbox list` shows them"
            ));
            return self.outputs.push_back(Output::Purged { request, result });
        }
        let id = self.mailbox(address);
        self.purge_open(id, Purge { request, rules, at: now.utc, is_trial });
        self.advance(now, id);
    }

    /// Adds it to what is done with the mailbox, or to what waits until it is open.
    pub(super) fn purge_open(&mut self, id: MailboxId, purge: Purge) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let State::Ready(ready) = &mut open.state else { return open.purges.push(purge) };
        let Purge { request, rules, at, is_trial } = purge;
        let query = match is_trial {
            true => Query::count_due(&ready.mailbox, rules, at),
            false => Query::retain(&ready.mailbox, rules, at),
        };
        ready.chores.push_back(Chore { query, order: Some(request) });
    }

    /// An order ended.
    pub(super) fn purged(&mut self, id: MailboxId, request: u64, end: &Step) {
        let result = match end {
            Step::Done(Outcome::Retained(count)) => Ok(*count),
            _ => Err("the store could not do it, or not all of it: see the log".to_owned()),
        };
        self.outputs.push_back(Output::Purged { request, result });
        self.outputs.push_back(Output::Room(id));
    }
}
