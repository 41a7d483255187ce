//! The store: what callers have.

use crate::connection::client::lock;
use crate::connection::edge::Edge;
use crate::connection::failure::Failure;
use crate::connection::pool::Pool;
use crate::connection::target::Target;
use crate::group::{Committing, Lane, Stage, Standing};
use crate::options::Options;
use crate::spools::{Spools, Writer, take_up};
use crate::{bodies, prepare, reads, verify};
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, MailboxId, Op, QueueId};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::recent::Key;
use store::{
    BatchId, Committed, Contents, Damage, Entry, EntryKey, KeyEntry, QueueStore, StoreError, Sweep,
};

/// Parts that one piece of deferred work removes: 32 MiB.
const SWEPT: i32 = 64;

/// A store in a PostgreSQL database.
#[derive(Debug)]
pub struct PostgresStore {
    pub(crate) options: Options,
    pub(crate) target: Arc<Target>,
    pub(crate) edge: Arc<Edge>,
    pub(crate) readers: Arc<Pool>,
    /// For contents that are received: reads do not wait for them.
    pub(crate) writers: Arc<Pool>,
    /// For what nodes notify each other of: it waits neither for contents nor for commits.
    pub(crate) control: Pool,
    /// For the lease alone: no other call is before a renewal.
    pub(crate) renewals: Pool,
    pub(crate) writer: Arc<Writer>,
    pub(crate) spools: Arc<Spools>,
    contents: Arc<dyn Contents>,
    pub(crate) committing: Committing,
    pub(crate) watching: Mutex<crate::watch::Watching>,
    pub(crate) lease: Mutex<Option<crate::cluster::Joined>>,
    pub(crate) listings: Mutex<BTreeMap<i64, crate::cluster::Listing>>,
    damage: Mutex<Damage>,
    sweep: Sweep,
}

impl PostgresStore {
    /// Opens the store of a database, whose tables [`prepare`](crate::prepare()) made. The url is that of the
    /// account that runs.
    ///
    /// # Errors
    /// [`StoreError::Locked`] if another process has it, or a node of a site has a lease;
    /// [`StoreError::NotPrepared`]; [`StoreError::Newer`]; [`StoreError::Away`]; [`StoreError::Refused`].
    pub fn open(url: &str, options: Options) -> Result<PostgresStore, StoreError> {
        const OPENING: &str = "opening the store";
        let target = Arc::new(Target::parse(url, &options)?);
        let io = |e| StoreError::Io { doing: OPENING, source: Arc::new(e) };
        let edge = Arc::new(Edge::start().map_err(io)?);
        prepare::check(&edge, &target)?;
        let failed = |failure: Failure| failure.into_error(&target, OPENING);
        let node = options.site.as_ref().map(|site| site.node.as_str());
        let lane = Lane::open(&edge, &target, node).map_err(failed)?;
        let readers = Arc::new(Pool::new(&edge, &target, options.readers));
        let writers = Arc::new(Pool::new(&edge, &target, options.readers));
        let writer = Arc::new(Writer::new(Arc::clone(&writers), lane.epoch));
        let spools = Arc::new(Spools::new(Arc::clone(&writer), options.spool_memory));
        spools.keep(take_up(&writers, lane.epoch, None)?);
        let stage = Stage {
            pool: Arc::clone(&readers),
            spools: Arc::clone(&spools),
            writer: Arc::clone(&writer),
            site: options.site.clone(),
        };
        // In a site nothing is committed before the node has joined.
        let standing = Standing { node: options.site.as_ref().map(|_| 0) };
        Ok(PostgresStore {
            committing: Committing::new(stage, lane, standing),
            contents: Arc::clone(&spools) as Arc<dyn Contents>,
            control: Pool::new(&edge, &target, 2),
            renewals: Pool::new(&edge, &target, 1),
            options,
            target,
            edge,
            readers,
            writers,
            writer,
            spools,
            watching: Mutex::default(),
            lease: Mutex::default(),
            listings: Mutex::default(),
            damage: Mutex::default(),
            sweep: Sweep::default(),
        })
    }

    /// The entries of a page; what is damaged is noted.
    fn intact(&self, page: Result<reads::Page, StoreError>) -> Result<Vec<Entry>, StoreError> {
        let page = page?;
        if !page.damaged.is_empty() {
            lock(&self.damage).entries.extend(page.damaged);
        }
        Ok(page.entries)
    }

    fn noticed<T>(&self, ended: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::BodyDamaged { id }) = &ended {
            lock(&self.damage).bodies.insert(*id);
        }
        ended
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.close();
    }
}

