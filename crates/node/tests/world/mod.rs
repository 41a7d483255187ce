//! Two or three whole MTAs and their users in virtual time: pipes that delay, divide, cut and close; disks
//! that take their time; processes that die. One seed decides everything.

mod user;

use base::rng::Rng;
use base::{AssociationId, EntryId, Instant, Now, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, Op};
use node::changes::{Changes, EdgeChanges};
use node::config::{
    Channel, Connection, HoldPolicy, Limits, Listener, ListenerService, NodeConfig, Peer, Route,
    Target,
};
use node::event::Event;
use node::{ChannelId, Input, ListenerId, Node, Output, Principal, Secret, Token};
use osi::api::{Dialogue, RtseParameters, Selectors};
use p1::names::{GlobalDomainId, MtaName};
use sim::Store;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

pub(crate) use user::{Delivered, User};

pub(crate) const NAPLES: usize = 0;
pub(crate) const ACT: usize = 1;
/// Of [`World::with_relay`] only.
pub(crate) const RELAY: usize = 2;

/// The number of the first pipe that comes: those of associations are below.
const COMING: u64 = 1 << 32;

const NAMES: [&str; 3] = ["naples", "act", "relay"];

/// One end of a pipe. Numbers of associations begin again with each start of a process, and a user
/// binds more than once: what is still under way to one end never reaches a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// A site's, with its epoch.
    Node(usize, u32, AssociationId),
    /// A user's, with its count of binds.
    User(usize, u32),
}

/// How a process ends without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// With its machine: what was written and has not arrived is lost.
    Power,
    /// Alone: its kernel sends what was written, and closes.
    Process,
}

/// A crash to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strike {
    /// After so many outputs of the site, from the world's beginning; events do not count.
    pub(crate) after: u64,
    pub(crate) death: Death,
    /// Whether the disk makes what was asked of it, without anyone being told.
    pub(crate) commits: bool,
}

#[derive(Debug)]
enum Happening {
    Input(usize, u32, Input),
    Tick(usize),
    Commit(usize, u32),
    Bytes(End, Bytes),
    Closed(End),
    Connected(End, End, ListenerId),
}

/// What an operator is answered.
pub(crate) type Operated =
    Result<Vec<(EntryId, node::operator::Outcome)>, node::operator::HoldError>;

pub(crate) struct Site {
    pub(crate) node: Node,
    pub(crate) store: Store,
    /// How often it was started.
    pub(crate) epoch: u32,
    pub(crate) events: Vec<(Instant, Event)>,
    pub(crate) stopped: bool,
    /// What operators were answered.
    pub(crate) operated: Vec<(u64, Operated)>,
    /// Outputs so far, of all its processes; events do not count.
    pub(crate) outputs: u64,
    /// Records its processes had read.
    pub(crate) loads: u64,
    /// When it crashes, in order.
    pub(crate) strikes: VecDeque<Strike>,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) sites: Vec<Site>,
    pub(crate) users: Vec<User>,
    pub(crate) rng: Rng,
    /// Delay of every pipe.
    pub(crate) latency: Duration,
    /// Delay of every sync and commit; each takes up to `slow` longer.
    pub(crate) disk: Duration,
    pub(crate) slow: Duration,
    /// Delay of every read of a content.
    pub(crate) reading: Duration,
    /// Commits asked for and not made yet, by site, in order.
    commits: [VecDeque<(Token, Batch)>; 3],
    /// The precedences of the look-ups and commits asked for, by site.
    pub(crate) asked: [Vec<Precedence>; 3],
    /// Whether new pipes between the sites can be made.
    pub(crate) link_up: bool,
    /// Sites that find every password of a peer wrong.
    pub(crate) distrusts: [bool; 2],
    /// Sites whose process hangs: what is sent to them is lost on the way.
    pub(crate) frozen: [bool; 2],
    /// Put behind the names of peers at the next start.
    pub(crate) suffix: &'static str,
    /// Which sites may open connections to the other.
    pub(crate) may_connect: [bool; 2],
    /// Whether commits fail: nothing of them happens, and their spools stay.
    pub(crate) disk_full: [bool; 2],
    /// A disk that does not answer.
    pub(crate) disk_stuck: [bool; 2],
    /// By so many microseconds the wall clock was set.
    pub(crate) clock_set: i64,
    /// Channels, by index, on which no pipe can be made.
    pub(crate) blocked: BTreeSet<u32>,
    /// Octets that went over pipes between the sites.
    pub(crate) carried: u64,
    /// Octets of content that the sites had read, to be sent.
    pub(crate) read: [u64; 3],
    setup: Setup,
    /// What the sites are configured with now.
    pub(crate) configs: Vec<NodeConfig>,
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    what: BTreeMap<u64, Happening>,
    sequence: u64,
    pipes: BTreeMap<End, End>,
    /// Pipes that came to a site.
    comings: u64,
    /// The channel of a pipe between the sites.
    channels: BTreeMap<End, u32>,
    /// When the last octets sent toward an end arrive: order is kept.
    arrives: BTreeMap<End, Instant>,
}

