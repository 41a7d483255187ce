//! Transfers of ours that were cut off.

use crate::api::event::{Kind, LogLevel};
use crate::association::lost::{LostSend, LostTransfers};
use crate::association::recovery::{KEPT, PEERS_LEAD, PEERS_TURN};
use crate::association::transfer::{FailedTransfer, Resumption, Sending};
use crate::config::Resume;
use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, EntryId, Now};
use engine::journal::SpoolId;
use osi::session::service::ConnectionReference;
use scheduler::{ChannelId, NEVER, StartReason};
use std::net::IpAddr;

/// How often a transfer is resumed after a loss with no checkpoint confirmed in between, before it
/// begins again.
pub(crate) const MAX_RESUMES: u8 = 4;

impl Outbound {
    /// The transfer that an association leaves behind.
    pub(crate) fn take_failed(
        &self,
        cx: &mut Context,
        id: AssociationId,
    ) -> Option<FailedTransfer> {
        let association = cx.associations.get_mut(&id)?;
        let Some(sending) = association.take_sending().filter(|s| !s.confirmed) else {
            return association.p1_mut()?.failed.take();
        };
        let paused = cx.queue.scheduler.is_paused(sending.entry);
        let resumption = sending.resumption().filter(|_| sending.resumes < MAX_RESUMES || paused);
        self.cut_off(cx, id, &sending);
        let place =
            cx.associations.get(&id).and_then(|association| sending.place(&association.stack));
        let place = place.filter(|_| !paused);
        let Sending { entry, message, record, .. } = sending;
        let record = record.map(Box::new);
        Some(FailedTransfer {
            entry,
            resumption,
            if_lost: None,
            place,
            refused: false,
            record,
            message,
        })
    }

    /// Keeps a transfer of ours that was cut off, until its association is recovered.
    pub(crate) fn keep_lost(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        channel: ChannelId,
        (entry, mut resumption): (EntryId, Resumption),
        until: Option<base::Instant>,
    ) {
        let Some(association) = cx.associations.get(&id) else { return };
        let (ours, remote) = (association.is_initiator(), association.connection.remote);
        if let Some(p1) = association.p1() {
            resumption.lost_with(&p1.reference);
        }
        let (asked, octets) = (0, resumption.point.octets);
        let lost = LostSend { entry, resumption, remote, ours, asks: ours, until: now.mono, asked };
        let (until, asks_at) = self.keep_until_recovered(cx, now, channel, lost, until);
        let precedence = cx.queue.get(entry).map(|item| item.precedence);
        if !ours {
            let wait = until.since(now.mono).as_secs();
            let after = asks_at.map(|_| format!("; we ask for it ourselves after {PEERS_LEAD:?}"));
            let detail = format!(
                "cut off after {octets} confirmed octets: waits up to {wait} s for the peer, which \
                 opened the association, to recover it (X.228 7.8.3){}",
                after.unwrap_or_default()
            );
            let draft = cx.event(LogLevel::Info, Kind::Held, detail).channel(Some(channel));
            let draft = draft.association(id).entry(entry);
            if let Some(precedence) = precedence {
                draft.precedence(precedence);
            }
        }
    }

    /// Keeps a transfer of ours until a time, or else as long as is usual. Gives until when, and when we ask
    /// for its recovery where that is the peer's turn first.
    pub(crate) fn keep_until_recovered(
        &self,
        cx: &mut Context,
        now: Now,
        channel: ChannelId,
        mut lost: LostSend,
        until: Option<base::Instant>,
    ) -> (base::Instant, Option<base::Instant>) {
        let resume = cx.config.peer(channel.peer).map(|peer| peer.resume).unwrap_or_default();
        let asks_at = (!lost.ours && resume == Resume::Either).then(|| now.mono + PEERS_LEAD);
        let usual = if lost.ours || asks_at.is_some() { KEPT } else { PEERS_TURN };
        let expires = cx.queue.get(lost.entry).map_or(NEVER, |item| item.expires);
        lost.until = until.unwrap_or_else(|| cx.kept_until(now, channel, usual, expires));
        let until = lost.until;
        cx.recovery.keep_send(channel, lost, asks_at);
        (until, asks_at)
    }

    /// A transfer to us is secured. If its association was lost meanwhile, a recovery can confirm it to
    /// the peer.
    pub(crate) fn secured_late(&mut self, cx: &mut Context, spool: SpoolId) {
        if let Some(channel) = cx.recovery.secured(spool) {
            self.channels.get_mut(&channel);
        }
    }

    /// What was lost with an association that this address may recover.
    pub(crate) fn take_lost(
        &self,
        cx: &mut Context,
        channel: ChannelId,
        remote: Option<IpAddr>,
        reference: &ConnectionReference,
    ) -> LostTransfers {
        let (config, recovery) = (&cx.config, &mut cx.recovery);
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

    /// The turn is ours: a transfer that was cut off is resumed first.
    pub(crate) fn resume_in_turn(&self, cx: &mut Context, now: Now, id: AssociationId) {
        let Some(association) = cx.associations.get_mut(&id) else { return };
        if association.is_ending() {
            return;
        }
        if let Some(send) = association.p1_mut().and_then(|p1| p1.resumes.take()) {
            self.resume_transfer(cx, now, id, send.entry, send.resumption);
        }
    }

    /// Resumes a transfer that was cut off, on an association that is free.
    pub(crate) fn resume_transfer(
        &self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        entry: EntryId,
        resumption: Resumption,
    ) {
        cx.queue.scheduler.progress(now.mono, entry);
        cx.load_to_send(id, entry, StartReason::default());
        if let Some(s) = cx.associations.get_mut(&id).and_then(|l| l.sending_mut()) {
            s.resume = Some(resumption.point);
            s.form = resumption.form;
            s.tried = resumption.tried;
            s.expected = resumption.head;
            s.resumes = resumption.resumes.saturating_add(1);
        }
    }
}
