//! Octets over TCP.

use super::peer::Wire;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use testbed::clock::Deadline;

/// Longest wait for an answer, on a busy machine.
const ANSWER: Duration = Duration::from_secs(30);
/// How long nothing must come to call it quiet.
const QUIET: Duration = Duration::from_millis(700);

/// One TCP connection.
pub(crate) struct Tcp {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What came when it should have been quiet.
    next: Option<Option<Vec<u8>>>,
    /// Octets of each segment sent; 0 for all at once.
    pub(crate) segment: usize,
}

impl Tcp {
    /// Connects.
    pub(crate) fn connect(address: SocketAddr) -> Tcp {
        let stream = TcpStream::connect_timeout(&address, ANSWER)
            .unwrap_or_else(|e| panic!("connecting to {address}: {e}"));
        Tcp::new(stream)
    }

    /// Waits to be connected to.
    pub(crate) fn accept(listener: &TcpListener, limit: Duration) -> Tcp {
        listener.set_nonblocking(true).unwrap();
        let asked = Deadline::after(limit).wait_for("a connection", || match listener.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(e) if again(e.kind()) => Ok(None),
            Err(e) => Err(e.into()),
        });
        let stream = asked.unwrap();
        stream.set_nonblocking(false).unwrap();
        Tcp::new(stream)
    }

    fn new(stream: TcpStream) -> Tcp {
        stream.set_nodelay(true).unwrap();
        Tcp { stream, buffer: Vec::new(), next: None, segment: 0 }
    }

    /// Closes without order: the other side sees a reset.
    pub(crate) fn reset(self) {
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        nix::sys::socket::setsockopt(&self.stream, nix::sys::socket::sockopt::Linger, &linger)
            .unwrap();
    }

    fn whole_tpkt(&mut self) -> Option<Vec<u8>> {
        let length = usize::from(u16::from_be_bytes([*self.buffer.get(2)?, *self.buffer.get(3)?]));
        assert!(self.buffer[0] == 3 && length >= 7, "no TPKT: {:02X?}", &self.buffer[..4]);
        (self.buffer.len() >= length).then(|| self.buffer.drain(..length).collect())
    }

    fn receive_within(&mut self, limit: Duration) -> Result<Option<Vec<u8>>, String> {
        let end = Deadline::after(limit);
        loop {
            if let Some(tpkt) = self.whole_tpkt() {
                return Ok(Some(tpkt));
            }
            let left = end.left();
            if left.is_zero() {
                return Err(format!("nothing for {limit:?}"));
            }
            self.stream.set_read_timeout(Some(left)).unwrap();
            let mut piece = [0; 65_536];
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(count) => self.buffer.extend_from_slice(&piece[..count]),
                Err(e) if again(e.kind()) => {}
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(e) => return Err(e.to_string()),
            }
        }
    }
}

/// Whether reading again may help.
fn again(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

impl Wire for Tcp {
    fn send(&mut self, octets: &[u8]) {
        let size = if self.segment == 0 { octets.len() } else { self.segment };
        for piece in octets.chunks(size.max(1)) {
            self.stream.write_all(piece).unwrap();
        }
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, String> {
        match self.next.take() {
            Some(next) => Ok(next),
            None => self.receive_within(ANSWER),
        }
    }

    fn is_quiet(&mut self) -> bool {
        if self.next.is_some() {
            return false;
        }
        match self.receive_within(QUIET) {
            Err(_) => self.buffer.is_empty(),
            Ok(next) => {
                self.next = Some(next);
                false
            }
        }
    }

    fn close(&mut self) {
        // Already closed by the other side is as good.
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}
