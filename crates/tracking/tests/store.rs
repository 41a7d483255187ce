//! The store of events against a vector of them: what is appended is found, after reopening, after an
//! interruption at any octet, and when the oldest are removed.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails, in helpers too")]

use base::{Precedence, Utc};
use proptest::prelude::*;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tracking::event::Parties;
use tracking::way::Way;
use tracking::writer::Writer;
use tracking::{Event, Key, Reader, Source, Tracker};

fn event(number: u64, message: u64, detail: usize) -> Event {
    let begins = number.is_multiple_of(3);
    let name = |n: u64| format!("/c=it/prmd=naples/s=u{n}");
    Event {
        time: Utc(1_000_000 * number),
        kind: Cow::Borrowed(if begins { "received" } else { "transfer_started" }),
        message: (!number.is_multiple_of(7)).then(|| format!("[/C=IT/;{message}]")),
        entry: Some(message % 5),
        precedence: Some(Precedence::Flash),
        peer: Some("act".to_owned()),
        channel: Some("flash".to_owned()),
        related: number.is_multiple_of(11).then(|| format!("[/C=IT/;r{message}]")),
        parties: begins.then(|| Parties {
            originator: Some(name(message % 3)),
            recipients: (0..message % 4).map(name).collect(),
            count: message % 4,
            content_id: Some(format!("m{}", message % 6)),
            copies: Some(1),
        }),
        detail: "x".repeat(detail),
        ..Event::default()
    }
}

fn all(reader: &Reader) -> Vec<Event> {
    let mut all = Vec::new();
    reader.scan((Utc(0), Utc(u64::MAX)), &mut |event| {
        all.push(event);
        ControlFlow::Continue(())
    });
    all
}

/// Each question has the answer of the vector.
fn agrees(reader: &Reader, model: &[Event]) {
    let check = |key: Key<'_>, is: &dyn Fn(&Event) -> bool| {
        let expected: Vec<Event> = model.iter().filter(|event| is(event)).cloned().collect();
        assert_eq!(reader.find(key), expected, "{key:?}");
        let mut newest = Vec::new();
        reader.find_newest(key, (Utc(0), Utc(u64::MAX)), &mut |event| {
            newest.push(event);
            ControlFlow::Continue(())
        });
        newest.reverse();
        assert_eq!(newest, expected, "{key:?}");
    };
    for n in 0..8 {
        let (message, report) = (format!("[/C=IT/;{n}]"), format!("[/C=IT/;r{n}]"));
        let (user, content) = (format!("/c=it/prmd=naples/s=u{n}"), format!("m{n}"));
        check(Key::Message(&message), &|e| e.message.as_ref() == Some(&message));
        check(Key::Related(&report), &|e| e.related.as_ref() == Some(&report));
        check(Key::Entry(n), &|e| e.entry == Some(n));
        let of = |e: &Event| e.parties.clone().unwrap_or_default();
        check(Key::Originator(&user), &|e| of(e).originator.as_ref() == Some(&user));
        check(Key::Recipient(&user), &|e| of(e).recipients.contains(&user));
        check(Key::ContentId(&content), &|e| of(e).content_id.as_ref() == Some(&content));
    }
    for (since, until) in [(0, u64::MAX), (5_000_000, 20_000_000), (u64::MAX, u64::MAX)] {
        let mut found = Vec::new();
        reader.scan((Utc(since), Utc(until)), &mut |event| {
            found.push(event);
            ControlFlow::Continue(())
        });
        let within = |e: &&Event| (since..=until).contains(&e.time.0);
        assert_eq!(found, model.iter().filter(within).cloned().collect::<Vec<_>>());
    }
    assert_eq!(reader.since(), model.first().map(|event| event.time));
    assert!(reader.damage().is_empty(), "{:?}", reader.damage());
}

fn append(writer: &mut Writer, event: &Event) {
    assert!(writer.append(event));
    writer.write().map_err(|(error, _)| error).unwrap();
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == ending));
    files.sort();
    files
}

fn size(directory: &Path) -> u64 {
    std::fs::read_dir(directory).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum()
}

