//! A message or a probe in processing: their common fields.

use crate::Engine;
use crate::arrival::trace::internal;
use crate::record::Record;
use base::{BodyId, Utc};
use p1::ContentLabels;
use p1::apdu::MtsApduHead;
use p1::content_type::ContentType;
use p1::eits::EncodedInformationTypes;
use p1::envelope::{MessageTransferEnvelope, PerRecipientFields, ProbeTransferEnvelope};
use p1::extension::Extensions;
use p1::flags::PerMessageIndicators;
use p1::names::{MtsIdentifier, ORName};
use p1::time::Time;
use p1::trace::TraceElement;
use std::fmt::Display;
use std::time::Duration;

/// A message or a probe, owned.
#[derive(Clone, Debug)]
pub(crate) enum Carried {
    Message(Box<MessageTransferEnvelope>),
    Probe(Box<ProbeTransferEnvelope>),
}

/// The fields of a message or a probe that reports use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub identifier: &'a MtsIdentifier,
    pub originator: &'a ORName,
    pub trace: &'a [TraceElement],
    pub recipients: &'a [PerRecipientFields],
    pub content_type: &'a ContentType,
    pub content_identifier: Option<&'a String>,
    pub original_eits: Option<&'a EncodedInformationTypes>,
    pub extensions: &'a Extensions,
    /// content-return-request: whether a report of non-delivery returns the content.
    pub returns_content: bool,
    /// The content of a message, where it is stored or about to be.
    pub content: Option<StoredContent>,
    /// The security labels inside it.
    pub content_labels: Option<&'a ContentLabels>,
}

/// What is compared of a content with what those take whom it would go to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured<'a> {
    /// Octets.
    pub size: u64,
    /// The security labels inside it.
    pub labels: &'a ContentLabels,
}

impl Record {
    pub(crate) fn measured(&self) -> Measured<'_> {
        Measured { size: self.size, labels: &self.content_labels }
    }
}

/// A content in the store, or about to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredContent {
    pub body: BodyId,
    /// Octets.
    pub size: u64,
    /// SHA-256, if known.
    pub digest: Option<[u8; 32]>,
}

impl StoredContent {
    /// That of a record, if it has one.
    pub(crate) fn of_record(record: &Record) -> Option<StoredContent> {
        let Record { body, size, digest, .. } = *record;
        body.map(|body| StoredContent { body, size, digest })
    }
}

impl<'a> From<&'a MessageTransferEnvelope> for Subject<'a> {
    fn from(e: &'a MessageTransferEnvelope) -> Subject<'a> {
        Subject {
            identifier: &e.message_identifier,
            originator: &e.originator,
            trace: &e.trace,
            recipients: &e.recipients,
            content_type: &e.content_type,
            content_identifier: e.content_identifier.as_ref(),
            original_eits: e.original_eits.as_ref(),
            extensions: &e.extensions,
            returns_content: e.indicators.contains(PerMessageIndicators::CONTENT_RETURN_REQUEST),
            content: None,
            content_labels: None,
        }
    }
}

impl<'a> From<&'a ProbeTransferEnvelope> for Subject<'a> {
    fn from(e: &'a ProbeTransferEnvelope) -> Subject<'a> {
        Subject {
            identifier: &e.probe_identifier,
            originator: &e.originator,
            trace: &e.trace,
            recipients: &e.recipients,
            content_type: &e.content_type,
            content_identifier: e.content_identifier.as_ref(),
            original_eits: e.original_eits.as_ref(),
            extensions: &e.extensions,
            // X.411 8.2.1.2: a probe has no content.
            returns_content: false,
            content: None,
            content_labels: None,
        }
    }
}

impl<'a> Subject<'a> {
    /// With this content, which its reports may return, and the labels inside it.
    pub(crate) fn with_content(
        self,
        content: Option<StoredContent>,
        labels: &'a ContentLabels,
    ) -> Self {
        Subject { content, content_labels: Some(labels), ..self }
    }
}

