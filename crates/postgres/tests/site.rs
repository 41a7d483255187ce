//! Several nodes on one database.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod common;

use base::{BodyId, EntryId, Precedence};
use bytes::Bytes;
use common::*;
use engine::journal::{Batch, Digest, ItemId, KnownValue, MailboxId, Op, QueueId, SpoolId};
use postgres_store::PostgresStore;
use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::time::Duration;
use store::cluster::{Acquired, Cluster, NodeEpoch, Place, Renewal};
use store::{BatchId, Committed, QueueStore, StoreError};

const LEASE: Duration = Duration::from_secs(30);

fn node(site: &Site, name: &str) -> (PostgresStore, NodeEpoch) {
    joined(site, name, LEASE)
}

fn joined(site: &Site, name: &str, lease: Duration) -> (PostgresStore, NodeEpoch) {
    let store = opened(site, name, name);
    let epoch = store.join(name, lease).unwrap();
    (store, epoch)
}

/// A process of this node name that has not joined yet, in this place.
fn opened(site: &Site, name: &str, at: &str) -> PostgresStore {
    let node = name.to_owned();
    let own_values = vec!["sending".to_owned()];
    let mut options = site.options.clone();
    options.site = Some(postgres_store::Site { node, own_values, place: Some(place(at)) });
    PostgresStore::open(&site.url(), options).unwrap()
}

fn ours(store: &PostgresStore, shard: QueueId, from: u64) {
    let acquired = store.acquire(shard, "a peer", BatchId(from)).unwrap();
    assert!(matches!(acquired, Acquired::Ours(_)), "{acquired:?}");
}

fn pause(milliseconds: u64) {
    let (_keep, never) = channel::<()>();
    let _ = never.recv_timeout(Duration::from_millis(milliseconds));
}

/// A batch with the number 1,000,000 or above: of no earlier ownership.
fn commit_late(store: &PostgresStore, batch: Batch) -> Committed {
    let late = |(id, batch): (BatchId, Batch)| (BatchId(id.0 + 1_000_000), batch);
    store.commit(numbered(vec![batch]).into_iter().map(late).collect()).remove(0)
}

#[test]
fn of_two_nodes_that_accept_the_same_one_conflicts() {
    let Some(site) = Site::if_installed() else { return };
    let stores = [node(&site, "one").0, node(&site, "two").0];
    let of = |n: usize, owner: usize| {
        let keys = (0..5).map(|at| new_seen((n * 5 + at) as u8, 9, b"x"));
        keys.chain([put((n * 2 + owner) as u64, b"x")]).collect::<Batch>()
    };
    // Twenty batches each, in groups of four, at the same time and in opposite orders.
    let ends = std::thread::scope(|scope| {
        let run = |owner: usize| {
            let store = &stores[owner];
            move || {
                let mut order: Vec<usize> = (0..20).collect();
                if owner == 1 {
                    order.reverse();
                }
                let group = |numbers: &[usize]| {
                    let batches = numbers.iter().map(|n| of(*n, owner)).collect();
                    let ends = store.commit(numbered(batches));
                    numbers.iter().copied().zip(ends).collect::<Vec<_>>()
                };
                let mut ends: Vec<_> = order.chunks(4).flat_map(group).collect();
                ends.sort_by_key(|(n, _)| *n);
                ends
            }
        };
        let threads = [0, 1].map(|owner| scope.spawn(run(owner)));
        threads.map(|thread| thread.join().unwrap())
    });
    let mut entries = BTreeSet::new();
    let [first, second] = &ends;
    for (n, (one, other)) in (0..).zip(first.iter().zip(second)) {
        match (&one.1, &other.1) {
            (Committed::Durable, Committed::Conflict(keys)) if keys.len() == 5 => {
                entries.insert(EntryId(2 * n));
            }
            (Committed::Conflict(keys), Committed::Durable) if keys.len() == 5 => {
                entries.insert(EntryId(2 * n + 1));
            }
            other => panic!("{n}: {other:?}"),
        }
    }
    let stored = stores[0].entries(None, 99).unwrap().into_iter().map(|entry| entry.id);
    assert_eq!(stored.collect::<BTreeSet<_>>(), entries);
}

