//! The order of commits: which batches are committed next, and together.
//!
//! The highest precedence goes first, and within it the earliest batch. Batches that change the
//! same data keep their order: if a high one follows a low one, the low one's precedence is raised
//! to the high one's. At least one of [`base::precedence_queue::SHARE`] groups begins with the
//! batch that has waited longest.

use base::precedence_queue::Share;
use base::{BodyId, EntryId, Precedence, Utc};
use engine::journal::{Batch, BodySource, Digest, Op, SpoolId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Limits of a group that is not urgent: batches, and octets after the first batch. A batch that
/// arrives meanwhile, whatever its precedence, waits until the group is durable.
const GROUP: Bounds = Bounds { batches: 64, octets: 256 << 10 };
/// Limits of an urgent group.
const URGENT_GROUP: Bounds = Bounds { batches: 8, octets: 64 << 10 };

/// The size limits of a group.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    batches: usize,
    octets: usize,
}

impl Bounds {
    fn for_level(precedence: Precedence) -> Bounds {
        if precedence.is_urgent() { URGENT_GROUP } else { GROUP }
    }
}

/// A thing that a batch changes or consumes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Entry(Precedence, EntryId),
    Body(BodyId),
    Spool(SpoolId),
    Seen(Digest),
    Meta(String),
}

fn keys(batch: &Batch) -> Vec<Key> {
    let mut keys = Vec::with_capacity(batch.len());
    for op in batch {
        match op {
            Op::PutEntry { precedence, id, .. } | Op::DeleteEntry { precedence, id } => {
                keys.push(Key::Entry(*precedence, *id));
            }
            Op::PutBody { id, source } => {
                keys.push(Key::Body(*id));
                match source {
                    BodySource::Spool(spool) => keys.push(Key::Spool(*spool)),
                    BodySource::Body(of) | BodySource::Framed { body: of, .. } => {
                        keys.push(Key::Body(*of));
                    }
                    BodySource::Octets(_) => {}
                }
            }
            Op::DeleteBody { id } => keys.push(Key::Body(*id)),
            Op::PutSeen { key, .. } => keys.push(Key::Seen(*key)),
            Op::PutMeta { name, .. } | Op::ReplaceMeta { name, .. } => {
                keys.push(Key::Meta(name.clone()));
            }
            Op::ForgetSeen { .. } => {}
        }
    }
    keys
}

/// How a batch affects the remembered keys, by their time.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// The earliest expiry among the keys it remembers.
    until: Option<Utc>,
    /// The latest time before which it deletes keys.
    before: Option<Utc>,
}

impl Times {
    fn from_batch(batch: &Batch) -> Times {
        let mut times = Times::default();
        for op in batch {
            match op {
                Op::PutSeen { until, .. } => {
                    times.until = Some(times.until.map_or(*until, |first| first.min(*until)));
                }
                Op::ForgetSeen { before, .. } => times.before = times.before.max(Some(*before)),
                _ => {}
            }
        }
        times
    }

    /// Whether one deletes keys that the other remembers.
    fn meet(self, other: Times) -> bool {
        let forgets = |until: Option<Utc>, before: Option<Utc>| {
            until.zip(before).is_some_and(|(until, before)| until < before)
        };
        forgets(self.until, other.before) || forgets(other.until, self.before)
    }
}

/// The changes of a batch that determine which others it must follow.
#[derive(Debug)]
pub(crate) struct Changes {
    keys: Vec<Key>,
    times: Times,
}

impl Changes {
    pub(crate) fn from_batch(batch: &Batch) -> Changes {
        Changes { keys: keys(batch), times: Times::from_batch(batch) }
    }
}

/// A batch's place: highest precedence first, then oldest.
type Place = (Reverse<Precedence>, u64);

#[derive(Debug)]
struct Waiting<J> {
    job: J,
    octets: usize,
    keys: Vec<Key>,
    times: Times,
    /// The batches it must follow that were waiting when it arrived.
    after: Vec<u64>,
}

/// The waiting batches, each with a `J`.
#[derive(Debug)]
pub(crate) struct Order<J> {
    waiting: BTreeMap<Place, Waiting<J>>,
    /// The precedence of each batch, by its number: the oldest first.
    levels: BTreeMap<u64, Precedence>,
    /// The last waiting batch that changes each thing.
    last: BTreeMap<Key, u64>,
    /// Waiting batches that delete keys by time.
    forgetting: BTreeMap<u64, Times>,
    count: u64,
    share: Share,
}

