//! Memory that a queued message takes, in scheduler and node together: a node starts with a hundred
//! thousand of them in its store. `cargo test -p node --test memory -- --nocapture` prints the
//! result.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use base::{BodyId, EntryId, Instant, Now, Utc};
use engine::NextHop;
use node::{Input, Node};
use testkit::bench::queued_record;
use testkit::{NAPLES, five_channels, node_config};

const MESSAGES: u64 = 100_000;
/// Limit for each message, in octets.
const MAX: u64 = 250;

/// Octets of memory that this process has.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

#[test]
fn a_queued_message_takes_at_most_250_octets() {
    let mut record = queued_record();
    assert!(matches!(record.next_hop, NextHop::Peer(_)));
    let config = node_config(NAPLES, five_channels);
    let mut node = Node::new(config);
    let now = Now { mono: Instant(MESSAGES), utc: Utc(record.accepted.0 + MESSAGES) };
    let before = resident();
    for n in 0..MESSAGES {
        record.accepted = Utc(record.first_arrival.0 + n);
        record.body = Some(BodyId(n * 7));
        let (precedence, id) = (record.precedence, EntryId(n * 3));
        node.handle(now, Input::Recovered { precedence, id, record: record.encode() });
        assert!(node.poll().is_none());
    }
    let each = (resident() - before) / MESSAGES;
    println!("{each} octets of memory for each of {MESSAGES} queued messages (at most {MAX})");
    let queued = node
        .status(now)
        .peers
        .iter()
        .flat_map(|p| &p.channels)
        .flat_map(|c| &c.queued)
        .map(|(_, n)| n)
        .sum::<u64>();
    assert_eq!(queued, MESSAGES);
    assert!(each <= MAX, "{each} octets each, more than {MAX}");
}
