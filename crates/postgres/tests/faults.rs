//! A server that is killed, a network that is cut, a disk that is full: every answer is the truth.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail the test")]

mod common;
#[path = "common/cutter.rs"]
mod cutter;

use base::BodyId;
use bytes::Bytes;
use common::*;
use cutter::{Cutter, Way};
use database::Server;
use engine::journal::{Batch, Digest, Op, SpoolId};
use postgres_store::{PostgresStore, prepare};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use store::{BatchId, Committed, QueueStore};

fn pause(milliseconds: u64) {
    let (_keep, never) = channel::<()>();
    let _ = never.recv_timeout(Duration::from_millis(milliseconds));
}

/// Batch number n: an entry, a content, a key that must be absent, and a value that all of them write.
fn batch(n: u64) -> Batch {
    let value = n.to_string().into_bytes().leak();
    let mut key = [7; 32];
    key[..8].copy_from_slice(&n.to_be_bytes());
    let (key, until, record) = (Digest(key), base::Utc(99), Bytes::new());
    let seen = Op::PutSeen { key, until, record, absent: true };
    vec![put(n, b"record"), body(n, octets(700, (n % 250) as u8)), seen, meta("last", value)]
}

/// Which of these batches are there; each is there whole or not at all.
fn there(store: &dyn QueueStore, numbers: std::ops::Range<u64>) -> Vec<u64> {
    let is_there = |n: &u64| {
        let entry = store.entry((base::Precedence::Routine, base::EntryId(*n))).unwrap().is_some();
        let body = store.body(BodyId(*n), 0, usize::MAX).unwrap();
        assert_eq!(body.is_some(), entry, "{n} is there in part");
        assert!(body.is_none_or(|octets| octets == common::octets(700, (n % 250) as u8)));
        entry
    };
    numbers.filter(is_there).collect()
}

/// The end of a batch, asked for until it is known.
fn end(store: &dyn QueueStore, id: BatchId, ended: Committed) -> Committed {
    let mut ended = ended;
    for _ in 0..600 {
        if !matches!(ended, Committed::Unknown(_)) {
            return ended;
        }
        pause(20);
        ended = store.outcome(id);
    }
    ended
}

#[test]
fn a_server_that_is_killed_loses_nothing_that_was_acknowledged() {
    let Some(mut server) = database::server_or_skip("kill", database::Options::new()) else {
        return;
    };
    server.role(RUNS).unwrap();
    let time_limit = Duration::from_secs(4);
    let options = postgres_store::Options { time_limit, ..options("killed") };
    prepare(&server.url("postgres"), RUNS, &options).unwrap();
    let store = PostgresStore::open(&server.url(RUNS), options.clone()).unwrap();
    let (mut next, mut made, mut refused) = (1, Vec::new(), 0);
    for kill in 0..8_u64 {
        let first = next;
        let count = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let (store, count) = (&store, &count);
            let committer = scope.spawn(move || {
                let (mut n, mut made, mut unmade) = (next, Vec::new(), 0);
                while count.load(Ordering::Relaxed) == 0 {
                    let id = BatchId(n);
                    let ended = store.commit(vec![(id, batch(n))]).remove(0);
                    // The server is not there again before the end of this loop.
                    made.push((n, ended));
                    unmade += usize::from(!made.last().unwrap().1.is_durable());
                    n += 1;
                    if unmade > 3 {
                        pause(5);
                    }
                }
                (n, made)
            });
            pause(15 + 7 * kill);
            server.kill().unwrap();
            count.store(1, Ordering::Relaxed);
            let (after, ends) = committer.join().unwrap();
            server.launch().unwrap();
            next = after;
            for (n, ended) in ends {
                match end(store, BatchId(n), ended) {
                    Committed::Durable => made.push(n),
                    Committed::NotDone(_) => refused += 1,
                    other => panic!("{n}: {other:?}"),
                }
            }
        });
        let new: Vec<u64> = made.iter().copied().filter(|n| *n >= first).collect();
        assert_eq!(there(&store, first..next), new, "after kill {kill}");
    }
    // How many depends on the machine.
    assert!(made.len() > 8 && refused > 0, "{} {refused}", made.len());
    drop(store);
    let store = PostgresStore::open(&server.url(RUNS), options).unwrap();
    assert_eq!(there(&store, 1..next), made);
    assert!(commit(&store, batch(next)).is_durable());
}

fn through(cutter: &Cutter, server: &Server, site: &Site) -> PostgresStore {
    let url = server.url_at(cutter.address, RUNS);
    PostgresStore::open(&url, site.options.clone()).unwrap()
}

