//! Which batches are committed next, and together.
//!
//! The highest precedence goes first, and within it what came first. Batches that change the same
//! thing keep the order in which they came: where a high one follows a low one, the low one goes as
//! early as the high one has to (its precedence is raised to that). Of [`base::precedence_queue::SHARE`] groups one
//! at least begins with the batch that has waited longest.

use base::precedence_queue::Share;
use base::{BodyId, EntryId, Precedence, Utc};
use engine::journal::{Batch, BodySource, Digest, Op, SpoolId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most batches in one group, and most octets beyond its first batch, of what is not urgent: what comes
/// meanwhile, of whatever precedence, waits until the group is durable.
const GROUP: Bounds = Bounds { batches: 64, octets: 256 << 10 };
/// The same of what is urgent.
const URGENT_GROUP: Bounds = Bounds { batches: 8, octets: 64 << 10 };

/// How much goes into one group.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    batches: usize,
    octets: usize,
}

impl Bounds {
    fn of(precedence: Precedence) -> Bounds {
        if precedence.is_urgent() { URGENT_GROUP } else { GROUP }
    }
}

/// What a batch changes or uses up.
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
                if let BodySource::Spool(spool) = source {
                    keys.push(Key::Spool(*spool));
                }
            }
            Op::DeleteBody { id } => keys.push(Key::Body(*id)),
            Op::PutSeen { key, .. } => keys.push(Key::Seen(*key)),
            Op::PutMeta { name, .. } => keys.push(Key::Meta(name.clone())),
            Op::ForgetSeen { .. } => {}
        }
    }
    keys
}

/// What a batch has to do with the time for which keys are remembered.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// The first time until which it has one remembered.
    until: Option<Utc>,
    /// The last time before which it has all forgotten.
    before: Option<Utc>,
}

impl Times {
    fn of(batch: &Batch) -> Times {
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

    /// Whether one has forgotten what the other has remembered.
    fn meet(self, other: Times) -> bool {
        let forgets = |until: Option<Utc>, before: Option<Utc>| {
            until.zip(before).is_some_and(|(until, before)| until < before)
        };
        forgets(self.until, other.before) || forgets(other.until, self.before)
    }
}

/// What of a batch decides which others it has to follow.
#[derive(Debug)]
pub(crate) struct Changes {
    keys: Vec<Key>,
    times: Times,
}

impl Changes {
    pub(crate) fn of(batch: &Batch) -> Changes {
        Changes { keys: keys(batch), times: Times::of(batch) }
    }
}

/// Where a batch stands: the highest first, then the oldest.
type Place = (Reverse<Precedence>, u64);

#[derive(Debug)]
struct Waiting<J> {
    job: J,
    octets: usize,
    keys: Vec<Key>,
    times: Times,
    /// Those it has to follow, as far as they waited when it came.
    after: Vec<u64>,
}

/// The batches that wait, each with a `J`.
#[derive(Debug)]
pub(crate) struct Order<J> {
    waiting: BTreeMap<Place, Waiting<J>>,
    /// The precedence at which each stands, by its number: the oldest first.
    levels: BTreeMap<u64, Precedence>,
    /// The last that waits and changes this.
    last: BTreeMap<Key, u64>,
    /// Those that forget what is remembered until a time.
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
    /// Puts a batch with these changes in its place. `octets` is what it writes, about.
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

    /// One that this precedence waits for goes as early, and so does what that one waits for.
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

    /// The precedence of what goes next, unless what has waited longest is.
    pub(crate) fn highest(&self) -> Option<Precedence> {
        self.waiting.first_key_value().map(|((level, _), _)| level.0)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes what is committed next, in its order; nothing where nothing waits.
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
        let bounds = Bounds::of(level);
        let mut octets = 0usize;
        while group.len() < bounds.batches
            && let Some((place, waiting)) =
                self.waiting.range((Reverse(level), 0)..=(Reverse(level), u64::MAX)).next()
        {
            octets = octets.saturating_add(waiting.octets);
            let fits = group.is_empty() || octets <= bounds.octets;
            // One that it has to follow may stand higher, where what has waited longest is taken.
            let is_next = waiting.after.iter().all(|number| !self.levels.contains_key(number));
            if !fits || !is_next {
                break;
            }
            let place = *place;
            group.extend(self.remove(place));
        }
        group
    }

    /// All that waits, in no order to rely on.
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
