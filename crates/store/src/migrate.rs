//! A queue copied from one store to another one, while nothing else uses either.
//!
//! Contents come first, then what names them, then keys and named values; each batch of the copy has a mark
//! with the place up to which it goes, so an interrupted copy goes on there. A mark of an unfinished copy
//! keeps a daemon from starting. It is taken away once both stores were read as a whole and their digests
//! are equal. Contents that are being received are not copied: their peers send them again.

use crate::error::StoreError;
use crate::queue::{BatchId, EntryKey, QueueStore, commit_one, for_each_value};
use base::{BodyId, EntryId, Precedence};
use bytes::Bytes;
use engine::Record;
use engine::journal::{Batch, BodySource, Digest, ItemId, MailboxId, Op, QueueId, SpoolId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::Xxh3;

/// The name of the value that marks a store to which a copy is made, or was.
pub const MARK: &str = "migration";

/// Version of the encoding of the mark, in its first octet.
const VERSION: u8 = 1;

/// Entries, keys or bodies that are read at once.
const PAGE: usize = 256;
/// A batch is committed when it has so many changes, or octets.
const CHANGES: usize = 512;
const OCTETS: usize = 1 << 20;
/// Longer contents go through a spool, in parts of this length.
const PART: usize = 256 << 10;
/// The first spool of a copy: none that a store kept has such a number.
const FIRST_SPOOL: u64 = 1 << 40;

/// The name and the value that a copy has for a value of this name.
pub type ValueOf<'a> = &'a dyn Fn(&str, &Bytes) -> Option<(String, Bytes)>;

/// What a copy is made of, and how.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The source.
    pub from: &'a dyn QueueStore,
    /// The target.
    pub to: &'a dyn QueueStore,
    /// Names the source: an unfinished copy goes on only with the same one.
    pub source: &'a str,
    /// The mailboxes of the source, with their numbers in the target.
    pub mailboxes: &'a BTreeMap<MailboxId, MailboxId>,
    /// The queue of a mailbox's items.
    pub item_queue: fn(MailboxId) -> QueueId,
    /// What the target has in place of a named value of the source; `None`: nothing, it is a process's own.
    /// A value of the target for which there is nothing is left alone, and not compared.
    pub value: ValueOf<'a>,
    /// A value that may be in an empty target: a daemon writes it at each start.
    pub written_at_start: &'a str,
}

impl std::fmt::Debug for Plan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Why there is no copy.
#[derive(Clone, Debug, thiserror::Error)]
pub enum MigrateError {
    /// Of either store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The target has something.
    #[error("the target is not empty: it has {0}; a queue is copied into an empty one only")]
    NotEmpty(String),
    /// The target has a copy of something else.
    #[error(
        "the target has an unfinished copy of another queue, {0}: finish it, or empty the target"
    )]
    OtherSource(String),
    /// The source is a copy itself.
    #[error("the source is an unfinished copy itself: run mta store migrate into it again")]
    Unfinished,
    /// The mark cannot be read.
    #[error("the mark of the copy cannot be read: a newer release wrote it, or it is damaged")]
    Mark,
    /// An entry cannot be read.
    #[error(
        "the record of {0} cannot be read: mta store check names what is damaged; a newer release may have \
         written it"
    )]
    Record(EntryId),
    /// The source is damaged.
    #[error("the source is damaged: mta store check names what; mta store repair gives it up")]
    Damaged,
    /// The copy is not equal.
    #[error(
        "the copy is not equal to the source in its {0}: the source was used since the copy began, or the \
         target was; empty the target and begin again"
    )]
    Differs(&'static str),
}

/// Whether the value under [`MARK`] is that of an unfinished copy, or cannot be read.
#[must_use]
pub fn is_unfinished(mark: &[u8]) -> bool {
    Mark::decode(mark).is_none_or(|mark| !matches!(mark.at, Place::Done))
}

