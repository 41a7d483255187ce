//! A whole MTA, and an edge that does at once whatever the MTA wants.

use super::association::{p1_config, p3_config, packets};
use super::driver::{Driver, Plan};
use base::ber::Writer;
use base::rng::Rng;
use base::{AssociationId, BodyId, EntryId, Instant, Now, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, SpoolId};
use node::config::{
    Channel, Connection, Limits, Listener, ListenerService, NodeConfig, Peer, Route, Target,
};
use node::event::Event;
use node::status::Holds;
use node::{Input, ListenerId, Node, Output, Secret};
use osi::api::{Dialogue, Role, RtseParameters, Selectors};
use p1::bind::{Credentials, MtaAuthentication, MtaBindArgument, MtaBindResult};
use p1::names::{GlobalDomainId, MtaName, ORAddress};
use p1::p3::{MtsBind, ObjectName};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Address of the user that has a mailbox.
pub const USER: &str = "/C=XX/ADMD=NATO/PRMD=HERE/S=OPS";
/// Address of somebody behind the peer.
pub const REMOTE: &str = "/C=XX/ADMD=NATO/PRMD=THERE/S=OPS";
/// Name of the peer MTA.
pub const PEER: &str = "THERE";

/// Longest content the node takes.
const CONTENT: u64 = 200_000;

fn address(text: &str) -> ORAddress {
    text.parse().expect("a constant address")
}

fn config() -> NodeConfig {
    let rts = RtseParameters {
        checkpoint_size: 1,
        window: 3,
        dialogue: Dialogue::Monologue,
        indefinite_lengths: false,
        transfer_timeout: Duration::from_secs(30),
        longest_pause: Duration::ZERO,
    };
    let peer = Peer {
        name: "there".to_owned(),
        mta: MtaName(PEER.to_owned()),
        own_name: MtaName("HERE".to_owned()),
        own_password: Secret(Bytes::from_static(b"from-here")),
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
        channels: vec![Channel {
            index: 0,
            name: "all".to_owned(),
            precedences: Precedence::ALL.to_vec(),
            connection: Connection::OnDemand { idle_close: Duration::from_secs(60) },
            reopen: node::config::Reopen::default(),
            associations_max: 1,
            fallback: Vec::new(),
            dscp: dscp::Dscp::CS0,
            grow_at: 1,
            associations_keep: Duration::from_secs(10),
            minimize: None,
            rts,
            checkpoint_adapts: false,
            setup_timeout: Duration::from_secs(10),
        }],
    };
    let id = peer.id();
    let route =
        |prmd: &str, to| Route { prefix: address(&format!("/C=XX/ADMD=NATO/PRMD={prmd}")), to };
    NodeConfig {
        mta: MtaName("HERE".to_owned()),
        domain: GlobalDomainId::new("XX", "NATO", Some("HERE")),
        peers: vec![peer],
        listeners: vec![
            Listener { id: ListenerId(0), service: ListenerService::P1 { peer: id, channel: 0 } },
            Listener {
                id: ListenerId(1),
                service: ListenerService::P3 { local: Selectors::default() },
            },
        ],
        routes: vec![route("HERE", Target::Local), route("THERE", Target::Peer(id))],
        mailboxes: vec![engine::canonical(&address(USER))],
        classify: engine::classify::Policy::default(),
        hold: node::config::HoldPolicy::default(),
        times: Default::default(),
        minimize: None,
        limits: Limits { envelope: 1 << 16, content: CONTENT, ..Limits::default() },
        seed: 7,
        epoch: 1,
    }
}

