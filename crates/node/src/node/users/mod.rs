//! The users: who they are, what they register, and how they control their deliveries.

use crate::api::event::{Kind, LogLevel};
use crate::node::Node;
use crate::operations::registering::Registered;
use base::ber::{Element, Writer};
use base::{AssociationId, Now};
use bytes::Bytes;
use osi::api::AbortReason;
use p1::p3::{Controls, EMPTY_RESULT, operation};
use std::collections::BTreeSet;

impl Node {
    /// These are the users from now on, of whom some are gone or have another password.
    pub(crate) fn users_changed(
        &mut self,
        now: Now,
        addresses: Vec<String>,
        stored: BTreeSet<String>,
        changed: &[String],
    ) {
        let users: BTreeSet<String> = addresses.iter().cloned().collect();
        self.operations.forget_registrations(&mut self.cx, |mailbox| users.contains(mailbox));
        self.cx.engine.set_mailboxes(users);
        self.cx.config.set_mailboxes(addresses, stored);
        self.stores.rooms_changed(&mut self.cx, now);
        self.outbound.touch_all(&mut self.cx);
        let binding = changed.iter().flat_map(|a| self.stores.mailboxes.binding(a));
        let binding = binding.collect();
        self.admission.end_users(&mut self.cx, changed, binding);
    }

    /// A user invoked register.
    pub(crate) fn register_invoked(&mut self, id: AssociationId, invoke: i64, argument: &[u8]) {
        if !self.operations.register(&mut self.cx, id, invoke, argument) {
            let reason = AbortReason::InvalidParameter;
            return self.arrivals.refuse_malformed(&mut self.cx, id, invoke, reason);
        }
        let ended = self.operations.next_registrations(&mut self.cx);
        self.answer_registrations(ended);
    }

    pub(crate) fn answer_registrations(&mut self, ended: Vec<Registered>) {
        for end in ended {
            match end {
                Registered::Done(id, invoke) => {
                    let empty = Bytes::from_static(&EMPTY_RESULT);
                    self.arrivals.answer(&mut self.cx, id, invoke, operation::REGISTER, empty);
                }
                Registered::Refused(id, invoke, error) => {
                    self.arrivals.answer_error(&mut self.cx, id, invoke, &error);
                }
                Registered::NotStored(id, invoke) => {
                    let reason = AbortReason::TemporaryProblem;
                    self.arrivals.refuse_malformed(&mut self.cx, id, invoke, reason);
                }
            }
        }
    }

    /// A user invoked delivery-control.
    pub(crate) fn control_invoked(
        &mut self,
        now: Now,
        id: AssociationId,
        invoke: i64,
        argument: &[u8],
    ) {
        let controls = Element::parse(argument).and_then(|e| {
            let controls = Controls::read(&e)?;
            controls.undone()?;
            Ok(controls)
        });
        let Ok(controls) = controls else {
            let reason = AbortReason::InvalidParameter;
            return self.arrivals.refuse_malformed(&mut self.cx, id, invoke, reason);
        };
        match self.delivery.control(&mut self.cx, now, id, &controls) {
            Ok(waiting) => {
                let mut w = Writer::new();
                waiting.write(&mut w);
                let result = Bytes::from(w.into_vec());
                let operation = operation::DELIVERY_CONTROL;
                self.arrivals.answer(&mut self.cx, id, invoke, operation, result);
            }
            Err(error) => {
                let detail = format!("delivery-control: {error}");
                self.cx.event(LogLevel::Warning, Kind::SubmissionRefused, detail).association(id);
                self.arrivals.answer_error(&mut self.cx, id, invoke, &error);
            }
        }
    }
}
