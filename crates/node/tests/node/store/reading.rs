//! list, summarize, fetch and delete, by one client and by several at once.

use super::{LISTED, NEW, PROCESSED, items, send};
use base::{AssociationId, Precedence};
use node::Input;
use node::event::Kind;
use p7::operation::{DELETE, DeleteArgument, DeleteItems};
use p7::{Range, Selector};
use std::time::Duration;
use testkit::bench::{ClientAnswer, Outcome, message_store};
use testkit::build::content;
use testkit::{Bench, Events, Paced};

const LONG: usize = 10_000_000;

/// OPS and LOG are bound, and OPS has these contents in his mailbox.
fn with(contents: &[Vec<u8>]) -> (Bench, AssociationId, AssociationId) {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    for octets in contents {
        send(&mut bench, log, Precedence::Routine, octets);
    }
    (bench, ops, log)
}

/// Another association of OPS, over a line of this rate.
fn over_a_line(bench: &mut Bench, bit_s: u64) -> AssociationId {
    bench.wire = Box::new(move || Box::new(Paced::new(bit_s)));
    let id = bench.reader("OPS");
    bench.wire = Box::new(|| Box::<testkit::Direct>::default());
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.outcome(id), Outcome::Open);
    id
}

#[test]
fn an_item_is_new_then_listed_then_processed_then_gone() {
    let (mut bench, ops, _) = with(&[content(1, 500), Vec::new(), content(3, 40_000)]);
    assert_eq!(bench.summarized(ops), 3);
    assert_eq!(bench.states(ops), [(1, NEW), (2, NEW), (3, NEW)]);
    for (number, octets) in [(1, content(1, 500)), (2, Vec::new()), (3, content(3, 40_000))] {
        let invoke = bench.fetch(ops, number);
        assert_eq!(bench.fetched(ops, invoke), Some(octets));
    }
    assert_eq!(bench.states(ops), [(1, PROCESSED), (2, PROCESSED), (3, PROCESSED)]);
    let invoke = bench.delete(ops, &[1, 3]);
    assert_eq!(bench.answer_to(ops, invoke), Some(ClientAnswer::Result));
    assert_eq!(bench.states(ops), [(2, PROCESSED)]);
    let invoke = bench.fetch(ops, 1);
    assert_eq!(bench.answer_to(ops, invoke), Some(ClientAnswer::Error(28)));
    assert_eq!((items(&bench), bench.store.bodies.len()), (1, 1));
}

#[test]
fn nobody_sees_the_mailbox_of_another() {
    let (mut bench, ops, log) = with(&[content(1, 500)]);
    let invoke = bench.fetch(log, 1);
    assert_eq!(bench.answer_to(log, invoke), Some(ClientAnswer::Error(28)));
    let invoke = bench.delete(log, &[1]);
    assert_eq!(bench.answer_to(log, invoke), Some(ClientAnswer::Error(28)));
    assert_eq!((bench.summarized(log), bench.summarized(ops)), (0, 1));
}

#[test]
fn two_clients_of_one_mailbox_see_what_the_other_did() {
    let (mut bench, one, log) = with(&[content(1, 500), content(2, 500)]);
    let two = bench.reader("OPS");
    let invoke = bench.fetch(one, 1);
    assert!(bench.fetched(one, invoke).is_some());
    assert_eq!(bench.states(two), [(1, PROCESSED), (2, NEW)]);
    assert_eq!(bench.states(one), [(1, PROCESSED), (2, LISTED)]);
    bench.delete(two, &[2]);
    let invoke = bench.delete(one, &[2]);
    assert_eq!(bench.answer_to(one, invoke), Some(ClientAnswer::Error(28)), "it is gone");
    send(&mut bench, log, Precedence::Routine, b"more");
    assert_eq!(bench.states(one), [(1, PROCESSED), (3, NEW)], "a number is given once");
    bench.close(one);
    assert_eq!(bench.summarized(two), 2);
}

#[test]
fn a_slow_reader_of_a_long_content_keeps_nobody_waiting() {
    let (mut bench, quick, log) = with(&[content(1, LONG), content(2, 500)]);
    let slow = over_a_line(&mut bench, 1_000_000);
    let fetch = bench.fetch(slow, 1);
    for n in 3..=9 {
        bench.pass(Duration::from_secs(8));
        assert_eq!(bench.fetched(slow, fetch), None, "it takes 80 seconds");
        send(&mut bench, log, Precedence::Flash, b"meanwhile");
        assert_eq!(bench.states(quick).len(), n, "the other client is answered at once");
        let read = bench.store.octets_read;
        assert!(read < n as u64 * 1_100_000, "{read} octets are read beforehand");
    }
    let invoke = bench.fetch(quick, 2);
    assert_eq!(bench.fetched(quick, invoke), Some(content(2, 500)));
    bench.pass(Duration::from_secs(40));
    assert_eq!(bench.fetched(slow, fetch), Some(content(1, LONG)));
    assert_eq!(bench.outcome(slow), Outcome::Open);
}