/// Up to where a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Place {
    /// Contents of the queue, after this one.
    Bodies(Option<u64>),
    /// Entries, after that with this number of precedence and number.
    Entries(Option<(u8, u64)>),
    /// Items: mailbox, place of the precedence, number.
    Items(Option<(u32, u8, u32)>),
    Keys(Option<[u8; 32]>),
    Values,
    /// All is copied, and perhaps not compared.
    Copied,
    /// It was found equal.
    Done,
}

#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    source: String,
    at: Place,
}

impl Mark {
    fn decode(value: &[u8]) -> Option<Mark> {
        let (version, fields) = value.split_first()?;
        if *version != VERSION {
            return None;
        }
        postcard::from_bytes(fields).ok()
    }

    fn put(&self) -> Op {
        // Plain data into a growing buffer cannot fail.
        let value = postcard::to_extend(self, vec![VERSION]).unwrap_or_default().into();
        Op::PutMeta { name: MARK.to_owned(), value }
    }
}

/// So many of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub count: u64,
    /// Octets of records or contents.
    pub octets: u64,
    /// Of all keys, records and contents, in order.
    pub digest: u64,
}

/// What a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Queue entries.
    pub entries: Sum,
    /// Contents of the queue.
    pub bodies: Sum,
    /// Items of mailboxes, with their contents.
    pub items: Sum,
    /// Remembered keys.
    pub keys: Sum,
    /// Named values.
    pub values: Sum,
}

impl Sums {
    /// Each with its name.
    #[must_use]
    pub fn all(&self) -> [(&'static str, Sum); 5] {
        [
            ("queue entries", self.entries),
            ("contents", self.bodies),
            ("mailbox items", self.items),
            ("remembered keys", self.keys),
            ("named values", self.values),
        ]
    }

    /// What is not equal.
    fn differs(&self, other: &Sums) -> Option<&'static str> {
        let both = self.all().into_iter().zip(other.all());
        both.filter(|(one, other)| one != other).map(|((name, _), _)| name).next()
    }
}

/// A copy that is being made.
#[derive(Debug)]
pub struct Migration<'a> {
    plan: Plan<'a>,
    /// Every level of every mailbox, in order.
    levels: Vec<(MailboxId, u8, Precedence)>,
    at: Place,
    batch: Batch,
    octets: usize,
    last_batch: u64,
    last_spool: u64,
    /// Batches that may still be committed: for tests of what is interrupted.
    left: Option<u64>,
}

/// The end of a part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Done,
    /// No more batches may be committed.
    Stopped,
}

impl<'a> Migration<'a> {
    /// Looks at both stores, and marks the target: from then on no daemon starts on it. An unfinished copy of
    /// the same source is continued.
    ///
    /// # Errors
    /// The target has something else; the source is unfinished or damaged; those of the stores.
    pub fn begin(plan: Plan<'a>) -> Result<Migration<'a>, MigrateError> {
        if plan.from.meta(MARK)?.is_some_and(|mark| is_unfinished(&mark)) {
            return Err(MigrateError::Unfinished);
        }
        if !plan.from.damage().is_none() {
            return Err(MigrateError::Damaged);
        }
        let levels = plan.mailboxes.keys().flat_map(|id| {
            (0..).zip(Precedence::ALL).map(|(place, precedence)| (*id, place, precedence))
        });
        let mut migration = Migration {
            plan,
            levels: levels.collect(),
            at: Place::Bodies(None),
            batch: Batch::new(),
            octets: 0,
            last_batch: 0,
            last_spool: FIRST_SPOOL,
            left: None,
        };
        match plan.to.meta(MARK)? {
            Some(mark) => {
                let mark = Mark::decode(&mark).ok_or(MigrateError::Mark)?;
                if mark.source != plan.source {
                    return Err(match mark.at {
                        Place::Done => MigrateError::NotEmpty(format!("a copy of {}", mark.source)),
                        _ => MigrateError::OtherSource(mark.source),
                    });
                }
                migration.at = mark.at;
            }
            None => {
                migration.check_empty()?;
                migration.commit()?;
            }
        }
        // An earlier attempt may have left some.
        let contents = plan.to.contents();
        contents.take_kept().iter().for_each(|kept| contents.discard(kept.id));
        Ok(migration)
    }

    /// Ends after so many batches more.
    #[must_use]
    pub fn limited(mut self, batches: u64) -> Migration<'a> {
        self.left = Some(batches);
        self
    }

