//! A world is played: its messages and events in their order, and then until everything is done.

use crate::build;
use crate::line::Shared;
use crate::world::{Message, What, World};
use base::{EntryId, Instant, Utc};
use engine::Record;
use node::Input;
use node::changes::EdgeChanges;
use node::lists::{ListChange, ReportPolicy, SubmitPermission};
use node::operator::{Act, ActOutcome, Operator};
use p1::apdu::MtsApduHead;
use scheduler::Hold;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use store::queue::for_each_entry;
use testkit::build::content;
use testkit::real::{Mutant, RealStore};
use testkit::{Death, Network};

/// How often users look whether they are bound, and were answered.
const ATTENTION: Duration = Duration::from_secs(1);

/// The time after which a process that is to end is killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks of an operator once all that was planned has happened, in seconds; together the time within which all
/// must be done.
const PAUSES: [u64; 14] = [1, 2, 2, 5, 10, 30, 60, 120, 120, 400, 700, 1_400, 2_800, 5_600];

/// A world that is played.
pub(crate) struct Play<'a> {
    /// What is played.
    pub(crate) world: &'a World,
    /// The network.
    pub(crate) network: Network<RealStore>,
    /// For each user the index of each submission in the world's messages.
    pub(crate) submitted: Vec<Vec<usize>>,
    /// The messages, by number, that operators expired, deleted or rerouted.
    pub(crate) acted: BTreeSet<usize>,
    /// The entries, by site, whose end by an order was confirmed, and when.
    pub(crate) ended: BTreeMap<(usize, EntryId), Instant>,
    /// What operators hold, as they were answered: not the last of it may go.
    held: BTreeSet<(usize, EntryId)>,
    /// The entries that an order ends, maybe while a hold of them is not answered yet.
    ordered: BTreeSet<(usize, EntryId)>,
    /// The last order to release, for each site.
    released: BTreeMap<usize, u64>,
    /// What went although an operator held it, in words.
    pub(crate) went: Vec<String>,
    /// What was not done once all had been well for long, before any process was started again.
    pub(crate) waits: Option<String>,
    /// What was left at a site whose process still ran, in words.
    pub(crate) left: Vec<String>,
    /// When each event of the world happened.
    pub(crate) happened: Vec<Instant>,
    /// What was done, for the story.
    pub(crate) done: Vec<(Instant, String)>,
    /// When everything was done, counted from the last planned event; `None`: never.
    pub(crate) drained: Option<Duration>,
    /// The line of each link.
    pub(crate) lines: Vec<Shared>,
    /// The clocks that drift: since when, and how many microseconds a second.
    drifts: BTreeMap<usize, (Instant, i64)>,
    looked_at: Vec<usize>,
    ends: Vec<(Instant, End)>,
    requests: u64,
    /// Orders that wait for their answers: what they are to do to which messages.
    orders: BTreeMap<u64, (usize, Act, Vec<usize>)>,
    deferrals: BTreeMap<usize, Utc>,
}

/// The end of what lasts.
#[derive(Clone, Copy, Debug)]
enum End {
    Down(usize),
    Slow(usize),
    Bleached(usize),
    Lossy(usize),
    Late(usize),
    Distrusts(usize),
    Stops(usize, usize),
}

