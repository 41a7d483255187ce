//! Users bound over P7: their binds, operations and alerts.

use super::Stores;
use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::association::p3::{FetchedContent, QueuedResponse};
use crate::commits::pending::PendingAnswer;
use crate::context::Context;
use crate::error::{PasswordProblem, ReadError};
use base::{AssociationId, BodyId, Now};
use bytes::Bytes;
use engine::journal::FIRST_ITEM;
use guard::Secret;
use mailbox::machine::Response;
use osi::api::{Payload, Problem, Request};
use osi::profiles::abstract_syntax;
use p1::p3::{AccessError, ChangeCredentials};
use p7::operation;

/// Most alerts of an association that are not answered: what a user who does not read makes us hold is bounded.
const MAX_ALERTS: usize = 64;

/// Invoke problems of a ROSE reject (X.229 clause 9).
const UNRECOGNIZED_OPERATION: Problem = Problem { kind: 1, value: 1 };
const MISTYPED_ARGUMENT: Problem = Problem { kind: 1, value: 2 };

/// Content of items, read for a fetch at once.
const FIRST_OF_ITEMS: BodyId = BodyId(FIRST_ITEM);

impl Stores {
    /// A user whose password is right binds: the answer follows when his mailbox is open.
    pub(crate) fn bind(&mut self, cx: &mut Context, now: Now, id: AssociationId, mailbox: &str) {
        let Some(p3) = cx.associations.p3_mut(id) else { return };
        let Some(store) = &mut p3.store else { return };
        let access = store.access.clone();
        p3.mailbox = Some(mailbox.to_owned());
        self.mailboxes.bind(now, id, mailbox, access);
    }

    /// An operation of the retrieval port has come, whole.
    pub(crate) fn invoked(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        (invoke, operation): (i64, i64),
        argument: &[u8],
    ) {
        if let Some(problem) = self.mailboxes.invoke(now, id, (invoke, operation), argument) {
            let name = operation::name(operation);
            let detail = format!("{name}: {problem}");
            cx.event(LogLevel::Warning, Kind::ReceiveFailed, detail).association(id);
        }
    }

    /// An operation ended. Its response waits for the content of a fetch that is being sent.
    pub(crate) fn respond(
        &self,
        cx: &mut Context,
        id: AssociationId,
        (invoke, operation): (i64, i64),
        response: Response,
    ) {
        let queued = QueuedResponse { invoke, operation, response };
        let store = cx.associations.p3_mut(id).and_then(|p3| p3.store.as_mut());
        match store.filter(|store| store.fetch.is_some()) {
            Some(store) => store.waiting.push_back(queued),
            None => self.send_response(cx, id, queued),
        }
    }

    /// Sends a response. A fetch is answered once its content was handed to the stack.
    fn send_response(&self, cx: &mut Context, id: AssociationId, queued: QueuedResponse) {
        let QueuedResponse { invoke, operation, response } = queued;
        let Some(p3) = cx.associations.p3_mut(id) else { return };
        let request = match response {
            Response::Result { payload, content } => {
                match (content.filter(|(_, length)| *length > 0), &mut p3.store) {
                    (Some((body, length)), Some(store)) => {
                        store.fetch = Some(FetchedContent { body, length, handed: 0 });
                    }
                    _ => p3.unanswered = p3.unanswered.saturating_sub(1),
                }
                let engine::Payload { head, content_length, tail, .. } = payload;
                Request::Result {
                    invoke,
                    operation,
                    result: Payload { head, content_length, tail },
                }
            }
            other => {
                p3.unanswered = p3.unanswered.saturating_sub(1);
                let reject = |problem| Request::Reject { invoke: Some(invoke), problem };
                match other {
                    Response::Error { code, parameter } => {
                        Request::Error { invoke, error: code, parameter }
                    }
                    Response::Mistyped => reject(MISTYPED_ARGUMENT),
                    _ => reject(UNRECOGNIZED_OPERATION),
                }
            }
        };
        cx.request(id, request);
    }

