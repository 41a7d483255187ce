//! The peer: plays cases over whatever carries octets to the other side.

use super::script::{self, Direction, Names, Side, Step, dump};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// What carries octets.
pub(crate) trait Wire {
    /// Sends.
    fn send(&mut self, octets: &[u8]);
    /// The next TPKT, whole; `None` where the other side closed.
    fn receive(&mut self) -> Result<Option<Vec<u8>>, String>;
    /// Whether nothing comes, in a while.
    fn is_quiet(&mut self) -> bool;
    /// Closes in order: what was sent arrives.
    fn close(&mut self);
}

/// A scripted peer.
pub(crate) struct Peer<W> {
    pub(crate) wire: W,
    names: Names,
    /// The last TPKT that was as expected.
    last: Vec<u8>,
}

impl<W: Wire> Peer<W> {
    pub(crate) fn new(wire: W) -> Peer<W> {
        let names = Names::from([("utc".to_owned(), time_of_the_run())]);
        Peer { wire, names, last: Vec::new() }
    }

    /// Plays all steps of these cases.
    pub(crate) fn play(&mut self, cases: &[&str]) -> &mut Self {
        for case in cases {
            for step in script::load(case) {
                self.step(&step);
            }
        }
        self
    }

    /// Plays these conversations as this side of them.
    pub(crate) fn converse(&mut self, side: Side, conversations: &[&str]) -> &mut Self {
        for conversation in conversations {
            for step in script::conversation(conversation, side) {
                self.step(&step);
            }
        }
        self
    }

    /// The last TPKT that was as expected.
    pub(crate) fn last(&self) -> &[u8] {
        &self.last
    }

    fn step(&mut self, step: &Step) {
        match step.direction {
            Direction::Send => {
                let octets = step.octets(&self.names);
                self.wire.send(&octets);
            }
            Direction::Expect => match self.wire.receive() {
                Ok(Some(tpkt)) => {
                    if let Err(difference) = step.compare(&tpkt, &mut self.names) {
                        panic!("{difference}");
                    }
                    self.last = tpkt;
                }
                Ok(None) => panic!("{}: the connection is closed", step.path.display()),
                Err(e) => panic!("{}: {e}", step.path.display()),
            },
        }
    }

    /// The next TPKT.
    pub(crate) fn receive(&mut self, what: &str) -> Vec<u8> {
        match self.wire.receive() {
            Ok(Some(tpkt)) => tpkt,
            Ok(None) => panic!("waiting for {what}: the connection is closed"),
            Err(e) => panic!("waiting for {what}: {e}"),
        }
    }

    /// The other side closes, or we do where it waits for that.
    pub(crate) fn expect_end(&mut self) {
        if self.wire.is_quiet() {
            self.wire.close();
        }
        self.expect_closed();
    }

    /// The other side closes. A disconnect request (X.224 6.7) or the session's ABORT ACCEPT before
    /// it is as good.
    pub(crate) fn expect_closed(&mut self) {
        match self.wire.receive() {
            Ok(None) => {}
            Ok(Some(tpkt)) if tpkt[5] == 0x80 || tpkt[7..] == [0x1a, 0] => self.expect_closed(),
            Ok(Some(tpkt)) => panic!("instead of the end:\n{}", dump(&tpkt, usize::MAX)),
            Err(e) => panic!("waiting for the end: {e}"),
        }
    }

    /// Nothing comes.
    pub(crate) fn expect_quiet(&mut self, why: &str) {
        assert!(self.wire.is_quiet(), "something was sent, although {why}");
    }
}

/// The time of the run as UTCTime, 13 octets: one time, so that repetitions have the same octets.
pub(crate) fn time_of_the_run() -> Vec<u8> {
    static TIME: OnceLock<Vec<u8>> = OnceLock::new();
    TIME.get_or_init(utc_now).clone()
}

/// Now as UTCTime.
#[expect(clippy::disallowed_methods, reason = "the daemon looks at the age of messages")]
fn utc_now() -> Vec<u8> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days to a date in the proleptic Gregorian calendar, years beginning in March.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + carry;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let text = format!("{:02}{month:02}{date:02}{hour:02}{minute:02}{second:02}Z", year % 100);
    text.into_bytes()
}