/// What a test changes of the two configurations.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) rts: fn(&mut RtseParameters),
    /// For both sites; listeners follow the channels.
    pub(crate) node: fn(&mut NodeConfig),
}

/// The listener of P3; channel `n` has the one after it.
pub(crate) const P3: ListenerId = ListenerId(0);

pub(crate) fn address(site: usize, surname: &str) -> String {
    format!("/C=XX/ADMD=NATO/PRMD={}/S={surname}", NAMES[site].to_uppercase())
}

fn canonical(text: &str) -> String {
    engine::canonical(&text.parse().expect("an address"))
}

/// All addresses of a site lead there.
pub(crate) fn route(site: usize, to: Target) -> Route {
    let prefix = format!("/C=XX/ADMD=NATO/PRMD={}", NAMES[site].to_uppercase());
    Route { prefix: prefix.parse().expect("an address"), to }
}

/// Another site, as one of the peers of this one.
pub(crate) fn peer(site: usize, other: usize, setup: Setup, suffix: &str) -> Peer {
    let mut rts = RtseParameters {
        checkpoint_size: 4,
        window: 3,
        dialogue: Dialogue::Monologue,
        indefinite_lengths: false,
        transfer_timeout: Duration::from_secs(30),
        longest_pause: Duration::ZERO,
    };
    (setup.rts)(&mut rts);
    Peer {
        name: format!("{}{suffix}", NAMES[other]),
        mta: MtaName(NAMES[other].to_uppercase()),
        own_name: MtaName(NAMES[site].to_uppercase()),
        own_password: Secret(Bytes::from(format!("from-{}", NAMES[site]))),
        octet_credentials: site == 1,
        from: Vec::new(),
        addresses: Vec::new(),
        dialect: p1::Dialect::Modern,
        local: Selectors::default(),
        remote: Selectors::default(),
        tpdu_size: None,
        resume: node::config::Resume::Initiator,
        content_max: None,
        message_aborts: node::config::MESSAGE_ABORTS,
        channels: vec![Channel {
            index: 0,
            name: "all".to_owned(),
            precedences: Precedence::ALL.to_vec(),
            dscp: dscp::Dscp::CS3,
            fallback: Vec::new(),
            connection: Connection::OnDemand { idle_close: Duration::from_secs(60) },
            reopen: node::config::Reopen::default(),
            associations_max: 2,
            grow_at: 3,
            associations_keep: Duration::from_secs(10),
            minimize: None,
            rts,
            checkpoint_adapts: false,
            setup_timeout: Duration::from_secs(10),
        }],
    }
}

