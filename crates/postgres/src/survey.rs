//! What an operator asks of the database of a site: its nodes, its shards, its servers. Nothing is locked and no node
//! is needed, so it answers beside the daemons and without them.

use crate::connection::client::Connection;
use crate::connection::edge::Edge;
use crate::connection::failure::Failure;
use crate::connection::pool::Pool;
use crate::connection::target::Target;
use crate::durability::{self, Durability, Settings};
use crate::numbers::{number, precedence, unsigned};
use crate::options::Options;
use crate::prepare;
use base::{Precedence, Utc};
use bytes::Bytes;
use engine::journal::QueueId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use store::cluster::NodeEpoch;
use tokio_postgres::Row;

/// A look at the database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// When, by the clock of the database.
    pub at: Utc,
    /// The address and port of the primary; of a connection by a socket its directory is not known.
    pub primary: Option<String>,
    /// What decides whether a commit is kept.
    pub settings: Settings,
    /// The standbys that are connected to it.
    pub standbys: Vec<StandbyRow>,
    /// Commits that wait for standbys now.
    pub waiting: u32,
    /// For how long the oldest of them waits.
    pub waits: Duration,
    /// All joinings of nodes of the last days, the latest last.
    pub nodes: Vec<NodeState>,
    /// All shards.
    pub shards: Vec<ShardState>,
}

/// A standby that is connected to the primary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StandbyRow {
    /// Its `application_name`.
    pub name: String,
    /// Its address; absent where the account may not see it.
    pub address: Option<String>,
    /// `streaming`, `catchup` and so on; absent where the account may not see it.
    pub state: Option<String>,
    /// `quorum`, `sync`, `potential` or `async`; absent where the account may not see it.
    pub counted: Option<String>,
    /// Octets of the log that it has not on its disk.
    pub lag_octets: Option<u64>,
    /// How long what was written takes until it is on its disk.
    pub lag: Option<Duration>,
}

/// A joining of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    /// Its number.
    pub epoch: NodeEpoch,
    /// Its name.
    pub name: String,
    /// What is left of its lease; zero if that is over.
    pub lease_left: Duration,
    /// It gives its shards away, or has.
    pub draining: bool,
    /// When it was written that it is dead.
    pub died: Option<Utc>,
}

/// A shard, with what waits in it.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardState {
    /// Its number.
    pub shard: QueueId,
    /// The name of the peer, or the address of the mailbox; empty where nobody had it yet.
    pub name: String,
    /// The joining that has it.
    pub owner: Option<NodeEpoch>,
    /// The number of the ownership.
    pub fence: u64,
    /// Since when; absent where nobody had it yet.
    pub since: Option<Duration>,
    /// A node that asks for it.
    pub asked_by: Option<NodeEpoch>,
    /// Its entries, by precedence. Empty where they were not counted.
    pub entries: BTreeMap<Precedence, u64>,
    /// The record of the entry that was committed first, where they were counted.
    pub first: Option<Bytes>,
}

impl ShardState {
    /// A shard that nobody had yet, with nothing in it.
    #[must_use]
    pub fn new(shard: QueueId) -> ShardState {
        ShardState {
            shard,
            name: String::new(),
            owner: None,
            fence: 0,
            since: None,
            asked_by: None,
            entries: BTreeMap::new(),
            first: None,
        }
    }
}

/// A server that the url names, asked by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// Its address and port, as in the url.
    pub host: String,
    /// What it answered, or why it did not.
    pub answer: Result<ServerAnswer, ServerFault>,
}

/// Why a server gave no answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFault {
    /// Of what kind it is.
    pub kind: FaultKind,
    /// In the words of the server, or of the system.
    pub why: String,
}

/// Of what kind the fault of a server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultKind {
    /// It was not reached, or gave no answer.
    #[default]
    Away,
    /// Its name has no address.
    NoAddress,
    /// It is there, and does not let the account in.
    Denies,
    /// It is there, and TLS with it fails: its certificate, mostly.
    Untrusted,
    /// It is there, and takes no connection now: it has as many as it may, starts, recovers or ends.
    Busy,
}

impl FaultKind {
    /// Whether it is known that a server runs there.
    #[must_use]
    pub fn is_there(self) -> bool {
        matches!(self, FaultKind::Denies | FaultKind::Untrusted | FaultKind::Busy)
    }
}

/// What a server that takes no connection now ends its answer with.
const BUSY: [&str; 3] = ["(53300)", "(57P03)", "(57P01)"];

