//! The tables: made and changed by the account that owns them, in numbered steps, one after the other.

use crate::connection::client::Connection;
use crate::connection::edge::Edge;
use crate::connection::failure::Failure;
use crate::connection::target::{Target, quoted};
use crate::options::Options;
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;

/// The steps. A step that was released is never changed: what changes is another step.
const STEPS: [&str; 9] = [
    include_str!("../migrations/0001_tables.sql"),
    include_str!("../migrations/0002_functions.sql"),
    include_str!("../migrations/0003_cluster.sql"),
    include_str!("../migrations/0004_site.sql"),
    include_str!("../migrations/0005_tracking.sql"),
    include_str!("../migrations/0006_fences.sql"),
    include_str!("../migrations/0007_owned.sql"),
    include_str!("../migrations/0008_places.sql"),
    include_str!("../migrations/0009_mailboxes.sql"),
];

/// The version of the tables that this release needs.
pub const VERSION: u64 = STEPS.len() as u64;

/// The longest that all steps may take: they may rewrite tables.
const LONGEST: Duration = Duration::from_secs(3600);

const PREPARING: &str = "preparing its tables";

/// What [`prepare`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The version of the tables before, 0 if there were none.
    pub before: u64,
    /// The version now.
    pub now: u64,
}

/// Makes the tables of a store, or brings them to this release's version, and lets the account `run_role`
/// use them: it may read and write rows and call the functions, and change no table. The url is that of the
/// account that owns the tables; it needs the right to create a schema if there is none. May be called
/// again; two calls at once wait for each other.
///
/// # Errors
/// [`StoreError::Newer`]; [`StoreError::Away`]; [`StoreError::Refused`].
pub fn prepare(url: &str, run_role: &str, options: &Options) -> Result<Prepared, StoreError> {
    let target = Target::parse(url, options)?;
    let edge =
        Edge::start().map_err(|e| StoreError::Io { doing: PREPARING, source: Arc::new(e) })?;
    let (target, role) = (Arc::new(target), run_role.to_owned());
    let ours = Arc::clone(&target);
    let ended = edge.run(LONGEST, async move {
        let client = Connection::open(&ours).await?.0;
        client.script("BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").await?;
        let before = bring_up(&client, &ours).await?;
        if before <= VERSION {
            grant(&client, &ours, &role).await?;
            client.script("COMMIT").await?;
        }
        Ok(before)
    });
    let before = ended.map_err(|failure| failure.into_error(&target, PREPARING))?;
    if before > VERSION {
        return Err(StoreError::Newer { found: before, known: VERSION });
    }
    Ok(Prepared { before, now: VERSION })
}

/// Takes the steps that are missing, in a transaction.
async fn bring_up(client: &Connection, target: &Target) -> Result<u64, Failure> {
    client
        .rows("SELECT pg_advisory_xact_lock(1836343601, hashtext($1))", &[&target.schema])
        .await?;
    client
        .script(&format!(
            "CREATE SCHEMA IF NOT EXISTS {}; CREATE TABLE IF NOT EXISTS version ( \
         number integer PRIMARY KEY, taken timestamptz NOT NULL DEFAULT clock_timestamp())",
            target.quoted_schema()
        ))
        .await?;
    let before = version(client).await?;
    for (number, step) in (1_i32..).zip(STEPS) {
        if u64::try_from(number).is_ok_and(|number| number > before) {
            client.script(step).await?;
            client.rows("INSERT INTO version (number) VALUES ($1)", &[&number]).await?;
        }
    }
    Ok(before)
}

/// The least that a running store needs.
async fn grant(client: &Connection, target: &Target, role: &str) -> Result<(), Failure> {
    let (schema, role) = (target.quoted_schema(), quoted(role));
    client
        .script(&format!(
            "GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; \
         REVOKE INSERT, UPDATE, DELETE ON version FROM {role}; \
         GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}; \
         REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC; \
         GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {role}"
        ))
        .await
}

async fn version(client: &Connection) -> Result<u64, Failure> {
    let row = client.row("SELECT coalesce(max(number), 0) FROM version", &[]).await?;
    let number: i32 = row.map_or(0, |row| row.get(0));
    Ok(u64::try_from(number).unwrap_or(0))
}

/// Whether the tables are those of this release.
///
/// # Errors
/// [`StoreError::NotPrepared`]; [`StoreError::Newer`]; those of the server.
pub(crate) fn check(edge: &Edge, target: &Arc<Target>) -> Result<(), StoreError> {
    let ours = Arc::clone(target);
    let limit = target.time_limit + Duration::from_secs(1);
    let found = edge.run(limit, async move { version(&Connection::open(&ours).await?.0).await });
    let found = match found {
        // There is no such schema or table.
        Err(failure) if matches!(failure.code(), "42P01" | "3F000") => 0,
        found => found.map_err(|failure| failure.into_error(target, "looking at its tables"))?,
    };
    if found > VERSION {
        return Err(StoreError::Newer { found, known: VERSION });
    }
    if found < VERSION {
        let (host, schema) = (target.host.clone(), target.schema.clone());
        return Err(StoreError::NotPrepared { host, schema, found, needed: VERSION });
    }
    Ok(())
}
