//! What a node reads of the store it shares: entries of its shards, and what users have registered. And what it
//! announces there, which nobody waits for.

use super::{Cluster, Fence, Place, ShardPage};
use crate::error::StoreError;
use crate::queue::{QueueStore, values_below};
use bytes::Bytes;
use engine::journal::QueueId;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Entries in a page of a shard.
const PAGE: usize = 1024;

/// What is to be read.
#[derive(Debug)]
pub enum Wanted {
    /// Entries of a shard after a place, for the ownership with this fence; before them the value of this name.
    Page(QueueId, Fence, Place, Option<String>),
    /// Those of these shards that have entries after a place.
    News(Vec<(QueueId, Place)>),
    /// The values whose names begin so.
    Values(String),
    /// The other nodes are to know that the peer of this shard has called this one. Not answered.
    Announcement(QueueId),
}

impl Wanted {
    /// The first page of a shard: a user waits for his mailbox, or a peer's messages for their owner. Or an owner waits
    /// for a peer.
    fn is_first(&self) -> bool {
        match self {
            Wanted::Page(_, _, after, _) => *after == Place::default(),
            Wanted::Announcement(_) => true,
            Wanted::News(_) | Wanted::Values(_) => false,
        }
    }
}

/// What was read.
#[derive(Debug)]
pub enum Found {
    /// Entries of a shard, and the value if one was asked for and is there.
    Page(QueueId, Fence, Result<(Option<Bytes>, ShardPage), StoreError>),
    /// The shards with news, unless they could not be looked at.
    News(Option<Vec<QueueId>>),
    /// The values whose names begin so could not be read.
    Unread(String),
    /// A value.
    Value(String, Bytes),
}

/// What is read next: first pages before all else. `None` once nobody wants anything any more.
fn next(todo: &Receiver<Wanted>, later: &mut VecDeque<Wanted>) -> Option<Wanted> {
    loop {
        match todo.try_recv() {
            Ok(wanted) if wanted.is_first() => return Some(wanted),
            Ok(wanted) => later.push_back(wanted),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => break,
        }
    }
    later.pop_front().or_else(|| todo.recv().ok())
}

/// Reads what is wanted, until nobody wants anything any more. Blocks on the store.
pub fn serve(
    cluster: &dyn Cluster,
    store: &dyn QueueStore,
    todo: &Receiver<Wanted>,
    answer: impl Fn(Found),
) {
    let mut later = VecDeque::new();
    while let Some(wanted) = next(todo, &mut later) {
        match wanted {
            Wanted::News(places) => {
                let found = cluster.news(&places);
                if let Err(error) = &found {
                    tracing::warn!(%error, "the shards cannot be looked at: it is tried again");
                }
                answer(Found::News(found.ok()));
            }
            Wanted::Page(shard, fence, after, value) => {
                let read = || {
                    let value = value.map(|name| store.meta(&name)).transpose()?.flatten();
                    Ok((value, cluster.shard_entries(shard, after, PAGE)?))
                };
                answer(Found::Page(shard, fence, read()));
            }
            Wanted::Announcement(shard) => {
                if let Err(error) = cluster.announce(shard) {
                    tracing::debug!(%error, "the other nodes cannot be notified of a bind");
                }
            }
            Wanted::Values(prefix) => match values_below(store, &prefix) {
                Ok(values) => {
                    values.into_iter().for_each(|(name, v)| answer(Found::Value(name, v)));
                }
                Err(error) => {
                    tracing::warn!(prefix, %error, "values of the site cannot be read: they are tried again");
                    answer(Found::Unread(prefix));
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn first_pages_are_read_before_all_else() {
        let (wants, todo) = channel();
        let page = |shard, horizon| {
            let after = Place { horizon, last: 0 };
            Wanted::Page(QueueId(shard), Fence(1), after, None)
        };
        for wanted in
            [page(1, 5), Wanted::Values(String::new()), page(2, 0), page(3, 7), page(4, 0)]
        {
            wants.send(wanted).unwrap();
        }
        let mut later = VecDeque::new();
        let mut order = Vec::new();
        for _ in 0..5 {
            order.push(match next(&todo, &mut later) {
                Some(Wanted::Page(shard, ..)) => shard.0,
                _ => 0,
            });
        }
        assert_eq!(order, [2, 4, 1, 0, 3]);
        drop(wants);
        assert!(next(&todo, &mut later).is_none());
    }
}
