//! The message store: its answers come from the edge, and its outputs go to the edge and to other machines.

use crate::admission::refusals::BindRefusal;
use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::PendingAnswer;
use crate::error::{CommitError, PasswordProblem, ReadError};
use crate::ids::Token;
use crate::node::Node;
use crate::stores::deliveries::Unreadable;
use crate::stores::sessions::{password_error, passwords};
use base::ber::Element;
use base::{AssociationId, EntryId, Now};
use bytes::Bytes;
use engine::journal::MailboxId;
use guard::NameDigest;
use mailbox::machine::{self, Found, Refusal, Ticket};
use osi::api::Request;
use p1::p3::{AccessError, ChangeCredentials};

impl Node {
    /// Carries out what the mailboxes ask for.
    pub(crate) fn drain_stores(&mut self, now: Now) {
        self.drain_stores_after(now, None);
    }

    /// The same after this commit.
    fn drain_stores_after(&mut self, now: Now, commit: Option<Token>) {
        while let Some(output) = self.stores.mailboxes.poll() {
            self.perform_store(now, commit, output);
        }
    }

    fn perform_store(&mut self, now: Now, commit: Option<Token>, output: machine::Output) {
        use machine::Output as O;
        match output {
            O::Read { ticket, read, precedence } => {
                let token = self.cx.token(PendingAnswer::Mailbox(ticket));
                self.cx.output(Output::ReadMailbox { token, precedence, read });
            }
            O::Commit { ticket, precedence, batch } => {
                self.cx.commit_for(precedence, batch, PendingAnswer::Mailbox(ticket));
            }
            O::Bound { session, alerted } => self.store_bound(now, session, alerted),
            O::NotBound { session, why } => {
                let refusal = BindRefusal::NoSpace(format!("the mailbox cannot be opened: {why}"));
                self.admission.refuse_user(&mut self.cx, now, session, refusal);
            }
            O::Respond { session, invoke, operation, response } => {
                self.stores.respond(&mut self.cx, session, (invoke, operation), response);
            }
            O::Credentials { session, ticket, change } => {
                self.change_credentials(now, session, ticket, &change);
            }
            O::Alert { session, argument } => self.stores.alert(&mut self.cx, session, argument),
            O::NotForwarded { entry, why } => {
                let detail = format!("not forwarded by the store: {why}");
                self.cx.event(LogLevel::Info, Kind::SubmissionRefused, detail).entry(entry);
            }
            O::Delivered { entry, item, is_kept } => {
                let mut reports = self.stores.stored(&mut self.cx, now, entry, (item, is_kept));
                self.outbound.blame.forget(entry);
                if let Some(token) = commit {
                    self.cx.commits.retain_ours(token, &mut reports);
                }
                self.outbound.enqueue_new(&mut self.cx, now, reports);
            }
            O::NotDelivered { entry, mailbox, why } => self.not_stored(now, entry, mailbox, why),
            O::Forward { entry, address, body, copies, notice } => {
                self.stores.forward(&mut self.cx, now, (entry, &address, body), (copies, notice));
            }
            O::Room(mailbox) => self.stores.room(&mut self.cx, now, mailbox),
            O::Retained(note) => drop(self.cx.event(LogLevel::Info, Kind::Discarded, note)),
            O::Purged { request, result } => self.cx.output(Output::Purged { request, result }),
            O::Note(note) => self.stores.note(&mut self.cx, note),
        }
    }

    fn store_bound(&mut self, now: Now, id: AssociationId, alerted: bool) {
        let Some(association) = self.cx.associations.get(&id).filter(|a| a.is_binding()) else {
            return;
        };
        let Some(session) = association.store() else { return };
        let name = association.mailbox().unwrap_or_default().to_owned();
        let bind = mailbox::bind_result(&session.access, session.wants_configuration, alerted);
        self.cx.request(id, Request::Accept { bind });
        self.admission.mark_open(&mut self.cx, now, id, &format!("user {name}, message store"));
    }

    fn not_stored(&mut self, now: Now, entry: EntryId, mailbox: MailboxId, why: Refusal) {
        let given_up = self.stores.not_stored(&mut self.cx, now, entry, mailbox, why);
        if let Some((record, why)) = given_up {
            self.stores.report_full(&mut self.cx, now, entry, &record, &why);
        }
    }

    /// The record of a copy that goes into a mailbox was read.
    pub(crate) fn stored_loaded(
        &mut self,
        now: Now,
        entry: EntryId,
        result: Result<Option<Bytes>, ReadError>,
    ) {
        match self.stores.loaded(&mut self.cx, now, entry, result) {
            None => {}
            Some(Unreadable::Damaged(error)) => {
                self.cx.queue.scheduler.put_back(now.mono, entry);
                self.outbound.set_record_aside(&mut self.cx, now, None, entry, &error);
            }
            Some(Unreadable::Again(error)) if self.cx.queue.went(entry, &error) => {}
            Some(Unreadable::Again(error)) => {
                let error = error.to_string();
                self.cx.event(LogLevel::Error, Kind::StoreFailed, error).entry(entry);
                let seed = self.cx.rng.next_u64();
                self.cx.queue.scheduler.retry(now.mono, entry, seed);
            }
        }
    }

