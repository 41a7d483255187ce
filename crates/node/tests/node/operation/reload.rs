//! A configuration that changes while messages are in progress, in virtual time.

use base::PeerId;
use base::Precedence::{self, *};
use dscp::Dscp;
use node::changes::{Changes, EdgeChanges, Effect, Keys};
use node::config::{Channel, NodeConfig, Target};
use node::event::Kind;
use node::{ChannelId, Input};
use p1::flags::ReportRequest;
use status::{AssociationStatus, ChannelStatus};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::build::content;
use testkit::{ACT, Delivered, Events, NAPLES, NOTHING, Network, Pair, Setup, five_channels};

fn with_one_association(config: &mut NodeConfig) {
    config.peers[0].channels[0].associations_max = 1;
    config.peers[0].channels[0].connection = node::config::Connection::Permanent;
}

/// A pair with this configuration of both nodes, whose sender takes reports.
fn joined(node: fn(&mut NodeConfig)) -> Pair {
    Pair::with_reports(21, Setup { node, ..NOTHING })
}

fn configure(pair: &mut Pair, site: usize, change: impl FnOnce(&mut NodeConfig)) -> Changes {
    pair.network.configure(site, change, EdgeChanges::default())
}

fn status(pair: &Pair, name: &str) -> Option<ChannelStatus> {
    let status = pair.sites[NAPLES].node.status(pair.clock());
    status.peers.into_iter().flat_map(|p| p.channels).find(|c| c.name == name)
}

fn associations(pair: &Pair, name: &str) -> Vec<AssociationStatus> {
    status(pair, name).map(|c| c.associations).unwrap_or_default()
}

fn ours(pair: &Pair, name: &str) -> Vec<String> {
    let ours = associations(pair, name).into_iter().filter(|a| a.role == "initiator");
    ours.map(|a| a.id).collect()
}

/// By MTS identifier: how often it was delivered, and how often it was reported undelivered.
fn dispositions(pair: &Pair) -> BTreeMap<String, (usize, usize)> {
    let mut dispositions: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for delivered in &pair.users[pair.reader].delivered {
        let Delivered::Message { identifier, content: text } = delivered else { panic!() };
        let place = |answer: &Result<String, i64>| answer.as_ref() == Ok(identifier);
        let n = pair.users[pair.sender].answers.iter().position(place).unwrap();
        assert_eq!(text[..], content(n + 1, text.len())[..], "{n} is complete");
        dispositions.entry(identifier.clone()).or_default().0 += 1;
    }
    for delivered in &pair.users[pair.sender].delivered {
        let Delivered::Report { subject, delivered: false } = delivered else { panic!() };
        dispositions.entry(subject.clone()).or_default().1 += 1;
    }
    dispositions
}

/// Runs to the end: this number of messages is delivered and reported, and nothing is left.
fn finish(mut pair: Pair, delivered: usize, reported: usize) {
    pair.run(700);
    let dispositions = dispositions(&pair);
    let count = |disposition| dispositions.values().filter(|f| **f == disposition).count();
    assert_eq!((count((1, 0)), count((0, 1))), (delivered, reported), "{dispositions:?}");
    assert_eq!(dispositions.len(), pair.submitted);
    at_rest(&pair);
}

fn at_rest(pair: &Pair) {
    pair.assert_empty();
    for site in &pair.sites {
        assert_eq!((site.node.holds().octets, site.count(Kind::StoreFailed)), (0, 0));
    }
}

fn channels(config: &mut NodeConfig) -> &mut Vec<Channel> {
    &mut config.peers[0].channels
}

fn channel<'c>(config: &'c mut NodeConfig, name: &str) -> &'c mut Channel {
    channels(config).iter_mut().find(|c| c.name == name).unwrap()
}

