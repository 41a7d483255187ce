//! A configuration that changes while messages are under way, in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "shared with other tests")]
mod world;

use base::PeerId;
use base::Precedence::{self, *};
use dscp::Dscp;
use node::changes::{Changes, EdgeChanges, Effect, Keys};
use node::config::{Channel, NodeConfig, Target};
use node::event::Kind;
use node::status::{AssociationStatus, ChannelStatus};
use node::{ChannelId, Input};
use p1::flags::ReportRequest;
use std::collections::BTreeMap;
use std::time::Duration;
use world::{ACT, Delivered, NAPLES, Setup, World, address, five_channels};

struct Run {
    world: World,
    sender: usize,
    reader: usize,
    submitted: usize,
}

fn content(n: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(31) ^ n.wrapping_mul(7)) as u8).collect()
}

fn with_one_association(config: &mut NodeConfig) {
    config.peers[0].channels[0].associations_max = 1;
    config.peers[0].channels[0].connection = node::config::Connection::Permanent;
}

impl Run {
    fn new(node: fn(&mut NodeConfig)) -> Run {
        Run::of(World::with(21, Setup { rts: |_| {}, node }))
    }

    fn of(mut world: World) -> Run {
        let sender = world.user(NAPLES, "OPS", true);
        let reader = world.user(ACT, "OPS", true);
        world.bind(sender, NAPLES);
        world.bind(reader, ACT);
        world.run_for(Duration::from_secs(1));
        Run { world, sender, reader, submitted: 0 }
    }

    fn submit(&mut self, precedence: Precedence, size: usize) {
        let (to, id) = ([address(ACT, "OPS")], format!("MESSAGE {}", self.submitted));
        let text = content(self.submitted, size);
        self.submitted += 1;
        let report = ReportRequest::NonDelivery;
        self.world.submit(self.sender, &to, precedence, &text, &id, report);
    }

    fn run(&mut self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds));
    }

    fn count(&self, site: usize, kind: Kind) -> usize {
        self.world.sites[site].events.iter().filter(|(_, e)| e.kind == kind).count()
    }

    /// Runs until so many events of this kind have happened at the sending site.
    fn until(&mut self, kind: Kind, count: usize) {
        for _ in 0..100_000 {
            if self.count(NAPLES, kind) >= count {
                return;
            }
            self.world.run_for(Duration::from_millis(5));
        }
        panic!("no {count} events {}", kind.name());
    }

    fn until_carried(&mut self, octets: u64) {
        for _ in 0..100_000 {
            if self.world.carried >= octets {
                return;
            }
            self.world.run_for(Duration::from_millis(5));
        }
        panic!("{} octets carried", self.world.carried);
    }

    fn configure(&mut self, site: usize, change: impl FnOnce(&mut NodeConfig)) -> Changes {
        self.world.configure(site, change, EdgeChanges::default())
    }

    fn channel(&self, name: &str) -> Option<ChannelStatus> {
        let status = self.world.sites[NAPLES].node.status(self.world.clock());
        status.peers.into_iter().flat_map(|p| p.channels).find(|c| c.name == name)
    }

    fn associations(&self, name: &str) -> Vec<AssociationStatus> {
        self.channel(name).map(|c| c.associations).unwrap_or_default()
    }

    fn ours(&self, name: &str) -> Vec<String> {
        let ours = self.associations(name).into_iter().filter(|a| a.role == "initiator");
        ours.map(|a| a.id).collect()
    }

    /// By MTS identifier: how often it was delivered, and how often it was reported undelivered.
    fn fates(&self) -> BTreeMap<String, (usize, usize)> {
        let mut fates: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for delivered in &self.world.users[self.reader].delivered {
            let Delivered::Message { identifier, content: text } = delivered else { panic!() };
            let place = |answer: &Result<String, i64>| answer.as_ref() == Ok(identifier);
            let n = self.world.users[self.sender].answers.iter().position(place).unwrap();
            assert_eq!(text[..], content(n, text.len())[..], "{n} whole");
            fates.entry(identifier.clone()).or_default().0 += 1;
        }
        for delivered in &self.world.users[self.sender].delivered {
            let Delivered::Report { subject, delivered: false } = delivered else { panic!() };
            fates.entry(subject.clone()).or_default().1 += 1;
        }
        fates
    }

    /// Nothing is left anywhere, and of so many messages this became.
    fn finish(mut self, delivered: usize, reported: usize) {
        self.run(700);
        let fates = self.fates();
        let of = |fate| fates.values().filter(|f| **f == fate).count();
        assert_eq!((of((1, 0)), of((0, 1))), (delivered, reported), "{fates:?}");
        assert_eq!(fates.len(), self.submitted);
        self.at_rest();
    }

    fn at_rest(&self) {
        let world = &self.world;
        assert_eq!((world.queued(NAPLES), world.queued(ACT)), (0, 0));
        for site in &world.sites {
            assert!(site.store.bodies.is_empty() && site.store.spools.is_empty());
            let held = site.node.holds();
            assert_eq!((held.arrivals, held.pending, held.keys, held.octets), (0, 0, 0, 0));
            assert!(site.events.iter().all(|(_, e)| e.kind != Kind::StoreFailed));
        }
    }
}

