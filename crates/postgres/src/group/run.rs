//! A group of batches from the call to its answers.

use crate::connection::client::lock;
use crate::connection::failure::Failure;
use crate::group::plan::{Plan, absent_keys};
use crate::group::staged::{Change, Source, Stage, Staged};
use crate::group::{Call, Content, Ended, Lane, Standing};
use crate::numbers::{Place, number, precedence};
use base::{BodyId, EntryId};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, QueueId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use store::recent::{Key, Recent};
use store::{BatchId, Committed, StoreError};

pub(crate) const COMMITTING: &str = "committing";

/// Ends that are remembered for [`Committing::outcome`].
const REMEMBERED: usize = 4096;

/// What commits.
#[derive(Debug)]
pub(crate) struct Committing {
    pub(crate) stage: Stage,
    lane: Mutex<Lane>,
    state: Mutex<State>,
    /// The rights of this node.
    pub(crate) standing: Mutex<Standing>,
    /// The latest commits of a process that is alone. In a site another node may have changed what one wrote.
    recent: Option<Mutex<Recent>>,
}

#[derive(Debug, Default)]
struct State {
    pending: Option<Pending>,
    /// Whether those whose end was not known are made.
    ended: BTreeMap<BatchId, bool>,
    closed: bool,
}

/// A commit whose end is not known.
#[derive(Debug)]
struct Pending {
    /// Its number.
    group: i64,
    batches: Vec<Staged>,
    /// The contents that it binds.
    bound: BTreeSet<i64>,
}

/// The answers of a group, by the places of its batches.
type Answers = BTreeMap<usize, Committed>;
/// Staged batches with their places.
type Run = Vec<(usize, Staged)>;

impl Committing {
    pub(crate) fn new(stage: Stage, lane: Lane, standing: Standing) -> Committing {
        Committing {
            stage,
            lane: Mutex::new(lane),
            state: Mutex::default(),
            recent: standing.node.is_none().then(Mutex::default),
            standing: Mutex::new(standing),
        }
    }

    /// What a key has, if that was committed lately.
    pub(crate) fn recent(&self, key: Key) -> Option<Bytes> {
        lock(self.recent.as_ref()?).get(key).cloned()
    }

    fn remember(&self, plan: &Plan) {
        let Some(recent) = &self.recent else { return };
        let mut recent = lock(recent);
        for ((rank, id), change) in &plan.entries {
            let Some(precedence) = precedence(*rank) else { continue };
            let key = Key::Entry((precedence, EntryId(number(*id))));
            match &change.entry {
                Some(row) => recent.insert(key, row.record.clone()),
                None => recent.forget(key),
            }
        }
        for (id, source) in &plan.bodies {
            let key = Key::Body(BodyId(number(*id)));
            match source {
                Some(Source::Content(Content::Inline { octets, .. })) => {
                    recent.insert(key, octets.clone());
                }
                _ => recent.forget(key),
            }
        }
    }

