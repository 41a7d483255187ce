//! The format of a recording, its masks, and replays of networks in virtual time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails panics"
)]

mod format;
mod hostile;
mod layout;
mod masks;
mod replay;
mod wrong_octets;

use base::{Instant, Now, Utc};
use record::mask::Key;
use record::{Decoder, FormatError, Header, Record, Recorder};

/// A moment of the test.
fn moment(n: u64) -> Now {
    Now { mono: Instant(n), utc: Utc(1_767_225_600_000_000 + n) }
}

fn header() -> Header {
    let config = testkit::bench::two_peers(node::config::Limits::default(), |_| {}).config.clone();
    // A release changes nothing of the layout.
    let version = "0".to_owned();
    Header { version, ..Header::new("a test".to_owned(), moment(0), config, None) }
}

fn recorder(limit: u64) -> Recorder {
    Recorder::new(&header(), limit, Key([1; 32]))
}

/// What a recorder has made.
fn made(recorder: &mut Recorder) -> Vec<u8> {
    let mut made = Vec::new();
    recorder.take(&mut made);
    made
}

/// All records of a file, and what follows them.
fn records(octets: &[u8]) -> (Vec<Record>, Result<usize, FormatError>) {
    let mut decoder = Decoder::default();
    decoder.push(octets);
    let mut all = Vec::new();
    loop {
        match decoder.next() {
            Ok(Some(record)) => all.push(record),
            Ok(None) => return (all, Ok(decoder.left())),
            Err(error) => return (all, Err(error)),
        }
    }
}
