//! Ways, lists and figures of a small history.

#![expect(clippy::unwrap_used, reason = "a test ends where it fails, in helpers too")]

use base::{Precedence, Utc};
use std::borrow::Cow;
use tracking::event::Parties;
use tracking::figures::Figures;
use tracking::way::{Listed, Wanted, Way, list};
use tracking::writer::Writer;
use tracking::{Event, Reader};

const ID: &str = "[/PRMD=NAPLES/ADMD=NET/C=IT/;MTA-NAPLES.1.42]";
const REPORT: &str = "[/PRMD=ACT/ADMD=NET/C=IT/;MTA-ACT.1.7]";
const OPS: &str = "/c=it/admd=net/prmd=naples/s=ops";

/// 2026-01-02T03:04:05Z.
const START: u64 = 1_767_323_045_000_000;

fn at(ms: u64, kind: &'static str) -> Event {
    let (time, kind) = (Utc(START + ms * 1_000), Cow::Borrowed(kind));
    Event { time, kind, message: Some(ID.to_owned()), ..Event::default() }
}

fn parties(recipients: &[&str], copies: u64) -> Option<Parties> {
    Some(Parties {
        originator: Some(OPS.to_owned()),
        recipients: recipients.iter().map(|r| (*r).to_owned()).collect(),
        count: recipients.len() as u64,
        content_id: Some("m1".to_owned()),
        copies: Some(copies),
    })
}

fn on_act(event: Event, entry: u64) -> Event {
    let (peer, channel) = (Some("act".to_owned()), Some("flash".to_owned()));
    Event { entry: Some(entry), peer, channel, precedence: Some(Precedence::Flash), ..event }
}

/// Two copies: one held, paused, confirmed; one that waits, then expires with a report.
fn history() -> Vec<Event> {
    let accepted = Some(Utc(START));
    let submitted = Event {
        precedence: Some(Precedence::Flash),
        bytes: Some(1_000),
        parties: parties(
            &["/c=it/admd=net/prmd=act/s=ops", "/c=it/admd=net/prmd=rome/s=x\u{1b}[2J"],
            2,
        ),
        ..at(0, "submitted")
    };
    let held = Event {
        message: None,
        detail: "flash e7 is in transfer".to_owned(),
        ..on_act(at(12, "held"), 42)
    };
    let started = Event {
        bytes: Some(1_000),
        detail: "1000 octets of content".to_owned(),
        ..on_act(at(3_200, "transfer_started"), 42)
    };
    let paused = Event { message: None, ..on_act(at(3_300, "paused"), 42) };
    let confirmed =
        Event { bytes: Some(1_000), accepted, ..on_act(at(63_000, "transfer_confirmed"), 42) };
    let lost = Event::lost(Utc(START + 70_000_000), 17);
    let expired = Event {
        entry: Some(43),
        precedence: Some(Precedence::Flash),
        detail: "not passed on to rome in time: 86400 s old".to_owned(),
        accepted,
        ..at(86_400_000, "expired")
    };
    let made = Event {
        related: Some(REPORT.to_owned()),
        detail: format!("{REPORT} for 1 recipient of {ID}"),
        ..at(86_400_000, "report_made")
    };
    let delivered = Event {
        message: Some(REPORT.to_owned()),
        entry: Some(44),
        precedence: Some(Precedence::Flash),
        parties: Some(Parties { recipients: vec![OPS.to_owned()], count: 1, ..Parties::default() }),
        accepted: Some(Utc(START + 86_400_000_000)),
        ..at(86_400_500, "delivered")
    };
    vec![submitted, held, started, paused, confirmed, lost, expired, made, delivered]
}

fn reader(events: &[Event]) -> (tempfile::TempDir, Reader) {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(directory.path(), 1 << 30).unwrap();
    events.iter().for_each(|event| assert!(writer.append(event)));
    drop(writer);
    let reader = Reader::open(directory.path()).unwrap();
    (directory, reader)
}

#[test]
fn a_way_as_text() {
    let (_directory, reader) = reader(&history());
    let text = Way::read(&reader, ID).unwrap().to_text();
    insta::assert_snapshot!(text);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let report = Way::read(&reader, REPORT).unwrap();
    assert_eq!(report.subject.as_deref(), Some(ID));
    assert!(report.to_text().ends_with(&format!("Known here: delivered to {OPS}.\n")));
    let list = Listed::to_text(&[Way::read(&reader, ID).unwrap(), report]);
    insta::assert_snapshot!(list);
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
}