/// Another mark and window for Flash, no channel for Override, a new channel for Priority.
fn rearranged(config: &mut NodeConfig) {
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
fn channels_that_did_not_change_keep_their_associations() {
    let mut pair = joined(five_channels);
    pair.run(5);
    pair.submit(Routine, 10_000_000);
    pair.until_carried(1_000_000);
    let before = (ours(&pair, "routine"), ours(&pair, "immediate"), ours(&pair, "flash"));
    assert_eq!(associations(&pair, "routine").iter().filter(|a| a.state == "sending").count(), 1);

    let changes = configure(&mut pair, NAPLES, rearranged);
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
    configure(&mut pair, ACT, rearranged);
    pair.submit(Priority, 1_000);
    pair.submit(Override, 1_000);
    pair.submit(Flash, 1_000);
    pair.run(3);
    assert_eq!(dispositions(&pair).len(), 3, "beside the long one");
    assert!(pair.carried < 8_000_000, "the long one continues: {}", pair.carried);
    let after = (ours(&pair, "routine"), ours(&pair, "immediate"));
    assert_eq!((&before.0, &before.1), (&after.0, &after.1), "the same associations");
    assert!(status(&pair, "override").is_none());
    let flash = associations(&pair, "flash");
    assert!(flash.iter().all(|a| !before.2.contains(&a.id) && a.dscp_expected == Dscp::EF));
    assert_eq!(ours(&pair, "bulk").len(), 1);
    pair.until(Kind::TransferConfirmed, 4);
    assert!(pair.carried < 11_000_000, "once: {}", pair.carried);
    assert_eq!(pair.count(NAPLES, Kind::TransferFailed), 0);
    assert_eq!(pair.count(NAPLES, Kind::TransferStarted), 4);
    finish(pair, 4, 0);
}

#[test]
fn a_transfer_is_finished_while_its_channel_is_opened_again_beside_it() {
    let mut pair = joined(with_one_association);
    pair.latency = Duration::from_millis(50);
    pair.run(5);
    pair.submit(Routine, 500_000);
    pair.until_carried(100_000);
    let [old] = &ours(&pair, "all")[..] else { panic!() };
    for site in [NAPLES, ACT] {
        let changes = configure(&mut pair, site, |config| channel(config, "all").dscp = Dscp::EF);
        assert_eq!(effects(&changes).matches("all=reopened dscp").count(), 1);
    }
    pair.run(2);
    pair.submit(Routine, 1_000);
    pair.until(Kind::TransferConfirmed, 1);
    let both = associations(&pair, "all");
    let marks: Vec<_> = both
        .iter()
        .filter(|a| a.role == "initiator")
        .map(|a| (a.id == *old, a.draining, a.state.as_str(), a.dscp_expected))
        .collect();
    assert_eq!(marks[0], (true, true, "sending", Dscp::CS3), "{marks:?}");
    assert_eq!((marks.len(), marks[1].0, marks[1].1, marks[1].3), (2, false, false, Dscp::EF));
    pair.until(Kind::TransferConfirmed, 2);
    pair.run(5);
    assert!(!ours(&pair, "all").contains(old) && ours(&pair, "all").len() == 1);
    assert_eq!(pair.count(NAPLES, Kind::TransferFailed), 0);
    assert_eq!(pair.count(NAPLES, Kind::AssociationLost), 0);
    finish(pair, 2, 0);
}

#[test]
fn the_transfer_of_a_removed_channel_is_interrupted_and_sent_on_another() {
    let mut pair = joined(five_channels);
    pair.run(5);
    pair.submit(Flash, 3_000_000);
    pair.until_carried(500_000);
    configure(&mut pair, NAPLES, |config| {
        channels(config).retain(|c| c.name != "flash");
        channel(config, "immediate").precedences.push(Flash);
    });
    pair.run(1);
    assert_eq!(ours(&pair, "flash").len(), 0);
    assert_eq!(associations(&pair, "immediate").iter().filter(|a| a.state == "sending").count(), 1);
    pair.until(Kind::TransferConfirmed, 1);
    assert_eq!(pair.count(NAPLES, Kind::TransferStarted), 2);
    // The associations that the peer opened have ended, too, and are not opened again.
    pair.run(60);
    assert!(status(&pair, "flash").is_none());
    finish(pair, 1, 0);
}

#[test]
fn queued_messages_follow_their_precedence_to_another_channel() {
    let mut pair = joined(five_channels);
    pair.run(5);
    // Channel "priority" cannot be opened, so Priority messages wait.
    pair.block(1);
    for _ in 0..20 {
        pair.submit(Priority, 2_000);
    }
    pair.run(20);
    assert_eq!(status(&pair, "priority").unwrap().queued[&Priority], 20);
    configure(&mut pair, NAPLES, |config| {
        channel(config, "priority").precedences = vec![Deferred];
        channel(config, "immediate").precedences.push(Priority);
        channel(config, "routine").precedences = vec![Routine];
    });
    pair.run(20);
    assert_eq!(dispositions(&pair).len(), 20);
    let started = pair.sites[NAPLES].events.iter().map(|(_, e)| e);
    let on: Vec<_> = started.filter(|e| e.kind == Kind::TransferStarted).collect();
    assert!(on.iter().all(|e| e.channel.unwrap().index == 2), "all on `immediate`");
    finish(pair, 20, 0);
}

/// The peer gets another name, so its channels are new.
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
fn an_operator_who_names_a_rerouted_entry_gets_the_new_one() {
    let mut pair = joined(with_one_association);
    pair.run(5);
    pair.submit(Routine, 5_000_000);
    pair.submit(Routine, 3_000);
    pair.until(Kind::Submitted, 2);
    let list = |pair: &Pair| {
        let site = &pair.sites[NAPLES];
        let page = site.node.queue_page(pair.clock(), &asked(10)).unwrap();
        page.describe(|_| None)
            .entries
            .iter()
            .map(|row| base::EntryId(row.entry[1..].parse().unwrap()))
            .collect::<Vec<base::EntryId>>()
    };
    let old = *list(&pair).last().unwrap();
    pair.feed(
        NAPLES,
        Input::Operate {
            request: 1,
            entries: vec![old],
            act: node::operator::Act::Hold,
            by: node::operator::Operator::default(),
        },
    );
    pair.run(1);
    configure(&mut pair, NAPLES, renamed);
    pair.run(1);
    let new = *list(&pair).last().unwrap();
    assert_ne!(old, new);
    let events = &pair.sites[NAPLES].events;
    let rerouted = events.iter().filter(|(_, event)| event.kind == Kind::Rerouted);
    let details: Vec<&str> = rerouted.map(|(_, event)| event.detail.as_str()).collect();
    let expected = format!("routed again, as {new} to peer act again");
    assert!(details.iter().any(|detail| detail.ends_with(&expected)), "{new} in {details:?}");
    let asked = node::listing::QueueRequest { entry: Some(old), ..asked(10) };
    let site = &pair.sites[NAPLES];
    let why = site.node.queue_page(pair.clock(), &asked).unwrap_err();
    assert_eq!(why.to_string(), format!("there is no entry {old}: it was routed again, as {new}"));
    pair.feed(
        NAPLES,
        Input::Operate {
            request: 2,
            entries: vec![old],
            act: node::operator::Act::Release,
            by: node::operator::Operator::default(),
        },
    );
    let (_, outcome) = pair.sites[NAPLES].operated.last().unwrap();
    let became = node::operator::ActOutcome::Became(vec![new]);
    assert_eq!(outcome.as_ref().unwrap(), &[(old, became)]);
    pair.feed(
        NAPLES,
        Input::Operate {
            request: 3,
            entries: vec![new],
            act: node::operator::Act::Release,
            by: node::operator::Operator::default(),
        },
    );
    finish(pair, 2, 0);
}

#[test]
fn messages_for_a_removed_peer_are_routed_again() {
    let mut pair = joined(with_one_association);
    pair.run(5);
    pair.submit(Routine, 5_000_000);
    for _ in 0..100 {
        pair.submit(Routine, 3_000);
    }
    pair.until(Kind::Submitted, 101);
    let changes = configure(&mut pair, NAPLES, renamed);
    assert_eq!(effects(&changes), "routeact again added : all=added;act removed : all=removed;");
    pair.run(1);
    assert_eq!(pair.count(NAPLES, Kind::Rerouted), 101);
    assert_eq!(pair.count(NAPLES, Kind::NonDelivery), 0);
    assert!(
        ours(&pair, "all").len() == 1,
        "the old association has ended: {:?}",
        associations(&pair, "all")
    );
    finish(pair, 101, 0);
}

#[test]
fn messages_for_a_removed_peer_without_a_route_are_reported() {
    let mut pair = joined(with_one_association);
    pair.run(5);
    pair.submit(Routine, 5_000_000);
    for _ in 0..50 {
        pair.submit(Routine, 3_000);
    }
    pair.until(Kind::Submitted, 51);
    configure(&mut pair, NAPLES, without_peer);
    pair.run(60);
    // A later message has no route.
    pair.submit(Flash, 10);
    pair.run(10);
    assert_eq!(dispositions(&pair).values().filter(|f| **f == (0, 1)).count(), 52);
    let status = pair.sites[NAPLES].node.status(pair.clock());
    assert!(status.peers.is_empty(), "{status:?}");
    finish(pair, 0, 52);
}

#[test]
fn a_peer_that_is_added_again_before_its_messages_were_read_keeps_them() {
    let mut pair = joined(with_one_association);
    pair.run(5);
    pair.block(0);
    for _ in 0..100 {
        pair.submit(Routine, 3_000);
    }
    pair.run(5);
    let before = pair.sites[NAPLES].config.clone();
    configure(&mut pair, NAPLES, without_peer);
    configure(&mut pair, NAPLES, |config| *config = before);
    pair.blocked.clear();
    pair.run(5);
    assert_eq!(pair.count(NAPLES, Kind::Rerouted), 0);
    finish(pair, 100, 0);
}

#[test]
fn few_unrouted_entries_are_in_memory_while_the_disk_does_not_answer() {
    let mut pair = joined(with_one_association);
    pair.run(5);
    pair.line_up = false;
    pair.cut();
    for _ in 0..100 {
        pair.submit(Routine, 10);
    }
    pair.until(Kind::Submitted, 100);
    pair.sites[NAPLES].store.stuck = true;
    configure(&mut pair, NAPLES, without_peer);
    pair.run(120);
    assert_eq!(pair.count(NAPLES, Kind::Rerouted), 32);
    pair.sites[NAPLES].store.stuck = false;
    pair.run(60);
    assert_eq!(pair.count(NAPLES, Kind::Rerouted), 100);
    assert_eq!(dispositions(&pair).values().filter(|f| **f == (0, 1)).count(), 100);
}

#[test]
fn a_changed_password_ends_associations_and_a_changed_dialect_keeps_them() {
    let mut pair = joined(with_one_association);
    pair.run(5);
    let before = ours(&pair, "all");
    let id = PeerId::of_name("act");
    let mut expect = Keys::default();
    expect.reopens("expect", true);
    let edge = EdgeChanges { peers: [(id, expect)].into(), ..EdgeChanges::default() };
    let changes = pair.network.configure(NAPLES, |_| {}, edge);
    assert_eq!(effects(&changes), "act reopened expect: all=reopened;");
    pair.run(10);
    let after = ours(&pair, "all");
    assert!(before.len() == 1 && after.len() == 1 && before != after);

    let changes = configure(&mut pair, NAPLES, |config| {
        config.peers[0].form.dialect = p1::Dialect::BlueBook1988;
    });
    assert_eq!(effects(&changes), "act changed extensions: all=kept;");
    pair.run(10);
    assert_eq!(ours(&pair, "all"), after);
    pair.submit(Routine, 10);
    finish(pair, 1, 0);
}

#[test]
fn a_message_without_a_form_in_the_new_dialect_is_reported_and_others_are_sent() {
    let mut pair = joined(five_channels);
    pair.line_up = false;
    pair.cut();
    pair.network.users[pair.sender].critical = true;
    pair.submit(Flash, 1_000);
    pair.network.users[pair.sender].critical = false;
    pair.submit(Flash, 1_000);
    pair.until(Kind::Submitted, 2);
    configure(&mut pair, NAPLES, |config| config.peers[0].form.dialect = p1::Dialect::BlueBook1988);
    pair.line_up = true;
    pair.run(100);
    let rerouted = pair.sites[NAPLES].details(Kind::Rerouted);
    let [detail] = &rerouted[..] else { panic!("{rerouted:?}") };
    assert!(detail.starts_with("its peer's form of P1 cannot carry it: routed again"));
    // The other message is sent to the peer without its qualifier; nothing of the first is sent.
    let sent = pair.sites[NAPLES].details(Kind::TransferStarted);
    assert_eq!(sent, ["1000 octets of content, extensions left out: 1"]);
    finish(pair, 1, 1);
}

#[test]
fn new_limits_apply_at_once_and_end_no_association() {
    let mut pair = joined(five_channels);
    pair.run(5);
    let before = pair.sites[NAPLES].node.holds().associations;
    let changes = configure(&mut pair, NAPLES, |config| {
        config.limits.associations = 1;
        config.limits.associations_per_user = 1;
        config.hold.hold = node::config::Hold::Off;
    });
    assert_eq!(changes.keys, ["precedence", "limits.associations", "limits.associations_per_user"]);
    pair.run(10);
    assert_eq!(pair.sites[NAPLES].node.holds().associations, before);
    let second = pair.user(NAPLES, "LOG", false);
    pair.bind(second, NAPLES);
    pair.run(5);
    assert!(!pair.is_bound(second), "one association too many");
    assert!(pair.is_bound(pair.sender));
    pair.submit(Flash, 1_000);
    finish(pair, 1, 0);
}

#[test]
fn associations_of_a_removed_listener_end_and_others_stay() {
    let mut pair = joined(five_channels);
    pair.run(5);
    let theirs = |pair: &Pair| -> Vec<String> {
        let there = associations(pair, "flash").into_iter().filter(|a| a.role == "responder");
        there.map(|a| a.id).collect()
    };
    let (own, peers) = (ours(&pair, "flash"), theirs(&pair));
    assert_eq!((own.len(), peers.len()), (1, 1));
    // Users stay, because their listener stays.
    let config = {
        let mut config = pair.sites[NAPLES].config.clone();
        let flash = config.listeners.iter_mut().find(|l| l.id.0 == 4).unwrap();
        flash.id.0 = 40;
        config
    };
    let edge = EdgeChanges::default();
    let changes = pair.sites[NAPLES].node.changes(&config, &edge);
    assert!(effects(&changes).contains("flash=changed listen"), "{}", effects(&changes));
    pair.sites[NAPLES].config = config.clone();
    pair.feed(NAPLES, Input::Configure { config: Box::new(config), edge });
    pair.run(20);
    assert_eq!(ours(&pair, "flash"), own);
    assert!(theirs(&pair).len() == 1 && theirs(&pair) != peers, "bound again on the new listener");
    assert!(pair.is_bound(pair.sender));
    pair.submit(Flash, 1_000);
    finish(pair, 1, 0);
}

#[test]
fn a_reload_without_a_change_does_nothing() {
    let mut pair = joined(five_channels);
    pair.run(5);
    let ids = |pair: &Pair| -> Vec<Vec<String>> {
        ["routine", "priority", "immediate", "flash", "override"].map(|c| ours(pair, c)).to_vec()
    };
    let before = ids(&pair);
    let changes = configure(&mut pair, NAPLES, |_| {});
    assert!(!changes.any() && changes.restart.is_empty());
    assert!(changes.peers.iter().all(|p| p.effect == Effect::Kept));
    pair.run(10);
    assert_eq!(ids(&pair), before);
    assert_eq!(pair.count(NAPLES, Kind::Reconfigured), 0);
    let mut other = pair.sites[NAPLES].config.clone();
    other.mta.0.push('X');
    let changes = pair.sites[NAPLES].node.changes(&other, &EdgeChanges::default());
    assert_eq!(changes.restart, ["mta.name"]);
}

/// Random channels in a random order, some of them new, with random precedences.
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

fn random_changes(seed: u64) {
    let mut pair = Pair::with_reports(seed, NOTHING);
    let model = pair.sites[NAPLES].config.peers[0].channels[0].clone();
    let full = [NAPLES, ACT].map(|site| pair.sites[site].config.clone());
    let mut next = 100;
    let mut random = base::rng::Rng::new(seed);
    let count = 30;
    for n in 0..count {
        let size = [50, 3_000, 20_000, 200_000][random.below(4) as usize];
        pair.submit(Precedence::ALL[random.below(6) as usize], size);
        pair.run_for(Duration::from_millis(random.below(600)));
        let site = random.below(2) as usize;
        match random.below(8) {
            0..5 => {
                let peer = full[site].peers[0].clone();
                let routes = full[site].routes.clone();
                configure(&mut pair, site, |config| {
                    if config.peers.is_empty() {
                        (config.peers, config.routes) = (vec![peer], routes);
                        channels(config).clear();
                    }
                    shuffle(config, &model, &mut next, &mut random);
                });
            }
            5 if n % 3 == 0 => {
                configure(&mut pair, NAPLES, without_peer);
            }
            6 => pair.cut(),
            _ => {}
        }
    }
    for site in [NAPLES, ACT] {
        let (peers, routes) = (full[site].peers.clone(), full[site].routes.clone());
        configure(&mut pair, site, |config| {
            (config.peers, config.routes) = (peers, routes);
            channels(config)[0].index = 1_000;
        });
    }
    pair.run(1_500);
    assert_eq!(pair.network.users[pair.sender].answers.len(), count, "seed {seed}");
    let dispositions = dispositions(&pair);
    assert_eq!(dispositions.len(), count, "seed {seed}: none lost");
    for (message, disposition) in &dispositions {
        assert!(disposition.0 <= 1 && disposition.1 <= 1, "seed {seed}: {message} {disposition:?}");
    }
    assert!(dispositions.values().filter(|f| f.0 == 1).count() > 0, "seed {seed}");
    at_rest(&pair);
}

#[test]
fn nothing_is_lost_or_doubled_by_random_changes() {
    for seed in 500..524 {
        random_changes(seed);
    }
}

#[test]
fn an_identifier_of_a_channel_is_never_used_again() {
    let mut pair = joined(five_channels);
    configure(&mut pair, NAPLES, rearranged);
    let config = &pair.sites[NAPLES].config;
    let peer = PeerId::of_name("act");
    let named = |index| config.channel(ChannelId { peer, index }).map(|(_, c)| c.name.as_str());
    assert_eq!((named(5), named(4), named(0)), (Some("bulk"), None, Some("routine")));
}

/// A report that goes round because two sites move traffic by reloads would be discarded as a loop.
#[test]
fn what_came_from_a_peer_is_not_routed_back_to_it() {
    const RELAY: usize = 2;
    let mut network = Network::with_relay(5, NOTHING);
    let run = |network: &mut Network, seconds| network.run_for(Duration::from_secs(seconds));
    let from = network.user(NAPLES, "OPS", true);
    let to = network.user(ACT, "LOG", true);
    network.bind(from, NAPLES);
    run(&mut network, 2);
    let address = [testkit::address(ACT, "LOG")];
    network.submit(from, &address, Flash, &content(1, 100), "1", ReportRequest::Report);
    run(&mut network, 5);
    // Its report waits for naples.
    for other in [ACT, RELAY] {
        network.lines_down.insert((NAPLES, other));
        network.cut_between(NAPLES, other, None);
    }
    network.bind(to, ACT);
    run(&mut network, 5);
    let queued = |network: &Network| [network.queued(ACT), network.queued(RELAY)];
    assert_eq!(queued(&network), [1, 0]);
    let (with_naples, at_relay) =
        (network.sites[ACT].config.clone(), network.sites[RELAY].config.clone());
    let without_naples = |config: &mut NodeConfig| {
        let naples = config.peers.remove(0).id();
        let other = Target::Peer(config.peers[0].id());
        let its = config.routes.iter_mut().filter(|route| route.to == Target::Peer(naples));
        its.for_each(|route| route.to = other);
    };
    network.configure(ACT, without_naples, EdgeChanges::default());
    run(&mut network, 5);
    assert_eq!(queued(&network), [0, 1], "it takes the path by the relay");
    network.configure_as(ACT, with_naples, EdgeChanges::default());
    network.configure(RELAY, without_naples, EdgeChanges::default());
    run(&mut network, 5);
    assert_eq!(queued(&network), [0, 1], "it waits where it is");
    assert_eq!(network.sites[RELAY].count(Kind::Held), 1);
    let held = network.sites[RELAY].details(Kind::Held).join("");
    assert!(held.contains("its route leads to act, by which it came"), "{held}");
    network.configure_as(RELAY, at_relay, EdgeChanges::default());
    network.lines_down.clear();
    run(&mut network, 120);
    let reports = network.users[from].delivered.iter();
    let reports = reports.filter(|one| matches!(one, Delivered::Report { delivered: true, .. }));
    assert_eq!((reports.count(), queued(&network)), (1, [0, 0]));
    network.assert_empty();
}
