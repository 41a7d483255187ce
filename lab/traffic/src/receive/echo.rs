//! Packets that are sent back to where they came from, and what comes back of a flow.

use crate::clock::LoadClock;
use crate::measure::{Arrival, FlowKey, Measured, Meter};
use crate::plan::udp_overhead;
use crate::receive::incoming::{Incoming, canonical, take};
use crate::send::stream::is_patience;
use anyhow::{Context as _, Result};
use load_header::{self as payload, LoadHeader};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
use socket2::Socket;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// How long a look for what came back waits, in ms.
const LOOK: u16 = 20;
/// The length of an interval of what came back.
const INTERVAL: u64 = 100_000_000;

/// Sends a packet back, with the mark it came with; whether the system took it. What was sent back
/// already stays.
pub(crate) fn answer(socket: &Socket, packet: &mut [u8], incoming: &Incoming) -> bool {
    let Some(to) = incoming.from.filter(|_| payload::make_answer(packet)) else { return false };
    let tos = incoming.tos.unwrap_or(0);
    let class = i32::from(tos);
    let mark = match canonical(to) {
        SocketAddr::V4(_) => ControlMessage::Ipv4Tos(&tos),
        SocketAddr::V6(_) => ControlMessage::Ipv6TClass(&class),
    };
    let (slices, to) = ([IoSlice::new(packet)], SockaddrStorage::from(to));
    sendmsg(socket.as_raw_fd(), &slices, &[mark], MsgFlags::MSG_DONTWAIT, Some(&to)).is_ok()
}

/// What comes back of a sender's flows.
#[derive(Debug)]
pub(crate) struct Back {
    meter: Mutex<Meter>,
    stop: AtomicBool,
}

impl Back {
    pub(crate) fn new() -> Back {
        Back { meter: Mutex::new(Meter::new(INTERVAL)), stop: AtomicBool::new(false) }
    }

    /// Nothing more is waited for.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Takes what comes back of a flow until it is to stop.
    ///
    /// # Errors
    /// The socket fails for good.
    pub(crate) fn listen(&self, socket: &Socket, to: SocketAddr) -> Result<()> {
        let mut buffer = vec![0; 65_536];
        while !self.stop.load(Ordering::Relaxed) {
            let mut ready = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, LOOK) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error).context("waiting for what comes back"),
            }
            let incoming = match take(socket, &mut buffer) {
                Ok(incoming) => incoming,
                // Nothing listens there: the packet is reported as lost.
                Err(nix::errno::Errno::ECONNREFUSED) => continue,
                Err(error) if is_patience(&error.into()) => continue,
                Err(error) => return Err(error).context("receiving what comes back"),
            };
            let packet = buffer.get(..incoming.length).unwrap_or_default();
            let header = LoadHeader::read(packet).filter(|_| payload::is_answer(packet));
            let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(header) = header else {
                meter.foreign();
                continue;
            };
            meter.take(&Arrival {
                flow: FlowKey { run: header.run, flow: header.flow, source: to },
                sequence: header.sequence,
                sent: header.sent,
                received: LoadClock::from_header(&header).now(),
                octets: u32::try_from(incoming.length).unwrap_or(u32::MAX),
                overhead: udp_overhead(to.is_ipv4()),
                tos: incoming.tos,
            });
        }
        Ok(())
    }

    /// What came back of flows, each with how many were sent.
    pub(crate) fn measured(&self, sent: &[(FlowKey, u64)]) -> Measured {
        let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        for (flow, sent) in sent {
            meter.ended(*flow, *sent, LoadClock::Monotonic.now());
        }
        meter.measured()
    }
}
