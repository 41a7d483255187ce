//! security-context of a bind (X.411 8.1.1.1.1.3, 12.1.1.1.1.3): the labels of what an association may carry.

use crate::cms::ContentLabels;
use crate::envelope::clearance::{Clearance, ClearanceEntry, NotCleared, labels_of};
use crate::envelope::security_label::{Classification, SecurityLabel};
use crate::extension::Extensions;
use base::ber::{Element, Error, Fault, Field, Tag, universal as u};
use std::sync::Arc;

/// Most labels of a context (ub-security-labels).
pub const MAX_CONTEXT: usize = 256;

/// SecurityContext: what an association may carry for as long as it lasts.
///
/// A label is in the context if one of its labels has the same policy, the same classification and the same
/// categories; the privacy mark decides nothing. What has no label is in it if it has an empty label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityContext(Arc<[SecurityLabel]>);

/// What is outside a security-context, as a part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutsideContext {
    /// It has no label.
    #[error("it has no security label")]
    Unlabelled,
    /// A label that is not in the context.
    #[error("{0}")]
    Label(SecurityLabel),
    /// It cannot be decided.
    #[error("it has {0}")]
    Unreadable(NotCleared),
}

impl SecurityContext {
    /// From the whole member of a bind, under whichever tag: a SET of 1 to 256 labels.
    ///
    /// # Errors
    /// Malformed, no label, or too many.
    pub fn parse(octets: &[u8]) -> Result<SecurityContext, Error> {
        let (mut labels, element) = (Vec::new(), Element::parse(octets)?);
        let mut members = element.children().field("security-context")?;
        while let Some(label) = members.next().field("security-context")? {
            if labels.len() == MAX_CONTEXT {
                return Err(Fault::TooMany(MAX_CONTEXT as u64)).field("security-context");
            }
            if label.tag != u::SET {
                return Err(Fault::Unexpected(label.tag)).field("security-context");
            }
            labels.push(SecurityLabel::read(&label).field("security-context")?);
        }
        match labels.is_empty() {
            true => Err(Fault::Missing(Tag::universal(17))).field("security-context"),
            false => Ok(SecurityContext(labels.into())),
        }
    }

    /// Whether somebody of this clearance may have it: he must be cleared for each of its labels.
    ///
    /// # Errors
    /// What he is not cleared for.
    pub fn is_within(&self, clearance: &Clearance) -> Result<(), NotCleared> {
        self.0.iter().try_for_each(|label| match is_empty(label) {
            true if clearance.0.contains(&ClearanceEntry::Unlabelled) => Ok(()),
            true => Err(NotCleared::Unlabelled),
            false => clearance.admits_label(label),
        })
    }

    /// Whether the association may carry a message with these extensions, in whose content these labels
    /// were found. All its labels must be in the context.
    ///
    /// # Errors
    /// What is outside.
    pub fn admits(
        &self,
        extensions: &Extensions,
        content: &ContentLabels,
    ) -> Result<(), OutsideContext> {
        let labels = labels_of(extensions, content).map_err(OutsideContext::Unreadable)?;
        if labels.is_empty() && !self.0.iter().any(is_empty) {
            return Err(OutsideContext::Unlabelled);
        }
        let is_in = |label: &SecurityLabel| self.0.iter().any(|own| is_alike(own, label));
        match labels.into_iter().find(|label| !is_in(label)) {
            // The mark is text that its sender chose, and decides nothing.
            Some(label) => {
                Err(OutsideContext::Label(SecurityLabel { privacy_mark: None, ..label }))
            }
            None => Ok(()),
        }
    }
}

fn is_empty(label: &SecurityLabel) -> bool {
    *label == SecurityLabel::default()
}

