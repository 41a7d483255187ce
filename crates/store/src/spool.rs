//! Contents being received: in memory while small, in a file beyond [`MAX_INLINE`], or when the spools
//! together are at their memory limit.
//!
//! A spool lives for one run of the daemon, unless it has notes: the next run receives it further.

use crate::bodies::{Bodies, BodyFile};
use crate::error::StoreError;
use crate::notes::LeftBody;
use crate::queue::{Contents, KeptSpool};
use bytes::{Bytes, BytesMut};
use engine::journal::SpoolId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bodies up to this many octets are kept inside the database, longer ones in files.
pub(crate) const MAX_INLINE: usize = 1 << 20;

/// All spools of one store. Calls for different spools do not wait for each other's disk access.
#[derive(Debug)]
pub(crate) struct Spools {
    bodies: Arc<Bodies>,
    open: Mutex<BTreeMap<SpoolId, Arc<Mutex<Spool>>>>,
    memory: Memory,
    /// What an earlier run was receiving, until it is taken.
    kept: Mutex<Vec<KeptSpool>>,
}

/// Octets held in memory by all spools together.
#[derive(Debug)]
struct Memory {
    held: AtomicUsize,
    limit: usize,
}

/// One content.
#[derive(Debug)]
pub(crate) enum Spool {
    /// At most [`MAX_INLINE`] octets.
    Memory(BytesMut),
    /// Any length.
    File { body: BodyFile, length: u64, synced: bool },
    /// What an earlier run was receiving, and nothing came since.
    Left(LeftBody),
    /// A write failed: the content has a gap. The number is that of the file, if there is one.
    Broken(Option<u64>),
    /// Committed or discarded while a call waited for it.
    Gone,
}

/// A spool claimed by a commit, with the source of its body.
#[derive(Debug)]
pub(crate) struct Claim {
    id: SpoolId,
    spool: Spool,
}

/// The octets of a body, ready to be committed.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Inline(Bytes),
    File {
        number: u64,
        length: u64,
        /// Checksums of its blocks.
        sums: Arc<[u64]>,
    },
}

impl Memory {
    /// Reserves memory, if there is enough.
    fn reserve(&self, octets: usize) -> bool {
        let within = |held: usize| held.checked_add(octets).filter(|sum| *sum <= self.limit);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }

    fn release(&self, octets: usize) {
        self.held.fetch_sub(octets, Ordering::Relaxed);
    }
}

impl Spools {
    /// `left`: what an earlier run was receiving. Their identifiers are 1 and so on.
    pub(crate) fn new(bodies: Arc<Bodies>, memory_limit: usize, mut left: Vec<LeftBody>) -> Spools {
        let named = (1..).map(SpoolId).zip(&mut left);
        let kept = Mutex::new(named.map(|(id, body)| body.described(id)).collect());
        let open = (1..).map(SpoolId).zip(left);
        let open = open.map(|(id, body)| (id, Arc::new(Mutex::new(Spool::Left(body)))));
        Spools {
            bodies,
            open: Mutex::new(open.collect()),
            memory: Memory { held: AtomicUsize::new(0), limit: memory_limit },
            kept,
        }
    }

    /// Octets that a commit of this spool writes into the database: none for a file. Never waits:
    /// while another thread writes the spool, the result is 0.
    pub(crate) fn held_by(&self, id: SpoolId) -> usize {
        let Ok(spool) = self.find(id) else { return 0 };
        match spool.try_lock().as_deref() {
            Ok(Spool::Memory(octets)) => octets.len(),
            _ => 0,
        }
    }

    /// Claims a spool, its content durable if it is a file. No other call finds it until
    /// [`Spools::settle`] or [`Spools::restore`].
    pub(crate) fn claim(&self, id: SpoolId) -> Result<(Claim, Content), StoreError> {
        let shared = self.find(id)?;
        let mut spool = lock(&shared);
        spool.sync(id, &self.bodies)?;
        lock(&self.open).remove(&id);
        let mut spool = std::mem::replace(&mut *spool, Spool::Gone);
        let content = match &mut spool {
            Spool::Memory(octets) => {
                let kept = std::mem::take(octets).freeze();
                *octets = BytesMut::new();
                Content::Inline(kept)
            }
            Spool::File { body, length, .. } => {
                Content::File { number: body.number, length: *length, sums: body.sums() }
            }
            Spool::Left(_) | Spool::Broken(_) | Spool::Gone => {
                return Err(StoreError::NoSpool { id });
            }
        };
        Ok((Claim { id, spool }, content))
    }

