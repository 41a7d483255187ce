//! Clearances: the security labels that a peer or a user may have to do with (X.411 10.2, the
//! security policy in force).
//!
//! A clearance is a list of what it admits, as text:
//!
//! * `POLICY/CLASSIFICATION`: labels of this policy up to this classification.
//! * The same with `+TYPE`, `+TYPE=HEX` or `+*`: labels with these security-categories, too: all values
//!   of the type, the one value (contents of `[1]`, in hexadecimal), or all categories.
//! * `unlabelled`: messages without a label.
//!
//! What is not listed is not admitted: another policy, no policy where the label has one, a category
//! that is not named, a member of the label that no edition of X.411 defines.

use crate::cms::ContentLabels;
use crate::envelope::security_label::{Classification, LabelError, SecurityLabel};
use crate::extension::{ExtensionType, Extensions, number};
use base::ber::{Element, Error, Oid, Tag};
use bytes::Bytes;
use std::fmt;
use std::str::FromStr;

/// Most entries of a clearance.
pub const MAX_ENTRIES: usize = 64;

/// The word for messages without a label.
const UNLABELLED: &str = "unlabelled";

/// Highest classification that has a place in X.411's hierarchy: top-secret. What is above belongs to
/// the policy and need have no order.
const TOP: Classification = Classification(5);

/// What somebody is cleared for.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Clearance(pub Vec<ClearanceEntry>);

/// One line of a clearance.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ClearanceEntry {
    /// Messages without a label.
    Unlabelled,
    /// Labels of one policy.
    Labels(ClearedLabels),
}

/// Labels of one policy.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ClearedLabels {
    /// The security-policy-identifier; `None` for labels without one.
    pub policy: Option<Oid>,
    /// The highest security-classification. Above top-secret this one only.
    pub highest: Classification,
    /// The security-categories that may be there.
    pub categories: Vec<ClearedCategory>,
}

/// security-categories that a label may have.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ClearedCategory {
    /// All.
    Any,
    /// All of a type.
    Type(Oid),
    /// One value of a type: the contents of its `[1]`.
    Value(Oid, Bytes),
}

/// What a clearance lacks, as the end of "not cleared for ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCleared {
    /// It has no label.
    #[error("messages without a security label")]
    Unlabelled,
    /// Its label cannot be read.
    #[error("a security label that cannot be read ({0})")]
    Unreadable(Error),
    /// The label inside its signed content cannot be read.
    #[error("a signed content whose security label cannot be read")]
    Content,
    /// Its policy.
    #[error("security policy {0}")]
    Policy(Oid),
    /// It names no policy.
    #[error("security labels without a policy")]
    NoPolicy,
    /// Its classification.
    #[error("{0}")]
    Classification(Classification),
    /// A category.
    #[error("security category {0}")]
    Category(Oid),
    /// Something that this program does not know.
    #[error("a member of the security label that is not known here")]
    Unknown,
}

impl Clearance {
    /// Whether a message with these extensions is admitted, in whose content these labels were found. All its
    /// labels must be.
    ///
    /// # Errors
    /// What it is not cleared for.
    pub fn admits(
        &self,
        extensions: &Extensions,
        content: &ContentLabels,
    ) -> Result<(), NotCleared> {
        let labels = labels_of(extensions, content)?;
        if labels.is_empty() && !self.0.contains(&ClearanceEntry::Unlabelled) {
            return Err(NotCleared::Unlabelled);
        }
        labels.iter().try_for_each(|label| self.admits_label(label))
    }

    /// Whether this label is admitted.
    ///
    /// # Errors
    /// What it is not cleared for: the reason of the entry that comes closest.
    pub fn admits_label(&self, label: &SecurityLabel) -> Result<(), NotCleared> {
        let of_policy = self.0.iter().filter_map(|entry| match entry {
            ClearanceEntry::Labels(cleared) => Some(cleared).filter(|c| c.policy == label.policy),
            ClearanceEntry::Unlabelled => None,
        });
        let mut nearest = match &label.policy {
            Some(policy) => NotCleared::Policy(policy.clone()),
            None => NotCleared::NoPolicy,
        };
        for cleared in of_policy {
            match cleared.admits(label) {
                Ok(()) => return Ok(()),
                // A category is looked at only below a classification that is high enough.
                Err(NotCleared::Classification(_))
                    if matches!(nearest, NotCleared::Category(_)) => {}
                Err(why) => nearest = why,
            }
        }
        Err(nearest)
    }
}

