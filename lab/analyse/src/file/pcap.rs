//! pcap: a header of 24 octets, then a header of 16 before each packet.

use super::{CapturedPacket, DecodeStep, FileFault, MAX_RECORD, Order};
use crate::{LinkType, Time};

/// Octets of the file's header.
pub(super) const HEADER: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    order: Order,
    /// Nanoseconds in a unit of the fraction.
    unit: u64,
    /// Octets before a packet.
    record: usize,
}

impl Format {
    /// The file's header; `None` where it is not yet whole.
    pub(super) fn read(input: &[u8]) -> Result<Option<(Format, LinkType)>, FileFault> {
        let magic = input.first_chunk::<4>().ok_or(FileFault::Magic)?;
        let of = |magic: [u8; 4]| match u32::from_be_bytes(magic) {
            0xa1b2_c3d4 => Some((1_000, 16)),
            0xa1b2_3c4d => Some((1, 16)),
            // Of patched systems: interface and protocol stand before each packet, too.
            0xa1b2_cd34 => Some((1_000, 24)),
            _ => None,
        };
        let [a, b, c, d] = *magic;
        let (order, (unit, record)) = match (of(*magic), of([d, c, b, a])) {
            (Some(found), _) => (Order::Big, found),
            (None, Some(found)) => (Order::Little, found),
            (None, None) => return Err(FileFault::Magic),
        };
        // The upper bits have the length of a frame check sequence.
        let link = order.u32_at(input, 20);
        Ok(link.map(|link| (Format { order, unit, record }, LinkType::from(link & 0xffff))))
    }

    pub(super) fn next<'a>(&mut self, input: &'a [u8]) -> Result<DecodeStep<'a>, FileFault> {
        let field = |at| self.order.u32_at(input, at);
        let (Some(seconds), Some(fraction), Some(captured), Some(original)) =
            (field(0), field(4), field(8), field(12))
        else {
            return Ok(DecodeStep::Need(self.record));
        };
        let length = captured as usize;
        if length > MAX_RECORD {
            return Err(FileFault::Length { what: "a packet", length: u64::from(captured) });
        }
        let size = self.record + length;
        let Some(octets) = input.get(self.record..size) else {
            return Ok(DecodeStep::Need(size));
        };
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit;
        let (time, original) = (Some(Time(nanos)), original.max(captured));
        Ok(DecodeStep::Packet {
            size,
            packet: CapturedPacket { interface: 0, time, inbound: None, original, octets },
        })
    }
}
