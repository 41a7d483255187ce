//! Capture files, octet by octet: pcap and pcapng of either byte order.
//!
//! The workspace's `pcap-file` writes our captures and reads them back. It is not used here, as
//! the files here come from any program: that crate (2.0) takes all times of pcapng for nanoseconds, refuses a packet that
//! was longer than the snap length and a list of options without its end, and keeps 8 MB for each
//! file. The reader returns slices of the caller's buffer, and an error has the
//! number of the octet.

mod pcap;
mod pcapng;

use crate::{LinkType, Time};

/// The longest record, in octets: longer ones are damage. Wireshark's limit for a packet is 256 KiB;
/// blocks of secrets and names of pcapng are longer.
pub const MAX_RECORD: usize = 16 << 20;
/// Most interfaces of a file.
pub const MAX_INTERFACES: usize = 4_096;
/// Most octets of an interface's name that are kept.
const MAX_NAME: usize = 64;

/// Where packets of a file were captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureInterface {
    /// Its name, where the file has one.
    pub name: Option<String>,
    /// The header that each frame begins with.
    pub link: LinkType,
    resolution: Resolution,
}

/// Units of a file's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resolution {
    unit: Unit,
    /// Seconds to add (pcapng's if_tsoffset).
    offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Ten to the power of minus this many seconds.
    Decimal(u8),
    /// Two to the power of minus this many seconds.
    Binary(u8),
}

impl Resolution {
    const MICROSECONDS: Resolution = Resolution { unit: Unit::Decimal(6), offset: 0 };

    fn time(self, stamp: u64) -> Time {
        let stamp = u128::from(stamp);
        let nanos = match self.unit {
            Unit::Decimal(power @ ..=9) => stamp * 10u128.pow(u32::from(9 - power)),
            Unit::Decimal(power) => {
                10u128.checked_pow(u32::from(power - 9)).map_or(0, |by| stamp / by)
            }
            Unit::Binary(power) => (stamp * 1_000_000_000) >> power.min(127),
        };
        let offset = i128::from(self.offset) * 1_000_000_000;
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX).saturating_add(offset);
        Time(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}

/// A packet as the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// Place in [`FileDecoder::interfaces`].
    pub interface: usize,
    /// When it was captured; `None` where the file does not have it (a simple packet block).
    pub time: Option<Time>,
    /// Whether it came in at the interface; `None` where the file does not have it.
    pub inbound: Option<bool>,
    /// Octets that the frame had.
    pub original: u32,
    /// As many of them as were captured.
    pub octets: &'a [u8],
}

/// What the octets at the front of a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeStep<'a> {
    /// Not yet a whole record: so many octets are needed, those that are there included.
    Need(usize),
    /// So many octets without a packet.
    Passed(usize),
    /// A packet.
    Packet {
        /// Octets of its record.
        size: usize,
        /// The packet.
        packet: CapturedPacket<'a>,
    },
}

/// Why the file cannot be read on from there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at octet {at}: {fault}")]
pub struct FileError {
    /// Where its record begins, in octets from the file's begin.
    pub at: u64,
    /// The fault of the file.
    pub fault: FileFault,
}

/// A fault of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// It begins like none.
    #[error("not a capture: it begins with neither pcap's nor pcapng's magic number")]
    Magic,
    /// It is packed.
    #[error("packed with {0}: unpack it first, or pipe it: {0} -dc FILE | lab analyse -")]
    Packed(&'static str),
    /// A length that cannot be.
    #[error("{what} of {length} octets")]
    Length {
        /// The element of the file that has this length.
        what: &'static str,
        /// The length in octets.
        length: u64,
    },
    /// Lengths at both ends of a block differ.
    #[error("a block of {0} octets by its first, {1} by its last length")]
    Trailer(u32, u32),
    /// A packet of an interface that was not described.
    #[error("a packet of interface {0}, which is not described")]
    Interface(u32),
    /// More than [`MAX_INTERFACES`].
    #[error("more than {MAX_INTERFACES} interfaces")]
    Interfaces,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Unknown,
    Pcap(pcap::Format),
    Pcapng(pcapng::Section),
}

/// The order of a number's octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, octets: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(octets),
            Order::Big => u16::from_be_bytes(octets),
        }
    }

    fn u32(self, octets: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(octets),
            Order::Big => u32::from_be_bytes(octets),
        }
    }

    /// The number at this place; `None` where the octets end before.
    fn u32_at(self, octets: &[u8], at: usize) -> Option<u32> {
        octets.get(at..)?.first_chunk().map(|four| self.u32(*four))
    }

    fn u16_at(self, octets: &[u8], at: usize) -> Option<u16> {
        octets.get(at..)?.first_chunk().map(|two| self.u16(*two))
    }
}

/// Reads a file record by record. After an error there is nothing more to be had.
#[derive(Clone, Debug)]
pub struct FileDecoder {
    format: Format,
    interfaces: Vec<CaptureInterface>,
    at: u64,
}

impl Default for FileDecoder {
    fn default() -> FileDecoder {
        FileDecoder { format: Format::Unknown, interfaces: Vec::new(), at: 0 }
    }
}

impl FileDecoder {
    /// The interfaces that were described so far, of all sections.
    pub fn interfaces(&self) -> &[CaptureInterface] {
        &self.interfaces
    }

    /// Octets that were read so far.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// What is at the front of `input`, which continues the file.
    ///
    /// # Errors
    /// [`FileError`]: the file is none, or damaged.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Result<DecodeStep<'a>, FileError> {
        let step = match &mut self.format {
            Format::Unknown => self.begin(input),
            Format::Pcap(format) => format.next(input),
            Format::Pcapng(section) => section.next(input, &mut self.interfaces),
        };
        let step = step.map_err(|fault| FileError { at: self.at, fault })?;
        match step {
            DecodeStep::Passed(size) | DecodeStep::Packet { size, .. } => self.at += size as u64,
            DecodeStep::Need(_) => {}
        }
        Ok(step)
    }

    /// By its first octets it is known what a file is.
    fn begin<'a>(&mut self, input: &'a [u8]) -> Result<DecodeStep<'a>, FileFault> {
        let Some(magic) = input.first_chunk::<4>() else {
            return Ok(DecodeStep::Need(4));
        };
        match magic {
            [0x1f, 0x8b, ..] => return Err(FileFault::Packed("gzip")),
            [0x28, 0xb5, 0x2f, 0xfd] => return Err(FileFault::Packed("zstd")),
            [0x04, 0x22, 0x4d, 0x18] => return Err(FileFault::Packed("lz4")),
            [b'B', b'Z', b'h', _] => return Err(FileFault::Packed("bzip2")),
            [0xfd, b'7', b'z', b'X'] => return Err(FileFault::Packed("xz")),
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                let mut section = pcapng::Section::default();
                let step = section.next(input, &mut self.interfaces)?;
                if !matches!(step, DecodeStep::Need(_)) {
                    self.format = Format::Pcapng(section);
                }
                return Ok(step);
            }
            _ => {}
        }
        match pcap::Format::read(input)? {
            None => Ok(DecodeStep::Need(pcap::HEADER)),
            Some((format, link)) => {
                self.format = Format::Pcap(format);
                let resolution = Resolution::MICROSECONDS;
                self.interfaces.push(CaptureInterface { name: None, link, resolution });
                Ok(DecodeStep::Passed(pcap::HEADER))
            }
        }
    }
}

#[cfg(test)]
mod tests;
