//! What the cells of the state table do: TPDUs sent, primitives indicated.

use super::{End, Machine, Output, REFERENCE, With};
use crate::cotp::pdu::{self, Connect, Rejected, Tpdu, reason};
use crate::cotp::table::{Event, State, Table};
use crate::table::{Entered, Lacking, Performed};
use crate::tpkt;
use bytes::BytesMut;
use std::collections::VecDeque;

/// DTs up to this many octets of data are copied into one buffer with their header; longer ones
/// go out as they were handed in.
const COPIED: usize = 2_048;

impl Machine {
    /// Answers a protocol error with an ER.
    pub(super) fn reject(&mut self, entered: &Entered<Table>, with: With) {
        let unexpected =
            |tpdu: &Tpdu| Rejected { error: pdu::Error::Unexpected, header: tpdu.encode() };
        let Rejected { error, header } = match with {
            With::Rejected(rejected) => rejected,
            With::Connect(connect) if entered.event == Event::Cc => unexpected(&Tpdu::Cc(connect)),
            With::Connect(connect) => unexpected(&Tpdu::Cr(connect)),
            With::Nothing
            | With::Data(..)
            | With::Refused(..)
            | With::Reason(_)
            | With::Ends(_) => unexpected(&Tpdu::Dt { end: true }),
        };
        let reference = reference_of(&header).unwrap_or(self.peer_reference);
        self.packet(&pdu::encode_error(reference, error, &header));
        let Entered { event, before, clause, .. } = entered;
        self.disconnected(None, &format!("transport: {error}: {event:?} in {before:?} ({clause})"));
    }

    /// T-DISCONNECT.indication, and the end of the TCP connection.
    pub(super) fn ended(&mut self, entered: &Entered<Table>, with: With) -> Performed {
        match with {
            With::Reason(code) => {
                let (name, clause) = (reason::name(code), entered.clause);
                let detail =
                    format!("transport: disconnect request, reason {code}: {name} ({clause})");
                self.disconnected((entered.before == State::Wfcc).then_some(code), &detail);
            }
            With::Ends(end) => self.disconnected(None, &why_ended(end, entered)),
            _ => return Err(Lacking),
        }
        self.out.push_back(Output::Close);
        Ok(())
    }

    fn disconnected(&mut self, refused: Option<u8>, detail: &str) {
        self.held.clear();
        self.held_octets = 0;
        let detail = detail.to_owned();
        self.out.push_back(Output::Disconnected { refused, detail });
    }

    pub(super) fn our_exponent(&self) -> Option<u8> {
        self.config.tpdu_size.map(|octets| {
            let exponent = u8::try_from(octets.max(1).ilog2()).unwrap_or(u8::MAX);
            exponent.clamp(*pdu::SIZE_EXPONENTS.start(), *pdu::SIZE_EXPONENTS.end())
        })
    }

    pub(super) fn send_cr(&mut self) {
        let connect = Connect {
            source: REFERENCE,
            size: self.our_exponent(),
            calling: self.config.local.transport.clone(),
            called: self.config.remote.transport.clone(),
            ..Connect::default()
        };
        self.packet(&Tpdu::Cr(connect).encode());
    }

    /// Answers with the smaller of the size proposed and ours; where the CR proposes none, the
    /// proposal is RFC 1006's default.
    pub(super) fn accept(&mut self, with: With) -> Performed {
        let With::Connect(connect) = with else { return Err(Lacking) };
        self.peer_reference = connect.source;
        self.peer_selector = connect.calling;
        let size = match (connect.size, self.our_exponent()) {
            (Some(theirs), Some(ours)) => Some(theirs.min(ours)),
            (theirs, ours) => theirs.or(ours),
        };
        self.send_max = size.map_or(pdu::DEFAULT_SIZE, octets_of);
        self.receive_max = self.send_max;
        let confirm = Connect {
            destination: self.peer_reference,
            source: REFERENCE,
            size,
            ..Connect::default()
        };
        self.packet(&Tpdu::Cc(confirm).encode());
        self.out.push_back(Output::Connected);
        Ok(())
    }

