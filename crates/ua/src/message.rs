//! A message to submit: heading, envelope, and the sources of its body parts.

pub mod label;

use crate::clock::Clock;
use crate::content::{Content, Source};
use crate::form::Requests;
use anyhow::{Context, Result};
use base::ber::universal as u;
use base::{Precedence, Utc};
use p1::content_type::ContentType;
use p1::eits::EncodedInformationTypes;
use p1::extension::{Criticality, Dialect, ExtensionField, Extensions, number};
use p1::flags::{PerMessageIndicators, ReportRequest};
use p1::names::ORName;
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use p1::security_label::SecurityLabel;
use p772::{
    Charset, ContentBuilder, DistributionCodes, Heading, IpmIdentifier, MessageType, Military,
    MmhsPrecedence, PartForm, RecipientSpecifier,
};

/// A recipient, and what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// Its O/R name.
    pub name: ORName,
    /// Notifications, a reply, and the report if another than the message's.
    pub requests: Requests,
}

impl From<ORName> for Recipient {
    fn from(name: ORName) -> Recipient {
        Recipient { name, requests: Requests::default() }
    }
}

impl Recipient {
    /// As a heading has it.
    pub fn specifier(&self) -> RecipientSpecifier {
        RecipientSpecifier {
            notification_requests: self.requests.notifications,
            reply_requested: self.requests.reply,
            acp127_request: self.requests.acp127,
            ..RecipientSpecifier::from(self.name.clone())
        }
    }
}

/// A body part.
#[derive(Debug)]
pub struct BodyPart {
    /// What its octets are.
    pub form: PartForm,
    /// Its octets.
    pub source: Source,
}

impl BodyPart {
    /// A text, in the simplest character set that holds it.
    pub fn text(text: &str) -> BodyPart {
        let charset = Charset::for_text(text);
        let source = Source::Octets(charset.encode(text).into());
        BodyPart { form: PartForm::Text(charset), source }
    }
}

/// What the envelope of a message has beside recipients and precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvelopeOptions {
    /// message-security-label.
    pub label: Option<SecurityLabel>,
    /// deferred-delivery-time: the MTS delivers it no sooner.
    pub deferred_until: Option<Utc>,
    /// latest-delivery-time: after this the MTS reports non-delivery.
    pub latest_delivery: Option<Utc>,
    /// content-return-request: a report of non-delivery is to have the content.
    pub return_content: bool,
    /// originator-requested-alternate-recipient of every recipient: who gets it if he cannot.
    pub alternate: Option<ORName>,
    /// alternate-recipient-allowed: the recipient's MTA may give it to its alternate recipient if the
    /// address is nobody's.
    pub alternate_allowed: bool,
    /// recipient-reassignment-prohibited: it is not to follow a redirection that the recipient has set.
    pub no_reassignment: bool,
    /// dl-exempted-recipients: members to whom no list sends a copy.
    pub exempted: Vec<ORName>,
}

/// One message to submit.
#[derive(Debug)]
pub struct Message {
    /// The primary precedence, also the envelope's.
    pub precedence: Precedence,
    /// The copy precedence, if different.
    pub copy_precedence: Option<Precedence>,
    /// Recipients for action.
    pub to: Vec<Recipient>,
    /// Recipients for information.
    pub copy: Vec<Recipient>,
    /// This is the copy for a recipient whom the others do not know of: it alone is in the envelope,
    /// and the heading of no other copy has it (X.420 7.2.6).
    pub blind: Option<Recipient>,
    /// Up to 128 characters.
    pub subject: Option<String>,
    /// Subject indicator codes.
    pub sics: Vec<String>,
    /// Exercise, operation, and other types.
    pub message_type: Option<MessageType>,
    /// Message instructions.
    pub instructions: Vec<String>,
    /// The reports to request.
    pub report: ReportRequest,
    /// P22 instead of P772: no military heading fields.
    pub civil: bool,
    /// The originator.
    pub originator: ORName,
    /// The date-time group of the heading. It is part of the content, so a repetition has the
    /// same.
    pub authorised_at: Utc,
    /// Printable, 1 to 16 characters, unique to the originator.
    pub content_identifier: String,
    /// The local part of the IPM identifier, if another than the content identifier: all copies of a
    /// message have the same.
    pub ipm_identifier: Option<String>,
    /// All other fields of the heading. The fields that this message has itself replace those here.
    pub heading: Box<Heading>,
    /// What the envelope has beside.
    pub options: EnvelopeOptions,
    /// Body parts before the last one.
    pub parts: Vec<BodyPart>,
    /// The form of the last body part.
    pub form: PartForm,
    /// The last body part's octets.
    pub source: Source,
}

