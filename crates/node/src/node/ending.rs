//! What follows for all machines when an association ends.

use crate::api::Output;
use crate::api::event::Kind;
use crate::association::{Association, AssociationState};
use crate::node::Node;
use base::{AssociationId, Now};
use osi::api as stack;

impl Node {
    pub(crate) fn connect_failed(&mut self, now: Now, id: AssociationId, error: &str) {
        self.association_over(now, id, Kind::AssociationLost, &format!("no connection: {error}"));
        self.remove_association(id);
    }

    /// What follows when an association has ended, in order or not: what was being sent waits
    /// again, what was being received may be resumed on a recovered association.
    pub(crate) fn association_over(
        &mut self,
        now: Now,
        id: AssociationId,
        kind: Kind,
        detail: &str,
    ) {
        let stopping = self.cx.life.is_stopping();
        let association = self.cx.associations.get_mut(&id);
        let Some(ended) = association.and_then(|a| a.end(now, kind, detail, stopping)) else {
            return;
        };
        if !ended.did_not_open() {
            self.cx.log_end(now, id, &ended);
        }
        self.stores.mailboxes.unbound(now, id);
        self.delivery.end_controls(&mut self.cx, now, id);
        let fault = self.give_back(now, id, ended.is_lost());
        // What an association that never opened was to recover stays with the recovery.
        self.arrivals.drop_receiving(&mut self.cx, now, id, ended.was_open, ended.is_lost());
        self.outbound.note_end(&mut self.cx, now, id, &ended, fault);
    }

    /// Ends an association of ours at once. What it was to recover is kept.
    pub(crate) fn abandon(&mut self, now: Now, id: AssociationId, why: &str) {
        if let Some(association) = self.cx.associations.get_mut(&id) {
            association.leave();
        }
        self.drop_association(now, id, Kind::AssociationReleased, why);
    }

    /// Ends an association and its connection at once.
    pub(crate) fn drop_association(&mut self, now: Now, id: AssociationId, kind: Kind, why: &str) {
        self.association_over(now, id, kind, why);
        self.remove_association(id);
        self.cx.output(Output::Drop { association: id });
    }

    /// Ends an association at once, with an abort where it is open: nothing more is acknowledged on it.
    pub(crate) fn abort_association(&mut self, now: Now, id: AssociationId, why: &str) {
        let Some(association) = self.cx.associations.get_mut(&id) else { return };
        if association.state() == AssociationState::Connecting {
            return self.drop_association(now, id, Kind::AssociationLost, why);
        }
        let abort = stack::Request::Abort(stack::AbortReason::TemporaryProblem);
        association.stack.handle(now.mono, stack::Input::Request(abort));
        while let Some(output) =
            self.cx.associations.get_mut(&id).and_then(|association| association.stack.poll())
        {
            if let stack::Output::Send(bytes) = output {
                self.cx.output(Output::Write { association: id, bytes });
            }
        }
        self.association_over(now, id, Kind::AssociationLost, why);
        self.cx.output(Output::Close { association: id });
    }

    /// Removes an association whose connection has ended.
    pub(crate) fn remove_association(&mut self, id: AssociationId) -> Option<Association> {
        let association = self.cx.associations.remove(id)?;
        self.outbound.agenda.gone(id, association.channel());
        self.admission.forget(&association);
        self.operations.is_drained(&mut self.cx, id);
        Some(association)
    }

    pub(crate) fn closed(&mut self, now: Now, id: AssociationId, error: Option<&str>) {
        if let Some(association) = self.cx.associations.get_mut(&id) {
            // Why we ended it is more than how it ended.
            let why = association.connection.error.take();
            association.connection.error = why.or_else(|| error.map(str::to_owned));
        }
        self.feed(now, id, stack::Input::Eof);
        let Some(association) = self.cx.associations.get_mut(&id) else { return };
        if association.state() != AssociationState::Over {
            // The stack gave no indication: the connection went before it was of any use.
            self.association_over(now, id, Kind::AssociationLost, "the connection closed");
        }
        self.remove_association(id);
    }

    pub(crate) fn stop(&mut self, now: Now) {
        let again = self.cx.life.stop();
        if !again {
            self.cx.write_clock(now);
        }
        let ids: Vec<AssociationId> = self.cx.associations.keys().copied().collect();
        for id in ids {
            if again
                && self
                    .cx
                    .associations
                    .get(&id)
                    .is_some_and(|association| association.state() != AssociationState::Connecting)
            {
                self.cx.request(id, stack::Request::Abort(stack::AbortReason::TemporaryProblem));
            } else {
                self.wind_down(now, id);
            }
        }
    }

    /// Brings one association to its end, even if its connection is still being made.
    pub(crate) fn wind_down(&mut self, now: Now, id: AssociationId) {
        let Some(association) = self.cx.associations.get(&id) else { return };
        if association.state() != AssociationState::Connecting {
            return self.cx.finish(id);
        }
        let why = match (self.cx.life.is_stopping(), association.is_leaving()) {
            (true, _) => "stopping",
            (false, true) => "its window has ended, or an operator ended it",
            (false, false) => "its channel has changed",
        };
        self.cx.output(Output::Close { association: id });
        self.association_over(now, id, Kind::AssociationReleased, why);
    }
}