    /// The commit consumed the content.
    pub(crate) fn settle(&self, claim: &Claim, content: &Content) {
        if let (Spool::Memory(_), Content::Inline(octets)) = (&claim.spool, content) {
            self.memory.release(octets.len());
        }
        if let Spool::File { body, .. } = &claim.spool
            && body.has_notes()
        {
            self.bodies.unlink_notes(body.number);
        }
    }

    /// The commit failed: restores the spool.
    pub(crate) fn restore(&self, claim: Claim, content: Content) {
        let spool = match (claim.spool, content) {
            (Spool::Memory(_), Content::Inline(octets)) => Spool::Memory(BytesMut::from(octets)),
            (spool, _) => spool,
        };
        lock(&self.open).insert(claim.id, Arc::new(Mutex::new(spool)));
    }

    fn find(&self, id: SpoolId) -> Result<Arc<Mutex<Spool>>, StoreError> {
        lock(&self.open).get(&id).cloned().ok_or(StoreError::NoSpool { id })
    }
}

impl Contents for Spools {
    fn open(&self, id: SpoolId) -> Result<(), StoreError> {
        match lock(&self.open).entry(id) {
            Entry::Occupied(_) => Err(StoreError::SpoolExists { id }),
            Entry::Vacant(place) => {
                place.insert(Arc::new(Mutex::new(Spool::Memory(BytesMut::new()))));
                Ok(())
            }
        }
    }

    fn append(&self, id: SpoolId, octets: Bytes) -> Result<(), StoreError> {
        let spool = self.find(id)?;
        let mut spool = lock(&spool);
        spool.append(id, &octets, &self.memory, &self.bodies)
    }

    fn append_in_memory(&self, id: SpoolId, octets: &[u8]) -> bool {
        let Ok(spool) = self.find(id) else { return false };
        let mut spool = lock(&spool);
        match &mut *spool {
            Spool::Memory(held) => Spool::hold(held, octets, &self.memory),
            Spool::File { .. } | Spool::Left(_) | Spool::Broken(_) | Spool::Gone => false,
        }
    }

    fn sync(&self, id: SpoolId) -> Result<u64, StoreError> {
        let spool = self.find(id)?;
        lock(&spool).sync(id, &self.bodies)
    }

    fn note(&self, id: SpoolId, note: &[u8]) -> Result<(), StoreError> {
        let spool = self.find(id)?;
        let mut spool = lock(&spool);
        spool.note(id, note, &self.memory, &self.bodies)
    }

    fn take_kept(&self) -> Vec<KeptSpool> {
        std::mem::take(&mut *lock(&self.kept))
    }

    fn length(&self, id: SpoolId) -> Result<u64, StoreError> {
        let spool = self.find(id)?;
        let spool = lock(&spool);
        match &*spool {
            Spool::Memory(octets) => Ok(octets.len() as u64),
            Spool::File { length, .. } => Ok(*length),
            Spool::Left(body) => Ok(body.length),
            Spool::Broken(_) => Err(StoreError::SpoolBroken { id }),
            Spool::Gone => Err(StoreError::NoSpool { id }),
        }
    }

    fn discard(&self, id: SpoolId) {
        let Some(spool) = lock(&self.open).remove(&id) else {
            return;
        };
        let spool = std::mem::replace(&mut *lock(&spool), Spool::Gone);
        match spool {
            Spool::Memory(octets) => self.memory.release(octets.len()),
            Spool::File { body, .. } => {
                self.bodies.unlink(body.number);
                if body.has_notes() {
                    self.bodies.unlink_notes(body.number);
                }
            }
            Spool::Left(LeftBody { number, .. }) | Spool::Broken(Some(number)) => {
                self.bodies.unlink(number);
                self.bodies.unlink_notes(number);
            }
            Spool::Broken(None) | Spool::Gone => {}
        }
    }

