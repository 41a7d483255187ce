//! A Flash while 200 Routine wait for a link of the published study's own 512 kbit/s. What is asserted
//! is the order of events; the times are printed.

use super::{CHANNELS, SOON, assert_arrived, namespace, one_way, pair, wait_until_open};
use nix::sys::signal::Signal;
use std::io::Write as _;
use std::time::Duration;
use testbed::answer::{SubmittedMessage, elapsed};
use testbed::{Cable, DaemonEvent, Pair, Site};

/// The study's link, bit/s.
const LINK: u64 = 512_000;
/// Routine that wait.
const ROUTINE: usize = 200;
/// Flashes on the empty system, and as many with the queue; of their times the median counts.
const FLASHES: usize = 5;
/// The user of the Flash.
const CHIEF: &str = "CHIEF";

/// What one setting gave.
struct Measured {
    hold: &'static str,
    waiting: u64,
    empty: Duration,
    backlog: Duration,
}

#[test]
fn a_flash_is_delivered_before_the_next_of_200_routine_starts() {
    let test = "a_flash_is_delivered_before_the_next_of_200_routine";
    let mut all = Vec::new();
    for hold in ["conserving", "off"] {
        let Some(namespace) = namespace(test) else { return };
        let cable = Cable::new(namespace).unwrap();
        cable.naples.shape(LINK).unwrap();
        let builder = pair(&cable, one_way());
        let builder = builder.each(|site| site.users(&["OPS", CHIEF]).set("precedence.hold", hold));
        let mut pair = builder.start().unwrap();
        wait_until_open(&pair, 2 * CHANNELS.len());
        all.push(measure(&mut pair, &cable, hold));
    }
    print(&all);
}

fn measure(pair: &mut Pair, cable: &Cable, hold: &'static str) -> Measured {
    let count = (2 * FLASHES).to_string();
    let arguments = ["--json", "receive", "--count", &count, "--timeout", "120"];
    let chief = pair.act.xuxa_beside(CHIEF, &arguments).unwrap();
    pair.act.wait_until("the chief", SOON, |status| status.bound() == 1).unwrap();
    let mut flashes: Vec<SubmittedMessage> = Vec::new();
    let mut alone: Vec<Duration> = Vec::new();
    for _ in 0..FLASHES {
        let flash = flash(pair);
        alone.push(delivery(pair, &flash));
        flashes.push(flash);
    }
    alone.sort_unstable();

    // All of them wait while the other side stands still.
    pair.act.signal(Signal::SIGSTOP).unwrap();
    let sizes = vec!["10kB"; ROUTINE + 1].join(",");
    let to = pair.act.address("OPS");
    let sent = pair.naples.send("OPS", &["--to", &to, "--size", &sizes]);
    let queued = pair.naples.status().unwrap().queued();
    pair.act.signal(Signal::SIGCONT).unwrap();
    let routine = sent.unwrap().messages;
    assert!(queued >= ROUTINE as u64, "{queued} wait");
    // They have begun to go.
    let going = |events: &[DaemonEvent]| (started(events).count() > 2).then_some(());
    pair.naples.wait_for_events("the first Routine", SOON, going).unwrap();

    let mut beside: Vec<Duration> = Vec::new();
    for _ in 0..FLASHES {
        let flash = flash(pair);
        beside.push(delivery(pair, &flash));
        assert_beside(pair, &flash, hold);
        flashes.push(flash);
    }
    beside.sort_unstable();
    let waiting = pair.naples.status().unwrap().queued();

    cable.naples.unshape().unwrap();
    let received = pair.act.receive("OPS", routine.len()).unwrap();
    assert_arrived(&routine, &received);
    let received = chief.wait(SOON).unwrap().json().unwrap();
    assert_arrived(&flashes, &received);
    Measured { hold, waiting, empty: alone[FLASHES / 2], backlog: beside[FLASHES / 2] }
}

/// The order, once the second Routine that starts after it has arrived.
fn assert_beside(pair: &Pair, flash: &SubmittedMessage, hold: &str) {
    let id = &flash.mts_identifier;
    let confirmed = place(&pair.naples, "transfer_confirmed", id);
    let next = pair.naples.wait_for_events("the second Routine after it", SOON, |events| {
        let after = events.get(confirmed..)?;
        started(after).nth(1).map(str::to_owned)
    });
    place(&pair.act, "received", &next.unwrap());
    assert_order(&pair.naples.events().unwrap(), &pair.act.events().unwrap(), id, hold);
}

