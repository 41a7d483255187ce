//! The transport protocol machine: one transport connection on one TCP connection.

use super::pdu::{self, Connect, Decoder, Item, Rejected, Tpdu, reason};
use super::table::{Action, Event, State, cell};
use crate::lower::LowerConfig;
use crate::tpkt;
use base::time::Instant;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Our reference. Class 0 has one transport connection to a network connection, so it need not
/// tell them apart (X.224 6.9).
const REFERENCE: u16 = 1;

/// DTs up to this many octets of data are copied into one buffer with their header; longer ones
/// go out as they were handed in.
const COPIED: usize = 2_048;

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Write to the TCP connection.
    Send(Bytes),
    /// Close the TCP connection. Nothing follows.
    Close,
    /// The transport connection is there: T-CONNECT indication or confirm.
    Connected,
    /// T-DATA.indication in pieces.
    Data {
        /// The piece.
        bytes: Bytes,
        /// Whether it ends the TSDU.
        last: bool,
    },
    /// T-DISCONNECT.indication.
    Disconnected {
        /// The reason of the DR, where the peer refused the connection.
        refused: Option<u8>,
        /// For the log.
        detail: String,
    },
}

/// What an event brings along.
enum With {
    Nothing,
    Connect(Connect),
    Refused(u8, &'static str),
    Reason(u8),
    Detail(String),
    Rejected(Rejected),
}

/// One transport connection.
#[derive(Debug)]
pub struct Machine {
    config: LowerConfig,
    state: State,
    deadline: Option<Instant>,
    packets: tpkt::Decoder,
    tpdus: Decoder,
    /// Largest TPDU to send and to take, header included.
    send_max: usize,
    receive_max: usize,
    peer_reference: u16,
    peer_selector: Option<Bytes>,
    /// Data of the TSDU being sent that has not left yet: less than a TPDU, or just one.
    held: VecDeque<Bytes>,
    held_octets: usize,
    /// Whether a DT of the TSDU being sent has left.
    begun: bool,
    /// TSDUs that have come whole, and whether one has begun since.
    whole: u64,
    amidst: bool,
    out: VecDeque<Output>,
}

impl Machine {
    /// A machine on a TCP connection just made.
    pub fn new(config: LowerConfig) -> Machine {
        Machine {
            config,
            state: State::Closed,
            deadline: None,
            packets: tpkt::Decoder::default(),
            tpdus: Decoder::default(),
            send_max: pdu::DEFAULT_SIZE,
            receive_max: pdu::DEFAULT_SIZE,
            peer_reference: 0,
            peer_selector: None,
            held: VecDeque::new(),
            held_octets: 0,
            begun: false,
            whole: 0,
            amidst: false,
            out: VecDeque::new(),
        }
    }

    /// Starts the wait for a CR (responder).
    pub fn listen(&mut self, now: Instant) {
        if self.state == State::Closed {
            self.deadline = Some(now + self.config.setup_timeout);
        }
    }

    /// T-CONNECT.request.
    pub fn connect(&mut self, now: Instant) {
        self.step(now, Event::Tconreq, With::Nothing);
    }

    /// T-DATA.request in pieces; `last` ends the TSDU. Octets leave as soon as they fill a TPDU.
    pub fn send(&mut self, now: Instant, bytes: Bytes, last: bool) {
        if !bytes.is_empty() && self.state == State::Open {
            self.held_octets += bytes.len();
            self.held.push_back(bytes);
        }
        self.step(now, Event::Tdtreq, With::Nothing);
        if last && self.state == State::Open {
            self.send_dt(true);
        }
    }

    /// Ends the TSDU being sent before its time: what has not left is dropped. The peer gets it cut
    /// short, which the layers above make harmless (an abort or an interruption follows).
    pub fn truncate(&mut self) {
        self.held.clear();
        self.held_octets = 0;
        if self.begun && self.state == State::Open {
            self.send_dt(true);
        }
    }

    /// T-DISCONNECT.request.
    pub fn disconnect(&mut self, now: Instant) {
        self.step(now, Event::Tdisreq, With::Nothing);
    }

    /// Octets from the TCP connection.
    pub fn bytes(&mut self, now: Instant, mut bytes: Bytes) {
        while self.state != State::Ended {
            match self.packets.next(&mut bytes) {
                Ok(None) => return,
                Ok(Some(piece)) => match self.tpdus.push(piece) {
                    Ok(items) => items.into_iter().for_each(|item| self.item(now, item)),
                    Err(rejected) => {
                        self.step(now, Event::Invalid, With::Rejected(rejected));
                    }
                },
                Err(error) => {
                    self.step(now, Event::Unreadable, With::Detail(error.to_string()));
                    return;
                }
            }
        }
    }

