//! All mailboxes as one machine, against a model: sessions, operations and deliveries whose reads and commits are
//! answered in any order, fail, or are lost with the process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test ends where it fails, in helpers too"
)]

use base::ber::{Element, Writer};
use base::{AssociationId, BodyId, EntryId, Instant, Now, Precedence};
use engine::journal::{Batch, BodySource, ItemId, Op};
use mailbox::forward::Forwarding;
use mailbox::machine::{Arrival, Found, NAMES, Output, Read, Response, Ticket, answer};
use mailbox::testing::{Copies, Copy, at};
use mailbox::{Access, Mailboxes, Rule, Rules, Totals};
use p1::p3::PerRecipientSubmissionFields;
use p7::auto_forward::{AutoForward, AutoForwardArguments};
use p7::operation::{
    self, DeleteArgument, DeleteResult, FetchArgument, ListArgument, RegisterMsArgument,
    SummarizeArgument,
};
use p7::{Selector, SequenceNumber};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use store::queue::commit_one;
use store::{BatchId, ModelStore, QueueStore};

/// In canonical form, as everywhere in the queue.
const USERS: [&str; 2] = ["/c=xx/admd=a/prmd=alpha/s=jones", "/c=xx/admd=a/prmd=alpha/s=smith"];

#[derive(Clone, Debug)]
enum Action {
    Bind(usize),
    Unbind(usize),
    List(usize),
    Summarize(usize),
    Fetch(usize, u32),
    Delete(usize, u32),
    Register(usize, bool),
    /// auto-forward of all, which deletes or not.
    Forward(usize, bool),
    Nonsense(usize, i64),
    Deliver(usize, u8),
    /// An operator has all items of a mailbox deleted, or counted.
    Purge(usize, bool),
    /// Answers one of the reads in progress.
    Found(usize, bool),
    /// Answers one of the commits in progress.
    Committed(usize, bool),
    /// All that is in progress is answered, and what follows of it.
    Settle,
    /// The process is killed: what it asked and was not answered is lost, or was just made.
    Restart(bool),
}

fn action() -> impl Strategy<Value = Action> {
    let one = || 0..8_usize;
    prop_oneof![
        3 => (0..2_usize).prop_map(Action::Bind),
        1 => one().prop_map(Action::Unbind),
        2 => one().prop_map(Action::List),
        1 => one().prop_map(Action::Summarize),
        2 => (one(), 1..12_u32).prop_map(|(s, n)| Action::Fetch(s, n)),
        2 => (one(), 1..12_u32).prop_map(|(s, n)| Action::Delete(s, n)),
        1 => (one(), any::<bool>()).prop_map(|(s, more)| Action::Register(s, more)),
        1 => (one(), any::<bool>()).prop_map(|(s, deletes)| Action::Forward(s, deletes)),
        1 => (one(), -1..30_i64).prop_map(|(s, code)| Action::Nonsense(s, code)),
        6 => (0..2_usize, 0..6_u8).prop_map(|(user, level)| Action::Deliver(user, level)),
        6 => (one(), prop::bool::weighted(0.85)).prop_map(|(n, ok)| Action::Found(n, ok)),
        6 => (one(), prop::bool::weighted(0.8)).prop_map(|(n, ok)| Action::Committed(n, ok)),
        1 => (0..2_usize, any::<bool>()).prop_map(|(user, trial)| Action::Purge(user, trial)),
        2 => Just(Action::Settle),
        1 => any::<bool>().prop_map(Action::Restart),
    ]
}

/// A session, as its user sees it.
struct User {
    mailbox: usize,
    is_bound: bool,
    invoked: i64,
    /// What he waits for: invoke identifiers, and the number that is to be deleted.
    waits: VecDeque<(i64, Option<u32>)>,
}

struct World {
    store: Arc<dyn QueueStore>,
    machine: Mailboxes,
    copies: Copies,
    /// Every copy that was ever queued, with its mailbox.
    queued: BTreeMap<EntryId, (usize, Copy)>,
    /// Those that the machine was given, and has not answered.
    given: BTreeSet<EntryId>,
    users: BTreeMap<AssociationId, User>,
    /// Orders of an operator that are not answered.
    purges: BTreeSet<u64>,
    reads: Vec<(Ticket, Read)>,
    commits: Vec<(Ticket, Batch)>,
    batches: u64,
    sessions: u64,
    seconds: u64,
    /// Every item that was ever durable, and those of them that are gone.
    durable: BTreeSet<ItemId>,
    gone: BTreeSet<ItemId>,
    /// Numbers that a user asked to delete.
    unwanted: BTreeSet<(usize, u32)>,
    /// Entries of which a forwarded message is durable.
    forwarded: BTreeSet<EntryId>,
    /// Those of them that were deleted with the same commit.
    passed: BTreeSet<EntryId>,
}

