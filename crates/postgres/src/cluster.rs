//! The calls by which the nodes of a site share the database. The tables are in
//! `migrations/0001_tables.sql`, the functions in `0003_cluster.sql`.

use crate::connection::client::lock;
use crate::connection::edge::now;
use crate::connection::failure::{Failure, StoreKind};
use crate::group::Standing;
use crate::numbers::{number, precedence, stored, unsigned};
use crate::queue::PostgresStore;
use crate::spools::take_up;
use base::EntryId;
use engine::journal::QueueId;
use engine::{NextHop, Record};
use std::sync::Arc;
use std::time::Duration;
use store::cluster::{
    Acquired, Changes, Cluster, Fence, NodeEpoch, NodeRow, Place, Renewal, ShardPage, ShardRow,
};
use store::{BatchId, Entry, StoreError};
use tokio_postgres::Row;

/// The longest that the connection that listens is waited for at once.
const WATCHED: Duration = Duration::from_millis(200);
/// Seconds for which a shard is free that never had an owner.
const NEVER_OWNED: f64 = 61.0;
/// Queues below this one are of peers.
const ITEMS: u64 = 1 << 62;
/// Octets of records of a page.
const OCTETS: usize = 8 << 20;
/// Epochs that are passed at once: some tenths of a second.
const EPOCHS: i64 = 200_000;
const JOINING: &str = "joining the site";
/// Between two looks at the lease of an earlier process, and after its end.
const LEASE_LOOK: Duration = Duration::from_millis(100);
const BEHIND: Duration = Duration::from_millis(5);
/// Most entries of a page.
const MOST: usize = 16_384;

/// What this process has joined as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joined {
    node: i64,
    /// Seconds.
    lease: f64,
    /// What the last renewal wrote.
    draining: bool,
}

fn node_epoch(epoch: i64) -> NodeEpoch {
    NodeEpoch(u32::try_from(epoch).unwrap_or(u32::MAX))
}

fn seconds(time: f64) -> Duration {
    Duration::try_from_secs_f64(time).unwrap_or_default()
}

fn shard_row(row: &Row) -> ShardRow {
    let fence = Fence(unsigned(row.get(3)));
    let owner: Option<i64> = row.get(2);
    let asked: Option<i64> = row.get(5);
    let first: Option<Vec<u8>> = row.get(7);
    ShardRow {
        shard: QueueId(number(row.get(0))),
        name: first.map_or_else(|| row.get(1), |record| named(&record)),
        owner: owner.map(|owner| (node_epoch(owner), fence)),
        // One that never had an owner is free for long.
        since: seconds(row.get::<_, Option<f64>>(4).unwrap_or(NEVER_OWNED)),
        asked_by: asked.map(node_epoch),
        waits: row.get::<_, Option<i16>>(6).and_then(precedence),
    }
}

/// The address of a mailbox that nobody has owned yet: what waits for it has it.
fn named(record: &[u8]) -> String {
    let hop = Record::peek(record).ok().map(|brief| brief.next_hop.into_owned());
    match hop {
        Some(NextHop::Mailbox(address)) => address,
        _ => String::new(),
    }
}

/// Another process that has the name of this node, and a lease.
struct Earlier {
    /// The end of the lease, in seconds since 1970 by the clock of the database.
    until: f64,
    /// What is left of it, in seconds.
    left: f64,
    runs: String,
}

/// A listing of a shard that goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing {
    /// Where.
    next: Place,
    /// All transactions below this number had ended when it began.
    settled: u64,
}

