//! Several channels to one peer, in virtual time: which message holds another, and which association
//! carries it, asserted by the order of events.

use base::EntryId;
use base::Precedence::{self, *};
use node::Input;
use node::changes::EdgeChanges;
use node::config::{Hold, ListenerService, NodeConfig, Route, Target};
use node::event::{Kind, LogEvent};
use node::listing::{Cursor, QueuePage, QueueRequest, QueueRow};
use node::metrics::{Sample, Value};
use node::operator::ActOutcome;
use p1::flags::ReportRequest;
use std::collections::BTreeSet;
use std::time::Duration;
use testkit::build::content;
use testkit::{ACT, Events, NAPLES, NOTHING, Pair, Setup, address, five_channels};

const FLASH_CHANNEL: u32 = 3;

/// A pair with this configuration of both nodes.
fn joined(node: fn(&mut NodeConfig)) -> Pair {
    Pair::new(11, Setup { node, ..NOTHING })
}

/// Transfers begun and confirmed, and held messages, in order: `+flash`, `-flash`, `=routine`.
fn order_of(pair: &Pair) -> String {
    let signs = [(Kind::TransferStarted, '+'), (Kind::TransferConfirmed, '-'), (Kind::Held, '=')];
    pair.sites[NAPLES].order(&signs)
}

#[test]
fn the_node_reports_the_precedence_of_associations_and_commits_to_the_edge() {
    for precedence in [Routine, Flash] {
        let mut pair = joined(five_channels);
        pair.sites.iter_mut().for_each(|site| site.store.requested.clear());
        pair.submit(precedence, 2_000_000);
        pair.until(Kind::TransferStarted, 1);
        let carries = pair.events(Kind::TransferStarted).next().unwrap().association.unwrap();
        assert_eq!(pair.sites[NAPLES].node.level(carries), precedence);
        pair.run(60);
        // A look-up and a commit accept the message; another commit deletes it. In between the sender writes
        // how far the transfer has come.
        let [sender, receiver] = [NAPLES, ACT].map(|site| &pair.sites[site].store.requested);
        assert_eq!(*receiver, vec![precedence; 3]);
        assert!(sender.len() > 3 && sender.iter().all(|level| *level == precedence), "{sender:?}");
        pair.finish(120);
    }
}

#[test]
fn the_level_of_a_user_is_below_urgent_until_the_envelope_of_its_submission_is_read() {
    let mut pair = joined(five_channels);
    let bound = |e: &&LogEvent| e.kind == Kind::AssociationOpened && e.channel.is_none();
    let user = pair.sites[NAPLES].events.iter().map(|(_, e)| e).find(bound).unwrap();
    let user = user.association.unwrap();
    assert_eq!(pair.sites[NAPLES].node.level(user), Precedence::HIGHEST_NOT_URGENT);
    pair.submit(Routine, 2_000_000);
    let mut levels = BTreeSet::new();
    while pair.events(Kind::Submitted).next().is_none() {
        pair.run_for(Duration::from_micros(20));
        levels.insert(pair.sites[NAPLES].node.level(user));
    }
    assert_eq!(levels, BTreeSet::from([Routine, Precedence::HIGHEST_NOT_URGENT]));
    pair.finish(120);
}

#[test]
fn a_flash_starts_beside_a_routine_and_holds_the_next() {
    let mut pair = joined(five_channels);
    pair.submit(Routine, 10_000_000);
    pair.until(Kind::TransferStarted, 1);
    pair.submit(Routine, 1_000);
    pair.submit(Flash, 1_000_000);
    pair.submit(Flash, 1_000_000);
    pair.until(Kind::TransferConfirmed, 4);
    assert_eq!(
        order_of(&pair),
        "+routine +flash -flash +flash -flash -routine +routine -routine",
        "the Flash at once, the second after it; neither waits for the long Routine"
    );
    pair.finish(120);
}

