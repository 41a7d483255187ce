//! Changes of the header by a router. The IPv4 checksum is updated incrementally (RFC 1624).

use super::Packet;
use dscp::Dscp;

/// Congestion experienced, a value of the two bits of ECN (RFC 3168 5).
const CE: u8 = 3;

impl Packet {
    /// Sets the DSCP; the ECN field remains. Returns whether the DSCP changed.
    pub fn set_dscp(&mut self, dscp: Dscp) -> bool {
        let changed = self.header.dscp != dscp;
        if changed {
            self.header.dscp = dscp;
            self.write_traffic_class();
        }
        changed
    }

    /// Decrements the time to live or hop limit (RFC 1812 5.3.1, RFC 8200 3). Returns `false`,
    /// without a change, if it would become 0: the packet must not be forwarded.
    #[must_use]
    pub fn decrement_ttl(&mut self) -> bool {
        if self.header.ttl <= 1 {
            return false;
        }
        self.header.ttl -= 1;
        let ttl = self.header.ttl;
        match self.octets.as_mut_slice() {
            [first, _, _, _, _, _, _, _, at, protocol, c0, c1, ..] if *first >> 4 == 4 => {
                let old = u16::from_be_bytes([*at, *protocol]);
                *at = ttl;
                let sum = u16::from_be_bytes([*c0, *c1]);
                [*c0, *c1] = adjusted(sum, old, u16::from_be_bytes([ttl, *protocol])).to_be_bytes();
            }
            [_, _, _, _, _, _, _, at, ..] => *at = ttl,
            _ => {}
        }
        true
    }

    /// Sets CE if the transport is ECN-capable (RFC 3168 5). Returns whether the packet is CE now;
    /// if not, it has to be dropped instead.
    #[must_use]
    pub fn set_congestion(&mut self) -> bool {
        match self.header.ecn {
            0 => false,
            CE => true,
            _ => {
                self.header.ecn = CE;
                self.write_traffic_class();
                true
            }
        }
    }

    /// Writes the DS field from the header that was read into the octets.
    fn write_traffic_class(&mut self) {
        let tos = self.header.dscp.tos() | self.header.ecn;
        match self.octets.as_mut_slice() {
            [first, at, _, _, _, _, _, _, _, _, c0, c1, ..] if *first >> 4 == 4 => {
                let old = u16::from_be_bytes([*first, *at]);
                *at = tos;
                let sum = u16::from_be_bytes([*c0, *c1]);
                [*c0, *c1] = adjusted(sum, old, u16::from_be_bytes([*first, tos])).to_be_bytes();
            }
            [first, second, ..] => {
                *first = *first & 0xf0 | tos >> 4;
                *second = *second & 0x0f | tos << 4;
            }
            _ => {}
        }
    }
}

/// The checksum after one of its words changed (RFC 1624 3, equation 3).
fn adjusted(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let once = (sum & 0xffff) + (sum >> 16);
    !((once & 0xffff) + (once >> 16)) as u16
}
