//! Whole sites as a user and an operator have them: the programs `mta` and `xuxa` on loopback.

mod burst;
mod captures;
pub(crate) mod disk;
mod exchange;
mod faults;
mod files;
mod interrupt;
mod load;
mod operation;
mod proxy;
mod recipients;
mod reload;
mod returned;
mod store;
mod streaming;
mod tshark;

use std::collections::BTreeSet;
use std::time::Duration;
use testbed::answer::{DeliveredMessage, ReceiveOutput, SubmittedMessage};

/// Longest wait for what takes no time worth mentioning, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Each message submitted was received exactly once, as it was.
fn assert_arrived(sent: &[SubmittedMessage], received: &ReceiveOutput) {
    let identifiers: BTreeSet<&str> = sent.iter().map(|m| m.mts_identifier.as_str()).collect();
    assert_eq!(identifiers.len(), sent.len(), "MTS identifiers are unique: {sent:?}");
    let messages: Vec<&DeliveredMessage> = received.messages().collect();
    assert_eq!(messages.len(), sent.len(), "as many as were submitted: {messages:?}");
    for submitted in sent {
        let id = &submitted.mts_identifier;
        let of_it: Vec<_> = messages.iter().filter(|m| m.mts_identifier == *id).collect();
        assert_eq!(of_it.len(), 1, "{id} came {} times", of_it.len());
        assert_same(submitted, of_it[0]);
    }
}

/// What was received is what was submitted.
fn assert_same(sent: &SubmittedMessage, received: &DeliveredMessage) {
    assert_eq!(received.content_sha256, sent.content_sha256);
    assert_eq!(received.content_length, sent.content_length);
    assert_eq!(received.size, sent.size);
    assert_eq!(received.content_identifier.as_deref(), Some(&*sent.content_identifier));
    assert!(!received.duplicate, "{} was delivered before", received.mts_identifier);
}

/// Whether two texts name the same O/R address: attributes in any order, letters of any case.
fn is_address(a: &str, b: &str) -> bool {
    let attributes = |text: &str| -> BTreeSet<String> {
        text.split('/').filter(|part| !part.is_empty()).map(str::to_uppercase).collect()
    };
    attributes(a) == attributes(b)
}

/// Prints a line that is shown if a test passes, too: libtest hides the output of `eprintln`.
pub(crate) fn print_line(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