fn config(site: usize, epoch: u32, setup: Setup, suffix: &str) -> NodeConfig {
    // The relay knows both; the others get to know it from who wants it.
    let others = if site == RELAY { vec![NAPLES, ACT] } else { vec![1 - site] };
    let peers: Vec<Peer> = others.iter().map(|other| peer(site, *other, setup, suffix)).collect();
    let to = others.iter().zip(&peers).map(|(other, peer)| route(*other, Target::Peer(peer.id())));
    let mut config = NodeConfig {
        mta: MtaName(NAMES[site].to_uppercase()),
        domain: GlobalDomainId::new("XX", "NATO", Some(&NAMES[site].to_uppercase())),
        listeners: vec![Listener {
            id: P3,
            service: ListenerService::P3 { local: Selectors::default() },
        }],
        routes: std::iter::once(route(site, Target::Local)).chain(to).collect(),
        peers,
        mailboxes: ["OPS", "LOG"].map(|s| canonical(&address(site, s))).to_vec(),
        classify: engine::classify::Policy::default(),
        hold: HoldPolicy::default(),
        times: Default::default(),
        minimize: None,
        limits: Limits::default(),
        seed: 7,
        epoch,
    };
    (setup.node)(&mut config);
    listen(&mut config);
    config
}

/// Of the relay nothing of the kind is asked.
fn is(of: [bool; 2], site: usize) -> bool {
    of.get(site).copied().unwrap_or(false)
}

/// The site of this name.
fn site_of(mta: &MtaName) -> usize {
    NAMES.iter().position(|name| name.to_uppercase() == mta.0).expect("a site")
}

/// Listeners for all channels, after that of P3.
fn listen(config: &mut NodeConfig) {
    let own = site_of(&config.mta);
    for peer in &config.peers {
        // The other one of two sites has the first numbers.
        let other = site_of(&peer.mta);
        let from = if own + other == 1 { 0 } else { 1_000 * (1 + other as u32) };
        config.listeners.extend(peer.channels().map(|(ChannelId { peer, index }, _)| Listener {
            id: ListenerId(P3.0 + 1 + from + index),
            service: ListenerService::P1 { peer, channel: index },
        }));
    }
}

/// A record as it is on disk, of a Routine of 1,000 octets that waits for a peer.
pub(crate) fn queued_record() -> engine::Record {
    let mut world = World::with(3, Setup { rts: |_| {}, node: five_channels });
    world.link_up = false;
    world.cut();
    let sender = world.user(NAPLES, "OPS", true);
    world.bind(sender, NAPLES);
    world.run_for(Duration::from_secs(1));
    let (routine, to) = (Precedence::Routine, [address(ACT, "OPS")]);
    let none = p1::flags::ReportRequest::None;
    world.submit(sender, &to, routine, &[1; 1_000], "MESSAGE 1", none);
    world.run_for(Duration::from_secs(1));
    let octets = world.sites[NAPLES].store.entries.values().next().expect("it is queued");
    engine::Record::decode(octets).expect("a record")
}

/// The configuration of a site, changed so.
pub(crate) fn node_config(site: usize, node: fn(&mut NodeConfig)) -> NodeConfig {
    config(site, 1, Setup { rts: |_| {}, node }, "")
}

/// The published study's channels: one for each precedence, Deferred with Routine.
pub(crate) fn five_channels(config: &mut NodeConfig) {
    let schedules: [&[Precedence]; 5] = [
        &Precedence::ALL[..2],
        &Precedence::ALL[2..3],
        &Precedence::ALL[3..4],
        &Precedence::ALL[4..5],
        &Precedence::ALL[5..],
    ];
    let names = ["routine", "priority", "immediate", "flash", "override"];
    let model = config.peers[0].channels[0].clone();
    let channels = (0..).zip(schedules.iter().zip(names)).map(|(index, (schedule, name))| {
        let mut channel = model.clone();
        channel.index = index;
        channel.name = name.to_owned();
        channel.precedences = schedule.to_vec();
        channel.connection = Connection::Permanent;
        channel.associations_max = 1;
        channel
    });
    config.peers[0].channels = channels.collect();
}

impl World {
    /// Two sites with one channel for all.
    pub(crate) fn new(seed: u64, rts: fn(&mut RtseParameters)) -> World {
        World::with(seed, Setup { rts, node: |_| {} })
    }

    pub(crate) fn with(seed: u64, setup: Setup) -> World {
        World::of(&[NAPLES, ACT], seed, setup)
    }

