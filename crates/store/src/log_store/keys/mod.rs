//! The remembered keys: those of the latest segments in memory, the others in runs.

pub(super) mod run;

use super::frame::SegmentId;
use crate::disk::Disk;
use base::Utc;
use bytes::Bytes;
use engine::journal::Digest;
use run::{Remembered, Run};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// The named value that lists the runs, so that the loss of one is noticed.
pub(super) const LIST: &str = "store.runs";

/// A key in memory.
#[derive(Clone, Debug)]
pub(super) struct KeyRow {
    pub segment: SegmentId,
    pub until: Utc,
    pub record: Bytes,
}

#[derive(Debug, Default)]
pub(super) struct Keys {
    latest: BTreeMap<Digest, KeyRow>,
    /// The oldest first.
    runs: Arc<Vec<Arc<Run>>>,
    /// Runs that are listed and whose files are missing, until a repair accepts it.
    missing: Vec<ListedRun>,
    /// Keys that expire before this are absent.
    floor: Utc,
}

/// A run, as the list has it: its last segment, the expiry of its last key, and its number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListedRun {
    last: SegmentId,
    blocks: u32,
    latest: Utc,
    /// It was missing before. Another one may have its name by now, with what frames still had.
    is_missing: bool,
}

/// A flag in the number of blocks of a listed run: its file is missing.
const MISSING: u32 = 1 << 31;

/// Keys of runs, to be looked up without a lock.
#[derive(Clone, Debug)]
pub(super) struct OldKeys {
    runs: Arc<Vec<Arc<Run>>>,
    floor: Utc,
}

impl Keys {
    pub(super) fn new(runs: Vec<Run>) -> Keys {
        Keys { runs: Arc::new(runs.into_iter().map(Arc::new).collect()), ..Keys::default() }
    }

    /// The last segment whose keys are in runs.
    pub(super) fn in_runs(&self) -> Option<SegmentId> {
        self.runs.last().map(|run| run.last)
    }

    pub(super) fn floor(&self) -> Utc {
        self.floor
    }

    /// The keys in memory, in order.
    pub(super) fn latest(&self) -> &BTreeMap<Digest, KeyRow> {
        &self.latest
    }

    /// The keys that are not in memory.
    pub(super) fn old(&self) -> OldKeys {
        OldKeys { runs: Arc::clone(&self.runs), floor: self.floor }
    }

    /// The list of the runs, as the log has it.
    pub(super) fn list(&self) -> Vec<u8> {
        let of = |run: &Arc<Run>| ListedRun::from(&**run);
        let listed = self.runs.iter().map(of).chain(self.still_missing());
        listed.flat_map(ListedRun::octets).collect()
    }

    /// Compares the list in the log with what is there; false if it lacks a run. A run in which all keys
    /// have expired may be gone.
    pub(super) fn compare(&mut self, list: &[u8]) -> bool {
        let listed: Vec<ListedRun> =
            list.as_chunks().0.iter().map(|octets| ListedRun::read(*octets)).collect();
        let is_there = |of: &ListedRun| self.runs.iter().any(|run| run.last == of.last);
        let is_missing =
            |of: &&ListedRun| of.latest >= self.floor && (of.is_missing || !is_there(of));
        let missing = listed.iter().filter(is_missing);
        self.missing = missing.map(|of| ListedRun { is_missing: true, ..*of }).collect();
        for of in &self.missing {
            let (run, blocks) = (of.last, of.blocks);
            tracing::error!(run, blocks, "a file of remembered keys is missing");
        }
        let is_listed =
            |run: &Arc<Run>| listed.iter().any(|of| of.last == run.last && !of.is_missing);
        let is_known = listed.iter().filter(|of| of.is_missing).count() == self.missing.len();
        is_known && self.runs.iter().all(is_listed)
    }

    /// The blocks of runs that are missing.
    pub(super) fn missing_blocks(&self) -> u64 {
        self.still_missing().map(|of| u64::from(of.blocks)).sum()
    }

