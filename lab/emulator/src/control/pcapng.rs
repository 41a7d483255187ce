//! A pcapng file of bare IP packets, with times in nanoseconds.

use anyhow::Result;
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

/// Bits of a packet's flags word: its direction at the interface (pcapng 4.3.1).
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// A file being written.
pub(crate) struct Pcapng<W: Write> {
    writer: PcapNgWriter<W>,
}

impl<W: Write> Pcapng<W> {
    /// With its head: one interface of this name, link type LINKTYPE_RAW.
    pub(crate) fn new(writer: W, interface: &str) -> Result<Pcapng<W>> {
        let mut writer = PcapNgWriter::new(writer)?;
        writer.write_pcapng_block(InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(interface)),
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        })?;
        writer.get_mut().flush()?;
        Ok(Pcapng { writer })
    }

    /// A packet, by the nanosecond since 1970 at which it passed, into the node or out of it.
    pub(crate) fn packet(&mut self, at: u64, inbound: bool, octets: &[u8]) -> Result<()> {
        self.writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(at),
            original_len: u32::try_from(octets.len())?,
            data: Cow::Borrowed(octets),
            options: vec![EnhancedPacketOption::Flags(if inbound { INBOUND } else { OUTBOUND })],
        })?;
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(self.writer.get_mut().flush()?)
    }
}
