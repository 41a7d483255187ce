//! The associations' stacks, drained until none has an output left.

use crate::api::Output;
use crate::node::Node;
use base::{AssociationId, Now};
use osi::api as stack;

impl Node {
    /// Hands something to an association's stack; its outputs are drained by `settle`.
    pub(crate) fn feed(&mut self, now: Now, id: AssociationId, input: stack::Input<'_>) {
        if let Some(association) = self.cx.associations.get_mut(&id) {
            association.stack.handle(now.mono, input);
            self.drain(now, id);
            self.cx.associations.touch(id);
        }
    }

    /// Drains every touched association, then gives idle ones work, until there is nothing left to do.
    pub(crate) fn settle(&mut self, now: Now) {
        loop {
            self.drain_stores(now);
            while let Some(id) = self.cx.associations.next_touched() {
                self.pump(now, id);
            }
            self.arrivals.retry_blocked(&mut self.cx, now);
            self.update_due_channels(now);
            let touched = self.cx.associations.take_marks();
            self.end_drained(now, &touched);
            self.outbound.read_unrouted(&mut self.cx, now);
            self.outbound.note_touched(&mut self.cx, touched);
            self.dispatch(now);
            self.outbound.pause_and_continue(&mut self.cx, now);
            if self.settle_leaving(now) {
                continue;
            }
            if self.cx.associations.touched_count() == 0
                && !self.stores.has_outputs()
                && !self.outbound.has_more_to_dispatch(&self.cx)
            {
                break;
            }
        }
        self.cx.queue.forget_fresh();
        #[cfg(debug_assertions)]
        self.check_settled(now);
        self.outbound.read_late(&mut self.cx, now);
        let at_work = self.cx.commits.pending_count() > 0 || !self.cx.steps.is_empty();
        let is_done = self.cx.life.is_stopping() && self.cx.associations.is_empty() && !at_work;
        if is_done && self.cx.life.stopped() {
            self.cx.output(Output::Stopped);
        }
    }

    /// Hands queued requests to a stack, one after each drain, and files its deadline.
    fn pump(&mut self, now: Now, id: AssociationId) {
        while let Some(association) = self.cx.associations.get_mut(&id) {
            let Some(request) = association.requests.pop_front() else { break };
            association.stack.handle(now.mono, stack::Input::Request(request));
            self.drain(now, id);
        }
        self.cx.plan_look(now, id);
        self.cx.associations.file_deadline(id);
    }

    fn drain(&mut self, now: Now, id: AssociationId) {
        while let Some(output) =
            self.cx.associations.get_mut(&id).and_then(|association| association.stack.poll())
        {
            match output {
                stack::Output::Send(bytes) => {
                    self.cx.output(Output::Write { association: id, bytes });
                }
                stack::Output::Close => self.cx.output(Output::Close { association: id }),
                stack::Output::Indication(indication) => self.indication(now, id, indication),
            }
        }
    }

    pub(crate) fn tick(&mut self, now: Now) {
        while let Some(id) = self.cx.associations.next_due(now.mono) {
            if self.cx.associations.get_mut(&id).is_some_and(|a| a.take_due_look(now.mono)) {
                self.cx.look(id);
            }
            if self.cx.associations.get_mut(&id).is_some_and(|a| a.take_due_stall_look(now.mono)) {
                self.outbound.look_at_stall(&mut self.cx, now, id);
            }
            if let Some(association) = self.cx.associations.get_mut(&id)
                && let Some(why) = association.take_overdue(now.mono)
            {
                association.connection.error = Some(why.to_owned());
                association.request(stack::Request::Abort(stack::AbortReason::TemporaryProblem));
            }
            self.feed(now, id, stack::Input::Tick);
        }
        self.expire_recoveries(now);
        self.outbound.write_sends(&mut self.cx, now);
        self.update_due_channels(now);
        self.outbound.close_idle(&mut self.cx, now);
        self.cx.outputs.log_counted(now);
        self.admission.verify_waiting(&mut self.cx, now);
        self.operations.tick_minimize(&mut self.cx, now);
        self.cx.retry_due(now);
        self.cx.forget_seen(now);
        self.step_on(now);
        self.stores.retain(&self.cx, now);
        self.cx.keep_clock(now);
    }
}
