//! Packet sockets (packet(7)): all frames of one interface.

use crate::net::batch;
use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvfrom, send,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Receive buffer in octets: a second of a fast transfer.
const BUFFER: usize = 64 << 20;
/// The longest frame: an Ethernet header and the longest packet.
const FRAME: usize = 14 + 65_535;

/// All frames of one interface, in both directions, except those that this socket sends.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    index: usize,
    hardware: Option<u16>,
    buffer: Vec<u8>,
}

impl PacketSocket {
    /// Opens a socket on this interface of our namespace; a wait for a frame ends after `patience`.
    ///
    /// # Errors
    /// There is no such interface, or this process lacks the right.
    pub fn open(interface: &str, patience: Duration) -> Result<PacketSocket> {
        // By its number: an interface without a link address, such as a TUN device, has nothing else.
        let index =
            if_nametoindex(interface).with_context(|| format!("no interface {interface}"))?;
        let all = SockProtocol::EthAll;
        let flags = SockFlag::SOCK_CLOEXEC;
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, all).context("packet(7)")?;
        if setsockopt(&fd, sockopt::RcvBufForce, &BUFFER).is_err() {
            setsockopt(&fd, sockopt::RcvBuf, &BUFFER)?;
        }
        let patience = TimeVal::new(0, patience.subsec_micros().into());
        setsockopt(&fd, sockopt::ReceiveTimeout, &patience)?;
        let bound = batch::listen(fd.as_fd(), index.try_into()?);
        bound.with_context(|| format!("binding to {interface}"))?;
        let index = index.try_into()?;
        Ok(PacketSocket { fd, index, hardware: None, buffer: vec![0; FRAME] })
    }

    /// Opens a socket on this interface of our namespace that receives only incoming frames and
    /// never blocks.
    ///
    /// # Errors
    /// As [`PacketSocket::open`], or the kernel is older than 4.20.
    pub fn far_end(interface: &str) -> Result<PacketSocket> {
        let socket = PacketSocket::open(interface, Duration::ZERO)?;
        batch::incoming_only(socket.fd.as_fd())?;
        Ok(socket)
    }

    /// The next frame; `None` where none came in time.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive(&mut self) -> Result<Option<&mut [u8]>> {
        Ok(self.receive_either()?.map(|(frame, _)| frame))
    }

    /// The next frame, and whether it is incoming.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn receive_either(&mut self) -> Result<Option<(&mut [u8], bool)>> {
        let (length, from) = match recvfrom::<LinkAddr>(self.fd.as_raw_fd(), &mut self.buffer) {
            Ok(received) => received,
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN) => return Ok(None),
            Err(error) => bail!("packet(7): {error}"),
        };
        // Before it was bound, the socket received the frames of all interfaces.
        if from.is_some_and(|from| from.ifindex() != self.index) {
            return Ok(None);
        }
        self.hardware = from.map(|from| from.hatype());
        let inbound = from.is_none_or(|from| from.pkttype() != libc::PACKET_OUTGOING);
        Ok(self.buffer.get_mut(..length).map(|frame| (frame, inbound)))
    }

    /// The interface's type (ARPHRD of if_arp.h), once a frame was received.
    pub fn hardware(&self) -> Option<u16> {
        self.hardware
    }

    /// Receives all frames that wait, at most [`batch::FRAMES`], into slots of this many octets;
    /// see [`batch::receive`].
    pub fn receive_all(
        &self,
        memory: &mut [u8],
        slot: usize,
        lengths: &mut [usize; batch::FRAMES],
    ) -> std::io::Result<usize> {
        batch::receive(self.fd.as_fd(), memory, slot, lengths)
    }

    /// Frames dropped for lack of room since the last call; see [`batch::dropped`].
    pub fn dropped(&self) -> std::io::Result<u64> {
        batch::dropped(self.fd.as_fd())
    }

    /// Sends frames of two parts each, at most [`batch::FRAMES`]; see [`batch::send`].
    pub fn send_all<'a>(
        &self,
        frames: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> std::io::Result<usize> {
        batch::send(self.fd.as_fd(), frames)
    }

    /// Sends a frame; a frame that the interface does not take is lost, as on any network.
    pub fn send(&self, frame: &[u8]) {
        let _ = send(self.fd.as_raw_fd(), frame, MsgFlags::empty());
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
