//! Whole MTAs and their users in virtual time: connections that delay, divide, break and close; disks
//! that take their time; processes that die. One seed decides everything.

mod connections;
mod crash;
mod durable;
mod reader;
mod site;
mod store_user;
mod user;

use crate::edge;
use crate::sites::{self, NAMES, NAPLES, NOTHING, P3, Setup};
use crate::store::{Delays, FaultyStore, Reply};
use crate::wire::{Delayed, Wire};
use base::rng::Rng;
use base::{AssociationId, Instant, Now, Utc};
use connections::{Connection, Side};
use dscp::Dscp;
use node::changes::{Changes, EdgeChanges};
use node::config::{Channel, ListenerService, NodeConfig, Peer};
use node::{ChannelId, Input, ListenerId, Output, Principal};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

pub use crash::{Death, Strike};
pub use durable::{Durable, Follow, Opened};
pub use reader::{Reader, Row, Seen};
pub use site::Site;
pub use user::{Delivered, User};

/// One end of a connection. Numbers of associations begin again with each start of a process, and a
/// user binds more than once: what is still in progress to one end never reaches a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A site's, with its epoch.
    Node(usize, u32, AssociationId),
    /// A user's, with the count of binds.
    User(usize, u32),
    /// The one that a user has to the message store, with the count of binds.
    Store(usize, u32),
}

#[derive(Debug)]
enum Happening {
    Input(usize, u32, Input),
    Tick(usize),
    Commit(usize, u32),
    /// A process is started.
    Start(usize, u32),
    /// What the store of a site asked for is due.
    Store(usize, u64),
    /// The next part of the queue is read.
    Part(usize, u32),
    /// The edge looks at the room on the disk.
    Look(usize, u32),
    /// Something arrives at this side of a connection.
    Arrival(u64, Side),
    Closed(End),
    /// A connection reaches the listener of a site.
    Connected(u64, usize, ListenerId),
}

/// Makes a wire from the first site to the second.
pub type Lines = Box<dyn Fn(usize, usize) -> Box<dyn Wire>>;

/// The answer to an operator.
pub type Operated =
    Result<Vec<(base::EntryId, node::operator::ActOutcome)>, node::operator::ActError>;

/// Nodes, users and the connections between them. Each node has a store `S`.
pub struct Network<S = FaultyStore> {
    /// The time.
    pub now: Instant,
    /// The nodes, by number.
    pub sites: Vec<Site<S>>,
    /// The users, by number.
    pub users: Vec<User>,
    /// Decides what is left to chance.
    pub rng: Rng,
    /// Delay of every wire.
    pub latency: Duration,
    /// Delays of every disk.
    pub delays: Delays,
    /// Makes the wires of new connections.
    pub wire: fn() -> Box<dyn Wire>,
    /// Whether new connections between the sites can be made.
    pub line_up: bool,
    /// Behind the names of peers from the next start on.
    pub suffix: &'static str,
    /// The wall clock was set by so many microseconds.
    pub clock_set: i64,
    /// Channels, by index, on which no connection can be made.
    pub blocked: BTreeSet<u32>,
    /// Octets written to connections between the sites.
    pub carried: u64,
    /// Pairs of sites, the lower number first, between which no connection can be made.
    pub lines_down: BTreeSet<(usize, usize)>,
    /// From and to sites that are never called so.
    pub never_calls: BTreeSet<(usize, usize)>,
    /// Makes the wires of new connections between two sites, from the first to the second.
    pub lines: Option<Lines>,
    /// Whether sites see the marks of each other's handshakes.
    pub sees_marks: bool,
    /// Pairs of sites, the lower number first, between which a router removes the marks.
    pub bleached: BTreeSet<(usize, usize)>,
    /// Sites that are nodes of one: who calls the first of them gets one of all.
    pub nodes: BTreeMap<usize, Vec<usize>>,
    setup: Setup,
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    sequence: u64,
    connections: BTreeMap<u64, Connection>,
    made: u64,
    /// The ends that a connection has.
    ends: BTreeMap<End, (u64, Side)>,
}

impl Network {
    /// Two sites with this setup.
    pub fn pair(seed: u64, setup: Setup) -> Network {
        Network::new(2, &[(0, 1)], seed, setup)
    }

    /// Two sites with one channel for all, with these parameters.
    pub fn plain(seed: u64, rts: fn(&mut osi::api::RtseParameters)) -> Network {
        Network::pair(seed, Setup { rts, ..NOTHING })
    }

    /// Three sites, each of which has the others for peers.
    pub fn with_relay(seed: u64, setup: Setup) -> Network {
        Network::new(3, &[(0, 1), (0, 2), (1, 2)], seed, setup)
    }