    fn check_empty(&self) -> Result<(), MigrateError> {
        let Plan { to, value, written_at_start, .. } = self.plan;
        let found = |what: String| Err(MigrateError::NotEmpty(what));
        match to.entry_count()? {
            0 => {}
            count => return found(format!("{count} entries")),
        }
        if !to.bodies(None, 1)?.is_empty() {
            return found("contents".to_owned());
        }
        if !to.keys(None, 1)?.is_empty() {
            return found("remembered keys".to_owned());
        }
        let mut first = None;
        for_each_value(to, |name, octets| {
            if name != written_at_start && value(&name, &octets).is_some() {
                first.get_or_insert(name);
            }
        })?;
        first.map_or(Ok(()), |name| found(format!("the value {name}")))
    }

    /// Copies what is not copied yet, compares all, and takes the mark away. `goes_on` is called with
    /// the octets that were copied or read since its last call. `None`: it was ended before.
    ///
    /// # Errors
    /// Those of the stores; the copy is not equal. The mark stays.
    pub fn run(mut self, goes_on: &mut dyn FnMut(u64)) -> Result<Option<Sums>, MigrateError> {
        let was_done = matches!(self.at, Place::Done);
        while self.at < Place::Copied {
            let part = match self.at {
                Place::Bodies(after) => self.bodies(after.map(BodyId), goes_on)?,
                Place::Entries(after) => self.entries(after, goes_on)?,
                Place::Items(after) => self.items(after, goes_on)?,
                Place::Keys(after) => self.keys(after.map(Digest), goes_on)?,
                Place::Values => self.values()?,
                Place::Copied | Place::Done => Part::Done,
            };
            if part == Part::Stopped {
                return Ok(None);
            }
        }
        let ours = Side { store: self.plan.to, plan: self.plan, is_source: false }.sums(goes_on)?;
        let theirs =
            Side { store: self.plan.from, is_source: true, plan: self.plan }.sums(goes_on)?;
        if let Some(what) = ours.differs(&theirs) {
            // It was equal once, and was used since.
            return Err(match was_done {
                true => MigrateError::NotEmpty("a finished copy that was used since".to_owned()),
                false => MigrateError::Differs(what),
            });
        }
        if !self.plan.from.damage().is_none() {
            return Err(MigrateError::Damaged);
        }
        self.at = Place::Done;
        let part = self.commit()?;
        Ok((part == Part::Done).then_some(ours))
    }

    /// Commits the batch with the place up to which it goes.
    fn commit(&mut self) -> Result<Part, MigrateError> {
        match &mut self.left {
            Some(0) => return Ok(Part::Stopped),
            Some(left) => *left -= 1,
            None => {}
        }
        self.batch.push(Mark { source: self.plan.source.to_owned(), at: self.at }.put());
        self.last_batch += 1;
        self.octets = 0;
        let to = self.plan.to;
        commit_one(to, BatchId(self.last_batch), std::mem::take(&mut self.batch))?;
        if self.last_batch.is_multiple_of(16) {
            while to.tidy()? > 0 {}
        }
        Ok(Part::Done)
    }

    /// Commits the batch if it is long enough.
    fn goes_on(&mut self) -> Result<Part, MigrateError> {
        match self.batch.len() >= CHANGES || self.octets >= OCTETS {
            true => self.commit(),
            false => Ok(Part::Done),
        }
    }

