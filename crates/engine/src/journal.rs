//! The journal: durable changes that the engine requests of the store, committed whole and in
//! order.
//!
//! The store does not interpret X.400: records are opaque octets under typed keys.

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A content being received: in memory while small, else in a file. Valid for one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SpoolId(pub u64);

/// 32 octets of SHA-256 over a canonical form of what must not be accepted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

/// The queue of an entry: the peer or the mailbox that it goes to ([`crate::NextHop::queue`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueId(pub u64);

/// Queues of mailboxes have numbers from here on.
pub(crate) const MAILBOXES: u64 = 1 << 63;

impl QueueId {
    /// Whether it is that of a mailbox, and not of a peer.
    #[must_use]
    pub fn is_of_mailbox(self) -> bool {
        self.0 >= MAILBOXES
    }
}

/// Entries and contents with this number or a higher one are of mailboxes: a start does not list them. What
/// waits to be sent has lower numbers.
pub const FIRST_ITEM: u64 = 1 << 63;

/// A mailbox of the message store: below 2^31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MailboxId(pub u32);

impl MailboxId {
    /// The queue of its items: none that a next hop has.
    #[must_use]
    pub fn queue(self) -> QueueId {
        QueueId(1 << 62 | u64::from(self.0))
    }
}

/// An item of a mailbox: its mailbox and its sequence number (X.413 7.3), under which it has an entry and a
/// content of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ItemId {
    /// The mailbox.
    pub mailbox: MailboxId,
    /// The sequence number, 1 to 2^31 - 1: never used again in this mailbox.
    pub number: u32,
}

impl ItemId {
    fn key(self) -> u64 {
        FIRST_ITEM | u64::from(self.mailbox.0) << 32 | u64::from(self.number)
    }

    /// The number of its entry.
    #[must_use]
    pub fn entry(self) -> EntryId {
        EntryId(self.key())
    }

    /// The number of its content.
    #[must_use]
    pub fn body(self) -> BodyId {
        BodyId(self.key())
    }

    /// The item of this entry; `None` if it is not one of a mailbox.
    #[must_use]
    pub fn of_entry(id: EntryId) -> Option<ItemId> {
        let key = id.0.checked_sub(FIRST_ITEM)?;
        let (mailbox, number) = (u32::try_from(key >> 32).ok()?, key & u64::from(u32::MAX));
        Some(ItemId { mailbox: MailboxId(mailbox), number: u32::try_from(number).ok()? })
    }
}

/// The source of a body at its commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BodySource {
    /// The octets of a spool, which the commit consumes.
    Spool(SpoolId),
    /// These octets.
    Octets(Bytes),
    /// The octets of another content, which was committed before.
    Body(BodyId),
    /// These octets, and then a part of another content, which was committed before: a message that is forwarded.
    Framed {
        /// What is before the part.
        head: Bytes,
        /// The other content.
        body: BodyId,
        /// Its octets that are left out at the front.
        from: u64,
        /// Octets of the part.
        length: u64,
    },
}

impl BodySource {
    /// The content that it is copied from, if any.
    #[must_use]
    pub fn copied(&self) -> Option<BodyId> {
        match self {
            BodySource::Body(body) | BodySource::Framed { body, .. } => Some(*body),
            BodySource::Spool(_) | BodySource::Octets(_) => None,
        }
    }
}

