//! Contents of messages and of bulk transfers: octets by chance that are not stored anywhere. Each
//! is known from its key and its place, so that what comes is checked without having it twice.

use base::rng::Rng;
use bytes::Bytes;

/// Octets that one key decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content(u64);

impl Content {
    /// Number `number` of a scenario.
    pub(crate) fn new(seed: u64, number: usize) -> Content {
        Content(Rng::new(seed ^ 0x636f_6e74_656e_7400).next_u64().wrapping_add(number as u64))
    }

    /// So many octets from this offset on.
    pub(crate) fn piece(self, offset: u64, len: usize) -> Bytes {
        let mut octets = Vec::with_capacity(len + 16);
        let skip = (offset % 8) as usize;
        let mut block = offset / 8;
        while octets.len() < len + skip {
            octets.extend_from_slice(&self.block(block));
            block += 1;
        }
        let octets = Bytes::from(octets);
        octets.slice(skip..skip + len)
    }

    /// How many of these octets are not those at this offset.
    pub(crate) fn wrong(self, offset: u64, octets: &[u8]) -> u64 {
        let right = self.piece(offset, octets.len());
        if right == octets {
            return 0;
        }
        right.iter().zip(octets).filter(|(a, b)| a != b).count() as u64
    }

    fn block(self, number: u64) -> [u8; 8] {
        Rng::new(self.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number).next_u64().to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_the_same_however_it_is_cut() {
        let content = Content::new(7, 3);
        let whole = content.piece(0, 100);
        for offset in 0..40 {
            let len = (100 - offset) / 2;
            let piece = content.piece(offset as u64, len);
            assert_eq!(piece, whole[offset..offset + len]);
            assert_eq!(content.wrong(offset as u64, &piece), 0);
            assert!(content.wrong(offset as u64 + 1, &piece) > 10);
        }
        assert_ne!(Content::new(7, 4).piece(0, 100), whole);
        assert_ne!(Content::new(8, 3).piece(0, 100), whole);
    }
}
