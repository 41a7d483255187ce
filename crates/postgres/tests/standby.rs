//! A primary with two standbys, one of which has each commit: nobody is answered before, and what was
//! answered is there after the loss of the primary.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail the test")]

mod common;

use common::*;
use database::{Trio, programs_or_skip};
use postgres_store::{Options, PostgresStore, prepare};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;
use store::{BatchId, Committed, QueueStore};

fn pause(milliseconds: u64) {
    let (_keep, never) = channel::<()>();
    let _ = never.recv_timeout(Duration::from_millis(milliseconds));
}

/// The end of a batch, asked for until it is known.
fn end(store: &dyn QueueStore, id: BatchId, ended: Committed) -> Committed {
    let mut ended = ended;
    for _ in 0..600 {
        if !matches!(ended, Committed::Unknown(_)) {
            return ended;
        }
        pause(50);
        ended = store.outcome(id);
    }
    ended
}

#[test]
fn what_the_standbys_do_not_have_is_not_acknowledged() {
    let Some(programs) = programs_or_skip("standby") else { return };
    let mut trio = Trio::start(database::Options::new().programs(programs)).unwrap();
    trio.primary().role(RUNS).unwrap();
    trio.psql(&format!("grant pg_monitor to {RUNS}")).unwrap();
    let options = Options {
        time_limit: Duration::from_secs(1),
        connect_limit: Duration::from_secs(1),
        ..options("standby")
    };
    prepare(&trio.url("postgres"), RUNS, &options).unwrap();
    let store = PostgresStore::open(&trio.url(RUNS), options).unwrap();
    assert!(commit(&store, vec![put(1, b"x")]).is_durable());
    let found = store.durability().unwrap();
    assert_eq!(
        (found.may_be_lost, found.may_be_away, found.warnings.len()),
        (1, 1, 0),
        "{found:?}"
    );
    cancelled(&trio, &store);
    survives(&mut trio, &store);
}

/// Somebody ends the wait for the standbys: the commit is there, and may be lost with the primary.
fn cancelled(trio: &Trio, store: &PostgresStore) {
    let [one, two] = trio.others();
    let standbys = [&trio.servers()[one], &trio.servers()[two]];
    standbys.iter().for_each(|standby| standby.freeze());
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            pause(300);
            let cancel = "select count(pg_cancel_backend(pid)) from pg_stat_activity \
                          where wait_event = 'SyncRep'";
            assert_eq!(trio.psql(cancel).unwrap(), "1");
        });
        store.commit(vec![(BatchId(77), vec![put(2, b"x")])]).remove(0)
    });
    assert!(matches!(ended, Committed::Unknown(_)), "{ended:?}");
    let there = "select count(*) from standby.entry";
    assert_eq!(trio.psql(there).unwrap(), "2", "on the primary it is");
    assert!(matches!(store.outcome(BatchId(77)), Committed::Unknown(_)));
    assert!(!commit(store, vec![put(3, b"x")]).is_durable());
    standbys.iter().for_each(|standby| standby.thaw());
    assert!(end(store, BatchId(77), ended).is_durable());
    assert!(commit(store, vec![put(3, b"x")]).is_durable());
}

/// The primary is lost under load; the store continues with the one that is promoted.
fn survives(trio: &mut Trio, store: &PostgresStore) {
    let (lost, stop) = (trio.primary_number(), AtomicBool::new(false));
    let ends = std::thread::scope(|scope| {
        let committing = scope.spawn(|| {
            let mut ends = Vec::new();
            for n in 100.. {
                let ended = store.commit(vec![(BatchId(n), vec![put(n, b"x")])]).remove(0);
                ends.push((n, end(store, BatchId(n), ended)));
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                pause(1);
            }
            ends
        });
        pause(300);
        trio.server(lost).unwrap().kill().unwrap();
        trio.promote().unwrap();
        pause(1_500);
        stop.store(true, Ordering::Relaxed);
        committing.join().unwrap()
    });
    let made = ends.iter().filter(|(_, ended)| ended.is_durable()).count();
    assert!(made > 20 && ends.last().unwrap().1.is_durable(), "{made}");
    for (n, ended) in &ends {
        let key = (base::Precedence::Routine, base::EntryId(*n));
        let there = store.entry(key).unwrap().is_some();
        assert!(!matches!(ended, Committed::Unknown(_)), "{n}: {ended:?}");
        assert_eq!(there, ended.is_durable(), "{n}: {ended:?}");
    }
}