impl<'a> Play<'a> {
    /// A world at its beginning.
    pub(crate) fn new(world: &'a World, mutant: Option<Mutant>) -> Play<'a> {
        let (network, lines) = build::network(world, mutant);
        Play {
            world,
            network,
            submitted: vec![Vec::new(); world.users()],
            acted: BTreeSet::new(),
            ended: BTreeMap::new(),
            held: BTreeSet::new(),
            ordered: BTreeSet::new(),
            released: BTreeMap::new(),
            went: Vec::new(),
            waits: None,
            left: Vec::new(),
            happened: Vec::new(),
            done: Vec::new(),
            drained: None,
            drifts: BTreeMap::new(),
            lines,
            looked_at: vec![0; world.users()],
            ends: Vec::new(),
            requests: 0,
            orders: BTreeMap::new(),
            deferrals: BTreeMap::new(),
        }
    }

    /// Plays it to the end.
    pub(crate) fn play(&mut self) {
        let world = self.world;
        self.attend();
        self.make_lists();
        let (mut messages, mut events) = (0, 0);
        loop {
            let message = world.messages.get(messages).map(|message| message.at);
            let event = world.events.get(events).map(|event| event.at);
            let Some(at) = message.into_iter().chain(event).min() else { break };
            self.run_until(Instant(0) + at);
            if message == Some(at) {
                self.submit(messages);
                messages += 1;
            } else {
                self.happen(&world.events[events].what);
                events += 1;
            }
        }
        self.run_until(self.ends.iter().map(|(at, _)| *at).max().unwrap_or(self.network.now));
        self.heal();
        let from = self.network.now;
        self.finish();
        self.drained = self.is_over().then(|| Duration::from_micros(self.network.now.0 - from.0));
        if self.drained.is_none() {
            let queued = (0..self.network.sites.len()).map(|site| self.queued(site));
            self.waits = Some(format!("still to be done: {:?}", queued.collect::<Vec<_>>()));
        }
        self.lose_power();
    }

    /// Makes the lists, while nothing goes wrong yet.
    fn make_lists(&mut self) {
        let world = self.world;
        for (number, list) in world.lists.iter().enumerate() {
            self.requests += 1;
            let made = node::lists::List {
                address: world.address(world.users() + 1 + number),
                members: list.members.iter().map(|member| world.address(*member)).collect(),
                submit: SubmitPermission::Anyone,
                reports: ReportPolicy::Originator,
                owner: None,
            };
            let (request, change) = (self.requests, Box::new(ListChange::Add(made)));
            let by = Operator::default();
            let input = Input::ChangeList { request, change, by, try_only: false };
            self.network.feed(list.site, input);
            // One change at a time.
            self.run_for(Duration::from_secs(10));
        }
    }

    fn note(&mut self, what: String) {
        self.done.push((self.network.now, what));
    }

    /// Runs, while users do what users do, and what lasts ends.
    fn run_until(&mut self, until: Instant) {
        while self.network.now < until {
            let end = self.ends.iter().map(|(at, _)| *at).min().unwrap_or(until);
            let next = until.min(self.network.now + ATTENTION).min(end.max(self.network.now));
            self.network.run_until(next);
            self.attend();
            self.end_what_is_over();
        }
    }

    fn end_what_is_over(&mut self) {
        let now = self.network.now;
        let over: Vec<End> =
            self.ends.extract_if(.., |(at, _)| *at <= now).map(|(_, end)| end).collect();
        over.into_iter().for_each(|end| self.end(end));
    }

    fn run_for(&mut self, time: Duration) {
        self.run_until(self.network.now + time);
    }

    /// Users bind where they are not bound, and submit again what was refused.
    fn attend(&mut self) {
        self.drift();
        for user in 0..self.world.users() {
            if !self.network.is_bound(user) && !self.network.sites[user / 2].is_down {
                self.network.bind(user, user / 2);
            }
            self.network.read_mailbox(user, user / 2);
            let answers = &self.network.users[user].answers;
            let new = self.looked_at[user]..answers.len();
            self.looked_at[user] = answers.len();
            let refused: Vec<usize> = new.filter(|at| answers[*at].is_err()).collect();
            for at in refused {
                let tag = self.network.users[user].answered[at];
                self.submit(self.submitted[user][tag]);
            }
        }
        self.read_answers();
    }

    fn drift(&mut self) {
        let now = self.network.now;
        for (site, (since, rate)) in &mut self.drifts {
            let gained = (now.0 - since.0) as i64 * *rate / 1_000_000;
            if gained != 0 {
                self.network.sites[*site].clock_set += gained;
                *since = now;
            }
        }
    }

    fn submit(&mut self, index: usize) {
        let message: &Message = &self.world.messages[index];
        let to: Vec<String> = message.to.iter().map(|to| self.world.address(*to)).collect();
        let now = self.network.clock().utc;
        let deferral = message.deferred.map(|by| {
            // A UTCTime has whole seconds.
            let at = Utc((now + by).0.next_multiple_of(1_000_000));
            *self.deferrals.entry(index).or_insert(at)
        });
        let user = &mut self.network.users[message.from];
        user.deferred = deferral;
        user.alternate = message.alternate.map(|user| self.world.address(user));
        user.content_type =
            if message.is_p2 { p1::ContentType::BuiltIn(2) } else { p1::ContentType::P22 };
        user.submits_to_store = user.reader.is_some() && message.number.is_multiple_of(2);
        self.submitted[message.from].push(index);
        let (octets, id) = (content(message.number, message.size), identifier(message.number));
        self.network.submit(message.from, &to, message.precedence, &octets, &id, message.report);
    }

    fn end(&mut self, end: End) {
        match end {
            End::Down(link) => {
                let down = |end: &End| matches!(end, End::Down(other) if *other == link);
                if !self.ends.iter().any(|(_, end)| down(end)) {
                    self.network.lines_down.remove(&self.world.links[link].ends);
                }
            }
            End::Stops(site, deaths) if self.network.sites[site].deaths.len() == deaths => {
                self.network.crash_as(site, Death::Process, 0);
            }
            End::Stops(..) => {}
            End::Bleached(link) => {
                self.network.bleached.remove(&self.world.links[link].ends);
            }
            End::Lossy(link) => self.lines[link].borrow_mut().loss = 0,
            End::Late(link) => {
                self.lines[link].borrow_mut().latency = self.world.links[link].latency;
            }
            End::Distrusts(site) => self.network.sites[site].distrusts = false,
            End::Slow(link) => self.lines[link].borrow_mut().rate = self.world.links[link].rate,
        }
    }

    fn down(&mut self, link: usize, lasts: Duration) {
        let ends = self.world.links[link].ends;
        self.network.lines_down.insert(ends);
        self.network.cut_between(ends.0, ends.1, None);
        self.ends.push((self.network.now + lasts, End::Down(link)));
    }

    /// A process that does not end in time is killed, as the service manager does.
    fn restart(&mut self, site: usize) {
        let deaths = self.network.sites[site].deaths.len();
        self.network.restart(site);
        let s = &self.network.sites[site];
        if !s.is_down && s.deaths.len() == deaths {
            self.ends.push((self.network.now + PATIENCE, End::Stops(site, deaths)));
        }
    }

    fn stall(&mut self, link: usize, lasts: Duration) {
        let until = self.network.now + lasts;
        let mut line = self.lines[link].borrow_mut();
        line.stalled_until = line.stalled_until.max(until);
    }

    fn happen(&mut self, what: &What) {
        self.note(format!("{what:?}"));
        self.happened.push(self.network.now);
        match *what {
            What::Cut(link) => {
                let (a, b) = self.world.links[link].ends;
                self.network.cut_between(a, b, None);
            }
            What::HalfOpen(link, site) => {
                let (a, b) = self.world.links[link].ends;
                let unnoticed_by = if site % 2 == 0 { a } else { b };
                self.network.cut_between(a, b, Some(unnoticed_by));
            }
            What::Down(link, lasts) => self.down(link, lasts),
            What::Slow(link, rate, lasts) => {
                self.lines[link].borrow_mut().rate = rate.min(self.world.links[link].rate);
                self.ends.push((self.network.now + lasts, End::Slow(link)));
            }
            What::Stalled(link, lasts) => self.stall(link, lasts),
            What::Lossy(link, percent, lasts) => {
                self.lines[link].borrow_mut().loss = percent;
                self.ends.push((self.network.now + lasts, End::Lossy(link)));
            }
            What::Late(link, by, lasts) => {
                self.lines[link].borrow_mut().latency = self.world.links[link].latency + by;
                self.ends.push((self.network.now + lasts, End::Late(link)));
            }
            What::Bleached(link, lasts) => {
                self.network.bleached.insert(self.world.links[link].ends);
                self.ends.push((self.network.now + lasts, End::Bleached(link)));
            }
            What::Lies(link, lie) => self.lines[link].borrow_mut().lies.push_back(lie),
            What::Drifts(site, rate) => {
                self.drifts.insert(site, (self.network.now, rate));
            }
            What::Partition(site, lasts) => {
                let links: Vec<usize> = self.world.links_of(site).map(|(link, _)| link).collect();
                links.into_iter().for_each(|link| self.down(link, lasts));
            }
            What::Hangs(site, lasts) => {
                let links: Vec<usize> = self.world.links_of(site).map(|(link, _)| link).collect();
                links.into_iter().for_each(|link| self.stall(link, lasts));
            }
            What::Dies(site, death) => {
                if !self.network.sites[site].is_down {
                    self.network.crash_as(site, death, 0);
                }
            }
            What::Restart(site) => self.restart(site),
            What::Disk(site, after, fault) => self.network.sites[site].store.plan(after, fault),
            What::Distrusts(site, lasts) => {
                self.network.sites[site].distrusts = true;
                self.ends.push((self.network.now + lasts, End::Distrusts(site)));
            }
            What::Clock(site, seconds) => {
                self.network.sites[site].clock_set += seconds * 1_000_000;
            }
            What::Cancel(user) => self.cancel(user),
            What::Corrupt(link) => self.lines[link].borrow_mut().corrupts += 1,
            What::Hold(site) => self.act_on_all(site, Act::Hold),
            What::Release(site) => self.act_on_all(site, Act::Release),
            What::Retry(site) => self.act_on_all(site, Act::Retry),
            What::Reroute(site) => {
                let peers = &self.network.sites[site].config.peers;
                let peer = self.network.rng.below(peers.len() as u64) as usize;
                let to = Some(peers[peer].name.clone());
                self.act_on_one(site, Act::Reroute { to });
            }
            What::Expire(site) => self.act_on_one(site, Act::Expire),
            What::Delete(site) => self.act_on_one(site, Act::Delete),
            What::Reload(site) => {
                let hold = match self.network.rng.below(3) {
                    0 => Hold::Off,
                    1 => Hold::Conserving,
                    _ => Hold::Strict,
                };
                self.network.configure(site, |c| c.hold.hold = hold, EdgeChanges::default());
            }
        }
    }

    /// A user cancels one of his messages that are deferred, if there is one that was accepted.
    fn cancel(&mut self, user: usize) {
        let u = &self.network.users[user];
        if !self.network.is_bound(user) {
            return;
        }
        let accepted = u.answered.iter().zip(&u.answers).filter_map(|(tag, answer)| {
            let index = self.submitted[user][*tag];
            Some((index, answer.clone().ok()?))
        });
        let is_deferred = |index: &usize| self.world.messages[*index].deferred.is_some();
        let mut deferred = accepted.filter(|(index, _)| is_deferred(index));
        let Some((index, identifier)) = deferred.next() else { return };
        let number = self.world.messages[index].number;
        self.note(format!("message {number} is cancelled"));
        self.acted.insert(number);
        let copies = self.queued(user / 2).into_iter().filter(|(_, of)| *of == Some(number));
        self.ordered.extend(copies.map(|(id, _)| (user / 2, id)));
        self.network.cancel(user, &identifier);
    }

    /// The entries of a site, with the number of the message where it is one.
    pub(crate) fn queued(&self, site: usize) -> Vec<(EntryId, Option<usize>)> {
        let mut entries = Vec::new();
        let Some(store) = self.network.sites[site].store.opened() else { return entries };
        let _ = for_each_entry(store, |entry| {
            let head = Record::decode(&entry.record).map(|record| record.head);
            let number = match head {
                Ok(MtsApduHead::Message(envelope)) => {
                    envelope.content_identifier.as_deref().and_then(number)
                }
                _ => None,
            };
            entries.push((entry.id, number));
        });
        entries
    }

    fn order(&mut self, site: usize, entries: Vec<EntryId>, act: Act, of: Vec<usize>) {
        self.requests += 1;
        let request = self.requests;
        self.see_held(site);
        match act {
            Act::Hold | Act::Retry => {}
            Act::Release => {
                self.held.retain(|(of, _)| *of != site);
                self.released.insert(site, request);
            }
            _ => self.ordered.extend(entries.iter().map(|id| (site, *id))),
        }
        self.orders.insert(request, (site, act.clone(), of));
        let by = Operator::default();
        self.network.feed(site, Input::Operate { request, entries, act, by });
    }

    fn act_on_all(&mut self, site: usize, act: Act) {
        let entries: Vec<EntryId> = self.queued(site).into_iter().map(|(id, _)| id).collect();
        if !entries.is_empty() {
            self.order(site, entries, act, Vec::new());
        }
    }

    fn act_on_one(&mut self, site: usize, act: Act) {
        let queued = self.queued(site);
        let messages: Vec<(EntryId, usize)> =
            queued.into_iter().filter_map(|(id, number)| Some((id, number?))).collect();
        if messages.is_empty() {
            return;
        }
        let (id, number) = messages[self.network.rng.below(messages.len() as u64) as usize];
        self.note(format!("{} of message {number}, entry {}", act.name(), id.0));
        self.acted.insert(number);
        self.order(site, vec![id], act, vec![number]);
    }

    fn read_answers(&mut self) {
        for site in 0..self.network.sites.len() {
            for (request, result) in std::mem::take(&mut self.network.sites[site].operated) {
                let Some((_, act, of)) = self.orders.remove(&request) else { continue };
                if act == Act::Hold && self.released.get(&site).is_none_or(|last| *last < request) {
                    let all = result.iter().flatten();
                    let held = all.filter(|(_, outcome)| *outcome == ActOutcome::Done);
                    self.held.extend(held.map(|(id, _)| (site, *id)));
                }
                if matches!(act, Act::Delete | Act::Expire) {
                    let done = |outcome: &ActOutcome| {
                        let ends = [ActOutcome::Done, ActOutcome::Silent, ActOutcome::Doubted];
                        ends.contains(outcome)
                    };
                    let all = result.iter().flatten().filter(|(_, outcome)| done(outcome));
                    let now = self.network.now;
                    self.ended.extend(all.map(|(id, _)| ((site, *id), now)));
                }
                if !of.is_empty() {
                    self.note(format!("{} of messages {of:?}: {result:?}", act.name()));
                }
            }
        }
    }

    /// What an operator holds is there still.
    fn see_held(&mut self, site: usize) {
        if self.network.sites[site].store.opened().is_none() {
            return;
        }
        let queued: BTreeSet<EntryId> = self.queued(site).into_iter().map(|(id, _)| id).collect();
        let gone: Vec<EntryId> = (self.held.iter())
            .filter(|(of, id)| *of == site && !queued.contains(id))
            .map(|(_, id)| *id)
            .collect();
        for id in gone {
            self.held.remove(&(site, id));
            if self.ordered.contains(&(site, id)) {
                continue;
            }
            let name = crate::world::SITES[site];
            self.went.push(format!("entry {} at {name} went, and an operator held it", id.0));
        }
    }

    /// The sites that have something left although nothing is queued, and their processes run.
    fn leftovers(&self) -> Vec<String> {
        let mut left = Vec::new();
        for (site, s) in self.network.sites.iter().enumerate() {
            let Some(store) = s.store.opened().filter(|_| !s.is_down) else { continue };
            if !self.queued(site).is_empty() {
                continue;
            }
            let bodies = store.bodies(None, 99).map_or(0, |bodies| bodies.len());
            let held =
                if s.node.holds().arrivals == 0 { store.contents().memory_held() } else { 0 };
            if bodies > 0 || held > 0 {
                let name = crate::world::SITES[site];
                left.push(format!("at {name}: {bodies} contents, {held} octets in memory"));
            }
        }
        left
    }

    /// All is well from now on.
    fn heal(&mut self) {
        self.note("all is well from now on".to_owned());
        (0..self.network.sites.len()).for_each(|site| self.see_held(site));
        let now = self.network.now;
        self.network.lines_down.clear();
        self.network.bleached.clear();
        self.drifts.clear();
        for (line, link) in self.lines.iter().zip(&self.world.links) {
            let mut line = line.borrow_mut();
            // What is in progress was sent at the rate of before.
            (line.rate, line.stalled_until) = (link.rate.max(30_000), now);
            line.corrupts = 0;
            line.lies.clear();
        }
        self.network.poll_lines();
        for site in &mut self.network.sites {
            site.store.heal(now);
            site.clock_set = 0;
            site.distrusts = false;
        }
    }

    /// All submissions are answered, and nothing is queued.
    fn is_over(&self) -> bool {
        let answered = |user: usize| {
            let u = &self.network.users[user];
            let accepted: BTreeSet<usize> = (u.answered.iter().zip(&u.answers))
                .filter(|(_, answer)| answer.is_ok())
                .map(|(tag, _)| self.submitted[user][*tag])
                .collect();
            self.submitted[user].iter().all(|index| accepted.contains(index))
        };
        (0..self.world.users()).all(answered)
            && (0..self.network.sites.len())
                .all(|site| !self.network.sites[site].is_down && self.queued(site).is_empty())
    }

    /// Until everything is delivered. An operator releases what is held still.
    fn finish(&mut self) {
        for pause in PAUSES {
            if self.is_over() {
                return;
            }
            for site in 0..self.network.sites.len() {
                self.act_on_all(site, Act::Release);
            }
            for _ in 0..pause.div_ceil(10) {
                self.run_slowly(pause.min(10));
            }
        }
    }

    fn run_slowly(&mut self, seconds: u64) {
        self.network.run_for(Duration::from_secs(seconds));
        self.attend();
        self.end_what_is_over();
    }

    /// All sites lose what is not synced, and users bind again: what was deleted stays deleted.
    fn lose_power(&mut self) {
        self.run_for(Duration::from_secs(2));
        if !self.leftovers().is_empty() {
            // What could not be committed is tried again.
            self.run_for(Duration::from_secs(15));
            self.left = self.leftovers();
        }
        for site in 0..self.network.sites.len() {
            if !self.network.sites[site].is_down {
                self.network.crash_as(site, Death::Power, 0);
            }
        }
        self.run_for(Duration::from_secs(20));
        // Until nobody waits for the rest of a transfer any more.
        for _ in 0..150 {
            self.run_slowly(10);
        }
        // Until nobody asks anything any more.
        self.network.run_for(Duration::from_secs(10));
    }
}

/// The content-identifier of a message.
pub(crate) fn identifier(number: usize) -> String {
    format!("MESSAGE {number}")
}

/// The number of the message that has this content-identifier.
fn number(identifier: &str) -> Option<usize> {
    identifier.strip_prefix("MESSAGE ")?.parse().ok()
}
