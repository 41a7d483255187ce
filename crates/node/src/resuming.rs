//! How transfers that were cut off go on: in either direction, whoever opened the association.
//!
//! | Opened by | Sent by | Then |
//! |---|---|---|
//! | us | us | we recover the association and go on |
//! | us | the peer | we recover it and give the turn; the peer goes on |
//! | the peer | us | we wait for the peer to recover it and go on in our turn; where `resume` is `either`, we ask ourselves after a while |
//! | the peer | the peer | the peer recovers it |

use crate::api::{ChannelId, Output};
use crate::association::{Association, Failed, GoesOn, Phase, Sending};
use crate::blame::Fault;
use crate::config::Resume;
use crate::context::Context;
use crate::event::{Kind, Level};
use crate::machines::Arrivals;
use crate::machines::Outbound;
use crate::node::Node;
use crate::recovery::{Held, KEPT, Lost, LostReceive, LostSend, PEERS_LEAD, PEERS_TURN};
use base::{AssociationId, EntryId, Now};
use engine::journal::SpoolId;
use osi::api::{RefuseReason, Request};
use osi::session::service::ConnectionReference;
use scheduler::{NEVER, StartReason};
use std::net::IpAddr;

/// How often a transfer goes on after a loss with no checkpoint confirmed in between, before it
/// begins again.
pub(crate) const MAX_RESUMES: u8 = 4;

// ----- when an association ends -----------------------------------------------------------------------

impl Node {
    /// The association ended: what it was sending waits again. Where the peer had confirmed a
    /// checkpoint, it goes on there once the association is recovered. Gives whose fault it was.
    pub(crate) fn give_back(&mut self, now: Now, id: AssociationId, lost: bool) -> Fault {
        let offered = self.cx.recovery.take_offered(id);
        let Some(link) = self.cx.associations.get_mut(&id) else { return Fault::Link };
        // Nothing is recovered for an end, nor under another configuration.
        let lost = lost && !self.cx.life.stopping && link.drain.is_none();
        let (channel, resumes) = (link.channel(), link.resumes.take());
        let abort = link.abort;
        let blames = lost && !link.leaving && !link.interrupting;
        match offered {
            // The association was lost before the peer had answered: it is asked again.
            Some(offered) if lost => {
                let (given_up, replaced) = self.cx.recovery.keep_again(offered);
                self.give_up_lost(now, given_up);
                replaced
                    .into_iter()
                    .for_each(|spool| self.arrivals.drop_arrival(&mut self.cx, spool));
            }
            Some(offered) => self.arrivals.let_lost_go(&mut self.cx, now, offered.lost),
            None => {}
        }
        match (resumes, channel) {
            // The turn had not come yet.
            (Some(send), Some(channel)) if lost => {
                self.cx.keep_lost(now, id, channel, send.entry, send.goes_on, Some(send.until));
            }
            (Some(send), _) => _ = self.cx.queue.scheduler.put_back(now.mono, send.entry),
            (None, _) => {}
        }
        let Some(failed) = self.cx.take_failed(id) else { return Fault::Link };
        if let Some(channel) = channel.filter(|_| blames) {
            let fault = self.outbound.judge(&mut self.cx, now, id, channel, &failed, abort);
            if fault != Fault::Link {
                return fault;
            }
        }
        match (failed.goes_on.or(failed.if_lost), channel) {
            (Some(goes_on), Some(channel)) if lost => {
                self.cx.keep_lost(now, id, channel, failed.entry, goes_on, None);
            }
            _ if !lost => _ = self.cx.queue.scheduler.put_back(now.mono, failed.entry),
            _ if self.outbound.begin_again(&mut self.cx, now, failed.entry) => {
                self.delivery.waits_for_bind(&mut self.cx, failed.entry)
            }
            _ => {}
        }
        Fault::Link
    }
}

impl Context {
    /// The transfer that an association leaves behind.
    pub(crate) fn take_failed(&mut self, id: AssociationId) -> Option<Failed> {
        let link = self.associations.get_mut(&id)?;
        let Some(sending) = link.sending.take().filter(|s| !s.confirmed) else {
            return link.failed.take();
        };
        let paused = self.queue.scheduler.is_paused(sending.entry);
        let goes_on = sending.goes_on().filter(|_| sending.resumes < MAX_RESUMES || paused);
        self.cut_off(id, &sending);
        let place = self.associations.get(&id).and_then(|link| sending.place(&link.stack));
        let place = place.filter(|_| !paused);
        let Sending { entry, message, record, .. } = sending;
        let record = record.map(Box::new);
        Some(Failed { entry, goes_on, if_lost: None, place, refused: false, record, message })
    }

