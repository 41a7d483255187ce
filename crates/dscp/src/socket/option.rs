//! Socket options that neither the standard library nor socket2 offers.

#![expect(unsafe_code, reason = "getsockopt and setsockopt take pointers")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets an option with an integer value.
pub(super) fn set(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    const LENGTH: libc::socklen_t = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel reads LENGTH octets at the pointer, which `value` has and which live
    // through the call; the descriptor is open as long as it is borrowed.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), LENGTH)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option into the buffer; returns its length, at most that of the buffer.
pub(super) fn get(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(buffer.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel writes at most `length` octets at the pointer, which the buffer has, and
    // then their number into `length`; both live through the call and are borrowed by nobody else.
    // Any octets are a valid [u8]. The descriptor is open as long as it is borrowed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            buffer.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok(usize::try_from(length).map_or(buffer.len(), |n| n.min(buffer.len()))),
        _ => Err(io::Error::last_os_error()),
    }
}
