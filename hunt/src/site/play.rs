//! Plays the world of a seed.

use super::Mutant;
use super::database::Database;
use super::draw::{CALM, Fault, Hold, SiteWorld, Trouble, USERS};
use super::holds::RELEASES;
use super::member::Member;
use super::store::SiteStore;
use base::{EntryId, Instant, Precedence};
use engine::NextHop;
use engine::journal::ItemId;
use node::Input;
use node::config::{NodeConfig, Target};
use node::operator::{Act, MAX_HELD, Operator};
use p1::flags::ReportRequest;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use testkit::{Death, Delays, FaultyStore, Network, address, listen, route, site_config};

/// The places of the nodes in the network; between them are the foreign MTAs.
pub(super) const NODES: [usize; 3] = [0, 3, 4];
pub(super) const FOREIGN: [usize; 2] = [1, 2];
const NAMES: [&str; 2] = ["OPS", "LOG"];

/// Users are looked at this often.
const STEP: Duration = Duration::from_millis(500);
/// A submission without an answer for so long is given to another node.
const PATIENCE: Duration = Duration::from_secs(3);
/// A bind takes no longer: it waits for the mailbox.
const BINDING: Duration = Duration::from_secs(7);
/// A node that is drained ends at the latest then.
const STOP: Duration = Duration::from_secs(20);
/// What is refused is tried again for so long.
const AFTER: Duration = Duration::from_secs(80);
/// Everything is over by then.
const END: Duration = Duration::from_secs(900);

/// A world that is played.
pub(super) struct Play<'a> {
    pub(super) world: &'a SiteWorld,
    pub(super) network: Network<SiteStore>,
    pub(super) database: Rc<RefCell<Database>>,
    /// What happened, with times.
    pub(super) done: Vec<(Instant, String)>,
    /// The messages that each user has submitted, in order.
    pub(super) submitted: Vec<Vec<usize>>,
    /// Answers that were looked at, and since when each user waits for the next one.
    looked_at: Vec<(usize, Instant)>,
    was_bound: Vec<bool>,
    lines: Vec<(Instant, (usize, usize))>,
    draining: Vec<(usize, Instant)>,
    /// What is released, and when.
    releases: Vec<(Instant, Vec<EntryId>)>,
    last_request: u64,
    rng: base::rng::Rng,
    pub(super) is_over: bool,
}

/// The user's place in the network: a node, or a foreign MTA.
pub(super) fn site_of(user: usize) -> usize {
    user / 2
}

pub(super) fn address_of(user: usize) -> String {
    address(site_of(user), NAMES[user % 2])
}

/// Nobody has this address.
pub(super) fn unknown_at(user: usize) -> String {
    address(site_of(user), "NOBODY")
}

/// The content of a message.
pub(super) fn content(number: usize, size: usize) -> Vec<u8> {
    let mut octets = format!("message {number}.").into_bytes();
    octets.resize(size.max(octets.len()), b'a' + (number % 26) as u8);
    octets
}

fn config(site: usize, seed: u64) -> NodeConfig {
    let others: &[usize] = if site == 0 { &FOREIGN } else { &[0] };
    let mut config = site_config(site, others);
    if site != 0 {
        let through = config.peers[0].id();
        let other = FOREIGN.into_iter().find(|other| *other != site).expect("there are two");
        config.routes.push(route(other, Target::Peer(through)));
    }
    config.seed = seed;
    listen(&mut config);
    config
}

