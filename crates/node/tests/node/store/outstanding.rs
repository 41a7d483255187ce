//! What one association may have in progress: operations, arguments, and results that wait for a slow reader.

use super::{PROCESSED, send};
use base::{AssociationId, Precedence};
use node::Input;
use p7::operation::SUMMARIZE;
use std::time::Duration;
use testkit::bench::{ClientAnswer, Outcome, message_store};
use testkit::build::content;
use testkit::{Bench, Paced};

const LONG: usize = 1_000_000;

/// OPS over a line of 100 kbit/s, LOG, and a long content in the mailbox of OPS.
fn slow() -> (Bench, AssociationId, AssociationId) {
    let mut bench = message_store(|_| {});
    bench.wire = Box::new(|| Box::new(Paced::new(100_000)));
    let ops = bench.reader("OPS");
    bench.wire = Box::new(|| Box::<testkit::Direct>::default());
    let log = bench.reader("LOG");
    send(&mut bench, log, Precedence::Routine, &content(1, LONG));
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.outcome(ops), Outcome::Open);
    (bench, ops, log)
}

fn count(bench: &Bench, id: AssociationId, invokes: &[i64], answer: ClientAnswer) -> usize {
    invokes.iter().filter(|invoke| bench.answer_to(id, **invoke) == Some(answer)).count()
}

#[test]
fn eight_operations_wait_for_the_store_and_the_ninth_is_rejected() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    send(&mut bench, log, Precedence::Routine, b"one");
    bench.store.withholds = true;
    // The first list makes the item listed, and waits for that.
    let invokes: Vec<i64> = (0..12).map(|_| bench.list(ops)).collect();
    assert_eq!(count(&bench, ops, &invokes[..8], ClientAnswer::Reject), 0);
    assert_eq!(count(&bench, ops, &invokes[8..], ClientAnswer::Reject), 4);
    assert_eq!(bench.summarized(log), 0, "LOG has operations of his own");
    bench.store.withholds = false;
    while let Some(commit) = bench.store.take_commit() {
        bench.finish_commit(commit, Ok(()));
    }
    assert_eq!(count(&bench, ops, &invokes, ClientAnswer::Result), 8);
    assert_eq!(bench.summarized(ops), 1, "there is room again");
}

/// Else a client that does not read has as many results of up to 4 MiB in memory as it asks for.
#[test]
fn results_that_wait_behind_a_fetch_count_as_outstanding() {
    let (mut bench, ops, log) = slow();
    let fetch = bench.fetch(ops, 1);
    bench.pass(Duration::from_secs(5));
    let invokes: Vec<i64> = (0..20).map(|_| bench.list(ops)).collect();
    bench.pass(Duration::from_secs(5));
    send(&mut bench, log, Precedence::Flash, b"meanwhile");
    bench.pass(Duration::from_secs(100));
    assert_eq!(bench.fetched(ops, fetch), Some(content(1, LONG)));
    assert_eq!(count(&bench, ops, &invokes, ClientAnswer::Result), 7);
    assert_eq!(count(&bench, ops, &invokes, ClientAnswer::Reject), 13);
    assert_eq!(bench.listed(ops, invokes[6])[0], (1, PROCESSED));
    let invoke = bench.list(ops);
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.answer_to(ops, invoke), Some(ClientAnswer::Result), "there is room again");
}

/// Its end has the connection; nothing else of the mailbox waits for it.
#[test]
fn a_reader_that_stops_in_the_middle_of_a_fetch_is_aborted_in_the_end() {
    let mut bench = message_store(|_| {});
    bench.wire = Box::new(|| Box::new(Paced::that_stops(1_000_000, 200_000, 0)));
    let ops = bench.reader("OPS");
    bench.wire = Box::new(|| Box::<testkit::Direct>::default());
    let (also, log) = (bench.reader("OPS"), bench.reader("LOG"));
    send(&mut bench, log, Precedence::Routine, &content(1, LONG));
    bench.pass(Duration::from_secs(10));
    let fetch = bench.fetch(ops, 1);
    bench.pass(Duration::from_secs(590));
    assert_eq!(bench.summarized(also), 1);
    bench.pass(Duration::from_secs(100));
    assert_eq!(bench.fetched(ops, fetch), None);
    assert!(!bench.is_connected(ops), "{:?}", bench.outcome(ops));
    assert_eq!(bench.states(also), [(1, PROCESSED)]);
}

