//! P1 associations we open, and sending on any P1 association whose turn is ours.

use crate::api::{ChannelId, Output, Principal, Secret, Token};
use crate::association::{Failed, Phase, Sending};
use crate::connect::Connected;
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::machines::Outbound;
use crate::node::Node;
use crate::pending::{AfterCommit, Pending, VerifiedBind};
use crate::responder::short;
use crate::resuming::MAX_RESUMES;
use base::ber::Element;
use base::{AssociationId, EntryId, Now};
use bytes::Bytes;
use engine::Record;
use osi::api::{Indication, Payload, Request};
use p1::bind::{Credentials, MtaAuthentication, MtaBindArgument, MtaBindResult};
use scheduler::StartReason;

impl Context {
    /// Our MTABindArgument toward a channel's peer.
    pub(crate) fn bind_argument(&self, channel: ChannelId) -> Bytes {
        let Some((peer, _)) = self.peer_and_channel(channel) else { return Bytes::new() };
        let argument = MtaBindArgument::Authenticated(crate::config::authentication(peer));
        let mut writer = base::ber::Writer::new();
        argument.write(&mut writer);
        writer.into_vec().into()
    }

    /// Checks who answered: the name must be the peer's, the password is verified by the edge.
    pub(crate) fn check_responder(&mut self, id: AssociationId, channel: ChannelId, bind: &[u8]) {
        let wrong = match Element::parse(bind).and_then(|e| MtaBindResult::read(&e)) {
            Err(error) => format!("MTABindResult: {error}"),
            Ok(MtaBindResult::Unauthenticated) => {
                return self.verify_peer(id, channel, Secret::default(), VerifiedBind::Responder);
            }
            Ok(MtaBindResult::Authenticated(who)) => match self.peer_password(channel, &who) {
                Ok(password) => {
                    return self.verify_peer(id, channel, password, VerifiedBind::Responder);
                }
                Err(wrong) => wrong,
            },
        };
        self.refuse_responder(id, channel, &wrong);
    }

    /// The password in a peer's authentication, if its name is the one configured.
    pub(crate) fn peer_password(
        &self,
        channel: ChannelId,
        who: &MtaAuthentication,
    ) -> Result<Secret, String> {
        let Some((peer, _)) = self.peer_and_channel(channel) else {
            return Err("no such peer".to_owned());
        };
        if who.name != peer.mta {
            let whose = self.config.peers.iter().find(|p| p.mta == who.name);
            let whose = whose.map(|p| format!("; it is peer {}'s", p.name)).unwrap_or_default();
            return Err(format!(
                "mta-name: {:?} is not peer {}'s {:?}{whose}",
                short(&who.name.0),
                peer.name,
                peer.mta.0
            ));
        }
        match &who.credentials {
            Credentials::Simple(password) => Ok(Secret(Bytes::copy_from_slice(password.octets()))),
            Credentials::Strong(_) => Err("credentials: strong ones are not supported".to_owned()),
            Credentials::Protected(_) => {
                Err("credentials: protected ones are not supported".to_owned())
            }
        }
    }

    pub(crate) fn verify_peer(
        &mut self,
        id: AssociationId,
        channel: ChannelId,
        password: Secret,
        bind: VerifiedBind,
    ) {
        let token = self.token(Pending::Verify { link: id, bind });
        self.output(Output::Verify { token, principal: Principal::Peer(channel.peer), password });
    }

    pub(crate) fn refuse_responder(&mut self, id: AssociationId, channel: ChannelId, why: &str) {
        self.event(
            Level::Error,
            Kind::AssociationRefused,
            format!("the peer's bind result: {why}"),
        )
        .association(id)
        .channel(Some(channel));
        if let Some(link) = self.associations.get_mut(&id) {
            link.given_up = Some(why.to_owned());
        }
        self.request(id, Request::Abort(osi::api::AbortReason::PermanentProblem));
    }

    // ----- sending --------------------------------------------------------------------------------

