//! What a message is made of: heading, envelope and where its body comes from.

use crate::source::Source;
use anyhow::{Context, Result};
use base::{Precedence, Utc};
use p1::content_type::ContentType;
use p1::eits::EncodedInformationTypes;
use p1::extension::{Dialect, Extensions};
use p1::flags::{PerMessageIndicators, ReportRequest};
use p1::names::ORName;
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use p772::{
    ContentBuilder, DistributionCodes, Framing, Heading, IpmIdentifier, MessageType, Military,
    MmhsPrecedence, PartForm, RecipientSpecifier,
};

/// One message to submit.
#[derive(Debug)]
pub(crate) struct Message {
    pub precedence: Precedence,
    pub copy_precedence: Option<Precedence>,
    pub to: Vec<ORName>,
    pub copy: Vec<ORName>,
    pub subject: Option<String>,
    pub sics: Vec<String>,
    pub message_type: Option<MessageType>,
    pub instructions: Vec<String>,
    pub report: ReportRequest,
    /// P22 instead of P772: no military heading fields.
    pub civil: bool,
    pub originator: ORName,
    /// The date-time group of the heading. Part of the content, so a repetition has the same.
    pub authorised_at: Utc,
    /// Printable, 1 to 16 characters, unique to the originator.
    pub content_identifier: String,
    pub form: PartForm,
    pub source: Source,
}

impl Message {
    /// The content up to the body's octets, and how many of those follow.
    pub(crate) fn framing(&self) -> Result<Framing> {
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
        Ok(builder.finish_with(self.form, self.source.len()))
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
}

/// The submission envelope: three grades of priority, and the qualifier that makes them six.
pub(crate) fn envelope(originator: &ORName, message: &Message) -> MessageSubmissionEnvelope {
    let (priority, qualifier) = p1::grade::split(message.precedence);
    let recipients =
        message.to.iter().chain(&message.copy).map(|recipient| PerRecipientSubmissionFields {
            recipient: recipient.clone(),
            report_request: message.report,
            ..PerRecipientSubmissionFields::default()
        });
    MessageSubmissionEnvelope {
        originator: originator.clone(),
        original_eits: Some(EncodedInformationTypes::default()),
        content_type: if message.civil { ContentType::P22 } else { ContentType::p772() },
        content_identifier: Some(message.content_identifier.clone()),
        priority,
        indicators: PerMessageIndicators::default(),
        deferred_delivery_time: None,
        recipients: recipients.collect(),
        extensions: Extensions(qualifier.extension(Dialect::Modern).into_iter().collect()),
        unknown: Vec::new(),
    }
}
