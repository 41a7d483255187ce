use crate::text::Text;
use bytes::Bytes;

/// An O/R address (X.411 ORAddress; X.402 clause 18). Empty by default.
///
/// The attributes of the extension part (common name, teletex and universal forms, postal ones) stay
/// as elements in `extensions`, in the order they came; accessors read the ones that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ORAddress {
    /// country-name: X.121 country code (Numeric) or ISO 3166 alpha-2 (Printable).
    pub country: Option<Text>,
    /// administration-domain-name; a single space means any or none.
    pub admd: Option<Text>,
    /// network-address: X.121 digits, up to 15.
    pub network_address: Option<String>,
    /// terminal-identifier, up to 24 characters.
    pub terminal_identifier: Option<String>,
    /// private-domain-name, up to 16 characters.
    pub prmd: Option<Text>,
    /// organization-name, up to 64 characters.
    pub organization: Option<String>,
    /// numeric-user-identifier, up to 32 digits.
    pub numeric_user_identifier: Option<String>,
    /// personal-name.
    pub personal_name: Option<PersonalName>,
    /// organizational-unit-names, most significant first, at most 4 of up to 32 characters.
    pub organizational_units: Vec<String>,
    /// built-in domain-defined-attributes, at most 4.
    pub domain_defined: Vec<DomainDefinedAttribute>,
    /// extension-attributes.
    pub extensions: Vec<ExtensionAttribute>,
}

/// personal-name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PersonalName {
    /// surname, up to 40 characters.
    pub surname: String,
    /// given-name, up to 16 characters.
    pub given_name: Option<String>,
    /// initials, up to 5 characters, without the surname's.
    pub initials: Option<String>,
    /// generation-qualifier, up to 3 characters.
    pub generation_qualifier: Option<String>,
}

/// A domain-defined attribute: a pair only the recipient's domain understands.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainDefinedAttribute {
    /// type, up to 8 characters.
    pub kind: String,
    /// value, up to 128 characters.
    pub value: String,
}

/// An extension attribute of an O/R address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtensionAttribute {
    /// extension-attribute-type (X.411 Annex, 0 to 256).
    pub number: i64,
    /// The whole element inside the explicit tag of extension-attribute-value.
    pub value: Bytes,
}

/// Numbers of extension attributes.
pub mod extension_attribute {
    /// common-name.
    pub const COMMON_NAME: i64 = 1;
    /// teletex-common-name.
    pub const TELETEX_COMMON_NAME: i64 = 2;
    /// teletex-organization-name.
    pub const TELETEX_ORGANIZATION_NAME: i64 = 3;
    /// teletex-personal-name.
    pub const TELETEX_PERSONAL_NAME: i64 = 4;
    /// teletex-organizational-unit-names.
    pub const TELETEX_ORGANIZATIONAL_UNIT_NAMES: i64 = 5;
    /// teletex-domain-defined-attributes.
    pub const TELETEX_DOMAIN_DEFINED_ATTRIBUTES: i64 = 6;
    /// pds-name.
    pub const PDS_NAME: i64 = 7;
    /// physical-delivery-country-name.
    pub const PHYSICAL_DELIVERY_COUNTRY_NAME: i64 = 8;
    /// postal-code.
    pub const POSTAL_CODE: i64 = 9;
    /// extended-network-address.
    pub const EXTENDED_NETWORK_ADDRESS: i64 = 22;
    /// terminal-type.
    pub const TERMINAL_TYPE: i64 = 23;
    /// universal-common-name.
    pub const UNIVERSAL_COMMON_NAME: i64 = 24;
}

/// An O/R name: an address, a directory name, or both (X.411 8.5.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ORName {
    /// The address; empty where only a directory name was given.
    pub address: ORAddress,
    /// The whole element inside the explicit tag of directory-name.
    pub directory_name: Option<Bytes>,
}
