//! A message or a probe on its way through: what both have.

use crate::Engine;
use crate::trace::internal;
use base::Utc;
use p1::apdu::MtsApduHead;
use p1::content_type::ContentType;
use p1::eits::EncodedInformationTypes;
use p1::envelope::{MessageTransferEnvelope, PerRecipientFields, ProbeTransferEnvelope};
use p1::extension::Extensions;
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

/// What reports say of a message or a probe.
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
        }
    }
}

impl Carried {
    pub(crate) fn subject(&self) -> Subject<'_> {
        match self {
            Carried::Message(e) => Subject::from(&**e),
            Carried::Probe(e) => Subject::from(&**e),
        }
    }

    pub(crate) fn recipients_mut(&mut self) -> &mut [PerRecipientFields] {
        match self {
            Carried::Message(e) => &mut e.recipients,
            Carried::Probe(e) => &mut e.recipients,
        }
    }

    /// A copy with these recipients in place of its own, which are not copied first: there may be
    /// thousands of them.
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

/// How much longer than a copy may wait here at most, and how far in the future, the first arrival
/// may lie that a trace tells of, and still be believed. Copies may have waited elsewhere, and no two
/// clocks are the same; beyond it a clock was wrong.
pub const TRACE_MARGIN: Duration = Duration::from_hours(24);

/// When something was first taken up anywhere, and what there is to say of its traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstArrival {
    pub at: Utc,
    /// A time in the traces that is not believed, in words.
    pub doubt: Option<String>,
}

impl Engine {
    /// When it was first taken up anywhere: the arrival time of the oldest trace element or, where
    /// none of those tells a time, of the oldest internal one; or the end of the deferral that is
    /// noted there. Never later than `now`, which stands in where neither trace tells.
    ///
    /// A time is believed that is not older than the longest time a copy may wait here and
    /// [`TRACE_MARGIN`], and not further in the future than that margin; of others the next element
    /// is asked. So a wrong clock on the way does not end a message, and an MTA that held one for
    /// longer than we would gives it a new life here.
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
            // A deferral that ends in years has not ended: it was not what the message waited for.
            let at = if is_believed(held) { held } else { arrival };
            if is_believed(at) {
                return Some(at.min(now));
            }
            doubt.get_or_insert_with(|| {
                format!("the trace of {who} says {at}, which is not believed: is its clock right?")
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
