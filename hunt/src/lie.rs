//! A peer that does what none should: PDUs of the session layer are changed in transit.

use crate::world::Lie;
use bytes::{Bytes, BytesMut};

/// TPKT header and DT TPDU, the last of its TSDU (RFC 1006 6, X.224 13.7).
const HEADER: usize = 7;

/// SPDU identifiers (X.225 8.3): MINOR SYNC ACK and ABORT.
const MINOR_SYNC_ACK: u8 = 50;
const ABORT: u8 = 25;

/// Parameter identifier of a serial number (X.225 table 21).
const SERIAL: u8 = 42;

/// TPKTs in a stream of octets.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    partial: BytesMut,
}

impl Frames {
    /// The TPKTs that are whole now. What is none goes through as it is.
    pub(crate) fn push(&mut self, octets: &[u8]) -> Vec<Bytes> {
        self.partial.extend_from_slice(octets);
        let mut whole = Vec::new();
        while let Some(header) = self.partial.first_chunk::<4>() {
            let length = match header {
                [3, 0, high, low] => usize::from(u16::from_be_bytes([*high, *low])).max(4),
                _ => self.partial.len(),
            };
            if self.partial.len() < length {
                break;
            }
            whole.push(self.partial.split_to(length).freeze());
        }
        whole
    }
}

/// What goes out instead of this TPKT; `None` if the lie does not fit it.
pub(crate) fn instead(lie: Lie, frame: &Bytes) -> Option<Bytes> {
    let spdus = frame.get(HEADER..)?;
    if frame.get(4..HEADER) != Some(&[2, 0xF0, 0x80]) {
        return None;
    }
    if lie == Lie::Aborts {
        // The transport disconnect parameter (17): the connection is released, by the user.
        return Some(framed(&[ABORT, 3, 17, 1, 3]));
    }
    // GIVE TOKENS goes before an SPDU of category 2.
    let at = if spdus.starts_with(&[1, 0]) { 2 } else { 0 };
    let ack = spdus.get(at..)?;
    let serial = serial(ack)?;
    let other = match lie {
        Lie::Repeats => return Some([frame.clone(), frame.clone()].concat().into()),
        Lie::Ahead => serial + 3,
        _ => serial.checked_sub(2).filter(|serial| *serial > 0)?,
    };
    let digits = other.to_string();
    let parameter = [&[SERIAL, digits.len() as u8], digits.as_bytes()].concat();
    let spdu = [&spdus[..at], &[MINOR_SYNC_ACK, parameter.len() as u8], &parameter[..]].concat();
    Some(framed(&spdu))
}

/// The serial number of a MINOR SYNC ACK that has nothing else.
fn serial(spdu: &[u8]) -> Option<u32> {
    let [MINOR_SYNC_ACK, length, SERIAL, digits, rest @ ..] = spdu else { return None };
    let is_all = usize::from(*length) == rest.len() + 2 && usize::from(*digits) == rest.len();
    std::str::from_utf8(rest).ok().filter(|_| is_all)?.parse().ok()
}

fn framed(spdu: &[u8]) -> Bytes {
    let length = (HEADER + spdu.len()) as u16;
    let [high, low] = length.to_be_bytes();
    [&[3, 0, high, low, 2, 0xF0, 0x80], spdu].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tpkts_are_found_at_every_cut() {
        let stream = [framed(&[1, 0, 50, 3, 42, 1, b'7']), framed(&[25, 0])].concat();
        for cut in 0..stream.len() {
            let mut frames = Frames::default();
            let mut all = frames.push(&stream[..cut]);
            all.extend(frames.push(&stream[cut..]));
            assert_eq!(all.len(), 2, "{cut}");
            assert_eq!(all.concat(), stream);
        }
    }

    #[test]
    fn a_lie_is_a_pdu_of_its_own() {
        let ack = framed(&[1, 0, 50, 3, 42, 1, b'7']);
        assert_eq!(instead(Lie::Ahead, &ack), Some(framed(&[1, 0, 50, 4, 42, 2, b'1', b'0'])));
        assert_eq!(instead(Lie::Behind, &ack), Some(framed(&[1, 0, 50, 3, 42, 1, b'5'])));
        assert_eq!(instead(Lie::Repeats, &ack).map(|all| all.len()), Some(2 * ack.len()));
        assert_eq!(instead(Lie::Aborts, &ack), Some(framed(&[25, 3, 17, 1, 3])));
        assert_eq!(instead(Lie::Ahead, &framed(&[25, 0])), None);
    }
}
