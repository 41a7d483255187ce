//! The APDUs that are transferred to a peer.

use crate::Engine;
use crate::record::Record;
use bytes::Bytes;
use p1::apdu::{MtsApduHead, encode_message_head, encode_probe, encode_report, encode_report_head};
use p1::extension::Dialect;

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
    /// How many extensions are left out because the peer's dialect has no form for them.
    pub left_out: usize,
}

impl Engine {
    /// The MTS-APDU of a copy for a peer, in the peer's dialect. Extensions without a form in it are left out:
    /// routing ensured that none of them is critical, and that all else has a form.
    pub fn transfer_payload(&self, record: &Record, dialect: Dialect) -> Payload {
        let mut head = record.head.clone();
        let left_out = head.set_dialect(dialect);
        let (octets, content_length) = match &head {
            MtsApduHead::Message(e) => (encode_message_head(e, record.size), record.size),
            MtsApduHead::Probe(e) => (encode_probe(e), 0),
            MtsApduHead::Report(r) => match record.body {
                Some(_) => (encode_report_head(r, record.size), record.size),
                // An earlier release kept what a report returns in its record.
                None => (encode_report(r), 0),
            },
        };
        Payload { head: octets.into(), content_length, tail: Bytes::new(), left_out }
    }
}
