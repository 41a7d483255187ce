//! Character strings that remember which string type they were, octet for octet.

/// Which universal string type carries a [`Text`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
