//! Several channels to one peer, in virtual time: what holds what, and which association carries it,
//! asserted by the order of events.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "shared with other tests")]
mod world;

use base::EntryId;
use base::Precedence::{self, *};
use node::Input;
use node::changes::EdgeChanges;
use node::config::{Hold, ListenerService, NodeConfig, Route, Target};
use node::event::{Event, Kind};
use node::listing::{Cursor, QueuePage, QueueRequest, QueueRow};
use node::metrics::{Sample, Value};
use node::operator::Outcome;
use p1::flags::ReportRequest;
use std::collections::BTreeSet;
use std::time::Duration;
use world::{ACT, Delivered, NAPLES, Setup, World, address, five_channels};

const FLASH_CHANNEL: u32 = 3;

struct Run {
    world: World,
    sender: usize,
    reader: usize,
    submitted: usize,
}

impl Run {
    fn new(node: fn(&mut NodeConfig)) -> Run {
        let mut world = World::with(11, Setup { rts: |_| {}, node });
        let sender = world.user(NAPLES, "OPS", false);
        let reader = world.user(ACT, "OPS", true);
        world.bind(sender, NAPLES);
        world.bind(reader, ACT);
        world.run_for(Duration::from_secs(1));
        Run { world, sender, reader, submitted: 0 }
    }

    fn submit(&mut self, precedence: Precedence, size: usize) {
        self.submitted += 1;
        let (to, id) = ([address(ACT, "OPS")], format!("MESSAGE {}", self.submitted));
        let content = vec![self.submitted as u8; size];
        self.world.submit(self.sender, &to, precedence, &content, &id, ReportRequest::None);
    }

    fn run(&mut self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds));
    }

    /// Runs until so many events of this kind have happened at the sending site.
    fn until(&mut self, kind: Kind, count: usize) {
        for _ in 0..100_000 {
            if self.events(kind).count() >= count {
                return;
            }
            self.world.run_for(Duration::from_millis(5));
        }
        panic!("no {count} events {}: {:?}", kind.name(), self.order());
    }

    fn events(&self, kind: Kind) -> impl Iterator<Item = &Event> {
        self.world.sites[NAPLES].events.iter().map(|(_, e)| e).filter(move |e| e.kind == kind)
    }

    /// Transfers begun and confirmed, and what was held, in order: `+flash`, `-flash`, `=routine`.
    fn order(&self) -> String {
        let word = |e: &Event| {
            let sign = match e.kind {
                Kind::TransferStarted => '+',
                Kind::TransferConfirmed => '-',
                Kind::Held => '=',
                _ => return None,
            };
            Some(format!("{sign}{}", e.precedence?))
        };
        let events = self.world.sites[NAPLES].events.iter();
        events.filter_map(|(_, e)| word(e)).collect::<Vec<_>>().join(" ")
    }

    /// Everything arrived, once and whole.
    fn finish(mut self) {
        self.run(120);
        let mut firsts: Vec<u8> = Vec::new();
        for delivered in &self.world.users[self.reader].delivered {
            let Delivered::Message { content, .. } = delivered else { panic!("{delivered:?}") };
            assert!(content.iter().all(|octet| *octet == content[0]));
            firsts.push(content[0]);
        }
        firsts.sort_unstable();
        assert_eq!(firsts, (1..=self.submitted as u8).collect::<Vec<_>>());
        assert_eq!(self.world.queued(NAPLES), 0);
    }
}

#[test]
fn the_edge_is_told_the_precedence_of_what_it_does() {
    for precedence in [Routine, Flash] {
        let mut run = Run::new(five_channels);
        run.world.asked = Default::default();
        run.submit(precedence, 2_000_000);
        run.until(Kind::TransferStarted, 1);
        let carries = run.events(Kind::TransferStarted).next().unwrap().association.unwrap();
        assert_eq!(run.world.sites[NAPLES].node.level(carries), precedence);
        run.run(60);
        // A look-up and a commit to take it, one to forget it.
        assert_eq!(run.world.asked[..2], [vec![precedence; 3], vec![precedence; 3]]);
        run.finish();
    }
}