fn has_no_lease(ended: &Committed) -> bool {
    matches!(ended, Committed::NotDone(StoreError::NoLease))
}

/// What an earlier owner concluded about an entry is not made once another one has removed it: there
/// would be two reports, or two copies.
#[test]
fn what_the_next_owner_removed_is_not_concluded_again() {
    let Some(site) = Site::if_installed() else { return };
    let (one, two) = (node(&site, "one").0, node(&site, "two").0);
    ours(&one, QUEUE, 0);
    assert!(commit(&one, vec![put(1, b"x"), put(2, b"x"), put(3, b"x")]).is_durable());
    one.release(&[QUEUE]).unwrap();
    ours(&two, QUEUE, 0);
    assert!(commit(&two, vec![delete(1), put(11, b"its report")]).is_durable());
    two.release(&[QUEUE]).unwrap();
    ours(&one, QUEUE, 0);
    let ended = one.commit(numbered(vec![
        vec![delete(1), put(21, b"another report"), meta("m", b"y")],
        vec![delete(2), put(22, b"its report")],
        vec![delete(2), put(23, b"another report")],
        // What a batch puts there itself may be removed by it, or by a later one.
        vec![put(4, b"x"), delete(4)],
        vec![put(5, b"x")],
        vec![delete(5)],
    ]));
    let durable: Vec<bool> = ended.iter().map(Committed::is_durable).collect();
    assert_eq!(durable, [false, true, false, true, true, true], "{ended:?}");
    for fenced in [&ended[0], &ended[2]] {
        assert!(matches!(fenced, Committed::Fenced(queues) if queues.is_empty()), "{ended:?}");
    }
    assert_eq!(one.meta("m").unwrap(), None);
    let left: Vec<u64> =
        one.entries(None, 99).unwrap().into_iter().map(|entry| entry.id.0).collect();
    assert_eq!(left, [3, 11, 22]);
}

/// Items are put by the owner of the mailbox only, and so are their flags.
#[test]
fn another_node_puts_no_item_into_a_mailbox() {
    let Some(site) = Site::if_installed() else { return };
    let (one, two) = (node(&site, "one").0, node(&site, "two").0);
    let mailbox = MailboxId(5);
    let item = |number| {
        let id = ItemId { mailbox, number }.entry();
        Op::PutEntry {
            precedence: Precedence::Routine,
            id,
            queue: mailbox.queue(),
            record: Bytes::from_static(b"x"),
        }
    };
    ours(&one, mailbox.queue(), 0);
    assert!(commit(&one, vec![item(1)]).is_durable());
    let fenced = commit(&two, vec![item(2), put(1, b"x")]);
    assert!(matches!(&fenced, Committed::Fenced(queues) if *queues == [mailbox.queue()]));
    assert!(commit(&one, vec![item(2)]).is_durable());
    one.release(&[mailbox.queue()]).unwrap();
    assert!(matches!(commit(&one, vec![item(3)]), Committed::Fenced(_)));
    assert_eq!(two.items(mailbox, Precedence::Routine, 0, 9).unwrap().len(), 2);
    assert_eq!(two.entry_count().unwrap(), 0);
}

