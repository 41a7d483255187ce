use super::PerRecipientFields;
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::Extensions;
use crate::flags::{PerMessageIndicators, Priority};
use crate::names::{MtsIdentifier, ORName};
use crate::time::Time;
use crate::trace::TraceElement;
use bytes::Bytes;

/// MessageTransferEnvelope (X.411 12.2.1.1, Figure 4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageTransferEnvelope {
    /// message-identifier.
    pub message_identifier: MtsIdentifier,
    /// originator-name.
    pub originator: ORName,
    /// original-encoded-information-types.
    pub original_eits: Option<EncodedInformationTypes>,
    /// content-type.
    pub content_type: ContentType,
    /// content-identifier, Printable, 1 to 16 characters: the originator's own reference.
    pub content_identifier: Option<String>,
    /// priority.
    pub priority: Priority,
    /// per-message-indicators.
    pub indicators: PerMessageIndicators,
    /// deferred-delivery-time: not to be delivered before.
    pub deferred_delivery_time: Option<Time>,
    /// per-domain-bilateral-information, the whole element.
    pub per_domain_bilateral: Option<Bytes>,
    /// per-recipient-fields, 1 to 32767.
    pub recipients: Vec<PerRecipientFields>,
    /// extensions, the internal trace among them.
    pub extensions: Extensions,
    /// trace-information, oldest first, 1 to 512.
    pub trace: Vec<TraceElement>,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}
