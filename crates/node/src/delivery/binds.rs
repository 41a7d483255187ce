//! What a user learns of his mailbox when he binds.

use crate::association::Association;
use crate::context::Context;
use crate::delivery::Delivery;
use base::{AssociationId, Now, Precedence};
use p1::p3::{DeliveryQueue, MessagesWaiting};
use std::collections::BTreeMap;

impl Delivery {
    /// A user binds. If he takes deliveries, entries that wait for a bind become ready. Gives what waits
    /// for him.
    pub(crate) fn user_binds(
        &mut self,
        cx: &mut Context,
        now: Now,
        id: AssociationId,
        mailbox: u32,
    ) -> MessagesWaiting {
        if cx.associations.get(&id).is_some_and(Association::takes_deliveries) {
            self.end_delivery_waits(cx, now, mailbox);
        }
        self.begin_controls(cx, mailbox, id);
        self.messages_waiting(cx, mailbox)
    }

    /// How many deliveries wait, by the three grades of delivery (X.411 8.1.1.1.2.1): for this
    /// association, or for another try. Those that wait for a time or an operator do not count: the
    /// user would wait for them without success.
    pub(crate) fn messages_waiting(&self, cx: &Context, mailbox: u32) -> MessagesWaiting {
        let status = cx.queue.scheduler.mailbox_status(mailbox);
        let mut failed = BTreeMap::<Precedence, u64>::new();
        self.failed_and_waiting(cx, mailbox)
            .for_each(|level| *failed.entry(level).or_default() += 1);
        // What the user himself holds back waits for him.
        self.withheld(cx, mailbox).for_each(|level| *failed.entry(level).or_default() += 1);
        let queue = |levels: [Precedence; 2]| DeliveryQueue {
            messages: levels
                .iter()
                .map(|p| {
                    let level = status.level(*p);
                    let others = (level.delayed + level.operator)
                        .saturating_sub(failed.get(p).copied().unwrap_or_default());
                    level.queued.saturating_sub(others)
                })
                .fold(0, |sum: i64, n| sum.saturating_add_unsigned(n)),
            octets: None,
        };
        MessagesWaiting {
            urgent: queue([Precedence::Flash, Precedence::Override]),
            normal: queue([Precedence::Priority, Precedence::Immediate]),
            non_urgent: queue([Precedence::Deferred, Precedence::Routine]),
        }
    }
}
