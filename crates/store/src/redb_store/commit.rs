//! The commit of a group: bodies first, then one transaction, then the clean-up.

use super::apply::Change;
use super::bulk::Remembered;
use super::guard::Trouble;
use super::tables::{self, Tables};
use super::{DatabaseState, RedbStore};
use crate::error::StoreError;
use crate::queue::{BatchId, Committed, QueueStore};
use crate::spool::Content;
use crate::staging::{MAX_NAME, MAX_RECORD, QUEUE_RECORD, StagedContents, check};
use crate::staging::{framed, part};
use base::BodyId;
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op};
use redb::{Database, ReadableTable};
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLockReadGuard};

/// The number of the store's own batches: nobody asks for their end.
const TIDYING: BatchId = BatchId(u64::MAX);

/// A batch whose bodies are available, and durable if they are files.
#[derive(Debug, Default)]
pub(super) struct Staged {
    changes: Vec<Change>,
    contents: StagedContents,
    /// Keys that must not be remembered before it.
    absent: Vec<Digest>,
}

/// The end of a transaction, or of one batch of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// Durable; these files are no longer referred to.
    Kept(Vec<u64>),
    /// These keys had to be absent: the transaction is without the batch.
    Conflict(Vec<Digest>),
    /// Nothing of it is in the database.
    Undone(StoreError),
    /// It may be durable or not. If the store is not stopped, the next commit has this number, and
    /// the files would no longer be referred to.
    Unknown(StoreError, u64, Vec<u64>),
}

impl Staged {
    fn has_files(&self) -> bool {
        let is_file = |c: &Change| matches!(c, Change::PutBody(_, Content::File { .. }));
        self.changes.iter().any(is_file)
    }

    fn size(&self) -> usize {
        self.changes.iter().map(Change::size).fold(0, usize::saturating_add)
    }
}

impl RedbStore {
    pub(super) fn commit_group(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed> {
        let copies = |op: &Op| op.copied().is_some();
        if group.len() > 1 && group.iter().any(|(_, batch)| batch.iter().any(copies)) {
            // It may copy what one before it has.
            return group.into_iter().flat_map(|one| self.commit_group(vec![one])).collect();
        }
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (ids, group): (Vec<BatchId>, Vec<Batch>) = group.into_iter().unzip();
        let mut staged: Vec<Result<Staged, StoreError>> =
            group.into_iter().map(|batch| self.stage(batch)).collect();
        if staged.iter().flatten().any(Staged::has_files)
            && let Err(error) = self.bodies.sync_names()
        {
            let error = self.stop("syncing the directory of bodies", Arc::new(error));
            for slot in &mut staged {
                if let Ok(batch) = std::mem::replace(slot, Err(error.clone())) {
                    self.undo(batch);
                }
            }
        }
        let good: Vec<&Staged> = staged.iter().flatten().collect();
        let mut outcomes = self.transact_group(&good).into_iter();
        let end = |(slot, id): (Result<Staged, StoreError>, BatchId)| {
            let batch = match slot {
                Ok(batch) => batch,
                Err(error) => return Committed::NotDone(error),
            };
            // There is one for each.
            let outcome = outcomes.next().unwrap_or(Outcome::Undone(StoreError::Closed));
            self.finish(id, batch, outcome)
        };
        staged.into_iter().zip(ids).map(end).collect()
    }

    /// Commits all in one transaction; each by itself if that fails. One outcome for each.
    fn transact_group(&self, batches: &[&Staged]) -> Vec<Outcome> {
        let outcomes = self.transact(batches);
        let is_undone = matches!(outcomes.first(), Some(Outcome::Undone(_)));
        if is_undone && batches.len() > 1 { self.transact_singly(batches) } else { outcomes }
    }

    /// Commits each batch by itself. When one does not fit, larger ones are not tried: after each
    /// failure the database is opened again.
    fn transact_singly(&self, batches: &[&Staged]) -> Vec<Outcome> {
        let mut too_large: Option<(usize, StoreError)> = None;
        let attempt = |batch: &&Staged| {
            let size = batch.size();
            if let Some((limit, error)) = &too_large
                && size >= *limit
            {
                return Outcome::Undone(error.clone());
            }
            let outcome = self.transact(&[batch]).pop();
            let outcome = outcome.unwrap_or(Outcome::Undone(StoreError::Closed));
            if let Outcome::Undone(error) = &outcome
                && error.is_disk_full()
            {
                too_large = Some((size, error.clone()));
            }
            outcome
        };
        batches.iter().map(attempt).collect()
    }

    /// One transaction; one outcome for each batch. [`Outcome::Undone`] is that of all of them.
    fn transact(&self, batches: &[&Staged]) -> Vec<Outcome> {
        let mut written = Written::default();
        let whole = match batches {
            [] => Ok(()),
            batches => self.write(batches, &mut written),
        };
        let Written { conflicts, mut dropped } = written;
        let mut conflicts = conflicts.into_iter();
        let each = |_: &&Staged| {
            let conflict = conflicts.next().unwrap_or_default();
            // The dropped files go with the first.
            match &whole {
                Err(NotWritten::Undone(error)) => Outcome::Undone(error.clone()),
                _ if !conflict.is_empty() => Outcome::Conflict(conflict),
                Err(NotWritten::Unknown(error, number)) => {
                    Outcome::Unknown(error.clone(), *number, std::mem::take(&mut dropped))
                }
                Ok(()) => Outcome::Kept(std::mem::take(&mut dropped)),
            }
        };
        batches.iter().map(each).collect()
    }

    fn write(&self, batches: &[&Staged], written: &mut Written) -> Result<(), NotWritten> {
        self.recover().map_err(NotWritten::Undone)?;
        let (number, error) = {
            let state = self.state();
            let db = state.db.as_ref().map_err(|error| NotWritten::Undone(error.clone()))?;
            let commits = tables::commits(db).map_err(|e| NotWritten::Undone(committing(e)))?;
            let number = commits.saturating_add(1);
            let in_rows: BTreeSet<Digest> = {
                let bulk = self.bulk();
                let absent = batches.iter().flat_map(|batch| &batch.absent);
                absent.filter(|key| bulk.get(key).is_some()).copied().collect()
            };
            match write(db, &in_rows, number, batches, written) {
                Ok(()) => return Ok(()),
                Err(error) => match state.trouble.get() {
                    None => return Err(NotWritten::Undone(committing(error))),
                    Some(Trouble::Sync(source)) => {
                        let error = self.stop("syncing the database", Arc::clone(source));
                        return Err(NotWritten::Unknown(error, number));
                    }
                    Some(Trouble::Operation) => (number, committing(error)),
                },
            }
        };
        // A write failed part way. After reopening, the last whole commit is this one or the one
        // before.
        if let Err(reopening) = self.recover() {
            tracing::error!(%error, "the commit failed before");
            return Err(NotWritten::Unknown(reopening, number));
        }
        let state = self.state();
        match state.db.as_ref().map(tables::commits) {
            Ok(Ok(found)) if found == number => Ok(()),
            Ok(Ok(_)) => Err(NotWritten::Undone(error)),
            Ok(Err(reading)) => {
                let source = Arc::new(std::io::Error::other(reading.to_string()));
                Err(NotWritten::Unknown(self.stop("counting commits", source), number))
            }
            Err(reopening) => Err(NotWritten::Unknown(reopening.clone(), number)),
        }
    }

    fn state(&self) -> RwLockReadGuard<'_, DatabaseState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the keys of one row into the table, in a commit of its own. Returns the number of
    /// rows left.
    pub(super) fn dissolve_row(&self) -> Result<usize, StoreError> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(number) = self.bulk().first() else { return Ok(0) };
        let staged = Staged { changes: vec![Change::Dissolve(number)], ..Staged::default() };
        let outcome = self.transact(&[&staged]).pop();
        let outcome = outcome.unwrap_or(Outcome::Undone(StoreError::Closed));
        self.finish(TIDYING, staged, outcome).into_result()?;
        Ok(self.bulk().len())
    }

