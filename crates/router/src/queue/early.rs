//! Which dropper a queue has, beside its limit.

use super::red::Red;
use super::thresholds::Thresholds;
use super::trio::Trio;
use crate::count::{Cause, Counters};
use crate::packet::Packet;
use crate::time::Time;

/// What a queue drops before it is full.
#[derive(Debug)]
pub(crate) enum Early {
    /// Nothing.
    Tail,
    /// By the threshold of its code point.
    Thresholds(Thresholds),
    /// RED or WRED.
    Red(Red),
    /// By colour.
    Trio(Trio),
}

impl Early {
    /// A packet comes while so many wait: why it has to go no further, if so. It may be marked
    /// instead (RFC 3168 7).
    pub(crate) fn judge(
        &mut self,
        now: Time,
        packet: &mut Packet,
        waiting: usize,
        counters: &mut Counters,
    ) -> Option<Cause> {
        match self {
            Early::Tail => None,
            Early::Thresholds(thresholds) => thresholds.judge(packet, waiting),
            Early::Red(red) => red.judge(now, packet, waiting, counters),
            Early::Trio(trio) => trio.judge(now, packet, waiting, counters),
        }
    }

    /// The packet is kept.
    pub(crate) fn kept(&mut self, packet: &Packet) {
        if let Early::Trio(trio) = self {
            trio.kept(packet);
        }
    }

    /// A packet that was kept went, and so many are left.
    pub(crate) fn went(&mut self, now: Time, packet: &Packet, left: usize) {
        match self {
            Early::Tail | Early::Thresholds(_) => {}
            Early::Red(red) => red.went(now, left),
            Early::Trio(trio) => trio.went(now, packet, left),
        }
    }

    /// A packet that was kept has been dropped.
    pub(crate) fn lost(&mut self, packet: &Packet) {
        if let Early::Trio(trio) = self {
            trio.lost(packet);
        }
    }

    /// What reports call a queue with this dropper.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Early::Tail => "fifo",
            Early::Thresholds(_) => "thresholds",
            Early::Red(red) => red.kind(),
            Early::Trio(_) => "trio",
        }
    }
}
