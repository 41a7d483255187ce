//! Durable messages a second of nodes that own few or many mailboxes, on a server of its own: the best second of each run,
//! as other work of the machine disturbs the others.
//!
//! `cargo run --release -p postgres-store --example owned [SECONDS]`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, FIRST_ITEM, Op, QueueId};
use postgres_store::{Options, PostgresStore, Site, prepare};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use store::cluster::Cluster;
use store::{BatchId, Committer, QueueStore};

/// Submitters of each node.
const SUBMITTERS: usize = 8;

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn now() -> Instant {
    Instant::now()
}

/// The queue of a mailbox.
fn queue(node: u64, n: u64) -> QueueId {
    QueueId(FIRST_ITEM + (node << 32) + n)
}

/// A message of 1 kB comes for one of the mailboxes, and leaves with a value of the mailbox.
fn message(n: u64, to: QueueId) -> [Batch; 2] {
    let source = BodySource::Octets(Bytes::from(vec![n as u8; 1_000]));
    let mut key = [7; 32];
    key.iter_mut().zip(n.to_be_bytes()).for_each(|(place, octet)| *place = octet ^ 0x5a);
    let (precedence, id) = (Precedence::Routine, EntryId(n));
    let record = Bytes::from(vec![n as u8; 1_000]);
    let (key, until) = (Digest(key), Utc(9));
    let seen = Op::PutSeen { key, until, record: Bytes::from_static(b"answer"), absent: true };
    let put = Op::PutEntry { precedence, id, queue: to, record };
    let totals = Op::PutMeta {
        name: format!("mailbox/{}/totals", to.0),
        value: Bytes::from(vec![n as u8; 60]),
    };
    let leaves = vec![Op::DeleteEntry { precedence, id }, Op::DeleteBody { id: BodyId(n) }, totals];
    [vec![Op::PutBody { id: BodyId(n), source }, put, seen], leaves]
}

fn open(server: &database::Server, node: u64, shards: u64) -> Committer {
    let name = format!("n{node}");
    let site = Some(Site { node: name.clone(), ..Site::default() });
    let store =
        PostgresStore::open(&server.url("runs"), Options { site, ..Options::default() }).unwrap();
    store.join(&name, Duration::from_secs(600)).unwrap();
    for n in 0..shards {
        store.acquire(queue(node, n), "a mailbox", BatchId(0)).unwrap();
    }
    Committer::start(Arc::new(store) as Arc<dyn QueueStore>).unwrap()
}

fn measure(nodes: u64, shards: u64, time: Duration) {
    let server = database::Server::start(database::Options::new()).unwrap();
    server.role("runs").unwrap();
    prepare(&server.url("postgres"), "runs", &Options::default()).unwrap();
    let committers: Vec<Committer> = std::thread::scope(|scope| {
        let open = |node| {
            scope.spawn({
                let server = &server;
                move || open(server, node, shards)
            })
        };
        let all: Vec<_> = (0..nodes).map(open).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let next = AtomicU64::new(1);
    let seconds: Vec<AtomicU64> = (0..=time.as_secs()).map(|_| AtomicU64::new(0)).collect();
    let began = now();
    std::thread::scope(|scope| {
        for (node, committer) in (0..).zip(&committers) {
            for _ in 0..SUBMITTERS {
                let (next, seconds) = (&next, &seconds);
                scope.spawn(move || {
                    let (done, wait) = sync_channel(1);
                    while now().saturating_duration_since(began) < time {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        for batch in message(n, queue(node, n % shards)) {
                            let done = done.clone();
                            let ended = Box::new(move |ended| done.send(ended).unwrap());
                            committer.submit(Precedence::Routine, batch, ended);
                            wait.recv().unwrap().into_result().unwrap();
                        }
                        let second = now().saturating_duration_since(began).as_secs();
                        if let Some(count) = seconds.get(second as usize) {
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        }
    });
    let best = seconds.iter().map(|second| second.load(Ordering::Relaxed)).max().unwrap_or(0);
    println!("{nodes} nodes with {shards} mailboxes each: {best} durable messages a second");
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    for nodes in [1, 3] {
        for shards in [10, 5_000] {
            measure(nodes, shards, Duration::from_secs(seconds));
        }
    }
}
