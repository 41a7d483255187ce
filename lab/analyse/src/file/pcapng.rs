//! pcapng (draft-ietf-opsawg-pcapng): sections of blocks.

use super::{
    CaptureInterface, CapturedPacket, DecodeStep, FileFault, MAX_INTERFACES, MAX_NAME, MAX_RECORD,
    Order, Resolution, Unit,
};
use crate::LinkType;

/// Types of blocks that are read; all others are passed over.
mod kind {
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const PACKET: u32 = 2;
    pub(super) const SIMPLE: u32 = 3;
    pub(super) const ENHANCED: u32 = 6;
    pub(super) const SECTION: u32 = 0x0a0d_0d0a;
}

/// Options of an interface, and of a packet.
mod option {
    pub(super) const END: u16 = 0;
    pub(super) const NAME: u16 = 2;
    pub(super) const FLAGS: u16 = 2;
    pub(super) const RESOLUTION: u16 = 9;
    pub(super) const OFFSET: u16 = 14;
}

/// The section that is read: interfaces are numbered from its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    order: Order,
    first_interface: usize,
}

impl Default for Section {
    fn default() -> Section {
        Section { order: Order::Little, first_interface: 0 }
    }
}

impl Section {
    pub(super) fn next<'a>(
        &mut self,
        input: &'a [u8],
        interfaces: &mut Vec<CaptureInterface>,
    ) -> Result<DecodeStep<'a>, FileFault> {
        let Some(head) = input.first_chunk::<12>() else { return Ok(DecodeStep::Need(12)) };
        let [t0, t1, t2, t3, l0, l1, l2, l3, m0, m1, m2, m3] = *head;
        // The type of a section header is the same in both byte orders; its magic number has the order.
        if u32::from_be_bytes([t0, t1, t2, t3]) == kind::SECTION {
            self.order = match u32::from_be_bytes([m0, m1, m2, m3]) {
                0x1a2b_3c4d => Order::Big,
                0x4d3c_2b1a => Order::Little,
                _ => return Err(FileFault::Magic),
            };
        }
        let order = self.order;
        let (kind, length) = (order.u32([t0, t1, t2, t3]), order.u32([l0, l1, l2, l3]));
        let size = length as usize;
        if size < 12 || !size.is_multiple_of(4) || size > MAX_RECORD {
            return Err(FileFault::Length { what: "a block", length: u64::from(length) });
        }
        let Some(body) = input.get(8..size - 4).filter(|_| input.len() >= size) else {
            return Ok(DecodeStep::Need(size));
        };
        let trailer = order.u32_at(input, size - 4).unwrap_or_default();
        if trailer != length {
            return Err(FileFault::Trailer(length, trailer));
        }
        let passed = Ok(DecodeStep::Passed(size));
        let packet = match kind {
            kind::SECTION => {
                self.first_interface = interfaces.len();
                return passed;
            }
            kind::INTERFACE => {
                if interfaces.len() >= MAX_INTERFACES {
                    return Err(FileFault::Interfaces);
                }
                interfaces.push(describe(order, body)?);
                return passed;
            }
            kind::ENHANCED => CapturedPacket {
                inbound: inbound(order, body),
                ..self.stamped(order.u32_at(body, 0), body, interfaces)?
            },
            // Obsolete: interface and drops share a word.
            kind::PACKET => {
                let interface = order.u16_at(body, 0).map(u32::from);
                self.stamped(interface, body, interfaces)?
            }
            kind::SIMPLE => self.simple(body, interfaces)?,
            _ => return passed,
        };
        Ok(DecodeStep::Packet { size, packet })
    }

    fn place(&self, number: u32, interfaces: &[CaptureInterface]) -> Result<usize, FileFault> {
        let place = self.first_interface.saturating_add(number as usize);
        if place < interfaces.len() { Ok(place) } else { Err(FileFault::Interface(number)) }
    }

    fn stamped<'a>(
        &self,
        interface: Option<u32>,
        body: &'a [u8],
        interfaces: &[CaptureInterface],
    ) -> Result<CapturedPacket<'a>, FileFault> {
        let short =
            || FileFault::Length { what: "a packet's block", length: body.len() as u64 + 12 };
        let field = |at| self.order.u32_at(body, at).ok_or_else(short);
        let interface = self.place(interface.ok_or_else(short)?, interfaces)?;
        let (high, low, captured, original) = (field(4)?, field(8)?, field(12)?, field(16)?);
        let octets = body.get(20..).and_then(|data| data.get(..captured as usize));
        let octets =
            octets.ok_or(FileFault::Length { what: "a packet", length: u64::from(captured) })?;
        let stamp = u64::from(high) << 32 | u64::from(low);
        let time = interfaces.get(interface).map(|at| at.resolution.time(stamp));
        let original = original.max(captured);
        Ok(CapturedPacket { interface, time, inbound: None, original, octets })
    }

    /// Without a time, and of the first interface.
    fn simple<'a>(
        &self,
        body: &'a [u8],
        interfaces: &[CaptureInterface],
    ) -> Result<CapturedPacket<'a>, FileFault> {
        let interface = self.place(0, interfaces)?;
        let Some(original) = self.order.u32_at(body, 0) else {
            return Err(FileFault::Length {
                what: "a packet's block",
                length: body.len() as u64 + 12,
            });
        };
        let data = body.get(4..).unwrap_or_default();
        let octets = data.get(..data.len().min(original as usize)).unwrap_or_default();
        Ok(CapturedPacket { interface, time: None, inbound: None, original, octets })
    }
}