#[test]
fn an_outcome_follows_the_copies() {
    let history = history();
    let outcome = |events: &[Event]| {
        let (_directory, reader) = reader(events);
        Way::read(&reader, ID).unwrap().outcome()
    };
    assert_eq!(outcome(&history[..1]).to_string(), "2 copies wait here");
    let waits = outcome(&history[..4]);
    assert_eq!((waits.waiting, waits.is_known()), (Some(2), false));
    let confirmed = outcome(&history[..5]);
    assert_eq!(confirmed.waiting, Some(1));
    assert_eq!(confirmed.to_string(), "confirmed by act, 1m 03s after it was accepted; waits here");
    assert!(outcome(&history).is_known());
    // What an operator ordered is an end by its name, known to this crate or not.
    let deleted = Event { entry: Some(43), ..at(90_000, "operator_deleted") };
    let ended = outcome(&[&history[..5], &[deleted]].concat());
    assert_eq!(ended.waiting, Some(0));
    assert_eq!(ended.short(), "1 transferred, 1 operator deleted");
    // A report that was made here has no event with which it was accepted.
    let made = Event { entry: Some(60), ..at(1, "transfer_started") };
    let gone = Event { entry: Some(60), ..at(2, "transfer_confirmed") };
    assert_eq!(outcome(std::slice::from_ref(&made)).waiting, Some(1));
    assert_eq!(outcome(&[made, gone]).waiting, Some(0));
    // A rerouted copy is another one: how many wait is known by what they do.
    let rerouted = Event { entry: Some(43), ..at(90_000, "rerouted") };
    let again = on_act(at(95_000, "transfer_started"), 50);
    let again = outcome(&[&history[..5], &[rerouted, again]].concat());
    assert_eq!(again.waiting, Some(1));
    // A list's copy ends with its expansion, and others take its place.
    let one = Some(Parties { copies: Some(1), ..Parties::default() });
    let expanded = Event { entry: Some(43), parties: one, ..at(90_000, "expanded") };
    let member = on_act(at(95_000, "transfer_started"), 50);
    let gone = on_act(at(96_000, "transfer_confirmed"), 50);
    let of = |events: &[Event]| outcome(&[&history[..5], events].concat()).waiting;
    assert_eq!(of(&[expanded.clone(), member.clone()]), Some(1));
    assert_eq!(of(&[expanded.clone(), member, gone]), Some(0));
    assert_eq!(of(&[expanded]), Some(1), "nothing was seen of it yet");
}

/// The events of half a second are gone with a kill, those of a message's beginning among them.
#[test]
fn a_way_without_its_beginning_has_the_gap_before_it() {
    let history = history();
    let gaps = |events: &[Event]| {
        let (_directory, reader) = reader(events);
        let gaps = Way::read(&reader, ID).unwrap().gaps;
        gaps.into_iter().map(|gap| (gap.before, gap.count)).collect::<Vec<_>>()
    };
    let (killed, earlier) = (Event::lost(Utc(START), 0), Event::lost(Utc(START - 9), 3));
    let rest = &history[2..5];
    assert_eq!(gaps(&[&[earlier.clone(), killed.clone()], rest].concat()), [(Utc(START), 0)]);
    assert_eq!(gaps(&[&[earlier, killed], &history[..5]].concat()), []);
}

#[test]
fn messages_are_found_by_what_people_know() {
    let (_directory, reader) = reader(&history());
    let find = |wanted: Wanted| list(&reader, &Wanted { limit: 10, ..wanted }).messages;
    for id in [ID, "m1", "e42", "e43"] {
        assert_eq!(find(Wanted { id: Some(id.to_owned()), ..Wanted::default() }), [ID], "{id}");
    }
    let by_originator =
        |originator: &str| Wanted { originator: Some(originator.to_owned()), ..Wanted::default() };
    assert_eq!(find(by_originator(OPS)), [ID]);
    assert!(find(by_originator("/c=it/s=nobody")).is_empty());
    let to_ops = Wanted { recipient: Some(OPS.to_owned()), ..Wanted::default() };
    assert_eq!(find(to_ops), [REPORT], "as it was delivered");
    let late = Wanted { since: Some(Utc(START + 1)), ..by_originator(OPS) };
    assert!(find(late).is_empty());
    assert_eq!(find(Wanted::default()), [ID], "all that were accepted");
}

#[test]
fn figures_of_a_time() {
    let (_directory, reader) = reader(&history());
    let figures = Figures::read(&reader, (Utc(0), Utc(u64::MAX)));
    insta::assert_snapshot!(figures.to_text());
    assert_eq!((figures.events, figures.lost), (9, 17));
    let act = figures.rows.iter().find(|row| row.peer == "act").unwrap();
    let took = act.took.unwrap();
    // Two significant digits.
    assert!((63_000_000..64_000_000).contains(&took.p50_us), "{took:?}");
    assert!((3_188_000..3_220_000).contains(&act.held.unwrap().p99_us));
    assert_eq!(figures.over_time.iter().sum::<u64>(), 2);
    let later = Figures::read(&reader, (Utc(START + 80_000_000_000), Utc(u64::MAX)));
    assert_eq!(later.rows.iter().map(|row| row.expired).sum::<u64>(), 1);
    assert!(later.rows.iter().all(|row| row.accepted == 0));
}

#[test]
fn a_page_shows_names_and_obeys_none() {
    let evil = "</title><script>alert(1)</script>\u{202e}";
    let mut events = history();
    events[4].peer = Some(evil.to_owned());
    let (_directory, reader) = reader(&events);
    let page = Figures::read(&reader, (Utc(0), Utc(u64::MAX))).to_html(evil);
    assert!(!page.contains("<script>") && !page.contains('\u{202e}'), "{page}");
    assert!(page.contains("&lt;script&gt;"));
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(!page.contains("http") && !page.contains("src="), "it needs nothing else");
    let empty = Figures::read(&reader, (Utc(1), Utc(2))).to_html("MTA-A");
    assert!(empty.contains("Nothing was passed on"));
}
