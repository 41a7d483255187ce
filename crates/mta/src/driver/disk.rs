//! Access to the store outside the node's thread: spools in order, commits by precedence, reads.

use super::DriverAnswer;
use super::cluster::ClusterAnswer;
use super::inbox::Inbox;
use super::monitoring::gauge::Gauge;
use super::monitoring::space::NoRoom;
use super::pool::Pool;
use crate::backup::{Backup, BackupReport};
use base::{BodyId, EntryId, Precedence, Utc, shown};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, FIRST_ITEM, Op, SpoolId};
use node::listing::{ListingError, QueuePage};
use node::mailbox;
use node::status::DamageStatus;
use node::{CommitError, EdgeError, Input, ReadError, Token};
use ownership::BatchEnd;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use store::committer::OnDone;
use store::{BatchId, Committed, Committer, Contents, Damage, EntryKey, QueueStore, StoreError};
use store_check::pace::Pace;
use store_check::{StoreCheck, StoreReport};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Jobs of one spool done without a pause.
const SPOOL_JOBS: usize = 64;

/// Most octets of content per read, whatever was requested.
const MAX_READ: usize = 1 << 20;

/// Threads that append to files, sync them and read contents.
const THREADS: usize = 6;

/// Additional threads for Immediate and higher.
const URGENT_THREADS: usize = 2;

/// The driver's access to the store. Nothing here waits for the disk. Work on memory is done at
/// once, so a small message goes to another thread for its commit only.
pub(super) struct StoreThreads {
    store: Arc<dyn QueueStore>,
    answers: Arc<Inbox>,
    spools: BTreeMap<SpoolId, Place>,
    committer: Arc<Committer>,
    /// Commits that wait for the files they consume.
    waiting: JoinSet<()>,
    /// Tasks that write contents into files.
    spooling: JoinSet<()>,
    /// Database look-ups: one thread, and one for Immediate and higher.
    reader: Pool,
    learner: KeyReader,
    /// The check of the store.
    check: StoreCheck,
    backup: Backup,
    no_room: Arc<NoRoom>,
    /// The damage that the node knows.
    reported: Damage,
    /// Threads for work that takes longer.
    threads: Arc<Pool>,
}

/// The thread that reads all remembered keys once, at start. Dropping this stops the thread and
/// waits for it.
struct KeyReader {
    ending: Arc<AtomicBool>,
    /// `None` only while dropping.
    thread: Option<JoinHandle<()>>,
}

/// The medium that holds the octets of a spool.
enum Place {
    /// In memory: nothing blocks.
    Memory,
    /// In a file of an earlier run, to which nothing came yet.
    Left,
    /// In a file: a task does the jobs in order.
    File(mpsc::UnboundedSender<SpoolJob>),
    /// The file could not be opened; the failure is already reported.
    Nowhere,
}

enum SpoolJob {
    Append(Precedence, Bytes, Option<Arc<Gauge>>),
    Note(Precedence, Bytes),
    Sync(Precedence, Token),
    /// Answered when all earlier jobs are done and the file is synced, or has failed.
    Reached(Precedence, oneshot::Sender<()>),
    Discard,
}

impl SpoolJob {
    fn level(&self) -> Precedence {
        match self {
            SpoolJob::Append(level, ..)
            | SpoolJob::Note(level, _)
            | SpoolJob::Sync(level, _)
            | SpoolJob::Reached(level, _) => *level,
            SpoolJob::Discard => Precedence::Deferred,
        }
    }
}

/// A database look-up.
enum Read {
    Load(Token, EntryKey),
    LookUp(Token, Vec<Digest>, Utc),
    Mailbox(Token, mailbox::machine::Read),
    /// A value that all nodes of a site share.
    SiteValue(&'static str),
    /// All of them, before the node learns why this commit was refused.
    SiteValues(Token),
}

impl StoreThreads {
    pub(super) fn start(
        store: Arc<dyn QueueStore>,
        answers: Arc<Inbox>,
    ) -> Result<StoreThreads, StoreError> {
        let committer = Committer::start(Arc::clone(&store))?;
        let learner = KeyReader::start(&store)?;
        Ok(StoreThreads {
            store,
            answers,
            spools: BTreeMap::new(),
            committer: Arc::new(committer),
            waiting: JoinSet::new(),
            spooling: JoinSet::new(),
            // A repeated message with many recipients takes long; urgent look-ups have a thread of
            // their own.
            reader: Pool::start("reader", 1, 1)?,
            learner,
            check: StoreCheck::default(),
            backup: Backup::default(),
            no_room: Arc::default(),
            reported: Damage::default(),
            threads: Arc::new(Pool::start("disk", THREADS, URGENT_THREADS)?),
        })
    }