    pub(crate) fn lane(&self) -> MutexGuard<'_, Lane> {
        lock(&self.lane)
    }

    /// Whether commits have failed for another process has the store. A commit in progress is not waited for.
    pub(crate) fn is_locked_out(&self) -> bool {
        self.lane.try_lock().is_ok_and(|mut lane| lane.is_locked_out())
    }

    pub(crate) fn close(&self) {
        lock(&self.state).closed = true;
        self.lane().close();
    }

    fn error(&self, failure: Failure) -> StoreError {
        if lock(&self.state).closed {
            return StoreError::Closed;
        }
        failure.into_error(self.stage.pool.target(), COMMITTING)
    }

    pub(crate) fn commit(&self, group: Vec<(BatchId, Batch)>) -> Vec<Committed> {
        let (count, mut lane) = (group.len(), self.lane());
        let (mut answers, mut run) = (Answers::new(), Run::new());
        let mut changed = BTreeSet::new();
        for (place, (id, batch)) in group.into_iter().enumerate() {
            // What is forgotten depends on all before; a framed content is read before the commit.
            let is_alone = batch.iter().any(|op| matches!(op, Op::ForgetSeen { .. }));
            if is_alone || frames_any(&batch, &changed) {
                self.flush(&mut lane, std::mem::take(&mut run), &mut answers);
                changed.clear();
            }
            changed.extend(batch.iter().filter_map(changed_body));
            match self.stage.stage(id, batch) {
                Ok(staged) => run.push((place, staged)),
                Err(error) => {
                    answers.insert(place, Committed::NotDone(error));
                }
            }
            if is_alone {
                self.flush(&mut lane, std::mem::take(&mut run), &mut answers);
            }
        }
        self.flush(&mut lane, run, &mut answers);
        let answer =
            |place| answers.remove(&place).unwrap_or(Committed::NotDone(StoreError::Undone));
        (0..count).map(answer).collect()
    }

    /// Commits some batches; each has its answer then.
    fn flush(&self, lane: &mut Lane, run: Run, answers: &mut Answers) {
        let mut run = run;
        while !run.is_empty() {
            let is_of_site = self.stage.site.is_some();
            let (mut plan, mut refused) = (Plan { is_of_site, ..Plan::default() }, Answers::new());
            for (place, staged) in &run {
                if let Err(answer) = plan.add(*place, staged) {
                    refused.insert(*place, answer);
                }
            }
            self.complete(&run, &mut refused);
            let call = Arc::new(Call::from_plan(&plan, *lock(&self.standing)));
            let ended = lane.commit(&call);
            self.apply_decision(lane);
            let failure = match ended {
                Ended::Made => return self.end_durable(run, refused, &plan, answers),
                Ended::Unknown(failure, group) => {
                    let bound = plan.bound().into_keys().collect();
                    let left = self.without(run, refused, answers);
                    return self.end_unknown(left, (group, bound), failure, answers);
                }
                Ended::NotMade(failure) => failure,
            };
            let blamed = blame(&failure, &plan, &run);
            if blamed.is_empty() && run.len() > 1 && names_no_batch(&failure) {
                return run.into_iter().for_each(|one| self.flush(lane, vec![one], answers));
            }
            if blamed.is_empty() {
                let error = self.error(failure);
                return self.end_not_done(run, &error, answers);
            }
            run = self.without(run, blamed, answers);
        }
    }

    /// Answers those that are refused, and gives the others.
    fn without(&self, run: Run, mut refused: Answers, answers: &mut Answers) -> Run {
        let mut left = Run::new();
        for (place, staged) in run {
            match refused.remove(&place) {
                Some(answer) => {
                    self.stage.undo(staged);
                    answers.insert(place, answer);
                }
                None => left.push((place, staged)),
            }
        }
        left
    }

    fn end_durable(&self, run: Run, refused: Answers, plan: &Plan, answers: &mut Answers) {
        self.remember(plan);
        let bound = plan.bound();
        for (place, staged) in self.without(run, refused, answers) {
            self.stage.settle(staged, |id| bound.contains_key(&id));
            answers.insert(place, Committed::Durable);
        }
    }

    fn end_unknown(
        &self,
        run: Run,
        (group, bound): (i64, BTreeSet<i64>),
        failure: Failure,
        answers: &mut Answers,
    ) {
        // What it changes is in the database or not, and nothing else is committed before that is known.
        if let Some(recent) = &self.recent {
            lock(recent).clear();
        }
        let error = self.error(failure);
        let mut batches = Vec::new();
        for (place, staged) in run {
            batches.push(staged);
            answers.insert(place, Committed::Unknown(error.clone()));
        }
        lock(&self.state).pending = Some(Pending { group, batches, bound });
    }

    fn end_not_done(&self, run: Run, error: &StoreError, answers: &mut Answers) {
        for (place, staged) in run {
            self.stage.undo(staged);
            answers.insert(place, Committed::NotDone(error.clone()));
        }
    }

    /// A batch that meets keys of one before it is not sent; those that were there before count too.
    fn complete(&self, run: &Run, refused: &mut Answers) {
        for (place, answer) in refused {
            let Committed::Conflict(found) = answer else { continue };
            let Some((_, staged)) = run.iter().find(|(at, _)| at == place) else { continue };
            let keys: Vec<Digest> = absent_keys(staged).collect();
            let asked: Arc<Vec<Vec<u8>>> =
                Arc::new(keys.iter().map(|key| key.0.to_vec()).collect());
            let rows =
                self.stage.pool.call(COMMITTING, move |client| {
                    let asked = Arc::clone(&asked);
                    async move {
                        client.rows("SELECT key FROM seen WHERE key = ANY ($1)", &[&*asked]).await
                    }
                });
            let Ok(rows) = rows else { continue };
            let there: BTreeSet<Vec<u8>> = rows.iter().map(|row| row.get(0)).collect();
            let all = keys.into_iter();
            *found = all.filter(|key| found.contains(key) || there.contains(&key.0[..])).collect();
        }
    }

    /// The end of a commit that was in doubt is known: its batches have it.
    fn apply_decision(&self, lane: &mut Lane) {
        let mut state = lock(&self.state);
        let group = state.pending.as_ref().map(|pending| pending.group);
        let Some(made) = group.and_then(|group| lane.decided(group)) else { return };
        let Some(Pending { batches, bound, .. }) = state.pending.take() else { return };
        drop(state);
        for staged in batches {
            let mut state = lock(&self.state);
            state.ended.insert(staged.batch, made);
            while state.ended.len() > REMEMBERED {
                state.ended.pop_first();
            }
            drop(state);
            match made {
                true => self.stage.settle(staged, |id| bound.contains(&id)),
                false => self.stage.undo(staged),
            }
        }
    }

    /// The end of a batch that was not known.
    pub(crate) fn outcome(&self, batch: BatchId) -> Committed {
        let mut lane = self.lane();
        let looked = lane.look();
        self.apply_decision(&mut lane);
        let state = lock(&self.state);
        let has = |pending: &Pending| pending.batches.iter().any(|staged| staged.batch == batch);
        let is_pending = state.pending.as_ref().is_some_and(has);
        match (state.ended.get(&batch), is_pending) {
            (Some(true), _) => Committed::Durable,
            (Some(false), _) | (None, false) => Committed::NotDone(StoreError::Undone),
            (None, true) => {
                drop(state);
                let lost = || Failure::Lost("its end is not known".to_owned());
                Committed::Unknown(self.error(looked.err().unwrap_or_else(lost)))
            }
        }
    }
}