#[derive(Clone, Debug)]
enum Act {
    Append { message: u64, detail: usize },
    Reopen,
    Kill,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let append = (0u64..8, prop_oneof![Just(10usize), Just(9_000), Just(70_000)])
        .prop_map(|(message, detail)| Act::Append { message, detail });
    let act = prop_oneof![12 => append, 1 => Just(Act::Reopen), 1 => Just(Act::Kill)];
    proptest::collection::vec(act, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_store_agrees_with_a_vector(acts in acts(), limit in 0u64..8) {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("tracking");
        // Few of these limits hold all that is appended.
        let limit = (256 << 10) << limit;
        let mut writer = Writer::open(&directory, limit).unwrap();
        let mut model = Vec::new();
        for (number, act) in (0..).zip(acts) {
            match act {
                Act::Append { message, detail } => {
                    model.push(event(number, message, detail));
                    append(&mut writer, model.last().unwrap());
                }
                Act::Reopen => {
                    drop(writer);
                    writer = Writer::open(&directory, limit).unwrap();
                }
                Act::Kill => {
                    std::mem::forget(writer);
                    writer = Writer::open(&directory, limit).unwrap();
                }
            }
        }
        let reader = Reader::open(&directory).unwrap();
        let kept = all(&reader);
        // The oldest are removed, and no more of them than the limit takes.
        prop_assert!(model.ends_with(&kept));
        // One event may be longer than the rest of its segment.
        prop_assert!(size(&directory) <= limit + 140_000, "{} of {limit}", size(&directory));
        let total: usize = model.iter().map(|event| event.detail.len() + 400).sum();
        prop_assert!((total as u64) > limit / 3 || kept.len() == model.len());
        agrees(&reader, &kept);
    }
}

#[test]
fn an_interruption_at_any_octet_leaves_whole_events() {
    let made = tempfile::tempdir().unwrap();
    let model: Vec<Event> = (0..6).map(|n| event(n, n, 5)).collect();
    let mut writer = Writer::open(made.path(), 1 << 30).unwrap();
    let mut ends = vec![8];
    let file = files(made.path(), "events").remove(0);
    for event in &model {
        append(&mut writer, event);
        ends.push(std::fs::metadata(&file).unwrap().len());
    }
    std::mem::forget(writer);
    let octets = std::fs::read(&file).unwrap();
    for cut in 0..=octets.len() {
        let there = tempfile::tempdir().unwrap();
        let torn = there.path().join(file.file_name().unwrap());
        std::fs::write(&torn, &octets[..cut]).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut as u64).count().saturating_sub(1);
        // A reader beside an interrupted daemon, and the next daemon.
        agrees(&Reader::open(there.path()).unwrap(), &model[..whole]);
        let mut writer = Writer::open(there.path(), 1 << 30).unwrap();
        let next = event(100, 3, 5);
        append(&mut writer, &next);
        let mut expected = model[..whole].to_vec();
        expected.push(next);
        agrees(&Reader::open(there.path()).unwrap(), &expected);
    }
}

/// A store with full segments and one that is not, and what it has.
fn filled(directory: &Path) -> Vec<Event> {
    let model: Vec<Event> = (0..60).map(|n| event(n, n % 8, 4_000)).collect();
    let mut writer = Writer::open(directory, 4 << 20).unwrap();
    model.iter().for_each(|event| append(&mut writer, event));
    model
}

#[test]
fn damage_is_named_and_the_other_events_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let model = filled(directory.path());
    let segments = files(directory.path(), "events");
    assert!(segments.len() > 3, "{segments:?}");
    let sound = std::fs::read(&segments[0]).unwrap();
    for at in (20..sound.len()).step_by(997) {
        let mut octets = sound.clone();
        octets[at] ^= 1;
        std::fs::write(&segments[0], octets).unwrap();
        let reader = Reader::open(directory.path()).unwrap();
        assert_eq!(all(&reader).len(), model.len() - 1, "octet {at}");
        let mut found = 0;
        for n in 0..8 {
            found += reader.find(Key::Message(&format!("[/C=IT/;{n}]"))).len();
        }
        let with_message = model.iter().filter(|event| event.message.is_some()).count();
        assert!((with_message - 1..=with_message).contains(&found));
        let damage = reader.damage();
        assert!(damage.iter().all(|damage| damage.file == segments[0]), "{damage:?}");
        assert!(!damage.is_empty());
    }
}

#[test]
fn a_damaged_or_missing_index_is_done_without() {
    let directory = tempfile::tempdir().unwrap();
    let model = filled(directory.path());
    let indexes = files(directory.path(), "index");
    let sound = std::fs::read(&indexes[0]).unwrap();
    for at in 0..sound.len() {
        let mut octets = sound.clone();
        octets[at] ^= 0x10;
        std::fs::write(&indexes[0], octets).unwrap();
        let reader = Reader::open(directory.path()).unwrap();
        let expected = model.iter().filter(|e| e.entry == Some(3)).count();
        assert_eq!(reader.find(Key::Entry(3)).len(), expected, "octet {at}");
    }
    std::fs::remove_file(&indexes[0]).unwrap();
    agrees(&Reader::open(directory.path()).unwrap(), &model);
    drop(Writer::open(directory.path(), 4 << 20).unwrap());
    assert_eq!(std::fs::read(&indexes[0]).unwrap(), sound, "the next start makes it again");
}

#[test]
fn files_are_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("tracking");
    filled(&directory);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for file in files(&directory, "events").iter().chain(&files(&directory, "index")) {
        assert_eq!(mode(file), 0o600, "{file:?}");
    }
}

/// A daemon that was killed leaves a gap, one that ended in order none.
#[test]
fn a_kill_leaves_a_gap_and_an_end_in_order_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let event = |at: u64| Event { message: Some("[/C=IT/;1]".to_owned()), ..event(at, 1, 1) };
    let gaps = || {
        let reader = Reader::open(directory.path()).unwrap();
        Way::read(&reader, "[/C=IT/;1]").map_or(0, |way| way.gaps.len())
    };
    let tracker = Tracker::start(directory.path(), 1 << 30).unwrap();
    tracker.put(event(1));
    drop(tracker);
    assert_eq!(gaps(), 0);
    // As a daemon leaves it that is killed.
    std::fs::write(directory.path().join("running"), "").unwrap();
    drop(Tracker::start(directory.path(), 1 << 30).unwrap());
    let tracker = Tracker::start(directory.path(), 1 << 30).unwrap();
    tracker.put(event(9));
    drop(tracker);
    assert_eq!(gaps(), 1, "also if nothing happened in the run after it");
    let tracker = Tracker::start(directory.path(), 1 << 30).unwrap();
    tracker.put(event(10));
    drop(tracker);
    assert_eq!(gaps(), 1);
}