/// More than the items of a mailbox.
const MOST: u32 = 300;

/// The content of what is forwarded of an entry has its number and this.
const FORWARDED: u64 = 1 << 40;

fn encoded(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec()
}

impl World {
    fn new() -> World {
        World {
            store: Arc::new(ModelStore::default()),
            machine: Mailboxes::default(),
            copies: Copies::default(),
            queued: BTreeMap::new(),
            given: BTreeSet::new(),
            users: BTreeMap::new(),
            purges: BTreeSet::new(),
            reads: Vec::new(),
            commits: Vec::new(),
            batches: 0,
            sessions: 0,
            seconds: 0,
            durable: BTreeSet::new(),
            gone: BTreeSet::new(),
            unwanted: BTreeSet::new(),
            forwarded: BTreeSet::new(),
            passed: BTreeSet::new(),
        }
    }

    fn now(&self) -> Now {
        Now { mono: Instant(self.seconds * 1_000_000), utc: at(self.seconds) }
    }

    fn commit(&mut self, batch: Batch) {
        for op in &batch {
            match op {
                Op::PutEntry { precedence, id, .. } => {
                    let Some(item) = ItemId::of_entry(*id) else { continue };
                    let exists = self.store.entry((*precedence, *id)).unwrap().is_some();
                    let is_new = self.durable.insert(item);
                    assert_eq!(is_new, !exists, "{item:?}: a number that was given before");
                }
                Op::DeleteEntry { id, .. } => {
                    self.gone.extend(ItemId::of_entry(*id));
                }
                Op::PutBody { id, source: BodySource::Framed { .. } } => {
                    let entry = EntryId(id.0 - FORWARDED);
                    assert!(self.forwarded.insert(entry), "{entry:?} is forwarded twice");
                }
                _ => {}
            }
        }
        let items = batch
            .iter()
            .filter(|op| matches!(op, Op::PutEntry { id, .. } if ItemId::of_entry(*id).is_some()));
        // Deliveries of a group come with their items, in their order, but for those that only pass.
        let ends = batch.iter().filter_map(|op| match op {
            Op::DeleteEntry { id, .. } if ItemId::of_entry(*id).is_none() => Some(*id),
            _ => None,
        });
        let ends: Vec<EntryId> = ends.collect();
        if items.count() < ends.len() {
            let passed: Vec<_> = ends.into_iter().filter(|id| self.passes(*id, &batch)).collect();
            self.passed.extend(passed);
        }
        self.batches += 1;
        commit_one(&*self.store, BatchId(self.batches), batch).unwrap();
    }

    /// Whether the entry's content is copied into no item.
    fn passes(&self, entry: EntryId, batch: &Batch) -> bool {
        let body = self.queued[&entry].1.record.body;
        let is_copy = |op: &Op| match op {
            Op::PutBody { source: BodySource::Body(from), .. } => Some(*from) == body,
            _ => false,
        };
        !batch.iter().any(is_copy)
    }

    fn give(&mut self, entry: EntryId) {
        let (user, Copy { record, delivery, content, .. }) = self.queued[&entry].clone();
        let with_it = record.body.map(|id| Op::DeleteBody { id }).into_iter().collect();
        let arrival = Arrival { entry, record, delivery, first: content, with_it };
        assert!(self.given.insert(entry));
        self.machine.deliver(self.now(), USERS[user], arrival);
    }

    fn invoke(&mut self, at: usize, code: i64, argument: &[u8], deletes: Option<u32>) {
        let now = self.now();
        let bound: Vec<_> =
            self.users.iter().filter(|(_, user)| user.is_bound).map(|(id, _)| *id).collect();
        let Some(id) = bound.get(at % bound.len().max(1)) else { return };
        let user = self.users.get_mut(id).unwrap();
        user.invoked += 1;
        user.waits.push_back((user.invoked, deletes));
        self.unwanted.extend(deletes.map(|number| (user.mailbox, number)));
        self.machine.invoke(now, *id, (user.invoked, code), argument);
    }

