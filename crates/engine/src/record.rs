//! The record of one copy in the durable queue.

use crate::arrival::trace;
use crate::journal::{MAILBOXES, QueueId};
use base::ber::{Element, Error};
use base::{BodyId, PeerId, Precedence, Utc};
use bytes::Bytes;
use p1::ContentLabels;
use p1::apdu::{
    MtsApduHead, Report, decode_envelope, encode_envelope, encode_probe, encode_report,
    originator_of,
};
use p1::envelope::ProbeTransferEnvelope;
use p1::names::ORName;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;

/// Version of the encoding, in its first octet. Version 1 has no latest delivery time, version 2
/// no digest, version 3 no labels of the content. All are read; version 3 is still written for a record without such
/// labels.
const VERSION: u8 = 4;
const WITHOUT_LABELS: u8 = 3;
const WITHOUT_DIGEST: u8 = 2;
const WITHOUT_LATEST: u8 = 1;

/// The next hop of a copy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NextHop {
    /// A peer MTA.
    Peer(PeerId),
    /// A local mailbox, by its canonical address.
    Mailbox(String),
}

impl NextHop {
    /// The queue that holds the entries for it. Two mailboxes have the same one with a probability
    /// of 2 to the power of -63: who lists a queue compares the next hop in the records.
    pub fn queue(&self) -> QueueId {
        match self {
            NextHop::Peer(peer) => QueueId(u64::from(peer.0)),
            NextHop::Mailbox(address) => {
                let digest: [u8; 32] = Sha256::digest(address.as_bytes()).into();
                let first = digest.first_chunk().copied().unwrap_or_default();
                QueueId(u64::from_be_bytes(first) | MAILBOXES)
            }
        }
    }
}

/// The kind of object that an entry carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RecordKind {
    /// A message.
    Message,
    /// A probe.
    Probe,
    /// A report.
    Report,
}

/// One copy of a message, probe or report. It is for the recipients its envelope makes the
/// receiver responsible for; a report is for its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The next hop.
    pub next_hop: NextHop,
    /// MTS identifier as text, for the log.
    pub message: String,
    /// Its level, which is part of its key in the queue too.
    pub precedence: Precedence,
    /// The time at which this MTA accepted it.
    pub accepted: Utc,
    /// When it first arrived in the MTS, or its deferral at another MTA ended, by its trace; not
    /// after `accepted`. Expiry counts from it.
    pub first_arrival: Utc,
    /// Deferred until then.
    pub not_before: Option<Utc>,
    /// The originator's latest-delivery-time.
    pub latest: Option<Utc>,
    /// Octets of content: of a report, those that it returns.
    pub size: u64,
    /// The content: of a report, the one it returns. `None` for probes, and for reports that return none.
    pub body: Option<BodyId>,
    /// SHA-256 of the content; `None` without one, and if queued by an older release.
    pub digest: Option<[u8; 32]>,
    /// The security labels inside the content, where contents were opened as it was accepted.
    pub content_labels: ContentLabels,
    /// The envelope with our trace, or the whole report.
    pub head: MtsApduHead,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A newer release wrote it.
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

/// All fields of a record except its envelope: they decide its place in the queue. Reading them
/// without the envelope makes a start with many queued messages faster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Brief<'a> {
    /// Message, probe or report.
    pub kind: RecordKind,
    /// The next hop.
    pub next_hop: Cow<'a, NextHop>,
    /// MTS identifier as text, for the log.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// Its level.
    pub precedence: Precedence,
    /// The time at which this MTA accepted it.
    pub accepted: Utc,
    /// See [`Record::first_arrival`].
    pub first_arrival: Utc,
    /// Deferred until then.
    pub not_before: Option<Utc>,
    /// Octets of content.
    pub size: u64,
    /// The content.
    pub body: Option<BodyId>,
    /// See [`Record::latest`]; encoded before the others.
    #[serde(skip)]
    pub latest: Option<Utc>,
}

/// A record as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    brief: Brief<'a>,
    head: &'a [u8],
}

impl Record {
    /// Message, probe or report.
    pub fn kind(&self) -> RecordKind {
        match self.head {
            MtsApduHead::Message(_) => RecordKind::Message,
            MtsApduHead::Probe(_) => RecordKind::Probe,
            MtsApduHead::Report(_) => RecordKind::Report,
        }
    }

