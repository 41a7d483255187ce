//! Character strings that remember which string type they were, octet for octet.

use crate::wire::{is_string, latin1, write_latin1};
use base::ber::{Element, Error, Fault, Tag, Writer, universal};
use base::shown;
use std::fmt;

/// Which universal string type carries a [`Text`].
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub enum StringType {
    /// NumericString.
    Numeric,
    /// PrintableString.
    #[default]
    Printable,
    /// TeletexString (T.61).
    Teletex,
    /// Another universal string type, by its tag number (some peers send IA5String).
    Other(u32),
}

/// A character string of a CHOICE of string types.
///
/// Each octet on the wire is one character of `value` with the same code (so Latin-1), which makes
/// every string pass unchanged, whatever the peer meant by its octets above 127.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Text {
    /// The string type.
    pub kind: StringType,
    /// The characters, codes 0 to 255.
    pub value: String,
}

impl Text {
    /// A PrintableString.
    pub fn printable(value: impl Into<String>) -> Text {
        Text { kind: StringType::Printable, value: value.into() }
    }
}

impl From<&str> for Text {
    fn from(value: &str) -> Text {
        Text::printable(value)
    }
}

/// Shown as its characters; control characters as [`shown::line`] has them.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&shown::line(&self.value))
    }
}

impl Text {
    /// Reads a universal string of whichever type.
    ///
    /// # Errors
    /// No string type, or a malformed string.
    pub fn read(e: &Element<'_>) -> Result<Text, Error> {
        if !is_string(e.tag) {
            return Err(Fault::Unexpected(e.tag).into());
        }
        let kind = match e.tag {
            universal::NUMERIC_STRING => StringType::Numeric,
            universal::PRINTABLE_STRING => StringType::Printable,
            universal::TELETEX_STRING => StringType::Teletex,
            other => StringType::Other(other.number),
        };
        Ok(Text { kind, value: latin1(e)? })
    }

    /// Writes it under its own string type.
    pub fn write(&self, w: &mut Writer) {
        let tag = match self.kind {
            StringType::Numeric => universal::NUMERIC_STRING,
            StringType::Printable => universal::PRINTABLE_STRING,
            StringType::Teletex => universal::TELETEX_STRING,
            StringType::Other(number) => Tag::universal(number),
        };
        write_latin1(w, tag, &self.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_type_passes_octet_for_octet() {
        for octets in [
            &[0x13, 2, b'I', b'T'][..],
            &[0x12, 3, b'2', b'2', b'2'],
            &[0x14, 4, 0xc2, b'e', 0x80, 0xff],
            &[0x0c, 2, 0xc3, 0xa9],
            &[0x16, 0],
        ] {
            let text = Text::read(&Element::parse(octets).unwrap()).unwrap();
            let mut w = Writer::new();
            text.write(&mut w);
            assert_eq!(w.as_slice(), octets);
        }
        for octets in [&[0x30, 0][..], &[0x02, 1, 7], &[0x80, 1, b'x']] {
            assert!(Text::read(&Element::parse(octets).unwrap()).is_err());
        }
    }
}