#[test]
fn a_message_behind_a_flash_is_held_with_a_reason_in_the_status() {
    let mut pair = joined(five_channels);
    pair.submit(Flash, 1_000_000);
    pair.until(Kind::TransferStarted, 1);
    pair.submit(Routine, 1_000);
    pair.submit(Flash, 1_000_000);
    pair.submit(Routine, 1_000);
    pair.until(Kind::Submitted, 4);
    let status = pair.sites[NAPLES].node.status(pair.clock());
    let routine = &status.peers[0].channels[0];
    assert_eq!(routine.held.get(&Routine), Some(&2), "{routine:?}");
    assert!(routine.held_because.as_deref().unwrap().ends_with(" is in transfer"));
    pair.until(Kind::TransferConfirmed, 4);
    assert_eq!(
        order_of(&pair),
        "+flash =routine -flash +flash -flash +routine -routine +routine -routine"
    );
    assert_eq!(pair.events(Kind::Held).count(), 1, "once");
    pair.finish(120);
}

#[test]
fn five_precedences_are_in_transfer_at_the_same_time() {
    let mut pair = joined(five_channels);
    for (n, precedence) in [Routine, Priority, Immediate, Flash, Override].into_iter().enumerate() {
        pair.submit(precedence, 1_000_000);
        pair.until(Kind::TransferStarted, n + 1);
    }
    assert_eq!(pair.events(Kind::TransferConfirmed).count(), 0);
    let status = pair.sites[NAPLES].node.status(pair.clock());
    let sending = status.peers[0].channels.iter().flat_map(|c| &c.associations);
    assert_eq!(sending.filter(|a| a.state == "sending").count(), 5);
    pair.until(Kind::TransferConfirmed, 5);
    assert!(order_of(&pair).starts_with("+routine +priority +immediate +flash +override -"));
    pair.finish(120);
}

#[test]
fn a_mixed_queue_goes_in_strict_order() {
    let mut pair = joined(five_channels);
    pair.line_up = false;
    pair.cut();
    for precedence in [Routine, Flash, Deferred, Override, Priority, Flash, Immediate] {
        pair.submit(precedence, 10_000);
    }
    pair.run(60);
    pair.line_up = true;
    pair.until(Kind::TransferConfirmed, 7);
    // Channels come back at different times. A lower message may pass a higher one whose channel is
    // down. With all channels up, each message waits for the higher ones.
    pair.finish(120);

    let mut pair = joined(five_channels);
    pair.submit(Override, 1_000_000);
    pair.until(Kind::TransferStarted, 1);
    for precedence in [Routine, Flash, Deferred, Priority, Flash, Immediate] {
        pair.submit(precedence, 10_000);
    }
    pair.until(Kind::TransferConfirmed, 7);
    let starts: Vec<Precedence> =
        pair.events(Kind::TransferStarted).filter_map(|e| e.precedence).collect();
    assert_eq!(starts, [Override, Flash, Flash, Immediate, Priority, Routine, Deferred]);
    let order = order_of(&pair);
    let transfers: Vec<&str> = order.split(' ').filter(|w| !w.starts_with('=')).collect();
    assert!(
        transfers.chunks(2).all(|pair| pair[0][1..] == pair[1][1..]),
        "one after the other: {order}"
    );
    pair.finish(120);
}

/// A Flash whose channel is down, then a Routine: the time until the Routine started, if it did.
fn routine_beside_a_flash_without_a_channel(node: fn(&mut NodeConfig)) -> (Pair, Option<Duration>) {
    let mut pair = joined(node);
    let lost = pair.now;
    pair.block(FLASH_CHANNEL);
    pair.submit(Flash, 10_000);
    pair.submit(Routine, 10_000);
    pair.run(30);
    let started = pair.timed(NAPLES, Kind::TransferStarted);
    let mut started = started.filter(|(_, e)| e.precedence == Some(Routine));
    let after = started.next().map(|(at, e)| {
        assert!(e.detail.contains("by rule 2"), "{}", e.detail);
        at.since(lost)
    });
    drop(started);
    (pair, after)
}

#[test]
fn a_lower_message_starts_if_the_channel_of_the_higher_is_down() {
    let (mut pair, after) = routine_beside_a_flash_without_a_channel(five_channels);
    let after = after.unwrap();
    assert!(after >= Duration::from_secs(5) && after < Duration::from_secs(6), "{after:?}");
    pair.blocked.clear();
    pair.finish(120);
}