#[test]
fn what_a_user_submits_is_neither_high_nor_low_until_its_envelope_tells() {
    let mut run = Run::new(five_channels);
    let bound = |e: &&Event| e.kind == Kind::AssociationOpened && e.channel.is_none();
    let user = run.world.sites[NAPLES].events.iter().map(|(_, e)| e).find(bound).unwrap();
    let user = user.association.unwrap();
    assert_eq!(run.world.sites[NAPLES].node.level(user), Precedence::HIGHEST_NOT_URGENT);
    run.submit(Routine, 2_000_000);
    let mut levels = BTreeSet::new();
    while run.events(Kind::Submitted).next().is_none() {
        run.world.run_for(Duration::from_micros(20));
        levels.insert(run.world.sites[NAPLES].node.level(user));
    }
    assert_eq!(levels, BTreeSet::from([Routine, Precedence::HIGHEST_NOT_URGENT]));
    run.finish();
}

#[test]
fn a_flash_starts_beside_a_routine_and_holds_the_next() {
    let mut run = Run::new(five_channels);
    run.submit(Routine, 10_000_000);
    run.until(Kind::TransferStarted, 1);
    run.submit(Routine, 1_000);
    run.submit(Flash, 1_000_000);
    run.submit(Flash, 1_000_000);
    run.until(Kind::TransferConfirmed, 4);
    assert_eq!(
        run.order(),
        "+routine +flash -flash +flash -flash -routine +routine -routine",
        "the Flash at once, the second after it, neither waits for the long Routine"
    );
    run.finish();
}

#[test]
fn what_is_queued_behind_a_flash_waits_and_says_so() {
    let mut run = Run::new(five_channels);
    run.submit(Flash, 1_000_000);
    run.until(Kind::TransferStarted, 1);
    run.submit(Routine, 1_000);
    run.submit(Flash, 1_000_000);
    run.submit(Routine, 1_000);
    run.until(Kind::Submitted, 4);
    let status = run.world.sites[NAPLES].node.status(run.world.clock());
    let routine = &status.peers[0].channels[0];
    assert_eq!(routine.held.get(&Routine), Some(&2), "{routine:?}");
    assert!(routine.held_because.as_deref().unwrap().ends_with(" is in transfer"));
    run.until(Kind::TransferConfirmed, 4);
    assert_eq!(
        run.order(),
        "+flash =routine -flash +flash -flash +routine -routine +routine -routine"
    );
    assert_eq!(run.events(Kind::Held).count(), 1, "once");
    run.finish();
}

#[test]
fn five_precedences_are_in_transfer_at_the_same_time() {
    let mut run = Run::new(five_channels);
    for (n, precedence) in [Routine, Priority, Immediate, Flash, Override].into_iter().enumerate() {
        run.submit(precedence, 1_000_000);
        run.until(Kind::TransferStarted, n + 1);
    }
    assert_eq!(run.events(Kind::TransferConfirmed).count(), 0);
    let status = run.world.sites[NAPLES].node.status(run.world.clock());
    let sending = status.peers[0].channels.iter().flat_map(|c| &c.associations);
    assert_eq!(sending.filter(|a| a.state == "sending").count(), 5);
    run.until(Kind::TransferConfirmed, 5);
    assert!(run.order().starts_with("+routine +priority +immediate +flash +override -"));
    run.finish();
}

