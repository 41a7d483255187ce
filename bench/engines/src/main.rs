//! Compares storage engines under the daemon's workload, in one run on one machine.
//!
//! `cargo run --release --manifest-path bench/engines/Cargo.toml -- DIRECTORY [--seconds 5]
//! [--queued 100000] [--full DIRECTORY-ON-A-SMALL-DISK]`
//!
//! Columns: durable pairs a second (64 producers; a pair is the acceptance of a message and, once it is
//! durable, its deletion), processor time a pair, octets written a message over the octets of content,
//! record and keys, p99 of a Flash acceptance beside the flood, the time from an open after a kill to
//! the first entry of the highest precedence and to all entries, and the disk after the queue is empty.
//! With `--full`: what a full disk leaves possible.

mod fjall_store;

use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, Digest, Op, QueueId};
use fjall_store::FjallStore;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use store::{BatchId, Committed, Committer, LogStore, Options, QueueStore, RedbStore};

const PRODUCERS: u64 = 64;
const CONTENT: usize = 1_000;
const RECORD: usize = 450;
const KEY_RECORD: usize = 32;
/// Content, record, and two keys with their times and records.
const PAYLOAD: u64 = (CONTENT + RECORD + 2 * (32 + 8 + KEY_RECORD)) as u64;
const ENGINES: [&str; 3] = ["redb", "fjall", "log"];

fn open(engine: &str, directory: &Path) -> Arc<dyn QueueStore> {
    try_open(engine, directory).unwrap_or_else(|e| panic!("{engine}: {e}"))
}

fn try_open(engine: &str, directory: &Path) -> Result<Arc<dyn QueueStore>, store::StoreError> {
    let options = Options { spool_memory: 8 << 20, cache: 8 << 20, ..Options::default() };
    Ok(match engine {
        "redb" => Arc::new(RedbStore::open(directory, options)?),
        "log" => Arc::new(LogStore::open(directory, options)?),
        "fjall" => Arc::new(FjallStore::open(directory)?),
        other => panic!("no engine {other}"),
    })
}

/// Octets that compress no better than those of a message.
fn octets(length: usize, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect()
}

fn accept(precedence: Precedence, n: u64, content: usize) -> Batch {
    let key = |salt: u64| {
        let mut key = [0; 32];
        key.copy_from_slice(&octets(32, n * 2 + salt + 1));
        Digest(key)
    };
    let seen = |salt| Op::PutSeen {
        key: key(salt),
        until: Utc(n),
        record: octets(KEY_RECORD, n),
        absent: true,
    };
    vec![
        Op::PutBody { id: BodyId(n), source: BodySource::Octets(octets(content, n)) },
        Op::PutEntry { precedence, id: EntryId(n), queue: QueueId(n % 3), record: octets(RECORD, n) },
        seen(0),
        seen(1),
    ]
}

fn delete(precedence: Precedence, n: u64) -> Batch {
    vec![Op::DeleteEntry { precedence, id: EntryId(n) }, Op::DeleteBody { id: BodyId(n) }]
}

/// Processor time of this process, in microseconds.
fn cpu() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10_000
}

/// Octets given to write calls by this process.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
    line.parse().unwrap()
}

