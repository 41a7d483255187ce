use super::*;
use base::Instant;
use record::{Decoder, Record};
use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Longest wait of a test for the thread.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_file_is_new_and_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let wanted = Wanted { path: directory.path().to_owned(), limit: 1 << 20 };
    let sink = wanted.create(Clock::start()).unwrap();
    assert_eq!(sink.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(create(&sink.path).is_err(), "it exists");
    let symlink = directory.path().join("symlink");
    std::os::unix::fs::symlink(directory.path().join("nowhere"), &symlink).unwrap();
    assert!(create(&symlink).is_err(), "it is not followed");
    assert_eq!(name(Utc(1_767_323_045_000_006), 77), "20260102T030405Z-77.record");
}

fn moment(n: u64) -> Now {
    Now { mono: Instant(n), utc: Utc(1_767_225_600_000_000 + n) }
}

fn header() -> Header {
    let node = crate::example::example_site().node;
    Header::new("a test".to_owned(), moment(0), node, None)
}

/// One step with an input of so many octets; the event, if there is one.
fn step(recording: &mut Recording, n: u64, octets: usize) -> Option<LogEvent> {
    recording.input(moment(n), &Input::RecoveredClock(vec![7; octets].into()));
    recording.step_ended()
}

/// Steps until there is an event, at most for [`SOON`].
fn event_of(recording: &mut Recording, octets: usize) -> LogEvent {
    let began = moment_of_test();
    let mut steps = 1..;
    loop {
        if let Some(event) = steps.next().and_then(|n| step(recording, n, octets)) {
            return event;
        }
        assert!(began.elapsed() < SOON, "no event");
        std::thread::yield_now();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test that would wait for ever fails")]
fn moment_of_test() -> std::time::Instant {
    std::time::Instant::now()
}

/// How the octets of a file end.
fn last(octets: &[u8]) -> Option<End> {
    let mut decoder = Decoder::default();
    decoder.push(octets);
    let mut last = None;
    while let Some(record) = decoder.next().unwrap() {
        last = Some(record);
    }
    assert_eq!(decoder.left(), 0);
    match last {
        Some(Record::End(end)) => Some(end),
        _ => None,
    }
}

#[test]
fn a_full_disk_ends_the_recording_with_an_event_and_the_node_goes_on() {
    // Every write to it fails as on a full disk.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let path = PathBuf::from("/var/full.record");
    let mut recording = Recording::to(full, path, u64::MAX, MAX_WAITING, &header()).unwrap();
    let event = event_of(&mut recording, 10);
    assert_eq!(event.kind, Kind::RecordingEnded);
    assert!(event.detail.starts_with("/var/full.record: cannot write: "), "{}", event.detail);
    assert!(event.detail.contains("No space left"), "{}", event.detail);
    // The event comes once, and nothing waits in memory for the disk.
    assert!((0..100).all(|n| step(&mut recording, 1_000 + n, 100_000).is_none()));
    assert!(recording.shared.lock().octets.is_empty());
}

#[test]
fn a_recording_at_its_limit_ends_with_an_event() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.record");
    let sink = Wanted { path: path.clone(), limit: 100_000 }.create(Clock::start()).unwrap();
    let mut recording = Recording::start(sink, &header()).unwrap();
    let event = event_of(&mut recording, 1_000);
    assert_eq!(event.kind, Kind::RecordingEnded);
    assert!(event.detail.ends_with("the limit of 100000 octets is reached"), "{}", event.detail);
    assert_eq!(step(&mut recording, 1_000, 1), None);
    drop(recording);
    let octets = std::fs::read(&path).unwrap();
    assert!(octets.len() <= 100_000, "{}", octets.len());
    assert_eq!(last(&octets), Some(End::Limit(100_000)));
}

/// A disk that does not write until it is allowed to.
struct Slow {
    allowed: Receiver<()>,
    written: Sender<Vec<u8>>,
}

impl Write for Slow {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let _ = self.allowed.recv_timeout(SOON);
        let _ = self.written.send(octets.to_vec());
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_recording_that_falls_behind_ends_with_an_event_and_never_waits() {
    let (allow, allowed) = channel();
    let (written, octets) = channel();
    let path = PathBuf::from("slow.record");
    let most = 50_000;
    let slow = Slow { allowed, written };
    let mut recording = Recording::to(slow, path, u64::MAX, most, &header()).unwrap();
    let event = event_of(&mut recording, 1_000);
    assert_eq!(event.kind, Kind::RecordingEnded);
    assert!(event.detail.ends_with("octets waited for the disk"), "{}", event.detail);
    // No more waits than what was allowed to and the record that passed it.
    assert!(recording.shared.lock().octets.len() < most + 10_000);
    assert_eq!(step(&mut recording, 1_000, 1_000), None);
    // From now on it writes: the file has all up to there, and the reason of its end.
    drop(allow);
    drop(recording);
    let file: Vec<u8> = octets.iter().flatten().collect();
    assert!(matches!(last(&file), Some(End::Behind(n)) if n > most as u64));
}