fn channels(config: &mut NodeConfig) -> &mut Vec<Channel> {
    &mut config.peers[0].channels
}

fn channel<'c>(config: &'c mut NodeConfig, name: &str) -> &'c mut Channel {
    channels(config).iter_mut().find(|c| c.name == name).unwrap()
}

/// Another mark and window for Flash, no channel for Override, a new one for Priority.
fn turned_over(config: &mut NodeConfig) {
    let flash = channel(config, "flash");
    (flash.rts.window, flash.dscp) = (1, Dscp::EF);
    flash.precedences.push(Override);
    channels(config).retain(|c| c.name != "override");
    channel(config, "priority").precedences = vec![Deferred];
    channel(config, "routine").precedences = vec![Routine];
    let mut bulk = channel(config, "priority").clone();
    (bulk.index, bulk.name, bulk.precedences) = (5, "bulk".to_owned(), vec![Priority]);
    channels(config).insert(0, bulk);
}

fn effects(changes: &Changes) -> String {
    let of_peer = |peer: &node::changes::PeerChange| {
        let channels = peer.channels.iter().map(|c| {
            format!(" {}={} {}", c.name, c.effect.name(), c.keys.join("+")).trim_end().to_owned()
        });
        let keys = peer.keys.join("+");
        format!("{} {} {keys}:{};", peer.name, peer.effect.name(), channels.collect::<String>())
    };
    changes.keys.join(" ") + &changes.peers.iter().map(of_peer).collect::<String>()
}

#[test]
fn what_did_not_change_is_not_touched() {
    let mut run = Run::new(five_channels);
    run.run(5);
    run.submit(Routine, 10_000_000);
    run.until_carried(1_000_000);
    let before = (run.ours("routine"), run.ours("immediate"), run.ours("flash"));
    assert_eq!(run.associations("routine").iter().filter(|a| a.state == "sending").count(), 1);

    let changes = run.configure(NAPLES, turned_over);
    assert_eq!(
        effects(&changes),
        "act kept : bulk=added routine=changed precedences priority=changed precedences \
         immediate=kept flash=reopened precedences+dscp+rts.window override=removed;"
    );
    assert_eq!(
        changes.to_string(),
        "act            kept\n\
         act/bulk       added\n\
         act/routine    changed   precedences\n\
         act/priority   changed   precedences\n\
         act/immediate  kept\n\
         act/flash      reopened  precedences, dscp, rts.window\n\
         act/override   removed\n"
    );
    run.configure(ACT, turned_over);
    run.submit(Priority, 1_000);
    run.submit(Override, 1_000);
    run.submit(Flash, 1_000);
    run.run(3);
    assert_eq!(run.fates().len(), 3, "beside the long one");
    assert!(run.world.carried < 8_000_000, "which goes on: {}", run.world.carried);
    let after = (run.ours("routine"), run.ours("immediate"));
    assert_eq!((&before.0, &before.1), (&after.0, &after.1), "the same associations");
    assert!(run.channel("override").is_none());
    let flash = run.associations("flash");
    assert!(flash.iter().all(|a| !before.2.contains(&a.id) && a.dscp_expected == Dscp::EF));
    assert_eq!(run.ours("bulk").len(), 1);
    run.until(Kind::TransferConfirmed, 4);
    assert!(run.world.carried < 11_000_000, "once: {}", run.world.carried);
    assert_eq!(run.count(NAPLES, Kind::TransferFailed), 0);
    assert_eq!(run.count(NAPLES, Kind::TransferStarted), 4);
    run.finish(4, 0);
}

