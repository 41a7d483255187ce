//! The APDUs that are transferred to a peer.

use crate::Engine;
use crate::record::Record;
use bytes::Bytes;
use p1::apdu::MtsApduHead;
use p1::extension::Form;

#[cfg(test)]
pub(crate) mod strict;
#[cfg(test)]
mod tests;

/// A data unit whose content is pulled from the store: `head`, then `content_length` octets of the
/// body, then `tail`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// Octets before the content.
    pub head: Bytes,
    /// Octets of content.
    pub content_length: u64,
    /// Octets after the content.
    pub tail: Bytes,
    /// How many extensions are left out because the peer's form does not have them.
    pub left_out: usize,
}

impl Engine {
    /// The MTS-APDU of a copy for a peer, in the peer's form. Extensions that this does not have are left out:
    /// routing ensured that none of them is critical, and that all else has a form.
    pub fn transfer_payload(&self, record: &Record, form: Form) -> Payload {
        let mut head = record.head.clone();
        let left_out = head.set_form(form);
        let content_length = match &head {
            MtsApduHead::Message(_) => Some(record.size),
            MtsApduHead::Probe(_) => None,
            // An earlier release kept what a report returns in its record.
            MtsApduHead::Report(_) => record.body.is_some().then_some(record.size),
        };
        let octets = head.encode(content_length, form.defaults());
        let content_length = content_length.unwrap_or(0);
        Payload { head: octets.into(), content_length, tail: Bytes::new(), left_out }
    }
}
