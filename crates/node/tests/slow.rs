//! A node behind a slow line: octets go out one after the other, and the edge says how many the
//! other end has taken. What it takes is progress, and what waits is none.

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
use bytes::{Bytes, BytesMut};
use engine::NextHop;
use node::config::{Hold, NodeConfig};
use node::event::{Event, Kind};
use node::status::ChannelStatus;
use node::{Input, Node, Output, Token};
use osi::api::{Indication, Payload, Request, Role, Selectors};
use osi::profiles;
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use p1::bind::{Credentials, MtaAuthentication, MtaBindResult};
use p1::names::{ORAddress, ORName};
use p1::p3::{DeliveryResult, MtsBind, ObjectName, operation};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use world::{NAPLES, P3, five_channels};

const SECOND: Duration = Duration::from_secs(1);
/// Octets of a packet.
const PACKET: usize = 1_448;
/// Octets that wait for a connection, below which more content is read for it.
const ROOM: usize = 32 << 10;
const ROUTINE: u32 = 0;
const FLASH: u32 = 3;
/// Of the channels of [`config`].
const TRANSFER: Duration = Duration::from_secs(120);

/// One connection: what waits, what the other end has taken, and after how much it stops.
struct Wire {
    stack: Association,
    waits: BytesMut,
    next: Instant,
    taken: u64,
    stops: u64,
    wanted: Option<(Token, usize)>,
    channel: Option<u32>,
    /// The invocation that is arriving.
    invoke: i64,
}

struct Line {
    node: Node,
    now: Instant,
    bit_s: u64,
    /// After so many octets who connects next stops reading.
    stops: u64,
    /// So many octets it takes all the same between two looks.
    trickles: u64,
    wires: BTreeMap<AssociationId, Wire>,
    records: BTreeMap<EntryId, Bytes>,
    events: Vec<(Instant, Event)>,
    /// Checkpoint sizes agreed on, in octets, by channel.
    agreed: Vec<(u32, Option<u64>)>,
    /// Who connected last.
    admitted: Option<AssociationId>,
    delivered: usize,
}

fn config(config: &mut NodeConfig) {
    five_channels(config);
    config.hold.hold = Hold::Strict;
    for channel in &mut config.peers[0].channels {
        channel.rts.transfer_timeout = TRANSFER;
        (channel.rts.checkpoint_size, channel.rts.window) = (64, 16);
        channel.checkpoint_adapts = true;
    }
}

fn reference() -> ConnectionReference {
    ConnectionReference::default()
}

impl Line {
    /// A line of this rate, and messages of this length that wait: a hop and a precedence each.
    fn new(bit_s: u64, length: u64, queued: &[(NextHop, Precedence)]) -> Line {
        Line::with(config, bit_s, length, queued)
    }

    fn with(
        config: fn(&mut NodeConfig),
        bit_s: u64,
        length: u64,
        queued: &[(NextHop, Precedence)],
    ) -> Line {
        let mut line = Line {
            node: Node::new(world::node_config(NAPLES, config)),
            now: Instant(0),
            bit_s,
            stops: u64::MAX,
            trickles: 0,
            wires: BTreeMap::new(),
            records: BTreeMap::new(),
            events: Vec::new(),
            agreed: Vec::new(),
            admitted: None,
            delivered: 0,
        };
        let template = world::queued_record();
        for (id, (hop, precedence)) in (1..).map(EntryId).zip(queued) {
            let mut record = template.clone();
            (record.next_hop, record.precedence) = (hop.clone(), *precedence);
            (record.size, record.not_before) = (length, None);
            (record.accepted, record.first_arrival) = (line.clock().utc, line.clock().utc);
            let record = record.encode();
            line.records.insert(id, record.clone());
            line.feed(Input::Recovered { precedence: *precedence, id, record });
        }
        line
    }

    fn start(&mut self) {
        self.feed(Input::Started);
    }

    fn clock(&self) -> Now {
        Now { mono: self.now, utc: Utc(1_767_225_600_000_000 + self.now.0) }
    }