    /// With a third site, by which each of the two others can reach the other. Their routes do not
    /// lead there as long as nobody says so.
    pub(crate) fn with_relay(seed: u64, setup: Setup) -> World {
        let mut world = World::of(&[NAPLES, ACT, RELAY], seed, setup);
        for site in [NAPLES, ACT] {
            let relay = peer(site, RELAY, setup, "");
            world.configure(site, |config| config.peers.push(relay), EdgeChanges::default());
        }
        world
    }

    fn of(sites: &[usize], seed: u64, setup: Setup) -> World {
        let mut world = World {
            now: Instant(0),
            sites: Vec::new(),
            users: Vec::new(),
            rng: Rng::new(seed),
            latency: Duration::from_millis(5),
            disk: Duration::from_millis(2),
            slow: Duration::ZERO,
            reading: Duration::from_micros(50),
            commits: Default::default(),
            asked: Default::default(),
            link_up: true,
            distrusts: [false; 2],
            frozen: [false; 2],
            suffix: "",
            may_connect: [true; 2],
            disk_full: [false; 2],
            disk_stuck: [false; 2],
            clock_set: 0,
            blocked: BTreeSet::new(),
            carried: 0,
            read: [0; 3],
            setup,
            configs: sites.iter().map(|site| config(*site, 1, setup, "")).collect(),
            queue: BinaryHeap::new(),
            what: BTreeMap::new(),
            sequence: 0,
            pipes: BTreeMap::new(),
            comings: 0,
            channels: BTreeMap::new(),
            arrives: BTreeMap::new(),
        };
        for &site in sites {
            let node = Node::new(world.configs[site].clone());
            let store = Store::default();
            world.sites.push(Site {
                node,
                store,
                epoch: 1,
                events: Vec::new(),
                stopped: false,
                operated: Vec::new(),
                outputs: 0,
                loads: 0,
                strikes: VecDeque::new(),
            });
        }
        for &site in sites {
            world.feed(site, Input::Started);
        }
        world
    }

    pub(crate) fn clock(&self) -> Now {
        // Some day in 2026.
        let utc = (1_767_225_600_000_000 + self.now.0).saturating_add_signed(self.clock_set);
        Now { mono: self.now, utc: Utc(utc) }
    }

    fn later(&mut self, delay: Duration, what: Happening) {
        self.at(self.now + delay, what);
    }