#[test]
fn only_the_owner_changes_and_all_accept() {
    let Some(site) = Site::if_installed() else { return };
    let ((one, first), (two, second)) = (node(&site, "one"), node(&site, "two"));
    ours(&one, QUEUE, 0);
    assert_eq!(two.acquire(QUEUE, "a peer", BatchId(0)).unwrap(), Acquired::Owned(first));
    // Both accept for it.
    assert!(commit(&one, vec![put(1, b"x"), body(1, octets(9, 1))]).is_durable());
    assert!(commit(&two, vec![put(2, b"x")]).is_durable());
    // One alone changes, and removes; of a group only what is fenced fails.
    let ended = two.commit(numbered(vec![vec![put(3, b"x")], vec![delete(1)], vec![put(4, b"x")]]));
    let [Committed::Durable, Committed::Fenced(queues), Committed::Durable] = &ended[..] else {
        panic!("{ended:?}")
    };
    assert_eq!(queues, &[QUEUE]);
    assert!(matches!(commit(&two, vec![put(1, b"changed")]), Committed::Fenced(_)));
    assert!(commit(&one, vec![put(1, b"changed"), delete(2)]).is_durable());
    // It is asked for, given away, and theirs; batches of before are not of the new ownership.
    two.ask(QUEUE).unwrap();
    let row = one.shards().unwrap().remove(0);
    assert_eq!((row.shard, row.asked_by, row.name.as_str()), (QUEUE, Some(second), "a peer"));
    one.release(&[QUEUE]).unwrap();
    ours(&two, QUEUE, 1_000_000);
    assert!(matches!(commit(&two, vec![delete(3)]), Committed::Fenced(_)));
    assert!(commit_late(&two, vec![delete(3)]).is_durable());
    assert!(matches!(commit(&one, vec![delete(4)]), Committed::Fenced(_)));
    let row = two.shards().unwrap().remove(0);
    assert_eq!(row.owner.map(|owner| owner.0), Some(second));
    assert_eq!(row.owner.map(|owner| owner.1.0), Some(2), "the fence grows");
}

#[test]
fn the_dead_own_nothing_and_commit_nothing() {
    let Some(site) = Site::if_installed() else { return };
    let (one, first) = joined(&site, "one", Duration::from_millis(700));
    let (two, second) = node(&site, "two");
    ours(&one, QUEUE, 0);
    assert!(commit(&one, vec![put(1, b"x")]).is_durable());
    assert_eq!(two.bury(&[first]).unwrap(), [], "their leases last");
    assert_eq!(one.renew(true).unwrap(), Renewal::Renewed);
    assert!(two.nodes().unwrap().iter().any(|row| row.epoch == first && row.draining));
    pause(800);
    // Its lease has ended: it commits nothing, but is not dead yet.
    assert!(has_no_lease(&commit(&one, vec![put(2, b"x")])));
    assert_eq!(one.renew(false).unwrap(), Renewal::Renewed);
    assert!(commit(&one, vec![put(2, b"x")]).is_durable());
    pause(800);
    assert_eq!(two.bury(&[first]).unwrap(), [first]);
    assert_eq!(one.renew(false).unwrap(), Renewal::Dead);
    assert_eq!(one.acquire(QUEUE, "", BatchId(0)).unwrap(), Acquired::Dead);
    assert!(has_no_lease(&commit(&one, vec![put(3, b"x")])));
    ours(&two, QUEUE, 0);
    assert!(commit(&two, vec![delete(1), delete(2)]).is_durable());
    // It joins again, under another number. A second joining of the name ends it at once.
    let again = one.join("one", LEASE).unwrap();
    assert!(again > second && commit(&one, vec![put(4, b"x")]).is_durable());
    let (other, third) = node(&site, "one");
    assert!(!commit(&one, vec![put(5, b"x")]).is_durable());
    assert!(commit(&other, vec![put(5, b"x")]).is_durable());
    let lives: Vec<NodeEpoch> = two
        .nodes()
        .unwrap()
        .into_iter()
        .filter(|row| !row.lease_left.is_zero())
        .map(|row| row.epoch)
        .collect();
    assert_eq!(lives, [second, third]);
}