    /// The highest precedence for which the store had no room.
    pub(super) fn no_room(&self) -> &NoRoom {
        &self.no_room
    }

    /// What of the store is damaged, as far as it was read.
    pub(super) fn damage(&self) -> DamageStatus {
        let damage = self.store.damage();
        DamageStatus {
            log_parts: damage.batches,
            records: damage.entries.len() as u64,
            contents: damage.bodies.len() as u64,
            keys: damage.keys,
            set_aside: self.store.sweep().aside as u64,
        }
    }

    /// The records and contents that were found damaged since the last call.
    pub(super) fn new_damage(&mut self) -> Option<(Vec<EntryKey>, BTreeSet<BodyId>)> {
        let found = self.store.damage();
        // Those of mailboxes are not of the queue: whoever fetches them gets an error.
        let records = found.entries.difference(&self.reported.entries).copied();
        let records: Vec<EntryKey> = records.filter(|(_, id)| id.0 < FIRST_ITEM).collect();
        let contents = found.bodies.difference(&self.reported.bodies).copied();
        let contents: BTreeSet<BodyId> = contents.filter(|id| id.0 < FIRST_ITEM).collect();
        self.reported = found;
        (!records.is_empty() || !contents.is_empty()).then_some((records, contents))
    }

    /// A spool that an earlier run left.
    pub(super) fn spool_left(&mut self, id: SpoolId) {
        self.spools.insert(id, Place::Left);
    }

    pub(super) fn spool_open(&mut self, id: SpoolId) {
        let place = match self.store.contents().open(id) {
            Ok(()) => Place::Memory,
            Err(error) => {
                self.answers.answer(Precedence::Immediate, spool_failed(id, &error));
                Place::Nowhere
            }
        };
        self.spools.insert(id, place);
    }

    /// Appends content received on an association of this level. `incoming` counts the octets
    /// until they are stored.
    pub(super) fn spool_append(
        &mut self,
        id: SpoolId,
        level: Precedence,
        bytes: Bytes,
        incoming: Option<Arc<Gauge>>,
    ) {
        if matches!(self.spools.get(&id), Some(Place::Memory))
            && self.store.contents().append_in_memory(id, &bytes)
        {
            return;
        }
        if let Some(jobs) = self.spool_jobs(id) {
            if let Some(gauge) = &incoming {
                gauge.add(bytes.len());
            }
            // Fails only if the task panicked, which ends the daemon.
            let _ = jobs.send(SpoolJob::Append(level, bytes, incoming));
        }
    }

    /// Appends a note to a spool, which goes to a file with it.
    pub(super) fn spool_note(&mut self, id: SpoolId, level: Precedence, note: Bytes) {
        if let Some(jobs) = self.spool_jobs(id) {
            let _ = jobs.send(SpoolJob::Note(level, note));
        }
    }

    /// The jobs of a spool, which is in a file from now on; `None` where it is nowhere.
    fn spool_jobs(&mut self, id: SpoolId) -> Option<&mpsc::UnboundedSender<SpoolJob>> {
        let place = self.spools.get_mut(&id)?;
        if matches!(place, Place::Memory | Place::Left) {
            let (jobs, queue) = mpsc::unbounded_channel();
            let spools = Arc::clone(self.store.contents());
            while self.spooling.try_join_next().is_some() {}
            let answers = (Arc::clone(&self.answers), Arc::clone(&self.no_room));
            let threads = Arc::clone(&self.threads);
            self.spooling.spawn(run_spool(id, spools, queue, threads, answers));
            *place = Place::File(jobs);
        }
        match place {
            Place::File(jobs) => Some(jobs),
            Place::Memory | Place::Left | Place::Nowhere => None,
        }
    }

