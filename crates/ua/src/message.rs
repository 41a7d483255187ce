//! A message to submit: heading, envelope, and the source of its body.

use crate::clock::Clock;
use crate::content::{Content, Source};
use anyhow::{Context, Result};
use base::{Precedence, Utc};
use p1::content_type::ContentType;
use p1::eits::EncodedInformationTypes;
use p1::extension::{Dialect, Extensions};
use p1::flags::{PerMessageIndicators, ReportRequest};
use p1::names::ORName;
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use p772::{
    Charset, ContentBuilder, DistributionCodes, Heading, IpmIdentifier, MessageType, Military,
    MmhsPrecedence, PartForm, RecipientSpecifier,
};

/// One message to submit.
#[derive(Debug)]
pub struct Message {
    /// The primary precedence, also the envelope's.
    pub precedence: Precedence,
    /// The copy precedence, if different.
    pub copy_precedence: Option<Precedence>,
    /// Recipients for action.
    pub to: Vec<ORName>,
    /// Recipients for information.
    pub copy: Vec<ORName>,
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
    /// The form of the body.
    pub form: PartForm,
    /// The body's octets.
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
            to,
            copy: Vec::new(),
            subject: None,
            sics: Vec::new(),
            message_type: None,
            instructions: Vec::new(),
            report: ReportRequest::NonDelivery,
            civil: false,
            originator,
            authorised_at: Clock::utc(),
            content_identifier: content_identifier.to_owned(),
            form: PartForm::Text(Charset::Ascii),
            source: Source::Canned(size),
        }
    }

    /// The content.
    ///
    /// # Errors
    /// The heading cannot be written.
    pub fn content(self) -> Result<Content> {
        let head = self.head()?.into();
        Ok(Content { head, source: self.source })
    }

    /// The content up to the body.
    ///
    /// # Errors
    /// The heading cannot be written.
    pub fn head(&self) -> Result<Vec<u8>> {
        let specifiers = |names: &[ORName]| -> Vec<RecipientSpecifier> {
            names.iter().cloned().map(RecipientSpecifier::from).collect()
        };
        let heading = Heading {
            this_ipm: IpmIdentifier {
                user: Some(self.originator.clone()),
                local: self.content_identifier.clone(),
            },
            originator: Some(self.originator.clone().into()),
            primary_recipients: specifiers(&self.to),
            copy_recipients: specifiers(&self.copy),
            subject: self.subject.clone(),
            military: if self.civil { Military::default() } else { self.military() },
            ..Heading::default()
        };
        let builder = ContentBuilder::new(&heading).context("the heading")?;
        Ok(builder.finish_with(&self.form, self.source.len()).head)
    }

    fn military(&self) -> Military {
        let copy = self.copy_precedence.or((!self.copy.is_empty()).then_some(self.precedence));
        Military {
            primary_precedence: Some(MmhsPrecedence::from(self.precedence)),
            copy_precedence: copy.map(MmhsPrecedence::from),
            message_type: self.message_type.clone(),
            authorised_at: Some(self.authorised_at),
            distribution_codes: DistributionCodes {
                sics: self.sics.clone(),
                extensions: Vec::new(),
            },
            message_instructions: self.instructions.clone(),
            ..Military::default()
        }
    }

    /// The submission envelope: three priorities, and the qualifier that makes them six.
    pub fn envelope(&self) -> MessageSubmissionEnvelope {
        let (priority, qualifier) = p1::grade::split(self.precedence);
        let recipients =
            self.to.iter().chain(&self.copy).map(|recipient| PerRecipientSubmissionFields {
                recipient: recipient.clone(),
                report_request: self.report,
                ..PerRecipientSubmissionFields::default()
            });
        MessageSubmissionEnvelope {
            originator: self.originator.clone(),
            original_eits: Some(EncodedInformationTypes::default()),
            content_type: if self.civil { ContentType::P22 } else { ContentType::p772() },
            content_identifier: Some(self.content_identifier.clone()),
            priority,
            indicators: PerMessageIndicators::default(),
            deferred_delivery_time: None,
            recipients: recipients.collect(),
            extensions: Extensions(qualifier.extension(Dialect::Modern).into_iter().collect()),
            unknown: Vec::new(),
        }
    }
}