/// A second process with the name of a node is refused while the first renews its lease, which goes on unharmed. One
/// that was killed is waited for until its lease is over; at its own place not even so long.
#[test]
fn one_process_has_the_name_of_a_node() {
    let Some(site) = Site::if_installed() else { return };
    let lease = Duration::from_millis(1500);
    let first = opened(&site, "one", "alpha");
    first.join("one", lease).unwrap();
    let second = opened(&site, "one", "beta");
    let refused = std::thread::scope(|scope| {
        let joining = scope.spawn(|| second.join("one", lease));
        while !joining.is_finished() {
            assert_eq!(first.renew(false).unwrap(), Renewal::Renewed);
            pause(300);
        }
        joining.join().unwrap().unwrap_err()
    });
    let words = refused.to_string();
    assert!(matches!(refused, StoreError::NodeRuns { .. }), "{words}");
    assert!(words.contains("node one runs already (host alpha, process 1)"), "{words}");
    assert!(commit(&first, vec![put(1, b"x")]).is_durable());
    // At the same place the earlier process has ended for certain.
    let lasts =
        "select lease_until > clock_timestamp() from node order by epoch desc offset 1 limit 1";
    let again = opened(&site, "one", "alpha");
    again.join("one", LEASE).unwrap();
    assert_eq!(site.sql(lasts), "t", "the lease of the process before");
    let ended = commit(&first, vec![put(2, b"x")]);
    let Committed::NotDone(error) = &ended else { panic!("{ended:?}") };
    assert!(error.is_final() && error.to_string().contains("taken over node one"), "{error}");
    // Elsewhere its lease is waited for.
    again.join("one", lease).unwrap();
    let elsewhere = opened(&site, "one", "beta");
    elsewhere.join("one", LEASE).unwrap();
    assert_eq!(site.sql(lasts), "f", "it was waited for");
    // Who wakes up after that learns who has its name, and takes nothing back.
    let error = again.join("one", LEASE).unwrap_err();
    assert!(error.is_final() && error.to_string().contains("(host beta, process 1)"), "{error}");
    assert!(commit(&elsewhere, vec![put(3, b"x")]).is_durable());
}

#[test]
fn the_first_value_of_a_site_stays() {
    let Some(site) = Site::if_installed() else { return };
    let (one, two) = (node(&site, "one").0, node(&site, "two").0);
    assert_eq!(one.value_or_put("site-identity", b"a").unwrap(), b"a");
    assert_eq!(two.value_or_put("site-identity", b"b").unwrap(), b"a");
    assert_eq!(two.meta("site-identity").unwrap().as_deref(), Some(&b"a"[..]));
}

/// A takeover waits for a commit that has begun.
#[test]
fn a_takeover_waits_for_a_commit() {
    let Some(site) = Site::if_installed() else { return };
    // On a busy machine the commit begins late: it has to before the lease ends.
    let (one, first) = joined(&site, "one", Duration::from_millis(1500));
    let (two, _) = node(&site, "two");
    ours(&one, QUEUE, 0);
    let schema = site.options.schema.clone();
    std::thread::scope(|scope| {
        // A row that the commit needs is locked until well after the end of the lease.
        scope.spawn(|| {
            let text = format!(
                "set search_path = {schema}; begin; insert into meta values ('x', ''); \
                                select pg_sleep(2.5); commit"
            );
            site.server.unwrap().psql(&text).unwrap();
        });
        pause(250);
        let committing = scope.spawn(|| commit(&one, vec![put(1, b"x"), meta("x", b"y")]));
        pause(1450);
        assert_eq!(two.bury(&[first]).unwrap(), [first]);
        // So it was there before the node was dead.
        assert_eq!(two.entry_count().unwrap(), 1);
        assert!(committing.join().unwrap().is_durable());
    });
}

/// Bodies stay as long as an entry names them, and go with the last one.
#[test]
fn a_body_goes_with_its_last_entry() {
    let Some(site) = Site::if_installed() else { return };
    let (one, _) = node(&site, "one");
    ours(&one, QUEUE, 0);
    let record = |id: u64| Op::PutEntry {
        precedence: Precedence::Routine,
        id: EntryId(id),
        queue: QUEUE,
        record: naming(7),
    };
    assert!(commit(&one, vec![record(1), record(2), body(7, octets(5, 1))]).is_durable());
    assert!(commit(&one, vec![delete(1), drop_body(7)]).is_durable());
    assert!(one.body_length(BodyId(7)).unwrap().is_some(), "another entry names it");
    assert!(commit(&one, vec![delete(2)]).is_durable());
    assert_eq!(one.body_length(BodyId(7)).unwrap(), None);
    assert_eq!(site.sql("select count(*) from content"), "0");
}