    /// Takes an entry in hand. Its record is read first, unless it was accepted just now and is
    /// still here, and given: a Flash need not wait for the disk a second time.
    pub(crate) fn take_up(
        &mut self,
        id: AssociationId,
        entry: EntryId,
        reason: StartReason,
    ) -> Option<Record> {
        let Some(record) = self.queue.fresh.remove(&entry) else {
            self.load_to_send(id, entry, reason);
            return None;
        };
        let known = self.queue.get(entry)?;
        let number = self.issued.next_number();
        let link = self.associations.get_mut(&id)?;
        let mut sending = Sending::new(entry, known.precedence, known.body, reason);
        sending.number = number;
        link.sending = Some(sending);
        Some(record)
    }

    /// Has the record of an entry read, to be sent.
    pub(crate) fn load_to_send(&mut self, id: AssociationId, entry: EntryId, reason: StartReason) {
        let Some(known) = self.queue.get(entry) else {
            self.queue.scheduler.finished(entry);
            return;
        };
        let token = self.token(Pending::Load { link: id, entry });
        if let Some(link) = self.associations.get_mut(&id) {
            let mut sending = Sending::new(entry, known.precedence, known.body, reason);
            sending.number = token.0;
            link.sending = Some(sending);
        }
        self.output(Output::Load { token, precedence: known.precedence, id: entry });
    }

    pub(crate) fn need_content(&mut self, id: AssociationId, offset: u64, max: usize) {
        let Some(sending) = self.associations.get_mut(&id).and_then(|l| l.sending.as_mut()) else {
            return;
        };
        let Some(body) = sending.body else {
            self.request(id, Request::ContentFailed);
            return;
        };
        let left = sending.content_length.saturating_sub(offset);
        let len = max.min(usize::try_from(left).unwrap_or(usize::MAX));
        sending.handed_out = offset + len as u64;
        let transfer = sending.number;
        let token = self.token(Pending::Content { link: id, transfer });
        self.output(Output::ReadContent { token, association: id, body, offset, len });
    }

    pub(crate) fn transfer_failed(
        &mut self,
        now: Now,
        id: AssociationId,
        refused: bool,
        detail: &str,
    ) {
        let Some(link) = self.associations.get_mut(&id) else { return };
        let (channel, interrupted) = (link.channel(), link.interrupting);
        let Some(sending) = link.sending.take() else { return };
        link.idle_since = now.mono;
        // One that may go on does so here, or on the association that recovers this one; but one
        // that failed again after it went on waits its turn.
        let keeps = !interrupted || link.leaving;
        let (again, point) = (sending.resumes > 0, sending.goes_on());
        let goes_on = point.clone().filter(|_| keeps && !again);
        // A pause kept it from moving: losing its association once more is no fault of its.
        let paused = self.queue.scheduler.is_paused(sending.entry);
        let if_lost = point.filter(|_| sending.resumes < MAX_RESUMES || paused);
        let bytes = sending.bytes();
        if keeps {
            let (entry, place) = (sending.entry, sending.place(&link.stack).filter(|_| !paused));
            let message = sending.message.clone();
            let record = sending.record.map(Box::new);
            link.failed = Some(Failed { entry, goes_on, if_lost, place, refused, record, message });
        }
        self.event(Level::Warning, Kind::TransferFailed, detail)
            .association(id)
            .channel(channel)
            .message(sending.message)
            .entry(sending.entry)
            .precedence(sending.precedence)
            .bytes(bytes);
        if !keeps {
            self.queue.scheduler.put_back(now.mono, sending.entry);
        }
        if self.life.stopping {
            self.finish(id);
        }
    }