#[test]
fn a_lower_message_waits_for_a_channel_that_is_down_if_the_order_is_strict() {
    let (mut pair, after) = routine_beside_a_flash_without_a_channel(|config| {
        five_channels(config);
        config.hold.hold = Hold::Strict;
    });
    assert_eq!(after, None);
    assert_eq!(order_of(&pair), "=routine");
    pair.blocked.clear();
    pair.run(60);
    assert_eq!(order_of(&pair), "=routine +flash -flash +routine -routine");
    pair.finish(120);
}

#[test]
fn a_fallback_carries_a_flash_whose_channel_is_down() {
    let mut pair = joined(|config| {
        five_channels(config);
        config.peers[0].channels[0].fallback = vec![Flash];
    });
    pair.block(FLASH_CHANNEL);
    pair.submit(Flash, 10_000);
    pair.submit(Routine, 10_000);
    pair.run(4);
    assert_eq!(order_of(&pair), "=routine", "its own channel may come up again");
    pair.until(Kind::TransferConfirmed, 2);
    assert_eq!(order_of(&pair), "=routine +flash -flash +routine -routine");
    let start = pair.events(Kind::TransferStarted).next().unwrap();
    assert_eq!(start.channel.map(|c| c.index), Some(0));
    assert!(start.detail.contains("by rule 5"), "{}", start.detail);
    pair.finish(120);
}

#[test]
fn a_flash_whose_transfer_was_cut_uses_a_fallback() {
    let mut pair = joined(|config| {
        five_channels(config);
        config.peers[0].channels[0].fallback = vec![Flash];
    });
    pair.submit(Flash, 2_000_000);
    pair.until(Kind::TransferStarted, 1);
    pair.run_for(Duration::from_secs(1));
    pair.block(FLASH_CHANNEL);
    pair.until(Kind::TransferConfirmed, 1);
    assert_eq!(order_of(&pair), "+flash +flash -flash");
    pair.finish(120);
}

#[test]
fn an_override_behind_a_flash_gets_an_association_of_its_own() {
    let mut pair = joined(|config| {
        five_channels(config);
        config.peers[0].channels[FLASH_CHANNEL as usize].precedences = vec![Flash, Override];
        config.peers[0].channels.pop();
    });
    pair.submit(Flash, 3_000_000);
    pair.until(Kind::TransferStarted, 1);
    pair.submit(Flash, 1_000);
    pair.submit(Override, 100_000);
    pair.until(Kind::TransferConfirmed, 3);
    assert_eq!(order_of(&pair), "+flash +override -override -flash +flash -flash");
    pair.run(5);
    let status = pair.sites[NAPLES].node.status(pair.clock());
    let ours = status.peers[0].channels[FLASH_CHANNEL as usize].associations.iter();
    assert_eq!(ours.filter(|a| a.role == "initiator").count(), 1, "the reserved one is closed");
    pair.finish(120);
}

#[test]
fn a_channel_opened_by_traffic_is_not_down_because_it_was_lost_while_idle() {
    let mut pair = joined(|config| {
        five_channels(config);
        let idle_close = Duration::from_secs(7_200);
        config.peers[0].channels[FLASH_CHANNEL as usize].connection =
            node::config::Connection::OnDemand { idle_close };
        config.peers[0].channels[0].fallback = vec![Flash];
    });
    pair.submit(Routine, 1_000);
    pair.submit(Flash, 1_000);
    pair.until(Kind::TransferConfirmed, 2);
    pair.cut();
    // No message waits, so no association is opened. An hour later the channel is still not down.
    pair.run(3_600);
    pair.submit(Flash, 1_000);
    pair.until(Kind::TransferConfirmed, 3);
    let last = pair.events(Kind::TransferStarted).last().unwrap();
    assert_eq!(last.channel.unwrap().index, FLASH_CHANNEL, "{}", last.detail);
}

/// One channel for all precedences, opened by NAPLES only, with at most one association of its own.
fn one_channel_of_ours(config: &mut NodeConfig) {
    let channel = &mut config.peers[0].channels[0];
    channel.rts.dialogue = osi::api::Dialogue::TwoWayAlternate;
    channel.associations_max = 1;
    if config.mta.0 == "NAPLES" {
        channel.connection = node::config::Connection::Permanent;
    }
}

