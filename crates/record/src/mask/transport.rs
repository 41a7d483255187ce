//! TPKT (RFC 1006) and the TPDUs of COTP class 0: where the octets of TSDUs are.

use super::Masked;
use super::cipher::Cipher;
use super::session::Session;

/// TPKT's version.
const VERSION: u8 = 3;
/// The code of a DT TPDU, and those of the others: ER, DR, CC, CR.
const DT: u8 = 0xF0;
const OTHERS: [u8; 4] = [0x70, 0x80, 0xD0, 0xE0];
/// The length indicator of a DT TPDU.
const DT_INDICATOR: u8 = 2;
/// The bit of a DT TPDU that ends its TSDU.
const END: u8 = 0x80;
/// Octets of TPKT's header.
const HEADER: usize = 4;

/// What the next octet is.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// An octet of TPKT's header.
    Packet { have: usize, length: usize },
    /// The length indicator of a TPDU, with the packet's octets that are left.
    Indicator { left: usize },
    /// The code of a DT TPDU.
    Code { left: usize },
    /// Its end mark.
    Mark { left: usize },
    /// User data of a DT TPDU.
    Data { left: usize, ends: bool },
    /// The code of another TPDU, which is the whole packet.
    Other { left: usize },
    /// The rest of it.
    Inside { left: usize },
    /// No octet can be read any more.
    Broken,
}

const PACKET: Next = Next::Packet { have: 0, length: 0 };

/// One direction of an association.
#[derive(Debug)]
pub(super) struct Transport {
    next: Next,
    session: Session,
}

impl Transport {
    pub(super) fn new(of_user: bool) -> Transport {
        Transport { next: PACKET, session: Session::new(of_user) }
    }

    /// Reads the next octets.
    pub(super) fn read(&mut self, octets: &[u8], cipher: &Cipher, masked: &mut Masked) {
        self.session.input_begins();
        let mut at = 0;
        while let Some(rest) = octets.get(at..).filter(|rest| !rest.is_empty()) {
            match self.next {
                Next::Data { left, ends } => {
                    let taken = rest.len().min(left);
                    self.session.read(rest.get(..taken).unwrap_or_default(), at, cipher, masked);
                    self.next = match left - taken {
                        0 => self.packet_ends(ends, masked),
                        left => Next::Data { left, ends },
                    };
                    at += taken;
                }
                Next::Inside { left } => {
                    let taken = rest.len().min(left);
                    self.next = match left - taken {
                        0 => PACKET,
                        left => Next::Inside { left },
                    };
                    at += taken;
                }
                Next::Broken => return masked.blank(at, rest.len()),
                _ => {
                    let Some(octet) = rest.first() else { return };
                    self.next = self.header(*octet, masked);
                    if matches!(self.next, Next::Broken) {
                        // What was read before may be a part of a bind too.
                        self.session.lose(masked);
                    } else {
                        at += 1;
                    }
                }
            }
        }
    }

    fn packet_ends(&mut self, ends: bool, masked: &mut Masked) -> Next {
        if ends {
            self.session.end(masked);
        }
        PACKET
    }

    /// Where one octet of a header leads.
    fn header(&mut self, octet: u8, masked: &mut Masked) -> Next {
        match self.next {
            Next::Packet { have: 0, .. } if octet != VERSION => Next::Broken,
            Next::Packet { have, length } => {
                let length = if have < 2 { 0 } else { length << 8 | usize::from(octet) };
                match (have + 1, length.checked_sub(HEADER)) {
                    (HEADER, Some(left @ 3..)) => Next::Indicator { left },
                    (HEADER, _) => Next::Broken,
                    (have, _) => Next::Packet { have, length },
                }
            }
            Next::Indicator { left } if octet == DT_INDICATOR => Next::Code { left: left - 1 },
            Next::Indicator { left } if usize::from(octet) == left - 1 => {
                Next::Other { left: left - 1 }
            }
            Next::Code { left } if octet & 0xF0 == DT => Next::Mark { left: left - 1 },
            Next::Mark { left } => match (octet & END != 0, left - 1) {
                (ends, 0) => self.packet_ends(ends, masked),
                (ends, left) => Next::Data { left, ends },
            },
            Next::Other { left } if OTHERS.contains(&(octet & 0xF0)) => {
                Next::Inside { left: left - 1 }
            }
            _ => Next::Broken,
        }
    }
}
