//! What an operator orders of channels and peers: small named values of the store, each written whole, which the nodes
//! of a site change in common.
//!
//! Orders are kept by name, because numbers of channels are of one run. A channel that is taken out of the
//! configuration and put back is still disabled.

use crate::api::channel_order::{DISABLED, Disabled};
use crate::api::site_orders::{FloorOrder, MINIMIZED};
use bytes::Bytes;
use engine::journal::{Batch, KnownValue, Op};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Names that are kept at most: more than there are channels are not written.
const MOST: usize = 4096;

/// The channels that are disabled, by `PEER/CHANNEL`.
pub type ClosedChannels = SharedOrders<Disabled>;

/// Orders of MINIMIZE: for all peers under an empty name, by `PEER` and by `PEER/CHANNEL`.
pub type FloorOrders = SharedOrders<FloorOrder>;

/// A value of the store that has orders by name.
pub trait SharedOrder: Clone + Serialize + DeserializeOwned {
    /// The name of that value.
    const NAME: &'static str;
}

impl SharedOrder for Disabled {
    const NAME: &'static str = DISABLED;
}

impl SharedOrder for FloorOrder {
    const NAME: &'static str = MINIMIZED;
}

/// Orders by name.
#[derive(Debug)]
pub struct SharedOrders<T> {
    all: BTreeMap<String, T>,
    /// What was changed here and is not durable yet: it holds whatever another node writes meanwhile.
    changing: BTreeMap<String, Option<T>>,
    known: KnownValue,
}

impl<T> Default for SharedOrders<T> {
    fn default() -> SharedOrders<T> {
        let (all, changing) = (BTreeMap::new(), BTreeMap::new());
        SharedOrders { all, changing, known: KnownValue::default() }
    }
}

impl<T: SharedOrder> SharedOrders<T> {
    /// Takes over the value in the store: at the start, or when another node has changed it. None is an empty one; a
    /// damaged one changes nothing.
    ///
    /// # Errors
    /// It is damaged.
    pub fn recovered(&mut self, value: &[u8]) -> Result<(), postcard::Error> {
        self.known = KnownValue::from_octets(value);
        self.all = if value.is_empty() { BTreeMap::new() } else { postcard::from_bytes(value)? };
        for (name, order) in self.changing.clone() {
            self.change(&name, order);
        }
        Ok(())
    }

    /// What is ordered for a name, if something is.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.all.get(name)
    }

    /// Changes what holds for a name, and gives what held before. [`SharedOrders::settled`] follows once that is
    /// durable.
    pub fn set(&mut self, name: &str, order: Option<T>) -> Option<T> {
        self.changing.insert(name.to_owned(), order.clone());
        self.change(name, order)
    }

    fn change(&mut self, name: &str, order: Option<T>) -> Option<T> {
        match order {
            Some(order) if self.all.len() < MOST || self.all.contains_key(name) => {
                self.all.insert(name.to_owned(), order)
            }
            Some(_) => None,
            None => self.all.remove(name),
        }
    }

    /// What was changed for a name is durable, or was undone.
    pub fn settled(&mut self, name: &str) {
        self.changing.remove(name);
    }

    /// The change that makes them durable.
    pub fn put(&mut self) -> Op {
        // A map of texts and numbers can always be written.
        let value = postcard::to_allocvec(&self.all).unwrap_or_default();
        self.known.replace(T::NAME, Bytes::from(value))
    }

    /// All names for which something is ordered.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.keys().map(String::as_str)
    }

    /// Forgets orders that are over: the value loses them with its next change.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&T) -> bool) {
        self.all.retain(|_, order| is_kept(order));
        self.changing.retain(|_, order| order.as_ref().is_none_or(&mut is_kept));
    }

    /// A batch is durable: so is what it wrote, unless that was changed since.
    pub fn written(&mut self, batch: &Batch)
    where
        T: PartialEq,
    {
        for op in batch {
            if let Op::ReplaceMeta { name, value, .. } = op
                && name == T::NAME
                && let Ok(written) = postcard::from_bytes::<BTreeMap<String, T>>(value)
            {
                self.changing.retain(|name, order| written.get(name) != order.as_ref());
            }
        }
    }

    /// A change that is written late has what holds then.
    pub fn renew(&mut self, batch: &mut Batch) {
        let is_this = |op: &&mut Op| matches!(op, Op::ReplaceMeta { name, .. } if name == T::NAME);
        for op in batch.iter_mut().filter(is_this) {
            *op = self.put();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Utc;

    fn disabled(by: &str) -> Option<Disabled> {
        Some(Disabled { by: by.to_owned(), since: Utc(7) })
    }

    fn value(channels: &mut ClosedChannels) -> (Bytes, [u8; 32]) {
        match channels.put() {
            Op::ReplaceMeta { value, over, .. } => (value, over.0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_two_nodes_change_at_once_holds_both() {
        let [mut ours, mut theirs] = [ClosedChannels::default(), ClosedChannels::default()];
        ours.set("west/urgent", disabled("ours"));
        theirs.set("east/urgent", disabled("theirs"));
        let (first, over) = value(&mut theirs);
        assert_eq!(value(&mut ours).1, over, "both replace nothing");
        // Theirs was first.
        ours.recovered(&first).unwrap();
        let by = |channels: &ClosedChannels, name: &str| channels.get(name).map(|d| d.by.clone());
        assert_eq!(by(&ours, "west/urgent").as_deref(), Some("ours"));
        assert_eq!(by(&ours, "east/urgent").as_deref(), Some("theirs"));
        let (both, again) = value(&mut ours);
        assert_ne!(again, over);
        ours.settled("west/urgent");
        theirs.settled("east/urgent");
        theirs.recovered(&both).unwrap();
        assert_eq!(by(&theirs, "west/urgent").as_deref(), Some("ours"));
        // An empty value is none.
        theirs.recovered(b"").unwrap();
        assert_eq!(by(&theirs, "west/urgent"), None);
        assert!(theirs.recovered(b"\xff").is_err());
    }
}
