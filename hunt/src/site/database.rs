//! The model of the database that the nodes of a site share. Each call is made whole at one moment, as by serialisable
//! transactions, and checks what `commit_group` and `check_rights` check (`crates/postgres/migrations/`).

use super::Mutant;
use super::holds::Holds;
use base::{BodyId, EntryId, Instant};
use bytes::Bytes;
use engine::journal::{Batch, Entry, KnownValue, Op, QueueId, SpoolId};
use engine::{NextHop, Record};
use membership::rows::{Changes, Place, ShardPage};
use membership::{Acquired, Answer, Call, NodeEpoch, model};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use store::ModelState;

/// The lease of each node.
pub(super) const LEASE: Duration = Duration::from_secs(4);
/// Entries of a page.
const PAGE: usize = 4;
/// Named values of which each node has its own: nobody reads them here.
const OWN_VALUES: [&str; 2] = [node::SENDING, node::wall::CLOCK];

/// A commit that a node asks for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) run: u64,
    pub(super) connection: u64,
    pub(super) group: u64,
    pub(super) node: NodeEpoch,
    /// The number of the batch.
    pub(super) number: u64,
    pub(super) batch: Batch,
    pub(super) spools: BTreeMap<SpoolId, Bytes>,
}

/// The end of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Durable,
    Conflict,
    /// Another node has changed a value that it replaces.
    Changed,
    /// Another node drives what it changes, or has removed what it removes.
    Fenced,
    /// The node has no lease.
    NoLease,
    /// A body that it copies is not there, or the database could not be reached.
    NotDone,
    /// Another connection of the same run has taken over, or another run.
    Superseded,
}

/// A process that has the database open.
#[derive(Debug, Default)]
struct Run {
    name: String,
    connection: u64,
    /// The last group that was committed.
    last: u64,
    changes: Changes,
}

/// The database.
#[derive(Debug, Default)]
pub(super) struct Database {
    pub(super) stored: ModelState,
    pub(super) members: model::Database,
    /// Batches of the owner of a shard up to this number are of an earlier ownership.
    starts: BTreeMap<QueueId, u64>,
    /// The number of the commit that wrote each entry last.
    places: BTreeMap<EntryId, u64>,
    runs: BTreeMap<u64, Run>,
    last_run: u64,
    commits: u64,
    deleted: BTreeSet<EntryId>,
    pub(super) holds: Holds,
    mutant: Option<Mutant>,
    /// What must not happen, and happened.
    pub(super) broken: Vec<String>,
    /// No call is late or lost from then on.
    pub(super) calm_at: Instant,
    /// One call in so many is late.
    pub(super) late: u64,
}

impl Database {
    pub(super) fn new(mutant: Option<Mutant>, calm_at: Instant, late: u64) -> Database {
        let members = model::Database::with(match mutant {
            Some(Mutant::FenceNotChecked) => Some(model::Mutant::FenceNotChecked),
            Some(Mutant::RightsNotChecked) => Some(model::Mutant::LeaseNotChecked),
            _ => None,
        });
        Database { members, mutant, calm_at, late, ..Database::default() }
    }

    /// A process of a node of this name begins; earlier ones of it are over.
    pub(super) fn begin(&mut self, now: Instant, name: &str) -> (u64, NodeEpoch) {
        self.runs.retain(|_, run| run.name != name);
        self.last_run += 1;
        self.runs.insert(self.last_run, Run { name: name.to_owned(), ..Run::default() });
        let joined = self.call(now, self.last_run, None, &Call::Join, 0);
        let Answer::Joined(epoch) = joined else { unreachable!("everybody may join") };
        (self.last_run, epoch)
    }

    /// A call of the site by a run that is this node. `last` is the number of its last batch.
    pub(super) fn call(
        &mut self,
        now: Instant,
        run: u64,
        own: Option<NodeEpoch>,
        call: &Call,
        last: u64,
    ) -> Answer {
        let Some(name) = self.runs.get(&run).map(|run| run.name.clone()) else {
            return Answer::Failed;
        };
        let mut answer = self.members.call(now, (&name, LEASE), own, call);
        match (&mut answer, call) {
            (Answer::Looked { shards, .. }, _) => {
                for row in shards.iter_mut().filter(|row| row.name.is_empty()) {
                    row.name = self.name_of(row.shard);
                }
                for row in shards.iter_mut().filter(|row| !row.shard.is_of_mailbox()) {
                    let mut all = self.stored.entries.iter();
                    let first = all.find(|(_, (queue, _))| *queue == row.shard);
                    row.waits = first.map(|((Reverse(level), _), _)| *level);
                }
                shards.retain(|row| !row.shard.is_of_mailbox() || !row.name.is_empty());
            }
            (_, Call::Renew { .. }) => {}
            (Answer::Acquired(Acquired::Ours(_)), Call::Acquire { shard, .. }) => {
                self.starts.insert(*shard, last);
                self.others(run).for_each(|run| run.changes.members = true);
            }
            _ => self.others(run).for_each(|run| run.changes.members = true),
        }
        answer
    }