impl PostgresStore {
    /// Entries after a place, the place of the last one, and the lowest transaction that runs.
    fn page_of_shard(
        &self,
        queue: i64,
        after: Place,
        limit: usize,
    ) -> Result<(u64, Vec<Entry>, Place), StoreError> {
        let most = i64::try_from(limit).unwrap_or(1);
        let last = i64::try_from(after.last).unwrap_or(i64::MAX);
        let rows = self.readers.call("listing a shard", move |client| async move {
            let horizon = after.horizon.to_string();
            let sql = "SELECT h, rank, id, record, xact::text::bigint, seq \
                FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS h) now \
                LEFT JOIN (SELECT * FROM (SELECT *, \
                    sum(octet_length(record)) OVER (ORDER BY xact, seq ROWS UNBOUNDED PRECEDING) \
                    - octet_length(record) AS before \
                  FROM (SELECT * FROM entry WHERE queue = $1 AND (xact, seq) > ($2::text::xid8, $3) \
                    ORDER BY xact, seq LIMIT $4) listed) sized WHERE before < 8388608) page ON true \
                ORDER BY xact, seq";
            client.rows(sql, &[&queue, &horizon, &last, &most]).await
        })?;
        let settled = rows.first().map_or(0, |row| unsigned(row.get(0)));
        let (mut entries, mut end) = (Vec::new(), after);
        for row in rows.iter().filter(|row| row.get::<_, Option<i16>>(1).is_some()) {
            let record: Vec<u8> = row.get(3);
            end = Place { horizon: unsigned(row.get(4)), last: unsigned(row.get(5)) };
            let Some(precedence) = precedence(row.get(1)) else { continue };
            entries.push(Entry {
                precedence,
                id: EntryId(number(row.get(2))),
                record: record.into(),
            });
        }
        Ok((settled, entries, end))
    }

    /// The last epoch that was given, to a node or to a run.
    ///
    /// # Errors
    /// Those of the server.
    pub fn last_epoch(&self) -> Result<u32, StoreError> {
        let row = self.control.call("reading the last epoch", |client| async move {
            client.row("SELECT last_value::bigint FROM epochs", &[]).await
        })?;
        Ok(row.map_or(0, |row| u32::try_from(row.get::<_, i64>(0)).unwrap_or(u32::MAX)))
    }

    /// From now on no epoch up to this one is given. They are given out one after the other: the account that runs
    /// may do only that.
    ///
    /// # Errors
    /// Those of the server.
    pub fn pass_epochs(&self, up_to: u32) -> Result<(), StoreError> {
        loop {
            let left = i64::from(up_to) - i64::from(self.last_epoch()?);
            if left <= 0 {
                return Ok(());
            }
            let now = left.min(EPOCHS);
            self.control.call("passing epochs", move |client| async move {
                let sql = "SELECT count(nextval('epochs')) FROM generate_series(1, $1::bigint)";
                client.row(sql, &[&now]).await
            })?;
        }
    }

    /// Joins, unless another process has the name and a lease.
    fn try_to_join(
        &self,
        name: &str,
        lease: Duration,
    ) -> Result<Result<NodeEpoch, Earlier>, StoreError> {
        let (name, lease) = (name.to_owned(), lease.as_secs_f64());
        let place = self.options.site.as_ref().and_then(|site| site.place.clone());
        let (key, words) = place.map(|place| (place.key, place.words)).unzip();
        let mut lane = self.committing.lane();
        let run = lane.epoch;
        let row = lane.call(|client| async move {
            let sql = "SELECT o_epoch, o_contents, o_until, o_left, o_runs \
                       FROM join_site($1, $2, make_interval(secs => $3), $4, $5)";
            client.row(sql, &[&run, &name, &lease, &key, &words]).await
        });
        let row = row.map_err(|failure| match failure {
            Failure::Refused { code, detail, .. } if code == "MT009" => lane.taken_over(detail),
            failure => failure,
        });
        drop(lane);
        let row = row.map_err(|failure| failure.into_error(&self.target, JOINING))?;
        let row = row.ok_or(StoreError::Undone)?;
        let contents: Vec<i64> = row.get(1);
        let Some(node) = row.get::<_, Option<i64>>(0) else {
            return Ok(Err(Earlier { until: row.get(2), left: row.get(3), runs: row.get(4) }));
        };
        *lock(&self.lease) = Some(Joined { node, lease, draining: false });
        *lock(&self.committing.standing) = Standing { node: Some(node) };
        if !contents.is_empty() {
            self.spools.keep(take_up(&self.writers, run, Some(contents))?);
        }
        Ok(Ok(node_epoch(node)))
    }

