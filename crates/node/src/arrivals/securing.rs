//! An arrival that is complete: its keys, its commit, and the answer to its sender.
//!
//! What grows with the recipients of a message is done a step at a time ([`node_api::steps`]).

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::arrivals::Arrivals;
use crate::arrivals::accepted::{AcceptedArrival, SLICE};
use crate::arrivals::arrival::{ArrivalHead, OpenArrival};
use crate::commits::pending::{AfterCommit, PendingAnswer, PendingRetry, SyncFor};
use crate::context::Context;
use crate::error::CommitError;
use crate::log::draft::Copies;
use crate::log::parties;
use base::{AssociationId, Now};
use bytes::Bytes;
use engine::NewEntry;
use engine::journal::{BodySource, Digest, Op, SpoolId};
use guard::memory::MemoryCharge;
use node_api::steps::WorkStep;
use osi::api::{AbortReason, Request};

impl Arrivals {
    /// Finds keys and routes of the next recipients of an arrival that has ended.
    pub(crate) fn prepare(&mut self, cx: &mut Context, now: Now, spool: SpoolId) {
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        // If it was refused meanwhile, or is gone, nothing is left to do.
        let Some(ArrivalHead::Transfer(head)) = &mut arrival.head else { return };
        let source = arrival.channel.map(|channel| channel.peer);
        // In the first step; in those that follow there is nothing left to do.
        cx.engine.restore_common_names(source, head);
        let context = &arrival.context;
        let begin = || cx.engine.begin(head).from_peer(source).in_context(context.clone());
        let prepared = arrival.prepared.get_or_insert_with(begin);
        if cx.engine.prepare(prepared, head, SLICE) {
            let keys = prepared.keys();
            self.secure(cx, now, spool, keys);
        } else {
            cx.steps.push(now.mono, WorkStep::Prepare(spool));
        }
    }

    /// Commits what was accepted: where it is long, in another step.
    pub(crate) fn commit_accepted(
        &mut self,
        cx: &mut Context,
        now: Now,
        accepted: AcceptedArrival,
    ) {
        if accepted.is_long() {
            let spool = accepted.arrival.spool;
            self.accepted.insert(spool, accepted);
            cx.steps.push(now.mono, WorkStep::Commit(spool));
        } else {
            self.commit_now(cx, accepted);
        }
    }

    /// The step for it has come.
    pub(crate) fn commit_later(&mut self, cx: &mut Context, spool: SpoolId) {
        if let Some(accepted) = self.accepted.remove(&spool) {
            self.commit_now(cx, accepted);
        }
    }

    fn commit_now(&mut self, cx: &mut Context, accepted: AcceptedArrival) {
        let AcceptedArrival { mut arrival, accepted, message, result, parties, reported, notes } =
            accepted;
        let batch = self.batch_with_body(cx, &arrival, &accepted);
        let spool = Self::committed_spool(&batch);
        let charge = self.charge(&mut arrival, &batch);
        let (id, keys) = (arrival.association, arrival.keys);
        let after = match result {
            None => {
                let arrival = arrival.spool;
                AfterCommit::Secure { arrival, keys, message, spool, parties, reported, notes }
            }
            Some(result) => {
                let (invoke, operation) = (arrival.invoke, arrival.operation);
                AfterCommit::SubmissionResult {
                    spool,
                    invoke,
                    operation,
                    result,
                    keys,
                    message,
                    parties,
                    notes,
                }
            }
        };
        let entries = accepted.entries;
        let level = self.level_with_arrival(cx, id);
        cx.commit_for(
            level,
            batch,
            PendingAnswer::Commit { association: id, entries, after, charge },
        );
    }

    /// What is held for an arrival is held until this batch of it is committed, and the batch too:
    /// where many next hops get a copy, it is larger than what came.
    pub(crate) fn charge(
        &mut self,
        arrival: &mut OpenArrival,
        batch: &[Op],
    ) -> Option<MemoryCharge> {
        let mut held = arrival.held.take()?;
        self.memory.add(&mut held, batch.iter().map(Op::held).sum());
        Some(held)
    }

    /// Lets others use the keys of an arrival that is done with.
    pub(crate) fn free_keys(&mut self, cx: &mut Context, spool: SpoolId) {
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        if std::mem::take(&mut arrival.reserved) {
            let keys = std::mem::take(&mut arrival.keys);
            cx.commits.keys.release(&keys);
        }
    }