    /// The address of a mailbox that nobody has owned yet.
    fn name_of(&self, shard: QueueId) -> String {
        let mut of_it = self.stored.entries.values().filter(|(queue, _)| *queue == shard);
        let hop = of_it.next().and_then(|(_, record)| Record::peek(record).ok());
        match hop.map(|brief| brief.next_hop.into_owned()) {
            Some(NextHop::Mailbox(address)) => address,
            _ => String::new(),
        }
    }

    fn others(&mut self, run: u64) -> impl Iterator<Item = &mut Run> {
        self.runs.iter_mut().filter(move |(number, _)| **number != run).map(|(_, run)| run)
    }

    /// The others learn that the peer of a shard has called this node.
    pub(super) fn announce(&mut self, run: u64, shard: QueueId, node: NodeEpoch) {
        self.others(run).for_each(|run| run.changes.bound.push((shard, node)));
    }

    /// What others have changed since the last call.
    pub(super) fn take_changes(&mut self, run: u64) -> Changes {
        self.runs.get_mut(&run).map(|run| std::mem::take(&mut run.changes)).unwrap_or_default()
    }

    /// Another connection of a run commits from now on: gives its number, and the last group that was committed.
    pub(super) fn take_over(&mut self, run: u64) -> Option<(u64, u64)> {
        let run = self.runs.get_mut(&run)?;
        run.connection += 1;
        Some((run.connection, run.last))
    }

    /// Commits a batch, or does not.
    pub(super) fn commit(&mut self, now: Instant, asked: &Asked) -> End {
        let current = self.runs.get(&asked.run).map(|run| run.connection);
        if current != Some(asked.connection) {
            return End::Superseded;
        }
        if !self.members.holds_lease(now, asked.node) {
            return End::NoLease;
        }
        let Some(before) = self.bodies_before(asked) else { return End::Fenced };
        let is_found = !self.stored.conflict(&asked.batch).is_empty();
        if is_found && self.mutant != Some(Mutant::KeyNotChecked) {
            return End::Conflict;
        }
        if !asked.batch.iter().all(|op| self.knows(op)) {
            return End::Changed;
        }
        let mut copied = asked.batch.iter().filter_map(Op::copied);
        if copied.any(|body| !self.stored.bodies.contains_key(&body)) {
            return End::NotDone;
        }
        self.make(asked, before);
        End::Durable
    }

    fn owns(&self, node: NodeEpoch, shard: QueueId) -> bool {
        self.members.owner(shard).is_some_and(|(owner, _)| owner == node)
    }

    /// Whether a value is what its writer knows.
    fn knows(&self, op: &Op) -> bool {
        let Op::ReplaceMeta { name, over, .. } = op else { return true };
        let current = self.stored.meta.get(name).map_or(&b""[..], |value| value);
        let replacing = KnownValue::from_octets(current).replace(name, Bytes::new());
        let is_known =
            matches!(replacing, Op::ReplaceMeta { over: current, .. } if current == *over);
        is_known || self.mutant == Some(Mutant::HoldsOverwritten)
    }

    /// The bodies of the entries that are changed, as they are now; `None` if another node drives one of them.
    fn bodies_before(&self, asked: &Asked) -> Option<Vec<BodyId>> {
        let checks =
            !matches!(self.mutant, Some(Mutant::FenceNotChecked | Mutant::RightsNotChecked));
        let (mut bodies, mut changed) = (Vec::new(), BTreeSet::new());
        for op in &asked.batch {
            let (precedence, id, removes) = match op {
                Op::PutEntry { precedence, id, .. } => (*precedence, *id, false),
                Op::DeleteEntry { precedence, id } => (*precedence, *id, true),
                _ => continue,
            };
            let is_first = changed.insert(id);
            let Some((queue, record)) = self.stored.entries.get(&(Reverse(precedence), id)) else {
                // Another owner has removed it, and did what the batch does besides.
                if removes && is_first && checks {
                    return None;
                }
                continue;
            };
            let is_owner = self.owns(asked.node, *queue);
            let is_new = self.starts.get(queue).is_some_and(|start| *start < asked.number);
            let lacks = checks && !(is_owner && is_new);
            if lacks {
                return None;
            }
            bodies.extend(body_of(record));
        }
        Some(bodies)
    }