    fn memory_held(&self) -> usize {
        self.memory.held.load(Ordering::Relaxed)
    }
}

impl Spool {
    /// Appends in memory, if there is room.
    fn hold(held: &mut BytesMut, octets: &[u8], memory: &Memory) -> bool {
        let fits = octets.len() <= MAX_INLINE.saturating_sub(held.len());
        let holds = fits && memory.reserve(octets.len());
        if holds {
            held.extend_from_slice(octets);
        }
        holds
    }

    fn append(
        &mut self,
        id: SpoolId,
        octets: &Bytes,
        memory: &Memory,
        bodies: &Bodies,
    ) -> Result<(), StoreError> {
        if let Spool::Memory(held) = self {
            if Spool::hold(held, octets, memory) {
                return Ok(());
            }
            self.move_to_file(memory, bodies)?;
        }
        self.reopen(bodies)?;
        match self {
            Spool::File { body, length, synced } => {
                if let Err(error) = body.append(octets) {
                    *self = Spool::Broken(Some(body.number));
                    return Err(StoreError::io("writing a content", error));
                }
                *length += octets.len() as u64;
                *synced = false;
                Ok(())
            }
            Spool::Broken(_) => Err(StoreError::SpoolBroken { id }),
            Spool::Gone | Spool::Left(_) | Spool::Memory(_) => Err(StoreError::NoSpool { id }),
        }
    }

    /// Appends a note, which the next sync makes durable with the content so far.
    fn note(
        &mut self,
        id: SpoolId,
        note: &[u8],
        memory: &Memory,
        bodies: &Bodies,
    ) -> Result<(), StoreError> {
        self.move_to_file(memory, bodies)?;
        self.reopen(bodies)?;
        match self {
            Spool::File { body, length, synced } => {
                if let Err(error) = body.note(bodies, *length, note) {
                    *self = Spool::Broken(Some(body.number));
                    return Err(StoreError::io("writing notes on a content", error));
                }
                *synced = false;
                Ok(())
            }
            Spool::Broken(_) => Err(StoreError::SpoolBroken { id }),
            Spool::Gone | Spool::Left(_) | Spool::Memory(_) => Err(StoreError::NoSpool { id }),
        }
    }

    /// Opens the files that an earlier run left.
    fn reopen(&mut self, bodies: &Bodies) -> Result<(), StoreError> {
        let Spool::Left(left) = self else { return Ok(()) };
        match bodies.reopen(left) {
            Ok(body) => {
                let length = left.length;
                *self = Spool::File { body, length, synced: false };
                Ok(())
            }
            Err(error) => {
                *self = Spool::Broken(Some(left.number));
                Err(StoreError::io("opening a content that was being received", error))
            }
        }
    }

    fn move_to_file(&mut self, memory: &Memory, bodies: &Bodies) -> Result<(), StoreError> {
        let Spool::Memory(held) = self else {
            return Ok(());
        };
        let mut outcome = bodies.create();
        let mut broken = None;
        if let Ok(body) = &mut outcome
            && let Err(error) = body.append(held)
        {
            broken = Some(body.number);
            outcome = Err(error);
        }
        let length = held.len();
        memory.release(length);
        match outcome {
            Ok(body) => {
                *self = Spool::File { body, length: length as u64, synced: false };
                Ok(())
            }
            Err(error) => {
                *self = Spool::Broken(broken);
                Err(StoreError::io("writing a content", error))
            }
        }
    }

