//! What the durable queue keeps of one copy.

use base::ber::{Element, Error};
use base::{BodyId, PeerId, Precedence, Utc};
use bytes::Bytes;
use p1::apdu::{
    MtsApduHead, Report, decode_envelope, encode_envelope, encode_probe, encode_report,
};
use p1::envelope::ProbeTransferEnvelope;
use serde::{Deserialize, Serialize};

/// Version of the encoding, its first octet.
const VERSION: u8 = 1;

/// Where a copy goes next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NextHop {
    /// A peer MTA.
    Peer(PeerId),
    /// A mailbox here, by its canonical address.
    Mailbox(String),
}

/// What a copy is a copy of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// A message.
    Message,
    /// A probe.
    Probe,
    /// A report.
    Report,
}

/// One copy of a message, probe or report. The recipients it is for are those its envelope makes
/// the receiver responsible for; a report is for its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it goes.
    pub next_hop: NextHop,
    /// MTS identifier as text, for the log.
    pub message: String,
    /// Its level, which is part of its key in the queue too.
    pub precedence: Precedence,
    /// When we accepted it.
    pub accepted: Utc,
    /// When the first domain accepted it, by its trace, but not after `accepted`: what expiry is
    /// counted from.
    pub first_arrival: Utc,
    /// Deferred until then.
    pub not_before: Option<Utc>,
    /// Octets of content; 0 for probes and reports.
    pub size: u64,
    /// The content; `None` for probes and reports.
    pub body: Option<BodyId>,
    /// The envelope with our trace, or the whole report.
    pub head: MtsApduHead,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It was written by a newer program.
    #[error("record version {0} is not known")]
    Version(u8),
    /// Its fields are malformed.
    #[error("record fields: {0}")]
    Fields(#[from] postcard::Error),
    /// Its envelope is malformed.
    #[error("record envelope: {0}")]
    Envelope(#[from] Error),
    /// It is empty.
    #[error("record is empty")]
    Empty,
}

/// The fields as they are stored.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    kind: Kind,
    next_hop: NextHop,
    message: String,
    precedence: Precedence,
    accepted: Utc,
    first_arrival: Utc,
    not_before: Option<Utc>,
    size: u64,
    body: Option<BodyId>,
    #[serde(borrow)]
    head: &'a [u8],
}

impl Record {
    /// What it is a copy of.
    pub fn kind(&self) -> Kind {
        match self.head {
            MtsApduHead::Message(_) => Kind::Message,
            MtsApduHead::Probe(_) => Kind::Probe,
            MtsApduHead::Report(_) => Kind::Report,
        }
    }

    /// Encodes it.
    pub fn encode(&self) -> Bytes {
        let head = match &self.head {
            MtsApduHead::Message(envelope) => encode_envelope(envelope),
            MtsApduHead::Probe(envelope) => encode_probe(envelope),
            MtsApduHead::Report(report) => encode_report(report),
        };
        let stored = Stored {
            kind: self.kind(),
            next_hop: self.next_hop.clone(),
            message: self.message.clone(),
            precedence: self.precedence,
            accepted: self.accepted,
            first_arrival: self.first_arrival,
            not_before: self.not_before,
            size: self.size,
            body: self.body,
            head: &head,
        };
        // Plain data into a growing buffer: there is nothing that could fail.
        postcard::to_extend(&stored, vec![VERSION]).unwrap_or_default().into()
    }

    /// Reads one back.
    ///
    /// # Errors
    /// Another version, or malformed.
    pub fn decode(octets: &[u8]) -> Result<Record, RecordError> {
        let (version, fields) = octets.split_first().ok_or(RecordError::Empty)?;
        if *version != VERSION {
            return Err(RecordError::Version(*version));
        }
        let stored: Stored<'_> = postcard::from_bytes(fields)?;
        Ok(Record {
            next_hop: stored.next_hop,
            message: stored.message,
            precedence: stored.precedence,
            accepted: stored.accepted,
            first_arrival: stored.first_arrival,
            not_before: stored.not_before,
            size: stored.size,
            body: stored.body,
            head: read_head(stored.kind, stored.head)?,
        })
    }
}

fn read_head(kind: Kind, octets: &[u8]) -> Result<MtsApduHead, Error> {
    Ok(match kind {
        Kind::Message => MtsApduHead::Message(Box::new(decode_envelope(octets)?)),
        Kind::Probe => {
            let envelope = ProbeTransferEnvelope::read(&Element::parse(octets)?)?;
            MtsApduHead::Probe(Box::new(envelope))
        }
        Kind::Report => {
            let report = Report::read(&Element::parse(octets)?)?;
            MtsApduHead::Report(Box::new(report))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BAKER, JONES, NOBODY, engine, submission, submit};

    #[test]
    fn encodes_and_decodes_messages_and_reports() {
        let done = submit(&mut engine(), &submission(&[BAKER, JONES, NOBODY]));
        let kinds: Vec<_> = done.accepted.entries.iter().map(|e| e.record.kind()).collect();
        assert_eq!(kinds, [Kind::Message, Kind::Message, Kind::Report]);
        for entry in &done.accepted.entries {
            let octets = entry.record.encode();
            let back = Record::decode(&octets).unwrap();
            assert_eq!(back.encode(), octets);
            let fields = |r: &Record| {
                let times = (r.accepted, r.first_arrival, r.not_before);
                (r.next_hop.clone(), r.message.clone(), r.precedence, times, r.size, r.body)
            };
            assert_eq!(fields(&back), fields(&entry.record));
        }
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        let done = submit(&mut engine(), &submission(&[BAKER]));
        let octets = done.accepted.entries[0].record.encode();
        assert_eq!(Record::decode(&[]), Err(RecordError::Empty));
        let mut newer = octets.to_vec();
        newer[0] = VERSION + 1;
        assert_eq!(Record::decode(&newer), Err(RecordError::Version(VERSION + 1)));
        for cut in 0..octets.len() {
            assert!(Record::decode(&octets[..cut]).is_err(), "cut at {cut}");
        }
    }
}
