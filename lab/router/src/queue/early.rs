//! The dropper of a queue, in addition to its limit.

use super::red::{DropDraw, Red};
use super::thresholds::Thresholds;
use super::trio::Trio;
use crate::count::{Cause, PacketCounters};
use crate::packet::Packet;
use crate::time::Time;

/// Which packets a queue drops before it is full.
#[derive(Debug)]
pub(crate) enum EarlyDropper {
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
pub(crate) enum EarlyVerdict {
    /// The packet is queued.
    Keep,
    /// The packet is queued, and its ECN field is set to CE (RFC 3168 7).
    Mark,
    /// The packet is dropped, for this cause.
    Drop(Cause),
}

impl EarlyVerdict {
    /// The disposition for a result of a drop function. With `ecn`, packets of ECN-capable
    /// transports are marked instead of dropped at random.
    pub(crate) fn from_draw(drawn: DropDraw, packet: &Packet, ecn: bool) -> EarlyVerdict {
        match drawn {
            DropDraw::Keep => EarlyVerdict::Keep,
            DropDraw::Early if ecn && packet.header().ecn != 0 => EarlyVerdict::Mark,
            DropDraw::Early => EarlyVerdict::Drop(Cause::Early),
            DropDraw::Forced => EarlyVerdict::Drop(Cause::Forced),
        }
    }
}

impl EarlyDropper {
    /// The disposition of a packet that arrives while `waiting` packets wait.
    pub(crate) fn judge(
        &mut self,
        now: Time,
        packet: &Packet,
        waiting: usize,
        counters: &mut PacketCounters,
    ) -> EarlyVerdict {
        match self {
            EarlyDropper::Tail => EarlyVerdict::Keep,
            EarlyDropper::Thresholds(thresholds) => thresholds.judge(packet, waiting),
            EarlyDropper::Red(red) => red.judge(now, packet, waiting, counters),
            EarlyDropper::Trio(trio) => trio.judge(now, packet, waiting, counters),
        }
    }

    /// The packet was queued.
    pub(crate) fn kept(
        &mut self,
        packet: &mut Packet,
        disposition: EarlyVerdict,
        counters: &mut PacketCounters,
    ) {
        let before = packet.header().ecn;
        if disposition == EarlyVerdict::Mark
            && packet.set_congestion()
            && packet.header().ecn != before
        {
            counters.congestion_marked(packet.dscp());
        }
        if let EarlyDropper::Trio(trio) = self {
            trio.kept(packet);
        }
    }

    /// A queued packet left; `left` packets remain.
    pub(crate) fn went(&mut self, now: Time, packet: &Packet, left: usize) {
        match self {
            EarlyDropper::Tail | EarlyDropper::Thresholds(_) => {}
            EarlyDropper::Red(red) => red.went(now, left),
            EarlyDropper::Trio(trio) => trio.went(now, packet, left),
        }
    }

    /// A queued packet was dropped.
    pub(crate) fn lost(&mut self, packet: &Packet) {
        if let EarlyDropper::Trio(trio) = self {
            trio.lost(packet);
        }
    }

    /// The kind of a queue with this dropper, in reports.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            EarlyDropper::Tail => "fifo",
            EarlyDropper::Thresholds(_) => "thresholds",
            EarlyDropper::Red(red) => red.kind(),
            EarlyDropper::Trio(_) => "trio",
        }
    }
}
