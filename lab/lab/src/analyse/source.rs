//! One capture file, read packet by packet through a buffer that grows no more than a packet needs.

use ::analyse::Time;
use ::analyse::file::{CaptureInterface, DecodeStep, FileDecoder, FileError, FileFault};
use anyhow::{Context as _, Result};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use text::UsageError;

/// The buffer to begin with, in octets.
const BUFFER: usize = 256 << 10;

/// A file ended or is damaged where more should be; what was before it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The file.
    pub file: String,
    /// What is wrong, and at which octet.
    pub reason: String,
}

/// The packet a source stands at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending<'a> {
    pub(super) interface: usize,
    pub(super) time: Time,
    pub(super) original: u32,
    pub(super) octets: &'a [u8],
}

/// Where the pending packet lies in the buffer.
#[derive(Clone, Copy, Debug)]
struct Place {
    interface: usize,
    time: Time,
    original: u32,
    begin: usize,
    end: usize,
    record_end: usize,
}

/// A capture that is read.
pub(crate) struct Source {
    name: String,
    reader: Box<dyn Read>,
    decoder: FileDecoder,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    at_end: bool,
    pending: Option<Place>,
    last: Time,
    cut: Option<Cut>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Source {
    /// Opens a file, and reads up to its first packet.
    ///
    /// # Errors
    /// [`UsageError`] where it does not exist, is empty, or is not a capture file; else it cannot be read.
    pub(crate) fn open(path: &Path) -> Result<Source> {
        let name = path.display().to_string();
        let wrong = |what: &str| UsageError::error(format!("{name}: {what}"));
        // Without waiting for a pipe's other end: a pipe is refused.
        let flags = nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = opened.map_err(|error| wrong(&error.to_string()))?;
        let kind = file.metadata().with_context(|| name.clone())?.file_type();
        if kind.is_dir() {
            return Err(wrong("a directory, and no capture"));
        }
        if kind.is_fifo() || kind.is_socket() || kind.is_char_device() {
            return Err(wrong("no file; to read what a program writes: ... | lab analyse -"));
        }
        Source::new(name, Box::new(file))
    }

    /// What comes in at standard input.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub(crate) fn standard_input() -> Result<Source> {
        Source::new("standard input".to_owned(), Box::new(std::io::stdin()))
    }

    /// What any reader gives.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub(crate) fn new(name: String, reader: Box<dyn Read>) -> Result<Source> {
        let mut source = Source {
            name,
            reader,
            decoder: FileDecoder::default(),
            buffer: vec![0; BUFFER],
            from: 0,
            to: 0,
            at_end: false,
            pending: None,
            last: Time(0),
            cut: None,
        };
        source.advance()?;
        if let Some(cut) = &source.cut
            && source.decoder.offset() == 0
        {
            return Err(UsageError::error(format!("{}: {}", source.name, cut.reason)));
        }
        Ok(source)
    }

    /// As it was named.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Octets of it that were read.
    pub(crate) fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    /// Where it ended too early, if it did.
    pub(crate) fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    pub(super) fn interfaces(&self) -> &[CaptureInterface] {
        self.decoder.interfaces()
    }

    /// The packet it stands at; none at the end.
    pub(super) fn pending(&self) -> Option<Pending<'_>> {
        let place = self.pending?;
        let octets = self.buffer.get(place.begin..place.end)?;
        let Place { interface, time, original, .. } = place;
        Some(Pending { interface, time, original, octets })
    }

    /// Goes on to the next packet.
    ///
    /// # Errors
    /// The file cannot be read any more.
    pub(super) fn advance(&mut self) -> Result<()> {
        if let Some(place) = self.pending.take() {
            self.from = place.record_end;
        }
        while self.cut.is_none() {
            let input = self.buffer.get(self.from..self.to).unwrap_or_default();
            match self.decoder.next(input) {
                Ok(DecodeStep::Passed(size)) => self.from += size,
                Ok(DecodeStep::Packet { size, packet }) => {
                    // Octets of a packet end its record, but for padding and a trailer.
                    let begin = self.from + offset_in(input, packet.octets);
                    let time = packet.time.unwrap_or(self.last);
                    self.last = time;
                    self.pending = Some(Place {
                        interface: packet.interface,
                        time,
                        original: packet.original,
                        begin,
                        end: begin + packet.octets.len(),
                        record_end: self.from + size,
                    });
                    return Ok(());
                }
                Ok(DecodeStep::Need(octets)) => {
                    if !self.fill(octets)? {
                        return Ok(());
                    }
                }
                Err(FileError {
                    at: 0,
                    fault: fault @ (FileFault::Magic | FileFault::Packed(_)),
                }) => {
                    self.stop(fault.to_string());
                }
                Err(error) => self.stop(error.to_string()),
            }
        }
        Ok(())
    }

    fn stop(&mut self, reason: String) {
        self.cut = Some(Cut { file: self.name.clone(), reason });
    }

    /// Reads until so many octets are there; whether they are.
    fn fill(&mut self, octets: usize) -> Result<bool> {
        while self.to - self.from < octets {
            if self.at_end {
                let left = self.to - self.from;
                let at = self.decoder.offset();
                match (at, left) {
                    (0, 0) => self.stop("empty: no capture".to_owned()),
                    (_, 0) => {}
                    _ => self.stop(format!(
                        "at octet {at}: cut off, {left} octets of a record of at least {octets}"
                    )),
                }
                return Ok(false);
            }
            if self.buffer.len() - self.from < octets.max(BUFFER / 4) {
                self.buffer.copy_within(self.from..self.to, 0);
                (self.from, self.to) = (0, self.to - self.from);
                if self.buffer.len() < octets {
                    self.buffer.resize(octets, 0);
                }
            }
            let room = self.buffer.get_mut(self.to..).unwrap_or_default();
            match self.reader.read(room) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.to += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    if testbed::clock::is_interrupted() {
                        self.at_end = true;
                    }
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("reading {}", self.name));
                }
            }
        }
        Ok(true)
    }
}