    /// So many sites. Each knows those as peers to which it has a link.
    pub fn new(sites: usize, links: &[(usize, usize)], seed: u64, setup: Setup) -> Network {
        let stores = (0..sites).map(|_| FaultyStore::default()).collect();
        let mut network = Network::idle(stores, links, seed, setup);
        network.sites.iter_mut().for_each(|site| site.is_down = false);
        for site in 0..sites {
            network.feed(site, Input::Started);
        }
        network
    }

    /// Entries queued at a site, of any kind.
    pub fn queued(&self, site: usize) -> usize {
        self.sites[site].store.entries.len()
    }

    /// Nothing is left at any site: no entry, content or spool, and nothing in memory.
    ///
    /// # Panics
    /// Something is left.
    pub fn assert_empty(&self) {
        for (site, name) in self.sites.iter().zip(NAMES) {
            assert!(site.store.entries.is_empty(), "entries left at {name}");
            assert!(site.store.bodies.is_empty(), "contents left at {name}");
            assert!(site.store.spools.is_empty(), "spools left at {name}");
            let held = site.node.holds();
            assert_eq!((held.arrivals, held.pending, held.keys), (0, 0, 0), "{name}: {held:?}");
        }
    }
}

impl<S: Durable> Network<S> {
    /// A site for each of these stores, which are opened. Each knows those as peers to which it has a link.
    pub fn with_stores(
        stores: Vec<S>,
        links: &[(usize, usize)],
        seed: u64,
        setup: Setup,
    ) -> Network<S> {
        let mut network = Network::idle(stores, links, seed, setup);
        for site in 0..network.sites.len() {
            network.start(site);
        }
        network
    }

    /// Sites of these configurations, whose stores are opened. They have the names that a configuration of this
    /// crate has ([`crate::site_config`]).
    pub fn with_sites(sites: Vec<(NodeConfig, S)>, seed: u64) -> Network<S> {
        let mut network = Network::idle(Vec::new(), &[], seed, NOTHING);
        for (config, store) in sites {
            network.sites.push(Site::new(config, Vec::new(), store));
        }
        for site in 0..network.sites.len() {
            network.start(site);
        }
        network
    }

    /// No process runs yet.
    fn idle(stores: Vec<S>, links: &[(usize, usize)], seed: u64, setup: Setup) -> Network<S> {
        let mut network = Network {
            now: Instant(0),
            sites: Vec::new(),
            users: Vec::new(),
            rng: Rng::new(seed),
            latency: Duration::from_millis(5),
            delays: Delays::default(),
            wire: || Box::<Delayed>::default(),
            line_up: true,
            suffix: "",
            clock_set: 0,
            blocked: BTreeSet::new(),
            carried: 0,
            lines_down: BTreeSet::new(),
            never_calls: BTreeSet::new(),
            lines: None,
            sees_marks: false,
            bleached: BTreeSet::new(),
            nodes: BTreeMap::new(),
            setup,
            queue: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            sequence: 0,
            connections: BTreeMap::new(),
            made: 0,
            ends: BTreeMap::new(),
        };
        for (site, store) in stores.into_iter().enumerate() {
            let far = |&(a, b): &(usize, usize)| match site {
                near if near == a => Some(b),
                near if near == b => Some(a),
                _ => None,
            };
            let others: Vec<usize> = links.iter().filter_map(far).collect();
            let config = sites::config(site, 1, setup, "", &others);
            network.sites.push(Site::new(config, others, store));
        }
        network.sites.iter_mut().for_each(|site| site.renew(Now::default(), None));
        network
    }

    /// The time on both clocks.
    pub fn clock(&self) -> Now {
        let utc = (crate::NEW_YEAR + self.now.0).saturating_add_signed(self.clock_set);
        Now { mono: self.now, utc: Utc(utc) }
    }

    /// The time on both clocks of a site.
    pub fn clock_at(&self, site: usize) -> Now {
        let Now { mono, utc } = self.clock();
        let s = &self.sites[site];
        let local = s.local(mono);
        let utc = Utc((utc.0 + local.0 - mono.0).saturating_add_signed(s.clock_set));
        Now { mono: local, utc }
    }

    fn later(&mut self, delay: Duration, happening: Happening) {
        self.at(self.now + delay, happening);
    }

