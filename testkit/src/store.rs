//! A store whose disk is slow, full, stuck, or dies with its machine. Its contents are those of the
//! simulation's store: what is committed is durable, spools and waiting commits are not.

use base::rng::Rng;
use base::{BodyId, EntryId, Instant, Now, Precedence};
use bytes::Bytes;
use engine::journal::{Batch, FIRST_ITEM, ItemId, Op};
use node::{Input, Output, ReadError, Token};
use sim::Store;
use std::collections::{BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// The delays of a disk.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    /// For a sync, a commit and a look-up.
    pub commit: Duration,
    /// At most so much more, for one in four of them.
    pub slow: Duration,
    /// For a piece of a content.
    pub read: Duration,
}

impl Default for Delays {
    fn default() -> Delays {
        Delays {
            commit: Duration::from_millis(2),
            slow: Duration::ZERO,
            read: Duration::from_micros(50),
        }
    }
}

impl Delays {
    pub(crate) fn commit(&self, rng: &mut Rng) -> Duration {
        let more = rng.below(self.slow.as_micros() as u64 + 1);
        // Mostly quick, now and then slow.
        let more = if rng.below(4) == 0 { more } else { 0 };
        self.commit + Duration::from_micros(more)
    }
}

/// What follows a request to the store.
#[derive(Debug)]
pub enum Reply {
    /// The node is not answered.
    None,
    /// It is answered after so long.
    After(Duration, Input),
    /// [`FaultyStore::commit`] is due after so long.
    Commit(Duration),
}

/// A store and its faults.
#[derive(Debug, Default)]
pub struct FaultyStore {
    store: Store,
    /// Commits fail: nothing of them is made, and their spools stay.
    pub full: bool,
    /// The longest queue record, octets.
    pub record_max: Option<usize>,
    /// Commits are not made for now.
    pub stuck: bool,
    /// Commits wait for [`FaultyStore::take_commit`].
    pub withholds: bool,
    /// Records and contents are not read: the node gets no answer.
    pub unread: bool,
    /// The disk changed these records and contents.
    pub damaged: (BTreeSet<EntryId>, BTreeSet<BodyId>),
    /// It changed all contents.
    pub all_damaged: bool,
    /// Contents are octets of 1, whatever was stored.
    pub ones: bool,
    /// So many pieces of contents are read, then the disk hangs.
    pub pieces: Option<usize>,
    /// A piece that was asked for since it hangs.
    held: Option<Input>,
    /// Commits asked for and not made yet, in order.
    waiting: VecDeque<(Token, Batch)>,
    /// The precedences of the look-ups and commits asked for.
    pub requested: Vec<Precedence>,
    /// When keys were to be forgotten, and how many at most.
    pub forgets: Vec<(Instant, usize)>,
    /// Records read.
    pub loads: u64,
    /// Octets of content read.
    pub octets_read: u64,
    /// Octets of the longest spool so far.
    pub longest_spool: u64,
}