    pub(crate) fn mailbox_read(&mut self, now: Now, token: Token, found: Found) {
        if let Some(PendingAnswer::Mailbox(ticket)) = self.cx.commits.take(token) {
            self.stores.mailboxes.found(now, ticket, found);
        }
    }

    pub(crate) fn mailbox_committed(
        &mut self,
        now: Now,
        (token, ticket): (Token, Ticket),
        result: Result<(), CommitError>,
    ) {
        if result == Err(CommitError::Changed) {
            self.stores.mailboxes.changed(now, ticket);
            return self.drain_stores_after(now, Some(token));
        }
        if let Err(error) = &result {
            self.cx.event(LogLevel::Error, Kind::StoreFailed, error.to_string());
        }
        self.stores.mailboxes.committed(now, ticket, result.map_err(|error| error.to_string()));
        // Here, where it is known with which commit the reports were put.
        self.drain_stores_after(now, Some(token));
    }

    /// Content that was read: for a transfer, for the front of a copy, or for a fetch.
    pub(crate) fn content_read(
        &mut self,
        now: Now,
        token: Token,
        result: Result<Bytes, ReadError>,
    ) {
        match self.cx.commits.take(token) {
            Some(PendingAnswer::Front { entry }) => {
                self.stores.front_read(&mut self.cx, now, entry, result);
            }
            Some(PendingAnswer::Fetched { association }) => {
                self.stores.fetched(&mut self.cx, association, result);
            }
            Some(PendingAnswer::Content { association, transfer }) => {
                self.cx.content(association, transfer, result);
            }
            _ => {}
        }
    }

    // ----- credentials -----------------------------------------------------------------------------

    /// A user changes his credentials with register-MS.
    fn change_credentials(
        &mut self,
        now: Now,
        id: AssociationId,
        ticket: Ticket,
        change: &ChangeCredentials,
    ) {
        let mailbox = self.cx.associations.get(&id).and_then(|a| a.mailbox().map(str::to_owned));
        match (passwords(change), mailbox) {
            (Ok((old, new)), Some(mailbox)) => {
                let token = self.cx.token(PendingAnswer::Mailbox(ticket));
                self.cx.output(Output::ChangePassword { token, mailbox, old, new });
            }
            (Err(error), _) => self.stores.mailboxes.credentials(now, ticket, Err(error)),
            (Ok(_), None) => {
                let error = AccessError::NewCredentialsUnacceptable;
                self.stores.mailboxes.credentials(now, ticket, Err(error));
            }
        }
    }

    /// A user of P3 invoked change-credentials.
    pub(crate) fn credentials_invoked(&mut self, id: AssociationId, invoke: i64, argument: &[u8]) {
        let change = Element::parse(argument).and_then(|e| ChangeCredentials::read(&e));
        let Ok(change) = change else {
            let reason = osi::api::AbortReason::InvalidParameter;
            return self.arrivals.refuse_malformed(&mut self.cx, id, invoke, reason);
        };
        let mailbox = self.cx.associations.get(&id).and_then(|a| a.mailbox().map(str::to_owned));
        match passwords(&change) {
            Ok((old, new)) => {
                let pending = PendingAnswer::Password { association: id, invoke };
                let token = self.cx.token(pending);
                let mailbox = mailbox.unwrap_or_default();
                self.cx.output(Output::ChangePassword { token, mailbox, old, new });
            }
            Err(error) => self.arrivals.answer_error(&mut self.cx, id, invoke, &error),
        }
    }

    /// The edge changed a password, or why not. Who is bound stays bound.
    pub(crate) fn password_changed(
        &mut self,
        now: Now,
        token: Token,
        mailbox: &str,
        result: Result<(), PasswordProblem>,
    ) {
        let pending = self.cx.commits.take(token);
        match &result {
            Ok(()) => {
                self.admission.access.unprove(&[NameDigest::new(mailbox)]);
                let detail = format!("{mailbox} changed the password");
                self.cx.event(LogLevel::Info, Kind::Reconfigured, detail);
            }
            Err(problem) => {
                let detail = format!("the password of {mailbox} is not changed: {problem}");
                self.cx.event(LogLevel::Warning, Kind::SubmissionRefused, detail);
            }
        }
        match (pending, result.map_err(|problem| password_error(&problem))) {
            (Some(PendingAnswer::Mailbox(ticket)), result) => {
                self.stores.mailboxes.credentials(now, ticket, result);
            }
            (Some(PendingAnswer::Password { association: id, invoke }), Ok(())) => {
                let operation = p1::p3::operation::CHANGE_CREDENTIALS;
                let empty = Bytes::from_static(&p7::operation::EMPTY_RESULT);
                self.arrivals.answer(&mut self.cx, id, invoke, operation, empty);
            }
            (Some(PendingAnswer::Password { association: id, invoke }), Err(error)) => {
                self.arrivals.answer_error(&mut self.cx, id, invoke, &error);
            }
            _ => {}
        }
    }
}