/// A record that names this body: the brief of a record, and no envelope.
fn naming(body: u64) -> Bytes {
    use engine::{Brief, NextHop, RecordKind};
    use std::borrow::Cow;
    let brief = Brief {
        kind: RecordKind::Message,
        next_hop: Cow::Owned(NextHop::Peer(base::PeerId(7))),
        message: Cow::Borrowed("m"),
        precedence: Precedence::Routine,
        accepted: base::Utc(1),
        first_arrival: base::Utc(1),
        not_before: None,
        size: 5,
        body: Some(BodyId(body)),
        latest: None,
    };
    let none: Option<base::Utc> = None;
    let digest: Option<[u8; 32]> = None;
    let octets = postcard::to_extend(&(none, digest, (brief, &b""[..])), vec![3_u8]).unwrap();
    assert!(engine::Record::peek(&octets).unwrap().body.is_some());
    octets.into()
}

#[test]
fn no_entry_of_another_node_is_missed() {
    let Some(site) = Site::if_installed() else { return };
    let stores = [node(&site, "one").0, node(&site, "two").0, node(&site, "three").0];
    let listed = std::thread::scope(|scope| {
        for (n, store) in stores.iter().take(2).enumerate() {
            scope.spawn(move || {
                for at in 0..60 {
                    let id = (at * 2 + n) as u64;
                    assert!(commit(store, vec![put(id, b"x"), put(1_000 + id, b"y")]).is_durable());
                }
            });
        }
        let (mut place, mut found, mut calls) = (Place::default(), BTreeSet::new(), 0);
        while found.len() < 240 && calls < 4_000 {
            let page = stores[2].shard_entries(QUEUE, place, 7).unwrap();
            assert!(page.entries.len() <= 7);
            found.extend(page.entries.into_iter().map(|entry| entry.id.0));
            place = page.next;
            calls += 1;
        }
        found
    });
    assert_eq!(listed.len(), 240);
    // A listing from the beginning ends.
    let (mut place, mut count) = (Place::default(), 0);
    loop {
        let page = stores[2].shard_entries(QUEUE, place, 50).unwrap();
        count += page.entries.len();
        place = page.next;
        if !page.more {
            break;
        }
    }
    assert_eq!(count, 240);
    // What others still write, in whatever table, lets it be listed again.
    let is_empty = |_| {
        pause(20);
        let page = stores[2].shard_entries(QUEUE, place, 50).unwrap();
        place = page.next;
        page.entries.is_empty()
    };
    assert!((0..300).any(is_empty));
    let shards: Vec<QueueId> = stores[2].shards().unwrap().iter().map(|row| row.shard).collect();
    assert_eq!(shards, [QUEUE], "nobody owns it");
}

/// Else a node that could send to a peer does not know that something waits for it.
#[test]
fn what_waits_for_a_peer_is_shown_whoever_owns_it_and_a_wish_for_it_can_be_withdrawn() {
    let Some(site) = Site::if_installed() else { return };
    let ((one, first), (two, second)) = (node(&site, "one"), node(&site, "two"));
    let mailbox = QueueId(1 << 63 | 7);
    for shard in [QUEUE, mailbox] {
        ours(&one, shard, 0);
    }
    let seen = |shard| {
        let rows = two.shards().unwrap();
        let row = rows.into_iter().find(|row| row.shard == shard).unwrap();
        (row.owner.map(|(owner, _)| owner), row.waits, row.asked_by)
    };
    assert_eq!(seen(QUEUE), (Some(first), None, None));
    let in_mailbox = Op::PutEntry {
        precedence: Precedence::Flash,
        id: EntryId(900),
        queue: mailbox,
        record: Bytes::from_static(b"x"),
    };
    assert!(commit(&one, vec![put(1, b"x"), in_mailbox]).is_durable());
    let (_, waits, _) = seen(QUEUE);
    assert!(waits.is_some());
    assert_eq!(seen(mailbox), (Some(first), None, None), "they are many");
    two.ask(QUEUE).unwrap();
    one.withdraw(QUEUE).unwrap();
    assert_eq!(seen(QUEUE), (Some(first), waits, Some(second)), "it is not its own");
    two.withdraw(QUEUE).unwrap();
    assert_eq!(seen(QUEUE), (Some(first), waits, None));
}