#[test]
fn a_mixed_queue_goes_in_strict_order() {
    let mut run = Run::new(five_channels);
    run.world.link_up = false;
    run.world.cut();
    for precedence in [Routine, Flash, Deferred, Override, Priority, Flash, Immediate] {
        run.submit(precedence, 10_000);
    }
    run.run(60);
    run.world.link_up = true;
    run.until(Kind::TransferConfirmed, 7);
    // Channels come back at different times, and lower ones pass what has none; with all there,
    // each of the rest waits for those above.
    run.finish();

    let mut run = Run::new(five_channels);
    run.submit(Override, 1_000_000);
    run.until(Kind::TransferStarted, 1);
    for precedence in [Routine, Flash, Deferred, Priority, Flash, Immediate] {
        run.submit(precedence, 10_000);
    }
    run.until(Kind::TransferConfirmed, 7);
    let starts: Vec<Precedence> =
        run.events(Kind::TransferStarted).filter_map(|e| e.precedence).collect();
    assert_eq!(starts, [Override, Flash, Flash, Immediate, Priority, Routine, Deferred]);
    let order = run.order();
    let transfers: Vec<&str> = order.split(' ').filter(|w| !w.starts_with('=')).collect();
    assert!(transfers.chunks(2).all(|pair| pair[0][1..] == pair[1][1..]), "one by one: {order}");
    run.finish();
}

/// A Flash without its channel, then a Routine: when the Routine started, if it did.
fn routine_beside_a_flash_without_a_channel(node: fn(&mut NodeConfig)) -> (Run, Option<Duration>) {
    let mut run = Run::new(node);
    let lost = run.world.now;
    run.world.block(FLASH_CHANNEL);
    run.submit(Flash, 10_000);
    run.submit(Routine, 10_000);
    run.run(30);
    let events = &run.world.sites[NAPLES].events;
    let mut started = events
        .iter()
        .filter(|(_, e)| e.kind == Kind::TransferStarted && e.precedence == Some(Routine));
    let after = started.next().map(|(at, e)| {
        assert!(e.detail.contains("by rule 2"), "{}", e.detail);
        at.since(lost)
    });
    (run, after)
}

#[test]
fn lower_ones_go_on_where_the_higher_has_no_channel() {
    let (mut run, after) = routine_beside_a_flash_without_a_channel(five_channels);
    let after = after.unwrap();
    assert!(after >= Duration::from_secs(5) && after < Duration::from_secs(6), "{after:?}");
    run.world.blocked.clear();
    run.finish();
}

#[test]
fn but_wait_where_the_order_is_strict() {
    let (mut run, after) = routine_beside_a_flash_without_a_channel(|config| {
        five_channels(config);
        config.hold.hold = Hold::Strict;
    });
    assert_eq!(after, None);
    assert_eq!(run.order(), "=routine");
    run.world.blocked.clear();
    run.run(60);
    assert_eq!(run.order(), "=routine +flash -flash +routine -routine");
    run.finish();
}

#[test]
fn a_fallback_carries_a_flash_whose_channel_is_down() {
    let mut run = Run::new(|config| {
        five_channels(config);
        config.peers[0].channels[0].fallback = vec![Flash];
    });
    run.world.block(FLASH_CHANNEL);
    run.submit(Flash, 10_000);
    run.submit(Routine, 10_000);
    run.run(4);
    assert_eq!(run.order(), "=routine", "its own channel may come back");
    run.until(Kind::TransferConfirmed, 2);
    assert_eq!(run.order(), "=routine +flash -flash +routine -routine");
    let start = run.events(Kind::TransferStarted).next().unwrap();
    assert_eq!(start.channel.map(|c| c.index), Some(0));
    assert!(start.detail.contains("by rule 5"), "{}", start.detail);
    run.finish();
}

#[test]
fn a_flash_cut_off_leaves_its_lost_channel_for_a_fallback() {
    let mut run = Run::new(|config| {
        five_channels(config);
        config.peers[0].channels[0].fallback = vec![Flash];
    });
    run.submit(Flash, 2_000_000);
    run.until(Kind::TransferStarted, 1);
    run.world.run_for(Duration::from_secs(1));
    run.world.block(FLASH_CHANNEL);
    run.until(Kind::TransferConfirmed, 1);
    assert_eq!(run.order(), "+flash +flash -flash");
    run.finish();
}

