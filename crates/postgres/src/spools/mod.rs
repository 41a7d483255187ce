//! Contents being received: in memory up to [`MAX_INLINE`], part by part in the database beyond it, or when
//! the spools together are at their memory limit.
//!
//! A spool lives for one run of the daemon, unless it has notes: the next run receives it further.

mod kept;
mod writer;

pub(crate) use kept::{Left, take_up};
pub(crate) use writer::{Long, Writer};

use crate::connection::client::lock;
use crate::group::Content;
use crate::sums::sums;
use bytes::{Bytes, BytesMut};
use engine::journal::SpoolId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use store::{Contents, KeptSpool, StoreError};

/// Contents up to this many octets travel in the commit, longer ones before it.
pub(crate) const MAX_INLINE: usize = 1 << 20;

/// All spools of one store. Calls for different spools do not wait for each other.
#[derive(Debug)]
pub(crate) struct Spools {
    writer: Arc<Writer>,
    open: Mutex<BTreeMap<SpoolId, Arc<Mutex<Spool>>>>,
    held: AtomicUsize,
    limit: usize,
    kept: Mutex<Vec<KeptSpool>>,
}

/// One content.
#[derive(Debug)]
enum Spool {
    /// At most [`MAX_INLINE`] octets.
    Memory(BytesMut),
    Long(Long),
    /// A write failed: the content has a gap. The number is that of the content in the database, if any.
    Broken(Option<i64>),
    /// Committed or discarded while a call waited for it.
    Gone,
}

/// A spool claimed by a commit.
#[derive(Debug)]
pub(crate) struct Claim {
    id: SpoolId,
    spool: Spool,
    content: Content,
}

impl Claim {
    pub(crate) fn content(&self) -> &Content {
        &self.content
    }
}

impl Spools {
    pub(crate) fn new(writer: Arc<Writer>, limit: usize) -> Spools {
        Spools {
            writer,
            open: Mutex::default(),
            held: AtomicUsize::new(0),
            limit,
            kept: Mutex::default(),
        }
    }

    /// What earlier runs were receiving; their identifiers are the lowest that are free.
    pub(crate) fn keep(&self, left: Vec<Left>) {
        let mut open = lock(&self.open);
        let mut kept = lock(&self.kept);
        let mut number = 1;
        for Left { long, notes } in left {
            while open.contains_key(&SpoolId(number)) {
                number += 1;
            }
            let id = SpoolId(number);
            kept.push(KeptSpool { id, length: long.length, notes });
            open.insert(id, Arc::new(Mutex::new(Spool::Long(long))));
        }
    }

    /// Octets that a commit of this spool carries; 0 while another thread writes it.
    pub(crate) fn held_by(&self, id: SpoolId) -> usize {
        let Ok(spool) = self.find(id) else { return 0 };
        match spool.try_lock().as_deref() {
            Ok(Spool::Memory(octets)) => octets.len(),
            _ => 0,
        }
    }

    /// Claims a spool, all of it durable if it is long. No other call finds it until [`Spools::settle`] or
    /// [`Spools::restore`].
    pub(crate) fn claim(&self, id: SpoolId) -> Result<Claim, StoreError> {
        let shared = self.find(id)?;
        let mut spool = lock(&shared);
        self.sync_one(id, &mut spool)?;
        let content = match &mut *spool {
            Spool::Memory(octets) => {
                let number = self.writer.number()?;
                let octets = std::mem::take(octets).freeze();
                Content::Inline { id: number, sums: sums(&octets).into(), octets }
            }
            Spool::Long(long) => Content::Stored { id: long.content, length: long.length },
            Spool::Broken(_) | Spool::Gone => return Err(StoreError::NoSpool { id }),
        };
        lock(&self.open).remove(&id);
        let spool = std::mem::replace(&mut *spool, Spool::Gone);
        Ok(Claim { id, spool, content })
    }

    /// The commit consumed the content.
    pub(crate) fn settle(&self, claim: &Claim) {
        if let Content::Inline { octets, .. } = &claim.content {
            self.release(octets.len());
        }
    }

    /// The commit was not made: restores the spool.
    pub(crate) fn restore(&self, claim: Claim) {
        let spool = match (claim.spool, claim.content) {
            (Spool::Memory(_), Content::Inline { octets, .. }) => {
                Spool::Memory(BytesMut::from(octets))
            }
            (spool, _) => spool,
        };
        lock(&self.open).insert(claim.id, Arc::new(Mutex::new(spool)));
    }

    fn find(&self, id: SpoolId) -> Result<Arc<Mutex<Spool>>, StoreError> {
        lock(&self.open).get(&id).cloned().ok_or(StoreError::NoSpool { id })
    }

    /// Reserves memory within the limit.
    fn reserve(&self, octets: usize) -> bool {
        let within = |held: usize| held.checked_add(octets).filter(|sum| *sum <= self.limit);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }

