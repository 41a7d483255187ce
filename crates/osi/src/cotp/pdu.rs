//! TPDUs of class 0 (X.224 clause 13): encoding, and an incremental decoder that hands the user
//! data of DT TPDUs on as it arrives.

use crate::tpkt::{self, Piece};
use bytes::Bytes;
use smallvec::SmallVec;

/// Octets of a class 0 DT header: length indicator, code, EOT.
pub const DT_HEADER: usize = 3;

/// Largest TPDU where none is negotiated (RFC 1006 section 5).
pub const DEFAULT_SIZE: usize = tpkt::MAX_PAYLOAD;

/// TPDU sizes that can be named: 2 to the power of 7 to 13 (X.224 13.3.4 b).
pub const SIZE_EXPONENTS: std::ops::RangeInclusive<u8> = 7..=13;

const CR: u8 = 0xE0;
const CC: u8 = 0xD0;
const DR: u8 = 0x80;
const DT: u8 = 0xF0;
const ER: u8 = 0x70;

const TPDU_SIZE: u8 = 0xC0;
const CALLING: u8 = 0xC1;
const CALLED: u8 = 0xC2;
const INVALID_TPDU: u8 = 0xC1;
const ADDITIONAL_INFORMATION: u8 = 0xE0;
const ALTERNATIVE_CLASSES: u8 = 0xC7;

/// Reasons of a DR (X.224 13.5.3 d).
pub mod reason {
    /// Reason not specified.
    pub const NOT_SPECIFIED: u8 = 0;
    /// Congestion at the TSAP.
    pub const CONGESTION: u8 = 1;
    /// Session entity not attached to the TSAP.
    pub const NOT_ATTACHED: u8 = 2;
    /// Address unknown.
    pub const ADDRESS_UNKNOWN: u8 = 3;
    /// Negotiation failed: the proposed classes are not supported.
    pub const NEGOTIATION_FAILED: u8 = 130;

    /// The reason in words.
    pub fn name(reason: u8) -> &'static str {
        match reason {
            NOT_SPECIFIED => "reason not specified",
            CONGESTION => "congestion at TSAP",
            NOT_ATTACHED => "session entity not attached to TSAP",
            ADDRESS_UNKNOWN => "address unknown",
            128 => "normal disconnect",
            129 => "remote transport entity congestion",
            NEGOTIATION_FAILED => "connection negotiation failed",
            133 => "protocol error",
            135 => "reference overflow",
            136 => "connection request refused on this network connection",
            138 => "header or parameter length invalid",
            _ => "reserved reason",
        }
    }
}

/// Why a TPDU is invalid: the reject cause of the ER that answers it (X.224 13.12.3 c).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Lengths do not fit.
    #[error("malformed TPDU: its lengths do not fit (X.224 13.2)")]
    Malformed,
    /// A TPDU that class 0 does not have.
    #[error("TPDU type unknown to class 0 (X.224 13.1)")]
    Type,
    /// A TPDU of class 0 that has no place in this state.
    #[error("TPDU out of place")]
    Unexpected,
    /// This parameter or header field is out of range.
    #[error("TPDU field {0} out of range (X.224 13.3)")]
    Value(&'static str),
    /// A TPDU longer than the size negotiated.
    #[error("TPDU longer than negotiated (X.224 13.3.4 b)")]
    TooLong,
}

impl Error {
    /// The reject cause on the wire.
    pub fn cause(self) -> u8 {
        match self {
            Error::Malformed | Error::TooLong => 0,
            Error::Type | Error::Unexpected => 2,
            Error::Value(_) => 3,
        }
    }
}

/// Connection request and confirm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connect {
    /// DST-REF: zero in a CR.
    pub destination: u16,
    /// SRC-REF.
    pub source: u16,
    /// Preferred class, 0 to 4.
    pub class: u8,
    /// Alternative classes, a bit per class (CR only).
    pub alternatives: u8,
    /// Exponent of the TPDU size proposed or chosen.
    pub size: Option<u8>,
    /// Calling transport selector.
    pub calling: Option<Bytes>,
    /// Called transport selector.
    pub called: Option<Bytes>,
}

impl Connect {
    /// Whether a CR allows class 0 as the answer (X.224 6.5.5, table 3): it is preferred or named
    /// as alternative, or class 1 is, which implies it.
    pub fn allows_class_0(&self) -> bool {
        self.class <= 1 || self.alternatives & 0b11 != 0
    }
}

/// A TPDU without user data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tpdu {
    /// Connection request.
    Cr(Connect),
    /// Connection confirm.
    Cc(Connect),
    /// Disconnect request.
    Dr {
        /// DST-REF.
        destination: u16,
        /// SRC-REF.
        source: u16,
        /// Why, see [`reason`].
        reason: u8,
    },
    /// Header of a data TPDU; the data follows.
    Dt {
        /// Whether it ends the TSDU.
        end: bool,
    },
    /// Error.
    Er {
        /// DST-REF.
        destination: u16,
        /// Reject cause.
        cause: u8,
    },
}

