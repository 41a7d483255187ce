//! How much of a connection's output its peer has acknowledged.

use super::option;
use std::os::fd::AsFd;

/// `tcpi_unacked` of the kernel's `struct tcp_info` (linux/tcp.h): after eight octets and four
/// numbers of 32 bits.
const UNACKED: std::ops::Range<usize> = 24..28;
/// `tcpi_bytes_acked` (since 4.1): after eight octets, 21 numbers of 32 bits and two of 64.
const BYTES_ACKED: std::ops::Range<usize> = 120..128;
/// `tcpi_notsent_bytes` (since 4.6): after two more numbers of 64 bits and two of 32.
const NOT_SENT: std::ops::Range<usize> = 144..148;

/// The state of a connection's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Octets that the peer's TCP has acknowledged; the SYN may count as one more.
    pub taken: u64,
    /// Segments that are sent and not acknowledged.
    pub in_flight: u32,
    /// Octets not yet sent, because the peer's window or the path accepts nothing further.
    pub unsent: u32,
}

/// The state of a connection's output; `None` if the kernel does not report it.
pub fn sending(socket: &impl AsFd) -> Option<Sending> {
    let mut info = [0; NOT_SENT.end];
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    let length = option::get(socket.as_fd(), level, name, &mut info).ok()?;
    let info = info.get(..length)?;
    let number =
        |at| Some(u32::from_ne_bytes(info.get::<std::ops::Range<usize>>(at)?.try_into().ok()?));
    Some(Sending {
        taken: u64::from_ne_bytes(info.get(BYTES_ACKED)?.try_into().ok()?),
        in_flight: number(UNACKED)?,
        unsent: number(NOT_SENT)?,
    })
}

/// Octets of this connection that the peer's TCP has acknowledged; the SYN may count as one more.
/// `None` if the kernel does not report it.
pub fn taken(socket: &impl AsFd) -> Option<u64> {
    let mut info = [0; BYTES_ACKED.end];
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    let length = option::get(socket.as_fd(), level, name, &mut info).ok()?;
    let octets = info.get(..length)?.get(BYTES_ACKED)?;
    Some(u64::from_ne_bytes(octets.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn only_acknowledged_octets_count() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        ours.write_all(&[7; 1_000]).unwrap();
        peer.read_exact(&mut [0; 1_000]).unwrap();
        // The peer's octet carries an acknowledgement for all it received.
        peer.write_all(&[8]).unwrap();
        ours.read_exact(&mut [0]).unwrap();
        assert!(taken(&ours).unwrap() >= 1_000);
        assert!(taken(&ours).unwrap() <= 1_001);
        assert!(taken(&peer).unwrap() <= 2, "it wrote one octet");
        // More than both buffers hold: the rest waits.
        ours.set_nonblocking(true).unwrap();
        let mut written = 1_000;
        while let Ok(n) = ours.write(&[7; 64 << 10]) {
            written += n as u64;
        }
        assert!(taken(&ours).unwrap() < written, "{written}");
        // Unsent, in flight, or acknowledged.
        let ours_now = sending(&ours).unwrap();
        assert!(ours_now.unsent > 0, "{ours_now:?}");
        assert!(ours_now.taken + u64::from(ours_now.unsent) <= written + 1, "{ours_now:?}");
        let idle = sending(&peer).unwrap();
        assert_eq!((idle.in_flight, idle.unsent), (0, 0));
        assert_eq!(taken(&std::net::UdpSocket::bind("127.0.0.1:0").unwrap()), None);
    }
}