#[test]
fn what_others_do_is_noticed() {
    let Some(site) = Site::if_installed() else { return };
    let ((one, _), (two, second)) = (node(&site, "one"), node(&site, "two"));
    let quiet = Duration::from_millis(300);
    assert!(one.watch(quiet).unwrap().all, "the first look");
    assert_eq!(one.watch(quiet).unwrap(), store::cluster::Changes::default());
    assert!(commit(&two, vec![put(1, b"x"), meta("name", b"value")]).is_durable());
    let changes = one.watch(Duration::from_secs(5)).unwrap();
    assert_eq!((changes.shards, changes.values), (vec![QUEUE], vec!["name".to_owned()]));
    // A notice is dear: of what no other node looks at there is none.
    let names = ["mailbox/5/totals", "entries/3", "sending"];
    for name in names {
        assert!(commit(&two, vec![meta(name, b"value")]).is_durable());
    }
    ours(&one, QUEUE, 0);
    assert!(commit(&one, vec![put(2, b"x")]).is_durable());
    let changes = one.watch(Duration::from_secs(5)).unwrap();
    let members = store::cluster::Changes { members: true, ..<_>::default() };
    assert_eq!(changes, members, "the shard has another owner, and nothing else");
    assert_eq!(one.watch(quiet).unwrap(), <_>::default());
    assert!(commit(&two, vec![put(3, b"x"), meta("registered/ops", b"value")]).is_durable());
    let changes = one.watch(Duration::from_secs(5)).unwrap();
    assert_eq!((changes.shards, changes.values), (vec![QUEUE], vec!["registered/ops".to_owned()]));
    two.ask(QUEUE).unwrap();
    assert!(one.watch(Duration::from_secs(5)).unwrap().members);
    two.announce(QUEUE).unwrap();
    let changes = one.watch(Duration::from_secs(5)).unwrap();
    let bound = vec![(QUEUE, second)];
    assert_eq!(changes, store::cluster::Changes { bound, ..<_>::default() });
    // A connection that is lost may have missed anything.
    site.sql("select pg_terminate_backend(pid) from pg_stat_activity where query like 'LISTEN%'");
    assert!((0..20).any(|_| one.watch(quiet).unwrap().all));
}

/// One look for all shards, however many.
#[test]
fn of_many_shards_those_with_news_are_found() {
    let Some(site) = Site::if_installed() else { return };
    let (one, two) = (node(&site, "one").0, node(&site, "two").0);
    let entry = |id, queue| Op::PutEntry {
        precedence: Precedence::Routine,
        id: EntryId(id),
        queue: QueueId(queue),
        record: Bytes::from_static(b"x"),
    };
    assert!(commit(&two, vec![entry(1, 1), entry(2, 2)]).is_durable());
    let mut places: Vec<(QueueId, Place)> =
        (1..2_000).map(|queue| (QueueId(queue), Place::default())).collect();
    let news = |places: &[(QueueId, Place)]| {
        one.news(places).unwrap().into_iter().map(|shard| shard.0).collect::<BTreeSet<u64>>()
    };
    assert_eq!(news(&places), [1, 2].into());
    // A transaction of another test on the same server, as long as it lasts, has what is read seen as new again.
    let is_read = |places: &mut Vec<(QueueId, Place)>| {
        for (shard, place) in places.iter_mut() {
            *place = one.shard_entries(*shard, Place::default(), 99).unwrap().next;
        }
        let found = news(places);
        if !found.is_empty() {
            site.sql("select pg_sleep(0.1)");
        }
        found.is_empty()
    };
    assert!((0..20).any(|_| is_read(&mut places)));
    assert!(commit(&two, vec![entry(3, 2), entry(4, 1_999)]).is_durable());
    assert_eq!(news(&places), [2, 1_999].into());
    let rows = one.shards_of(&[QUEUE, QueueId(2)]).unwrap();
    assert!(rows.iter().all(|row| row.owner.is_none()) && rows.len() == 2, "{rows:?}");
}

