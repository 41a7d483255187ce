//! A check of the whole store: its progress and its result.

pub mod pace;

use crate::pace::Pace;
use base::{BodyId, EntryId, Precedence};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Damage, QueueStore, StoreError};

/// What a check has found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreReport {
    /// Queue entries when it began.
    pub entries: u64,
    /// Octets read.
    pub octets: u64,
    /// Whether it is still reading.
    pub running: bool,
    /// Why it could not go on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<String>,
    /// Parts of the log that are lost: batches that cannot be read, segments that are missing or cut off. It is
    /// not known which messages they had.
    pub log_parts: u64,
    /// Entries whose records are damaged.
    pub records: Vec<DamagedRecord>,
    /// Contents that are damaged or missing.
    pub contents: Vec<BodyId>,
    /// Damaged blocks of remembered keys: duplicates of what they remembered are not recognised.
    pub keys: u64,
    /// Contents in files `*.aside`, which no queue entry names: their entries are lost or damaged.
    #[serde(default)]
    pub set_aside: u64,
}

/// An entry whose record is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedRecord {
    /// Its precedence.
    pub precedence: Precedence,
    /// Its number, as in the event log.
    pub entry: EntryId,
}

impl StoreReport {
    /// Whether anything is damaged.
    #[must_use]
    pub fn has_damage(&self) -> bool {
        self.log_parts + self.keys > 0 || !self.records.is_empty() || !self.contents.is_empty()
    }

    fn note(&mut self, damage: &Damage) {
        let record = |(precedence, entry): &(Precedence, EntryId)| DamagedRecord {
            precedence: *precedence,
            entry: *entry,
        };
        self.log_parts = damage.batches;
        self.records = damage.entries.iter().map(record).collect();
        self.contents = damage.bodies.iter().copied().collect();
        self.keys = damage.keys;
    }
}

/// A check that runs, or has ended.
#[derive(Clone, Debug, Default)]
pub struct StoreCheck(Arc<Mutex<StoreReport>>);

impl StoreCheck {
    /// What is found so far.
    #[must_use]
    pub fn report(&self) -> StoreReport {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut StoreReport)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Begins, unless it is running.
    #[must_use]
    pub fn begins(&self) -> bool {
        let mut report = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = !report.running;
        if begins {
            *report = StoreReport { running: true, ..StoreReport::default() };
        }
        begins
    }

    /// Reads everything; blocks.
    pub fn run(
        &self,
        store: &dyn QueueStore,
        mut pace: Pace<'_>,
        mut progress: impl FnMut(&StoreReport),
    ) {
        let done = self.read(store, &mut pace, &mut progress);
        self.change(|report| {
            report.note(&store.damage());
            report.set_aside = store.sweep().aside as u64;
            report.running = false;
            report.failed = done.err().map(|error| error.to_string());
        });
    }

    fn read(
        &self,
        store: &dyn QueueStore,
        pace: &mut Pace<'_>,
        progress: &mut dyn FnMut(&StoreReport),
    ) -> Result<(), StoreError> {
        let entries = store.entry_count()?;
        self.change(|report| report.entries = entries);
        store.verify(&mut |read| {
            self.change(|report| report.octets += read);
            progress(&self.report());
            pace.read(read).1
        })
    }
}
