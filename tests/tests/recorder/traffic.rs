//! Traffic of every precedence, with restarts, refusals, changes and kills, while two daemons record.

use super::{assert_recorded, contains, mta, record, recordings, replayed};
use nix::sys::signal::Signal;
use std::fs;
use std::time::Duration;
use testbed::{Pair, PeerSettings, Site};

const SOON: Duration = Duration::from_secs(60);
const ALL: [&str; 6] = ["override", "flash", "immediate", "priority", "routine", "deferred"];

/// A pair whose daemons record from their first start on.
fn recorded(link: PeerSettings) -> Pair {
    let mut pair = Pair::start(link).unwrap();
    for site in [&mut pair.naples, &mut pair.act] {
        site.stop().unwrap();
        let directory = record(site);
        site.run_with(&["--record", &directory]);
        site.start().unwrap();
    }
    pair
}

fn secrets(pair: &Pair) -> Vec<String> {
    let all = pair.naples.secrets().iter().chain(pair.act.secrets());
    all.cloned().collect()
}

fn send_all(from: &Site, to: &Site) {
    for precedence in ALL {
        let arguments = ["--to", &to.address("OPS"), "--size", "20kB", "--precedence", precedence];
        from.send("OPS", &arguments).unwrap();
    }
    assert_eq!(to.receive("OPS", ALL.len()).unwrap().messages().count(), ALL.len());
}

#[test]
fn every_precedence_a_restart_and_a_kill_replay_as_they_ran() {
    let mut pair = recorded(PeerSettings::per_precedence());
    send_all(&pair.naples, &pair.act);
    // What waits for a user is recovered by the next process.
    let to = pair.act.address("OPS");
    pair.naples.send("OPS", &["--to", &to, "--size", "1kB,100kB,2MB"]).unwrap();
    pair.act.wait_until("all there", SOON, |s| s.counters.received == 9).unwrap();
    pair.act.stop().unwrap();
    pair.act.start().unwrap();
    assert_eq!(pair.act.receive("OPS", 3).unwrap().messages().count(), 3);
    pair.naples.kill().unwrap();
    pair.naples.start().unwrap();
    send_all(&pair.act, &pair.naples);
    let secrets = secrets(&pair);
    for site in [&mut pair.naples, &mut pair.act] {
        site.stop().unwrap();
        assert_recorded(site, &secrets, 2);
    }
    let ends: Vec<String> =
        recordings(&pair.naples).iter().map(|file| replayed(&pair.naples, file, &["-q"])).collect();
    assert!(ends[0].contains("was killed") || ends[0].contains("cut off"), "{ends:?}");
    assert!(ends[1].contains("the node has stopped"), "{ends:?}");
}

#[test]
fn a_reload_an_order_and_wrong_passwords_replay_as_they_ran() {
    let mut pair = recorded(PeerSettings::default());
    let (naples, wrong) = (&pair.naples, "pw-wrong-0123456789");
    let right = fs::read(naples.password_file("OPS")).unwrap();
    fs::write(naples.password_file("OPS"), wrong).unwrap();
    assert_ne!(naples.xuxa("OPS", &["receive"]).unwrap().status.code(), Some(0));
    fs::write(naples.password_file("OPS"), &right).unwrap();
    send_all(naples, &pair.act);
    for order in [&["reload"][..], &["minimize", "flash"], &["minimize", "off"], &["status"]] {
        naples.mta(order).unwrap();
    }
    send_all(&pair.act, naples);
    let secrets = [secrets(&pair), vec![wrong.to_owned()]].concat();
    for site in [&mut pair.naples, &mut pair.act] {
        site.stop().unwrap();
        assert_recorded(site, &secrets, 1);
    }
    let file = &recordings(&pair.naples)[0];
    let steps = replayed(&pair.naples, file, &[]);
    for step in ["Verified token", ": wrong", "Minimize", "Configure", "! submitted", "> Commit"] {
        assert!(steps.contains(step), "{step}");
    }
    let json = replayed(&pair.naples, file, &["--json", "--quiet", "--state", "--step", "40"]);
    let last: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!((&last["equal"], &last["steps"]), (&true.into(), &40.into()));
    assert_eq!(last["state"]["mta"], pair.naples.mta_name());
}

#[test]
fn a_recording_that_reaches_its_limit_ends_with_an_event_and_the_daemon_serves() {
    let mut pair = Pair::start(PeerSettings::default()).unwrap();
    pair.naples.stop().unwrap();
    let directory = record(&pair.naples);
    pair.naples.run_with(&["--record", &directory, "--record-limit", "300kB"]);
    pair.naples.start().unwrap();
    let to = pair.act.address("OPS");
    pair.naples.send("OPS", &["--to", &to, "--size", "200kB,200kB,200kB"]).unwrap();
    assert_eq!(pair.act.receive("OPS", 3).unwrap().messages().count(), 3);
    let log = fs::read_to_string(pair.naples.log()).unwrap();
    assert_eq!(log.matches("recording_ended").count(), 1, "{log}");
    pair.naples.signal(Signal::SIGHUP).unwrap();
    send_all(&pair.naples, &pair.act);
    let secrets = secrets(&pair);
    pair.naples.stop().unwrap();
    assert_recorded(&pair.naples, &secrets, 1);
    let file = &recordings(&pair.naples)[0];
    assert!(fs::metadata(file).unwrap().len() <= 300_000);
    assert!(replayed(&pair.naples, file, &["-q"]).contains("the limit of 300000 octets"));
    // It is there, and is never written again.
    let file = file.display().to_string();
    pair.naples.run_with(&["--record", &file]);
    assert!(pair.naples.start().is_err());
    assert!(pair.naples.log_tail().contains("--record"), "{}", pair.naples.log_tail());
}

#[test]
fn a_copy_without_contents_is_read_and_not_run() {
    let mut pair = recorded(PeerSettings::default());
    let text = "the harbour is closed";
    let to = pair.act.address("OPS");
    let sent = pair.naples.send("OPS", &["--to", &to, "--text", text]).unwrap();
    assert_eq!(pair.act.receive("OPS", 1).unwrap().messages().count(), 1);
    pair.naples.stop().unwrap();
    let recording = &recordings(&pair.naples)[0];
    assert!(contains(&fs::read(recording).unwrap(), text.as_bytes()));
    let copy = pair.naples.path().join("copy");
    let (from, to) = (recording.display().to_string(), copy.display().to_string());
    let strip = |code| {
        let strip = mta(&pair.naples, &["record", "strip", &from, &to]);
        assert_eq!(strip.0, Some(code), "{}", strip.1);
    };
    strip(0);
    strip(1);
    assert!(!contains(&fs::read(&copy).unwrap(), text.as_bytes()));
    let (code, printed) = mta(&pair.naples, &["replay", &to]);
    assert_eq!(code, Some(2));
    assert!(printed.contains("--show"), "{printed}");
    let shown = replayed(&pair.naples, &copy, &["--show"]);
    assert!(shown.contains("! submitted") && shown.contains(&sent.messages[0].mts_identifier));
    let log = pair.naples.log().display().to_string();
    let (code, printed) = mta(&pair.naples, &["replay", &log]);
    assert_eq!(code, Some(2), "{printed}");
}
