use super::PerRecipientFields;
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::Extensions;
use crate::flags::PerMessageIndicators;
use crate::names::{MtsIdentifier, ORName};
use crate::trace::TraceElement;
use bytes::Bytes;

/// ProbeTransferEnvelope: would such a message be delivered? (X.411 12.2.1.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProbeTransferEnvelope {
    /// probe-identifier.
    pub probe_identifier: MtsIdentifier,
    /// originator-name.
    pub originator: ORName,
    /// original-encoded-information-types.
    pub original_eits: Option<EncodedInformationTypes>,
    /// content-type.
    pub content_type: ContentType,
    /// content-identifier.
    pub content_identifier: Option<String>,
    /// content-length, octets.
    pub content_length: Option<i64>,
    /// per-message-indicators.
    pub indicators: PerMessageIndicators,
    /// per-domain-bilateral-information, the whole element.
    pub per_domain_bilateral: Option<Bytes>,
    /// per-recipient-fields.
    pub recipients: Vec<PerRecipientFields>,
    /// extensions.
    pub extensions: Extensions,
    /// trace-information, oldest first.
    pub trace: Vec<TraceElement>,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}
