//! The APDUs that are transferred to a peer.

use crate::Engine;
use crate::record::{NextHop, Record};
use base::PeerId;
use bytes::Bytes;
use p1::apdu::{MtsApduHead, encode_message_head, encode_probe, encode_report, encode_report_head};
use p1::envelope::PerRecipientFields;
use p1::extension::{Dialect, Extensions};

#[cfg(test)]
mod strict;
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

/// The first extension that must not be lost and that this dialect has no form for: one that is
/// critical for transfer or for delivery.
fn form_missing(dialect: Dialect, extensions: &Extensions) -> Option<String> {
    let critical = |c: p1::Criticality| c.for_transfer || c.for_delivery;
    let mut lost = extensions.0.iter().filter(|f| critical(f.criticality) && !f.has_form(dialect));
    lost.next().map(|field| field.kind.to_string())
}

impl Engine {
    /// The MTS-APDU of a copy for a peer, with all extensions in the peer's dialect. Those without
    /// a form in the dialect are left out: routing ensured that none of them is critical.
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

    /// The first critical extension that a message or probe to this recipient would lose on
    /// transfer to this peer.
    pub(crate) fn lost_extension(
        &self,
        peer: PeerId,
        message: &Extensions,
        recipient: &PerRecipientFields,
    ) -> Option<String> {
        let dialect = *self.dialects.get(&peer)?;
        form_missing(dialect, message).or_else(|| form_missing(dialect, &recipient.extensions))
    }

    /// Whether a copy for a peer would lose a critical extension in transfer: it was queued before
    /// the peer's dialect was changed. [`Engine::reroute`] then reports the recipients it is
    /// critical for and transfers the rest. A report is transferred without the extension, as it
    /// causes no report.
    pub fn would_lose_critical(&self, record: &Record) -> bool {
        let NextHop::Peer(peer) = record.next_hop else { return false };
        let (extensions, recipients) = match &record.head {
            MtsApduHead::Message(e) => (&e.extensions, &e.recipients),
            MtsApduHead::Probe(e) => (&e.extensions, &e.recipients),
            MtsApduHead::Report(_) => return false,
        };
        let mut mine = recipients.iter().filter(|r| r.indicators.responsible());
        mine.any(|r| self.lost_extension(peer, extensions, r).is_some())
    }
}