impl Message {
    /// A message of this much canned text, with the current time and the mandatory heading fields
    /// only; `content_identifier` is the field of that name.
    pub fn canned(
        originator: ORName,
        to: Vec<ORName>,
        precedence: Precedence,
        size: u64,
        content_identifier: &str,
    ) -> Message {
        Message {
            precedence,
            copy_precedence: None,
            to: to.into_iter().map(Recipient::from).collect(),
            copy: Vec::new(),
            blind: None,
            subject: None,
            sics: Vec::new(),
            message_type: None,
            instructions: Vec::new(),
            report: ReportRequest::NonDelivery,
            civil: false,
            originator,
            authorised_at: Clock::utc(),
            content_identifier: content_identifier.to_owned(),
            ipm_identifier: None,
            heading: Box::default(),
            options: EnvelopeOptions::default(),
            parts: Vec::new(),
            form: PartForm::Text(Charset::Ascii),
            source: Source::Canned(size),
        }
    }

    /// Octets of all body parts.
    pub fn size(&self) -> u64 {
        let parts = self.parts.iter().map(|part| part.source.len());
        parts.fold(self.source.len(), u64::saturating_add)
    }

    /// The content.
    ///
    /// # Errors
    /// The heading cannot be written.
    pub fn content(self) -> Result<Content> {
        let mut heads = self.heads()?.into_iter();
        let head = heads.next().unwrap_or_default().into();
        if self.parts.is_empty() {
            return Ok(Content { head, source: self.source });
        }
        let mut sources = Vec::new();
        let data = self.parts.into_iter().map(|part| part.source).chain([self.source]);
        for (n, data) in data.enumerate() {
            if n > 0 {
                sources.push(Source::Octets(heads.next().unwrap_or_default().into()));
            }
            sources.push(data);
        }
        Ok(Content { head, source: Source::Several(sources) })
    }

    /// The content up to the data of its first body part.
    ///
    /// # Errors
    /// The heading cannot be written.
    pub fn head(&self) -> Result<Vec<u8>> {
        Ok(self.heads()?.into_iter().next().unwrap_or_default())
    }

    /// What precedes the data of each body part.
    fn heads(&self) -> Result<Vec<Vec<u8>>> {
        let builder = ContentBuilder::new(&self.full_heading()).context("the heading")?;
        let parts = self.parts.iter().map(|part| (part.form.clone(), part.source.len()));
        let parts: Vec<(PartForm, u64)> =
            parts.chain([(self.form.clone(), self.source.len())]).collect();
        Ok(builder.finish_with_all(&parts))
    }

    /// This message's IPM identifier.
    pub fn ipm(&self) -> IpmIdentifier {
        IpmIdentifier {
            user: Some(self.originator.clone()),
            local: self.ipm_identifier.as_ref().unwrap_or(&self.content_identifier).clone(),
        }
    }

    /// The heading, all of it.
    pub fn full_heading(&self) -> Heading {
        let specifiers = |all: &[Recipient]| all.iter().map(Recipient::specifier).collect();
        Heading {
            this_ipm: self.ipm(),
            originator: Some(self.originator.clone().into()),
            primary_recipients: specifiers(&self.to),
            copy_recipients: specifiers(&self.copy),
            blind_copy_recipients: specifiers(self.blind.as_slice()),
            subject: self.subject.clone(),
            military: if self.civil { Military::default() } else { self.military() },
            ..(*self.heading).clone()
        }
    }