    pub(super) fn finish(&self, id: BatchId, batch: Staged, outcome: Outcome) -> Committed {
        match outcome {
            Outcome::Kept(dropped) => {
                batch.contents.settle(&self.spools);
                for number in dropped {
                    self.bodies.unlink(number);
                }
                let (mut recent, mut bulk) = (self.recent(), self.bulk());
                for change in batch.changes {
                    change.remember(&mut recent, &mut bulk);
                }
                Committed::Durable
            }
            Outcome::Conflict(keys) => {
                self.undo(batch);
                Committed::Conflict(keys)
            }
            Outcome::Undone(error) => {
                self.undo(batch);
                Committed::NotDone(error)
            }
            Outcome::Unknown(error, number, dropped) => {
                self.recent().clear();
                self.doubt(id, number, batch, dropped);
                Committed::Unknown(error)
            }
        }
    }

    /// Restores the spools and removes the files written for the batch.
    fn undo(&self, batch: Staged) {
        drop(batch.changes);
        batch.contents.undo(&self.spools, &self.bodies);
    }

    fn stage(&self, batch: Batch) -> Result<Staged, StoreError> {
        let mut staged = Staged::default();
        for op in batch {
            if let Err(error) = self.stage_op(op, &mut staged) {
                self.undo(staged);
                return Err(error);
            }
        }
        self.stage_rows(&mut staged);
        Ok(staged)
    }

    /// Puts the keys of a batch with many keys into rows, unless the batch also deletes keys, as
    /// then their order matters.
    fn stage_rows(&self, staged: &mut Staged) {
        let is_key = |change: &Change| matches!(change, Change::PutSeen(..));
        let count = staged.changes.iter().filter(|change| is_key(change)).count();
        let forgets = |change: &Change| matches!(change, Change::ForgetSeen(..));
        let mut bulk = self.bulk();
        if !bulk.takes(count) || staged.changes.iter().any(forgets) {
            return;
        }
        let mut keys: Vec<Remembered> = Vec::with_capacity(count);
        for change in std::mem::take(&mut staged.changes) {
            match change {
                Change::PutSeen(key, until, record) => keys.push((key, until, record)),
                other => staged.changes.push(other),
            }
        }
        let rows = bulk.rows_of(&keys).into_iter();
        staged.changes.extend(rows.map(|(number, row)| Change::PutRow(number, row)));
    }

