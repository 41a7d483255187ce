//! Everything is read once, so that what is damaged is known.

use crate::bodies;
use crate::connection::client::lock;
use crate::connection::pool::Pool;
use crate::numbers::{Place, number, precedence, stored};
use crate::reads;
use base::{BodyId, EntryId};
use std::sync::Mutex;
use store::{Damage, StoreError};

const ENTRIES: &str = "reading all entries";

/// Bodies and entries of one page.
const PAGE: i64 = 256;
/// Octets of a content that are read at once.
const PIECE: usize = 2 << 20;

pub(crate) fn verify(
    pool: &Pool,
    damage: &Mutex<Damage>,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), StoreError> {
    if !entries(pool, damage, goes_on)? {
        return Ok(());
    }
    let mut after = None;
    loop {
        let page = page(pool, after)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(*last);
        for id in page {
            if !one(pool, id, damage, goes_on)? {
                return Ok(());
            }
        }
    }
}

/// Has the server read all records: it checks its pages, if it was made with checksums. An entry that it
/// cannot read is named.
fn entries(
    pool: &Pool,
    damage: &Mutex<Damage>,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<bool, StoreError> {
    let (mut rank, mut id) = (-1_i16, 0_i64);
    loop {
        let rows = pool.call(ENTRIES, move |client| async move {
            // Not the records: their lengths are known without.
            let sql = "SELECT rank, id, octet_length(record) FROM entry WHERE (rank, id) > ($1, $2) \
                       ORDER BY rank, id LIMIT $3";
            client.rows(sql, &[&rank, &id, &PAGE]).await
        })?;
        let Some(last) = rows.last() else { return Ok(true) };
        let end: Place = (last.get(0), last.get(1));
        match read_entries(pool, (rank, id), end) {
            Ok(()) => {}
            Err(StoreError::Damaged { .. }) => {
                let places = rows.iter().map(|row| (row.get(0), row.get(1)));
                name_damaged(pool, places, damage)?;
            }
            Err(error) => return Err(error),
        }
        (rank, id) = end;
        let octets: i64 = rows.iter().map(|row| i64::from(row.get::<_, i32>(2))).sum();
        if !goes_on(u64::try_from(octets).unwrap_or(0)) {
            return Ok(false);
        }
    }
}

/// Reads the records after one place up to another one; nothing of them is sent.
fn read_entries(pool: &Pool, after: Place, end: Place) -> Result<(), StoreError> {
    pool.call(ENTRIES, move |client| async move {
        let sql = "SELECT count(sha256(record)) FROM entry \
                   WHERE (rank, id) > ($1, $2) AND (rank, id) <= ($3, $4)";
        client.rows(sql, &[&after.0, &after.1, &end.0, &end.1]).await.map(drop)
    })
}

fn name_damaged(
    pool: &Pool,
    places: impl Iterator<Item = Place>,
    damage: &Mutex<Damage>,
) -> Result<(), StoreError> {
    for place in places {
        let Some(precedence) = precedence(place.0) else { continue };
        match reads::entry(pool, (precedence, EntryId(number(place.1)))) {
            Err(StoreError::EntryDamaged { id }) => {
                lock(damage).entries.insert((precedence, id));
            }
            Ok(_) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn page(pool: &Pool, after: Option<BodyId>) -> Result<Vec<BodyId>, StoreError> {
    let after = after.map(|id| stored(id.0));
    let rows = pool.call("listing bodies", move |client| async move {
        let sql = "SELECT id FROM body WHERE id >= coalesce($1, -9223372036854775808) \
                   AND id IS DISTINCT FROM $1 ORDER BY id LIMIT $2";
        client.rows(sql, &[&after, &PAGE]).await
    })?;
    Ok(rows.iter().map(|row| BodyId(number(row.get(0)))).collect())
}

fn one(
    pool: &Pool,
    id: BodyId,
    damage: &Mutex<Damage>,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<bool, StoreError> {
    let mut at = 0;
    loop {
        match bodies::read(pool, id, at, PIECE) {
            Ok(None) => return Ok(true),
            Ok(Some(octets)) if octets.is_empty() => {
                // A content that is shorter than its length is damaged too.
                let whole = bodies::length(pool, id)?.is_none_or(|length| length <= at);
                if !whole {
                    lock(damage).bodies.insert(id);
                }
                return Ok(true);
            }
            Ok(Some(octets)) => {
                at += octets.len() as u64;
                if !goes_on(octets.len() as u64) {
                    return Ok(false);
                }
            }
            Err(StoreError::BodyDamaged { id }) => {
                lock(damage).bodies.insert(id);
                return Ok(true);
            }
            Err(error) => return Err(error),
        }
    }
}
