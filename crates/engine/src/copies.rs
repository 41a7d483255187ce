//! How many queue entries need each content: it goes with the last of them.

use crate::journal::Op;
use base::BodyId;
use std::collections::{BTreeMap, BTreeSet};

/// The copies of each content that are queued.
#[derive(Debug, Default)]
pub struct ContentCopies {
    copies: BTreeMap<BodyId, u32>,
    /// All entries of the store are known. Until then a content may have copies that are not.
    is_complete: bool,
    /// Contents that no known copy needed while not all were known.
    unneeded: BTreeSet<BodyId>,
    /// Other nodes have copies that are not known here: the store counts them.
    is_shared: bool,
}

impl ContentCopies {
    /// From now on the store itself deletes a content with the last entry for it.
    pub fn are_counted_by_the_store(&mut self) {
        *self = ContentCopies { is_shared: true, ..ContentCopies::default() };
    }

    /// One more copy needs this content, or it is held for something else.
    pub fn add(&mut self, body: BodyId) {
        if self.is_shared {
            return;
        }
        *self.copies.entry(body).or_default() += 1;
    }

    /// A copy is to be forgotten: what deletes its content in the same commit, if no other copy needs it.
    /// Else [`ContentCopies::release`] follows when the copy is durably forgotten: of copies forgotten at
    /// the same time none is the last.
    pub fn forget(&mut self, body: BodyId) -> Option<Op> {
        if self.is_shared {
            return None;
        }
        let copies = self.copies.get(&body).copied().unwrap_or(0);
        if copies > 1 || (copies == 1 && !self.is_complete) {
            return None;
        }
        self.copies.remove(&body);
        Some(Op::DeleteBody { id: body })
    }

    /// Whether exactly one copy needs this content, and no other can be known later: its content may go with
    /// it, in one commit.
    #[must_use]
    pub fn is_last(&self, body: BodyId) -> bool {
        self.is_complete && self.copies.get(&body) == Some(&1)
    }

    /// A copy is durably forgotten: what deletes its content, if no other copy needs it.
    pub fn release(&mut self, body: BodyId) -> Option<Op> {
        let copies = self.copies.get_mut(&body)?;
        *copies -= 1;
        if *copies > 0 {
            return None;
        }
        self.copies.remove(&body);
        if !self.is_complete {
            self.unneeded.insert(body);
            return None;
        }
        Some(Op::DeleteBody { id: body })
    }

    /// Whether a copy needs this content, or it is held, or it goes when all entries are known.
    pub fn has(&self, body: BodyId) -> bool {
        self.copies.contains_key(&body) || self.unneeded.contains(&body)
    }

    /// Whether all entries of the store are known.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// All entries of the store are known from now on. Returns the contents that none of them needs, of
    /// those that some copy needed.
    pub fn complete(&mut self) -> Vec<BodyId> {
        self.is_complete = true;
        let unneeded = std::mem::take(&mut self.unneeded);
        unneeded.into_iter().filter(|body| !self.copies.contains_key(body)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: BodyId = BodyId(7);

    fn deleted() -> Option<Op> {
        Some(Op::DeleteBody { id: BODY })
    }

    #[test]
    fn a_content_goes_with_its_last_copy() {
        let mut copies = ContentCopies::default();
        copies.complete();
        copies.add(BODY);
        copies.add(BODY);
        // Both at once: none is the last until one is durably forgotten.
        assert_eq!((copies.forget(BODY), copies.forget(BODY)), (None, None));
        assert_eq!((copies.release(BODY), copies.release(BODY)), (None, deleted()));
        copies.add(BODY);
        assert_eq!(copies.forget(BODY), deleted());
        assert!(!copies.has(BODY));
    }

    #[test]
    fn a_content_that_others_may_need_is_the_stores_affair() {
        let mut copies = ContentCopies::default();
        copies.are_counted_by_the_store();
        copies.complete();
        copies.add(BODY);
        assert_eq!((copies.is_last(BODY), copies.forget(BODY)), (false, None));
        assert_eq!((copies.release(BODY), copies.has(BODY)), (None, false));
    }

    #[test]
    fn while_copies_may_be_unknown_no_content_goes() {
        let mut copies = ContentCopies::default();
        for body in [BODY, BodyId(8)] {
            copies.add(body);
            assert_eq!((copies.forget(body), copies.release(body)), (None, None));
            assert!(copies.has(body), "a sweep of unknown contents must leave it");
        }
        // Another copy of the second is met.
        copies.add(BodyId(8));
        assert_eq!(copies.complete(), [BODY]);
        assert_eq!(copies.forget(BodyId(8)), Some(Op::DeleteBody { id: BodyId(8) }));
    }
}
