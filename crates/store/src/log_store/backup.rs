//! A copy of the store while it is used: as it was at one moment between two commits.
//!
//! Files of the log only grow, contents and runs never change. So it is enough to know at that moment which
//! there are and how far the last segment was written, and to remove none of them while they are copied.

use super::LogStore;
use super::frame::SegmentId;
use super::import;
use super::segment::{file_of, newest_file};
use crate::bodies;
use crate::disk::Disk;
use crate::error::StoreError;
use std::path::{Path, PathBuf};

/// Octets that are copied at once.
const PART: usize = 1 << 20;

/// What there was at one moment.
#[derive(Debug, Default)]
struct Inventory {
    /// Segments, the octets of their files, and up to where they are copied.
    segments: Vec<(SegmentId, u64, u64)>,
    /// Files of bodies and of remembered keys, with their octets.
    files: Vec<(PathBuf, u64)>,
}

/// Ends the hold on the files.
struct Hold<'a>(&'a LogStore);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let LogStore { disk, segments, bodies, held_runs, .. } = self.0;
        segments.held.release(&**disk, true);
        bodies.held.release(&**disk, false);
        held_runs.release(&**disk, false);
    }
}

impl LogStore {
    /// Copies all to an empty disk; false if `goes_on` ended it. See [`QueueStore::back_up`].
    ///
    /// [`QueueStore::back_up`]: crate::QueueStore::back_up
    ///
    /// # Errors
    /// Those of either disk: the copy is of no use then.
    pub fn back_up_to(
        &self,
        to: &dyn Disk,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, StoreError> {
        let (inventory, _hold) = self.inventory()?;
        let io = |e| StoreError::io("making the directories of a backup", e);
        for directory in ["log", "keys", "bodies"] {
            to.create_dir(Path::new(directory)).map_err(io)?;
        }
        let mut copy = Copy { from: self, to, goes_on };
        for (id, octets, used) in &inventory.segments {
            if !copy.file(&file_of(*id), *used, *octets)? {
                return Ok(false);
            }
        }
        for (path, octets) in &inventory.files {
            if !copy.file(path, *octets, *octets)? {
                return Ok(false);
            }
        }
        for path in import::MARKS.map(Path::new) {
            copy.small(path)?;
        }
        if let Some((newest, ..)) = inventory.segments.last() {
            to.create(&newest_file(*newest)).map_err(io)?.sync().map_err(io)?;
        }
        for directory in ["log", "keys", "bodies", ""] {
            to.sync_dir(Path::new(directory)).map_err(io)?;
        }
        Ok(true)
    }

    /// What there is between two commits; it stays until the hold ends.
    fn inventory(&self) -> Result<(Inventory, Hold<'_>), StoreError> {
        // No commit and no tidying meanwhile.
        let writer = self.writer();
        self.check()?;
        self.segments.held.hold();
        self.bodies.held.hold();
        self.held_runs.hold();
        let hold = Hold(self);
        let active = writer.active.as_ref().map(|active| active.id);
        let segments = self.segments.sizes().into_iter().map(|(id, octets)| {
            // What follows in the last one is of later commits.
            (id, octets, if Some(id) == active { writer.used } else { octets })
        });
        let index = self.index();
        let bodies = index.body_files().map(|(_, number, octets)| (bodies::path(number), octets));
        let runs = index.keys.old();
        let runs = runs.runs().map(|run| (run.file(), run.octets));
        let files = bodies.chain(runs).collect();
        Ok((Inventory { segments: segments.collect(), files }, hold))
    }
}

struct Copy<'a> {
    from: &'a LogStore,
    to: &'a dyn Disk,
    goes_on: &'a mut dyn FnMut(u64) -> bool,
}

impl Copy<'_> {
    /// Copies so many octets of a file, and makes it so long with zeros; false if it is to end.
    fn file(&mut self, path: &Path, octets: u64, length: u64) -> Result<bool, StoreError> {
        let writing = |e| StoreError::io("writing a backup", e);
        let mut file = self.to.create(path).map_err(writing)?;
        let mut offset = 0;
        while offset < length {
            // A daemon that stops does not wait for the copy.
            self.from.check()?;
            let left = if offset < octets { octets - offset } else { length - offset };
            let part = usize::try_from(left).unwrap_or(PART).min(PART);
            let read = if offset < octets {
                let reading = |e| StoreError::io("reading for a backup", e);
                self.from.disk.read_range(path, offset, part).map_err(reading)?
            } else {
                vec![0; part]
            };
            file.append(&read).map_err(writing)?;
            offset += part as u64;
            if !(self.goes_on)(part as u64) {
                return Ok(false);
            }
        }
        file.sync().map_err(writing)?;
        Ok(true)
    }

    /// Copies a small file, if there is one.
    fn small(&mut self, path: &Path) -> Result<(), StoreError> {
        let directory = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().unwrap_or_default();
        let files =
            self.from.disk.list(directory).map_err(|e| StoreError::io("listing files", e))?;
        if let Some((_, octets)) = files.into_iter().find(|(of, _)| **of == *name) {
            self.file(path, octets, octets)?;
        }
        Ok(())
    }
}
