//! A full mailbox: what is held, what is tried again, what is reported.

use super::{items, queued, send};
use base::ber::Element;
use base::{AssociationId, Precedence};
use node::event::Kind;
use p1::ReportType;
use p1::p3::ReportDelivery;
use p1::reason::{Diagnostic, NonDeliveryReason};
use p7::operation::{FETCH, FetchArgument, FetchResult};
use p7::{AttributeSelection, SequenceNumber, attributes};
use std::time::Duration;
use testkit::bench::{ClientAnswer, message_store};
use testkit::build::content;
use testkit::{Bench, Events};

const HOUR: Duration = Duration::from_hours(1);

/// OPS and LOG are bound. A mailbox may have so many items, some of which are kept for higher precedences.
fn bounded(items: u64, reserve: u8) -> (Bench, AssociationId, AssociationId) {
    let mut bench = message_store(|config| {
        config.store.settings.quota.items = Some(items);
        config.store.settings.quota.reserve = reserve;
        config.store.full = 2 * HOUR;
    });
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    (bench, ops, log)
}

/// What is logged of copies that found no room.
fn held(bench: &Bench) -> usize {
    bench.details(Kind::DeliveryFailed).iter().filter(|d| d.starts_with("held, no room")).count()
}

#[test]
fn lower_precedences_are_held_first() {
    let (mut bench, ops, log) = bounded(10, 50);
    for (precedence, fit) in Precedence::ALL.into_iter().zip([5, 6, 7, 8, 9, 10]) {
        for _ in 0..10 {
            send(&mut bench, log, precedence, b"content");
        }
        assert_eq!(bench.summarized(ops), fit, "{precedence}");
    }
    assert_eq!((queued(&bench), held(&bench)), (50, 50));
    // Half an hour of tries: each is logged once.
    bench.pass(HOUR / 2);
    assert_eq!((queued(&bench), held(&bench), bench.summarized(ops)), (50, 50, 10));
    assert_eq!(bench.count(Kind::Delivered), 10);
}

#[test]
fn what_finds_no_room_in_the_configured_time_is_reported() {
    let (mut bench, ops, log) = bounded(2, 0);
    for _ in 0..3 {
        send(&mut bench, log, Precedence::Routine, b"content");
    }
    bench.pass(2 * HOUR - Duration::from_secs(1));
    assert_eq!((queued(&bench), bench.summarized(log)), (1, 0));
    bench.pass(Duration::from_secs(3));
    assert_eq!((queued(&bench), bench.summarized(log)), (0, 1), "LOG has the report");
    let failed = bench.details(Kind::DeliveryFailed);
    assert!(
        failed.iter().any(|d| d.starts_with("for good: the mailbox has 2 items")),
        "{failed:?}"
    );
    let selected = vec![AttributeSelection::new(attributes::REPORT_DELIVERY_ENVELOPE.oid())];
    let argument = FetchArgument::precise(SequenceNumber(1), selected);
    let invoke = bench.retrieve(log, FETCH, |w| argument.write(w));
    let octets = bench.result_of(log, invoke).expect("a result");
    let fetched = FetchResult::read(&Element::parse(octets).expect("BER")).expect("a fetch");
    let entry = fetched.entry_information.expect("an entry");
    let report = entry.attributes[0].values[0].element().expect("BER");
    let report = ReportDelivery::read(&report).expect("a report");
    let (reason, diagnostic) =
        (NonDeliveryReason::UNABLE_TO_TRANSFER, Some(Diagnostic::RECIPIENT_UNAVAILABLE));
    assert_eq!(report.recipients[0].report, ReportType::NonDelivery { reason, diagnostic });
    assert_eq!(bench.summarized(ops), 2);
    assert_eq!((bench.store.bodies.len(), items(&bench)), (2, 3), "a report has no content");
}

#[test]
fn what_can_never_fit_is_reported_at_once() {
    let (mut bench, ops, log) = bounded(10, 0);
    bench.reload(|config| config.store.settings.quota.octets = Some(50_000));
    send(&mut bench, log, Precedence::Override, &content(1, 60_000));
    assert_eq!((bench.summarized(ops), queued(&bench), bench.summarized(log)), (0, 0, 1));
    send(&mut bench, log, Precedence::Routine, &content(1, 30_000));
    assert_eq!(bench.summarized(ops), 1);
}

