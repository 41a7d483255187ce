//! Fills a directory with events and measures what writing and finding them takes:
//! `cargo run --release -p tracking --example events -- DIRECTORY [MILLIONS OF EVENTS]`.

use base::{Precedence, Utc};
use std::borrow::Cow;
use std::path::Path;
use std::time::{Duration, Instant};
use tracking::event::Parties;
use tracking::figures::Figures;
use tracking::way::{Wanted, Way, list};
use tracking::writer::Writer;
use tracking::{Event, Reader};

/// Events of a message.
const STEPS: u64 = 5;
/// Users, each the originator and the recipient of equally many messages.
const USERS: u64 = 10_000;
/// Between two messages, in microseconds.
const APART: u64 = 40_000;
/// 2026-01-02T03:04:05Z.
const START: u64 = 1_767_323_045_000_000;

fn identifier(message: u64) -> String {
    format!("[/PRMD=NAPLES/ADMD=NET/C=IT/;MTA-NAPLES.{}.{message}]", message % 7)
}

fn user(number: u64) -> String {
    format!("/c=it/admd=net/prmd=naples/o=headquarters/s=user{}", number % USERS)
}

fn step(message: u64, step: u64) -> Event {
    let kinds = ["received", "held", "transfer_started", "transfer_confirmed", "delivered"];
    let kind = kinds.get(step as usize).copied().unwrap_or("resumed");
    let at = START + message * APART + step * 1_500;
    let parties = (step == 0).then(|| Parties {
        originator: Some(user(message * 31)),
        recipients: vec![user(message * 17), user(message * 13 + 1)],
        count: 2,
        content_id: Some(format!("m{message}")),
        copies: Some(2),
    });
    Event {
        time: Utc(at),
        kind: Cow::Borrowed(kind),
        message: (step != 1).then(|| identifier(message)),
        entry: (step != 0).then(|| message * 2 + step / 4),
        precedence: Precedence::ALL.get(message as usize % 6).copied(),
        peer: Some("act".to_owned()),
        channel: Some("flash".to_owned()),
        association: Some(message % 50),
        bytes: Some(1_000),
        accepted: (step > 2).then_some(Utc(START + message * APART)),
        detail: if step == 2 { "1000 octets of content".to_owned() } else { String::new() },
        parties,
        ..Event::default()
    }
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

/// Median and longest of some questions, each as a process of its own would ask it.
fn ask(name: &str, directory: &Path, question: impl Fn(&Reader, u64) -> usize) {
    let mut times = Vec::new();
    let mut found = 0;
    for n in 0..21 {
        let (answer, took) =
            timed(|| Reader::open(directory).map_or(0, |reader| question(&reader, n * 7_919)));
        times.push(took);
        found += answer;
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let longest = times.last().copied().unwrap_or_default();
    println!("{name:<44} {median:>10.1?} {longest:>10.1?} {found:>8} found");
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let directory = arguments.next().unwrap_or_else(|| "tracked".into());
    let millions = arguments.next().and_then(|n| n.to_str()?.parse::<u64>().ok()).unwrap_or(10);
    let directory = Path::new(&directory);
    let messages = millions * 1_000_000 / STEPS;

    let (filled, took) = timed(|| -> std::io::Result<()> {
        let mut writer = Writer::open(directory, 64 << 30)?;
        for message in 0..messages {
            for number in 0..STEPS {
                writer.append(&step(message, number));
            }
            if message % 1_000 == 0 {
                writer.write().map_err(|(error, _)| error)?;
            }
        }
        writer.write().map_err(|(error, _)| error)?;
        writer.sync()
    });
    filled?;
    let mut octets = 0;
    for entry in std::fs::read_dir(directory)? {
        octets += entry?.metadata()?.len();
    }
    let events = messages * STEPS;
    println!(
        "{events} events in {took:.1?}: {:.2} us each",
        took.as_secs_f64() * 1e6 / events as f64
    );
    println!("{octets} octets: {} each", octets / events);
    println!("{:<44} {:>10} {:>10}", "question", "median", "longest");
    ask("an MTS identifier", directory, |reader, n| {
        Way::read(reader, &identifier(n % messages)).map_or(0, |way| way.steps.len())
    });
    ask("an MTS identifier that is not there", directory, |reader, n| {
        Way::read(reader, &format!("[{n}]")).map_or(0, |way| way.steps.len())
    });
    let by = |wanted: Wanted| {
        move |reader: &Reader, n: u64| {
            let mut wanted = wanted.clone();
            for name in [&mut wanted.originator, &mut wanted.recipient].into_iter().flatten() {
                *name = user(n);
            }
            let found = list(reader, &Wanted { limit: 50, ..wanted });
            found.messages.iter().filter_map(|id| Way::read(reader, id)).count()
        }
    };
    let any = || Some(String::new());
    ask(
        "50 of an originator, each with its outcome",
        directory,
        by(Wanted { originator: any(), ..Wanted::default() }),
    );
    ask(
        "50 to a recipient, each with its outcome",
        directory,
        by(Wanted { recipient: any(), ..Wanted::default() }),
    );
    let middle = Some(Utc(START + messages / 2 * APART));
    ask(
        "50 before a time, each with its outcome",
        directory,
        by(Wanted { until: middle, ..Wanted::default() }),
    );
    ask("an entry", directory, |reader, n| {
        let wanted = Wanted { id: Some(format!("e{}", n % messages * 2)), ..Wanted::default() };
        list(reader, &wanted).messages.len()
    });
    let (figures, took) = timed(|| {
        let reader = Reader::open(directory).ok()?;
        Some(Figures::read(&reader, (Utc(0), Utc(u64::MAX))))
    });
    println!("a report on all {} events: {took:.1?}", figures.map_or(0, |figures| figures.events));
    Ok(())
}
