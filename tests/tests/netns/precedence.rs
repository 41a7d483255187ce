//! Precedence over a slow link. Rates are twenty times those of the published study, sizes its own,
//! so that the ratios are the same and the test is short; with `cargo xtask test --long` the first
//! test runs at the study's own 512 kbit/s. What is asserted is order, not time.

use super::{CHANNELS, SOON, assert_arrived, namespace, one_way, pair, send, wait_until_open};
use std::time::Duration;
use testbed::answer::SubmittedMessage;
use testbed::{Cable, DaemonEvent, Site};

/// The study's link, bit/s.
const LINK: u64 = 512_000;
/// How much faster it is here.
const FASTER: u64 = 20;
/// Longest transfer of 10 MB over the link, shared with others: 8 s alone where it is faster, 160 s
/// where it is not.
const SLOW: Duration = Duration::from_secs(420);

fn rate() -> u64 {
    if std::env::var_os("LONG").is_some() { LINK } else { FASTER * LINK }
}

/// Where in the log of a site this stands, once it does.
fn place(site: &Site, event: &str, message: &SubmittedMessage) -> usize {
    let what = format!("{event} of the {} of {}", message.precedence, message.size);
    let found =
        |events: &[DaemonEvent]| events.iter().position(|e| e.is(event, &message.mts_identifier));
    site.wait_for_events(&what, SLOW, found).unwrap()
}

/// The place in a site's log at which this message, which has started since, was held.
fn held(site: &Site, message: &SubmittedMessage) -> usize {
    let started = place(site, "transfer_started", message);
    let events = site.events().unwrap();
    let entry = &events[started].entry;
    assert!(entry.is_some());
    let is_it = |e: &DaemonEvent| e.event == "held" && e.entry == *entry;
    events.iter().position(is_it).unwrap_or_else(|| panic!("{entry:?} was held: {events:?}"))
}

fn in_transfer(site: &Site) -> usize {
    let status = site.status().unwrap();
    status.associations().filter(|association| association.state == "sending").count()
}

#[test]
fn a_flash_starts_at_once_beside_a_routine_and_queued_ones_wait_for_it() {
    let test = "a_flash_starts_at_once_beside_a_routine";
    let Some(namespace) = namespace(test) else { return };
    let cable = Cable::new(namespace).unwrap();
    // Slow while messages are submitted: none is over before the next is here, however slow the
    // machine.
    cable.naples.shape(LINK).unwrap();
    let pair = pair(&cable, one_way()).start().unwrap();
    wait_until_open(&pair, 2 * CHANNELS.len());
    let naples = &pair.naples;

    // What is in transfer is not stopped; what is higher starts beside it.
    let routine = send(naples, &pair.act, "routine", "10MB");
    let routine_started = place(naples, "transfer_started", &routine);
    let flash = send(naples, &pair.act, "flash", "1MB");
    let flash_started = place(naples, "transfer_started", &flash);
    // In the queue together: a second Flash, whose association is busy, and one of a lower
    // precedence, whose association is free.
    let next = send(naples, &pair.act, "flash", "1MB");
    let lower = send(naples, &pair.act, "priority", "10kB");
    cable.naples.reshape(rate()).unwrap();
    let flash_confirmed = place(naples, "transfer_confirmed", &flash);
    let next_started = place(naples, "transfer_started", &next);
    let next_confirmed = place(naples, "transfer_confirmed", &next);
    let lower_started = place(naples, "transfer_started", &lower);
    let routine_confirmed = place(naples, "transfer_confirmed", &routine);
    let order = [
        ("the Routine starts", routine_started),
        ("the Flash starts", flash_started),
        ("the Flash is confirmed", flash_confirmed),
        ("the next Flash starts", next_started),
        ("the next Flash is confirmed", next_confirmed),
        ("the Priority starts", lower_started),
    ];
    assert!(order.is_sorted_by_key(|(_, place)| *place), "{order:?}");
    assert!(routine_confirmed > next_confirmed, "both Flashes overtook the Routine");
    let events = naples.events().unwrap();
    assert!(events[flash_started].is_on("transfer_started", "flash"));
    assert!(events[routine_started].is_on("transfer_started", "routine"));
    // Between submission and start of the Flash nothing else was begun or ended.
    let submitted = place(naples, "submitted", &flash);
    let between = &events[submitted.min(flash_started)..flash_started];
    assert!(!between.iter().any(|e| e.event.starts_with("transfer")), "{between:?}");
    assert!(held(naples, &lower) < next_confirmed, "and the log shows why the Priority waited");
    let all = [routine, flash, next, lower];
    assert_arrived(&all, &pair.act.receive("OPS", all.len()).unwrap());

    // And so does a queued Routine behind a queued Flash, though its own
    // channel carries nothing higher.
    cable.naples.reshape(LINK).unwrap();
    let flashes = [(); 2].map(|()| send(naples, &pair.act, "flash", "1MB"));
    let routine = send(naples, &pair.act, "routine", "10kB");
    cable.naples.reshape(rate()).unwrap();
    let last = place(naples, "transfer_confirmed", &flashes[1]);
    assert!(place(naples, "transfer_started", &flashes[1]) < last);
    assert!(last < place(naples, "transfer_started", &routine));
    assert!(held(naples, &routine) < last);
}

#[test]
fn five_precedences_are_in_transfer_at_the_same_time_lowest_first() {
    let test = "five_precedences_are_in_transfer_at_the_same_time";
    let Some(namespace) = namespace(test) else { return };
    let cable = Cable::new(namespace).unwrap();
    cable.naples.shape(FASTER * LINK / 10).unwrap();
    let pair = pair(&cable, one_way()).start().unwrap();
    wait_until_open(&pair, 2 * CHANNELS.len());
    let naples = &pair.naples;
    let mut sent = Vec::new();
    for (precedence, _, _) in CHANNELS {
        let message = send(naples, &pair.act, precedence, "2MB");
        place(naples, "transfer_started", &message);
        sent.push(message);
    }
    assert_eq!(in_transfer(naples), CHANNELS.len());
    cable.naples.unshape().unwrap();
    let started: Vec<_> = sent.iter().map(|m| place(naples, "transfer_started", m)).collect();
    assert!(started.is_sorted(), "{started:?}");
    let first = sent.iter().map(|m| place(naples, "transfer_confirmed", m)).min();
    assert!(first > started.last().copied(), "none had ended before the last began");
    naples.wait_until("nothing left", SOON, |status| status.queued() == 0).unwrap();
    assert_arrived(&sent, &pair.act.receive("OPS", sent.len()).unwrap());
}
