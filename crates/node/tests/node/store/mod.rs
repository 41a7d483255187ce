//! Users of the message store over P7, in virtual time.

use base::{AssociationId, Precedence};
use testkit::Bench;
use testkit::bench::{ClientAnswer, envelope};

mod alerts;
mod binding;
mod changing;
mod delivering;
mod forwarding;
mod full;
mod outstanding;
mod reading;
mod submitting;

/// The status of an item.
const NEW: i64 = 0;
const LISTED: i64 = 1;
const PROCESSED: i64 = 2;

/// LOG submits a message to OPS, on this association of his.
fn send(bench: &mut Bench, log: AssociationId, precedence: Precedence, content: &[u8]) {
    send_to(bench, log, "OPS", precedence, content);
}

/// LOG submits a message to somebody.
fn send_to(
    bench: &mut Bench,
    log: AssociationId,
    to: &str,
    precedence: Precedence,
    content: &[u8],
) {
    let invoke = bench.submit_whole(log, &envelope("LOG", &[to], precedence), content);
    assert_eq!(bench.answer_to(log, invoke), Some(ClientAnswer::Result));
}

/// The number of entries in the queue.
fn queued(bench: &Bench) -> usize {
    let ids = bench.store.entries.keys();
    ids.filter(|(_, id)| engine::journal::ItemId::of_entry(*id).is_none()).count()
}

/// The number of items in all mailboxes.
fn items(bench: &Bench) -> usize {
    bench.store.entries.len() - queued(bench)
}
