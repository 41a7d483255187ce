//! Sessions: a user's association with his mailbox, from its bind to its end.

use super::open::{Session, State};
use super::{Mailboxes, Output};
use crate::query::Access;
use base::{AssociationId, Now};
use engine::journal::MailboxId;
use std::collections::VecDeque;

impl Mailboxes {
    /// A user, whose password was checked, binds: ends with [`Output::Bound`] or [`Output::NotBound`].
    pub fn bind(&mut self, now: Now, session: AssociationId, address: &str, access: Access) {
        if let Some(why) = self.broken.clone() {
            return self.outputs.push_back(Output::NotBound { session, why });
        }
        let id = self.mailbox(address);
        let Some(open) = self.open.get_mut(&id) else { return };
        let new = Session { access, is_bound: false, waiting: VecDeque::new(), is_busy: false };
        open.sessions.insert(session, new);
        self.sessions.insert(session, id);
        self.answer_binds(id);
        self.advance(now, id);
    }

    /// The sessions of this address whose binds wait for the mailbox to be open.
    pub fn binding(&self, address: &str) -> impl Iterator<Item = AssociationId> + '_ {
        let open = self.number(address).and_then(|id| self.open.get(&id));
        let sessions = open.into_iter().flat_map(|open| &open.sessions);
        sessions.filter(|(_, session)| !session.is_bound).map(|(id, _)| *id)
    }

    /// A session ended. An operation of it that is in progress goes on to its end, and nobody is answered.
    pub fn unbound(&mut self, now: Now, session: AssociationId) {
        let Some(id) = self.sessions.remove(&session) else { return };
        if let Some(open) = self.open.get_mut(&id) {
            open.sessions.remove(&session);
        }
        self.advance(now, id);
    }

    /// Answers the binds to an open mailbox. The alert-indication is given once.
    pub(super) fn answer_binds(&mut self, id: MailboxId) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let State::Ready(ready) = &mut open.state else { return };
        for (session, state) in open.sessions.iter_mut().filter(|(_, state)| !state.is_bound) {
            state.is_bound = true;
            let alerted = ready.mailbox.totals().alerted;
            if alerted {
                ready.mailbox.set_alerted(false);
                ready.is_dirty = true;
            }
            self.outputs.push_back(Output::Bound { session: *session, alerted });
        }
    }
}
