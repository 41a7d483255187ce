//! What the daemon does with the outputs that are for the store.

use super::mutant::Lie;
use super::{Job, RealStore};
use crate::store::{Delays, Reply};
use base::rng::Rng;
use base::{Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Op, SpoolId};
use node::{CommitError, EdgeError, Input, Output, ReadError, Token};
use std::path::Path;
use std::time::Duration;
use store::{BatchId, Committed, Disk, QueueStore, StoreError};

/// Most octets of content per read.
const MAX_READ: usize = 1 << 20;

/// An answer that needs no sync.
const QUICK: Duration = Duration::from_micros(50);

/// Most batches of a group.
const GROUP: u64 = 4;

impl RealStore {
    pub(super) fn perform(
        &mut self,
        store: &dyn QueueStore,
        (delays, rng): (&Delays, &mut Rng),
        output: Output,
    ) -> Result<Reply, Output> {
        Ok(match output {
            Output::SpoolOpen { spool } => match store.contents().open(spool) {
                Ok(()) => {
                    self.spools.insert(spool, true);
                    Reply::None
                }
                Err(error) => Reply::After(QUICK, spool_failed(spool, &error)),
            },
            Output::SpoolAppend { spool, bytes, .. } => self.append(store, spool, bytes),
            Output::SpoolNote { spool, note, .. } => self.note(store, spool, &note),
            Output::SpoolSync { spool, token, .. } => {
                let result = store.contents().sync(spool).map_err(|e| EdgeError(e.to_string()));
                Reply::After(delays.commit(rng), Input::Synced { spool, token, result })
            }
            Output::SpoolDiscard { spool } => {
                if self.spools.remove(&spool).is_some() {
                    store.contents().discard(spool);
                }
                Reply::None
            }
            Output::Commit { token, precedence, batch } => {
                self.waiting.push_back(Job::new(token, precedence, batch, None));
                Reply::Commit(delays.commit(rng))
            }
            Output::ForgetSeen { token, before, most } => {
                let batch = vec![Op::ForgetSeen { before, most }];
                self.waiting.push_back(Job::new(token, Precedence::Deferred, batch, Some(before)));
                Reply::Commit(delays.commit(rng))
            }
            Output::Load { token, precedence, id } => {
                let key = (precedence, id);
                let found =
                    store.recent_entry(key).map_or_else(|| store.entry(key), |r| Ok(Some(r)));
                self.end_if_stopped(&found);
                let result = found.map_err(|e| read_error(&e));
                Reply::After(QUICK, Input::Loaded { token, result })
            }
            Output::LookUp { token, keys, .. } => {
                let nothing = keys.iter().all(|key| store.cannot_have_seen(key));
                let found = match nothing || self.lies(Lie::FindsNoKey) {
                    true => Ok(vec![None; keys.len()]),
                    false => store.seen(&keys, Utc(0)),
                };
                self.end_if_stopped(&found);
                let result = found.map_err(|e| EdgeError(e.to_string()));
                Reply::After(delays.commit(rng), Input::LookedUp { token, result })
            }
            Output::ReadMailbox { token, read, .. } => {
                let found = node::mailbox::machine::answer(store, &read);
                Reply::After(QUICK, Input::MailboxRead { token, found })
            }
            Output::ReadContent { token, body, offset, len, .. }
            | Output::ReadFront { token, body, offset, len, .. } => {
                let found = store.body(body, offset, len.min(MAX_READ));
                self.end_if_stopped(&found);
                let damaged = |why: &str| Err(ReadError::Damaged(format!("body {body} {why}")));
                let result = match found {
                    Ok(Some(octets)) if !octets.is_empty() => Ok(octets),
                    Ok(Some(_)) => damaged("ends early"),
                    Ok(None) => damaged("is not there"),
                    Err(error) => Err(read_error(&error)),
                };
                Reply::After(delays.read, Input::Content { token, result })
            }
            other => return Err(other),
        })
    }

