//! Sockets with a DSCP: set our mark, read the mark of a peer's handshake, read what it
//! acknowledged.
//!
//! A mark belongs to a TCP connection for life: it is set before `connect` and before `listen`, so
//! that SYN and SYN-ACK carry it too. Routers may change the peer's mark; the kernel shows what
//! arrived:
//!
//! * on an accepted connection, the IP header of the SYN (`TCP_SAVED_SYN`, both families);
//! * on one we made over IPv6, the traffic class of the SYN-ACK (`IPV6_2292PKTOPTIONS`);
//! * on one we made over IPv4, nothing: Linux keeps the TOS octet of accepted connections only, and
//!   answers 0 for others.

mod option;
mod taken;

pub use taken::{Sending, sending, taken};

use crate::Dscp;
use socket2::{SockRef, Socket};
use std::io;
use std::os::fd::AsFd;

/// Buffer size for the kernel's data: a SYN's IP and TCP headers with all options have 120 octets
/// over IPv4. If IPv6 extension headers exceed it, the mark is not observable.
const ROOM: usize = 256;

/// Marks every packet of a socket that is neither connected nor listening.
///
/// # Errors
///
/// The kernel's: the socket is of the other address family, or closed.
pub fn mark(socket: &Socket, dscp: Dscp) -> io::Result<()> {
    let octet = u32::from(dscp.tos());
    if is_ipv4(socket)? { socket.set_tos_v4(octet) } else { socket.set_tclass_v6(octet) }
}

/// Makes the kernel keep the SYN of each connection this listener accepts, for
/// [`seen_on_accepted`]. Call before `listen`.
///
/// # Errors
///
/// The kernel's; the listener remains usable.
pub fn keep_syn(listener: &Socket) -> io::Result<()> {
    option::set(listener.as_fd(), libc::IPPROTO_TCP, libc::TCP_SAVE_SYN, 1)
}

/// The mark of the SYN of an accepted connection. The kernel returns it once, and not at all if it
/// answered with a SYN cookie.
pub fn seen_on_accepted(socket: &impl AsFd) -> Option<Dscp> {
    let mut packet = [0; ROOM];
    let level = libc::IPPROTO_TCP;
    let length = option::get(socket.as_fd(), level, libc::TCP_SAVED_SYN, &mut packet).ok()?;
    packet_dscp(packet.get(..length)?)
}

/// Makes the kernel record the mark of packets received on a socket that is about to connect, for
/// [`seen_on_connected`]. Does nothing for IPv4, where Linux has no such function.
///
/// # Errors
///
/// The kernel's; the socket remains usable.
pub fn keep_mark(socket: &Socket) -> io::Result<()> {
    if is_ipv4(socket)? { Ok(()) } else { socket.set_recv_tclass_v6(true) }
}

/// The mark of the latest packet received on a connection we made: the SYN-ACK's, right after
/// `connect`; `None` for IPv4. This ends the recording, which costs the kernel a copy of each
/// header.
pub fn seen_on_connected(socket: &impl AsFd) -> Option<Dscp> {
    let reference = SockRef::from(socket);
    if !reference.recv_tclass_v6().ok()? {
        return None;
    }
    let mut messages = [0; ROOM];
    let (level, name) = (libc::IPPROTO_IPV6, libc::IPV6_2292PKTOPTIONS);
    let length = option::get(socket.as_fd(), level, name, &mut messages);
    // If this fails, the recording continues at a small cost.
    let _ = reference.set_recv_tclass_v6(false);
    control_message_dscp(messages.get(..length.ok()?)?)
}

fn is_ipv4(socket: &Socket) -> io::Result<bool> {
    Ok(socket.domain()? == socket2::Domain::IPV4)
}

/// The mark in an IP header of either version (RFC 791 section 3.1, RFC 8200 section 3).
fn packet_dscp(packet: &[u8]) -> Option<Dscp> {
    let (first, second) = (*packet.first()?, *packet.get(1)?);
    match first >> 4 {
        4 => Some(Dscp::from_tos(second)),
        6 => Some(Dscp::from_tos(first << 4 | second >> 4)),
        _ => None,
    }
}

