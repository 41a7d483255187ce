//! The dropper of a queue, in addition to its limit.

use super::red::{Drawn, Red};
use super::thresholds::Thresholds;
use super::trio::Trio;
use crate::count::{Cause, Counters};
use crate::packet::Packet;
use crate::time::Time;

/// Which packets a queue drops before it is full.
#[derive(Debug)]
pub(crate) enum Early {
    /// None.
    Tail,
    /// By thresholds of code points.
    Thresholds(Thresholds),
    /// RED or WRED.
    Red(Red),
    /// TRIO: RED by colour.
    Trio(Trio),
}

/// The disposition of an arriving packet, unless the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// The packet is queued.
    Keep,
    /// The packet is queued, and its ECN field is set to CE (RFC 3168 7).
    Mark,
    /// The packet is dropped, for this cause.
    Drop(Cause),
}

impl Disposition {
    /// The disposition for a result of a drop function. With `ecn`, packets of ECN-capable
    /// transports are marked instead of dropped at random.
    pub(crate) fn from_draw(drawn: Drawn, packet: &Packet, ecn: bool) -> Disposition {
        match drawn {
            Drawn::Keep => Disposition::Keep,
            Drawn::Early if ecn && packet.header().ecn != 0 => Disposition::Mark,
            Drawn::Early => Disposition::Drop(Cause::Early),
            Drawn::Forced => Disposition::Drop(Cause::Forced),
        }
    }
}

impl Early {
    /// The disposition of a packet that arrives while `waiting` packets wait.
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

    /// The packet was queued.
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

    /// A queued packet left; `left` packets remain.
    pub(crate) fn went(&mut self, now: Time, packet: &Packet, left: usize) {
        match self {
            Early::Tail | Early::Thresholds(_) => {}
            Early::Red(red) => red.went(now, left),
            Early::Trio(trio) => trio.went(now, packet, left),
        }
    }

    /// A queued packet was dropped.
    pub(crate) fn lost(&mut self, packet: &Packet) {
        if let Early::Trio(trio) = self {
            trio.lost(packet);
        }
    }

    /// The kind of a queue with this dropper, in reports.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Early::Tail => "fifo",
            Early::Thresholds(_) => "thresholds",
            Early::Red(red) => red.kind(),
            Early::Trio(_) => "trio",
        }
    }
}
