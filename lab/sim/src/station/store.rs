//! A store in memory with the durability of a real one: what is committed survives a crash, spools
//! and what waits to be committed do not.

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, ItemId, MailboxId, Op, SpoolId};
use engine::{ItemSource, REMEMBERED};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// What no sound node asks of its store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// Opened twice.
    #[error("spool {0:?} was opened twice")]
    SpoolTwice(SpoolId),
    /// Not open, or used up by a commit.
    #[error("there is no spool {0:?}")]
    NoSpool(SpoolId),
    /// Put twice.
    #[error("the body {0:?} is there already")]
    BodyTwice(BodyId),
    /// Not there, or shorter than that.
    #[error("there is nothing of the body {0:?} from octet {1} on")]
    NoBody(BodyId, u64),
    /// Remembered already, within the time in which that may not happen.
    #[error("the same was taken twice")]
    TakenTwice,
}

/// A store.
#[derive(Debug, Default)]
pub struct Store {
    /// Queue entries.
    pub entries: BTreeMap<(Precedence, EntryId), Bytes>,
    /// Contents.
    pub bodies: BTreeMap<BodyId, Bytes>,
    /// What was taken, with the time until which it is remembered.
    pub seen: BTreeMap<Digest, (Utc, Bytes)>,
    /// Other values by name.
    pub meta: BTreeMap<String, Bytes>,
    /// Contents that are coming in.
    pub spools: BTreeMap<SpoolId, Vec<u8>>,
    /// The notes on them.
    notes: BTreeMap<SpoolId, SpoolNotes>,
}

/// The notes on a content that is coming in.
#[derive(Debug, Default)]
struct SpoolNotes {
    /// Each with the length of the content that it is behind.
    all: Vec<(usize, Bytes)>,
    durable: usize,
}

impl ItemSource for Store {
    type Error = Infallible;

    fn value(&self, name: &str) -> Result<Option<Bytes>, Infallible> {
        Ok(self.meta.get(name).cloned())
    }

    fn count(&self, mailbox: MailboxId, precedence: Precedence) -> Result<u64, Infallible> {
        let items = self.entries.keys().filter(|(level, id)| {
            *level == precedence && ItemId::of_entry(*id).is_some_and(|id| id.mailbox == mailbox)
        });
        Ok(items.count() as u64)
    }

    fn items(
        &self,
        mailbox: MailboxId,
        precedence: Precedence,
        after: u32,
        limit: usize,
    ) -> Result<Vec<(u32, Bytes)>, Infallible> {
        let first = ItemId { mailbox, number: after.saturating_add(1) }.entry();
        let last = ItemId { mailbox, number: u32::MAX }.entry();
        let range = self.entries.range((precedence, first)..=(precedence, last));
        let number = |id: &EntryId| ItemId::of_entry(*id).map_or(0, |id| id.number);
        Ok(range.take(limit).map(|((_, id), record)| (number(id), record.clone())).collect())
    }

    fn item(&self, precedence: Precedence, id: ItemId) -> Result<Option<Bytes>, Infallible> {
        Ok(self.entries.get(&(precedence, id.entry())).cloned())
    }
}

impl Store {
    /// Begins a spool.
    ///
    /// # Errors
    /// It is open.
    pub fn open(&mut self, spool: SpoolId) -> Result<(), Unsound> {
        match self.spools.insert(spool, Vec::new()) {
            None => Ok(()),
            Some(_) => Err(Unsound::SpoolTwice(spool)),
        }
    }

    /// Appends to a spool.
    ///
    /// # Errors
    /// It is not open.
    pub fn append(&mut self, spool: SpoolId, bytes: &[u8]) -> Result<(), Unsound> {
        let open = self.spools.get_mut(&spool).ok_or(Unsound::NoSpool(spool))?;
        open.extend_from_slice(bytes);
        Ok(())
    }

    /// How many octets a spool has.
    ///
    /// # Errors
    /// It is not open.
    pub fn spooled(&self, spool: SpoolId) -> Result<u64, Unsound> {
        let open = self.spools.get(&spool).ok_or(Unsound::NoSpool(spool))?;
        Ok(open.len() as u64)
    }

    /// Appends a note to a spool.
    ///
    /// # Errors
    /// It is not open.
    pub fn note(&mut self, spool: SpoolId, note: Bytes) -> Result<(), Unsound> {
        let open = self.spools.get(&spool).ok_or(Unsound::NoSpool(spool))?;
        self.notes.entry(spool).or_default().all.push((open.len(), note));
        Ok(())
    }

    /// Makes a spool durable, where it has notes; gives its length in octets.
    ///
    /// # Errors
    /// It is not open.
    pub fn sync(&mut self, spool: SpoolId) -> Result<u64, Unsound> {
        if let Some(notes) = self.notes.get_mut(&spool) {
            notes.durable = notes.all.len();
        }
        self.spooled(spool)
    }

