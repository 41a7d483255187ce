use super::Fault;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;

/// An OBJECT IDENTIFIER, kept as its content octets (X.690 8.19).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Oid(SmallVec<[u8; 16]>);

impl Oid {
    /// From content octets.
    ///
    /// # Errors
    /// Empty, longer than 64 octets, unfinished, or with a padded arc.
    pub fn from_content(content: &[u8]) -> Result<Oid, Fault> {
        let bad = Fault::Value("OBJECT IDENTIFIER (X.690 8.19)");
        let complete = content.last().is_some_and(|b| b & 0x80 == 0) && content.len() <= 64;
        let mut start = true;
        for b in content {
            if start && *b == 0x80 {
                return Err(bad);
            }
            start = b & 0x80 == 0;
        }
        if complete { Ok(Oid(SmallVec::from_slice(content))) } else { Err(bad) }
    }

    /// From arcs, of which the first is 0 to 2 and there are two or more.
    pub fn from_arcs(arcs: &[u64]) -> Option<Oid> {
        let [first, second, rest @ ..] = arcs else { return None };
        if *first > 2 || (*first < 2 && *second > 39) || *second > u64::MAX - 80 {
            return None;
        }
        // asn1-rs encodes the first two arcs only where the second is below 40, as X.690 8.19.4
        // wants them for 0 and 1; so they are added up here.
        let arcs: SmallVec<[u64; 16]> =
            std::iter::once(&(first * 40 + second)).chain(rest).copied().collect();
        let encoded = asn1_rs::Oid::from_relative(&arcs).ok()?;
        Some(Oid(SmallVec::from_slice(encoded.as_bytes())))
    }

    /// Content octets.
    pub fn content(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut arc: u128 = 0;
        let mut first = true;
        for b in &self.0 {
            arc = (arc & (u128::MAX >> 8)) << 7 | u128::from(b & 0x7f);
            if b & 0x80 != 0 {
                continue;
            }
            if first {
                let root = (arc / 40).min(2);
                write!(f, "{root}.{}", arc - root * 40)?;
                first = false;
            } else {
                write!(f, ".{arc}")?;
            }
            arc = 0;
        }
        Ok(())
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Oid {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Oid, Fault> {
        let arcs: Option<Vec<u64>> = text.split('.').map(|a| a.parse().ok()).collect();
        arcs.and_then(|a| Oid::from_arcs(&a)).ok_or(Fault::Value("OBJECT IDENTIFIER"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_octets_agree() {
        for (text, octets) in [
            ("2.6.0.1.6", &[0x56, 0, 1, 6][..]),
            ("2.1.1", &[0x51, 1]),
            ("1.3.26.0.4406.0.8.0", &[0x2b, 26, 0, 0xa2, 0x36, 0, 8, 0]),
        ] {
            let oid: Oid = text.parse().unwrap();
            assert_eq!(oid.content(), octets);
            assert_eq!(oid.to_string(), text);
            assert_eq!(Oid::from_content(octets), Ok(oid));
        }
        for bad in [&[][..], &[0x80, 1], &[0x56, 0x80]] {
            assert!(Oid::from_content(bad).is_err());
        }
        assert!("3.1".parse::<Oid>().is_err() && "1.40".parse::<Oid>().is_err());
    }
}