impl<J> Default for Order<J> {
    fn default() -> Order<J> {
        Order {
            waiting: BTreeMap::new(),
            levels: BTreeMap::new(),
            last: BTreeMap::new(),
            forgetting: BTreeMap::new(),
            count: 0,
            share: Share::default(),
        }
    }
}

impl<J> Order<J> {
    /// Adds a batch with these changes. `octets` is the approximate amount it writes.
    pub(crate) fn push(&mut self, precedence: Precedence, changes: Changes, octets: usize, job: J) {
        self.count += 1;
        let number = self.count;
        let Changes { keys, times } = changes;
        let mut after: Vec<u64> = keys.iter().filter_map(|k| self.last.get(k).copied()).collect();
        if times.before.is_some() {
            let meeting = |waiting: &&Waiting<J>| waiting.times.meet(times);
            let numbers = self.waiting.iter().filter(|(_, waiting)| meeting(waiting));
            after.extend(numbers.map(|((_, number), _)| *number));
        } else if times.until.is_some() {
            let meeting = self.forgetting.iter().filter(|(_, other)| other.meet(times));
            after.extend(meeting.map(|(number, _)| *number));
        }
        for number in &after {
            self.raise(*number, precedence);
        }
        for key in &keys {
            self.last.insert(key.clone(), number);
        }
        if times.before.is_some() {
            self.forgetting.insert(number, times);
        }
        self.levels.insert(number, precedence);
        let waiting = Waiting { job, octets, keys, times, after };
        self.waiting.insert((Reverse(precedence), number), waiting);
    }

    /// Raises a batch that a higher one must follow, and all that it must follow itself.
    fn raise(&mut self, number: u64, precedence: Precedence) {
        let mut raising = vec![number];
        while let Some(number) = raising.pop() {
            let Some(level) = self.levels.get_mut(&number).filter(|level| **level < precedence)
            else {
                continue;
            };
            let old = std::mem::replace(level, precedence);
            if let Some(waiting) = self.waiting.remove(&(Reverse(old), number)) {
                raising.extend(&waiting.after);
                self.waiting.insert((Reverse(precedence), number), waiting);
            }
        }
    }

    /// The highest precedence waiting. The next group has it, unless it is the longest waiting
    /// batch's turn.
    pub(crate) fn highest(&self) -> Option<Precedence> {
        self.waiting.first_key_value().map(|((level, _), _)| level.0)
    }

    /// The number of waiting batches.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Removes the batches of the next group, in order; empty if none waits.
    pub(crate) fn take(&mut self) -> Vec<J> {
        let mut group = Vec::new();
        let Some(((_, highest), (number, level))) = self
            .waiting
            .first_key_value()
            .map(|(place, _)| *place)
            .zip(self.levels.first_key_value())
        else {
            return group;
        };
        let (oldest, its_level) = (*number, *level);
        let level = match self.highest() {
            Some(level) if highest == oldest || !self.share.is_due() => level,
            _ => its_level,
        };
        let bounds = Bounds::for_level(level);
        let mut octets = 0usize;
        while group.len() < bounds.batches
            && let Some((place, waiting)) =
                self.waiting.range((Reverse(level), 0)..=(Reverse(level), u64::MAX)).next()
        {
            octets = octets.saturating_add(waiting.octets);
            let fits = group.is_empty() || octets <= bounds.octets;
            // A batch that it must follow may be in a higher level, when the longest waiting one
            // is taken.
            let is_next = waiting.after.iter().all(|number| !self.levels.contains_key(number));
            if !fits || !is_next {
                break;
            }
            let place = *place;
            group.extend(self.remove(place));
        }
        group
    }

    /// All waiting batches, in no particular order.
    pub(crate) fn into_jobs(self) -> impl Iterator<Item = J> {
        self.waiting.into_values().map(|waiting| waiting.job)
    }

    fn remove(&mut self, place: Place) -> Option<J> {
        let (_, number) = place;
        let waiting = self.waiting.remove(&place)?;
        self.levels.remove(&number);
        self.forgetting.remove(&number);
        for key in waiting.keys {
            if self.last.get(&key) == Some(&number) {
                self.last.remove(&key);
            }
        }
        Some(waiting.job)
    }
}

#[cfg(test)]
mod tests;
