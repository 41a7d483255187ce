//! A backup that is made under traffic is restored under traffic.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use testbed::{Pair, PeerSettings, Site};

/// Longest wait for messages to come to rest.
const SOON: Duration = Duration::from_secs(60);

/// Submits so many messages; their MTS identifiers.
fn send(pair: &Pair, count: usize) -> BTreeSet<String> {
    let to = pair.act.address("OPS");
    let arguments = ["--to", &to, "--precedence", "routine", "--size", "2kB"];
    let sent = (0..count).map(|_| pair.naples.send("OPS", &arguments).unwrap());
    sent.map(|sent| sent.messages[0].mts_identifier.clone()).collect()
}

/// Runs a verb with this directory; its exit code and all that it printed.
fn mta(site: &Site, verb: &[&str], directory: &Path) -> (i32, String) {
    let ran = site.mta(&[verb, &[directory.to_str().unwrap()]].concat()).unwrap();
    (ran.code, ran.stdout + &ran.stderr)
}

fn waits_for_delivery(site: &Site, count: u64) {
    let wanted = format!("{count} messages in mailboxes");
    site.wait_until(&wanted, SOON, |status| status.waiting() == count).unwrap();
}

#[test]
fn what_was_acknowledged_before_a_backup_is_there_after_a_restore_and_nothing_twice() {
    let json = ["--log-format", "json"];
    let mut pair = Pair::builder(PeerSettings::default())
        .unwrap()
        .each(|site| site.users(&["OPS"]).run_with(&json))
        .start()
        .unwrap();
    let backups = tempfile::tempdir().unwrap();
    let (of_act, of_naples) = (backups.path().join("act"), backups.path().join("naples"));
    let first = send(&pair, 10);
    waits_for_delivery(&pair.act, 10);
    // Made while more comes.
    let second = std::thread::scope(|scope| {
        let traffic = scope.spawn(|| send(&pair, 30));
        let (code, text) = mta(&pair.act, &["backup", "--rate", "60MB"], &of_act);
        assert_eq!(code, 0, "{text}");
        traffic.join().unwrap()
    });
    waits_for_delivery(&pair.act, 40);

    let (code, text) = mta(&pair.act, &["backup"], &of_act);
    assert!(code == 1 && text.contains("exists already"), "{text}");
    let (code, text) = mta(&pair.act, &["restore", "--replace"], &of_act);
    assert!(code == 1 && text.contains("running"), "{text}");

    // The receiver is lost, and restored while its peer has more for it.
    pair.act.kill().unwrap();
    let third = send(&pair, 10);
    assert_eq!(mta(&pair.naples, &["backup"], &of_naples).0, 0);
    let (code, text) = mta(&pair.act, &["restore"], &of_act);
    assert!(code == 1 && text.contains("--replace"), "{text}");
    let (code, text) = mta(&pair.act, &["restore", "--replace"], &of_act);
    assert!(code == 0 && text.contains("queue.replaced-1"), "{text}");
    pair.act.launch().unwrap();
    pair.naples.wait_until("an empty queue", SOON, |status| status.queued() == 0).unwrap();

    // The sender is restored too: it sends again what it had sent since its backup.
    assert_eq!(pair.naples.stop().unwrap().code(), Some(0));
    assert_eq!(mta(&pair.naples, &["restore", "--replace"], &of_naples).0, 0);
    pair.naples.launch().unwrap();
    let again = |events: &[testbed::DaemonEvent]| {
        let dropped = events.iter().filter(|event| event.event == "duplicate_dropped").count();
        (dropped >= third.len()).then_some(())
    };
    pair.act.wait_for_events("duplicates of the third", SOON, again).unwrap();

    let received = pair.act.receive_waiting("OPS").unwrap();
    let mut seen = BTreeSet::new();
    for message in received.messages() {
        let id = &message.mts_identifier;
        assert!(seen.insert(id.clone()), "twice: {id}");
        assert!([&first, &second, &third].iter().any(|sent| sent.contains(id)), "unknown: {id}");
    }
    assert!(seen.is_superset(&first) && seen.is_superset(&third), "lost");
    for site in [&mut pair.naples, &mut pair.act] {
        let events = site.events().unwrap();
        let wrong: Vec<_> = events.iter().filter(|event| event.level == "ERROR").collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(site.stop().unwrap().code(), Some(0));
    }
}

#[test]
fn a_damaged_backup_is_named_and_what_is_no_backup_is_refused() {
    let mut pair = Pair::builder(PeerSettings::default())
        .unwrap()
        .each(|site| site.users(&["OPS"]))
        .start()
        .unwrap();
    let backups = tempfile::tempdir().unwrap();
    let backup = backups.path().join("act");
    send(&pair, 5);
    waits_for_delivery(&pair.act, 5);
    assert_eq!(pair.act.stop().unwrap().code(), Some(0));
    // Without a daemon, too.
    assert_eq!(mta(&pair.act, &["backup"], &backup).0, 0);
    let (code, text) = mta(&pair.act, &["restore", "--replace"], backups.path());
    assert!(code == 1 && text.contains("not a backup"), "{text}");
    // What waits there would be routed from here, and reported.
    assert_eq!(pair.naples.stop().unwrap().code(), Some(0));
    let (code, text) = mta(&pair.naples, &["restore", "--replace"], &backup);
    assert!(code == 1 && text.contains("is a backup of MTA-ACT"), "{text}");
    let segment = std::fs::read_dir(backup.join("queue/log")).unwrap();
    let segment = segment.map(|entry| entry.unwrap().path());
    let segment = segment.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    let mut octets = std::fs::read(&segment).unwrap();
    let used = octets.iter().rposition(|octet| *octet != 0).unwrap();
    octets[used / 2] ^= 1;
    std::fs::write(&segment, octets).unwrap();
    let (code, text) = mta(&pair.act, &["restore", "--replace"], &backup);
    assert!(code == 1 && text.contains("--damaged"), "{text}");
    // Nothing was changed by it.
    pair.act.start().unwrap();
    waits_for_delivery(&pair.act, 5);
    assert_eq!(pair.act.stop().unwrap().code(), Some(0));
    assert_eq!(mta(&pair.act, &["restore", "--replace", "--damaged"], &backup).0, 0);
    // A record, a content or a key: the rest is served.
    pair.act.start().unwrap();
    assert!(pair.act.status().unwrap().waiting() <= 5);
}
