//! What an input costs, in steps: associations, channels, wishes and times looked at, by the node and
//! the scheduler together. Steps, not seconds: the same on every machine.
//!
//! An input costs what it touches: its peer or its mailbox. However many other channels and users
//! there are, and however many messages wait, the cost grows by no more than the logarithm.

#![cfg(debug_assertions)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, unused_imports, reason = "shared with other tests")]
mod world;

use base::ber::Writer;
use base::{AssociationId, EntryId, Instant, Now, PeerId, Precedence, Utc};
use bytes::Bytes;
use engine::{NextHop, Record};
use node::config::{Connection, ListenerService, NodeConfig};
use node::{ChannelId, Input, ListenerId, Node, Output};
use osi::api::{Indication, Payload, Request, Role, Selectors};
use osi::profiles;
use osi::stack::Association;
use p1::bind::{Credentials, MtaAuthentication, MtaBindResult};
use p1::names::{ORAddress, ORName};
use p1::p3::{EMPTY_RESULT, MtsBind, ObjectName};
use scheduler::steps::taken;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use world::{NAPLES, five_channels, queued_record};

const P3: ListenerId = ListenerId(0);
/// The channels of each peer.
const OF_PEER: u32 = 5;

/// How much there is of all.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// In steps of [`OF_PEER`].
    channels: u32,
    users: u32,
    queued: u64,
}

/// Who is at the other end of an association.
enum End {
    Peer(Association),
    User(Association, Option<(i64, i64)>),
}

struct Exchange {
    node: Node,
    now: Instant,
    began: Utc,
    template: Record,
    hops: BTreeMap<EntryId, (NextHop, Precedence)>,
    entries: u64,
    ends: BTreeMap<AssociationId, End>,
    /// Connections of ours, and whose.
    ours: BTreeMap<AssociationId, ChannelId>,
    /// Peers that took a transfer in and were not told yet to confirm it.
    unconfirmed: VecDeque<AssociationId>,
    /// Who connected last.
    admitted: Option<AssociationId>,
    delivered: u64,
    sent: u64,
    /// Most steps of each kind of input.
    most: BTreeMap<&'static str, u64>,
}

fn peer(n: u32) -> PeerId {
    PeerId::of_name(&peer_name(n))
}

fn peer_name(n: u32) -> String {
    format!("act {n}")
}

fn user(n: u32) -> String {
    format!("/C=XX/ADMD=NATO/PRMD=NAPLES/S=USER{n}")
}

fn mailbox(n: u32) -> String {
    engine::canonical(&user(n).parse().unwrap())
}

fn config(size: Size) -> NodeConfig {
    let mut config = world::node_config(NAPLES, five_channels);
    let mut model = config.peers.remove(0);
    model.channels.truncate(OF_PEER as usize);
    for channel in &mut model.channels {
        channel.fallback = Vec::new();
        channel.rts.transfer_timeout = Duration::from_hours(24);
        channel.connection = match channel.index {
            0 => Connection::OnDemand { idle_close: Duration::from_secs(3_600) },
            _ => Connection::Permanent,
        };
    }
    assert_eq!(model.channels.len(), OF_PEER as usize);
    config.peers = (0..size.channels / OF_PEER)
        .map(|n| node::config::Peer { name: peer_name(n), ..model.clone() })
        .collect();
    config.listeners.retain(|l| matches!(l.service, ListenerService::P3 { .. }));
    config.routes.clear();
    config.mailboxes = (0..size.users).map(mailbox).collect();
    config.limits.associations = 10_000;
    config.limits.half_open = 10_000;
    config.limits.associations_per_address = 10_000;
    config.limits.half_open_per_address = 10_000;
    config
}

impl Exchange {
    fn new(size: Size, template: &Record) -> Exchange {
        let mut exchange = Exchange {
            node: Node::new(config(size)),
            now: Instant(1),
            began: template.accepted,
            template: template.clone(),
            hops: BTreeMap::new(),
            entries: 0,
            ends: BTreeMap::new(),
            ours: BTreeMap::new(),
            unconfirmed: VecDeque::new(),
            admitted: None,
            delivered: 0,
            sent: 0,
            most: BTreeMap::new(),
        };
        exchange.node.leave_unchecked();
        let routine = NextHop::Peer(peer(0));
        let mut record = template.clone();
        record.next_hop = routine;
        let octets = record.encode();
        for n in 0..size.queued {
            let (precedence, id) = (record.precedence, EntryId(1_000 + n));
            let record = octets.clone();
            exchange.node.handle(exchange.clock(), Input::Recovered { precedence, id, record });
        }
        exchange.feed(Input::Started);
        for n in 0..size.users {
            exchange.bind(n);
        }
        exchange
    }

    fn clock(&self) -> Now {
        Now { mono: self.now, utc: Utc(self.began.0 + self.now.0) }
    }

    fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let name = name_of(&input);
            taken();
            self.node.handle(self.clock(), input);
            let deadline = self.node.deadline();
            let steps = taken();
            if deadline.is_some_and(|at| at <= self.now) {
                inputs.push_back(Input::Tick);
            }
            let most = self.most.entry(name).or_default();
            *most = steps.max(*most);
            while let Some(output) = self.node.poll() {
                self.carry_out(output, &mut inputs);
            }
        }
    }

    fn carry_out(&mut self, output: Output, inputs: &mut VecDeque<Input>) {
        match output {
            Output::Connect { association, channel } => {
                let config =
                    profiles::p1(Selectors::default(), Selectors::default(), Default::default());
                self.ours.insert(association, channel);
                self.ends.insert(association, End::Peer(Association::new(config, Role::Responder)));
                inputs.push_back(Input::Connected { association });
            }
            Output::Write { association, bytes } => {
                let now = self.now;
                if let Some(End::Peer(stack) | End::User(stack, _)) =
                    self.ends.get_mut(&association)
                {
                    stack.handle(now, osi::api::Input::Bytes(&bytes));
                }
                self.answer(association, inputs);
            }
            Output::Admitted { connection: _, association } => self.admitted = association,
            Output::Close { association } | Output::Drop { association } => {
                self.ends.remove(&association);
                inputs.push_back(Input::Closed { association, error: None });
            }
            Output::Verify { token, .. } => {
                inputs.push_back(Input::Verified { token, right: true });
            }
            Output::Load { token, id, .. } => {
                let mut record = self.template.clone();
                record.next_hop = NextHop::Peer(peer(0));
                if let Some((hop, precedence)) = self.hops.get(&id) {
                    (record.next_hop, record.precedence) = (hop.clone(), *precedence);
                }
                let result = Ok(Some(record.encode()));
                inputs.push_back(Input::Loaded { token, result });
            }
            Output::ReadContent { token, len, .. } => {
                let result = Ok(Bytes::from(vec![1; len]));
                inputs.push_back(Input::Content { token, result });
            }
            Output::Commit { token, .. } => {
                inputs.push_back(Input::Committed { token, result: Ok(()) });
            }
            _ => {}
        }
    }

    /// What the other end of an association says.
    fn answer(&mut self, id: AssociationId, inputs: &mut VecDeque<Input>) {
        let now = self.now;
        while let Some(end) = self.ends.get_mut(&id) {
            let (End::Peer(stack) | End::User(stack, _)) = end;
            let request = match stack.poll() {
                None => return,
                Some(osi::api::Output::Send(bytes)) => {
                    inputs.push_back(Input::Bytes { association: id, bytes });
                    None
                }
                Some(osi::api::Output::Close) => {
                    inputs.push_back(Input::Closed { association: id, error: None });
                    None
                }
                Some(osi::api::Output::Indication(indication)) => match (indication, end) {
                    (Indication::Open { .. }, _) => {
                        let mut writer = Writer::new();
                        let name = world::node_config(NAPLES, five_channels).peers.remove(0).mta.0;
                        let who =
                            MtaAuthentication::new(name.as_str(), Credentials::simple("theirs"));
                        MtaBindResult::Authenticated(who).write(&mut writer);
                        Some(Request::Accept { bind: writer.into_vec().into() })
                    }
                    (Indication::Checkpoint { octets }, _) => Some(Request::Stored { octets }),
                    (Indication::TransferEnd, _) => {
                        self.unconfirmed.push_back(id);
                        None
                    }
                    (Indication::Invoked { invoke, operation }, End::User(_, doing)) => {
                        *doing = Some((invoke, operation));
                        None
                    }
                    (Indication::Data { last: true, .. }, End::User(_, doing)) => {
                        self.delivered += 1;
                        let result = Payload::whole(Bytes::from_static(&EMPTY_RESULT));
                        doing.take().map(|(invoke, operation)| Request::Result {
                            invoke,
                            operation,
                            result,
                        })
                    }
                    _ => None,
                },
            };
            if let (Some(request), Some(End::Peer(stack) | End::User(stack, _))) =
                (request, self.ends.get_mut(&id))
            {
                stack.handle(now, osi::api::Input::Request(request));
            }
        }
    }

    /// What one end is asked by its application.
    fn ask(&mut self, id: AssociationId, request: Request) {
        let (End::Peer(stack) | End::User(stack, _)) = self.ends.get_mut(&id).unwrap();
        stack.handle(self.now, osi::api::Input::Request(request));
        let mut inputs = VecDeque::new();
        self.answer(id, &mut inputs);
        inputs.into_iter().for_each(|input| self.feed(input));
    }

    /// The peer confirms the transfer that waited longest.
    fn confirm(&mut self) {
        let id = self.unconfirmed.pop_front().expect("a transfer that is not confirmed");
        self.sent += 1;
        self.ask(id, Request::TransferSecured);
    }

    fn bind(&mut self, n: u32) -> AssociationId {
        let remote = "192.0.2.1".parse().unwrap();
        let name = ORName::from(user(n).parse::<ORAddress>().unwrap());
        let bind = MtsBind::new(ObjectName::UserAgent(name), Credentials::simple("secret"));
        let mut writer = Writer::new();
        bind.write(&mut writer);
        let config = profiles::p3(Selectors::default(), Selectors::default(), Default::default());
        let stack = Association::new(config, Role::Initiator);
        self.feed(Input::Accepted { connection: 0, listener: P3, remote });
        let association = self.admitted.take().unwrap();
        self.ends.insert(association, End::User(stack, None));
        self.ask(association, Request::Open { bind: writer.into_vec().into() });
        association
    }

    fn close(&mut self, association: AssociationId) {
        self.ends.remove(&association);
        self.feed(Input::Closed { association, error: None });
    }

    /// An entry that is durable now.
    fn queue(&mut self, hop: NextHop, precedence: Precedence) {
        self.entries += 1;
        let id = EntryId(self.entries);
        let mut record = self.template.clone();
        (record.next_hop, record.precedence) = (hop.clone(), precedence);
        self.hops.insert(id, (hop, precedence));
        let record = record.encode();
        self.feed(Input::Recovered { precedence, id, record });
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.node.deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.feed(Input::Tick);
        }
        self.now = until;
        self.feed(Input::Tick);
    }
}