type FoundOption<'a> = Result<(u16, &'a [u8]), FileFault>;

/// The options at the front, by their codes, up to their end.
fn options(order: Order, mut octets: &[u8]) -> impl Iterator<Item = FoundOption<'_>> {
    std::iter::from_fn(move || {
        let (code, length) = (order.u16_at(octets, 0)?, order.u16_at(octets, 2)?);
        let Some(value) = octets.get(4..).and_then(|rest| rest.get(..usize::from(length))) else {
            octets = &[];
            return Some(Err(FileFault::Length { what: "an option", length: u64::from(length) }));
        };
        octets = octets.get(4 + usize::from(length).next_multiple_of(4)..).unwrap_or_default();
        (code != option::END).then_some(Ok((code, value)))
    })
}

/// The direction of an enhanced packet block: the two lowest bits of its flags (pcapng 4.3.1).
fn inbound(order: Order, body: &[u8]) -> Option<bool> {
    let captured = order.u32_at(body, 12)? as usize;
    let behind = body.get(20usize.checked_add(captured.checked_next_multiple_of(4)?)?..)?;
    let (_, flags) = options(order, behind).flatten().find(|(code, _)| *code == option::FLAGS)?;
    match order.u32_at(flags, 0)? & 0b11 {
        1 => Some(true),
        2 => Some(false),
        _ => None,
    }
}

fn describe(order: Order, body: &[u8]) -> Result<CaptureInterface, FileFault> {
    let (Some(link), Some(behind)) = (order.u16_at(body, 0), body.get(8..)) else {
        return Err(FileFault::Length {
            what: "an interface's block",
            length: body.len() as u64 + 12,
        });
    };
    let mut interface = CaptureInterface {
        name: None,
        link: LinkType::from(u32::from(link)),
        resolution: Resolution::MICROSECONDS,
    };
    for found in options(order, behind) {
        match found? {
            (option::NAME, name) => {
                let name = name.get(..name.len().min(MAX_NAME)).unwrap_or_default();
                let text = String::from_utf8_lossy(name);
                let text = base::shown::line(text.trim_end_matches('\0'));
                interface.name = (!text.is_empty()).then(|| text.into_owned());
            }
            (option::RESOLUTION, [power, ..]) => {
                let unit = if power & 0x80 == 0 { Unit::Decimal } else { Unit::Binary };
                interface.resolution.unit = unit(power & 0x7f);
            }
            (option::OFFSET, seconds) => {
                if let Some(eight) = seconds.first_chunk::<8>() {
                    interface.resolution.offset = match order {
                        Order::Little => i64::from_le_bytes(*eight),
                        Order::Big => i64::from_be_bytes(*eight),
                    };
                }
            }
            _ => {}
        }
    }
    Ok(interface)
}