    fn act(&mut self, action: &Action) {
        self.seconds += 1;
        let now = self.now();
        match *action {
            Action::Bind(mailbox) => {
                self.sessions += 1;
                let id = AssociationId(self.sessions);
                let user = User { mailbox, is_bound: false, invoked: 0, waits: VecDeque::new() };
                self.users.insert(id, user);
                self.machine.bind(now, id, USERS[mailbox], access());
            }
            Action::Unbind(n) => {
                let id = self.users.keys().nth(n % self.users.len().max(1)).copied();
                if let Some(id) = id {
                    self.users.remove(&id);
                    self.machine.unbound(now, id);
                }
            }
            Action::Purge(user, is_trial) => {
                self.purges.insert(self.seconds);
                // What is delivered before it is carried out goes as well.
                let numbers = if is_trial { 0 } else { MOST };
                self.unwanted.extend((1..=numbers).map(|number| (user, number)));
                let all = Rules::new(vec![Rule { status: None, age: Duration::ZERO }]).unwrap();
                self.machine.purge(now, self.seconds, USERS[user], all, is_trial);
            }
            Action::List(n) => {
                let argument = encoded(|w| ListArgument::default().write(w));
                self.invoke(n, operation::LIST, &argument, None);
            }
            Action::Summarize(n) => {
                let argument = SummarizeArgument::default();
                self.invoke(n, operation::SUMMARIZE, &encoded(|w| argument.write(w)), None);
            }
            Action::Fetch(n, number) => {
                let argument = FetchArgument::precise(SequenceNumber(number), vec![]);
                self.invoke(n, operation::FETCH, &encoded(|w| argument.write(w)), None);
            }
            Action::Delete(n, number) => {
                let argument = DeleteArgument::new(vec![SequenceNumber(number)]);
                let argument = encoded(|w| argument.write(w));
                self.invoke(n, operation::DELETE, &argument, Some(number));
            }
            Action::Register(n, more) => {
                let subject = p7::attributes::SUBJECT.oid();
                let list_attribute_defaults = Some(if more { vec![subject] } else { vec![] });
                let argument = RegisterMsArgument { list_attribute_defaults, ..Default::default() };
                self.invoke(n, operation::REGISTER_MS, &encoded(|w| argument.write(w)), None);
            }
            Action::Forward(n, delete_after) => {
                for user in USERS {
                    let arguments = AutoForwardArguments {
                        originator: user.parse().unwrap(),
                        recipients: vec![PerRecipientSubmissionFields::default()],
                        ..AutoForwardArguments::default()
                    };
                    let forward = AutoForward { arguments, delete_after, ..AutoForward::default() };
                    let registration = forward.registration(1);
                    let argument = RegisterMsArgument {
                        auto_action_registrations: vec![registration],
                        ..Default::default()
                    };
                    // That of the other user is refused.
                    self.invoke(n, operation::REGISTER_MS, &encoded(|w| argument.write(w)), None);
                }
            }
            Action::Nonsense(n, code) => self.invoke(n, code, &[0x04, 0x01, 0xFF], None),
            Action::Deliver(user, level) => {
                let level = Precedence::ALL[usize::from(level)];
                let copy = self.copies.message(at(self.seconds), level, "Convoy", 20).unwrap();
                self.commit(copy.put());
                let entry = copy.entry;
                self.queued.insert(entry, (user, copy));
                self.give(entry);
            }
            Action::Found(n, ok) => self.answer_read(n, ok),
            Action::Committed(n, ok) => self.answer_commit(n, ok),
            Action::Settle => self.settle(),
            Action::Restart(made) => self.restart(made),
        }
        self.drain();
    }

    fn answer_read(&mut self, n: usize, ok: bool) {
        if self.reads.is_empty() {
            return;
        }
        let (ticket, read) = self.reads.remove(n % self.reads.len());
        let found = match ok {
            true => answer(&*self.store, &read),
            false => Found::Failed("damaged".to_owned()),
        };
        self.machine.found(self.now(), ticket, found);
    }

    fn answer_commit(&mut self, n: usize, ok: bool) {
        if self.commits.is_empty() {
            return;
        }
        let (ticket, batch) = self.commits.remove(n % self.commits.len());
        let result = match ok {
            true => {
                self.commit(batch);
                Ok(())
            }
            false => Err("full".to_owned()),
        };
        self.machine.committed(self.now(), ticket, result);
    }

    fn settle(&mut self) {
        self.drain();
        for _ in 0..10_000 {
            if self.reads.is_empty() && self.commits.is_empty() {
                return;
            }
            self.answer_read(0, true);
            self.answer_commit(0, true);
            self.drain();
        }
        panic!("no end: {:?} {:?}", self.reads, self.commits);
    }