impl Deref for FaultyStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for FaultyStore {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl FaultyStore {
    /// Does what a node asks of its store.
    ///
    /// # Errors
    /// The output is not for the store.
    pub fn handle(
        &mut self,
        now: Now,
        delays: &Delays,
        rng: &mut Rng,
        output: Output,
    ) -> Result<Reply, Output> {
        let quick = Duration::from_micros(50);
        Ok(match output {
            Output::SpoolOpen { spool } => {
                self.store.open(spool).expect("a new spool");
                Reply::None
            }
            Output::SpoolAppend { spool, bytes, .. } => {
                self.store.append(spool, &bytes).expect("a spool that is open");
                let stored = self.store.spooled(spool).expect("a spool that is open");
                self.longest_spool = self.longest_spool.max(stored);
                Reply::None
            }
            Output::SpoolNote { spool, note, .. } => {
                self.store.note(spool, note).expect("a spool that is open");
                Reply::None
            }
            Output::SpoolSync { spool, token, .. } => {
                let result = Ok(self.store.sync(spool).expect("a spool that is open"));
                Reply::After(delays.commit(rng), Input::Synced { spool, token, result })
            }
            Output::SpoolDiscard { spool } => {
                self.store.discard(spool).expect("a spool that is open");
                Reply::None
            }
            Output::Commit { token, precedence, batch } => {
                self.waiting.push_back((token, batch));
                self.requested.push(precedence);
                if self.withholds {
                    return Ok(Reply::None);
                }
                Reply::Commit(delays.commit(rng))
            }
            Output::Load { .. } | Output::ReadContent { .. } if self.unread => Reply::None,
            Output::Load { token, precedence, id } => {
                self.loads += 1;
                let result = match self.damaged.0.contains(&id) {
                    true => Err(ReadError::Damaged("a damaged record".to_owned())),
                    false => Ok(self.store.entries.get(&(precedence, id)).cloned()),
                };
                Reply::After(quick, Input::Loaded { token, result })
            }
            Output::LookUp { token, precedence, keys } => {
                self.requested.push(precedence);
                // As stale as can be: it is read now and answered later.
                let result = Ok(self.store.look_up(&keys, now.utc));
                Reply::After(delays.commit(rng), Input::LookedUp { token, result })
            }
            Output::ForgetSeen { token, before, most } => {
                self.forgets.push((now.mono, most));
                let forget = vec![Op::ForgetSeen { before, most }];
                self.store.apply(forget).expect("nothing but keys forgotten");
                let result = Ok(self.store.has_expired_keys(before));
                Reply::After(delays.commit(rng), Input::Forgot { token, result })
            }
            Output::ReadFront { .. } | Output::ReadMailbox { .. } if self.unread => Reply::None,
            Output::ReadMailbox { token, read, .. } => {
                let found = node::mailbox::machine::answer(&self.store, &read);
                Reply::After(quick, Input::MailboxRead { token, found })
            }
            Output::ReadContent { token, body, offset, len, .. }
            | Output::ReadFront { token, body, offset, len, .. } => {
                self.octets_read += len as u64;
                let result = match self.ones {
                    _ if self.all_damaged || self.damaged.1.contains(&body) => {
                        Err(ReadError::Damaged("a damaged content".to_owned()))
                    }
                    true => Ok(Bytes::from(vec![1; len])),
                    // An item may be deleted while it is fetched.
                    false if body.0 >= FIRST_ITEM && !self.store.bodies.contains_key(&body) => {
                        Err(ReadError::Damaged("no such content".to_owned()))
                    }
                    false => Ok(self.store.read(body, offset, len).expect("a content")),
                };
                let input = Input::Content { token, result };
                match self.pieces.map(|left| left.checked_sub(1)) {
                    Some(None) => {
                        self.held = Some(input);
                        Reply::None
                    }
                    left => {
                        self.pieces = left.flatten();
                        Reply::After(delays.read, input)
                    }
                }
            }
            other => return Err(other),
        })
    }

    /// The disk reads so many pieces more; gives the one that was asked for meanwhile.
    pub fn read_on(&mut self, pieces: usize) -> Option<Input> {
        self.pieces = Some(pieces);
        self.held.take()
    }

    /// The number of commits that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Makes one of the commits asked for, in any order: durable first, answered at once. `None`
    /// where none waits.
    pub fn commit(&mut self, rng: &mut Rng) -> Option<Input> {
        // A commit that waits for the sync of a file lets others pass.
        let next = rng.below((self.waiting.len() as u64).max(1)) as usize;
        let (token, batch) = self.waiting.remove(next)?;
        let result = match self.full {
            true => Err("no space left on device".to_owned()),
            false => Ok(()),
        };
        Some(self.answer_commit((token, batch), result))
    }

    /// The commit asked for last.
    pub fn take_commit(&mut self) -> Option<(Token, Batch)> {
        self.waiting.pop_back()
    }

    /// Makes a commit, unless it is to fail, and gives the answer.
    pub fn answer_commit(
        &mut self,
        (token, batch): (Token, Batch),
        result: Result<(), String>,
    ) -> Input {
        for op in &batch {
            if let Op::PutEntry { record, id, .. } = op
                && ItemId::of_entry(*id).is_none()
            {
                assert!(engine::Record::decode(record).is_ok(), "a record that cannot be read");
            }
        }
        let is_long = |op: &Op| {
            let most = self.record_max.unwrap_or(usize::MAX);
            matches!(op, Op::PutEntry { record, .. } if record.len() > most)
        };
        let mut result = result.map_err(|why| node::EdgeError(why).into());
        if let Some(most) = self.record_max.filter(|_| batch.iter().any(is_long)) {
            result = Err(node::CommitError::TooLong(most));
        }
        if result.is_ok() {
            self.store.apply(each_key_once(batch)).expect("a sound batch");
        }
        Input::Committed { token, result }
    }

    /// The machine loses its power. Of the commits that wait, `made` are durable, and nobody is
    /// answered.
    pub fn crash(&mut self, made: usize, rng: &mut Rng) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for _ in 0..made.min(waiting.len()) {
            // Those that were made are not the first: higher ones pass.
            let next = rng.below(waiting.len() as u64) as usize;
            let Some((_, batch)) = waiting.remove(next) else { break };
            if self.full {
                break;
            }
            self.store.apply(batch).expect("a sound batch");
        }
        self.store.crash();
        self.held = None;
    }

