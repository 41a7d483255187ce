use super::Tag;

/// What is wrong with the octets (clauses of X.690).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The element ends before its length.
    #[error("truncated: the element is longer than what holds it (X.690 8.1.3)")]
    Truncated,
    /// A tag number above 2^31 or with a padded form.
    #[error("malformed tag (X.690 8.1.2.4)")]
    Tag,
    /// Length form 0xFF, or more than 8 length octets.
    #[error("malformed length (X.690 8.1.3.5)")]
    Length,
    /// The indefinite form on a primitive element.
    #[error("indefinite length on a primitive element (X.690 8.1.3.2)")]
    IndefinitePrimitive,
    /// End-of-contents octets where none are due.
    #[error("unexpected end-of-contents (X.690 8.1.5)")]
    UnexpectedEnd,
    /// Deeper than the limit.
    #[error("nested deeper than the limit of {0}")]
    TooDeep(usize),
    /// More elements than the limit.
    #[error("more than the limit of {0} elements")]
    TooMany(u64),
    /// Longer than the limit.
    #[error("longer than the limit of {0} octets")]
    TooLong(u64),
    /// A required element is missing.
    #[error("missing {0}")]
    Missing(Tag),
    /// Another tag than the type allows.
    #[error("unexpected {0}")]
    Unexpected(Tag),
    /// Octets after the last element.
    #[error("trailing octets")]
    Trailing,
    /// The contents do not fit the type.
    #[error("invalid {0}")]
    Value(&'static str),
    /// A string with a character that it may not have: its code, and where that stands.
    #[error("it holds the character 0x{0:02X}, which it must not ({1})")]
    Character(u8, &'static str),
    /// A string of another length than it may have.
    #[error("it has {length} characters instead of {least} to {most} ({clause})")]
    Size {
        /// Characters it has.
        length: usize,
        /// Fewest.
        least: usize,
        /// Most.
        most: usize,
        /// The clause of the standard that sets the bounds.
        clause: &'static str,
    },
}

/// A decoding error: what is wrong, and in which field where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The fault of the octets.
    pub fault: Fault,
    /// The innermost named field, in the standard's own terms.
    pub field: Option<&'static str>,
}

impl std::error::Error for Error {}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.field {
            Some(field) => write!(f, "{field}: {}", self.fault),
            None => write!(f, "{}", self.fault),
        }
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error { fault, field: None }
    }
}

/// Names the field an error came from.
pub trait Field<T> {
    /// Sets the field name unless a more deeply nested one is set already.
    fn field(self, name: &'static str) -> Result<T, Error>;
}

impl<T, E: Into<Error>> Field<T> for Result<T, E> {
    fn field(self, name: &'static str) -> Result<T, Error> {
        self.map_err(|e| {
            let mut e = e.into();
            e.field.get_or_insert(name);
            e
        })
    }
}