impl Tpdu {
    /// The octets, without TPKT.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(16);
        match self {
            Tpdu::Cr(connect) => encode_connect(&mut body, CR, connect),
            Tpdu::Cc(connect) => encode_connect(&mut body, CC, connect),
            Tpdu::Dr { destination, source, reason } => {
                body.push(DR);
                body.extend_from_slice(&destination.to_be_bytes());
                body.extend_from_slice(&source.to_be_bytes());
                body.push(*reason);
            }
            Tpdu::Dt { end } => body.extend_from_slice(&[DT, if *end { 0x80 } else { 0 }]),
            Tpdu::Er { destination, cause } => {
                body.push(ER);
                body.extend_from_slice(&destination.to_be_bytes());
                body.push(*cause);
            }
        }
        let mut octets = Vec::with_capacity(body.len() + 1);
        octets.push(u8::try_from(body.len()).unwrap_or(u8::MAX - 1));
        octets.extend_from_slice(&body);
        octets
    }

    /// Reads the header that a length indicator announced; `header` is without it.
    ///
    /// # Errors
    /// [`Error`] gives the reject cause of the ER.
    pub fn decode(header: &[u8]) -> Result<Tpdu, Error> {
        let (code, rest) = header.split_first().ok_or(Error::Malformed)?;
        match (code & 0xF0, rest) {
            (CR, rest) => Ok(Tpdu::Cr(decode_connect(rest)?)),
            (CC, rest) => Ok(Tpdu::Cc(decode_connect(rest)?)),
            (DR, [d1, d2, s1, s2, reason, parameters @ ..]) => {
                each_parameter(parameters, |_, _| Ok(()))?;
                Ok(Tpdu::Dr {
                    destination: u16::from_be_bytes([*d1, *d2]),
                    source: u16::from_be_bytes([*s1, *s2]),
                    reason: *reason,
                })
            }
            // X.224 13.7.3: bit 8 is EOT; class 0 does not number its DTs.
            (DT, [number]) => Ok(Tpdu::Dt { end: number & 0x80 != 0 }),
            (ER, [d1, d2, cause, ..]) => {
                Ok(Tpdu::Er { destination: u16::from_be_bytes([*d1, *d2]), cause: *cause })
            }
            (DR | DT | ER, _) => Err(Error::Malformed),
            _ => Err(Error::Type),
        }
    }
}

/// An ER that shows the header it rejects.
pub fn encode_error(destination: u16, error: Error, rejected: &[u8]) -> Vec<u8> {
    let shown = rejected.get(..rejected.len().min(64)).unwrap_or_default();
    let mut octets = vec![0, ER];
    octets.extend_from_slice(&destination.to_be_bytes());
    octets.push(error.cause());
    put(&mut octets, INVALID_TPDU, shown);
    let length = u8::try_from(octets.len() - 1).unwrap_or(u8::MAX - 1);
    if let Some(first) = octets.first_mut() {
        *first = length;
    }
    octets
}

/// A DR with a text besides its reason.
pub fn encode_refusal(destination: u16, source: u16, reason: u8, text: &str) -> Vec<u8> {
    let mut octets = Tpdu::Dr { destination, source, reason }.encode();
    put(&mut octets, ADDITIONAL_INFORMATION, text.as_bytes());
    let length = u8::try_from(octets.len() - 1).unwrap_or(u8::MAX - 1);
    if let Some(first) = octets.first_mut() {
        *first = length;
    }
    octets
}

fn put(octets: &mut Vec<u8>, code: u8, value: &[u8]) {
    octets.push(code);
    octets.push(u8::try_from(value.len()).unwrap_or(u8::MAX));
    octets.extend_from_slice(value);
}

fn encode_connect(body: &mut Vec<u8>, code: u8, connect: &Connect) {
    body.push(code);
    body.extend_from_slice(&connect.destination.to_be_bytes());
    body.extend_from_slice(&connect.source.to_be_bytes());
    body.push(connect.class << 4);
    if let Some(size) = connect.size {
        put(body, TPDU_SIZE, &[size]);
    }
    if let Some(calling) = &connect.calling {
        put(body, CALLING, calling);
    }
    if let Some(called) = &connect.called {
        put(body, CALLED, called);
    }
    let classes: Vec<u8> =
        (0..8).filter(|class| connect.alternatives & (1 << class) != 0).map(|c| c << 4).collect();
    if !classes.is_empty() {
        put(body, ALTERNATIVE_CLASSES, &classes);
    }
}