    /// The TCP connection ended.
    pub fn eof(&mut self, now: Instant) {
        let detail = "the TCP connection was closed (X.224 6.8)".to_owned();
        self.step(now, Event::Ndisind, With::Detail(detail));
    }

    /// The deadline may have passed.
    pub fn tick(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            let awaited = match self.state {
                State::Closed => "a CR",
                State::Wfcc => "the CC",
                State::Open | State::Closing | State::Ended => "the end of the connection",
            };
            let clause = cell(self.state, Event::Timer).clause;
            let detail = format!("{awaited} did not come within the setup timeout ({clause})");
            self.step(now, Event::Timer, With::Detail(detail));
        }
    }

    /// When to call [`Machine::tick`].
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// The peer's calling selector (responder).
    pub fn peer_selector(&self) -> Option<&Bytes> {
        self.peer_selector.as_ref()
    }

    /// Which TSDU or packet is half received, counted from 0; `None` where the peer is between two.
    pub fn unfinished(&self) -> Option<u64> {
        (self.amidst || self.packets.is_within()).then_some(self.whole)
    }

    /// Octets held between calls: of a TPDU that arrives its header, of a TSDU that is being sent
    /// less than a TPDU.
    pub fn held(&self) -> usize {
        self.tpdus.held() + self.held_octets
    }

    /// Most octets [`Machine::held`] ever gives.
    pub const MAX_HELD: usize = 255 + pdu::DEFAULT_SIZE;

    /// The state, for diagnosis and tests.
    pub fn state(&self) -> State {
        self.state
    }

    fn item(&mut self, now: Instant, item: Item) {
        match item {
            Item::Tpdu { tpdu: Tpdu::Cr(connect), .. } => match self.judge(&connect) {
                Ok(()) => self.step(now, Event::Cr, With::Connect(connect)),
                Err((code, why)) => {
                    self.peer_reference = connect.source;
                    self.step(now, Event::CrRefused, With::Refused(code, why));
                }
            },
            Item::Tpdu { tpdu: Tpdu::Cc(connect), .. } => match self.unacceptable(&connect) {
                None => self.step(now, Event::Cc, With::Connect(connect)),
                Some(field) => {
                    let header = Tpdu::Cc(connect).encode();
                    self.invalid(now, pdu::Error::Value(field), header);
                }
            },
            Item::Tpdu { tpdu: Tpdu::Dr { reason, .. }, .. } => {
                self.step(now, Event::Dr, With::Reason(reason));
            }
            Item::Tpdu { tpdu: Tpdu::Er { cause, .. }, .. } => {
                let detail = format!("the peer rejected a TPDU, cause {cause} (X.224 13.12)");
                self.step(now, Event::Er, With::Detail(detail));
            }
            Item::Tpdu { tpdu: Tpdu::Dt { end }, length } => {
                if length > self.receive_max {
                    self.invalid(now, pdu::Error::TooLong, Tpdu::Dt { end }.encode());
                } else {
                    self.amidst = true;
                    self.step(now, Event::Dt, With::Nothing);
                }
            }
            // Its DT was judged above: in any other state the TSDU is of no interest.
            Item::Data { bytes, last } => {
                if last {
                    self.amidst = false;
                    self.whole += 1;
                }
                if cell(self.state, Event::Dt).action == Action::Deliver {
                    self.out.push_back(Output::Data { bytes, last });
                }
            }
        }
    }

    fn invalid(&mut self, now: Instant, error: pdu::Error, header: Vec<u8>) {
        self.step(now, Event::Invalid, With::Rejected(Rejected { error, header }));
    }

