//! Names and passwords as others present them.

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// Octets that no log, dump or status ever shows, and that no recording holds: what is serialised is a mask of
/// the same length.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Secret(pub Bytes);

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Bytes::from(vec![MASK; self.0.len()]).serialize(serializer)
    }
}

/// What stands for each octet of a secret.
pub const MASK: u8 = b'*';

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Digest of a name or password as presented. Whoever binds chooses the length of both, so only this
/// is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameDigest([u8; 16]);

impl NameDigest {
    /// Of the name of an MTA or, in canonical form, of a user.
    pub fn new(text: &str) -> NameDigest {
        NameDigest::from_octets(text.as_bytes())
    }

    /// Of a password.
    pub fn from_octets(octets: &[u8]) -> NameDigest {
        let digest: [u8; 32] = Sha256::digest(octets).into();
        let mut name = [0; 16];
        name.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        NameDigest(name)
    }
}
