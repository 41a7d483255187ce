//! Applies the changes of one batch to the tables.

use super::bulk::{self, Bulk, KeyRow};
use super::tables::{self, Tables};
use crate::caches::recent::{Key, Recent};
use crate::spool::Content;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{Digest, QueueId};
use redb::{AccessGuard, Table};

/// A change whose body, if any, is available.
#[derive(Debug)]
pub(super) enum Change {
    PutEntry(Precedence, EntryId, QueueId, Bytes),
    DeleteEntry(Precedence, EntryId),
    PutBody(BodyId, Content),
    DeleteBody(BodyId),
    PutSeen(Digest, Utc, Bytes),
    /// The keys of a batch with many, in a row of their own.
    PutRow(u64, KeyRow),
    /// Moves the keys of this row into their table.
    Dissolve(u64),
    ForgetSeen(Utc, usize),
    PutMeta(String, Bytes),
}

impl Change {
    /// Applies the change; adds the numbers of files it drops to `dropped`.
    pub(super) fn apply(
        &self,
        tables: &mut Tables<'_>,
        dropped: &mut Vec<u64>,
    ) -> Result<(), redb::Error> {
        match self {
            Change::PutEntry(precedence, id, queue, record) => {
                let value = tables::entry_value(*queue, record);
                let old = tables.entries.insert((precedence.number(), id.0), &value[..])?;
                let old = old.map(|old| old_queue(&old)).transpose()?;
                if old != Some(*queue) {
                    unlist(&mut tables.queues, old, *precedence, *id)?;
                    tables.queues.insert((queue.0, precedence.number(), id.0), ())?;
                }
            }
            Change::DeleteEntry(precedence, id) => {
                let old = tables.entries.remove((precedence.number(), id.0))?;
                let old = old.map(|old| old_queue(&old)).transpose()?;
                unlist(&mut tables.queues, old, *precedence, *id)?;
            }
            Change::PutBody(id, content) => {
                drop_body(tables, *id, dropped)?;
                put_body(tables, *id, content)?;
            }
            Change::DeleteBody(id) => drop_body(tables, *id, dropped)?,
            Change::PutSeen(key, until, record) => put_seen(tables, key, *until, record)?,
            Change::PutRow(number, row) => bulk::put(tables, *number, row)?,
            Change::Dissolve(number) => bulk::dissolve(tables, *number)?,
            Change::ForgetSeen(before, most) => forget_seen(tables, *before, *most)?,
            Change::PutMeta(name, value) => {
                tables.meta.insert(name.as_str(), &value[..])?;
            }
        }
        Ok(())
    }

    /// Whether it writes a row with this key.
    pub(super) fn row_has(&self, key: &Digest) -> bool {
        matches!(self, Change::PutRow(_, row) if row.iter().any(|(other, ..)| other == key))
    }

    /// Caches data that is likely to be read soon, and removes deleted data from the caches.
    pub(super) fn remember(self, recent: &mut Recent, bulk: &mut Bulk) {
        match self {
            Change::PutEntry(precedence, id, _, record) => {
                recent.insert(Key::Entry((precedence, id)), record);
            }
            Change::DeleteEntry(precedence, id) => recent.forget(Key::Entry((precedence, id))),
            Change::PutBody(id, Content::Inline(octets)) => recent.insert(Key::Body(id), octets),
            Change::PutBody(id, Content::File { .. }) | Change::DeleteBody(id) => {
                recent.forget(Key::Body(id));
            }
            Change::PutRow(number, row) => bulk.add(number, row),
            Change::Dissolve(number) => bulk.remove(number),
            Change::PutSeen(..) | Change::ForgetSeen(..) | Change::PutMeta(..) => {}
        }
    }

    /// The approximate octets it adds to the database.
    pub(super) fn size(&self) -> usize {
        match self {
            Change::PutEntry(_, _, _, octets)
            | Change::PutSeen(_, _, octets)
            | Change::PutMeta(_, octets)
            | Change::PutBody(_, Content::Inline(octets)) => octets.len().saturating_add(64),
            Change::PutBody(_, Content::File { .. }) => 64,
            Change::PutRow(_, row) => {
                row.iter().map(|(_, _, octets)| octets.len().saturating_add(64)).sum()
            }
            Change::DeleteEntry(..)
            | Change::DeleteBody(_)
            | Change::Dissolve(_)
            | Change::ForgetSeen(..) => 0,
        }
    }
}

fn old_queue(old: &AccessGuard<'_, &'static [u8]>) -> Result<QueueId, redb::Error> {
    Ok(tables::entry_parts(old.value())?.0)
}

/// Removes an entry from the list of its queue, if it was in one.
fn unlist(
    queues: &mut Table<'_, (u64, u8, u64), ()>,
    queue: Option<QueueId>,
    precedence: Precedence,
    id: EntryId,
) -> Result<(), redb::Error> {
    if let Some(queue) = queue {
        queues.remove((queue.0, precedence.number(), id.0))?;
    }
    Ok(())
}

fn put_body(tables: &mut Tables<'_>, id: BodyId, content: &Content) -> Result<(), redb::Error> {
    let row = match content {
        Content::Inline(octets) => {
            tables.bodies.insert(id.0, &octets[..])?;
            (0, octets.len() as u64)
        }
        Content::File { number, length, .. } => (*number, *length),
    };
    tables.body_index.insert(id.0, row)?;
    Ok(())
}

fn drop_body(
    tables: &mut Tables<'_>,
    id: BodyId,
    dropped: &mut Vec<u64>,
) -> Result<(), redb::Error> {
    let row = tables.body_index.remove(id.0)?.map(|row| row.value());
    match row {
        Some((0, _)) => {
            tables.bodies.remove(id.0)?;
        }
        Some((number, _)) => dropped.push(number),
        None => {}
    }
    Ok(())
}

pub(super) fn put_seen(
    tables: &mut Tables<'_>,
    key: &Digest,
    until: Utc,
    record: &Bytes,
) -> Result<(), redb::Error> {
    let old = tables.seen.insert(key.0, (until.0, &record[..]))?.map(|row| row.value().0);
    if let Some(old) = old {
        tables.seen_until.remove((old, key.0))?;
    }
    tables.seen_until.insert((until.0, key.0), ())?;
    Ok(())
}

/// The oldest first, at most `most`: the caller repeats the call.
fn forget_seen(tables: &mut Tables<'_>, before: Utc, most: usize) -> Result<(), redb::Error> {
    let limit = (before.0, [0; 32]);
    for row in tables.seen_until.extract_from_if(..limit, |_, ()| true)?.take(most) {
        let (key, _) = row?;
        tables.seen.remove(key.value().1)?;
    }
    Ok(())
}
