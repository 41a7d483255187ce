//! Deliveries that broke off more than once, or that the user could not take: they wait, until he
//! binds again.
//!
//! A wait keeps a message that a peer cannot take from being sent to it over and over. A user's
//! connection breaks off for other reasons, his disk is full for a while, and who binds again is there
//! for what waits. Only what failed time after time waits all the same, for it may be what his client
//! fails at: others go before it.

use crate::context::Context;
use crate::machines::Delivery;
use base::{EntryId, Now, Precedence};
use scheduler::{Destination, ItemState};
use std::collections::{BTreeMap, BTreeSet};

/// After so many waits a bind ends them no more.
const MAX_WAITS: u32 = 3;

/// What waits, by mailbox.
#[derive(Debug, Default)]
pub(crate) struct Breaks(BTreeMap<u32, BTreeSet<EntryId>>);

impl Delivery {
    /// What broke off again, or was not taken, waits.
    pub(crate) fn waits_for_bind(&mut self, cx: &mut Context, entry: EntryId) {
        let to = cx.queue.get(entry).map(|item| item.destination);
        if let Some(Destination::Mailbox(mailbox)) = to {
            self.breaks.0.entry(mailbox).or_default().insert(entry);
        }
    }

    /// A user binds who takes deliveries: what waits for that waits no more.
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