#[test]
fn an_unbind_in_the_middle_of_a_fetch_ends_both() {
    let (mut bench, ops, log) = slow();
    let also = bench.reader("OPS");
    let fetch = bench.fetch(ops, 1);
    bench.list(ops);
    bench.pass(Duration::from_secs(5));
    bench.request(ops, osi::api::Request::Release);
    let read = bench.store.octets_read;
    bench.pass(Duration::from_secs(200));
    assert_eq!(bench.fetched(ops, fetch), None);
    assert!(!bench.is_connected(ops));
    let more = bench.store.octets_read - read;
    assert!(more < 200_000, "{more} octets are read for nobody");
    assert_eq!(bench.states(also), [(1, PROCESSED)]);
    send(&mut bench, log, Precedence::Routine, b"more");
    assert_eq!(bench.summarized(also), 2);
    assert_eq!(bench.node.holds().associations, 2);
}

#[test]
fn fetches_wait_for_each_other_and_each_has_its_own_content() {
    let (mut bench, ops, log) = slow();
    for n in 2..=4 {
        send(&mut bench, log, Precedence::Routine, &content(n, 20_000 * n));
    }
    let invokes = [2, 1, 4, 3].map(|number| (number, bench.fetch(ops, number)));
    let submission = testkit::bench::envelope("OPS", &["LOG"], Precedence::Routine);
    let submitted = bench.submit_whole(ops, &submission, b"between fetches");
    bench.pass(Duration::from_secs(150));
    for (number, invoke) in invokes {
        let length = if number == 1 { LONG } else { 20_000 * number as usize };
        let octets = bench.fetched(ops, invoke);
        assert!(octets == Some(content(number as usize, length)), "{number}");
    }
    assert_eq!(bench.answer_to(ops, submitted), Some(ClientAnswer::Result));
    assert_eq!(bench.summarized(log), 1);
}

#[test]
fn an_argument_that_never_ends_ends_its_association() {
    let mut bench = message_store(|_| {});
    let (ops, log) = (bench.reader("OPS"), bench.reader("LOG"));
    let also = bench.reader("OPS");
    bench.withheld.insert(ops, Vec::new());
    bench.list(ops);
    let mut octets = bench.withheld.remove(&ops).expect("octets");
    // A DT without the end of its TSDU, and without its last octets.
    octets.truncate(octets.len() - 5);
    let length = u16::try_from(octets.len()).expect("a short TPKT").to_be_bytes();
    octets[2..4].copy_from_slice(&length);
    octets[6] = 0;
    bench.send(ops, &octets);
    bench.pass(Duration::from_secs(119));
    assert_eq!(bench.outcome(ops), Outcome::Open);
    bench.pass(Duration::from_secs(2));
    assert!(matches!(bench.outcome(ops), Outcome::Aborted(_)), "{:?}", bench.outcome(ops));
    send(&mut bench, log, Precedence::Routine, b"one");
    assert_eq!(bench.summarized(also), 1);
    assert_eq!(bench.node.holds().arrivals, 0);
}

#[test]
fn an_argument_that_comes_an_octet_at_a_time_is_not_awaited_longer() {
    let mut bench = message_store(|_| {});
    let ops = bench.reader("OPS");
    bench.withheld.insert(ops, Vec::new());
    bench.retrieve(ops, SUMMARIZE, |w| {
        w.constructed(base::ber::universal::SET, |w| w.raw(&[0xa9; 2].map(|_| 0).repeat(50)));
    });
    let octets = bench.withheld.remove(&ops).expect("octets");
    for octet in octets {
        if matches!(bench.outcome(ops), Outcome::Aborted(_)) {
            break;
        }
        let bytes = bytes::Bytes::copy_from_slice(&[octet]);
        bench.feed(Input::Bytes { association: ops, bytes });
        bench.pass(Duration::from_secs(5));
    }
    assert!(matches!(bench.outcome(ops), Outcome::Aborted(_)));
}