fn decode_connect(rest: &[u8]) -> Result<Connect, Error> {
    let [d1, d2, s1, s2, class, parameters @ ..] = rest else {
        return Err(Error::Malformed);
    };
    let mut connect = Connect {
        destination: u16::from_be_bytes([*d1, *d2]),
        source: u16::from_be_bytes([*s1, *s2]),
        class: class >> 4,
        ..Connect::default()
    };
    if connect.class > 4 {
        return Err(Error::Value("class"));
    }
    // X.224 13.2.3: parameters come in any order; those not understood are ignored in a CR, and,
    // to be generous, in a CC.
    each_parameter(parameters, |code, value| {
        match (code, value) {
            (TPDU_SIZE, [size]) if *size >= *SIZE_EXPONENTS.start() => {
                connect.size = Some((*size).min(*SIZE_EXPONENTS.end()));
            }
            (TPDU_SIZE, _) => return Err(Error::Value("TPDU size")),
            (CALLING, value) => connect.calling = Some(Bytes::copy_from_slice(value)),
            (CALLED, value) => connect.called = Some(Bytes::copy_from_slice(value)),
            (ALTERNATIVE_CLASSES, value) => {
                connect.alternatives = value.iter().fold(0, |set, class| {
                    set | 1u8.checked_shl(u32::from(class >> 4)).unwrap_or(0)
                });
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(connect)
}

fn each_parameter(
    mut octets: &[u8],
    mut each: impl FnMut(u8, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    while let [code, length, rest @ ..] = octets {
        let (value, rest) = rest.split_at_checked(usize::from(*length)).ok_or(Error::Malformed)?;
        each(*code, value)?;
        octets = rest;
    }
    if octets.is_empty() { Ok(()) } else { Err(Error::Malformed) }
}

/// A TPDU, or a piece of its user data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A TPDU, or the header of a DT.
    Tpdu {
        /// The TPDU.
        tpdu: Tpdu,
        /// Octets of the whole TPDU.
        length: usize,
    },
    /// User data of the DT before it.
    Data {
        /// The octets; empty only where a TSDU ends with an empty DT.
        bytes: Bytes,
        /// Whether they end the TSDU.
        last: bool,
    },
}

/// A TPDU that cannot be read, with its header as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The fault of the TPDU.
    pub error: Error,
    /// The header, length indicator first.
    pub header: Vec<u8>,
}

/// Reads TPDUs from the pieces of TPKT payloads.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    header: Vec<u8>,
    body: Body,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Body {
    /// The header is not complete.
    #[default]
    Header,
    /// User data of a DT follows.
    Data { end: bool },
    /// Octets after a TPDU that has no user data in class 0: ignored.
    Ignored,
}

impl Decoder {
    /// Takes the next piece; gives at most a TPDU and its data.
    ///
    /// # Errors
    /// [`Rejected`], at the latest at the end of the packet.
    pub fn push(&mut self, piece: Piece) -> Result<SmallVec<[Item; 2]>, Rejected> {
        let mut items = SmallVec::new();
        let mut bytes = piece.bytes;
        if piece.first {
            self.header.clear();
            self.body = Body::Header;
        }
        let mut started = false;
        if self.body == Body::Header {
            // The length indicator counts the header without itself; 255 is reserved (13.2.1).
            while let Some(octet) = bytes.first().copied().filter(|_| !self.known()) {
                self.header.push(octet);
                let _ = bytes.split_to(1);
            }
            if self.complete() {
                let tpdu = Tpdu::decode(self.header.get(1..).unwrap_or_default())
                    .map_err(|error| self.rejected(error))?;
                self.body = match tpdu {
                    Tpdu::Dt { end } => Body::Data { end },
                    _ => Body::Ignored,
                };
                started = true;
                items.push(Item::Tpdu { tpdu, length: piece.length });
            } else if piece.last || self.known() {
                return Err(self.rejected(Error::Malformed));
            }
        }
        if let Body::Data { end } = self.body {
            let last = piece.last && end;
            if !bytes.is_empty() || (last && started) {
                items.push(Item::Data { bytes, last });
            }
        }
        Ok(items)
    }

    /// Octets of a header held.
    pub fn held(&self) -> usize {
        self.header.len()
    }

    /// Whether the header can be judged: it is complete, or its length indicator is the reserved one.
    fn known(&self) -> bool {
        self.complete() || self.header.first() == Some(&u8::MAX)
    }

    fn complete(&self) -> bool {
        match self.header.first() {
            Some(&u8::MAX) | None => false,
            Some(&length) => self.header.len() > usize::from(length),
        }
    }

    fn rejected(&self, error: Error) -> Rejected {
        Rejected { error, header: self.header.clone() }
    }
}

#[cfg(test)]
mod tests;
