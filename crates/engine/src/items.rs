//! What a message store reads of its mailboxes, over any store.

use crate::journal::{ItemId, MailboxId};
use base::Precedence;
use bytes::Bytes;

/// A store, as far as mailboxes read it.
pub trait ItemSource {
    /// Why something cannot be read.
    type Error: std::fmt::Display;

    /// The named value.
    ///
    /// # Errors
    /// Those of the store.
    fn value(&self, name: &str) -> Result<Option<Bytes>, Self::Error>;

    /// The number of items of one level.
    ///
    /// # Errors
    /// Those of the store.
    fn count(&self, mailbox: MailboxId, precedence: Precedence) -> Result<u64, Self::Error>;

    /// The items of one level after a number, at most so many: each number with its record, in order.
    ///
    /// # Errors
    /// Those of the store.
    fn items(
        &self,
        mailbox: MailboxId,
        precedence: Precedence,
        after: u32,
        limit: usize,
    ) -> Result<Vec<(u32, Bytes)>, Self::Error>;

    /// The record of an item, if it is of this level.
    ///
    /// # Errors
    /// Those of the store.
    fn item(&self, precedence: Precedence, id: ItemId) -> Result<Option<Bytes>, Self::Error>;
}
