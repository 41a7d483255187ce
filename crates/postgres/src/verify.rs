//! Everything is read once, so that what is damaged is known.

use crate::bodies;
use crate::link::lock;
use crate::numbers::{number, stored};
use crate::pool::Pool;
use base::BodyId;
use std::sync::Mutex;
use store::{Damage, StoreError};

/// Bodies and entries of one page.
const PAGE: i64 = 256;
/// Octets of a content that are read at once.
const PIECE: usize = 2 << 20;

pub(crate) fn verify(
    pool: &Pool,
    damage: &Mutex<Damage>,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(), StoreError> {
    if !entries(pool, goes_on)? {
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

/// The server checks what it reads, if it was made with checksums.
fn entries(pool: &Pool, goes_on: &mut dyn FnMut(u64) -> bool) -> Result<bool, StoreError> {
    let (mut rank, mut id) = (-1_i16, 0_i64);
    loop {
        let rows = pool.call("reading all entries", move |link| async move {
            let sql = "SELECT rank, id, octet_length(record), sum(length(record::text)) OVER () \
                       FROM (SELECT rank, id, record FROM entry WHERE (rank, id) > ($1, $2) \
                       ORDER BY rank, id LIMIT $3) page ORDER BY rank, id";
            link.rows(sql, &[&rank, &id, &PAGE]).await
        })?;
        let Some(last) = rows.last() else { return Ok(true) };
        (rank, id) = (last.get(0), last.get(1));
        let octets: i64 = rows.iter().map(|row| i64::from(row.get::<_, i32>(2))).sum();
        if !goes_on(u64::try_from(octets).unwrap_or(0)) {
            return Ok(false);
        }
    }
}

fn page(pool: &Pool, after: Option<BodyId>) -> Result<Vec<BodyId>, StoreError> {
    let after = after.map(|id| stored(id.0));
    let rows = pool.call("listing bodies", move |link| async move {
        let sql = "SELECT id FROM body WHERE id >= coalesce($1, -9223372036854775808) \
                   AND id IS DISTINCT FROM $1 ORDER BY id LIMIT $2";
        link.rows(sql, &[&after, &PAGE]).await
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
                // A content that is shorter than its length says is damaged too.
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