#[test]
fn a_transfer_goes_on_to_its_end_while_its_channel_is_opened_anew_beside_it() {
    let mut run = Run::new(with_one_association);
    run.world.latency = Duration::from_millis(50);
    run.run(5);
    run.submit(Routine, 500_000);
    run.until_carried(100_000);
    let [old] = &run.ours("all")[..] else { panic!() };
    for site in [NAPLES, ACT] {
        let changes = run.configure(site, |config| channel(config, "all").dscp = Dscp::EF);
        assert_eq!(effects(&changes).matches("all=reopened dscp").count(), 1);
    }
    run.run(2);
    run.submit(Routine, 1_000);
    run.until(Kind::TransferConfirmed, 1);
    let both = run.associations("all");
    let marks: Vec<_> = both
        .iter()
        .filter(|a| a.role == "initiator")
        .map(|a| (a.id == *old, a.draining, a.state.as_str(), a.dscp_expected))
        .collect();
    assert_eq!(marks[0], (true, true, "sending", Dscp::CS3), "{marks:?}");
    assert_eq!((marks.len(), marks[1].0, marks[1].1, marks[1].3), (2, false, false, Dscp::EF));
    run.until(Kind::TransferConfirmed, 2);
    run.run(5);
    assert!(!run.ours("all").contains(old) && run.ours("all").len() == 1);
    assert_eq!(run.count(NAPLES, Kind::TransferFailed), 0);
    assert_eq!(run.count(NAPLES, Kind::AssociationLost), 0);
    run.finish(2, 0);
}

#[test]
fn a_removed_channel_s_transfer_is_interrupted_and_its_message_takes_another() {
    let mut run = Run::new(five_channels);
    run.run(5);
    run.submit(Flash, 3_000_000);
    run.until_carried(500_000);
    run.configure(NAPLES, |config| {
        channels(config).retain(|c| c.name != "flash");
        channel(config, "immediate").precedences.push(Flash);
    });
    run.run(1);
    assert_eq!(run.ours("flash").len(), 0);
    assert_eq!(run.associations("immediate").iter().filter(|a| a.state == "sending").count(), 1);
    run.until(Kind::TransferConfirmed, 1);
    assert_eq!(run.count(NAPLES, Kind::TransferStarted), 2);
    // What the peer had opened is gone as well, and comes back no more.
    run.run(60);
    assert!(run.channel("flash").is_none());
    run.finish(1, 0);
}

#[test]
fn a_precedence_moves_with_what_is_queued() {
    let mut run = Run::new(five_channels);
    run.run(5);
    // "priority" cannot be opened, and what is Priority waits.
    run.world.block(1);
    for _ in 0..20 {
        run.submit(Priority, 2_000);
    }
    run.run(20);
    assert_eq!(run.channel("priority").unwrap().queued[&Priority], 20);
    run.configure(NAPLES, |config| {
        channel(config, "priority").precedences = vec![Deferred];
        channel(config, "immediate").precedences.push(Priority);
        channel(config, "routine").precedences = vec![Routine];
    });
    run.run(20);
    assert_eq!(run.fates().len(), 20);
    let started = run.world.sites[NAPLES].events.iter().map(|(_, e)| e);
    let on: Vec<_> = started.filter(|e| e.kind == Kind::TransferStarted).collect();
    assert!(on.iter().all(|e| e.channel.unwrap().index == 2), "all on `immediate`");
    run.finish(20, 0);
}

/// The peer under another name: its channels are other channels.
fn renamed(config: &mut NodeConfig) {
    config.peers[0].name = "act again".to_owned();
    let id = config.peers[0].id();
    config.routes[1].to = Target::Peer(id);
    for (n, channel) in config.peers[0].channels.iter_mut().enumerate() {
        channel.index = 10 + n as u32;
    }
}

fn without_peer(config: &mut NodeConfig) {
    config.peers.clear();
    config.routes.truncate(1);
}

fn asked(limit: usize) -> node::listing::QueueRequest {
    node::listing::QueueRequest { limit, ..Default::default() }
}