fn disk_used(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => disk_used(&entry.path()),
            Ok(meta) => meta.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

fn commit(committer: &Committer, precedence: Precedence, batch: Batch) -> Committed {
    let (done, wait) = channel();
    committer.submit(precedence, batch, Box::new(move |ended| drop(done.send(ended))));
    wait.recv().unwrap()
}

struct Flood {
    pairs_s: f64,
    cpu_us: f64,
    written_ratio: f64,
    flash_median_ms: f64,
    flash_p99_ms: f64,
    left_mb: f64,
}

fn flood(engine: &str, directory: &Path, seconds: u64, mixed: bool) -> Flood {
    let _ = std::fs::remove_dir_all(directory);
    let store = open(engine, directory);
    let committer = Committer::start(Arc::clone(&store)).unwrap();
    let (pairs, payload, next) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(1));
    let stop = AtomicBool::new(false);
    let (cpu_before, written_before, start) = (cpu(), written(), Instant::now());
    let mut flashes = Vec::new();
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (committer, pairs, payload, next, stop) =
                (&committer, &pairs, &payload, &next, &stop);
            scope.spawn(move || {
                let levels = [Precedence::Routine, Precedence::Priority, Precedence::Deferred];
                let precedence = levels[(producer % 3) as usize];
                while !stop.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let content = match n % 16 {
                        0 if mixed => 100_000,
                        1..4 if mixed => 10_000,
                        _ => CONTENT,
                    };
                    assert!(commit(committer, precedence, accept(precedence, n, content)).is_durable());
                    assert!(commit(committer, precedence, delete(precedence, n)).is_durable());
                    pairs.fetch_add(1, Ordering::Relaxed);
                    payload.fetch_add(PAYLOAD - CONTENT as u64 + content as u64, Ordering::Relaxed);
                }
            });
        }
        while start.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_millis(20));
            let n = next.fetch_add(1, Ordering::Relaxed);
            let batch = accept(Precedence::Flash, n, CONTENT);
            let began = Instant::now();
            assert!(commit(&committer, Precedence::Flash, batch).is_durable());
            flashes.push(began.elapsed().as_secs_f64() * 1e3);
            assert!(commit(&committer, Precedence::Flash, delete(Precedence::Flash, n)).is_durable());
        }
        stop.store(true, Ordering::Relaxed);
    });
    let elapsed = start.elapsed().as_secs_f64();
    let (cpu_spent, written_by) = (cpu() - cpu_before, written() - written_before);
    committer.shutdown();
    while store.tidy().unwrap() > 0 {}
    store.close();
    drop(store);
    flashes.sort_by(f64::total_cmp);
    let pairs = pairs.into_inner() as f64 + flashes.len() as f64;
    let payload = payload.into_inner() + PAYLOAD * flashes.len() as u64;
    Flood {
        pairs_s: pairs / elapsed,
        cpu_us: cpu_spent as f64 / pairs,
        written_ratio: written_by as f64 / payload as f64,
        flash_median_ms: flashes[flashes.len() / 2],
        flash_p99_ms: flashes[flashes.len() * 99 / 100],
        left_mb: disk_used(directory) as f64 / 1e6,
    }
}

/// Fills a store with so many messages, 64 in a commit, and is killed by its parent.
fn fill(engine: &str, directory: &Path, queued: u64) -> ! {
    let store = open(engine, directory);
    for first in (0..queued).step_by(64) {
        let group = (first..queued.min(first + 64))
            .map(|n| {
                let level = Precedence::from_number((n % 6) as i64).unwrap();
                (BatchId(n), accept(level, n + 1, CONTENT))
            })
            .collect();
        assert!(store.commit(group).iter().all(Committed::is_durable));
        // As the committer does between groups.
        store.tidy().unwrap();
    }
    println!("filled");
    loop {
        std::thread::park();
    }
}

fn start(engine: &str, directory: &Path, queued: u64) -> (f64, f64, f64, f64) {
    use std::io::Read as _;
    let _ = std::fs::remove_dir_all(directory);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--fill", engine, &queued.to_string()])
        .arg(directory)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let used = disk_used(directory) as f64 / (queued * PAYLOAD) as f64;
    let (began, cpu_before) = (Instant::now(), cpu());
    let store = open(engine, directory);
    let first = store.entries(None, 1).unwrap();
    assert_eq!(first[0].precedence, Precedence::Override);
    let to_first = began.elapsed().as_secs_f64();
    let mut count = 0;
    store::queue::for_each_entry(&*store, |_| count += 1).unwrap();
    assert_eq!(count, queued);
    (to_first, began.elapsed().as_secs_f64(), (cpu() - cpu_before) as f64 / 1e6, used)
}