/// All labels of a message with these extensions, in whose content these were found.
///
/// # Errors
/// One cannot be read: who is not cleared for it is not known.
pub fn labels_of(
    extensions: &Extensions,
    content: &ContentLabels,
) -> Result<Vec<SecurityLabel>, NotCleared> {
    let is_label = ExtensionType::Standard(number::MESSAGE_SECURITY_LABEL);
    let fields = extensions.0.iter().filter(|field| field.kind == is_label);
    let outer =
        fields.map(|field| SecurityLabel::parse(&field.value).map_err(NotCleared::Unreadable));
    let inner = content
        .labels
        .iter()
        .map(|label| SecurityLabel::parse_ess(label).map_err(|_| NotCleared::Content));
    let labels = outer.chain(inner).collect::<Result<_, _>>()?;
    if content.unreadable { Err(NotCleared::Content) } else { Ok(labels) }
}

impl ClearedLabels {
    fn admits(&self, label: &SecurityLabel) -> Result<(), NotCleared> {
        // A label without a classification is unmarked.
        let class = label.classification.unwrap_or(Classification(0));
        let high_enough = class == self.highest || (class < self.highest && self.highest <= TOP);
        if !high_enough {
            return Err(NotCleared::Classification(class));
        }
        if !label.unknown.is_empty() {
            return Err(NotCleared::Unknown);
        }
        label.categories.iter().try_for_each(|category| self.admits_category(category))
    }

    fn admits_category(&self, category: &Bytes) -> Result<(), NotCleared> {
        if self.categories.contains(&ClearedCategory::Any) {
            return Ok(());
        }
        let (kind, value) = category_of(category).map_err(|_| NotCleared::Unknown)?;
        let admitted = self.categories.iter().any(|cleared| match cleared {
            ClearedCategory::Any => true,
            ClearedCategory::Type(oid) => *oid == kind,
            ClearedCategory::Value(oid, octets) => *oid == kind && *octets == value,
        });
        if admitted { Ok(()) } else { Err(NotCleared::Category(kind)) }
    }
}

/// SecurityCategory: its type and the contents of its value.
fn category_of(octets: &[u8]) -> Result<(Oid, Bytes), Error> {
    const TYPE: Tag = Tag::context(0);
    const VALUE: Tag = Tag::context(1);
    let (mut kind, mut value) = (None, Bytes::new());
    let element = Element::parse(octets)?;
    let mut members = element.children()?;
    while let Some(member) = members.next()? {
        match member.tag {
            TYPE => kind = Some(member.oid()?),
            VALUE => value = Bytes::copy_from_slice(member.content),
            other => return Err(base::ber::Fault::Unexpected(other).into()),
        }
    }
    kind.map(|kind| (kind, value)).ok_or_else(|| base::ber::Fault::Missing(TYPE).into())
}

/// Why a text is not an entry of a clearance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClearanceError {
    /// The policy or the classification.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// A privacy mark.
    #[error("{0:?} has a privacy mark, which clears nobody: write POLICY/CLASSIFICATION")]
    Mark(String),
    /// A category.
    #[error("{0:?} is not a security category: write +OID, +OID=HEX or +*")]
    Category(String),
}

/// Reads `unlabelled` or `POLICY/CLASSIFICATION`, with `+` and a category any number of times.
impl FromStr for ClearanceEntry {
    type Err = ClearanceError;

    fn from_str(text: &str) -> Result<ClearanceEntry, ClearanceError> {
        if text.trim().eq_ignore_ascii_case(UNLABELLED) {
            return Ok(ClearanceEntry::Unlabelled);
        }
        let mut parts = text.split('+');
        let label: SecurityLabel = parts.next().unwrap_or_default().trim().parse()?;
        if label.privacy_mark.is_some() {
            return Err(ClearanceError::Mark(text.to_owned()));
        }
        let categories = parts.map(|part| {
            category(part.trim()).ok_or_else(|| ClearanceError::Category(part.trim().to_owned()))
        });
        Ok(ClearanceEntry::Labels(ClearedLabels {
            policy: label.policy,
            highest: label.classification.unwrap_or(Classification(0)),
            categories: categories.collect::<Result<_, _>>()?,
        }))
    }
}

fn category(text: &str) -> Option<ClearedCategory> {
    match text.split_once('=') {
        None if text == "*" => Some(ClearedCategory::Any),
        None => Some(ClearedCategory::Type(text.parse().ok()?)),
        Some((kind, value)) => {
            let octets = octets(value)?;
            Some(ClearedCategory::Value(kind.parse().ok()?, octets))
        }
    }
}

fn octets(hex: &str) -> Option<Bytes> {
    let digits = hex.bytes().map(|c| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok()));
    let digits = digits.collect::<Option<Vec<u8>>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

