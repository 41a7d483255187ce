//! The store of a node of the site, and what the daemon's driver does there (`crates/mta/src/driver/cluster/`): the
//! calls of its machine, and reads; each may be late, and its answer lost.

use super::Mutant;
use super::database::{Asked, Database, End, LEASE};
use super::lane::{Job, Lane};
use base::rng::Rng;
use base::{EntryId, Instant, Now, Precedence};
use engine::journal::{Digest, QueueId, SpoolId};
use membership::rows::{Changes, Place, ShardPage};
use membership::{Answer, Call, Fence, NodeEpoch, Settings};
use node::event::Kind;
use node::shards::{PeerAssociations, ShardChange};
use node::{EdgeError, Input, Output, Principal, ReadError, Token};
use ownership::{Notice, Ownership, changes_of};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use store::{ModelStore, QueueStore};
use testkit::{Death, Delays, Durable, Follow, Opened, Reply};

/// Notifications are looked for this often.
const LISTEN: Duration = Duration::from_millis(100);
/// So many times without one are followed by a look at everything.
const LOOKS: u32 = 20;

/// What happens later.
#[derive(Debug)]
pub(super) enum Event {
    /// At the database.
    Call {
        call: Call,
        own: Option<NodeEpoch>,
        last: u64,
        answers: bool,
    },
    List {
        shard: QueueId,
        fence: Fence,
        after: Place,
        answers: bool,
    },
    LookUp {
        token: Token,
        keys: Vec<Digest>,
        answers: bool,
    },
    Commit {
        asked: Box<Asked>,
        answers: bool,
    },
    TakeOver {
        answers: bool,
    },
    /// In the process.
    Called {
        call: Call,
        answer: Answer,
    },
    Page {
        shard: QueueId,
        fence: Fence,
        page: Option<ShardPage>,
    },
    Give(Input),
    Committed {
        group: u64,
        end: Option<End>,
    },
    TakenOver(Option<(u64, u64)>),
    Listen,
}

impl Event {
    fn is_at_database(&self) -> bool {
        matches!(
            self,
            Event::Call { .. }
                | Event::List { .. }
                | Event::LookUp { .. }
                | Event::Commit { .. }
                | Event::TakeOver { .. }
        )
    }
}

/// The outcome of a call.
pub(super) struct Outcome {
    pub(super) reaches: bool,
    pub(super) answers: bool,
    pub(super) delay: Duration,
}

/// A process of the node.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) machine: Ownership,
    pub(super) run: u64,
    pub(super) node: NodeEpoch,
    pub(super) lane: Lane,
    pub(super) spools: BTreeMap<SpoolId, Vec<u8>>,
    /// Entries that it has deleted.
    pub(super) deleted: BTreeSet<EntryId>,
    missed: bool,
    quiet: u32,
}

/// The store of a node.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    peers: BTreeMap<QueueId, String>,
    database: Rc<RefCell<Database>>,
    mutant: Option<Mutant>,
    /// As of its clocks: [`testkit::Site::gains`].
    pub(super) gains: i64,
    /// It does not reach the database.
    pub(super) cut_until: Instant,
    pub(super) drains: bool,
    pub(super) process: Option<Process>,
    pub(super) real: Instant,
    events: BTreeMap<u64, (u64, Event)>,
    last_event: u64,
    follow: VecDeque<Follow>,
    /// What happened to it, with times.
    pub(super) notes: Vec<(Instant, String)>,
    pub(super) gained: usize,
    pub(super) doubted: usize,
    pub(super) fenced: usize,
}

impl Member {
    pub(super) fn new(
        name: String,
        peers: BTreeMap<QueueId, String>,
        database: Rc<RefCell<Database>>,
        mutant: Option<Mutant>,
        gains: i64,
    ) -> Member {
        Member {
            name,
            peers,
            database,
            mutant,
            gains,
            cut_until: Instant(0),
            drains: false,
            process: None,
            real: Instant(0),
            events: BTreeMap::new(),
            last_event: 0,
            follow: VecDeque::new(),
            notes: Vec::new(),
            gained: 0,
            doubted: 0,
            fenced: 0,
        }
    }

    /// Whether something is late now.
    fn is_late(&self, rng: &mut Rng) -> bool {
        let database = self.database.borrow();
        self.real < database.calm_at && rng.below(database.late) == 0
    }

    fn is_calm(&self) -> bool {
        self.real >= self.database.borrow().calm_at
    }