/// The traffic class among control messages. Each message has its length (one machine word, header
/// included), level and type, then its data, padded to whole words.
fn control_message_dscp(mut messages: &[u8]) -> Option<Dscp> {
    const WORD: usize = size_of::<usize>();
    const HEADER: usize = WORD + 8;
    loop {
        let length = usize::from_ne_bytes(messages.get(..WORD)?.try_into().ok()?);
        let message = messages.get(..length)?;
        let number = |at: usize| -> Option<i32> {
            Some(i32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?))
        };
        if (number(WORD)?, number(WORD + 4)?) == (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) {
            return Some(Dscp::from_tos(u8::try_from(number(HEADER)?).ok()?));
        }
        messages = messages.get(length.next_multiple_of(WORD)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};
    use std::net::{SocketAddr, TcpStream};

    /// A client and a listener with these marks: the mark each saw of the other.
    fn handshake(any: &str, client: Dscp, server: Dscp) -> (Option<Dscp>, Option<Dscp>) {
        let address: SocketAddr = any.parse().unwrap();
        let socket = |dscp| {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
            mark(&socket, dscp).unwrap();
            socket
        };
        let listener = socket(server);
        keep_syn(&listener).unwrap();
        listener.bind(&address.into()).unwrap();
        listener.listen(1).unwrap();
        let out = socket(client);
        keep_mark(&out).unwrap();
        out.connect(&listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let seen = (seen_on_accepted(&accepted), seen_on_connected(&out));
        assert_eq!(seen_on_accepted(&accepted), None, "the kernel gives it once");
        assert_eq!(seen_on_connected(&out), None, "and is asked once");
        seen
    }

    #[test]
    fn each_end_sees_what_the_kernel_lets_it_see() {
        for (client, server) in
            [(Dscp::CS3, Dscp::CS3), (Dscp::CS0, Dscp::CS3), (Dscp::LE, Dscp::VA)]
        {
            assert_eq!(handshake("127.0.0.1:0", client, server), (Some(client), None));
            assert_eq!(handshake("[::1]:0", client, server), (Some(client), Some(server)));
        }
    }

    #[test]
    fn a_connection_nobody_asked_about_is_not_observable() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!((seen_on_accepted(&accepted), seen_on_connected(&out)), (None, None));
    }

    #[test]
    fn headers_of_both_versions() {
        assert_eq!(packet_dscp(&[0x45, 0x62, 0, 60]), Some(Dscp::CS3));
        assert_eq!(packet_dscp(&[0x66, 0x0f, 0xff, 0xff]), Some(Dscp::CS3));
        assert_eq!(packet_dscp(&[0x6b, 0x8d]), Some(Dscp::EF));
        for bad in [&[][..], &[0x45], &[0x55, 0x60]] {
            assert_eq!(packet_dscp(bad), None);
        }
    }

    #[test]
    fn control_messages_are_taken_apart_with_care() {
        let message = |level: i32, kind: i32, data: &[u8]| {
            let length = size_of::<usize>() + 8 + data.len();
            let mut octets = length.to_ne_bytes().to_vec();
            octets.extend(level.to_ne_bytes());
            octets.extend(kind.to_ne_bytes());
            octets.extend(data);
            octets.resize(octets.len().next_multiple_of(size_of::<usize>()), 0);
            octets
        };
        let hops = message(libc::IPPROTO_IPV6, libc::IPV6_2292HOPLIMIT, &64i32.to_ne_bytes());
        let class = message(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &0x61i32.to_ne_bytes());
        let both = [hops.clone(), class].concat();
        assert_eq!(control_message_dscp(&both), Some(Dscp::CS3));
        assert_eq!(control_message_dscp(&hops), None);
        for cut in 0..hops.len() + 20 {
            assert_eq!(control_message_dscp(&both[..cut]), None, "{cut}");
        }
        let short = message(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &[]);
        assert_eq!(control_message_dscp(&short), None);
        assert_eq!(control_message_dscp(&[0; 64]), None, "a length of zero ends it");
    }
}
