//! Encoded information types (X.411 8.5.4).

use base::ber::Oid;
use bytes::Bytes;

/// EncodedInformationTypes: what a content is made of. Facsimile and teletex parameters are kept as
/// elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EncodedInformationTypes {
    /// built-in-encoded-information-types; bit `n` of the BIT STRING is `1 << n`, see the constants.
    pub built_in: u32,
    /// extended-encoded-information-types.
    pub extended: Vec<Oid>,
    /// All other members (non-basic parameters and unknown ones), as whole elements.
    pub other: Vec<Bytes>,
}
