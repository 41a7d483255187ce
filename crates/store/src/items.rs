//! Every store as mailboxes read it.

use crate::{QueueStore, StoreError};
use base::Precedence;
use bytes::Bytes;
use engine::ItemSource;
use engine::journal::{ItemId, MailboxId};

impl ItemSource for dyn QueueStore + '_ {
    type Error = StoreError;

    fn value(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        self.meta(name)
    }

    fn count(&self, mailbox: MailboxId, precedence: Precedence) -> Result<u64, StoreError> {
        self.item_count(mailbox, precedence)
    }

    fn items(
        &self,
        mailbox: MailboxId,
        precedence: Precedence,
        after: u32,
        limit: usize,
    ) -> Result<Vec<(u32, Bytes)>, StoreError> {
        let entries = QueueStore::items(self, mailbox, precedence, after, limit)?;
        let number = |entry: crate::Entry| Some((ItemId::of_entry(entry.id)?.number, entry.record));
        Ok(entries.into_iter().filter_map(number).collect())
    }

    fn item(&self, precedence: Precedence, id: ItemId) -> Result<Option<Bytes>, StoreError> {
        self.entry((precedence, id.entry()))
    }
}