    fn release(&self, octets: usize) {
        self.held.fetch_sub(octets, Ordering::Relaxed);
    }

    fn hold(&self, held: &mut BytesMut, octets: &[u8]) -> bool {
        let fits = octets.len() <= MAX_INLINE.saturating_sub(held.len());
        let holds = fits && self.reserve(octets.len());
        if holds {
            held.extend_from_slice(octets);
        }
        holds
    }

    /// Changes a long content, and breaks it if that fails. What it holds is counted beyond the limit: it is
    /// about a part.
    fn change<T>(
        &self,
        id: SpoolId,
        spool: &mut Spool,
        change: impl FnOnce(&mut Long, &Writer) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let long = match spool {
            Spool::Long(long) => long,
            Spool::Broken(_) => return Err(StoreError::SpoolBroken { id }),
            Spool::Memory(_) | Spool::Gone => return Err(StoreError::NoSpool { id }),
        };
        let before = long.held();
        let ended = change(long, &self.writer);
        let (after, content) = (long.held(), long.content);
        if ended.is_err() {
            self.release(before);
            *spool = Spool::Broken(Some(content));
            return ended;
        }
        self.held.fetch_add(after, Ordering::Relaxed);
        self.release(before);
        ended
    }

    /// A content in memory becomes a long one, still in memory.
    fn lengthen(&self, spool: &mut Spool) -> Result<(), StoreError> {
        let Spool::Memory(held) = spool else { return Ok(()) };
        let number = self.writer.number().inspect_err(|_| self.release(held.len()));
        let held = std::mem::take(held);
        *spool = Spool::Broken(None);
        let mut long = Long::new(number?);
        let ended = long.append(&held, &self.writer);
        self.held.fetch_add(long.held(), Ordering::Relaxed);
        self.release(held.len());
        if ended.is_err() {
            self.release(long.held());
            *spool = Spool::Broken(Some(long.content));
            return ended;
        }
        *spool = Spool::Long(long);
        Ok(())
    }

    fn sync_one(&self, id: SpoolId, spool: &mut Spool) -> Result<u64, StoreError> {
        if let Spool::Memory(octets) = spool {
            return Ok(octets.len() as u64);
        }
        self.change(id, spool, |long, writer| long.sync(writer).map(|()| long.length))
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
        let shared = self.find(id)?;
        let mut spool = lock(&shared);
        if let Spool::Memory(held) = &mut *spool {
            if self.hold(held, &octets) {
                return Ok(());
            }
            self.lengthen(&mut spool)?;
        }
        self.change(id, &mut spool, |long, writer| long.append(&octets, writer))
    }

    fn append_in_memory(&self, id: SpoolId, octets: &[u8]) -> bool {
        let Ok(spool) = self.find(id) else { return false };
        // A spool that another thread writes waits for the database.
        let Ok(mut spool) = spool.try_lock() else { return false };
        match &mut *spool {
            Spool::Memory(held) => self.hold(held, octets),
            Spool::Long(long) => {
                let holds = long.append_in_memory(octets);
                if holds {
                    self.held.fetch_add(octets.len(), Ordering::Relaxed);
                }
                holds
            }
            Spool::Broken(_) | Spool::Gone => false,
        }
    }

    fn sync(&self, id: SpoolId) -> Result<u64, StoreError> {
        let shared = self.find(id)?;
        let mut spool = lock(&shared);
        self.sync_one(id, &mut spool)
    }

    fn note(&self, id: SpoolId, note: &[u8]) -> Result<(), StoreError> {
        let shared = self.find(id)?;
        let mut spool = lock(&shared);
        self.lengthen(&mut spool)?;
        self.change(id, &mut spool, |long, _| {
            long.note(note);
            Ok(())
        })
    }

    fn take_kept(&self) -> Vec<KeptSpool> {
        std::mem::take(&mut *lock(&self.kept))
    }

    fn length(&self, id: SpoolId) -> Result<u64, StoreError> {
        let shared = self.find(id)?;
        let spool = lock(&shared);
        match &*spool {
            Spool::Memory(octets) => Ok(octets.len() as u64),
            Spool::Long(long) => Ok(long.length),
            Spool::Broken(_) => Err(StoreError::SpoolBroken { id }),
            Spool::Gone => Err(StoreError::NoSpool { id }),
        }
    }

    fn discard(&self, id: SpoolId) {
        let Some(shared) = lock(&self.open).remove(&id) else { return };
        let spool = std::mem::replace(&mut *lock(&shared), Spool::Gone);
        match spool {
            Spool::Memory(octets) => self.release(octets.len()),
            Spool::Long(long) => {
                self.release(long.held());
                self.writer.give_up(long.content);
            }
            Spool::Broken(Some(content)) => self.writer.give_up(content),
            Spool::Broken(None) | Spool::Gone => {}
        }
    }

    fn memory_held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}