    /// The value of this name, which is this one from now on if there was none. Not for values of a single node.
    ///
    /// # Errors
    /// Those of the server.
    pub fn value_or_put(&self, name: &str, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        let given = Arc::new((name.to_owned(), value.to_vec()));
        let row = self.control.call("recording a value of the site", move |client| {
            let given = Arc::clone(&given);
            async move {
                let sql = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
                client.rows(sql, &[&given.0, &given.1]).await?;
                client.row("SELECT value FROM meta WHERE name = $1", &[&given.0]).await
            }
        })?;
        row.map(|row| row.get(0)).ok_or(StoreError::Undone)
    }

    fn joined(&self) -> Result<Joined, StoreError> {
        lock(&self.lease).ok_or(StoreError::NoLease)
    }
}

impl Cluster for PostgresStore {
    /// A process that was killed is waited for until its lease is over, unless this one has its place. One that renews
    /// its lease meanwhile lives: [`StoreError::NodeRuns`]. [`StoreError::TakenOver`]: this store was opened before the
    /// process that has the name now.
    fn join(&self, name: &str, lease: Duration) -> Result<NodeEpoch, StoreError> {
        if self.options.site.as_ref().is_none_or(|site| site.node != name) {
            return Err(StoreError::Refused {
                host: self.target.host.clone(),
                doing: JOINING,
                reason: format!("the store was not opened for a node of the name {name}"),
            });
        }
        let mut before: Option<f64> = None;
        let mut asked = now();
        loop {
            let Earlier { until, left, runs } = match self.try_to_join(name, lease)? {
                Ok(epoch) => return Ok(epoch),
                Err(earlier) => earlier,
            };
            match before {
                None => tracing::info!(
                    node = name,
                    runs,
                    lease = ?seconds(left),
                    "another process had this name: its lease is waited for"
                ),
                Some(before) if until > before => {
                    let (node, renewed) = (name.to_owned(), now().saturating_duration_since(asked));
                    return Err(StoreError::NodeRuns { node, place: runs, renewed });
                }
                Some(_) => {}
            }
            before = Some(until);
            asked = now();
            self.edge.pause(LEASE_LOOK.min(seconds(left) + BEHIND));
        }
    }

    fn renew(&self, draining: bool) -> Result<Renewal, StoreError> {
        let Joined { node, lease, draining: before } = self.joined()?;
        // Others can do better than a node that cannot commit though the database is there.
        if self.committing.is_locked_out() {
            return Err(
                Failure::Ours(Box::new(StoreKind::Locked)).into_error(&self.target, "renewing")
            );
        }
        let row = self.renewals.call("renewing the lease", move |client| async move {
            // It need not reach the standbys: a lease that ends early is safe.
            let sql = "UPDATE node SET lease_until = greatest(lease_until, \
                         clock_timestamp() + make_interval(secs => $2)), draining = $3 \
                       FROM (SELECT set_config('synchronous_commit', 'local', true)) alone \
                       WHERE epoch = $1 AND died IS NULL RETURNING epoch";
            client.row(sql, &[&node, &lease, &draining]).await
        })?;
        if draining != before && row.is_some() {
            // Others look at once: who gives all away counts on them.
            self.control.call("notifying the nodes", |client| async move {
                client.rows("SELECT notify_nodes('m')", &[]).await.map(drop)
            })?;
            if let Some(joined) = lock(&self.lease).as_mut().filter(|joined| joined.node == node) {
                joined.draining = draining;
            }
        }
        Ok(row.map_or(Renewal::Dead, |_| Renewal::Renewed))
    }

    fn bury(&self, nodes: &[NodeEpoch]) -> Result<Vec<NodeEpoch>, StoreError> {
        let own = self.joined()?.node;
        let nodes: Arc<Vec<i64>> = Arc::new(nodes.iter().map(|node| i64::from(node.0)).collect());
        let row = self.control.call("taking over from nodes", move |client| {
            let nodes = Arc::clone(&nodes);
            async move { client.row("SELECT bury($1, $2)", &[&own, &*nodes]).await }
        })?;
        let dead: Vec<i64> = row.map_or_else(Vec::new, |row| row.get(0));
        Ok(dead.into_iter().map(node_epoch).collect())
    }