    fn push(&mut self, op: Op) {
        self.octets += op.held() + 64;
        self.batch.push(op);
    }

    /// The content `to` is that of `from`: part by part if it is long.
    fn copy_body(
        &mut self,
        from: BodyId,
        to: BodyId,
        goes_on: &mut dyn FnMut(u64),
    ) -> Result<bool, MigrateError> {
        let Some(length) = self.plan.from.body_length(from)? else { return Ok(false) };
        let read = |offset| {
            let part = self.plan.from.body(from, offset, PART)?.unwrap_or_default();
            match part.is_empty() && offset < length {
                true => Err(StoreError::BodyDamaged { id: from }),
                false => Ok(part),
            }
        };
        let first = read(0)?;
        goes_on(first.len() as u64);
        if first.len() as u64 >= length {
            self.push(Op::PutBody { id: to, source: BodySource::Octets(first) });
            return Ok(true);
        }
        self.last_spool += 1;
        let (spool, contents) = (SpoolId(self.last_spool), self.plan.to.contents());
        contents.open(spool)?;
        let mut copy = || {
            let mut offset = first.len() as u64;
            contents.append(spool, first.clone())?;
            while offset < length {
                let part = read(offset)?;
                offset += part.len() as u64;
                goes_on(part.len() as u64);
                contents.append(spool, part)?;
            }
            contents.sync(spool).map(drop)
        };
        if let Err(error) = copy() {
            contents.discard(spool);
            return Err(error.into());
        }
        // In a batch of its own, about: the next ones need the memory.
        self.octets += OCTETS;
        self.batch.push(Op::PutBody { id: to, source: BodySource::Spool(spool) });
        Ok(true)
    }

    fn bodies(
        &mut self,
        after: Option<BodyId>,
        goes_on: &mut dyn FnMut(u64),
    ) -> Result<Part, MigrateError> {
        let page = self.plan.from.bodies(after, PAGE)?;
        if page.is_empty() {
            self.at = Place::Entries(None);
            return self.commit();
        }
        for id in page {
            self.copy_body(id, id, goes_on)?;
            self.at = Place::Bodies(Some(id.0));
            if self.goes_on()? == Part::Stopped {
                return Ok(Part::Stopped);
            }
        }
        Ok(Part::Done)
    }

    fn entries(
        &mut self,
        after: Option<(u8, u64)>,
        goes_on: &mut dyn FnMut(u64),
    ) -> Result<Part, MigrateError> {
        let after: Option<EntryKey> = match after {
            Some((number, id)) => {
                let precedence =
                    Precedence::from_number(number.into()).ok_or(MigrateError::Mark)?;
                Some((precedence, EntryId(id)))
            }
            None => None,
        };
        let page = self.plan.from.entries(after, PAGE)?;
        if page.is_empty() {
            self.at = Place::Items(None);
            return self.commit();
        }
        for entry in page {
            let id = entry.id;
            let read = Record::peek(&entry.record).map_err(|_| MigrateError::Record(id))?;
            goes_on(entry.record.len() as u64);
            let queue = read.next_hop.queue();
            let (precedence, record) = (entry.precedence, entry.record);
            self.push(Op::PutEntry { precedence, id, queue, record });
            self.at = Place::Entries(Some((precedence.number(), id.0)));
            if self.goes_on()? == Part::Stopped {
                return Ok(Part::Stopped);
            }
        }
        Ok(Part::Done)
    }

