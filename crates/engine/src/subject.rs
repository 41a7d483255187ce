//! A message or a probe on its way through: what both have.

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

impl Subject<'_> {
    /// See [`first_arrival`].
    pub(crate) fn first_arrival(&self, now: Utc) -> Utc {
        first_arrival(self.trace, self.extensions, now)
    }
}

/// When it was first taken up anywhere: the arrival time of the oldest trace element or, where that
/// is no time, of the oldest internal one; or the end of the deferral that is noted there. Never
/// later than `now`, which stands in where neither trace tells.
pub(crate) fn first_arrival(trace: &[TraceElement], extensions: &Extensions, now: Utc) -> Utc {
    let held = |arrival: Utc, deferred: Option<&Time>| {
        deferred.and_then(|t| t.utc).map_or(arrival, |until| until.max(arrival))
    };
    let external = trace
        .first()
        .and_then(|t| Some(held(t.arrival_time.utc?, t.additional.deferred_time.as_ref())));
    let inside = || {
        let first = internal(extensions).into_iter().next()?;
        Some(held(first.arrival_time.utc?, first.additional.deferred_time.as_ref()))
    };
    external.or_else(inside).map_or(now, |t| t.min(now))
}
