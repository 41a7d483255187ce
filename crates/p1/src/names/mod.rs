//! O/R addresses and names (X.402 clause 18, X.411 8.5.5), domains, MTAs and message identifiers.

mod address;
mod domain;

pub use address::{
    DomainDefinedAttribute, ExtensionAttribute, ORAddress, ORName, PersonalName,
    extension_attribute,
};
pub use domain::{GlobalDomainId, MtaName, MtsIdentifier};
