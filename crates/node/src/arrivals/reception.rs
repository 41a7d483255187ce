//! Receiving: from the first octet to the durable commit, alike for a peer's transfer and a user's
//! submission. Nothing is acknowledged before its commit.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::arrivals::Arrivals;
use crate::arrivals::arrival::{OpenArrival, Parsing};
use crate::arrivals::submission::RESOURCE_LIMITATION;
use crate::commits::pending::{PendingAnswer, SyncFor};
use crate::config::levels;
use crate::context::Context;
use crate::error::EdgeError;
use crate::ids::Token;
use base::ber::Fault;
use base::ip_prefix::Origin;
use base::{AssociationId, Now, Precedence};
use bytes::Bytes;
use engine::journal::SpoolId;
use guard::NameDigest;
use guard::memory::{MemoryCharge, NoRoom, Payer};
use osi::api::{AbortReason, Indication, Request};
use p1::ApduParser;
use p1::p3::operation;
use scheduler::ChannelId;

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
                let limits = &cx.config.limits;
                let parser = ApduParser::new(limits.envelope).with_content_limit(limits.content);
                let parser = parser.split_reports();
                let spool = cx.issued.next_spool();
                let mut arrival =
                    OpenArrival::new(id, Some(channel), Parsing::Transfer(parser), spool);
                arrival.notes = cx.engine.content_notes();
                arrival.began = now.mono;
                self.begin_arrival(cx, id, arrival);
            }
            Indication::TransferResumed { .. } => self.transfer_resumed(cx, id),
            Indication::Data { bytes, last: _ } => self.arrival_data(cx, id, &bytes),
            Indication::Checkpoint { octets } => {
                self.note_reception(cx, now, id, octets);
                self.checkpoint(cx, id, octets);
            }
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

    fn transfer_resumed(&mut self, cx: &mut Context, id: AssociationId) {
        let suspended = cx.associations.p1_mut(id).and_then(|p1| p1.suspended.take());
        let sound = |spool: &SpoolId| self.open.get(spool).is_some_and(OpenArrival::is_sound);
        match suspended.filter(sound) {
            Some(spool) => {
                if let Some(association) = cx.associations.get_mut(&id) {
                    association.receive(spool);
                }
            }
            // Refused before it was interrupted: there is nothing to resume.
            None => {
                if let Some(spool) = suspended {
                    self.drop_arrival(cx, spool);
                }
                cx.request(id, Request::TransferRefused(AbortReason::UnrecognizedActivity));
            }
        }
    }

    fn transfer_stopped(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        may_resume: bool,
    ) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let taken = association.end_receiving(now.mono);
        cx.await_turn(now, id);
        let Some(spool) = taken else { return };
        let Some(arrival) = self.open.get(&spool) else {
            // It had ended and is being committed: its repetition is recognised as a duplicate.
            return;
        };
        if may_resume && arrival.is_sound() && !arrival.ended {
            if let Some(p1) = cx.associations.p1_mut(id) {
                p1.suspended = Some(spool);
            }
        } else if !arrival.ended || !arrival.is_sound() {
            self.drop_arrival(cx, spool);
        }
    }

    pub(crate) fn begin_arrival(
        &mut self,
        cx: &mut Context,
        id: AssociationId,
        mut arrival: OpenArrival,
    ) {
        let channel = arrival.channel.and_then(|channel| cx.peer_and_channel(channel));
        let least = channel.and_then(|(_, channel)| levels::least_of_channel(channel));
        if let Some(association) = cx.associations.get_mut(&id) {
            let payer = match arrival.channel {
                Some(channel) => Payer::Peer(channel.peer),
                None => {
                    let mailbox = NameDigest::new(association.mailbox().unwrap_or_default());
                    Payer::User(association.connection.origin.unwrap_or(Origin::Others), mailbox)
                }
            };
            arrival.held = Some(MemoryCharge::new(payer, least.unwrap_or(Precedence::Deferred)));
            association.receive(arrival.spool);
            arrival.context = association.security_context().cloned();
            self.open.insert(arrival.spool, arrival);
        }
    }

    /// What the association is receiving now.
    pub(crate) fn arriving(
        &mut self,
        cx: &mut Context,
        id: AssociationId,
    ) -> Option<&mut OpenArrival> {
        let spool = cx.associations.get(&id)?.receiving()?;
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
                let more = bytes.len() - content + arrival.parsed_size().saturating_sub(parsed);
                self.note_level(cx, spool);
                if sound && let Some(why) = self.lacks_space(cx, spool) {
                    return self.refuse_arrival(cx, spool, AbortReason::TemporaryProblem, &why);
                }
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
                    cx.disk.took(bytes.len() as u64);
                    cx.output(Output::SpoolAppend { spool, association: id, bytes });
                }
            }
            Err(error) => {
                // An arrival beyond our limits is well encoded, but the next try would fail too.
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

    /// Why an arrival is refused for the room that is left on the disk, once its precedence is known.
    fn lacks_space(&self, cx: &Context, spool: SpoolId) -> Option<String> {
        cx.disk.refusal(self.open.get(&spool)?.level?)
    }

    /// So many more octets of an arrival are held in memory, if that is within the limits.
    pub(crate) fn hold(
        &mut self,
        cx: &mut Context,
        spool: SpoolId,
        octets: usize,
    ) -> Result<(), NoRoom> {
        let Some(arrival) = self.open.get_mut(&spool) else { return Ok(()) };
        let Some(held) = arrival.held.as_mut() else { return Ok(()) };
        self.memory.take(held, arrival.level, octets, &cx.config.limits)
    }

    /// What is held for an arrival is free again.
    pub(crate) fn free_memory(&mut self, arrival: &mut OpenArrival) {
        if let Some(held) = &mut arrival.held {
            self.memory.give(held);
        }
    }

    /// This arrival cannot be taken: it is refused, and its sender keeps it.
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
        let (id, channel, invoke) = (arrival.association, arrival.channel, arrival.invoke);
        if std::mem::take(&mut arrival.spool_open) {
            cx.output(Output::SpoolDiscard { spool });
        }
        let submits = [operation::MESSAGE_SUBMISSION, operation::PROBE_SUBMISSION]
            .contains(&arrival.operation);
        let kind = match channel {
            None if submits => Kind::SubmissionRefused,
            _ => Kind::ReceiveFailed,
        };
        cx.event(LogLevel::Warning, kind, why).association(id).channel(channel);
        let current = cx.associations.get(&id).is_some_and(|l| l.receiving() == Some(spool));
        match channel {
            Some(_) if current => cx.request(id, Request::TransferRefused(reason)),
            Some(_) => {}
            // The error about a length is one of submissions alone.
            None if !submits && reason == AbortReason::PermanentProblem => {
                self.reject(cx, id, invoke, RESOURCE_LIMITATION);
            }
            None => self.refuse_malformed(cx, id, invoke, reason),
        }
        // Nothing more comes for one that has ended and that no association holds any more.
        let ended = self.open.get(&spool).is_some_and(|a| a.ended);
        if ended && !current {
            self.drop_arrival(cx, spool);
        } else {
            self.free_keys(cx, spool);
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
        let association = arrival.association;
        let token = cx.token(PendingAnswer::Sync { spool, purpose });
        cx.output(Output::SpoolSync { spool, association, token });
    }

    fn transfer_end(&mut self, cx: &mut Context, now: Now, id: AssociationId) {
        let Some(arrival) = self.arriving(cx, id) else { return };
        let spool = arrival.spool;
        arrival.ended = true;
        if let Err(error) = arrival.finish() {
            self.refuse_arrival(cx, spool, AbortReason::InvalidParameter, &error.to_string());
            return;
        }
        self.prepare(cx, now, spool);
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
        if let Some(spool) = cx.associations.p1_mut(id).and_then(|p1| p1.suspended.take()) {
            self.drop_arrival(cx, spool);
        }
    }

    pub(crate) fn synced(
        &mut self,
        cx: &mut Context,
        now: Now,
        token: Token,
        result: Result<u64, EdgeError>,
    ) {
        let Some(PendingAnswer::Sync { spool, purpose }) = cx.commits.take(token) else {
            return;
        };
        if let Err(error) = result {
            return self.spool_failed(cx, spool, &error.0);
        }
        let Some(arrival) = self.open.get_mut(&spool) else { return };
        arrival.syncing = None;
        let (id, ended, waiting) =
            (arrival.association, arrival.ended, arrival.checkpoint_waiting.take());
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
        // One that was refused already is not reported twice.
        let Some(arrival) = self.open.get(&spool).filter(|arrival| arrival.is_sound()) else {
            return;
        };
        let (id, channel) = (arrival.association, arrival.channel);
        cx.event(LogLevel::Error, Kind::StoreFailed, error).association(id).channel(channel);
        self.refuse_arrival(
            cx,
            spool,
            AbortReason::LocalSystemProblem,
            "the content could not be stored",
        );
    }
}