    fn feed(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            self.node.handle(self.clock(), input);
            while let Some(output) = self.node.poll() {
                self.carry_out(output, &mut inputs);
            }
        }
    }

    fn wire(&mut self, association: AssociationId, stack: Association, channel: Option<u32>) {
        let wire = Wire {
            stack,
            waits: BytesMut::new(),
            next: Instant(u64::MAX),
            taken: 0,
            stops: self.stops,
            wanted: None,
            channel,
            invoke: 0,
        };
        self.wires.insert(association, wire);
    }

    fn carry_out(&mut self, output: Output, inputs: &mut VecDeque<Input>) {
        let answer = match output {
            Output::Connect { association, channel } => {
                let config = profiles::p1(Selectors::default(), Selectors::default(), reference());
                let stack = Association::new(config, Role::Responder);
                self.wire(association, stack, Some(channel.index));
                Input::Connected { association }
            }
            Output::Admitted { connection: _, association } => {
                self.admitted = association;
                return;
            }
            Output::Write { association, bytes } => {
                let (now, takes) = (self.now, self.packet());
                let Some(wire) = self.wires.get_mut(&association) else { return };
                if wire.waits.is_empty() {
                    wire.next = now + takes;
                }
                wire.waits.extend_from_slice(&bytes);
                return;
            }
            Output::Measure { association } => {
                let Some(wire) = self.wires.get_mut(&association) else { return };
                let more = if wire.taken >= wire.stops { self.trickles } else { 0 };
                wire.taken += more;
                let octets = wire.taken;
                Input::Taken { association, octets }
            }
            Output::Close { association } => {
                self.wires.remove(&association);
                Input::Closed { association, error: None }
            }
            Output::Drop { association } => {
                self.wires.remove(&association);
                return;
            }
            Output::Verify { token, .. } => Input::Verified { token, right: true },
            Output::Event(event) => {
                self.events.push((self.now, event));
                return;
            }
            Output::ForgetSeen { token, .. } => Input::Forgot { token, result: Ok(false) },
            Output::Commit { token, .. } => Input::Committed { token, result: Ok(()) },
            Output::Load { token, id, .. } => {
                Input::Loaded { token, result: Ok(self.records.get(&id).cloned()) }
            }
            Output::ReadContent { token, association, len, .. } => {
                let Some(wire) = self.wires.get_mut(&association) else { return };
                if wire.waits.len() >= ROOM {
                    wire.wanted = Some((token, len));
                    return;
                }
                content(token, len)
            }
            other => panic!("{other:?}"),
        };
        inputs.push_back(answer);
    }

    fn packet(&self) -> Duration {
        Duration::from_secs_f64(PACKET as f64 * 8.0 / self.bit_s as f64)
    }

    /// The next packet of a connection arrives.
    fn arrive(&mut self, association: AssociationId) {
        let (now, takes) = (self.now, self.packet());
        let Some(wire) = self.wires.get_mut(&association) else { return };
        let packet = wire.waits.split_to(PACKET.min(wire.waits.len()));
        wire.taken += packet.len() as u64;
        let goes_on = !wire.waits.is_empty() && wire.taken < wire.stops;
        wire.next = if goes_on { now + takes } else { Instant(u64::MAX) };
        wire.stack.handle(now, osi::api::Input::Bytes(&packet));
        let wanted = if wire.waits.len() < ROOM { wire.wanted.take() } else { None };
        self.hear(association);
        if let Some((token, len)) = wanted {
            self.feed(content(token, len));
        }
    }

    /// What the other end says comes back at once.
    fn hear(&mut self, association: AssociationId) {
        while let Some(wire) = self.wires.get_mut(&association) {
            let Some(output) = wire.stack.poll() else { return };
            match output {
                osi::api::Output::Send(bytes) => self.feed(Input::Bytes { association, bytes }),
                osi::api::Output::Close => {
                    self.wires.remove(&association);
                    self.feed(Input::Closed { association, error: None });
                }
                osi::api::Output::Indication(indication) => {
                    if let Some(request) = self.answer(association, &indication) {
                        let wire = self.wires.get_mut(&association).unwrap();
                        wire.stack.handle(self.now, osi::api::Input::Request(request));
                    }
                }
            }
        }
    }

    fn answer(&mut self, association: AssociationId, indication: &Indication) -> Option<Request> {
        let wire = self.wires.get_mut(&association)?;
        match indication {
            Indication::Open { .. } => {
                let mut writer = Writer::new();
                let who = MtaAuthentication::new("ACT", Credentials::simple("from-act"));
                MtaBindResult::Authenticated(who).write(&mut writer);
                Some(Request::Accept { bind: writer.into_vec().into() })
            }
            Indication::TransferStart { .. } => {
                self.agreed.push((wire.channel?, wire.stack.checkpoint()));
                None
            }
            Indication::Checkpoint { octets } => Some(Request::Stored { octets: *octets }),
            Indication::TransferEnd => Some(Request::TransferSecured),
            Indication::Invoked { invoke, .. } => {
                wire.invoke = *invoke;
                None
            }
            Indication::Data { last: true, .. } if wire.channel.is_none() => {
                self.delivered += 1;
                let mut writer = Writer::new();
                DeliveryResult::default().write(&mut writer);
                let result = Payload::whole(writer.into_vec());
                let (invoke, operation) = (wire.invoke, operation::MESSAGE_DELIVERY);
                Some(Request::Result { invoke, operation, result })
            }
            _ => None,
        }
    }

    /// A user binds, over a connection of the same line.
    fn user(&mut self, address: &str) {
        let remote = [192, 0, 2, 7].into();
        self.feed(Input::Accepted { connection: 0, listener: P3, remote });
        let association = self.admitted.take().unwrap();
        let config = profiles::p3(Selectors::default(), Selectors::default(), reference());
        self.wire(association, Association::new(config, Role::Initiator), None);
        let name = ORName::from(address.parse::<ORAddress>().unwrap());
        let bind = MtsBind::new(ObjectName::UserAgent(name), Credentials::simple("secret"));
        let mut writer = Writer::new();
        bind.write(&mut writer);
        let request = Request::Open { bind: writer.into_vec().into() };
        let wire = self.wires.get_mut(&association).unwrap();
        wire.stack.handle(self.now, osi::api::Input::Request(request));
        self.hear(association);
    }

    /// Time passes, until something is so, for so long at most.
    fn pass_until(&mut self, time: Duration, mut is: impl FnMut(&Line) -> bool) {
        let until = self.now + time;
        while !is(self) {
            let packet = self.wires.iter().map(|(id, wire)| (wire.next, *id)).min();
            let packet = packet.filter(|(at, _)| *at <= until);
            let tick = self.node.deadline().filter(|at| *at <= until);
            match (packet, tick) {
                (Some((at, id)), tick) if tick.is_none_or(|tick| at <= tick) => {
                    self.now = self.now.max(at);
                    self.arrive(id);
                }
                (_, Some(tick)) => {
                    self.now = self.now.max(tick);
                    self.feed(Input::Tick);
                }
                _ => {
                    self.now = until;
                    return;
                }
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.pass_until(time, |_| false);
    }

    fn count(&self, kind: Kind) -> usize {
        self.events.iter().filter(|(_, event)| event.kind == kind).count()
    }

    fn first(&self, kind: Kind) -> &(Instant, Event) {
        self.events.iter().find(|(_, event)| event.kind == kind).unwrap()
    }

    /// What was lost or failed, in words.
    fn failures(&self) -> Vec<String> {
        let bad = |kind| {
            let ours = matches!(kind, Kind::AssociationLost | Kind::TransferFailed);
            ours || kind == Kind::DeliveryFailed
        };
        let events = self.events.iter().filter(|(_, event)| bad(event.kind));
        events.map(|(at, event)| format!("{at:?} {:?} {}", event.kind, event.detail)).collect()
    }

    /// When the transfers on a channel began.
    fn started(&self, channel: u32) -> Vec<Instant> {
        let its = |event: &Event| {
            event.kind == Kind::TransferStarted && event.channel.is_some_and(|c| c.index == channel)
        };
        self.events.iter().filter(|(_, event)| its(event)).map(|(at, _)| *at).collect()
    }

    fn channel(&self, channel: u32) -> ChannelStatus {
        self.node.status(self.clock()).peers.remove(0).channels.remove(channel as usize)
    }

    /// All connections of a channel are lost.
    fn cut(&mut self, channel: u32) {
        let its = self.wires.iter().filter(|(_, wire)| wire.channel == Some(channel));
        for association in its.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.wires.remove(&association);
            self.feed(Input::Closed { association, error: Some("connection reset".into()) });
        }
    }
}

