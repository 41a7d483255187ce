//! What it costs a site that its nodes copy what they track: messages a second and octets of WAL a message,
//! without and with it, one after the other on a server of its own, several times in turn.
//!
//! `cargo run --release -p postgres-store --example shipping [SECONDS] [ROUNDS]`

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, QueueId};
use postgres_store::{Options, PostgresStore, prepare, track};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant, SystemTime};
use store::{Committer, QueueStore};
use tracking::event::Parties;
use tracking::{Event, Tracker};

/// Threads that submit, each one message after the other.
const SUBMITTERS: usize = 16;

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn utc() -> Utc {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Utc(u64::try_from(since.as_micros()).unwrap())
}

/// A message of 1 kB with a key that must be absent, which then leaves.
fn message(n: u64) -> [Batch; 2] {
    let (precedence, id, queue) = (Precedence::Routine, EntryId(n), QueueId(n % 50));
    let source = BodySource::Octets(Bytes::from(vec![n as u8; 1_000]));
    let mut key = [7; 32];
    key.iter_mut().zip(n.to_be_bytes()).for_each(|(place, octet)| *place = octet ^ 0x5a);
    let seen = Op::PutSeen {
        key: Digest(key),
        until: Utc(9),
        record: Bytes::from_static(b"answer"),
        absent: true,
    };
    let record = Bytes::from(vec![n as u8; 600]);
    let entry = Op::PutEntry { precedence, id, queue, record };
    let leaves = vec![Op::DeleteEntry { precedence, id }, Op::DeleteBody { id: BodyId(n) }];
    [vec![Op::PutBody { id: BodyId(n), source }, entry, seen], leaves]
}

/// What a node tracks of a message that it passes on: accepted, started, confirmed.
fn events(n: u64) -> [Event; 3] {
    let user = |n: u64| format!("/c=it/admd=net/prmd=naples/o=headquarters/s=user{}", n % 1_000);
    let event = |kind: &'static str, detail: &str| Event {
        time: utc(),
        kind: kind.into(),
        message: Some(format!("[/PRMD=NAPLES/ADMD=NET/C=IT/;MTA-NAPLES.35dfg.{n}]")),
        entry: Some((7 << 40) + n),
        precedence: Some(Precedence::Routine),
        peer: Some("act".to_owned()),
        channel: Some("routine".to_owned()),
        association: Some(n % 4),
        bytes: Some(1_000),
        detail: detail.to_owned(),
        ..Event::default()
    };
    let parties = Parties {
        originator: Some(user(n * 31)),
        recipients: vec![user(n * 17)],
        count: 1,
        content_id: Some(format!("{:016X}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
        copies: Some(1),
    };
    let confirmed = Event { accepted: Some(utc()), ..event("transfer_confirmed", "") };
    [
        Event { parties: Some(parties), ..event("received", "") },
        event("transfer_started", "1000 octets of content"),
        confirmed,
    ]
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
struct Run {
    rate: f64,
    wal: f64,
}

fn run(server: &database::Server, directory: &Path, copies: bool, time: Duration) -> Run {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let url = server.url("runs");
    let store: Arc<dyn QueueStore> =
        Arc::new(PostgresStore::open(&url, Options::default()).unwrap());
    let committer = Committer::start(Arc::clone(&store)).unwrap();
    // Each run begins with the same: what a checkpoint has not written yet is written whole into the WAL.
    server.psql("checkpoint").unwrap();
    let options = Options::default();
    let tracker = match copies {
        true => track(directory, 4 << 30, "n1", 1, (&url, &options)).unwrap(),
        false => Tracker::start(directory, 4 << 30).unwrap(),
    };
    let wal =
        || -> u64 { server.psql("select pg_current_wal_lsn() - '0/0'").unwrap().parse().unwrap() };
    let (before, began, first) = (wal(), now(), NEXT.load(Ordering::Relaxed));
    std::thread::scope(|scope| {
        for _ in 0..SUBMITTERS {
            scope.spawn(|| {
                let (done, wait) = sync_channel(1);
                while now().saturating_duration_since(began) < time {
                    let n = NEXT.fetch_add(1, Ordering::Relaxed);
                    for batch in message(n) {
                        let done = done.clone();
                        let ended = Box::new(move |ended| done.send(ended).unwrap());
                        committer.submit(Precedence::Routine, batch, ended);
                        wait.recv().unwrap().into_result().unwrap();
                    }
                    events(n).into_iter().for_each(|event| tracker.put(event));
                }
            });
        }
    });
    let took = now().saturating_duration_since(began).as_secs_f64();
    let count = (NEXT.load(Ordering::Relaxed) - first) as f64;
    // Its end copies the rest.
    drop(tracker);
    drop(committer);
    store.close();
    Run { rate: count / took, wal: (wal() - before) as f64 / count }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |default| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (seconds, rounds) = (argument(20), argument(3));
    let time = Duration::from_secs(seconds);
    let server = database::Server::start(database::Options::new()).unwrap();
    server.role("runs").unwrap();
    prepare(&server.url("postgres"), "runs", &Options::default()).unwrap();
    let directories = [false, true].map(|copies| (copies, tempfile::tempdir().unwrap()));
    let mut runs = [vec![], vec![]];
    for round in 1..=rounds {
        for ((copies, directory), runs) in directories.iter().zip(&mut runs) {
            let run = run(&server, directory.path(), *copies, time);
            let what = if *copies { "copied" } else { "not copied" };
            println!(
                "{round}  {what:<10}  {:>7.0} messages/s  {:>6.0} octets of WAL a message",
                run.rate, run.wal
            );
            runs.push(run);
        }
    }
    let of = |runs: &[Run], value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
    let [without, with] = &runs;
    let (rates, wals) = (
        [of(without, |r| r.rate), of(with, |r| r.rate)],
        [of(without, |r| r.wal), of(with, |r| r.wal)],
    );
    println!(
        "medians: {:.0} and {:.0} messages/s ({:+.1} %), {:.0} and {:.0} octets of WAL a message ({:+.1} %)",
        rates[0],
        rates[1],
        (rates[1] / rates[0] - 1.0) * 100.0,
        wals[0],
        wals[1],
        (wals[1] / wals[0] - 1.0) * 100.0,
    );
    let sizes = "select (select count(*) from mta.tracked), (select sum(size) from mta.tracked_origin), \
        pg_total_relation_size('mta.tracked'), pg_total_relation_size('mta.tracked_key')";
    println!("pages, counted octets, octets of pages and of keys: {}", server.psql(sizes).unwrap());
}