/// The node and its edge.
#[derive(Debug)]
pub struct Site {
    node: Node,
    now: Instant,
    inputs: VecDeque<Input>,
    entries: BTreeMap<(Precedence, EntryId), Bytes>,
    bodies: BTreeMap<BodyId, Bytes>,
    seen: BTreeMap<Digest, Bytes>,
    spools: BTreeMap<SpoolId, Vec<u8>>,
    /// Octets for each open connection.
    written: BTreeMap<AssociationId, Vec<u8>>,
    closed: BTreeSet<AssociationId>,
    /// Who connected last.
    admitted: Option<AssociationId>,
    /// Whether the peer takes calls.
    pub reachable: bool,
    /// The calls it took.
    pub called: VecDeque<AssociationId>,
    /// What was logged.
    pub events: Vec<Event>,
}

impl Default for Site {
    fn default() -> Site {
        Site::new()
    }
}

impl Site {
    /// A node that was just started on an empty store.
    pub fn new() -> Site {
        let mut site = Site {
            node: Node::new(config()),
            now: Instant(1_000_000),
            inputs: VecDeque::new(),
            entries: BTreeMap::new(),
            bodies: BTreeMap::new(),
            seen: BTreeMap::new(),
            spools: BTreeMap::new(),
            written: BTreeMap::new(),
            closed: BTreeSet::new(),
            admitted: None,
            reachable: false,
            called: VecDeque::new(),
            events: Vec::new(),
        };
        site.feed(Input::Started);
        site
    }

    /// Somebody connects.
    pub fn accept(&mut self, listener: u32) -> AssociationId {
        let remote = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        self.feed(Input::Accepted { connection: 0, listener: ListenerId(listener), remote });
        self.admitted.take().expect("a socket is free")
    }

    /// Passes in an input, and the answers to its outputs.
    fn feed(&mut self, input: Input) {
        self.inputs.push_back(input);
        let mut steps = 0;
        while let Some(input) = self.inputs.pop_front() {
            let now = Now { mono: self.now, utc: Utc(1_767_225_600_000_000 + self.now.0) };
            self.node.handle(now, input);
            while let Some(output) = self.node.poll() {
                steps += 1;
                assert!(steps < 100_000, "no end of outputs: {output:?}");
                self.carry_out(output);
            }
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Connect { association, .. } if self.reachable => {
                self.written.insert(association, Vec::new());
                self.called.push_back(association);
                self.inputs.push_back(Input::Connected { association });
            }
            Output::Connect { association, .. } => {
                let error = "no route to host".to_owned();
                self.inputs.push_back(Input::ConnectFailed { association, error });
            }
            Output::Admitted { connection: _, association } => {
                self.written.extend(association.map(|association| (association, Vec::new())));
                self.admitted = association;
            }
            Output::Write { association, bytes } => {
                let written = self.written.get_mut(&association);
                written.expect("a connection that is open").extend_from_slice(&bytes);
            }
            Output::Measure { association } => {
                let octets = self.written.get(&association).map_or(0, Vec::len) as u64;
                self.inputs.push_back(Input::Taken { association, octets });
            }
            Output::Close { association } => {
                assert!(self.written.contains_key(&association), "closed twice");
                if self.closed.insert(association) {
                    self.inputs.push_back(Input::Closed { association, error: None });
                }
            }
            Output::Drop { association } => {
                assert!(self.written.contains_key(&association), "dropped twice");
                self.closed.insert(association);
            }
            Output::SpoolOpen { spool } => {
                assert!(self.spools.insert(spool, Vec::new()).is_none(), "opened twice");
            }
            Output::SpoolAppend { spool, bytes, .. } => {
                let octets = self.spools.get_mut(&spool).expect("a spool that is open");
                octets.extend_from_slice(&bytes);
                assert!(octets.len() as u64 <= CONTENT + 70_000, "more than the limit on contents");
            }
            Output::SpoolSync { spool, token, .. } => {
                let stored = self.spools.get(&spool).expect("a spool that is open").len() as u64;
                self.inputs.push_back(Input::Synced { spool, token, result: Ok(stored) });
            }
            Output::SpoolDiscard { spool } => {
                assert!(self.spools.remove(&spool).is_some(), "discarded twice");
            }
            Output::Commit { token, batch, .. } => {
                self.commit(batch);
                self.inputs.push_back(Input::Committed { token, result: Ok(()) });
            }
            Output::Load { token, precedence, id } => {
                let record = self.entries.get(&(precedence, id)).cloned();
                self.inputs.push_back(Input::Loaded { token, result: Ok(record) });
            }
            Output::LookUp { token, keys, .. } => {
                let found = keys.iter().map(|key| self.seen.get(key).cloned()).collect();
                self.inputs.push_back(Input::LookedUp { token, result: Ok(found) });
            }
            Output::ForgetSeen { token, .. } => {
                self.inputs.push_back(Input::Forgot { token, result: Ok(false) });
            }
            Output::ReadContent { token, body, offset, len, .. } => {
                let octets = self.bodies.get(&body).expect("a body that is kept");
                let start = offset as usize;
                let piece = octets.slice(start..(start + len).min(octets.len()));
                self.inputs.push_back(Input::Content { token, result: Ok(piece) });
            }
            Output::Verify { token, .. } => {
                self.inputs.push_back(Input::Verified { token, right: true });
            }
            Output::Operated { .. } | Output::ChannelConnected { .. } => {}
            Output::Event(event) => {
                assert!(event.detail.len() < 10_000, "a long line for the log");
                self.events.push(event);
            }
            Output::Stopped => panic!("stopped by itself"),
        }
    }

