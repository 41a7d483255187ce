//! Daemons killed at any moment (SIGKILL) while messages of every size and precedence go both ways:
//! nothing that was acknowledged is lost, nothing is there twice.

mod mailbox;
mod moment;
mod traffic;

use super::e2e::disk::SmallDisk;
use super::e2e::print_line;
use mailbox::BOX;
use moment::{Log, Moment, SEED, When};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use testbed::clock::{Deadline, pause};
use testbed::{DaemonEvent, Pair, PeerSettings, Site};
use traffic::{Traffic, USERS, bodies, inbox, received, sites};

/// Moments of a run, and of one with `cargo xtask test --long`.
const MOMENTS: u64 = 24;
const MANY_MOMENTS: u64 = 300;
/// Size of a disk that is filled, in MB: some contents of 10 MB in both directions.
const DISK: u32 = 96;
/// Longest wait for the events of a moment; where fewer come, it strikes all the same.
const EVENTS: Duration = Duration::from_secs(5);
/// Longest end of all traffic, once nobody dies any more.
const DRAIN: Duration = Duration::from_secs(120);
/// How often logs and clients are looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Shows how to repeat a failed run.
struct Repeat {
    seed: u64,
    moments: Vec<(u64, Moment, String)>,
}

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- repeat with {SEED}={}; the moments so far:", self.seed);
            for (number, moment, outcome) in &self.moments {
                eprintln!("{number:>3} {moment:?}: {outcome}");
            }
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_or_doubled_when_daemons_are_killed() {
    let many = std::env::var_os("LONG").is_some();
    let count = moment::count().unwrap_or(if many { MANY_MOMENTS } else { MOMENTS });
    let mut repeat = Repeat { seed: moment::seed(1), moments: Vec::new() };
    // One channel for all, then one for each precedence.
    strike(PeerSettings::default(), 0..count / 2, &mut repeat, None);
    strike(PeerSettings::per_precedence(), count / 2..count, &mut repeat, None);
}

/// The disk of the one who dies is full, from a while before until the next one dies.
#[test]
fn nothing_acknowledged_is_lost_or_doubled_when_daemons_are_killed_on_full_disks() {
    let Some(disks) = SmallDisk::mount(DISK).zip(SmallDisk::mount(DISK)) else {
        print_line("    SKIPPED killed_on_full_disks: mounting a small disk needs root");
        return;
    };
    let many = std::env::var_os("LONG").is_some();
    let count = moment::count().unwrap_or(if many { MANY_MOMENTS } else { MOMENTS }) / 5;
    let mut repeat = Repeat { seed: moment::seed(1), moments: Vec::new() };
    let numbers = 1_000..1_000 + count;
    strike(PeerSettings::per_precedence(), numbers, &mut repeat, Some(&[disks.0, disks.1]));
}