#[test]
fn an_operator_is_told_what_an_entry_became_that_is_routed_again() {
    let mut run = Run::new(with_one_association);
    run.run(5);
    run.submit(Routine, 5_000_000);
    run.submit(Routine, 3_000);
    run.until(Kind::Submitted, 2);
    let list = |run: &Run| {
        let site = &run.world.sites[NAPLES];
        let page = site.node.queue_page(run.world.clock(), &asked(10)).unwrap();
        page.describe(|_| None)
            .entries
            .iter()
            .map(|row| base::EntryId(row.entry[1..].parse().unwrap()))
            .collect::<Vec<base::EntryId>>()
    };
    let old = *list(&run).last().unwrap();
    run.world.feed(NAPLES, Input::Operate { request: 1, entries: vec![old], hold: true });
    run.run(1);
    run.configure(NAPLES, renamed);
    run.run(1);
    let new = *list(&run).last().unwrap();
    assert_ne!(old, new);
    let events = &run.world.sites[NAPLES].events;
    let of = events.iter().filter(|(_, event)| event.kind == Kind::Rerouted);
    let said: Vec<&str> = of.map(|(_, event)| event.detail.as_str()).collect();
    let expected = format!("routed again, as {new} to peer act again");
    assert!(said.iter().any(|detail| detail.ends_with(&expected)), "{new} in {said:?}");
    let asked = node::listing::QueueRequest { entry: Some(old), ..asked(10) };
    let site = &run.world.sites[NAPLES];
    let why = site.node.queue_page(run.world.clock(), &asked).unwrap_err();
    assert_eq!(why.to_string(), format!("there is no entry {old}: it was routed again, as {new}"));
    run.world.feed(NAPLES, Input::Operate { request: 2, entries: vec![old], hold: false });
    let (_, outcome) = run.world.sites[NAPLES].operated.last().unwrap();
    let became = node::operator::Outcome::Became(vec![new]);
    assert_eq!(outcome.as_ref().unwrap(), &[(old, became)]);
    run.world.feed(NAPLES, Input::Operate { request: 3, entries: vec![new], hold: false });
    run.finish(2, 0);
}

#[test]
fn what_is_queued_for_a_removed_peer_is_routed_again() {
    let mut run = Run::new(with_one_association);
    run.run(5);
    run.submit(Routine, 5_000_000);
    for _ in 0..100 {
        run.submit(Routine, 3_000);
    }
    run.until(Kind::Submitted, 101);
    let changes = run.configure(NAPLES, renamed);
    assert_eq!(effects(&changes), "routeact again added : all=added;act removed : all=removed;");
    run.run(1);
    assert_eq!(run.count(NAPLES, Kind::Rerouted), 101);
    assert_eq!(run.count(NAPLES, Kind::NonDelivery), 0);
    assert!(run.ours("all").len() == 1, "the old one is gone: {:?}", run.associations("all"));
    run.finish(101, 0);
}

#[test]
fn or_reported_where_no_route_leads() {
    let mut run = Run::new(with_one_association);
    run.run(5);
    run.submit(Routine, 5_000_000);
    for _ in 0..50 {
        run.submit(Routine, 3_000);
    }
    run.until(Kind::Submitted, 51);
    run.configure(NAPLES, without_peer);
    run.run(60);
    // What comes late is refused by the routes.
    run.submit(Flash, 10);
    run.run(10);
    assert_eq!(run.fates().values().filter(|f| **f == (0, 1)).count(), 52);
    let status = run.world.sites[NAPLES].node.status(run.world.clock());
    assert!(status.peers.is_empty(), "{status:?}");
    run.finish(0, 52);
}

#[test]
fn a_peer_that_is_back_before_its_messages_were_read_keeps_them() {
    let mut run = Run::new(with_one_association);
    run.run(5);
    run.world.block(0);
    for _ in 0..100 {
        run.submit(Routine, 3_000);
    }
    run.run(5);
    let before = run.world.configs[NAPLES].clone();
    run.configure(NAPLES, without_peer);
    run.configure(NAPLES, |config| *config = before);
    run.world.blocked.clear();
    run.run(5);
    assert_eq!(run.count(NAPLES, Kind::Rerouted), 0);
    run.finish(100, 0);
}

#[test]
fn unrouted_are_few_in_memory_while_the_disk_does_not_answer() {
    let mut run = Run::new(with_one_association);
    run.run(5);
    run.world.link_up = false;
    run.world.cut();
    for _ in 0..100 {
        run.submit(Routine, 10);
    }
    run.until(Kind::Submitted, 100);
    run.world.disk_stuck[NAPLES] = true;
    run.configure(NAPLES, without_peer);
    run.run(120);
    assert_eq!(run.count(NAPLES, Kind::Rerouted), 32);
    run.world.disk_stuck[NAPLES] = false;
    run.run(60);
    assert_eq!(run.count(NAPLES, Kind::Rerouted), 100);
    assert_eq!(run.fates().values().filter(|f| **f == (0, 1)).count(), 100);
}