fn changed_body(op: &Op) -> Option<BodyId> {
    match op {
        Op::PutBody { id, .. } | Op::DeleteBody { id } => Some(*id),
        _ => None,
    }
}

fn frames_any(batch: &Batch, changed: &BTreeSet<BodyId>) -> bool {
    batch.iter().any(|op| match op {
        Op::PutBody { source: BodySource::Framed { body, .. }, .. } => changed.contains(body),
        _ => false,
    })
}

/// Whether the failure may be that of one batch, and does not name it.
fn names_no_batch(failure: &Failure) -> bool {
    match failure {
        Failure::Refused { code, .. } => code != "MT004" && code != "MT006",
        Failure::Lost(_) | Failure::Denied(_) | Failure::Untrusted(_) | Failure::Ours(_) => false,
    }
}

/// The batches that a refusal is about, with their answers.
fn blame(failure: &Failure, plan: &Plan, run: &Run) -> Answers {
    let Failure::Refused { code, detail, .. } = failure else { return Answers::new() };
    let planned = || run.iter().filter(|(place, _)| plan.batches.contains(place));
    match code.as_str() {
        "MT001" => {
            let keys: BTreeSet<Digest> = detail.split(',').filter_map(key_of_hex).collect();
            let conflict = |(place, staged): &(usize, Staged)| {
                let met: Vec<_> = absent_keys(staged).filter(|key| keys.contains(key)).collect();
                (!met.is_empty()).then_some((*place, Committed::Conflict(met)))
            };
            planned().filter_map(conflict).collect()
        }
        "MT002" => {
            let missing: BTreeSet<i64> =
                detail.split(',').filter_map(|id| id.parse().ok()).collect();
            let lacking = |(place, staged): &(usize, Staged)| {
                let id = copied(staged).find(|id| missing.contains(id))?;
                let error = StoreError::BodyDamaged { id: BodyId(number(id)) };
                Some((*place, Committed::NotDone(error)))
            };
            // A later one may copy what one between them makes.
            planned().find_map(lacking).into_iter().collect()
        }
        "MT005" => {
            let fenced: BTreeMap<Place, Option<i64>> =
                detail.split(',').filter_map(fenced).collect();
            let meets = |(place, staged): &(usize, Staged)| {
                let met: BTreeSet<Option<i64>> =
                    places(staged).filter_map(|place| fenced.get(&place)).copied().collect();
                let queues = met.iter().flatten().map(|queue| QueueId(number(*queue))).collect();
                (!met.is_empty()).then_some((*place, Committed::Fenced(queues)))
            };
            // A later batch may be of a newer ownership.
            planned().find_map(meets).into_iter().collect()
        }
        "MT008" => {
            let changed: BTreeSet<&str> = detail.split(',').collect();
            let knows = |(place, staged): &(usize, Staged)| {
                let names = replaced(staged).filter(|name| changed.contains(name));
                let names: Vec<String> = names.map(str::to_owned).collect();
                (!names.is_empty()).then_some((*place, Committed::Changed(names)))
            };
            planned().filter_map(knows).collect()
        }
        _ => Answers::new(),
    }
}

fn replaced(staged: &Staged) -> impl Iterator<Item = &str> + '_ {
    staged.changes.iter().filter_map(|change| match change {
        Change::Meta { name, over: Some(_), .. } => Some(name.as_str()),
        _ => None,
    })
}

fn copied(staged: &Staged) -> impl Iterator<Item = i64> + '_ {
    staged.changes.iter().filter_map(|change| match change {
        Change::Body { source: Source::Copy(from), .. } => Some(*from),
        _ => None,
    })
}

fn places(staged: &Staged) -> impl Iterator<Item = Place> + '_ {
    staged.changes.iter().filter_map(|change| match change {
        Change::Entry { place, .. } | Change::NoEntry { place } => Some(*place),
        _ => None,
    })
}

/// `rank:id:queue`, without a queue if the entry is gone.
fn fenced(text: &str) -> Option<(Place, Option<i64>)> {
    let mut fields = text.split(':');
    let rank = fields.next()?.parse().ok()?;
    let id = fields.next()?.parse().ok()?;
    Some(((rank, id), fields.next()?.parse().ok()))
}

fn key_of_hex(text: &str) -> Option<Digest> {
    let mut key = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (at, octet) in key.iter_mut().enumerate() {
        *octet = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(Digest(key))
}
