//! SHA-256 of octets that are never held whole.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;

/// A SHA-256, as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Of these octets.
    #[must_use]
    pub fn from_octets(octets: &[u8]) -> Digest {
        let mut summed = Summed::default();
        summed.take(octets);
        summed.finish().1
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

/// The text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256: 64 hexadecimal digits")]
pub struct NotDigest;

impl TryFrom<String> for Digest {
    type Error = NotDigest;

    fn try_from(text: String) -> Result<Digest, NotDigest> {
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(NotDigest);
        }
        let mut octets = [0; 32];
        for (at, octet) in octets.iter_mut().enumerate() {
            let digits = text.get(2 * at..2 * at + 2).ok_or(NotDigest)?;
            *octet = u8::from_str_radix(digits, 16).map_err(|_| NotDigest)?;
        }
        Ok(Digest(octets))
    }
}

/// Octets as they come: how many, and their digest.
#[derive(Clone, Debug, Default)]
pub struct Summed {
    length: u64,
    hasher: Sha256,
}

impl Summed {
    /// The next octets.
    pub fn take(&mut self, octets: &[u8]) {
        self.length += octets.len() as u64;
        self.hasher.update(octets);
    }

    /// How many, and their digest.
    #[must_use]
    pub fn finish(self) -> (u64, Digest) {
        (self.length, Digest(self.hasher.finalize().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_hexadecimal_and_the_same_however_octets_come() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::from_octets(b"abc").to_string(), text);
        assert_eq!(Digest::try_from(text.to_owned()), Ok(Digest::from_octets(b"abc")));
        let mut summed = Summed::default();
        [&b"a"[..], b"", b"bc"].iter().for_each(|octets| summed.take(octets));
        assert_eq!(summed.finish(), (3, Digest::from_octets(b"abc")));
        for bad in ["", "ab", &text.replace('b', "g"), &format!("+{}", &text[1..])] {
            assert_eq!(Digest::try_from(bad.to_owned()), Err(NotDigest), "{bad}");
        }
    }
}
