//! TPKT (RFC 1006) and the TPDUs of COTP class 0: where the octets of TSDUs are.

use super::Masked;
use super::cipher::Cipher;
use super::session::Session;

/// TPKT's version.
const VERSION: u8 = 3;
/// The code of a DT TPDU.
const DT: u8 = 0xF0;
/// The bit of a DT TPDU that ends its TSDU.
const END: u8 = 0x80;
/// Octets of TPKT's header.
const HEADER: usize = 4;

/// What the next octet is.
#[derive(Debug)]
enum Next {
    /// An octet of TPKT's header.
    Packet { have: usize, length: usize },
    /// The length indicator of a TPDU, with the packet's octets that are left.
    Indicator { left: usize },
    /// An octet of a TPDU's header.
    Header { left: usize, of: usize, at: usize, is_data: bool, ends: bool },
    /// User data of a TPDU.
    Data { left: usize, is_data: bool, ends: bool },
    /// No octet can be read any more.
    Broken,
}

/// One direction of an association.
#[derive(Debug)]
pub(super) struct Transport {
    next: Next,
    session: Session,
}

impl Transport {
    pub(super) fn new(of_user: bool) -> Transport {
        Transport { next: Next::Packet { have: 0, length: 0 }, session: Session::new(of_user) }
    }

    /// Reads the next octets.
    pub(super) fn read(&mut self, octets: &[u8], cipher: &Cipher, masked: &mut Masked) {
        let mut at = 0;
        while at < octets.len() && !self.session.is_done() {
            let rest = octets.get(at..).unwrap_or_default();
            match &mut self.next {
                Next::Data { left, is_data, ends } => {
                    let taken = rest.len().min(*left);
                    *left -= taken;
                    let (is_data, over) = (*is_data, *left == 0);
                    let ended = *ends && over;
                    if over {
                        self.next = Next::Packet { have: 0, length: 0 };
                    }
                    if is_data {
                        let data = rest.get(..taken).unwrap_or_default();
                        self.session.read(data, at, cipher, masked);
                        if ended {
                            self.session.end();
                        }
                    }
                    at += taken;
                }
                Next::Broken => {
                    masked.blank(at, rest.len());
                    return;
                }
                _ => {
                    let Some(octet) = rest.first() else { return };
                    self.header(*octet);
                    at += 1;
                }
            }
        }
    }

    /// One octet of a header.
    fn header(&mut self, octet: u8) {
        self.next = match self.next {
            Next::Packet { have: 0, .. } if octet != VERSION => Next::Broken,
            Next::Packet { have, length } => {
                let length = if have < 2 { 0 } else { length << 8 | usize::from(octet) };
                match (have + 1, length.checked_sub(HEADER)) {
                    (HEADER, Some(left @ 3..)) => Next::Indicator { left },
                    (HEADER, _) => Next::Broken,
                    (have, _) => Next::Packet { have, length },
                }
            }
            Next::Indicator { left } => match (left - 1).checked_sub(usize::from(octet)) {
                Some(_) if octet > 0 => Next::Header {
                    left: left - 1,
                    of: usize::from(octet),
                    at: 0,
                    is_data: false,
                    ends: false,
                },
                _ => Next::Broken,
            },
            Next::Header { left, of, at, is_data, ends } => {
                let is_data = if at == 0 { octet & 0xF0 == DT } else { is_data };
                let ends = if at == 1 { octet & END != 0 } else { ends };
                match (at + 1 == of, left - 1) {
                    (false, left) => Next::Header { left, of, at: at + 1, is_data, ends },
                    (true, 0) => {
                        if is_data && ends {
                            self.session.end();
                        }
                        Next::Packet { have: 0, length: 0 }
                    }
                    (true, left) => Next::Data { left, is_data, ends },
                }
            }
            Next::Data { .. } | Next::Broken => Next::Broken,
        };
    }
}
