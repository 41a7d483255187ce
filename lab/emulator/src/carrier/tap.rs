//! The channel of packets from the driver to a reader of a port's tap: bounded in packets and in octets,
//! and known to be over without a packet that passes.

use crate::control::ask::Passed;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Packets that wait for who listens, at most.
const PACKETS: usize = 16_384;
/// Their octets, at most.
const OCTETS: usize = 8 << 20;

/// The driver's end.
#[derive(Debug)]
pub(crate) struct TapSender {
    to: SyncSender<Passed>,
    /// Octets in transit. Both ends share it, so its count of owners shows whether the other end exists.
    waiting: Arc<AtomicUsize>,
}

/// The end of who listens.
#[derive(Debug)]
pub(crate) struct TapReceiver {
    passed: Receiver<Passed>,
    waiting: Arc<AtomicUsize>,
}

/// The two ends.
pub(crate) fn tap() -> (TapSender, TapReceiver) {
    let (to, passed) = sync_channel(PACKETS);
    let waiting = Arc::new(AtomicUsize::new(0));
    (TapSender { to, waiting: waiting.clone() }, TapReceiver { passed, waiting })
}

impl TapSender {
    /// Hands a packet on; whether there was room for it. Never waits.
    pub(crate) fn send(&self, packet: &Passed) -> bool {
        let length = packet.octets.len();
        if self.waiting.load(Ordering::Relaxed).saturating_add(length) > OCTETS {
            return false;
        }
        self.waiting.fetch_add(length, Ordering::Relaxed);
        let taken = self.to.try_send(packet.clone()).is_ok();
        if !taken {
            self.waiting.fetch_sub(length, Ordering::Relaxed);
        }
        taken
    }

    /// Whether nobody listens any more.
    pub(crate) fn is_over(&self) -> bool {
        Arc::strong_count(&self.waiting) == 1
    }
}

impl TapReceiver {
    /// The next packet, waited for so long.
    ///
    /// # Errors
    /// None came, or the driver is gone.
    pub(crate) fn next(&self, patience: Duration) -> Result<Passed, RecvTimeoutError> {
        self.passed.recv_timeout(patience).inspect(|packet| self.took(packet))
    }

    /// The packets that have come, a queue full of them at most.
    pub(crate) fn there(&self) -> impl Iterator<Item = Passed> {
        self.passed.try_iter().take(PACKETS).inspect(|packet| self.took(packet))
    }

    fn took(&self, packet: &Passed) {
        self.waiting.fetch_sub(packet.octets.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_in_packets_and_in_octets() {
        for (length, fits) in [(20, PACKETS), (65_535, OCTETS / 65_535)] {
            let (tap, receiver) = tap();
            let packet = Passed { at: 0, inbound: true, octets: vec![0; length] };
            let taken = (0..PACKETS + 10).filter(|_| tap.send(&packet)).count();
            assert_eq!(taken, fits);
            // Each that is taken makes room for one.
            assert!(receiver.next(Duration::ZERO).is_ok());
            assert!(tap.send(&packet) && !tap.send(&packet));
            assert_eq!(receiver.there().count(), fits);
            assert!(tap.send(&packet) && !tap.is_over());
            drop(receiver);
            assert!(tap.is_over() && !tap.send(&packet));
        }
    }
}