#[test]
fn a_deletion_lets_the_highest_in_at_once() {
    let (mut bench, ops, log) = bounded(2, 0);
    for _ in 0..2 {
        send(&mut bench, log, Precedence::Routine, b"first");
    }
    send(&mut bench, log, Precedence::Deferred, b"deferred");
    send(&mut bench, log, Precedence::Flash, b"flash");
    send(&mut bench, log, Precedence::Routine, b"routine");
    assert_eq!(queued(&bench), 3);
    for (deleted, new, expected) in [(1, 3, &b"flash"[..]), (2, 4, b"routine"), (3, 5, b"deferred")]
    {
        let delete = bench.delete(ops, &[deleted]);
        assert_eq!(bench.answer_to(ops, delete), Some(ClientAnswer::Result));
        let invoke = bench.fetch(ops, new);
        assert_eq!(bench.fetched(ops, invoke).as_deref(), Some(expected));
    }
    assert_eq!(queued(&bench), 0);
}

/// Sixteen are tried at a time; each that is stored lets the next ones try.
#[test]
fn more_than_are_tried_at_once_go_in_without_a_wait() {
    for (room, most) in [(60, 60), (40, 40), (17, 17), (1, 1)] {
        let (mut bench, ops, log) = bounded(80, 0);
        for n in 0..140 {
            let precedence = Precedence::ALL[n % 6];
            send(&mut bench, log, precedence, &content(n, 100));
        }
        assert_eq!((queued(&bench), bench.summarized(ops)), (60, 80));
        let numbers: Vec<u32> = (1..=room).collect();
        bench.delete(ops, &numbers);
        assert_eq!((queued(&bench), bench.summarized(ops)), (60 - most, 80), "{room}");
        assert_eq!(bench.now, base::Instant(0), "no time passes");
        // The rest of the sixteen, and all others, are tried later.
        let rest: Vec<u32> = (room + 1..=80).collect();
        bench.delete(ops, &rest);
        assert_eq!((queued(&bench), bench.summarized(ops)), (0, i64::from(140 - 80)));
    }
}

#[test]
fn a_larger_quota_lets_all_in_at_once() {
    let (mut bench, ops, log) = bounded(5, 0);
    for n in 0..60 {
        send(&mut bench, log, Precedence::Routine, &content(n, 100));
    }
    assert_eq!(queued(&bench), 55);
    bench.reload(|config| config.store.settings.quota.items = Some(1_000));
    assert_eq!((queued(&bench), bench.summarized(ops)), (0, 60));
    let invoke = bench.fetch(ops, 60);
    assert!(bench.fetched(ops, invoke).is_some());
}

#[test]
fn one_full_mailbox_holds_nothing_for_others() {
    let (mut bench, ops, log) = bounded(1, 0);
    for _ in 0..3 {
        send(&mut bench, log, Precedence::Routine, b"content");
    }
    let invoke = bench.submit_whole(
        log,
        &testkit::bench::envelope("LOG", &["OPS", "LOG"], Precedence::Routine),
        b"for both",
    );
    assert_eq!(bench.answer_to(log, invoke), Some(ClientAnswer::Result));
    assert_eq!((bench.summarized(ops), bench.summarized(log), queued(&bench)), (1, 1, 3));
    // The content that both share is there for who waits.
    let delete = bench.delete(log, &[1]);
    assert_eq!(bench.answer_to(log, delete), Some(ClientAnswer::Result));
    for number in 1..=3 {
        bench.delete(ops, &[number]);
    }
    let invoke = bench.fetch(ops, 4);
    assert_eq!(bench.fetched(ops, invoke).as_deref(), Some(&b"for both"[..]));
    assert_eq!(bench.store.bodies.len(), 1);
}

/// While the wall clock may be wrong, nothing is given up by it.
#[test]
fn what_was_held_is_held_over_a_restart() {
    let (mut bench, _, log) = bounded(1, 0);
    for _ in 0..20 {
        send(&mut bench, log, Precedence::Routine, b"content");
    }
    let mut after = message_store(|config| {
        config.epoch = 2;
        config.store.settings.quota.items = Some(1);
        config.store.full = 2 * HOUR;
    });
    let mut rng = base::rng::Rng::new(1);
    bench.store.crash(0, &mut rng);
    after.store = std::mem::take(&mut bench.store);
    after.renew();
    for input in after.store.recovered() {
        after.feed(input);
    }
    let (ops, log) = (after.reader("OPS"), after.reader("LOG"));
    assert_eq!((after.summarized(ops), queued(&after)), (1, 19));
    after.delete(ops, &[1]);
    assert_eq!((after.summarized(ops), queued(&after)), (1, 18));
    assert_eq!(after.summarized(log), 0);
}
