//! The octets of one direction of a connection, in order, as far as they were captured.

use bytes::Bytes;
use osi::tpkt;
use std::collections::BTreeMap;

/// Most octets of one direction that wait for those before them.
const MAX_HELD: usize = 256 << 10;
/// Most segments that wait.
const MAX_SEGMENTS: usize = 256;

/// Whether a segment can be the begin of a TPKT packet of class 0: CR, CC or DT (RFC 1006 6, X.224
/// 13).
pub(crate) fn looks_like_tpkt(payload: &[u8]) -> bool {
    match payload {
        [3, 0, high, low, 2, 0xf0, 0 | 0x80, ..] => u16::from_be_bytes([*high, *low]) >= 7,
        // Only a CR or CC alone in its packet: its length indicator counts all but itself.
        [3, 0, high, low, indicator, 0xd0..=0xef, ..] => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            length == usize::from(*indicator) + tpkt::HEADER + 1 && *indicator >= 6
        }
        _ => false,
    }
}

/// The outcome of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// There may be more in order now.
    InOrder,
    /// It waits for what is before it, or was there before.
    Nothing,
    /// Something is missing for good: octets from here on are in no known place of a packet.
    Lost,
}

/// One direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// The number of the next octet; `None` where it is not known where packets begin.
    next: Option<u64>,
    waiting: BTreeMap<u64, Bytes>,
    held: usize,
}

impl Stream {
    /// Whether it is known where packets begin.
    pub(crate) fn is_known(&self) -> bool {
        self.next.is_some()
    }

    /// A packet begins at this number.
    pub(crate) fn begin(&mut self, at: u64) {
        self.forget();
        self.next = Some(at);
    }

    /// It is not known any more.
    pub(crate) fn forget(&mut self) {
        self.next = None;
        self.waiting.clear();
        self.held = 0;
    }

    /// Octets that wait.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// A segment that begins at `from` with `length` octets, of which `payload` was captured; what is
    /// in order now goes into `ready`. `room` is how many octets may still wait, all streams together.
    pub(crate) fn segment(
        &mut self,
        from: u64,
        payload: &[u8],
        length: u64,
        room: usize,
        ready: &mut Vec<Bytes>,
    ) -> Taken {
        let Some(next) = self.next else { return Taken::Nothing };
        let end = from.saturating_add(length);
        if end <= next {
            return Taken::Nothing;
        }
        if (payload.len() as u64) < length && from <= next {
            self.forget();
            return Taken::Lost;
        }
        if from > next {
            let before = self.waiting.get(&from).map_or(0, Bytes::len);
            if before >= payload.len() {
                return Taken::Nothing;
            }
            let held = self.held + payload.len() - before;
            let full = self.waiting.len() >= MAX_SEGMENTS || held > MAX_HELD;
            if full || payload.len() > room || (payload.len() as u64) < length {
                self.forget();
                return Taken::Lost;
            }
            self.waiting.insert(from, Bytes::copy_from_slice(payload));
            self.held = held;
            return Taken::Nothing;
        }
        let known = usize::try_from(next - from).unwrap_or(usize::MAX);
        let fresh = payload.get(known..).unwrap_or_default();
        ready.push(Bytes::copy_from_slice(fresh));
        let mut next = end;
        while let Some(entry) = self.waiting.first_entry()
            && *entry.key() <= next
        {
            let (from, bytes) = entry.remove_entry();
            self.held -= bytes.len();
            let known = usize::try_from(next - from).unwrap_or(usize::MAX);
            if known < bytes.len() {
                next = from + bytes.len() as u64;
                ready.push(bytes.slice(known..));
            }
        }
        self.next = Some(next);
        Taken::InOrder
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_begins_like_a_packet_of_class_0_is_taken_for_one() {
        assert!(looks_like_tpkt(&[3, 0, 0, 7, 2, 0xf0, 0x80]));
        assert!(looks_like_tpkt(&[3, 0, 0, 11, 6, 0xe0, 0, 0, 0, 1, 0]));
        for none in
            [&b"GET / HTTP"[..], &[3, 0, 0, 6, 2, 0xf0, 0x80], &[3, 0, 0, 12, 6, 0xe0, 0], &[3]]
        {
            assert!(!looks_like_tpkt(none), "{none:?}");
        }
    }

    proptest! {
        /// Segments cut anywhere, twice or overlapping, in any order: the octets come once, in order.
        #[test]
        fn octets_come_once_and_in_order(
            cuts in proptest::collection::vec((0usize..300, 1usize..60), 1..40),
            swaps in proptest::collection::vec((0usize..40, 0usize..40), 0..40),
        ) {
            let all: Vec<u8> = (0..300u16).map(|n| n as u8).collect();
            let mut segments: Vec<(usize, usize)> =
                cuts.iter().map(|(at, n)| (*at, (at + n).min(300))).collect();
            segments.extend((0..300).step_by(50).map(|at| (at, at + 50)));
            let count = segments.len();
            for (a, b) in swaps {
                segments.swap(a % count, b % count);
            }
            let mut stream = Stream::default();
            stream.begin(1_000);
            let (mut ready, mut read) = (Vec::new(), Vec::new());
            for (from, to) in segments {
                let at = 1_000 + from as u64;
                let taken = stream.segment(at, &all[from..to], (to - from) as u64, MAX_HELD, &mut ready);
                prop_assert_ne!(taken, Taken::Lost);
                for bytes in ready.drain(..) {
                    read.extend_from_slice(&bytes);
                }
                prop_assert_eq!(&read[..], &all[..read.len()]);
                let held: usize = stream.waiting.values().map(Bytes::len).sum();
                prop_assert_eq!(stream.held(), held);
            }
            prop_assert_eq!(read, all);
            prop_assert_eq!(stream.held(), 0);
        }
    }

    #[test]
    fn what_was_not_captured_and_what_is_too_much_loses_the_place() {
        let mut stream = Stream::default();
        let mut ready = Vec::new();
        stream.begin(0);
        assert_eq!(stream.segment(0, b"ab", 100, MAX_HELD, &mut ready), Taken::Lost);
        assert!(!stream.is_known());
        stream.begin(0);
        let (mut at, big) = (10, vec![0; 9_000]);
        while stream.segment(at, &big, 9_000, MAX_HELD, &mut ready) == Taken::Nothing {
            at += 9_000;
            assert!(stream.held() <= MAX_HELD);
        }
        assert!(!stream.is_known() && stream.held() == 0 && ready.is_empty());
        stream.begin(0);
        assert_eq!(stream.segment(5, &big, 9_000, 10, &mut ready), Taken::Lost);
    }
}