    fn restart(&mut self, made: bool) {
        if made && !self.commits.is_empty() {
            // The first in the queue of the store was made, and nobody knew.
            let (_, batch) = self.commits.remove(0);
            self.commit(batch);
        }
        self.reads.clear();
        self.commits.clear();
        self.users.clear();
        self.purges.clear();
        self.given.clear();
        self.machine = Mailboxes::default();
        if let Some(names) = self.store.meta(NAMES).unwrap() {
            self.machine.recovered(&names).unwrap();
        }
        self.redeliver();
    }

    /// What is in the queue, and not given to the machine, is delivered again.
    fn redeliver(&mut self) {
        let waits = |(entry, (_, copy)): (&EntryId, &(usize, Copy))| {
            let key = (copy.record.precedence, *entry);
            self.store.entry(key).unwrap().is_some().then_some(*entry)
        };
        let waiting: Vec<EntryId> = self.queued.iter().filter_map(waits).collect();
        for entry in
            waiting.into_iter().filter(|entry| !self.given.contains(entry)).collect::<Vec<_>>()
        {
            self.give(entry);
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Read { ticket, read, .. } => self.reads.push((ticket, read)),
                Output::Commit { ticket, batch, .. } => self.commits.push((ticket, batch)),
                Output::Bound { session, .. } => {
                    let user = self.users.get_mut(&session);
                    assert!(!std::mem::replace(&mut user.unwrap().is_bound, true), "bound twice");
                }
                Output::NotBound { session, .. } => {
                    assert!(!self.users.remove(&session).unwrap().is_bound, "it was bound");
                }
                Output::Respond { session, invoke, operation, response } => {
                    self.responded(session, invoke, operation, &response);
                }
                Output::Alert { session, argument } => {
                    assert!(self.users[&session].is_bound);
                    Element::parse(&argument).unwrap();
                }
                Output::Delivered { entry, item, is_kept } => {
                    assert!(self.given.remove(&entry), "{entry:?} is answered twice");
                    assert_eq!(self.durable.contains(&item), is_kept, "{item:?}");
                    let is_forwarded = self.forwarded.contains(&entry);
                    assert!(is_kept || is_forwarded, "{entry:?} is lost");
                    let (user, _) = self.queued[&entry];
                    assert_eq!(self.machine.number(USERS[user]), Some(item.mailbox));
                }
                Output::NotDelivered { entry, .. } => {
                    assert!(self.given.remove(&entry), "{entry:?} is answered twice");
                    let (_, copy) = &self.queued[&entry];
                    let key = (copy.record.precedence, entry);
                    assert!(self.store.entry(key).unwrap().is_some(), "{entry:?} is lost");
                }
                Output::Credentials { .. } => panic!("nobody changes credentials"),
                Output::Forward { entry, address, body, copies, .. } => {
                    let (user, copy) = &self.queued[&entry];
                    assert_eq!((copy.record.body, &*address), (Some(body), USERS[*user]));
                    let Forwarding { head, part, .. } = copies[0].clone();
                    let (from, length) = part.unwrap();
                    let source = BodySource::Framed { head, body, from, length };
                    let id = BodyId(FORWARDED + entry.0);
                    let with_it = vec![Op::PutBody { id, source }];
                    self.machine.forwarded(self.now(), &address, entry, (with_it, true));
                }
                Output::Purged { request, .. } => {
                    assert!(self.purges.remove(&request), "{request} is answered twice");
                }
                Output::Room(_)
                | Output::Retained(_)
                | Output::Note(_)
                | Output::NotForwarded { .. } => {}
            }
        }
    }

    fn responded(&mut self, id: AssociationId, invoke: i64, code: i64, response: &Response) {
        let user = self.users.get_mut(&id).expect("a session that is bound");
        let (first, deletes) = user.waits.pop_front().expect("an operation that was invoked");
        assert_eq!(first, invoke, "in the order of the session");
        if let Response::Result { payload, content } = response {
            assert_eq!(payload.content_length, content.map_or(0, |(_, length)| length));
            if content.is_none() {
                Element::parse(&payload.head).unwrap();
            }
            if let Some(number) = deletes {
                assert_eq!(code, operation::DELETE);
                DeleteResult::read(&Element::parse(&payload.head).unwrap()).unwrap();
                let mailbox = self.machine.number(USERS[user.mailbox]).unwrap();
                assert!(self.gone.contains(&ItemId { mailbox, number }), "{number} is still there");
            }
        }
    }

    /// All is answered, and what waits is delivered: what must hold then.
    fn compare(&mut self) {
        self.settle();
        // A mailbox that could not be opened, or a commit that failed, leaves them in the queue.
        self.redeliver();
        self.settle();
        assert!(self.machine.is_idle());
        assert_eq!(self.given.len(), 0, "deliveries that are not answered: {:?}", self.given);
        assert_eq!(self.purges.len(), 0, "orders that are not answered: {:?}", self.purges);
        for (id, user) in &self.users {
            assert!(user.is_bound, "{id:?} is not answered");
            assert_eq!(user.waits.len(), 0, "{id:?} waits for operations");
        }
        let all = self.durable.len() + self.passed.len();
        assert_eq!(all, self.queued.len(), "every message exactly once");
        for item in &self.gone {
            let whose = USERS.iter().position(|u| self.machine.number(u) == Some(item.mailbox));
            let is_unwanted = self.unwanted.contains(&(whose.unwrap(), item.number));
            assert!(is_unwanted, "nobody deleted {item:?}");
        }
        for user in USERS {
            let Some(id) = self.machine.number(user) else { continue };
            let counts = Precedence::ALL.map(|p| self.store.item_count(id, p).unwrap());
            let kept = self.durable.difference(&self.gone).filter(|item| item.mailbox == id);
            assert_eq!(counts.iter().sum::<u64>(), kept.count() as u64);
            if let Some(totals) = self.machine.totals(user) {
                let held = Precedence::ALL.map(|p| totals.level(p).items);
                assert_eq!(held, counts, "totals of {user}");
            }
        }
    }
}

