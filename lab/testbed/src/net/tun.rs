//! TUN devices: the IP packets that the kernel sends over one interface, and those for it.

#![expect(unsafe_code, reason = "the ioctl that makes the device")]

use anyhow::{Context, Result, bail};
use nix::libc::{IFF_NO_PI, IFF_TUN, c_char, ifreq};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;

/// The device that makes devices.
pub const PATH: &str = "/dev/net/tun";

mod ioctl {
    nix::ioctl_write_int!(tunsetiff, b'T', 202);
}

/// Makes an interface of this name in the network namespace of this thread, without packet
/// information; it lasts as long as the file. Reads do not wait.
///
/// # Errors
/// The device cannot be opened, we are not root of the namespace, or the name is taken or longer
/// than 15 octets.
pub fn open(name: &str) -> Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC)
        .open(PATH)
        .with_context(|| format!("opening {PATH}"))?;
    // SAFETY: an ifreq is numbers and a union of such, for all of which zero is a value.
    let mut request: ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        bail!("invalid name of an interface: {name:?} (1 to 15 octets)");
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    request.ifr_ifru.ifru_flags = (IFF_TUN | IFF_NO_PI) as i16;
    let address = (&raw mut request).expose_provenance() as nix::libc::c_ulong;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    unsafe { ioctl::tunsetiff(file.as_raw_fd(), address) }
        .with_context(|| format!("making the TUN device {name}"))?;
    Ok(file)
}
