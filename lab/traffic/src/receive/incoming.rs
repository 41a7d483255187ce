//! A datagram as the system gives it: with where it came from, and the TOS octet or traffic class.

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use socket2::Socket;
use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;

/// A datagram whose payload was written into a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incoming {
    /// Octets of its payload that the buffer has.
    pub(crate) length: usize,
    /// Where it came from, as the socket has it: IPv4 within IPv6 at a socket of both.
    pub(crate) from: Option<SocketAddr>,
    /// The octet with its code point, where the system reports it.
    pub(crate) tos: Option<u8>,
    /// Datagrams that the system has dropped at this socket so far, where it reports them.
    pub(crate) dropped: Option<u64>,
}

/// Makes the system report the TOS octets of IPv4 and the traffic classes of IPv6, as far as it can.
pub(crate) fn enable_tos_reports(socket: &Socket, v4: bool, v6: bool) {
    // What the system does not report is absent from the results.
    if v4 {
        let _ = setsockopt(socket, sockopt::IpRecvTos, &true);
    }
    if v6 {
        let _ = setsockopt(socket, sockopt::Ipv6RecvTClass, &true);
    }
}

/// Takes a datagram, as the socket waits for one or does not.
///
/// # Errors
/// The error of the system.
pub(crate) fn take(socket: &Socket, payload: &mut [u8]) -> Result<Incoming, Errno> {
    let mut control = nix::cmsg_space!(u8, i32, u32);
    let mut slices = [IoSliceMut::new(payload)];
    let (descriptor, flags) = (socket.as_raw_fd(), MsgFlags::empty());
    let message = recvmsg::<SockaddrStorage>(descriptor, &mut slices, Some(&mut control), flags)?;
    let (mut tos, mut dropped) = (None, None);
    for part in message.cmsgs().into_iter().flatten() {
        match part {
            ControlMessageOwned::Ipv4Tos(octet) => tos = Some(octet),
            ControlMessageOwned::Ipv6TClass(class) => tos = u8::try_from(class).ok(),
            // A count since the socket was opened.
            ControlMessageOwned::RxqOvfl(count) => dropped = Some(u64::from(count)),
            _ => {}
        }
    }
    let from = message.address.and_then(address);
    Ok(Incoming { length: message.bytes, from, tos, dropped })
}

fn address(of: SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || of.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
    let v6 = || of.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into()));
    v4().or_else(v6)
}

/// An address of IPv4 as such, also at a socket of both families.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
