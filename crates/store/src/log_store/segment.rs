//! The files of the log. Each has its whole length from the start, so that a write finds its place
//! whatever else fills the disk; one that is needed no longer is kept, and used again.

use super::frame::SegmentId;
use crate::disk::{Disk, RandomFile};
use crate::error::{StoreError, is_full};
use crate::held::HeldFiles;
use crate::safeguard::{Safeguard, stands};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const DIRECTORY: &str = "log";
const SUFFIX: &str = ".segment";
const SPARE_SUFFIX: &str = ".spare";
/// A segment or spare that has not all its room yet: a shorter one of the names above is damage.
const NEW_SUFFIX: &str = ".new";
/// An empty file names the newest segment, so that its loss is noticed.
const NEWEST_SUFFIX: &str = ".newest";

/// Spare segments that are kept for a full disk: one for the highest precedences, and two for what gives
/// room, some 100,000 deletes in each. While one of the two is written, the other can be given up.
const RESERVE: usize = 3;

/// Numbers from here on are of no segment: so many would take 16 PiB.
const END: SegmentId = SegmentId::MAX - 0xffff;

/// Most spare segments that are kept: to write again to a place that a file has takes half the time.
const SPARES: usize = 4;

/// What a new segment is for: how much of the reserve it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Room {
    /// It takes none.
    Ordinary,
    /// The highest precedences: all but two.
    Urgent,
    /// What gives room, and small named values: all of it.
    Freeing,
}

impl Room {
    /// Spare segments that must be left.
    fn leaves(self) -> usize {
        match self {
            Room::Urgent if stands(Safeguard::RoomForUrgent) => RESERVE - 1,
            Room::Freeing if stands(Safeguard::RoomToDelete) => 0,
            Room::Ordinary | Room::Urgent | Room::Freeing => RESERVE,
        }
    }
}

/// A segment that is open.
#[derive(Debug)]
pub(super) struct Segment {
    pub id: SegmentId,
    pub size: u64,
    pub file: Box<dyn RandomFile>,
}

impl Segment {
    /// Exactly these octets.
    pub(super) fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut octets = vec![0; length];
        self.file.read(offset, &mut octets)?;
        Ok(octets)
    }
}

/// All segments.
#[derive(Debug)]
pub(super) struct Segments {
    disk: Arc<dyn Disk>,
    /// Octets of a segment, unless one batch needs more.
    pub size: u64,
    open: Mutex<Open>,
    pub held: HeldFiles,
}

/// Most segments whose files are kept open.
const FILES: usize = 64;

#[derive(Debug, Default)]
struct Open {
    /// All segments, with their sizes.
    segments: BTreeMap<SegmentId, u64>,
    /// Those that are open, each with the time of its last use, which is counted.
    files: BTreeMap<SegmentId, (u64, Arc<Segment>)>,
    uses: u64,
    newest: Option<SegmentId>,
    /// Files of the usual size that may be used again, by their numbers.
    spares: Vec<SegmentId>,
}

impl Open {
    /// Keeps a file open, and closes the one that was not used for longest.
    fn keep(&mut self, segment: &Arc<Segment>) {
        self.files.insert(segment.id, (self.uses, Arc::clone(segment)));
        if self.files.len() > FILES
            && let Some((_, id)) = self.files.iter().map(|(id, (used, _))| (*used, *id)).min()
        {
            self.files.remove(&id);
        }
    }
}

/// The file of a segment.
pub(super) fn file_of(id: SegmentId) -> PathBuf {
    path(id, SUFFIX)
}

/// The file that names the newest segment.
pub(super) fn newest_file(id: SegmentId) -> PathBuf {
    path(id, NEWEST_SUFFIX)
}

fn path(id: SegmentId, suffix: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{id:08x}{suffix}"))
}

fn number(name: &str, suffix: &str) -> Option<SegmentId> {
    let digits = name.strip_suffix(suffix)?;
    let number = SegmentId::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 8)?;
    if number >= END {
        tracing::error!(file = name, "this file is not of the log: it is ignored");
        return None;
    }
    Some(number)
}

