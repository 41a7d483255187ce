//! The copy, as the node has it that adds to it.

use super::connection;
use crate::connection::pool::Pool;
use crate::numbers::stored;
use crate::options::Options;
use std::sync::Arc;
use store::StoreError;
use tracking::page::{Page, Place};
use tracking::ship::{Archive, Failed, Origin};

/// Where a node copies to what it tracks.
#[derive(Debug)]
pub struct TrackedArchive {
    pool: Pool,
    /// The number of the origin, once it has begun.
    origin: Option<i32>,
}

impl TrackedArchive {
    /// In the tables of a store, which may be away now.
    ///
    /// # Errors
    /// [`StoreError::Refused`]: the url is none; [`StoreError::Io`].
    pub fn new(url: &str, options: &Options) -> Result<TrackedArchive, StoreError> {
        Ok(TrackedArchive { pool: connection(url, options)?.0, origin: None })
    }

    fn origin(&self) -> Result<i32, Failed> {
        self.origin.ok_or_else(|| "the copy has not begun".into())
    }
}

/// Pages in columns.
#[derive(Debug, Default)]
struct Columns {
    at: Vec<i64>,
    first: Vec<i64>,
    last: Vec<i64>,
    keys: Vec<i32>,
    octets: Vec<Vec<u8>>,
    hash: Vec<i64>,
    of: Vec<i32>,
}

impl Columns {
    fn new(pages: &[Page]) -> Columns {
        let mut columns = Columns::default();
        let mut keys = Vec::new();
        for (page, number) in pages.iter().zip(1_i32..) {
            columns.at.push(page.at.0.cast_signed());
            columns.first.push(time(page.times.0));
            columns.last.push(time(page.times.1));
            columns.keys.push(i32::try_from(page.hashes.len()).unwrap_or(i32::MAX));
            columns.octets.push(page.octets.clone());
            keys.extend(page.hashes.iter().map(|hash| (stored(*hash), number)));
        }
        // In the order of the index: its leaves are changed one after the other.
        keys.sort_unstable();
        (columns.hash, columns.of) = keys.into_iter().unzip();
        columns
    }
}

/// A time as it is stored.
pub(super) fn time(time: base::Utc) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

impl Archive for TrackedArchive {
    fn begin(&mut self, origin: &Origin) -> Result<Place, Failed> {
        let directory = origin.directory.to_be_bytes().to_vec();
        let node = origin.node.clone();
        let row = self.pool.call("beginning to copy what is tracked", move |client| {
            let (directory, node) = (directory.clone(), node.clone());
            async move {
                let sql = "SELECT o_origin, o_copied_to FROM begin_tracked($1, $2)";
                client.row(sql, &[&directory, &node]).await
            }
        })?;
        let row = row.ok_or("the database answers nothing")?;
        self.origin = Some(row.get(0));
        Ok(Place(row.get::<_, i64>(1).cast_unsigned()))
    }

    fn append(&mut self, from: Place, to: Place, pages: &[Page]) -> Result<bool, Failed> {
        let origin = self.origin()?;
        let (from, to) = (from.0.cast_signed(), to.0.cast_signed());
        let columns = Arc::new(Columns::new(pages));
        // The second call after a lost connection finds whether the first one was made.
        let row = self.pool.call("copying what is tracked", move |client| {
            let c = Arc::clone(&columns);
            async move {
                let sql = "SELECT add_tracked($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
                client
                    .row(
                        sql,
                        &[
                            &origin, &from, &to, &c.at, &c.first, &c.last, &c.keys, &c.octets,
                            &c.hash, &c.of,
                        ],
                    )
                    .await
            }
        })?;
        Ok(row.is_some_and(|row| row.get(0)))
    }

    fn prune(&mut self, limit: u64) -> Result<bool, Failed> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let row =
            self.pool.call("removing what was tracked long ago", move |client| async move {
                client.row("SELECT prune_tracked($1)", &[&limit]).await
            })?;
        Ok(row.is_some_and(|row| row.get(0)))
    }

    fn end(&mut self) -> Result<(), Failed> {
        let origin = self.origin()?;
        self.pool.call("ending the copy of what is tracked", move |client| async move {
            client.row("SELECT end_tracked($1)", &[&origin]).await
        })?;
        Ok(())
    }
}
