//! A batch before its commit: its contents are numbered, and long ones are in the database.

use crate::bodies;
use crate::connection::pool::Pool;
use crate::group::Content;
use crate::numbers::{Place, place, stored};
use crate::options::Site;
use crate::spools::{Claim, Long, MAX_INLINE, Spools, Writer};
use crate::sums::sums;
use base::BodyId;
use bytes::Bytes;
use engine::Record;
use engine::journal::{Batch, BodySource, FIRST_ITEM, Op};
use store::{BatchId, MAX_NAME, MAX_RECORD, QUEUE_RECORD, StoreError};

/// Octets of a content that are copied at once.
const PIECE: usize = 1 << 20;

/// One change, as the database has it.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Entry {
        place: Place,
        queue: i64,
        body: Option<i64>,
        record: Bytes,
    },
    NoEntry {
        place: Place,
    },
    Body {
        id: i64,
        source: Source,
    },
    NoBody {
        id: i64,
    },
    Seen {
        key: [u8; 32],
        until: i64,
        record: Bytes,
        absent: bool,
    },
    Forget {
        before: i64,
        most: i64,
    },
    /// `over`: the digest of the value that it replaces.
    Meta {
        name: String,
        value: Bytes,
        over: Option<[u8; 32]>,
    },
}

/// Where a body comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Content(Content),
    /// The content of this body.
    Copy(i64),
}

/// A batch whose contents are available.
#[derive(Debug)]
pub(crate) struct Staged {
    pub(crate) batch: BatchId,
    pub(crate) changes: Vec<Change>,
    claims: Vec<Claim>,
    /// Long contents written for the batch's own octets.
    written: Vec<i64>,
}

/// What staging needs.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) pool: std::sync::Arc<Pool>,
    pub(crate) spools: std::sync::Arc<Spools>,
    pub(crate) writer: std::sync::Arc<Writer>,
    pub(crate) site: Option<Site>,
}

impl Stage {
    /// Makes the contents of a batch available.
    ///
    /// # Errors
    /// Those of its spools; of its lengths; of the server. Nothing of it is left then.
    pub(crate) fn stage(&self, batch: BatchId, ops: Batch) -> Result<Staged, StoreError> {
        let mut staged = Staged {
            batch,
            changes: Vec::with_capacity(ops.len()),
            claims: vec![],
            written: vec![],
        };
        for op in ops {
            match self.change(op, &mut staged) {
                Ok(change) => staged.changes.push(change),
                Err(error) => {
                    self.undo(staged);
                    return Err(error);
                }
            }
        }
        Ok(staged)
    }

    /// The batch is durable.
    pub(crate) fn settle(&self, staged: Staged, bound: impl Fn(i64) -> bool) {
        for claim in &staged.claims {
            self.spools.settle(claim);
        }
        // What another batch of the group replaced is named by nothing.
        let stored = staged.claims.iter().filter_map(|claim| match claim.content() {
            Content::Stored { id, .. } => Some(*id),
            Content::Inline { .. } => None,
        });
        stored
            .chain(staged.written)
            .filter(|id| !bound(*id))
            .for_each(|id| self.writer.give_up(id));
    }

    /// Nothing of the batch was made.
    pub(crate) fn undo(&self, staged: Staged) {
        drop(staged.changes);
        staged.claims.into_iter().for_each(|claim| self.spools.restore(claim));
        staged.written.into_iter().for_each(|id| self.writer.give_up(id));
    }