    /// Whether it came by the MTA of this name, since its recipients were last changed: it would
    /// find a loop.
    pub fn passed(&self, mta: &str) -> bool {
        let extensions = match &self.head {
            MtsApduHead::Message(e) => &e.extensions,
            MtsApduHead::Probe(e) => &e.extensions,
            MtsApduHead::Report(report) => &report.envelope.extensions,
        };
        let internal = trace::internal(extensions);
        let fresh = internal
            .iter()
            .rposition(|element| trace::readdressed(element.additional.other_actions))
            .map_or(0, |at| at + 1);
        internal.iter().skip(fresh).any(|element| element.mta.0 == mta)
    }

    /// The number of recipients in its envelope, including those others are responsible for.
    pub fn recipients(&self) -> usize {
        match &self.head {
            MtsApduHead::Message(e) => e.recipients.len(),
            MtsApduHead::Probe(e) => e.recipients.len(),
            MtsApduHead::Report(report) => report.content.recipients.len(),
        }
    }

    /// All fields except the envelope.
    pub fn brief(&self) -> Brief<'_> {
        Brief {
            kind: self.kind(),
            next_hop: Cow::Borrowed(&self.next_hop),
            message: Cow::Borrowed(&self.message),
            precedence: self.precedence,
            accepted: self.accepted,
            first_arrival: self.first_arrival,
            not_before: self.not_before,
            size: self.size,
            body: self.body,
            latest: self.latest,
        }
    }

    /// Encodes it.
    pub fn encode(&self) -> Bytes {
        let head = match &self.head {
            MtsApduHead::Message(envelope) => encode_envelope(envelope),
            MtsApduHead::Probe(envelope) => encode_probe(envelope),
            MtsApduHead::Report(report) => encode_report(report),
        };
        let stored = Stored { brief: self.brief(), head: &head };
        // Plain data into a growing buffer cannot fail.
        let fields = (self.latest, self.digest, stored);
        let octets = match self.content_labels.is_empty() {
            true => postcard::to_extend(&fields, vec![WITHOUT_LABELS]),
            false => postcard::to_extend(&(&self.content_labels, fields), vec![VERSION]),
        };
        octets.unwrap_or_default().into()
    }

    /// Reads one back.
    ///
    /// # Errors
    /// Another version, or malformed.
    pub fn decode(octets: &[u8]) -> Result<Record, RecordError> {
        let (Stored { brief, head }, digest, content_labels) = stored(octets)?;
        Ok(Record {
            next_hop: brief.next_hop.into_owned(),
            message: brief.message.into_owned(),
            precedence: brief.precedence,
            accepted: brief.accepted,
            first_arrival: brief.first_arrival,
            not_before: brief.not_before,
            latest: brief.latest,
            size: brief.size,
            body: brief.body,
            digest,
            content_labels,
            head: read_head(brief.kind, head)?,
        })
    }

    /// Reads all but the envelope, which may be malformed.
    ///
    /// # Errors
    /// Another version, or malformed fields.
    pub fn peek(octets: &[u8]) -> Result<Brief<'_>, RecordError> {
        Ok(stored(octets)?.0.brief)
    }

    /// The originator, without reading the rest of the envelope; `None` for a report.
    ///
    /// # Errors
    /// Another version, or malformed as far as it was read.
    pub fn originator(octets: &[u8]) -> Result<Option<ORName>, RecordError> {
        let (Stored { brief, head }, ..) = stored(octets)?;
        Ok(match brief.kind {
            RecordKind::Message | RecordKind::Probe => Some(originator_of(head)?),
            RecordKind::Report => None,
        })
    }
}

/// A record as it is stored, the digest of its content and the labels inside that.
type Fields<'a> = (Stored<'a>, Option<[u8; 32]>, ContentLabels);

