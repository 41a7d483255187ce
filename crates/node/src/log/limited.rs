//! What the log says of refusals that repeat, and of what the engine noted.

use crate::config::address_prefix::Origin;
use crate::context::Context;
use crate::log::event::{Kind, Level};
use crate::log::rate::{Reason, Repeated, Why};
use base::{AssociationId, Now};
use engine::{Note, NoteKind};
use scheduler::ChannelId;

impl Context {
    /// Logs what a stranger can repeat at will; what follows for the same reason is counted.
    pub(crate) fn hushed(
        &mut self,
        now: Now,
        why: Why,
        origin: Option<Origin>,
        id: Option<AssociationId>,
        reason: &str,
        line: Repeated,
    ) {
        let Repeated { level, kind, channel, detail } = line.clone();
        let origin = origin.unwrap_or(Origin::Others);
        if self.log_rate.allows(now.mono, (why, origin, Reason::of(reason)), line) {
            let event = self.event(level, kind, detail).channel(channel);
            match id {
                Some(id) => drop(event.association(id)),
                None => drop(event),
            }
        }
    }

    /// Logs what was counted meanwhile.
    pub(crate) fn log_limited(&mut self, now: Now) {
        while let Some(Repeated { level, kind, channel, detail }) = self.log_rate.next_due(now.mono)
        {
            self.event(level, kind, detail).channel(channel);
        }
    }

    /// What the engine had to say of a message.
    pub(crate) fn log_notes(
        &mut self,
        id: Option<AssociationId>,
        channel: Option<ChannelId>,
        message: &str,
        notes: &[Note],
    ) {
        for note in notes {
            let (level, kind) = match note.kind {
                NoteKind::Duplicate => (Level::Info, Kind::DuplicateDropped),
                NoteKind::IdentifierReused => (Level::Warning, Kind::IdentifierReused),
                NoteKind::ReportMade => (Level::Info, Kind::ReportMade),
                NoteKind::ReportDiscarded => (Level::Warning, Kind::Discarded),
                NoteKind::NonDelivery => (Level::Warning, Kind::NonDelivery),
                NoteKind::TraceDoubted => (Level::Warning, Kind::TraceDoubted),
            };
            let draft =
                self.event(level, kind, note.detail.clone()).channel(channel).message(message);
            if let Some(id) = id {
                draft.association(id);
            }
        }
    }
}