    fn acquire(&self, shard: QueueId, name: &str, from: BatchId) -> Result<Acquired, StoreError> {
        let node = self.joined()?.node;
        let (queue, name) = (stored(shard.0), Arc::new(name.to_owned()));
        let from = i64::try_from(from.0).unwrap_or(i64::MAX);
        let row = self.control.call("acquiring a shard", move |client| {
            let name = Arc::clone(&name);
            async move {
                let sql = "SELECT o_is, o_number FROM acquire($1, $2, $3, $4)";
                client.row(sql, &[&node, &queue, &*name, &from]).await
            }
        })?;
        let row = row.ok_or(StoreError::Undone)?;
        let (is, number): (i16, i64) = (row.get(0), row.get(1));
        Ok(match is {
            1 => {
                if lock(&self.committing.standing).node != Some(node) {
                    return Ok(Acquired::Dead);
                }
                Acquired::Ours(Fence(unsigned(number)))
            }
            0 => Acquired::Owned(node_epoch(number)),
            _ => Acquired::Dead,
        })
    }

    fn release(&self, shards: &[QueueId]) -> Result<(), StoreError> {
        let node = self.joined()?.node;
        let queues: Arc<Vec<i64>> = Arc::new(shards.iter().map(|shard| stored(shard.0)).collect());
        self.control.call("releasing shards", move |client| {
            let queues = Arc::clone(&queues);
            async move {
                client.rows("SELECT release_shards($1, $2)", &[&node, &*queues]).await.map(drop)
            }
        })
    }

    fn ask(&self, shard: QueueId) -> Result<(), StoreError> {
        let (node, queue) = (self.joined()?.node, stored(shard.0));
        self.control.call("asking for a shard", move |client| async move {
            let sql = "UPDATE shard SET asked_by = $1 WHERE queue = $2 AND owner <> $1 \
                       RETURNING notify_nodes('m')";
            client.rows(sql, &[&node, &queue]).await.map(drop)
        })
    }

    fn withdraw(&self, shard: QueueId) -> Result<(), StoreError> {
        let (node, queue) = (self.joined()?.node, stored(shard.0));
        self.control.call("asking for a shard no longer", move |client| async move {
            let sql = "UPDATE shard SET asked_by = NULL WHERE queue = $2 AND asked_by = $1";
            client.rows(sql, &[&node, &queue]).await.map(drop)
        })
    }

    fn announce(&self, shard: QueueId) -> Result<(), StoreError> {
        let what = Arc::new(format!("b{} {}", stored(shard.0), self.joined()?.node));
        self.control.call("announcing a bind", move |client| {
            let what = Arc::clone(&what);
            async move { client.rows("SELECT notify_nodes($1)", &[&*what]).await.map(drop) }
        })
    }

    fn nodes(&self) -> Result<Vec<NodeRow>, StoreError> {
        let rows = self.control.call("listing the nodes", |client| async move {
            let sql = "SELECT epoch, name, draining, \
                         greatest(0, extract(epoch FROM lease_until - clock_timestamp()))::float8 \
                       FROM node WHERE died IS NULL ORDER BY epoch";
            client.rows(sql, &[]).await
        })?;
        let node = |row: &Row| NodeRow {
            epoch: node_epoch(row.get(0)),
            name: row.get(1),
            draining: row.get(2),
            lease_left: seconds(row.get(3)),
        };
        Ok(rows.iter().map(node).collect())
    }

    fn shards(&self) -> Result<Vec<ShardRow>, StoreError> {
        let rows = self.control.call("listing the shards", |client| async move {
            // One look-up for each queue that has entries, not one for each entry. Owned mailboxes are many, and of
            // no interest.
            let below = stored(ITEMS);
            let sql = "WITH RECURSIVE filled AS ( \
                         (SELECT queue FROM entry ORDER BY queue LIMIT 1) UNION ALL \
                         SELECT (SELECT queue FROM entry WHERE queue > f.queue ORDER BY queue LIMIT 1) \
                         FROM filled f WHERE f.queue IS NOT NULL) \
                       SELECT queue, coalesce(name, ''), owner, coalesce(fence, 0), \
                         extract(epoch FROM clock_timestamp() - since)::float8, asked_by, \
                         e.rank, CASE WHEN name IS NULL THEN e.record END \
                       FROM shard FULL JOIN (SELECT queue FROM filled WHERE queue IS NOT NULL) q \
                         USING (queue) \
                       LEFT JOIN LATERAL (SELECT rank, record FROM entry WHERE entry.queue = q.queue \
                         AND (owner IS NULL OR q.queue < $1) ORDER BY rank, id LIMIT 1) e ON true \
                       ORDER BY 1";
            client.rows(sql, &[&below]).await
        })?;
        Ok(rows.iter().map(shard_row).collect())
    }