impl Segments {
    /// Opens what is there.
    pub(super) fn open(disk: Arc<dyn Disk>, size: u64) -> Result<Segments, StoreError> {
        let io = |e| StoreError::io("opening the log", e);
        disk.create_dir(Path::new(DIRECTORY)).map_err(io)?;
        disk.sync_dir(Path::new("")).map_err(io)?;
        // A process before may have made a name, and ended because it could not sync it.
        disk.sync_dir(Path::new(DIRECTORY)).map_err(io)?;
        let mut open = Open::default();
        for (name, length) in disk.list(Path::new(DIRECTORY)).map_err(io)? {
            if let Some(id) = number(&name, SUFFIX) {
                open.segments.insert(id, length);
            } else if let Some(id) = number(&name, NEWEST_SUFFIX) {
                open.newest = open.newest.max(Some(id));
            } else if let Some(id) = number(&name, SPARE_SUFFIX).filter(|_| length == size) {
                open.spares.push(id);
            } else if name.ends_with(SPARE_SUFFIX) || name.ends_with(NEW_SUFFIX) {
                // Of another size, or of an interrupted process.
                let _ = disk.unlink(&Path::new(DIRECTORY).join(name));
            }
        }
        Ok(Segments { disk, size, open: Mutex::new(open), held: HeldFiles::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segment of this number, if it exists.
    pub(super) fn get(&self, id: SegmentId) -> io::Result<Option<Arc<Segment>>> {
        let mut open = self.lock();
        let Some(size) = open.segments.get(&id).copied() else { return Ok(None) };
        open.uses += 1;
        let now = open.uses;
        if let Some((last_use, segment)) = open.files.get_mut(&id) {
            *last_use = now;
            return Ok(Some(Arc::clone(segment)));
        }
        let file = self.disk.random(&path(id, SUFFIX), None)?;
        let segment = Arc::new(Segment { id, size, file });
        open.keep(&segment);
        Ok(Some(segment))
    }

    /// All of them, with the octets of their files.
    pub(super) fn sizes(&self) -> Vec<(SegmentId, u64)> {
        self.lock().segments.iter().map(|(id, size)| (*id, *size)).collect()
    }

    /// The newest segment there was, as far as it is recorded.
    pub(super) fn newest(&self) -> Option<SegmentId> {
        self.lock().newest
    }

    /// Records the newest segment in the name of a file. It may be durable later, or never.
    pub(super) fn record_newest(&self, id: SegmentId) {
        let mut open = self.lock();
        let to = path(id, NEWEST_SUFFIX);
        let done = match open.newest.replace(id) {
            Some(before) if before == id => return,
            Some(before) => self.disk.rename(&path(before, NEWEST_SUFFIX), &to),
            None => self.disk.create(&to).map(drop),
        };
        if let Err(error) = done {
            tracing::debug!(%error, "the newest segment is not recorded");
        }
    }

    /// The numbers of all of them, the oldest first.
    pub(super) fn all(&self) -> Vec<SegmentId> {
        self.lock().segments.keys().copied().collect()
    }

    /// Whether the disk had no room for the whole reserve when it was last asked.
    pub(super) fn is_tight(&self) -> bool {
        self.lock().spares.len() < RESERVE
    }

    /// Whether a write of this kind may take what is left of the segment that is being written: not if that
    /// is a part of the reserve which is kept for others.
    pub(super) fn permits(&self, room: Room) -> bool {
        let has_enough = || self.lock().spares.len() >= room.leaves();
        has_enough() || {
            self.fill_reserve();
            has_enough()
        }
    }

    /// Octets of the spare segments.
    pub(super) fn spare_octets(&self) -> u64 {
        self.lock().spares.len() as u64 * self.size
    }

    /// Makes a segment with room for `octets`, its name and its room durable.
    pub(super) fn create(
        &self,
        id: SegmentId,
        octets: u64,
        room: Room,
    ) -> io::Result<Arc<Segment>> {
        let mut open = self.lock();
        if id >= END || open.segments.contains_key(&id) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let to = path(id, SUFFIX);
        let size = octets.max(self.size).next_multiple_of(4096);
        let from_spares = |open: &mut Open, leaves: usize| {
            let spare =
                (size == self.size && open.spares.len() > leaves).then(|| open.spares.pop());
            spare.flatten()
        };
        let file = if let Some(spare) = from_spares(&mut open, RESERVE) {
            self.reuse(spare, &to)?
        } else {
            match self.allocate(id, SUFFIX, size) {
                Err(error) if is_full(&error) => match from_spares(&mut open, room.leaves()) {
                    Some(spare) => self.reuse(spare, &to)?,
                    None => return Err(error),
                },
                made => made?,
            }
        };
        self.disk.sync_dir(Path::new(DIRECTORY))?;
        let segment = Arc::new(Segment { id, size, file });
        open.segments.insert(id, size);
        open.uses += 1;
        open.keep(&segment);
        drop(open);
        self.record_newest(id);
        Ok(segment)
    }

    fn reuse(&self, spare: SegmentId, to: &Path) -> io::Result<Box<dyn RandomFile>> {
        self.disk.rename(&path(spare, SPARE_SUFFIX), to)?;
        self.disk.random(to, None)
    }

    /// Creates a file with all its room, or none.
    fn allocate(&self, id: SegmentId, suffix: &str, size: u64) -> io::Result<Box<dyn RandomFile>> {
        let new = path(id, NEW_SUFFIX);
        let made = self.disk.random(&new, Some(size)).and_then(|file| {
            self.disk.rename(&new, &path(id, suffix))?;
            Ok(file)
        });
        made.inspect_err(|_| {
            // A part of its room may have been found.
            let _ = self.disk.unlink(&new);
        })
    }

    /// Makes spare segments until the reserve is complete, or the disk is full.
    pub(super) fn fill_reserve(&self) {
        if !stands(Safeguard::Reserve) {
            return;
        }
        let mut open = self.lock();
        while open.spares.len() < RESERVE {
            let next = open.spares.iter().max().map_or(1, |last| last.saturating_add(1));
            match self.allocate(next, SPARE_SUFFIX, self.size) {
                Ok(_) => open.spares.push(next),
                Err(error) if is_full(&error) => return,
                Err(error) => {
                    return tracing::warn!(%error, "cannot make a spare segment of the log");
                }
            }
        }
    }

    /// Gives the room of the spare segments beyond the reserve back to the disk.
    pub(super) fn drop_surplus(&self) {
        let mut open = self.lock();
        while open.spares.len() > RESERVE {
            let Some(spare) = open.spares.pop() else { return };
            // A later open finds it again.
            let _ = self.disk.unlink(&path(spare, SPARE_SUFFIX));
        }
    }

    /// Gives the room of a spare segment back to the disk, unless it is the last one.
    pub(super) fn drop_spare(&self) -> bool {
        let mut open = self.lock();
        let Some(spare) = (open.spares.len() > 1).then(|| open.spares.pop()).flatten() else {
            return false;
        };
        self.disk.unlink(&path(spare, SPARE_SUFFIX)).is_ok()
    }

    /// Gives up a segment that nothing needs.
    pub(super) fn retire(&self, id: SegmentId, is_short: bool) {
        let mut open = self.lock();
        let Some(size) = open.segments.remove(&id) else { return };
        open.files.remove(&id);
        let from = path(id, SUFFIX);
        let is_spare = !self.held.is_holding()
            && open.spares.len() < if is_short { RESERVE } else { SPARES }
            && size == self.size
            && !open.spares.contains(&id)
            && self.disk.rename(&from, &path(id, SPARE_SUFFIX)).is_ok();
        if is_spare {
            open.spares.push(id);
        } else if let Err(error) = self.held.unlink(&*self.disk, &from) {
            tracing::warn!(segment = id, %error, "cannot remove a segment of the log");
        }
    }
}