impl<'a> Play<'a> {
    pub(super) fn new(world: &'a SiteWorld, mutant: Option<Mutant>) -> Play<'a> {
        let calm_at = Instant(0) + CALM;
        let database = Rc::new(RefCell::new(Database::new(mutant, calm_at, world.late)));
        let site = config(0, world.seed);
        let peers = site.peers.iter();
        let peers: std::collections::BTreeMap<_, _> =
            peers.map(|peer| (NextHop::Peer(peer.id()).queue(), peer.name.clone())).collect();
        let member = |number: usize| {
            let gains = world.gains[number];
            let name = format!("n{}", number + 1);
            let member = Member::new(name, peers.clone(), Rc::clone(&database), mutant, gains);
            (config(0, world.seed + number as u64), SiteStore::Member(Box::new(member)))
        };
        let foreign = |site: usize| {
            (config(site, world.seed), SiteStore::Alone(Box::<FaultyStore>::default()))
        };
        let mut sites = vec![member(0), foreign(1), foreign(2)];
        sites.extend((1..world.gains.len()).map(member));
        let mut network = Network::with_sites(sites, world.seed);
        for (number, gains) in world.gains.iter().enumerate() {
            network.sites[NODES[number]].gains = *gains;
        }
        network.latency = world.latency;
        for site in FOREIGN {
            network.sites[site].delays = Some(Delays { slow: world.slow, ..Delays::default() });
        }
        network.nodes.insert(0, NODES[..world.gains.len()].to_vec());
        for user in 0..USERS {
            network.user(site_of(user), NAMES[user % 2], true);
        }
        Play {
            world,
            network,
            database,
            done: Vec::new(),
            submitted: vec![Vec::new(); USERS],
            looked_at: vec![(0, Instant(0)); USERS],
            was_bound: vec![true; USERS],
            lines: Vec::new(),
            draining: Vec::new(),
            releases: Vec::new(),
            last_request: 0,
            rng: base::rng::Rng::new(world.seed ^ 0x7ac3),
            is_over: false,
        }
    }

    pub(super) fn run(&mut self) {
        let mut messages =
            (0..self.world.messages.len()).collect::<std::collections::VecDeque<_>>();
        let mut troubles: std::collections::VecDeque<Trouble> =
            self.world.troubles.iter().copied().collect();
        let mut holds: std::collections::VecDeque<Hold> =
            self.world.holds.iter().copied().collect();
        while self.network.now < Instant(0) + END && !self.is_over {
            let until = self.network.now + STEP;
            loop {
                let message = messages.front().map(|index| self.world.messages[*index].at);
                let trouble = troubles.front().map(|trouble| trouble.at);
                let hold = holds.front().map(|hold| hold.at);
                let Some(at) = message.into_iter().chain(trouble).chain(hold).min() else { break };
                if Instant(0) + at > until {
                    break;
                }
                self.network.run_until((Instant(0) + at).max(self.network.now));
                if message == Some(at) {
                    messages.pop_front().into_iter().for_each(|index| self.submit(index));
                } else if hold == Some(at) {
                    holds.pop_front().into_iter().for_each(|hold| self.hold(hold));
                } else if let Some(trouble) = troubles.pop_front() {
                    self.trouble(trouble);
                }
            }
            self.network.run_until(until);
            self.attend();
            self.is_over = self.network.now > Instant(0) + CALM && self.is_all_done();
        }
        // What still comes.
        self.network.run_for(AFTER);
    }

    fn note(&mut self, what: String) {
        self.done.push((self.network.now, what));
    }

    fn submit(&mut self, index: usize) {
        let message = &self.world.messages[index];
        let unknown = message.unknown_at.map(unknown_at);
        let to: Vec<String> = message.to.iter().map(|to| address_of(*to)).chain(unknown).collect();
        let (from, precedence): (usize, Precedence) = (message.from, message.precedence);
        let (octets, id) = (content(index, message.size), format!("MESSAGE {index}"));
        let report =
            if message.reports { ReportRequest::Report } else { ReportRequest::NonDelivery };
        self.note(format!("user {from} submits message {index}"));
        self.submitted[from].push(index);
        self.network.submit(from, &to, precedence, &octets, &id, report);
    }

    /// Users bind where they can, and submit again what was refused.
    fn attend(&mut self) {
        for user in 0..USERS {
            self.answers_of(user);
            let (_, since) = self.looked_at[user];
            let waits = self.network.users[user].answered.len() < self.submitted[user].len();
            let waited = self.network.now.since(since);
            let is_bound = self.network.is_bound(user);
            self.was_bound[user] |= is_bound;
            let is_over = self.was_bound[user] || self.network.users[user].refused;
            let binds = match is_bound {
                true => waits && waited >= PATIENCE,
                false => waited >= if is_over { STEP * 2 } else { BINDING },
            };
            if binds {
                self.bind(user);
            }
        }
        self.release();
        let now = self.network.now;
        let over: Vec<(usize, usize)> =
            self.lines.iter().filter(|(until, _)| *until <= now).map(|(_, ends)| *ends).collect();
        self.lines.retain(|(until, _)| *until > now);
        for ends in over {
            self.network.lines_down.remove(&ends);
        }
        for (site, since) in std::mem::take(&mut self.draining) {
            let is_late = now > since + STOP;
            if self.network.sites[site].is_down {
                continue;
            } else if self.network.sites[site].stopped {
                self.note(format!("{} has stopped", self.name(site)));
                self.network.close_for(site, Duration::from_secs(2));
            } else if is_late {
                self.network.crash_for(site, Duration::from_secs(2));
            } else {
                self.draining.push((site, since));
            }
        }
    }

    /// An operator holds what is queued, at these nodes.
    fn hold(&mut self, Hold { nodes, lasts, .. }: Hold) {
        let database = self.database.borrow();
        let all = database.stored.entries.keys().map(|(_, id)| *id);
        let entries: Vec<EntryId> = all.filter(|id| ItemId::of_entry(*id).is_none()).collect();
        drop(database);
        if !entries.is_empty() {
            self.note(format!("an operator holds {entries:?} at {nodes:?}"));
            nodes.into_iter().for_each(|node| self.order(node, &entries, Act::Hold));
            self.releases.push((self.network.now + lasts, entries));
        }
    }

    /// What is due is released at all nodes, and in the end whatever is held.
    fn release(&mut self) {
        let now = self.network.now;
        let due: Vec<(Instant, Vec<EntryId>)> =
            self.releases.extract_if(.., |(at, _)| *at <= now).collect();
        let mut entries: Vec<EntryId> = due.into_iter().flat_map(|(_, entries)| entries).collect();
        if now > Instant(0) + CALM {
            let database = self.database.borrow();
            let held = database.stored.meta.get(node::operator::HELD);
            let held = held.into_iter().flat_map(|value| value.chunks_exact(8));
            let ids = held.filter_map(|id| id.try_into().ok());
            entries.extend(ids.map(|id| EntryId(u64::from_be_bytes(id))));
        }
        entries.truncate(MAX_HELD);
        if !entries.is_empty() {
            self.database.borrow_mut().holds.releases(self.last_request + 1, &entries);
            (0..self.world.gains.len()).for_each(|node| self.order(node, &entries, Act::Release));
        }
    }

    fn order(&mut self, node: usize, entries: &[EntryId], act: Act) {
        self.last_request += 2;
        let request = self.last_request + if act == Act::Release { RELEASES } else { 0 };
        let by = Operator::default();
        let entries = entries.to_vec();
        self.network.feed(NODES[node], Input::Operate { request, entries, act, by });
    }

    fn answers_of(&mut self, user: usize) {
        let answers = &self.network.users[user].answers;
        let (seen, _) = self.looked_at[user];
        if answers.len() == seen {
            return;
        }
        self.looked_at[user] = (answers.len(), self.network.now);
        let refused: Vec<usize> =
            (seen..answers.len()).filter(|at| answers[*at].is_err()).collect();
        for at in refused {
            let tag = self.network.users[user].answered[at];
            self.submit(self.submitted[user][tag]);
        }
    }

    fn bind(&mut self, user: usize) {
        let site = match site_of(user) {
            0 => NODES[self.rng.below(self.world.gains.len() as u64) as usize],
            site => site,
        };
        if !self.network.sites[site].is_down {
            self.looked_at[user].1 = self.network.now;
            self.was_bound[user] = false;
            self.network.bind(user, site);
        }
    }

    pub(super) fn name(&self, site: usize) -> String {
        match NODES.iter().position(|node| *node == site) {
            Some(number) => format!("n{}", number + 1),
            None => ["", "act", "relay"][site].to_owned(),
        }
    }

    fn trouble(&mut self, Trouble { node, fault, lasts, .. }: Trouble) {
        let (site, now) = (NODES[node], self.network.now);
        let name = self.name(site);
        self.note(format!("{name}: {fault:?} for {lasts:?}"));
        if self.network.sites[site].is_down && !matches!(fault, Fault::Foreign(_)) {
            return;
        }
        match fault {
            Fault::Kill => self.network.crash_for(site, lasts),
            Fault::Hang => self.network.sites[site].sleeps_until = now + lasts,
            Fault::CutOff => {
                if let Some(member) = self.network.sites[site].store.member() {
                    member.cut_until = now + lasts;
                }
            }
            Fault::Line(foreign) => {
                self.network.cut_between(site, foreign, None);
                let ends = (site.min(foreign), site.max(foreign));
                self.network.lines_down.insert(ends);
                self.lines.push((now + lasts, ends));
            }
            Fault::Drain => {
                self.network.feed(site, Input::Stop);
                if let Some(member) = self.network.sites[site].store.member() {
                    member.drains = true;
                }
                self.network.feed(site, Input::Tick);
                self.draining.push((site, now));
            }
            Fault::Foreign(site) => self.network.crash_as(site, Death::Process, 0),
            Fault::Moves(user) => {
                self.looked_at[user].1 = now;
                self.was_bound[user] = false;
                self.network.bind(user, site);
            }
        }
    }

    /// All submissions are answered, and nothing is queued anywhere.
    fn is_all_done(&self) -> bool {
        let accepted = |user: usize| {
            let u = &self.network.users[user];
            let answers = u.answered.iter().zip(&u.answers).filter(|(_, answer)| answer.is_ok());
            answers.map(|(tag, _)| self.submitted[user][*tag]).collect::<BTreeSet<usize>>()
        };
        let all = (0..USERS)
            .all(|user| self.submitted[user].iter().all(|index| accepted(user).contains(index)));
        let foreign = |site: &usize| match &self.network.sites[*site].store {
            SiteStore::Alone(store) => store.entries.is_empty(),
            SiteStore::Member(_) => true,
        };
        all && self.database.borrow().stored.entries.is_empty() && FOREIGN.iter().all(foreign)
    }
}
