//! Attribute types: identifiers, names, syntaxes, and the values that a store generates (X.413 clause
//! 11, X.420 Annex C, STANAG 4406).
//!
//! Identifiers and syntaxes are those that an independent reader has registered, but for P772's
//! attributes and for which types are multi-valued: these are *unproven*.

mod general;
mod generated;
mod ipms;

pub use general::*;
pub use generated::*;
pub use ipms::*;

use crate::entry::Attribute;
use crate::value::Value;
use base::ber::{Oid, Tag, Writer, universal as u};

/// What the values of an attribute type are, as far as they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// INTEGER.
    Integer,
    /// ENUMERATED.
    Enumerated,
    /// Priority of X.411: an ENUMERATED under its own tag, whose numbers are not in order.
    Priority,
    /// BOOLEAN.
    Boolean,
    /// NULL: its presence is the value.
    Null,
    /// UTCTime.
    Time,
    /// OBJECT IDENTIFIER.
    Oid,
    /// A character string of any type, also a ContentIdentifier.
    Text,
    /// OCTET STRING.
    Octets,
    /// ORName.
    OrName,
    /// MTSIdentifier.
    MtsIdentifier,
    /// Any other type; values are compared as octets.
    Other,
}

impl Syntax {
    /// The syntax of values with this tag.
    pub fn of_tag(tag: Tag) -> Syntax {
        match tag {
            u::INTEGER => Syntax::Integer,
            u::ENUMERATED => Syntax::Enumerated,
            p1::wire::tag::PRIORITY => Syntax::Priority,
            u::BOOLEAN => Syntax::Boolean,
            u::NULL => Syntax::Null,
            u::UTC_TIME => Syntax::Time,
            u::OID => Syntax::Oid,
            u::OCTET_STRING => Syntax::Octets,
            p1::wire::tag::OR_NAME => Syntax::OrName,
            p1::wire::tag::MTS_IDENTIFIER => Syntax::MtsIdentifier,
            tag if crate::value::is_text(tag) => Syntax::Text,
            _ => Syntax::Other,
        }
    }

    /// Whether greater-or-equal and less-or-equal apply.
    pub fn is_ordered(self) -> bool {
        matches!(self, Syntax::Integer | Syntax::Enumerated | Syntax::Time | Syntax::Text)
    }

    /// Whether substrings apply.
    pub fn has_substrings(self) -> bool {
        self == Syntax::Text
    }
}

/// An attribute type of a standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeType {
    /// Content octets of the identifier but for its last arc.
    pub(crate) arc: &'static [u8],
    /// The last arc, below 128.
    pub number: u8,
    /// Its name in the standard, without the prefix of the arc.
    pub name: &'static str,
    /// What its values are.
    pub syntax: Syntax,
    /// Whether it may have several values.
    pub multi_valued: bool,
}

impl AttributeType {
    /// Its object identifier.
    #[expect(clippy::expect_used, reason = "the arcs are constants of this crate, each in a test")]
    pub fn oid(&self) -> Oid {
        Oid::from_content(&[self.arc, &[self.number]].concat()).expect("arcs of constants")
    }

    /// Whether this is its object identifier.
    pub fn is(&self, oid: &Oid) -> bool {
        oid.content().strip_prefix(self.arc) == Some(&[self.number])
    }

    /// An attribute of this type with one value.
    pub fn single(&self, value: Value) -> Attribute {
        Attribute::single(self.oid(), value)
    }

    /// An attribute of this type with these values, at least one; `None` if there are none.
    pub fn multi(&self, values: Vec<Value>) -> Option<Attribute> {
        (!values.is_empty()).then(|| Attribute { attribute_type: self.oid(), values })
    }

    pub(crate) fn write_type(&self, w: &mut Writer) {
        w.oid(u::OID, &self.oid());
    }
}

/// All attribute types of the tables here.
pub fn all() -> impl Iterator<Item = &'static AttributeType> {
    GENERAL.iter().chain(IPMS).chain(MMHS)
}

/// The attribute type of this identifier.
pub fn find(oid: &Oid) -> Option<&'static AttributeType> {
    all().find(|kind| kind.is(oid))
}

/// Defines a constant for each attribute type of an arc, and the table of them.
macro_rules! attribute_types {
    ($(#[$about:meta])* $table:ident { $($constant:ident = $arc:ident $number:literal $name:literal $syntax:ident $values:ident;)* }) => {
        $(
            #[doc = concat!($name, ".")]
            pub const $constant: $crate::attributes::AttributeType = $crate::attributes::AttributeType {
                arc: $arc,
                number: $number,
                name: $name,
                syntax: $crate::attributes::Syntax::$syntax,
                multi_valued: $crate::attributes::several::$values,
            };
        )*
        $(#[$about])*
        pub(crate) const $table: &[$crate::attributes::AttributeType] = &[$($constant),*];
    };
}

pub(crate) use attribute_types;

/// How the tables write whether a type is multi-valued.
#[expect(non_upper_case_globals, reason = "words of a table")]
pub(crate) mod several {
    pub(crate) const one: bool = false;
    pub(crate) const many: bool = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_its_identifier_and_no_identifier_is_used_twice() {
        let mut oids: Vec<Oid> = Vec::new();
        for kind in all() {
            assert!(kind.number < 128);
            assert_eq!(find(&kind.oid()), Some(kind));
            oids.push(kind.oid());
        }
        let count = oids.len();
        oids.sort();
        oids.dedup();
        assert_eq!((oids.len(), count), (146, 146));
        assert_eq!(find(&"2.6.4.3.45".parse().unwrap()), None);
    }

    #[test]
    fn identifiers_are_those_of_the_standards() {
        let text = |kind: AttributeType| kind.oid().to_string();
        assert_eq!(text(CONTENT), "2.6.4.3.1");
        assert_eq!(text(CREATION_TIME), "2.6.4.3.11");
        assert_eq!(text(RETRIEVAL_STATUS), "2.6.4.3.15");
        assert_eq!(text(ENTRY_TYPE), "2.6.4.3.16");
        assert_eq!(text(PRIORITY), "2.6.4.3.31");
        assert_eq!(text(SEQUENCE_NUMBER), "2.6.4.3.39");
        assert_eq!(text(SUBJECT), "2.6.1.7.4");
        assert_eq!(text(BODY), "2.6.1.8.0");
        assert_eq!(text(PRIMARY_PRECEDENCE), "1.3.26.0.4406.0.3.0");
    }
}
