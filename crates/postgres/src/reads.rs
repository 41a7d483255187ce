//! What is read: entries, bodies, remembered keys, named values.

use crate::connection::pool::Pool;
use crate::numbers::{Place, number, precedence, rank, stored, unsigned};
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Digest, FIRST_ITEM, MailboxId, QueueId};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Entry, EntryKey, KeyEntry, StoreError};
use tokio_postgres::Row;

/// Most entries of a page, whatever is asked for: the server sorts out the octets of so many.
const MOST: usize = 16_384;

/// Octets of records of a page.
const OCTETS: usize = 8 << 20;

/// What of a listing is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Records,
    /// Places only: no record is read.
    Places,
}

/// A page as SQL: the rows of a listing, up to about 8 MiB of records and one beyond. Records are read only
/// as far as they are sent: their lengths are known without.
macro_rules! page {
    ($of:expr, $listing:literal) => {
        match $of {
            Of::Records => concat!(
                "SELECT rank, id, record FROM (SELECT rank, id, record, \
                 sum(octet_length(record)) OVER (ORDER BY rank, id ROWS UNBOUNDED PRECEDING) \
                 - octet_length(record) AS before FROM (",
                $listing,
                ") listed) sized WHERE before < 8388608 ORDER BY rank, id"
            ),
            Of::Places => {
                concat!("SELECT rank, id FROM (", $listing, ") listed ORDER BY rank, id")
            }
        }
    };
}

/// Entries, and those that were left out because the server cannot read them.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    pub(crate) damaged: Vec<EntryKey>,
}

/// The page after a place. If the server cannot read all of it, it is read entry by entry; a page on which
/// nothing is left is followed by the next one.
fn intact(
    pool: &Pool,
    after: Option<Place>,
    ask: impl Fn(Option<Place>, Of) -> Result<Vec<Row>, StoreError>,
) -> Result<Page, StoreError> {
    let (mut page, mut after) = (Page::default(), after);
    loop {
        match ask(after, Of::Records) {
            Err(StoreError::Damaged { .. }) => {}
            rows => {
                page.entries = entries_of(&rows?);
                return Ok(page);
            }
        }
        let rows = ask(after, Of::Places)?;
        let Some(last) = rows.last() else { return Ok(page) };
        after = Some((last.get(0), last.get(1)));
        add_each(pool, &rows, &mut page)?;
        if !page.entries.is_empty() {
            return Ok(page);
        }
    }
}

fn add_each(pool: &Pool, rows: &[Row], page: &mut Page) -> Result<(), StoreError> {
    let mut octets = 0;
    for row in rows {
        let Some(precedence) = precedence(row.get(0)) else { continue };
        let id = EntryId(number(row.get(1)));
        match entry(pool, (precedence, id)) {
            Ok(Some(record)) => {
                octets += record.len();
                page.entries.push(Entry { precedence, id, record });
            }
            Ok(None) => {}
            Err(StoreError::EntryDamaged { id }) => page.damaged.push((precedence, id)),
            Err(error) => return Err(error),
        }
        if octets >= OCTETS {
            break;
        }
    }
    Ok(())
}

const READING: &str = "reading entries";

fn most(limit: usize) -> i64 {
    i64::try_from(limit.clamp(1, MOST)).unwrap_or(1)
}

fn entries_of(rows: &[Row]) -> Vec<Entry> {
    let entry = |row: &Row| {
        let record: Vec<u8> = row.get(2);
        let precedence = precedence(row.get(0))?;
        Some(Entry { precedence, id: EntryId(number(row.get(1))), record: record.into() })
    };
    rows.iter().filter_map(entry).collect()
}

pub(crate) fn entry(pool: &Pool, (precedence, id): EntryKey) -> Result<Option<Bytes>, StoreError> {
    let (rank, place): Place = crate::numbers::place(precedence, id);
    let row = pool.call("reading an entry", move |client| async move {
        let sql = "SELECT record FROM entry WHERE rank = $1 AND id = $2";
        client.row(sql, &[&rank, &place]).await
    });
    let row = match row {
        Err(StoreError::Damaged { .. }) => return Err(StoreError::EntryDamaged { id }),
        row => row?,
    };
    Ok(row.map(|row| row.get::<_, Vec<u8>>(0).into()))
}