    /// The outcome of a call that is made now.
    pub(super) fn outcome(&self, rng: &mut Rng) -> Outcome {
        let quick = 300 + rng.below(6_000);
        if self.real < self.cut_until {
            let delay = Duration::from_micros(quick);
            return Outcome { reaches: rng.below(4) == 0, answers: false, delay };
        }
        let slow = if self.is_late(rng) { rng.below(7_000_000) } else { 0 };
        let answers = self.is_calm() || rng.below(40) > 0;
        Outcome { reaches: true, answers, delay: Duration::from_micros(quick + slow) }
    }

    /// How long an answer takes.
    fn way_back(&self, rng: &mut Rng) -> Duration {
        let slow = if self.is_late(rng) { rng.below(5_000_000) } else { 0 };
        Duration::from_micros(300 + rng.below(4_000) + slow)
    }

    pub(super) fn later(&mut self, delay: Duration, event: Event) {
        let run = self.process.as_ref().map_or(0, |process| process.run);
        self.last_event += 1;
        self.events.insert(self.last_event, (run, event));
        self.follow.push_back(Follow::Later(delay, self.last_event));
    }

    pub(super) fn give(&mut self, input: Input) {
        self.follow.push_back(Follow::Node(input));
    }

    /// What the nodes share, before the node makes its change of it again.
    pub(super) fn give_values(&mut self) {
        let read =
            |name: &str| Ok::<_, String>(self.database.borrow().stored.meta.get(name).cloned());
        let values = ownership::site_values(read).unwrap_or_default();
        values.into_iter().for_each(|value| self.give(value));
    }

    fn note(&mut self, what: String) {
        self.notes.push((self.real, what));
    }

    /// Makes a call that may be lost: `lost` is what the process finds then, after a while.
    fn ask(&mut self, rng: &mut Rng, event: impl FnOnce(bool) -> Event, lost: Event) {
        let outcome = self.outcome(rng);
        if outcome.reaches {
            self.later(outcome.delay, event(outcome.answers));
        }
        if !outcome.answers {
            self.later(Duration::from_millis(200 + rng.below(2_800)), lost);
        }
    }

    /// Carries out what the machine wants.
    pub(super) fn pump(&mut self, now: Now, rng: &mut Rng) {
        while let Some(output) = self.process.as_mut().and_then(|process| process.machine.poll()) {
            self.perform(now, output, rng);
        }
    }

    fn perform(&mut self, now: Now, output: ownership::Output, rng: &mut Rng) {
        use ownership::Output as Wants;
        let Some(process) = &mut self.process else { return };
        match output {
            Wants::Call(call) => {
                let (own, last) = (Some(process.node), process.lane.last);
                let lost = Event::Called { call: call.clone(), answer: Answer::Failed };
                self.ask(rng, |answers| Event::Call { call, own, last, answers }, lost);
            }
            Wants::Read { shard, fence, after, .. } => {
                let lost = Event::Page { shard, fence, page: None };
                self.ask(rng, |answers| Event::List { shard, fence, after, answers }, lost);
            }
            Wants::LookForNews(places) => {
                let found = (self.real >= self.cut_until).then(|| {
                    let database = self.database.borrow();
                    let has = |(shard, after): &(QueueId, Place)| {
                        !database.page(*shard, *after).entries.is_empty()
                    };
                    places.iter().filter(|place| has(place)).map(|(shard, _)| *shard).collect()
                });
                process.machine.handle(now.mono, ownership::Input::News(found));
            }
            Wants::ReadValue(name) => {
                let value = self.database.borrow().stored.meta.get(name).cloned();
                if self.real < self.cut_until {
                    process.machine.handle(now.mono, ownership::Input::ValueUnread(name));
                } else if let Some(value) = value {
                    process.machine.handle(now.mono, ownership::Input::Value(name, value));
                }
            }
            Wants::Announce(shard) => {
                if self.real >= self.cut_until {
                    self.database.borrow_mut().announce(process.run, shard, process.node);
                }
            }
            // All nodes have the same users, who register nothing.
            Wants::ReadUsers | Wants::ReadRegistrations(_) => {}
            Wants::AfterBatches(shard, fence) => {
                process.lane.push_after(shard, fence);
                self.go_on(now, rng);
            }
            Wants::Node(Input::Shard(ShardChange::Lost(_)))
                if self.mutant == Some(Mutant::LostNotForgotten) => {}
            Wants::Node(Input::RecoveredHolds(_)) if self.mutant == Some(Mutant::HoldsNotTaken) => {
            }
            Wants::Node(input) => {
                if let Input::Recovered { id, .. } = &input {
                    self.note(format!("reads entry {}", id.0));
                }
                self.give(input);
            }
            Wants::Drained => self.note("has given all its shards away".to_owned()),
            Wants::Noted(notice) => {
                self.gained += usize::from(matches!(notice, Notice::Gained(..)));
                self.note(format!("{notice:?}"));
            }
        }
    }

