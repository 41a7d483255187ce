//! What `--message` transfers: a probe, or a short text.

use super::calling::random;
use super::{Arguments, Subject};
use crate::clock::Clock;
use p1::ContentType;
use p1::apdu::MtsApduHead;
use p1::envelope::{MessageTransferEnvelope, PerRecipientFields, ProbeTransferEnvelope};
use p1::extension::{Dialect, Extensions};
use p1::flags::{
    MtaReportRequest, PerMessageIndicators, PerRecipientIndicators, Priority, ReportRequest,
};
use p1::names::{MtsIdentifier, ORAddress, ORName};
use p1::trace::{
    AdditionalActions, InternalTraceElement, RoutingAction, TraceElement, add_internal_trace,
};
use p772::{ContentBuilder, Heading, IpmIdentifier};

/// The text of a message.
const TEXT: &str = "This is a trial of the connection, made by mta try. Nobody has to answer.\r\n";

/// What is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Kind {
    /// An envelope without content: is the recipient one to whom they would deliver?
    Probe,
    /// A text of one line (P22), which is delivered.
    Text,
}

/// The APDU, and what it is in words.
pub(super) fn build(
    kind: Kind,
    arguments: &Arguments,
    subject: &Subject<'_>,
    clock: Clock,
) -> Result<(Vec<u8>, String), String> {
    let node = &subject.site.node;
    let name = |text: &str| -> Result<ORName, String> {
        let address = text.parse::<ORAddress>();
        address.map(ORName::from).map_err(|error| format!("{text}: {error}"))
    };
    let to = name(arguments.to.as_deref().unwrap_or_default())?;
    let originator = match &arguments.from {
        Some(from) => name(from)?,
        None => name(&format!("{}/S=POSTMASTER", domain_address(subject)))?,
    };
    // The daemon's have a point after the name of the MTA: none of them is equal to this.
    let local = format!("try-{:016x}", random()?);
    let identifier = MtsIdentifier { domain: node.domain.clone(), local };
    let envelope = Envelope { identifier, originator, to, subject, clock };
    let words = |what: &str| {
        format!(
            "{what} {} from {} to {}",
            envelope.identifier.local, envelope.originator.address, envelope.to.address
        )
    };
    let defaults = subject.peer.form.defaults();
    match kind {
        Kind::Probe => {
            let head = MtsApduHead::Probe(Box::new(envelope.probe()?));
            Ok((head.encode(None, defaults), words("probe")))
        }
        Kind::Text => {
            let content = envelope.content()?;
            let head = MtsApduHead::Message(Box::new(envelope.message()?));
            let head = head.encode(Some(content.len() as u64), defaults);
            Ok(([head, content].concat(), words("message (P22)")))
        }
    }
}

/// The domain of this MTA as the begin of an address.
fn domain_address(subject: &Subject<'_>) -> String {
    let domain = &subject.site.node.domain;
    let prmd = domain.prmd.as_ref().map(|prmd| format!("/PRMD={}", prmd.value));
    let (country, admd) = (&domain.country.value, &domain.admd.value);
    format!("/C={country}/ADMD={admd}{}", prmd.unwrap_or_default())
}

/// What a probe and a message have in common.
struct Envelope<'a> {
    identifier: MtsIdentifier,
    originator: ORName,
    to: ORName,
    subject: &'a Subject<'a>,
    clock: Clock,
}

impl Envelope<'_> {
    fn recipients(&self) -> Vec<PerRecipientFields> {
        let (mta, originator) = (MtaReportRequest::Report, ReportRequest::Report);
        let indicators = PerRecipientIndicators::new(true, mta, originator);
        let recipient = self.to.clone();
        vec![PerRecipientFields { recipient, number: 1, indicators, ..Default::default() }]
    }

    /// As accepted here a moment ago.
    fn trace(&self) -> Vec<TraceElement> {
        vec![TraceElement {
            domain: self.identifier.domain.clone(),
            arrival_time: self.clock.now().utc.into(),
            routing_action: RoutingAction::Relayed,
            attempted_domain: None,
            additional: AdditionalActions::default(),
        }]
    }

    /// The internal trace, in the dialect of the peer; X.410 mode has no extensions.
    fn extensions(&self) -> Result<Extensions, String> {
        let mut extensions = Extensions::default();
        if self.subject.peer.x410.is_some() {
            return Ok(extensions);
        }
        let element = InternalTraceElement {
            domain: self.identifier.domain.clone(),
            mta: self.subject.site.node.mta.clone(),
            arrival_time: self.clock.now().utc.into(),
            routing_action: RoutingAction::Relayed,
            attempted: None,
            additional: AdditionalActions::default(),
        };
        add_internal_trace(&mut extensions, element).map_err(|error| error.to_string())?;
        Ok(extensions)
    }

    fn probe(&self) -> Result<ProbeTransferEnvelope, String> {
        let mut probe = ProbeTransferEnvelope {
            probe_identifier: self.identifier.clone(),
            originator: self.originator.clone(),
            original_eits: None,
            content_type: self.content_type(),
            content_identifier: None,
            content_length: Some(TEXT.len() as i64),
            indicators: PerMessageIndicators::default(),
            per_domain_bilateral: None,
            recipients: self.recipients(),
            extensions: self.extensions()?,
            trace: self.trace(),
            unknown: Vec::new(),
        };
        probe.set_form(self.subject.peer.form);
        Ok(probe)
    }

    fn message(&self) -> Result<MessageTransferEnvelope, String> {
        let mut message = MessageTransferEnvelope {
            message_identifier: self.identifier.clone(),
            originator: self.originator.clone(),
            original_eits: None,
            content_type: self.content_type(),
            content_identifier: None,
            priority: Priority::Normal,
            indicators: PerMessageIndicators::default(),
            deferred_delivery_time: None,
            per_domain_bilateral: None,
            recipients: self.recipients(),
            extensions: self.extensions()?,
            trace: self.trace(),
            unknown: Vec::new(),
        };
        message.set_form(self.subject.peer.form);
        Ok(message)
    }

    /// P1 of 1984 has no P22.
    fn content_type(&self) -> ContentType {
        match self.dialect() {
            Dialect::RedBook1984(_) => ContentType::P2,
            _ => ContentType::P22,
        }
    }

    fn dialect(&self) -> Dialect {
        self.subject.peer.form.dialect
    }

    fn content(&self) -> Result<Vec<u8>, String> {
        let user = Some(self.originator.clone());
        let heading = Heading {
            this_ipm: IpmIdentifier { user, local: self.identifier.local.clone() },
            primary_recipients: vec![self.to.clone().into()],
            subject: Some("Trial of the connection".to_owned()),
            ..Heading::default()
        };
        let builder = ContentBuilder::new(&heading).map_err(|error| error.to_string())?;
        Ok(builder.text(TEXT).finish())
    }
}
