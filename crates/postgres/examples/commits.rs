//! Durable batches a second on a server of its own, and what they write into its log.
//!
//! `cargo run --release -p postgres-store --example commits [SECONDS]`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, QueueId};
use postgres_store::{Options, PostgresStore, prepare};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use store::{Committer, QueueStore};

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn now() -> Instant {
    Instant::now()
}

fn entry(n: u64) -> Op {
    let record = Bytes::from(vec![n as u8; 1_000]);
    let (precedence, id, queue) = (Precedence::Routine, EntryId(n), QueueId(n % 50));
    Op::PutEntry { precedence, id, queue, record }
}

/// One entry of 1 kB.
fn record(n: u64) -> Vec<Batch> {
    vec![vec![entry(n)]]
}

/// A message of 1 kB with a key that must be absent, which then leaves.
fn message(n: u64) -> Vec<Batch> {
    let source = BodySource::Octets(Bytes::from(vec![n as u8; 1_000]));
    let mut key = [7; 32];
    key.iter_mut().zip(n.to_be_bytes()).for_each(|(place, octet)| *place = octet ^ 0x5a);
    let (key, until, record) = (Digest(key), Utc(9), Bytes::from_static(b"answer"));
    let seen = Op::PutSeen { key, until, record, absent: true };
    let arrives = vec![Op::PutBody { id: BodyId(n), source }, entry(n), seen];
    let (precedence, id) = (Precedence::Routine, EntryId(n));
    let leaves = vec![Op::DeleteEntry { precedence, id }, Op::DeleteBody { id: BodyId(n) }];
    vec![arrives, leaves]
}

fn measure(what: &str, submitters: usize, time: Duration, of: fn(u64) -> Vec<Batch>) {
    let server = database::Server::start(database::Options::new()).unwrap();
    server.role("runs").unwrap();
    prepare(&server.url("postgres"), "runs", &Options::default()).unwrap();
    let store = PostgresStore::open(&server.url("runs"), Options::default()).unwrap();
    let store: Arc<dyn QueueStore> = Arc::new(store);
    let committer = Committer::start(Arc::clone(&store)).unwrap();
    let wal =
        || -> u64 { server.psql("select pg_current_wal_lsn() - '0/0'").unwrap().parse().unwrap() };
    let (next, batches) = (AtomicU64::new(1), AtomicU64::new(0));
    let (before, began) = (wal(), now());
    std::thread::scope(|scope| {
        for _ in 0..submitters {
            scope.spawn(|| {
                let (done, wait) = sync_channel(1);
                while now().saturating_duration_since(began) < time {
                    for batch in of(next.fetch_add(1, Ordering::Relaxed)) {
                        let done = done.clone();
                        let ended = Box::new(move |ended| done.send(ended).unwrap());
                        committer.submit(Precedence::Routine, batch, ended);
                        wait.recv().unwrap().into_result().unwrap();
                        batches.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let took = now().saturating_duration_since(began).as_secs_f64();
    let (count, messages) = (batches.into_inner(), next.into_inner() - 1);
    let octets = (wal() - before) / messages.max(1);
    println!(
        "{what}, {submitters} submitters: {:.0} durable batches a second, {octets} octets of WAL each",
        count as f64 / took
    );
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let time = Duration::from_secs(seconds);
    for submitters in [1, 64] {
        measure("a record of 1 kB", submitters, time, record);
        measure("a message that comes and leaves", submitters, time, message);
    }
}