    /// Keeps a transfer of ours that was cut off, until its association is recovered.
    pub(crate) fn keep_lost(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        entry: EntryId,
        mut goes_on: GoesOn,
        until: Option<base::Instant>,
    ) {
        let Some(link) = self.associations.get(&id) else { return };
        let (ours, remote) = (link.is_initiator(), link.remote);
        goes_on.lost_with(&link.reference);
        let resume = self.config.peer(channel.peer).map(|peer| peer.resume).unwrap_or_default();
        let asks_at = (!ours && resume == Resume::Either).then(|| now.mono + PEERS_LEAD);
        let usual = if ours || asks_at.is_some() { KEPT } else { PEERS_TURN };
        let item = self.queue.get(entry);
        let (expires, precedence) =
            (item.map_or(NEVER, |item| item.expires), item.map(|item| item.precedence));
        let until = until.unwrap_or_else(|| self.kept_until(now, channel, usual, expires));
        if !ours {
            let octets = goes_on.point.octets;
            let wait = until.since(now.mono).as_secs();
            let after = asks_at.map(|_| format!("; we ask for it ourselves after {PEERS_LEAD:?}"));
            let detail = format!(
                "cut off after {octets} confirmed octets: waits up to {wait} s for the peer, which \
                 opened the association, to recover it (X.228 7.8.3){}",
                after.unwrap_or_default()
            );
            let draft = self.event(Level::Info, Kind::Held, detail).channel(Some(channel));
            let draft = draft.association(id).entry(entry);
            if let Some(precedence) = precedence {
                draft.precedence(precedence);
            }
        }
        let lost = LostSend { entry, goes_on, remote, ours, asks: ours, until, asked: 0 };
        self.recovery.keep_send(channel, lost, asks_at);
    }
}

impl Arrivals {
    /// The association ended: what was arriving is kept for a recovery where that is possible, else
    /// thrown away. What had ended goes on to its commit: nobody hears of it, and the peer is told
    /// when it recovers the association, or its repetition is recognised.
    pub(crate) fn drop_receiving(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        was_open: bool,
        lost: bool,
    ) {
        let Some(link) = cx.associations.get_mut(&id) else { return };
        let state = link.stack.take_interrupted().filter(|_| was_open);
        let (remote, ours, channel) = (link.remote, link.is_initiator(), link.channel());
        let (lost_on, idle_since) = (link.reference.clone(), link.idle_since);
        // What we released, or do not open again, the peer cannot go on with.
        let may = !ours || (lost && !cx.life.stopping && link.drain.is_none());
        let spool = link.receiving.take().or_else(|| link.suspended.take());
        self.drop_suspended(cx, id);
        let arrival = spool.and_then(|spool| self.open.get_mut(&spool));
        let kept_until = arrival.as_ref().and_then(|a| a.kept_until);
        let held = match (spool, arrival) {
            (Some(spool), Some(a)) if !a.is_sound() || !a.ended => {
                Some((Held::Part(spool), a.is_sound()))
            }
            (Some(spool), _) => Some((Held::Ended(spool), true)),
            (None, _) => Some((Held::Secured, state.as_ref().is_some_and(|s| s.is_completed()))),
        };
        let Some((held, sound)) = held else { return };
        let timeout = channel.and_then(|c| cx.peer_and_channel(c));
        let timeout = timeout.map(|(_, c)| c.rts.transfer_timeout).unwrap_or_default();
        // Whoever has not heard of the end for so long has given up itself.
        let recent = held != Held::Secured || now.mono.since(idle_since) <= timeout;
        let state = state.filter(|s| s.serial() > 0 && sound && may && recent);
        let dropped = match (channel, state) {
            (Some(channel), Some(state)) => {
                let until = kept_until.unwrap_or_else(|| cx.receive_kept_until(now, channel));
                if let Held::Part(spool) = held
                    && let Some(arrival) = self.open.get_mut(&spool)
                {
                    arrival.kept_until = Some(until);
                }
                cx.recovery.keep_receive(LostReceive {
                    channel,
                    state,
                    held,
                    remote,
                    ours,
                    lost_on,
                    until,
                    asked: 0,
                })
            }
            _ => match held {
                Held::Part(spool) => Some(spool),
                Held::Ended(_) | Held::Secured => None,
            },
        };
        if let Some(spool) = dropped {
            self.drop_arrival(cx, spool);
        }
    }
}

impl Outbound {
    /// A transfer to us is secured; if its association was lost meanwhile, the peer can be told.
    pub(crate) fn secured_late(&mut self, cx: &mut Context, spool: SpoolId) {
        if let Some(channel) = cx.recovery.secured(spool) {
            self.channels.get_mut(&channel);
        }
    }
}

