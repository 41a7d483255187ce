//! The commit of a group: bodies first, then one transaction, then the clean-up.

use super::apply::Change;
use super::bulk::Remembered;
use super::guard::Trouble;
use super::tables::{self, Tables};
use super::{DatabaseState, RedbStore};
use crate::error::StoreError;
use crate::spool::{Claim, Content, MAX_INLINE};
use base::BodyId;
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Op};
use redb::Database;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLockReadGuard};

/// The longest record, in octets.
const MAX_RECORD: usize = 16 << 20;
/// The longest name of a meta value, in octets.
const MAX_NAME: usize = 255;

/// A batch whose bodies are available, and durable if they are files.
#[derive(Debug, Default)]
struct Staged {
    changes: Vec<Change>,
    claims: Vec<(Claim, Content)>,
    /// Files written for this batch's own octets.
    files: Vec<u64>,
}

/// The end of a transaction.
enum Outcome {
    /// Durable; these files are no longer referred to.
    Kept(Vec<u64>),
    /// Nothing of it is in the database.
    Undone(StoreError),
    /// It may be durable or not: its files stay, and the next open decides.
    Unknown(StoreError),
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
    pub(super) fn commit_group(&self, group: Vec<Batch>) -> Vec<Result<(), StoreError>> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
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
        let outcomes = match self.transact(&good) {
            Outcome::Undone(_) if good.len() > 1 => self.transact_singly(&good),
            whole => vec![whole],
        };
        let mut outcomes = Outcome::spread(outcomes, good.len()).into_iter();
        staged
            .into_iter()
            .map(|slot| {
                let batch = slot?;
                let outcome = outcomes.next().unwrap_or(Outcome::Unknown(StoreError::Closed));
                self.finish(batch, outcome)
            })
            .collect()
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
            let outcome = self.transact(&[batch]);
            if let Outcome::Undone(error) = &outcome
                && error.is_disk_full()
            {
                too_large = Some((size, error.clone()));
            }
            outcome
        };
        batches.iter().map(attempt).collect()
    }

    fn transact(&self, batches: &[&Staged]) -> Outcome {
        if let Err(error) = self.recover() {
            return Outcome::Undone(error);
        }
        if batches.is_empty() {
            return Outcome::Kept(Vec::new());
        }
        let (number, mut dropped, error) = {
            let state = self.state();
            let db = match &state.db {
                Ok(db) => db,
                Err(error) => return Outcome::Undone(error.clone()),
            };
            let number = match tables::commits(db) {
                Ok(commits) => commits.saturating_add(1),
                Err(error) => return Outcome::Undone(committing(error)),
            };
            let mut dropped = Vec::new();
            match write(db, number, batches, &mut dropped) {
                Ok(()) => return Outcome::Kept(dropped),
                Err(error) => match state.trouble.get() {
                    None => return Outcome::Undone(committing(error)),
                    Some(Trouble::Sync(source)) => {
                        let source = Arc::clone(source);
                        return Outcome::Unknown(self.stop("syncing the database", source));
                    }
                    Some(Trouble::Operation) => (number, dropped, committing(error)),
                },
            }
        };
        // A write failed part way. After reopening, the last whole commit is this one or the one
        // before.
        if let Err(reopening) = self.recover() {
            tracing::error!(%error, "the commit failed before");
            self.unsure.store(number, Ordering::Relaxed);
            return Outcome::Unknown(reopening);
        }
        let state = self.state();
        match state.db.as_ref().map(tables::commits) {
            Ok(Ok(found)) if found == number => Outcome::Kept(std::mem::take(&mut dropped)),
            Ok(Ok(_)) => Outcome::Undone(error),
            Ok(Err(reading)) => Outcome::Unknown(
                self.stop("counting commits", Arc::new(std::io::Error::other(reading.to_string()))),
            ),
            Err(reopening) => Outcome::Unknown(reopening.clone()),
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
        let outcome = self.transact(&[&staged]);
        self.finish(staged, outcome)?;
        Ok(self.bulk().len())
    }

    fn finish(&self, batch: Staged, outcome: Outcome) -> Result<(), StoreError> {
        match outcome {
            Outcome::Kept(dropped) => {
                for (claim, content) in &batch.claims {
                    self.spools.settle(claim, content);
                }
                for number in dropped {
                    self.bodies.unlink(number);
                }
                let (mut recent, mut bulk) = (self.recent(), self.bulk());
                for change in batch.changes {
                    change.remember(&mut recent, &mut bulk);
                }
                Ok(())
            }
            Outcome::Undone(error) => {
                self.undo(batch);
                Err(error)
            }
            Outcome::Unknown(error) => {
                self.recent().clear();
                for (claim, content) in &batch.claims {
                    self.spools.settle(claim, content);
                }
                Err(error)
            }
        }
    }

    /// Restores the spools and removes the files written for the batch.
    fn undo(&self, batch: Staged) {
        // The changes share the octets of the spools.
        drop(batch.changes);
        for (claim, content) in batch.claims {
            self.spools.restore(claim, content);
        }
        for number in batch.files {
            self.bodies.unlink(number);
        }
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

    fn stage_op(&self, op: Op, staged: &mut Staged) -> Result<(), StoreError> {
        let change = match op {
            Op::PutEntry { precedence, id, record } => {
                Change::PutEntry(precedence, id, within("a queue record", record)?)
            }
            Op::DeleteEntry { precedence, id } => Change::DeleteEntry(precedence, id),
            Op::PutBody { id, source } => self.stage_body(id, source, staged)?,
            Op::DeleteBody { id } => Change::DeleteBody(id),
            Op::PutSeen { key, until, record } => {
                // Before the key can be in the database: a reader in between is sent to the
                // database.
                self.sieve.insert(&key);
                Change::PutSeen(key, until, within("a remembered answer", record)?)
            }
            Op::ForgetSeen { before, most } => Change::ForgetSeen(before, most),
            Op::PutMeta { name, value } => {
                check("a name", name.len(), MAX_NAME)?;
                Change::PutMeta(name, within("a named value", value)?)
            }
        };
        staged.changes.push(change);
        Ok(())
    }

    fn stage_body(
        &self,
        id: BodyId,
        source: BodySource,
        staged: &mut Staged,
    ) -> Result<Change, StoreError> {
        let content = match source {
            BodySource::Spool(spool) => {
                let (claim, content) = self.spools.claim(spool)?;
                staged.claims.push((claim, content.clone()));
                content
            }
            BodySource::Octets(octets) if octets.len() <= MAX_INLINE => Content::Inline(octets),
            BodySource::Octets(octets) => {
                let io = |e| StoreError::io("writing a content", e);
                let mut body = self.bodies.create().map_err(io)?;
                staged.files.push(body.number);
                body.file.append(&octets).map_err(io)?;
                body.file.sync().map_err(io)?;
                Content::File { number: body.number, length: octets.len() as u64 }
            }
        };
        Ok(Change::PutBody(id, content))
    }
}

impl Outcome {
    /// One outcome for each of `count` batches from that of their common transaction. The dropped
    /// files go with the first.
    fn spread(mut outcomes: Vec<Outcome>, count: usize) -> Vec<Outcome> {
        while outcomes.len() < count {
            let next = match outcomes.first() {
                Some(Outcome::Undone(error)) => Outcome::Undone(error.clone()),
                Some(Outcome::Unknown(error)) => Outcome::Unknown(error.clone()),
                Some(Outcome::Kept(_)) | None => Outcome::Kept(Vec::new()),
            };
            outcomes.push(next);
        }
        outcomes
    }
}

fn write(
    db: &Database,
    number: u64,
    batches: &[&Staged],
    dropped: &mut Vec<u64>,
) -> Result<(), redb::Error> {
    let txn = tables::begin(db)?;
    let mut open = Tables::open(&txn)?;
    for change in batches.iter().flat_map(|batch| &batch.changes) {
        change.apply(&mut open, dropped)?;
    }
    drop(open);
    tables::count_commit(&txn, number)?;
    txn.commit()?;
    Ok(())
}

fn committing(error: redb::Error) -> StoreError {
    StoreError::database("committing", error)
}

fn check(what: &'static str, length: usize, limit: usize) -> Result<(), StoreError> {
    if length > limit {
        return Err(StoreError::TooLong { what, length, limit });
    }
    Ok(())
}

fn within(what: &'static str, octets: Bytes) -> Result<Bytes, StoreError> {
    check(what, octets.len(), MAX_RECORD)?;
    Ok(octets)
}