    /// Arrivals that waited for keys of others try again.
    pub(crate) fn retry_blocked(&mut self, cx: &mut Context, now: Now) {
        for spool in cx.commits.keys.take_unblocked() {
            let Some(arrival) = self.open.get_mut(&spool) else { continue };
            let keys = std::mem::take(&mut arrival.keys);
            self.secure(cx, now, spool, keys);
        }
    }

    /// Makes the content durable and asks what was taken before under these keys, both at once. The
    /// keys are reserved until the commit is done: where another arrival has one of them (the same
    /// message, sent again after its association was lost), this one waits for its outcome.
    pub(crate) fn secure(&mut self, cx: &mut Context, now: Now, spool: SpoolId, keys: Vec<Digest>) {
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        arrival.keys.clone_from(&keys);
        if !cx.commits.keys.reserve(&keys) {
            return cx.commits.keys.wait(spool);
        }
        arrival.reserved = true;
        arrival.stored = !arrival.spool_open;
        let sync_now = arrival.spool_open && arrival.syncing.is_none();
        if keys.is_empty() {
            arrival.seen = Some(Vec::new());
        } else {
            let precedence = self.classified(cx, spool);
            let token = cx.token(PendingAnswer::LookUp { spool });
            cx.output(Output::LookUp { token, precedence, keys });
        }
        if sync_now {
            self.sync(cx, spool, SyncFor::End);
        }
        self.try_commit(cx, now, spool);
    }

    /// The look-up of its keys is answered.
    pub(crate) fn keys_looked_up(
        &mut self,
        cx: &mut Context,
        now: Now,
        spool: SpoolId,
        seen: Vec<Option<Bytes>>,
    ) {
        if let Some(arrival) = self.open.get_mut(&spool) {
            let found = arrival.keys.iter().zip(&seen).filter(|(_, record)| record.is_none());
            arrival.absent = found.map(|(key, _)| *key).collect();
            arrival.absent.sort_unstable();
            arrival.seen = Some(seen);
        }
        self.try_commit(cx, now, spool);
    }

    /// Commits an arrival once its content is stored and the look-up is answered.
    pub(crate) fn try_commit(&mut self, cx: &mut Context, now: Now, spool: SpoolId) {
        let ready =
            self.open.get(&spool).is_some_and(|a| a.stored && a.seen.is_some() && a.head.is_some());
        if !ready {
            return;
        }
        let Some(mut arrival) = self.open.remove(&spool) else { return };
        let seen = arrival.seen.take().unwrap_or_default();
        match arrival.head.take() {
            Some(ArrivalHead::Transfer(head)) => {
                self.commit_transfer(cx, now, arrival, *head, &seen);
            }
            Some(ArrivalHead::Submission(envelope)) => {
                self.commit_submission(cx, now, arrival, &envelope, &seen);
            }
            None => self.free_memory(&mut arrival),
        }
    }

    fn commit_transfer(
        &mut self,
        cx: &mut Context,
        now: Now,
        mut arrival: OpenArrival,
        head: p1::MtsApduHead,
        seen: &[Option<Bytes>],
    ) {
        let content = arrival.notes.content(engine::content_type(&head));
        let (parties, reported) = parties::of_transfer(&head);
        let prepared = arrival.prepared.take().unwrap_or_else(|| {
            let source = arrival.channel.map(|channel| channel.peer);
            let context = arrival.context.take();
            let mut all = cx.engine.begin(&head).from_peer(source).in_context(context);
            cx.engine.prepare(&mut all, &head, usize::MAX);
            all
        });
        let taken = cx.engine.accept_prepared(now.utc, head, &content, prepared, seen);
        let engine::Arrival { accepted, message, notes } = taken;
        let accepted =
            AcceptedArrival { arrival, accepted, message, result: None, parties, reported, notes };
        self.commit_accepted(cx, now, accepted);
    }