    /// A page of the items of one level of one mailbox, with their contents.
    fn items(
        &mut self,
        after: Option<(u32, u8, u32)>,
        goes_on: &mut dyn FnMut(u64),
    ) -> Result<Part, MigrateError> {
        let start = after.map(|(mailbox, place, _)| (MailboxId(mailbox), place));
        let mut rest = self.levels.iter();
        let level = rest.find(|(id, place, _)| start.is_none_or(|start| (*id, *place) >= start));
        let Some(&(mailbox, place, precedence)) = level else {
            self.at = Place::Keys(None);
            return self.commit();
        };
        let last = after.filter(|_| Some((mailbox, place)) == start).map_or(0, |(_, _, last)| last);
        let page = self.plan.from.items(mailbox, precedence, last, PAGE)?;
        if page.is_empty() {
            // The next level, from its beginning; the place is kept with the next batch.
            let next = rest.next().map(|(id, place, _)| (id.0, *place, 0));
            self.at = next.map_or(Place::Keys(None), |next| Place::Items(Some(next)));
            return Ok(Part::Done);
        }
        let target = self.plan.mailboxes.get(&mailbox).copied().unwrap_or(mailbox);
        for entry in page {
            let item = ItemId::of_entry(entry.id).ok_or(MigrateError::Record(entry.id))?;
            let (number, record) = (item.number, entry.record);
            let copy = ItemId { mailbox: target, number };
            self.copy_body(item.body(), copy.body(), goes_on)?;
            let queue = (self.plan.item_queue)(target);
            self.push(Op::PutEntry { precedence, id: copy.entry(), queue, record });
            self.at = Place::Items(Some((mailbox.0, place, number)));
            if self.goes_on()? == Part::Stopped {
                return Ok(Part::Stopped);
            }
        }
        Ok(Part::Done)
    }

    fn keys(
        &mut self,
        after: Option<Digest>,
        goes_on: &mut dyn FnMut(u64),
    ) -> Result<Part, MigrateError> {
        let page = self.plan.from.keys(after.as_ref(), PAGE)?;
        let Some(last) = page.last() else {
            self.at = Place::Values;
            return self.commit();
        };
        let last = last.key;
        for row in page {
            goes_on(row.record.len() as u64);
            let (key, until, record) = (row.key, row.until, row.record);
            self.push(Op::PutSeen { key, until, record, absent: false });
        }
        self.at = Place::Keys(Some(last.0));
        self.goes_on()
    }

    /// All in one batch: there are few.
    fn values(&mut self) -> Result<Part, MigrateError> {
        let mut values = Vec::new();
        for_each_value(self.plan.from, |name, value| {
            if name != MARK {
                values.extend((self.plan.value)(&name, &value));
            }
        })?;
        for (name, value) in values {
            self.push(Op::PutMeta { name, value });
        }
        self.at = Place::Copied;
        self.commit()
    }
}

/// One of the two stores, to be counted.
struct Side<'a> {
    store: &'a dyn QueueStore,
    plan: Plan<'a>,
    is_source: bool,
}

/// A sum that is being made.
#[derive(Default)]
struct Summing {
    hash: Xxh3,
    count: u64,
    octets: u64,
}

/// The sum of records beside a queue, each with its key, in this order.
pub fn sum_of<'r>(records: impl IntoIterator<Item = (&'r [u8], &'r [u8])>) -> Sum {
    let mut sum = Summing::default();
    for (key, record) in records {
        sum.key(key);
        sum.record(record);
    }
    sum.end()
}

impl Summing {
    fn key(&mut self, octets: &[u8]) {
        self.count += 1;
        self.hash.update(&(octets.len() as u64).to_be_bytes());
        self.hash.update(octets);
    }

    /// So many octets follow.
    fn begins(&mut self, length: u64) {
        self.octets += length;
        self.hash.update(&length.to_be_bytes());
    }

    fn record(&mut self, octets: &[u8]) {
        self.begins(octets.len() as u64);
        self.hash.update(octets);
    }

    fn end(self) -> Sum {
        Sum { count: self.count, octets: self.octets, digest: self.hash.digest() }
    }
}

