//! Takes what our sender sends and confirms it in literal octets.

use super::peer::{Peer, Wire};
use super::reader::{self, Tsdu};

/// Takes a transfer, confirms each checkpoint and the end. Gives the transferred octets and how
/// many of them each data value had.
pub(crate) fn take_transfer<W: Wire>(
    peer: &mut Peer<W>,
    largest_tpkt: usize,
) -> (Vec<u8>, Vec<usize>) {
    let taken = take_until_end(peer, largest_tpkt);
    confirm(peer, 0x2a, &taken.serial);
    (taken.apdu, taken.parts)
}

/// A transfer whose end is not confirmed yet.
pub(crate) struct Taken {
    pub(crate) apdu: Vec<u8>,
    pub(crate) parts: Vec<usize>,
    /// Of the end.
    pub(crate) serial: String,
}

/// Takes a transfer, confirms each checkpoint but not the end.
pub(crate) fn take_until_end<W: Wire>(peer: &mut Peer<W>, largest_tpkt: usize) -> Taken {
    let (start, _) = reader::tsdu(peer, "the start of an activity");
    let start = reader::kind(&start);
    assert!(matches!(start, Tsdu::ActivityStart { .. }), "{start:?}");
    take_rest(peer, largest_tpkt)
}

/// Takes what follows the start of an activity or its resumption.
pub(crate) fn take_rest<W: Wire>(peer: &mut Peer<W>, largest_tpkt: usize) -> Taken {
    let (mut apdu, mut parts) = (Vec::new(), Vec::new());
    loop {
        let (tsdu, sizes) = reader::tsdu(peer, "a transfer");
        assert!(sizes.iter().all(|size| *size <= largest_tpkt), "{sizes:?}");
        match reader::kind(&tsdu) {
            Tsdu::Data(octets) => {
                parts.push(octets.len());
                apdu.extend(octets);
            }
            Tsdu::MinorSync { serial } => confirm(peer, 0x32, &serial),
            Tsdu::ActivityEnd { serial } => return Taken { apdu, parts, serial },
            other => panic!("{other:?} in a transfer"),
        }
    }
}

/// MIA or AEA: `03 00 .. 02 F0 80`, Please Tokens, the SPDU with the serial number.
pub(crate) fn confirm<W: Wire>(peer: &mut Peer<W>, code: u8, serial: &str) {
    let digits = u8::try_from(serial.len()).unwrap();
    let mut tpkt = vec![3, 0, 0, 13 + digits, 2, 0xf0, 0x80, 2, 0, code, 2 + digits, 0x2a, digits];
    tpkt.extend(serial.as_bytes());
    peer.wire.send(&tpkt);
}

/// What the sender sends until it waits: data, checkpoints, the end.
pub(crate) fn until_it_waits<W: Wire>(
    peer: &mut Peer<W>,
    apdu: &mut Vec<u8>,
) -> (Vec<String>, Option<String>) {
    let (mut checkpoints, mut end) = (Vec::new(), None);
    while !peer.wire.is_quiet() {
        match reader::kind(&reader::tsdu(peer, "a transfer").0) {
            Tsdu::ActivityStart { .. } => {}
            Tsdu::Data(octets) => apdu.extend(octets),
            Tsdu::MinorSync { serial } => checkpoints.push(serial),
            Tsdu::ActivityEnd { serial } => end = Some(serial),
            other => panic!("{other:?} in a transfer"),
        }
    }
    (checkpoints, end)
}
