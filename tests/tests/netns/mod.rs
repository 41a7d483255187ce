//! Sites in network namespaces, joined by veth pairs: marks on every packet, precedence over a slow
//! link, and what happens to it when peers and links fail.

mod backlog;
mod bleached;
mod failing;
mod killed;
mod marks;
mod precedence;
mod routers;
mod slow;
mod study;
mod wire;

use std::time::Duration;
use testbed::answer::{DeliveredMessage, ReceiveOutput, SubmittedMessage};
use testbed::{Cable, Namespace, Pair, PairBuilder, Programs, Site};

/// Longest wait for what takes no time worth mentioning, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// The channels of `PeerSettings::per_precedence`: name, port, and mark of the plan `paper`.
const CHANNELS: [(&str, u16, u8); 5] = [
    ("routine", 5000, 0),
    ("priority", 5001, 8),
    ("immediate", 5002, 16),
    ("flash", 5003, 24),
    ("override", 5004, 32),
];

/// A namespace, or a note on why a test is skipped, which shows where it passes, too.
fn namespace(test: &str) -> Option<Namespace> {
    use std::io::Write as _;
    match Namespace::new() {
        Ok(namespace) => Some(namespace),
        Err(why) => {
            // libtest hides the output of `eprintln`.
            let _ = writeln!(std::io::stderr().lock(), "    SKIPPED {test}: {why}");
            None
        }
    }
}

fn programs() -> Programs {
    Programs::find().unwrap()
}

/// Two sites at the ends of a cable whose logs can be read.
fn pair(cable: &Cable, peer: testbed::PeerSettings) -> PairBuilder {
    Pair::on_cable(cable, peer).each(|site| site.run_with(&["--log-format", "json"]))
}

/// A channel for each precedence, on which a site sends on its own association only: on two-way
/// ones the turn may be with the other.
fn one_way() -> testbed::PeerSettings {
    testbed::PeerSettings { monologue: true, ..testbed::PeerSettings::per_precedence() }
}

/// Waits until both have this many associations open, and none opening.
fn wait_until_open(pair: &Pair, count: usize) {
    for site in [&pair.naples, &pair.act] {
        let open = |status: &testbed::answer::MtaStatus| {
            let of = |state: &str| status.associations().filter(|a| a.state == state).count();
            of("idle") == count && status.associations().count() == count
        };
        site.wait_until("all associations", SOON, open).unwrap();
    }
}

/// Submits one message from a user of the one to a user of the other.
fn send(from: &Site, to: &Site, precedence: &str, size: &str) -> SubmittedMessage {
    let to = to.address("OPS");
    let arguments = ["--to", &to, "--precedence", precedence, "--size", size];
    from.send("OPS", &arguments).unwrap().messages.remove(0)
}

/// Each message submitted was received exactly once, as it was.
fn assert_arrived(sent: &[SubmittedMessage], received: &ReceiveOutput) {
    let messages: Vec<&DeliveredMessage> = received.messages().collect();
    assert_eq!(messages.len(), sent.len(), "as many as were submitted: {messages:?}");
    for submitted in sent {
        let id = &submitted.mts_identifier;
        let of_it: Vec<_> = messages.iter().filter(|m| m.mts_identifier == *id).collect();
        assert_eq!(of_it.len(), 1, "{id} came {} times", of_it.len());
        assert_eq!(of_it[0].content_sha256, submitted.content_sha256);
        assert!(!of_it[0].duplicate, "{id} was delivered before");
    }
}
