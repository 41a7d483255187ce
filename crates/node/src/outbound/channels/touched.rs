//! Which channels and associations are looked at after an input, and when they are due.

use crate::association::Association;
use crate::config::Connection;
use crate::context::Context;
use crate::outbound::Outbound;
use base::steps::step;
use base::{AssociationId, Instant, Now};
use std::collections::BTreeSet;

impl Outbound {
    /// When an association of ours that is idle is released, where its channel is opened by traffic; if the peer has
    /// the turn, when we ask for it.
    fn closes_at(&self, cx: &Context, association: &Association) -> Option<Instant> {
        match cx.config.channel(association.channel()?)?.1.connection {
            Connection::OnDemand { idle_close } => {
                let idle = |a: &&Association| a.is_initiator() && a.is_idle() && !a.wants_turn();
                Some(association).filter(idle).map(|a| a.idle_since() + idle_close)
            }
            Connection::Permanent | Connection::Scheduled { .. } => None,
        }
    }

    /// Releases on-demand associations that carried nothing for their channel's `idle_close`.
    pub(crate) fn close_idle(&mut self, cx: &mut Context, now: Now) {
        while let Some(id) = self.agenda.idle.pop(now.mono) {
            let association = cx.associations.get(&id);
            let at = association.and_then(|association| self.closes_at(cx, association));
            let has_turn = association.is_some_and(Association::has_turn);
            match at.filter(|at| *at <= now.mono) {
                Some(_) if has_turn => cx.release(id),
                Some(_) => self.want_turn(cx, now, id),
                None => _ = self.agenda.idle.set(id, at),
            }
        }
    }

    /// Everything is to be looked at: at the start, and after a change of configuration.
    pub(crate) fn touch_all(&mut self, cx: &mut Context) {
        self.channels.mark_all();
        cx.associations.mark_all();
        self.agenda.wishes.news();
    }

    /// Notes whose associations were touched, and files when they are due.
    pub(crate) fn note_touched(&mut self, cx: &mut Context, touched: BTreeSet<AssociationId>) {
        for id in touched {
            step();
            // What is gone was noted as it went.
            let Some(association) = cx.associations.get(&id) else { continue };
            let Some(channel) = association.channel() else {
                self.agenda.mailboxes.extend(cx.associations.connections().mailbox(id));
                continue;
            };
            let closes_at = self.closes_at(cx, association);
            let opening = association.is_opening();
            self.agenda.wishes.is_opening(id, opening && association.is_initiator());
            self.agenda.idle.set(id, closes_at);
            self.agenda.peers.insert(channel.peer);
        }
    }

    /// Notes which channels were touched, and files when they are due.
    pub(crate) fn note_channels(&mut self) {
        for id in self.channels.take_marks() {
            step();
            let state = self.channels.get(&id);
            self.agenda.looks.set(id, state.and_then(|state| state.deadline()));
            if state.is_none() {
                self.agenda.wishes.set(id, None);
            }
            self.agenda.peers.insert(id.peer);
        }
    }

    /// Whether something was touched that is not dispatched yet.
    pub(crate) fn has_more_to_dispatch(&self, cx: &Context) -> bool {
        let agenda = &self.agenda;
        let touched = cx.associations.has_marks()
            || self.channels.has_marks()
            || !agenda.peers.is_empty()
            || !agenda.mailboxes.is_empty()
            || cx.queue.scheduler.has_changes();
        touched && cx.life.is_running()
    }
}