    fn at(&mut self, at: Instant, happening: Happening) {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence)));
        self.happenings.insert(self.sequence, happening);
    }

    /// Hands a node an input and carries out its outputs.
    pub fn feed(&mut self, site: usize, input: Input) {
        if self.sites[site].is_down {
            return;
        }
        if let Some(at) = self.sleeps(site) {
            return self.at(at, Happening::Input(site, self.sites[site].epoch, input));
        }
        self.before(site);
        self.step(site, input);
        self.follow(site);
    }

    /// When a process that is stopped continues.
    fn sleeps(&self, site: usize) -> Option<Instant> {
        Some(self.sites[site].sleeps_until).filter(|until| *until > self.now)
    }

    /// What comes before an input.
    fn before(&mut self, site: usize) {
        let now = self.clock_at(site);
        self.sites[site].store.before(now, &mut self.rng);
        self.follow(site);
    }

    /// Does what the store wants.
    fn follow(&mut self, site: usize) {
        while let Some(follow) = self.sites[site].store.follow() {
            match follow {
                Follow::Node(input) if !self.sites[site].is_down => self.step(site, input),
                Follow::Node(_) => {}
                Follow::Later(delay, number) => self.later(delay, Happening::Store(site, number)),
            }
        }
        if self.sites[site].store.deadline().is_some() {
            self.wake(site);
        }
    }

    fn step(&mut self, site: usize, input: Input) {
        let now = self.clock_at(site);
        if let Some(tape) = &mut self.sites[site].tape {
            tape.input(now, &input);
        }
        self.sites[site].node.handle(now, input);
        self.drain(site);
        self.pass_with_peers(site);
    }

    /// Who drives a node passes on which peers have associations with it.
    fn pass_with_peers(&mut self, site: usize) {
        let now = self.clock_at(site);
        let s = &mut self.sites[site];
        if !s.is_down
            && let Some(found) = s.node.take_with_peers()
        {
            s.store.with_peers(now, found, &mut self.rng);
        }
    }

    /// Carries out the node's outputs, and notes its deadline.
    fn drain(&mut self, site: usize) {
        while let Some(output) = self.sites[site].node.poll() {
            if let Some(tape) = &mut self.sites[site].tape {
                tape.output(&output);
            }
            let counts = !matches!(output, Output::Event(_));
            self.carry_out(site, output);
            if self.has_ended(site) || counts && self.is_struck(site) {
                return;
            }
        }
        if let Some(tape) = &mut self.sites[site].tape {
            tape.step_ended();
        }
        self.wake(site);
    }

    fn deadline(&self, site: usize) -> Option<Instant> {
        let s = &self.sites[site];
        [s.node.deadline(), s.store.deadline()].into_iter().flatten().min()
    }

    fn wake(&mut self, site: usize) {
        if let Some(at) = self.deadline(site) {
            let at = self.sites[site].real(at);
            self.at(at.max(self.now + Duration::from_micros(1)), Happening::Tick(site));
        }
    }

    fn end(&self, site: usize, association: AssociationId) -> End {
        End::Node(site, self.sites[site].epoch, association)
    }

    fn answer(&mut self, site: usize, delay: Duration, input: Input) {
        let epoch = self.sites[site].epoch;
        self.later(delay, Happening::Input(site, epoch, input));
    }

    fn carry_out(&mut self, site: usize, output: Output) {
        let (now, epoch) = (self.clock_at(site), self.sites[site].epoch);
        let s = &mut self.sites[site];
        let delays = s.delays.unwrap_or(self.delays);
        let output = match s.store.handle(now, &delays, &mut self.rng, output) {
            Ok(Reply::None) => return,
            Ok(Reply::After(delay, input)) => return self.answer(site, delay, input),
            Ok(Reply::Commit(delay)) => return self.later(delay, Happening::Commit(site, epoch)),
            Err(output) => output,
        };
        match output {
            Output::Connect { association, channel } => self.connect(site, association, channel),
            Output::Write { association, bytes } => self.send(self.end(site, association), bytes),
            Output::Measure { association } => self.measure(site, association),
            Output::Close { association } => self.close(self.end(site, association)),
            Output::Drop { association } => self.drop_end(self.end(site, association)),
            Output::Verify { token, principal, password } => {
                let right = self.is_right(site, &principal, &password.0);
                self.answer(site, Duration::from_micros(50), Input::Verified { token, right });
            }
            Output::ChangePassword { token, mailbox, .. } => {
                let changed = Input::PasswordChanged { token, mailbox, result: Ok(()) };
                self.answer(site, Duration::from_micros(50), changed);
            }
            Output::Event(event) => self.sites[site].events.push((self.now, *event)),
            Output::Operated { request, result } => {
                self.sites[site].operated.push((request, result));
            }
            Output::Purged { request, result } => {
                self.sites[site].purged.push((request, result));
            }
            Output::ListsChanged { request, result } => {
                self.sites[site].lists_changed.push((request, result));
            }
            Output::Stopped => self.sites[site].stopped = true,
            // The store has taken all others.
            _ => {}
        }
    }

    fn is_right(&self, site: usize, principal: &Principal, password: &[u8]) -> bool {
        match principal {
            Principal::Peer(_) if self.sites[site].distrusts => false,
            Principal::Peer(id) => {
                let peer = self.sites[site].config.peer(*id);
                let expected = |mta| sites::password(sites::site_of(mta));
                peer.is_some_and(|peer| password == expected(&peer.mta).as_bytes())
            }
            Principal::User(_) => password == b"secret",
        }
    }

    /// Makes a commit that is due: durable first, answered at once.
    fn commit(&mut self, site: usize) {
        if self.sites[site].store.is_stuck() {
            let again = Happening::Commit(site, self.sites[site].epoch);
            return self.later(Duration::from_secs(1), again);
        }
        let (now, epoch) = (self.clock_at(site), self.sites[site].epoch);
        for input in self.sites[site].store.commit(now, &mut self.rng) {
            // With the power, the answers are lost; what a store refuses is answered before the end.
            if self.sites[site].epoch == epoch && !self.sites[site].store.is_off() {
                self.feed(site, input);
            }
        }
        if !self.has_ended(site) && self.sites[site].epoch == epoch {
            self.sites[site].store.tidy(now);
            self.has_ended(site);
        }
    }

    /// Another configuration for a site. Its listeners follow its channels.
    pub fn configure(
        &mut self,
        site: usize,
        change: impl FnOnce(&mut NodeConfig),
        edge: EdgeChanges,
    ) -> Changes {
        let mut config = self.sites[site].config.clone();
        change(&mut config);
        sites::listen(&mut config);
        self.configure_as(site, config, edge)
    }

    /// This configuration for a site, as it is.
    pub fn configure_as(&mut self, site: usize, config: NodeConfig, edge: EdgeChanges) -> Changes {
        let changes = self.sites[site].node.changes(&config, &edge);
        self.sites[site].config = config.clone();
        self.feed(site, Input::Configure { config: Box::new(config), edge });
        changes
    }

    /// The site that a channel leads to, and its listener for the channel of that name.
    fn listener_for(&mut self, site: usize, channel: ChannelId) -> Option<(usize, ListenerId)> {
        let called = sites::site_of(&self.sites[site].config.peer(channel.peer)?.mta);
        let there = self.node_of(called);
        let own = &self.sites[site].config;
        let name = &own.channel(channel)?.1.name;
        let other = &self.sites[there].config;
        let found = other.listeners.iter().find(|listener| match listener.service {
            ListenerService::P1 { peer, channel: index } => {
                other.peer(peer).is_some_and(|peer| peer.mta == own.mta)
                    && other
                        .channel(ChannelId { peer, index })
                        .is_some_and(|(_, channel)| channel.name == *name)
            }
            ListenerService::P3 { .. } | ListenerService::P7 { .. } => false,
        });
        found.map(|listener| (there, listener.id))
    }

    /// Which node of a site is called.
    fn node_of(&mut self, site: usize) -> usize {
        let Some(nodes) = self.nodes.get(&site) else { return site };
        nodes[self.rng.below(nodes.len() as u64) as usize]
    }

    fn connect(&mut self, site: usize, association: AssociationId, id: ChannelId) {
        let free =
            self.line_up && self.sites[site].may_connect && !self.blocked.contains(&id.index);
        let there = self.listener_for(site, id).filter(|(other, _)| {
            !self.sites[*other].is_down
                && !self.lines_down.contains(&pair(site, *other))
                && !self.never_calls.contains(&(site, *other))
        });
        match there.filter(|_| free) {
            Some((other, listener)) => {
                let end = self.end(site, association);
                self.open(end, other, listener, Some((site, id.index)));
            }
            None => {
                let error = "no route to host".to_owned();
                self.answer(site, self.latency, Input::ConnectFailed { association, error });
            }
        }
    }

    pub(crate) fn connect_user(&mut self, user: usize, site: usize) {
        self.open(self.users[user].end, site, P3, None);
    }

    fn connected(&mut self, id: u64, site: usize, listener: ListenerId) {
        if !self.connections.contains_key(&id) {
            return;
        }
        if self.sites[site].is_down {
            return self.lose(id);
        }
        if let Some(at) = self.sleeps(site) {
            return self.at(at, Happening::Connected(id, site, listener));
        }
        self.before(site);
        let (now, remote) = (self.clock_at(site), "192.0.2.1".parse().expect("an address"));
        let s = &mut self.sites[site];
        let (there, events) = edge::accept(&mut s.node, s.tape.as_mut(), now, listener, remote);
        let events = events.into_iter().map(|event| (self.now, event));
        self.sites[site].events.extend(events);
        let there = there.expect("a socket is free");
        let near = self.attach(id, self.end(site, there)).expect("the connection is there");
        self.drain(site);
        match near {
            End::Node(from, _, association) => {
                let marks = self.sees_marks.then(|| self.marks(id, from, site, listener));
                if let Some((_, dscp)) = marks {
                    self.feed(site, Input::MarkSeen { association: there, dscp });
                }
                self.feed(from, Input::Connected { association });
                if let Some((dscp, _)) = marks {
                    self.feed(from, Input::MarkSeen { association, dscp });
                }
            }
            End::User(..) => self.user_connected(near),
            End::Store(..) => self.reader_connected(near),
        }
    }

    /// The marks of a handshake, as the edges set them: what the one that connected sees, and the other one.
    fn marks(&self, id: u64, from: usize, site: usize, listener: ListenerId) -> (Dscp, Dscp) {
        let (near, far) = (&self.sites[from].config, &self.sites[site].config);
        let listens = far.listeners.iter().find(|one| one.id == listener);
        let channel = listens.and_then(|listener| match listener.service {
            ListenerService::P1 { peer, channel: index } => Some(ChannelId { peer, index }),
            _ => None,
        });
        let theirs = channel.and_then(|channel| far.channel(channel));
        let peer = near.peers.iter().find(|peer| peer.mta == far.mta).map(Peer::id);
        let index = self.connections.get(&id).and_then(|connection| connection.channel);
        let channel = peer.zip(index).map(|(peer, index)| ChannelId { peer, index });
        let ours = channel.and_then(|channel| near.channel(channel));
        let mark =
            |channel: Option<(&Peer, &Channel)>| match self.bleached.contains(&pair(from, site)) {
                true => Dscp::CS0,
                false => channel.map_or(Dscp::CS0, |(_, channel)| channel.dscp),
            };
        (mark(theirs), mark(ours))
    }

    /// Runs until nothing is due before `until`.
    pub fn run_until(&mut self, until: Instant) {
        let mut steps = 0u32;
        while let Some(Reverse((at, sequence))) = self.queue.peek().copied()
            && at <= until
        {
            self.queue.pop();
            self.now = self.now.max(at);
            let Some(happening) = self.happenings.remove(&sequence) else { continue };
            self.happen(happening);
            steps += 1;
            assert!(steps < 4_000_000, "the network does not come to rest");
        }
        self.now = until;
    }

    /// Runs for so long.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Input(site, epoch, input) => {
                // An answer to a process that died meanwhile goes nowhere.
                if self.sites[site].epoch == epoch {
                    self.feed(site, input);
                }
            }
            Happening::Commit(site, epoch) => {
                if self.sites[site].epoch == epoch {
                    self.commit(site);
                }
            }
            Happening::Start(site, epoch) => {
                if self.sites[site].epoch == epoch && self.sites[site].is_down {
                    self.start(site);
                }
            }
            Happening::Part(site, epoch) => {
                if self.sites[site].epoch == epoch {
                    self.part(site, epoch);
                }
            }
            Happening::Look(site, epoch) => {
                if self.sites[site].epoch == epoch {
                    self.look(site, epoch);
                }
            }
            Happening::Store(site, number) => self.store_happens(site, number),
            Happening::Tick(site) => {
                let s = &self.sites[site];
                let local = s.local(self.now);
                if !s.is_down && self.deadline(site).is_some_and(|at| at <= local) {
                    self.feed(site, Input::Tick);
                }
            }
            Happening::Arrival(connection, side) => self.arrive(connection, side),
            Happening::Closed(end) => self.closed(end),
            Happening::Connected(connection, site, listener) => {
                self.connected(connection, site, listener);
            }
        }
    }

    fn store_happens(&mut self, site: usize, number: u64) {
        let its = self.sites[site].store.is_for_process(number);
        if let Some(at) = self.sleeps(site).filter(|_| its) {
            return self.at(at, Happening::Store(site, number));
        }
        let (real, now) = (self.now, self.clock_at(site));
        self.sites[site].store.happen(real, now, number, &mut self.rng);
        self.follow(site);
    }

    /// How many channels join the first two sites.
    pub fn channels(&self) -> u32 {
        self.sites[NAPLES].config.peers[0].channels.len() as u32
    }
}

/// Two sites, the lower number first.
pub(crate) fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}
