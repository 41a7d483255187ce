//! The store, off the node's thread: spools in order each, commits in order all, reads beside.

use super::Answer;
use super::gauge::Gauge;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, SpoolId};
use node::listing::QueuePage;
use node::{Input, Token};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Committer, EntryKey, QueueStore, RedbStore, Spools, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Jobs of one spool done in one go.
const SPOOL_JOBS: usize = 64;

/// Content read at once at most, whatever was asked.
const READ_MAX: usize = 1 << 20;

/// The driver's side of the store. Nothing here waits for the disk: what is in memory is done at
/// once, so that a small message crosses to another thread for its commit only.
pub(super) struct DiskDesk {
    store: Arc<RedbStore>,
    answers: mpsc::UnboundedSender<Answer>,
    spools: BTreeMap<SpoolId, Place>,
    committer: Arc<Committer>,
    /// Commits that wait for the files they use up.
    waiting: JoinSet<()>,
    reads: std::sync::mpsc::Sender<Read>,
}

/// Where a spool is.
enum Place {
    /// In memory: nothing blocks.
    Memory,
    /// In a file: a task does the jobs in their order.
    File(mpsc::UnboundedSender<SpoolJob>),
    /// It could not be opened, which was told.
    Nowhere,
}

enum SpoolJob {
    Append(Bytes, Option<Arc<Gauge>>),
    Sync(Token),
    /// Answered when all jobs before are done and the file is synced, or cannot be.
    Reached(oneshot::Sender<()>),
    Discard,
}

/// Something to look up in the database.
enum Read {
    Load(Token, EntryKey),
    LookUp(Token, Vec<Digest>, Utc),
}

impl DiskDesk {
    pub(super) fn start(
        store: Arc<RedbStore>,
        answers: mpsc::UnboundedSender<Answer>,
    ) -> Result<DiskDesk, StoreError> {
        let committer = Committer::start(Arc::clone(&store) as Arc<dyn QueueStore>)?;
        let (reads, wanted) = std::sync::mpsc::channel();
        let reader = (Arc::clone(&store), answers.clone());
        std::thread::Builder::new()
            .name("reader".to_owned())
            .spawn(move || read_all(&reader.0, &reader.1, &wanted))
            .map_err(|e| StoreError::Io { doing: "starting the reader", source: Arc::new(e) })?;
        let learner = Arc::clone(&store);
        std::thread::Builder::new()
            .name("learner".to_owned())
            .spawn(move || {
                if let Err(error) = learner.learn_seen() {
                    tracing::warn!(%error, "every key will be looked up in the database");
                }
            })
            .map_err(|e| StoreError::Io { doing: "starting the learner", source: Arc::new(e) })?;
        Ok(DiskDesk {
            store,
            answers,
            spools: BTreeMap::new(),
            committer: Arc::new(committer),
            waiting: JoinSet::new(),
            reads,
        })
    }

    pub(super) fn spool_open(&mut self, id: SpoolId) {
        let place = match self.store.spools().open(id) {
            Ok(()) => Place::Memory,
            Err(error) => {
                let _ = self.answers.send(spool_failed(id, &error));
                Place::Nowhere
            }
        };
        self.spools.insert(id, place);
    }

    /// Appends; `incoming` counts the octets until they are stored.
    pub(super) fn spool_append(&mut self, id: SpoolId, bytes: Bytes, incoming: Option<Arc<Gauge>>) {
        let Some(place) = self.spools.get_mut(&id) else { return };
        if matches!(place, Place::Memory) {
            if self.store.spools().append_in_memory(id, &bytes) {
                return;
            }
            let (jobs, queue) = mpsc::unbounded_channel();
            let spools = Arc::clone(self.store.spools());
            tokio::spawn(run_spool(id, spools, queue, self.answers.clone()));
            *place = Place::File(jobs);
        }
        if let Place::File(jobs) = place {
            if let Some(gauge) = &incoming {
                gauge.add(bytes.len());
            }
            // Refused only if the task panicked, which ends the daemon.
            let _ = jobs.send(SpoolJob::Append(bytes, incoming));
        }
    }