#[test]
fn another_identity_binds_anew() {
    let mut run = Run::new(with_one_association);
    run.run(5);
    let before = run.ours("all");
    let id = PeerId::of_name("act");
    let mut expect = Keys::default();
    expect.reopens("expect", true);
    let edge = EdgeChanges { peers: [(id, expect)].into(), ..EdgeChanges::default() };
    let changes = run.world.configure(NAPLES, |_| {}, edge);
    assert_eq!(effects(&changes), "act reopened expect: all=reopened;");
    run.run(10);
    let after = run.ours("all");
    assert!(before.len() == 1 && after.len() == 1 && before != after);

    let changes =
        run.configure(NAPLES, |config| config.peers[0].dialect = p1::Dialect::BlueBook1988);
    assert_eq!(effects(&changes), "act changed extensions: all=kept;");
    run.run(10);
    assert_eq!(run.ours("all"), after);
    run.submit(Routine, 10);
    run.finish(1, 0);
}

#[test]
fn what_the_new_dialect_has_no_form_for_is_reported_and_the_rest_goes_on() {
    let mut run = Run::new(five_channels);
    run.world.link_up = false;
    run.world.cut();
    run.world.users[run.sender].critical = true;
    run.submit(Flash, 1_000);
    run.world.users[run.sender].critical = false;
    run.submit(Flash, 1_000);
    run.until(Kind::Submitted, 2);
    run.configure(NAPLES, |config| config.peers[0].dialect = p1::Dialect::BlueBook1988);
    run.world.link_up = true;
    run.run(100);
    let details = |run: &Run, kind: Kind| -> Vec<String> {
        let events = run.world.sites[NAPLES].events.iter();
        events.filter(|(_, e)| e.kind == kind).map(|(_, e)| e.detail.clone()).collect()
    };
    let rerouted = details(&run, Kind::Rerouted);
    let [detail] = &rerouted[..] else { panic!("{rerouted:?}") };
    assert!(detail.starts_with("its peer has no form for a critical extension: routed again"));
    // The peer is sent the other one, without its qualifier; and nothing of the first.
    let sent = details(&run, Kind::TransferStarted);
    assert_eq!(sent, ["1000 octets of content, 1 private extensions left out"]);
    run.finish(1, 1);
}

#[test]
fn limits_hold_at_once_and_cut_nobody_off() {
    let mut run = Run::new(five_channels);
    run.run(5);
    let before = run.world.sites[NAPLES].node.holds().associations;
    let changes = run.configure(NAPLES, |config| {
        config.limits.associations = 1;
        config.limits.associations_per_user = 1;
        config.hold.hold = node::config::Hold::Off;
    });
    assert_eq!(changes.keys, ["precedence", "limits.associations", "limits.associations_per_user"]);
    run.run(10);
    assert_eq!(run.world.sites[NAPLES].node.holds().associations, before);
    let second = run.world.user(NAPLES, "LOG", false);
    run.world.bind(second, NAPLES);
    run.run(5);
    assert!(!run.world.is_bound(second), "one too many");
    assert!(run.world.is_bound(run.sender));
    run.submit(Flash, 1_000);
    run.finish(1, 0);
}

#[test]
fn what_came_by_a_listener_that_is_gone_ends_and_the_rest_stays() {
    let mut run = Run::new(five_channels);
    run.run(5);
    let theirs = |run: &Run| -> Vec<String> {
        let there = run.associations("flash").into_iter().filter(|a| a.role == "responder");
        there.map(|a| a.id).collect()
    };
    let (ours, peers) = (run.ours("flash"), theirs(&run));
    assert_eq!((ours.len(), peers.len()), (1, 1));
    // Users stay, for their listener does.
    let config = {
        let mut config = run.world.configs[NAPLES].clone();
        let flash = config.listeners.iter_mut().find(|l| l.id.0 == 4).unwrap();
        flash.id.0 = 40;
        config
    };
    let edge = EdgeChanges::default();
    let changes = run.world.sites[NAPLES].node.changes(&config, &edge);
    assert!(effects(&changes).contains("flash=changed listen"), "{}", effects(&changes));
    run.world.configs[NAPLES] = config.clone();
    run.world.feed(NAPLES, Input::Configure { config: Box::new(config), edge });
    run.run(20);
    assert_eq!(run.ours("flash"), ours);
    assert!(theirs(&run).len() == 1 && theirs(&run) != peers, "bound again by the new one");
    assert!(run.world.is_bound(run.sender));
    run.submit(Flash, 1_000);
    run.finish(1, 0);
}

