//! The precedence of an arrival.

use crate::arrivals::Arrivals;
use crate::arrivals::arrival::{ArrivalHead, OpenArrival, Parsing};
use crate::context::Context;
use crate::context::level::UNKNOWN;
use base::{AssociationId, Precedence};
use bytes::Bytes;
use engine::journal::SpoolId;
use p1::apdu::MtsApduHead;

impl Arrivals {
    /// The precedence that an association serves, with that of its arrival.
    pub(crate) fn level_with_arrival(&self, cx: &Context, id: AssociationId) -> Precedence {
        let receiving = cx.associations.get(&id).and_then(|association| association.receiving());
        let arriving = receiving.and_then(|spool| self.open.get(&spool)?.level);
        cx.level_of(id, arriving)
    }

    /// Notes the precedence of an arrival once its envelope is there.
    pub(crate) fn note_level(&mut self, cx: &mut Context, spool: SpoolId) {
        let Some(arrival) = self.open.get(&spool).filter(|arrival| arrival.level.is_none()) else {
            return;
        };
        let level = self.classify(cx, arrival);
        if let Some(arrival) = self.open.get_mut(&spool) {
            arrival.level = level;
        }
    }

    /// The precedence of an arrival that is complete: by its content too, where that counts.
    pub(crate) fn classified(&mut self, cx: &mut Context, spool: SpoolId) -> Precedence {
        let Some(arrival) = self.open.get_mut(&spool) else { return UNKNOWN };
        if arrival.notes.peeks() {
            arrival.level = None;
            self.note_level(cx, spool);
        }
        self.open.get(&spool).and_then(|arrival| arrival.level).unwrap_or(UNKNOWN)
    }

    /// Classifies an arrival by its envelope, and what is at hand of its content.
    pub(crate) fn classify(&self, cx: &Context, arrival: &OpenArrival) -> Option<Precedence> {
        let policy = &cx.config.classify;
        let message = |priority, extensions, content_type| {
            let front = Bytes::copy_from_slice(arrival.notes.front());
            policy.message(priority, extensions, content_type, &front)
        };
        // The head of a report comes last.
        if let (None, Parsing::Transfer(parser)) = (&arrival.head, &arrival.parsing)
            && parser.is_report()
        {
            return Some(policy.relayed_report());
        }
        Some(match arrival.head.as_ref()? {
            ArrivalHead::Submission(e) => message(e.priority, &e.extensions, &e.content_type),
            ArrivalHead::Transfer(head) => match &**head {
                MtsApduHead::Message(e) => message(e.priority, &e.extensions, &e.content_type),
                MtsApduHead::Probe(_) => policy.probe(),
                MtsApduHead::Report(_) => policy.relayed_report(),
            },
        })
    }
}