    /// An alert for a session, unless it leaves too many unanswered.
    pub(crate) fn alert(&self, cx: &mut Context, id: AssociationId, argument: Bytes) {
        let Some(association) = cx.associations.get_mut(&id).filter(|a| a.is_open()) else {
            return;
        };
        let Some(p3) = association.p3_mut() else { return };
        let invoke = p3.next_invoke;
        let Some(store) = p3.store.as_mut().filter(|store| store.alerts.len() < MAX_ALERTS) else {
            return;
        };
        store.alerts.insert(invoke);
        p3.next_invoke += 1;
        let is_1994 = p3.store.as_ref().is_some_and(|store| store.access.is_1994);
        let syntax = if is_1994 { abstract_syntax::mrse_94() } else { abstract_syntax::mrse_88() };
        let request = Request::Invoke {
            invoke,
            syntax,
            operation: operation::ALERT,
            argument: Payload::whole(argument),
        };
        cx.request(id, request);
    }

    /// An invocation of ours was answered, perhaps an alert.
    pub(crate) fn alert_answered(&self, cx: &mut Context, id: AssociationId, invoke: i64) {
        if let Some(store) = cx.associations.p3_mut(id).and_then(|p3| p3.store.as_mut()) {
            store.alerts.remove(&invoke);
        }
    }

    /// The result of a fetch needs more of its content. False if the association sends no result of a fetch.
    pub(crate) fn need_content(
        &self,
        cx: &mut Context,
        id: AssociationId,
        offset: u64,
        max: usize,
    ) -> bool {
        let Some(store) = cx.associations.p3_mut(id).and_then(|p3| p3.store.as_mut()) else {
            return false;
        };
        let Some(FetchedContent { body, length, .. }) = store.fetch else {
            cx.request(id, Request::ContentFailed);
            return true;
        };
        debug_assert!(body >= FIRST_OF_ITEMS, "a content of the queue");
        let left = length.saturating_sub(offset);
        let len = max.min(usize::try_from(left).unwrap_or(usize::MAX));
        let token = cx.token(PendingAnswer::Fetched { association: id });
        cx.output(Output::ReadContent { token, association: id, body, offset, len });
        true
    }

    /// Content for the result of a fetch was read.
    pub(crate) fn fetched(
        &self,
        cx: &mut Context,
        id: AssociationId,
        result: Result<Bytes, ReadError>,
    ) {
        let store = cx.associations.p3_mut(id).and_then(|p3| p3.store.as_mut());
        let Some(fetch) = store.and_then(|store| store.fetch.as_mut()) else { return };
        match result {
            Ok(octets) => {
                fetch.handed = fetch.handed.saturating_add(octets.len() as u64);
                let is_whole = fetch.handed >= fetch.length;
                cx.request(id, Request::Content(octets));
                if is_whole {
                    self.fetch_answered(cx, id);
                }
            }
            Err(error) => {
                let detail = format!("the content of a fetch: {error} (it may have been deleted)");
                cx.event(LogLevel::Warning, Kind::StoreFailed, detail).association(id);
                cx.request(id, Request::ContentFailed);
            }
        }
    }

    /// The content of a fetch is with the stack: what waited for it is sent, until the next content.
    fn fetch_answered(&self, cx: &mut Context, id: AssociationId) {
        let Some(p3) = cx.associations.p3_mut(id) else { return };
        p3.unanswered = p3.unanswered.saturating_sub(1);
        if let Some(store) = &mut p3.store {
            store.fetch = None;
        }
        let next = |cx: &mut Context| {
            let store = cx.associations.p3_mut(id)?.store.as_mut()?;
            if store.fetch.is_some() { None } else { store.waiting.pop_front() }
        };
        while let Some(queued) = next(cx) {
            self.send_response(cx, id, queued);
        }
    }

    /// A mailbox cannot be opened: only the log has why.
    pub(crate) fn note(&self, cx: &mut Context, note: String) {
        cx.event(LogLevel::Warning, Kind::StoreFailed, note);
    }
}

/// The passwords of a change of credentials; the error to answer with otherwise.
pub(crate) fn passwords(change: &ChangeCredentials) -> Result<(Secret, Secret), AccessError> {
    let (old, new) = change.passwords()?;
    Ok((Secret(Bytes::copy_from_slice(old)), Secret(Bytes::copy_from_slice(new))))
}

/// The error that a user gets whose password is not changed.
pub(crate) fn password_error(problem: &PasswordProblem) -> AccessError {
    match problem {
        PasswordProblem::Old => AccessError::OldCredentialsIncorrectlySpecified,
        PasswordProblem::New(_) | PasswordProblem::Failed(_) => {
            AccessError::NewCredentialsUnacceptable
        }
    }
}