    fn at_database(&mut self, real: Instant, run: u64, event: Event, rng: &mut Rng) {
        let database = Rc::clone(&self.database);
        let back = self.way_back(rng);
        let mut database = database.borrow_mut();
        let (answers, answer) = match event {
            Event::Call { call, own, last, answers } => {
                let answer = database.call(real, run, own, &call, last);
                (answers, Event::Called { call, answer })
            }
            Event::List { shard, fence, after, answers } => {
                (answers, Event::Page { shard, fence, page: Some(database.page(shard, after)) })
            }
            Event::LookUp { token, keys, answers } => {
                let seen = |key| database.stored.seen.get(key).map(|(_, record)| record.clone());
                let result = Ok(keys.iter().map(seen).collect());
                (answers, Event::Give(Input::LookedUp { token, result }))
            }
            Event::Commit { asked, answers } => {
                let end = database.commit(real, &asked);
                (answers, Event::Committed { group: asked.group, end: Some(end) })
            }
            Event::TakeOver { answers } => (answers, Event::TakenOver(database.take_over(run))),
            _ => return,
        };
        let is_there = self.process.as_ref().is_some_and(|process| process.run == run);
        if answers && is_there {
            self.later(back, answer);
        }
    }

    fn in_process(&mut self, now: Now, event: Event, rng: &mut Rng) {
        let Some(process) = &mut self.process else { return };
        match event {
            Event::Called { call, answer } => {
                let is_of_lease = call.is_of_lease();
                if let Answer::Joined(node) = &answer {
                    process.node = *node;
                }
                let input = match is_of_lease {
                    true => ownership::Input::OfLease(answer),
                    false => ownership::Input::Ended(answer),
                };
                process.machine.handle(now.mono, input);
                self.pump(now, rng);
            }
            Event::Page { shard, fence, page } => self.page(now, shard, fence, page, rng),
            Event::Give(input) => self.give(input),
            Event::Committed { group, end } => self.committed(now, group, end, rng),
            Event::TakenOver(found) => self.taken_over(now, found, rng),
            Event::Listen => self.listen(now, rng),
            _ => {}
        }
    }

    fn page(
        &mut self,
        now: Now,
        shard: QueueId,
        fence: Fence,
        page: Option<ShardPage>,
        rng: &mut Rng,
    ) {
        let Some(process) = &mut self.process else { return };
        let is_gone = |entry: &&store::Entry| {
            self.mutant == Some(Mutant::PageBringsBack) && process.deleted.contains(&entry.id)
        };
        let owns = process.machine.membership().fence(shard) == Some(fence);
        let entries = page.iter().filter(|_| owns).flat_map(|page| &page.entries);
        let back: Vec<store::Entry> = entries.filter(is_gone).cloned().collect();
        // Nobody registers anything here.
        let page = ownership::Input::Page { shard, fence, value: None, page };
        process.machine.handle(now.mono, page);
        self.pump(now, rng);
        for store::Entry { precedence, id, record } in back {
            self.give(Input::Recovered { precedence, id, record });
            self.give(Input::Tick);
        }
    }

    /// What others have changed.
    fn listen(&mut self, now: Now, rng: &mut Rng) {
        let is_cut = self.real < self.cut_until;
        let Some(process) = &mut self.process else { return };
        process.quiet += 1;
        let mut changes = match is_cut {
            true => Changes::default(),
            false => self.database.borrow_mut().take_changes(process.run),
        };
        if is_cut {
            process.missed = true;
        } else {
            changes.all |= std::mem::take(&mut process.missed);
        }
        if changes != Changes::default() || process.quiet >= LOOKS {
            process.quiet = 0;
            process.machine.handle(now.mono, ownership::Input::Changed(changes));
        }
        self.pump(now, rng);
        self.later(LISTEN, Event::Listen);
    }

    /// Reads that the node waits for at once.
    fn read<T>(&self, found: T) -> Result<T, ReadError> {
        match self.real < self.cut_until {
            true => Err(ReadError::Failed(EdgeError("the database is away".to_owned()))),
            false => Ok(found),
        }
    }