    pub(super) fn spool_sync(&mut self, id: SpoolId, token: Token) {
        let result = match self.spools.get(&id) {
            Some(Place::File(jobs)) => {
                let _ = jobs.send(SpoolJob::Sync(token));
                return;
            }
            Some(Place::Memory) => self.store.spools().sync(id),
            Some(Place::Nowhere) | None => Err(StoreError::NoSpool { id }),
        };
        let _ = self.answers.send(synced(id, token, result));
    }

    pub(super) fn spool_discard(&mut self, id: SpoolId) {
        match self.spools.remove(&id) {
            Some(Place::File(jobs)) => drop(jobs.send(SpoolJob::Discard)),
            Some(Place::Memory) => self.store.spools().discard(id),
            Some(Place::Nowhere) | None => {}
        }
    }

    /// Commits, after all that was asked of the spools it uses up. One that waits for a large
    /// file's sync lets the others pass: no two commits under way concern the same entry or body.
    pub(super) fn commit(&mut self, token: Token, batch: Batch) {
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
                if jobs.send(SpoolJob::Reached(at)).is_ok() {
                    reached.push(when);
                }
            }
        }
        let answers = self.answers.clone();
        let on_done = Box::new(move |result: Result<(), StoreError>| {
            let reason = fatal(&result);
            let result = result.map_err(|e| e.to_string());
            let _ = answers.send(Answer::Committed { token, result, spools });
            if let Some(reason) = reason {
                let _ = answers.send(Answer::Fatal(reason));
            }
        });
        if reached.is_empty() {
            self.committer.submit(batch, on_done);
            return;
        }
        let committer = Arc::clone(&self.committer);
        while self.waiting.try_join_next().is_some() {}
        self.waiting.spawn(async move {
            for when in reached {
                let _ = when.await; // the spool's task may have ended
            }
            committer.submit(batch, on_done);
        });
    }

    /// The spools of a batch that committed are used up.
    pub(super) fn committed(&mut self, spools: &[SpoolId]) {
        for id in spools {
            self.spools.remove(id);
        }
    }

    pub(super) fn load(&self, token: Token, precedence: Precedence, id: EntryId) {
        let key = (precedence, id);
        match self.store.recent_entry(key) {
            Some(record) => {
                answer(&self.answers, None, Input::Loaded { token, result: Ok(Some(record)) });
            }
            None => self.read(Read::Load(token, key)),
        }
    }

    pub(super) fn look_up(&self, token: Token, keys: Vec<Digest>, now: Utc) {
        if keys.iter().all(|key| self.store.cannot_have_seen(key)) {
            let result = Ok(vec![None; keys.len()]);
            answer(&self.answers, None, Input::LookedUp { token, result });
        } else {
            self.read(Read::LookUp(token, keys, now));
        }
    }

    /// Fills in what only the records say, on a thread that may wait for the disk.
    pub(super) fn describe(
        &self,
        (mut page, keys): node::listing::Page,
        answer: oneshot::Sender<Result<QueuePage, String>>,
    ) {
        let store = Arc::clone(&self.store);
        tokio::task::spawn_blocking(move || {
            for (row, key) in page.entries.iter_mut().zip(keys) {
                // It may have gone meanwhile; a failure is met again, and told, when it is sent.
                if let Ok(Some(record)) = store.entry(key) {
                    row.describe(&record);
                }
            }
            let _ = answer.send(Ok(page));
        });
    }

    fn read(&self, read: Read) {
        // Refused only if the reader panicked, which ends the daemon.
        let _ = self.reads.send(read);
    }

    /// Reads content once `outgoing` is below `limit`.
    pub(super) fn read_content(
        &self,
        token: Token,
        (body, offset, len): (BodyId, u64, usize),
        outgoing: Option<Arc<Gauge>>,
        limit: usize,
    ) {
        let len = len.min(READ_MAX);
        let has_room = outgoing.as_ref().is_none_or(|gauge| gauge.octets() < limit);
        if has_room
            && let Some(octets) = self.store.recent_body(body, offset, len)
            && !octets.is_empty()
        {
            answer(&self.answers, None, Input::Content { token, result: Ok(octets) });
            return;
        }
        let store = Arc::clone(&self.store);
        let answers = self.answers.clone();
        tokio::spawn(async move {
            if let Some(outgoing) = outgoing {
                outgoing.below(limit).await;
            }
            let read = move || {
                let result = store.body(body, offset, len);
                let fatal = fatal(&result);
                let result = match result {
                    Ok(Some(octets)) if !octets.is_empty() => Ok(octets),
                    Ok(Some(_)) => Err(format!("body {body} ends before offset {offset}")),
                    Ok(None) => Err(format!("there is no body {body}")),
                    Err(error) => Err(error.to_string()),
                };
                answer(&answers, fatal, Input::Content { token, result });
            };
            let _ = tokio::task::spawn_blocking(read).await;
        });
    }

    /// Commits what waits, then ends.
    pub(super) async fn shutdown(mut self) {
        drop(self.spools);
        while self.waiting.join_next().await.is_some() {}
        // Dropping waits for the thread, which commits what is queued.
        let committer = self.committer;
        let _ = tokio::task::spawn_blocking(move || drop(committer)).await;
    }
}

