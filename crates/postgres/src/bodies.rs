//! Contents read back, each block checked.

use crate::connection::pool::Pool;
use crate::numbers::{signed, stored, unsigned};
use crate::spools::MAX_INLINE;
use crate::sums::{BLOCK, agree};
use base::BodyId;
use bytes::{Bytes, BytesMut};
use store::StoreError;

const DOING: &str = "reading a content";

/// Most octets of a long content in one call.
const PIECE: u64 = 2 << 20;

/// What one call found of a body.
struct Found {
    content: i64,
    length: u64,
    /// The octets asked for, of a short content.
    short: Option<Bytes>,
}

/// The length of a body in octets.
pub(crate) fn length(pool: &Pool, body: BodyId) -> Result<Option<u64>, StoreError> {
    let id = stored(body.0);
    let row = pool.call(DOING, move |client| async move {
        let sql = "SELECT c.length FROM body b JOIN content c ON c.id = b.content WHERE b.id = $1";
        client.row(sql, &[&id]).await
    })?;
    Ok(row.map(|row| unsigned(row.get(0))))
}

/// Up to so many octets of a body; `None` if there is none.
///
/// # Errors
/// [`StoreError::BodyDamaged`]; those of the server.
pub(crate) fn read(
    pool: &Pool,
    body: BodyId,
    offset: u64,
    length: usize,
) -> Result<Option<Bytes>, StoreError> {
    // A body may be replaced between two calls: then it is looked up again.
    let mut before = None;
    loop {
        let Some(found) = find(pool, body, offset, length)? else { return Ok(None) };
        if let Some(octets) = found.short {
            return Ok(Some(octets));
        }
        let end = offset.saturating_add(length as u64).min(found.length);
        if let Some(octets) = long(pool, found.content, offset, end)? {
            return Ok(Some(octets));
        }
        if before == Some(found.content) {
            return Err(StoreError::BodyDamaged { id: body });
        }
        before = Some(found.content);
    }
}

fn find(
    pool: &Pool,
    body: BodyId,
    offset: u64,
    length: usize,
) -> Result<Option<Found>, StoreError> {
    let id = stored(body.0);
    let offset = usize::try_from(offset).unwrap_or(MAX_INLINE).min(MAX_INLINE);
    let first = offset / BLOCK;
    let end = offset.saturating_add(length).min(MAX_INLINE).div_ceil(BLOCK) * BLOCK;
    let (from, count) = (position(first * BLOCK + 1), position(end - first * BLOCK));
    let row = pool.call(DOING, move |client| async move {
        let sql = "SELECT c.id, c.length, c.octets IS NULL, substring(c.octets FROM $2 FOR $3), \
                   c.sums FROM body b JOIN content c ON c.id = b.content WHERE b.id = $1";
        client.row(sql, &[&id, &from, &count]).await
    })?;
    let Some(row) = row else { return Ok(None) };
    let (content, total) = (row.get(0), unsigned(row.get(1)));
    if row.get(2) {
        return Ok(Some(Found { content, length: total, short: None }));
    }
    let (octets, sums): (Vec<u8>, Option<Vec<u8>>) = (row.get(3), row.get(4));
    let whole = usize::try_from(total).unwrap_or(usize::MAX);
    let expected = end.min(whole).saturating_sub(first * BLOCK);
    if octets.len() != expected || !agree(&octets, first, &sums.unwrap_or_default()) {
        return Err(StoreError::BodyDamaged { id: body });
    }
    let octets = Bytes::from(octets);
    let start = (offset - first * BLOCK).min(octets.len());
    let part = octets.slice(start..start.saturating_add(length).min(octets.len()));
    Ok(Some(Found { content, length: total, short: Some(part) }))
}

fn position(octets: usize) -> i32 {
    i32::try_from(octets).unwrap_or(i32::MAX)
}

/// These octets of a long content; `None` if they are not there as they were written.
pub(crate) fn long(
    pool: &Pool,
    content: i64,
    offset: u64,
    end: u64,
) -> Result<Option<Bytes>, StoreError> {
    let mut read = BytesMut::new();
    let mut at = offset;
    while at < end {
        let Some(octets) = piece(pool, content, at, end.min(at.saturating_add(PIECE)))? else {
            return Ok(None);
        };
        at += octets.len() as u64;
        if read.is_empty() && at >= end {
            return Ok(Some(octets));
        }
        read.extend_from_slice(&octets);
    }
    Ok(Some(read.freeze()))
}

/// At least one of these octets, and all that their parts have.
fn piece(pool: &Pool, content: i64, at: u64, end: u64) -> Result<Option<Bytes>, StoreError> {
    let (from, to) = (signed(at), signed(end));
    let rows = pool.call(DOING, move |client| async move {
        let sql = "SELECT at, sums, skipped, substring(octets FROM (skipped + 1)::integer FOR \
                     (least(octet_length(octets), ($3 - at + 65535) / 65536 * 65536) - skipped)::integer) \
                   FROM (SELECT at, sums, octets, greatest(0, $2 - at) / 65536 * 65536 AS skipped \
                     FROM part WHERE content = $1 AND at < $3 AND at >= coalesce( \
                       (SELECT max(at) FROM part WHERE content = $1 AND at <= $2), 0) \
                   ) p ORDER BY at";
        client.rows(sql, &[&content, &from, &to]).await
    })?;
    let mut read = BytesMut::new();
    let mut next = at;
    for row in rows {
        let (place, skipped) = (unsigned(row.get(0)), unsigned(row.get(2)));
        let (sums, octets): (Vec<u8>, Vec<u8>) = (row.get(1), row.get(3));
        let first = usize::try_from(skipped).unwrap_or(usize::MAX) / BLOCK;
        let start = place + skipped;
        let stop = (start + octets.len() as u64).min(end);
        let wanted = usize::try_from(next.saturating_sub(start)).unwrap_or(usize::MAX)
            ..usize::try_from(stop.saturating_sub(start)).unwrap_or(usize::MAX);
        let (true, Some(part)) = (start <= next && stop > next, octets.get(wanted)) else {
            return Ok(None);
        };
        if !agree(&octets, first, &sums) {
            return Ok(None);
        }
        read.extend_from_slice(part);
        next = stop;
    }
    Ok((next > at).then(|| read.freeze()))
}
