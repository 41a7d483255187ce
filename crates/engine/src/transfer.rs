//! What goes to a peer.

use crate::Engine;
use crate::record::Record;
use bytes::Bytes;
use p1::apdu::{MtsApduHead, encode_message_head, encode_probe, encode_report};
use p1::extension::{Dialect, ExtensionType, Extensions, number};

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
}

impl Engine {
    /// The MTS-APDU of a copy for a peer. What we added to its extensions is in the peer's dialect;
    /// what came from others goes on as it came.
    pub fn transfer_payload(&self, record: &Record, dialect: Dialect) -> Payload {
        let mut head = record.head.clone();
        match &mut head {
            MtsApduHead::Message(e) => in_dialect(&mut e.extensions, dialect),
            MtsApduHead::Probe(e) => in_dialect(&mut e.extensions, dialect),
            MtsApduHead::Report(r) => in_dialect(&mut r.envelope.extensions, dialect),
        }
        let (octets, content_length) = match &head {
            MtsApduHead::Message(e) => (encode_message_head(e, record.size), record.size),
            MtsApduHead::Probe(e) => (encode_probe(e), 0),
            MtsApduHead::Report(r) => (encode_report(r), 0),
        };
        Payload { head: octets.into(), content_length, tail: Bytes::new() }
    }
}

/// The internal trace is the one field we write into what we relay.
fn in_dialect(extensions: &mut Extensions, dialect: Dialect) {
    let own = ExtensionType::Standard(number::INTERNAL_TRACE_INFORMATION);
    for field in extensions.0.iter_mut().filter(|f| f.kind == own) {
        field.dialect = dialect;
        field.raw = None;
    }
}