impl Carried {
    pub(crate) fn subject(&self) -> Subject<'_> {
        match self {
            Carried::Message(e) => Subject::from(&**e),
            Carried::Probe(e) => Subject::from(&**e),
        }
    }

    pub(crate) fn indicators(&self) -> PerMessageIndicators {
        match self {
            Carried::Message(e) => e.indicators,
            Carried::Probe(e) => e.indicators,
        }
    }

    pub(crate) fn recipients_mut(&mut self) -> &mut [PerRecipientFields] {
        match self {
            Carried::Message(e) => &mut e.recipients,
            Carried::Probe(e) => &mut e.recipients,
        }
    }

    /// A copy with other recipients. Its own are not copied first: there may be thousands.
    pub(crate) fn with_recipients(&self, recipients: Vec<PerRecipientFields>) -> Carried {
        match self {
            Carried::Message(e) => {
                let MessageTransferEnvelope {
                    message_identifier,
                    originator,
                    original_eits,
                    content_type,
                    content_identifier,
                    priority,
                    indicators,
                    deferred_delivery_time,
                    per_domain_bilateral,
                    recipients: _,
                    extensions,
                    trace,
                    unknown,
                } = &**e;
                Carried::Message(Box::new(MessageTransferEnvelope {
                    message_identifier: message_identifier.clone(),
                    originator: originator.clone(),
                    original_eits: original_eits.clone(),
                    content_type: content_type.clone(),
                    content_identifier: content_identifier.clone(),
                    priority: *priority,
                    indicators: *indicators,
                    deferred_delivery_time: deferred_delivery_time.clone(),
                    per_domain_bilateral: per_domain_bilateral.clone(),
                    recipients,
                    extensions: extensions.clone(),
                    trace: trace.clone(),
                    unknown: unknown.clone(),
                }))
            }
            Carried::Probe(e) => {
                let ProbeTransferEnvelope {
                    probe_identifier,
                    originator,
                    original_eits,
                    content_type,
                    content_identifier,
                    content_length,
                    indicators,
                    per_domain_bilateral,
                    recipients: _,
                    extensions,
                    trace,
                    unknown,
                } = &**e;
                Carried::Probe(Box::new(ProbeTransferEnvelope {
                    probe_identifier: probe_identifier.clone(),
                    originator: originator.clone(),
                    original_eits: original_eits.clone(),
                    content_type: content_type.clone(),
                    content_identifier: content_identifier.clone(),
                    content_length: *content_length,
                    indicators: *indicators,
                    per_domain_bilateral: per_domain_bilateral.clone(),
                    recipients,
                    extensions: extensions.clone(),
                    trace: trace.clone(),
                    unknown: unknown.clone(),
                }))
            }
        }
    }

    pub(crate) fn traces_mut(&mut self) -> (&mut Vec<TraceElement>, &mut Extensions) {
        match self {
            Carried::Message(e) => (&mut e.trace, &mut e.extensions),
            Carried::Probe(e) => (&mut e.trace, &mut e.extensions),
        }
    }

    pub(crate) fn into_head(self) -> MtsApduHead {
        match self {
            Carried::Message(e) => MtsApduHead::Message(e),
            Carried::Probe(e) => MtsApduHead::Probe(e),
        }
    }
}

/// How much older than the longest wait here, and how far in the future, the first arrival in a
/// trace may be and still be accepted. Copies may have waited at other MTAs, and clocks differ;
/// beyond this margin a clock is wrong.
pub const TRACE_MARGIN: Duration = Duration::from_hours(24);

/// The time of the first arrival in the MTS, and whether its traces are plausible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstArrival {
    pub at: Utc,
    /// An implausible time in the traces, as text.
    pub doubt: Option<String>,
}

impl Engine {
    /// The time of the first arrival in the MTS: the arrival time of the oldest trace element or,
    /// if none of those has a valid time, of the oldest internal one; or the end of the deferral
    /// noted there. At most `now`, which is used if no trace has a valid time.
    ///
    /// A time is accepted if it is at most [`TRACE_MARGIN`] older than the longest wait here, and
    /// at most that margin in the future; otherwise the next element is used. So a wrong clock on
    /// the path does not expire a message, and a message that another MTA held for longer than
    /// this one would is counted from its arrival here.
    pub(crate) fn first_arrival(
        &self,
        now: Utc,
        trace: &[TraceElement],
        extensions: &Extensions,
    ) -> FirstArrival {
        let longest = self.expire.longest() + TRACE_MARGIN;
        let is_believed = |at: Utc| at + longest >= now && at <= now + TRACE_MARGIN;
        let mut doubt = None;
        let mut believed = |arrival: Option<Utc>, deferred: Option<&Time>, who: &dyn Display| {
            let arrival = arrival?;
            let held = deferred.and_then(|t| t.utc).map_or(arrival, |until| until.max(arrival));
            // A deferral that ends years from now has not ended, so the message did not wait for
            // it.
            let at = if is_believed(held) { held } else { arrival };
            if is_believed(at) {
                return Some(at.min(now));
            }
            doubt.get_or_insert_with(|| {
                format!(
                    "the trace of {who} states {at}, which is not plausible: is its clock right?"
                )
            });
            None
        };
        let external = trace.iter().find_map(|t| {
            believed(t.arrival_time.utc, t.additional.deferred_time.as_ref(), &t.domain)
        });
        let at = external.or_else(|| {
            internal(extensions).into_iter().find_map(|t| {
                let who = format_args!("{} of {}", t.mta, t.domain).to_string();
                believed(t.arrival_time.utc, t.additional.deferred_time.as_ref(), &who)
            })
        });
        FirstArrival { at: at.unwrap_or(now), doubt }
    }
}