    fn change(&self, op: Op, staged: &mut Staged) -> Result<Change, StoreError> {
        Ok(match op {
            Op::PutEntry { precedence, id, queue, record } => {
                check(QUEUE_RECORD, record.len(), MAX_RECORD)?;
                // A record of another kind names no body; those of mailboxes are of another kind.
                let brief = (id.0 < FIRST_ITEM).then(|| Record::peek(&record).ok()).flatten();
                let body = brief.and_then(|brief| brief.body);
                let body = body.map(|body| stored(body.0));
                Change::Entry { place: place(precedence, id), queue: stored(queue.0), body, record }
            }
            Op::DeleteEntry { precedence, id } => Change::NoEntry { place: place(precedence, id) },
            Op::PutBody { id, source } => {
                Change::Body { id: stored(id.0), source: self.source(source, staged)? }
            }
            Op::DeleteBody { id } => Change::NoBody { id: stored(id.0) },
            Op::PutSeen { key, until, record, absent } => {
                check("a remembered answer", record.len(), MAX_RECORD)?;
                Change::Seen { key: key.0, until: stored(until.0), record, absent }
            }
            Op::ForgetSeen { before, most } => Change::Forget {
                before: stored(before.0),
                most: i64::try_from(most).unwrap_or(i64::MAX),
            },
            Op::PutMeta { name, value } => self.value(&name, value, None)?,
            Op::ReplaceMeta { name, value, over } => self.value(&name, value, Some(over.0))?,
        })
    }

    fn value(
        &self,
        name: &str,
        value: Bytes,
        over: Option<[u8; 32]>,
    ) -> Result<Change, StoreError> {
        check("a name", name.len(), MAX_NAME)?;
        check("a named value", value.len(), MAX_RECORD)?;
        let name = self.site.as_ref().map_or_else(|| name.to_owned(), |site| site.kept_name(name));
        Ok(Change::Meta { name, value, over })
    }

    fn source(&self, source: BodySource, staged: &mut Staged) -> Result<Source, StoreError> {
        Ok(match source {
            BodySource::Body(id) => Source::Copy(stored(id.0)),
            BodySource::Spool(id) => {
                let claim = self.spools.claim(id)?;
                let content = claim.content().clone();
                staged.claims.push(claim);
                Source::Content(content)
            }
            BodySource::Octets(octets) => Source::Content(self.own(octets, staged)?),
            BodySource::Framed { head, body, from, length } => {
                Source::Content(self.framed(&head, body, (from, length), staged)?)
            }
        })
    }

    fn own(&self, octets: Bytes, staged: &mut Staged) -> Result<Content, StoreError> {
        let id = self.writer.number()?;
        if octets.len() <= MAX_INLINE {
            return Ok(Content::Inline { id, sums: sums(&octets).into(), octets });
        }
        staged.written.push(id);
        let mut long = Long::new(id);
        long.append(&octets, &self.writer)?;
        long.sync(&self.writer)?;
        Ok(Content::Stored { id, length: long.length })
    }

    /// These octets and a part of another content, piece by piece.
    fn framed(
        &self,
        head: &[u8],
        body: BodyId,
        (from, length): (u64, u64),
        staged: &mut Staged,
    ) -> Result<Content, StoreError> {
        let damaged = || StoreError::BodyDamaged { id: body };
        let total = bodies::length(&self.pool, body)?.ok_or_else(damaged)?;
        let end = from.checked_add(length).filter(|end| *end <= total).ok_or_else(damaged)?;
        let read = |at: u64, most: usize| {
            let size = usize::try_from(end - at).unwrap_or(usize::MAX).min(most);
            let octets = bodies::read(&self.pool, body, at, size)?;
            octets.filter(|octets| octets.len() == size).ok_or_else(damaged)
        };
        if head.len() as u64 + length <= MAX_INLINE as u64 {
            let octets = read(from, MAX_INLINE)?;
            return self.own([head, &octets[..]].concat().into(), staged);
        }
        let id = self.writer.number()?;
        staged.written.push(id);
        let mut long = Long::new(id);
        long.append(head, &self.writer)?;
        let mut at = from;
        while at < end {
            let octets = read(at, PIECE)?;
            long.append(&octets, &self.writer)?;
            at += octets.len() as u64;
        }
        long.sync(&self.writer)?;
        Ok(Content::Stored { id, length: long.length })
    }
}

/// # Errors
/// [`StoreError::TooLong`].
fn check(what: &'static str, length: usize, limit: usize) -> Result<(), StoreError> {
    if length > limit {
        return Err(StoreError::TooLong { what, length, limit });
    }
    Ok(())
}
