//! O/R addresses and names (X.402 clause 18, X.411 8.5.5), domains, MTAs and message identifiers.

mod address;
mod bounds;
mod compare;
mod domain;
mod text_form;

pub(crate) use address::is_printable;
pub use address::{
    DomainDefinedAttribute, ExtensionAttribute, ORAddress, ORName, PersonalName,
    extension_attribute,
};
pub use bounds::content_identifier;
pub(crate) use bounds::supplementary_information;
pub use compare::{Attribute, normalize};
pub use domain::{GlobalDomainId, MtaName, MtsIdentifier};
pub use text_form::AddressError;