    pub(super) fn spool_sync(&mut self, id: SpoolId, level: Precedence, token: Token) {
        let result = match self.spools.get(&id) {
            Some(Place::File(_) | Place::Left) => {
                if let Some(jobs) = self.spool_jobs(id) {
                    let _ = jobs.send(SpoolJob::Sync(level, token));
                }
                return;
            }
            Some(Place::Memory) => self.store.contents().sync(id),
            Some(Place::Nowhere) | None => Err(StoreError::NoSpool { id }),
        };
        self.answers.answer(level, synced(id, token, result));
    }

    pub(super) fn spool_discard(&mut self, id: SpoolId) {
        match self.spools.remove(&id) {
            Some(Place::File(jobs)) => drop(jobs.send(SpoolJob::Discard)),
            Some(Place::Memory | Place::Left) => self.store.contents().discard(id),
            Some(Place::Nowhere) | None => {}
        }
    }

    /// Commits, after all jobs of the spools that the batch consumes. A commit that waits for the
    /// sync of a large file lets others pass: no two pending commits concern the same entry or
    /// body.
    pub(super) fn commit(&mut self, token: Token, precedence: Precedence, batch: Batch) {
        let spools: Vec<SpoolId> = batch
            .iter()
            .filter_map(|op| match op {
                Op::PutBody { source: BodySource::Spool(id), .. } => Some(*id),
                _ => None,
            })
            .collect();
        let mut reached = Vec::new();
        for id in &spools {
            if let Some(Place::File(jobs)) = self.spools.get(id) {
                let (at, when) = oneshot::channel();
                if jobs.send(SpoolJob::Reached(precedence, at)).is_ok() {
                    reached.push(when);
                }
            }
        }
        let answers = Arc::clone(&self.answers);
        let no_room = Arc::clone(&self.no_room);
        let on_done = Box::new(move |ended: Committed| {
            if let Committed::NotDone(error) = &ended
                && error.is_disk_full()
            {
                no_room.found_none(precedence);
            }
            let end = match &ended {
                Committed::Durable => BatchEnd::Durable,
                Committed::Fenced(_) => BatchEnd::Fenced,
                Committed::NotDone(StoreError::NoLease) => BatchEnd::NoLease,
                _ => BatchEnd::NotDone,
            };
            let (result, reason) = match ended {
                Committed::Durable => (Ok(()), None),
                Committed::Conflict(_) => (Err(CommitError::Conflict), None),
                Committed::Fenced(_) => (Err(CommitError::Fenced), None),
                Committed::Changed(_) => (Err(CommitError::Changed), None),
                Committed::NotDone(error) => {
                    let reason = error.is_final().then(|| error.to_string());
                    let result = match error.record_limit() {
                        Some(limit) => CommitError::TooLong(limit),
                        None => CommitError::NotDone(EdgeError(error.to_string())),
                    };
                    (Err(result), reason)
                }
                // Nobody gets an answer: the daemon ends, and the next start reads the truth.
                Committed::Unknown(error) => {
                    return answers.answer(precedence, DriverAnswer::Fatal(error.to_string()));
                }
            };
            answers.answer(precedence, DriverAnswer::Committed { token, end, result, spools });
            if let Some(reason) = reason {
                answers.answer(precedence, DriverAnswer::Fatal(reason));
            }
        });
        if reached.is_empty() {
            self.committer.submit(precedence, batch, on_done);
            return;
        }
        let committer = Arc::clone(&self.committer);
        while self.waiting.try_join_next().is_some() {}
        self.waiting.spawn(async move {
            for when in reached {
                let _ = when.await; // the spool's task may have ended
            }
            committer.submit(precedence, batch, on_done);
        });
    }

    /// Has a value read that all nodes of a site share.
    pub(super) fn read_value(&self, name: &'static str) {
        self.read(Precedence::Immediate, Read::SiteValue(name));
    }

    /// Has all of them read: another node has changed one that this commit was to replace.
    pub(super) fn read_values(&self, token: Token) {
        self.read(Precedence::Immediate, Read::SiteValues(token));
    }

    /// The number of the batch that was submitted last.
    pub(super) fn last_batch(&self) -> BatchId {
        self.committer.last()
    }

    /// The store itself, for looks on other threads.
    pub(super) fn store(&self) -> &Arc<dyn QueueStore> {
        &self.store
    }

    /// Calls this once all batches that were submitted before have ended.
    pub(super) fn after_all(&self, done: OnDone) {
        self.committer.submit(Precedence::Deferred, Vec::new(), done);
    }

