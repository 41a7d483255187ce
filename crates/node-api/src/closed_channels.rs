//! Channels that an operator disabled: one small named value of the store, written whole.
//!
//! They are kept by name, because numbers of channels are of one run. A channel that is taken out of the
//! configuration and put back is still disabled.

use crate::api::channel_order::{DISABLED, Disabled};
use bytes::Bytes;
use engine::journal::{Batch, Op};
use std::collections::BTreeMap;

/// Names that are kept at most: more than there are channels are not written.
const MOST: usize = 4096;

/// By `PEER/CHANNEL`.
#[derive(Debug, Default)]
pub struct ClosedChannels(BTreeMap<String, Disabled>);

impl ClosedChannels {
    /// Takes over the value in the store; a damaged one disables nothing.
    ///
    /// # Errors
    /// It is damaged.
    pub fn recovered(&mut self, value: &[u8]) -> Result<(), postcard::Error> {
        self.0 = postcard::from_bytes(value)?;
        Ok(())
    }

    /// Who disabled a channel, and when, if somebody did.
    pub fn get(&self, name: &str) -> Option<&Disabled> {
        self.0.get(name)
    }

    /// Changes what holds for a channel, and gives what held before.
    pub fn set(&mut self, name: &str, disabled: Option<Disabled>) -> Option<Disabled> {
        match disabled {
            Some(disabled) if self.0.len() < MOST || self.0.contains_key(name) => {
                self.0.insert(name.to_owned(), disabled)
            }
            Some(_) => None,
            None => self.0.remove(name),
        }
    }

    /// The change that makes them durable.
    pub fn put(&self) -> Op {
        // A map of texts and numbers can always be written.
        let value = postcard::to_allocvec(&self.0).unwrap_or_default();
        Op::PutMeta { name: DISABLED.to_owned(), value: Bytes::from(value) }
    }

    /// A change that is written late has what holds then.
    pub fn renew(&self, batch: &mut Batch) {
        let is_this = |op: &&mut Op| matches!(op, Op::PutMeta { name, .. } if name == DISABLED);
        for op in batch.iter_mut().filter(is_this) {
            *op = self.put();
        }
    }
}
