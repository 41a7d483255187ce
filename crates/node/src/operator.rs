//! Holds of an operator: durable before they are answered, so that they outlive a restart.
//!
//! Which entries are held is one small named value of the store, written whole: holds are few, and
//! the records of the queue stay as they are.

use crate::api::Output;
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::machines::Outbound;
use crate::pending::{Pending, PendingRetry};
use crate::queue::Queue;
use base::{EntryId, Now};
use bytes::Bytes;
use engine::journal::{Batch, Op};
use serde::{Deserialize, Serialize};

/// The name of the value in the store.
pub const HELD: &str = "held";

/// Entries that an operator may hold at once.
const MAX: usize = 10_000;

/// What became of one entry an operator named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Held, or released, as asked.
    Done,
    /// It was so before.
    Unchanged,
    /// There is no such entry: it may have gone.
    Unknown,
    /// It was routed again, and is these entries now.
    Became(Vec<EntryId>),
}

/// An operator's request, from its change in memory to its commit.
#[derive(Debug)]
pub(crate) struct Operation {
    request: u64,
    hold: bool,
    changed: Vec<EntryId>,
    outcomes: Vec<(EntryId, Outcome)>,
}

impl Context {
    /// Takes over what [`HELD`] says; before the entries are recovered.
    pub(crate) fn recovered_holds(&mut self, value: &[u8]) {
        let ids = value.chunks_exact(8).filter_map(|id| id.try_into().ok());
        self.queue.held = ids.map(|id| EntryId(u64::from_be_bytes(id))).collect();
    }

    /// What writes down which entries are held.
    pub(crate) fn put_held(&self) -> Op {
        let value: Vec<u8> = self.queue.held.iter().flat_map(|id| id.0.to_be_bytes()).collect();
        Op::PutMeta { name: HELD.to_owned(), value: Bytes::from(value) }
    }

    /// What is written late says what is held then.
    pub(crate) fn renew_held(&self, batch: &mut Batch) {
        let is_held = |op: &&mut Op| matches!(op, Op::PutMeta { name, .. } if name == HELD);
        for op in batch.iter_mut().filter(is_held) {
            *op = self.put_held();
        }
    }

    /// A held entry goes another way: the copies that take its place are held as it was. What
    /// belongs into the commit that replaces it.
    pub(crate) fn pass_on_hold(&mut self, id: EntryId, copies: &[EntryId]) -> Option<Op> {
        if !self.queue.held.remove(&id) {
            return None;
        }
        self.queue.held.extend(copies);
        Some(self.put_held())
    }

    pub(crate) fn operated(&mut self, now: Now, operation: Operation, result: Result<(), String>) {
        if result.is_err() {
            self.undo(now, &operation);
            // A later operation may have written what is undone here.
            let batch = vec![self.put_held()];
            let retry = PendingRetry { batch, entries: Vec::new(), bodies: Vec::new() };
            self.commits.retry_later(now, retry);
        }
        let Operation { request, outcomes, changed, hold } = operation;
        if result.is_ok() {
            let kind = if hold { Kind::OperatorHeld } else { Kind::OperatorReleased };
            for id in changed {
                let precedence = self.queue.get(id).map(|item| item.precedence);
                let draft = self.event(Level::Info, kind, "").entry(id);
                if let Some(precedence) = precedence {
                    draft.precedence(precedence);
                }
            }
        }
        let result = result.map(|()| outcomes);
        self.output(Output::Operated { request, result });
    }

    pub(crate) fn undo(&mut self, now: Now, operation: &Operation) {
        for id in &operation.changed {
            self.set_held(now, *id, !operation.hold);
        }
    }

    /// Whether that changed anything.
    pub(crate) fn set_held(&mut self, now: Now, id: EntryId, hold: bool) -> bool {
        if hold {
            self.hold_lost(now, id);
            // Not one whose time is over: its report is being made.
            let held = self.queue.scheduler.hold(id);
            if held {
                self.queue.held.insert(id);
            }
            held
        } else {
            let was_marked = self.queue.held.remove(&id);
            self.queue.scheduler.release(now.mono, id) || was_marked
        }
    }
}

impl Outbound {
    /// An operator holds these entries, or lets them go.
    pub(crate) fn hold_or_release(
        &mut self,
        cx: &mut Context,
        now: Now,
        request: u64,
        entries: Vec<EntryId>,
        hold: bool,
    ) {
        let mut operation = Operation { request, hold, changed: Vec::new(), outcomes: Vec::new() };
        for id in entries {
            let outcome = if cx.queue.scheduler.get(id).is_none() {
                self.reroutes
                    .became(id)
                    .map_or(Outcome::Unknown, |new| Outcome::Became(new.to_vec()))
            } else if cx.set_held(now, id, hold) {
                operation.changed.push(id);
                Outcome::Done
            } else {
                Outcome::Unchanged
            };
            operation.outcomes.push((id, outcome));
        }
        if operation.changed.is_empty() {
            let result = Ok(operation.outcomes);
            return cx.output(Output::Operated { request, result });
        }
        // Those that went meanwhile need no mark.
        let Queue { held, scheduler, .. } = &mut cx.queue;
        held.retain(|id| scheduler.get(*id).is_some());
        if hold && cx.queue.held.len() > MAX {
            cx.undo(now, &operation);
            let result = Err(format!("more than {MAX} entries would be held: release some first"));
            return cx.output(Output::Operated { request, result });
        }
        let batch = vec![cx.put_held()];
        cx.commit(batch, Pending::Operation(operation));
    }
}