    fn content(&self, token: Token, body: base::BodyId, offset: u64, len: usize) -> Input {
        let database = self.database.borrow();
        let octets = database.stored.bodies.get(&body).map(|octets| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX).min(octets.len());
            octets.slice(start..start.saturating_add(len).min(octets.len()))
        });
        let result = self.read(octets).and_then(|octets| {
            octets.ok_or_else(|| ReadError::Damaged(format!("there is no body {body}")))
        });
        Input::Content { token, result }
    }

    fn mailbox(&self, token: Token, read: &mailbox::machine::Read) -> Input {
        let store = ModelStore::holding(self.database.borrow().stored.clone());
        let store: &dyn QueueStore = &store;
        Input::MailboxRead { token, found: mailbox::machine::answer(store, read) }
    }

    /// The time by no clock of the node.
    fn real_time(&self, now: Now) -> Instant {
        let rate = 1_000_000 + i128::from(self.gains);
        Instant(u64::try_from(i128::from(now.mono.0) * 1_000_000 / rate).unwrap_or(u64::MAX))
    }

    fn spool(&mut self, id: SpoolId) -> &mut Vec<u8> {
        let process = self.process.as_mut().expect("a process that runs");
        process.spools.get_mut(&id).expect("a spool that is open")
    }

    fn machine_takes(&mut self, now: Now, input: ownership::Input, rng: &mut Rng) {
        if let Some(process) = &mut self.process {
            process.machine.handle(now.mono, input);
            self.pump(now, rng);
        }
    }
}

impl Durable for Member {
    fn handle(
        &mut self,
        now: Now,
        delays: &Delays,
        rng: &mut Rng,
        output: Output,
    ) -> Result<Reply, Output> {
        self.real = self.real.max(self.real_time(now));
        match output {
            Output::SpoolOpen { spool } => {
                let process = self.process.as_mut().expect("a process that runs");
                process.spools.insert(spool, Vec::new());
            }
            Output::SpoolAppend { spool, bytes, .. } => self.spool(spool).extend_from_slice(&bytes),
            Output::SpoolNote { .. } => {}
            Output::SpoolSync { spool, token, .. } => {
                let result = Ok(self.spool(spool).len() as u64);
                return Ok(Reply::After(delays.read, Input::Synced { spool, token, result }));
            }
            Output::SpoolDiscard { spool } => {
                let process = self.process.as_mut().expect("a process that runs");
                process.spools.remove(&spool);
            }
            Output::Commit { token, batch, .. } => {
                let changes = changes_of(&batch);
                self.machine_takes(now, ownership::Input::Committing(token, changes), rng);
                if let Some(process) = &mut self.process {
                    process.lane.push(|number| Job::Commit { number, token, batch });
                }
                self.go_on(now, rng);
            }
            Output::ForgetSeen { token, before, most } => {
                if let Some(process) = &mut self.process {
                    process.lane.push(|number| Job::Forget { number, token, before, most });
                }
                self.go_on(now, rng);
            }
            Output::Load { token, precedence, id } => {
                let key = (std::cmp::Reverse::<Precedence>(precedence), id);
                let mut database = self.database.borrow_mut();
                let found = database.stored.entries.get(&key).map(|(_, record)| record.clone());
                if found.is_none() && self.real >= self.cut_until {
                    database.misses(&self.name, id);
                    self.notes.push((self.real, format!("misses entry {}", id.0)));
                }
                drop(database);
                let result = self.read(found);
                return Ok(Reply::After(delays.read, Input::Loaded { token, result }));
            }
            Output::LookUp { token, keys, .. } => {
                let away = Err(EdgeError("the database is away".to_owned()));
                let lost = Event::Give(Input::LookedUp { token, result: away });
                self.ask(rng, |answers| Event::LookUp { token, keys, answers }, lost);
            }
            Output::ReadMailbox { token, read, .. } => {
                let input = self.mailbox(token, &read);
                return Ok(Reply::After(delays.read, input));
            }
            Output::ReadContent { token, body, offset, len, .. }
            | Output::ReadFront { token, body, offset, len, .. } => {
                let input = self.content(token, body, offset, len);
                return Ok(Reply::After(delays.read, input));
            }
            Output::Verify { token, principal: Principal::User(mailbox), password } => {
                if password.0 == b"secret"[..] {
                    self.machine_takes(now, ownership::Input::User { token, mailbox }, rng);
                } else {
                    self.give(Input::Verified { token, right: false });
                }
            }
            Output::ShardLeft { shard, stays } => {
                self.machine_takes(now, ownership::Input::ShardLeft { shard, stays }, rng);
            }
            Output::Event(event) => {
                if let (Kind::TransferStarted, Some(entry), Some(process)) =
                    (event.kind, event.entry, &self.process)
                {
                    let mut database = self.database.borrow_mut();
                    database.begins(self.real, process.node, &self.name, entry);
                }
                return Err(Output::Event(event));
            }
            Output::Operated { request, result } => {
                self.note(format!("operated {request}: {result:?}"));
                self.database.borrow_mut().holds.answered(self.real, request, &result);
            }
            other => return Err(other),
        }
        Ok(Reply::None)
    }

