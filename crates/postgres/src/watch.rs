//! What other nodes notify: a connection that listens.
//!
//! A notice is a hint. What is lost with a connection is answered with `all`, and whoever watches looks from
//! time to time without a notice too.

use crate::connection::client::{Connection, News};
use crate::connection::edge::Edge;
use crate::connection::failure::Failure;
use crate::connection::target::{Target, quoted};
use crate::numbers::number;
use engine::journal::QueueId;
use std::sync::Arc;
use std::time::Duration;
use store::cluster::{Changes, NodeEpoch};
use tokio::sync::mpsc::UnboundedReceiver;

/// Most notices taken at once.
const MOST: usize = 4096;

/// The connection that listens, once somebody has watched.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    client: Option<(Arc<Connection>, UnboundedReceiver<News>)>,
    closed: bool,
}

impl Watching {
    /// Waits for notices, at most so long.
    pub(crate) fn watch(
        &mut self,
        edge: &Edge,
        target: &Arc<Target>,
        at_most: Duration,
    ) -> Result<Changes, Failure> {
        if self.closed {
            return Err(Failure::Lost("the store is closed".to_owned()));
        }
        let Some((client, mut receiver)) = self.client.take() else {
            let target = Arc::clone(target);
            let limit = target.time_limit + Duration::from_secs(1);
            self.client = Some(edge.run(limit, async move {
                let (client, receiver) = Connection::open(&target).await?;
                let channel = quoted(&format!("mta:{}", target.schema));
                client.script(&format!("LISTEN {channel}")).await?;
                Ok((client, receiver))
            })?);
            return Ok(Changes { all: true, ..Changes::default() });
        };
        let (receiver, noticed) = edge.run(at_most + Duration::from_secs(5), async move {
            let mut noticed = Vec::new();
            // In time nothing came, or the connection ended: then there is nothing to receive.
            let first = tokio::time::timeout(at_most, receiver.recv_many(&mut noticed, MOST)).await;
            let lives = first.map_or(true, |count| count > 0);
            Ok((lives.then_some(receiver), noticed))
        })?;
        let mut changes = Changes { all: receiver.is_none(), ..Changes::default() };
        noticed.iter().for_each(|news| add(&mut changes, &news.what));
        self.client = receiver.map(|receiver| (client, receiver));
        Ok(changes)
    }

    pub(crate) fn close(&mut self) {
        self.client = None;
        self.closed = true;
    }
}

/// A notice: `e` and a queue, `v` and a name, `b` with a queue and a node, `u`, or `m`.
fn add(changes: &mut Changes, what: &str) {
    if let Some(queue) = what.strip_prefix('e').and_then(|text| text.parse().ok()) {
        let queue = QueueId(number(queue));
        if !changes.shards.contains(&queue) {
            changes.shards.push(queue);
        }
    } else if let Some(name) = what.strip_prefix('v') {
        if !changes.values.iter().any(|known| known == name) {
            changes.values.push(name.to_owned());
        }
    } else if let Some(bound) = what.strip_prefix('b').and_then(bound) {
        if !changes.bound.contains(&bound) {
            changes.bound.push(bound);
        }
    } else if what == "u" {
        changes.users = true;
    } else {
        changes.members = true;
    }
}

/// The peer of a queue has bound to a node.
fn bound(text: &str) -> Option<(QueueId, NodeEpoch)> {
    let (queue, node) = text.split_once(' ')?;
    Some((QueueId(number(queue.parse().ok()?)), NodeEpoch(node.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::stored;

    #[test]
    fn a_notice_names_the_place() {
        let mut changes = Changes::default();
        let shard = format!("e{}", stored(7));
        let bound = format!("b{} 5", stored(9));
        for what in [&shard[..], &shard, &bound, &bound, "vname", "vname", "u"] {
            add(&mut changes, what);
        }
        assert!(!changes.members, "{changes:?}");
        add(&mut changes, "m");
        let expected = Changes {
            shards: vec![QueueId(7)],
            values: vec!["name".to_owned()],
            bound: vec![(QueueId(9), NodeEpoch(5))],
            members: true,
            users: true,
            all: false,
        };
        assert_eq!(changes, expected);
    }
}