fn name_of(input: &Input) -> &'static str {
    match input {
        Input::Started => "started",
        Input::Recovered { .. } => "an entry queued",
        Input::Connected { .. } => "connected",
        Input::Accepted { .. } => "accepted",
        Input::Bytes { .. } => "octets",
        Input::Closed { .. } => "closed",
        Input::Loaded { .. } => "record loaded",
        Input::Content { .. } => "content read",
        Input::Committed { .. } => "committed",
        Input::Verified { .. } => "password verified",
        Input::Operate { .. } => "hold, release",
        Input::Tick => "tick",
        other => panic!("{other:?}"),
    }
}

/// Most steps of each kind of input, over some turns of all that can happen.
fn steps(size: Size, template: &Record) -> BTreeMap<&'static str, u64> {
    let mut exchange = Exchange::new(size, template);
    let peers = size.channels / OF_PEER;
    assert_eq!(exchange.ours.len() as u32, peers * (OF_PEER - 1) + 1, "all open but on demand");
    assert_eq!(exchange.unconfirmed.len(), 1, "of what is queued the first is in transfer");
    // All were opened at once, and what they wait for after that ends at once.
    exchange.pass(Duration::from_secs(61));
    exchange.most.clear();
    for turn in 0..12u32 {
        // What is queued goes on.
        exchange.confirm();
        // One goes to another peer, on an association that is there, or on one that is opened.
        let to = NextHop::Peer(peer((turn + 1) % peers));
        for precedence in [Precedence::Flash, Precedence::Deferred] {
            exchange.queue(to.clone(), precedence);
        }
        while exchange.unconfirmed.len() > 1 {
            exchange.confirm();
        }
        // One is delivered.
        exchange.queue(NextHop::Mailbox(mailbox(turn % size.users)), Precedence::Priority);
        let middle = EntryId(1_000 + size.queued / 2 + u64::from(turn));
        for hold in [true, false] {
            let (request, entries) = (u64::from(turn), vec![middle]);
            exchange.feed(Input::Operate { request, entries, hold });
        }
        // A user goes and comes.
        let gone = exchange.bind(turn % size.users);
        exchange.close(gone);
        // An association is lost, and opened again.
        let is_there = |(id, of): &(&AssociationId, &ChannelId)| {
            of.index != 0 && exchange.ends.contains_key(id) && !exchange.unconfirmed.contains(id)
        };
        let lost = *exchange.ours.iter().rfind(is_there).unwrap().0;
        exchange.close(lost);
        let before = exchange.ours.len();
        exchange.pass(Duration::from_secs(61));
        assert!(exchange.ours.len() > before, "it is opened again");
    }
    assert_eq!(exchange.delivered, 12);
    assert!(exchange.sent >= 24, "{}", exchange.sent);
    exchange.most
}

#[test]
fn an_input_costs_what_it_touches() {
    let template = queued_record();
    let of = |channels, users, queued| steps(Size { channels, users, queued }, &template);
    let few = of(5, 1, 1_000);
    let larger = [
        ("30 channels and users", of(30, 30, 1_000)),
        ("300 channels and users", of(300, 300, 1_000)),
        ("100,000 queued besides", of(300, 300, 100_000)),
    ];
    println!("{:<20}{:>8}{:>8}{:>8}{:>9}", "most steps", "few", "30", "300", "100,000");
    for (input, few) in &few {
        let all = larger.each_ref().map(|(_, steps)| steps[input]);
        println!("{input:<20}{few:>8}{:>8}{:>8}{:>9}", all[0], all[1], all[2]);
        // From a thousand to a hundred thousand the logarithm grows by 5/3; nodes of an index are
        // more or less full.
        for ((what, _), many) in larger.iter().zip(all) {
            assert!(many <= few * 5 / 3 * 5 / 4 + 20, "{input}, with {what}: {few}, then {many}");
        }
    }
}
