//! SecurityLabel (X.411 8.5.9): the policy, and how the message is classified under it.

use crate::extension::{ExtensionType, Extensions, number};
use base::ber::{Element, Error, Fault, Field, Member, Oid, Tag, Writer, read_set, universal as u};
use bytes::Bytes;
use std::fmt;
use std::str::FromStr;

/// Highest security-classification (ub-integer-options of X.411).
pub const MAX_CLASSIFICATION: i64 = 256;
/// Longest privacy-mark, characters (ub-privacy-mark-length).
pub const MAX_PRIVACY_MARK: usize = 128;
/// Most security-categories (ub-security-categories).
pub const MAX_CATEGORIES: usize = 64;

/// security-classification: 0 to 5 have names in X.411, the rest belongs to the policy.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Classification(pub i64);

/// The names that X.411 gives, by number.
const NAMES: [&str; 6] =
    ["unmarked", "unclassified", "restricted", "confidential", "secret", "top-secret"];

/// The name of X.411, else the number.
impl fmt::Display for Classification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = usize::try_from(self.0).ok().and_then(|n| NAMES.get(n));
        match name {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// SecurityLabel. Every member is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityLabel {
    /// security-policy-identifier.
    pub policy: Option<Oid>,
    /// security-classification, 0 to 256.
    pub classification: Option<Classification>,
    /// privacy-mark, Printable, 1 to 128 characters.
    pub privacy_mark: Option<String>,
    /// security-categories, each as a whole element: their types belong to the policy.
    pub categories: Vec<Bytes>,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

fn classification(e: &Element<'_>) -> Result<Classification, Error> {
    match e.integer()? {
        value @ 0..=MAX_CLASSIFICATION => Ok(Classification(value)),
        _ => Err(Fault::Value("security-classification, 0 to 256").into()),
    }
}

fn categories(e: &Element<'_>) -> Result<Vec<Bytes>, Error> {
    let (mut all, mut members) = (Vec::new(), e.children()?);
    while let Some(category) = members.next()? {
        if all.len() == MAX_CATEGORIES {
            return Err(Fault::TooMany(MAX_CATEGORIES as u64).into());
        }
        all.push(Bytes::copy_from_slice(category.raw));
    }
    Ok(all)
}

impl SecurityLabel {
    /// Reads the SET, under whichever tag.
    ///
    /// # Errors
    /// Malformed BER, or a value out of its range; the member is named.
    pub fn read(e: &Element<'_>) -> Result<SecurityLabel, Error> {
        let mut policy = Member::new("security-policy-identifier");
        let mut class = Member::new("security-classification");
        let mut mark = Member::new("privacy-mark");
        let mut all = Member::new("security-categories");
        let unknown = read_set(e, |m| match m.tag {
            u::OID => policy.last(m, Element::oid),
            u::INTEGER => class.last(m, classification),
            u::PRINTABLE_STRING => mark.last(m, Element::text),
            u::SET => all.last(m, categories),
            _ => Ok(false),
        })?;
        Ok(SecurityLabel {
            policy: policy.optional(),
            classification: class.optional(),
            privacy_mark: mark.optional(),
            categories: all.or_default(),
            unknown: unknown.iter().map(|m| Bytes::copy_from_slice(m.raw)).collect(),
        })
    }

    /// From one whole element, such as the value of message-security-label.
    ///
    /// # Errors
    /// As [`SecurityLabel::read`].
    pub fn parse(octets: &[u8]) -> Result<SecurityLabel, Error> {
        SecurityLabel::read(&Element::parse(octets)?).field("security-label")
    }

    /// From one whole ESSSecurityLabel (RFC 2634 3.2): it must have a policy, and its privacy mark may be a
    /// UTF8String, of any length.
    ///
    /// # Errors
    /// As [`SecurityLabel::read`]; no policy.
    pub fn parse_ess(octets: &[u8]) -> Result<SecurityLabel, Error> {
        const UTF8_STRING: Tag = Tag::universal(12);
        let element = Element::parse(octets).field("ESSSecurityLabel")?;
        if element.tag != u::SET {
            return Err(Fault::Unexpected(element.tag)).field("ESSSecurityLabel");
        }
        let mut label = SecurityLabel::read(&element).field("ESSSecurityLabel")?;
        if label.policy.is_none() {
            return Err(Fault::Missing(u::OID)).field("ESSSecurityLabel");
        }
        // The second form of ESSPrivacyMark, once, and not beside the first.
        if let [mark] = &label.unknown[..]
            && label.privacy_mark.is_none()
            && let Ok(mark) = Element::parse(mark)
            && mark.tag == UTF8_STRING
        {
            label.privacy_mark = Some(mark.text().field("privacy-mark")?);
            label.unknown.clear();
        }
        Ok(label)
    }

    /// Appends the SET under `tag`, which is SET or the one that replaces it.
    pub fn write(&self, w: &mut Writer, tag: Tag) {
        w.constructed(tag, |w| {
            if let Some(policy) = &self.policy {
                w.oid(u::OID, policy);
            }
            if let Some(Classification(value)) = self.classification {
                w.integer(u::INTEGER, value);
            }
            if let Some(mark) = &self.privacy_mark {
                w.string(u::PRINTABLE_STRING, mark);
            }
            if !self.categories.is_empty() {
                w.constructed(u::SET, |w| self.categories.iter().for_each(|c| w.raw(c)));
            }
            self.unknown.iter().for_each(|member| w.raw(member));
        });
    }
}

/// The message-security-labels of an envelope, which may have several: the highest classification first, and
/// before it those that cannot be read.
pub fn of_envelope(extensions: &Extensions) -> Vec<Result<SecurityLabel, Error>> {
    let is_label = ExtensionType::Standard(number::MESSAGE_SECURITY_LABEL);
    let labels = extensions.0.iter().filter(|field| field.kind == is_label);
    let mut all: Vec<_> = labels.map(|field| SecurityLabel::parse(&field.value)).collect();
    // A label without a classification is unmarked.
    let rank = |label: &Result<SecurityLabel, Error>| match label {
        Ok(label) => label.classification.map_or(0, |classification| classification.0),
        Err(_) => i64::MAX,
    };
    all.sort_by_key(|label| std::cmp::Reverse(rank(label)));
    all
}

/// `POLICY/CLASSIFICATION/MARK`, as [`SecurityLabel::from_str`] reads it; categories are counted.
impl fmt::Display for SecurityLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(policy) = &self.policy {
            write!(f, "{policy}")?;
        }
        f.write_str("/")?;
        if let Some(classification) = &self.classification {
            write!(f, "{classification}")?;
        }
        if let Some(mark) = &self.privacy_mark {
            write!(f, "/{mark}")?;
        }
        match self.categories.len() {
            0 => Ok(()),
            1 => f.write_str(" (and 1 category)"),
            n => write!(f, " (and {n} categories)"),
        }
    }
}