    fn append(&mut self, store: &dyn QueueStore, spool: SpoolId, bytes: Bytes) -> Reply {
        let ignores = self.lies(Lie::IgnoresFailedWrites);
        let Some(usable) = self.spools.get_mut(&spool) else { return Reply::None };
        if !*usable || store.contents().append_in_memory(spool, &bytes) {
            return Reply::None;
        }
        match store.contents().append(spool, bytes) {
            Ok(()) => Reply::None,
            Err(_) if ignores => Reply::None,
            Err(error) => {
                // Reported once; later octets would leave a gap.
                *usable = false;
                Reply::After(QUICK, spool_failed(spool, &error))
            }
        }
    }

    fn note(&mut self, store: &dyn QueueStore, spool: SpoolId, note: &[u8]) -> Reply {
        let Some(usable) = self.spools.get_mut(&spool).filter(|usable| **usable) else {
            return Reply::None;
        };
        match store.contents().note(spool, note) {
            Ok(()) => Reply::None,
            Err(error) => {
                *usable = false;
                Reply::After(QUICK, spool_failed(spool, &error))
            }
        }
    }

    /// Commits a group: some of those that wait and have one precedence.
    pub(super) fn commit_group(&mut self, store: &dyn QueueStore, rng: &mut Rng) -> Vec<Input> {
        self.make_late(store);
        let Some(first) = self.waiting.front().map(|job| job.precedence) else { return Vec::new() };
        let most = 1 + rng.below(GROUP) as usize;
        let like = |job: &&Job| job.precedence == first;
        let count = self.waiting.iter().take(most).take_while(like).count();
        let mut jobs: Vec<Job> = self.waiting.drain(..count).collect();
        if self.lies(Lie::AnswersEarly) {
            let batches = jobs.iter_mut().map(|job| std::mem::take(&mut job.batch));
            self.late.extend(batches.collect::<Vec<_>>());
            return jobs
                .into_iter()
                .map(|job| self.answer(store, &job, Committed::Durable))
                .collect();
        }
        for spool in jobs.iter().flat_map(|job| job.spools.clone()) {
            // Synced before, so that others need not wait. A failure is met again by the commit.
            let _ = store.contents().sync(spool);
        }
        let ended = self.commit_batches(store, &mut jobs);
        let mut answers = Vec::new();
        for (job, end) in jobs.into_iter().zip(ended) {
            self.note_refusal(&job, &end);
            let end = match end {
                Committed::Unknown(_) if self.lies(Lie::UnknownIsDurable) => Committed::Durable,
                Committed::Unknown(error) if self.lies(Lie::UnknownIsNotDone) => {
                    Committed::NotDone(error)
                }
                Committed::NotDone(_) if self.lies(Lie::NotDoneIsDurable) => Committed::Durable,
                other => other,
            };
            match end {
                // Nobody gets an answer: the process ends, and the next start reads the truth.
                Committed::Unknown(_) => self.ends = true,
                end => answers.push(self.answer(store, &job, end)),
            }
        }
        answers
    }

    /// A full disk has a reserve for deletes, and for the highest precedences.
    fn note_refusal(&mut self, job: &Job, end: &Committed) {
        let is_full = matches!(end, Committed::NotDone(error) if error.is_disk_full());
        if !is_full || !self.has_reserve || !self.faults.is_full() {
            return;
        }
        let files = self.disk.list(Path::new("log")).unwrap_or_default();
        let spares = files.iter().filter(|(name, _)| name.ends_with(".spare")).count();
        // The highest precedences leave two parts of the reserve.
        if job.frees || job.is_highest && spares > 2 {
            let (precedence, token) = (job.precedence, job.token);
            self.refused.push(format!("{token:?} of {precedence}, {spares} spare segments"));
        }
    }

    fn commit_batches(&mut self, store: &dyn QueueStore, jobs: &mut [Job]) -> Vec<Committed> {
        let mut batches = Vec::new();
        for job in jobs {
            let mut batch = std::mem::take(&mut job.batch);
            self.mutate(&mut batch);
            batches.push(batch);
        }
        if !self.lies(Lie::SplitsBatches) {
            let group = batches.into_iter().map(|batch| (self.number(), batch)).collect();
            return store.commit(group);
        }
        let mut ended = Vec::new();
        for batch in batches {
            let parts = batch.into_iter().map(|op| store.commit(vec![(self.number(), vec![op])]));
            let parts: Vec<Committed> = parts.flatten().collect();
            let failed = parts.into_iter().find(|part| !part.is_durable());
            ended.push(failed.unwrap_or(Committed::Durable));
        }
        ended
    }