/// One durable change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Writes or replaces a queue entry.
    PutEntry {
        /// First part of the key: the queue is ordered by precedence.
        precedence: Precedence,
        /// Second part of the key.
        id: EntryId,
        /// The queue in which it is listed.
        queue: QueueId,
        /// The record, opaque.
        record: Bytes,
    },
    /// Removes a queue entry; no error if absent.
    DeleteEntry {
        /// First part of the key.
        precedence: Precedence,
        /// Second part of the key.
        id: EntryId,
    },
    /// Stores a content.
    PutBody {
        /// Its identifier.
        id: BodyId,
        /// Its octets.
        source: BodySource,
    },
    /// Deletes a content; no error if absent.
    DeleteBody {
        /// Its identifier.
        id: BodyId,
    },
    /// Remembers a key, with the record that answers a repetition.
    PutSeen {
        /// The key.
        key: Digest,
        /// Deleted after this time.
        until: Utc,
        /// The answer, opaque; may be empty.
        record: Bytes,
        /// The key must not be remembered yet: else the batch conflicts, and nothing of it is made.
        /// Whoever shares the store may have accepted the same since the look-up.
        absent: bool,
    },
    /// Deletes keys whose time ended before this one: the oldest first.
    ForgetSeen {
        /// The time.
        before: Utc,
        /// Most keys deleted: other commits wait for this one.
        most: usize,
    },
    /// Writes a small named value (epochs, counters).
    PutMeta {
        /// Name.
        name: String,
        /// Value.
        value: Bytes,
    },
    /// The same for a value that several nodes of a site change: a store that they share writes it only over the
    /// value that its writer knows.
    ReplaceMeta {
        /// Name.
        name: String,
        /// Value.
        value: Bytes,
        /// SHA-256 of the value that it replaces; of no octets where there is none.
        over: Digest,
    },
}

/// A named value as its writer knows it: what it has read, or written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownValue(Digest);

impl Default for KnownValue {
    fn default() -> KnownValue {
        KnownValue::from_octets(b"")
    }
}

impl KnownValue {
    /// This value.
    #[must_use]
    pub fn from_octets(value: &[u8]) -> KnownValue {
        KnownValue(Digest(Sha256::digest(value).into()))
    }

    /// The change that replaces it, and is known from then on.
    #[must_use]
    pub fn replace(&mut self, name: &str, value: Bytes) -> Op {
        let KnownValue(over) = std::mem::replace(self, KnownValue::from_octets(&value));
        Op::ReplaceMeta { name: name.to_owned(), value, over }
    }
}

impl Op {
    /// The content that it copies, if any.
    #[must_use]
    pub fn copied(&self) -> Option<BodyId> {
        match self {
            Op::PutBody { source, .. } => source.copied(),
            _ => None,
        }
    }

    /// Octets of records held in memory, without contents in spools.
    pub fn held(&self) -> usize {
        match self {
            Op::PutEntry { record, .. } | Op::PutSeen { record, .. } => record.len(),
            Op::PutBody {
                source: BodySource::Octets(octets) | BodySource::Framed { head: octets, .. },
                ..
            } => octets.len(),
            Op::PutMeta { value, .. } | Op::ReplaceMeta { value, .. } => value.len(),
            Op::PutBody { source: BodySource::Spool(_) | BodySource::Body(_), .. }
            | Op::DeleteEntry { .. }
            | Op::DeleteBody { .. }
            | Op::ForgetSeen { .. } => 0,
        }
    }
}

/// The highest precedence of the entries that a batch writes or removes, if any.
#[must_use]
pub fn highest(batch: &[Op]) -> Option<Precedence> {
    let levels = batch.iter().filter_map(|op| match op {
        Op::PutEntry { precedence, .. } | Op::DeleteEntry { precedence, .. } => Some(*precedence),
        _ => None,
    });
    levels.max()
}

/// The key of a queue entry. Entries are listed with the highest precedence first, and within it in
/// the order of their identifiers.
pub type EntryKey = (Precedence, EntryId);

/// A queue entry as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// First part of its key.
    pub precedence: Precedence,
    /// Second part of its key.
    pub id: EntryId,
    /// The record, opaque.
    pub record: Bytes,
}

impl Entry {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> EntryKey {
        (self.precedence, self.id)
    }
}

/// Changes that are committed together or not at all.
pub type Batch = Vec<Op>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_numbers_of_their_own() {
        for (mailbox, number) in [(0, 1), (7, 9), ((1 << 31) - 1, (1 << 31) - 1)] {
            let item = ItemId { mailbox: MailboxId(mailbox), number };
            assert_eq!(ItemId::of_entry(item.entry()), Some(item));
            assert!(item.body().0 >= FIRST_ITEM);
        }
        assert_eq!(ItemId::of_entry(EntryId(FIRST_ITEM - 1)), None);
    }
}
