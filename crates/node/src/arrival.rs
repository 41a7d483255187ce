//! Receiving: from the first octet to the durable commit, alike for a peer's transfer and a user's
//! submission. Nothing is acknowledged before its commit.

use crate::access::Name;
use crate::address_prefix::Origin;
use crate::api::{ChannelId, Output, Token};
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::event_draft::Copies;
use crate::levels;
use crate::machines::Arrivals;
use crate::machines::Outbound;
use crate::memory::{Charge, Payer};
use crate::node::Node;
use crate::pending::{AfterCommit, Pending, PendingRetry, SyncFor};
use crate::receiving::{Arrival, Head, Parsing};
use crate::slices::Taken;
use base::ber::Fault;
use base::{AssociationId, BodyId, Now, Precedence};
use bytes::Bytes;
use engine::journal::{BodySource, Digest, Op, SpoolId};
use engine::{NewEntry, Note, NoteKind};
use osi::api::{AbortReason, Indication, Request};
use p1::ApduParser;

impl Arrivals {
    pub(crate) fn receive_indication(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        indication: Indication,
    ) {
        match indication {
            Indication::TransferStart { .. } => {
                self.drop_suspended(cx, id);
                let parser = ApduParser::new(cx.config.limits.envelope);
                let spool = cx.issued.next_spool();
                let mut arrival = Arrival::new(id, Some(channel), Parsing::Transfer(parser), spool);
                arrival.peek = cx.config.classify.peek_content;
                self.begin_arrival(cx, id, arrival);
            }
            Indication::TransferResumed { .. } => self.transfer_resumed(cx, id),
            Indication::Data { bytes, last: _ } => self.arrival_data(cx, id, &bytes),
            Indication::Checkpoint { octets } => self.checkpoint(cx, id, octets),
            Indication::TransferEnd => self.transfer_end(cx, now, id),
            Indication::TransferStopped { may_resume } => {
                self.transfer_stopped(cx, now, id, may_resume);
            }
            Indication::TransferFaulty { detail } => {
                if let Some(arrival) = self.arriving(cx, id) {
                    let spool = arrival.spool;
                    self.refuse_arrival(cx, spool, AbortReason::PermanentProblem, &detail);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn transfer_resumed(&mut self, cx: &mut Context, id: AssociationId) {
        let suspended = cx.associations.get_mut(&id).and_then(|l| l.suspended.take());
        let sound = |spool: &SpoolId| self.open.get(spool).is_some_and(Arrival::is_sound);
        match suspended.filter(sound) {
            Some(spool) => {
                if let Some(link) = cx.associations.get_mut(&id) {
                    link.receiving = Some(spool);
                    link.turn_deadline = None;
                }
            }
            // Refused before it was interrupted: there is nothing to go on with.
            None => {
                if let Some(spool) = suspended {
                    self.drop_arrival(cx, spool);
                }
                cx.request(id, Request::TransferRefused(AbortReason::UnrecognizedActivity));
            }
        }
    }

    pub(crate) fn transfer_stopped(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        may_resume: bool,
    ) {
        let Some(link) = cx.associations.get_mut(&id) else { return };
        link.idle_since = now.mono;
        let taken = link.receiving.take();
        cx.await_turn(now, id);
        let Some(spool) = taken else { return };
        let Some(arrival) = self.open.get(&spool) else {
            // It had ended and is being committed: the peer will hear that it was taken before.
            return;
        };
        if may_resume && arrival.is_sound() && !arrival.ended {
            if let Some(link) = cx.associations.get_mut(&id) {
                link.suspended = Some(spool);
            }
        } else if !arrival.ended || !arrival.is_sound() {
            self.drop_arrival(cx, spool);
        }
    }

    pub(crate) fn begin_arrival(
        &mut self,
        cx: &mut Context,
        id: AssociationId,
        mut arrival: Arrival,
    ) {
        let channel = arrival.channel.and_then(|channel| cx.peer_and_channel(channel));
        let least = channel.and_then(|(_, channel)| levels::least_of_channel(channel));
        if let Some(link) = cx.associations.get_mut(&id) {
            let payer = match arrival.channel {
                Some(channel) => Payer::Peer(channel.peer),
                None => {
                    let mailbox = Name::of(link.mailbox().unwrap_or_default());
                    Payer::User(link.origin.unwrap_or(Origin::Others), mailbox)
                }
            };
            arrival.held = Some(Charge::new(payer, least.unwrap_or(Precedence::Deferred)));
            link.receiving = Some(arrival.spool);
            link.turn_deadline = None;
            self.open.insert(arrival.spool, arrival);
        }
    }

    /// What the association is receiving now.
    pub(crate) fn arriving(&mut self, cx: &mut Context, id: AssociationId) -> Option<&mut Arrival> {
        let spool = cx.associations.get(&id)?.receiving?;
        self.open.get_mut(&spool)
    }

    pub(crate) fn arrival_data(&mut self, cx: &mut Context, id: AssociationId, bytes: &Bytes) {
        let limits = cx.config.limits;
        let Some(arrival) = self.arriving(cx, id) else { return };
        let (spool, sound) = (arrival.spool, arrival.is_sound());
        let parsed = arrival.parsed_size();
        match arrival.take(bytes, &limits) {
            Ok(pieces) => {
                let content: usize = pieces.iter().map(Bytes::len).sum();
                let more = bytes.len() - content + arrival.parsed_size() - parsed;
                self.note_level(cx, spool);
                if sound && let Err(limit) = self.hold(cx, spool, more) {
                    let why = format!("the envelope finds no memory: {limit}");
                    return self.refuse_arrival(cx, spool, AbortReason::TemporaryProblem, &why);
                }
                let Some(arrival) = self.open.get_mut(&spool) else { return };
                let begin = !arrival.spool_open && !pieces.is_empty();
                arrival.spool_open |= begin;
                if begin {
                    cx.output(Output::SpoolOpen { spool });
                }
                for bytes in pieces {
                    cx.output(Output::SpoolAppend { spool, association: id, bytes });
                }
            }
            Err(error) => {
                // Beyond our limits is not wrongly encoded, and no better the next time.
                let reason = match error.fault {
                    Fault::TooLong(_) | Fault::TooMany(_) | Fault::TooDeep(_) => {
                        AbortReason::PermanentProblem
                    }
                    _ => AbortReason::InvalidParameter,
                };
                self.refuse_arrival(cx, spool, reason, &error.to_string());
            }
        }
    }

    /// So many more octets of an arrival are held in memory, if that is within the limits.
    pub(crate) fn hold(
        &mut self,
        cx: &mut Context,
        spool: SpoolId,
        octets: usize,
    ) -> Result<(), String> {
        let Some(arrival) = self.open.get_mut(&spool) else { return Ok(()) };
        let Some(held) = arrival.held.as_mut() else { return Ok(()) };
        self.memory.take(held, arrival.level, octets, &cx.config.limits)
    }

    /// What is held for an arrival is free again.
    pub(crate) fn free_memory(&mut self, arrival: &mut Arrival) {
        if let Some(held) = &mut arrival.held {
            self.memory.give(held);
        }
    }

    /// What is held for an arrival is held until this batch of it is committed, and the batch too:
    /// where many next hops get a copy, it is larger than what came.
    pub(crate) fn charge(&mut self, arrival: &mut Arrival, batch: &[Op]) -> Option<Charge> {
        let mut held = arrival.held.take()?;
        self.memory.add(&mut held, batch.iter().map(Op::held).sum());
        Some(held)
    }

    /// This arrival cannot be taken: who sent it is told and keeps it.
    pub(crate) fn refuse_arrival(
        &mut self,
        cx: &mut Context,
        spool: SpoolId,
        reason: AbortReason,
        why: &str,
    ) {
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        if !arrival.is_sound() {
            return;
        }
        arrival.parsing = Parsing::Ignoring;
        arrival.head = None;
        if let Some(held) = &mut arrival.held {
            self.memory.give(held);
        }
        let (id, channel, invoke) = (arrival.link, arrival.channel, arrival.invoke);
        if std::mem::take(&mut arrival.spool_open) {
            cx.output(Output::SpoolDiscard { spool });
        }
        let kind = if channel.is_some() { Kind::ReceiveFailed } else { Kind::SubmissionRefused };
        cx.event(Level::Warning, kind, why).association(id).channel(channel);
        let current = cx.associations.get(&id).is_some_and(|l| l.receiving == Some(spool));
        match channel {
            Some(_) if current => cx.request(id, Request::TransferRefused(reason)),
            Some(_) => {}
            None => cx.refuse_malformed(id, invoke, reason),
        }
        // Nothing more comes for one that has ended and that no association holds any more.
        let ended = self.open.get(&spool).is_some_and(|a| a.ended);
        if ended && !current {
            self.drop_arrival(cx, spool);
        } else {
            self.free_keys(cx, spool);
        }
    }

    /// Lets others use the keys of an arrival that is done with.
    pub(crate) fn free_keys(&mut self, cx: &mut Context, spool: SpoolId) {
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        if std::mem::take(&mut arrival.reserved) {
            let keys = std::mem::take(&mut arrival.keys);
            cx.keys.release_keys(&keys);
        }
    }

    /// Arrivals that waited for keys of others try again.
    pub(crate) fn retry_blocked(&mut self, cx: &mut Context, now: Now) {
        if !std::mem::take(&mut cx.keys.unblock) {
            return;
        }
        for spool in std::mem::take(&mut cx.keys.blocked) {
            let Some(arrival) = self.open.get_mut(&spool) else { continue };
            let keys = std::mem::take(&mut arrival.keys);
            self.secure(cx, now, spool, keys);
        }
    }

    /// Confirms a checkpoint once what came before it is stored; one sync at a time, the newest
    /// checkpoint waiting: its confirm covers the earlier ones.
    pub(crate) fn checkpoint(&mut self, cx: &mut Context, id: AssociationId, octets: u64) {
        let Some(arrival) = self.arriving(cx, id) else { return };
        let spool = arrival.spool;
        arrival.kept_until = None;
        if !arrival.spool_open {
            // Nothing but envelope so far: it is held in memory, within its limit, and after a lost
            // process the peer begins again.
            cx.request(id, Request::Stored { octets });
        } else if arrival.syncing.is_some() {
            arrival.checkpoint_waiting = Some(octets);
        } else {
            self.sync(cx, spool, SyncFor::Checkpoint(octets));
        }
    }

    pub(crate) fn sync(&mut self, cx: &mut Context, spool: SpoolId, purpose: SyncFor) {
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        arrival.syncing = Some(purpose);
        let association = arrival.link;
        let token = cx.token(Pending::Sync { spool, purpose });
        cx.output(Output::SpoolSync { spool, association, token });
    }

    pub(crate) fn transfer_end(&mut self, cx: &mut Context, now: Now, id: AssociationId) {
        let Some(arrival) = self.arriving(cx, id) else { return };
        let spool = arrival.spool;
        arrival.ended = true;
        if let Err(error) = arrival.finish() {
            self.refuse_arrival(cx, spool, AbortReason::InvalidParameter, &error.to_string());
            return;
        }
        self.prepare(cx, now, spool);
    }

    /// Makes the content durable and asks what was taken before under these keys, both at once. The
    /// keys are reserved until the commit is done: where another arrival has one of them (the same
    /// message, sent again after its association was lost), this one waits for its outcome.
    pub(crate) fn secure(&mut self, cx: &mut Context, now: Now, spool: SpoolId, keys: Vec<Digest>) {
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        arrival.keys.clone_from(&keys);
        if keys.iter().any(|key| cx.keys.committing.contains(key)) {
            cx.keys.blocked.push(spool);
            return;
        }
        cx.keys.committing.extend(keys.iter().copied());
        arrival.reserved = true;
        arrival.stored = !arrival.spool_open;
        let sync_now = arrival.spool_open && arrival.syncing.is_none();
        if keys.is_empty() {
            arrival.seen = Some(Vec::new());
        } else {
            let precedence = self.classified(cx, spool);
            let token = cx.token(Pending::LookUp { spool });
            cx.output(Output::LookUp { token, precedence, keys });
        }
        if sync_now {
            self.sync(cx, spool, SyncFor::End);
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
            Some(Head::Transfer(head)) => self.commit_transfer(cx, now, arrival, *head, &seen),
            Some(Head::Submission(envelope)) => {
                self.commit_submission(cx, now, arrival, &envelope, &seen);
            }
            None => self.free_memory(&mut arrival),
        }
    }

    pub(crate) fn commit_transfer(
        &mut self,
        cx: &mut Context,
        now: Now,
        mut arrival: Arrival,
        head: p1::MtsApduHead,
        seen: &[Option<Bytes>],
    ) {
        let content = arrival.content();
        let taken = match arrival.prepared.take() {
            Some(done) => cx.engine.accept_prepared(now.utc, head, &content, done, seen),
            None => cx.engine.accept(now.utc, head, &content, seen),
        };
        let engine::Arrival { accepted, message, notes } = taken;
        self.commit_taken(cx, now, Taken { arrival, accepted, message, result: None, notes });
    }

    /// Forgets an arrival and its spool.
    pub(crate) fn drop_arrival(&mut self, cx: &mut Context, spool: SpoolId) {
        self.free_keys(cx, spool);
        cx.recovery.not_secured(spool);
        let Some(mut arrival) = self.open.remove(&spool) else { return };
        self.free_memory(&mut arrival);
        if arrival.spool_open {
            cx.output(Output::SpoolDiscard { spool });
        }
    }

    pub(crate) fn drop_suspended(&mut self, cx: &mut Context, id: AssociationId) {
        if let Some(spool) = cx.associations.get_mut(&id).and_then(|l| l.suspended.take()) {
            self.drop_arrival(cx, spool);
        }
    }

    // ----- what the edge answers ------------------------------------------------------------------

    pub(crate) fn synced(
        &mut self,
        cx: &mut Context,
        now: Now,
        token: Token,
        result: Result<u64, String>,
    ) {
        let Some(Pending::Sync { spool, purpose }) = cx.commits.pending.remove(&token) else {
            return;
        };
        if let Err(error) = result {
            return self.spool_failed(cx, spool, &error);
        }
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        arrival.syncing = None;
        let (id, ended, waiting) = (arrival.link, arrival.ended, arrival.checkpoint_waiting.take());
        match purpose {
            SyncFor::Checkpoint(octets) => cx.request(id, Request::Stored { octets }),
            SyncFor::End => {
                arrival.stored = true;
                return self.try_commit(cx, now, spool);
            }
        }
        if ended {
            self.sync(cx, spool, SyncFor::End);
        } else if let Some(octets) = waiting {
            self.sync(cx, spool, SyncFor::Checkpoint(octets));
        }
    }

    pub(crate) fn spool_failed(&mut self, cx: &mut Context, spool: SpoolId, error: &str) {
        let Some(arrival) = self.open.get(&spool) else { return };
        let (id, channel) = (arrival.link, arrival.channel);
        cx.event(Level::Error, Kind::StoreFailed, error).association(id).channel(channel);
        self.refuse_arrival(
            cx,
            spool,
            AbortReason::LocalSystemProblem,
            "the content could not be stored",
        );
    }
}

impl Context {
    /// What the engine had to say of a message.
    pub(crate) fn log_notes(
        &mut self,
        id: Option<AssociationId>,
        channel: Option<ChannelId>,
        message: &str,
        notes: &[Note],
    ) {
        for note in notes {
            let (level, kind) = match note.kind {
                NoteKind::Duplicate => (Level::Info, Kind::DuplicateDropped),
                NoteKind::IdentifierReused => (Level::Warning, Kind::IdentifierReused),
                NoteKind::ReportMade => (Level::Info, Kind::ReportMade),
                NoteKind::ReportDiscarded => (Level::Warning, Kind::Discarded),
                NoteKind::NonDelivery => (Level::Warning, Kind::NonDelivery),
                NoteKind::TraceDoubted => (Level::Warning, Kind::TraceDoubted),
            };
            let draft =
                self.event(level, kind, note.detail.clone()).channel(channel).message(message);
            if let Some(id) = id {
                draft.association(id);
            }
        }
    }

    /// The changes that accept an arrival, its content from the spool; a spool nobody needs is
    /// thrown away.
    pub(crate) fn batch_with_body(
        &mut self,
        arrival: &Arrival,
        accepted: &engine::Accepted,
    ) -> Vec<Op> {
        let source = if arrival.spool_open {
            BodySource::Spool(arrival.spool)
        } else {
            BodySource::Octets(Bytes::new())
        };
        let batch = engine::batch(accepted, source);
        if arrival.spool_open && Self::committed_spool(&batch).is_none() {
            self.output(Output::SpoolDiscard { spool: arrival.spool });
        }
        batch
    }

    /// The spool a batch uses up.
    pub(crate) fn committed_spool(batch: &[Op]) -> Option<SpoolId> {
        batch.iter().find_map(|op| match op {
            Op::PutBody { source: BodySource::Spool(spool), .. } => Some(*spool),
            _ => None,
        })
    }

    pub(crate) fn commit_failed(
        &mut self,
        now: Now,
        id: AssociationId,
        entries: Vec<NewEntry>,
        after: AfterCommit,
        error: &str,
    ) {
        self.event(Level::Error, Kind::StoreFailed, error).association(id);
        if let AfterCommit::Secure { spool: Some(spool), .. }
        | AfterCommit::SubmissionResult { spool: Some(spool), .. } = &after
        {
            self.output(Output::SpoolDiscard { spool: *spool });
        }
        match after {
            AfterCommit::Secure { arrival, .. } => {
                self.recovery.not_secured(arrival);
                let refused = Request::TransferRefused(AbortReason::LocalSystemProblem);
                self.arrival_over(now, id, arrival, refused);
            }
            AfterCommit::SubmissionResult { invoke, .. } => {
                self.refuse_malformed(id, invoke, AbortReason::LocalSystemProblem);
            }
            AfterCommit::Sent { batch, bodies } => {
                // The peer has it, the store still does: what is owed is tried again until done.
                self.commits.retry_later(now, PendingRetry { batch, entries, bodies });
                self.sent(now, id);
            }
        }
    }

    /// Copies of these contents are durably forgotten.
    pub(crate) fn release_bodies(&mut self, bodies: Vec<BodyId>) {
        let batch: Vec<Op> = bodies.into_iter().filter_map(|b| self.queue.release(b)).collect();
        if !batch.is_empty() {
            let retry = PendingRetry { batch, entries: Vec::new(), bodies: Vec::new() };
            self.commit(retry.batch.clone(), Pending::Retry(retry));
        }
    }

    /// The commit of an arrival is done: answers the peer, unless it gave the transfer up meanwhile
    /// and perhaps sends another one; it will be told then that it was taken before.
    pub(crate) fn arrival_over(
        &mut self,
        now: Now,
        id: AssociationId,
        arrival: SpoolId,
        answer: Request,
    ) {
        let Some(link) = self.associations.get_mut(&id) else { return };
        if link.receiving != Some(arrival) {
            return;
        }
        link.receiving = None;
        link.idle_since = now.mono;
        self.request(id, answer);
        self.await_turn(now, id);
        if self.life.stopping {
            self.finish(id);
        }
    }

    /// The association is done with what it was sending.
    pub(crate) fn sent(&mut self, now: Now, id: AssociationId) {
        if let Some(link) = self.associations.get_mut(&id) {
            link.sending = None;
            link.idle_since = now.mono;
        }
        if self.life.stopping {
            self.finish(id);
        }
    }
}

impl Node {
    pub(crate) fn looked_up(
        &mut self,
        now: Now,
        token: Token,
        result: Result<Vec<Option<Bytes>>, String>,
    ) {
        let spool = match self.cx.commits.pending.remove(&token) {
            Some(Pending::LookUp { spool }) => spool,
            Some(Pending::RerouteLookUp { entry, record, keys }) => {
                return self.outbound.reroute_looked_up(
                    &mut self.cx,
                    now,
                    entry,
                    &record,
                    keys,
                    result,
                );
            }
            _ => return,
        };
        match result {
            Ok(seen) => {
                if let Some(arrival) = self.arrivals.open.get_mut(&spool) {
                    arrival.seen = Some(seen);
                }
                self.arrivals.try_commit(&mut self.cx, now, spool);
            }
            Err(error) => self.arrivals.spool_failed(&mut self.cx, spool, &error),
        }
    }

    pub(crate) fn committed(&mut self, now: Now, token: Token, result: Result<(), String>) {
        let (link, entries, after) = match self.cx.commits.pending.remove(&token) {
            Some(Pending::Commit { link, entries, after, charge }) => {
                if let Some(mut held) = charge {
                    self.arrivals.memory.give(&mut held);
                }
                (link, entries, after)
            }
            Some(Pending::Operation(operation)) => return self.cx.operated(now, operation, result),
            Some(Pending::Retry(retry)) => {
                self.cx.commits.retry_answered();
                match result {
                    Ok(()) => {
                        self.outbound.reroutes_made(&mut self.cx, &retry.batch);
                        self.outbound.enqueue_new(&mut self.cx, now, retry.entries);
                        self.cx.release_bodies(retry.bodies);
                    }
                    Err(_) => self.cx.commits.retry_later(now, retry),
                }
                return;
            }
            _ => return,
        };
        if let AfterCommit::Secure { keys, .. } | AfterCommit::SubmissionResult { keys, .. } =
            &after
        {
            let keys = keys.clone();
            self.cx.keys.release_keys(&keys);
        }
        match result {
            Ok(()) => {
                let copies = match &after {
                    AfterCommit::Secure { message, .. }
                    | AfterCommit::SubmissionResult { message, .. } => {
                        Copies::of(message, &entries)
                    }
                    AfterCommit::Sent { .. } => Copies::default(),
                };
                self.outbound.enqueue_new(&mut self.cx, now, entries);
                self.outbound.after_commit(&mut self.cx, now, link, after, copies);
            }
            Err(error) => self.cx.commit_failed(now, link, entries, after, &error),
        }
    }
}

impl Outbound {
    pub(crate) fn after_commit(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        after: AfterCommit,
        copies: Copies,
    ) {
        match after {
            AfterCommit::Secure { arrival, message, notes, .. } => {
                self.secured_late(cx, arrival);
                let channel = cx.associations.get(&id).and_then(|l| l.channel());
                cx.event(Level::Info, Kind::Received, "")
                    .association(id)
                    .channel(channel)
                    .committed(message.clone(), copies);
                cx.log_notes(Some(id), channel, &message, &notes);
                cx.arrival_over(now, id, arrival, Request::TransferSecured);
            }
            AfterCommit::SubmissionResult { invoke, operation, result, message, notes, .. } => {
                cx.event(Level::Info, Kind::Submitted, "")
                    .association(id)
                    .committed(message.clone(), copies);
                cx.log_notes(Some(id), None, &message, &notes);
                cx.answer(id, invoke, operation, result);
            }
            AfterCommit::Sent { bodies, .. } => {
                cx.release_bodies(bodies);
                cx.sent(now, id);
            }
        }
    }
}