    /// The changes that accept an arrival, its content from the spool; a spool nobody needs is
    /// discarded.
    pub(crate) fn batch_with_body(
        &self,
        cx: &mut Context,
        arrival: &OpenArrival,
        accepted: &engine::Accepted,
    ) -> Vec<Op> {
        let source = if arrival.spool_open {
            BodySource::Spool(arrival.spool)
        } else {
            BodySource::Octets(Bytes::new())
        };
        let mut batch = engine::batch(accepted, source);
        // What the look-up did not find must not be there at the commit either.
        for op in &mut batch {
            if let Op::PutSeen { key, absent, .. } = op {
                *absent = arrival.absent.binary_search(key).is_ok();
            }
        }
        if arrival.spool_open && Self::committed_spool(&batch).is_none() {
            cx.output(Output::SpoolDiscard { spool: arrival.spool });
        }
        batch
    }

    /// The spool a batch uses up.
    fn committed_spool(batch: &[Op]) -> Option<SpoolId> {
        batch.iter().find_map(|op| match op {
            Op::PutBody { source: BodySource::Spool(spool), .. } => Some(*spool),
            _ => None,
        })
    }

    pub(crate) fn commit_failed(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        entries: Vec<NewEntry>,
        after: AfterCommit,
        error: &CommitError,
    ) {
        // A peer that sends the same to two nodes of a site at once is answered so once: nothing is wrong here.
        let level = match error {
            CommitError::Conflict => LogLevel::Info,
            _ => LogLevel::Error,
        };
        let error = error.to_string();
        cx.event(level, Kind::StoreFailed, &*error).association(id);
        if let AfterCommit::Secure { spool: Some(spool), .. }
        | AfterCommit::SubmissionResult { spool: Some(spool), .. } = &after
        {
            cx.output(Output::SpoolDiscard { spool: *spool });
        }
        match after {
            AfterCommit::Secure { arrival, .. } => {
                cx.recovery.not_secured(arrival);
                let refused = Request::TransferRefused(AbortReason::LocalSystemProblem);
                self.arrival_over(cx, now, id, arrival, refused);
            }
            AfterCommit::SubmissionResult { invoke, .. } => {
                let why = "the submission could not be stored";
                cx.event(LogLevel::Warning, Kind::SubmissionRefused, why).association(id);
                self.refuse_malformed(cx, id, invoke, AbortReason::LocalSystemProblem);
            }
            AfterCommit::Sent { batch, bodies } => {
                // The peer has it, and so has the store still: the change is tried again until done.
                cx.commits.retry_later(now, PendingRetry::new(batch, entries, bodies));
                cx.sent(now, id);
            }
        }
    }

    /// The commit of an arrival is done: answers the peer. Not if the peer gave up the transfer
    /// meanwhile and perhaps sends another one: a repetition is recognised as a duplicate.
    fn arrival_over(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        arrival: SpoolId,
        answer: Request,
    ) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        if association.receiving() != Some(arrival) {
            return;
        }
        association.end_receiving(now.mono);
        cx.request(id, answer);
        cx.await_turn(now, id);
        if cx.life.is_stopping() {
            cx.finish(id);
        }
    }

    /// What was committed is durable: confirms it to its sender.
    pub(crate) fn after_commit(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        after: AfterCommit,
        copies: Copies,
    ) {
        match after {
            AfterCommit::Secure { arrival, message, parties, reported, notes, .. } => {
                let channel = cx.associations.get(&id).and_then(|l| l.channel());
                cx.event(LogLevel::Info, Kind::Received, "")
                    .association(id)
                    .channel(channel)
                    .parties(Some(parties))
                    .reported(reported)
                    .committed(message.clone(), copies);
                cx.outputs.log_notes(Some(id), channel, &message, &notes);
                self.drop_begun_before(cx, channel, &message);
                self.arrival_over(cx, now, id, arrival, Request::TransferSecured);
            }
            AfterCommit::SubmissionResult {
                invoke,
                operation,
                result,
                message,
                parties,
                notes,
                ..
            } => {
                cx.event(LogLevel::Info, Kind::Submitted, "")
                    .association(id)
                    .parties(Some(parties))
                    .committed(message.clone(), copies);
                cx.outputs.log_notes(Some(id), None, &message, &notes);
                self.answer(cx, id, invoke, operation, result);
            }
            AfterCommit::Sent { bodies, .. } => {
                cx.release_bodies(bodies);
                cx.sent(now, id);
            }
        }
    }
}