    /// Says of a message whose association ended under it that it is not through.
    pub(crate) fn cut_off(&mut self, id: AssociationId, sending: &Sending) {
        let bytes = sending.bytes();
        if sending.record.is_none() {
            return; // nothing was said of it yet
        }
        let channel = self.associations.get(&id).and_then(|link| link.channel());
        let kind = if channel.is_some() { Kind::TransferFailed } else { Kind::DeliveryFailed };
        self.event(Level::Warning, kind, "the association ended")
            .association(id)
            .channel(channel)
            .message(sending.message.clone())
            .entry(sending.entry)
            .precedence(sending.precedence)
            .bytes(bytes);
    }
}

impl Node {
    pub(crate) fn initiator_indication(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        indication: Indication,
    ) {
        match indication {
            Indication::Opened { bind, reference } => {
                if let Some(link) = self.cx.associations.get_mut(&id) {
                    link.reference = reference;
                }
                if self.cx.recovery.is_offered(id) {
                    self.association_recovered(now, id, channel);
                } else {
                    self.cx.check_responder(id, channel, &bind);
                }
            }
            Indication::Refused { reason, bind_error, detail } => {
                self.refused(now, id, channel, reason, bind_error.as_deref(), &detail);
            }
            other => self.transfer_indication(now, id, channel, other),
        }
    }

    /// What both an initiator and a responder hear once open: either may send in its turn.
    pub(crate) fn transfer_indication(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        indication: Indication,
    ) {
        match indication {
            Indication::NeedContent { offset, max } => self.cx.need_content(id, offset, max),
            Indication::Progress(point) => {
                if let Some(s) = self.cx.associations.get_mut(&id).and_then(|l| l.sending.as_mut())
                {
                    s.meter.at(now.mono, point.octets);
                    s.resume = Some(point);
                    // It moved: if it is cut off again, it may go on again.
                    s.resumes = 0;
                    let entry = s.entry;
                    self.cx.queue.scheduler.progress(now.mono, entry);
                }
            }
            Indication::Paused => self.cx.paused(id),
            Indication::TransferConfirmed => {
                self.outbound.transfer_confirmed(&mut self.cx, now, id, channel)
            }
            Indication::TransferFailed { resume, refused, detail } => {
                if let Some(s) = self.cx.associations.get_mut(&id).and_then(|l| l.sending.as_mut())
                {
                    s.resume = resume;
                }
                self.cx.transfer_failed(now, id, refused, &detail);
            }
            Indication::TurnPlease(_) => {
                if let Some(link) = self.cx.associations.get_mut(&id) {
                    link.turn_asked = true;
                }
            }
            Indication::TurnGiven => {
                if let Some(link) = self.cx.associations.get_mut(&id) {
                    link.turn = true;
                    link.turn_wanted = false;
                    link.turn_deadline = None;
                    link.idle_since = now.mono;
                }
                self.cx.resume_in_turn(now, id);
            }
            Indication::Released => {
                self.association_over(now, id, Kind::AssociationReleased, "released");
            }
            Indication::Aborted { reason, detail } => {
                if let Some(link) = self.cx.associations.get_mut(&id) {
                    link.abort = reason;
                }
                self.association_over(now, id, Kind::AssociationLost, &detail);
            }
            other => self.arrivals.receive_indication(&mut self.cx, now, id, channel, other),
        }
    }
}

