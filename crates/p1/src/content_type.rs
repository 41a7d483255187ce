//! Content types (X.411 8.2.1.1.1.34).

use crate::wire::tag;
use base::ber::{Element, Error, Fault, Field, Oid, Tag, Writer, universal};
use std::fmt;

/// ContentType: what the content is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContentType {
    /// built-in: a number, see the constants.
    BuiltIn(i64),
    /// extended: an object identifier.
    Extended(Oid),
}

impl ContentType {
    /// unidentified.
    pub const UNIDENTIFIED: ContentType = ContentType::BuiltIn(0);
    /// external.
    pub const EXTERNAL: ContentType = ContentType::BuiltIn(1);
    /// interpersonal-messaging-1984 (P2).
    pub const P2: ContentType = ContentType::BuiltIn(2);
    /// interpersonal-messaging-1988 (P22).
    pub const P22: ContentType = ContentType::BuiltIn(22);
    /// edi-messaging.
    pub const EDI: ContentType = ContentType::BuiltIn(35);
    /// voice-messaging.
    pub const VOICE: ContentType = ContentType::BuiltIn(40);

    /// STANAG 4406 military messages (P772), 1.3.26.0.4406.0.4.1.
    pub fn p772() -> ContentType {
        // From constant, well-formed octets; the other branch is never taken.
        match Oid::from_content(&P772) {
            Ok(oid) => ContentType::Extended(oid),
            Err(_) => ContentType::UNIDENTIFIED,
        }
    }

    /// Whether it is P2, by its number or by its object identifier.
    pub fn is_p2(&self) -> bool {
        match self {
            ContentType::BuiltIn(_) => *self == ContentType::P2,
            ContentType::Extended(oid) => oid.content() == P2_BY_OID,
        }
    }
}

/// Content octets of id-mct-p2-1984, 2.6.1.10.0 (X.420 Annex D): P2, which has a number too.
const P2_BY_OID: [u8; 4] = [0x56, 1, 10, 0];

/// Content octets of 1.3.26.0.4406.0.4.1.
const P772: [u8; 8] = [0x2b, 26, 0, 0xa2, 0x36, 0, 4, 1];

impl ContentType {
    /// Reads it: the built-in form under its own tag, or an object identifier.
    ///
    /// # Errors
    /// Another tag, or malformed.
    pub fn read(e: &Element<'_>) -> Result<ContentType, Error> {
        match e.tag {
            tag::CONTENT_TYPE => Ok(ContentType::BuiltIn(e.integer().field("content-type")?)),
            // X.411 (1999) has RELATIVE-OID; the wire has OBJECT IDENTIFIER.
            universal::OID | RELATIVE_OID => {
                Ok(ContentType::Extended(e.oid().field("content-type")?))
            }
            other => Err(Fault::Unexpected(other)).field("content-type"),
        }
    }

    /// Writes it.
    pub fn write(&self, w: &mut Writer) {
        match self {
            ContentType::BuiltIn(number) => w.integer(tag::CONTENT_TYPE, *number),
            ContentType::Extended(oid) => w.oid(universal::OID, oid),
        }
    }

    /// Whether an element with this tag is a content type.
    pub fn has_tag(tag: Tag) -> bool {
        [tag::CONTENT_TYPE, universal::OID, RELATIVE_OID].contains(&tag)
    }
}

const RELATIVE_OID: Tag = Tag::universal(13);

/// The number or the object identifier.
impl fmt::Display for ContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ContentType::BuiltIn(number) => write!(f, "{number}"),
            ContentType::Extended(oid) => write!(f, "{oid}"),
        }
    }
}