impl Side<'_> {
    fn sums(&self, goes_on: &mut dyn FnMut(u64)) -> Result<Sums, MigrateError> {
        Ok(Sums {
            entries: self.entries(goes_on)?,
            bodies: self.bodies(goes_on)?,
            items: self.items(goes_on)?,
            keys: self.keys()?,
            values: self.values()?,
        })
    }

    fn entries(&self, goes_on: &mut dyn FnMut(u64)) -> Result<Sum, MigrateError> {
        let mut sum = Summing::default();
        let mut after = None;
        loop {
            let page = self.store.entries(after, PAGE)?;
            let Some(last) = page.last() else { return Ok(sum.end()) };
            after = Some(last.key());
            for entry in page {
                sum.key(&[entry.precedence.number()]);
                sum.hash.update(&entry.id.0.to_be_bytes());
                sum.record(&entry.record);
                goes_on(entry.record.len() as u64);
            }
        }
    }

    fn body(
        &self,
        id: BodyId,
        sum: &mut Summing,
        goes_on: &mut dyn FnMut(u64),
    ) -> Result<(), MigrateError> {
        let Some(length) = self.store.body_length(id)? else {
            // No length.
            sum.hash.update(&u64::MAX.to_be_bytes());
            return Ok(());
        };
        sum.begins(length);
        let mut offset = 0;
        while offset < length {
            let part = self.store.body(id, offset, PART)?.unwrap_or_default();
            if part.is_empty() {
                return Err(StoreError::BodyDamaged { id }.into());
            }
            sum.hash.update(&part);
            offset += part.len() as u64;
            goes_on(part.len() as u64);
        }
        Ok(())
    }

    fn bodies(&self, goes_on: &mut dyn FnMut(u64)) -> Result<Sum, MigrateError> {
        let mut sum = Summing::default();
        let mut after = None;
        loop {
            let page = self.store.bodies(after, PAGE)?;
            let Some(last) = page.last() else { return Ok(sum.end()) };
            after = Some(*last);
            for id in page {
                sum.key(&id.0.to_be_bytes());
                self.body(id, &mut sum, goes_on)?;
            }
        }
    }

    /// In the order of the source's numbers, and without the numbers of mailboxes.
    fn items(&self, goes_on: &mut dyn FnMut(u64)) -> Result<Sum, MigrateError> {
        let mut sum = Summing::default();
        for (source, target) in self.plan.mailboxes {
            let mailbox = if self.is_source { *source } else { *target };
            for precedence in Precedence::ALL {
                let mut after = 0;
                loop {
                    let page = self.store.items(mailbox, precedence, after, PAGE)?;
                    for entry in &page {
                        let item =
                            ItemId::of_entry(entry.id).ok_or(MigrateError::Record(entry.id))?;
                        after = item.number;
                        sum.key(&source.0.to_be_bytes());
                        sum.hash.update(&[precedence.number()]);
                        sum.hash.update(&item.number.to_be_bytes());
                        sum.record(&entry.record);
                        self.body(item.body(), &mut sum, goes_on)?;
                    }
                    if page.is_empty() {
                        break;
                    }
                }
            }
        }
        Ok(sum.end())
    }

    fn keys(&self) -> Result<Sum, MigrateError> {
        let mut sum = Summing::default();
        let mut after = None;
        loop {
            let page = self.store.keys(after.as_ref(), PAGE)?;
            let Some(last) = page.last() else { return Ok(sum.end()) };
            after = Some(last.key);
            for row in page {
                sum.key(&row.key.0);
                sum.hash.update(&row.until.0.to_be_bytes());
                sum.record(&row.record);
            }
        }
    }

    fn values(&self) -> Result<Sum, MigrateError> {
        let mut values = BTreeMap::new();
        for_each_value(self.store, |name, value| {
            if name == MARK {
                return;
            }
            match (self.plan.value)(&name, &value) {
                Some(copy) if self.is_source => values.extend([copy]),
                // It is a copy itself.
                Some(_) => _ = values.insert(name, value),
                None => {}
            }
        })?;
        let mut sum = Summing::default();
        for (name, value) in values {
            sum.key(name.as_bytes());
            sum.record(&value);
        }
        Ok(sum.end())
    }
}
