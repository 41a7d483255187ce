//! TPKT (RFC 1006 section 6): packets on a TCP connection, so that it looks like a network
//! connection to the transport layer.
//!
//! The decoder hands the payload on as it arrives and never holds more than the four octets of a
//! header.

use bytes::Bytes;

/// Octets of the header: version, reserved, length.
pub const HEADER: usize = 4;

/// Fewest octets of payload: the shortest TPDU, a DT without data (RFC 1006 section 6).
pub const MIN_PAYLOAD: usize = 3;

/// Most octets of payload: 65,535 less the header.
pub const MAX_PAYLOAD: usize = 65_531;

const VERSION: u8 = 3;

/// What is wrong with a packet. The connection cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The first octet is not 3.
    #[error("TPKT version {0}, not 3 (RFC 1006 section 6)")]
    Version(u8),
    /// The packet length is below 7 octets.
    #[error("TPKT length {0}, below 7 (RFC 1006 section 6)")]
    Length(u16),
}

/// Some octets of one packet's payload; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The octets.
    pub bytes: Bytes,
    /// Octets of the whole payload.
    pub length: usize,
    /// Whether they begin the payload.
    pub first: bool,
    /// Whether they end it.
    pub last: bool,
}

/// Takes a TCP stream apart.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    header: [u8; HEADER],
    have: usize,
    length: usize,
    left: usize,
}

impl Decoder {
    /// Whether a packet has begun and is not complete.
    pub fn is_within(&self) -> bool {
        self.have > 0 || self.left > 0
    }

    /// The next piece of payload in `input`, which is advanced; `None` where `input` is used up.
    ///
    /// # Errors
    /// [`Error`]: invalid TPKT header. The caller does not call again.
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<Piece>, Error> {
        while self.left == 0 {
            if input.is_empty() {
                return Ok(None);
            }
            let octet = input.split_to(1);
            for (slot, value) in self.header.iter_mut().skip(self.have).zip(octet.iter()) {
                *slot = *value;
            }
            self.have += 1;
            if self.have < HEADER {
                continue;
            }
            let [version, _reserved, high, low] = self.header;
            if version != VERSION {
                return Err(Error::Version(version));
            }
            let packet = u16::from_be_bytes([high, low]);
            self.have = 0;
            self.length = usize::from(packet).saturating_sub(HEADER);
            if self.length < MIN_PAYLOAD {
                return Err(Error::Length(packet));
            }
            self.left = self.length;
        }
        if input.is_empty() {
            return Ok(None);
        }
        let first = self.left == self.length;
        let bytes = input.split_to(self.left.min(input.len()));
        self.left -= bytes.len();
        Ok(Some(Piece { bytes, length: self.length, first, last: self.left == 0 }))
    }
}

/// The header of a packet with `payload` octets, [`MIN_PAYLOAD`] to [`MAX_PAYLOAD`].
pub fn header(payload: usize) -> [u8; HEADER] {
    debug_assert!((MIN_PAYLOAD..=MAX_PAYLOAD).contains(&payload));
    let packet = u16::try_from(payload + HEADER).unwrap_or(u16::MAX);
    let [high, low] = packet.to_be_bytes();
    [VERSION, 0, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn payloads(cuts: &[&[u8]]) -> Result<Vec<Vec<u8>>, Error> {
        let mut decoder = Decoder::default();
        let mut done = Vec::new();
        let mut current = Vec::new();
        for cut in cuts {
            let mut input = Bytes::copy_from_slice(cut);
            while let Some(piece) = decoder.next(&mut input)? {
                assert!(!piece.bytes.is_empty());
                assert_eq!(piece.first, current.is_empty());
                current.extend_from_slice(&piece.bytes);
                if piece.last {
                    assert_eq!(current.len(), piece.length);
                    done.push(std::mem::take(&mut current));
                }
            }
        }
        Ok(done)
    }

    #[test]
    fn two_packets_of_one_segment() {
        let stream = [3, 0, 0, 7, 2, 0xF0, 0x80, 3, 0, 0, 8, 2, 0xF0, 0x80, 9];
        assert_eq!(payloads(&[&stream]).unwrap(), [vec![2, 0xF0, 0x80], vec![2, 0xF0, 0x80, 9]]);
    }

    #[test]
    fn every_cut_gives_the_same_payloads() {
        let stream = [3, 0, 0, 7, 2, 0xF0, 0x80, 3, 0, 0, 8, 2, 0xF0, 0x80, 9];
        let whole = payloads(&[&stream]).unwrap();
        for cut in 0..=stream.len() {
            let (a, b) = stream.split_at(cut);
            assert_eq!(payloads(&[a, b]).unwrap(), whole, "cut at {cut}");
        }
        let octets: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(payloads(&octets).unwrap(), whole);
    }

    #[test]
    fn another_version_and_a_short_packet_are_refused() {
        assert_eq!(payloads(&[&[2, 0, 0, 7]]), Err(Error::Version(2)));
        assert_eq!(payloads(&[&[3, 0, 0, 6]]), Err(Error::Length(6)));
        assert_eq!(payloads(&[&[3, 0, 0, 0]]), Err(Error::Length(0)));
    }

    #[test]
    fn the_longest_packet_has_65535_octets() {
        assert_eq!(header(MAX_PAYLOAD), [3, 0, 0xFF, 0xFF]);
        assert_eq!(header(MIN_PAYLOAD), [3, 0, 0, 7]);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(octets in proptest::collection::vec(any::<u8>(), 0..64), cut in 0usize..64) {
            let (a, b) = octets.split_at(cut.min(octets.len()));
            let _ = payloads(&[a, b]);
        }
    }
}
