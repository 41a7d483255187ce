//! One node and whoever connects to it, in virtual time: strangers that say nothing, literal
//! octets, and whole stacks that bind.

#![allow(dead_code, reason = "each test uses a part of it")]

use base::ber::{Element, Writer};
use base::{AssociationId, Instant, Now, PeerId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::SpoolId;
use node::config::{
    Channel, Connection, HoldPolicy, Limits, Listener, ListenerService, NodeConfig, Peer, Route,
    Target,
};
use node::event::{Event, Kind};
use node::{Input, ListenerId, Node, Output, Principal, Secret, Token};
use osi::api::{Dialogue, Indication, Payload, Request, Role, RtseParameters, Selectors};
use osi::profiles;
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use p1::bind::{Credentials, MtaAuthentication, MtaBindArgument, MtaBindError};
use p1::flags::Priority;
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
use p1::p3::{
    MessageSubmissionEnvelope, MtsBind, MtsBindError, ObjectName, PerRecipientSubmissionFields,
    operation,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

/// Where users bind.
pub(crate) const P3: ListenerId = ListenerId(0);
/// Peer `act`, two channels; its remote is 192.0.2.10.
pub(crate) const ACT_ROUTINE: ListenerId = ListenerId(1);
pub(crate) const ACT_FLASH: ListenerId = ListenerId(2);
/// Peer `rome`, from 198.51.100.0/24 only.
pub(crate) const ROME: ListenerId = ListenerId(3);

/// What a bind came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing was said yet.
    Nothing,
    Open,
    /// The bind error, as text.
    Refused(String),
    /// In another layer, with its detail.
    NotEvenThere(String),
    Aborted(String),
}

struct Client {
    stack: Association,
    bind: Bytes,
    /// The bind result.
    bound: Bytes,
    p3: bool,
    outcome: Outcome,
    /// A transfer of its failed.
    failed: bool,
}

pub(crate) struct Rig {
    pub(crate) node: Node,
    pub(crate) now: Instant,
    pub(crate) events: Vec<Event>,
    /// Octets the node wrote.
    pub(crate) written: BTreeMap<AssociationId, Vec<u8>>,
    pub(crate) dropped: BTreeSet<AssociationId>,
    /// Who connected last, if a socket was free.
    pub(crate) admitted: Option<AssociationId>,
    pub(crate) closed: BTreeSet<AssociationId>,
    /// Passwords to be checked.
    pub(crate) verify: VecDeque<(Token, Principal, Secret)>,
    /// Whether they are checked at once.
    pub(crate) verifies: bool,
    pub(crate) verified: usize,
    /// Whether commits are done at once; else they wait here.
    pub(crate) commits: bool,
    pub(crate) uncommitted: Vec<Token>,
    /// Keys that the store may forget, and when and how many it was asked to.
    pub(crate) forgettable: usize,
    pub(crate) forgets: Vec<(Instant, usize)>,
    /// What is submitted is to OPS, and deferred until then.
    pub(crate) deferred: Option<Utc>,
    /// Invocations so far.
    invokes: i64,
    /// What these clients send goes here, to be handed in bit by bit.
    pub(crate) slow: BTreeMap<AssociationId, Vec<u8>>,
    config: NodeConfig,
    clients: BTreeMap<AssociationId, Client>,
    to_clients: VecDeque<(AssociationId, Bytes)>,
    spools: BTreeMap<SpoolId, u64>,
}

fn peer(name: &str, channels: &[&str]) -> Peer {
    let channel = |(index, name): (u32, &&str)| Channel {
        index,
        name: (*name).to_owned(),
        precedences: Precedence::ALL.to_vec(),
        fallback: Vec::new(),
        dscp: dscp::Dscp::CS3,
        connection: Connection::OnDemand { idle_close: Duration::from_secs(60) },
        reopen: node::config::Reopen::default(),
        associations_max: 1,
        grow_at: 1,
        minimize: None,
        associations_keep: Duration::from_secs(10),
        rts: RtseParameters {
            checkpoint_size: 4,
            window: 3,
            dialogue: Dialogue::Monologue,
            indefinite_lengths: false,
            transfer_timeout: Duration::from_secs(30),
            longest_pause: Duration::ZERO,
        },
        checkpoint_adapts: false,
        setup_timeout: Duration::from_secs(60),
    };
    Peer {
        name: name.to_owned(),
        mta: MtaName(format!("MTA-{}", name.to_uppercase())),
        own_name: MtaName("MTA-HERE".to_owned()),
        own_password: Secret(Bytes::from_static(b"ours")),
        octet_credentials: false,
        from: Vec::new(),
        addresses: Vec::new(),
        dialect: p1::Dialect::Modern,
        local: Selectors::default(),
        remote: Selectors::default(),
        tpdu_size: None,
        resume: node::config::Resume::Initiator,
        content_max: None,
        message_aborts: node::config::MESSAGE_ABORTS,
        channels: (0..).zip(channels).map(channel).collect(),
    }
}

pub(crate) fn user_address(surname: &str) -> String {
    format!("/C=XX/ADMD=NATO/PRMD=HERE/S={surname}")
}

impl Rig {
    pub(crate) fn new(limits: Limits) -> Rig {
        Rig::with(limits, |_| {})
    }

    /// With a configuration changed so.
    pub(crate) fn with(limits: Limits, change: impl FnOnce(&mut NodeConfig)) -> Rig {
        let mut act = peer("act", &["routine", "flash"]);
        act.addresses = ["192.0.2.10", "2001:db8:0:9::10"].map(|a| a.parse().unwrap()).to_vec();
        let mut rome = peer("rome", &["all"]);
        rome.from = vec!["198.51.100.0/24".parse().unwrap()];
        let p1 = |id, peer: &str, channel| {
            let peer = PeerId::of_name(peer);
            Listener { id, service: ListenerService::P1 { peer, channel } }
        };
        let p3 = Listener { id: P3, service: ListenerService::P3 { local: Selectors::default() } };
        let mut config = NodeConfig {
            mta: MtaName("MTA-HERE".to_owned()),
            domain: GlobalDomainId::new("XX", "NATO", Some("HERE")),
            peers: vec![act, rome],
            listeners: vec![
                p3,
                p1(ACT_ROUTINE, "act", 0),
                p1(ACT_FLASH, "act", 1),
                p1(ROME, "rome", 0),
            ],
            routes: vec![Route {
                prefix: "/C=XX/ADMD=NATO/PRMD=HERE".parse().unwrap(),
                to: Target::Local,
            }],
            mailboxes: vec![engine::canonical(&user_address("OPS").parse().unwrap())],
            classify: engine::classify::Policy::default(),
            hold: HoldPolicy::default(),
            times: Default::default(),
            minimize: None,
            limits,
            seed: 7,
            epoch: 1,
        };
        change(&mut config);
        let mut rig = Rig {
            node: Node::new(config.clone()),
            config,
            now: Instant(0),
            events: Vec::new(),
            written: BTreeMap::new(),
            dropped: BTreeSet::new(),
            admitted: None,
            closed: BTreeSet::new(),
            verify: VecDeque::new(),
            verifies: true,
            verified: 0,
            commits: true,
            uncommitted: Vec::new(),
            forgettable: 0,
            forgets: Vec::new(),
            deferred: None,
            invokes: 0,
            slow: BTreeMap::new(),
            clients: BTreeMap::new(),
            to_clients: VecDeque::new(),
            spools: BTreeMap::new(),
        };
        rig.feed(Input::Started);
        rig
    }

    pub(crate) fn clock(&self) -> Now {
        Now { mono: self.now, utc: Utc(1_767_225_600_000_000 + self.now.0) }
    }

    pub(crate) fn feed(&mut self, input: Input) {
        self.node.handle(self.clock(), input);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while let Some(output) = self.node.poll() {
            match output {
                Output::Write { association, bytes } => {
                    self.written.entry(association).or_default().extend_from_slice(&bytes);
                    self.to_clients.push_back((association, bytes));
                }
                Output::Admitted { connection: _, association } => self.admitted = association,
                Output::Close { association } => {
                    self.closed.insert(association);
                }
                Output::Drop { association } => {
                    self.dropped.insert(association);
                }
                Output::Verify { token, principal, password } => {
                    self.verify.push_back((token, principal, password));
                }
                Output::Event(event) => self.events.push(event),
                Output::SpoolOpen { spool } => {
                    self.spools.insert(spool, 0);
                }
                Output::SpoolAppend { spool, bytes, .. } => {
                    *self.spools.entry(spool).or_default() += bytes.len() as u64;
                }
                Output::SpoolSync { spool, token, .. } => {
                    let result = Ok(self.spools[&spool]);
                    self.node.handle(self.clock(), Input::Synced { spool, token, result });
                }
                Output::LookUp { token, keys, .. } => {
                    let result = Ok(vec![None; keys.len()]);
                    self.node.handle(self.clock(), Input::LookedUp { token, result });
                }
                Output::ForgetSeen { token, most, .. } => {
                    self.forgets.push((self.now, most));
                    self.forgettable = self.forgettable.saturating_sub(most);
                    let result = Ok(self.forgettable > 0);
                    self.node.handle(self.clock(), Input::Forgot { token, result });
                }
                Output::Commit { token, .. } if !self.commits => self.uncommitted.push(token),
                Output::Commit { token, .. } => {
                    self.node.handle(self.clock(), Input::Committed { token, result: Ok(()) });
                }
                _ => {}
            }
        }
    }

    /// The same configuration is read again.
    pub(crate) fn reload(&mut self) {
        let config = Box::new(self.config.clone());
        self.feed(Input::Configure { config, edge: node::changes::EdgeChanges::default() });
    }

    /// Somebody connects and says nothing.
    pub(crate) fn connect(&mut self, listener: ListenerId, from: &str) -> AssociationId {
        let remote: IpAddr = from.parse().unwrap();
        self.feed(Input::Accepted { connection: 0, listener, remote });
        self.admitted.expect("a socket")
    }

    /// Somebody connects and sends these octets; what is answered.
    pub(crate) fn say(&mut self, association: AssociationId, octets: &[u8]) -> Vec<u8> {
        let before = self.written.get(&association).map_or(0, Vec::len);
        self.feed(Input::Bytes { association, bytes: Bytes::copy_from_slice(octets) });
        self.written.get(&association).map(|w| w[before..].to_vec()).unwrap_or_default()
    }

    fn client(&mut self, id: AssociationId, config: osi::api::Config, bind: Bytes, p3: bool) {
        let mut stack = Association::new(config, Role::Initiator);
        let request = Request::Open { bind: bind.clone() };
        stack.handle(self.now, osi::api::Input::Request(request));
        let (bound, outcome) = (Bytes::new(), Outcome::Nothing);
        self.clients.insert(id, Client { stack, bind, bound, p3, outcome, failed: false });
        self.run();
    }

    /// A peer binds.
    pub(crate) fn mta(
        &mut self,
        listener: ListenerId,
        from: &str,
        name: &str,
        password: &str,
    ) -> AssociationId {
        let password = password.as_bytes().to_vec();
        let who = MtaAuthentication::new(name, Credentials::simple(password));
        self.mta_with(listener, from, who)
    }

    /// A peer binds with this argument.
    pub(crate) fn mta_with(
        &mut self,
        listener: ListenerId,
        from: &str,
        who: MtaAuthentication,
    ) -> AssociationId {
        let id = self.connect(listener, from);
        let mut w = Writer::new();
        MtaBindArgument::Authenticated(who).write(&mut w);
        let mut config = profiles::p1(Selectors::default(), Selectors::default(), reference());
        config.setup_timeout = Duration::from_secs(600);
        self.client(id, config, w.into_vec().into(), false);
        id
    }

    /// A user binds.
    pub(crate) fn user(&mut self, from: &str, user: &str, password: &'static str) -> AssociationId {
        let id = self.connect(P3, from);
        self.user_on(id, user, password);
        id
    }

    /// A user binds on this connection.
    pub(crate) fn user_on(&mut self, id: AssociationId, user: &str, password: &'static str) {
        let name = ORName::from(user_address(user).parse::<ORAddress>().unwrap());
        let bind = MtsBind::new(ObjectName::UserAgent(name), Credentials::simple(password));
        self.user_with(id, &bind);
    }

    /// A user binds on this connection with this argument.
    pub(crate) fn user_with(&mut self, id: AssociationId, bind: &MtsBind) {
        let mut w = Writer::new();
        bind.write(&mut w);
        let mut config = profiles::p3(Selectors::default(), Selectors::default(), reference());
        config.setup_timeout = Duration::from_secs(600);
        self.client(id, config, w.into_vec().into(), true);
    }

    pub(crate) fn outcome(&self, id: AssociationId) -> Outcome {
        self.clients[&id].outcome.clone()
    }

    /// What a user was told of messages that wait, of all grades.
    pub(crate) fn waiting(&self, id: AssociationId) -> i64 {
        let bound = Element::parse(&self.clients[&id].bound).unwrap();
        let waiting = MtsBind::read(&bound).unwrap().messages_waiting.unwrap();
        [waiting.urgent, waiting.normal, waiting.non_urgent].iter().map(|q| q.messages).sum()
    }

    pub(crate) fn failed(&self, id: AssociationId) -> bool {
        self.clients[&id].failed
    }

    /// A request of a client's.
    pub(crate) fn request(&mut self, id: AssociationId, request: Request) {
        let client = self.clients.get_mut(&id).unwrap();
        client.stack.handle(self.now, osi::api::Input::Request(request));
        self.run();
    }

    /// Invokes a user's message-submission to this many recipients, of a content of this length.
    pub(crate) fn begin_submission(&mut self, id: AssociationId, recipients: usize, length: u64) {
        self.submission_at(id, Priority::Normal, recipients, length);
    }

    /// The same, of this priority.
    pub(crate) fn submission_at(
        &mut self,
        id: AssociationId,
        priority: Priority,
        recipients: usize,
        length: u64,
    ) {
        let name = |user: &str| ORName::from(user_address(user).parse::<ORAddress>().unwrap());
        let recipient = |n| PerRecipientSubmissionFields {
            recipient: name(&format!("U{n}")),
            ..Default::default()
        };
        let mut envelope = MessageSubmissionEnvelope {
            originator: name("OPS"),
            original_eits: None,
            content_type: p1::ContentType::P22,
            content_identifier: None,
            priority,
            indicators: Default::default(),
            deferred_delivery_time: None,
            recipients: (0..recipients).map(recipient).collect(),
            extensions: Default::default(),
            unknown: Vec::new(),
        };
        if let Some(at) = self.deferred {
            envelope.deferred_delivery_time = Some(p1::time::Time::from(at));
            envelope.recipients.iter_mut().for_each(|r| r.recipient = name("OPS"));
        }
        let head = envelope.argument_head(length).into();
        self.submit(id, head, length);
    }

    /// Invokes a message-submission with this beginning of its argument.
    fn submit(&mut self, id: AssociationId, head: Bytes, length: u64) {
        let argument = Payload { head, content_length: length, tail: Bytes::new() };
        self.invokes += 1;
        let (invoke, operation) = (self.invokes, operation::MESSAGE_SUBMISSION);
        let syntax = profiles::abstract_syntax::msse();
        self.request(id, Request::Invoke { invoke, syntax, operation, argument });
    }

    /// Carries octets and answers until nothing moves.
    pub(crate) fn run(&mut self) {
        loop {
            if self.verifies
                && let Some((token, principal, password)) = self.verify.pop_front()
            {
                self.verified += 1;
                let right = match &principal {
                    Principal::Peer(_) => password.0 == "theirs",
                    Principal::User(address) => address.contains("ops") && password.0 == "secret",
                };
                self.feed(Input::Verified { token, right });
                continue;
            }
            if let Some((id, bytes)) = self.to_clients.pop_front() {
                if let Some(client) = self.clients.get_mut(&id) {
                    client.stack.handle(self.now, osi::api::Input::Bytes(&bytes));
                }
                continue;
            }
            let ids: Vec<AssociationId> = self.clients.keys().copied().collect();
            let mut moved = false;
            for id in ids {
                while let Some(output) = self.clients.get_mut(&id).and_then(|c| c.stack.poll()) {
                    moved = true;
                    match output {
                        osi::api::Output::Send(bytes) => {
                            if let Some(waiting) = self.slow.get_mut(&id) {
                                waiting.extend_from_slice(&bytes);
                                continue;
                            }
                            self.feed(Input::Bytes { association: id, bytes });
                        }
                        osi::api::Output::Close => {
                            self.feed(Input::Closed { association: id, error: None });
                        }
                        osi::api::Output::Indication(i) => self.hear(id, i),
                    }
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn hear(&mut self, id: AssociationId, indication: Indication) {
        let client = self.clients.get_mut(&id).unwrap();
        client.outcome = match indication {
            Indication::Opened { bind, .. } => {
                client.bound = bind;
                Outcome::Open
            }
            Indication::Refused { bind_error: Some(error), .. } => {
                let error = Element::parse(&error).unwrap();
                Outcome::Refused(match client.p3 {
                    true => MtsBindError::read(&error).unwrap().to_string(),
                    false => MtaBindError::read(&error).unwrap().to_string(),
                })
            }
            Indication::Refused { detail, .. } => Outcome::NotEvenThere(detail),
            Indication::Aborted { detail, .. } => Outcome::Aborted(detail),
            Indication::TransferFailed { .. } => {
                client.failed = true;
                return;
            }
            _ => return,
        };
        assert!(!client.bind.is_empty());
    }

    /// Time passes.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.node.deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.feed(Input::Tick);
            self.run();
        }
        self.now = until;
        self.run();
    }

    /// Details of refusals so far.
    pub(crate) fn refusals(&self) -> Vec<&str> {
        let of = self.events.iter().filter(|e| e.kind == Kind::AssociationRefused);
        of.map(|e| e.detail.as_str()).collect()
    }
}

fn reference() -> ConnectionReference {
    ConnectionReference {
        user: Bytes::from_static(b"\x04\x01a"),
        common: Bytes::from_static(b"\x17\x0D260102030405Z"),
        additional: Bytes::new(),
    }
}
