//! The store, off the node's thread: spools in order each, commits in order all, reads beside.

use super::Answer;
use super::gauge::Gauge;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, SpoolId};
use node::{Input, Token};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Committer, QueueStore, RedbStore, Spools, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Batches that wait for the committer before its queue is full.
const COMMITS_WAITING: usize = 4_096;

/// Jobs of one spool done in one go.
const SPOOL_JOBS: usize = 64;

/// Content read at once at most, whatever was asked.
const READ_MAX: usize = 1 << 20;

/// The driver's side of the store.
pub(super) struct DiskDesk {
    store: Arc<RedbStore>,
    answers: mpsc::UnboundedSender<Answer>,
    spools: BTreeMap<SpoolId, mpsc::UnboundedSender<SpoolJob>>,
    commits: mpsc::UnboundedSender<CommitJob>,
    commit_task: JoinHandle<()>,
}

enum SpoolJob {
    Append(Bytes, Option<Arc<Gauge>>),
    Sync(Token),
    /// Answered when all jobs before are done.
    Reached(oneshot::Sender<()>),
    Discard,
}

struct CommitJob {
    token: Token,
    batch: Batch,
    spools: Vec<SpoolId>,
    reached: Vec<oneshot::Receiver<()>>,
}

impl DiskDesk {
    pub(super) fn start(
        store: Arc<RedbStore>,
        answers: mpsc::UnboundedSender<Answer>,
    ) -> Result<DiskDesk, StoreError> {
        let committer =
            Committer::start(Arc::clone(&store) as Arc<dyn QueueStore>, COMMITS_WAITING)?;
        let (commits, jobs) = mpsc::unbounded_channel();
        let commit_task = tokio::spawn(commit_all(jobs, Arc::new(committer), answers.clone()));
        Ok(DiskDesk { store, answers, spools: BTreeMap::new(), commits, commit_task })
    }

    pub(super) fn spool_open(&mut self, id: SpoolId) {
        let (jobs, queue) = mpsc::unbounded_channel();
        let spools = Arc::clone(self.store.spools());
        tokio::spawn(run_spool(id, spools, queue, self.answers.clone()));
        self.spools.insert(id, jobs);
    }

    /// Appends; `incoming` counts the octets until they are stored.
    pub(super) fn spool_append(&mut self, id: SpoolId, bytes: Bytes, incoming: Option<Arc<Gauge>>) {
        if let Some(gauge) = &incoming {
            gauge.add(bytes.len());
        }
        self.spool_job(id, SpoolJob::Append(bytes, incoming));
    }

    pub(super) fn spool_sync(&mut self, id: SpoolId, token: Token) {
        if !self.spool_job(id, SpoolJob::Sync(token)) {
            let result = Err(StoreError::NoSpool { id }.to_string());
            let _ = self.answers.send(Answer::Input(Input::Synced { spool: id, token, result }));
        }
    }

    pub(super) fn spool_discard(&mut self, id: SpoolId) {
        self.spool_job(id, SpoolJob::Discard);
        self.spools.remove(&id);
    }

    fn spool_job(&self, id: SpoolId, job: SpoolJob) -> bool {
        self.spools.get(&id).is_some_and(|jobs| jobs.send(job).is_ok())
    }

    /// Commits after all that was asked of the spools it uses up.
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
            let (at, when) = oneshot::channel();
            if self.spool_job(*id, SpoolJob::Reached(at)) {
                reached.push(when);
            }
        }
        // Refused only if the commit task panicked, which ends the daemon.
        let _ = self.commits.send(CommitJob { token, batch, spools, reached });
    }

    /// The spools of a batch that committed are used up.
    pub(super) fn committed(&mut self, spools: &[SpoolId]) {
        for id in spools {
            self.spools.remove(id);
        }
    }

    pub(super) fn load(&self, token: Token, precedence: Precedence, id: EntryId) {
        self.read(move |store| {
            let result = store.entry((precedence, id));
            (fatal(&result), Input::Loaded { token, result: result.map_err(|e| e.to_string()) })
        });
    }

    pub(super) fn look_up(&self, token: Token, keys: Vec<Digest>, now: Utc) {
        self.read(move |store| {
            let result: Result<Vec<_>, _> = keys.iter().map(|key| store.seen(key, now)).collect();
            (fatal(&result), Input::LookedUp { token, result: result.map_err(|e| e.to_string()) })
        });
    }

    /// Reads content once `outgoing` is below `limit`.
    pub(super) fn read_content(
        &self,
        token: Token,
        (body, offset, len): (BodyId, u64, usize),
        outgoing: Option<Arc<Gauge>>,
        limit: usize,
    ) {
        let store = Arc::clone(&self.store);
        let answers = self.answers.clone();
        tokio::spawn(async move {
            if let Some(outgoing) = outgoing {
                outgoing.below(limit).await;
            }
            let read = move || {
                let result = store.body(body, offset, len.min(READ_MAX));
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

    fn read(&self, read: impl FnOnce(&RedbStore) -> (Option<String>, Input) + Send + 'static) {
        let store = Arc::clone(&self.store);
        let answers = self.answers.clone();
        tokio::task::spawn_blocking(move || {
            let (fatal, input) = read(&store);
            answer(&answers, fatal, input);
        });
    }

    /// Commits what waits, then ends.
    pub(super) async fn shutdown(self) {
        drop(self.commits);
        drop(self.spools);
        let _ = self.commit_task.await;
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

async fn commit_all(
    mut jobs: mpsc::UnboundedReceiver<CommitJob>,
    committer: Arc<Committer>,
    answers: mpsc::UnboundedSender<Answer>,
) {
    while let Some(CommitJob { token, batch, spools, reached }) = jobs.recv().await {
        for when in reached {
            let _ = when.await; // the spool's task may have ended
        }
        let answers = answers.clone();
        let on_done = Box::new(move |result: Result<(), StoreError>| {
            let reason = fatal(&result);
            let result = result.map_err(|e| e.to_string());
            let _ = answers.send(Answer::Committed { token, result, spools });
            if let Some(reason) = reason {
                let _ = answers.send(Answer::Fatal(reason));
            }
        });
        if let Err(refused) = committer.try_submit(batch, on_done) {
            let committer = Arc::clone(&committer);
            let wait = move || committer.submit(refused.batch, refused.on_done);
            let _ = tokio::task::spawn_blocking(wait).await;
        }
    }
    // Dropping waits for the thread, which commits what is queued.
    let _ = tokio::task::spawn_blocking(move || drop(committer)).await;
}

async fn run_spool(
    id: SpoolId,
    spools: Arc<Spools>,
    mut jobs: mpsc::UnboundedReceiver<SpoolJob>,
    answers: mpsc::UnboundedSender<Answer>,
) {
    let failed = move |error: StoreError| {
        Answer::Input(Input::SpoolFailed { spool: id, error: error.to_string() })
    };
    let mut usable = true;
    if let Err(error) = spools.open(id) {
        usable = false;
        let _ = answers.send(failed(error));
    }
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
                            let _ = answers.send(failed(error));
                        }
                    }
                    SpoolJob::Sync(token) => {
                        let result = spools.sync(id).map_err(|e| e.to_string());
                        let input = Input::Synced { spool: id, token, result };
                        let _ = answers.send(Answer::Input(input));
                    }
                    SpoolJob::Reached(at) => drop(at.send(())),
                    SpoolJob::Discard => spools.discard(id),
                }
            }
            usable
        };
        usable = tokio::task::spawn_blocking(blocking).await.unwrap_or(false);
    }
}
