//! Which sequence numbers passed: retransmissions, gaps, and what came out of order.

use crate::Time;
use crate::packet::{Segment, flag};
use smallvec::SmallVec;

/// Most gaps that are remembered; of more, the oldest counts as missing for good.
const MAX_HOLES: usize = 64;
/// What fills a gap sooner came out of order and was not sent again, where no round-trip time is
/// known: 3 ms, as Wireshark has it.
const REORDERING: u64 = 3_000_000;

/// What was counted of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounts {
    /// Segments with data, SYN or FIN.
    pub segments: u64,
    /// Of these, sent again.
    pub retransmissions: u64,
    /// Octets in them that had been seen, or that filled a gap.
    pub retransmitted_octets: u64,
    /// Of the retransmissions, those that filled a gap: the first copy was lost before this point.
    pub lost_before: u64,
    /// Of the retransmissions, those that the other end had acknowledged before: sent for nothing.
    pub spurious: u64,
    /// Segments that filled a gap too soon to have been sent again.
    pub out_of_order: u64,
    /// Octets that never passed this point, though later ones did.
    pub missing_octets: u64,
    /// Acknowledgements that repeat the one before: the receiver has a gap.
    pub duplicate_acks: u64,
    /// Probes of a window that is closed or of a connection that is idle.
    pub probes: u64,
    /// Segments that close the window.
    pub zero_windows: u64,
}

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// It takes no sequence numbers.
    Nothing,
    /// It goes on where the last one ended, or behind a gap.
    New,
    /// A probe: of an idle connection, or of a closed window.
    Probe,
    /// Sent again, with so many octets that had been seen or were missing.
    Again(u64),
    /// Overtaken by a later segment.
    OutOfOrder,
}

/// Octets that did not pass when later ones did.
#[derive(Clone, Copy, Debug)]
struct Hole {
    from: u64,
    to: u64,
    since: Time,
}

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    /// Behind the last octet seen, in numbers that do not wrap.
    next: Option<u64>,
    holes: SmallVec<[Hole; 2]>,
    /// What the other end has acknowledged.
    acknowledged: Option<u64>,
    /// The window of the last segment.
    window: Option<u16>,
    pub(crate) counts: TcpCounts,
}

impl Track {
    /// The number that does not wrap for one of this direction: the nearest to those seen.
    pub(crate) fn unwrap(&self, number: u32) -> u64 {
        // Far from zero, so that earlier numbers are none below it.
        let near = self.next.unwrap_or(1 << 40 | u64::from(number));
        near.wrapping_add_signed(i64::from(number.wrapping_sub(near as u32) as i32))
    }

    /// Whether a segment of this direction was seen.
    pub(crate) fn has_begun(&self) -> bool {
        self.next.is_some()
    }

    /// Whether this number can be of this connection: within what a window can be away.
    pub(crate) fn is_near(&self, number: u32) -> bool {
        self.next.is_none_or(|next| {
            let away = number.wrapping_sub(next as u32) as i32;
            away.unsigned_abs() < 1 << 30
        })
    }

