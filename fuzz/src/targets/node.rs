//! A whole MTA, and an edge that does at once whatever the MTA wants.

pub mod conversation;

use super::association::{p1_config, p3_config, p7_config, packets};
use super::checked::{AssociationPlan, CheckedAssociation};
use base::ber::Writer;
use base::rng::Rng;
use base::{AssociationId, Instant, Precedence};
use bytes::Bytes;
use node::config::{Limits, NodeConfig, Route, Target};
use node::status::Holds;
use node::{Input, ListenerId};
use osi::api::{Dialogue, Role};
use p1::bind::{Credentials, MtaAuthentication, MtaBindArgument, MtaBindResult};
use p1::names::{MtaName, ORAddress};
use p1::p3::{MtsBind, ObjectName};
use std::time::Duration;
use testkit::bench::{Answer, Bench};
use testkit::{Direct, build};

/// Address of the user that has a mailbox.
pub const USER: &str = "/C=XX/ADMD=NATO/PRMD=HERE/S=OPS";
/// Address of the user whose messages go into the message store.
pub const STORED: &str = "/C=XX/ADMD=NATO/PRMD=HERE/S=STORED";
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
    let mut all = build::channel(0, "all", &Precedence::ALL);
    all.rts.checkpoint_size = 1;
    all.dscp = dscp::Dscp::CS0;
    let there = build::peer("there", PEER, "HERE", "from-here", vec![all]);
    let id = there.id();
    let route =
        |prmd: &str, to| Route { prefix: address(&format!("/C=XX/ADMD=NATO/PRMD={prmd}")), to };
    let mut config = build::node("HERE", "HERE", vec![there]);
    config.listeners = vec![
        build::p1_listener(ListenerId(0), "there", 0),
        build::p3_listener(ListenerId(1)),
        build::p7_listener(ListenerId(2)),
    ];
    config.routes = vec![route("HERE", Target::Local), route("THERE", Target::Peer(id))];
    config.mailboxes = vec![build::canonical(USER), build::canonical(STORED)];
    config.store.users = [build::canonical(STORED)].into();
    config.limits = Limits { envelope: 1 << 16, content: CONTENT, ..Limits::default() };
    config
}

/// The node and its edge.
pub struct Site {
    bench: Bench,
    /// Events that were looked at.
    seen: usize,
}

impl Default for Site {
    fn default() -> Site {
        Site::new()
    }
}

impl Site {
    /// A node that was just started on an empty store.
    pub fn new() -> Site {
        let mut bench = Bench::new(config());
        bench.now = Instant(1_000_000);
        bench.wire = Box::new(|| Box::new(Direct::measured()));
        bench.most_steps = 100_000;
        bench.script.answer = Answer::NoRoute;
        bench.start();
        Site { bench, seen: 0 }
    }

    /// Whether the peer takes calls.
    pub fn set_reachable(&mut self, reachable: bool) {
        self.bench.script.answer = if reachable { Answer::ByHand } else { Answer::NoRoute };
    }

    /// Somebody connects.
    pub fn accept(&mut self, listener: u32) -> AssociationId {
        let association = self.bench.connect(ListenerId(listener), "192.0.2.1");
        self.check();
        association
    }

    /// Hands in an input, and the answers to all its outputs.
    fn feed(&mut self, input: Input) {
        self.bench.feed(input);
        self.check();
    }

