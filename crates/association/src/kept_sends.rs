//! Transfers of ours that survive the end of the process: where each may be resumed, as the store has it.
//!
//! All of them are one value, written anew after a checkpoint that a peer confirms of a transfer that is long
//! or takes long: after each, unless they follow each other so fast that they cost little; and when one is
//! given up, which begins again. What is in it of transfers that succeeded meanwhile is of no meaning.

use crate::transfer::{HeadDigest, Resumption};
use base::{EntryId, Instant, PeerId};
use engine::journal::Op;
use osi::api::ResumePoint;
use osi::session::service::ConnectionReference;
use p1::Form;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// The name of the value in the store.
pub const SENDING: &str = "sending";

/// The time from one write to the next on average, and for how long they may follow each other at once: the
/// confirms of a slow line come together. No longer than [`MAX_UNWRITTEN`] are confirmed.
const WRITTEN_EVERY: Duration = Duration::from_millis(10);
const AT_ONCE: Duration = Duration::from_millis(100);

/// Most checkpoints confirmed between two writes. The receiver remembers more.
const MAX_UNWRITTEN: u32 = 32;

/// The first octet of the value.
const VERSION: u8 = 2;

/// A transfer of ours, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptSend {
    /// Its entry.
    pub entry: EntryId,
    /// Its peer.
    pub peer: PeerId,
    /// The channel's name: its number may change with the configuration.
    pub channel: String,
    /// Where its association came from, if the peer opened it.
    pub remote: Option<IpAddr>,
    /// Whether we opened its association.
    pub ours: bool,
    /// Where it is resumed.
    pub point: ResumePoint,
    /// The form of its transfer.
    pub form: Option<Form>,
    /// The associations on which it was tried.
    pub tried: Vec<ConnectionReference>,
    /// What it begins with.
    pub head: HeadDigest,
}

impl KeptSend {
    /// A transfer as it is stored, on the channel of this name; `None` where nothing was sent.
    pub fn new(
        (peer, channel): (PeerId, &str),
        entry: EntryId,
        (ours, remote): (bool, Option<IpAddr>),
        resumption: Resumption,
    ) -> Option<KeptSend> {
        let Resumption { point, form, tried, head, .. } = resumption;
        let channel = channel.to_owned();
        Some(KeptSend { entry, peer, channel, remote, ours, point, form, tried, head: head? })
    }
}

/// The transfers that are stored.
#[derive(Debug, Default)]
pub struct KeptSends {
    /// Those of an earlier run whose entries were not handed in yet.
    found: BTreeMap<EntryId, KeptSend>,
    /// Checkpoints confirmed since the value was written last.
    unwritten: u32,
    /// What was written was due until this time, at [`WRITTEN_EVERY`].
    written_for: Instant,
    writing: bool,
    /// Whether the value has any.
    is_stored: bool,
}

impl KeptSends {
    /// When the value is to be written, if it is.
    pub fn deadline(&self) -> Option<Instant> {
        let due = self.unwritten > 0 && !self.writing;
        due.then(|| Instant(self.written_for.0.saturating_sub(AT_ONCE.as_micros() as u64)))
    }

    /// Whether it is to be written now.
    pub fn is_due(&self, now: Instant) -> bool {
        let due = self.deadline();
        due.is_some_and(|at| at <= now || self.unwritten >= MAX_UNWRITTEN)
    }

    /// The value found at the start. That of another release is not read: those transfers begin again.
    pub fn recovered(&mut self, value: &[u8]) {
        let all = value.strip_prefix(&[VERSION]).and_then(|fields| {
            postcard::take_from_bytes::<Vec<KeptSend>>(fields).ok().map(|(all, _)| all)
        });
        self.found = all.unwrap_or_default().into_iter().map(|kept| (kept.entry, kept)).collect();
        self.is_stored = true;
    }

    /// The peer confirmed a checkpoint, or a transfer begins again.
    pub fn progressed(&mut self) {
        self.unwritten += 1;
    }

    /// Whether the store has none of them.
    pub fn is_empty(&self) -> bool {
        !self.is_stored
    }

    /// There is nothing to write.
    pub fn nothing(&mut self) {
        self.unwritten = 0;
    }

    /// The change that writes the value now.
    pub fn write(&mut self, now: Instant, all: &[KeptSend]) -> Op {
        (self.writing, self.unwritten, self.is_stored) = (true, 0, !all.is_empty());
        self.written_for = self.written_for.max(now) + WRITTEN_EVERY;
        // Plain data into a growing buffer cannot fail.
        let value = postcard::to_extend(all, vec![VERSION]).unwrap_or_default().into();
        Op::PutMeta { name: SENDING.to_owned(), value }
    }

    /// It was written, or not.
    pub fn written(&mut self) {
        self.writing = false;
    }

    /// The transfer of an entry that was handed in, if the end of the process cut it off.
    pub fn take(&mut self, entry: EntryId) -> Option<KeptSend> {
        self.found.remove(&entry)
    }

    /// All entries were handed in.
    pub fn started(&mut self) {
        self.found.clear();
    }
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
