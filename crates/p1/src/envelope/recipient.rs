use crate::extension::Extensions;
use crate::flags::PerRecipientIndicators;
use crate::names::ORName;
use bytes::Bytes;

/// PerRecipientMessageTransferFields, and PerRecipientProbeTransferFields, which have the same form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PerRecipientFields {
    /// recipient-name.
    pub recipient: ORName,
    /// originally-specified-recipient-number, from 1; the same in every copy.
    pub number: u32,
    /// per-recipient-indicators.
    pub indicators: PerRecipientIndicators,
    /// explicit-conversion, by number.
    pub explicit_conversion: Option<i64>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}
