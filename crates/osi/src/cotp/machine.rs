//! The transport protocol machine: one transport connection on one TCP connection.

mod actions;
#[cfg(test)]
mod cells;

use super::pdu::{self, Connect, Decoder, Item, Rejected, Tpdu, reason};
use super::table::{Action, Event, State, Table};
use crate::api::calls_another;
use crate::lower::LowerConfig;
use crate::table::{Automaton, Entered, Lacking, Performed, Step};
use crate::tpkt;
use base::time::Instant;
use bytes::Bytes;
use std::collections::VecDeque;

/// Our reference. Class 0 has one transport connection to a network connection, so the
/// reference need not distinguish them (X.224 6.9).
const REFERENCE: u16 = 1;

/// An output of the machine.
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

/// The parameters of an event.
enum With {
    /// Nothing.
    Nothing,
    /// A piece of a TSDU of our user, and whether it is the last.
    Data(Bytes, bool),
    /// The fields of a CR or CC.
    Connect(Connect),
    /// Reason of the DR that refuses a CR, and its text.
    Refused(u8, &'static str),
    /// Reason of the peer's DR.
    Reason(u8),
    /// The reason for which the connection ends.
    Ends(End),
    /// A TPDU that is invalid.
    Rejected(Rejected),
}

/// Why a transport connection ends.
enum End {
    /// The peer's ER, its reject cause.
    Rejected(u8),
    /// The stream cannot be read on.
    Unreadable(tpkt::Error),
    /// TCP ended.
    Eof,
    /// The wait is over.
    Timeout,
    /// A misuse.
    Misuse(String),
}

/// One transport connection.
#[derive(Clone, Debug)]
pub struct Machine {
    config: LowerConfig,
    automaton: Automaton<Table>,
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
    /// The DT being received was in order: its user data is delivered.
    delivering: bool,
    out: VecDeque<Output>,
}

impl Machine {
    /// A machine on a TCP connection just made.
    pub fn new(config: LowerConfig) -> Machine {
        Machine {
            config,
            automaton: Automaton::new(),
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
            delivering: false,
            out: VecDeque::new(),
        }
    }

    /// Starts the wait for a CR (responder).
    pub fn listen(&mut self, now: Instant) {
        if self.automaton.state() == State::Closed {
            self.deadline = Some(now + self.config.setup_timeout);
        }
    }

    /// T-CONNECT.request.
    pub fn connect(&mut self, now: Instant) {
        self.on(now, Event::Tconreq, With::Nothing);
    }

    /// T-DATA.request in pieces; `last` ends the TSDU. Octets leave as soon as they fill a TPDU.
    pub fn send(&mut self, now: Instant, bytes: Bytes, last: bool) {
        self.on(now, Event::Tdtreq, With::Data(bytes, last));
    }

    /// Ends the TSDU being sent before its time: what has not left is dropped. The peer gets it cut
    /// short, which the layers above make harmless (an abort or an interruption follows).
    pub fn truncate(&mut self) {
        self.held.clear();
        self.held_octets = 0;
        if self.begun && self.automaton.state() == State::Open {
            self.send_dt(true);
        }
    }

    /// T-DISCONNECT.request.
    pub fn disconnect(&mut self, now: Instant) {
        self.on(now, Event::Tdisreq, With::Nothing);
    }

    /// Octets from the TCP connection.
    pub fn bytes(&mut self, now: Instant, mut bytes: Bytes) {
        while self.automaton.state() != State::Ended {
            match self.packets.next(&mut bytes) {
                Ok(None) => return,
                Ok(Some(piece)) => match self.tpdus.push(piece) {
                    Ok(items) => items.into_iter().for_each(|item| self.item(now, item)),
                    Err(rejected) => {
                        self.on(now, Event::Invalid, With::Rejected(rejected));
                    }
                },
                Err(error) => {
                    self.on(now, Event::Unreadable, With::Ends(End::Unreadable(error)));
                    return;
                }
            }
        }
    }

