//! A device between two sites that clears marks.

use crate::clock;
use crate::net::frame::bleach;
use crate::net::packet_socket::PacketSocket;
use anyhow::Result;
use std::time::Duration;

/// How often each direction checks whether it must end.
const PATIENCE: Duration = Duration::from_millis(100);

/// Forwards all frames between two interfaces of our namespace, and clears the DSCP of every packet,
/// until this program is interrupted.
///
/// # Errors
/// A packet socket cannot be opened.
pub fn bleach_between(interfaces: [&str; 2], ready: impl FnOnce()) -> Result<()> {
    let open = |interface| PacketSocket::open(interface, PATIENCE);
    let [a, b] = interfaces;
    // Each direction has a socket to receive and one to send, so that no two threads share one.
    let directions = [(open(a)?, open(b)?), (open(b)?, open(a)?)];
    ready();
    std::thread::scope(|scope| {
        let pass = |(mut from, to): (PacketSocket, PacketSocket)| -> Result<()> {
            while !clock::is_interrupted() {
                if let Some(frame) = from.receive()? {
                    bleach(frame);
                    to.send(frame);
                }
            }
            Ok(())
        };
        let [there, back] = directions;
        let other = scope.spawn(move || pass(back));
        pass(there)?;
        other.join().unwrap_or(Ok(()))
    })
}