impl ServerFault {
    fn new(failure: &Failure) -> ServerFault {
        let why = failure.words();
        let kind = match failure {
            Failure::Denied(_) => FaultKind::Denies,
            Failure::Untrusted(_) => FaultKind::Untrusted,
            // The resolver has no kind of its own.
            Failure::Lost(_) if why.contains("lookup address") => FaultKind::NoAddress,
            // With a code of the server: too_many_connections, cannot_connect_now, admin_shutdown.
            Failure::Lost(_) if BUSY.iter().any(|code| why.ends_with(code)) => FaultKind::Busy,
            _ => FaultKind::Away,
        };
        ServerFault { kind, why }
    }
}

/// The process that is a node now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The key of its place ([`Place`](crate::Place)); absent where it has none.
    pub key: Option<String>,
    /// Where it runs, for people.
    pub words: String,
    /// What is left of its lease.
    pub lease_left: Duration,
}

/// What a server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerAnswer {
    /// It follows a primary, or could.
    pub is_standby: bool,
    /// The `application_name` by which it follows; absent if it does not follow, or the account may not see it.
    pub name: Option<String>,
    /// How far it has the log, in octets.
    pub has: u64,
}

/// Connections for looks: none before the first.
#[derive(Debug)]
pub struct Surveyor {
    edge: Arc<Edge>,
    target: Arc<Target>,
    pool: Pool,
}

const LOOKING: &str = "looking at the site";

impl Surveyor {
    /// For the database of this url. Nothing is asked yet.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`]: it is not a url. [`StoreError::Io`]: the system starts no thread.
    pub fn new(url: &str, options: &Options) -> Result<Surveyor, StoreError> {
        let target = Arc::new(Target::parse(url, options)?);
        let io = |e| StoreError::Io { doing: LOOKING, source: Arc::new(e) };
        let edge = Arc::new(Edge::start().map_err(io)?);
        let pool = Pool::new(&edge, &target, 1);
        Ok(Surveyor { edge, target, pool })
    }

    /// The servers of the url, with their ports.
    #[must_use]
    pub fn hosts(&self) -> &str {
        &self.target.host
    }

    /// Looks at nodes, shards and servers, `counted`: also at what is in the shards, which takes longer the more it
    /// is.
    ///
    /// # Errors
    /// [`StoreError::Away`]; [`StoreError::Refused`].
    pub fn look(&self, counted: bool) -> Result<Survey, StoreError> {
        self.pool.call(LOOKING, move |client| async move {
            let mut survey = look_at_servers(&client).await?;
            survey.nodes = client.rows(NODES, &[]).await?.iter().map(node).collect();
            survey.shards = client.rows(SHARDS, &[]).await?.iter().map(shard).collect();
            if counted {
                count(&client, &mut survey.shards).await?;
            }
            Ok(survey)
        })
    }

    /// Whether the tables are those of this release.
    ///
    /// # Errors
    /// [`StoreError::NotPrepared`]; [`StoreError::Newer`]; [`StoreError::Denied`]; [`StoreError::Away`];
    /// [`StoreError::Refused`].
    pub fn check(&self) -> Result<(), StoreError> {
        prepare::check(&self.edge, &self.target)
    }

    /// The value of this name that the site has.
    ///
    /// # Errors
    /// As [`look`](Surveyor::look).
    pub fn value(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        let name = Arc::new(name.to_owned());
        let row = self.pool.call("reading a value of the site", move |client| {
            let name = Arc::clone(&name);
            async move { client.row("SELECT value FROM meta WHERE name = $1", &[&*name]).await }
        })?;
        Ok(row.map(|row| row.get::<_, Vec<u8>>(0).into()))
    }

    /// The process that is the node of this name, if its lease lasts.
    ///
    /// # Errors
    /// As [`look`](Surveyor::look).
    pub fn holder(&self, node: &str) -> Result<Option<Holder>, StoreError> {
        let node = Arc::new(node.to_owned());
        let row = self.pool.call(LOOKING, move |client| {
            let node = Arc::clone(&node);
            async move {
                let sql = "SELECT place, coalesce(runs, 'in a place that is not known'), \
                             extract(epoch FROM lease_until - clock_timestamp())::float8 \
                           FROM node WHERE name = $1 AND died IS NULL \
                             AND lease_until > clock_timestamp() ORDER BY epoch DESC LIMIT 1";
                client.row(sql, &[&*node]).await
            }
        })?;
        Ok(row.map(|row| Holder {
            key: row.get(0),
            words: row.get(1),
            lease_left: seconds(row.get(2)),
        }))
    }

    /// What the database promises with its settings of now. No table is needed.
    ///
    /// # Errors
    /// [`StoreError::Away`]; [`StoreError::Refused`].
    pub fn durability(&self) -> Result<Durability, StoreError> {
        let read = |client: Arc<Connection>| async move { durability::read(&client).await };
        Ok(self.pool.call("reading its settings", read)?.durability())
    }