impl Outbound {
    /// The association is open and the peer is who it should be.
    pub(crate) fn initiator_open(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
    ) {
        let recovered = cx.associations.get(&id).is_some_and(|l| l.recovered.is_some());
        if let Some(link) = cx.associations.get_mut(&id) {
            link.phase = Phase::Open;
            link.opened = Some(now.mono);
            link.bind_deadline = None;
            link.turn = true;
            link.idle_since = now.mono;
        }
        if let Some(state) = self.channels.get_mut(&channel) {
            state.failures = 0;
            state.last_error = None;
            state.refused.opened();
        }
        let how = if recovered { "as initiator, recovered" } else { "as initiator" };
        cx.event(Level::Info, Kind::AssociationOpened, how).association(id).channel(Some(channel));
        self.answer_connect(cx, channel, &Connected::Opened);
        if cx.life.stopping {
            cx.finish(id);
        }
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
        let begun =
            cx.associations.get(&id).and_then(|l| l.sending.as_ref()).and_then(|s| s.dialect);
        let dialect = begun.unwrap_or(peer.dialect);
        // One that began in another dialect than the peer has now goes on in it.
        if begun.is_none() && cx.engine.would_lose_critical(&record) {
            return self.route_instead(cx, now, id, &record);
        }
        let payload = cx.engine.transfer_payload(&record, dialect);
        let message = record.message.clone();
        let Some(link) = cx.associations.get_mut(&id) else { return };
        let written = link.stack.written();
        let Some(sending) = link.sending.as_mut() else { return };
        sending.written_before = written;
        sending.dialect = Some(dialect);
        sending.content_length = payload.content_length;
        sending.message.clone_from(&message);
        let (entry, precedence, resume) =
            (sending.entry, sending.precedence, sending.resume.clone());
        let mut detail = match &resume {
            Some(point) => format!("resumed after {} octets", point.octets),
            None => format!("{} octets of content", payload.content_length),
        };
        if payload.left_out > 0 {
            detail = format!("{detail}, {} private extensions left out", payload.left_out);
        }
        if sending.reason != StartReason::default() {
            detail = format!("{detail}, {}", sending.reason);
        }
        sending.record = Some(record);
        sending.started = Some(now.mono);
        sending.started_at = resume.as_ref().map_or(0, |point| point.octets);
        sending.meter.at(now.mono, sending.started_at);
        let bytes = sending.bytes();
        let payload = Payload {
            head: payload.head,
            content_length: payload.content_length,
            tail: payload.tail,
        };
        cx.request(id, Request::Transfer { payload, resume });
        cx.event(Level::Info, Kind::TransferStarted, detail)
            .association(id)
            .channel(Some(channel))
            .message(message)
            .entry(entry)
            .precedence(precedence)
            .bytes(bytes);
        cx.pause_at_start(id, entry);
    }

    /// What is critical of this copy has no form in the dialect that its peer has by now: it is routed
    /// again, which reports it.
    pub(crate) fn route_instead(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        record: &Record,
    ) {
        let Some(link) = cx.associations.get_mut(&id) else { return };
        link.idle_since = now.mono;
        let Some(sending) = link.sending.take() else { return };
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
        let Some(sending) = cx.associations.get_mut(&id).and_then(|l| l.sending.as_mut()) else {
            return;
        };
        sending.confirmed = true;
        let took = sending.started.map(|at| now.mono.since(at));
        let octets = sending.content_length.saturating_sub(sending.started_at);
        let (entry, message, precedence, bytes) =
            (sending.entry, sending.message.clone(), sending.precedence, sending.bytes());
        if let Some(took) = took {
            cx.tally.transfer_took(precedence, took);
            if let Some(state) = self.channels.get_mut(&channel) {
                state.line.at_least(octets, took);
            }
        }
        cx.event(Level::Info, Kind::TransferConfirmed, "")
            .association(id)
            .channel(Some(channel))
            .message(message)
            .entry(entry)
            .precedence(precedence)
            .bytes(bytes);
        self.got_through(cx, now, channel, entry);
        let (batch, bodies) = cx.queue.forget(entry);
        let after = AfterCommit::Sent { batch: batch.clone(), bodies };
        let level = cx.level_of(id, None);
        let entries = Vec::new();
        cx.commit_for(level, batch, Pending::Commit { link: id, entries, after, charge: None });
    }

    /// What follows a transfer that failed on an association that lives on: it goes on where it
    /// may, else it is tried again later.
    pub(crate) fn after_failure(&mut self, cx: &mut Context, now: Now, id: AssociationId) {
        let Some(failed) = cx.associations.get_mut(&id).and_then(|l| l.failed.take()) else {
            return;
        };
        match failed.goes_on {
            Some(goes_on) => cx.go_on(now, id, failed.entry, goes_on),
            None if failed.refused && self.judge_refused(cx, now, id, &failed) => {}
            None => {
                let seed = cx.rng.next_u64();
                cx.queue.scheduler.retry(now.mono, failed.entry, seed);
            }
        }
    }