/// Nobody takes up what it was receiving: it would stay in the database for ever.
#[test]
fn what_a_forgotten_node_was_receiving_is_swept() {
    let Some(site) = Site::if_installed() else { return };
    let (one, _) = node(&site, "one");
    let (two, second) = node(&site, "two");
    two.contents().open(SpoolId(1)).unwrap();
    two.contents().append(SpoolId(1), octets(2 << 20, 1)).unwrap();
    two.contents().sync(SpoolId(1)).unwrap();
    std::mem::forget(two);
    let contents = || site.sql("select count(*) from content");
    let swept = || while one.tidy().unwrap() > 0 {};
    swept();
    assert_eq!(contents(), "1");
    site.sql(&format!("update node set lease_until = now() where epoch = {}", second.0));
    assert_eq!(one.bury(&[second]).unwrap(), [second]);
    swept();
    assert_eq!(contents(), "1", "the node may come back");
    let surveyor = postgres_store::Surveyor::new(&site.url(), &site.options).unwrap();
    assert_eq!(surveyor.forget("one").unwrap(), 0, "it lives");
    assert_eq!(surveyor.forget("two").unwrap(), 1);
    swept();
    assert_eq!(contents(), "0");
    assert!(commit(&one, vec![put(1, b"x")]).is_durable());
}

#[test]
fn each_node_has_its_own_values_and_contents() {
    let Some(site) = Site::if_installed() else { return };
    let (one, _) = node(&site, "one");
    let (two, _) = node(&site, "two");
    assert!(commit(&one, vec![meta("sending", b"one"), meta("shared", b"first")]).is_durable());
    assert!(commit(&two, vec![meta("sending", b"two"), meta("shared", b"second")]).is_durable());
    let values =
        |store: &PostgresStore| ["sending", "shared"].map(|name| store.meta(name).unwrap());
    assert_eq!(values(&one), [Some("one".into()), Some("second".into())]);
    assert_eq!(values(&two)[0], Some("two".into()));
    for store in [&one, &two] {
        store.contents().open(SpoolId(1)).unwrap();
        store.contents().append(SpoolId(1), octets(2 << 20, 1)).unwrap();
        store.contents().note(SpoolId(1), b"note").unwrap();
        store.contents().sync(SpoolId(1)).unwrap();
    }
    drop(one);
    // It comes back while the other one receives and tidies: each has its own.
    let (one, _) = node(&site, "one");
    while two.tidy().unwrap() + one.tidy().unwrap() > 0 {}
    let kept = one.contents().take_kept();
    assert_eq!((kept.len(), kept[0].length), (1, 2 << 20));
    assert!(commit(&one, vec![spooled(1, kept[0].id.0)]).is_durable());
    assert!(commit(&two, vec![spooled(2, 1)]).is_durable());
    assert_eq!(one.body(BodyId(2), 0, usize::MAX).unwrap(), Some(octets(2 << 20, 1)));
    // What is remembered by one is known to the other.
    assert!(commit(&one, vec![seen(1, 9, b"answer")]).is_durable());
    assert_eq!(seen_of(&two, Digest([1; 32]), base::Utc(0)), Some("answer".into()));
}

#[test]
fn one_process_alone_and_a_site_exclude_each_other() {
    let Some(mut site) = Site::if_installed() else { return };
    let locked = |error: StoreError| assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    let alone = site.open();
    assert!(commit(&*alone, vec![put(1, b"x")]).is_durable());
    let mut options = site.options.clone();
    options.site = Some(postgres_store::Site {
        node: "one".to_owned(),
        own_values: vec![],
        ..Default::default()
    });
    locked(PostgresStore::open(&site.url(), options.clone()).unwrap_err());
    drop(alone);
    let (one, _) = joined(&site, "one", Duration::from_secs(4));
    locked(site.try_open().unwrap_err());
    assert!(matches!(one.join("two", LEASE).unwrap_err(), StoreError::Refused { .. }));
    drop(one);
    // Its lease lasts, although it is gone.
    locked(site.try_open().unwrap_err());
    pause(4_000);
    assert_eq!(site.open().entry_count().unwrap(), 1);
    // Before it joins, a node commits nothing.
    let early = PostgresStore::open(&site.url(), options).unwrap();
    assert!(has_no_lease(&commit(&early, vec![put(2, b"x")])));
    assert!(matches!(early.renew(false), Err(StoreError::NoLease)));
}

