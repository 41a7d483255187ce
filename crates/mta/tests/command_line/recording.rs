//! `mta run --record`, `mta replay` and `mta record strip`: files that are whole, cut, damaged, and no files.

use super::{Daemon, mta, run, site};
use base::Utc;
use base::time::Civil;
use nix::sys::signal::Signal;
use record::format::{FORMAT, MAGIC, PREAMBLE, framed};
use record::{Decoder, Record};
use std::fs;
use std::path::{Path, PathBuf};

/// Runs a daemon that records, with an order of an operator; gives the recording.
fn recorded(directory: &Path) -> PathBuf {
    let (config, file) = (site(directory), directory.join("one.record"));
    let config = config.to_str().unwrap();
    let run_it =
        ["run", "--config", config, "--log-format", "json", "--record", file.to_str().unwrap()];
    let (mut daemon, _lines) = Daemon::started(&mut mta(&run_it));
    let minimize = ["minimize", "--config", config, "flash", "--channel", "act/routine"];
    assert_eq!(run(&minimize).0, Some(0));
    let disable = ["channel", "disable", "--config", config, "act/priority"];
    assert_eq!(run(&disable).0, Some(0));
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.0.wait().unwrap().code(), Some(0));
    file
}

/// What a verb prints of a file, and its exit code.
fn printed(arguments: &[&str]) -> (Option<i32>, String) {
    let (code, out, err) = run(arguments);
    (code, out + &err)
}

fn replayed(file: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    printed(&[&["replay", file.to_str().unwrap()], arguments].concat())
}

/// Where the records of a file begin.
fn places(octets: &[u8]) -> Vec<usize> {
    let mut places = vec![PREAMBLE];
    while let Some(length) = octets.get(places[places.len() - 1]..).and_then(<[u8]>::first_chunk) {
        let length = u32::from_le_bytes(*length) as usize;
        places.push(places[places.len() - 1] + record::format::FRAME + length);
    }
    places
}

#[test]
fn a_replay_names_channels_and_operators() {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path());
    for how in [&[][..], &["--show"]] {
        let (code, out) = replayed(&file, how);
        assert_eq!(code, Some(0), "{out}");
        assert!(!out.contains(" channel 0") && !out.contains("index:"), "{out}");
    }
    let (_, out) = replayed(&file, &[]);
    assert!(out.contains("> Connect a1, act/"), "{out}");
    assert!(out.contains(" Minimize act/routine: flash"), "{out}");
    assert!(out.contains(" OrderChannel request 1: act/priority Disable by "), "{out}");
    let ordered = out.lines().find(|line| line.contains("! channel_ordered")).unwrap();
    assert!(ordered.contains(" act/priority by "), "{ordered}");
}

#[test]
fn damage_differs_from_a_cut_and_leaves_no_copy() {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path());
    let right = fs::read(&file).unwrap();
    let places = places(&right);
    assert!(places.len() > 6);
    let copy = directory.path().join("copy");
    let strip = || printed(&["record", "strip", file.to_str().unwrap(), copy.to_str().unwrap()]);
    // Each octet of a length, and one of a body.
    for at in (0..4).chain([record::format::FRAME + 1]) {
        let mut wrong = right.clone();
        wrong[places[4] + at] ^= 0x21;
        fs::write(&file, &wrong).unwrap();
        let (code, out) = replayed(&file, &["--quiet"]);
        assert!(code == Some(2) && out.contains("record 4"), "octet {at}: {code:?} {out}");
        assert!(out.contains("damaged"), "{out}");
        let (code, out) = strip();
        assert!(code == Some(2) && out.contains("damaged"), "{code:?} {out}");
        assert!(!copy.exists(), "no part of a copy is left");
    }
    // A cut is not damage: what is there is replayed and copied.
    fs::write(&file, &right[..places[4] + 7]).unwrap();
    let (code, out) = replayed(&file, &["--quiet"]);
    assert!(code == Some(0) && out.contains("cut off"), "{code:?} {out}");
    let (code, out) = strip();
    assert!(code == Some(0) && out.contains("cut off within a record: 7 octets"), "{out}");
    assert!(copy.exists());
    // A copy that exists is not touched, also where the copy fails.
    fs::write(&file, &right).unwrap();
    assert_eq!(strip().0, Some(1));
    assert!(copy.exists());
}

#[test]
fn another_kind_of_file_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let copy = directory.path().join("copy");
    for path in [&fifo, Path::new("/dev/null"), directory.path()] {
        let text = path.to_str().unwrap();
        let (code, out) = replayed(path, &[]);
        assert!(code == Some(2) && out.contains("is not a regular file"), "{code:?} {out}");
        let (code, out) = printed(&["record", "strip", text, copy.to_str().unwrap()]);
        assert!(code == Some(2) && out.contains("is not a regular file"), "{code:?} {out}");
    }
    assert!(!copy.exists());
}

#[test]
fn an_empty_variable_records_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let config = site(directory.path());
    let run_it = ["run", "--config", config.to_str().unwrap(), "--log-format", "json"];
    let (mut daemon, _lines) = Daemon::started(mta(&run_it).env("MTA_RECORD", ""));
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.0.wait().unwrap().code(), Some(0));
    let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".record")));
}

