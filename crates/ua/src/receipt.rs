//! Acknowledgement of a message: the receipt notification that its originator asked for.

use crate::content::{Content, Source};
use anyhow::Result;
use base::ber::Element;
use base::{Precedence, Utc};
use bytes::Bytes;
use p1::content_type::ContentType;
use p1::eits::EncodedInformationTypes;
use p1::extension::{Dialect, Extensions, number};
use p1::flags::PerMessageIndicators;
use p1::names::ORName;
use p1::p3::{MessageDeliveryEnvelope, MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use p772::{Heading, Notification, NotificationRequests};

/// Why a message cannot be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAcknowledged {
    /// Neither heading nor envelope names an originator.
    #[error("the message names no originator to whom a notification could go")]
    NoOriginator,
}

/// What the heading asks of the user `me`: of the recipients that have its address, all together.
pub fn requested(heading: &Heading, me: &ORName) -> NotificationRequests {
    heading.requests_of(me)
}

/// What a message asks of the user `me` who has received it. Its heading may name the user as the envelope of the
/// delivery does, or the one who was meant first, from whom it was redirected, or a distribution list, which asks all its
/// members.
pub fn requested_of(
    heading: &Heading,
    envelope: &MessageDeliveryEnvelope,
    me: &ORName,
) -> NotificationRequests {
    let names = [Some(me), Some(&envelope.this_recipient), envelope.intended_recipient.as_ref()];
    let lists = lists(envelope);
    let mut asked = NotificationRequests::default();
    for name in names.into_iter().flatten().chain(&lists) {
        let more = requested(heading, name);
        asked.receipt |= more.receipt;
        asked.non_receipt |= more.non_receipt;
        asked.return_content |= more.return_content;
    }
    asked
}

/// The distribution lists over which a message came (dl-expansion-history, X.411 8.3.1.1.1.7), as far as they can be read.
fn lists(envelope: &MessageDeliveryEnvelope) -> Vec<ORName> {
    let mut lists = Vec::new();
    let field = envelope.extensions.standard(number::DL_EXPANSION_HISTORY);
    let history = field.and_then(|field| Element::parse(&field.value).ok());
    let Some(Ok(mut expansions)) = history.as_ref().map(Element::children) else { return lists };
    while let Ok(Some(expansion)) = expansions.next() {
        let Ok(mut members) = expansion.children() else { break };
        let Ok(Some(list)) = members.next() else { break };
        lists.extend(ORName::read(&list));
    }
    lists
}

/// A receipt notification, ready to be submitted.
#[derive(Debug)]
pub struct Acknowledgement {
    /// The notification.
    pub notification: Notification,
    /// The user it goes to.
    pub to: ORName,
    /// The envelope: no report is asked for, and the precedence is the message's.
    pub envelope: MessageSubmissionEnvelope,
    /// The content.
    pub content: Content,
}

/// A message that was received, as its acknowledgement needs it.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Its heading.
    pub heading: &'a Heading,
    /// The originator of its envelope.
    pub originator: &'a ORName,
    /// The type of its content: the notification has the same.
    pub content_type: &'a ContentType,
    /// The precedence that its envelope has.
    pub precedence: Precedence,
}