    /// Removes the spools of a batch that committed.
    pub(super) fn committed(&mut self, spools: &[SpoolId]) {
        for id in spools {
            self.spools.remove(id);
        }
    }

    pub(super) fn load(&self, token: Token, precedence: Precedence, id: EntryId) {
        let key = (precedence, id);
        match self.store.recent_entry(key) {
            Some(record) => {
                let loaded = Input::Loaded { token, result: Ok(Some(record)) };
                answer(&self.answers, precedence, None, loaded);
            }
            None => self.read(precedence, Read::Load(token, key)),
        }
    }

    /// Uses no clock: [`Op::ForgetSeen`] removes expired keys.
    pub(super) fn look_up(&self, token: Token, precedence: Precedence, keys: Vec<Digest>) {
        if keys.iter().all(|key| self.store.cannot_have_seen(key)) {
            let result = Ok(vec![None; keys.len()]);
            answer(&self.answers, precedence, None, Input::LookedUp { token, result });
        } else {
            self.read(precedence, Read::LookUp(token, keys, Utc(0)));
        }
    }

    /// Reads of a mailbox of the message store.
    pub(super) fn read_mailbox(
        &self,
        token: Token,
        level: Precedence,
        read: mailbox::machine::Read,
    ) {
        self.read(level, Read::Mailbox(token, read));
    }

    /// Whether there is little room on the disk, at each look: with little, the store gives space back also
    /// while nothing is committed.
    pub(super) fn short_of_space(&self, is_short: bool) {
        self.store.short_of_space(is_short);
        if is_short {
            self.committer.tidy();
        }
    }

    /// The check of the store that runs, or the last. `begin`: one begins, unless one runs.
    pub(super) fn check(&self, begin: bool, rate: Option<u64>) -> StoreReport {
        if begin && self.check.begins() {
            let (store, check) = (Arc::clone(&self.store), self.check.clone());
            tokio::task::spawn_blocking(move || {
                check.run(&*store, Pace::new(&*store, rate, crate::clock::stopwatch()), |_| ());
                let report = check.report();
                if report.has_damage() {
                    tracing::error!(
                        records = report.records.len(),
                        contents = report.contents.len(),
                        log_parts = report.log_parts,
                        keys = report.keys,
                        "the check of the store found damage: see mta store check"
                    );
                }
            });
        }
        self.check.report()
    }

    /// Begins a backup in this directory, if there is one and none is being made; returns its state.
    pub(super) fn back_up(
        &self,
        begin: Option<PathBuf>,
        data_dir: PathBuf,
        rate: Option<u64>,
    ) -> BackupReport {
        if let Some(directory) = begin
            && self.backup.begins(&directory)
        {
            let (store, backup) = (Arc::clone(&self.store), self.backup.clone());
            tokio::task::spawn_blocking(move || {
                backup.run(&*store, &data_dir, rate, backup.is_wanted());
                let BackupReport { directory, octets, failed, .. } = backup.report();
                // It came from outside: one line stays one line.
                let directory = directory.display().to_string();
                let directory = shown::line(&directory);
                match failed {
                    None => tracing::info!(%directory, octets, "a backup is made"),
                    Some(error) => {
                        let error = shown::line(&error);
                        tracing::error!(%directory, %error, "no backup was made");
                    }
                }
            });
        }
        self.backup.asked()
    }

    /// Adds the fields that only the records contain, on a thread that may wait for the disk.
    pub(super) fn describe(
        &self,
        page: node::listing::Page,
        answer: oneshot::Sender<Result<QueuePage, ListingError>>,
    ) {
        let store = Arc::clone(&self.store);
        tokio::task::spawn_blocking(move || {
            // The entry may be gone by now. A read failure is met again, and reported, when it is
            // sent.
            let _ = answer.send(Ok(page.describe(|key| store.entry(key).ok().flatten())));
        });
    }

    fn read(&self, level: Precedence, read: Read) {
        let (store, answers) = (Arc::clone(&self.store), Arc::clone(&self.answers));
        self.reader.submit(level, move || look(&*store, &answers, level, read));
    }