// ----- while it waits ---------------------------------------------------------------------------------

impl Node {
    /// Does what the time brings for what waits for a recovery.
    pub(crate) fn mind_recovery(&mut self, now: Now) {
        for channel in self.cx.recovery.start_asking(now.mono) {
            self.outbound.channels.get_mut(&channel);
        }
        let (sends, spools) = self.cx.recovery.expire(now.mono);
        for (channel, lost) in sends {
            let octets = lost.goes_on.point.octets;
            let detail = format!(
                "the association was not recovered in time: begins again, {octets} octets are sent twice"
            );
            self.cx
                .event(Level::Warning, Kind::TransferFailed, detail)
                .channel(Some(channel))
                .entry(lost.entry);
            if lost.asks {
                // Whoever could not recover it for so long lets others get past it.
                let seed = self.cx.rng.next_u64();
                self.cx.queue.scheduler.retry(now.mono, lost.entry, seed);
            } else {
                self.outbound.begin_again(&mut self.cx, now, lost.entry);
            }
        }
        for spool in spools {
            self.arrivals.drop_arrival(&mut self.cx, spool);
        }
    }

    /// The recovery was refused, or is asked for in vain: a transfer of ours begins again.
    pub(crate) fn give_up_lost(&mut self, now: Now, lost: Lost) {
        if let Some(send) = lost.send {
            self.outbound.begin_again(&mut self.cx, now, send.entry);
        }
        self.arrivals.drop_lost(&mut self.cx, lost.receive.as_ref());
    }
}

impl Arrivals {
    /// What was lost is not recovered, for reasons of ours.
    pub(crate) fn let_lost_go(&mut self, cx: &mut Context, now: Now, lost: Lost) {
        if let Some(send) = lost.send {
            cx.queue.scheduler.put_back(now.mono, send.entry);
        }
        self.drop_lost(cx, lost.receive.as_ref());
    }

    pub(crate) fn drop_lost(&mut self, cx: &mut Context, receive: Option<&LostReceive>) {
        if let Some(LostReceive { held: Held::Part(spool), .. }) = receive {
            self.drop_arrival(cx, *spool);
        }
    }
}

impl Context {
    /// An operator holds an entry: it waits for no recovery, and begins again once released.
    pub(crate) fn hold_lost(&mut self, now: Now, id: EntryId) {
        for entry in self.recovery.let_go(.., |_, entry| entry == id) {
            self.queue.scheduler.put_back(now.mono, entry);
        }
    }
}

// ----- recovered --------------------------------------------------------------------------------------

impl Node {
    /// The peer recovers this association, as we asked.
    pub(crate) fn association_recovered(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
    ) {
        let Some(offered) = self.cx.recovery.take_offered(id) else { return };
        if let Some(link) = self.cx.associations.get_mut(&id) {
            link.recovered = Some(offered.reference);
        }
        self.outbound.initiator_open(&mut self.cx, now, id, channel);
        self.arrivals.adopt(&mut self.cx, id, offered.lost.receive.as_ref());
        if let Some(send) = offered.lost.send {
            self.cx.go_on(now, id, send.entry, send.goes_on);
        }
    }

    /// A peer asks to recover an association that it has lost.
    pub(crate) fn recover_asked(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        reference: ConnectionReference,
    ) {
        // A recovery carries no credentials: it must come from where the lost association came
        // from, and name it; the names we give are not to be guessed.
        let remote = self.cx.associations.get(&id).and_then(|l| l.remote);
        let allowed = self.cx.check_origin(id, channel.peer).is_ok();
        if allowed && let Some(limit) = self.cx.is_one_too_many(channel) {
            let why = format!("busy: {}", self.cx.config.limits.describe(limit));
            return self.cx.refuse_recovery(now, id, RefuseReason::Busy, &why);
        }
        if allowed {
            self.end_stale(now, id, channel, &reference);
            if let Some((asking, is_ours)) = self.cx.recovery.asked_by_us(channel, &reference) {
                if is_ours {
                    let why = "busy: we ask for the recovery of that association, which we opened";
                    return self.cx.refuse_recovery(now, id, RefuseReason::Busy, why);
                }
                self.stop_asking(now, asking);
            }
            if self.cx.recovery.is_committing(channel, &reference) {
                let why = "busy: what came on that association is being secured";
                return self.cx.refuse_recovery(now, id, RefuseReason::Busy, why);
            }
        }
        let mut lost = match allowed {
            true => self.cx.take_lost(channel, remote, &reference),
            false => Lost::default(),
        };
        let two_way = self.cx.associations.get(&id).is_some_and(|link| link.two_way);
        if let Some(send) = lost.send.take_if(|_| !two_way) {
            // Who does not get the turn cannot go on.
            self.outbound.begin_again(&mut self.cx, now, send.entry);
        }
        if lost.is_empty() {
            let why = "no such association here";
            return self.cx.refuse_recovery(now, id, RefuseReason::CannotRecover, why);
        }
        self.arrivals.adopt(&mut self.cx, id, lost.receive.as_ref());
        let waits = lost.send.is_some();
        if let Some(link) = self.cx.associations.get_mut(&id) {
            link.recovered = Some(reference);
            link.resumes = lost.send;
        }
        self.cx.request(id, Request::AcceptRecover(lost.receive.map(|lost| lost.state)));
        self.cx.mark_open(now, id, "as responder, recovered");
        if waits {
            self.cx.want_turn(now, id);
        }
    }