fn stored(octets: &[u8]) -> Result<Fields<'_>, RecordError> {
    let (version, fields) = octets.split_first().ok_or(RecordError::Empty)?;
    let mut labels = ContentLabels::default();
    let (latest, digest, mut stored): (_, _, Stored<'_>) = match *version {
        VERSION => {
            let (inside, fields) = postcard::from_bytes(fields)?;
            labels = inside;
            fields
        }
        WITHOUT_LABELS => postcard::from_bytes(fields)?,
        WITHOUT_DIGEST => {
            let (latest, stored) = postcard::from_bytes(fields)?;
            (latest, None, stored)
        }
        WITHOUT_LATEST => (None, None, postcard::from_bytes(fields)?),
        version => return Err(RecordError::Version(version)),
    };
    stored.brief.latest = latest;
    Ok((stored, digest, labels))
}

/// Names are bounded on arrival; an earlier release may have accepted longer ones.
fn read_head(kind: RecordKind, octets: &[u8]) -> Result<MtsApduHead, Error> {
    Ok(match kind {
        RecordKind::Message => MtsApduHead::Message(Box::new(decode_envelope(octets)?)),
        RecordKind::Probe => {
            let envelope = ProbeTransferEnvelope::read(&Element::parse_accepted(octets)?)?;
            MtsApduHead::Probe(Box::new(envelope))
        }
        RecordKind::Report => {
            let report = Report::read(&Element::parse_accepted(octets)?)?;
            MtsApduHead::Report(Box::new(report))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical;
    use crate::testing::{
        BAKER, JONES, NOBODY, SMITH, address, at, engine, engine_of, submission, submit,
    };
    use p1::p3::ProbeSubmissionEnvelope;
    use proptest::prelude::*;

    #[test]
    fn it_came_by_those_of_its_internal_trace_since_its_recipients_changed() {
        use p1::trace::{
            InternalTraceElement, OtherActions, internal_trace, update_internal_trace,
        };
        let done = submit(&mut engine(), &submission(&[BAKER]));
        let mut record = done.accepted.entries[0].record.clone();
        let MtsApduHead::Message(envelope) = &mut record.head else { panic!("a message") };
        let own = internal_trace(&envelope.extensions).unwrap()[0].clone();
        let mut trace: Vec<InternalTraceElement> = Vec::new();
        for name in ["ROME", "ACT"] {
            let mta = p1::names::MtaName(name.to_owned());
            trace.push(InternalTraceElement { mta, ..own.clone() });
        }
        update_internal_trace(&mut envelope.extensions, |all| all.clone_from(&trace)).unwrap();
        assert!(record.passed("ROME") && record.passed("ACT") && !record.passed("OSLO"));
        let MtsApduHead::Message(envelope) = &mut record.head else { panic!("a message") };
        trace[0].additional.other_actions = OtherActions::REDIRECTED;
        update_internal_trace(&mut envelope.extensions, |all| all.clone_from(&trace)).unwrap();
        assert!(!record.passed("ROME") && record.passed("ACT"));
    }

    #[test]
    fn encodes_and_decodes_messages_and_reports() {
        let done = submit(&mut engine(), &submission(&[BAKER, JONES, NOBODY]));
        let kinds: Vec<_> = done.accepted.entries.iter().map(|e| e.record.kind()).collect();
        assert_eq!(kinds, [RecordKind::Message, RecordKind::Message, RecordKind::Report]);
        for entry in &done.accepted.entries {
            let octets = entry.record.encode();
            let back = Record::decode(&octets).unwrap();
            assert_eq!(back.encode(), octets);
            let sender = Record::originator(&octets).unwrap();
            let is_report = entry.record.kind() == RecordKind::Report;
            assert_eq!(sender, (!is_report).then(|| crate::testing::name(SMITH)));
            let fields = |r: &Record| {
                let times = (r.accepted, r.first_arrival, r.not_before);
                (r.next_hop.clone(), r.message.clone(), r.precedence, times, r.size, r.body)
            };
            assert_eq!(fields(&back), fields(&entry.record));
        }
    }

    /// A report, a message from Smith with any number of recipients, or a probe for them.
    fn record(kind: u8, (prmds, user): (&[u8], &str), fields: &Fields) -> Record {
        let to: Vec<String> =
            prmds.iter().map(|p| format!("C=XX;ADMD=;PRMD=p{};S={user}", p % 3)).collect();
        let to: Vec<&str> = to.iter().map(String::as_str).collect();
        // No recipient has a route, so a report is made; a routed one is there to be copied from.
        let mut engine = engine_of("alpha", "mta1", &["Smith"], &[("p0", 0), ("p1", 1), ("p2", 2)]);
        let recipients = if kind == 0 { vec![NOBODY] } else { to };
        let done = if kind == 1 {
            let message = submission(&recipients);
            let probe = ProbeSubmissionEnvelope {
                originator: message.originator,
                original_eits: None,
                content_type: message.content_type,
                content_identifier: message.content_identifier,
                content_length: None,
                indicators: message.indicators,
                recipients: message.recipients,
                extensions: message.extensions,
                unknown: Vec::new(),
            };
            engine.submit_probe(at(0), &canonical(&address(SMITH)), &probe).unwrap()
        } else {
            submit(&mut engine, &submission(&recipients))
        };
        let mut record = done.accepted.entries.into_iter().next_back().unwrap().record;
        let (precedence, accepted, first_arrival, not_before, size, body, mailbox) = fields.clone();
        record.precedence = Precedence::from_number(i64::from(precedence)).unwrap();
        (record.accepted, record.first_arrival) = (Utc(accepted), Utc(first_arrival));
        (record.not_before, record.size) = (not_before.map(Utc), size);
        record.body = body.map(BodyId);
        if let Some(mailbox) = mailbox {
            record.next_hop = NextHop::Mailbox(mailbox);
        }
        record
    }

    type Fields = (u8, u64, u64, Option<u64>, u64, Option<u64>, Option<String>);

    proptest! {
        #[test]
        fn a_peek_equals_the_whole(
            kind in 0u8..3,
            prmds in prop::collection::vec(any::<u8>(), 1..5),
            user in "[A-Za-z]{1,20}",
            fields in (
                0u8..6,
                any::<u64>(),
                any::<u64>(),
                any::<Option<u64>>(),
                any::<u64>(),
                any::<Option<u64>>(),
                any::<Option<String>>(),
            ),
            damaged in prop::option::of((any::<prop::sample::Index>(), 1u8..)),
        ) {
            let octets = record(kind, (&prmds, &user), &fields).encode();
            let mut octets = octets.to_vec();
            if let Some((at, flip)) = damaged {
                let at = at.index(octets.len());
                octets[at] ^= flip;
            }
            match (Record::peek(&octets), Record::decode(&octets)) {
                (Ok(brief), Ok(whole)) => prop_assert_eq!(brief, whole.brief()),
                (Err(brief), Err(whole)) => prop_assert_eq!(brief, whole),
                (Ok(_), Err(RecordError::Envelope(_))) => {}
                (brief, whole) => prop_assert!(false, "{brief:?} {whole:?}"),
            }
        }
    }

    #[test]
    fn reads_the_older_versions_too() {
        let done = submit(&mut engine(), &submission(&[BAKER]));
        let record = Record { digest: None, ..done.accepted.entries[0].record.clone() };
        let octets = record.encode().to_vec();
        // Without the digest, and without the latest delivery time: each is one octet if absent.
        for older in [[&[2], &octets[1..2], &octets[3..]].concat(), [&[1], &octets[3..]].concat()] {
            assert_eq!(Record::decode(&older).unwrap().encode().to_vec(), octets);
            assert_eq!(Record::peek(&older), Ok(record.brief()));
        }
    }

    #[test]
    fn what_an_earlier_version_accepted_is_read_back_as_it_is() {
        let done = submit(&mut engine(), &submission(&[BAKER, NOBODY]));
        let bad = || "x\u{1b}[2J".repeat(33);
        for entry in &done.accepted.entries {
            let mut record = entry.record.clone();
            match &mut record.head {
                MtsApduHead::Message(envelope) => {
                    envelope.message_identifier.local = bad();
                    envelope.originator.address.organization = Some(bad());
                    envelope.content_identifier = Some(bad());
                    envelope.trace[0].domain.admd = bad().as_str().into();
                }
                MtsApduHead::Report(report) => {
                    report.envelope.report_identifier.local = bad();
                    report.content.subject_identifier.local = bad();
                }
                MtsApduHead::Probe(_) => panic!("no probe was submitted"),
            }
            let octets = record.encode();
            assert_eq!(Record::decode(&octets).map(|back| back.encode()), Ok(octets.clone()));
            Record::originator(&octets).unwrap();
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
