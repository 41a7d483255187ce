//! Measures durable batches per second: 64 producers, each waiting for its own commit of 1 kB.
//!
//! `cargo run --release -p store --example throughput -- <directory> [seconds]`

use base::{EntryId, Precedence};
use bytes::Bytes;
use engine::journal::{Op, QueueId};
use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use store::{Committed, Committer, Options};

const PRODUCERS: u64 = 64;

#[expect(clippy::disallowed_methods, reason = "a measurement is made with a clock")]
fn now() -> Instant {
    Instant::now()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let directory = PathBuf::from(args.next().ok_or("give a directory")?);
    let seconds = args.next().map_or(Ok(5), |s| s.parse())?;
    let committer = Committer::start(store::open(&directory, Options::default())?)?;
    let (start, batches) = (now(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (committer, batches) = (&committer, &batches);
            scope.spawn(move || produce(committer, producer, batches, start, seconds));
        }
    });
    committer.shutdown();
    let elapsed = start.elapsed().as_secs_f64();
    let rate = batches.load(Ordering::Relaxed) as f64 / elapsed;
    println!(
        "{rate:.0} batches/s (alternately a put of 1 kB and its delete), {PRODUCERS} producers"
    );
    Ok(())
}

/// Puts and deletes entries of this producer, one batch at a time.
fn produce(committer: &Committer, producer: u64, batches: &AtomicU64, start: Instant, secs: u64) {
    let (done, wait) = channel();
    let record = Bytes::from(vec![0x5A; 1024]);
    let precedence = Precedence::Routine;
    let mut round = 0;
    while start.elapsed() < Duration::from_secs(secs) {
        let id = EntryId(round * PRODUCERS + producer);
        round += 1;
        let put = Op::PutEntry { precedence, id, queue: QueueId(1), record: record.clone() };
        for op in [put, Op::DeleteEntry { precedence, id }] {
            let done = done.clone();
            committer.submit(
                precedence,
                vec![op],
                Box::new(move |outcome| drop(done.send(outcome))),
            );
            if !matches!(wait.recv(), Ok(Committed::Durable)) {
                return;
            }
            batches.fetch_add(1, Ordering::Relaxed);
        }
    }
}