    fn military(&self) -> Military {
        let copy = self.copy_precedence.or((!self.copy.is_empty()).then_some(self.precedence));
        let military = self.heading.military.clone();
        Military {
            primary_precedence: Some(MmhsPrecedence::from(self.precedence)),
            copy_precedence: copy.map(MmhsPrecedence::from),
            message_type: self.message_type.clone(),
            authorised_at: Some(self.authorised_at),
            distribution_codes: DistributionCodes {
                sics: self.sics.clone(),
                extensions: military.distribution_codes.extensions.clone(),
            },
            message_instructions: self.instructions.clone(),
            ..military
        }
    }

    /// The recipients of the envelope: the blind one alone in its own copy.
    pub fn recipients(&self) -> Vec<&Recipient> {
        match &self.blind {
            Some(blind) => vec![blind],
            None => self.to.iter().chain(&self.copy).collect(),
        }
    }

    /// The submission envelope: three priorities, and the qualifier that makes them six.
    pub fn envelope(&self) -> MessageSubmissionEnvelope {
        let (priority, qualifier) = p1::grade::split(self.precedence);
        let recipients =
            self.recipients().into_iter().map(|recipient| PerRecipientSubmissionFields {
                recipient: recipient.name.clone(),
                report_request: recipient.requests.report.unwrap_or(self.report),
                extensions: Extensions(self.options.of_recipient()),
                ..PerRecipientSubmissionFields::default()
            });
        let mut extensions = Extensions(qualifier.extension(Dialect::Modern).into_iter().collect());
        extensions.0.extend(self.options.extensions());
        MessageSubmissionEnvelope {
            originator: self.originator.clone(),
            original_eits: Some(EncodedInformationTypes::default()),
            content_type: if self.civil { ContentType::P22 } else { ContentType::p772() },
            content_identifier: Some(self.content_identifier.clone()),
            priority,
            indicators: self.options.indicators(),
            deferred_delivery_time: self.options.deferred_until.map(Into::into),
            recipients: recipients.collect(),
            extensions,
            unknown: Vec::new(),
        }
    }
}

impl EnvelopeOptions {
    fn indicators(&self) -> PerMessageIndicators {
        let all = [
            (self.return_content, PerMessageIndicators::CONTENT_RETURN_REQUEST),
            (self.alternate_allowed, PerMessageIndicators::ALTERNATE_RECIPIENT_ALLOWED),
        ];
        let wanted = all.into_iter().filter(|(wanted, _)| *wanted);
        wanted.fold(PerMessageIndicators::default(), |set, (_, one)| set | one)
    }

    /// The extensions of each recipient.
    fn of_recipient(&self) -> Vec<ExtensionField> {
        let submission = Criticality { for_submission: true, ..Criticality::default() };
        let number = number::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT;
        let field = |name: &ORName| ExtensionField::standard(number, submission, |w| name.write(w));
        self.alternate.iter().map(field).collect()
    }

    /// The standard extensions that carry them (X.411 8.2.1.1.1), with the criticality that it
    /// recommends.
    fn extensions(&self) -> Vec<ExtensionField> {
        let delivery = Criticality { for_delivery: true, ..Criticality::default() };
        let mut all = Vec::new();
        if let Some(latest) = self.latest_delivery {
            all.push(ExtensionField::standard(number::LATEST_DELIVERY_TIME, delivery, |w| {
                w.utc_time(u::UTC_TIME, latest);
            }));
        }
        if self.no_reassignment {
            let number = number::RECIPIENT_REASSIGNMENT_PROHIBITED;
            all.push(ExtensionField::standard(number, delivery, |w| w.integer(u::ENUMERATED, 1)));
        }
        if let Some(label) = &self.label {
            all.push(label::field(label));
        }
        if !self.exempted.is_empty() {
            // X.411 recommends no criticality for it.
            let (number, none) = (number::DL_EXEMPTED_RECIPIENTS, Criticality::default());
            all.push(ExtensionField::standard(number, none, |w| {
                w.constructed(u::SET, |w| self.exempted.iter().for_each(|name| name.write(w)));
            }));
        }
        all
    }
}