pub(crate) fn entry_count(pool: &Pool) -> Result<u64, StoreError> {
    let row = pool.call("counting entries", |client| async move {
        let sql = "SELECT sum(n)::bigint FROM generate_series(0, 5) AS r, LATERAL ( \
                   SELECT count(*) AS n FROM entry WHERE rank = r::smallint AND id < 0) of_rank";
        client.row(sql, &[]).await
    })?;
    Ok(row.map_or(0, |row| unsigned(row.get(0))))
}

pub(crate) fn highest_entry(pool: &Pool) -> Result<Option<EntryId>, StoreError> {
    let row = pool.call(READING, |client| async move {
        let sql = "SELECT max(last.id) FROM generate_series(0, 5) AS r, LATERAL ( \
                   SELECT id FROM entry WHERE rank = r::smallint AND id < 0 \
                   ORDER BY id DESC LIMIT 1) last";
        client.row(sql, &[]).await
    })?;
    let highest: Option<i64> = row.and_then(|row| row.get(0));
    Ok(highest.map(|id| EntryId(number(id))))
}

pub(crate) fn entries(
    pool: &Pool,
    after: Option<EntryKey>,
    limit: usize,
) -> Result<Page, StoreError> {
    let (after, limit) = (after.map(|(level, id)| crate::numbers::place(level, id)), most(limit));
    intact(pool, after, |after, of| {
        let (rank, id) = after.map_or((0, i64::MIN), |(rank, id)| (rank, id.saturating_add(1)));
        // Each rank for itself: between two of them are the items of mailboxes.
        let sql = page!(
            of,
            "SELECT e.rank, e.id, e.record FROM generate_series($1::smallint, 5) AS r, LATERAL ( \
             SELECT rank, id, record FROM entry WHERE rank = r::smallint AND id < 0 \
             AND id >= CASE WHEN r = $1::smallint THEN $2 ELSE -9223372036854775808 END \
             ORDER BY id LIMIT $3) e ORDER BY e.rank, e.id LIMIT $3"
        );
        pool.call(
            READING,
            move |client| async move { client.rows(sql, &[&rank, &id, &limit]).await },
        )
    })
}

pub(crate) fn queue_entries(
    pool: &Pool,
    queue: QueueId,
    precedence: Precedence,
    after: Option<EntryId>,
    limit: usize,
) -> Result<Page, StoreError> {
    let (queue, rank, limit) = (stored(queue.0), rank(precedence), most(limit));
    let after = after.map(|id| (rank, stored(id.0)));
    intact(pool, after, |after, of| {
        let after = after.map(|place| place.1);
        // The first of all numbers is a number too.
        let sql = page!(
            of,
            "SELECT rank, id, record FROM entry WHERE queue = $1 AND rank = $2 \
             AND id >= coalesce($3, -9223372036854775808) AND id IS DISTINCT FROM $3 \
             ORDER BY rank, id LIMIT $4"
        );
        pool.call(READING, move |client| async move {
            client.rows(sql, &[&queue, &rank, &after, &limit]).await
        })
    })
}

/// The numbers of the items of a mailbox, as they are stored.
fn mailbox(mailbox: MailboxId) -> (i64, i64) {
    let first = FIRST_ITEM | u64::from(mailbox.0) << 32;
    (stored(first), stored(first | u64::from(u32::MAX)))
}

pub(crate) fn items(
    pool: &Pool,
    of: MailboxId,
    precedence: Precedence,
    after: u32,
    limit: usize,
) -> Result<Page, StoreError> {
    let (first, last) = mailbox(of);
    let (rank, limit) = (rank(precedence), most(limit));
    let start = (rank, first + i64::from(after));
    intact(pool, Some(start), |after, of| {
        let after = after.unwrap_or(start).1;
        let sql = page!(
            of,
            "SELECT rank, id, record FROM entry WHERE rank = $1 AND id > $2 AND id <= $3 \
             ORDER BY rank, id LIMIT $4"
        );
        pool.call(READING, move |client| async move {
            client.rows(sql, &[&rank, &after, &last, &limit]).await
        })
    })
}

pub(crate) fn item_count(
    pool: &Pool,
    of: MailboxId,
    precedence: Precedence,
) -> Result<u64, StoreError> {
    let ((first, last), rank) = (mailbox(of), rank(precedence));
    let row = pool.call("counting items", move |client| async move {
        let sql = "SELECT count(*) FROM entry WHERE rank = $1 AND id > $2 AND id <= $3";
        client.row(sql, &[&rank, &first, &last]).await
    })?;
    Ok(row.map_or(0, |row| unsigned(row.get(0))))
}

