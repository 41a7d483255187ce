//! Holds of an operator.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::api::operator::{ActError, ActOutcome, MAX_HELD, Operator};
use crate::commits::pending::{HoldOperation, PendingAnswer, PendingRetry};
use crate::context::Context;
use crate::error::{CommitError, EdgeError};
use crate::operations::Operations;
use base::{EntryId, Now};
use scheduler::Reason;

impl Operations {
    /// An operator holds an entry: it waits for no recovery, and begins again once released.
    fn hold_lost(&self, cx: &mut Context, now: Now, id: EntryId) {
        for entry in cx.recovery.let_go(.., |_, entry| entry == id) {
            cx.queue.scheduler.put_back(now.mono, entry);
        }
    }

    pub(crate) fn operated(
        &self,
        cx: &mut Context,
        now: Now,
        operation: HoldOperation,
        result: Result<(), CommitError>,
    ) {
        if result == Err(CommitError::Changed) {
            // Another node has held or released something meanwhile. That is known by now, and this besides.
            let again = vec![cx.queue.held.put()];
            return cx.commit(again, PendingAnswer::Operation(operation));
        }
        let result = result.map_err(EdgeError::from);
        if result.is_err() {
            self.undo(cx, now, &operation);
            // A later operation may have written what is undone here.
            let batch = vec![cx.queue.held.put()];
            let retry = PendingRetry::alone(batch);
            cx.commits.retry_later(now, retry);
        }
        let HoldOperation { request, outcomes, changed, hold, by } = operation;
        cx.queue.held.settled(&changed);
        if result.is_ok() {
            let kind = if hold { Kind::OperatorHeld } else { Kind::OperatorReleased };
            for id in changed {
                let precedence = cx.queue.get(id).map(|item| item.precedence);
                let draft = cx.event(LogLevel::Info, kind, "").entry(id).by(&by);
                if let Some(precedence) = precedence {
                    draft.precedence(precedence);
                }
            }
        }
        let result = result.map(|()| outcomes).map_err(ActError::NotStored);
        cx.output(Output::Operated { request, result });
    }

    fn undo(&self, cx: &mut Context, now: Now, operation: &HoldOperation) {
        for id in &operation.changed {
            self.set_held(cx, now, *id, !operation.hold);
        }
    }

    /// Whether that changed anything.
    fn set_held(&self, cx: &mut Context, now: Now, id: EntryId, hold: bool) -> bool {
        if hold {
            self.hold_lost(cx, now, id);
            // Not one whose time is over: its report is being made.
            let is_kept = cx.queue.scheduler.held_because(id) == Some(Reason::Operator);
            // Its user may hold it back already, or its cancelling.
            let held = cx.queue.scheduler.hold(id) || is_kept;
            held && cx.queue.held.mark(id, true)
        } else {
            let was_marked = cx.queue.held.mark(id, false);
            // What its originator has just cancelled does not start meanwhile.
            let starts = !cx.queue.cancelling.contains(&id);
            starts && cx.queue.scheduler.release(now.mono, id) || was_marked
        }
    }

    /// An operator holds or releases these entries. `became` gives the entries that replaced one.
    pub(crate) fn hold_or_release(
        &self,
        cx: &mut Context,
        became: impl Fn(EntryId) -> Option<Vec<EntryId>>,
        now: Now,
        request: u64,
        entries: Vec<EntryId>,
        (hold, by): (bool, Operator),
    ) {
        let (changed, outcomes) = (Vec::new(), Vec::new());
        let mut operation = HoldOperation { request, hold, by, changed, outcomes };
        for id in entries {
            let outcome = if cx.queue.scheduler.get(id).is_none() {
                became(id).map_or(ActOutcome::Unknown, ActOutcome::Became)
            } else if self.set_held(cx, now, id, hold) {
                operation.changed.push(id);
                let goes_on = hold && cx.queue.scheduler.is_in_transfer(id);
                if goes_on { ActOutcome::InTransfer } else { ActOutcome::Done }
            } else {
                ActOutcome::Unchanged
            };
            operation.outcomes.push((id, outcome));
        }
        if operation.changed.is_empty() {
            let result = Ok(operation.outcomes);
            return cx.output(Output::Operated { request, result });
        }
        // Those that went meanwhile need no mark.
        cx.queue.drop_marks_of_gone();
        if hold && cx.queue.held.count() > MAX_HELD {
            self.undo(cx, now, &operation);
            let result = Err(ActError::TooMany);
            return cx.output(Output::Operated { request, result });
        }
        let batch = vec![cx.queue.held.put()];
        cx.commit(batch, PendingAnswer::Operation(operation));
    }
}