/// The site's data directory on a disk of its own.
fn move_to(site: &Site, disk: &SmallDisk) {
    let (from, to) = (site.path().join("data"), disk.path().join("data"));
    fs::create_dir(&to).unwrap();
    fs::set_permissions(&to, fs::Permissions::from_mode(0o700)).unwrap();
    for file in fs::read_dir(&from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
    fs::remove_dir_all(&from).unwrap();
    std::os::unix::fs::symlink(to, from).unwrap();
}

/// Kills at each of these moments, then drains and checks.
fn strike(
    peer: PeerSettings,
    numbers: Range<u64>,
    repeat: &mut Repeat,
    disks: Option<&[SmallDisk; 2]>,
) {
    let builder = Pair::builder(peer).unwrap();
    let json = ["--log-format", "json"];
    let pair =
        builder.each(|site| site.users(&USERS).mailboxes(&[BOX]).run_with(&json)).build().unwrap();
    let mut sites = sites(pair);
    for (site, disk) in sites.iter().zip(disks.into_iter().flatten()) {
        move_to(site, disk);
    }
    sites.iter_mut().for_each(|site| site.start().unwrap());
    let mut traffic = Traffic::new(repeat.seed << 16 | numbers.start);
    traffic.may_refuse = disks.is_some();
    traffic.begin(&sites);
    let mut ballast = None;
    let (mut reached, mut missed, mut kills) = (0, Vec::new(), 0);
    for number in numbers {
        let moment = Moment::new(repeat.seed, number);
        repeat.moments.push((number, moment.clone(), "in progress".to_owned()));
        if let Some(disks) = disks {
            ballast.take().into_iter().for_each(|path| fs::remove_file(path).unwrap());
            wait_for(&moment, &mut sites, &mut traffic);
            ballast = Some(disks[moment.victim].fill());
        }
        let events = wait_for(&moment, &mut sites, &mut traffic);
        if let Some((_, _, slot)) = repeat.moments.last_mut() {
            let planned = traffic.planned.len();
            *slot = format!("{events} events of the victim, {planned} messages planned");
        }
        match moment.when {
            When::Event(wanted) if events < wanted => missed.push((number, events, wanted)),
            When::Event(_) => reached += 1,
            When::Time(_) => {}
        }
        if let Some(receiver) = moment.receiver {
            traffic.kill_receiver(receiver);
        }
        let victim = &mut sites[moment.victim];
        victim.kill().unwrap();
        for life in &moment.again {
            victim.launch().unwrap();
            pause(*life);
            victim.kill().unwrap();
        }
        victim.launch().unwrap();
        kills += 1 + moment.again.len();
    }
    ballast.into_iter().for_each(|path| fs::remove_file(path).unwrap());
    drain(&mut sites, &mut traffic);
    for (number, events, wanted) in &missed {
        print_line(&format!("moment {number} struck after {events} of its {wanted} events"));
    }
    // On a full disk there is little to wait for, and a busy machine is slow: some must have come.
    let is_full = disks.is_some();
    assert!(is_full || reached > 0, "no moment at an event ever came: {missed:?}");
    check(&mut sites, &mut traffic, kills);
}

/// Keeps the traffic going until the moment has come; how many events of the victim there were.
fn wait_for(moment: &Moment, sites: &mut [Site; 2], traffic: &mut Traffic) -> u64 {
    let mut log = Log::from_site(&sites[moment.victim]);
    log.more();
    let (wanted, time) = match moment.when {
        When::Event(wanted) => (wanted, EVENTS),
        When::Time(time) => (u64::MAX, time),
    };
    let deadline = Deadline::after(time);
    let mut events = 0;
    while events < wanted && !deadline.has_passed() {
        traffic.tend(sites, true);
        pause(LOOK);
        events += log.more();
        let runs = sites.iter_mut().all(|site| site.is_running().unwrap());
        assert!(runs, "a daemon ended by itself");
    }
    events
}

/// Waits until all that was planned is answered, delivered, and forgotten by both daemons.
fn drain(sites: &mut [Site; 2], traffic: &mut Traffic) {
    let deadline = Deadline::after(DRAIN);
    let all_answered = || Ok((!traffic.tend(sites, false)).then_some(()));
    deadline.wait_for("an answer to every submission", all_answered).unwrap();
    loop {
        // A message in delivery does not count as waiting, so the inboxes show when all has arrived; what
        // is being delivered again is given back when the users go.
        let arrived = || {
            traffic.tend(sites, false);
            let all = [0, 1].iter().all(|index| traffic.has_arrived(&sites[*index], *index));
            Ok((all && is_empty(&sites[0])? && is_empty(&sites[1])?).then_some(()))
        };
        // If not, the check reports what is missing.
        let arrived = deadline.wait_for("all that was acknowledged", arrived);
        traffic.stop_receiving();
        let left = is_empty(&sites[0]).and_then(|empty| Ok(empty && is_empty(&sites[1])?));
        match arrived {
            Ok(()) if left.unwrap() => return,
            Ok(()) => {}
            Err(error) => {
                print_line(&format!("{error:#}"));
                return;
            }
        }
    }
}

/// Nothing waits, and no transfer to or from a peer is in progress.
fn is_empty(site: &Site) -> anyhow::Result<bool> {
    let status = site.status()?;
    let moves = status.associations().any(|a| ["sending", "receiving"].contains(&&*a.state));
    // One that waits for the recovery of its association is in transfer, and on none.
    Ok(status.queued() + status.in_transfer() + status.waiting() == 0 && !moves)
}

/// All that must hold once everything has come to rest.
fn check(sites: &mut [Site; 2], traffic: &mut Traffic, kills: usize) {
    let (mut again, mut duplicates, mut alerts, mut stored) = (0, 0, 0, 0);
    let mut cut_off = 0;
    for (index, site) in sites.iter_mut().enumerate() {
        for user in USERS {
            check_inbox(site, user, traffic.expected(index, user));
            let mut reports: BTreeMap<String, usize> = BTreeMap::new();
            for subject in received(site, user).1 {
                *reports.entry(subject).or_default() += 1;
            }
            let expected = traffic.expected_reports(index, user);
            assert_eq!(reports, expected, "{user} at {}: reports by subject", site.name());
        }
        let expected = traffic.expected(index, BOX);
        let mailbox = &mut traffic.mailboxes[index];
        alerts += mailbox.check(site, expected);
        stored += mailbox.count();
        let in_mailbox = mailbox.count();
        let events = site.events().unwrap();
        let wrong: Vec<&DaemonEvent> = events.iter().filter(|e| e.level == "ERROR").collect();
        assert!(traffic.may_refuse || wrong.is_empty(), "{}: {wrong:#?}", site.name());
        // Of all its lives; its counters are those of the last one.
        let dropped = events.iter().filter(|e| e.event == "duplicate_dropped").count();
        assert!(dropped as u64 >= site.status().unwrap().counters.duplicates, "{}", site.name());
        duplicates += dropped;
        let is_cut = |event: &&DaemonEvent| {
            ["transfer_failed", "receive_failed", "delivery_failed"].contains(&&*event.event)
        };
        cut_off += events.iter().filter(is_cut).count();
        let delivered = events.iter().filter(|e| e.event == "delivered").count();
        let kept = |user: &&str| {
            let (messages, reports) = received(site, user);
            messages.len() + reports.len()
        };
        let kept: usize = USERS.iter().map(kept).sum();
        // One whose forgetting was not committed is delivered again, and confirmed as before.
        again += delivered.saturating_sub(kept + in_mailbox);
        assert_eq!(site.stop().unwrap().code(), Some(0));
        check_store(site);
    }
    let doubts: u32 = traffic.planned.iter().map(|p| p.doubts).sum();
    let tried = traffic.planned.iter().filter_map(|p| p.answer.as_ref());
    let retried = tried.filter(|answer| answer.tries > 1).count();
    let files = traffic.bodies.each_ref().map(BTreeSet::len);
    assert!(
        traffic.may_refuse || files.iter().all(|n| *n > 0),
        "no body was in a file at one of the sites: {files:?}"
    );
    // The moments are those of the processes: in some runs no answer is lost, but transfers are cut off.
    let lost = doubts as usize + retried + duplicates + cut_off;
    assert!(
        traffic.may_refuse || lost > 0,
        "no answer was lost, and no transfer cut off: the kills tested nothing"
    );
    moment::report(&format!(
        "{{\"kills\":{kills},\"messages\":{},\"in_doubt\":{doubts},\"retried\":{retried},\
         \"repetitions_known\":{duplicates},\"delivered_again\":{again},\"body_files\":{},\
         \"in_mailboxes\":{stored},\"alerts\":{alerts}}}",
        traffic.planned.len(),
        files.iter().sum::<usize>(),
    ));
}

/// Each message that was acknowledged is there, once and whole, and nothing else is.
fn check_inbox(
    site: &Site,
    user: &str,
    (identifiers, mut contents): (BTreeSet<String>, BTreeMap<String, String>),
) {
    let inbox = inbox(site, user);
    let (mut received, _) = received(site, user);
    received.sort();
    let wanted: Vec<String> = identifiers.into_iter().collect();
    let lost: Vec<_> = wanted.iter().filter(|id| !received.contains(id)).collect();
    let more: Vec<_> = received.iter().filter(|id| !wanted.contains(id)).collect();
    assert!(lost.is_empty(), "{user} at {}: lost {lost:#?}", site.name());
    assert!(more.is_empty(), "{user} at {}: nobody knows {more:#?}", site.name());
    assert_eq!(received, wanted, "{user} at {}: once each", site.name());
    for entry in fs::read_dir(&inbox).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "content") {
            let hash = Sha256::digest(fs::read(&path).unwrap());
            let hash: String = hash.iter().map(|octet| format!("{octet:02x}")).collect();
            assert!(contents.remove(&hash).is_some(), "{}: not as submitted", path.display());
        } else {
            let name = path.file_name().unwrap().to_string_lossy();
            let known = ["received.log", "sent.log"].contains(&&*name) || name.ends_with(".report");
            assert!(known, "left over: {}", path.display());
        }
    }
    assert!(contents.is_empty(), "{user} at {}: no file of {contents:#?}", site.name());
}

/// The store holds nothing any more, and opens without anything to mend: but for what it keeps of a
/// reception that was cut off, to be taken up again, while it runs; the next start removes that.
fn check_store(site: &mut Site) {
    let before = fs::read_to_string(site.log()).unwrap().len();
    site.start().unwrap();
    let log = fs::read_to_string(site.log()).unwrap();
    let log = &log[before..];
    for amiss in ["\"event\":\"discarded\"", "missing", "ERROR"] {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(amiss)).collect();
        assert!(lines.is_empty(), "{}: {lines:#?}", site.name());
    }
    assert!(log.contains("\"entries\":0"), "{}: {log}", site.name());
    let bodies = bodies(site);
    assert_eq!(fs::read_dir(&bodies).unwrap().count(), 0, "files left in {}", bodies.display());
    assert_eq!(site.stop().unwrap().code(), Some(0));
}