    /// Whether the window that this end last advertised is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.window == Some(0)
    }

    /// A segment of this direction; `closed` where the other end's window is, `trip` the least
    /// round-trip time seen.
    pub(crate) fn segment(
        &mut self,
        now: Time,
        segment: &Segment<'_>,
        closed: bool,
        trip: Option<u64>,
    ) -> SegmentKind {
        if segment.window == 0 && !segment.has(flag::RST | flag::SYN) {
            self.counts.zero_windows += 1;
        }
        self.window = Some(segment.window);
        let span = u64::from(segment.span());
        // A reset may carry its reason as data, but uses no sequence numbers.
        if span == 0 || segment.has(flag::RST) {
            return SegmentKind::Nothing;
        }
        let from = self.unwrap(segment.sequence);
        let to = from + span;
        let Some(next) = self.next else {
            self.next = Some(to);
            self.counts.segments += 1;
            return SegmentKind::New;
        };
        let bare = !segment.has(flag::SYN | flag::FIN);
        // RFC 9293 3.8.4: an octet already sent, or none; 3.8.6.1: one that the window has no room for.
        if bare
            && span == 1
            && (from + 1 == next && self.holes.is_empty() || from == next && closed)
        {
            self.counts.probes += 1;
            return SegmentKind::Probe;
        }
        self.counts.segments += 1;
        if from >= next {
            if from > next {
                self.hole(Hole { from: next, to: from, since: now });
            }
            self.next = Some(to);
            return SegmentKind::New;
        }
        self.next = Some(next.max(to));
        let known = to.min(next) - from;
        let (filled, since) = self.fill(from, to);
        let overtaken = |since| now.since(since) < trip.unwrap_or(REORDERING);
        // What was there before the capture began may be late as well.
        let seen = known.saturating_sub(filled);
        if filled > 0 && seen == 0 && since.is_some_and(overtaken) {
            self.counts.out_of_order += 1;
            return SegmentKind::OutOfOrder;
        }
        self.counts.retransmissions += 1;
        self.counts.retransmitted_octets += known;
        self.counts.lost_before += u64::from(filled > 0);
        let spurious = self.acknowledged.is_some_and(|acknowledged| to <= acknowledged);
        self.counts.spurious += u64::from(spurious);
        SegmentKind::Again(known)
    }

    fn hole(&mut self, hole: Hole) {
        if self.holes.len() >= MAX_HOLES {
            let oldest = self.holes.remove(0);
            self.counts.missing_octets += oldest.to - oldest.from;
        }
        self.holes.push(hole);
    }

    /// Takes these numbers out of the gaps; how many there were, and since when.
    fn fill(&mut self, from: u64, to: u64) -> (u64, Option<Time>) {
        if self.holes.is_empty() {
            return (0, None);
        }
        let (mut filled, mut since) = (0, None);
        let mut left: SmallVec<[Hole; 2]> = SmallVec::new();
        for hole in &self.holes {
            let (begin, end) = (hole.from.max(from), hole.to.min(to));
            if begin >= end {
                left.push(*hole);
                continue;
            }
            filled += end - begin;
            since = since.max(Some(hole.since));
            for (from, to) in [(hole.from, begin), (end, hole.to)] {
                if from < to {
                    left.push(Hole { from, to, ..*hole });
                }
            }
        }
        self.holes = left;
        while self.holes.len() > MAX_HOLES {
            let oldest = self.holes.remove(0);
            self.counts.missing_octets += oldest.to - oldest.from;
        }
        (filled, since)
    }

    /// The other end acknowledges everything before this number; `bare` where its segment carries
    /// nothing else.
    pub(crate) fn acknowledge(&mut self, number: u32, bare: bool) -> Acknowledged {
        if self.next.is_none() {
            return Acknowledged::Nothing;
        }
        let number = self.unwrap(number);
        match self.acknowledged {
            Some(before) if number < before => Acknowledged::Nothing,
            Some(before) if number == before => {
                let waiting = self.next.is_some_and(|next| next > number);
                if bare && waiting { Acknowledged::Again } else { Acknowledged::Nothing }
            }
            _ => {
                self.acknowledged = Some(number);
                Acknowledged::UpTo(number)
            }
        }
    }

    /// What was counted, gaps that are still open with it.
    pub(crate) fn finish(&self) -> TcpCounts {
        let open: u64 = self.holes.iter().map(|hole| hole.to - hole.from).sum();
        TcpCounts { missing_octets: self.counts.missing_octets + open, ..self.counts }
    }
}

/// The content of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// Nothing new.
    Nothing,
    /// The same again, with nothing else: something is missing there.
    Again,
    /// Everything before this number.
    UpTo(u64),
}

#[cfg(test)]
mod tests;
