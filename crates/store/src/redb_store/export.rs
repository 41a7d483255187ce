//! All that a database holds, as changes that make it again: for another engine.

use super::RedbStore;
use super::tables::{self, BODY_INDEX, ENTRIES, META, SEEN};
use crate::error::StoreError;
use crate::queue::QueueStore;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{BodySource, Digest, Op};
use redb::ReadableTable;
use std::ops::Bound;

/// A part of a database.
#[derive(Debug)]
pub(crate) enum Exported {
    Op(Op),
    /// A body in a file.
    File {
        id: BodyId,
        number: u64,
        length: u64,
    },
}

/// Rows read at once, and octets after which a part is given on.
const ROWS: usize = 1024;
const OCTETS: usize = 1 << 20;

impl RedbStore {
    /// Gives all on, in parts of about a megabyte.
    pub(crate) fn export(
        &self,
        mut visit: impl FnMut(Vec<Exported>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        visit(self.named_values()?)?;
        let mut last = None;
        while let Some(next) = self.export_entries(last, &mut visit)? {
            last = Some(next);
        }
        let mut last = None;
        while let Some(next) = self.export_bodies(last, &mut visit)? {
            last = Some(next);
        }
        let mut last = None;
        while let Some(next) = self.export_keys(last, &mut visit)? {
            last = Some(next);
        }
        let bulk: Vec<_> = {
            let bulk = self.bulk();
            let row =
                |key: &Digest| bulk.get(key).map(|(until, record)| put_key(*key, until, record));
            bulk.keys().filter_map(row).collect()
        };
        visit(bulk)
    }

    fn named_values(&self) -> Result<Vec<Exported>, StoreError> {
        self.read("reading named values", |txn| {
            let table = txn.open_table(META)?;
            let rows = table.iter()?.map(|row| {
                let (name, value) = row?;
                let value = Bytes::copy_from_slice(value.value());
                Ok(Exported::Op(Op::PutMeta { name: name.value().to_owned(), value }))
            });
            rows.collect()
        })
    }

    fn export_entries(
        &self,
        last: Option<(u8, u64)>,
        visit: &mut impl FnMut(Vec<Exported>) -> Result<(), StoreError>,
    ) -> Result<Option<(u8, u64)>, StoreError> {
        let (page, last) = self.read("reading the queue", |txn| {
            let table = txn.open_table(ENTRIES)?;
            let start = last.map_or(Bound::Unbounded, Bound::Excluded);
            let (mut page, mut octets, mut last) = (Vec::new(), 0, None);
            for row in table.range::<(u8, u64)>((start, Bound::Unbounded))?.take(ROWS) {
                let (key, value) = row?;
                let (level, id) = key.value();
                last = Some((level, id));
                let (queue, record) = tables::entry_parts(value.value())?;
                let Some(precedence) = Precedence::from_number(level.into()) else { continue };
                octets += record.len();
                let (id, record) = (EntryId(id), Bytes::copy_from_slice(record));
                page.push(Exported::Op(Op::PutEntry { precedence, id, queue, record }));
                if octets >= OCTETS {
                    break;
                }
            }
            Ok((page, last))
        })?;
        visit(page)?;
        Ok(last)
    }

    fn export_bodies(
        &self,
        last: Option<BodyId>,
        visit: &mut impl FnMut(Vec<Exported>) -> Result<(), StoreError>,
    ) -> Result<Option<BodyId>, StoreError> {
        let ids = self.bodies(last, ROWS)?;
        let (mut part, mut octets) = (Vec::new(), 0);
        for id in &ids {
            let row = self.read("reading the index of bodies", |txn| {
                Ok(txn.open_table(BODY_INDEX)?.get(id.0)?.map(|row| row.value()))
            })?;
            match row {
                Some((0, _)) => {
                    let content = self.body(*id, 0, usize::MAX)?.unwrap_or_default();
                    octets += content.len();
                    let source = BodySource::Octets(content);
                    part.push(Exported::Op(Op::PutBody { id: *id, source }));
                }
                Some((number, length)) => part.push(Exported::File { id: *id, number, length }),
                None => {}
            }
            if octets >= OCTETS {
                visit(std::mem::take(&mut part))?;
                octets = 0;
            }
        }
        visit(part)?;
        Ok(ids.last().copied())
    }

    fn export_keys(
        &self,
        last: Option<[u8; 32]>,
        visit: &mut impl FnMut(Vec<Exported>) -> Result<(), StoreError>,
    ) -> Result<Option<[u8; 32]>, StoreError> {
        let (page, last) = self.read("reading what is remembered", |txn| {
            let table = txn.open_table(SEEN)?;
            let start = last.map_or(Bound::Unbounded, Bound::Excluded);
            let (mut page, mut last) = (Vec::new(), None);
            for row in table.range::<[u8; 32]>((start, Bound::Unbounded))?.take(ROWS) {
                let (key, value) = row?;
                let (until, record) = value.value();
                last = Some(key.value());
                let record = Bytes::copy_from_slice(record);
                page.push(put_key(Digest(key.value()), Utc(until), record));
            }
            Ok((page, last))
        })?;
        visit(page)?;
        Ok(last)
    }
}

fn put_key(key: Digest, until: Utc, record: Bytes) -> Exported {
    Exported::Op(Op::PutSeen { key, until, record, absent: false })
}
