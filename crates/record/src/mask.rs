//! Passwords in the octets of associations, found as they pass and masked at equal length.
//!
//! They stand in the bind, in the user data of the CONNECT and the ACCEPT, and on P3 and P7 in the change of
//! credentials. The octets may be divided anywhere, so each direction of an association has a reader of its
//! own: TPKT and COTP (`transport`), session (`session`), BER (`scan`). In a bind an octet stays only where it
//! is known to be harmless (`grammar`): what is not known is overwritten. Of a bind that cannot be read all is
//! overwritten that the same input has, and all user data after it: the node refuses it as well.
//!
//! A node compares passwords that were presented: those that were right, and those that failed, are known by
//! their digests. So the mask of a password follows from it, with a key that is nowhere kept (`cipher`).

mod cipher;
mod grammar;
mod operation;
mod scan;
mod session;
mod transport;

pub use cipher::Key;

use base::AssociationId;
use bytes::Bytes;
use cipher::Cipher;
use std::collections::BTreeMap;
use transport::Transport;

/// Octets that stand in the place of others: where, in order, and which.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Masked {
    all: Vec<(usize, u8)>,
    /// What of it was overwritten: from where, and how far. The same octet may be in several.
    blanks: Vec<(usize, usize)>,
}

impl Masked {
    fn octet(&mut self, at: usize, octet: u8) {
        self.all.push((at, octet));
    }

    /// What cannot be read is overwritten.
    fn blank(&mut self, from: usize, length: usize) {
        let end = from.saturating_add(length);
        match self.blanks.last_mut() {
            Some(last) if last.1 == from => last.1 = end,
            _ => self.blanks.push((from, end)),
        }
        self.all.extend((from..end).map(|at| (at, 0)));
    }

    /// Whether nothing is masked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Octets that were overwritten, and are not masks of a password.
    #[must_use]
    pub fn blanked(&self) -> u64 {
        let mut blanks = self.blanks.clone();
        blanks.sort_unstable();
        let count = blanks.iter().fold((0, 0), |(count, reached), (from, end)| {
            let new = end.saturating_sub(reached.max(*from));
            (count + new, reached.max(*end))
        });
        count.0 as u64
    }

    /// Puts the masks into a copy of the octets that begins at `from`.
    pub fn put_into(&self, copy: &mut [u8], from: usize) {
        for (at, octet) in &self.all {
            if let Some(place) = copy.get_mut(from + at) {
                *place = *octet;
            }
        }
    }

    /// The octets with their masks.
    #[must_use]
    pub fn copy(&self, octets: &Bytes) -> Bytes {
        if self.is_empty() {
            return octets.clone();
        }
        let mut copy = octets.to_vec();
        self.put_into(&mut copy, 0);
        copy.into()
    }
}

/// The readers of one direction of all associations.
#[derive(Debug)]
pub struct Masks {
    cipher: Cipher,
    streams: BTreeMap<AssociationId, Transport>,
}

impl Masks {
    /// For what others present: the key is of this recording alone, and is kept nowhere.
    #[must_use]
    pub fn of_others(key: Key) -> Masks {
        Masks { cipher: Cipher::Keyed(key), streams: BTreeMap::new() }
    }

    /// For what we present ourselves: every octet has the same mask, as in [`guard::Secret`].
    #[must_use]
    pub fn of_ours() -> Masks {
        Masks { cipher: Cipher::Constant, streams: BTreeMap::new() }
    }

    /// An association with a user: credentials may be changed on it.
    pub fn of_user(&mut self, association: AssociationId) {
        self.streams.insert(association, Transport::new(true));
    }

    /// An association is over.
    pub fn forget(&mut self, association: AssociationId) {
        self.streams.remove(&association);
    }

    /// Finds the passwords in the next octets.
    pub fn find(&mut self, association: AssociationId, octets: &[u8]) -> Masked {
        let stream = self.streams.entry(association).or_insert_with(|| Transport::new(false));
        let mut masked = Masked::default();
        stream.read(octets, &self.cipher, &mut masked);
        masked
    }
}