impl fmt::Display for ClearanceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClearanceEntry::Labels(labels) = self else { return f.write_str(UNLABELLED) };
        if let Some(policy) = &labels.policy {
            write!(f, "{policy}")?;
        }
        write!(f, "/{}", labels.highest)?;
        labels.categories.iter().try_for_each(|category| match category {
            ClearedCategory::Any => f.write_str(" +*"),
            ClearedCategory::Type(oid) => write!(f, " +{oid}"),
            ClearedCategory::Value(oid, value) => {
                write!(f, " +{oid}=")?;
                value.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::{Criticality, ExtensionField};
    use base::ber::{Writer, universal as u};
    use proptest::prelude::*;

    static NONE: ContentLabels = ContentLabels { labels: Vec::new(), unreadable: false };

    fn clearance(entries: &[&str]) -> Clearance {
        Clearance(entries.iter().map(|text| text.parse().unwrap()).collect())
    }

    fn labelled(labels: &[&SecurityLabel]) -> Extensions {
        let field = |label: &&SecurityLabel| {
            let kind = number::MESSAGE_SECURITY_LABEL;
            ExtensionField::standard(kind, Criticality::default(), |w| label.write(w, u::SET))
        };
        Extensions(labels.iter().map(field).collect())
    }

    fn label(text: &str) -> SecurityLabel {
        text.parse().unwrap()
    }

    /// A category of this type with a value of these octets.
    fn category(kind: &str, value: &[u8]) -> Bytes {
        let mut w = Writer::new();
        w.constructed(u::SEQUENCE, |w| {
            w.oid(Tag::context(0), &kind.parse().unwrap());
            w.constructed(Tag::context(1), |w| w.raw(value));
        });
        w.into_vec().into()
    }

    #[test]
    fn policy_and_classification_decide() {
        let cleared = clearance(&["1.2.3/secret", "1.2.4/restricted", "/unclassified", "1.2.5/9"]);
        let answer = |text: &str| match cleared.admits(&labelled(&[&label(text)]), &NONE) {
            Ok(()) => "admitted".to_owned(),
            Err(why) => why.to_string(),
        };
        for text in ["1.2.3/secret", "1.2.3/0", "1.2.4/restricted", "/1", "1.2.5/9"] {
            assert_eq!(answer(text), "admitted", "{text}");
        }
        assert_eq!(answer("1.2.3/top-secret"), "top-secret");
        assert_eq!(answer("1.2.4/confidential"), "confidential");
        assert_eq!(answer("/restricted"), "restricted");
        assert_eq!(answer("1.2.9/0"), "security policy 1.2.9");
        // Above top-secret there is no order.
        assert_eq!(answer("1.2.5/8"), "8");
        assert_eq!(answer("1.2.5/secret"), "secret");
        let none =
            clearance(&["1.2.3/secret"]).admits(&labelled(&[&label("/0")]), &NONE).unwrap_err();
        assert_eq!(none.to_string(), "security labels without a policy");
        // A label without a classification is unmarked.
        let bare = SecurityLabel { classification: None, ..label("1.2.4/0") };
        assert_eq!(cleared.admits(&labelled(&[&bare]), &NONE), Ok(()));
    }

    #[test]
    fn what_has_no_label_passes_only_where_that_is_listed() {
        let none = Extensions::default();
        assert_eq!(clearance(&["/secret"]).admits(&none, &NONE), Err(NotCleared::Unlabelled));
        assert_eq!(clearance(&["/secret", "Unlabelled"]).admits(&none, &NONE), Ok(()));
        let secret = labelled(&[&label("/secret")]);
        assert_eq!(clearance(&["unlabelled"]).admits(&secret, &NONE), Err(NotCleared::NoPolicy));
        assert_eq!(clearance(&[]).admits(&none, &NONE), Err(NotCleared::Unlabelled));
    }

    #[test]
    fn every_category_must_be_cleared() {
        let with = |categories: Vec<Bytes>| SecurityLabel { categories, ..label("1.2.3/secret") };
        let both = with(vec![category("1.2.7", &[2, 1, 1]), category("1.2.8", &[2, 1, 5])]);
        let why = |entry: &str| clearance(&[entry]).admits_label(&both).err();
        let unlisted = |oid: &str| Some(NotCleared::Category(oid.parse().unwrap()));
        assert_eq!(why("1.2.3/secret"), unlisted("1.2.7"));
        assert_eq!(why("1.2.3/secret +1.2.7"), unlisted("1.2.8"));
        assert_eq!(why("1.2.3/secret +1.2.7 +1.2.8=020104"), unlisted("1.2.8"));
        assert_eq!(why("1.2.3/secret +1.2.7 +1.2.8=020105"), None);
        assert_eq!(why("1.2.3/secret +*"), None);
        // The entry that comes closest gives the reason.
        let two = clearance(&["1.2.3/secret", "1.2.3/restricted +*"]);
        assert_eq!(two.admits_label(&both).err(), unlisted("1.2.7"));
        for strange in [&[0x30, 0][..], &[0x30, 3, 0x85, 1, 1], &[4, 1, 1], &[0x30, 5]] {
            let strange = with(vec![Bytes::copy_from_slice(strange)]);
            let refused = clearance(&["1.2.3/secret +1.2.7"]).admits_label(&strange);
            assert_eq!(refused, Err(NotCleared::Unknown));
        }
    }

    #[test]
    fn a_label_that_hides_something_is_not_admitted() {
        let cleared = clearance(&["/secret +*", "unlabelled"]);
        let unknown = SecurityLabel { unknown: vec![vec![0x85, 1, 1].into()], ..label("/0") };
        assert_eq!(cleared.admits(&labelled(&[&unknown]), &NONE), Err(NotCleared::Unknown));
        // Of two labels the second counts as much.
        let two = labelled(&[&label("/0"), &label("/top-secret")]);
        assert!(matches!(cleared.admits(&two, &NONE), Err(NotCleared::Classification(_))));
        let mut broken = labelled(&[&label("/0")]);
        for field in &mut broken.0 {
            field.value = Bytes::from_static(&[0x31, 3, 2, 1]);
        }
        assert!(matches!(cleared.admits(&broken, &NONE), Err(NotCleared::Unreadable(_))));
    }

    #[test]
    fn the_label_inside_the_content_counts_as_that_of_the_envelope() {
        let cleared = clearance(&["1.2.3/secret", "1.2.4/restricted"]);
        let inside = |text: &str| {
            let mut w = Writer::new();
            label(text).write(&mut w, u::SET);
            ContentLabels { labels: vec![w.into_vec().into()], unreadable: false }
        };
        let none = Extensions::default();
        assert_eq!(cleared.admits(&none, &inside("1.2.3/secret")), Ok(()));
        let outer = labelled(&[&label("1.2.3/0")]);
        assert_eq!(cleared.admits(&outer, &inside("1.2.4/restricted")), Ok(()));
        let why = cleared.admits(&outer, &inside("1.2.4/secret")).unwrap_err();
        assert_eq!(why, NotCleared::Classification(Classification(4)));
        let why = cleared.admits(&labelled(&[&label("1.2.3/5")]), &inside("1.2.4/0")).unwrap_err();
        assert_eq!(why, NotCleared::Classification(Classification(5)));
        // Without a policy it is not an ESSSecurityLabel.
        let all = clearance(&["/5 +*", "1.2.3/5 +*", "unlabelled"]);
        assert_eq!(all.admits(&outer, &inside("/0")), Err(NotCleared::Content));
        let malformed = ContentLabels { unreadable: true, ..NONE.clone() };
        assert_eq!(all.admits(&none, &malformed), Err(NotCleared::Content));
    }

    #[test]
    fn entries_are_read_and_written_and_mistakes_are_named() {
        for text in ["unlabelled", "/secret", "1.2.3/9", "1.2.3/secret +1.2.4 +1.2.5=0201ff +*"] {
            let entry: ClearanceEntry = text.parse().unwrap();
            assert_eq!(entry.to_string(), text);
        }
        let error = |text: &str| text.parse::<ClearanceEntry>().unwrap_err().to_string();
        assert!(error("secret").contains("has no slash"));
        assert!(error("/secret/MARK").contains("privacy mark"));
        for bad in ["/secret +", "/secret +x", "/secret +1.2.3=0", "/secret +1.2.3=0g", "/0 +1.2=é"]
        {
            assert!(error(bad).contains("is not a security category"), "{bad}");
        }
    }

    proptest! {
        /// Compared with a model: below or at the highest, the same policy, no category that is not
        /// cleared.
        #[test]
        fn agrees_with_a_model(
            entries in proptest::collection::vec((0u64..3, 0i64..8, any::<bool>()), 0..5),
            policy in 0u64..3,
            class in 0i64..8,
            has_category in any::<bool>(),
        ) {
            let text = |(policy, highest, any): &(u64, i64, bool)| {
                let any = if *any { " +*" } else { "" };
                format!("1.2.{policy}/{highest}{any}").parse::<ClearanceEntry>().unwrap()
            };
            let cleared = Clearance(entries.iter().map(text).collect());
            let categories = if has_category { vec![category("1.9", &[5, 0])] } else { Vec::new() };
            let label = SecurityLabel { categories, ..label(&format!("1.2.{policy}/{class}")) };
            let expected = entries.iter().any(|(of, highest, any)| {
                let ordered = *highest <= 5 && class <= *highest;
                *of == policy && (ordered || class == *highest) && (*any || !has_category)
            });
            prop_assert_eq!(cleared.admits(&labelled(&[&label]), &NONE).is_ok(), expected);
        }
    }
}
