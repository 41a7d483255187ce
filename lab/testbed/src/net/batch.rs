//! Many frames with one system call (recvmmsg(2), sendmmsg(2)), and the options that a packet
//! socket and a network interface need for that.

#![expect(unsafe_code, reason = "system calls that nix has no safe form of for reused memory")]

use anyhow::{Context, Result};
use nix::libc::{self, c_int, c_void, iovec, mmsghdr};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Frames of one call.
pub const FRAMES: usize = 64;

/// Receives the frames that wait, at most [`FRAMES`], without blocking. Frame n is in slot n of
/// `memory` and has `lengths[n]` octets. A slot has `slot` octets. Returns the number of frames.
///
/// # Errors
/// Nothing waits (`WouldBlock`), or the error of the socket.
pub fn receive(
    fd: BorrowedFd<'_>,
    memory: &mut [u8],
    slot: usize,
    lengths: &mut [usize; FRAMES],
) -> io::Result<usize> {
    let mut vectors = [iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; FRAMES];
    // SAFETY: a mmsghdr is numbers and pointers, for all of which zero is a value.
    let mut messages: [mmsghdr; FRAMES] = unsafe { std::mem::zeroed() };
    let mut count = 0;
    let slots = memory.chunks_exact_mut(slot.max(1));
    for ((vector, message), slot) in vectors.iter_mut().zip(&mut messages).zip(slots) {
        *vector = iovec { iov_base: slot.as_mut_ptr().cast::<c_void>(), iov_len: slot.len() };
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: `count` messages point each to one vector, and these to slots of `memory` that do not
    // overlap; all of them outlive the call, which does not keep them.
    let received = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for (length, message) in lengths.iter_mut().zip(&messages).take(received) {
        *length = message.msg_len as usize;
    }
    Ok(received)
}

/// Binds a packet socket to one interface, by its number.
///
/// # Errors
/// No interface has this number.
pub fn listen(fd: BorrowedFd<'_>, interface: c_int) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: interface,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    let address = (&raw const address).cast::<libc::sockaddr>();
    // SAFETY: the address is one of packet(7), of that length, and outlives the call.
    match unsafe { libc::bind(fd.as_raw_fd(), address, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Frames that a packet socket dropped for lack of room since the last call.
///
/// # Errors
/// It is not a packet socket.
pub fn dropped(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut counted = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` octets, all of them into `counted`, and keeps
    // neither pointer.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut counted).cast::<c_void>(),
            &raw mut length,
        )
    };
    match done {
        0 => Ok(counted.tp_drops.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends frames, each from two parts, at most [`FRAMES`], without blocking. Returns how many the
/// socket took.
///
/// # Errors
/// The socket refuses the first frame.
pub fn send<'a>(
    fd: BorrowedFd<'_>,
    frames: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> io::Result<usize> {
    let mut vectors = [[iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 2]; FRAMES];
    // SAFETY: a mmsghdr is numbers and pointers, for all of which zero is a value.
    let mut messages: [mmsghdr; FRAMES] = unsafe { std::mem::zeroed() };
    let mut count = 0;
    for ((vectors, message), (head, rest)) in vectors.iter_mut().zip(&mut messages).zip(frames) {
        for (vector, part) in vectors.iter_mut().zip([head, rest]) {
            // Only read from, in spite of its type.
            let base = part.as_ptr().cast_mut().cast::<c_void>();
            *vector = iovec { iov_base: base, iov_len: part.len() };
        }
        message.msg_hdr.msg_iov = vectors.as_mut_ptr();
        message.msg_hdr.msg_iovlen = vectors.len();
        count += 1;
    }
    // SAFETY: `count` messages point each to two vectors, and these to octets borrowed for 'a; all
    // of them outlive the call, which reads them and does not keep them.
    let sent =
        unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Makes a packet socket receive only incoming frames, and send past the interface's queue: only our
/// routers queue packets.
///
/// # Errors
/// The kernel is older than 4.20.
pub fn incoming_only(fd: BorrowedFd<'_>) -> Result<()> {
    for (name, option) in [
        ("PACKET_IGNORE_OUTGOING", libc::PACKET_IGNORE_OUTGOING),
        ("PACKET_QDISC_BYPASS", libc::PACKET_QDISC_BYPASS),
    ] {
        let on: c_int = 1;
        // SAFETY: the option is an int, of that size, and outlives the call.
        let done = unsafe {
            libc::setsockopt(
                fd.as_raw_fd(),
                libc::SOL_PACKET,
                option,
                (&raw const on).cast::<c_void>(),
                size_of::<c_int>() as libc::socklen_t,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error()).context(name);
        }
    }
    Ok(())
}

/// The offloads that are turned off, as ethtool(8) names them, each with its command. Then the kernel
/// computes checksums, and nothing divides or joins segments.
const OFFLOADS: [(&str, u32); 4] =
    [("tx-checksumming", 0x17), ("tso", 0x1f), ("gso", 0x24), ("gro", 0x2c)];
const SIOCETHTOOL: libc::Ioctl = 0x8946;

#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Turns off the offloads of an interface in the network namespace of this thread. Then the frames
/// that leave are those that a wire would carry.
///
/// # Errors
/// There is no such interface, or an offload cannot be turned off.
pub fn without_offloads(interface: &str) -> Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").context("a socket to ask by")?;
    for (name, command) in OFFLOADS {
        let mut value = EthtoolValue { command, data: 0 };
        // SAFETY: an ifreq is numbers and a union of such, for all of which zero is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // One octet less, so that a zero always stands behind it.
        let room = request.ifr_name.len() - 1;
        for (to, from) in request.ifr_name.iter_mut().take(room).zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: SIOCETHTOOL reads an ifreq and the value it points to; both outlive the call.
        let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if done < 0 {
            let error = io::Error::last_os_error();
            return Err(error).with_context(|| format!("turning {name} of {interface} off"));
        }
    }
    Ok(())
}