    fn sync(&mut self, id: SpoolId, bodies: &Bodies) -> Result<u64, StoreError> {
        self.reopen(bodies)?;
        match self {
            Spool::Memory(octets) => Ok(octets.len() as u64),
            Spool::File { body, length, synced } => {
                if !*synced {
                    // The notes speak of the content: it is durable first.
                    if let Err(error) = body.sync().and_then(|()| body.sync_notes(bodies)) {
                        *self = Spool::Broken(Some(body.number));
                        return Err(StoreError::io("syncing a content", error));
                    }
                    *synced = true;
                }
                Ok(*length)
            }
            Spool::Broken(_) => Err(StoreError::SpoolBroken { id }),
            Spool::Left(_) | Spool::Gone => Err(StoreError::NoSpool { id }),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::faulty::FaultyDisk;
    use std::path::Path;

    const ID: SpoolId = SpoolId(7);

    fn spools(limit: usize) -> (FaultyDisk, Spools) {
        let disk = FaultyDisk::new();
        let bodies = Bodies::open(Arc::new(disk.clone())).unwrap();
        (disk, Spools::new(Arc::new(bodies), limit, Vec::new()))
    }

    fn files(disk: &FaultyDisk) -> Vec<u64> {
        let files = disk.list(Path::new("bodies")).unwrap();
        files.into_iter().map(|(_, length)| length).collect()
    }

    #[test]
    fn a_content_moves_to_a_file_beyond_the_inline_limit() {
        let (disk, spools) = spools(usize::MAX);
        spools.open(ID).unwrap();
        spools.append(ID, Bytes::from(vec![1; MAX_INLINE - 1])).unwrap();
        assert!(!spools.append_in_memory(ID, b"12") && spools.append_in_memory(ID, b"1"));
        assert_eq!((files(&disk), spools.memory_held()), (vec![], MAX_INLINE));
        assert_eq!(spools.sync(ID).unwrap(), MAX_INLINE as u64);
        spools.append(ID, Bytes::from_static(b"x")).unwrap();
        assert_eq!((files(&disk), spools.memory_held()), (vec![MAX_INLINE as u64 + 1], 0));
        assert_eq!(spools.length(ID).unwrap(), MAX_INLINE as u64 + 1);
        assert!(!spools.append_in_memory(ID, b"x"), "it is in a file");
        spools.discard(ID);
        assert_eq!(files(&disk), [0_u64; 0]);
        assert!(matches!(spools.length(ID), Err(StoreError::NoSpool { id: ID })));
    }

    #[test]
    fn the_memory_of_all_spools_together_is_bounded() {
        let (disk, spools) = spools(100);
        for n in 0..3 {
            spools.open(SpoolId(n)).unwrap();
            spools.append(SpoolId(n), Bytes::from_static(&[0; 40])).unwrap();
        }
        assert_eq!((files(&disk), spools.memory_held()), (vec![40], 80));
        spools.discard(SpoolId(0));
        spools.discard(SpoolId(2));
        assert_eq!((files(&disk), spools.memory_held()), (vec![], 40));
    }

    #[test]
    fn a_failed_write_leaves_a_spool_fit_only_to_discard() {
        let (disk, spools) = spools(0);
        spools.open(ID).unwrap();
        spools.append(ID, Bytes::from_static(b"kept")).unwrap();
        disk.fail_at(disk.calls() + 1, std::io::ErrorKind::StorageFull);
        assert!(spools.append(ID, Bytes::from_static(b"lost")).unwrap_err().is_disk_full());
        let after = spools.append(ID, Bytes::from_static(b"more")).unwrap_err();
        assert!(matches!(after, StoreError::SpoolBroken { id: ID }), "{after}");
        assert!(spools.sync(ID).is_err() && spools.claim(ID).is_err());
        spools.discard(ID);
        assert_eq!(files(&disk), [0_u64; 0]);
    }

    #[test]
    fn a_failed_sync_is_not_tried_again() {
        let (disk, spools) = spools(0);
        spools.open(ID).unwrap();
        spools.append(ID, Bytes::from_static(b"x")).unwrap();
        disk.fail_at(disk.calls() + 1, std::io::ErrorKind::Other);
        assert!(matches!(spools.sync(ID), Err(StoreError::Io { .. })));
        assert!(matches!(spools.sync(ID), Err(StoreError::SpoolBroken { id: ID })));
    }

    #[test]
    fn a_spool_is_opened_once() {
        let (_, spools) = spools(0);
        spools.open(ID).unwrap();
        assert!(matches!(spools.open(ID), Err(StoreError::SpoolExists { id: ID })));
    }
}
