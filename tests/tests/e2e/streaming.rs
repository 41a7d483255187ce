//! Messages far larger than a daemon's memory: 1 GB from reader to reader, or with LONG=1 in every form of transfer.

use super::{assert_same, print_line};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use testbed::{Pair, PeerSettings, Site, clock};

/// How much a daemon may take beyond what it took idle, before anybody had bound.
const ROOM: u64 = 32 << 20;
/// What is sent.
const LARGE: u64 = 1_000_000_000;
/// What is sent in other forms of transfer: eight times what a daemon may take.
const SMALLER: u64 = 256_000_000;
/// Longest transfer, on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// One at a time: each takes gigabytes of disk while it runs.
static TURN: Mutex<()> = Mutex::new(());

/// A file with marks that differ from place to place, and holes between.
fn large_file(directory: &Path, size: u64) -> PathBuf {
    let path = directory.join("large");
    let file = File::create(&path).unwrap();
    file.set_len(size).unwrap();
    for at in (0..size - 16).step_by(1_234_567) {
        file.write_all_at(&at.to_be_bytes(), at).unwrap();
    }
    file.write_all_at(&(size - 8).to_be_bytes(), size - 8).unwrap();
    path
}

/// Sends a file and receives it; each daemon's peak must stay near what it took idle.
fn pass(what: &str, size: u64, from: &Site, to: &Site) {
    let is_long = std::env::var_os("LONG").is_some_and(|long| long == "1");
    let size = if is_long { LARGE } else { size };
    let both = if std::ptr::eq(from, to) { vec![from] } else { vec![from, to] };
    let idle: Vec<u64> = both.iter().map(|site| site.memory().unwrap().resident).collect();
    let file = large_file(from.path(), size).display().to_string();
    let address = to.address("OPS");
    let (sent, submitting) = clock::timed(|| {
        let arguments = ["--json", "send", "--to", &address, "--file", &file];
        from.xuxa_beside("OPS", &arguments).unwrap().wait(LIMIT).unwrap()
    });
    let sent: testbed::answer::SendOutput = sent.json().unwrap();
    let (received, receiving) = clock::timed(|| {
        let arguments = ["--json", "receive", "--count", "1", "--discard", "--timeout", "600"];
        to.xuxa_beside("OPS", &arguments).unwrap().wait(LIMIT).unwrap()
    });
    let received: testbed::answer::ReceiveOutput = received.json().unwrap();
    assert_same(&sent.messages[0], received.messages().next().unwrap());
    assert_eq!(sent.messages[0].size, size);
    let mut figures = String::new();
    for (site, idle) in both.iter().zip(&idle) {
        let peak = site.memory().unwrap().peak;
        let more = peak.saturating_sub(*idle);
        figures += &format!(", {} {:.1} MiB over {:.1}", site.name(), mib(more), mib(*idle));
        assert!(more <= ROOM, "{what}: {} took {:.1} MiB more than idle", site.name(), mib(more));
    }
    let (s, r) = (submitting.as_secs_f64(), receiving.as_secs_f64());
    print_line(&format!(
        "    {what}, {} MB: sent in {s:.1} s, received in {r:.1} s{figures}",
        size / 1_000_000
    ));
}

fn mib(octets: u64) -> f64 {
    octets as f64 / f64::from(1 << 20)
}

#[test]
fn a_gigabyte_from_reader_to_reader() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let pair = Pair::start(PeerSettings::default()).unwrap();
    pass("with checkpoints", LARGE, &pair.naples, &pair.act);
}

#[test]
fn without_checkpoints() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let pair = Pair::start(PeerSettings { checkpoint: 0, ..PeerSettings::default() }).unwrap();
    pass("without checkpoints", SMALLER, &pair.naples, &pair.act);
}

#[test]
fn with_indefinite_lengths() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let peer = PeerSettings { indefinite: true, ..PeerSettings::default() };
    let pair = Pair::start(peer).unwrap();
    pass("with indefinite lengths", SMALLER, &pair.naples, &pair.act);
}

#[test]
fn with_indefinite_lengths_and_without_checkpoints() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let peer = PeerSettings { indefinite: true, checkpoint: 0, ..PeerSettings::default() };
    let pair = Pair::start(peer).unwrap();
    pass("with indefinite lengths, without checkpoints", SMALLER, &pair.naples, &pair.act);
}

#[test]
fn over_p3_alone() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut site = Site::builder("naples").build().unwrap();
    site.start().unwrap();
    pass("over P3 alone", SMALLER, &site, &site);
}
