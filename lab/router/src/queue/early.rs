//! Which dropper a queue has, beside its limit.

use super::red::{Drawn, Red};
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

/// What becomes of a packet, unless the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// It is kept.
    Keep,
    /// It is kept, and its ECN field says that there is congestion (RFC 3168 7).
    Mark,
    /// It goes no further.
    Drop(Cause),
}

impl Disposition {
    /// What a drop function says; with `ecn`, what understands marks is not dropped by chance.
    pub(crate) fn of(drawn: Drawn, packet: &Packet, ecn: bool) -> Disposition {
        match drawn {
            Drawn::Keep => Disposition::Keep,
            Drawn::Early if ecn && packet.header().ecn != 0 => Disposition::Mark,
            Drawn::Early => Disposition::Drop(Cause::Early),
            Drawn::Forced => Disposition::Drop(Cause::Forced),
        }
    }
}

impl Early {
    /// A packet comes while so many wait.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        packet: &Packet,
        waiting: usize,
        counters: &mut Counters,
    ) -> Disposition {
        match self {
            Early::Tail => Disposition::Keep,
            Early::Thresholds(thresholds) => thresholds.judge(packet, waiting),
            Early::Red(red) => red.judge(now, packet, waiting, counters),
            Early::Trio(trio) => trio.judge(now, packet, waiting, counters),
        }
    }

    /// The packet is kept.
    pub(crate) fn kept(
        &mut self,
        packet: &mut Packet,
        disposition: Disposition,
        counters: &mut Counters,
    ) {
        let before = packet.header().ecn;
        if disposition == Disposition::Mark
            && packet.set_congestion()
            && packet.header().ecn != before
        {
            counters.congestion_marked(packet.dscp());
        }
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
