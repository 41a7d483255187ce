//! Rows of the queue for entries of shards that other nodes have: read from the store, which all share.

use base::{EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::QueueId;
use engine::{NextHop, Record};
use node_api::queue::page::{QueuePage, QueueRequest, ROWS};
use node_api::queue::row::QueueRow;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use store::cluster::{Cluster, NodeEpoch, ShardRow};
use store::{QueueStore, StoreError};

/// Octets of records read for one page.
const RECORDS: usize = 8 << 20;

/// A place among the entries of other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// In this shard.
    pub shard: u64,
    /// At this level.
    pub precedence: Precedence,
    /// Behind this entry.
    pub entry: EntryId,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElsewhereRequest {
    /// As for the own shards; a channel and a place there are of no meaning.
    pub asked: QueueRequest,
    /// What follows the last row of another page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Place>,
}

/// Rows of other nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ElsewherePage {
    /// The rows, each with its node.
    pub rows: Vec<QueueRow>,
    /// Where the next page begins; absent where this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Place>,
}

/// The store of a site, as one of its nodes has it.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere<'a> {
    /// The entries.
    pub store: &'a dyn QueueStore,
    /// Nodes and shards.
    pub cluster: &'a dyn Cluster,
    /// The node that asks: what it has itself is left out.
    pub own: Option<NodeEpoch>,
    /// Now.
    pub now: Utc,
}

impl Elsewhere<'_> {
    /// A page of rows: by shard; of each the highest precedence first.
    ///
    /// # Errors
    /// Those of the store.
    pub fn page(&self, request: &ElsewhereRequest) -> Result<ElsewherePage, StoreError> {
        let asked = &request.asked;
        if let Some(entry) = asked.entry {
            let fully = |(_, mut row, record): (EntryId, QueueRow, Bytes)| {
                row.describe_fully(&record);
                row
            };
            let rows = self.find(&[entry])?.into_iter().map(fully).collect();
            return Ok(ElsewherePage { rows, next: None });
        }
        let names = self.names()?;
        let mut shards = self.cluster.shards()?;
        shards.retain(|shard| self.is_asked(asked, shard));
        let limit = asked.limit.clamp(1, ROWS);
        let mut page = ElsewherePage::default();
        let mut octets = 0;
        for shard in &shards {
            let after = request.after.filter(|after| after.shard >= shard.shard.0);
            if after.is_some_and(|after| after.shard > shard.shard.0) {
                continue;
            }
            for precedence in Precedence::ALL.into_iter().rev() {
                let key = after.filter(|after| after.precedence == precedence).map(|a| a.entry);
                if asked.precedence.is_some_and(|only| only != precedence)
                    || after.is_some_and(|after| precedence > after.precedence)
                {
                    continue;
                }
                let mut last = key;
                loop {
                    let left = limit - page.rows.len();
                    let found = self.store.queue_entries(shard.shard, precedence, last, left)?;
                    let Some(end) = found.last() else { break };
                    last = Some(end.id);
                    octets += found.iter().map(|entry| entry.record.len()).sum::<usize>();
                    let rows = found.iter().filter_map(|entry| {
                        let mut row =
                            self.row(entry.id, precedence, &entry.record, shard, &names)?;
                        if asked.filter.is_deep() {
                            row.describe_fully(&entry.record);
                        }
                        asked.filter.matches(&row).then_some(row)
                    });
                    page.rows.extend(rows);
                    if page.rows.len() >= limit || octets >= RECORDS {
                        let place = Place { shard: shard.shard.0, precedence, entry: end.id };
                        page.next = Some(place);
                        return Ok(page);
                    }
                }
            }
        }
        Ok(page)
    }

    /// The nodes that have these entries, of those that other nodes have.
    ///
    /// # Errors
    /// Those of the store.
    pub fn owners(&self, entries: &[EntryId]) -> Result<BTreeMap<EntryId, String>, StoreError> {
        let found = self.find(entries)?.into_iter();
        Ok(found.map(|(id, row, _)| (id, row.node.unwrap_or_default())).collect())
    }

    fn names(&self) -> Result<BTreeMap<NodeEpoch, String>, StoreError> {
        Ok(self.cluster.nodes()?.into_iter().map(|node| (node.epoch, node.name)).collect())
    }

    fn is_elsewhere(&self, shard: &ShardRow) -> bool {
        !mailbox::item::is_queue(shard.shard)
            && (shard.owner.is_none() || shard.owner.map(|(owner, _)| owner) != self.own)
    }

    fn is_asked(&self, asked: &QueueRequest, shard: &ShardRow) -> bool {
        let is_of = |name: &Option<String>, is_mailbox| {
            name.as_ref()
                .is_none_or(|name| *name == shard.name && shard.shard.is_of_mailbox() == is_mailbox)
        };
        self.is_elsewhere(shard) && is_of(&asked.peer, false) && is_of(&asked.mailbox, true)
    }

    /// These entries with their records, of those that other nodes have.
    fn find(&self, ids: &[EntryId]) -> Result<Vec<(EntryId, QueueRow, Bytes)>, StoreError> {
        let mut found = Vec::new();
        for id in ids {
            for precedence in Precedence::ALL {
                let Some(record) = self.store.entry((precedence, *id))? else { continue };
                if let Ok(brief) = Record::peek(&record) {
                    found.push((brief.next_hop.queue(), *id, precedence, record.clone()));
                }
                break;
            }
        }
        let queues: BTreeSet<QueueId> = found.iter().map(|(queue, ..)| *queue).collect();
        let shards = self.cluster.shards_of(&queues.into_iter().collect::<Vec<_>>())?;
        let shards = shards.into_iter().filter(|shard| self.is_elsewhere(shard));
        let shards: BTreeMap<QueueId, ShardRow> = shards.map(|row| (row.shard, row)).collect();
        let names = self.names()?;
        let row = |(queue, id, precedence, record): (QueueId, EntryId, Precedence, Bytes)| {
            let row = self.row(id, precedence, &record, shards.get(&queue)?, &names)?;
            Some((id, row, record))
        };
        Ok(found.into_iter().filter_map(row).collect())
    }

    fn row(
        &self,
        id: EntryId,
        precedence: Precedence,
        record: &Bytes,
        shard: &ShardRow,
        names: &BTreeMap<NodeEpoch, String>,
    ) -> Option<QueueRow> {
        let brief = Record::peek(record).ok()?;
        let (peer, mailbox) = match (&*brief.next_hop, shard.name.is_empty()) {
            (NextHop::Peer(peer), true) => (Some(peer.to_string()), None),
            (NextHop::Peer(_), false) => (Some(shard.name.clone()), None),
            (NextHop::Mailbox(address), _) => (None, Some(address.clone())),
        };
        let owner = shard.owner.map(|(owner, _)| {
            names.get(&owner).cloned().unwrap_or_else(|| format!("epoch {owner}"))
        });
        let mut row = QueueRow {
            peer,
            mailbox,
            node: Some(owner.unwrap_or_else(|| "nobody".to_owned())),
            size: brief.size,
            age_seconds: self.now.since(brief.accepted).as_secs_f64(),
            ..QueueRow::bare(id, precedence, brief.accepted)
        };
        row.state = "elsewhere".to_owned();
        row.describe(record);
        Some(row)
    }
}

impl ElsewherePage {
    /// Adds the rows to those of the own shards.
    pub fn join(self, page: &mut QueuePage) {
        page.entries.extend(self.rows);
    }
}
