//! Long contents that are written into the database: part by part, each part in a transaction of its own.

use crate::connection::pool::Pool;
use crate::numbers::{signed, stored};
use crate::sums::sums;
use bytes::{Bytes, BytesMut};
use std::sync::{Arc, Mutex};
use store::StoreError;
use xxhash_rust::xxh3::Xxh3;

use crate::connection::client::lock;

/// Octets of a part. A part is written once: what a sync finds is a part too, and a shorter one.
pub(crate) const PART: usize = 512 << 10;

const WRITING: &str = "writing a content";

/// Numbers of contents that one call reserves: `migrations/0001_tables.sql`.
const BLOCK: i64 = 4096;

/// What writes contents of one run.
#[derive(Debug)]
pub(crate) struct Writer {
    pool: Arc<Pool>,
    epoch: i64,
    /// The next free number of a content, and the end of the reserved ones.
    numbers: Mutex<(i64, i64)>,
    /// Contents to be given up, which could not be.
    given_up: Mutex<Vec<i64>>,
}

impl Writer {
    pub(crate) fn new(pool: Arc<Pool>, epoch: i64) -> Writer {
        Writer { pool, epoch, numbers: Mutex::new((0, 0)), given_up: Mutex::default() }
    }

    /// A number for a content, never used before.
    pub(crate) fn number(&self) -> Result<i64, StoreError> {
        let mut numbers = lock(&self.numbers);
        if numbers.0 >= numbers.1 {
            let row = self.pool.call("reserving numbers of contents", |client| async move {
                client.row("SELECT nextval('contents')", &[]).await
            })?;
            let first: i64 = row.map_or(0, |row| row.get(0));
            *numbers = (first, first.saturating_add(BLOCK));
        }
        numbers.0 += 1;
        Ok(numbers.0 - 1)
    }

    /// Writes parts and notes, durably. The call may be made twice: whatever was written stays as it is.
    fn write(&self, content: i64, first: bool, pending: &Pending) -> Result<bool, StoreError> {
        let (epoch, pending) = (self.epoch, Arc::new(pending.clone()));
        let row = self.pool.call(WRITING, move |client| {
            let pending = Arc::clone(&pending);
            async move {
                let parts = pending.parts.iter();
                let at: Vec<i64> = parts.clone().map(|part| signed(part.0)).collect();
                let octets: Vec<&[u8]> = parts.clone().map(|part| &part.1[..]).collect();
                let sums: Vec<Vec<u8>> = parts.map(|part| sums(&part.1)).collect();
                let notes = pending.notes.iter();
                let number: Vec<i32> = notes.clone().map(|note| note.number).collect();
                let note_at: Vec<i64> = notes.clone().map(|note| signed(note.at)).collect();
                let digest: Vec<i64> = notes.clone().map(|note| stored(note.digest)).collect();
                let texts: Vec<&[u8]> = notes.map(|note| &note.octets[..]).collect();
                client
                    .row(
                        "SELECT write_parts($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                        &[
                            &epoch, &content, &first, &at, &octets, &sums, &number, &note_at,
                            &digest, &texts,
                        ],
                    )
                    .await
            }
        })?;
        Ok(row.is_some_and(|row| row.get(0)))
    }

    /// Nothing needs this content any more: [`Writer::retry`] does later what fails now.
    pub(crate) fn give_up(&self, content: i64) {
        if self.free(vec![content]).is_err() {
            lock(&self.given_up).push(content);
        }
    }

    /// Gives up what could not be given up before.
    pub(crate) fn retry(&self) -> Result<(), StoreError> {
        let left = std::mem::take(&mut *lock(&self.given_up));
        if left.is_empty() {
            return Ok(());
        }
        self.free(left.clone()).inspect_err(|_| lock(&self.given_up).extend(left))
    }

    fn free(&self, contents: Vec<i64>) -> Result<(), StoreError> {
        let (epoch, contents) = (self.epoch, Arc::new(contents));
        self.pool.call("giving up a content", move |client| {
            let contents = Arc::clone(&contents);
            async move {
                let sql = "UPDATE content SET owner = NULL \
                           WHERE id = ANY ($1) AND owner = $2 AND refs = 0";
                client.rows(sql, &[&*contents, &epoch]).await.map(drop)
            }
        })
    }
}