    /// All octets of a content, to be copied.
    fn octets_of(&self, id: BodyId) -> Result<Bytes, StoreError> {
        let damaged = || StoreError::BodyDamaged { id };
        let length = self.body_length(id)?.ok_or_else(damaged)?;
        let length = usize::try_from(length).map_err(|_| damaged())?;
        let octets = self.body(id, 0, length)?.filter(|octets| octets.len() == length);
        octets.ok_or_else(damaged)
    }

    fn stage_op(&self, op: Op, staged: &mut Staged) -> Result<(), StoreError> {
        let change = match op {
            Op::PutEntry { precedence, id, queue, record } => {
                Change::PutEntry(precedence, id, queue, within(QUEUE_RECORD, record)?)
            }
            Op::DeleteEntry { precedence, id } => Change::DeleteEntry(precedence, id),
            Op::PutBody { id, source } => {
                let source = match source {
                    BodySource::Body(id) => BodySource::Octets(self.octets_of(id)?),
                    BodySource::Framed { head, body, from, length } => {
                        let octets = part(&self.octets_of(body)?, from, length);
                        let octets = octets.ok_or(StoreError::BodyDamaged { id: body })?;
                        BodySource::Octets(framed(&head, &octets))
                    }
                    source => source,
                };
                let (spools, bodies) = (&self.spools, &self.bodies);
                let content = staged.contents.stage(source, spools, bodies, |_| Ok(None))?;
                Change::PutBody(id, content)
            }
            Op::DeleteBody { id } => Change::DeleteBody(id),
            Op::PutSeen { key, until, record, absent } => {
                if absent && !self.sieve.lacks(&key) {
                    staged.absent.push(key);
                }
                // Before the key can be in the database: a reader in between is sent to the
                // database.
                self.sieve.insert(&key);
                Change::PutSeen(key, until, within("a remembered answer", record)?)
            }
            Op::ForgetSeen { before, most } => Change::ForgetSeen(before, most),
            Op::PutMeta { name, value } | Op::ReplaceMeta { name, value, .. } => {
                check("a name", name.len(), MAX_NAME)?;
                Change::PutMeta(name, within("a named value", value)?)
            }
        };
        staged.changes.push(change);
        Ok(())
    }
}

/// What a transaction wrote.
#[derive(Debug, Default)]
struct Written {
    /// For each batch the keys that had to be absent and are not; the batch is left out.
    conflicts: Vec<Vec<Digest>>,
    /// Files that are no longer referred to.
    dropped: Vec<u64>,
}

/// A transaction failed.
enum NotWritten {
    /// Nothing of it is in the database.
    Undone(StoreError),
    /// It may have been made, as the commit of this number.
    Unknown(StoreError, u64),
}

fn write(
    db: &Database,
    in_rows: &BTreeSet<Digest>,
    number: u64,
    batches: &[&Staged],
    written: &mut Written,
) -> Result<(), redb::Error> {
    let txn = tables::begin(db)?;
    let mut open = Tables::open(&txn)?;
    for batch in batches {
        let ended = batches.iter().zip(&written.conflicts);
        let made = ended.filter(|(_, conflict)| conflict.is_empty()).map(|(batch, _)| batch);
        let conflict = conflict_of(batch, &open, in_rows, &made)?;
        if conflict.is_empty() {
            for change in &batch.changes {
                change.apply(&mut open, &mut written.dropped)?;
            }
        }
        written.conflicts.push(conflict);
    }
    drop(open);
    tables::count_commit(&txn, number)?;
    txn.commit()?;
    Ok(())
}

/// The keys that had to be absent before this batch and are remembered: in their table, in a row that
/// is to be dissolved, or in one that an earlier batch of the transaction wrote.
fn conflict_of<'s>(
    batch: &Staged,
    open: &Tables<'_>,
    in_rows: &BTreeSet<Digest>,
    earlier: &(impl Iterator<Item = &'s &'s Staged> + Clone),
) -> Result<Vec<Digest>, redb::Error> {
    let mut found = Vec::new();
    for key in &batch.absent {
        let mut rows = earlier.clone().flat_map(|batch| &batch.changes);
        let in_row = |change: &Change| change.row_has(key);
        if open.seen.get(key.0)?.is_some() || in_rows.contains(key) || rows.any(in_row) {
            found.push(*key);
        }
    }
    Ok(found)
}

fn committing(error: redb::Error) -> StoreError {
    StoreError::database("committing", error)
}

fn within(what: &'static str, octets: Bytes) -> Result<Bytes, StoreError> {
    check(what, octets.len(), MAX_RECORD)?;
    Ok(octets)
}
