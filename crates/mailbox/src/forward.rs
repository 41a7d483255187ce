//! Messages that the store forwards by itself (X.413 13.1): a new message whose body part is the one delivered.
//!
//! The new content is a head made here, and a part of the delivered content, which is not read: the commit of the
//! delivery joins both.

use crate::attributes::Attributes;
use crate::item::{Item, Kind};
use base::ber::{Element, Error, Length};
use base::{BodyId, EntryId, Utc};
use bytes::Bytes;
use engine::Content;
use engine::journal::BodySource;
use p1::content_type::ContentType;
use p1::eits::EncodedInformationTypes;
use p1::extension::number::MESSAGE_SECURITY_LABEL;
use p1::extension::{Dialect, ExtensionField, ExtensionType, Extensions};
use p1::flags::{PerMessageIndicators, ReportRequest};
use p1::names::ORName;
use p1::p3::{
    ArgumentEvent, DeliveryParser, MessageSubmissionEnvelope, PerRecipientSubmissionFields,
};
use p7::attributes::MESSAGE_DELIVERY_ENVELOPE;
use p7::auto_forward::AutoForward;
use p772::{
    ContentBuilder, Forwarded, Heading, InvalidHeading, InvalidNotification, IpmIdentifier,
    MAX_SUBJECT, Military, MmhsPrecedence, NonReceipt, NonReceiptReason, Notification,
    NotificationOutcome, RecipientSpecifier, content_header,
};
use sha2::{Digest as _, Sha256};

/// Two octets of end-of-contents.
const END: u64 = 2;

/// What is submitted in the name of the store's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// The envelope.
    pub envelope: MessageSubmissionEnvelope,
    /// The first octets of the content.
    pub head: Bytes,
    /// Octets of the delivered content that are left out at its front, and how many follow `head`; `None` in a
    /// notification, whose content is `head` alone.
    pub part: Option<(u64, u64)>,
}

impl Forwarding {
    /// Octets of the content.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.part.map_or(0, |(_, length)| length).saturating_add(self.head.len() as u64)
    }

    /// What the engine is to know of the content. Of one that is joined in the commit nobody knows the digest: that of
    /// its head stands for it.
    #[must_use]
    pub fn content(&self) -> Content {
        Content {
            length: self.length(),
            digest: Sha256::digest(&self.head).into(),
            prefix: self.head.slice(..self.head.len().min(p772::PEEK_OCTETS)),
            // A message in a message is not a signed content.
            ..Content::default()
        }
    }

    /// The content, of which `body` is the delivered one.
    #[must_use]
    pub fn source(&self, body: BodyId) -> BodySource {
        let head = self.head.clone();
        match self.part {
            None => BodySource::Octets(head),
            Some((from, length)) => BodySource::Framed { head, body, from, length },
        }
    }
}

/// What follows from an auto-forward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwards {
    /// The forwarded messages, and the notification of non-receipt where the item is deleted.
    pub all: Vec<Forwarding>,
    /// delete-after-auto-forwarding.
    pub delete_after: bool,
}

/// Why a message is not forwarded. It is delivered as any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotForwarded {
    /// Only a message can be a body part.
    #[error("a report is not forwarded")]
    Report,
    /// Its content type has no body part for it.
    #[error("its content is neither an interpersonal nor a military message")]
    Content,
    /// It might have been forwarded before.
    #[error("its heading is too long to be read")]
    Heading,
    /// It was forwarded before: two stores that forward to each other would never end.
    #[error("it was forwarded automatically before (auto-forwarding-loop)")]
    Loop,
    /// Its first octets are malformed, or its length is another one.
    #[error("its content is malformed")]
    Malformed,
    /// The new heading would be invalid.
    #[error("the forwarded message would be invalid: {0}")]
    Invalid(#[from] InvalidHeading),
    /// The notification would be invalid.
    #[error("its notification of non-receipt would be invalid: {0}")]
    Notification(#[from] InvalidNotification),
}

/// A message that is being delivered.
#[derive(Clone, Copy, Debug)]
pub struct Original<'a> {
    /// The entry in the queue: identifiers of what is forwarded are made of it.
    pub entry: EntryId,
    /// The item that it will be.
    pub item: &'a Item,
    /// The first octets of its content.
    pub first: &'a [u8],
}

