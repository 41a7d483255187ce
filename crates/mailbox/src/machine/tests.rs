//! Numbers of mailboxes that two nodes give at the same time.

use super::*;
use crate::query::Access;
use base::{Instant, Utc};
use engine::journal::Op;

/// Two addresses with one number.
const FIRST: &str = "/c=it/admd=net/s=u23966";
const SECOND: &str = "/c=it/admd=net/s=u56218";
const OTHER: &str = "/c=it/admd=net/s=anna";

fn now() -> Now {
    Now { mono: Instant(0), utc: Utc(0) }
}

fn node() -> Mailboxes {
    let mut machine = Mailboxes::default();
    machine.share();
    machine
}

/// Binds a user; the commit of the number.
fn bind(machine: &mut Mailboxes, session: u64, address: &str) -> (Ticket, Op) {
    machine.bind(now(), AssociationId(session), address, Access::default());
    commit(machine).unwrap()
}

fn commit(machine: &mut Mailboxes) -> Option<(Ticket, Op)> {
    std::iter::from_fn(|| machine.poll()).find_map(|output| match output {
        Output::Commit { ticket, mut batch, .. } => batch.pop().map(|op| (ticket, op)),
        _ => None,
    })
}

fn value(op: &Op) -> Bytes {
    match op {
        Op::ReplaceMeta { value, .. } => value.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_number_that_another_node_has_given_meanwhile_stays() {
    let (mut one, mut two) = (node(), node());
    let (_, first) = bind(&mut one, 1, FIRST);
    let (ticket, second) = bind(&mut two, 2, OTHER);
    let over = |op: &Op| match op {
        Op::ReplaceMeta { over, .. } => *over,
        other => panic!("{other:?}"),
    };
    assert_eq!(over(&first), over(&second), "both replace what was there");
    // The first is durable; the second is refused, learns of it, and writes both.
    two.recovered(&value(&first)).unwrap();
    two.changed(now(), ticket);
    let (ticket, both) = commit(&mut two).unwrap();
    two.committed(now(), ticket, Ok(()));
    let mut later = node();
    later.recovered(&value(&both)).unwrap();
    assert!(later.number(FIRST).is_some() && later.number(OTHER).is_some());
    assert!(
        std::iter::from_fn(|| two.poll()).any(|o| matches!(o, Output::Read { .. })),
        "it opens"
    );
}

#[test]
fn an_address_does_not_get_the_number_of_another_one() {
    assert_eq!(shared_number(FIRST), shared_number(SECOND));
    let (mut one, mut two) = (node(), node());
    let (_, first) = bind(&mut one, 1, FIRST);
    let (ticket, _) = bind(&mut two, 2, SECOND);
    two.recovered(&value(&first)).unwrap();
    two.changed(now(), ticket);
    let refused =
        |output: Output| matches!(output, Output::NotBound { why, .. } if why.contains("number"));
    assert!(std::iter::from_fn(|| two.poll()).any(refused));
    let (_, again) = bind(&mut two, 3, SECOND);
    let mut later = node();
    later.recovered(&value(&again)).unwrap();
    assert_ne!(later.number(FIRST), later.number(SECOND));
}

#[test]
fn what_was_not_written_is_not_what_the_next_write_replaces() {
    let mut one = node();
    let over = |op: Op| match op {
        Op::ReplaceMeta { over, .. } => over,
        other => panic!("{other:?}"),
    };
    let (ticket, first) = bind(&mut one, 1, FIRST);
    one.committed(now(), ticket, Err("the database is away".to_owned()));
    let (_, again) = bind(&mut one, 2, FIRST);
    assert_eq!(over(first), over(again), "the store has nothing yet");
}