fn content(token: Token, len: usize) -> Input {
    Input::Content { token, result: Ok(Bytes::from(vec![1; len])) }
}

fn act() -> NextHop {
    NextHop::Peer(PeerId::of_name("act"))
}

#[test]
fn what_takes_longer_than_the_timer_goes_through_at_the_first_try() {
    for (bit_s, length) in [(2_400, 36_000), (2_400, 100_000), (9_600, 1_000_000)] {
        let mut line = Line::new(bit_s, length, &[(act(), Precedence::Routine)]);
        line.start();
        line.pass_until(Duration::from_secs(2_000), |line| line.count(Kind::TransferConfirmed) > 0);
        assert_eq!(
            line.count(Kind::TransferConfirmed),
            1,
            "{bit_s} {length} {:#?}",
            line.failures()
        );
        assert_eq!(line.count(Kind::AssociationLost), 0, "{:#?}", line.failures());
        assert!(line.now >= Instant(0) + Duration::from_secs(length * 8 / bit_s));
    }
}

#[test]
fn a_peer_that_stops_reading_is_given_up_when_its_time_is_over() {
    let mut line = Line::new(2_400, 100_000, &[(act(), Precedence::Routine)]);
    line.stops = 20_000;
    line.start();
    line.pass_until(Duration::from_secs(1_000), |line| line.count(Kind::AssociationLost) > 0);
    let (at, event) = line.first(Kind::AssociationLost);
    assert!(event.detail.contains("Timeout in Sta2"), "{:#?}", line.failures());
    assert!(event.detail.contains("the peer took nothing"), "{event:?}");
    // It stopped after 67 s or some packets more; that is seen some seconds later.
    let took = at.since(Instant(0));
    assert!(took > 66 * SECOND + TRANSFER && took < 90 * SECOND + TRANSFER, "{took:?}");
    // The message is not lost: it goes again to one who reads.
    line.stops = u64::MAX;
    line.pass_until(Duration::from_secs(1_000), |line| line.count(Kind::TransferConfirmed) > 0);
    assert_eq!(line.count(Kind::TransferConfirmed), 1);
}