    /// The field of a CC that answers what we did not propose. A size is compared only where we
    /// proposed one: RFC 1006's default is larger than any that can be named.
    fn unacceptable(&self, connect: &Connect) -> Option<&'static str> {
        if connect.destination != REFERENCE {
            return Some("destination reference");
        }
        if connect.class != 0 {
            return Some("class");
        }
        let proposed = self.our_exponent();
        let grown = proposed.zip(connect.size).is_some_and(|(ours, theirs)| theirs > ours);
        grown.then_some("TPDU size")
    }

    /// Whether a CR can be accepted; else the reason of the DR.
    fn judge(&self, connect: &Connect) -> Result<(), (u8, &'static str)> {
        if self.config.turn_away {
            return Err((reason::CONGESTION, "too many associations"));
        }
        if !connect.allows_class_0() {
            return Err((reason::NEGOTIATION_FAILED, "class 0 only"));
        }
        match (&connect.called, &self.config.local.transport) {
            (Some(called), Some(ours)) if called != ours => {
                Err((reason::ADDRESS_UNKNOWN, "called transport selector unknown"))
            }
            _ => Ok(()),
        }
    }

    fn step(&mut self, now: Instant, event: Event, with: With) {
        let cell = cell(self.state, event);
        let before = self.state;
        self.state = cell.next;
        if self.state != before {
            self.deadline = match self.state {
                State::Wfcc | State::Closing => Some(now + self.config.setup_timeout),
                State::Closed | State::Open | State::Ended => None,
            };
        }
        match (cell.action, with) {
            (Action::SendCr, _) => self.send_cr(),
            (Action::Accept, With::Connect(connect)) => self.accept(connect),
            (Action::Refuse, With::Refused(code, why)) => {
                self.packet(&pdu::encode_refusal(self.peer_reference, 0, code, why));
                self.disconnected(None, &format!("refused: {why} ({})", cell.clause));
            }
            (Action::Confirm, With::Connect(connect)) => self.confirm(&connect),
            (Action::SendDt, _) => self.send_dt(false),
            (Action::Disconnected, With::Reason(code)) => {
                let name = reason::name(code);
                let detail = format!("disconnect request, reason {code}: {name} ({})", cell.clause);
                self.disconnected((before == State::Wfcc).then_some(code), &detail);
                self.out.push_back(Output::Close);
            }
            (Action::Disconnected, With::Detail(detail)) => {
                self.disconnected(None, &detail);
                self.out.push_back(Output::Close);
            }
            (Action::Reject, with) => {
                let rejected = match with {
                    With::Rejected(rejected) => rejected,
                    With::Connect(connect) if event == Event::Cc => Rejected {
                        error: pdu::Error::Unexpected,
                        header: Tpdu::Cc(connect).encode(),
                    },
                    With::Connect(connect) => Rejected {
                        error: pdu::Error::Unexpected,
                        header: Tpdu::Cr(connect).encode(),
                    },
                    _ => Rejected {
                        error: pdu::Error::Unexpected,
                        header: Tpdu::Dt { end: true }.encode(),
                    },
                };
                let Rejected { error, header } = rejected;
                let reference = reference_of(&header).unwrap_or(self.peer_reference);
                self.packet(&pdu::encode_error(reference, error, &header));
                let detail = format!("{error}: {event:?} in {before:?} ({})", cell.clause);
                self.disconnected(None, &detail);
            }
            (Action::Close, _) => self.out.push_back(Output::Close),
            // Delivery is piece by piece, in `item`.
            (Action::Deliver | Action::Nothing | Action::Misuse, _) => {}
            (Action::Accept | Action::Refuse | Action::Confirm | Action::Disconnected, _) => {
                debug_assert!(false, "{event:?} came without what {:?} needs", cell.action);
            }
        }
    }

    fn disconnected(&mut self, refused: Option<u8>, detail: &str) {
        self.held.clear();
        self.held_octets = 0;
        let detail = format!("transport: {detail}");
        self.out.push_back(Output::Disconnected { refused, detail });
    }

    fn our_exponent(&self) -> Option<u8> {
        self.config.tpdu_size.map(|octets| {
            let exponent = u8::try_from(octets.max(1).ilog2()).unwrap_or(u8::MAX);
            exponent.clamp(*pdu::SIZE_EXPONENTS.start(), *pdu::SIZE_EXPONENTS.end())
        })
    }

    fn send_cr(&mut self) {
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
    fn accept(&mut self, connect: Connect) {
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
    }

    /// A CC that names no size means RFC 1006's default: then we take that much, and send no more
    /// than we proposed ourselves.
    fn confirm(&mut self, connect: &Connect) {
        self.peer_reference = connect.source;
        let proposed = self.our_exponent().map_or(pdu::DEFAULT_SIZE, octets_of);
        self.receive_max = connect.size.map_or(pdu::DEFAULT_SIZE, octets_of);
        self.send_max = proposed.min(self.receive_max);
        self.out.push_back(Output::Connected);
    }

    /// Sends the held data in full DTs; the last full one stays until it is known whether the TSDU
    /// ends with it.
    fn send_dt(&mut self, end: bool) {
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
