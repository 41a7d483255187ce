//! The entries of a shard that this node owns: each is handed to the node once, whoever put it into the store.
//!
//! The node knows what it puts there itself. All else is read: after the shard was gained, whenever another node has
//! put something there, and from time to time. A page may have entries that the node has long sent, and deleted in a
//! batch that was not durable when the page was read. So what is deleted is remembered until a page that was asked for
//! later has come.

use base::EntryId;
use engine::journal::Entry;
use membership::rows::{Place, ShardPage};
use std::collections::BTreeSet;

/// A shard that this node owns.
#[derive(Debug, Default)]
pub struct Reading {
    place: Place,
    /// Entries in the store that the node has, or had: those are being deleted.
    known: BTreeSet<EntryId>,
    /// A page is being read.
    is_read: bool,
    /// Something changed since it was asked for.
    again: bool,
    /// The next page is the first one again.
    from_start: bool,
    /// Deleted durably while a page was being read, which may have them.
    deleted: Vec<EntryId>,
    /// Read, but put there by this node itself, in a batch whose end it does not know yet.
    withheld: BTreeSet<EntryId>,
}

impl Reading {
    /// Something may have changed. Gives the place after which a page is to be read now, if one is.
    pub fn changed(&mut self) -> Option<Place> {
        if self.is_read {
            self.again = true;
            return None;
        }
        (self.is_read, self.again) = (true, false);
        Some(self.place)
    }

    /// The node has put this entry there, durably.
    pub fn put(&mut self, id: EntryId) {
        self.withheld.remove(&id);
        self.known.insert(id);
    }

    /// The node was to put this entry there, and did not. Gives whether a page had it: then all are read again.
    pub fn not_put(&mut self, id: EntryId) -> bool {
        let was_read = self.withheld.remove(&id);
        if was_read {
            self.start_again();
        }
        was_read
    }

    /// The node has deleted this entry, durably.
    pub fn delete(&mut self, id: EntryId) {
        if self.is_read {
            self.deleted.push(id);
        } else {
            self.known.remove(&id);
        }
    }

    /// The node does not have this entry any more, and did not delete it: all are read again. Gives whether it had it.
    pub fn forget(&mut self, id: EntryId) -> bool {
        if !self.known.remove(&id) {
            return false;
        }
        self.start_again();
        true
    }

    fn start_again(&mut self) {
        if self.is_read {
            self.from_start = true;
        } else {
            self.place = Place::default();
        }
    }

    /// A page was read. Gives what the node does not have of it, and whether another page is to be read. The node is
    /// putting the entries `coming` itself: the answers to its commits bring them.
    pub fn page(&mut self, page: ShardPage, coming: &BTreeSet<EntryId>) -> (Vec<Entry>, bool) {
        self.is_read = false;
        let mut entries = page.entries;
        let deleted: BTreeSet<EntryId> = std::mem::take(&mut self.deleted).into_iter().collect();
        entries.retain(|entry| {
            if deleted.contains(&entry.id) {
                return false;
            }
            let is_new = !self.known.contains(&entry.id);
            match is_new && coming.contains(&entry.id) {
                true => {
                    self.withheld.insert(entry.id);
                    false
                }
                false => self.known.insert(entry.id),
            }
        });
        for id in &deleted {
            self.known.remove(id);
        }
        self.place = match std::mem::take(&mut self.from_start) {
            true => Place::default(),
            false => page.next,
        };
        (entries, page.more || self.again)
    }

    /// The page could not be read.
    pub fn failed(&mut self) {
        (self.is_read, self.again) = (false, true);
        if std::mem::take(&mut self.from_start) {
            self.place = Place::default();
        }
        for id in std::mem::take(&mut self.deleted) {
            self.known.remove(&id);
        }
    }

    /// The place after which something may be new, if no page is being read or is to be.
    #[must_use]
    pub fn idle(&self) -> Option<Place> {
        (!self.is_read && !self.again).then_some(self.place)
    }

    /// The entries that the node has.
    pub fn known(&self) -> impl Iterator<Item = EntryId> {
        self.known.iter().copied()
    }