    fn still_missing(&self) -> impl Iterator<Item = ListedRun> + '_ {
        self.missing.iter().filter(|of| of.latest >= self.floor).copied()
    }

    /// The keys of missing runs are accepted as lost.
    pub(super) fn accept_missing(&mut self) {
        self.missing.clear();
    }

    /// Whether a key is certainly not remembered.
    pub(super) fn lacks(&self, key: &Digest) -> bool {
        !self.latest.contains_key(key) && self.runs.iter().all(|run| run.lacks(key))
    }

    /// Whether any key may have expired before this time, and is remembered.
    pub(super) fn has_expired(&self, before: Utc) -> bool {
        let is_due = |run: &Arc<Run>| run.earliest < before && run.latest >= self.floor;
        self.latest.values().any(|row| row.until < before)
            || (before > self.floor && self.runs.iter().any(is_due))
    }

    pub(super) fn put(&mut self, key: Digest, row: KeyRow) -> Option<KeyRow> {
        self.latest.insert(key, row)
    }

    /// Forgets what expired before this time; `forgotten` gets each key that was in memory.
    pub(super) fn forget(&mut self, before: Utc, mut forgotten: impl FnMut(&KeyRow)) {
        // Every segment begins with the floor of its time.
        if before <= self.floor {
            return;
        }
        self.floor = before;
        self.latest.retain(|_, row| {
            let stays = row.until >= before;
            if !stays {
                forgotten(row);
            }
            stays
        });
    }

    /// A run has the keys of all segments up to its last; `moved` gets each one.
    pub(super) fn add_run(&mut self, run: Run, mut moved: impl FnMut(&KeyRow)) {
        let last = run.last;
        self.change_runs(|runs| runs.push(Arc::new(run)));
        self.latest.retain(|_, row| {
            let stays = row.segment > last;
            if !stays {
                moved(row);
            }
            stays
        });
    }

    /// Takes out the runs in which all keys have expired.
    pub(super) fn take_expired_runs(&mut self) -> Vec<Arc<Run>> {
        let floor = self.floor;
        // The last run shows which segments are in runs.
        let count = self.runs.len();
        let is_expired = |(at, run): (usize, &Arc<Run>)| run.latest < floor && at + 1 < count;
        if !self.runs.iter().enumerate().any(is_expired) {
            return Vec::new();
        }
        let mut expired = Vec::new();
        self.change_runs(|runs| {
            let (old, kept): (Vec<_>, Vec<_>) =
                runs.drain(..).enumerate().partition(|(at, run)| is_expired((*at, run)));
            expired = old.into_iter().map(|(_, run)| run).collect();
            *runs = kept.into_iter().map(|(_, run)| run).collect();
        });
        expired
    }

    /// A run was written anew.
    pub(super) fn replace_run(&mut self, new: Run) {
        let new = Arc::new(new);
        self.change_runs(|runs| {
            if let Some(old) = runs.iter_mut().find(|run| run.last == new.last) {
                *old = new;
            }
        });
    }

    fn change_runs(&mut self, change: impl FnOnce(&mut Vec<Arc<Run>>)) {
        change(Arc::make_mut(&mut self.runs));
    }
}

impl ListedRun {
    fn octets(self) -> [u8; 16] {
        let missing = if self.is_missing { MISSING } else { 0 };
        let number = u128::from(self.last) << 32 | u128::from(self.blocks | missing);
        (u128::from(self.latest.0) << 64 | number).to_le_bytes()
    }

    fn read(octets: [u8; 16]) -> ListedRun {
        let all = u128::from_le_bytes(octets);
        let (number, latest) = (all as u64, (all >> 64) as u64);
        let (last, blocks) = ((number >> 32) as u32, number as u32);
        ListedRun {
            last,
            blocks: blocks & !MISSING,
            latest: Utc(latest),
            is_missing: blocks & MISSING != 0,
        }
    }
}

impl From<&Run> for ListedRun {
    fn from(run: &Run) -> ListedRun {
        let blocks = u32::try_from(run.block_count()).unwrap_or(u32::MAX) & !MISSING;
        ListedRun { last: run.last, blocks, latest: run.latest, is_missing: false }
    }
}

impl OldKeys {
    /// What the newest run with this key has; nothing if it expired before the floor. `damaged` counts
    /// blocks that cannot be read.
    pub(super) fn get(
        &self,
        disk: &dyn Disk,
        key: &Digest,
        damaged: &mut u64,
    ) -> io::Result<Option<Remembered>> {
        for run in self.runs.iter().rev() {
            let found = match run.get(disk, key, damaged) {
                // Dropped meanwhile: all of it has expired.
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                found => found?,
            };
            if let Some(found) = found {
                return Ok(Some(found).filter(|found| found.until >= self.floor));
            }
        }
        Ok(None)
    }

    /// The runs, the oldest first.
    /// The first of the keys after one of them: of each run so many, so at least so many of all, if there
    /// are. Also those below the floor.
    pub(super) fn after(
        &self,
        disk: &dyn Disk,
        after: Option<&Digest>,
        limit: usize,
        damaged: &mut u64,
    ) -> io::Result<BTreeMap<Digest, Remembered>> {
        let mut page = BTreeMap::new();
        // The oldest run first: a later one has what is valid.
        for run in self.runs.iter() {
            match run.after(disk, after, limit, damaged) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                rows => page.extend(rows?),
            }
        }
        Ok(page)
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|run| &**run)
    }
}