/// The store connects anew, and finds the outcome of the commit: it makes it once.
#[test]
fn a_network_that_is_cut_anywhere_leaves_no_doubt() {
    let Some(site) = Site::if_installed() else { return };
    let server = site.server.unwrap();
    let cutter = Cutter::start(server.address());
    let store = through(&cutter, server, &site);
    assert!(commit(&store, batch(0)).is_durable());
    let (mut n, mut cuts) = (1, 0);
    let there_first = (0..1_500).step_by(97).map(|octets| (Way::There, octets));
    for (way, octets) in there_first.chain((0..120).step_by(9).map(|octets| (Way::Back, octets))) {
        cutter.cut_after(way, octets + 1, false);
        let ended = commit(&store, batch(n));
        assert!(ended.is_durable(), "{way:?} {octets}: {ended:?}");
        cuts += usize::from(cutter.has_cut());
        cutter.heal();
        n += 1;
    }
    assert!(cuts > 18, "{cuts}");
    let all: Vec<u64> = (0..n).collect();
    assert_eq!(there(&store, 0..n), all);
}

/// Parts and notes are written once, although the call was made twice.
#[test]
fn a_content_is_received_over_a_network_that_is_cut() {
    let Some(mut site) = Site::if_installed() else { return };
    site.options.spool_memory = 100;
    let server = site.server.unwrap();
    let cutter = Cutter::start(server.address());
    let store = through(&cutter, server, &site);
    let whole = octets(1_700_000, 3);
    let there_first = [1, 30_000, 524_200, 525_000, 600_000, 1_100_000, 1_690_000];
    let all = there_first.map(|octets| (Way::There, octets)).into_iter();
    for (n, (way, octets)) in (1..).zip(all.chain([1, 9, 30, 60].map(|octets| (Way::Back, octets))))
    {
        let (contents, id) = (store.contents(), SpoolId(n));
        contents.open(id).unwrap();
        cutter.cut_after(way, octets, false);
        for (at, piece) in whole.chunks(300_000).enumerate() {
            contents.append(id, Bytes::copy_from_slice(piece)).unwrap();
            contents.note(id, &[at as u8]).unwrap();
            contents.sync(id).unwrap();
        }
        assert!(cutter.has_cut(), "{way:?} {octets}");
        cutter.heal();
        assert!(commit(&store, vec![spooled(n, n)]).is_durable());
        let read = store.body(BodyId(n), 0, usize::MAX).unwrap();
        assert!(read.is_some_and(|read| read == whole), "{way:?} {octets}");
    }
    assert_eq!(site.sql("select count(*) from note"), "0");
}

/// The server cannot be reached for a while: nobody gets an answer that is not known.
#[test]
fn what_is_not_known_is_known_later() {
    let Some(site) = Site::if_installed() else { return };
    let server = site.server.unwrap();
    let cutter = Cutter::start(server.address());
    let store = through(&cutter, server, &site);
    assert!(commit(&store, batch(0)).is_durable());
    let cuts = [(Way::There, 1), (Way::There, 600), (Way::Back, 1), (Way::Back, 20)];
    let mut made = vec![0];
    for (n, (way, octets)) in (1..).zip(cuts) {
        // Its statement is prepared: the one octet back is of the commit.
        assert!(commit(&store, vec![meta("x", b"y")]).is_durable());
        store.contents().open(SpoolId(n)).unwrap();
        store.contents().append(SpoolId(n), common::octets(50, 1)).unwrap();
        cutter.cut_after(way, octets, true);
        let mut all = batch(n);
        all.push(spooled(1_000 + n, n));
        let ended = store.commit(vec![(BatchId(n), all)]).remove(0);
        assert!(matches!(ended, Committed::Unknown(_)), "{way:?} {octets}: {ended:?}");
        assert!(matches!(&ended, Committed::Unknown(error) if error.is_away()), "{ended:?}");
        // Nothing is committed before its end is known.
        assert!(matches!(commit(&store, batch(100)), Committed::NotDone(_)));
        assert!(matches!(store.outcome(BatchId(n)), Committed::Unknown(_)));
        cutter.heal();
        match end(&store, BatchId(n), ended) {
            Committed::Durable => {
                made.push(n);
                assert!(store.contents().length(SpoolId(n)).is_err());
                assert!(store.body(BodyId(1_000 + n), 0, 99).unwrap().is_some());
            }
            Committed::NotDone(_) => assert_eq!(store.contents().length(SpoolId(n)).unwrap(), 50),
            other => panic!("{other:?}"),
        }
        assert_eq!(there(&store, 0..10), made, "{way:?} {octets}");
    }
    assert!(made.len() > 1 && made.len() < 5, "both ends came: {made:?}");
    assert_eq!(store.contents().memory_held(), 50 * (5 - made.len()));
}