    /// The spools with notes: what a process that starts finds, with their lengths.
    pub fn kept(&self) -> Vec<(SpoolId, u64, Vec<Bytes>)> {
        let of = |(id, notes): (&SpoolId, &SpoolNotes)| {
            let length = self.spools.get(id)?.len() as u64;
            Some((*id, length, notes.all.iter().map(|(_, note)| note.clone()).collect()))
        };
        self.notes.iter().filter_map(of).collect()
    }

    /// Throws a spool away.
    ///
    /// # Errors
    /// It is not open.
    pub fn discard(&mut self, spool: SpoolId) -> Result<(), Unsound> {
        self.notes.remove(&spool);
        self.spools.remove(&spool).map(|_| ()).ok_or(Unsound::NoSpool(spool))
    }

    /// Part of a content: 1 to `len` octets.
    ///
    /// # Errors
    /// There is no such part.
    pub fn read(&self, id: BodyId, offset: u64, len: usize) -> Result<Bytes, Unsound> {
        let missing = Unsound::NoBody(id, offset);
        let octets = self.bodies.get(&id).ok_or_else(|| missing.clone())?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        if start >= octets.len() {
            return Err(missing);
        }
        Ok(octets.slice(start..start.saturating_add(len).min(octets.len())))
    }

    /// What is remembered under these keys.
    pub fn look_up(&self, keys: &[Digest], now: Utc) -> Vec<Option<Bytes>> {
        let found = keys.iter().map(|key| self.seen.get(key).filter(|(until, _)| *until >= now));
        found.map(|row| row.map(|(_, record)| record.clone())).collect()
    }

    /// What is remembered only until before this time.
    fn expired(&self, before: Utc) -> impl Iterator<Item = (Utc, Digest)> {
        let seen = self.seen.iter().map(|(key, (until, _))| (*until, *key));
        seen.filter(move |(until, _)| *until < before)
    }

    /// Whether there is anything to forget.
    pub fn has_expired_keys(&self, before: Utc) -> bool {
        self.expired(before).next().is_some()
    }

    /// Makes all changes of a batch.
    ///
    /// # Errors
    /// One of them makes no sense; those before it are made.
    pub fn apply(&mut self, batch: Batch) -> Result<(), Unsound> {
        let conflicts = |op: &Op| matches!(op, Op::PutSeen { key, absent: true, .. } if self.seen.contains_key(key));
        if batch.iter().any(conflicts) {
            return Err(Unsound::TakenTwice);
        }
        for op in batch {
            match op {
                Op::PutEntry { precedence, id, record, queue: _ } => {
                    self.entries.insert((precedence, id), record);
                }
                Op::DeleteEntry { precedence, id } => {
                    self.entries.remove(&(precedence, id));
                }
                Op::PutBody { id, source } => {
                    let octets = match source {
                        BodySource::Octets(octets) => octets,
                        BodySource::Body(of) => self.bodies.get(&of).cloned().unwrap_or_default(),
                        BodySource::Framed { head, body, from, length } => {
                            let other = self.bodies.get(&body).cloned().unwrap_or_default();
                            let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
                            let part = other.get(at(from)..at(from.saturating_add(length)));
                            [&head[..], part.unwrap_or_default()].concat().into()
                        }
                        BodySource::Spool(spool) => {
                            self.notes.remove(&spool);
                            self.spools.remove(&spool).ok_or(Unsound::NoSpool(spool))?.into()
                        }
                    };
                    if self.bodies.insert(id, octets).is_some() {
                        return Err(Unsound::BodyTwice(id));
                    }
                }
                Op::DeleteBody { id } => {
                    self.bodies.remove(&id);
                }
                Op::PutSeen { key, until, record, absent: _ } => {
                    let taken = self.seen.insert(key, (until, record.clone()));
                    // The same identifier with another content is another delivery: the record grows.
                    let adds = |before: &Bytes| {
                        !before.is_empty()
                            && record.len() > before.len()
                            && record.starts_with(before)
                    };
                    if taken.is_some_and(|(old, of)| old + REMEMBERED >= until && !adds(&of)) {
                        return Err(Unsound::TakenTwice);
                    }
                }
                Op::ForgetSeen { before, most } => {
                    let mut due: Vec<(Utc, Digest)> = self.expired(before).collect();
                    due.sort_unstable();
                    due.iter().take(most).for_each(|(_, key)| drop(self.seen.remove(key)));
                }
                Op::PutMeta { name, value } | Op::ReplaceMeta { name, value, .. } => {
                    self.meta.insert(name, value);
                }
            }
        }
        Ok(())
    }

    /// What a power cut leaves.
    pub fn crash(&mut self) {
        let (mut spools, notes) =
            (std::mem::take(&mut self.spools), std::mem::take(&mut self.notes));
        let kept = notes.into_iter().filter_map(|(id, mut notes)| {
            notes.all.truncate(notes.durable);
            let (length, _) = notes.all.last()?;
            let mut octets = spools.remove(&id)?;
            octets.truncate(*length);
            Some((octets, notes))
        });
        for (id, (octets, notes)) in (1..).map(SpoolId).zip(kept.collect::<Vec<_>>()) {
            self.spools.insert(id, octets);
            self.notes.insert(id, notes);
        }
    }
}
