//! What a node reads of the store it shares: entries of its shards, and what users have registered.

use super::{Cluster, Fence, Place, ShardPage};
use crate::error::StoreError;
use crate::queue::{QueueStore, values_below};
use bytes::Bytes;
use engine::journal::QueueId;
use std::sync::mpsc::Receiver;

/// Entries in a page of a shard.
const PAGE: usize = 1024;

/// What is to be read.
#[derive(Debug)]
pub enum Wanted {
    /// Entries of a shard after a place, for the ownership with this fence; before them the value of this name.
    Page(QueueId, Fence, Place, Option<String>),
    /// The values whose names begin so.
    Values(String),
}

/// What was read.
#[derive(Debug)]
pub enum Found {
    /// Entries of a shard, and the value if one was asked for and is there.
    Page(QueueId, Fence, Result<(Option<Bytes>, ShardPage), StoreError>),
    /// A value.
    Value(String, Bytes),
}

/// Reads what is wanted, until nobody wants anything any more. Blocks on the store.
pub fn serve(
    cluster: &dyn Cluster,
    store: &dyn QueueStore,
    todo: &Receiver<Wanted>,
    answer: impl Fn(Found),
) {
    for wanted in todo {
        match wanted {
            Wanted::Page(shard, fence, after, value) => {
                let read = || {
                    let value = value.map(|name| store.meta(&name)).transpose()?.flatten();
                    Ok((value, cluster.shard_entries(shard, after, PAGE)?))
                };
                answer(Found::Page(shard, fence, read()));
            }
            Wanted::Values(prefix) => match values_below(store, &prefix) {
                Ok(values) => {
                    values.into_iter().for_each(|(name, v)| answer(Found::Value(name, v)));
                }
                Err(error) => {
                    tracing::warn!(prefix, %error, "values of the site cannot be read");
                }
            },
        }
    }
}