/// What is not written yet.
#[derive(Clone, Debug, Default)]
struct Pending {
    parts: Vec<(u64, Bytes)>,
    notes: Vec<PendingNote>,
}

#[derive(Clone, Debug)]
struct PendingNote {
    number: i32,
    at: u64,
    digest: u64,
    octets: Bytes,
}

/// A long content being written.
pub(crate) struct Long {
    pub(crate) content: i64,
    pub(crate) length: u64,
    /// Whether the database has a row of it.
    begun: bool,
    tail: BytesMut,
    pending: Pending,
    digest: Box<Xxh3>,
    notes: i32,
}

impl std::fmt::Debug for Long {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Long")
            .field("content", &self.content)
            .field("length", &self.length)
            .finish()
    }
}

impl Long {
    pub(crate) fn new(content: i64) -> Long {
        Long {
            content,
            length: 0,
            begun: false,
            tail: BytesMut::new(),
            pending: Pending::default(),
            digest: Box::default(),
            notes: 0,
        }
    }

    /// A content that an earlier run was receiving, with its digest so far.
    pub(crate) fn left(content: i64, length: u64, digest: Box<Xxh3>, notes: i32) -> Long {
        Long { length, begun: true, digest, notes, ..Long::new(content) }
    }

    /// Octets in memory.
    pub(crate) fn held(&self) -> usize {
        let parts: usize = self.pending.parts.iter().map(|part| part.1.len()).sum();
        self.tail.len() + parts
    }

    /// Appends octets; writes each part that is complete.
    pub(crate) fn append(&mut self, octets: &[u8], writer: &Writer) -> Result<(), StoreError> {
        let mut left = octets;
        while !left.is_empty() {
            let room = PART.saturating_sub(self.tail.len());
            let (now, later) = left.split_at(room.min(left.len()));
            self.take(now);
            left = later;
            if self.tail.len() >= PART {
                self.seal();
                self.write(writer)?;
            }
        }
        Ok(())
    }

    /// Appends octets if that completes no part.
    pub(crate) fn append_in_memory(&mut self, octets: &[u8]) -> bool {
        let fits = self.tail.len() + octets.len() < PART;
        if fits {
            self.take(octets);
        }
        fits
    }

    fn take(&mut self, octets: &[u8]) {
        self.digest.update(octets);
        self.tail.extend_from_slice(octets);
        self.length += octets.len() as u64;
    }

    /// Ends the part: what follows is in another one.
    fn seal(&mut self) {
        if !self.tail.is_empty() {
            let octets = self.tail.split().freeze();
            self.pending.parts.push((self.length - octets.len() as u64, octets));
        }
    }

    /// Appends a note behind what it has.
    pub(crate) fn note(&mut self, note: &[u8]) {
        // A part ends at each note, so a content is cut there without a change of parts.
        self.seal();
        let digest = self.digest.digest();
        let octets = Bytes::copy_from_slice(note);
        self.pending.notes.push(PendingNote {
            number: self.notes,
            at: self.length,
            digest,
            octets,
        });
        self.notes += 1;
    }

    /// Writes all that it has.
    pub(crate) fn sync(&mut self, writer: &Writer) -> Result<(), StoreError> {
        self.seal();
        let pending = &self.pending;
        if self.begun && pending.parts.is_empty() && pending.notes.is_empty() {
            return Ok(());
        }
        self.write(writer)
    }

    fn write(&mut self, writer: &Writer) -> Result<(), StoreError> {
        let is_ours = writer.write(self.content, !self.begun, &self.pending)?;
        if !is_ours {
            return Err(StoreError::Fenced);
        }
        self.begun = true;
        self.pending = Pending::default();
        Ok(())
    }
}
