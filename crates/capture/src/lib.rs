//! Capture files without packet capture: one connection's octets as pcapng, which Wireshark opens
//! and decodes.
//!
//! The program sees a stream, not packets: the packets are synthesised, without loss, in order,
//! with the real addresses, ports and times. The file shows the protocol, not the network; for
//! that, capture on the wire.
//! capture on the wire.

mod packet;

use base::Utc;
use packet::{End, Flags, Packet};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use std::borrow::Cow;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// Most octets of data per packet: what fits into an Ethernet frame with IPv6.
const MAX_SEGMENT: usize = 1_440;

/// Data after which the receiver acknowledges; less than the window it announces.
const ACKNOWLEDGE_EVERY: u32 = 32_768;

/// The end that opened the connection and sent the first SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opener {
    /// This program.
    Local,
    /// The other end.
    Remote,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedConnection {
    /// This program's address.
    pub local: SocketAddr,
    /// The other end's.
    pub remote: SocketAddr,
    /// The end that opened the connection.
    pub opener: Opener,
    /// TOS octet or traffic class shown on every packet.
    pub tos: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Local,
    Remote,
}

struct Live {
    local: End,
    remote: End,
    tos: u8,
}

/// Writes connections, one after the other, to a pcapng file. Each packet is flushed to `W`, so
/// that the file can be read while it grows.
pub struct CaptureWriter<W: Write> {
    file: PcapNgWriter<W>,
    live: Option<Live>,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes the file's head.
    ///
    /// # Errors
    /// Those of `W`.
    pub fn new(writer: W) -> io::Result<CaptureWriter<W>> {
        let mut file = PcapNgWriter::new(writer).map_err(into_io)?;
        // The library writes times in nanoseconds, whatever resolution the interface has.
        let nanoseconds = InterfaceDescriptionOption::IfTsResol(9);
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0,
            options: vec![nanoseconds],
        };
        file.write_pcapng_block(interface).map_err(into_io)?;
        Ok(CaptureWriter { file, live: None })
    }

    /// A connection was established: SYN, SYN-ACK, ACK. One still open is closed first.
    ///
    /// # Errors
    /// Those of `W`.
    pub fn connection(&mut self, time: Utc, connection: CapturedConnection) -> io::Result<()> {
        self.closed(time)?;
        let (local, remote) = packet::same_family(connection.local, connection.remote);
        self.live = Some(Live {
            local: End::new(local, 1),
            remote: End::new(remote, 2),
            tos: connection.tos,
        });
        let (first, second) = match connection.opener {
            Opener::Local => (Side::Local, Side::Remote),
            Opener::Remote => (Side::Remote, Side::Local),
        };
        self.packet(time, first, Flags::SYN, &[])?;
        self.packet(time, second, Flags::SYN | Flags::ACK, &[])?;
        self.packet(time, first, Flags::ACK, &[])
    }

    /// Octets were sent to the other end. Without a connection nothing is written.
    ///
    /// # Errors
    /// Those of `W`.
    pub fn sent(&mut self, time: Utc, octets: &[u8]) -> io::Result<()> {
        self.data(time, Side::Local, octets)
    }

    /// Octets were received from the other end. Without a connection nothing is written.
    ///
    /// # Errors
    /// Those of `W`.
    pub fn received(&mut self, time: Utc, octets: &[u8]) -> io::Result<()> {
        self.data(time, Side::Remote, octets)
    }

    /// The connection ended: FIN from both ends. Without a connection nothing is written.
    ///
    /// # Errors
    /// Those of `W`.
    pub fn closed(&mut self, time: Utc) -> io::Result<()> {
        self.packet(time, Side::Local, Flags::FIN | Flags::ACK, &[])?;
        self.packet(time, Side::Remote, Flags::FIN | Flags::ACK, &[])?;
        self.packet(time, Side::Local, Flags::ACK, &[])?;
        self.live = None;
        Ok(())
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.file.into_inner()
    }

    fn data(&mut self, time: Utc, from: Side, octets: &[u8]) -> io::Result<()> {
        let to = if from == Side::Local { Side::Remote } else { Side::Local };
        let mut unacknowledged = 0;
        for segment in octets.chunks(MAX_SEGMENT) {
            self.packet(time, from, Flags::PSH | Flags::ACK, segment)?;
            unacknowledged += segment.len() as u32;
            if unacknowledged >= ACKNOWLEDGE_EVERY {
                self.packet(time, to, Flags::ACK, &[])?;
                unacknowledged = 0;
            }
        }
        if unacknowledged > 0 {
            self.packet(time, to, Flags::ACK, &[])?;
        }
        Ok(())
    }

    fn packet(&mut self, time: Utc, from: Side, flags: Flags, data: &[u8]) -> io::Result<()> {
        let Some(live) = &mut self.live else { return Ok(()) };
        let (source, destination) = match from {
            Side::Local => (&mut live.local, &live.remote),
            Side::Remote => (&mut live.remote, &live.local),
        };
        let frame = Packet { source, destination, flags, tos: live.tos, data }.to_frame();
        source.advance(flags, data.len());
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_micros(time.0),
            original_len: frame.len() as u32,
            data: Cow::Owned(frame),
            options: Vec::new(),
        };
        self.file.write_pcapng_block(block).map_err(into_io)?;
        self.file.get_mut().flush()
    }
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests;