    fn commit(&mut self, batch: Batch) {
        for op in batch {
            match op {
                Op::PutEntry { precedence, id, record } => {
                    assert!(
                        engine::Record::decode(&record).is_ok(),
                        "a record that cannot be read"
                    );
                    self.entries.insert((precedence, id), record);
                }
                Op::DeleteEntry { precedence, id } => {
                    self.entries.remove(&(precedence, id));
                }
                Op::PutBody { id, source } => {
                    let octets = match source {
                        BodySource::Octets(octets) => octets,
                        BodySource::Spool(spool) => {
                            self.spools.remove(&spool).expect("a spool that is open").into()
                        }
                    };
                    assert!(self.bodies.insert(id, octets).is_none(), "a body twice");
                }
                Op::DeleteBody { id } => {
                    self.bodies.remove(&id);
                }
                Op::PutSeen { key, record, .. } => {
                    self.seen.insert(key, record);
                }
                Op::ForgetSeen { .. } | Op::PutMeta { .. } => {}
            }
        }
    }

    /// Octets of a connection, unless it was closed.
    pub fn bytes(&mut self, association: AssociationId, octets: &[u8]) {
        if !self.closed.contains(&association) {
            let bytes = Bytes::copy_from_slice(octets);
            self.feed(Input::Bytes { association, bytes });
        }
    }

    /// The other side of a connection is gone.
    pub fn hang_up(&mut self, association: AssociationId) {
        if self.closed.insert(association) {
            self.feed(Input::Closed { association, error: None });
        }
    }

    /// What was written to a connection since it was asked last.
    pub fn take(&mut self, association: AssociationId) -> Vec<u8> {
        self.written.get_mut(&association).map(std::mem::take).unwrap_or_default()
    }

    /// Whether the node closed the connection, or the other side did.
    pub fn is_closed(&self, association: AssociationId) -> bool {
        self.closed.contains(&association)
    }

    /// What the node keeps in memory of transfers in progress.
    pub fn holds(&self) -> Holds {
        self.node.holds()
    }

    /// Spools that are open.
    pub fn spools(&self) -> usize {
        self.spools.len()
    }

    /// Records in the queue.
    pub fn records(&self) -> Vec<engine::Record> {
        let records = self.entries.values();
        records.map(|r| engine::Record::decode(r).expect("it was read before")).collect()
    }

