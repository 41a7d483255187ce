//! Transfers to a peer, from the record to the confirm.

use crate::api::event::{Kind, LogLevel};
use crate::association::transfer::{FailedTransfer, Sending};
use crate::commits::pending::{AfterCommit, PendingAnswer};
use crate::context::Context;
use crate::outbound::Outbound;
use crate::outbound::transfers::recovering::MAX_RESUMES;
use base::{AssociationId, EntryId, Now};
use engine::Record;
use osi::api::{Payload, Request, ResumePoint};
use scheduler::{ChannelId, StartReason};

impl Outbound {
    /// The peer confirmed a checkpoint of a transfer.
    pub(crate) fn transfer_progressed(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        point: ResumePoint,
    ) {
        let sending =
            cx.associations.get_mut(&id).and_then(|association| association.sending_mut());
        let Some(sending) = sending else { return };
        sending.meter.at(now.mono, point.octets);
        sending.resume = Some(point);
        // It made progress: if it is cut off again, it may be resumed again.
        sending.resumes = 0;
        cx.queue.scheduler.progress(now.mono, sending.entry);
        self.note_sending(cx, now, id);
    }

    /// A transfer failed; it may be resumed at `resume`.
    pub(crate) fn transfer_failed(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        resume: Option<ResumePoint>,
        refused: bool,
        detail: &str,
    ) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let (channel, interrupted) = (association.channel(), association.is_interrupting());
        let Some(mut sending) = association.end_sending(now.mono) else { return };
        sending.resume = resume;
        // A transfer is resumed here, or on the association that recovers this one. But one that
        // failed again after it was resumed waits its turn.
        let keeps = !interrupted || association.is_leaving();
        let (again, point) = (sending.resumes > 0, sending.resumption());
        let resumption = point.clone().filter(|_| keeps && !again);
        // A pause kept it from moving: the loss of its association once more is not its fault.
        let paused = cx.queue.scheduler.is_paused(sending.entry);
        let at_stop = point.clone().filter(|_| cx.life.is_stopping());
        let if_lost = point.filter(|_| sending.resumes < MAX_RESUMES || paused);
        let bytes = sending.bytes();
        if keeps {
            let (entry, place) =
                (sending.entry, sending.place(&association.stack).filter(|_| !paused));
            let message = sending.message.clone();
            let record = sending.record.map(Box::new);
            if let Some(p1) = association.p1_mut() {
                p1.failed = Some(FailedTransfer {
                    entry,
                    resumption,
                    if_lost,
                    place,
                    refused,
                    record,
                    message,
                });
            }
        }
        cx.event(LogLevel::Warning, Kind::TransferFailed, detail)
            .association(id)
            .channel(channel)
            .message(sending.message)
            .entry(sending.entry)
            .precedence(sending.precedence)
            .bytes(bytes);
        match (at_stop, channel) {
            _ if keeps => {}
            // The next process resumes it.
            (Some(point), Some(channel)) => {
                self.keep_lost(cx, now, id, channel, (sending.entry, point), None);
            }
            _ => _ = cx.queue.scheduler.put_back(now.mono, sending.entry),
        }
        if cx.life.is_stopping() {
            cx.finish(id);
        }
    }

    /// Logs that a message did not get through because its association ended.
    pub(crate) fn cut_off(&self, cx: &mut Context, id: AssociationId, sending: &Sending) {
        let bytes = sending.bytes();
        if sending.record.is_none() {
            return; // nothing was logged of it yet
        }
        let channel = cx.associations.get(&id).and_then(|a| a.channel());
        if channel.is_none() && sending.is_all_sent() {
            cx.queue.in_doubt.insert(sending.entry);
        }
        let kind = if channel.is_some() { Kind::TransferFailed } else { Kind::DeliveryFailed };
        cx.event(LogLevel::Warning, kind, "the association ended")
            .association(id)
            .channel(channel)
            .message(sending.message.clone())
            .entry(sending.entry)
            .precedence(sending.precedence)
            .bytes(bytes);
    }

    /// The record of an entry that is to go out on a P1 association.
    pub(crate) fn start_transfer(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        record: Record,
    ) {
        let Some((peer, _)) = cx.peer_and_channel(channel) else { return };
        let begun = cx.associations.get(&id).and_then(|l| l.sending()).and_then(|s| s.form);
        let form = begun.unwrap_or(peer.form);
        // A transfer that began in another form than the peer has now continues in that one.
        if begun.is_none() && cx.engine.no_longer_fits(&record) {
            return self.route_instead(cx, now, id, &record);
        }
        let payload = cx.engine.transfer_payload(&record, form);
        let message = record.message.clone();
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let written = association.stack.written();
        let Some(sending) = association.sending_mut() else { return };
        sending.written_before = written;
        sending.form = Some(form);
        sending.content_length = payload.content_length;
        sending.message.clone_from(&message);
        sending.head = payload.head.clone();
        if sending.expected.is_some_and(|expected| expected != sending.head_digest()) {
            // Another release or configuration has other octets: it begins again.
            (sending.resume, sending.expected) = (None, None);
        }
        let (entry, precedence, resume) =
            (sending.entry, sending.precedence, sending.resume.clone());
        let mut detail = match &resume {
            Some(point) => format!("resumed after {} octets", point.octets),
            None => format!("{} octets of content", payload.content_length),
        };
        if payload.left_out > 0 {
            detail = format!("{detail}, extensions left out: {}", payload.left_out);
        }
        if sending.reason != StartReason::default() {
            detail = format!("{detail}, {}", sending.reason);
        }
        sending.record = Some(record);
        sending.started = Some(now.mono);
        sending.started_at = resume.as_ref().map_or(0, |point| point.octets);
        sending.meter.at(now.mono, sending.started_at);
        let around = payload.head.len() + payload.tail.len();
        sending.total = payload.content_length.saturating_add(around as u64);
        sending.stall_look = Some(now.mono + cx.config.hold.stall);
        let bytes = sending.bytes();
        let payload = Payload {
            head: payload.head,
            content_length: payload.content_length,
            tail: payload.tail,
        };
        cx.request(id, Request::Transfer { payload, resume });
        cx.event(LogLevel::Info, Kind::TransferStarted, detail)
            .association(id)
            .channel(Some(channel))
            .message(message)
            .entry(entry)
            .precedence(precedence)
            .bytes(bytes);
        self.pause_at_start(cx, id, entry);
    }

    /// This copy, or what is critical of it, is not in the form that its peer has by now: it is routed
    /// again, which reports it.
    fn route_instead(&mut self, cx: &mut Context, now: Now, id: AssociationId, record: &Record) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let Some(sending) = association.end_sending(now.mono) else { return };
        // At rest, where it is looked up first whether it was delivered already.
        let seed = cx.rng.next_u64();
        cx.queue.scheduler.retry(now.mono, sending.entry, seed);
        self.reroute(cx, now, sending.entry, record);
    }

    pub(crate) fn transfer_confirmed(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
    ) {
        let Some(sending) = cx.associations.get_mut(&id).and_then(|l| l.sending_mut()) else {
            return;
        };
        sending.confirmed = true;
        let took = sending.started.map(|at| now.mono.since(at));
        let octets = sending.content_length.saturating_sub(sending.started_at);
        let (entry, message, precedence, bytes) =
            (sending.entry, sending.message.clone(), sending.precedence, sending.bytes());
        let accepted = sending.record.as_ref().map(|record| record.accepted);
        if let Some(took) = took {
            cx.outputs.tally_mut().transfer_took(precedence, took);
            if let Some(state) = self.channels.get_mut(&channel) {
                state.line.at_least(octets, took);
                state.short_lived = 0; // the association was of use
            }
        }
        cx.event(LogLevel::Info, Kind::TransferConfirmed, "")
            .association(id)
            .channel(Some(channel))
            .message(message)
            .entry(entry)
            .precedence(precedence)
            .bytes(bytes)
            .accepted(accepted);
        self.got_through(cx, now, channel, entry);
        let (batch, bodies) = cx.queue.forget(entry);
        let after = AfterCommit::Sent { batch: batch.clone(), bodies };
        let level = cx.level_of(id, None);
        let entries = Vec::new();
        cx.commit_for(
            level,
            batch,
            PendingAnswer::Commit { association: id, entries, after, charge: None },
        );
    }

    /// What follows a transfer that failed on an association that stays open: it is resumed where it
    /// may be, else tried again later.
    pub(crate) fn after_failure(&mut self, cx: &mut Context, now: Now, id: AssociationId) {
        let Some(failed) = cx.associations.p1_mut(id).and_then(|p1| p1.failed.take()) else {
            return;
        };
        match failed.resumption {
            Some(resumption) => self.resume_transfer(cx, now, id, failed.entry, resumption),
            None if failed.refused && self.judge_refused(cx, now, id, &failed) => {}
            None => {
                let seed = cx.rng.next_u64();
                cx.queue.scheduler.retry(now.mono, failed.entry, seed);
            }
        }
    }

    /// An entry whose transfer was cut off and cannot be resumed waits again. The first loss is the
    /// connection's. An entry that is lost again waits longer, so that others get past it; gives whether
    /// this one does.
    pub(crate) fn begin_again(&mut self, cx: &mut Context, now: Now, entry: EntryId) -> bool {
        cx.kept_sends.progressed();
        let again = self.blame.was_put_back(entry);
        if again {
            let seed = cx.rng.next_u64();
            cx.queue.scheduler.retry(now.mono, entry, seed);
        } else {
            cx.queue.scheduler.put_back(now.mono, entry);
        }
        again
    }
}
