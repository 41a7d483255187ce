use super::*;
use base::{EntryId, Utc};
use node::event::{Kind, LogEvent, LogLevel};
use std::path::Path;

fn log(dir: &Path, size: u64) -> EventLog {
    EventLog { path: dir.join("events.jsonl"), size, keep: 2 }
}

fn open(log: &EventLog) -> io::Result<EventLogFile> {
    EventLogFile::open(log, "MTA-A", Clock::start())
}

fn event(number: u64) -> LogEvent {
    LogEvent {
        entry: Some(EntryId(number)),
        bytes: Some(number),
        ..LogEvent::new(LogLevel::Info, Kind::Received)
    }
}

/// The sizes in a file of one JSON object per line.
fn numbers(path: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
    text.lines().map(|text| line(text)["bytes"].as_u64().unwrap()).collect()
}

#[test]
fn every_line_is_there_once_over_a_restart_and_a_rotation() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(dir.path(), 64 << 10);
    let mut number = 0;
    // A file as a daemon leaves it that died in the middle of a line.
    std::fs::write(&log.path, "{\"bytes\":0}\n{\"bytes\":1").unwrap();
    for _ in 0..3 {
        let event_log = open(&log).unwrap();
        for _ in 0..400 {
            number += 1;
            event_log.put(&event(number).line(Utc(number), "MTA-A", None));
        }
        assert_eq!(event_log.lost(), 0);
    }
    let file = |n: u32| dir.path().join(format!("events.jsonl.{n}"));
    assert!(!file(3).exists());
    let torn = std::fs::read_to_string(file(2)).unwrap_or_default();
    let (zero, rest) = torn.split_once("\n{\"bytes\":1\n").unwrap();
    assert_eq!(zero, "{\"bytes\":0}");
    std::fs::write(file(2), rest).unwrap();
    let all: Vec<u64> = [file(2), file(1), log.path].iter().flat_map(|f| numbers(f)).collect();
    assert_eq!(all, (1..=1_200).collect::<Vec<u64>>());
    for older in [file(1), file(2)] {
        let length = std::fs::metadata(older).unwrap().len();
        assert!((60 << 10..=64 << 10).contains(&length), "{length}");
    }
}

#[test]
fn a_line_can_be_read_while_the_log_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(dir.path(), 64 << 10);
    let event_log = open(&log).unwrap();
    event_log.put(&event(5).line(Utc(5), "MTA-A", None));
    while numbers(&log.path).is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(numbers(&log.path), [5]);
    drop(event_log);
}

#[test]
fn lost_lines_are_counted_and_no_line_is_torn() {
    let dir = tempfile::tempdir().unwrap();
    let log = EventLog { keep: 1, ..log(dir.path(), 64 << 10) };
    let mut file = LogFile::open(&log).unwrap();
    file.write(b"{\"bytes\":1}\n").unwrap();
    // A directory occupies the name of the next file.
    std::fs::create_dir_all(dir.path().join("events.jsonl.1/in the way")).unwrap();
    let line = format!("{{\"bytes\":2,\"x\":\"{}\"}}\n", "y".repeat(60 << 10));
    let lines = format!("{line}{line}");
    let (_, written) = file.write(lines.as_bytes()).unwrap_err();
    assert_eq!(written, line.len());
    assert_eq!(numbers(&log.path), [1, 2]);
    std::fs::remove_dir_all(dir.path().join("events.jsonl.1")).unwrap();
    file.write(lines.as_bytes()).unwrap();
    assert_eq!(numbers(&log.path), [2]);
    assert_eq!(numbers(&dir.path().join("events.jsonl.1")), [2]);
}

#[test]
fn a_full_disk_loses_lines_and_nothing_else() {
    let log = EventLog { path: "/dev/full".into(), size: 64 << 10, keep: 1 };
    let Ok(event_log) = open(&log) else { return };
    event_log.put(&event(1).line(Utc(1), "MTA-A", None));
    event_log.put(&event(2).line(Utc(2), "MTA-A", None));
    while event_log.lost() < 2 {
        std::thread::yield_now();
    }
}

fn writer(log: &EventLog) -> Writer {
    let file = LogFile::open(log).unwrap();
    Writer { file, mta: "MTA-A".to_owned(), clock: Clock::start(), unlogged: 0, failing: false }
}

/// The gap lines, each with the number of lines before it.
fn gaps(path: &Path) -> Vec<(usize, u64)> {
    let text = std::fs::read_to_string(path).unwrap();
    let line = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let lines = text.lines().map(line).enumerate();
    let gaps = lines.filter(|(_, line)| line["event"] == "lines_lost" && line["mta"] == "MTA-A");
    gaps.map(|(at, line)| (at, line["count"].as_u64().unwrap())).collect()
}

#[test]
fn an_overflow_is_logged_once_and_counted_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(dir.path(), 64 << 20);
    let shared = Shared::default();
    let large = LogEvent { detail: "x".repeat(1 << 20), ..event(1) };
    let put = || shared.put(&large.line(Utc(1), "MTA-A", None));
    let reported = (0..20).filter(|_| put()).count();
    let lost = shared.lost.load(Ordering::Relaxed);
    assert!(reported == 1 && lost > 0, "{reported} {lost}");
    shared.lock().ended = true;
    writer(&log).write_all(&shared);
    let kept = 20 - usize::try_from(lost).unwrap();
    assert_eq!(gaps(&log.path), [(kept, lost)]);
    assert!(!put(), "it goes on");
}

#[test]
fn what_the_disk_did_not_take_stands_before_what_comes_next() {
    let dir = tempfile::tempdir().unwrap();
    let log = EventLog { keep: 1, ..log(dir.path(), 64 << 10) };
    let mut writer = writer(&log);
    std::fs::create_dir_all(dir.path().join("events.jsonl.1/in the way")).unwrap();
    let line = format!("{{\"bytes\":2,\"x\":\"{}\"}}\n", "y".repeat(60 << 10));
    let (_, lost) = writer.write(format!("{line}{line}{line}").as_bytes(), 3).unwrap_err();
    assert_eq!(lost, 2);
    std::fs::remove_dir_all(dir.path().join("events.jsonl.1")).unwrap();
    writer.write(b"{\"bytes\":3}\n", 0).unwrap();
    assert_eq!(gaps(&log.path), [(1, 5)]);
}
