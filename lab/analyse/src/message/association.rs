//! An association of the session, seen from outside: both directions, and the activities in them.

use super::envelope::Reader;
use super::stream::{Stream, Taken, looks_like_tpkt};
use crate::report::{Application, Envelope, TransferOutcome};
use crate::{Series, Time};
use bytes::Bytes;
use dscp::Dscp;
use osi::session::pdu::Spdu;
use osi::session::tsdu;
use osi::{cotp, tpkt};

/// Intervals of a message's series.
const INTERVALS: usize = 64;

/// A segment with data, as it passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passing<'a> {
    pub(crate) now: Time,
    /// The direction of the connection that it passes in: 0 or 1.
    pub(crate) side: usize,
    /// Its first octet's number.
    pub(crate) from: u64,
    /// The captured octets of its payload; fewer than `length` if the capture cut it.
    pub(crate) payload: &'a [u8],
    /// Octets of its payload on the line.
    pub(crate) length: u64,
    /// Its code point.
    pub(crate) dscp: Dscp,
    /// Segments that each direction has sent again so far.
    pub(crate) again: [u64; 2],
}

/// The transfer of a message that is over.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) side: usize,
    pub(crate) span: (Time, Time),
    pub(crate) sent: Option<Time>,
    pub(crate) octets: u64,
    pub(crate) marks: Vec<Dscp>,
    pub(crate) retransmissions: u64,
    pub(crate) checkpoints: u64,
    pub(crate) resumed: bool,
    pub(crate) gaps: bool,
    pub(crate) outcome: TransferOutcome,
    pub(crate) envelope: Option<Envelope>,
    pub(crate) series: Series<u64>,
}

/// One that is not over.
#[derive(Clone, Debug)]
struct Open {
    begun: Time,
    last: Time,
    sent: Option<Time>,
    marks: u64,
    again: u64,
    checkpoints: u64,
    resumed: bool,
    gaps: bool,
    reader: Reader,
    series: Series<u64>,
}

/// One direction.
#[derive(Clone, Debug, Default)]
struct Side {
    stream: Stream,
    tpkt: tpkt::Decoder,
    cotp: cotp::pdu::Decoder,
    session: tsdu::Decoder,
    open: Option<Box<Open>>,
}

/// Both directions of a connection with TPKT on it.
#[derive(Clone, Debug)]
pub(crate) struct Association {
    sides: [Side; 2],
    /// The protocol that its octets were recognised as.
    pub(crate) application: Application,
    interval: u64,
}

impl Association {
    pub(crate) fn new(interval: u64) -> Association {
        let sides = [Side::default(), Side::default()];
        Association { sides, application: Application::Tpkt, interval }
    }

    /// Octets that wait in both directions.
    pub(crate) fn held(&self) -> usize {
        self.sides.iter().map(|side| side.stream.held()).sum()
    }

    /// Takes a segment; what is over goes into `done`. `room` is how many octets may still wait in
    /// all associations together.
    pub(crate) fn segment(&mut self, passing: &Passing<'_>, room: usize, done: &mut Vec<Transfer>) {
        let Some(side) = self.sides.get_mut(passing.side) else { return };
        if !side.stream.is_known() {
            if !looks_like_tpkt(passing.payload) {
                return;
            }
            side.stream.begin(passing.from);
            (side.tpkt, side.cotp, side.session) = Default::default();
        }
        if let Some(open) = &mut side.open {
            open.marks |= 1 << passing.dscp.number();
        }
        let mut ready = Vec::new();
        let (from, length) = (passing.from, passing.length);
        let taken = side.stream.segment(from, passing.payload, length, room, &mut ready);
        for bytes in ready {
            if !self.octets(passing, bytes, done) {
                self.lost(passing.side);
                return;
            }
        }
        if taken == Taken::Lost {
            self.lost(passing.side);
        }
    }

    /// It is not known any more where packets begin.
    fn lost(&mut self, side: usize) {
        let Some(side) = self.sides.get_mut(side) else { return };
        side.stream.forget();
        if let Some(open) = &mut side.open {
            open.gaps = true;
            open.reader.gap();
        }
    }

    /// Octets in order; whether they are TPKT and class 0.
    fn octets(
        &mut self,
        passing: &Passing<'_>,
        mut bytes: Bytes,
        done: &mut Vec<Transfer>,
    ) -> bool {
        loop {
            let Some(side) = self.sides.get_mut(passing.side) else { return false };
            let piece = match side.tpkt.next(&mut bytes) {
                Ok(Some(piece)) => piece,
                Ok(None) => return true,
                Err(_) => return false,
            };
            let Ok(items) = side.cotp.push(piece) else { return false };
            for item in items {
                let cotp::pdu::Item::Data { bytes, last } = item else { continue };
                let Some(side) = self.sides.get_mut(passing.side) else { return false };
                // A unit that cannot be read is passed over; the next one is read again.
                let Ok(items) = side.session.push(bytes, last) else { continue };
                for item in items {
                    self.item(passing, item, done);
                }
            }
        }
    }

