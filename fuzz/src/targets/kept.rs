//! What a node that starts finds of transfers that an earlier run left: it takes them up or gives them up,
//! and starts.
#![expect(clippy::indexing_slicing, reason = "a pair of sites has both")]

use base::{Instant, Now, Precedence, Utc};
use bytes::Bytes;
use engine::journal::SpoolId;
use node::config::NodeConfig;
use node::{Input, Node, Output};
use p1::flags::ReportRequest;
use std::sync::OnceLock;
use std::time::Duration;
use testkit::{ACT, NAPLES, NEW_YEAR, NOTHING, Network, address};

/// Octets of a note that is found, behind the length of its content; or of the sender's value.
const NOTE: u8 = 0;
const SENDS: u8 = 1;

/// A pair of sites in the middle of a transfer from Naples to Act that takes long.
fn network() -> Network {
    let mut network = Network::pair(1, NOTHING);
    network.latency = Duration::from_millis(100);
    let from = network.user(NAPLES, "OPS", false);
    network.bind(from, NAPLES);
    network.run_for(Duration::from_secs(2));
    let content = testkit::build::content(1, 100_000);
    let to = [address(ACT, "OPS")];
    network.submit(from, &to, Precedence::Routine, &content, "LONG", ReportRequest::None);
    network
}

/// A note, and a sender's value.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut network = network();
    let mut kept = Vec::new();
    for _ in 0..1_000 {
        network.run_for(Duration::from_millis(10));
        kept = network.sites[ACT].store.kept();
        if !kept.is_empty() && network.sites[NAPLES].store.meta.contains_key(node::SENDING) {
            break;
        }
    }
    let (_, length, notes) = kept.first().expect("a transfer that takes long");
    let first = notes.first().expect("a note");
    let value = network.sites[NAPLES].store.meta.get(node::SENDING).expect("a value");
    let note = [&[NOTE][..], &length.to_be_bytes(), first].concat();
    vec![("note", note), ("sends", [&[SENDS][..], value].concat())]
}

fn config() -> &'static NodeConfig {
    static CONFIG: OnceLock<NodeConfig> = OnceLock::new();
    CONFIG.get_or_init(|| Network::pair(1, NOTHING).sites[ACT].config.clone())
}

fn at(mono: u64) -> Now {
    Now { mono: Instant(mono), utc: Utc(NEW_YEAR + mono) }
}

/// Octets of either, found by a node that starts.
pub fn run(octets: &[u8]) {
    let Some((kind, rest)) = octets.split_first() else { return };
    let mut node = Node::new(config().clone());
    let start = 10_000_000;
    let input = match (*kind, rest.split_first_chunk()) {
        (NOTE, Some((length, note))) => {
            let (length, notes) = (u64::from_be_bytes(*length), vec![Bytes::copy_from_slice(note)]);
            Input::RecoveredReception { spool: SpoolId(1), length, notes }
        }
        _ => Input::RecoveredSends(Bytes::copy_from_slice(rest)),
    };
    node.handle(at(start), input);
    node.handle(at(start), Input::Started);
    let mut discarded = drain(&mut node);
    let taken = node.holds().arrivals;
    assert!(taken + discarded <= 1, "taken up and given up");
    // Nobody recovers it.
    node.handle(at(start + 3_600 * 1_000_000), Input::Tick);
    discarded += drain(&mut node);
    assert_eq!(node.holds().arrivals, 0, "kept for ever");
    assert_eq!(discarded, usize::from(*kind == NOTE && rest.len() >= 8), "a spool is left");
}

/// The spools that are given up.
fn drain(node: &mut Node) -> usize {
    let outputs = std::iter::from_fn(|| node.poll());
    outputs.filter(|output| matches!(output, Output::SpoolDiscard { .. })).count()
}
