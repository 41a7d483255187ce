//! The cost of an input in steps: associations, channels, requests and times that the node and the
//! scheduler look at. Steps are the same on every machine; seconds are not.
//!
//! The cost depends on what the input touches: its peer or its mailbox. With the number of other
//! channels, users and waiting messages it grows by the logarithm at most.

use base::steps::taken;
use base::{AssociationId, EntryId, Instant, PeerId, Precedence};
use bytes::Bytes;
use engine::{NextHop, Record};
use node::config::{Connection, ListenerService, NodeConfig};
use node::{Input, Node};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use testkit::bench::{Disposition, queued_record};
use testkit::build::canonical;
use testkit::{Bench, NAPLES, P3, five_channels, node_config};

/// The channels of each peer.
const OF_PEER: u32 = 5;

/// The size of a node.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// A multiple of [`OF_PEER`].
    channels: u32,
    users: u32,
    queued: u64,
}

/// A node of that size, and the largest number of steps of each kind of input.
struct Exchange {
    bench: Bench,
    entries: u64,
    sent: u64,
    most: Rc<RefCell<BTreeMap<&'static str, u64>>>,
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
    canonical(&user(n))
}

fn config(size: Size) -> NodeConfig {
    let mut config = node_config(NAPLES, five_channels);
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
        let mut bench = Bench::new(config(size));
        bench.now = Instant(1);
        bench.leave_unrecorded();
        bench.node.leave_unchecked();
        bench.script.others = Disposition::Keep;
        bench.store.ones = true;
        bench.queue_for(&peer_name(0), template.size);
        let octets = record(&bench, NextHop::Peer(peer(0)), template.precedence, template);
        for n in 0..size.queued {
            bench.queue_record(EntryId(1_000 + n), template.precedence, octets.clone());
        }
        let most: Rc<RefCell<BTreeMap<&'static str, u64>>> = Rc::default();
        let all = Rc::clone(&most);
        bench.handler = Some(Box::new(move |node: &mut Node, now, input: Input| {
            let name = name_of(&input);
            taken();
            node.handle(now, input);
            node.deadline();
            let steps = taken();
            let mut all = all.borrow_mut();
            let most = all.entry(name).or_default();
            *most = steps.max(*most);
        }));
        bench.ticks = true;
        bench.start();
        let mut exchange = Exchange { bench, entries: 0, sent: 0, most };
        for n in 0..size.users {
            exchange.bind(n);
        }
        exchange
    }

    /// The peer confirms the oldest transfer.
    fn confirm(&mut self) {
        self.sent += 1;
        self.bench.confirm();
    }

    fn bind(&mut self, n: u32) -> AssociationId {
        let association = self.bench.connect(P3, "192.0.2.1");
        self.bench.address_on(association, &user(n), "secret");
        association
    }

    /// Queues a new entry.
    fn queue(&mut self, hop: NextHop, precedence: Precedence, template: &Record) {
        self.entries += 1;
        let record = record(&self.bench, hop, precedence, template);
        self.bench.queue_record(EntryId(self.entries), precedence, record);
    }

    fn pass(&mut self, time: Duration) {
        self.bench.pass(time);
        self.bench.feed(Input::Tick);
    }
}

/// A record for this hop, accepted now.
fn record(bench: &Bench, next_hop: NextHop, precedence: Precedence, template: &Record) -> Bytes {
    let now = bench.clock().utc;
    let template = Record { accepted: now, first_arrival: now, ..template.clone() };
    Record { next_hop, precedence, ..template }.encode()
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
        Input::Forgot { .. } => "keys forgotten",
        Input::Tick => "tick",
        other => panic!("{other:?}"),
    }
}

/// The largest number of steps of each kind of input, over some rounds of all inputs.
fn steps(size: Size, template: &Record) -> BTreeMap<&'static str, u64> {
    let mut exchange = Exchange::new(size, template);
    let peers = size.channels / OF_PEER;
    assert_eq!(
        exchange.bench.script.connects.len() as u32,
        peers * (OF_PEER - 1) + 1,
        "all are open except those on demand"
    );
    assert_eq!(
        exchange.bench.script.unconfirmed.len(),
        1,
        "the first queued message is in transfer"
    );
    // All associations were opened at once, so their timers end at once.
    exchange.pass(Duration::from_secs(61));
    exchange.most.borrow_mut().clear();
    for turn in 0..12u32 {
        // The queue continues.
        exchange.confirm();
        // Messages for another peer, on an open association and on one that is opened for them.
        let to = NextHop::Peer(peer((turn + 1) % peers));
        for precedence in [Precedence::Flash, Precedence::Deferred] {
            exchange.queue(to.clone(), precedence, template);
        }
        while exchange.bench.script.unconfirmed.len() > 1 {
            exchange.confirm();
        }
        // A message is delivered.
        let hop = NextHop::Mailbox(mailbox(turn % size.users));
        exchange.queue(hop, Precedence::Priority, template);
        let middle = EntryId(1_000 + size.queued / 2 + u64::from(turn));
        for hold in [true, false] {
            let (request, entries) = (u64::from(turn), vec![middle]);
            exchange.bench.feed(Input::Operate {
                request,
                entries,
                act: node::operator::Act::holding(hold),
                by: node::operator::Operator::default(),
            });
        }
        // A user binds and leaves.
        let gone = exchange.bind(turn % size.users);
        exchange.bench.close(gone);
        // An association is lost, and opened again.
        let bench = &exchange.bench;
        let idle = |(id, index): &(AssociationId, u32)| {
            *index != 0 && !bench.script.unconfirmed.contains(id)
        };
        let lost = bench.opened().filter(idle).last().unwrap().0;
        exchange.bench.close(lost);
        let before = exchange.bench.script.connects.len();
        exchange.pass(Duration::from_secs(61));
        assert!(exchange.bench.script.connects.len() > before, "it is opened again");
    }
    assert_eq!(exchange.bench.script.delivered, 12);
    assert!(exchange.sent >= 24, "{}", exchange.sent);
    exchange.most.take()
}

#[test]
fn the_cost_of_an_input_depends_on_what_it_touches() {
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
        // From a thousand to a hundred thousand the logarithm grows by 5/3. The factor 5/4 allows for
        // index nodes that are not full.
        for ((what, _), many) in larger.iter().zip(all) {
            assert!(many <= few * 5 / 3 * 5 / 4 + 20, "{input}, with {what}: {few}, then {many}");
        }
    }
}