    /// An entry whose transfer was cut off and cannot go on waits again. The first loss is the
    /// link's; one that is lost again waits for longer, so that others get past it. Gives whether it
    /// does.
    pub(crate) fn begin_again(&mut self, cx: &mut Context, now: Now, entry: EntryId) -> bool {
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

// ----- what the edge answers ----------------------------------------------------------------------

impl Node {
    pub(crate) fn verified(&mut self, now: Now, token: Token, right: bool) {
        let Some(Pending::Verify { link: id, bind }) = self.cx.commits.pending.remove(&token)
        else {
            return;
        };
        match bind {
            VerifiedBind::User { mailbox, origin, stale } => {
                return self.user_verified(now, id, &mailbox, origin, right && !stale);
            }
            VerifiedBind::Initiator { origin, name, password } => {
                return self.peer_verified(now, id, (origin, name, password), right);
            }
            VerifiedBind::Responder => {}
        }
        let Some(link) = self.cx.associations.get(&id) else { return };
        if link.phase != Phase::Opening {
            return;
        }
        match (link.channel(), right) {
            (Some(channel), true) => self.outbound.initiator_open(&mut self.cx, now, id, channel),
            (Some(channel), false) => self.cx.refuse_responder(id, channel, "wrong password"),
            (None, _) => {}
        }
    }

    pub(crate) fn loaded(&mut self, now: Now, token: Token, result: Result<Option<Bytes>, String>) {
        let (id, entry) = match self.cx.commits.pending.remove(&token) {
            Some(Pending::Load { link, entry }) => (link, entry),
            Some(Pending::Unrouted { entry }) => {
                return self.outbound.unrouted_loaded(&mut self.cx, now, entry, result);
            }
            Some(Pending::Late { entry, why }) => {
                return self.outbound.late_loaded(&mut self.cx, now, entry, why, result);
            }
            _ => return,
        };
        if !self.cx.is_sending(id, entry) {
            // The association ended meanwhile; the entry was given back.
            return;
        }
        let begun = match result {
            Ok(Some(octets)) => self.send_record(now, id, entry, &octets),
            Ok(None) => Err("the store has no such entry".to_owned()),
            Err(error) => Err(error),
        };
        if let Err(error) = begun {
            self.cx.event(Level::Error, Kind::StoreFailed, error).association(id).entry(entry);
            if let Some(link) = self.cx.associations.get_mut(&id) {
                link.sending = None;
            }
            let seed = self.cx.rng.next_u64();
            self.cx.queue.scheduler.retry(now.mono, entry, seed);
        }
    }
}

impl Context {
    /// Whether this association took up this entry, and has it still.
    pub(crate) fn is_sending(&self, id: AssociationId, entry: EntryId) -> bool {
        let sending = self.associations.get(&id).and_then(|link| link.sending.as_ref());
        sending.is_some_and(|sending| sending.entry == entry)
    }

    pub(crate) fn content(&mut self, token: Token, result: Result<Bytes, String>) {
        let Some(Pending::Content { link: id, transfer }) = self.commits.pending.remove(&token)
        else {
            return;
        };
        let sending = self.associations.get(&id).and_then(|l| l.sending.as_ref());
        if sending.is_none_or(|s| s.number != transfer) {
            // The transfer it was read for failed meanwhile.
            return;
        }
        match result {
            Ok(octets) => self.request(id, Request::Content(octets)),
            Err(error) => {
                let about = sending.map(|s| (s.message.clone(), s.entry, s.precedence));
                let draft = self.event(Level::Error, Kind::StoreFailed, error).association(id);
                if let Some((message, entry, precedence)) = about {
                    draft.message(message).entry(entry).precedence(precedence);
                } else {
                    drop(draft);
                }
                self.request(id, Request::ContentFailed);
            }
        }
    }
}
