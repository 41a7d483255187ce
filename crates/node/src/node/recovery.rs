//! How transfers that were cut off are resumed: in either direction, whichever end opened the
//! association.
//!
//! | Opened by | Sent by | Then |
//! |---|---|---|
//! | us | us | we recover the association and resume |
//! | us | the peer | we recover it and give the turn; the peer resumes |
//! | the peer | us | we wait for the peer to recover it and resume in our turn; where `resume` is `either`, we ask ourselves after a while |
//! | the peer | the peer | the peer recovers it |

use crate::api::event::{Kind, LogLevel};
use crate::association::Association;
use crate::association::lost::LostTransfers;
use crate::node::Node;
use base::{AssociationId, Now};
use guard::blame::TransferFault;
use osi::api::{RefuseReason, Request};
use osi::session::service::ConnectionReference;
use scheduler::ChannelId;

impl Node {
    /// The association ended: what it was sending waits again. Where the peer had confirmed a
    /// checkpoint, it is resumed there once the association is recovered. Gives whose fault it was.
    pub(crate) fn give_back(&mut self, now: Now, id: AssociationId, lost: bool) -> TransferFault {
        let offered = self.cx.recovery.take_offered(id);
        let Some(association) = self.cx.associations.get_mut(&id) else {
            return TransferFault::Connection;
        };
        // Nothing is recovered under another configuration. What an end of this process leaves, the next
        // one resumes.
        let stopping = self.cx.life.is_stopping();
        let lost = (lost || stopping) && association.drained().is_none();
        let blames =
            lost && !stopping && !association.is_leaving() && !association.is_interrupting();
        let p1 = association.p1_mut();
        let (channel, resumes, abort) = match p1 {
            Some(p1) => (Some(p1.channel), p1.resumes.take(), p1.abort),
            None => (None, None, None),
        };
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
                self.outbound.keep_lost(
                    &mut self.cx,
                    now,
                    id,
                    channel,
                    (send.entry, send.resumption),
                    Some(send.until),
                );
            }
            (Some(send), _) => _ = self.cx.queue.scheduler.put_back(now.mono, send.entry),
            (None, _) => {}
        }
        let Some(failed) = self.outbound.take_failed(&mut self.cx, id) else {
            return TransferFault::Connection;
        };
        if let Some(channel) = channel.filter(|_| blames) {
            let fault = self.outbound.judge(&mut self.cx, now, id, channel, &failed, abort);
            if fault != TransferFault::Connection {
                return fault;
            }
        }
        match (failed.resumption.or(failed.if_lost), channel) {
            (Some(resumption), Some(channel)) if lost => {
                self.outbound.keep_lost(
                    &mut self.cx,
                    now,
                    id,
                    channel,
                    (failed.entry, resumption),
                    None,
                );
            }
            _ if !lost => _ = self.cx.queue.scheduler.put_back(now.mono, failed.entry),
            _ if self.outbound.begin_again(&mut self.cx, now, failed.entry) => {
                self.delivery.waits_for_bind(&mut self.cx, failed.entry);
            }
            _ => {}
        }
        TransferFault::Connection
    }

    /// Asks for recoveries that are due, and gives up what was kept long enough.
    pub(crate) fn expire_recoveries(&mut self, now: Now) {
        for channel in self.cx.recovery.start_asking(now.mono) {
            self.outbound.channels.get_mut(&channel);
        }
        let (sends, spools) = self.cx.recovery.expire(now.mono);
        for (channel, lost) in sends {
            let octets = lost.resumption.point.octets;
            let detail = format!(
                "the association was not recovered in time: begins again, {octets} octets are sent twice"
            );
            self.cx
                .event(LogLevel::Warning, Kind::TransferFailed, detail)
                .channel(Some(channel))
                .entry(lost.entry);
            if lost.asks {
                // Whoever could not recover it for so long lets others get past it.
                let seed = self.cx.rng.next_u64();
                self.cx.queue.scheduler.retry(now.mono, lost.entry, seed);
                self.cx.kept_sends.progressed();
            } else {
                self.outbound.begin_again(&mut self.cx, now, lost.entry);
            }
        }
        for spool in spools {
            self.arrivals.drop_arrival(&mut self.cx, spool);
        }
    }

    /// The recovery was refused, or asked for too often: a transfer of ours begins again.
    pub(crate) fn give_up_lost(&mut self, now: Now, lost: LostTransfers) {
        if let Some(send) = lost.send {
            self.outbound.begin_again(&mut self.cx, now, send.entry);
        }
        self.arrivals.drop_lost(&mut self.cx, lost.receive.as_ref());
    }

    /// The peer recovers this association, as we asked.
    pub(crate) fn association_recovered(
        &mut self,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
    ) {
        let Some(offered) = self.cx.recovery.take_offered(id) else { return };
        if let Some(p1) = self.cx.associations.p1_mut(id) {
            p1.recovered = Some(offered.reference);
        }
        self.outbound.initiator_open(&mut self.cx, now, id, channel);
        self.arrivals.adopt(&mut self.cx, id, offered.lost.receive.as_ref());
        if let Some(send) = offered.lost.send {
            self.outbound.resume_transfer(&mut self.cx, now, id, send.entry, send.resumption);
        }
    }

    fn refuse_recovery(&mut self, now: Now, id: AssociationId, reason: RefuseReason, why: &str) {
        self.admission.refuse_recovery(&mut self.cx, now, id, reason, why);
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
        let remote = self.cx.associations.get(&id).and_then(|l| l.connection.remote);
        let is_guessing = self.cx.recovery.wrong.are_over(&(channel, remote));
        let checked = self.admission.check_origin(&self.cx, id, channel.peer);
        let allowed = !is_guessing && checked.is_ok();
        if allowed && let Some(why) = self.cx.disabled(channel) {
            let why = format!("busy: {why}");
            return self.refuse_recovery(now, id, RefuseReason::Busy, &why);
        }
        if allowed && let Some(limit) = self.admission.is_one_too_many(&self.cx, channel) {
            let why = format!("busy: {}", self.cx.config.limits.describe(limit));
            return self.refuse_recovery(now, id, RefuseReason::Busy, &why);
        }
        if allowed {
            self.end_stale(now, id, channel, &reference);
            if let Some((asking, is_ours)) = self.cx.recovery.asked_by_us(channel, &reference) {
                if is_ours {
                    let why = "busy: we ask for the recovery of that association, which we opened";
                    return self.refuse_recovery(now, id, RefuseReason::Busy, why);
                }
                self.abandon(now, asking, "the peer recovers the association itself");
            }
            if self.cx.recovery.is_committing(channel, &reference) {
                let why = "busy: what came on that association is being secured";
                return self.refuse_recovery(now, id, RefuseReason::Busy, why);
            }
        }
        let mut lost = match allowed {
            true => self.outbound.take_lost(&mut self.cx, channel, remote, &reference),
            false => LostTransfers::default(),
        };
        let two_way = self.cx.associations.get(&id).is_some_and(|a| a.is_two_way());
        if let Some(send) = lost.send.take_if(|_| !two_way) {
            // Without the turn we cannot resume.
            self.outbound.begin_again(&mut self.cx, now, send.entry);
        }
        if lost.is_empty() {
            // Elsewhere nothing is to be had, and nobody keeps the peer from what is its own.
            let is_there =
                |a: &Association| a.channel() == Some(channel) && a.connection.remote == remote;
            if self.cx.recovery.waits_for(channel, remote)
                || self.cx.associations.values().any(|a| a.id != id && is_there(a))
            {
                self.cx.recovery.wrong.was_wrong((channel, remote));
            }
            let why = "no such association here, or too many such names since the peer bound";
            return self.refuse_recovery(now, id, RefuseReason::CannotRecover, why);
        }
        self.arrivals.adopt(&mut self.cx, id, lost.receive.as_ref());
        let waits = lost.send.is_some();
        if let Some(p1) = self.cx.associations.p1_mut(id) {
            p1.recovered = Some(reference);
            p1.resumes = lost.send;
        }
        self.cx.request(id, Request::AcceptRecover(lost.receive.map(|lost| lost.state)));
        self.admission.mark_open(&mut self.cx, now, id, "as responder, recovered");
        if waits {
            self.outbound.want_turn(&mut self.cx, now, id);
        }
    }

    /// The peer has lost an association that we still have open: it ends.
    fn end_stale(
        &mut self,
        now: Now,
        asking: AssociationId,
        channel: ChannelId,
        reference: &ConnectionReference,
    ) {
        let remote = self.cx.associations.get(&asking).and_then(|l| l.connection.remote);
        let is_it = |l: &&Association| {
            let named = l.p1().is_some_and(|p1| {
                p1.reference == *reference || p1.recovered.as_ref() == Some(reference)
            });
            named && l.is_open() && (l.is_initiator() || l.connection.remote == remote)
        };
        let stale: Vec<AssociationId> = self
            .cx
            .associations
            .of_channel(channel)
            .filter(|l| l.id != asking)
            .filter(is_it)
            .map(|l| l.id)
            .collect();
        for id in stale {
            let why = "the peer has lost it and recovers it (X.228 7.8.3)";
            self.drop_association(now, id, Kind::AssociationLost, why);
        }
    }
}
