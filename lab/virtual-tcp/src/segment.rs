//! TCP segments that leave and reach a host: their marks, and how much of them is sent again.

use dscp::Dscp;
use etherparse::TcpSlice;
use router::Packet;
use std::net::SocketAddr;
use std::time::Duration;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const TCP: u8 = 6;
/// The octet of the TCP header that holds the flags, from 0.
const FLAGS: usize = 13;
/// Octets of a header without options.
const HEADER: usize = 20;
/// Option kinds (RFC 9293 3.1).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const SEGMENT_SIZE: u8 = 2;

/// The two ends of a connection, seen from one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flow {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// The fields of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Source and destination.
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) dscp: Dscp,
    sequence: u32,
    flags: u8,
    pub(crate) payload: usize,
}

impl Segment {
    /// Reads a packet; `None` if it has no whole TCP header.
    pub(crate) fn from_packet(packet: &Packet) -> Option<Segment> {
        let header = packet.header();
        let (source, destination) = header.ports.filter(|_| header.protocol == TCP)?;
        let segment = packet.octets().get(header.transport..)?;
        let tcp = TcpSlice::from_slice(segment).ok()?;
        Some(Segment {
            from: SocketAddr::new(header.source, source),
            to: SocketAddr::new(header.destination, destination),
            dscp: header.dscp,
            sequence: tcp.sequence_number(),
            flags: *segment.get(FLAGS)?,
            payload: tcp.payload().len(),
        })
    }

    /// Whether it has SYN.
    pub(crate) fn is_syn(&self) -> bool {
        self.flags & SYN != 0
    }

    /// Whether it is the first segment of a connection.
    pub(crate) fn is_first(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }
}

/// Lowers the maximum segment size in a SYN to `limit` octets. The checksum is not changed.
pub(crate) fn clamp(octets: &mut [u8], transport: usize, limit: u16) {
    let Some(segment) = octets.get_mut(transport..) else { return };
    let Some(length) = segment.get(12).map(|offset| usize::from(offset >> 4) * 4) else { return };
    let Some(mut options) = segment.get_mut(HEADER..length) else { return };
    loop {
        let (kind, size) = match options {
            [NO_OPERATION, ..] => (NO_OPERATION, 1),
            [] | [END, ..] => return,
            [kind, size, ..] => (*kind, usize::from(*size).max(2)),
            [_] => return,
        };
        if let (SEGMENT_SIZE, [_, _, high, low, ..]) = (kind, &mut *options)
            && u16::from_be_bytes([*high, *low]) > limit
        {
            [*high, *low] = limit.to_be_bytes();
        }
        options = match options.get_mut(size..) {
            Some(rest) => rest,
            None => return,
        };
    }
}

/// What one end of a connection sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpUsage {
    /// Segments of any kind.
    pub segments: u64,
    /// Segments with payload.
    pub data_segments: u64,
    /// Octets of payload, each counted once.
    pub octets: u64,
    /// Segments with payload that was sent before.
    pub resent_segments: u64,
    /// Octets that were sent before.
    pub resent_octets: u64,
}

/// One end of a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionCount {
    /// The host.
    pub host: String,
    /// Its end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Whether it is the end that connected.
    pub initiator: bool,
    /// The mark of what it sends.
    pub dscp: Dscp,
    /// The time at which its first segment was sent.
    pub opened: Duration,
    /// The segments and octets that it sent.
    pub sent: TcpUsage,
    /// The segments with payload that came to it from the other end.
    pub received_data_segments: u64,
}

/// Counts what one end of a connection sends, and what comes to it.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// The mark of what it sends.
    pub(crate) dscp: Dscp,
    /// The mark of the peer's handshake as it arrived.
    pub(crate) seen: Option<Dscp>,
    /// Whether it is the end that connected.
    pub(crate) initiator: bool,
    /// The time at which its first segment was sent.
    pub(crate) opened: Option<Duration>,
    pub(crate) sent: TcpUsage,
    /// Segments with payload that came from the other end.
    pub(crate) received: u64,
    /// Sequence number after the highest octet that was sent.
    next: u32,
}

impl Meter {
    pub(crate) fn new(dscp: Dscp, initiator: bool) -> Meter {
        Meter {
            dscp,
            seen: None,
            initiator,
            opened: None,
            sent: TcpUsage::default(),
            received: 0,
            next: 0,
        }
    }

    /// A segment leaves.
    pub(crate) fn count(&mut self, now: Duration, segment: &Segment) {
        self.sent.segments += 1;
        self.sent.data_segments += u64::from(segment.payload > 0);
        if self.opened.is_none() || segment.is_syn() {
            self.opened.get_or_insert(now);
            self.next = segment.sequence.wrapping_add(u32::from(segment.is_syn()));
        }
        // Within half of the sequence space, as TCP compares.
        let before = self.next.wrapping_sub(segment.sequence).cast_signed();
        let again = usize::try_from(before).unwrap_or(0).min(segment.payload);
        // One octet sent before is a probe (RFC 9293 3.8.4).
        if again > 1 {
            self.sent.resent_segments += 1;
            self.sent.resent_octets += again as u64;
        }
        let new = segment.payload - again;
        self.sent.octets += new as u64;
        if new > 0 {
            let length = u32::try_from(segment.payload).unwrap_or(u32::MAX);
            self.next = segment.sequence.wrapping_add(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(sequence: u32, flags: u8, payload: usize) -> Segment {
        let from = "10.0.0.1:1".parse().unwrap();
        Segment { from, to: from, dscp: Dscp::CS0, sequence, flags, payload }
    }

    #[test]
    fn repeated_octets_are_counted_apart_from_new_ones() {
        let mut meter = Meter::new(Dscp::CS1, true);
        let start = u32::MAX - 150;
        let send = |meter: &mut Meter, at: u32, payload| {
            let flags = if at == 0 { SYN } else { ACK };
            meter.count(Duration::ZERO, &segment(start.wrapping_add(at), flags, payload));
        };
        for (at, payload) in [(0, 0), (1, 100), (101, 100), (201, 100)] {
            send(&mut meter, at, payload);
        }
        assert_eq!(
            meter.sent,
            TcpUsage { segments: 4, data_segments: 3, octets: 300, ..<_>::default() }
        );
        send(&mut meter, 300, 1); // a probe
        send(&mut meter, 101, 150);
        send(&mut meter, 251, 100); // half of it is new
        let again = TcpUsage {
            segments: 7,
            data_segments: 6,
            octets: 350,
            resent_segments: 2,
            resent_octets: 200,
        };
        assert_eq!(meter.sent, again);
    }

    #[test]
    fn the_segment_size_is_made_smaller_and_never_larger() {
        let mut octets = vec![0; 24];
        octets.extend([0; 12]);
        octets.extend([8 << 4, SYN, 0, 0, 0, 0, 0, 0]);
        octets.extend([NO_OPERATION, 3, 3, 7, SEGMENT_SIZE, 4, 5, 0xb4, END, 0, 0, 0]);
        let size = |octets: &[u8]| u16::from_be_bytes([octets[50], octets[51]]);
        for (limit, size_after) in [(1_500, 1_460), (1_300, 1_300), (1_400, 1_300)] {
            clamp(&mut octets, 24, limit);
            assert_eq!(size(&octets), size_after);
        }
        for cut in 0..octets.len() {
            clamp(&mut octets[..cut].to_vec(), 24, 1);
        }
    }
}
