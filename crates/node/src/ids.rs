//! Names that node and edge use for things.

use base::PeerId;
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// A configured listener ([`crate::config::Listener::id`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListenerId(pub u32);

/// Pairs an output with the input that answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Whose password is to be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// A peer MTA that binds to us.
    Peer(PeerId),
    /// A user, by the canonical text of the O/R address.
    User(String),
}

/// Octets that no log, dump or status ever shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub Bytes);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Digest of a name or password as presented. Whoever binds chooses the length of both, so only this
/// is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameDigest([u8; 16]);

impl NameDigest {
    /// Of the name of an MTA or, in canonical form, of a user.
    pub(crate) fn new(text: &str) -> NameDigest {
        NameDigest::from_octets(text.as_bytes())
    }

    /// Of a password.
    pub(crate) fn from_octets(octets: &[u8]) -> NameDigest {
        let digest: [u8; 32] = Sha256::digest(octets).into();
        let mut name = [0; 16];
        name.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        NameDigest(name)
    }
}
