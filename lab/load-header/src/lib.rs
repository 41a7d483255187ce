//! The header of the packets and blocks of `lab load`: 40 octets, all numbers in network order.
//!
//! ```text
//!  0  "XLOD"            4  version, 1        5  flags: 1 the end, 2 of CLOCK_REALTIME, 4 sent back
//!  6  zero, 2 octets    8  run, u32         12  flow, u32
//! 16  sequence, u64    24  sent, ns, u64    32  length with header, u32   36  zero, 4 octets
//! ```
//!
//! In the packet that ends a flow, the sequence is the number of packets sent before it.

/// Octets of the header, the shortest payload.
pub const HEADER: usize = 40;

const MAGIC: &[u8; 4] = b"XLOD";
const VERSION: u8 = 1;
const END: u8 = 1;
const REALTIME: u8 = 2;
const ANSWER: u8 = 4;

/// Whether the flag "sent back" is set.
pub fn is_answer(packet: &[u8]) -> bool {
    packet.get(5).is_some_and(|flags| flags & ANSWER != 0)
}

/// Sets the flag "sent back". Returns `false` if the packet has it already, has no such header, or
/// ends its flow.
pub fn make_answer(packet: &mut [u8]) -> bool {
    let is_plain = LoadHeader::read(packet).is_some_and(|header| !header.end) && !is_answer(packet);
    match packet.get_mut(5) {
        Some(flags) if is_plain => *flags |= ANSWER,
        _ => return false,
    }
    true
}

/// The header of a packet, or of a block in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadHeader {
    /// Distinguishes the runs of senders.
    pub run: u32,
    /// The number of the flow in its plan.
    pub flow: u32,
    /// The sequence number: from 0, increased by 1 for each packet or block.
    pub sequence: u64,
    /// The time of sending, in nanoseconds of the sender's clock.
    pub sent: u64,
    /// `true` if that clock is CLOCK_REALTIME, `false` if it is CLOCK_MONOTONIC.
    pub realtime: bool,
    /// Octets of the payload or of the block, header included.
    pub length: u32,
    /// The end of the flow; `sequence` is the number of packets or blocks sent before.
    pub end: bool,
}

impl LoadHeader {
    /// The octets of the header.
    pub fn write(&self) -> [u8; HEADER] {
        let flags = u8::from(self.end) * END + u8::from(self.realtime) * REALTIME;
        let parts: [&[u8]; 8] = [
            MAGIC,
            &[VERSION, flags, 0, 0],
            &self.run.to_be_bytes(),
            &self.flow.to_be_bytes(),
            &self.sequence.to_be_bytes(),
            &self.sent.to_be_bytes(),
            &self.length.to_be_bytes(),
            &[0; 4],
        ];
        let mut octets = [0; HEADER];
        for (to, from) in octets.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        octets
    }

    /// Reads the header at the front. `None` if there is none, or if its length is below that of
    /// the header.
    pub fn read(octets: &[u8]) -> Option<LoadHeader> {
        let u32_at = |at: usize| -> Option<u32> {
            Some(u32::from_be_bytes(octets.get(at..at + 4)?.try_into().ok()?))
        };
        let u64_at = |at: usize| -> Option<u64> {
            Some(u64::from_be_bytes(octets.get(at..at + 8)?.try_into().ok()?))
        };
        let (magic, flags) = (octets.get(..4)?, *octets.get(5)?);
        if magic != MAGIC || octets.get(4) != Some(&VERSION) || octets.len() < HEADER {
            return None;
        }
        let length = u32_at(32)?;
        (length as usize >= HEADER).then_some(LoadHeader {
            run: u32_at(8)?,
            flow: u32_at(12)?,
            sequence: u64_at(16)?,
            sent: u64_at(24)?,
            realtime: flags & REALTIME != 0,
            length,
            end: flags & END != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_are_read_as_they_were_written(
            (run, flow, sequence, sent) in any::<(u32, u32, u64, u64)>(),
            length in 40u32.., end in any::<bool>(), realtime in any::<bool>(), cut in 0usize..40,
        ) {
            let header = LoadHeader { run, flow, sequence, sent, realtime, length, end };
            let octets = header.write();
            prop_assert_eq!(LoadHeader::read(&octets), Some(header));
            prop_assert_eq!(LoadHeader::read(&octets[..cut]), None);
            let mut foreign = octets;
            foreign[0] ^= 1;
            prop_assert_eq!(LoadHeader::read(&foreign), None);
        }
    }

    #[test]
    fn a_packet_is_sent_back_once_and_an_end_never() {
        let header = LoadHeader {
            run: 1,
            flow: 2,
            sequence: 3,
            sent: 4,
            realtime: false,
            length: 40,
            end: false,
        };
        let mut octets = header.write();
        assert!(!is_answer(&octets));
        assert!(make_answer(&mut octets) && is_answer(&octets));
        assert_eq!(LoadHeader::read(&octets), Some(header));
        assert!(!make_answer(&mut octets));
        assert!(!make_answer(&mut LoadHeader { end: true, ..header }.write()));
        assert!(!make_answer(&mut [0; 64]) && !make_answer(&mut []));
    }

    #[test]
    fn a_block_shorter_than_its_header_is_none() {
        let header = LoadHeader {
            run: 1,
            flow: 2,
            sequence: 3,
            sent: 4,
            realtime: false,
            length: 39,
            end: false,
        };
        assert_eq!(LoadHeader::read(&header.write()), None);
        assert_eq!(&header.write()[..8], b"XLOD\x01\0\0\0");
    }
}