pub(crate) fn bodies(
    pool: &Pool,
    after: Option<BodyId>,
    limit: usize,
) -> Result<Vec<BodyId>, StoreError> {
    let after = after.map(|id| stored(id.0));
    let limit = i64::try_from(limit.max(1)).unwrap_or(i64::MAX);
    let rows = pool.call("listing bodies", move |client| async move {
        let sql = "SELECT id FROM body WHERE id < 0 \
                   AND id >= coalesce($1, -9223372036854775808) AND id IS DISTINCT FROM $1 \
                   ORDER BY id LIMIT $2";
        client.rows(sql, &[&after, &limit]).await
    })?;
    Ok(rows.iter().map(|row| BodyId(number(row.get(0)))).collect())
}

pub(crate) fn seen(
    pool: &Pool,
    keys: &[Digest],
    now: Utc,
) -> Result<Vec<Option<Bytes>>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let asked: Arc<Vec<Vec<u8>>> = Arc::new(keys.iter().map(|key| key.0.to_vec()).collect());
    let now = stored(now.0);
    let rows = pool.call("looking up remembered keys", move |client| {
        let asked = Arc::clone(&asked);
        async move {
            let sql = "SELECT key, record FROM seen WHERE key = ANY ($1) AND until >= $2";
            client.rows(sql, &[&*asked, &now]).await
        }
    })?;
    let found: BTreeMap<Vec<u8>, Bytes> =
        rows.iter().map(|row| (row.get(0), row.get::<_, Vec<u8>>(1).into())).collect();
    Ok(keys.iter().map(|key| found.get(&key.0[..]).cloned()).collect())
}

pub(crate) fn has_expired_keys(pool: &Pool, before: Utc) -> Result<bool, StoreError> {
    let before = stored(before.0);
    let row = pool.call("looking for expired keys", move |client| async move {
        client.row("SELECT EXISTS (SELECT FROM seen WHERE until < $1)", &[&before]).await
    })?;
    Ok(row.is_some_and(|row| row.get(0)))
}

pub(crate) fn meta(pool: &Pool, name: String) -> Result<Option<Bytes>, StoreError> {
    let name = Arc::new(name);
    let row = pool.call("reading a named value", move |client| {
        let name = Arc::clone(&name);
        async move { client.row("SELECT value FROM meta WHERE name = $1", &[&*name]).await }
    })?;
    Ok(row.map(|row| row.get::<_, Vec<u8>>(0).into()))
}

pub(crate) fn keys(
    pool: &Pool,
    after: Option<&Digest>,
    limit: usize,
) -> Result<Vec<KeyEntry>, StoreError> {
    let after: Arc<Option<Vec<u8>>> = Arc::new(after.map(|key| key.0.to_vec()));
    let limit = most(limit);
    let rows = pool.call("listing remembered keys", move |client| {
        let after = Arc::clone(&after);
        async move {
            let sql = "SELECT key, until, record FROM seen \
                       WHERE key >= coalesce($1, ''::bytea) AND key IS DISTINCT FROM $1 \
                       ORDER BY key LIMIT $2";
            client.rows(sql, &[&*after, &limit]).await
        }
    })?;
    let row = |row: &Row| {
        let key = Digest(row.get::<_, Vec<u8>>(0).try_into().ok()?);
        let record = row.get::<_, Vec<u8>>(2).into();
        Some(KeyEntry { key, until: Utc(number(row.get(1))), record })
    };
    Ok(rows.iter().filter_map(row).collect())
}

pub(crate) fn values(
    pool: &Pool,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<(String, Bytes)>, StoreError> {
    let after = Arc::new(after.map(str::to_owned));
    let limit = most(limit);
    let rows = pool.call("listing named values", move |client| {
        let after = Arc::clone(&after);
        async move {
            // Not in the order of a language: that of the octets.
            let sql = "SELECT name, value FROM meta \
                       WHERE name COLLATE \"C\" >= coalesce($1, '') AND name IS DISTINCT FROM $1 \
                       ORDER BY name COLLATE \"C\" LIMIT $2";
            client.rows(sql, &[&*after, &limit]).await
        }
    })?;
    Ok(rows.iter().map(|row| (row.get(0), row.get::<_, Vec<u8>>(1).into())).collect())
}
