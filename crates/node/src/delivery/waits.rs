//! Deliveries that wait until their user binds again.

use crate::context::Context;
use crate::delivery::Delivery;
use base::{EntryId, Now, Precedence};
use scheduler::{Destination, ItemState};

/// After so many waits, a bind no longer ends the wait.
const MAX_WAITS: u32 = 3;

impl Delivery {
    /// A delivery that broke off again, or was not taken, waits.
    pub(crate) fn waits_for_bind(&mut self, cx: &mut Context, entry: EntryId) {
        let to = cx.queue.get(entry).map(|item| item.destination);
        if let Some(Destination::Mailbox(mailbox)) = to {
            self.breaks.0.entry(mailbox).or_default().insert(entry);
        }
    }

    /// A user who takes deliveries binds: entries that wait for this become ready.
    pub(crate) fn end_delivery_waits(&mut self, cx: &mut Context, now: Now, mailbox: u32) {
        let Some(mut entries) = self.breaks.0.remove(&mailbox) else { return };
        entries.retain(|entry| {
            let waits_on = cx.queue.scheduler.failures(*entry) > MAX_WAITS;
            if !waits_on {
                cx.queue.scheduler.hasten(now.mono, *entry);
            }
            waits_on && cx.queue.get(*entry).is_some()
        });
        if !entries.is_empty() {
            self.breaks.0.insert(mailbox, entries);
        }
    }

    /// The levels of what failed in this mailbox and waits.
    pub(crate) fn failed_and_waiting(
        &self,
        cx: &Context,
        mailbox: u32,
    ) -> impl Iterator<Item = Precedence> {
        let entries = self.breaks.0.get(&mailbox).into_iter().flatten();
        entries.filter_map(|entry| {
            let listed = cx.queue.scheduler.listed(*entry)?;
            let waits = matches!(listed.at, ItemState::Delayed(_));
            waits.then_some(listed.item.precedence)
        })
    }
}