    /// As [`look`](Surveyor::look), without the shards: what costs little, however much there is.
    ///
    /// # Errors
    /// [`StoreError::Away`]; [`StoreError::Refused`].
    pub fn look_at_servers(&self) -> Result<Survey, StoreError> {
        self.pool.call(LOOKING, |client| async move {
            let mut survey = look_at_servers(&client).await?;
            survey.nodes = client.rows(NODES, &[]).await?.iter().map(node).collect();
            Ok(survey)
        })
    }

    /// Asks each server of the url by itself, whatever it is: also when none of them is a primary.
    #[must_use]
    pub fn ask_each(&self) -> Vec<ServerState> {
        let target = Arc::clone(&self.target);
        let limit = target.connect_limit + target.time_limit;
        let asked = self.edge.run(limit + Duration::from_secs(1), async move {
            let mut all = Vec::new();
            for (host, config) in target.each_by_name() {
                let target = Arc::clone(&target);
                let ask = async move {
                    let client = Connection::open_at(&target, &config).await?;
                    server(&client).await
                };
                all.push((host, tokio::spawn(ask)));
            }
            let mut servers = Vec::new();
            for (host, asked) in all {
                let answer = match tokio::time::timeout(limit, asked).await {
                    Ok(Ok(Ok(answer))) => Ok(answer),
                    Ok(Ok(Err(failure))) => Err(ServerFault::new(&failure)),
                    _ => {
                        let why = format!("no answer in {limit:?}");
                        Err(ServerFault { kind: FaultKind::Away, why })
                    }
                };
                servers.push(ServerState { host, answer });
            }
            Ok(servers)
        });
        asked.unwrap_or_default()
    }

    /// Forgets a node of this name that is dead: it is shown no longer. Gives how many joinings that were: none of a
    /// node that lives.
    ///
    /// # Errors
    /// [`StoreError::Away`]; [`StoreError::Refused`].
    pub fn forget(&self, name: &str) -> Result<u64, StoreError> {
        let name = Arc::new(name.to_owned());
        let rows = self.pool.call("forgetting a node", move |client| {
            let name = Arc::clone(&name);
            async move {
                // With their runs: what they were receiving is nobody's then, and is swept.
                let sql = "WITH gone AS ( \
                      DELETE FROM run r WHERE \
                        EXISTS (SELECT FROM node WHERE run = r.epoch AND name = $1 AND died IS NOT NULL) \
                        AND NOT EXISTS (SELECT FROM node WHERE run = r.epoch AND died IS NULL) \
                        AND NOT EXISTS (SELECT FROM node WHERE name = $1 AND died IS NULL)) \
                    DELETE FROM node WHERE name = $1 AND died IS NOT NULL \
                      AND NOT EXISTS (SELECT FROM node WHERE name = $1 AND died IS NULL) RETURNING epoch";
                client.rows(sql, &[&*name]).await
            }
        })?;
        Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX))
    }
}