    /// What a node that starts finds in the store, in the order in which it is handed in.
    pub fn recovered(&self) -> Vec<Input> {
        let meta = |name: &str| self.store.meta.get(name).cloned();
        let holds = meta(node::operator::HELD).map(Input::RecoveredHolds);
        let disabled = meta(node::channel_order::DISABLED).map(Input::RecoveredDisabled);
        let minimize = meta(node::site_orders::MINIMIZED).map(Input::RecoveredMinimize);
        let clock = meta(node::wall::CLOCK).map(Input::RecoveredClock);
        let sends = meta(node::SENDING).map(Input::RecoveredSends);
        let lists = meta(node::lists::LISTS).map(Input::RecoveredLists);
        let mailboxes = meta(node::mailbox::machine::NAMES).map(Input::RecoveredMailboxes);
        let of_users = self.store.meta.iter().filter_map(|(name, value)| {
            let mailbox = name.strip_prefix(engine::registered::REGISTERED)?.to_owned();
            Some(Input::RecoveredRegistration { mailbox, value: value.clone() })
        });
        let kept = self
            .store
            .kept()
            .into_iter()
            .map(|(spool, length, notes)| Input::RecoveredReception { spool, length, notes });
        let mut inputs: Vec<Input> =
            holds.into_iter().chain(disabled).chain(minimize).chain(clock).chain(sends).collect();
        inputs.extend(lists.into_iter().chain(mailboxes).chain(of_users).chain(kept));
        let queued = self.store.entries.iter().filter(|((_, id), _)| id.0 < FIRST_ITEM);
        inputs.extend(queued.map(|(&(precedence, id), record)| Input::Recovered {
            precedence,
            id,
            record: record.clone(),
        }));
        let bodies = self.store.bodies.keys().copied().filter(|id| id.0 < FIRST_ITEM);
        inputs.push(Input::RecoveredBodies(bodies.collect()));
        inputs.push(Input::Started);
        inputs
    }
}

/// The batch with the last of the records of each key: two recipients of one number have one key,
/// which a store writes as often as it is given. The store in memory takes a second one for a message
/// that was accepted twice.
fn each_key_once(batch: Batch) -> Batch {
    let mut keys = BTreeSet::new();
    let mut kept: Batch = batch
        .into_iter()
        .rev()
        .filter(|op| match op {
            Op::PutSeen { key, .. } => keys.insert(*key),
            _ => true,
        })
        .collect();
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Utc;

    fn put(name: &str, token: u64) -> Output {
        let op = Op::PutMeta { name: name.to_owned(), value: Bytes::from_static(b"value") };
        Output::Commit { token: Token(token), precedence: Precedence::Flash, batch: vec![op] }
    }

    fn ask(store: &mut FaultyStore, rng: &mut Rng, output: Output) -> Reply {
        let now = Now { mono: Instant(1), utc: Utc(crate::NEW_YEAR) };
        store.handle(now, &Delays::default(), rng, output).unwrap()
    }

    #[test]
    fn what_is_not_committed_is_gone_after_a_crash() {
        let (mut store, mut rng) = (FaultyStore::default(), Rng::new(1));
        assert!(matches!(ask(&mut store, &mut rng, put("one", 1)), Reply::Commit(_)));
        assert!(matches!(store.commit(&mut rng), Some(Input::Committed { result: Ok(()), .. })));
        ask(&mut store, &mut rng, put("two", 2));
        store.crash(0, &mut rng);
        assert_eq!((store.meta.len(), store.waiting()), (1, 0));
        ask(&mut store, &mut rng, put("three", 3));
        store.crash(1, &mut rng);
        assert_eq!(store.meta.keys().collect::<Vec<_>>(), ["one", "three"], "made, not answered");
    }

    #[test]
    fn a_full_disk_fails_the_commit_and_makes_nothing() {
        let (mut store, mut rng) = (FaultyStore { full: true, ..<_>::default() }, Rng::new(1));
        ask(&mut store, &mut rng, put("one", 1));
        assert!(matches!(store.commit(&mut rng), Some(Input::Committed { result: Err(_), .. })));
        assert!(store.meta.is_empty() && store.commit(&mut rng).is_none());
    }

    #[test]
    fn a_slow_commit_takes_as_long_as_it_may() {
        let mut rng = Rng::new(1);
        let delays = Delays { slow: Duration::from_secs(40), ..Delays::default() };
        let all: Vec<Duration> = (0..1_000).map(|_| delays.commit(&mut rng)).collect();
        assert!(all.iter().all(|delay| *delay <= delays.commit + delays.slow));
        assert!(all.iter().filter(|delay| **delay == delays.commit).count() > 700);
        assert!(all.iter().any(|delay| *delay > Duration::from_secs(30)));
    }
}