    fn number(&mut self) -> BatchId {
        self.batches += 1;
        BatchId(self.batches)
    }

    fn mutate(&self, batch: &mut Batch) {
        let deletes = self.lies(Lie::DropsDeletes);
        let contents = deletes || self.lies(Lie::DropsContentDeletes);
        batch.retain(|op| match op {
            Op::DeleteEntry { .. } => !deletes,
            Op::DeleteBody { .. } => !contents,
            Op::PutSeen { .. } => !self.lies(Lie::RemembersNothing),
            _ => true,
        });
        if self.lies(Lie::FindsNoKey) {
            for op in batch {
                if let Op::PutSeen { absent, .. } = op {
                    *absent = false;
                }
            }
        }
    }

    /// Makes the commits that were answered before.
    pub(super) fn make_late(&mut self, store: &dyn QueueStore) {
        for batch in std::mem::take(&mut self.late) {
            let number = self.number();
            let _ = store.commit(vec![(number, batch)]);
        }
    }

    fn answer(&mut self, store: &dyn QueueStore, job: &Job, end: Committed) -> Input {
        let token = job.token;
        if let Some(before) = job.forgets {
            let result = end.into_result().and_then(|()| store.has_expired_keys(before));
            self.ends |= matches!(&result, Err(error) if error.is_final());
            return Input::Forgot { token, result: result.map_err(|e| EdgeError(e.to_string())) };
        }
        let result = match end {
            Committed::Durable => Ok(()),
            Committed::Conflict(_) => Err(CommitError::Conflict),
            Committed::Fenced(_) => Err(CommitError::Fenced),
            Committed::Changed(_) => Err(CommitError::Changed),
            Committed::NotDone(error) | Committed::Unknown(error) => {
                self.ends |= error.is_final() && !self.lies(Lie::UnknownIsNotDone);
                Err(match error.record_limit() {
                    Some(limit) => CommitError::TooLong(limit),
                    None => CommitError::NotDone(EdgeError(error.to_string())),
                })
            }
        };
        if result.is_ok() {
            for spool in &job.spools {
                self.spools.remove(spool);
            }
        }
        Input::Committed { token, result }
    }

    /// A store that accepts nothing more ends the process.
    fn end_if_stopped<T>(&mut self, result: &Result<T, StoreError>) {
        if matches!(result, Err(error) if error.is_final()) {
            self.ending = Some(crate::Death::Process);
        }
    }
}

impl Job {
    fn new(token: Token, precedence: Precedence, batch: Batch, forgets: Option<Utc>) -> Job {
        let spools = spools_of(&batch);
        let takes_room =
            |op: &Op| matches!(op, Op::PutEntry { .. } | Op::PutBody { .. } | Op::PutSeen { .. });
        let is_highest = |op: &Op| matches!(op, Op::PutEntry { precedence, .. } if *precedence >= Precedence::Flash);
        let frees = !batch.iter().any(takes_room);
        let is_highest = batch.iter().any(is_highest);
        Job { token, precedence, batch, spools, forgets, frees, is_highest }
    }
}

fn spools_of(batch: &Batch) -> Vec<SpoolId> {
    let spools = batch.iter().filter_map(|op| match op {
        Op::PutBody { source: BodySource::Spool(id), .. } => Some(*id),
        _ => None,
    });
    spools.collect()
}

fn spool_failed(spool: SpoolId, error: &StoreError) -> Input {
    Input::SpoolFailed { spool, error: error.to_string() }
}

fn read_error(error: &StoreError) -> ReadError {
    let text = error.to_string();
    if error.is_damage() { ReadError::Damaged(text) } else { ReadError::Failed(EdgeError(text)) }
}
