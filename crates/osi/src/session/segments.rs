//! Segmenting (X.225 6.3.5): SSDUs are cut where TSDUs have a maximum size.

use super::pdu::{Enclosure, Spdu};
use bytes::{Bytes, BytesMut};

/// Octets before the user information of a DT in its TSDU: GT, and the DT's own header with its enclosure item.
const HEADERS: usize = 7;

/// Cuts SSDUs into the user information of DTs.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    /// Most octets of user information in a TSDU.
    most: usize,
    held: BytesMut,
    /// A DT of the SSDU was made.
    begun: bool,
}

impl Segments {
    /// Most octets that are held between two pieces.
    pub(super) const MAX_HELD: usize = u16::MAX as usize;

    /// For TSDUs of so many octets; `None` where that is unlimited (0), or too little for a DT.
    pub(super) fn new(tsdu: u16) -> Option<Segments> {
        let most = usize::from(tsdu).checked_sub(HEADERS).filter(|most| *most > 0)?;
        Some(Segments { most, held: BytesMut::new(), begun: false })
    }

    /// Octets held.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes a piece of an SSDU and gives the TSDUs that are whole: header, user information.
    pub(super) fn push(&mut self, bytes: &Bytes, last: bool, mut out: impl FnMut(Bytes, Bytes)) {
        self.held.extend_from_slice(bytes);
        // The last one has the end mark, so what fills a TSDU waits until it is known not to be the last.
        while self.held.len() > self.most || last && (!self.held.is_empty() || !self.begun) {
            let end = last && self.held.len() <= self.most;
            let enclosure = Enclosure { begin: !self.begun, end };
            let octets = self.held.split_to(self.held.len().min(self.most)).freeze();
            self.begun = !end;
            out(Spdu::Data(enclosure).encode_tsdu().into(), octets);
            if end {
                break;
            }
        }
    }

    /// The SSDU is cut short: what was held of it is gone.
    pub(super) fn cut(&mut self) {
        self.held.clear();
        self.begun = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The TSDUs of an SSDU that comes in pieces of this length.
    fn cut(tsdu: u16, ssdu: &[u8], piece: usize) -> Vec<(Bytes, Bytes)> {
        let (mut segments, mut all) = (Segments::new(tsdu).unwrap(), Vec::new());
        let count = ssdu.len().div_ceil(piece);
        for (n, piece) in ssdu.chunks(piece).enumerate() {
            let bytes = Bytes::copy_from_slice(piece);
            segments.push(&bytes, n + 1 == count, |header, octets| all.push((header, octets)));
            assert!(segments.held() <= usize::from(tsdu));
        }
        assert_eq!((segments.held(), segments.begun), (0, false));
        all
    }

    #[test]
    fn an_ssdu_is_cut_at_the_size_whatever_its_pieces() {
        let ssdu: Vec<u8> = (0..100).collect();
        for piece in [1, 3, 13, 14, 50, 100] {
            let all = cut(20, &ssdu, piece);
            assert_eq!(all.len(), 100_usize.div_ceil(13), "{piece}");
            let joined: Vec<u8> = all.iter().flat_map(|(_, octets)| octets.to_vec()).collect();
            assert_eq!(joined, ssdu);
            assert!(all.iter().all(|(header, octets)| header.len() + octets.len() <= 20));
            let header = |n: usize| all[n].0.to_vec();
            assert_eq!(header(0), [1, 0, 1, 3, 25, 1, 1], "the beginning");
            assert_eq!(header(1), [1, 0, 1, 3, 25, 1, 0], "the middle");
            assert_eq!(header(7), [1, 0, 1, 3, 25, 1, 2], "the end");
        }
        assert_eq!(
            cut(20, &ssdu[..13], 5),
            [(vec![1, 0, 1, 0].into(), ssdu[..13].to_vec().into())]
        );
    }

    #[test]
    fn no_size_is_no_limit() {
        assert!(Segments::new(0).is_none() && Segments::new(7).is_none());
    }
}
