//! The start of a process: the store is opened, the epoch raised, and the queue read part by part.

use super::mutant::{Lie, Mutant, SyncOf, When};
use super::{RealStore, SITE};
use crate::network::Opened;
use base::{BodyId, Now};
use bytes::Bytes;
use engine::journal::Op;
use engine::next_epoch;
use engine::registered::Registration;
use node::Input;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::queue::{commit_one, first_entry};
use store::{BatchId, Disk, EntryKey, LogStore, QueueStore, StoreError};

/// Most entries that are read before the node serves, and of a later part: as few as there are messages.
const FIRST: usize = 2;
const PART: usize = 1;

/// The number of the batch that is committed before those of the committer.
const FIRST_BATCH: BatchId = BatchId(0);

/// Name of the durable count of starts.
const EPOCH: &str = "epoch";

/// What of the queue is read next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    Nothing,
    Entries(Option<EntryKey>),
    Bodies(Option<BodyId>),
    End,
}

impl RealStore {
    /// Opens the store, raises the epoch and reads the first part of the queue.
    pub(super) fn open(&mut self, now: Now) -> Result<Opened, String> {
        self.ignore(When::Opening);
        let store = LogStore::with_disk(Arc::new(self.disk.clone()), self.options());
        let store = store.map_err(|e| e.to_string())?;
        self.note_problems(&store);
        let epoch = self.raise_epoch(&store, now)?;
        self.ignore(When::Running);
        let first = first_entry(&store).map_err(|e| e.to_string())?;
        let inputs = self.first_inputs(&store).map_err(|e| e.to_string())?;
        self.store = Some(Arc::new(store));
        Ok(Opened { epoch: Some(epoch), first, inputs })
    }

    /// The syncs that a mutant leaves out from now on.
    fn ignore(&self, now: When) {
        let Some(Mutant::NoSync(what, when)) = self.mutant else { return };
        self.disk.ignore_nothing();
        if when != now && when != When::Always {
            return;
        }
        match what {
            SyncOf::Files(ending) => self.disk.ignore_sync_of_files(ending),
            SyncOf::Names(directory) => self.disk.ignore_sync_of(Path::new(directory)),
        }
    }

    /// What no crash may leave behind.
    fn note_problems(&mut self, store: &LogStore) {
        let (sweep, damage) = (store.sweep(), store.damage());
        if sweep.set_aside > 0 || sweep.lost > 0 || !sweep.missing.is_empty() {
            self.problems.push(format!("open {}: {sweep:?}", self.opens));
        }
        if !damage.is_none() {
            self.problems.push(format!("open {}: {damage:?}", self.opens));
        }
    }

    fn raise_epoch(&self, store: &LogStore, now: Now) -> Result<u32, String> {
        let stored = match store.meta(EPOCH).map_err(|e| e.to_string())? {
            None => Some(0),
            Some(value) => value.as_ref().try_into().ok().map(u32::from_be_bytes),
        };
        let epoch = match self.lies(Lie::SameEpoch) {
            true => 1,
            false => next_epoch(stored, self.kept_epoch(), now.utc).ok_or("all epochs are used")?,
        };
        // Where this fails, the store has it too.
        let _ = self.keep_epoch(epoch);
        let value = Bytes::copy_from_slice(&epoch.to_be_bytes());
        let mut batch = vec![Op::PutMeta { name: EPOCH.to_owned(), value }];
        if stored == Some(0) {
            let registered = self.registrations.iter().map(|(mailbox, registration)| Op::PutMeta {
                name: Registration::name(mailbox),
                value: registration.encode().into(),
            });
            batch.extend(registered);
        }
        commit_one(store, FIRST_BATCH, batch).map_err(|e| e.to_string())?;
        Ok(epoch)
    }

    /// The epoch in its second place, a file.
    fn kept_epoch(&self) -> Option<u32> {
        let files = self.disk.list(Path::new(SITE)).ok()?;
        let (_, length) = files.into_iter().find(|(name, _)| name == EPOCH)?;
        let octets = self.disk.read_range(&file(EPOCH), 0, length as usize).ok()?;
        String::from_utf8(octets).ok()?.trim().parse().ok()
    }

