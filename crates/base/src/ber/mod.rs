//! BER (X.690): headers, a reader over buffered elements and SETs, a writer, and an incremental tokenizer.
//!
//! Decoding accepts every form X.690 allows: indefinite lengths, constructed strings, lengths with
//! leading zeros, SET members in any order. Encoding uses definite, minimal lengths unless asked.

mod error;
mod header;
mod oid;
mod reader;
mod set;
mod tokenizer;
mod writer;

pub use error::{Error, Fault, Field};
pub use header::{Class, Header, Length, MAX_HEADER_OCTETS, Tag};
pub use oid::Oid;
pub use reader::{Bits, Element, Reader};
pub use set::{Member, read_distinct_set, read_set};
pub use tokenizer::{Limits, Token, Tokenizer};
pub use writer::Writer;

/// Deepest nesting any decoder here accepts.
pub const MAX_DEPTH: usize = 32;

/// Universal tags used by the protocols of this workspace (X.680 8.4).
pub mod universal {
    use super::Tag;
    /// BOOLEAN.
    pub const BOOLEAN: Tag = Tag::universal(1);
    /// INTEGER.
    pub const INTEGER: Tag = Tag::universal(2);
    /// BIT STRING.
    pub const BIT_STRING: Tag = Tag::universal(3);
    /// OCTET STRING.
    pub const OCTET_STRING: Tag = Tag::universal(4);
    /// NULL.
    pub const NULL: Tag = Tag::universal(5);
    /// OBJECT IDENTIFIER.
    pub const OID: Tag = Tag::universal(6);
    /// ObjectDescriptor.
    pub const OBJECT_DESCRIPTOR: Tag = Tag::universal(7);
    /// EXTERNAL.
    pub const EXTERNAL: Tag = Tag::universal(8);
    /// ENUMERATED.
    pub const ENUMERATED: Tag = Tag::universal(10);
    /// SEQUENCE and SEQUENCE OF.
    pub const SEQUENCE: Tag = Tag::universal(16);
    /// SET and SET OF.
    pub const SET: Tag = Tag::universal(17);
    /// NumericString.
    pub const NUMERIC_STRING: Tag = Tag::universal(18);
    /// PrintableString.
    pub const PRINTABLE_STRING: Tag = Tag::universal(19);
    /// TeletexString (T61String).
    pub const TELETEX_STRING: Tag = Tag::universal(20);
    /// IA5String.
    pub const IA5_STRING: Tag = Tag::universal(22);
    /// UTCTime.
    pub const UTC_TIME: Tag = Tag::universal(23);
    /// GeneralizedTime.
    pub const GENERALIZED_TIME: Tag = Tag::universal(24);
}
