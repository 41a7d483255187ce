//! The controls of one user, and what they hold back.

use crate::context::Context;
use base::{AssociationId, EntryId};
use engine::registered::{Deliverable, DeliveryControls};
use p1::content_type::ContentType;
use scheduler::Item;
use std::collections::BTreeSet;

/// The controls in force for a mailbox.
#[derive(Debug)]
pub(crate) struct Controlled {
    /// The association that set them.
    pub(crate) by: AssociationId,
    pub(crate) controls: DeliveryControls,
    /// What they hold back, apart from what nobody looked at yet. Entries that are gone meanwhile may be
    /// among them.
    pub(crate) withheld: BTreeSet<EntryId>,
}

/// What the controls look at.
pub(crate) fn deliverable<'a>(
    item: &Item,
    content_type: Option<&'a ContentType>,
) -> Deliverable<'a> {
    let priority = p1::grade::split(item.precedence).0;
    Deliverable { is_report: item.body.is_none(), priority, length: item.size, content_type }
}

impl Controlled {
    /// Holds an entry back.
    pub(crate) fn withhold(&mut self, cx: &mut Context, entry: EntryId) {
        // Those that are gone are dropped from time to time.
        if self.withheld.len().is_power_of_two() {
            self.withheld.retain(|entry| cx.queue.get(*entry).is_some());
        }
        cx.queue.scheduler.hold(entry);
        self.withheld.insert(entry);
    }
}