    /// The TCP connection ended.
    pub fn eof(&mut self, now: Instant) {
        self.on(now, Event::Ndisind, With::Ends(End::Eof));
    }

    /// The deadline may have passed.
    pub fn tick(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.on(now, Event::Timer, With::Ends(End::Timeout));
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

    /// The state, for tests.
    #[cfg(test)]
    pub(crate) fn state(&self) -> State {
        self.automaton.state()
    }

    fn item(&mut self, now: Instant, item: Item) {
        match item {
            Item::Tpdu { tpdu: Tpdu::Cr(connect), .. } => match self.judge(&connect) {
                Ok(()) => self.on(now, Event::Cr, With::Connect(connect)),
                Err((code, why)) => {
                    self.peer_reference = connect.source;
                    self.on(now, Event::CrRefused, With::Refused(code, why));
                }
            },
            Item::Tpdu { tpdu: Tpdu::Cc(connect), .. } => match self.unacceptable(&connect) {
                None => self.on(now, Event::Cc, With::Connect(connect)),
                Some(field) => {
                    let header = Tpdu::Cc(connect).encode();
                    self.invalid(now, pdu::Error::Value(field), header);
                }
            },
            Item::Tpdu { tpdu: Tpdu::Dr { reason, .. }, .. } => {
                self.on(now, Event::Dr, With::Reason(reason));
            }
            Item::Tpdu { tpdu: Tpdu::Er { cause, .. }, .. } => {
                self.on(now, Event::Er, With::Ends(End::Rejected(cause)));
            }
            Item::Tpdu { tpdu: Tpdu::Dt { end }, length } => {
                if length > self.receive_max {
                    self.invalid(now, pdu::Error::TooLong, Tpdu::Dt { end }.encode());
                } else {
                    self.amidst = true;
                    self.delivering = false;
                    self.on(now, Event::Dt, With::Nothing);
                }
            }
            Item::Data { bytes, last } => {
                if last {
                    self.amidst = false;
                    self.whole += 1;
                }
                if self.delivering {
                    self.out.push_back(Output::Data { bytes, last });
                }
            }
        }
    }

    fn invalid(&mut self, now: Instant, error: pdu::Error, header: Vec<u8>) {
        self.on(now, Event::Invalid, With::Rejected(Rejected { error, header }));
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
        if calls_another(connect.called.as_ref(), self.config.local.transport.as_ref()) {
            return Err((reason::ADDRESS_UNKNOWN, "called transport selector unknown"));
        }
        Ok(())
    }

    /// Takes an event and performs the action of its cell.
    fn on(&mut self, now: Instant, event: Event, with: With) {
        let entered = self.automaton.enter(event);
        let state = self.automaton.state();
        if state != entered.before {
            self.delivering = false;
            self.deadline = match state {
                State::Wfcc | State::Closing => Some(now + self.config.setup_timeout),
                State::Closed | State::Open | State::Ended => None,
            };
        }
        match entered.step {
            Step::Do(action) => {
                if let Err(Lacking) = self.perform(&entered, action, with) {
                    self.fail(now, entered.fault());
                }
            }
            Step::Nothing => {}
            Step::Misuse => self.fail(now, entered.to_string()),
            Step::ProtocolError => self.reject(&entered, with),
        }
    }

    /// Gives the connection up after a misuse.
    fn fail(&mut self, now: Instant, detail: String) {
        self.on(now, Event::Fail, With::Ends(End::Misuse(detail)));
    }

    fn perform(&mut self, entered: &Entered<Table>, action: Action, with: With) -> Performed {
        match action {
            Action::SendCr => self.send_cr(),
            Action::Accept => self.accept(with)?,
            Action::Refuse => self.refuse(entered, &with)?,
            Action::Confirm => self.confirm(with)?,
            Action::SendDt => self.send_data(with)?,
            Action::Deliver => self.delivering = true,
            Action::Disconnected => self.ended(entered, with)?,
            Action::Close => self.out.push_back(Output::Close),
        }
        Ok(())
    }
}
