//! What the node gives out, in order. Events are counted, and limited where strangers can repeat them.

use crate::api::Output;
use crate::api::event::{Kind, LogLevel};
use crate::log::draft::EventDraft;
use crate::log::rate::{LogRateLimiter, RefusalCause, RepeatReason, RepeatedEvent};
use crate::log::tally::EventTally;
use base::ip_prefix::Origin;
use base::{AssociationId, Instant, Now, PeerId};
use dscp::Dscp;
use engine::{Note, NoteKind};
use scheduler::ChannelId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Outputs in the order in which the edge carries them out, events among them.
#[derive(Debug, Default)]
pub struct Outputs {
    waiting: VecDeque<Output>,
    tally: EventTally,
    limiter: LogRateLimiter,
    /// The mark with which the handshakes of a channel's peer came last.
    marks: BTreeMap<ChannelId, Dscp>,
    /// Peers that mark nothing, as the log has it.
    unmarked: BTreeSet<PeerId>,
}

impl Outputs {
    /// Adds an output, after all others.
    pub fn push(&mut self, output: Output) {
        self.waiting.push_back(output);
    }

    /// The next one for the edge.
    pub fn poll(&mut self) -> Option<Output> {
        self.waiting.pop_front()
    }

    /// How many wait.
    #[cfg(debug_assertions)]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What was counted.
    pub fn tally(&self) -> &EventTally {
        &self.tally
    }

    /// What is counted, to change.
    pub fn tally_mut(&mut self) -> &mut EventTally {
        &mut self.tally
    }

    /// An event, which is given out when its draft is dropped.
    pub fn event(
        &mut self,
        level: LogLevel,
        kind: Kind,
        detail: impl Into<String>,
    ) -> EventDraft<'_> {
        EventDraft::new(level, kind, detail.into(), &mut self.waiting, &mut self.tally)
    }

    /// An event that a stranger can repeat at will. Those that follow for the same reason are
    /// counted.
    pub fn limited_event(
        &mut self,
        now: Now,
        why: RefusalCause,
        origin: Option<Origin>,
        id: Option<AssociationId>,
        reason: &str,
        line: RepeatedEvent,
    ) {
        let RepeatedEvent { level, kind, channel, detail } = line.clone();
        let origin = origin.unwrap_or(Origin::Others);
        if self.limiter.allows(now.mono, (why, origin, RepeatReason::new(reason)), line) {
            let event = self.event(level, kind, detail).channel(channel);
            match id {
                Some(id) => drop(event.association(id)),
                None => drop(event),
            }
        }
    }

    /// What to log of the mark of a handshake of a channel's peer: it is neither the expected one nor the one before
    /// it. A peer that marks nothing is named once, on whatever channel.
    pub fn another_mark(
        &mut self,
        channel: ChannelId,
        expected: Dscp,
        seen: Dscp,
    ) -> Option<String> {
        let is_new = self.marks.insert(channel, seen) != Some(seen);
        if seen != Dscp::CS0 {
            self.unmarked.remove(&channel.peer);
        }
        let text = format!("the peer's handshake came with {seen}, not with {expected}");
        match is_new && seen != expected {
            true if seen != Dscp::CS0 => Some(text),
            true if self.unmarked.insert(channel.peer) => Some(format!(
                "{text}: it marks nothing, or a router on the path removes the mark; this is logged \
                 once for the peer, and what it sends is accepted"
            )),
            _ => None,
        }
    }

    /// Events for what was counted and is due.
    pub fn log_counted(&mut self, now: Now) {
        while let Some(RepeatedEvent { level, kind, channel, detail }) =
            self.limiter.next_due(now.mono)
        {
            self.event(level, kind, detail).channel(channel);
        }
    }

    /// When counted events are due.
    pub fn deadline(&self) -> Option<Instant> {
        self.limiter.deadline()
    }

    /// Events for what the engine noted of a message.
    pub fn log_notes(
        &mut self,
        id: Option<AssociationId>,
        channel: Option<ChannelId>,
        message: &str,
        notes: &[Note],
    ) {
        for note in notes {
            let (level, kind) = match note.kind {
                NoteKind::Duplicate => (LogLevel::Info, Kind::DuplicateDropped),
                NoteKind::IdentifierReused => (LogLevel::Warning, Kind::IdentifierReused),
                NoteKind::ReportMade => (LogLevel::Info, Kind::ReportMade),
                NoteKind::ContentNotReturned => (LogLevel::Warning, Kind::ContentNotReturned),
                NoteKind::ReportDiscarded => (LogLevel::Warning, Kind::Discarded),
                NoteKind::NonDelivery => (LogLevel::Warning, Kind::NonDelivery),
                NoteKind::NotDisclosed => (LogLevel::Warning, Kind::NotDisclosed),
                NoteKind::Expanded => (LogLevel::Info, Kind::Expanded),
                NoteKind::Redirected => (LogLevel::Info, Kind::Redirected),
                NoteKind::TraceDoubted => (LogLevel::Warning, Kind::TraceDoubted),
            };
            let draft = self
                .event(level, kind, note.detail.clone())
                .channel(channel)
                .message(message)
                .related(note.report.clone());
            if let Some(id) = id {
                draft.association(id);
            }
        }
    }
}