impl Original<'_> {
    /// What one registration makes of it now.
    ///
    /// # Errors
    /// It cannot, or must not, be forwarded.
    pub fn forward(
        &self,
        now: Utc,
        (registration, auto): (i64, &AutoForward),
    ) -> Result<Forwards, NotForwarded> {
        let item = self.item;
        if item.kind == Kind::Report {
            return Err(NotForwarded::Report);
        }
        let content_type = item.content_type.clone().ok_or(NotForwarded::Content)?;
        let military = content_type == ContentType::p772();
        if !military && !matches!(content_type, ContentType::BuiltIn(2 | 22)) {
            return Err(NotForwarded::Content);
        }
        let heading = self.heading().ok_or(NotForwarded::Heading)?;
        if heading.auto_forwarded {
            return Err(NotForwarded::Loop);
        }
        let part = self.part()?;
        let record = item.encode();
        let attributes = Attributes::new(item.id.number, item.precedence, &record);
        let delivery = attributes.ok().and_then(|attributes| {
            let values = attributes.values(&MESSAGE_DELIVERY_ENVELOPE);
            values.first().map(|value| value.octets().to_vec())
        });
        let outer = self.outer(now, registration, auto, military);
        let builder = ContentBuilder::new(&outer)?;
        let head = builder.finish_forwarding(&Forwarded { military, delivery }, part.1).head;
        let envelope = self.envelope(auto, content_type.clone());
        let mut all = vec![Forwarding { envelope, head: head.into(), part: Some(part) }];
        let me = &auto.arguments.originator;
        if auto.delete_after && heading.requests_of(me).non_receipt {
            all.extend(self.notification(&heading, me, content_type)?);
        }
        Ok(Forwards { all, delete_after: auto.delete_after })
    }

    /// Each message-security-label of the envelope.
    fn labels(&self) -> Vec<ExtensionField> {
        let mut argument = &self.item.argument[..];
        match DeliveryParser::default().next(&mut argument) {
            Ok(Some(ArgumentEvent::Envelope(envelope))) => {
                let is_label = ExtensionType::Standard(MESSAGE_SECURITY_LABEL);
                let all = envelope.extensions.0.into_iter();
                all.filter(|field| field.kind == is_label).collect()
            }
            _ => Vec::new(),
        }
    }

    fn heading(&self) -> Option<Heading> {
        let octets = self.item.heading.as_ref()?;
        Heading::decode(&Element::parse_accepted(octets).ok()?).ok()
    }

    /// The part of the content that is the contents of its InformationObject.
    fn part(&self) -> Result<(u64, u64), NotForwarded> {
        let malformed = |_: Error| NotForwarded::Malformed;
        let header = content_header(self.first).map_err(malformed)?;
        let header = header.ok_or(NotForwarded::Malformed)?;
        let front = header.size as u64;
        let rest = self.item.size.checked_sub(front).ok_or(NotForwarded::Malformed)?;
        let length = match header.length {
            Length::Definite(length) if length == rest => length,
            Length::Definite(_) => return Err(NotForwarded::Malformed),
            Length::Indefinite => rest.checked_sub(END).ok_or(NotForwarded::Malformed)?,
        };
        Ok((front, length))
    }

    fn outer(&self, now: Utc, registration: i64, auto: &AutoForward, military: bool) -> Heading {
        let arguments = &auto.arguments;
        let recipients = arguments.recipients.iter().map(|fields| fields.recipient.clone());
        let subject = self
            .item
            .subject
            .as_ref()
            .map(|subject| format!("Fwd: {subject}").chars().take(MAX_SUBJECT).collect());
        let fields = Military {
            primary_precedence: Some(MmhsPrecedence::from(self.item.precedence)),
            authorised_at: Some(now),
            ..Military::default()
        };
        Heading {
            this_ipm: IpmIdentifier {
                user: Some(arguments.originator.clone()),
                local: format!("F{:X}.{registration}", self.entry.0),
            },
            originator: Some(arguments.originator.clone().into()),
            primary_recipients: recipients.map(RecipientSpecifier::from).collect(),
            subject,
            auto_forwarded: true,
            military: if military { fields } else { Military::default() },
            ..Heading::default()
        }
    }

    fn envelope(&self, auto: &AutoForward, content_type: ContentType) -> MessageSubmissionEnvelope {
        let arguments = &auto.arguments;
        let (own, qualifier) = p1::grade::split(self.item.precedence);
        let mut extensions = arguments.extensions.clone();
        if arguments.priority.is_none() {
            extensions.0.extend(qualifier.extension(Dialect::Modern));
        }
        // What is forwarded is as secret as what came.
        if extensions.standard(MESSAGE_SECURITY_LABEL).is_none() {
            extensions.0.extend(self.labels());
        }
        let mut recipients = arguments.recipients.clone();
        if auto.delete_after {
            // Nobody would know of a message that is neither here nor there.
            let silent = recipients.iter_mut().filter(|r| r.report_request == ReportRequest::None);
            silent.for_each(|r| r.report_request = ReportRequest::NonDelivery);
        }
        MessageSubmissionEnvelope {
            originator: arguments.originator.clone(),
            original_eits: Some(EncodedInformationTypes::default()),
            content_type,
            content_identifier: arguments.content_identifier.clone(),
            priority: arguments.priority.unwrap_or(own),
            indicators: arguments.indicators,
            deferred_delivery_time: arguments.deferred_delivery_time.clone(),
            recipients,
            extensions,
            unknown: Vec::new(),
        }
    }

    /// The notification that its user will not read it (X.420 8.2), to the originator that its heading names. None
    /// if that has no name.
    fn notification(
        &self,
        heading: &Heading,
        me: &ORName,
        content_type: ContentType,
    ) -> Result<Option<Forwarding>, NotForwarded> {
        let Some(to) = heading.originator.as_ref().and_then(|o| o.formal_name.clone()) else {
            return Ok(None);
        };
        let notification = Notification {
            outcome: NotificationOutcome::NonReceipt(NonReceipt {
                reason: NonReceiptReason::AUTO_FORWARDED,
                discard_reason: None,
                auto_forward_comment: None,
                returned: None,
                extensions: Vec::new(),
            }),
            ..Notification::receipt(heading.this_ipm.clone(), me.clone().into(), Utc(0))
        };
        notification.validate()?;
        let (priority, qualifier) = p1::grade::split(self.item.precedence);
        let envelope = MessageSubmissionEnvelope {
            originator: me.clone(),
            original_eits: Some(EncodedInformationTypes::default()),
            content_type,
            content_identifier: None,
            priority,
            indicators: PerMessageIndicators::default(),
            deferred_delivery_time: None,
            recipients: vec![PerRecipientSubmissionFields {
                recipient: to,
                ..PerRecipientSubmissionFields::default()
            }],
            extensions: Extensions(qualifier.extension(Dialect::Modern).into_iter().collect()),
            unknown: Vec::new(),
        };
        Ok(Some(Forwarding { envelope, head: notification.encode().into(), part: None }))
    }
}
