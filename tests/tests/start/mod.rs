//! A start with a long queue: the daemon serves while the rest of it is read.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use testbed::{Pair, PeerSettings};

/// More than a daemon reads before it serves.
const MESSAGES: u64 = 5_000;
/// Longest wait for all of them.
const SOON: Duration = Duration::from_secs(120);

/// Fills a queue with messages for the other site, all precedences in turn.
fn fill(queue: &Path) {
    let here = std::env::current_exe().unwrap();
    let program = here.parent().and_then(Path::parent).unwrap().join("examples/fill");
    let domain = |site: &str| format!("/C=IT/ADMD=NET/PRMD={site}");
    let mut command = Command::new(&program);
    command.arg(queue).args([
        &MESSAGES.to_string(),
        "act",
        &domain("NAPLES"),
        &domain("ACT"),
        "100",
    ]);
    let status = command.status();
    let status = status.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(status.success(), "{status}");
}

#[test]
fn what_is_read_after_the_start_is_sent_once_like_the_rest() {
    let json = ["--log-format", "json"];
    let builder = Pair::builder(PeerSettings::per_precedence()).unwrap();
    let Pair { mut naples, mut act, .. } =
        builder.each(|site| site.users(&["OPS"]).run_with(&json)).build().unwrap();
    fill(&naples.path().join("data/queue"));
    // Without the peer: all of them wait, however they were read.
    naples.start().unwrap();
    let all = |status: &testbed::answer::MtaStatus| !status.reading_queue;
    let status = naples.wait_until("all of the queue", SOON, all).unwrap();
    assert_eq!(status.queued(), MESSAGES);
    let log = std::fs::read_to_string(naples.log()).unwrap();
    assert!(log.contains("all of the queue is read"), "{log}");
    naples.kill().unwrap();
    // With it, messages leave while others are read.
    act.start().unwrap();
    naples.start().unwrap();
    naples.wait_until("an empty queue", SOON, |s| !s.reading_queue && s.queued() == 0).unwrap();
    act.wait_until("all in the mailbox", SOON, |status| status.waiting() == MESSAGES).unwrap();
    let status = act.status().unwrap();
    assert_eq!((status.counters.duplicates, status.waiting()), (0, MESSAGES));
    for site in [&mut naples, &mut act] {
        let events = site.events().unwrap();
        let wrong: Vec<_> = events.iter().filter(|event| event.level == "ERROR").collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(site.stop().unwrap().code(), Some(0));
    }
    // Nothing is left of what left while the rest was read.
    naples.start().unwrap();
    let log = std::fs::read_to_string(naples.log()).unwrap();
    assert!(!log.contains("\"event\":\"discarded\""), "contents were left");
    assert_eq!(naples.stop().unwrap().code(), Some(0));
}