const SERVERS: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
    host(inet_server_addr()) || ':' || inet_server_port(), \
    (SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'), \
    (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - query_start)), 0)::float8 \
     FROM pg_stat_activity WHERE wait_event = 'SyncRep')";

const STANDBYS: &str = "SELECT coalesce(r.application_name, a.application_name, ''), \
    host(r.client_addr), r.state, r.sync_state, \
    greatest(0, pg_current_wal_flush_lsn() - r.flush_lsn)::bigint, \
    extract(epoch FROM r.flush_lag)::float8 \
    FROM pg_stat_replication r LEFT JOIN pg_stat_activity a USING (pid) ORDER BY 1";

const NODES: &str = "SELECT epoch, name, draining, \
    greatest(0, extract(epoch FROM lease_until - clock_timestamp()))::float8, \
    (extract(epoch FROM died) * 1000000)::bigint FROM node ORDER BY epoch";

const SHARDS: &str = "SELECT queue, name, owner, fence, \
    extract(epoch FROM clock_timestamp() - since)::float8, asked_by FROM shard ORDER BY queue";

const ENTRIES: &str = "SELECT queue, rank, count(*) FROM entry GROUP BY queue, rank";

/// The entry that was committed first, one look-up for each queue that has entries.
const FIRST: &str = "WITH RECURSIVE filled AS ( \
      (SELECT queue FROM entry ORDER BY queue LIMIT 1) UNION ALL \
      SELECT (SELECT queue FROM entry WHERE queue > f.queue ORDER BY queue LIMIT 1) \
      FROM filled f WHERE f.queue IS NOT NULL) \
    SELECT q.queue, e.record FROM filled q CROSS JOIN LATERAL \
      (SELECT record FROM entry WHERE queue = q.queue ORDER BY xact, seq LIMIT 1) e \
    WHERE q.queue IS NOT NULL";

async fn look_at_servers(client: &Connection) -> Result<Survey, Failure> {
    let settings = durability::read(client).await?;
    let Some(row) = client.row(SERVERS, &[]).await? else { return Ok(Survey::default()) };
    let standbys = client.rows(STANDBYS, &[]).await?;
    let standby = |row: &Row| StandbyRow {
        name: row.get(0),
        address: row.get(1),
        state: row.get(2),
        counted: row.get(3),
        lag_octets: row.get::<_, Option<i64>>(4).map(unsigned),
        lag: row.get::<_, Option<f64>>(5).map(seconds),
    };
    Ok(Survey {
        at: Utc(unsigned(row.get(0))),
        primary: row.get(1),
        settings,
        standbys: standbys.iter().map(standby).collect(),
        waiting: u32::try_from(row.get::<_, i64>(2)).unwrap_or(u32::MAX),
        waits: seconds(row.get(3)),
        ..Survey::default()
    })
}

fn seconds(time: f64) -> Duration {
    Duration::try_from_secs_f64(time).unwrap_or_default()
}

fn epoch(epoch: i64) -> NodeEpoch {
    NodeEpoch(u32::try_from(epoch).unwrap_or(u32::MAX))
}

fn node(row: &Row) -> NodeState {
    NodeState {
        epoch: epoch(row.get(0)),
        name: row.get(1),
        draining: row.get(2),
        lease_left: seconds(row.get(3)),
        died: row.get::<_, Option<i64>>(4).map(|at| Utc(unsigned(at))),
    }
}

fn shard(row: &Row) -> ShardState {
    ShardState {
        name: row.get(1),
        owner: row.get::<_, Option<i64>>(2).map(epoch),
        fence: unsigned(row.get(3)),
        since: row.get::<_, Option<f64>>(4).map(seconds),
        asked_by: row.get::<_, Option<i64>>(5).map(epoch),
        ..ShardState::new(QueueId(number(row.get(0))))
    }
}

/// Adds what is in the shards, and shards that have entries and never had an owner.
async fn count(client: &Connection, shards: &mut Vec<ShardState>) -> Result<(), Failure> {
    let mut all: BTreeMap<QueueId, ShardState> =
        std::mem::take(shards).into_iter().map(|shard| (shard.shard, shard)).collect();
    let of =
        |queue: i64, all: &mut BTreeMap<QueueId, ShardState>, add: &dyn Fn(&mut ShardState)| {
            let shard = QueueId(number(queue));
            add(all.entry(shard).or_insert_with(|| ShardState::new(shard)));
        };
    for row in client.rows(ENTRIES, &[]).await? {
        let Some(level) = precedence(row.get(1)) else { continue };
        let count = unsigned(row.get(2));
        of(row.get(0), &mut all, &|shard| *shard.entries.entry(level).or_default() += count);
    }
    for row in client.rows(FIRST, &[]).await? {
        let record = Bytes::from(row.get::<_, Vec<u8>>(1));
        of(row.get(0), &mut all, &|shard| shard.first = Some(record.clone()));
    }
    shards.extend(all.into_values());
    Ok(())
}

async fn server(client: &Connection) -> Result<ServerAnswer, Failure> {
    let sql = "SELECT pg_is_in_recovery(), \
        (CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_receive_lsn(), \
            pg_last_wal_replay_lsn(), '0/0') ELSE pg_current_wal_flush_lsn() END - '0/0')::bigint, \
        (SELECT substring(conninfo from 'application_name=(\\S+)') FROM pg_stat_wal_receiver \
         LIMIT 1)";
    let Some(row) = client.row(sql, &[]).await? else { return Ok(ServerAnswer::default()) };
    Ok(ServerAnswer { is_standby: row.get(0), has: unsigned(row.get(1)), name: row.get(2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_answers_with_a_code_is_there() {
        let kind = |why: &str| ServerFault::new(&Failure::Lost(why.to_owned())).kind;
        assert_eq!(kind("sorry, too many clients already (53300)"), FaultKind::Busy);
        assert_eq!(kind("the database system is in recovery mode (57P03)"), FaultKind::Busy);
        assert!(FaultKind::Busy.is_there());
        assert_eq!(kind("connection refused (os error 111)"), FaultKind::Away);
        assert_eq!(kind("failed to lookup address information"), FaultKind::NoAddress);
    }
}