impl QueueStore for PostgresStore {
    fn commit(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed> {
        self.committing.commit(group)
    }

    fn outcome(&self, batch: BatchId) -> Committed {
        self.committing.outcome(batch)
    }

    /// A database that is away comes back: until then nobody is answered.
    fn asks_for(&self) -> Duration {
        Duration::from_secs(86_400)
    }

    fn tidy(&self) -> Result<usize, StoreError> {
        self.writer.retry()?;
        let is_site = self.options.site.is_some();
        let row = self.writers.call("removing what nothing needs", move |client| async move {
            if is_site {
                client.rows("SELECT forget_dead()", &[]).await?;
            }
            client.row("SELECT sweep($1)", &[&SWEPT]).await
        })?;
        Ok(usize::from(row.is_some_and(|row| row.get(0))))
    }

    fn octets(&self, batch: &Batch) -> usize {
        let octets = |op: &Op| match op {
            Op::PutBody { source: BodySource::Spool(id), .. } => self.spools.held_by(*id),
            op => op.held(),
        };
        batch.iter().map(octets).fold(0, usize::saturating_add)
    }

    fn contents(&self) -> &Arc<dyn Contents> {
        &self.contents
    }

    fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    fn damage(&self) -> Damage {
        lock(&self.damage).clone()
    }

    fn verify(&self, goes_on: &mut dyn FnMut(u64) -> bool) -> Result<(), StoreError> {
        verify::verify(&self.readers, &self.damage, goes_on)
    }

    fn back_up(&self, _: &Path, _: &mut dyn FnMut(u64) -> bool) -> Result<bool, StoreError> {
        let words = "the database makes its own backups: use pg_basebackup, with archived WAL if you need it";
        let error = std::io::Error::new(std::io::ErrorKind::Unsupported, words);
        Err(StoreError::Io { doing: "making a backup", source: Arc::new(error) })
    }

    fn entry(&self, key: EntryKey) -> Result<Option<Bytes>, StoreError> {
        let found = reads::entry(&self.readers, key);
        if let Err(StoreError::EntryDamaged { .. }) = &found {
            lock(&self.damage).entries.insert(key);
        }
        found
    }

    fn entry_count(&self) -> Result<u64, StoreError> {
        reads::entry_count(&self.readers)
    }

    fn highest_entry(&self) -> Result<Option<EntryId>, StoreError> {
        reads::highest_entry(&self.readers)
    }

    fn entries(&self, after: Option<EntryKey>, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.intact(reads::entries(&self.readers, after, limit))
    }

    fn queue_entries(
        &self,
        queue: QueueId,
        precedence: Precedence,
        after: Option<EntryId>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.intact(reads::queue_entries(&self.readers, queue, precedence, after, limit))
    }

    fn items(
        &self,
        mailbox: MailboxId,
        precedence: Precedence,
        after: u32,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.intact(reads::items(&self.readers, mailbox, precedence, after, limit))
    }

    fn item_count(&self, mailbox: MailboxId, precedence: Precedence) -> Result<u64, StoreError> {
        reads::item_count(&self.readers, mailbox, precedence)
    }

    fn bodies(&self, after: Option<BodyId>, limit: usize) -> Result<Vec<BodyId>, StoreError> {
        reads::bodies(&self.readers, after, limit)
    }

    fn body_length(&self, id: BodyId) -> Result<Option<u64>, StoreError> {
        bodies::length(&self.readers, id)
    }

    fn body(&self, id: BodyId, offset: u64, length: usize) -> Result<Option<Bytes>, StoreError> {
        self.noticed(bodies::read(&self.readers, id, offset, length))
    }

    fn seen(&self, keys: &[Digest], now: Utc) -> Result<Vec<Option<Bytes>>, StoreError> {
        reads::seen(&self.readers, keys, now)
    }

    fn has_expired_keys(&self, before: Utc) -> Result<bool, StoreError> {
        reads::has_expired_keys(&self.readers, before)
    }

    fn keys(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<KeyEntry>, StoreError> {
        reads::keys(&self.readers, after, limit)
    }

    fn values(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Bytes)>, StoreError> {
        reads::values(&self.readers, after, limit)
    }

    fn meta(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        let site = self.options.site.as_ref();
        let name = site.map_or_else(|| name.to_owned(), |site| site.kept_name(name));
        reads::meta(&self.readers, name)
    }

    fn recent_entry(&self, key: EntryKey) -> Option<Bytes> {
        self.committing.recent(Key::Entry(key))
    }

    fn recent_body(&self, id: BodyId, offset: u64, length: usize) -> Option<Bytes> {
        let octets = self.committing.recent(Key::Body(id))?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(octets.len());
        Some(octets.slice(start..start.saturating_add(length).min(octets.len())))
    }

    fn close(&self) {
        // Best effort: what cannot be given up now is removed by the next run.
        let _ = self.writer.retry();
        self.committing.close();
        self.readers.close();
        self.writers.close();
        self.control.close();
        self.renewals.close();
        lock(&self.watching).close();
    }
}