fn access() -> Access {
    Access::default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_operation_and_delivery_is_answered_once(
        actions in prop::collection::vec(action(), 0..120),
    ) {
        let mut world = World::new();
        for action in &actions {
            world.act(action);
        }
        world.compare();
        // Once more after a restart of what is durable.
        world.restart(false);
        for user in 0..USERS.len() {
            world.act(&Action::Bind(user));
            world.act(&Action::Deliver(user, 4));
        }
        world.compare();
    }
}

#[test]
fn sessions_of_one_mailbox_delete_the_same_item_once() {
    let mut world = World::new();
    for action in [Action::Deliver(0, 4), Action::Bind(0), Action::Bind(0), Action::Settle] {
        world.act(&action);
    }
    for session in 0..2 {
        world.act(&Action::Delete(session, 1));
    }
    world.compare();
    assert_eq!(world.gone.len(), 1);
    let selector =
        encoded(|w| ListArgument { selector: Selector::default(), ..Default::default() }.write(w));
    world.invoke(1, operation::LIST, &selector, None);
    world.compare();
}

#[test]
fn what_is_forwarded_is_durable_with_the_delivery_and_is_deleted_after_it() {
    for deletes in [false, true] {
        let mut world = World::new();
        let begin = [Action::Bind(0), Action::Settle, Action::Forward(0, deletes), Action::Settle];
        begin.iter().for_each(|action| world.act(action));
        (0..5).for_each(|level| world.act(&Action::Deliver(0, level)));
        world.act(&Action::Deliver(1, 3));
        world.compare();
        let whose: Vec<usize> = world.forwarded.iter().map(|entry| world.queued[entry].0).collect();
        assert_eq!(whose, [0; 5], "all of the user who registered it");
        assert_eq!(world.passed.len(), if deletes { 5 } else { 0 });
    }
}

#[test]
fn a_count_that_failed_is_made_again() {
    let mut world = World::new();
    (0..3).for_each(|_| world.act(&Action::Deliver(0, 3)));
    world.act(&Action::Bind(0));
    world.compare();
    // Totals that an item has left since.
    let name = Totals::name(world.machine.number(USERS[0]).unwrap());
    let value = world.store.meta(&name).unwrap().unwrap();
    world.act(&Action::Delete(0, 1));
    world.compare();
    world.commit(vec![Op::PutMeta { name, value }]);
    world.restart(false);
    world.act(&Action::Bind(0));
    // The mailbox is opened; the first read of the count fails.
    world.answer_read(0, true);
    world.drain();
    world.answer_read(0, false);
    world.settle();
    let held = |world: &World| world.machine.totals(USERS[0]).unwrap().all().items;
    assert_eq!(held(&world), 3);
    world.machine.retain(world.now());
    world.settle();
    assert_eq!(held(&world), 2);
}