    /// Nothing is asked for in this way.
    fn commit(&mut self, _: Now, _: &mut Rng) -> Vec<Input> {
        Vec::new()
    }

    fn die(&mut self, _: Death, _: usize, _: &mut Rng) {
        self.process = None;
        self.drains = false;
        self.follow.retain(|follow| matches!(follow, Follow::Later(..)));
    }

    fn start(&mut self, now: Now) -> Result<Opened, String> {
        self.real = self.real.max(self.real_time(now));
        if self.real < self.cut_until {
            return Err("the database is away".to_owned());
        }
        let (run, node) = self.database.borrow_mut().begin(self.real, &self.name);
        let lease = if self.mutant == Some(Mutant::LongLease) { LEASE * 2 } else { LEASE };
        let settings = Settings { name: self.name.clone(), lease, peers: self.peers.clone() };
        let machine = Ownership::joined(settings, now.mono, node);
        self.process = Some(Process {
            machine,
            run,
            node,
            lane: Lane::default(),
            spools: BTreeMap::new(),
            deleted: BTreeSet::new(),
            missed: true,
            quiet: 0,
        });
        self.note(format!("starts as {node}"));
        // It comes before all others.
        self.machine_takes(now, ownership::Input::Begin, &mut Rng::new(run));
        self.later(LISTEN, Event::Listen);
        let meta = |name: &str| self.database.borrow().stored.meta.get(name).cloned();
        let holds = meta(node::operator::HELD).map(Input::RecoveredHolds);
        let disabled = meta(node::channel_order::DISABLED).map(Input::RecoveredDisabled);
        let lists = meta(node::lists::LISTS).map(Input::RecoveredLists);
        let mailboxes = meta(mailbox::machine::NAMES).map(Input::RecoveredMailboxes);
        let all = [holds, disabled, lists, mailboxes, Some(Input::Started)];
        let inputs = all.into_iter().flatten().collect();
        Ok(Opened { epoch: Some(node.0), first: None, inputs })
    }

    fn close(&mut self) {
        if let Some(process) = &self.process {
            let (run, node) = (process.run, process.node);
            let bury = Call::Bury(vec![node]);
            self.database.borrow_mut().call(self.real, run, Some(node), &bury, 0);
        }
    }

    fn before(&mut self, now: Now, rng: &mut Rng) {
        self.real = self.real.max(self.real_time(now));
        let is_due = Durable::deadline(self).is_some_and(|deadline| deadline <= now.mono);
        if std::mem::take(&mut self.drains) {
            self.machine_takes(now, ownership::Input::Drain, rng);
        } else if is_due {
            self.machine_takes(now, ownership::Input::Tick, rng);
        }
    }

    fn with_peers(&mut self, now: Now, found: PeerAssociations, rng: &mut Rng) {
        self.machine_takes(now, ownership::Input::Associations(found), rng);
    }

    fn follow(&mut self) -> Option<Follow> {
        self.follow.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        self.process.as_ref().and_then(|process| process.machine.deadline())
    }

    fn happen(&mut self, real: Instant, now: Now, number: u64, rng: &mut Rng) {
        self.real = real;
        let Some((run, event)) = self.events.remove(&number) else { return };
        if event.is_at_database() {
            // It is on the network already, whether its process lives or not.
            return self.at_database(real, run, event, rng);
        }
        if self.process.as_ref().is_some_and(|process| process.run == run) {
            self.in_process(now, event, rng);
        }
    }

    fn is_for_process(&self, number: u64) -> bool {
        self.events.get(&number).is_none_or(|(_, event)| !event.is_at_database())
    }
}