    /// The peer has lost an association of which we think that it is there: it is not.
    fn end_stale(
        &mut self,
        now: Now,
        asking: AssociationId,
        channel: ChannelId,
        reference: &ConnectionReference,
    ) {
        let remote = self.cx.associations.get(&asking).and_then(|l| l.remote);
        let is_it = |l: &&Association| {
            let named = l.reference == *reference || l.recovered.as_ref() == Some(reference);
            named && l.phase == Phase::Open && (l.is_initiator() || l.remote == remote)
        };
        let stale: Vec<AssociationId> = self
            .cx
            .associations_of(channel)
            .filter(|l| l.id != asking)
            .filter(is_it)
            .map(|l| l.id)
            .collect();
        for id in stale {
            let why = "the peer has lost it and recovers it (X.228 7.8.3)";
            self.association_over(now, id, Kind::AssociationLost, why);
            self.remove_association(id);
            self.cx.output(Output::Drop { association: id });
        }
    }

    /// The peer, which opened the lost association, asks for its recovery itself.
    fn stop_asking(&mut self, now: Now, id: AssociationId) {
        if let Some(link) = self.cx.associations.get_mut(&id) {
            link.leaving = true; // what it was to recover is kept
        }
        let why = "the peer recovers the association itself";
        self.association_over(now, id, Kind::AssociationReleased, why);
        self.remove_association(id);
        self.cx.output(Output::Drop { association: id });
    }
}

impl Arrivals {
    /// A transfer to us may go on on this association.
    pub(crate) fn adopt(
        &mut self,
        cx: &mut Context,
        id: AssociationId,
        receive: Option<&LostReceive>,
    ) {
        let Some(Held::Part(spool)) = receive.map(|lost| lost.held) else { return };
        if let Some(arrival) = self.open.get_mut(&spool) {
            arrival.link = id;
        }
        if let Some(link) = cx.associations.get_mut(&id) {
            link.suspended = Some(spool);
        }
    }
}

impl Context {
    /// What was lost with an association that this address may recover.
    pub(crate) fn take_lost(
        &mut self,
        channel: ChannelId,
        remote: Option<IpAddr>,
        reference: &ConnectionReference,
    ) -> Lost {
        let Context { config, recovery, .. } = self;
        let peer = config.peer(channel.peer);
        // Where we connected to is not where it comes from, if it has several addresses.
        let is_peers = peer.zip(remote).is_some_and(|(peer, remote)| {
            peer.addresses.contains(&remote) || peer.from.iter().any(|f| f.contains(remote))
        });
        recovery.take(channel, reference, |ours, from| match ours {
            true => is_peers,
            false => from == remote,
        })
    }

    /// The turn came: what was cut off goes on before anything else.
    pub(crate) fn resume_in_turn(&mut self, now: Now, id: AssociationId) {
        let Some(link) = self.associations.get_mut(&id) else { return };
        if link.is_ending() {
            return;
        }
        if let Some(send) = link.resumes.take() {
            self.go_on(now, id, send.entry, send.goes_on);
        }
    }

    /// Takes up a transfer that was cut off, on an association that is free.
    pub(crate) fn go_on(&mut self, now: Now, id: AssociationId, entry: EntryId, goes_on: GoesOn) {
        self.queue.scheduler.progress(now.mono, entry);
        self.load_to_send(id, entry, StartReason::default());
        if let Some(s) = self.associations.get_mut(&id).and_then(|l| l.sending.as_mut()) {
            s.resume = Some(goes_on.point);
            s.dialect = goes_on.dialect;
            s.tried = goes_on.tried;
            s.resumes = goes_on.resumes.saturating_add(1);
        }
    }
}