    /// A good peer takes calls, for at most so long: it must be sent all that waits for it.
    pub fn deliver_all(&mut self, time: Duration) {
        self.reachable = true;
        let mut peers = Vec::new();
        let until = self.now + time;
        while let Some(at) = self.node.deadline().filter(|at| self.waiting() > 0 && *at <= until) {
            self.now = self.now.max(at);
            self.feed(Input::Tick);
            let calls = std::mem::take(&mut self.called).into_iter();
            peers.extend(calls.map(|association| (association, called_peer())));
            for (association, peer) in &mut peers {
                self.carry(*association, peer);
            }
        }
        assert_eq!(self.waiting(), 0, "a good peer is not sent what waits for it: {peers:?}");
        for (association, _) in peers {
            self.hang_up(association);
        }
        self.reachable = false;
    }

    /// So much time passes.
    pub fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        let mut ticks = 0;
        while let Some(at) = self.node.deadline().filter(|at| *at <= until) {
            ticks += 1;
            assert!(ticks < 10_000, "no end of deadlines");
            self.now = self.now.max(at);
            self.feed(Input::Tick);
        }
        self.now = until;
    }

    /// A conversation of the node with this end; gives what the end sent.
    pub fn converse(&mut self, listener: u32, end: &mut Driver) -> Vec<u8> {
        let association = self.accept(listener);
        let output = self.carry(association, end);
        self.hang_up(association);
        output
    }

    /// How many entries are for the peer.
    pub fn waiting(&self) -> usize {
        let for_peer =
            |record: &&engine::Record| matches!(record.next_hop, engine::NextHop::Peer(_));
        self.records().iter().filter(for_peer).count()
    }

    /// The same on a connection that is there.
    pub fn carry(&mut self, association: AssociationId, end: &mut Driver) -> Vec<u8> {
        let mut output = Vec::new();
        loop {
            let ours = std::mem::take(&mut end.out);
            let theirs = self.take(association);
            if ours.is_empty() && theirs.is_empty() {
                break;
            }
            output.extend_from_slice(&ours);
            self.bytes(association, &ours);
            if !theirs.is_empty() {
                end.feed(&theirs);
            }
        }
        output
    }
}

/// A good peer that takes calls and everything it is sent.
pub fn called_peer() -> Driver {
    let who = MtaAuthentication::new(MtaName(PEER.to_owned()), Credentials::simple("secret"));
    let mut w = Writer::new();
    MtaBindResult::Authenticated(who).write(&mut w);
    let plan = Plan { bind: w.into_vec().into(), units: Vec::new(), release: false };
    Driver::new(p1_config(), Role::Responder, plan)
}

/// A good peer that transfers these APDUs.
pub fn peer(apdus: &[Bytes]) -> Driver {
    Driver::new(p1_config(), Role::Initiator, peer_plan(apdus))
}

fn peer_plan(apdus: &[Bytes]) -> Plan {
    let who = MtaAuthentication::new(MtaName(PEER.to_owned()), Credentials::simple("secret"));
    let mut w = Writer::new();
    MtaBindArgument::Authenticated(who).write(&mut w);
    let units = apdus.iter().map(|apdu| (0, apdu.clone())).collect();
    Plan { bind: w.into_vec().into(), units, release: true }
}

/// A good peer that opens an association to send alone, and waits for what it is given.
pub fn one_way_peer() -> Driver {
    let mut config = p1_config();
    if let osi::api::Service::Rtse(rtse) = &mut config.service {
        rtse.dialogue = Dialogue::Monologue;
    }
    Driver::new(config, Role::Initiator, Plan { release: false, ..peer_plan(&[]) })
}

/// A good user that invokes these operations.
pub fn user(units: &[(i64, Bytes)]) -> Driver {
    let name = ObjectName::UserAgent(address(USER).into());
    let mut w = Writer::new();
    MtsBind::new(name, Credentials::simple("secret")).write(&mut w);
    let plan = Plan { bind: w.into_vec().into(), units: units.to_vec(), release: true };
    Driver::new(p3_config(), Role::Initiator, plan)
}