#[test]
fn nothing_is_done_where_nothing_changed() {
    let mut run = Run::new(five_channels);
    run.run(5);
    let ids = |run: &Run| -> Vec<Vec<String>> {
        ["routine", "priority", "immediate", "flash", "override"].map(|c| run.ours(c)).to_vec()
    };
    let before = ids(&run);
    let changes = run.configure(NAPLES, |_| {});
    assert!(!changes.any() && changes.restart.is_empty());
    assert!(changes.peers.iter().all(|p| p.effect == Effect::Kept));
    run.run(10);
    assert_eq!(ids(&run), before);
    assert_eq!(run.count(NAPLES, Kind::Reconfigured), 0);
    let mut other = run.world.configs[NAPLES].clone();
    other.mta.0.push('X');
    let changes = run.world.sites[NAPLES].node.changes(&other, &EdgeChanges::default());
    assert_eq!(changes.restart, ["mta.name"]);
}

/// Channels in some order, with some precedences each, of which some are new.
fn shuffle(config: &mut NodeConfig, model: &Channel, next: &mut u32, random: &mut base::rng::Rng) {
    let names = ["one", "two", "three", "four"];
    let mut made: Vec<Channel> = Vec::new();
    let count = 1 + random.below(4) as usize;
    for name in names.iter().take(count) {
        let old = channels(config).iter().find(|c| c.name == *name).cloned();
        let mut channel = old.unwrap_or_else(|| {
            *next += 1;
            Channel { index: *next, name: (*name).to_owned(), ..model.clone() }
        });
        channel.precedences.clear();
        match random.below(4) {
            0 => channel.rts.window = 1 + random.below(4) as u32,
            1 => channel.rts.checkpoint_size = [1, 4, 16][random.below(3) as usize],
            2 => channel.associations_max = 1 + random.below(3) as u32,
            _ => {}
        }
        made.push(channel);
    }
    for precedence in Precedence::ALL {
        made[random.below(count as u64) as usize].precedences.push(precedence);
    }
    *channels(config) = made;
}

fn turmoil(seed: u64) {
    let mut run = Run::of(World::with(seed, Setup { rts: |_| {}, node: |_| {} }));
    let model = run.world.configs[NAPLES].peers[0].channels[0].clone();
    let full = run.world.configs.clone();
    let mut next = 100;
    let mut random = base::rng::Rng::new(seed);
    let count = 30;
    for n in 0..count {
        let size = [50, 3_000, 20_000, 200_000][random.below(4) as usize];
        run.submit(Precedence::ALL[random.below(6) as usize], size);
        run.world.run_for(Duration::from_millis(random.below(600)));
        let site = random.below(2) as usize;
        match random.below(8) {
            0..5 => {
                let peer = full[site].peers[0].clone();
                let routes = full[site].routes.clone();
                run.configure(site, |config| {
                    if config.peers.is_empty() {
                        (config.peers, config.routes) = (vec![peer], routes);
                        channels(config).clear();
                    }
                    shuffle(config, &model, &mut next, &mut random);
                });
            }
            5 if n % 3 == 0 => {
                run.configure(NAPLES, without_peer);
            }
            6 => run.world.cut(),
            _ => {}
        }
    }
    for site in [NAPLES, ACT] {
        let (peers, routes) = (full[site].peers.clone(), full[site].routes.clone());
        run.configure(site, |config| {
            (config.peers, config.routes) = (peers, routes);
            channels(config)[0].index = 1_000;
        });
    }
    run.run(1_500);
    assert_eq!(run.world.users[run.sender].answers.len(), count, "seed {seed}");
    let fates = run.fates();
    assert_eq!(fates.len(), count, "seed {seed}: none lost");
    for (message, fate) in &fates {
        assert!(fate.0 <= 1 && fate.1 <= 1, "seed {seed}: {message} {fate:?}");
    }
    assert!(fates.values().filter(|f| f.0 == 1).count() > 0, "seed {seed}");
    run.at_rest();
}

#[test]
fn nothing_is_lost_or_doubled_whatever_changes() {
    for seed in 500..524 {
        turmoil(seed);
    }
}

#[test]
fn an_identifier_names_one_channel_for_ever() {
    let mut run = Run::new(five_channels);
    run.configure(NAPLES, turned_over);
    let config = &run.world.configs[NAPLES];
    let peer = PeerId::of_name("act");
    let named = |index| config.channel(ChannelId { peer, index }).map(|(_, c)| c.name.as_str());
    assert_eq!((named(5), named(4), named(0)), (Some("bulk"), None, Some("routine")));
}