/// Whoever takes the lock of the site locks a node out once its connection breaks. It comes back by itself, although it
/// has nothing to commit without a lease.
#[test]
fn a_node_that_was_locked_out_renews_its_lease_once_the_lock_is_free() {
    let Some(site) = Site::if_installed() else { return };
    let (one, _) = joined(&site, "one", Duration::from_secs(4));
    let commit = |id| one.commit(numbered(vec![vec![put(id, b"x")]])).remove(0);
    assert!(commit(1).is_durable());
    let schema = &site.options.schema;
    let lock = format!(
        "select pg_advisory_lock(1836343600, (oid::bigint & 2147483647)::integer), pg_sleep(4) \
         from pg_namespace where nspname = '{schema}'"
    );
    std::thread::scope(|scope| {
        let other = scope.spawn(|| site.sql(&lock));
        pause(500);
        site.sql(&format!(
            "select pg_terminate_backend(pid, 1000) from pg_locks \
             where locktype = 'advisory' and classid = 1836343600 and granted \
             and objid = (select oid from pg_namespace where nspname = '{schema}')"
        ));
        assert!(!commit(2).is_durable());
        let refused = one.renew(false);
        assert!(matches!(refused, Err(StoreError::Locked { .. })), "{refused:?}");
        other.join().unwrap();
    });
    let is_back = (0..50).any(|_| one.renew(false).is_ok() || pause_and_go_on());
    assert!(is_back, "the lock is free, and it renews no lease");
    assert!(commit(3).is_durable());
}

fn pause_and_go_on() -> bool {
    pause(100);
    false
}

/// A node replaces a value that it knows. Another one that knows the value of before has to look first.
#[test]
fn a_value_that_another_node_has_changed_is_not_overwritten() {
    let Some(site) = Site::if_installed() else { return };
    let [one, two] = ["one", "two"].map(|name| node(&site, name).0);
    let commit = |store: &PostgresStore, op: Op| {
        store.commit(numbered(vec![vec![op], vec![meta("beside", b"x")]])).remove(0)
    };
    let [mut ours, mut theirs] = [KnownValue::default(), KnownValue::default()];
    let first = commit(&one, ours.replace("held", Bytes::from_static(b"ours")));
    assert!(first.is_durable(), "{first:?}");
    let second = commit(&two, theirs.replace("held", Bytes::from_static(b"theirs")));
    assert!(matches!(&second, Committed::Changed(names) if names == &["held"]), "{second:?}");
    let found = two.meta("held").unwrap().unwrap();
    assert_eq!(found, "ours");
    let again = KnownValue::from_octets(&found).replace("held", Bytes::from_static(b"both"));
    assert!(commit(&two, again).is_durable());
    assert_eq!(one.meta("held").unwrap().unwrap(), "both");
    // In one group each replaces what the one before it wrote.
    let mut known = KnownValue::from_octets(b"both");
    let chain = ["a", "b"].map(|value| vec![known.replace("held", Bytes::from(value))]);
    let ends = one.commit(numbered(chain.to_vec()));
    assert!(ends.iter().all(Committed::is_durable), "{ends:?}");
    // One that does not hold takes along those that were built on it, and no others.
    let mut wrong = KnownValue::from_octets(b"both");
    let mut chain: Vec<Batch> =
        ["c", "d"].map(|value| vec![wrong.replace("held", Bytes::from(value))]).into();
    chain.push(vec![meta("beside", b"y")]);
    let ends = two.commit(numbered(chain));
    assert!(matches!(&ends[..2], [Committed::Changed(_), Committed::Changed(_)]), "{ends:?}");
    assert!(ends[2].is_durable(), "{ends:?}");
    assert_eq!(one.meta("held").unwrap().unwrap(), "b");
}