/// The events in both logs of the Flash among the Routine.
fn assert_order(naples: &[DaemonEvent], act: &[DaemonEvent], flash: &str, hold: &str) {
    let at = |log: &[DaemonEvent], event: &str, id: &str| log.iter().position(|e| e.is(event, id));
    let here = |event: &str| at(naples, event, flash).unwrap();
    let (submitted, begun) = (here("submitted"), here("transfer_started"));
    let confirmed = here("transfer_confirmed");
    assert!(naples[begun].is_on("transfer_started", "flash"));
    let submitted = submitted.min(begun);

    // One whose turn had come, and whose record was being read, when the Flash was accepted.
    let is_routine = |e: &&DaemonEvent| {
        e.precedence.as_deref() == Some("routine") && e.event.starts_with("transfer_")
    };
    let last = naples[..submitted].iter().rfind(is_routine).unwrap();
    let in_hand = usize::from(last.event == "transfer_confirmed");
    let meanwhile: Vec<&str> = started(&naples[submitted..confirmed]).collect();
    if hold == "off" {
        // It waited for no Routine: at most the one in transfer ended while its record was read.
        let between = naples[submitted..begun].iter().filter(is_routine);
        assert!(between.filter(|e| e.event == "transfer_confirmed").count() <= 1);
    } else {
        assert!(meanwhile.len() <= in_hand, "{meanwhile:?} started before it was confirmed");
    }

    // Whatever started after it arrived after it, and after it was delivered; but the one that
    // started next may arrive while the user's process is still at it, on a slow machine.
    let there = |event: &str| at(act, event, flash).unwrap();
    let (received, delivered) = (there("received"), there("delivered"));
    for id in started(&naples[begun..]) {
        let arrived = at(act, "received", id);
        assert!(arrived.is_none_or(|arrived| arrived > received), "{id} arrived before it");
    }
    for id in started(&naples[confirmed..]).skip(1) {
        let arrived = at(act, "received", id);
        assert!(arrived.is_none_or(|arrived| arrived > delivered), "{id} before its delivery");
    }
}

/// The Routine whose transfers started, in order.
fn started(events: &[DaemonEvent]) -> impl Iterator<Item = &str> {
    let routine = events
        .iter()
        .filter(|e| e.event == "transfer_started" && e.precedence.as_deref() == Some("routine"));
    routine.filter_map(|e| e.mts_id.as_deref())
}

/// Submits a Flash of 1 kB.
fn flash(pair: &Pair) -> SubmittedMessage {
    let to = pair.act.address(CHIEF);
    let arguments = ["--to", &to, "--precedence", "flash", "--size", "1kB"];
    pair.naples.send(CHIEF, &arguments).unwrap().messages.remove(0)
}

/// Where in the log of a site this stands, once it does.
fn place(site: &Site, event: &str, message: &str) -> usize {
    let found = |events: &[DaemonEvent]| events.iter().position(|e| e.is(event, message));
    site.wait_for_events(event, SOON, found).unwrap()
}

/// From its submission to the confirm of the user it was delivered to.
fn delivery(pair: &Pair, message: &SubmittedMessage) -> Duration {
    let delivered = place(&pair.act, "delivered", &message.mts_identifier);
    let events = pair.act.events().unwrap();
    elapsed(&message.submitted_at, &events[delivered].timestamp).unwrap()
}

/// The times, where they show though the test passes: as a table, and as JSON.
fn print(all: &[Measured]) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let mut text = format!(
        "    a Flash of 1 kB at 512 kbit/s, submission to delivery\n    \
         {:<12}{:>16}{:>12}{:>14}{:>8}\n",
        "hold", "Routine waiting", "empty, ms", "backlog, ms", "ratio"
    );
    let mut rows = Vec::new();
    for Measured { hold, waiting, empty, backlog } in all {
        let (empty, backlog) = (ms(*empty), ms(*backlog));
        let ratio = backlog / empty;
        text.push_str(&format!(
            "    {hold:<12}{waiting:>16}{empty:>12.1}{backlog:>14.1}{ratio:>8.2}\n"
        ));
        rows.push(serde_json::json!({
            "hold": hold, "routine_waiting": waiting, "empty_ms": empty, "backlog_ms": backlog,
            "ratio": ratio,
        }));
    }
    let json = serde_json::json!({ "rate_kbit_s": LINK / 1_000, "flash": rows });
    let _ = writeln!(std::io::stderr().lock(), "{text}    {json}");
}