/// A checkpoint of 64 KiB takes 218 s at 2,400 bit/s, and `stall` is 15 s.
#[test]
fn a_flash_holds_the_routine_while_its_octets_go() {
    let queued = [(act(), Precedence::Flash), (act(), Precedence::Routine)];
    let mut line = Line::new(2_400, 100_000, &queued);
    line.start();
    line.pass_until(Duration::from_secs(1_000), |line| line.count(Kind::TransferConfirmed) > 0);
    assert_eq!((line.started(FLASH).len(), line.started(ROUTINE).len()), (1, 1));
    let (through, _) = line.first(Kind::TransferConfirmed);
    assert_eq!(line.started(ROUTINE)[0], *through, "not before the Flash is through");

    let mut line = Line::new(2_400, 100_000, &queued);
    line.stops = 20_000;
    line.start();
    line.pass(100 * SECOND);
    let began = line.started(ROUTINE)[0].since(Instant(0));
    assert!(began > 80 * SECOND && began < 100 * SECOND, "{began:?}: it held while it moved");
}

/// One octet now and then is no progress, or a message could be kept in transfer for ever.
#[test]
fn a_peer_that_takes_an_octet_now_and_then_is_given_up_and_holds_nothing() {
    let queued = [(act(), Precedence::Flash), (act(), Precedence::Routine)];
    for trickles in [1, 8] {
        let mut line = Line::new(2_400, 100_000, &queued);
        (line.stops, line.trickles) = (20_000, trickles);
        line.start();
        line.pass_until(Duration::from_secs(2_000), |line| line.count(Kind::AssociationLost) > 0);
        let (at, _) = line.first(Kind::AssociationLost);
        let took = at.since(Instant(0));
        assert!(took > 66 * SECOND + TRANSFER && took < 120 * SECOND + TRANSFER, "{took:?}");
        let began = line.started(ROUTINE)[0].since(Instant(0));
        assert!(began > 80 * SECOND && began < 130 * SECOND, "{began:?}");
    }
}

