//! Transfers of ours that survive the end of the process: where each may be resumed is in the store.
//!
//! All of them are one value, written anew after a checkpoint that a peer confirms of a transfer that is long
//! or takes long: after each, unless they follow each other so fast that they cost little. What is in it of
//! transfers that ended meanwhile is of no meaning.

use crate::api::event::{Kind, LogLevel};
use crate::arrivals::kept::{NOTED_AFTER, NOTED_BEYOND};
use crate::association::lost::LostSend;
use crate::association::transfer::{Resumption, Sending};
use crate::commits::pending::PendingAnswer;
use crate::context::Context;
use crate::outbound::Outbound;
use base::{AssociationId, EntryId, Instant, Now, PeerId};
use engine::journal::Op;
use osi::api::ResumePoint;
use osi::session::service::ConnectionReference;
use p1::Dialect;
use scheduler::ChannelId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// The name of the value in the store.
pub const SENDING: &str = "sending";

/// The time from one write to the next on average, and for how long they may follow each other at once: the
/// confirms of a slow line come together. No longer than [`MOST_UNWRITTEN`] are confirmed.
const WRITTEN_EVERY: Duration = Duration::from_millis(10);
const AT_ONCE: Duration = Duration::from_millis(100);

/// Most checkpoints confirmed between two writes. The receiver remembers more.
const MOST_UNWRITTEN: u32 = 32;

/// The first octet of the value.
const VERSION: u8 = 1;

/// A digest of what a transfer begins with: a resumed transfer has the same octets.
pub(crate) type HeadDigest = [u8; 32];

/// A transfer of ours, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KeptSend {
    entry: EntryId,
    peer: PeerId,
    /// The channel's name: its number may change with the configuration.
    channel: String,
    /// Where its association came from, if the peer opened it.
    remote: Option<IpAddr>,
    /// Whether we opened its association.
    ours: bool,
    point: ResumePoint,
    dialect: Option<Dialect>,
    tried: Vec<ConnectionReference>,
    head: HeadDigest,
}

/// The transfers that are stored.
#[derive(Debug, Default)]
pub(crate) struct KeptSends {
    /// Those of an earlier run whose entries were not handed in yet.
    found: BTreeMap<EntryId, KeptSend>,
    /// Checkpoints confirmed since the value was written last.
    unwritten: u32,
    /// What was written was due until this time, at [`WRITTEN_EVERY`].
    written_for: Instant,
    writing: bool,
}

impl KeptSends {
    /// When the value is to be written, if it is.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let due = self.unwritten > 0 && !self.writing;
        due.then(|| Instant(self.written_for.0.saturating_sub(AT_ONCE.as_micros() as u64)))
    }

    fn is_due(&self, now: Instant) -> bool {
        let due = self.deadline();
        due.is_some_and(|at| at <= now || self.unwritten >= MOST_UNWRITTEN)
    }

    /// The value found at the start. That of another release is not read: those transfers begin again.
    pub(crate) fn recovered(&mut self, value: &[u8]) {
        let all = value.strip_prefix(&[VERSION]).and_then(|fields| {
            postcard::take_from_bytes::<Vec<KeptSend>>(fields).ok().map(|(all, _)| all)
        });
        self.found = all.unwrap_or_default().into_iter().map(|kept| (kept.entry, kept)).collect();
    }

    /// All entries were handed in.
    pub(crate) fn started(&mut self) {
        self.found.clear();
    }
}

impl Sending {
    /// The digest of its head.
    pub(crate) fn head_digest(&self) -> HeadDigest {
        Sha256::digest(&self.head).into()
    }
}

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
            cx.kept_sends.unwritten += 1;
            self.write_sends(cx, now);
        }
    }

    /// The value was written, or not.
    pub(crate) fn sends_written(&self, cx: &mut Context, now: Now) {
        cx.kept_sends.writing = false;
        self.write_sends(cx, now);
    }

    /// Writes the value if that is due.
    pub(crate) fn write_sends(&self, cx: &mut Context, now: Now) {
        if !cx.kept_sends.is_due(now.mono) {
            return;
        }
        let mut all: Vec<KeptSend> = Vec::new();
        for association in cx.associations.values() {
            let (Some(p1), Some(sending)) = (association.p1(), association.sending()) else {
                continue;
            };
            let Some(mut resumption) = sending.resumption().filter(|_| !sending.confirmed) else {
                continue;
            };
            resumption.lost_with(&p1.reference);
            let lost = (association.is_initiator(), association.connection.remote);
            all.extend(kept_send(cx, p1.channel, sending.entry, lost, &resumption));
        }
        for (channel, lost) in cx.recovery.sends() {
            let of = (lost.ours, lost.remote);
            all.extend(kept_send(cx, channel, lost.entry, of, &lost.resumption));
        }
        if all.is_empty() {
            cx.kept_sends.unwritten = 0; // it has ended meanwhile
            return;
        }
        // Plain data into a growing buffer cannot fail.
        let value = postcard::to_extend(&all, vec![VERSION]).unwrap_or_default().into();
        let level = all.iter().filter_map(|kept| cx.queue.get(kept.entry)).map(|i| i.precedence);
        let level = level.max().unwrap_or(base::Precedence::Deferred);
        let kept = &mut cx.kept_sends;
        (kept.writing, kept.unwritten) = (true, 0);
        kept.written_for = kept.written_for.max(now.mono) + WRITTEN_EVERY;
        let batch = vec![Op::PutMeta { name: SENDING.to_owned(), value }];
        cx.commit_for(level, batch, PendingAnswer::KeptSends);
    }

    /// An entry was handed in at the start: if its transfer was cut off by the end of the process, it waits
    /// for the recovery of its association.
    pub(crate) fn take_up_sending(&self, cx: &mut Context, now: Now, entry: EntryId) {
        let Some(kept) = cx.kept_sends.found.remove(&entry) else { return };
        let Some(peer) = cx.config.peer(kept.peer) else { return };
        let Some(channel) = peer.channels.iter().find(|channel| channel.name == kept.channel)
        else {
            return;
        };
        let channel = ChannelId { peer: kept.peer, index: channel.index };
        if !cx.queue.scheduler.take_up(now.mono, entry, channel) {
            return;
        }
        let KeptSend { remote, ours, point, dialect, tried, head, .. } = kept;
        let octets = point.octets;
        let resumption = Resumption { point, dialect, tried, resumes: 0, head: Some(head) };
        let detail =
            format!("the process ended after {octets} confirmed octets: waits for its recovery");
        cx.event(LogLevel::Info, Kind::Held, detail).channel(Some(channel)).entry(entry);
        let lost =
            LostSend { entry, resumption, remote, ours, asks: ours, until: now.mono, asked: 0 };
        self.keep_until_recovered(cx, now, channel, lost, None);
    }
}

/// A transfer as it is stored; `None` where its channel is gone, or nothing was sent.
fn kept_send(
    cx: &Context,
    channel: ChannelId,
    entry: EntryId,
    (ours, remote): (bool, Option<IpAddr>),
    resumption: &Resumption,
) -> Option<KeptSend> {
    let (_, of) = cx.config.channel(channel)?;
    let Resumption { point, dialect, tried, head, .. } = resumption.clone();
    let (peer, channel) = (channel.peer, of.name.clone());
    Some(KeptSend { entry, peer, channel, remote, ours, point, dialect, tried, head: head? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_begins_again() {
        let mut kept = KeptSends::default();
        for value in [&[][..], &[VERSION], &[VERSION + 1, 0], &[VERSION, 5, 1]] {
            kept.recovered(value);
            assert!(kept.found.is_empty());
        }
    }
}
