//! The contents of a batch before its commit: claimed from spools, or written into files.

use crate::bodies::Bodies;
use crate::error::StoreError;
use crate::spool::{Claim, Content, MAX_INLINE, Spools};
use base::BodyId;
use engine::journal::BodySource;

/// The longest record, in octets.
pub(crate) const MAX_RECORD: usize = 16 << 20;
/// The longest name of a meta value, in octets.
pub(crate) const MAX_NAME: usize = 255;

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
            BodySource::Spool(spool) => {
                let (claim, content) = spools.claim(spool)?;
                self.claims.push((claim, content.clone()));
                Ok(content)
            }
            BodySource::Octets(octets) if octets.len() <= MAX_INLINE => Ok(Content::Inline(octets)),
            BodySource::Octets(octets) => {
                let io = |e| StoreError::io("writing a content", e);
                let mut body = bodies.create().map_err(io)?;
                self.files.push(body.number);
                body.append(&octets).map_err(io)?;
                body.sync().map_err(io)?;
                let length = octets.len() as u64;
                Ok(Content::File { number: body.number, length, sums: body.sums() })
            }
        }
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

/// # Errors
/// [`StoreError::TooLong`].
pub(crate) fn check(what: &'static str, length: usize, limit: usize) -> Result<(), StoreError> {
    if length > limit {
        return Err(StoreError::TooLong { what, length, limit });
    }
    Ok(())
}
