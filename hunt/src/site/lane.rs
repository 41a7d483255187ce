//! The commits of a process, one after the other: each may be late, and its answer lost. Then another connection takes
//! over, so that a late commit is not made any more, and looks for the end.

use super::database::{Asked, End};
use super::member::{Event, Member, Process};
use base::rng::Rng;
use base::{Now, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Op, QueueId, SpoolId};
use membership::Fence;
use node::{CommitError, EdgeError, Input, Token};
use ownership::BatchEnd;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What is asked of the committer.
#[derive(Clone, Debug)]
pub(super) enum Job {
    Commit {
        number: u64,
        token: Token,
        batch: Batch,
    },
    Forget {
        number: u64,
        token: Token,
        before: Utc,
        most: usize,
    },
    /// The batches before have ended.
    After(QueueId, Fence),
}

/// The commits of a process.
#[derive(Debug, Default)]
pub(super) struct Lane {
    connection: u64,
    group: u64,
    /// The number of the batch that was handed over last.
    pub(super) last: u64,
    waiting: VecDeque<Job>,
    /// What is committed now.
    current: Option<Job>,
    /// Its answer is lost.
    in_doubt: bool,
}

impl Lane {
    pub(super) fn push(&mut self, job: impl FnOnce(u64) -> Job) {
        self.last += 1;
        self.waiting.push_back(job(self.last));
    }

    pub(super) fn push_after(&mut self, shard: QueueId, fence: Fence) {
        self.waiting.push_back(Job::After(shard, fence));
    }
}

/// The contents that a batch takes.
fn spools_of(process: &Process, batch: &Batch) -> BTreeMap<SpoolId, Bytes> {
    let spools = batch.iter().filter_map(|op| match op {
        Op::PutBody { source: BodySource::Spool(id), .. } => Some(*id),
        _ => None,
    });
    let octets = |id: SpoolId| process.spools.get(&id).map(|octets| octets.clone().into());
    spools.map(|id| (id, octets(id).unwrap_or_default())).collect()
}

impl Member {
    /// Commits what waits, unless something is committed.
    pub(super) fn go_on(&mut self, now: Now, rng: &mut Rng) {
        loop {
            let Some(process) = &mut self.process else { return };
            if process.lane.current.is_some() {
                return;
            }
            match process.lane.waiting.pop_front() {
                None => return,
                Some(Job::After(shard, fence)) => {
                    let ended = ownership::Input::BatchesEnded(shard, fence);
                    process.machine.handle(now.mono, ended);
                    self.pump(now, rng);
                }
                Some(job) => self.send(job, rng),
            }
        }
    }

    fn send(&mut self, job: Job, rng: &mut Rng) {
        let Some(process) = &mut self.process else { return };
        let lane = &mut process.lane;
        lane.group += 1;
        lane.in_doubt = false;
        let (group, connection) = (lane.group, lane.connection);
        lane.current = Some(job.clone());
        let (number, batch) = match job {
            Job::Commit { number, batch, .. } => (number, batch),
            Job::Forget { number, before, most, .. } => {
                (number, vec![Op::ForgetSeen { before, most }])
            }
            Job::After(..) => return,
        };
        let spools = spools_of(process, &batch);
        let (run, node) = (process.run, process.node);
        let asked = Asked { run, connection, group, node, number, batch, spools };
        let outcome = self.outcome(rng);
        if outcome.reaches {
            let event = Event::Commit { asked: Box::new(asked), answers: outcome.answers };
            self.later(outcome.delay, event);
        }
        if !outcome.answers {
            let end = match outcome.reaches || rng.below(2) == 0 {
                true => None,
                false => Some(End::NotDone),
            };
            let notices = Duration::from_millis(300 + rng.below(2_500));
            self.later(notices, Event::Committed { group, end });
        }
    }

    /// The answer to a commit came, or is lost.
    pub(super) fn committed(&mut self, now: Now, group: u64, end: Option<End>, rng: &mut Rng) {
        let Some(process) = &mut self.process else { return };
        if process.lane.group != group || process.lane.current.is_none() {
            return;
        }
        match end {
            Some(End::Superseded) | None => {
                if !std::mem::replace(&mut process.lane.in_doubt, true) {
                    self.doubted += 1;
                    self.ask_for_end(rng);
                }
            }
            Some(_) if process.lane.in_doubt => {}
            Some(end) => self.ended(now, end, rng),
        }
    }

    /// Another connection is made, which finds the end.
    fn ask_for_end(&mut self, rng: &mut Rng) {
        let outcome = self.outcome(rng);
        if outcome.reaches {
            self.later(outcome.delay, Event::TakeOver { answers: outcome.answers });
        }
        if !outcome.answers {
            self.later(Duration::from_secs(1), Event::TakenOver(None));
        }
    }

    pub(super) fn taken_over(&mut self, now: Now, found: Option<(u64, u64)>, rng: &mut Rng) {
        let Some(process) = self.process.as_mut().filter(|process| process.lane.in_doubt) else {
            return;
        };
        let Some((connection, last)) = found else { return self.ask_for_end(rng) };
        process.lane.connection = process.lane.connection.max(connection);
        let end = if last >= process.lane.group { End::Durable } else { End::NotDone };
        self.ended(now, end, rng);
    }

    /// The end of what was committed is known.
    fn ended(&mut self, now: Now, end: End, rng: &mut Rng) {
        let Some(process) = &mut self.process else { return };
        process.lane.in_doubt = false;
        if let Some(Job::Commit { batch, .. }) = &process.lane.current {
            let changes = ownership::changes_of(batch);
            if !changes.is_empty() {
                self.notes.push((self.real, format!("{end:?}: {changes:?}")));
            }
        }
        self.fenced += usize::from(matches!(end, End::Fenced | End::NoLease));
        match process.lane.current.take() {
            Some(Job::Commit { token, batch, .. }) => {
                if end == End::Durable {
                    for id in spools_of(process, &batch).keys() {
                        process.spools.remove(id);
                    }
                    let gone = batch.iter().filter_map(|op| match op {
                        Op::DeleteEntry { id, .. } => Some(*id),
                        _ => None,
                    });
                    process.deleted.extend(gone);
                }
                let committed = ownership::Input::Committed(token, batch_end(end));
                process.machine.handle(now.mono, committed);
                self.pump(now, rng);
                if end == End::Changed {
                    self.give_values();
                }
                self.give(Input::Committed { token, result: result(end) });
            }
            Some(Job::Forget { token, .. }) => {
                let result = match end {
                    End::Durable => Ok(false),
                    _ => Err(EdgeError("the database is away".to_owned())),
                };
                self.give(Input::Forgot { token, result });
            }
            Some(Job::After(..)) | None => {}
        }
        self.go_on(now, rng);
    }
}

fn batch_end(end: End) -> BatchEnd {
    match end {
        End::Durable => BatchEnd::Durable,
        End::Fenced => BatchEnd::Fenced,
        End::NoLease => BatchEnd::NoLease,
        End::Conflict | End::Changed | End::NotDone | End::Superseded => BatchEnd::NotDone,
    }
}

fn result(end: End) -> Result<(), CommitError> {
    match end {
        End::Durable => Ok(()),
        End::Conflict => Err(CommitError::Conflict),
        End::Changed => Err(CommitError::Changed),
        End::Fenced => Err(CommitError::Fenced),
        End::NotDone | End::NoLease | End::Superseded => {
            Err(CommitError::NotDone(EdgeError("the database is away".to_owned())))
        }
    }
}