#[test]
fn an_override_behind_a_flash_gets_an_association_of_its_own() {
    let mut run = Run::new(|config| {
        five_channels(config);
        config.peers[0].channels[FLASH_CHANNEL as usize].precedences = vec![Flash, Override];
        config.peers[0].channels.pop();
    });
    run.submit(Flash, 3_000_000);
    run.until(Kind::TransferStarted, 1);
    run.submit(Flash, 1_000);
    run.submit(Override, 100_000);
    run.until(Kind::TransferConfirmed, 3);
    assert_eq!(run.order(), "+flash +override -override -flash +flash -flash");
    run.run(5);
    let status = run.world.sites[NAPLES].node.status(run.world.clock());
    let ours = status.peers[0].channels[FLASH_CHANNEL as usize].associations.iter();
    assert_eq!(ours.filter(|a| a.role == "initiator").count(), 1, "the reserved one is closed");
    run.finish();
}

#[test]
fn a_channel_opened_by_traffic_is_not_down_because_it_was_lost_while_idle() {
    let mut run = Run::new(|config| {
        five_channels(config);
        let idle_close = Duration::from_secs(7_200);
        config.peers[0].channels[FLASH_CHANNEL as usize].connection =
            node::config::Connection::OnDemand { idle_close };
        config.peers[0].channels[0].fallback = vec![Flash];
    });
    run.submit(Routine, 1_000);
    run.submit(Flash, 1_000);
    run.until(Kind::TransferConfirmed, 2);
    run.world.cut();
    // Nothing waits, so nothing is opened; an hour later it is still a channel like any other.
    run.run(3_600);
    run.submit(Flash, 1_000);
    run.until(Kind::TransferConfirmed, 3);
    let last = run.events(Kind::TransferStarted).last().unwrap();
    assert_eq!(last.channel.unwrap().index, FLASH_CHANNEL, "{}", last.detail);
}

/// One channel for all, opened by NAPLES alone, with one association of its own at most.
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
    let mut run = Run::new(one_channel_of_ours);
    run.world.may_connect = [true, false];
    run.run(60);
    assert_eq!(
        run.events(Kind::AssociationOpened).filter(|e| e.detail == "as initiator").count(),
        1
    );
    run.world.latency = Duration::from_millis(100);
    let writer = run.world.user(ACT, "LOG", false);
    run.world.bind(writer, ACT);
    run.run(1);
    let to = [address(NAPLES, "OPS")];
    let none = ReportRequest::None;
    run.world.submit(writer, &to, Routine, &[7; 2_000_000], "long", none);
    run.run(3);
    let receiving = |run: &Run| {
        let status = run.world.sites[NAPLES].node.status(run.world.clock());
        status.peers[0].channels[0].associations.iter().filter(|a| a.state == "receiving").count()
    };
    assert_eq!((receiving(&run), run.order().as_str()), (1, ""));
    run.submit(Flash, 1_000);
    run.until(Kind::TransferConfirmed, 1);
    assert_eq!(receiving(&run), 1, "beside it, which is not disturbed");
    assert_eq!(
        run.events(Kind::AssociationOpened).filter(|e| e.detail == "as initiator").count(),
        2
    );
    run.run(120);
    assert_eq!(
        (receiving(&run), run.events(Kind::Received).count()),
        (0, 1),
        "it went on to its end"
    );
    assert_eq!(run.world.users[run.reader].delivered.len(), 1);
}

impl Run {
    fn page(&self, after: Option<Cursor>, limit: usize) -> QueuePage {
        let asked = QueueRequest { after, limit, ..QueueRequest::default() };
        let node = &self.world.sites[NAPLES].node;
        let entries = &self.world.sites[NAPLES].store.entries;
        let page = node.queue_page(self.world.clock(), &asked).unwrap();
        page.describe(|key| entries.get(&key).cloned())
    }

