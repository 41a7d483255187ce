//! Which precedence an association serves, and a change to the store is for: the edge takes what is
//! higher first.

use crate::api::Output;
use crate::context::Context;
use crate::machines::Arrivals;
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
        self.arrivals.level_with_arrival(&self.cx, id)
    }
}

impl Arrivals {
    /// The same, with what arrives on it.
    pub(crate) fn level_with_arrival(&self, cx: &Context, id: AssociationId) -> Precedence {
        let receiving = cx.associations.get(&id).and_then(|link| link.receiving);
        let arriving = receiving.and_then(|spool| self.open.get(&spool)?.level);
        cx.level_of(id, arriving)
    }

    /// Notes the precedence of an arrival once its envelope is there.
    pub(crate) fn note_level(&mut self, cx: &mut Context, spool: SpoolId) {
        let Some(arrival) = self.open.get(&spool).filter(|arrival| arrival.level.is_none()) else {
            return;
        };
        let level = cx.classify(arrival);
        if let Some(arrival) = self.open.get_mut(&spool) {
            arrival.level = level;
        }
    }

    /// The precedence of an arrival that has come whole: by its content too, where that counts.
    pub(crate) fn classified(&mut self, cx: &mut Context, spool: SpoolId) -> Precedence {
        let Some(arrival) = self.open.get_mut(&spool) else { return UNKNOWN };
        if arrival.peek {
            arrival.level = None;
            self.note_level(cx, spool);
        }
        self.open.get(&spool).and_then(|arrival| arrival.level).unwrap_or(UNKNOWN)
    }
}

impl Context {
    /// The same, where a message of this precedence arrives.
    pub(crate) fn level_of(&self, id: AssociationId, arriving: Option<Precedence>) -> Precedence {
        let Some(link) = self.associations.get(&id) else { return UNKNOWN };
        let sending = link.sending.as_ref().map(|sending| sending.precedence);
        if let Some(level) = sending.max(arriving) {
            return level;
        }
        let channel = link.channel().and_then(|channel| self.peer_and_channel(channel));
        let highest = channel.and_then(|(_, channel)| channel.precedences.iter().max());
        highest.copied().unwrap_or(UNKNOWN)
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

    /// Asks for a commit that nobody waits for, or an operator.
    pub(crate) fn commit(&mut self, batch: Batch, pending: Pending) {
        let level = match &pending {
            Pending::Operation(_) => Precedence::Override,
            _ => Precedence::Deferred,
        };
        self.commit_for(level, batch, pending);
    }

    /// Asks for a commit, with the highest precedence it is for: that of its entries, or else the
    /// level of the association that waits for it.
    pub(crate) fn commit_for(&mut self, level: Precedence, mut batch: Batch, pending: Pending) {
        self.put_clock(&mut batch);
        let precedence = journal::highest(&batch).unwrap_or(level);
        if matches!(pending, Pending::Retry(_)) {
            self.commits.retry_begins();
        }
        let token = self.token(pending);
        self.output(Output::Commit { token, precedence, batch });
    }
}