/// Looks things up in the database, all that waits in one go, until nobody asks any more.
fn read_all(
    store: &RedbStore,
    answers: &mpsc::UnboundedSender<Answer>,
    wanted: &std::sync::mpsc::Receiver<Read>,
) {
    for read in wanted {
        match read {
            Read::Load(token, key) => {
                let result = store.entry(key);
                let fatal = fatal(&result);
                let result = result.map_err(|e| e.to_string());
                answer(answers, fatal, Input::Loaded { token, result });
            }
            Read::LookUp(token, keys, now) => {
                let result: Result<Vec<_>, _> =
                    keys.iter().map(|key| store.seen(key, now)).collect();
                let fatal = fatal(&result);
                let result = result.map_err(|e| e.to_string());
                answer(answers, fatal, Input::LookedUp { token, result });
            }
        }
    }
}

/// Why the daemon must end, where it must: the store takes nothing more.
fn fatal<T>(result: &Result<T, StoreError>) -> Option<String> {
    match result {
        Err(error @ (StoreError::Stopped { .. } | StoreError::Closed)) => Some(error.to_string()),
        _ => None,
    }
}

fn answer(answers: &mpsc::UnboundedSender<Answer>, fatal: Option<String>, input: Input) {
    // Refused only once the driver ended.
    let _ = answers.send(Answer::Input(input));
    if let Some(reason) = fatal {
        let _ = answers.send(Answer::Fatal(reason));
    }
}

fn spool_failed(spool: SpoolId, error: &StoreError) -> Answer {
    Answer::Input(Input::SpoolFailed { spool, error: error.to_string() })
}

fn synced(spool: SpoolId, token: Token, result: Result<u64, StoreError>) -> Answer {
    let result = result.map_err(|e| e.to_string());
    Answer::Input(Input::Synced { spool, token, result })
}

/// Does the jobs of a spool that is in a file, on threads that may wait for the disk.
async fn run_spool(
    id: SpoolId,
    spools: Arc<Spools>,
    mut jobs: mpsc::UnboundedReceiver<SpoolJob>,
    answers: mpsc::UnboundedSender<Answer>,
) {
    let mut usable = true;
    let mut batch = Vec::new();
    while jobs.recv_many(&mut batch, SPOOL_JOBS).await > 0 {
        let work = std::mem::take(&mut batch);
        let (spools, answers) = (Arc::clone(&spools), answers.clone());
        let blocking = move || {
            let mut usable = usable;
            for job in work {
                match job {
                    SpoolJob::Append(bytes, incoming) => {
                        let length = bytes.len();
                        let result = if usable { spools.append(id, bytes) } else { Ok(()) };
                        if let Some(gauge) = incoming {
                            gauge.sub(length);
                        }
                        if let Err(error) = result {
                            usable = false; // told once; what follows would leave a hole
                            let _ = answers.send(spool_failed(id, &error));
                        }
                    }
                    SpoolJob::Sync(token) => {
                        let _ = answers.send(synced(id, token, spools.sync(id)));
                    }
                    SpoolJob::Reached(at) => {
                        // Here, so that the commits of others do not wait for this file. A failure
                        // is met again, and told, by the commit itself.
                        let _ = spools.sync(id);
                        let _ = at.send(());
                    }
                    SpoolJob::Discard => spools.discard(id),
                }
            }
            usable
        };
        usable = tokio::task::spawn_blocking(blocking).await.unwrap_or(false);
    }
}