/// What a full disk leaves possible: fills the disk of this directory with Routine, then drains.
fn full(engine: &str, directory: &Path) {
    let _ = std::fs::remove_dir_all(directory);
    let store = open(engine, directory);
    let mut n = 0;
    let mut one = |store: &dyn QueueStore, batch: Batch| {
        n += 1;
        store.commit(vec![(BatchId(n), batch)]).remove(0)
    };
    let mut queued = 0;
    let refused = loop {
        match one(&*store, accept(Precedence::Routine, queued + 1, CONTENT)) {
            Committed::Durable => queued += 1,
            other => break other,
        }
    };
    println!("  {engine}: {queued} messages of 1 kB, then {}", brief(&refused));
    let small = one(&*store, vec![Op::PutMeta { name: "epoch".into(), value: Bytes::from_static(b"1") }]);
    println!("  {engine}: an epoch on the full disk: {}", brief(&small));
    store.close();
    drop(store);
    let store = match try_open(engine, directory) {
        Ok(store) => store,
        Err(error) => return println!("  {engine}: does not open on the full disk: {error}"),
    };
    let began = Instant::now();
    let mut failed = None;
    for m in 1..=queued {
        let ended = one(&*store, delete(Precedence::Routine, m));
        if !ended.is_durable() {
            failed = Some((m, ended));
            break;
        }
    }
    match failed {
        Some((m, ended)) => println!("  {engine}: delete {m} of {queued}: {}", brief(&ended)),
        None => println!(
            "  {engine}: opened full, all {queued} deleted, {:.0} a second",
            queued as f64 / began.elapsed().as_secs_f64()
        ),
    }
    while store.tidy().is_ok_and(|left| left > 0) {}
    let again = one(&*store, accept(Precedence::Flash, queued + 1, CONTENT));
    println!(
        "  {engine}: a Flash afterwards: {}; the disk then holds {:.1} MB",
        brief(&again),
        disk_used(directory) as f64 / 1e6
    );
}

fn brief(ended: &Committed) -> String {
    match ended {
        Committed::Durable => "durable".to_owned(),
        Committed::Conflict(_) => "a conflict".to_owned(),
        Committed::NotDone(error) => format!("refused ({error})"),
        Committed::Unknown(error) => format!("UNKNOWN ({error})"),
        Committed::Fenced(_) => "fenced".to_owned(),
        Committed::Changed(_) => "changed".to_owned(),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [first, engine, queued, directory] = &args[..]
        && first == "--fill"
    {
        fill(engine, Path::new(directory), queued.parse().unwrap());
    }
    if let [first, engine, directory] = &args[..]
        && first == "--open"
    {
        let began = Instant::now();
        let store = open(engine, Path::new(directory));
        println!("opened in {:?}", began.elapsed());
        println!("{} entries", store.entry_count().unwrap());
        return;
    }
    let option = |name: &str| args.iter().position(|a| a == name).and_then(|n| args.get(n + 1));
    let number = |name: &str, or: u64| option(name).map_or(or, |text| text.parse().unwrap());
    let directory = PathBuf::from(args.first().expect("give a directory"));
    let (seconds, queued) = (number("--seconds", 5), number("--queued", 100_000));
    let engines: Vec<&str> = match option("--only") {
        Some(only) => ENGINES.into_iter().filter(|engine| engine == only).collect(),
        None => ENGINES.to_vec(),
    };
    if let Some(full_directory) = option("--full") {
        println!("On a full disk:");
        for engine in &engines {
            let place = Path::new(full_directory).join(engine);
            full(engine, &place);
            let _ = std::fs::remove_dir_all(&place);
        }
        return;
    }
    for (what, mixed) in [("1 kB", false), ("1, 10 and 100 kB", true)] {
        println!("64 producers, {what}, {seconds} s:");
        println!("| engine | pairs/s | cpu us/pair | written/payload | Flash median ms | Flash p99 ms | disk left MB |");
        println!("| --- | --: | --: | --: | --: | --: | --: |");
        for engine in &engines {
            let f = flood(engine, &directory.join(engine), seconds, mixed);
            println!(
                "| {engine} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {:.1} |",
                f.pairs_s, f.cpu_us, f.written_ratio, f.flash_median_ms, f.flash_p99_ms, f.left_mb
            );
        }
        println!();
    }
    println!("{queued} queued, killed:");
    println!("| engine | first entry s | all entries s | cpu s | disk/payload |");
    println!("| --- | --: | --: | --: | --: |");
    for engine in &engines {
        let (first, all, cpu, used) = start(engine, &directory.join(engine), queued);
        println!("| {engine} | {first:.3} | {all:.3} | {cpu:.2} | {used:.2} |");
        let _ = std::fs::remove_dir_all(directory.join(engine));
    }
}