    fn shards_of(&self, shards: &[QueueId]) -> Result<Vec<ShardRow>, StoreError> {
        let queues: Arc<Vec<i64>> = Arc::new(shards.iter().map(|shard| stored(shard.0)).collect());
        let rows = self.control.call("looking at shards", move |client| {
            let queues = Arc::clone(&queues);
            async move {
                let sql = "SELECT q.queue, coalesce(name, ''), owner, coalesce(fence, 0), \
                             extract(epoch FROM clock_timestamp() - since)::float8, asked_by, \
                             NULL::smallint, NULL::bytea \
                           FROM unnest($1::bigint[]) q(queue) LEFT JOIN shard s ON s.queue = q.queue";
                client.rows(sql, &[&*queues]).await
            }
        })?;
        Ok(rows.iter().map(shard_row).collect())
    }

    fn news(&self, places: &[(QueueId, Place)]) -> Result<Vec<QueueId>, StoreError> {
        let queues: Vec<i64> = places.iter().map(|(shard, _)| stored(shard.0)).collect();
        let horizons: Vec<String> =
            places.iter().map(|(_, place)| place.horizon.to_string()).collect();
        let lasts: Vec<i64> =
            places.iter().map(|(_, place)| i64::try_from(place.last).unwrap_or(i64::MAX)).collect();
        let asked = Arc::new((queues, horizons, lasts));
        let rows = self.readers.call("looking for new entries", move |client| {
            let asked = Arc::clone(&asked);
            async move {
                // One look-up of the index for each.
                let sql = "SELECT p.queue FROM unnest($1::bigint[], $2::text[], $3::bigint[]) \
                             p(queue, horizon, last) \
                           WHERE (SELECT true FROM entry e WHERE e.queue = p.queue \
                             AND (e.xact, e.seq) > (p.horizon::xid8, p.last) LIMIT 1)";
                client.rows(sql, &[&asked.0, &asked.1, &asked.2]).await
            }
        })?;
        Ok(rows.iter().map(|row| QueueId(number(row.get(0)))).collect())
    }

    /// An entry is listed by the number of its transaction and its own. Below the lowest transaction that
    /// ran when a listing began no entry comes any more: the next listing begins there, and lists again what
    /// is above. One caller at a time lists a shard.
    fn shard_entries(
        &self,
        shard: QueueId,
        after: Place,
        limit: usize,
    ) -> Result<ShardPage, StoreError> {
        let limit = limit.clamp(1, MOST);
        let queue = stored(shard.0);
        let began = lock(&self.listings).get(&queue).copied();
        let began = began.filter(|listing| listing.next == after);
        // A place inside of a listing that is not known may be after what was missed.
        let is_inside = after.last > 0 && began.is_none();
        let from = if is_inside { Place::default() } else { after };
        let (settled, entries, end) = self.page_of_shard(queue, from, limit)?;
        let settled = began.map_or(settled, |listing| listing.settled);
        let octets: usize = entries.iter().map(|entry| entry.record.len()).sum();
        let more = entries.len() >= limit || octets >= OCTETS;
        let next = if more { end } else { Place { horizon: settled, last: 0 } };
        let mut listings = lock(&self.listings);
        match more {
            true => drop(listings.insert(queue, Listing { next, settled })),
            false => drop(listings.remove(&queue)),
        }
        Ok(ShardPage { entries, next, more })
    }

    fn watch(&self, at_most: Duration) -> Result<Changes, StoreError> {
        let mut left = at_most;
        loop {
            // In slices: a close does not wait for the end.
            let slice = left.min(WATCHED);
            left = left.saturating_sub(slice);
            let changes = lock(&self.watching).watch(&self.edge, &self.target, slice);
            let changes = changes
                .map_err(|failure| failure.into_error(&self.target, "watching for changes"))?;
            if left.is_zero() || changes != Changes::default() {
                return Ok(changes);
            }
        }
    }
}