    fn make(&mut self, asked: &Asked, before: Vec<BodyId>) {
        self.commits += 1;
        let mut dropped = before;
        let (mut shards, mut values) = (Vec::new(), Vec::new());
        let mut batch = Batch::new();
        for op in &asked.batch {
            match op {
                Op::PutEntry { id, queue, .. } => {
                    if self.deleted.contains(id) {
                        self.broken.push(format!("entry {} is back after its deletion", id.0));
                    }
                    self.places.insert(*id, self.commits);
                    self.members.know(*queue);
                    shards.push(*queue);
                }
                Op::DeleteEntry { id, .. } => {
                    self.deleted.extend(self.places.remove(id).map(|_| *id));
                }
                Op::DeleteBody { id } => {
                    dropped.push(*id);
                    continue;
                }
                Op::PutMeta { name, .. } if OWN_VALUES.contains(&name.as_str()) => continue,
                Op::PutMeta { name, .. } | Op::ReplaceMeta { name, .. } => {
                    values.push(name.clone());
                }
                _ => {}
            }
            batch.push(op.clone());
        }
        self.stored.apply(&batch, |id| asked.spools.get(&id).cloned().unwrap_or_default());
        self.drop_bodies(dropped);
        if let Some(run) = self.runs.get_mut(&asked.run) {
            run.last = asked.group;
        }
        shards.retain(|shard| !self.owns(asked.node, *shard));
        for run in self.others(asked.run) {
            run.changes.shards.extend(shards.iter().copied());
            run.changes.values.extend(values.iter().cloned());
        }
    }

    /// Whoever removes the last entry of a body removes it.
    fn drop_bodies(&mut self, dropped: Vec<BodyId>) {
        let used: BTreeSet<BodyId> =
            self.stored.entries.values().filter_map(|(_, record)| body_of(record)).collect();
        for body in dropped.into_iter().filter(|body| !used.contains(body)) {
            self.stored.bodies.remove(&body);
        }
    }

    /// Entries of a shard after a place, and some before it.
    pub(super) fn page(&self, shard: QueueId, after: Place) -> ShardPage {
        let mut rows: Vec<(u64, Entry)> = Vec::new();
        for ((Reverse(precedence), id), (queue, record)) in &self.stored.entries {
            let place = self.places.get(id).copied().unwrap_or_default();
            if *queue == shard && (place, id.0) > (after.horizon, after.last) {
                let record = record.clone();
                rows.push((place, Entry { precedence: *precedence, id: *id, record }));
            }
        }
        rows.sort_by_key(|(place, entry)| (*place, entry.id));
        let more = rows.len() > PAGE;
        rows.truncate(PAGE);
        let end = rows.last().map(|(place, entry)| Place { horizon: *place, last: entry.id.0 });
        // As if the last transactions had not ended when the listing began.
        let begun = Place { horizon: self.commits.saturating_sub(2), last: 0 };
        let next = end.filter(|_| more).unwrap_or(begun);
        ShardPage { entries: rows.into_iter().map(|(_, entry)| entry).collect(), next, more }
    }

    /// A node that owns a shard reads the record of an entry that is deleted.
    pub(super) fn misses(&mut self, name: &str, id: EntryId) {
        if self.deleted.contains(&id) {
            self.broken.push(format!("{name} has entry {} again, which is deleted", id.0));
        }
    }

    /// A node begins to send an entry: it is there, not held, and this node owns its shard.
    pub(super) fn begins(&mut self, now: Instant, node: NodeEpoch, name: &str, id: EntryId) {
        if self.holds.keeps(now, id) {
            self.broken.push(format!("{name} sends entry {}, which an operator holds", id.0));
        }
        let mut all = self.stored.entries.iter();
        let Some((_, (queue, _))) = all.find(|((_, other), _)| *other == id) else {
            let what = match self.deleted.contains(&id) {
                true => "which is deleted",
                false => "which never was there",
            };
            self.broken.push(format!("{name} sends entry {}, {what}", id.0));
            return;
        };
        match self.members.owner(*queue) {
            Some((owner, _)) if owner == node => {}
            owner => self.broken.push(format!(
                "{name} ({node}) sends entry {} of a shard whose owner is {owner:?}",
                id.0
            )),
        }
    }
}

fn body_of(record: &Bytes) -> Option<BodyId> {
    Record::peek(record).ok().and_then(|brief| brief.body)
}