/// Where a part of a slice begins in it.
fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcap::{PcapPacket, PcapWriter};
    use std::time::Duration;

    fn capture(packets: usize, length: usize) -> Vec<u8> {
        let mut writer = PcapWriter::new(Vec::new()).unwrap();
        for n in 0..packets {
            let octets = vec![n as u8; length];
            let at = Duration::from_secs(n as u64);
            writer.write_packet(&PcapPacket::new(at, length as u32, &octets)).unwrap();
        }
        writer.into_writer()
    }

    /// Gives as few octets at once as a slow pipe.
    struct Dribble(std::io::Cursor<Vec<u8>>, usize);

    impl Read for Dribble {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let most = buffer.len().min(self.1);
            self.0.read(&mut buffer[..most])
        }
    }

    fn source(octets: Vec<u8>, piece: usize) -> Result<Source> {
        Source::new("x".into(), Box::new(Dribble(std::io::Cursor::new(octets), piece)))
    }

    #[test]
    fn packets_come_in_order_through_a_buffer_of_any_size() {
        for (length, piece) in [(0, 7), (60, 1_000), (60_000, 8_191)] {
            let mut source = source(capture(20, length), piece).unwrap();
            for n in 0..20u8 {
                let pending = source.pending().unwrap();
                assert_eq!(pending.time, Time(u64::from(n) * 1_000_000_000));
                assert_eq!(pending.octets, vec![n; length]);
                source.advance().unwrap();
            }
            assert!(source.pending().is_none() && source.cut().is_none());
            assert!(source.buffer.len() <= BUFFER);
        }
    }

    #[test]
    fn a_cut_file_gives_what_was_before() {
        let whole = capture(3, 100);
        let mut source = source(whole[..whole.len() - 1].to_vec(), 50).unwrap();
        let mut packets = 0;
        while source.pending().is_some() {
            packets += 1;
            source.advance().unwrap();
        }
        assert_eq!(packets, 2);
        let reason = &source.cut().unwrap().reason;
        assert_eq!(reason, "at octet 256: cut off, 115 octets of a record of at least 116");
    }

    #[test]
    fn what_is_no_capture_is_a_usage_error() {
        let long = vec![b'x'; 1 << 20];
        for octets in [Vec::new(), b"a".to_vec(), long, capture(0, 0)[..20].to_vec()] {
            let error = source(octets, 99).unwrap_err();
            assert!(error.is::<UsageError>(), "{error}");
        }
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let paths = [directory.path(), &fifo, Path::new("/dev/null"), Path::new("/nonexistent")];
        for path in paths {
            let error = Source::open(path).unwrap_err();
            assert!(error.is::<UsageError>(), "{}: {error}", path.display());
        }
    }
}