fn is_alike(own: &SecurityLabel, label: &SecurityLabel) -> bool {
    // A label without a classification is unmarked.
    let class = |label: &SecurityLabel| label.classification.unwrap_or(Classification(0));
    let sorted = |label: &SecurityLabel| {
        let mut categories = label.categories.clone();
        categories.sort_unstable();
        categories.dedup();
        categories
    };
    own.policy == label.policy
        && class(own) == class(label)
        && own.unknown == label.unknown
        && sorted(own) == sorted(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::{Criticality, ExtensionField, number};
    use base::ber::Writer;
    use bytes::Bytes;

    fn octets(labels: &[SecurityLabel]) -> Vec<u8> {
        let mut w = Writer::new();
        w.constructed(Tag::context(3), |w| labels.iter().for_each(|label| label.write(w, u::SET)));
        w.into_vec()
    }

    fn label(text: &str) -> SecurityLabel {
        text.parse().unwrap()
    }

    fn context(labels: &[&str]) -> SecurityContext {
        let labels: Vec<SecurityLabel> = labels
            .iter()
            .map(|text| if text.is_empty() { SecurityLabel::default() } else { label(text) })
            .collect();
        SecurityContext::parse(&octets(&labels)).unwrap()
    }

    fn labelled(text: &str) -> Extensions {
        let kind = number::MESSAGE_SECURITY_LABEL;
        let field = ExtensionField::standard(kind, Criticality::default(), |w| {
            label(text).write(w, u::SET);
        });
        Extensions(vec![field])
    }

    #[test]
    fn its_octets_are_a_set_of_labels() {
        // X.411 MTSBindArgument: security-context [3] SecurityContext, IMPLICIT.
        let one = SecurityContext::parse(&[0xa3, 8, 0x31, 6, 6, 1, 42, 2, 1, 4]).unwrap();
        assert_eq!(one, context(&["1.2/secret"]));
        for bad in [&[0xa3, 0][..], &[0x83, 1, 1], &[0xa3, 2, 2, 0], &[0xa3, 3, 0x31, 0], &[]] {
            assert!(SecurityContext::parse(bad).is_err(), "{bad:?}");
        }
        let many = vec![SecurityLabel::default(); MAX_CONTEXT + 1];
        assert!(SecurityContext::parse(&octets(&many)).is_err());
        assert!(SecurityContext::parse(&octets(&many[1..])).is_ok());
    }

    #[test]
    fn it_is_within_a_clearance_that_has_all_of_it() {
        let clearance = |entries: &[&str]| {
            Clearance(entries.iter().map(|text| text.parse().unwrap()).collect())
        };
        let secret = clearance(&["1.2.3/secret", "unlabelled"]);
        assert_eq!(context(&["1.2.3/secret", "1.2.3/restricted", ""]).is_within(&secret), Ok(()));
        let why = context(&["1.2.3/secret", "1.2.3/top-secret"]).is_within(&secret).unwrap_err();
        assert_eq!(why.to_string(), "top-secret");
        let labelled = clearance(&["1.2.3/secret", "/secret"]);
        assert_eq!(context(&[""]).is_within(&labelled), Err(NotCleared::Unlabelled));
    }

    #[test]
    fn a_message_is_in_it_with_all_its_labels() {
        let context = context(&["1.2.3/secret", "1.2.4/restricted/MARK"]);
        let none = ContentLabels::default();
        for (text, expected) in [
            ("1.2.3/secret", true),
            ("1.2.3/secret/ANY MARK", true),
            ("1.2.4/restricted", true),
            // A context lists labels; it is not a ceiling.
            ("1.2.3/restricted", false),
            ("1.2.4/secret", false),
            ("/secret", false),
        ] {
            assert_eq!(context.admits(&labelled(text), &none).is_ok(), expected, "{text}");
        }
        assert_eq!(context.admits(&Extensions::default(), &none), Err(OutsideContext::Unlabelled));
        let mut w = Writer::new();
        label("1.2.4/secret").write(&mut w, u::SET);
        let inside = ContentLabels { labels: vec![w.into_vec().into()], unreadable: false };
        let why = context.admits(&labelled("1.2.3/secret"), &inside).unwrap_err();
        assert_eq!(why.to_string(), "1.2.4/secret");
        let why = context.admits(&labelled("1.2.3/restricted/MARK"), &none).unwrap_err();
        assert_eq!(why.to_string(), "1.2.3/restricted");
        let unreadable = ContentLabels { unreadable: true, ..none };
        assert!(context.admits(&labelled("1.2.3/secret"), &unreadable).is_err());
    }

    #[test]
    fn categories_count_in_any_order() {
        let category = |n: u8| Bytes::copy_from_slice(&[0x30, 8, 0x80, 1, 42, 0xa1, 3, 2, 1, n]);
        let with = |categories: Vec<Bytes>| SecurityLabel { categories, ..label("1.2.3/secret") };
        let own = with(vec![category(1), category(2)]);
        assert!(is_alike(&own, &with(vec![category(2), category(1)])));
        assert!(!is_alike(&own, &with(vec![category(2)])));
        let empty = context(&[""]);
        assert_eq!(empty.admits(&Extensions::default(), &ContentLabels::default()), Ok(()));
    }
}