/// A commit that comes late, by a connection that the store has given up, is refused.
#[test]
fn what_comes_late_is_not_made() {
    let Some(mut site) = Site::if_installed() else { return };
    let server = site.server.unwrap();
    site.options.time_limit = Duration::from_secs(1);
    let cutter = Cutter::start(server.address());
    let store = through(&cutter, server, &site);
    assert!(commit(&store, vec![meta("x", b"first")]).is_durable());
    cutter.hold();
    let ended = commit(&store, vec![meta("x", b"second"), new_seen(1, 99, b"once")]);
    assert!(ended.is_durable(), "by another connection: {ended:?}");
    assert!(commit(&store, vec![meta("x", b"third")]).is_durable());
    cutter.let_go();
    pause(300);
    assert_eq!(store.meta("x").unwrap().unwrap(), "third");
    assert!(commit(&store, vec![meta("x", b"fourth")]).is_durable());
}

/// A server that hangs holds nobody for long, and nothing is lost when it goes on.
#[test]
fn a_server_that_hangs_is_not_waited_for_for_ever() {
    let Some(server) = database::server_or_skip("hangs", database::Options::new()) else { return };
    server.role(RUNS).unwrap();
    let second = Duration::from_secs(1);
    let options =
        postgres_store::Options { time_limit: second, connect_limit: second, ..options("hangs") };
    prepare(&server.url("postgres"), RUNS, &options).unwrap();
    let store = PostgresStore::open(&server.url(RUNS), options).unwrap();
    assert!(commit(&store, batch(1)).is_durable());
    server.freeze();
    let ended = store.commit(vec![(BatchId(900), batch(2))]).remove(0);
    assert!(matches!(&ended, Committed::Unknown(error) if error.is_away()), "{ended:?}");
    assert!(store.entry_count().unwrap_err().is_away());
    assert!(!commit(&store, batch(3)).is_durable());
    server.thaw();
    let durable = end(&store, BatchId(900), ended).is_durable();
    assert_eq!(there(&store, 1..4).contains(&2), durable);
    assert!(commit(&store, batch(4)).is_durable());
}

/// The first of two servers takes connections and answers nothing: the other one is found in time.
#[test]
fn a_server_that_does_not_answer_keeps_nobody_from_the_next_one() {
    let Some(server) = database::server_or_skip("silent", database::Options::new()) else { return };
    server.role(RUNS).unwrap();
    let options = options("silent");
    prepare(&server.url("postgres"), RUNS, &options).unwrap();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, real) = (silent.local_addr().unwrap().port(), server.address().port());
    let url = server.url(RUNS);
    let both = url.replacen("127.0.0.1", "127.0.0.1,127.0.0.1", 1).replacen(
        &format!("{real}"),
        &format!("{port},{real}"),
        1,
    );
    assert!(both.contains(&format!("{port},{real}")) && both.contains(",127"), "{both}");
    let store = PostgresStore::open(&both, options).unwrap();
    assert!(commit(&store, batch(1)).is_durable());
}

#[test]
fn a_full_disk_refuses_what_needs_room_and_the_store_goes_on() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let disk = database::Options::new().disk(400).set("min_wal_size", "64MB");
    let Some(server) = database::server_or_skip("full", disk) else { return };
    server.role(RUNS).unwrap();
    let options = options("full");
    prepare(&server.url("postgres"), RUNS, &options).unwrap();
    let store = PostgresStore::open(&server.url(RUNS), options).unwrap();
    for n in 0..20 {
        assert!(commit(&store, batch(n)).is_durable());
    }
    let ballast = server.fill_disk().unwrap();
    let large = |n: u64| vec![put(n, b"large"), body(n, octets(900_000, 1))];
    let group = vec![large(100), vec![delete(1), drop_body(1)], large(101)];
    let ended = store.commit(numbered(group));
    let full = |ended: &Committed| matches!(ended, Committed::NotDone(e) if e.is_disk_full());
    assert!(full(&ended[0]) && ended[1].is_durable() && full(&ended[2]), "{ended:?}");
    store.contents().open(SpoolId(1)).unwrap();
    let spooled_too = store.contents().append(SpoolId(1), octets(2 << 20, 1));
    assert!(spooled_too.unwrap_err().is_disk_full());
    store.contents().discard(SpoolId(1));
    std::fs::remove_file(ballast).unwrap();
    assert!(commit(&store, large(100)).is_durable());
    assert_eq!(store.entry_count().unwrap(), 20);
}
