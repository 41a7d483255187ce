//! Transfers of ours that survive the end of the process ([`crate::association::kept_sends`]).

use crate::api::event::{Kind, LogLevel};
use crate::association::kept_sends::KeptSend;
use crate::association::lost::LostSend;
use crate::association::recovery::{NOTED_AFTER, NOTED_BEYOND};
use crate::association::transfer::Resumption;
use crate::commits::pending::PendingAnswer;
use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, EntryId, Now, Precedence};
use scheduler::ChannelId;

impl Outbound {
    /// The peer confirmed a checkpoint on this association: that is stored if the transfer is long, or
    /// takes long.
    pub(crate) fn note_sending(&self, cx: &mut Context, now: Now, id: AssociationId) {
        let sending = cx.associations.get(&id).and_then(|association| association.sending());
        let is_due = sending.is_some_and(|sending| {
            let took = sending.started.map(|at| now.mono.since(at)).unwrap_or_default();
            let octets = sending.resume.as_ref().map_or(0, |point| point.octets);
            // One that was resumed has taken long already.
            took >= NOTED_AFTER || octets > NOTED_BEYOND || sending.started_at > 0
        });
        if is_due {
            cx.kept_sends.progressed();
            self.write_sends(cx, now);
        }
    }

    /// The value was written, or not.
    pub(crate) fn sends_written(&self, cx: &mut Context, now: Now) {
        cx.kept_sends.written();
        self.write_sends(cx, now);
    }

    /// Writes the value if that is due.
    pub(crate) fn write_sends(&self, cx: &mut Context, now: Now) {
        if !cx.kept_sends.is_due(now.mono) {
            return;
        }
        let mut all: Vec<KeptSend> = Vec::new();
        let keep = |channel: ChannelId, entry, of, resumption| {
            let (_, config) = cx.config.channel(channel)?;
            KeptSend::new((channel.peer, &config.name), entry, of, resumption)
        };
        for association in cx.associations.values() {
            let Some(p1) = association.p1() else { continue };
            // The turn has not come yet.
            if let Some(lost) = &p1.resumes {
                let of = (lost.ours, lost.remote);
                all.extend(keep(p1.channel, lost.entry, of, lost.resumption.clone()));
            }
            let Some(sending) = association.sending() else { continue };
            let Some(mut resumption) = sending.resumption().filter(|_| !sending.confirmed) else {
                continue;
            };
            resumption.lost_with(&p1.reference);
            let of = (association.is_initiator(), association.connection.remote);
            all.extend(keep(p1.channel, sending.entry, of, resumption));
        }
        for (channel, lost) in cx.recovery.sends() {
            let of = (lost.ours, lost.remote);
            all.extend(keep(channel, lost.entry, of, lost.resumption.clone()));
        }
        if all.is_empty() && cx.kept_sends.is_empty() {
            cx.kept_sends.nothing();
            return;
        }
        let level = all.iter().filter_map(|kept| cx.queue.get(kept.entry)).map(|i| i.precedence);
        let level = level.max().unwrap_or(Precedence::Deferred);
        let batch = vec![cx.kept_sends.write(now.mono, &all)];
        cx.commit_for(level, batch, PendingAnswer::KeptSends);
    }

    /// An entry was handed in at the start: if its transfer was cut off by the end of the process, it waits
    /// for the recovery of its association.
    pub(crate) fn take_up_sending(&self, cx: &mut Context, now: Now, entry: EntryId) {
        let Some(kept) = cx.kept_sends.take(entry) else { return };
        let Some(peer) = cx.config.peer(kept.peer) else { return };
        let Some(channel) = peer.channels.iter().find(|channel| channel.name == kept.channel)
        else {
            return;
        };
        let channel = ChannelId { peer: kept.peer, index: channel.index };
        if !cx.queue.scheduler.take_up(now.mono, entry, channel) {
            return;
        }
        let KeptSend { remote, ours, point, form, tried, head, .. } = kept;
        let octets = point.octets;
        let resumption = Resumption { point, form, tried, resumes: 0, head: Some(head) };
        let detail =
            format!("the process ended after {octets} confirmed octets: waits for its recovery");
        cx.event(LogLevel::Info, Kind::Held, detail).channel(Some(channel)).entry(entry);
        let lost =
            LostSend { entry, resumption, remote, ours, asks: ours, until: now.mono, asked: 0 };
        self.keep_until_recovered(cx, now, channel, lost, None);
    }
}