    /// Deletes expired keys, and answers whether more are left.
    pub(super) fn forget_seen(&self, token: Token, before: Utc, most: usize) {
        const LEVEL: Precedence = Precedence::Deferred; // nobody waits for it
        let (store, answers) = (Arc::clone(&self.store), Arc::clone(&self.answers));
        let on_done = Box::new(move |ended: Committed| {
            let result = ended.into_result().and_then(|()| store.has_expired_keys(before));
            let fatal = fatal(&result);
            let result = result.map_err(|e| EdgeError(e.to_string()));
            answer(&answers, LEVEL, fatal, Input::Forgot { token, result });
        });
        self.committer.submit(LEVEL, vec![Op::ForgetSeen { before, most }], on_done);
    }

    /// Reads content for an association of this level once `outgoing` is below `limit`.
    pub(super) fn read_content(
        &self,
        token: Token,
        level: Precedence,
        (body, offset, len): (BodyId, u64, usize),
        outgoing: Option<Arc<Gauge>>,
        limit: usize,
    ) {
        let len = len.min(MAX_READ);
        let has_room = outgoing.as_ref().is_none_or(|gauge| gauge.octets() < limit);
        if has_room
            && let Some(octets) = self.store.recent_body(body, offset, len)
            && !octets.is_empty()
        {
            answer(&self.answers, level, None, Input::Content { token, result: Ok(octets) });
            return;
        }
        let (store, answers) = (Arc::clone(&self.store), Arc::clone(&self.answers));
        let threads = Arc::clone(&self.threads);
        tokio::spawn(async move {
            if let Some(outgoing) = outgoing {
                outgoing.below(limit).await;
            }
            let read = move || {
                let result = store.body(body, offset, len);
                let fatal = fatal(&result);
                let result = match result {
                    Ok(Some(octets)) if !octets.is_empty() => Ok(octets),
                    Ok(Some(_)) => {
                        Err(ReadError::Damaged(format!("body {body} ends before offset {offset}")))
                    }
                    Ok(None) => Err(ReadError::Damaged(format!("there is no body {body}"))),
                    Err(error) => Err(read_error(&error)),
                };
                answer(&answers, level, fatal, Input::Content { token, result });
            };
            threads.submit(level, read);
        });
    }

    /// Commits what is pending, then ends all threads and closes the database, on a separate
    /// thread so that the caller may stop waiting.
    pub(super) fn shutdown(
        self,
        parting: impl FnOnce() + Send + 'static,
    ) -> tokio::task::JoinHandle<()> {
        let runtime = Handle::current();
        let close = move || {
            let StoreThreads { store, spools, committer, mut waiting, mut spooling, .. } = self;
            let StoreThreads { reader, learner, threads, .. } = self;
            drop(spools);
            runtime.block_on(async {
                while spooling.join_next().await.is_some() {}
                while waiting.join_next().await.is_some() {}
            });
            // Dropping these waits for their threads; the committer first commits its queue.
            drop(committer);
            drop((reader, learner));
            threads.close();
            drop(threads);
            parting();
            store.close();
        };
        tokio::task::spawn_blocking(close)
    }
}

impl KeyReader {
    fn start(store: &Arc<dyn QueueStore>) -> Result<KeyReader, StoreError> {
        let ending = Arc::<AtomicBool>::default();
        let (store, until) = (Arc::clone(store), Arc::clone(&ending));
        let thread = std::thread::Builder::new().name("learner".to_owned()).spawn(move || {
            if let Err(error) = store.learn_seen(&until) {
                tracing::warn!(%error, "every key will be looked up in the database");
            }
        });
        let doing = "starting the learner";
        let thread = thread.map_err(|e| StoreError::Io { doing, source: Arc::new(e) })?;
        Ok(KeyReader { ending, thread: Some(thread) })
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a reader of the database panicked");
        }
    }
}

