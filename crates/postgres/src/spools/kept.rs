//! Contents that earlier runs were receiving, up to their last durable note.

use crate::connection::pool::Pool;
use crate::numbers::{number, signed, unsigned};
use crate::spools::Long;
use crate::sums::agree;
use bytes::Bytes;
use std::sync::Arc;
use store::StoreError;
use tokio_postgres::Row;
use xxhash_rust::xxh3::Xxh3;

/// Most octets of contents that are read when they are taken up, which takes that long.
const MAX_LEFT: u64 = 1 << 30;

const DOING: &str = "reading what an earlier run was receiving";

/// A content that is received further.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) long: Long,
    pub(crate) notes: Vec<Bytes>,
}

/// Takes up what the run owns and did not begin (these contents, or all): each content at its last note that
/// agrees with what is before it. Others are given up.
pub(crate) fn take_up(
    pool: &Pool,
    epoch: i64,
    contents: Option<Vec<i64>>,
) -> Result<Vec<Left>, StoreError> {
    let among = Arc::new(contents);
    let asked = Arc::clone(&among);
    let rows = pool.call(DOING, move |client| {
        let among = Arc::clone(&asked);
        async move {
            let sql = "SELECT n.content, n.at, n.digest, n.octets FROM content c \
                       JOIN note n ON n.content = c.id WHERE c.owner = $1 AND c.refs = 0 \
                       AND ($2::bigint[] IS NULL OR c.id = ANY ($2)) ORDER BY n.content, n.number";
            client.rows(sql, &[&epoch, &*among]).await
        }
    })?;
    let mut contents: Vec<(i64, Vec<Found>)> = Vec::new();
    for row in &rows {
        let content = row.get(0);
        match contents.last_mut().filter(|last| last.0 == content) {
            Some((_, notes)) => notes.push(Found::from_row(row)),
            None => contents.push((content, vec![Found::from_row(row)])),
        }
    }
    let (mut left, mut read) = (Vec::new(), 0);
    for (content, notes) in contents {
        left.extend(up_to_its_last_note(pool, content, &notes, &mut read)?);
    }
    let stay = Arc::new(left.iter().map(|left| left.long.content).collect::<Vec<i64>>());
    pool.call(DOING, move |client| {
        let (stay, among) = (Arc::clone(&stay), Arc::clone(&among));
        async move {
            let sql = "UPDATE content SET owner = NULL WHERE owner = $1 AND refs = 0 \
                       AND id <> ALL ($2) AND ($3::bigint[] IS NULL OR id = ANY ($3))";
            client.rows(sql, &[&epoch, &*stay, &*among]).await.map(drop)
        }
    })?;
    Ok(left)
}

/// A note as it was found.
struct Found {
    at: u64,
    digest: u64,
    octets: Bytes,
}

impl Found {
    fn from_row(row: &Row) -> Found {
        let octets: Vec<u8> = row.get(3);
        Found { at: unsigned(row.get(1)), digest: number(row.get(2)), octets: octets.into() }
    }
}

/// How far a content and its notes agree.
fn up_to_its_last_note(
    pool: &Pool,
    content: i64,
    notes: &[Found],
    read: &mut u64,
) -> Result<Option<Left>, StoreError> {
    let (mut digest, mut length): (Box<Xxh3>, u64) = Default::default();
    let mut last = None;
    for (number, note) in notes.iter().enumerate() {
        while length < note.at && *read < MAX_LEFT {
            let Some(octets) = part(pool, content, length)? else { break };
            digest.update(&octets);
            length += octets.len() as u64;
            *read += octets.len() as u64;
        }
        if length != note.at || digest.digest() != note.digest {
            break;
        }
        last = Some((number + 1, length, digest.clone()));
    }
    let Some((count, length, digest)) = last else { return Ok(None) };
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    let at = signed(length);
    pool.call(DOING, move |client| async move {
        client
            .rows("DELETE FROM note WHERE content = $1 AND number >= $2", &[&content, &count])
            .await?;
        client.rows("DELETE FROM part WHERE content = $1 AND at >= $2", &[&content, &at]).await
    })?;
    let notes = notes.iter().take(usize::try_from(count).unwrap_or(0));
    let notes = notes.map(|note| note.octets.clone()).collect();
    Ok(Some(Left { long: Long::left(content, length, digest, count), notes }))
}

/// The part at this place, if it is there and undamaged.
fn part(pool: &Pool, content: i64, at: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let at = signed(at);
    let row = pool.call(DOING, move |client| async move {
        client
            .row("SELECT octets, sums FROM part WHERE content = $1 AND at = $2", &[&content, &at])
            .await
    })?;
    let Some(row) = row else { return Ok(None) };
    let (octets, sums): (Vec<u8>, Vec<u8>) = (row.get(0), row.get(1));
    Ok((!octets.is_empty() && agree(&octets, 0, &sums)).then_some(octets))
}
