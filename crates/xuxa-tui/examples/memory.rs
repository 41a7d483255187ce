//! The terminal interface on a mailbox in memory, to try it without an MTA:
//!
//! ```sh
//! cargo run -p xuxa-tui --example memory -- --messages 500000 --answer-after 300
//! ```
//!
//! What is sent to `me` arrives here. `--flash-after N` delivers a Flash after so many milliseconds,
//! `--lose-after N` ends the association then, for `--away N`; `--panic-after N` panics.

use base::{Precedence, Utc};
use std::rc::Rc;
use std::time::{Duration, SystemTime};
use xuxa_tui::Palette;
use xuxa_tui::memory::{Memory, Stored};
use xuxa_tui::model::{BookEntry, Kind, Row, Who};

#[expect(clippy::disallowed_methods, reason = "the edge of this example")]
fn utc() -> Utc {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Utc(u64::try_from(since.as_micros()).unwrap_or(0))
}

/// The number behind an option; 0 without it.
fn option(name: &str) -> u64 {
    let mut arguments = std::env::args().skip_while(|argument| argument != name).skip(1);
    arguments.next().and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn message(number: u64, precedence: Precedence, subject: &str) -> (Row, Stored) {
    let row = Row {
        number: 0,
        kind: Kind::Message,
        precedence,
        is_unread: !number.is_multiple_of(3),
        from: if number.is_multiple_of(2) { "act-ops".to_owned() } else { "naples-log".to_owned() },
        subject: subject.to_owned(),
        time: Utc(1_795_000_000_000_000 + number * 60_000_000),
        size: 900 + number * 37 % 90_000,
    };
    let from = format!(
        "/C=IT/ADMD=NET/PRMD={}/S=OPS",
        if number.is_multiple_of(2) { "ACT" } else { "NAPLES" }
    );
    let fields = [
        ("From", from.as_str()),
        ("To", "/C=IT/ADMD=NET/PRMD=HQ/S=OPS"),
        ("Precedence", &precedence.name().to_uppercase()),
        ("Subject", subject),
        ("SIC", "ABC"),
        ("Message type", "exercise STEADY"),
    ];
    let stored = Stored {
        fields: fields.map(|(label, value)| (label.to_owned(), value.to_owned())).into(),
        text: format!(
            "SITUATION REPORT {number}.\n\n1. ALL UNITS REPORT READY.\n2. WEATHER FAIR.\n"
        )
        .repeat(9),
        files: if number.is_multiple_of(4) {
            vec![("chart.png".to_owned(), vec![7; 12_345])]
        } else {
            Vec::new()
        },
        answer_to: vec![from],
        wants_receipt: number.is_multiple_of(5),
    };
    (row, stored)
}

fn book() -> Vec<BookEntry> {
    let entry = |name: &str, addresses: &[&str]| BookEntry {
        name: name.to_owned(),
        addresses: addresses.iter().map(|&address| address.to_owned()).collect(),
        is_group: addresses.len() > 1,
    };
    vec![
        entry("act-ops", &["/C=IT/ADMD=NET/PRMD=ACT/S=OPS"]),
        entry("all-ops", &["act-ops", "naples-ops"]),
        entry("me", &["/C=IT/ADMD=NET/PRMD=HQ/S=OPS"]),
        entry("naples-ops", &["/C=IT/ADMD=NET/PRMD=NAPLES/S=OPS"]),
    ]
}

/// What the options ask for, while the interface runs.
async fn disturb(memory: Rc<Memory>) {
    let wait = |name: &str| Duration::from_millis(option(name));
    if option("--flash-after") > 0 {
        tokio::time::sleep(wait("--flash-after")).await;
        let (mut row, stored) = message(2, Precedence::Flash, "CONTACT REPORT");
        (row.is_unread, row.time) = (true, utc());
        memory.deliver(row, stored);
    }
    if option("--lose-after") > 0 {
        tokio::time::sleep(wait("--lose-after")).await;
        memory.set_away(true);
        tokio::time::sleep(wait("--away")).await;
        memory.set_away(false);
    }
    if option("--panic-after") > 0 {
        tokio::time::sleep(wait("--panic-after")).await;
        #[expect(clippy::panic, reason = "to try what is left of the terminal")]
        {
            panic!("as --panic-after asked for");
        }
    }
    std::future::pending::<()>().await;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let who = Who {
        profile: "hq".to_owned(),
        user: "/C=IT/ADMD=NET/PRMD=HQ/S=OPS".to_owned(),
        server: "memory".to_owned(),
    };
    let mut memory = Memory::new(who, utc);
    memory.book = book();
    memory.answer_after.set(Duration::from_millis(option("--answer-after")));
    for number in 1..=option("--messages") {
        let precedence = match number % 97 {
            1 => Precedence::Override,
            2..=4 => Precedence::Flash,
            5..=15 => Precedence::Immediate,
            16..=40 => Precedence::Priority,
            41..=80 => Precedence::Routine,
            _ => Precedence::Deferred,
        };
        let (row, stored) = message(number, precedence, &format!("SITREP {number:03}"));
        memory.deliver(row, stored);
    }
    let memory = Rc::new(memory);
    let palette = Palette::from_environment(|name| std::env::var(name).ok());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stop = disturb(Rc::clone(&memory));
    runtime.block_on(xuxa_tui::run(memory, palette, utc, utc().0, stop))?;
    Ok(())
}