/// Does one look-up.
fn look(store: &dyn QueueStore, answers: &Inbox, level: Precedence, read: Read) {
    match read {
        Read::Load(token, key) => {
            let result = store.entry(key);
            let fatal = fatal(&result);
            let result = result.map_err(|e| read_error(&e));
            answer(answers, level, fatal, Input::Loaded { token, result });
        }
        Read::Mailbox(token, read) => {
            let found = mailbox::machine::answer(store, &read);
            answer(answers, level, None, Input::MailboxRead { token, found });
        }
        Read::SiteValue(name) => {
            let read = ClusterAnswer::Value(name, store.meta(name));
            answers.answer(level, DriverAnswer::Cluster(read));
        }
        Read::SiteValues(token) => {
            let values = ownership::site_values(|name| store.meta(name));
            answers.answer(level, DriverAnswer::ChangedValues { token, values });
        }
        Read::LookUp(token, keys, now) => {
            let result = store.seen(&keys, now);
            let fatal = fatal(&result);
            let result = result.map_err(|e| EdgeError(e.to_string()));
            answer(answers, level, fatal, Input::LookedUp { token, result });
        }
    }
}

fn read_error(error: &StoreError) -> ReadError {
    let text = error.to_string();
    if error.is_damage() { ReadError::Damaged(text) } else { ReadError::Failed(EdgeError(text)) }
}

/// The error that ends the daemon, if the store accepts nothing more.
fn fatal<T>(result: &Result<T, StoreError>) -> Option<String> {
    match result {
        Err(error @ (StoreError::Stopped { .. } | StoreError::Closed)) => Some(error.to_string()),
        _ => None,
    }
}

fn answer(answers: &Inbox, level: Precedence, fatal: Option<String>, input: Input) {
    answers.answer(level, DriverAnswer::Input(input));
    if let Some(reason) = fatal {
        answers.answer(level, DriverAnswer::Fatal(reason));
    }
}

fn spool_failed(spool: SpoolId, error: &StoreError) -> DriverAnswer {
    DriverAnswer::Input(Input::SpoolFailed { spool, error: error.to_string() })
}

fn synced(spool: SpoolId, token: Token, result: Result<u64, StoreError>) -> DriverAnswer {
    let result = result.map_err(|e| EdgeError(e.to_string()));
    DriverAnswer::Input(Input::Synced { spool, token, result })
}

/// Does the jobs of a spool in a file, on threads that may wait for the disk.
async fn run_spool(
    id: SpoolId,
    spools: Arc<dyn Contents>,
    mut jobs: mpsc::UnboundedReceiver<SpoolJob>,
    threads: Arc<Pool>,
    answers: (Arc<Inbox>, Arc<NoRoom>),
) {
    let mut usable = true;
    let mut batch = Vec::new();
    while jobs.recv_many(&mut batch, SPOOL_JOBS).await > 0 {
        let work = std::mem::take(&mut batch);
        let level = work.iter().map(SpoolJob::level).max().unwrap_or(Precedence::Deferred);
        let (spools, answers) = (Arc::clone(&spools), answers.clone());
        let (done, when) = oneshot::channel();
        threads.submit(level, move || {
            let still = work
                .into_iter()
                .fold(usable, |usable, job| do_job(id, &*spools, &answers, usable, job));
            let _ = done.send(still);
        });
        usable = when.await.unwrap_or(false);
    }
}

/// Does one job; returns whether the spool is still usable.
fn do_job(
    id: SpoolId,
    spools: &dyn Contents,
    (answers, no_room): &(Arc<Inbox>, Arc<NoRoom>),
    usable: bool,
    job: SpoolJob,
) -> bool {
    let fails = |level, error: StoreError| {
        if error.is_disk_full() {
            no_room.found_none(level);
        }
        answers.answer(level, spool_failed(id, &error));
    };
    match job {
        SpoolJob::Append(level, bytes, incoming) => {
            let length = bytes.len();
            let result = if usable { spools.append(id, bytes) } else { Ok(()) };
            if let Some(gauge) = incoming {
                gauge.sub(length);
            }
            if let Err(error) = result {
                // Reported once; later octets would leave a gap.
                fails(level, error);
                return false;
            }
        }
        SpoolJob::Note(level, note) => {
            let result = if usable { spools.note(id, &note) } else { Ok(()) };
            if let Err(error) = result {
                fails(level, error);
                return false;
            }
        }
        SpoolJob::Sync(level, token) => {
            answers.answer(level, synced(id, token, spools.sync(id)));
        }
        SpoolJob::Reached(_, at) => {
            // Synced here, so that the commits of others do not wait for this file. A failure is
            // met again, and reported, by the commit.
            let _ = spools.sync(id);
            let _ = at.send(());
        }
        SpoolJob::Discard => spools.discard(id),
    }
    usable
}

#[cfg(test)]
mod tests;