    fn at(&mut self, at: Instant, what: Happening) {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence)));
        self.what.insert(self.sequence, what);
    }

    /// Hands a node an input and carries out what it wants.
    pub(crate) fn feed(&mut self, site: usize, input: Input) {
        let now = self.clock();
        self.sites[site].node.handle(now, input);
        while let Some(output) = self.sites[site].node.poll() {
            let counts = !matches!(output, Output::Event(_));
            self.carry_out(site, output);
            if counts && self.is_struck(site) {
                return;
            }
        }
        if let Some(at) = self.sites[site].node.deadline() {
            self.at(at.max(self.now + Duration::from_micros(1)), Happening::Tick(site));
        }
    }

    /// Counts an output, and crashes the site if it is time.
    fn is_struck(&mut self, site: usize) -> bool {
        let s = &mut self.sites[site];
        s.outputs += 1;
        let due = s.strikes.front().is_some_and(|strike| strike.after <= s.outputs);
        let Some(strike) = s.strikes.pop_front_if(|_| due) else { return false };
        let made = if strike.commits { usize::MAX } else { 0 };
        self.crash_as(site, strike.death, made);
        true
    }

    fn end(&self, site: usize, association: AssociationId) -> End {
        End::Node(site, self.sites[site].epoch, association)
    }

    fn answer(&mut self, site: usize, delay: Duration, input: Input) {
        let epoch = self.sites[site].epoch;
        self.later(delay, Happening::Input(site, epoch, input));
    }

    fn carry_out(&mut self, site: usize, output: Output) {
        let quick = Duration::from_micros(50);
        match output {
            Output::Connect { association, channel } => {
                self.connect(site, association, channel);
            }
            Output::Admitted { connection, association } => {
                let association = association.expect("a socket is free");
                self.admitted(site, connection, association);
            }
            Output::Write { association, bytes } => {
                self.send(self.end(site, association), bytes);
            }
            Output::Measure { .. } => {} // nothing waits in a connection here
            Output::Close { association } => self.close(self.end(site, association)),
            Output::Drop { association } => self.drop_now(self.end(site, association)),
            Output::SpoolOpen { spool } => {
                self.sites[site].store.open(spool).expect("a new spool");
            }
            Output::SpoolAppend { spool, bytes, .. } => {
                self.sites[site].store.append(spool, &bytes).expect("a spool that is open");
            }
            Output::SpoolSync { spool, token, .. } => {
                let stored = self.sites[site].store.spooled(spool).expect("a spool that is open");
                let delay = self.disk_delay();
                self.answer(site, delay, Input::Synced { spool, token, result: Ok(stored) });
            }
            Output::SpoolDiscard { spool } => {
                self.sites[site].store.discard(spool).expect("a spool that is open");
            }
            Output::Commit { token, precedence, batch } => {
                self.commits[site].push_back((token, batch));
                self.asked[site].push(precedence);
                let delay = self.disk_delay();
                let epoch = self.sites[site].epoch;
                self.later(delay, Happening::Commit(site, epoch));
            }
            Output::Load { token, precedence, id } => {
                self.sites[site].loads += 1;
                let record = self.sites[site].store.entries.get(&(precedence, id)).cloned();
                self.answer(site, quick, Input::Loaded { token, result: Ok(record) });
            }
            Output::LookUp { token, precedence, keys } => {
                self.asked[site].push(precedence);
                let found = self.sites[site].store.look_up(&keys, self.clock().utc);
                // As stale as can be: read now, told later.
                let delay = self.disk_delay();
                self.answer(site, delay, Input::LookedUp { token, result: Ok(found) });
            }
            Output::ForgetSeen { token, before, most } => {
                let forget = vec![Op::ForgetSeen { before, most }];
                self.sites[site].store.apply(forget).expect("nothing but keys forgotten");
                let result = Ok(self.sites[site].store.has_expired_keys(before));
                let delay = self.disk_delay();
                self.answer(site, delay, Input::Forgot { token, result });
            }
            Output::ReadContent { token, body, offset, len, .. } => {
                self.read[site] += len as u64;
                let piece = self.sites[site].store.read(body, offset, len).expect("a content");
                self.answer(site, self.reading, Input::Content { token, result: Ok(piece) });
            }
            Output::Verify { token, principal, password } => {
                let right = match principal {
                    Principal::Peer(_) if is(self.distrusts, site) => false,
                    Principal::Peer(id) => {
                        let peer = self.configs[site].peer(id);
                        let name = |p: &Peer| NAMES[site_of(&p.mta)];
                        peer.is_some_and(|p| password.0 == format!("from-{}", name(p)))
                    }
                    Principal::User(address) => {
                        password.0 == "secret" && self.sites[site].node_knows(&address)
                    }
                };
                self.answer(site, quick, Input::Verified { token, right });
            }
            Output::Event(event) => self.sites[site].events.push((self.now, event)),
            Output::ChannelConnected { .. } => {}
            Output::Operated { request, result } => {
                self.sites[site].operated.push((request, result));
            }
            Output::Stopped => self.sites[site].stopped = true,
        }
    }

    fn disk_delay(&mut self) -> Duration {
        let more = self.rng.below(self.slow.as_micros() as u64 + 1);
        // Mostly quick, now and then slow.
        let more = if self.rng.below(4) == 0 { more } else { 0 };
        self.disk + Duration::from_micros(more)
    }

    /// Makes the oldest commit asked for: durable first, told at once.
    fn commit(&mut self, site: usize) {
        if is(self.disk_stuck, site) {
            let again = Happening::Commit(site, self.sites[site].epoch);
            return self.later(Duration::from_secs(1), again);
        }
        // In any order: a commit that waits for a file's sync lets others pass.
        let waiting = self.commits[site].len() as u64;
        let next = self.rng.below(waiting.max(1)) as usize;
        let Some((token, batch)) = self.commits[site].remove(next) else { return };
        let result = if is(self.disk_full, site) {
            Err("no space left on device".to_owned())
        } else {
            self.sites[site].store.apply(batch).expect("a sound batch");
            Ok(())
        };
        let result = result.map_err(node::EdgeError);
        self.feed(site, Input::Committed { token, result });
    }

    /// Another configuration for a site. Its listeners follow its channels.
    pub(crate) fn configure(
        &mut self,
        site: usize,
        change: impl FnOnce(&mut NodeConfig),
        edge: EdgeChanges,
    ) -> Changes {
        let mut config = self.configs[site].clone();
        change(&mut config);
        config.listeners.truncate(1);
        listen(&mut config);
        let changes = self.sites[site].node.changes(&config, &edge);
        self.configs[site] = config.clone();
        self.feed(site, Input::Configure { config: Box::new(config), edge });
        changes
    }

    /// The site that a channel leads to, and its listener for the channel of that name.
    fn listener_for(&self, site: usize, channel: ChannelId) -> Option<(usize, ListenerId)> {
        let own = &self.configs[site];
        let name = &own.channel(channel)?.1.name;
        let there = site_of(&own.peer(channel.peer)?.mta);
        let other = &self.configs[there];
        let found = other.listeners.iter().find(|listener| match listener.service {
            ListenerService::P1 { peer, channel: index } => {
                other.peer(peer).is_some_and(|peer| peer.mta == own.mta)
                    && other
                        .channel(ChannelId { peer, index })
                        .is_some_and(|(_, c)| c.name == *name)
            }
            ListenerService::P3 { .. } => false,
        });
        found.map(|listener| (there, listener.id))
    }

    fn connect(&mut self, site: usize, association: AssociationId, id: ChannelId) {
        let channel = id.index;
        let listener = self.listener_for(site, id).filter(|_| {
            self.link_up
                && self.may_connect.get(site).is_none_or(|may| *may)
                && !self.blocked.contains(&channel)
        });
        let Some((other, listener)) = listener else {
            let error = "no route to host".to_owned();
            return self.answer(site, self.latency, Input::ConnectFailed { association, error });
        };
        let (a, b) = (self.end(site, association), self.coming(other));
        self.join(a, b);
        self.channels.extend([(a, channel), (b, channel)]);
        self.later(self.latency, Happening::Connected(a, b, listener));
    }

    /// The end of a pipe that a site has not accepted yet.
    fn coming(&mut self, site: usize) -> End {
        self.comings += 1;
        self.end(site, AssociationId(COMING + self.comings))
    }

    /// A site accepted the pipe of this number.
    fn admitted(&mut self, site: usize, connection: u64, association: AssociationId) {
        let coming = self.end(site, AssociationId(connection));
        let Some(other) = self.pipes.remove(&coming) else { return };
        let end = self.end(site, association);
        self.join(other, end);
        if let Some(channel) = self.channels.remove(&coming) {
            self.channels.insert(end, channel);
        }
    }

    pub(crate) fn join(&mut self, a: End, b: End) {
        self.pipes.insert(a, b);
        self.pipes.insert(b, a);
    }

    /// Octets from one end arrive at the other later, divided at random.
    pub(crate) fn send(&mut self, from: End, bytes: Bytes) {
        let Some(to) = self.pipes.get(&from).copied() else { return };
        if let (End::Node(..), End::Node(..)) = (from, to) {
            self.carried += bytes.len() as u64;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let cut = match self.rng.below(4) {
                0 => 1 + self.rng.below(rest.len().min(40) as u64) as usize,
                _ => rest.len(),
            };
            let piece = rest.split_to(cut);
            let jitter = Duration::from_micros(self.rng.below(500));
            let at = (self.now + self.latency + jitter)
                .max(self.arrives.get(&to).copied().unwrap_or_default());
            self.arrives.insert(to, at);
            self.at(at, Happening::Bytes(to, piece));
        }
    }

    /// One end closes: both hear of it, the other after what was sent.
    pub(crate) fn close(&mut self, end: End) {
        self.later(Duration::from_micros(10), Happening::Closed(end));
        if let Some(to) = self.pipes.get(&end).copied() {
            let at =
                (self.now + self.latency).max(self.arrives.get(&to).copied().unwrap_or_default());
            self.at(at, Happening::Closed(to));
        }
    }

    /// One end is gone at once: only the other hears of it.
    fn drop_now(&mut self, end: End) {
        if let Some(to) = self.pipes.remove(&end) {
            self.later(self.latency, Happening::Closed(to));
        }
    }

    /// How many channels join the sites.
    pub(crate) fn channels(&self) -> u32 {
        self.configs[NAPLES].peers[0].channels.len() as u32
    }

    /// Cuts the pipes of one channel, and lets none be made.
    pub(crate) fn block(&mut self, channel: u32) {
        self.blocked.insert(channel);
        let ends: Vec<End> =
            self.channels.iter().filter(|(_, c)| **c == channel).map(|(end, _)| *end).collect();
        for end in ends {
            self.unplug(end);
        }
    }

    /// Cuts every pipe between the sites, now: what is under way is lost.
    pub(crate) fn cut(&mut self) {
        let pipes: Vec<End> = self
            .pipes
            .iter()
            .filter(|(a, b)| matches!((a, b), (End::Node(..), End::Node(..))))
            .map(|(a, _)| *a)
            .collect();
        for end in pipes {
            self.unplug(end);
        }
    }

    /// Cuts every pipe between the sites, and only one of them is told.
    pub(crate) fn cut_unnoticed_by(&mut self, site: usize) {
        let ends: Vec<End> = self
            .pipes
            .iter()
            .filter(|(a, b)| matches!((a, b), (End::Node(..), End::Node(..))))
            .map(|(a, _)| *a)
            .collect();
        for end in ends {
            match end {
                End::Node(at, ..) if at == site => _ = self.pipes.remove(&end),
                _ => self.unplug(end),
            }
        }
    }

    /// Whether there is any pipe between the sites.
    pub(crate) fn is_joined(&self) -> bool {
        self.pipes.iter().any(|(a, b)| matches!((a, b), (End::Node(..), End::Node(..))))
    }

    fn unplug(&mut self, end: End) {
        if self.pipes.remove(&end).is_none() {
            return;
        }
        if let End::Node(site, _, association) = end {
            let error = Some("connection reset".to_owned());
            self.feed(site, Input::Closed { association, error });
        }
    }

    /// A site loses its power and is started again: what was not durable is gone.
    pub(crate) fn crash(&mut self, site: usize) {
        let mut made = 0;
        while made < self.commits[site].len() && self.rng.below(2) == 0 {
            made += 1;
        }
        self.crash_as(site, Death::Power, made);
    }

    /// A process dies and is started again. Of what was asked for, the disk made `made`
    /// commits, without anyone being told.
    pub(crate) fn crash_as(&mut self, site: usize, death: Death, made: usize) {
        let mut waiting = std::mem::take(&mut self.commits[site]);
        for _ in 0..made.min(waiting.len()) {
            // Those that were made are not the first: higher ones pass.
            let next = self.rng.below(waiting.len() as u64) as usize;
            let Some((_, batch)) = waiting.remove(next) else { break };
            if is(self.disk_full, site) {
                break;
            }
            self.sites[site].store.apply(batch).expect("a sound batch");
        }
        let s = &mut self.sites[site];
        s.epoch += 1;
        s.store.crash();
        if !self.suffix.is_empty() {
            self.configs[site] = config(site, s.epoch, self.setup, self.suffix);
        }
        self.configs[site].epoch = s.epoch;
        s.node = Node::new(self.configs[site].clone());
        let epoch = s.epoch;
        self.lose_pipes(site, death);
        let s = &self.sites[site].store;
        let entries: Vec<_> = s.entries.iter().map(|(k, v)| (*k, v.clone())).collect();
        let mut inputs: Vec<Input> = s
            .meta
            .get(node::operator::HELD)
            .cloned()
            .map(Input::RecoveredHolds)
            .into_iter()
            .collect();
        inputs.extend(s.meta.get(node::wall::CLOCK).cloned().map(Input::RecoveredClock));
        inputs.extend(entries.into_iter().map(|((precedence, id), record)| Input::Recovered {
            precedence,
            id,
            record,
        }));
        inputs.push(Input::RecoveredBodies(s.bodies.keys().copied().collect()));
        inputs.push(Input::Started);
        for input in inputs {
            // It may die again while it starts.
            if self.sites[site].epoch == epoch {
                self.feed(site, input);
            }
        }
    }

    /// The pipes of a process that died: its ends are gone at once, the others hear of it.
    fn lose_pipes(&mut self, site: usize, death: Death) {
        let dead: Vec<End> = self
            .pipes
            .keys()
            .copied()
            .filter(|end| matches!(end, End::Node(s, ..) if *s == site))
            .collect();
        for end in dead {
            let Some(other) = self.pipes.remove(&end) else { continue };
            match (death, other) {
                (Death::Process, _) => {
                    let last = self.arrives.get(&other).copied().unwrap_or_default();
                    self.at((self.now + self.latency).max(last), Happening::Closed(other));
                }
                (Death::Power, End::User(..)) => {
                    self.pipes.remove(&other);
                    self.user_closed(other);
                }
                (Death::Power, End::Node(..)) => self.unplug(other),
            }
        }
    }

    /// Runs until nothing is due before `until`.
    pub(crate) fn run_until(&mut self, until: Instant) {
        let mut steps = 0u32;
        while let Some(Reverse((at, sequence))) = self.queue.peek().copied()
            && at <= until
        {
            self.queue.pop();
            self.now = self.now.max(at);
            let Some(what) = self.what.remove(&sequence) else { continue };
            self.happen(what);
            steps += 1;
            assert!(steps < 2_000_000, "the world does not come to rest");
        }
        self.now = until;
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    fn happen(&mut self, what: Happening) {
        match what {
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
            Happening::Tick(site) => {
                if self.sites[site].node.deadline().is_some_and(|at| at <= self.now) {
                    self.feed(site, Input::Tick);
                }
            }
            Happening::Bytes(end @ End::Node(site, _, association), bytes) => {
                if self.pipes.contains_key(&end) && !is(self.frozen, site) {
                    self.feed(site, Input::Bytes { association, bytes });
                }
            }
            Happening::Bytes(end @ End::User(..), bytes) => {
                if self.pipes.contains_key(&end) {
                    self.user_bytes(end, &bytes);
                }
            }
            Happening::Closed(end @ End::Node(site, _, association)) => {
                if self.pipes.remove(&end).is_some() {
                    self.feed(site, Input::Closed { association, error: None });
                }
            }
            Happening::Closed(end @ End::User(..)) => {
                if self.pipes.remove(&end).is_some() {
                    self.user_closed(end);
                }
            }
            Happening::Connected(a, b, listener) => self.both_connected(a, b, listener),
        }
    }

    fn both_connected(&mut self, a: End, b: End, listener: ListenerId) {
        let remote = "192.0.2.1".parse().expect("an address");
        if !self.pipes.contains_key(&a) || !self.pipes.contains_key(&b) {
            return;
        }
        if let End::Node(site, _, AssociationId(connection)) = b {
            self.feed(site, Input::Accepted { connection, listener, remote });
        }
        match a {
            End::Node(site, _, association) => self.feed(site, Input::Connected { association }),
            End::User(..) => self.user_connected(a),
        }
    }

    /// Entries queued at a site, of any kind.
    pub(crate) fn queued(&self, site: usize) -> usize {
        self.sites[site].store.entries.len()
    }

    pub(crate) fn plug_user(&mut self, user: usize, site: usize) {
        let (a, b) = (self.users[user].end, self.coming(site));
        self.join(a, b);
        self.later(self.latency, Happening::Connected(a, b, P3));
    }
}

impl Site {
    fn node_knows(&self, _address: &str) -> bool {
        true
    }
}
