//! Deliveries to users.

use crate::association::Association;
use crate::association::p3::DELIVERY_TIMEOUT;
use crate::context::Context;
use crate::delivery::Delivery;
use base::{AssociationId, Now};
use engine::Record;
use osi::api::{Payload, Request};
use osi::profiles::abstract_syntax;
use scheduler::StartReason;

impl Delivery {
    /// Gives every user of this mailbox that takes deliveries and waits for none the next of it.
    pub(crate) fn dispatch_mailbox(&mut self, cx: &mut Context, now: Now, mailbox: u32) {
        let takes = |association: &Association| {
            let free = association.is_open()
                && association.sending().is_none()
                && association.drained().is_none();
            free && association.takes_deliveries()
        };
        let users = cx.associations.connections().users(mailbox);
        let free: Vec<AssociationId> =
            users.filter(|id| cx.associations.get(id).is_some_and(takes)).collect();
        for id in free {
            let next = self.next_permitted(cx, now, mailbox);
            let Some(entry) = next else { return };
            if let Some(record) = cx.take_up(id, entry, StartReason::default()) {
                self.start_delivery(cx, now, id, record);
            }
        }
    }

    /// The record of an entry that is to be delivered to this user.
    pub(crate) fn start_delivery(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        record: Record,
    ) {
        if self.waits_by_envelope(cx, now, id, &record) {
            return;
        }
        if let Some((reason, diagnostic, why)) = cx.engine.refuses_delivery(&record) {
            self.give_up(cx, now, id, &record, (reason, diagnostic), &why);
            return;
        }
        let Some(delivery) = cx.engine.delivery_argument(now.utc, &record) else {
            self.delivery_failed(cx, now, id, "the queue holds what cannot be delivered");
            return;
        };
        let Some(association) = cx.associations.get_mut(&id) else { return };
        let Some(p3) = association.p3_mut() else { return };
        let invoke = p3.next_invoke;
        p3.next_invoke += 1;
        p3.delivery_deadline = Some(now.mono + DELIVERY_TIMEOUT);
        if let Some(sending) = association.sending_mut() {
            sending.invoke = invoke;
            sending.content_length = delivery.payload.content_length;
            sending.message.clone_from(&record.message);
            sending.delivery_time = Some(now.utc);
            sending.record = Some(record);
        }
        let argument = Payload {
            head: delivery.payload.head,
            content_length: delivery.payload.content_length,
            tail: delivery.payload.tail,
        };
        let request = Request::Invoke {
            invoke,
            syntax: abstract_syntax::mdse_88(),
            operation: delivery.operation,
            argument,
        };
        cx.request(id, request);
    }
}
