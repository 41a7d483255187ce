//! What a delivery into a mailbox commits.

use crate::attributes::Attributes;
use crate::item::{self, Item, ItemError};
use crate::quota::{Full, Quota};
use crate::totals::{Totals, ValueError};
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Batch, BodySource, ItemId, MailboxId, Op};
use engine::{Delivery, Record};

/// Largest sequence number (ub-messages of X.413).
pub const MAX_NUMBER: u32 = i32::MAX as u32;

/// What is known of a mailbox without reading its items: its totals and its quota. Every commit that changes
/// the items of a mailbox is made from this value, so there is one of it for a mailbox. Batches with the totals of one
/// mailbox are committed in the order in which they were made: the value of an earlier one must not replace that of a
/// later one, or a number would be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    id: MailboxId,
    totals: Totals,
    quota: Quota,
}

/// A copy in the queue that goes into a mailbox.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// Its entry in the queue.
    pub entry: EntryId,
    /// The record of that entry.
    pub record: &'a Record,
    /// What [`engine::Engine::delivery_argument`] makes of it now.
    pub delivery: &'a Delivery,
    /// The first octets of its content, [`crate::heading::MAX_HEADING`] and a hundred or so, or all of a shorter
    /// one; empty for a report.
    pub first: &'a [u8],
}

/// A delivery, to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Delivered {
    /// The item.
    pub item: Item,
    /// Its record.
    pub record: Bytes,
    /// Its changes: the content is copied, the item written and the queue's entry deleted, and the totals
    /// follow. The caller adds the reports, what it remembers of the delivery, and the deletion of the queue's
    /// content with its last copy.
    pub batch: Batch,
    /// What it counts against the quota, octets.
    pub octets: u64,
}

impl Delivered {
    /// The attributes of the new item: what auto-actions are matched with.
    ///
    /// # Errors
    /// None: the record was just made.
    pub fn attributes(&self) -> Result<Attributes<'_>, ItemError> {
        Attributes::new(self.item.id.number, self.item.precedence, &self.record)
    }
}

/// A delivery that is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDelivered {
    /// There is no room: the copy waits in the queue.
    #[error("{0}")]
    Full(#[from] Full),
    /// The item cannot be made.
    #[error("{0}")]
    Item(#[from] ItemError),
}

impl Mailbox {
    /// A mailbox with the value that the store has under [`Totals::name`]; a new one without.
    ///
    /// # Errors
    /// The value cannot be read.
    pub fn open(id: MailboxId, totals: Option<&[u8]>, quota: Quota) -> Result<Mailbox, ValueError> {
        let totals = totals.map(Totals::decode).transpose()?.unwrap_or_default();
        Ok(Mailbox { id, totals, quota })
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> MailboxId {
        self.id
    }

    /// What it holds, with the changes that are not yet durable.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// What it may hold.
    #[must_use]
    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// Sets what it may hold. Items beyond it stay.
    pub fn set_quota(&mut self, quota: Quota) {
        self.quota = quota;
    }

    /// Whether the totals agree with the items that the store counts, by precedence in the order of
    /// [`Precedence::ALL`]. If not, a commit of an earlier run failed after a later one had succeeded, or items
    /// were damaged: a [`crate::Query::recount`] corrects them.
    #[must_use]
    pub fn agrees(&self, counts: [u64; Precedence::ALL.len()]) -> bool {
        let held = Precedence::ALL.map(|level| self.totals.level(level).items);
        held == counts
    }

    /// The delivery of a copy now. The totals count it at once; see [`Mailbox::not_delivered`].
    ///
    /// # Errors
    /// There is no room, or the item cannot be made: nothing has changed then.
    pub fn deliver(
        &mut self,
        now: Utc,
        arriving: &Arriving<'_>,
    ) -> Result<Delivered, NotDelivered> {
        let item = self.next_item(now, arriving)?;
        let record = item.encode();
        let octets = item::counted(item.size, &record);
        self.quota.check(&self.totals, item.precedence, octets)?;
        self.number(&item);
        self.totals.add(item.precedence, octets);
        let batch = self.batch(arriving.entry, arriving.record.body, &item, record.clone());
        Ok(Delivered { item, record, batch, octets })
    }

    /// A copy that goes no further than through this mailbox: it is forwarded, and deleted at once. It gets a number,
    /// and needs no room.
    ///
    /// # Errors
    /// There is no number, or the item cannot be made: nothing has changed then.
    pub fn pass(&mut self, now: Utc, arriving: &Arriving<'_>) -> Result<Delivered, NotDelivered> {
        let item = self.next_item(now, arriving)?;
        self.number(&item);
        let delete = Op::DeleteEntry { precedence: item.precedence, id: arriving.entry };
        let (record, batch) = (item.encode(), vec![delete, self.put_totals()]);
        Ok(Delivered { item, record, batch, octets: 0 })
    }

    /// The item of a copy that comes now.
    ///
    /// # Errors
    /// There is no number, or the item cannot be made.
    pub(crate) fn next_item(
        &self,
        now: Utc,
        arriving: &Arriving<'_>,
    ) -> Result<Item, NotDelivered> {
        let number = self.totals.last.saturating_add(1);
        if number > MAX_NUMBER {
            return Err(Full::Numbers.into());
        }
        let id = ItemId { mailbox: self.id, number };
        let Arriving { record, delivery, first, .. } = *arriving;
        Ok(Item::new(id, now.max(self.totals.newest), record, delivery, first)?)
    }

    /// Its number is used.
    fn number(&mut self, item: &Item) {
        self.totals.last = item.id.number;
        self.totals.newest = item.created;
    }

    fn batch(&self, entry: EntryId, body: Option<BodyId>, item: &Item, record: Bytes) -> Batch {
        let content =
            body.map(|body| Op::PutBody { id: item.id.body(), source: BodySource::Body(body) });
        let rest = [
            item::put(item.id, item.precedence, record),
            Op::DeleteEntry { precedence: item.precedence, id: entry },
            self.put_totals(),
        ];
        content.into_iter().chain(rest).collect()
    }

    /// The commit of a delivery failed, and nothing of it is durable: it no longer counts. Its number is not used
    /// again.
    pub fn not_delivered(&mut self, delivered: &Delivered) {
        self.totals.remove(delivered.item.precedence, delivered.octets);
    }

    /// The change that writes the totals.
    #[must_use]
    pub fn put_totals(&self) -> Op {
        Op::PutMeta { name: Totals::name(self.id), value: self.totals.encode() }
    }

    /// Sets whether an alert found no association of its user; a bind returns and clears it. The next commit of the
    /// totals makes it durable.
    pub fn set_alerted(&mut self, alerted: bool) {
        self.totals.alerted = alerted;
    }

    pub(crate) fn totals_mut(&mut self) -> &mut Totals {
        &mut self.totals
    }

    /// The changes that delete an item, without those of the totals.
    pub(crate) fn delete(&self, precedence: Precedence, number: u32) -> [Op; 2] {
        let id = ItemId { mailbox: self.id, number };
        [Op::DeleteEntry { precedence, id: id.entry() }, Op::DeleteBody { id: id.body() }]
    }
}