    fn keep_epoch(&self, epoch: u32) -> std::io::Result<()> {
        let new = file("epoch.new");
        if self.disk.read_range(&new, 0, 0).is_ok() {
            // The daemon truncates it.
            self.disk.unlink(&new)?;
        }
        let mut kept = self.disk.create(&new)?;
        kept.append(format!("{epoch}\n").as_bytes())?;
        kept.sync()?;
        self.disk.rename(&new, &file(EPOCH))?;
        self.disk.sync_dir(Path::new(SITE))
    }

    fn first_inputs(&mut self, store: &LogStore) -> Result<Vec<Input>, StoreError> {
        let holds = store.meta(node::operator::HELD)?.filter(|_| !self.lies(Lie::ForgetsHolds));
        let clock = store.meta(node::wall::CLOCK)?;
        let mut inputs: Vec<Input> = holds.map(Input::RecoveredHolds).into_iter().collect();
        let disabled = store.meta(node::channel_order::DISABLED)?;
        inputs.extend(disabled.map(Input::RecoveredDisabled));
        inputs.extend(store.meta(node::site_orders::MINIMIZED)?.map(Input::RecoveredMinimize));
        inputs.extend(clock.map(Input::RecoveredClock));
        inputs.extend(store.meta(node::SENDING)?.map(Input::RecoveredSends));
        inputs.extend(store.meta(node::lists::LISTS)?.map(Input::RecoveredLists));
        let numbers = store.meta(node::mailbox::machine::NAMES)?;
        inputs.extend(numbers.map(Input::RecoveredMailboxes));
        for (mailbox, _) in &self.registrations {
            let value = store.meta(&Registration::name(mailbox))?;
            let mailbox = mailbox.clone();
            inputs.extend(value.map(|value| Input::RecoveredRegistration { mailbox, value }));
        }
        self.spools.clear();
        for store::KeptSpool { id, length, notes } in store.contents().take_kept() {
            self.spools.insert(id, true);
            inputs.push(Input::RecoveredReception { spool: id, length, notes });
        }
        let first = store.entries(None, FIRST)?;
        self.reading = Reading::Entries(first.last().map(store::Entry::key));
        inputs.extend(first.into_iter().map(recovered));
        let space = self.space();
        self.space = Some(space);
        inputs.extend([Input::DiskSpace(space), Input::Serve]);
        Ok(inputs)
    }

    /// The next part of the queue; `None` once all is read.
    pub(super) fn read_on(
        &mut self,
        store: &dyn QueueStore,
        own: (u64, u64),
    ) -> Result<Option<Vec<Input>>, StoreError> {
        match self.reading {
            Reading::Nothing => Ok(None),
            Reading::Entries(after) => {
                let mut part = store.entries(after, PART)?;
                let Some(last) = part.last() else {
                    self.reading = Reading::Bodies(None);
                    return Ok(Some(Vec::new()));
                };
                self.reading = Reading::Entries(Some(last.key()));
                part.retain(|entry| entry.id.0 < own.0 && !self.lies(Lie::ReadsFirstEntries));
                let serve = (!part.is_empty()).then_some(Input::Serve);
                Ok(Some(part.into_iter().map(recovered).chain(serve).collect()))
            }
            Reading::Bodies(after) => {
                let damage = store.damage();
                let part = match damage.batches > 0 || !damage.entries.is_empty() {
                    // A content may belong to one of them.
                    true => Vec::new(),
                    false => store.bodies(after, PART)?,
                };
                let last = part.last().copied();
                self.reading = match last.filter(|last| last.0 < own.1) {
                    Some(last) => Reading::Bodies(Some(last)),
                    None => Reading::End,
                };
                let hands = last.is_some() && !self.lies(Lie::ReadsNoContents);
                Ok(Some(hands.then_some(Input::RecoveredBodies(part)).into_iter().collect()))
            }
            Reading::End => {
                self.reading = Reading::Nothing;
                Ok(Some(vec![Input::Started]))
            }
        }
    }
}

fn recovered(entry: store::Entry) -> Input {
    let store::Entry { precedence, id, record } = entry;
    Input::Recovered { precedence, id, record }
}

fn file(name: &str) -> PathBuf {
    Path::new(SITE).join(name)
}
