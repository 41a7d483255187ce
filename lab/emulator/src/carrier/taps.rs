//! Taps of the kernel's interfaces. Where the kernel forwards, no packet passes this process, so a
//! listener of a port receives its packets from a packet socket.

use crate::TimeOrigin;
use crate::carrier::ports::{ETHERNET, is_ip};
use crate::carrier::tap::TapSender;
use crate::control::ask::Passed;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testbed::clock;
use testbed::netns::Netns;
use testbed::packet_socket::PacketSocket;
use text::UsageError;

/// How often it is looked whether somebody still listens.
const LOOK: Duration = Duration::from_millis(200);

/// How often, in frames, it is asked how many were lost before they could be read.
const LOOK_FRAMES: u64 = 256;

/// The interfaces that can be listened to.
#[derive(Debug)]
pub(crate) struct Taps {
    /// Namespace and name of each, by node and port: `sar.wan`.
    ports: BTreeMap<String, (Netns, String)>,
    origin: TimeOrigin,
    missed: Arc<AtomicU64>,
}

impl Taps {
    pub(crate) fn new(ports: BTreeMap<String, (Netns, String)>, origin: TimeOrigin) -> Taps {
        Taps { ports, origin, missed: Arc::default() }
    }

    /// Hands on what passes a port, until its listener is gone.
    ///
    /// # Errors
    /// There is no such port, or it cannot be listened to.
    pub(crate) fn listen(&self, port: &str, to: TapSender) -> Result<()> {
        let Some((namespace, interface)) = self.ports.get(port) else {
            let known = self.ports.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(UsageError::error(format!("no port {port}: {known}")));
        };
        let socket = namespace.within(|| PacketSocket::open(interface, LOOK))?;
        let (origin, missed) = (self.origin, self.missed.clone());
        let thread = std::thread::Builder::new().name("tap".to_owned());
        thread.spawn(move || pass_on(socket, &to, origin, &missed)).context("a thread")?;
        Ok(())
    }

    /// Packets that listeners were too slow for.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

/// Until the listener, the interface or the network is gone.
fn pass_on(mut socket: PacketSocket, to: &TapSender, origin: TimeOrigin, missed: &AtomicU64) {
    let mut frames = 0u64;
    while !to.is_over() && !clock::is_interrupted() {
        let Ok(received_event) = socket.receive_either() else { break };
        let is_quiet = received_event.is_none();
        if let Some((frame, inbound)) = received_event {
            let at = origin.since_1970(origin.time());
            // What is not IP is nobody's.
            let packet = frame.split_at_checked(ETHERNET).filter(|(header, _)| is_ip(header));
            let notified = packet.is_none_or(|(_, octets)| {
                to.send(&Passed { at, inbound, octets: octets.to_vec() })
            });
            if !notified && !to.is_over() {
                missed.fetch_add(1, Ordering::Relaxed);
            }
            frames += 1;
        }
        if is_quiet || frames.is_multiple_of(LOOK_FRAMES) {
            missed.fetch_add(socket.dropped().unwrap_or(0), Ordering::Relaxed);
        }
    }
}