/// Why a text is not a security label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// No slash.
    #[error("{0:?} has no slash: write POLICY/CLASSIFICATION, as 1.3.26.0.4406.0.5.1/restricted")]
    NoClassification(String),
    /// The policy.
    #[error("{0:?} is not an object identifier")]
    Policy(String),
    /// The classification.
    #[error(
        "{0:?} is not a classification: use unmarked, unclassified, restricted, confidential, secret, \
         top-secret, or a number up to 256"
    )]
    Classification(String),
    /// The privacy mark.
    #[error("privacy mark {0:?}: 1 to 128 characters of PrintableString")]
    Mark(String),
}

/// Reads `POLICY/CLASSIFICATION[/MARK]`: an object identifier or nothing, a name of X.411 or a number,
/// and a privacy mark.
impl FromStr for SecurityLabel {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<SecurityLabel, LabelError> {
        let owned = || text.to_owned();
        let (policy, rest) =
            text.split_once('/').ok_or_else(|| LabelError::NoClassification(owned()))?;
        let (class, mark) = match rest.split_once('/') {
            Some((class, mark)) => (class, Some(mark)),
            None => (rest, None),
        };
        let policy = match policy.trim() {
            "" => None,
            policy => {
                Some(policy.parse::<Oid>().map_err(|_| LabelError::Policy(policy.to_owned()))?)
            }
        };
        if let Some(mark) = mark {
            let allowed = |c: char| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c);
            if !(1..=MAX_PRIVACY_MARK).contains(&mark.len()) || !mark.chars().all(allowed) {
                return Err(LabelError::Mark(mark.to_owned()));
            }
        }
        let named = class.trim().to_ascii_lowercase().replace([' ', '_'], "-");
        let value = match NAMES.iter().position(|name| *name == named) {
            Some(n) => i64::try_from(n).ok(),
            None => named.parse::<i64>().ok().filter(|n| (0..=MAX_CLASSIFICATION).contains(n)),
        };
        let value = value.ok_or_else(|| LabelError::Classification(class.to_owned()))?;
        Ok(SecurityLabel {
            policy,
            classification: Some(Classification(value)),
            privacy_mark: mark.map(str::to_owned),
            ..SecurityLabel::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_these_octets_and_this_text() {
        let text = "1.3.26.0.4406.0.5.1/confidential/RELEASABLE TO X";
        let label: SecurityLabel = text.parse().unwrap();
        let mut w = Writer::new();
        label.write(&mut w, u::SET);
        let octets = [
            &[0x31, 30, 6, 8, 0x2b, 26, 0, 0xa2, 0x36, 0, 5, 1, 2, 1, 3, 19, 15][..],
            b"RELEASABLE TO X",
        ]
        .concat();
        assert_eq!(w.as_slice(), octets);
        assert_eq!(SecurityLabel::parse(&octets).unwrap(), label);
        assert_eq!(label.to_string(), text);
        assert_eq!("/12".parse::<SecurityLabel>().unwrap().to_string(), "/12");
        assert_eq!("/Top Secret".parse::<SecurityLabel>().unwrap().to_string(), "/top-secret");
    }

    #[test]
    fn members_in_any_order_and_unknown_ones_come_back() {
        let octets = [0x31, 16, 0x31, 7, 0x30, 5, 0x80, 1, 0x51, 0x81, 0, 2, 1, 4, 0x85, 2, 1, 2];
        let label = SecurityLabel::parse(&octets).unwrap();
        assert_eq!((label.categories.len(), label.unknown.len()), (1, 1));
        assert_eq!(label.to_string(), "/secret (and 1 category)");
        let mut w = Writer::new();
        label.write(&mut w, u::SET);
        assert_eq!(SecurityLabel::parse(w.as_slice()).unwrap(), label);
    }

    #[test]
    fn mistakes_are_named_and_limits_hold() {
        let error = |text: &str| text.parse::<SecurityLabel>().unwrap_err().to_string();
        assert!(error("secret").contains("has no slash"));
        assert!(error("1.x/secret").contains("object identifier"));
        assert!(error("/mild").contains("top-secret"));
        assert!(error("/257").contains("257"));
        assert!(error("/secret/a_b").contains("privacy mark"));
        assert!(SecurityLabel::parse(&[0x31, 4, 2, 2, 1, 1]).is_err(), "257");
        let many = [[0x31, 0x81, 130].as_slice(), &[0x30, 0].repeat(65)].concat();
        let many = [[0x31, 0x81, 133].as_slice(), &many].concat();
        assert!(SecurityLabel::parse(&many).is_err());
    }
}