    /// The events of the node, oldest first.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &node::event::LogEvent> {
        self.bench.events.iter().map(|(_, event)| event)
    }

    /// What must hold after each input.
    fn check(&mut self) {
        assert!(!self.bench.stopped, "stopped by itself");
        let longest = self.bench.store.longest_spool;
        assert!(longest <= CONTENT + 70_000, "more than the limit on contents: {longest}");
        for (_, event) in self.bench.events.iter().skip(self.seen) {
            assert!(event.detail.len() < 10_000, "a long line for the log");
        }
        self.seen = self.bench.events.len();
    }

    /// Octets of a connection, unless it was closed.
    pub fn bytes(&mut self, association: AssociationId, octets: &[u8]) {
        if !self.is_closed(association) {
            let bytes = Bytes::copy_from_slice(octets);
            self.feed(Input::Bytes { association, bytes });
        }
    }

    /// The other side of a connection is gone.
    pub fn hang_up(&mut self, association: AssociationId) {
        if !self.is_closed(association) {
            self.bench.close(association);
            self.check();
        }
    }

    /// What was written to a connection since it was asked last.
    pub fn take(&mut self, association: AssociationId) -> Vec<u8> {
        self.bench.take_written(association)
    }

    /// Whether the node closed the connection, or the other side did.
    pub fn is_closed(&self, association: AssociationId) -> bool {
        !self.bench.is_connected(association)
    }

    /// What the node keeps in memory of transfers in progress.
    pub fn holds(&self) -> Holds {
        self.bench.node.holds()
    }

    /// Spools that are open.
    pub fn spools(&self) -> usize {
        self.bench.store.spools.len()
    }

    /// Records in the queue.
    pub fn records(&self) -> Vec<engine::Record> {
        let records = self.bench.store.entries.values();
        records.map(|r| engine::Record::decode(r).expect("it was read before")).collect()
    }

    /// A good peer takes calls, for at most so long: it must be sent all that waits for it.
    pub fn deliver_all(&mut self, time: Duration) {
        self.set_reachable(true);
        let mut peers = Vec::new();
        let until = self.bench.now + time;
        while let Some(at) =
            self.bench.node.deadline().filter(|at| self.waiting() > 0 && *at <= until)
        {
            self.bench.now = self.bench.now.max(at);
            self.feed(Input::Tick);
            let calls = std::mem::take(&mut self.bench.script.by_hand).into_iter();
            peers.extend(calls.map(|association| (association, called_peer())));
            for (association, peer) in &mut peers {
                self.carry(*association, peer);
            }
        }
        assert_eq!(self.waiting(), 0, "a good peer is not sent what waits for it: {peers:?}");
        for (association, _) in peers {
            self.hang_up(association);
        }
        self.set_reachable(false);
    }

    /// So much time passes.
    pub fn wait(&mut self, time: Duration) {
        let until = self.bench.now + time;
        let mut ticks = 0;
        while let Some(at) = self.bench.node.deadline().filter(|at| *at <= until) {
            ticks += 1;
            assert!(ticks < 10_000, "no end of deadlines");
            self.bench.now = self.bench.now.max(at);
            self.feed(Input::Tick);
        }
        self.bench.now = until;
    }

    /// A conversation of the node with this end; gives what the end sent.
    pub fn converse(&mut self, listener: u32, end: &mut CheckedAssociation) -> Vec<u8> {
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
    pub fn carry(&mut self, association: AssociationId, end: &mut CheckedAssociation) -> Vec<u8> {
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
pub fn called_peer() -> CheckedAssociation {
    let who = MtaAuthentication::new(MtaName(PEER.to_owned()), Credentials::simple("secret"));
    let mut w = Writer::new();
    MtaBindResult::Authenticated(who).write(&mut w);
    let plan = AssociationPlan { bind: w.into_vec().into(), units: Vec::new(), release: false };
    CheckedAssociation::new(p1_config(), Role::Responder, plan)
}

/// A good peer that transfers these APDUs.
pub fn peer(apdus: &[Bytes]) -> CheckedAssociation {
    CheckedAssociation::new(p1_config(), Role::Initiator, peer_plan(apdus))
}

fn peer_plan(apdus: &[Bytes]) -> AssociationPlan {
    let who = MtaAuthentication::new(MtaName(PEER.to_owned()), Credentials::simple("secret"));
    let mut w = Writer::new();
    MtaBindArgument::Authenticated(who).write(&mut w);
    let units = apdus.iter().map(|apdu| (0, apdu.clone())).collect();
    AssociationPlan { bind: w.into_vec().into(), units, release: true }
}

/// A good peer that opens an association to send alone, and waits for what it is given.
pub fn one_way_peer() -> CheckedAssociation {
    let mut config = p1_config();
    if let osi::api::Service::Rtse(rtse) = &mut config.service {
        rtse.dialogue = Dialogue::Monologue;
    }
    CheckedAssociation::new(
        config,
        Role::Initiator,
        AssociationPlan { release: false, ..peer_plan(&[]) },
    )
}

/// A good user that invokes these operations.
pub fn user(units: &[(i64, Bytes)]) -> CheckedAssociation {
    let name = ObjectName::UserAgent(address(USER).into());
    let mut w = Writer::new();
    MtsBind::new(name, Credentials::simple("secret")).write(&mut w);
    let plan = AssociationPlan { bind: w.into_vec().into(), units: units.to_vec(), release: true };
    CheckedAssociation::new(p3_config(), Role::Initiator, plan)
}

pub(super) fn p1(octets: &[u8]) {
    run(0, octets);
}

pub(super) fn p3(octets: &[u8]) {
    run(1, octets);
}

pub(super) fn p7(octets: &[u8]) {
    let mut site = with_items();
    let association = site.accept(2);
    hostile(&mut site, association, octets);
    // Whatever was deleted or registered, its user is served.
    let mut good = reader(&[(p7::operation::SUMMARIZE, crate::seeds::p7::summarize_all())]);
    site.converse(2, &mut good);
    assert_eq!(good.count("Returned"), 1, "{:?}", good.observed);
}

pub(super) fn initiator(octets: &[u8]) {
    let (mut site, association) = calling();
    hostile(&mut site, association, octets);
    // The message is still there, or the peer confirmed it.
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
    site.set_reachable(true);
    let unit = crate::seeds::p3::remote_submission();
    let mut good = user(&[(p1::p3::operation::MESSAGE_SUBMISSION, unit)]);
    site.converse(1, &mut good);
    site.set_reachable(false);
    let association = site.bench.script.by_hand.pop_front().expect("a call");
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

/// A good user of the message store that invokes these operations.
pub fn reader(units: &[(i64, Bytes)]) -> CheckedAssociation {
    let mut w = Writer::new();
    p7::MsBindArgument::new(address(STORED).into(), Credentials::simple("secret")).write(&mut w);
    let plan = AssociationPlan { bind: w.into_vec().into(), units: units.to_vec(), release: true };
    CheckedAssociation::new(p7_config(), Role::Initiator, plan)
}

/// A site with a message in the message store.
pub fn with_items() -> Site {
    let mut site = Site::new();
    let unit = crate::seeds::p3::stored_submission();
    let mut good = user(&[(p1::p3::operation::MESSAGE_SUBMISSION, unit)]);
    site.converse(1, &mut good);
    let items = site.bench.store.entries.keys();
    let items = items.filter(|(_, id)| engine::journal::ItemId::of_entry(*id).is_some()).count();
    assert_eq!(items, 1, "{:?}", good.observed);
    site
}

/// A site with a message in the user's mailbox.
fn with_mail() -> Site {
    let mut site = Site::new();
    let mut good = peer(&[crate::seeds::p1::waiting_message()]);
    site.converse(0, &mut good);
    assert_eq!(site.bench.store.entries.len(), 1, "{:?}", good.observed);
    site
}

/// The octets of a well-behaved user that receives its messages.
pub fn fetched() -> Vec<u8> {
    let mut site = with_mail();
    let association = site.accept(1);
    let mut end = user(&[]);
    end.stay();
    let output = site.carry(association, &mut end);
    assert_eq!(
        site.bench.store.entries.len(),
        site.waiting(),
        "only a report is left: {:?}",
        end.observed
    );
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
    let spools = &site.bench.store.spools;
    assert!(spools.is_empty(), "spools are left: {:?}", spools.keys());
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