    fn item(&mut self, passing: &Passing<'_>, item: tsdu::Item, done: &mut Vec<Transfer>) {
        let spdu = match item {
            tsdu::Item::Data { bytes, last } => {
                let Some(side) = self.sides.get_mut(passing.side) else { return };
                if let Some(open) = &mut side.open {
                    let octets = open.reader.data(&bytes, last);
                    open.last = passing.now;
                    if let Some(bin) = open.series.at(passing.now) {
                        *bin += octets;
                    }
                }
                return;
            }
            tsdu::Item::Spdu(spdu) => spdu,
        };
        let (own, other) = (passing.side, 1 - passing.side.min(1));
        match spdu {
            Spdu::Connect(connect) => self.recognise(&connect.user_data),
            Spdu::ActivityStart(_) => self.begin(passing, false, done),
            Spdu::ActivityResume(_) => self.begin(passing, true, done),
            Spdu::MinorSync { .. } => {
                if let Some(open) = self.open(own) {
                    open.checkpoints += 1;
                }
            }
            Spdu::ActivityEnd(_) => {
                if let Some(open) = self.open(own) {
                    open.sent = Some(passing.now);
                }
            }
            Spdu::ActivityEndAck(_) => self.end(passing, other, TransferOutcome::Confirmed, done),
            Spdu::ActivityInterrupt(_) => {
                self.end(passing, own, TransferOutcome::Interrupted, done);
            }
            Spdu::ActivityDiscard(_) => self.end(passing, own, TransferOutcome::Discarded, done),
            Spdu::Abort { .. } | Spdu::Disconnect { .. } => {
                self.end(passing, own, TransferOutcome::Broken, done);
                self.end(passing, other, TransferOutcome::Broken, done);
            }
            _ => {}
        }
    }

    fn open(&mut self, side: usize) -> Option<&mut Open> {
        self.sides.get_mut(side)?.open.as_deref_mut()
    }

    /// What a CONNECT carries names an application context (X.419 8: 2.6.0.1.n).
    fn recognise(&mut self, user_data: &[u8]) {
        const CONTEXT: [u8; 5] = [0x06, 0x04, 0x56, 0x00, 0x01];
        let found = user_data.windows(CONTEXT.len() + 1).find(|at| at.starts_with(&CONTEXT));
        self.application = match found.and_then(|at| at.last()) {
            Some(0 | 1 | 3 | 4) => Application::P3,
            Some(2 | 5) => Application::P7,
            Some(_) => Application::P1,
            None => self.application,
        };
    }

    fn begin(&mut self, passing: &Passing<'_>, resumed: bool, done: &mut Vec<Transfer>) {
        self.end(passing, passing.side, TransferOutcome::Broken, done);
        let again = passing.again.get(passing.side).copied().unwrap_or_default();
        let open = Open {
            begun: passing.now,
            last: passing.now,
            sent: None,
            marks: 1 << passing.dscp.number(),
            again,
            checkpoints: 0,
            resumed,
            gaps: false,
            reader: Reader::new(resumed),
            series: Series::new(self.interval, INTERVALS),
        };
        if let Some(side) = self.sides.get_mut(passing.side) {
            side.open = Some(Box::new(open));
        }
    }

    fn end(
        &mut self,
        passing: &Passing<'_>,
        side: usize,
        outcome: TransferOutcome,
        done: &mut Vec<Transfer>,
    ) {
        let again = passing.again.get(side).copied().unwrap_or_default();
        if let Some(transfer) = self.close(passing.now, side, again, outcome) {
            // Only P1 and P3 over RTSE transfer in activities, and the CONNECT has shown P3.
            if transfer.envelope.is_some() && self.application == Application::Tpkt {
                self.application = Application::P1;
            }
            done.push(transfer);
        }
    }

    fn close(
        &mut self,
        now: Time,
        side: usize,
        again: u64,
        outcome: TransferOutcome,
    ) -> Option<Transfer> {
        let open = *self.sides.get_mut(side)?.open.take()?;
        let broken = outcome == TransferOutcome::Broken;
        let outcome = if broken && open.sent.is_some() { TransferOutcome::Sent } else { outcome };
        let end = if broken { open.sent.unwrap_or(open.last) } else { now };
        let all = (0..64u8).filter(|number| open.marks & 1 << number != 0);
        Some(Transfer {
            side,
            span: (open.begun, end),
            sent: open.sent,
            octets: open.reader.octets,
            marks: all.filter_map(Dscp::new).collect(),
            retransmissions: again.saturating_sub(open.again),
            checkpoints: open.checkpoints,
            resumed: open.resumed,
            gaps: open.gaps,
            outcome,
            envelope: open.reader.envelope,
            series: open.series,
        })
    }

    /// The connection is over: so is what is still open.
    pub(crate) fn finish(&mut self, now: Time, again: [u64; 2], done: &mut Vec<Transfer>) {
        for (side, again) in again.into_iter().enumerate() {
            done.extend(self.close(now, side, again, TransferOutcome::Broken));
        }
    }
}
