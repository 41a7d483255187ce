//! Records the packets of an interface, and reads them back one by one.

use crate::clock::{self, Deadline};
use crate::net::cable::{CableEnd, INTERFACE};
use crate::net::frame::TcpSegment;
use crate::net::packet_socket::PacketSocket;
use crate::process::programs::Programs;
use crate::process::tool::LabTool;
use anyhow::{Context, Result};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use pcap_file::{DataLink, TsResolution};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a recorder checks whether it must end.
const PATIENCE: Duration = Duration::from_millis(100);
/// Longest time for reading the frames that still wait at the end.
const DRAIN: Duration = Duration::from_secs(5);

/// A recording of all packets at one end of a cable.
#[derive(Debug)]
pub struct Capture {
    tool: LabTool,
    path: PathBuf,
}

/// A captured TCP segment.
#[derive(Clone, Copy, Debug)]
pub struct CapturedSegment {
    /// Capture time, since 1970.
    pub at: Duration,
    /// Its headers.
    pub segment: TcpSegment,
}

impl Capture {
    /// Starts a recording into this file (pcap).
    ///
    /// # Errors
    /// The program `lab` cannot record there.
    pub fn start(end: &CableEnd, programs: &Programs, path: &Path) -> Result<Capture> {
        let file = path.to_str().context("a path that is not UTF-8")?;
        let tool = LabTool::start(end.namespace(), programs, &["record", INTERFACE, file])?;
        Ok(Capture { tool, path: path.to_owned() })
    }

    /// Ends the recording, and reads it.
    ///
    /// # Errors
    /// The recorder ended early, or its file cannot be read.
    pub fn finish(self) -> Result<Vec<CapturedSegment>> {
        self.tool.finish()?;
        read(&self.path)
    }
}

/// The TCP segments of a pcap file, in order.
///
/// # Errors
/// It cannot be read, or is not a pcap file.
pub fn read(path: &Path) -> Result<Vec<CapturedSegment>> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let mut reader = PcapReader::new(BufReader::new(file))?;
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.with_context(|| format!("reading {}", path.display()))?;
        if let Some(segment) = TcpSegment::from_frame(&packet.data) {
            packets.push(CapturedSegment { at: packet.timestamp, segment });
        }
    }
    Ok(packets)
}

/// Records all frames of an interface of our namespace into a pcap file until this program is
/// interrupted, and then the frames that still wait.
///
/// # Errors
/// The interface cannot be captured, or the file cannot be written.
pub fn record(interface: &str, path: &Path, ready: impl FnOnce()) -> Result<()> {
    let mut socket = PacketSocket::open(interface, PATIENCE)?;
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let header = PcapHeader {
        datalink: DataLink::ETHERNET,
        ts_resolution: TsResolution::NanoSecond,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(BufWriter::new(file), header)?;
    ready();
    let mut drained: Option<Deadline> = None;
    loop {
        if drained.is_none() && clock::is_interrupted() {
            drained = Some(Deadline::after(DRAIN));
        }
        match socket.receive()? {
            Some(frame) => {
                let length = u32::try_from(frame.len())?;
                writer.write_packet(&PcapPacket::new(clock::since_1970(), length, frame))?;
            }
            None if drained.is_some() => break,
            None => {}
        }
        if drained.is_some_and(|drained| drained.has_passed()) {
            break;
        }
    }
    writer.into_writer().flush().context("the end of the capture")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_without_tcp_are_skipped_and_a_truncated_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.pcap");
        let mut writer = PcapWriter::new(File::create(&path).unwrap()).unwrap();
        let at = Duration::from_secs(1);
        writer.write_packet(&PcapPacket::new(at, 60, &[0; 60])).unwrap();
        drop(writer);
        assert_eq!(read(&path).unwrap().len(), 0);
        let octets = std::fs::read(&path).unwrap();
        std::fs::write(&path, &octets[..octets.len() - 1]).unwrap();
        assert!(read(&path).is_err());
    }
}
