//! cancel-deferred-delivery (X.411 8.2.1.3): the originator takes back a message that still waits here for its
//! deferred delivery time.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::commits::pending::{Cancelling, PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::error::{CommitError, ReadError};
use crate::operations::Operations;
use crate::queue::is_at_rest;
use base::ber::Element;
use base::{AssociationId, EntryId, Now};
use bytes::Bytes;
use engine::Record;
use engine::journal::{Batch, Op};
use p1::names::MtsIdentifier;
use p1::p3::AccessError;

/// How a cancelling ended.
pub(crate) enum Cancelled {
    /// It is asked of the store; the end follows.
    Asked,
    /// Nothing of the message is delivered.
    Done(Cancelling),
    /// It is not cancelled.
    Refused(AssociationId, i64, AccessError),
    /// The argument is not an MTSIdentifier.
    Mistyped,
}

impl Operations {
    /// A user invoked it.
    pub(crate) fn cancel(
        &self,
        cx: &mut Context,
        now: Now,
        association: AssociationId,
        invoke: i64,
        argument: &[u8],
    ) -> Cancelled {
        let identifier = Element::parse(argument).and_then(|e| MtsIdentifier::read(&e));
        let Ok(identifier) = identifier else { return Cancelled::Mistyped };
        if identifier.domain != cx.config.domain {
            let error = AccessError::MessageSubmissionIdentifierInvalid;
            return Cancelled::Refused(association, invoke, error);
        }
        let message = identifier.to_string();
        cx.queue.deferred.pass(now.mono);
        let entries = cx.queue.deferred.entries(&message);
        let cancelling = Cancelling { association, invoke, message, entries };
        // Whose it is stands in the record of each.
        let Some(item) = cancelling.entries.first().and_then(|id| cx.queue.get(*id)) else {
            return rejected(&cancelling);
        };
        let token = cx.token(PendingAnswer::CancelLoad(cancelling));
        cx.output(Output::Load { token, precedence: item.precedence, id: item.id });
        Cancelled::Asked
    }

    /// The record of one of its copies was read.
    pub(crate) fn cancel_loaded(
        &self,
        cx: &mut Context,
        now: Now,
        cancelling: Cancelling,
        result: Result<Option<Bytes>, ReadError>,
    ) -> Cancelled {
        let originator = match result {
            Ok(Some(octets)) => Record::originator(&octets).ok().flatten(),
            Ok(None) | Err(_) => None,
        };
        let user = cx.associations.get(&cancelling.association).and_then(|a| a.mailbox());
        let is_his = originator
            .zip(user)
            .is_some_and(|(name, user)| engine::canonical(&name.address) == user);
        if !is_his {
            // As for a message that is not here: nobody learns which identifiers there are.
            return rejected(&cancelling);
        }
        cx.queue.deferred.pass(now.mono);
        let waits = |id: &EntryId| {
            // One that an operator holds is its originator's still.
            let listed = cx.queue.scheduler.listed(*id);
            listed.is_some_and(|listed| is_at_rest(listed.at)) && !cx.queue.cancelling.contains(id)
        };
        let still = cx.queue.deferred.entries(&cancelling.message) == cancelling.entries;
        if !still || !cancelling.entries.iter().all(waits) {
            return rejected(&cancelling);
        }
        // Its time may come while it is committed.
        for id in &cancelling.entries {
            cx.queue.scheduler.hold(*id);
            cx.queue.cancelling.insert(*id);
        }
        let items = cancelling.entries.iter().filter_map(|id| cx.queue.get(*id));
        let deletion =
            |item: scheduler::Item| Op::DeleteEntry { precedence: item.precedence, id: item.id };
        let batch: Batch = items.map(deletion).collect();
        cx.commit(batch, PendingAnswer::Cancel(cancelling));
        Cancelled::Asked
    }

    /// Its copies are deleted, or not.
    pub(crate) fn cancel_committed(
        &self,
        cx: &mut Context,
        now: Now,
        cancelling: Cancelling,
        result: Result<(), CommitError>,
    ) -> Cancelled {
        for id in &cancelling.entries {
            cx.queue.cancelling.remove(id);
        }
        if let Err(error) = result {
            cx.event(LogLevel::Error, Kind::StoreFailed, error.to_string());
            for id in cancelling.entries.iter().filter(|id| !cx.queue.held.contains(id)) {
                cx.queue.scheduler.release(now.mono, *id);
            }
            return rejected(&cancelling);
        }
        for id in &cancelling.entries {
            let (mut batch, bodies) = cx.queue.forget(*id);
            batch.retain(|op| matches!(op, Op::DeleteBody { .. }));
            if !batch.is_empty() {
                let retry = PendingRetry::alone(batch);
                cx.commit(retry.batch.clone(), PendingAnswer::Retry(retry));
            }
            cx.release_bodies(bodies);
            cx.event(LogLevel::Info, Kind::Cancelled, "by its originator")
                .association(cancelling.association)
                .message(cancelling.message.clone())
                .entry(*id);
        }
        Cancelled::Done(cancelling)
    }
}

/// It was passed on already, was not deferred, is another user's or unknown: one error for all.
fn rejected(cancelling: &Cancelling) -> Cancelled {
    let error = AccessError::DeferredDeliveryCancellationRejected;
    Cancelled::Refused(cancelling.association, cancelling.invoke, error)
}