    /// A CC that names no size means RFC 1006's default: then we take that much, and send no more
    /// than we proposed ourselves.
    pub(super) fn confirm(&mut self, with: With) -> Performed {
        let With::Connect(connect) = with else { return Err(Lacking) };
        self.peer_reference = connect.source;
        let proposed = self.our_exponent().map_or(pdu::DEFAULT_SIZE, octets_of);
        self.receive_max = connect.size.map_or(pdu::DEFAULT_SIZE, octets_of);
        self.send_max = proposed.min(self.receive_max);
        self.out.push_back(Output::Connected);
        Ok(())
    }

    /// Answers a CR with a DR.
    pub(super) fn refuse(&mut self, entered: &Entered<Table>, with: &With) -> Performed {
        let With::Refused(code, why) = *with else { return Err(Lacking) };
        self.packet(&pdu::encode_refusal(self.peer_reference, 0, code, why));
        self.disconnected(None, &format!("transport: refused: {why} ({})", entered.clause));
        Ok(())
    }

    pub(super) fn send_data(&mut self, with: With) -> Performed {
        let With::Data(bytes, last) = with else { return Err(Lacking) };
        if !bytes.is_empty() {
            self.held_octets += bytes.len();
            self.held.push_back(bytes);
        }
        self.send_dt(last);
        Ok(())
    }

    /// Sends the held data in full DTs; the last full one stays until it is known whether the TSDU
    /// ends with it.
    pub(super) fn send_dt(&mut self, end: bool) {
        let room = self.send_max - pdu::DT_HEADER;
        while self.held_octets > room {
            self.dt(room, false);
        }
        if end {
            self.dt(self.held_octets, true);
        }
        if end {
            self.begun = false;
        }
    }

    fn dt(&mut self, octets: usize, end: bool) {
        let header = Tpdu::Dt { end }.encode();
        let tpkt = tpkt::header(header.len() + octets);
        let mut buffer = BytesMut::with_capacity(7 + if octets <= COPIED { octets } else { 0 });
        buffer.extend_from_slice(&tpkt);
        buffer.extend_from_slice(&header);
        let mut slices = VecDeque::new();
        let mut left = octets;
        while left > 0
            && let Some(mut slice) = self.held.pop_front()
        {
            if slice.len() > left {
                self.held.push_front(slice.split_off(left));
            }
            left -= slice.len();
            if octets <= COPIED {
                buffer.extend_from_slice(&slice);
            } else {
                slices.push_back(slice);
            }
        }
        self.held_octets -= octets;
        self.begun = true;
        self.out.push_back(Output::Send(buffer.freeze()));
        self.out.extend(slices.into_iter().map(Output::Send));
    }

    fn packet(&mut self, tpdu: &[u8]) {
        let mut buffer = BytesMut::with_capacity(tpkt::HEADER + tpdu.len());
        buffer.extend_from_slice(&tpkt::header(tpdu.len()));
        buffer.extend_from_slice(tpdu);
        self.out.push_back(Output::Send(buffer.freeze()));
    }
}

/// Why the connection ended, for the log.
fn why_ended(end: End, entered: &Entered<Table>) -> String {
    match end {
        End::Rejected(cause) => {
            format!("transport: the peer rejected a TPDU, cause {cause} (X.224 13.12)")
        }
        End::Unreadable(error) => format!("transport: {error}"),
        End::Eof => "transport: the TCP connection was closed (X.224 6.8)".to_owned(),
        End::Timeout => {
            let awaited = if entered.before == State::Closed { "a CR" } else { "the CC" };
            let clause = entered.clause;
            format!("transport: {awaited} did not come within the setup timeout ({clause})")
        }
        End::Misuse(detail) => detail,
    }
}

/// SRC-REF of a CR or CC that cannot be read, where it got so far: an ER goes to it.
fn reference_of(header: &[u8]) -> Option<u16> {
    match header {
        [_, 0xD0..=0xEF, _, _, high, low, ..] => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

fn octets_of(exponent: u8) -> usize {
    1 << exponent
}
