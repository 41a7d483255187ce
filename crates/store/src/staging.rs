//! The contents of a batch before its commit: claimed from spools, or written into files.

use crate::bodies::Bodies;
use crate::error::StoreError;
use crate::spool::{Claim, Content, MAX_INLINE, Spools};
use base::BodyId;
use bytes::Bytes;
use engine::journal::BodySource;

/// The longest record, in octets.
pub const MAX_RECORD: usize = 16 << 20;
/// What a queue record is called in errors.
pub const QUEUE_RECORD: &str = "a queue record";
/// The longest name of a meta value, in octets.
pub const MAX_NAME: usize = 255;

/// Contents that are available, and durable if they are files.
#[derive(Debug, Default)]
pub(crate) struct StagedContents {
    claims: Vec<(Claim, Content)>,
    /// Files written for the batch's own octets.
    files: Vec<u64>,
}

impl StagedContents {
    /// Makes one content available. `committed` finds another one that is copied.
    pub(crate) fn stage(
        &mut self,
        source: BodySource,
        spools: &Spools,
        bodies: &Bodies,
        committed: impl FnOnce(BodyId) -> Result<Option<Content>, StoreError>,
    ) -> Result<Content, StoreError> {
        match source {
            BodySource::Body(id) => match committed(id)? {
                None => Err(StoreError::BodyDamaged { id }),
                Some(Content::File { number, length, sums }) => {
                    let linked = bodies.name_again(number);
                    let number = linked.map_err(|e| StoreError::io("copying a content", e))?;
                    self.files.push(number);
                    Ok(Content::File { number, length, sums })
                }
                Some(inline) => Ok(inline),
            },
            BodySource::Framed { head, body, from, length } => {
                let damaged = || StoreError::BodyDamaged { id: body };
                match committed(body)?.ok_or_else(damaged)? {
                    Content::Inline(octets) => {
                        let octets = part(&octets, from, length).ok_or_else(damaged)?;
                        self.write(bodies, framed(&head, &octets))
                    }
                    Content::File { number, length: total, sums } => {
                        let other = Part { number, total, sums: &sums, from, length };
                        self.frame(bodies, &head, &other)?.ok_or_else(damaged)
                    }
                }
            }
            BodySource::Spool(spool) => {
                let (claim, content) = spools.claim(spool)?;
                self.claims.push((claim, content.clone()));
                Ok(content)
            }
            BodySource::Octets(octets) => self.write(bodies, octets),
        }
    }

    fn write(&mut self, bodies: &Bodies, octets: Bytes) -> Result<Content, StoreError> {
        if octets.len() <= MAX_INLINE {
            return Ok(Content::Inline(octets));
        }
        let io = |e| StoreError::io("writing a content", e);
        let mut body = bodies.create().map_err(io)?;
        self.files.push(body.number);
        body.append(&octets).map_err(io)?;
        body.sync().map_err(io)?;
        let length = octets.len() as u64;
        Ok(Content::File { number: body.number, length, sums: body.sums() })
    }

    /// Writes these octets and a part of another file; `None` if that is damaged or shorter.
    fn frame(
        &mut self,
        bodies: &Bodies,
        head: &[u8],
        other: &Part<'_>,
    ) -> Result<Option<Content>, StoreError> {
        let io = |e| StoreError::io("writing a content", e);
        let Some(end) = other.from.checked_add(other.length).filter(|end| *end <= other.total)
        else {
            return Ok(None);
        };
        if head.len() as u64 + other.length <= MAX_INLINE as u64 {
            let length = usize::try_from(other.length).unwrap_or(usize::MAX);
            let octets = other.read(bodies, other.from, length)?;
            let octets = octets.filter(|octets| octets.len() == length);
            return octets.map(|octets| self.write(bodies, framed(head, &octets))).transpose();
        }
        let mut body = bodies.create().map_err(io)?;
        self.files.push(body.number);
        body.append(head).map_err(io)?;
        let mut at = other.from;
        while at < end {
            let length = usize::try_from(end - at).unwrap_or(usize::MAX).min(MAX_INLINE);
            let octets = other.read(bodies, at, length)?;
            let Some(octets) = octets.filter(|octets| !octets.is_empty()) else { return Ok(None) };
            body.append(&octets).map_err(io)?;
            at += octets.len() as u64;
        }
        body.sync().map_err(io)?;
        let length = head.len() as u64 + other.length;
        Ok(Some(Content::File { number: body.number, length, sums: body.sums() }))
    }

    /// The batch is durable.
    pub(crate) fn settle(&self, spools: &Spools) {
        for (claim, content) in &self.claims {
            spools.settle(claim, content);
        }
    }

    /// Nothing of the batch was made: restores the spools and removes the files. What else shares the
    /// octets of the spools is dropped before.
    pub(crate) fn undo(self, spools: &Spools, bodies: &Bodies) {
        for (claim, content) in self.claims {
            spools.restore(claim, content);
        }
        for number in self.files {
            bodies.unlink(number);
        }
    }
}

/// A part of the file of a content.
struct Part<'a> {
    number: u64,
    /// Octets of the file.
    total: u64,
    sums: &'a [u64],
    from: u64,
    length: u64,
}

impl Part<'_> {
    fn read(&self, bodies: &Bodies, at: u64, length: usize) -> Result<Option<Bytes>, StoreError> {
        bodies
            .read_checked(self.number, self.total, self.sums, at, length)
            .map_err(|e| StoreError::io("reading a body", e))
    }
}

/// So many octets from this offset, if there are as many.
pub(crate) fn part(octets: &Bytes, from: u64, length: u64) -> Option<Bytes> {
    let from = usize::try_from(from).ok()?;
    let end = from.checked_add(usize::try_from(length).ok()?)?;
    (end <= octets.len()).then(|| octets.slice(from..end))
}

/// Both, one after the other.
pub(crate) fn framed(head: &[u8], octets: &[u8]) -> Bytes {
    [head, octets].concat().into()
}

/// # Errors
/// [`StoreError::TooLong`].
pub(crate) fn check(what: &'static str, length: usize, limit: usize) -> Result<(), StoreError> {
    if length > limit {
        return Err(StoreError::TooLong { what, length, limit });
    }
    Ok(())
}