pub(super) fn p1(octets: &[u8]) {
    run(0, octets);
}

pub(super) fn p3(octets: &[u8]) {
    run(1, octets);
}

pub(super) fn initiator(octets: &[u8]) {
    let (mut site, association) = calling();
    hostile(&mut site, association, octets);
    // The message is still queued, or the peer confirmed it.
    site.deliver_all(Duration::from_secs(3_600));
}

pub(super) fn delivery(octets: &[u8]) {
    let mut site = with_mail();
    let association = site.accept(1);
    hostile(&mut site, association, octets);
}

/// A site that has called its peer, because a user sent something there.
pub fn calling() -> (Site, AssociationId) {
    let mut site = Site::new();
    site.reachable = true;
    let unit = crate::seeds::p3::remote_submission();
    let mut good = user(&[(p1::p3::operation::MESSAGE_SUBMISSION, unit)]);
    site.converse(1, &mut good);
    site.reachable = false;
    let association = site.called.pop_front().expect("a call");
    (site, association)
}

/// What a good peer answers to a site that calls it.
pub fn called() -> Vec<u8> {
    let (mut site, association) = calling();
    let mut end = called_peer();
    let output = site.carry(association, &mut end);
    assert_eq!(site.waiting(), 0, "{:?}", end.observed);
    output
}

/// A site with a message in the user's mailbox.
fn with_mail() -> Site {
    let mut site = Site::new();
    let mut good = peer(&[crate::seeds::p1::waiting_message()]);
    site.converse(0, &mut good);
    assert_eq!(site.entries.len(), 1, "{:?}", good.observed);
    site
}

/// The octets of a well-behaved user that receives its messages.
pub fn fetched() -> Vec<u8> {
    let mut site = with_mail();
    let association = site.accept(1);
    let mut end = user(&[]);
    end.stay();
    let output = site.carry(association, &mut end);
    assert_eq!(site.entries.len(), site.waiting(), "only a report is left: {:?}", end.observed);
    output
}

fn run(listener: u32, octets: &[u8]) {
    let mut site = Site::new();
    let association = site.accept(listener);
    hostile(&mut site, association, octets);
}

/// The other end of this connection sends the octets; the site answers within bounds, and goes on.
fn hostile(site: &mut Site, association: AssociationId, octets: &[u8]) {
    let mut rng = Rng::new(crate::hash(octets));
    let most = crate::mutate::one_of(&mut rng, [1, 64, 70_000]);
    // In so many pieces at most, about: each costs the same, whatever its length.
    let least = octets.len() / 8_192;
    for packet in packets(octets) {
        let mut rest = packet;
        while !rest.is_empty() {
            let size = 1 + least + rng.below(most) as usize;
            let (piece, after) = rest.split_at(size.min(rest.len()));
            site.bytes(association, piece);
            rest = after;
        }
    }
    let answered = site.take(association).len();
    assert!(answered < 500_000 + 64 * octets.len(), "{answered} octets of answers");
    if rng.below(2) == 0 {
        site.hang_up(association);
    }
    serves(site);
    site.hang_up(association);
    // After an hour nothing of it is left but what it is our duty to carry.
    site.wait(Duration::from_secs(3_600));
    assert!(site.spools.is_empty(), "spools are left: {:?}", site.spools.keys());
}

/// The node takes a message of a peer and a submission of a user as if nothing had been.
fn serves(site: &mut Site) {
    let mut good = peer(&[crate::seeds::p1::good_message()]);
    site.converse(0, &mut good);
    assert_eq!(good.count("TransferConfirmed"), 1, "{:?}", good.observed);
    let mut good =
        user(&[(p1::p3::operation::MESSAGE_SUBMISSION, crate::seeds::p3::good_submission())]);
    site.converse(1, &mut good);
    assert_eq!(good.count("Returned"), 1, "{:?}", good.observed);
}