/// The recording without the last output of so many steps that have one.
fn without_outputs(file: &Path, steps: usize) {
    let mut decoder = Decoder::default();
    decoder.push(&fs::read(file).unwrap());
    let mut octets = [&MAGIC[..], &FORMAT.to_le_bytes()].concat();
    let (mut number, mut left) = (0, steps);
    while let Some(mut record) = decoder.next().unwrap() {
        if let Record::Outputs(outputs) = &mut record
            && left > 0
            && outputs.pop().is_some()
        {
            left -= 1;
        }
        octets.extend(framed(number, &postcard::to_allocvec(&record).unwrap()));
        number += 1;
    }
    assert_eq!(left, 0);
    fs::write(file, octets).unwrap();
}

#[test]
fn a_replay_stops_at_the_first_difference_or_goes_on_and_counts() {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path());
    without_outputs(&file, 3);
    let (code, out) = replayed(&file, &["--quiet"]);
    assert!(code == Some(1) && out.contains("nothing behind this step was run"), "{out}");
    let (code, out) = replayed(&file, &["--go-on"]);
    assert_eq!(code, Some(1), "{out}");
    assert_eq!(out.matches("~ differs: ").count(), 3, "{out}");
    assert!(out.contains("differs from the run in 3 of "), "{out}");
    assert!(out.contains("the recording ends: the node has stopped"), "{out}");
    let (code, out) = replayed(&file, &["--go-on", "--json", "--quiet", "--state"]);
    let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!((code, &last["equal"], &last["differences"]), (Some(1), &false.into(), &3.into()));
    assert!(last["difference"].is_string() && last["state"]["mta"] == "MTA-NAPLES", "{out}");
}

/// A time of 2026-01-02.
fn utc(hour: u32, minute: u32, second: u32) -> Utc {
    Utc::from_civil(Civil { year: 2026, month: 1, day: 2, hour, minute, second }).unwrap()
}

/// Gives the start and each step of a recording a wall clock, the last one to all that follow.
fn set_clocks(file: &Path, began: Utc, clocks: &[Utc]) {
    let mut decoder = Decoder::default();
    decoder.push(&fs::read(file).unwrap());
    let mut octets = [&MAGIC[..], &FORMAT.to_le_bytes()].concat();
    let (mut number, mut steps) = (0, 0);
    while let Some(mut record) = decoder.next().unwrap() {
        match &mut record {
            Record::Header(header) => header.began.utc = began,
            Record::Input(now, _) => {
                now.utc = *clocks.get(steps).or(clocks.last()).unwrap();
                steps += 1;
            }
            _ => {}
        }
        octets.extend(framed(number, &postcard::to_allocvec(&record).unwrap()));
        number += 1;
    }
    assert!(steps >= clocks.len(), "{steps} steps");
    fs::write(file, octets).unwrap();
}

#[test]
fn a_replay_stops_at_a_time_of_a_clock_that_was_set_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path());
    // The node was given other clocks, so the steps are shown and not run.
    let clocks = [utc(15, 45, 30), utc(14, 45, 32), utc(14, 45, 59), utc(14, 46, 38)];
    set_clocks(&file, utc(15, 45, 29), &clocks);
    let shown = |until: &str| replayed(&file, &["--show", "--until", until]);
    for (until, steps) in [
        ("14:46:00", 3),
        ("14:46", 3),
        ("2026-01-02T14:46:00Z", 3),
        ("2026-01-02T14:46", 3),
        ("14:45:32", 1),
        ("14:45:32.5", 2),
        ("15:45:30", 0),
        ("14:46:38", 3),
    ] {
        let (code, out) = shown(until);
        let end = format!("{steps} steps, nothing was run; stopped as ordered\n");
        assert!(code == Some(0) && out.ends_with(&end), "{until}: {code:?} {out}");
    }
    for until in ["14:45:31", "14:46:39", "15:45:31", "2026-01-03T14:46:00Z", "1h"] {
        let (code, out) = shown(until);
        assert!(code == Some(3) && out.contains("--until was not reached"), "{until}: {out}");
    }
    let (_, out) = shown("14:46:39");
    let clocks = "wall clocks from 2026-01-02T14:45:32Z to 2026-01-02T15:45:30Z";
    assert!(out.contains(clocks), "{out}");
}

#[test]
fn a_replay_that_does_not_reach_where_it_was_to_stop_has_a_code_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let file = recorded(directory.path());
    for [order, place, what] in [
        ["--step", "100000", "the step of --step was not reached"],
        ["--until", "1h", "the time of --until was not reached"],
        ["--until", "1999-12-31T23:59", "the time of --until was not reached"],
    ] {
        for how in ["--quiet", "--show"] {
            let (code, out) = replayed(&file, &[how, order, place]);
            assert!(code == Some(3) && out.contains(what), "{order} {place} {how}: {code:?} {out}");
        }
        let (code, out) = replayed(&file, &["--json", "--quiet", order, place]);
        let last: serde_json::Value = serde_json::from_str(&out).unwrap();
        let found = (code, &last["equal"], &last["reached"]);
        assert_eq!(found, (Some(3), &true.into(), &false.into()), "{out}");
    }
    let (code, out) = replayed(&file, &["--json", "--quiet", "--step", "1"]);
    let last: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &last["reached"]), (Some(0), &true.into()), "{out}");
    // A difference goes first.
    without_outputs(&file, 1);
    let (code, _) = replayed(&file, &["--quiet", "--go-on", "--until", "1h"]);
    assert_eq!(code, Some(1));
}