    fn operate(
        &mut self,
        entries: &[EntryId],
        hold: bool,
    ) -> Result<Vec<Outcome>, node::operator::HoldError> {
        let input = Input::Operate { request: 7, entries: entries.to_vec(), hold };
        self.world.feed(NAPLES, input);
        self.run(1);
        let (request, result) = self.world.sites[NAPLES].operated.pop().unwrap();
        assert_eq!(request, 7);
        result.map(|outcomes| outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// The metrics of the queue say what the status says.
    fn check_metrics(&self) {
        let (node, now) = (&self.world.sites[NAPLES].node, self.world.clock());
        let (status, families) = (node.status(now), node.metrics(now));
        let value = |name: &str, labels: &[&str]| {
            let family = families.iter().find(|family| family.name == name).unwrap();
            let is_it = |sample: &&Sample| sample.labels.iter().map(|(_, l)| l).eq(labels);
            match family.samples.iter().find(is_it).unwrap().value {
                Value::Gauge(value) => value as u64,
                Value::Counter(count) => count,
                Value::Histogram { .. } => panic!("{name}"),
            }
        };
        for family in &families {
            let labels: BTreeSet<_> = family.samples.iter().map(|s| &s.labels).collect();
            assert_eq!(labels.len(), family.samples.len(), "{}: told apart", family.name);
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
}

fn id(row: &QueueRow) -> EntryId {
    EntryId(row.entry.strip_prefix('e').unwrap().parse().unwrap())
}

#[test]
fn what_an_operator_holds_stays_over_a_restart() {
    let mut run = Run::new(five_channels);
    (0..5).for_each(|channel| run.world.block(channel));
    for (precedence, size) in [(Routine, 2_000), (Flash, 1_000), (Routine, 3_000)] {
        run.submit(precedence, size);
        run.run(1);
    }
    let first = run.page(None, 2);
    let rest = run.page(first.next.clone(), 2);
    assert_eq!((first.entries.len(), rest.entries.len(), rest.next), (2, 1, None));
    let rows: Vec<&QueueRow> = first.entries.iter().chain(&rest.entries).collect();
    let seen: Vec<_> = rows.iter().map(|row| (row.precedence, row.size)).collect();
    assert_eq!(seen, [(Flash, 1_000), (Routine, 2_000), (Routine, 3_000)]);
    assert!(rows.iter().all(|row| row.peer.as_deref() == Some("act")), "{rows:?}");
    let submitted: Vec<_> = run.events(Kind::Submitted).map(|e| e.message.clone()).collect();
    assert_eq!(rows[0].mts_id, submitted[1]);
    assert!(rows[0].originator.as_deref().unwrap().contains("OPS"), "{:?}", rows[0]);
    let (held, gone) = (id(rows[1]), EntryId(u64::MAX));
    let state = |run: &Run| run.page(None, 9).entries[1].state.clone();

    run.world.disk_full[NAPLES] = true;
    assert!(run.operate(&[held], true).is_err());
    assert_ne!(state(&run), "held_by_operator");
    run.world.disk_full[NAPLES] = false;
    let outcomes = run.operate(&[held, held, gone], true);
    assert_eq!(outcomes.unwrap(), [Outcome::Done, Outcome::Unchanged, Outcome::Unknown]);
    run.check_metrics();
    run.world.crash(NAPLES);
    assert_eq!(state(&run), "held_by_operator");
    run.check_metrics();

    run.world.blocked.clear();
    run.run(200);
    let left = run.page(None, 9).entries;
    assert_eq!(left.iter().map(id).collect::<Vec<_>>(), [held], "the others went past it");
    assert_eq!(run.operate(&[held], false).unwrap(), [Outcome::Done]);
    run.finish();
}

#[test]
fn channels_that_go_and_come_back_are_measured_as_one() {
    let mut run = Run::new(five_channels);
    run.run(5);
    for submitted in 1..=3 {
        run.submit(Flash, 1_000);
        run.until(Kind::TransferConfirmed, submitted);
        // The channel of this name is another one now.
        let mut config = run.world.configs[NAPLES].clone();
        let flash = &mut config.peers[0].channels[3];
        let old = std::mem::replace(&mut flash.index, 10 + submitted as u32);
        for listener in &mut config.listeners {
            if let ListenerService::P1 { channel, .. } = &mut listener.service
                && *channel == old
            {
                *channel = 10 + submitted as u32;
            }
        }
        run.world.configs[NAPLES] = config.clone();
        let edge = EdgeChanges::default();
        run.world.feed(NAPLES, Input::Configure { config: Box::new(config), edge });
        run.check_metrics();
        run.run(20);
        run.check_metrics();
        let families = run.world.sites[NAPLES].node.metrics(run.world.clock());
        let family = families.iter().find(|f| f.name == "mta_messages_transferred").unwrap();
        let flash = family.samples.iter().find(|s| s.labels.iter().any(|(_, l)| l == "flash"));
        assert_eq!(flash.unwrap().value, Value::Counter(submitted as u64));
    }
}

/// As with records of thousands of recipients, of which a page of 500 would read a gigabyte.
#[test]
fn a_page_reads_so_many_octets_of_records_and_another_goes_on_from_there() {
    let mut run = Run::new(five_channels);
    (0..5).for_each(|channel| run.world.block(channel));
    for _ in 0..5 {
        run.submit(Routine, 2_000);
    }
    run.run(1);
    let all: Vec<_> = run.page(None, 9).entries.iter().map(id).collect();
    assert_eq!(all.len(), 5);
    let (mut found, mut reads, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let asked = QueueRequest { after, limit: 9, ..QueueRequest::default() };
        let page = run.world.sites[NAPLES].node.queue_page(run.world.clock(), &asked).unwrap();
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
fn what_an_operator_holds_stays_held_when_its_peer_goes() {
    let mut run = Run::new(five_channels);
    (0..5).for_each(|channel| run.world.block(channel));
    run.submit(Routine, 2_000);
    run.run(1);
    let held = id(&run.page(None, 1).entries[0]);
    assert_eq!(run.operate(&[held], true).unwrap(), [Outcome::Done]);

    // Its peer is there under another name.
    let mut config = run.world.configs[NAPLES].clone();
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
    run.world.configs[NAPLES] = config.clone();
    let edge = EdgeChanges::default();
    run.world.disk_stuck[NAPLES] = true;
    run.world.feed(NAPLES, Input::Configure { config: Box::new(config), edge });
    let rows = run.page(None, 9).entries;
    assert_eq!((rows[0].peer.as_deref(), rows[0].removed), (Some("act"), true));
    let asked =
        |peer: &str| QueueRequest { peer: Some(peer.to_owned()), limit: 9, ..<_>::default() };
    let page = |run: &Run, asked: QueueRequest| {
        run.world.sites[NAPLES]
            .node
            .queue_page(run.world.clock(), &asked)
            .map(|page| page.describe(|_| None))
    };
    assert_eq!(page(&run, asked("act")).unwrap().entries.len(), 1);
    run.world.disk_stuck[NAPLES] = false;
    run.run(5);
    assert!(page(&run, asked("act")).unwrap_err().to_string().contains("there is no peer"));
    let rows = run.page(None, 9).entries;
    assert_eq!(rows.iter().map(|r| r.state.as_str()).collect::<Vec<_>>(), ["held_by_operator"]);
    assert_eq!((id(&rows[0]) == held, rows[0].removed), (false, false), "it was routed again");
    // A place in another list is none in this one.
    let cursor = r#"{"to":{"peer":7},"precedence":"routine","accepted":0,"entry":1}"#;
    let after: Cursor = serde_json::from_str(cursor).unwrap();
    let asked = QueueRequest { after: Some(after), limit: 9, ..QueueRequest::default() };
    assert!(page(&run, asked).unwrap_err().to_string().contains("begin again without it"));
    assert_eq!(rows[0].peer.as_deref(), Some("act-2"));
    run.world.crash(NAPLES);
    let rows = run.page(None, 9).entries;
    assert_eq!(rows.iter().map(|r| r.state.as_str()).collect::<Vec<_>>(), ["held_by_operator"]);
}