#[test]
fn a_flash_behind_a_transfer_to_us_gets_an_association_of_its_own() {
    let mut pair = joined(one_channel_of_ours);
    pair.sites[ACT].may_connect = false;
    pair.run(60);
    assert_eq!(
        pair.events(Kind::AssociationOpened).filter(|e| e.detail == "as initiator").count(),
        1
    );
    pair.latency = Duration::from_millis(100);
    let writer = pair.user(ACT, "LOG", false);
    pair.bind(writer, ACT);
    pair.run(1);
    let to = [address(NAPLES, "OPS")];
    let none = ReportRequest::None;
    let text = content(1, 2_000_000);
    pair.network.submit(writer, &to, Routine, &text, "long", none);
    pair.run(3);
    let receiving = |pair: &Pair| {
        let status = pair.sites[NAPLES].node.status(pair.clock());
        status.peers[0].channels[0].associations.iter().filter(|a| a.state == "receiving").count()
    };
    assert_eq!((receiving(&pair), order_of(&pair).as_str()), (1, ""));
    pair.submit(Flash, 1_000);
    pair.until(Kind::TransferConfirmed, 1);
    assert_eq!(receiving(&pair), 1, "beside the transfer, which continues");
    assert_eq!(
        pair.events(Kind::AssociationOpened).filter(|e| e.detail == "as initiator").count(),
        2
    );
    pair.run(120);
    assert_eq!((receiving(&pair), pair.events(Kind::Received).count()), (0, 1), "it was finished");
    assert_eq!(pair.network.users[pair.reader].delivered.len(), 1);
}

fn page(pair: &Pair, after: Option<Cursor>, limit: usize) -> QueuePage {
    let asked = QueueRequest { after, limit, ..QueueRequest::default() };
    let node = &pair.sites[NAPLES].node;
    let entries = &pair.sites[NAPLES].store.entries;
    let page = node.queue_page(pair.clock(), &asked).unwrap();
    page.describe(|key| entries.get(&key).cloned())
}

