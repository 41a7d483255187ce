//! A TCP connection of the sender, each wait bounded.

use crate::clock::LoadClock;
use crate::send::SendRun;
use socket2::Socket;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;
use testbed::clock::is_interrupted;

/// The longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long after the plan's end a block that has begun, and the connection's end, may take.
const DRAIN: u64 = 5_000_000_000;
/// A write or read returns after this at the latest, so that interrupts are noticed.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

pub(crate) struct Stream<'s> {
    socket: &'s Socket,
}

impl<'s> Stream<'s> {
    pub(crate) fn connect(socket: &'s Socket, to: SocketAddr, run: &SendRun) -> io::Result<Self> {
        let left = Duration::from_nanos(run.end.saturating_sub(run.now()));
        socket.connect_timeout(&to.into(), CONNECT.min(left.max(PATIENCE)))?;
        socket.set_tcp_nodelay(true)?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Stream { socket })
    }

    /// Writes a block whole; false where the run is over before it is.
    pub(crate) fn write(&mut self, mut block: &[u8], run: &SendRun) -> io::Result<bool> {
        let mut socket = self.socket;
        while !block.is_empty() {
            match socket.write(block) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => block = block.get(written..).unwrap_or_default(),
                Err(error) if is_patience(&error) => {}
                Err(error) => return Err(error),
            }
            if is_interrupted() || run.now() > run.end.saturating_add(DRAIN) {
                return Ok(block.is_empty());
            }
        }
        Ok(true)
    }

    /// Sends the end of the flow, and waits until the peer has read all.
    pub(crate) fn finish(&mut self, end: &[u8], run: &SendRun) -> io::Result<()> {
        if !self.write(end, run)? {
            return Ok(());
        }
        self.socket.shutdown(Shutdown::Write)?;
        let until = LoadClock::Monotonic.now().saturating_add(DRAIN);
        let (mut socket, mut rest) = (self.socket, [0; 64]);
        while LoadClock::Monotonic.now() < until && !is_interrupted() {
            match socket.read(&mut rest) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if is_patience(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a read or write only took longer than it may at once.
pub(crate) fn is_patience(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
