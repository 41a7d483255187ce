//! The editions of P1.

/// The editions of P1 that peers have. A decoder of the one refuses the other, so that all that goes to a peer is in
/// its own (see [`crate::MtsApduHead::set_form`]). Those since 1988 differ in the encoding of extension-type.
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
pub enum Dialect {
    /// X.411 since 1994 and ISO 10021-4: `[0]` INTEGER or `[3]` OBJECT IDENTIFIER.
    #[default]
    Modern,
    /// The 1988 Blue Book: `[0]` around an INTEGER. Around an OBJECT IDENTIFIER it is read, but not
    /// sent to a peer: decoders of the time know integers alone.
    BlueBook1988,
    /// The 1984 Red Book: no extensions, and less of all else (see [`crate::red_book`]).
    RedBook1984(CommonName),
}

/// The form of a common-name for a peer of 1984, whose addresses have none.
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
pub enum CommonName {
    /// None: such an address cannot be sent to it.
    #[default]
    NoForm,
    /// The domain-defined attribute `Common` (RFC 1328 section 3.2), both ways.
    DomainDefined,
}