/// Nothing worse happens than that the association which fetches is aborted.
#[test]
fn a_delete_during_the_fetch_of_the_same_item_ends_at_most_that_fetch() {
    let (mut bench, quick, log) = with(&[content(1, LONG), content(2, 500)]);
    let slow = over_a_line(&mut bench, 1_000_000);
    let fetch = bench.fetch(slow, 1);
    bench.pass(Duration::from_secs(10));
    let delete = bench.delete(quick, &[1]);
    assert_eq!(bench.answer_to(quick, delete), Some(ClientAnswer::Result));
    assert_eq!(bench.states(quick), [(2, NEW)]);
    bench.pass(Duration::from_secs(120));
    if let Some(octets) = bench.fetched(slow, fetch) {
        assert_eq!(octets, content(1, LONG), "no other octets");
    }
    let invoke = bench.fetch(quick, 2);
    assert_eq!(bench.fetched(quick, invoke), Some(content(2, 500)));
    send(&mut bench, log, Precedence::Flash, b"more");
    assert_eq!(bench.summarized(quick), 2);
    bench.pass(Duration::from_hours(1));
    assert_eq!(bench.store.bodies.len(), 2, "the content is gone in the end");
}

#[test]
fn a_client_that_is_lost_in_the_middle_of_a_fetch_fetches_again() {
    for stop in [Duration::from_secs(1), Duration::from_secs(30)] {
        let (mut bench, _, log) = with(&[content(1, LONG)]);
        let slow = over_a_line(&mut bench, 1_000_000);
        let fetch = bench.fetch(slow, 1);
        bench.pass(stop);
        bench.close(slow);
        bench.pass(Duration::from_secs(60));
        assert_eq!(bench.fetched(slow, fetch), None);
        let again = bench.reader("OPS");
        assert_eq!(bench.states(again), [(1, PROCESSED)], "the fetch was performed");
        let invoke = bench.fetch(again, 1);
        assert_eq!(bench.fetched(again, invoke), Some(content(1, LONG)));
        assert_eq!(bench.states(again), [(1, PROCESSED)]);
        send(&mut bench, log, Precedence::Routine, b"more");
        assert_eq!(bench.states(again), [(1, PROCESSED), (2, NEW)]);
    }
}

/// The commit that makes it processed is lost with the machine: the status stays what it was.
#[test]
fn a_status_whose_commit_fails_stays_and_the_fetch_is_answered() {
    let (mut bench, ops, _) = with(&[content(1, 500)]);
    bench.store.full = true;
    let invoke = bench.fetch(ops, 1);
    assert_eq!(bench.fetched(ops, invoke), Some(content(1, 500)));
    bench.store.full = false;
    assert_eq!(bench.states(ops), [(1, NEW)]);
    assert_eq!(bench.states(ops), [(1, LISTED)]);
}

#[test]
fn a_delete_that_cannot_be_committed_deletes_nothing() {
    let (mut bench, ops, _) = with(&[content(1, 500), content(2, 500)]);
    bench.store.full = true;
    let invoke = bench.delete(ops, &[1, 2]);
    assert!(matches!(bench.answer_to(ops, invoke), Some(ClientAnswer::Error(_))));
    bench.store.full = false;
    assert_eq!(bench.summarized(ops), 2);
    let invoke = bench.fetch(ops, 2);
    assert_eq!(bench.fetched(ops, invoke), Some(content(2, 500)));
}

/// A range that is not understood does not select everything.
#[test]
fn a_delete_until_what_is_no_time_deletes_nothing() {
    let (mut bench, ops, _) = with(&[content(1, 500)]);
    for raw in [&b"260231000000Z"[..], b"", b"yesterday"] {
        let time = || Some(p1::time::Time { raw: bytes::Bytes::copy_from_slice(raw), utc: None });
        for (from, to) in [(None, time()), (time(), None), (time(), time())] {
            let range = Some(Range::CreationTime { from, to });
            let items = DeleteItems::Selector(Selector { range, ..Selector::default() });
            let argument = DeleteArgument { items, ..DeleteArgument::new(Vec::new()) };
            let invoke = bench.retrieve(ops, DELETE, |w| argument.write(w));
            assert_eq!(bench.answer_to(ops, invoke), Some(ClientAnswer::Error(29)));
        }
    }
    assert_eq!(bench.summarized(ops), 1);
}

#[test]
fn a_damaged_content_ends_the_association_that_fetches_it_and_no_other() {
    let (mut bench, ops, log) = with(&[content(1, 50_000)]);
    let other = bench.reader("OPS");
    bench.store.all_damaged = true;
    let invoke = bench.fetch(ops, 1);
    assert_eq!(bench.fetched(ops, invoke), None);
    assert!(matches!(bench.outcome(ops), Outcome::Aborted(_)), "{:?}", bench.outcome(ops));
    assert!(bench.details(Kind::StoreFailed)[0].contains("a damaged content"));
    assert_eq!((bench.summarized(other), bench.summarized(log)), (1, 0));
}

#[test]
fn what_was_delivered_is_there_after_a_crash_and_numbers_go_on() {
    let (mut bench, ops, _) = with(&[content(1, 500), content(2, 500)]);
    bench.delete(ops, &[2]);
    let mut rng = base::rng::Rng::new(1);
    bench.store.crash(0, &mut rng);
    let mut after = message_store(|config| config.epoch = 2);
    after.store = std::mem::take(&mut bench.store);
    after.renew();
    let recovered: Vec<Input> = after.store.recovered();
    for input in recovered {
        after.feed(input);
    }
    let (ops, log) = (after.reader("OPS"), after.reader("LOG"));
    assert_eq!(after.states(ops), [(1, NEW)]);
    send(&mut after, log, Precedence::Routine, b"more");
    assert_eq!(after.states(ops), [(1, LISTED), (3, NEW)]);
}
