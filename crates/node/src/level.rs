//! Which precedence an association serves, and a change to the store is for: the edge takes what is
//! higher first.

use crate::api::Output;
use crate::node::Node;
use crate::pending::Pending;
use crate::receiving::{Arrival, Head};
use base::{AssociationId, Precedence};
use engine::journal::{self, Batch, SpoolId};
use p1::apdu::MtsApduHead;

/// What a user submits has this level until its envelope tells: the highest that is not urgent. It
/// overtakes nothing urgent, whatever it turns out to be; and a Flash waits, among what is not urgent,
/// only for what is as high and came before it.
pub(crate) const UNKNOWN: Precedence = Precedence::HIGHEST_NOT_URGENT;

impl Node {
    /// The precedence that an association serves now: that of what it carries once that is known;
    /// before, the highest that its channel may carry, or, where a user submits, the highest that is not
    /// urgent.
    #[must_use]
    pub fn level(&self, id: AssociationId) -> Precedence {
        let Some(link) = self.associations.get(&id) else { return UNKNOWN };
        let sending = link.sending.as_ref().map(|sending| sending.precedence);
        let arriving = link.receiving.and_then(|spool| self.arrivals.get(&spool)?.level);
        if let Some(level) = sending.max(arriving) {
            return level;
        }
        let channel = link.channel().and_then(|channel| self.peer_and_channel(channel));
        let highest = channel.and_then(|(_, channel)| channel.precedences.iter().max());
        highest.copied().unwrap_or(UNKNOWN)
    }

    /// Notes the precedence of an arrival once its envelope is there.
    pub(crate) fn note_level(&mut self, spool: SpoolId) {
        let Some(arrival) = self.arrivals.get(&spool).filter(|arrival| arrival.level.is_none())
        else {
            return;
        };
        let level = self.classify(arrival);
        if let Some(arrival) = self.arrivals.get_mut(&spool) {
            arrival.level = level;
        }
    }

    /// The precedence of an arrival that has come whole: by its content too, where that counts.
    pub(crate) fn classified(&mut self, spool: SpoolId) -> Precedence {
        let Some(arrival) = self.arrivals.get_mut(&spool) else { return UNKNOWN };
        if arrival.peek {
            arrival.level = None;
            self.note_level(spool);
        }
        self.arrivals.get(&spool).and_then(|arrival| arrival.level).unwrap_or(UNKNOWN)
    }

    /// Classifies an arrival by its envelope, and what is at hand of its content.
    pub(crate) fn classify(&self, arrival: &Arrival) -> Option<Precedence> {
        let policy = &self.config.classify;
        let message = |priority, extensions, content_type| {
            policy.message(priority, extensions, content_type, &arrival.front())
        };
        Some(match arrival.head.as_ref()? {
            Head::Submission(e) => message(e.priority, &e.extensions, &e.content_type),
            Head::Transfer(head) => match &**head {
                MtsApduHead::Message(e) => message(e.priority, &e.extensions, &e.content_type),
                MtsApduHead::Probe(_) => policy.probe(),
                MtsApduHead::Report(_) => policy.relayed_report(),
            },
        })
    }

    /// Asks for a commit, with the highest precedence it is for: that of its entries, or else of
    /// whom it is made for. What nobody waits for is lowest.
    pub(crate) fn commit(&mut self, mut batch: Batch, pending: Pending) {
        self.put_clock(&mut batch);
        let precedence = journal::highest(&batch).unwrap_or(match &pending {
            Pending::Commit { link, .. } => self.level(*link),
            Pending::Operation(_) => Precedence::Override,
            _ => Precedence::Deferred,
        });
        if matches!(pending, Pending::Retry(_)) {
            self.asks_to_pay();
        }
        let token = self.token(pending);
        self.output(Output::Commit { token, precedence, batch });
    }
}