    /// Whether a page is to be read, because the last one could not be.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.again && !self.is_read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Precedence;
    use bytes::Bytes;

    fn page(ids: &[u64]) -> ShardPage {
        let entry = |id: &u64| Entry {
            precedence: Precedence::Flash,
            id: EntryId(*id),
            record: Bytes::new(),
        };
        ShardPage { entries: ids.iter().map(entry).collect(), ..ShardPage::default() }
    }

    fn ids(reading: &mut Reading, found: &[u64]) -> Vec<u64> {
        let (entries, _) = reading.page(page(found), &BTreeSet::new());
        entries.into_iter().map(|entry| entry.id.0).collect()
    }

    #[test]
    fn each_entry_is_handed_in_once() {
        let mut reading = Reading::default();
        assert!(reading.changed().is_some());
        reading.put(EntryId(2));
        assert_eq!(ids(&mut reading, &[1, 2, 3]), [1, 3]);
        assert!(reading.changed().is_some());
        assert_eq!(ids(&mut reading, &[3, 4]), [4]);
    }

    #[test]
    fn what_is_deleted_while_a_page_is_read_does_not_come_back() {
        let mut reading = Reading::default();
        reading.put(EntryId(1));
        assert!(reading.changed().is_some());
        // The page was read before this was durable.
        reading.delete(EntryId(1));
        assert_eq!(ids(&mut reading, &[1]), [] as [u64; 0]);
        assert!(reading.known.is_empty());
    }

    /// The first attempt failed, so that the entry was to be read again; then the page of before the second one comes.
    #[test]
    fn what_is_deleted_at_the_second_attempt_does_not_come_back() {
        let mut reading = Reading::default();
        reading.put(EntryId(1));
        assert!(reading.forget(EntryId(1)));
        assert!(reading.changed().is_some());
        reading.delete(EntryId(1));
        assert_eq!(ids(&mut reading, &[1, 2]), [2]);
        assert!(reading.changed().is_some());
    }

    /// The answer to the commit is late: a page has the entry before.
    #[test]
    fn what_the_node_is_putting_there_comes_with_the_answer_alone() {
        let coming = [EntryId(1), EntryId(2)].into();
        let mut reading = Reading::default();
        assert!(reading.changed().is_some());
        reading.place.horizon = 9;
        let (entries, _) = reading.page(page(&[1, 2, 3]), &coming);
        assert_eq!(entries.iter().map(|entry| entry.id.0).collect::<Vec<_>>(), [3]);
        reading.put(EntryId(1));
        assert!(reading.not_put(EntryId(2)), "another owner has changed it since");
        assert_eq!(reading.changed(), Some(Place::default()));
        assert_eq!(ids(&mut reading, &[1, 2, 3]), [2]);
        assert!(!reading.not_put(EntryId(4)));
    }

    #[test]
    fn what_could_not_be_deleted_is_read_again() {
        let mut reading = Reading::default();
        assert!(reading.changed().is_some());
        assert_eq!(ids(&mut reading, &[1, 2]), [1, 2]);
        reading.place.horizon = 9;
        assert!(!reading.forget(EntryId(3)) && reading.forget(EntryId(1)));
        assert_eq!(reading.changed(), Some(Place::default()));
        // The page was asked for before.
        assert!(reading.forget(EntryId(2)));
        let next = Place { horizon: 9, last: 0 };
        reading.page(ShardPage { next, ..page(&[]) }, &BTreeSet::new());
        assert_eq!(reading.changed(), Some(Place::default()));
        assert_eq!(ids(&mut reading, &[1, 2, 3]), [1, 2, 3]);
    }

    #[test]
    fn what_changes_while_a_page_is_read_is_read_after_it() {
        let mut reading = Reading::default();
        assert!(reading.changed().is_some() && reading.changed().is_none());
        assert!(reading.page(page(&[]), &BTreeSet::new()).1, "another page");
        assert!(reading.changed().is_some());
        assert!(!reading.page(page(&[]), &BTreeSet::new()).1);
    }
}