impl Received<'_> {
    /// The receipt notification from `me`, who has read the message at `time`. It goes to the
    /// originator that the heading names, else to that of the envelope (X.420 8).
    ///
    /// # Errors
    /// [`NotAcknowledged`], or a message without an identifier ([`p772::InvalidNotification`]).
    pub fn acknowledge(
        &self,
        me: &ORName,
        time: Utc,
        content_identifier: &str,
    ) -> Result<Acknowledgement> {
        let named = self.heading.originator.as_ref().and_then(|o| o.formal_name.as_ref());
        let to = [named, Some(self.originator)]
            .into_iter()
            .flatten()
            .find(|name| **name != ORName::default())
            .ok_or(NotAcknowledged::NoOriginator)?
            .clone();
        let subject = self.heading.this_ipm.clone();
        let notification = Notification::receipt(subject, me.clone().into(), time);
        notification.validate()?;
        let (priority, qualifier) = p1::grade::split(self.precedence);
        let recipient =
            PerRecipientSubmissionFields { recipient: to.clone(), ..Default::default() };
        let envelope = MessageSubmissionEnvelope {
            originator: me.clone(),
            original_eits: Some(EncodedInformationTypes::default()),
            content_type: self.content_type.clone(),
            content_identifier: Some(content_identifier.to_owned()),
            priority,
            indicators: PerMessageIndicators::default(),
            deferred_delivery_time: None,
            recipients: vec![recipient],
            extensions: Extensions(qualifier.extension(Dialect::Modern).into_iter().collect()),
            unknown: Vec::new(),
        };
        let content =
            Content { head: notification.encode().into(), source: Source::Octets(Bytes::new()) };
        Ok(Acknowledgement { notification, to, envelope, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form;
    use p772::{NotificationOutcome, RecipientSpecifier};

    #[test]
    fn the_notification_goes_to_the_originator_and_names_the_message() {
        let (me, from) =
            (form::address("/S=ME/C=XX").unwrap(), form::address("/S=A/C=XX").unwrap());
        let this_ipm = form::ipm("M1*/S=A/C=XX").unwrap();
        let mut heading = Heading { this_ipm, ..Heading::default() };
        let mut specifier = RecipientSpecifier::from(form::address("/s=me/c=xx").unwrap());
        specifier.notification_requests.receipt = true;
        heading.copy_recipients = vec![form::address("/S=B/C=XX").unwrap().into(), specifier];
        assert!(requested(&heading, &me).receipt && !requested(&heading, &me).non_receipt);
        assert_eq!(requested(&heading, &from), NotificationRequests::default());
        let content_type = ContentType::p772();
        let precedence = Precedence::Flash;
        let received = Received {
            heading: &heading,
            originator: &from,
            content_type: &content_type,
            precedence,
        };
        let time = Utc::from_utc_time(b"260504030201Z").unwrap();
        let made = received.acknowledge(&me, time, "ACK-1").unwrap();
        assert_eq!((&made.to, &made.envelope.originator), (&from, &me));
        assert_eq!(made.envelope.content_type, content_type);
        let again = Notification::parse(&made.content.head).unwrap();
        assert_eq!(again.subject_ipm, heading.this_ipm);
        assert!(matches!(again.outcome, NotificationOutcome::Receipt(r) if r.time == Some(time)));
        let without = Heading::default();
        let received = Received { heading: &without, ..received };
        assert!(
            received.acknowledge(&me, time, "A").unwrap_err().to_string().contains("identifier")
        );
    }

    #[test]
    fn whoever_the_message_came_over_may_be_the_one_who_was_asked() {
        let name = |text: &str| form::address(text).unwrap();
        let (me, other) = (name("/S=ME/C=XX"), name("/S=OTHER/C=XX"));
        let asks = |name: &ORName| {
            let mut specifier = RecipientSpecifier::from(name.clone());
            specifier.notification_requests.receipt = true;
            Heading { primary_recipients: vec![specifier], ..Heading::default() }
        };
        let mut envelope = MessageDeliveryEnvelope {
            identifier: p1::names::MtsIdentifier {
                domain: p1::names::GlobalDomainId::new("XX", " ", None),
                local: "M1".to_owned(),
            },
            delivery_time: Utc(0).into(),
            content_type: ContentType::p772(),
            originator: other.clone(),
            original_eits: None,
            priority: p1::flags::Priority::Normal,
            implicit_conversion_prohibited: false,
            other_recipients: Vec::new(),
            this_recipient: me.clone(),
            intended_recipient: None,
            converted_eits: None,
            submission_time: Utc(0).into(),
            content_identifier: None,
            extensions: Extensions::default(),
            unknown: Vec::new(),
        };
        let is_asked = |envelope: &MessageDeliveryEnvelope, name: &ORName| {
            requested_of(&asks(name), envelope, &me).receipt
        };
        let list = name("/S=LIST/C=XX");
        assert!(is_asked(&envelope, &me) && !is_asked(&envelope, &other));
        assert!(!is_asked(&envelope, &list));
        envelope.intended_recipient = Some(other.clone());
        let history = p1::extension::ExtensionField::standard(
            number::DL_EXPANSION_HISTORY,
            p1::extension::Criticality::default(),
            |w| {
                w.constructed(base::ber::universal::SEQUENCE, |w| {
                    w.constructed(base::ber::universal::SEQUENCE, |w| {
                        list.write(w);
                        w.utc_time(base::ber::universal::UTC_TIME, Utc(0));
                    });
                });
            },
        );
        envelope.extensions = Extensions(vec![history]);
        assert!(is_asked(&envelope, &other) && is_asked(&envelope, &list));
        assert!(!is_asked(&envelope, &name("/S=NOBODY/C=XX")));
    }
}