#[test]
fn the_next_association_has_a_checkpoint_that_suits_the_line() {
    let queued = [(act(), Precedence::Routine), (act(), Precedence::Routine)];
    for (bit_s, suits) in [(2_400, 2 << 10), (9_600, 8 << 10), (64_000, 64 << 10)] {
        let mut line = Line::new(bit_s, 100_000, &queued);
        line.start();
        let status = line.channel(ROUTINE);
        assert_eq!((status.checkpoint_bytes, status.line_kbit_s), (64 << 10, None));
        let time = Duration::from_secs(1_000);
        line.pass_until(time, |line| line.count(Kind::TransferConfirmed) > 0);
        let status = line.channel(ROUTINE);
        assert_eq!(status.checkpoint_bytes, suits, "{bit_s}: {:?}", status.line_kbit_s);
        if let Some(rate) = status.line_kbit_s {
            assert!((rate * 1_000.0 / bit_s as f64 - 1.0).abs() < 0.15, "{bit_s}: {rate}");
        }
        line.cut(ROUTINE);
        line.pass_until(time, |line| line.count(Kind::TransferConfirmed) > 1);
        let agreed: Vec<_> = line.agreed.iter().map(|(_, octets)| octets.unwrap()).collect();
        assert_eq!((agreed[0], *agreed.last().unwrap()), (64 << 10, suits));
    }
}

#[test]
fn a_checkpoint_that_is_configured_stays() {
    let fixed = |node: &mut NodeConfig| {
        config(node);
        for channel in &mut node.peers[0].channels {
            (channel.checkpoint_adapts, channel.rts.checkpoint_size) = (false, 32);
        }
    };
    let mut line = Line::with(fixed, 2_400, 100_000, &[(act(), Precedence::Routine)]);
    line.start();
    line.pass_until(Duration::from_secs(1_000), |line| line.count(Kind::TransferConfirmed) > 0);
    let status = line.channel(ROUTINE);
    assert_eq!(status.checkpoint_bytes, 32 << 10);
    assert_eq!(status.associations[0].checkpoint_bytes, Some(32 << 10));
    assert!(status.line_kbit_s.is_some(), "and the rate is known all the same");
}

/// The content is asked for in pieces of 64 KiB, each of which takes longer than a delivery may stand
/// still.
#[test]
fn a_delivery_over_a_slow_line_goes_through() {
    let address = world::address(NAPLES, "OPS");
    let mailbox = engine::canonical(&address.parse().unwrap());
    let hop = NextHop::Mailbox(mailbox.clone());
    let mut line = Line::new(2_400, 200_000, &[(hop, Precedence::Routine)]);
    line.start();
    line.feed(Input::Mailboxes { addresses: vec![mailbox], changed: Vec::new() });
    line.user(&address);
    line.pass_until(Duration::from_secs(2_000), |line| line.count(Kind::Delivered) > 0);
    assert_eq!((line.count(Kind::Delivered), line.delivered), (1, 1), "{:#?}", line.failures());
    assert_eq!(line.count(Kind::DeliveryFailed), 0);
}