fn operate(
    pair: &mut Pair,
    entries: &[EntryId],
    hold: bool,
) -> Result<Vec<ActOutcome>, node::operator::ActError> {
    let input = Input::Operate {
        request: 7,
        entries: entries.to_vec(),
        act: node::operator::Act::holding(hold),
        by: node::operator::Operator::default(),
    };
    pair.feed(NAPLES, input);
    pair.run(1);
    let (request, result) = pair.sites[NAPLES].operated.pop().unwrap();
    assert_eq!(request, 7);
    result.map(|outcomes| outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// The metrics of the queue equal the status.
fn check_metrics(pair: &Pair) {
    let (node, now) = (&pair.sites[NAPLES].node, pair.clock());
    let (status, families) = (node.status(now), node.metrics(now));
    let value = |name: &str, labels: &[&str]| {
        let family = families.iter().find(|family| family.name == name).unwrap();
        let has_labels = |sample: &&Sample| sample.labels.iter().map(|(_, l)| l).eq(labels);
        match family.samples.iter().find(has_labels).unwrap().value {
            Value::Gauge(value) => value as u64,
            Value::Counter(count) => count,
            Value::Histogram { .. } => panic!("{name}"),
        }
    };
    for family in &families {
        let labels: BTreeSet<_> = family.samples.iter().map(|s| &s.labels).collect();
        assert_eq!(
            labels.len(),
            family.samples.len(),
            "{}: each sample has its own labels",
            family.name
        );
    }
    for channel in &status.peers[0].channels {
        for level in &channel.levels {
            let labels = ["act", channel.name.as_str(), level.precedence.name()];
            assert_eq!(value("mta_queue_messages", &labels), level.queued);
            assert_eq!(value("mta_queue_bytes", &labels), level.queued_bytes);
            let held = |reason| {
                let labels = [labels[0], labels[1], labels[2], reason];
                value("mta_queue_held_messages", &labels)
            };
            assert_eq!(held("operator"), level.held_by_operator);
            assert_eq!(held("precedence"), level.held);
        }
    }
}

fn id(row: &QueueRow) -> EntryId {
    EntryId(row.entry.strip_prefix('e').unwrap().parse().unwrap())
}

#[test]
fn a_hold_of_a_message_in_transfer_lets_the_transfer_continue() {
    let mut pair = joined(five_channels);
    pair.submit(Routine, 2_000_000);
    pair.until(Kind::TransferStarted, 1);
    let started = id(&page(&pair, None, 1).entries[0]);
    assert_eq!(operate(&mut pair, &[started], true).unwrap(), [ActOutcome::InTransfer]);
    assert_eq!(operate(&mut pair, &[started], true).unwrap(), [ActOutcome::Unchanged]);
    pair.until(Kind::TransferConfirmed, 1);
    assert_eq!(operate(&mut pair, &[started], true).unwrap(), [ActOutcome::Unknown]);
}

#[test]
fn a_hold_of_an_operator_survives_a_restart() {
    let mut pair = joined(five_channels);
    (0..5).for_each(|channel| pair.block(channel));
    for (precedence, size) in [(Routine, 2_000), (Flash, 1_000), (Routine, 3_000)] {
        pair.submit(precedence, size);
        pair.run(1);
    }
    let first = page(&pair, None, 2);
    let rest = page(&pair, first.next.clone(), 2);
    assert_eq!((first.entries.len(), rest.entries.len(), rest.next), (2, 1, None));
    let rows: Vec<&QueueRow> = first.entries.iter().chain(&rest.entries).collect();
    let seen: Vec<_> = rows.iter().map(|row| (row.precedence, row.size)).collect();
    assert_eq!(seen, [(Flash, 1_000), (Routine, 2_000), (Routine, 3_000)]);
    assert!(rows.iter().all(|row| row.peer.as_deref() == Some("act")), "{rows:?}");
    let submitted: Vec<_> = pair.events(Kind::Submitted).map(|e| e.message.clone()).collect();
    assert_eq!(rows[0].mts_id, submitted[1]);
    assert!(rows[0].originator.as_deref().unwrap().contains("OPS"), "{:?}", rows[0]);
    let (held, gone) = (id(rows[1]), EntryId(u64::MAX));
    let state = |pair: &Pair| page(pair, None, 9).entries[1].state.clone();

    pair.sites[NAPLES].store.full = true;
    assert!(operate(&mut pair, &[held], true).is_err());
    assert_ne!(state(&pair), "held_by_operator");
    pair.sites[NAPLES].store.full = false;
    let outcomes = operate(&mut pair, &[held, held, gone], true);
    assert_eq!(outcomes.unwrap(), [ActOutcome::Done, ActOutcome::Unchanged, ActOutcome::Unknown]);
    check_metrics(&pair);
    pair.crash(NAPLES);
    assert_eq!(state(&pair), "held_by_operator");
    check_metrics(&pair);

    pair.blocked.clear();
    pair.run(200);
    let left = page(&pair, None, 9).entries;
    assert_eq!(left.iter().map(id).collect::<Vec<_>>(), [held], "the others were transferred");
    assert_eq!(operate(&mut pair, &[held], false).unwrap(), [ActOutcome::Done]);
    pair.finish(120);
}

#[test]
fn a_counter_continues_when_a_channel_is_replaced_by_one_of_its_name() {
    let mut pair = joined(five_channels);
    pair.run(5);
    for submitted in 1..=3 {
        pair.submit(Flash, 1_000);
        pair.until(Kind::TransferConfirmed, submitted);
        // A new channel gets the same name.
        let mut config = pair.sites[NAPLES].config.clone();
        let flash = &mut config.peers[0].channels[3];
        let old = std::mem::replace(&mut flash.index, 10 + submitted as u32);
        for listener in &mut config.listeners {
            if let ListenerService::P1 { channel, .. } = &mut listener.service
                && *channel == old
            {
                *channel = 10 + submitted as u32;
            }
        }
        pair.sites[NAPLES].config = config.clone();
        let edge = EdgeChanges::default();
        pair.feed(NAPLES, Input::Configure { config: Box::new(config), edge });
        check_metrics(&pair);
        pair.run(20);
        check_metrics(&pair);
        let families = pair.sites[NAPLES].node.metrics(pair.clock());
        let family = families.iter().find(|f| f.name == "mta_messages_transferred").unwrap();
        let flash = family.samples.iter().find(|s| s.labels.iter().any(|(_, l)| l == "flash"));
        assert_eq!(flash.unwrap().value, Value::Counter(submitted as u64));
    }
}

/// Records of thousands of recipients are large: a page of 500 of them would read a gigabyte.
#[test]
fn a_page_reads_a_limited_size_of_records_and_the_next_page_continues() {
    let mut pair = joined(five_channels);
    (0..5).for_each(|channel| pair.block(channel));
    for _ in 0..5 {
        pair.submit(Routine, 2_000);
    }
    pair.run(1);
    let all: Vec<_> = page(&pair, None, 9).entries.iter().map(id).collect();
    assert_eq!(all.len(), 5);
    let (mut found, mut reads, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let asked = QueueRequest { after, limit: 9, ..QueueRequest::default() };
        let page = pair.sites[NAPLES].node.queue_page(pair.clock(), &asked).unwrap();
        let mut read = 0;
        let page = page.describe(|_| {
            read += 1;
            Some(vec![0; 5 << 20].into())
        });
        reads.push(read);
        found.extend(page.entries.iter().map(id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((found, reads), (all, vec![2, 2, 1]));
}

#[test]
fn a_hold_of_an_operator_survives_the_removal_of_the_peer() {
    let mut pair = joined(five_channels);
    (0..5).for_each(|channel| pair.block(channel));
    pair.submit(Routine, 2_000);
    pair.run(1);
    let held = id(&page(&pair, None, 1).entries[0]);
    assert_eq!(operate(&mut pair, &[held], true).unwrap(), [ActOutcome::Done]);

    // The peer gets another name.
    let mut config = pair.sites[NAPLES].config.clone();
    config.peers[0].name = "act-2".to_owned();
    let to = Target::Peer(config.peers[0].id());
    let its = |route: &&mut Route| matches!(route.to, Target::Peer(_));
    config.routes.iter_mut().filter(its).for_each(|route| route.to = to);
    let name = config.peers[0].id();
    for listener in &mut config.listeners {
        if let ListenerService::P1 { peer, .. } = &mut listener.service {
            *peer = name;
        }
    }
    pair.sites[NAPLES].config = config.clone();
    let edge = EdgeChanges::default();
    pair.sites[NAPLES].store.stuck = true;
    pair.feed(NAPLES, Input::Configure { config: Box::new(config), edge });
    let rows = page(&pair, None, 9).entries;
    assert_eq!((rows[0].peer.as_deref(), rows[0].removed), (Some("act"), true));
    let asked =
        |peer: &str| QueueRequest { peer: Some(peer.to_owned()), limit: 9, ..<_>::default() };
    let asked_page = |pair: &Pair, asked: QueueRequest| {
        pair.sites[NAPLES].node.queue_page(pair.clock(), &asked).map(|page| page.describe(|_| None))
    };
    assert_eq!(asked_page(&pair, asked("act")).unwrap().entries.len(), 1);
    pair.sites[NAPLES].store.stuck = false;
    pair.run(5);
    assert!(asked_page(&pair, asked("act")).unwrap_err().to_string().contains("there is no peer"));
    let rows = page(&pair, None, 9).entries;
    assert_eq!(rows.iter().map(|r| r.state.as_str()).collect::<Vec<_>>(), ["held_by_operator"]);
    assert_eq!((id(&rows[0]) == held, rows[0].removed), (false, false), "it was routed again");
    // A cursor of another list is refused.
    let cursor = r#"{"to":{"peer":7},"precedence":"routine","accepted":0,"entry":1}"#;
    let after: Cursor = serde_json::from_str(cursor).unwrap();
    let asked = QueueRequest { after: Some(after), limit: 9, ..QueueRequest::default() };
    assert!(asked_page(&pair, asked).unwrap_err().to_string().contains("begin again without it"));
    assert_eq!(rows[0].peer.as_deref(), Some("act-2"));
    pair.crash(NAPLES);
    let rows = page(&pair, None, 9).entries;
    assert_eq!(rows.iter().map(|r| r.state.as_str()).collect::<Vec<_>>(), ["held_by_operator"]);
}
