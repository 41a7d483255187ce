//! Interpersonal notifications (X.420 clause 8): what a recipient's agent reports of a message that it
//! received. A military notification (STANAG 4406) has the same form.

use crate::heading::{IPM_IDENTIFIER, IpmIdentifier, OrDescriptor, decode_all};
use crate::military::{RawExtension, decode_extension};
use base::Utc;
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_set};

/// Longest supplementary receipt information and auto-forward comment, characters
/// (ub-supplementary-info-length, ub-auto-forward-comment).
pub const MAX_COMMENT: usize = 256;

const NOTIFICATION: Tag = Tag::context(1);
const CHOICE: Tag = Tag::context(0);
const ORIGINATOR: Tag = Tag::context(1);
const INTENDED_RECIPIENT: Tag = Tag::context(2);
const EXTENSIONS: Tag = Tag::context(3);
/// EncodedInformationTypes' own tag.
const EITS: Tag = Tag::application(5);

/// IPN: a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// subject-ipm: the message it is about.
    pub subject_ipm: IpmIdentifier,
    /// ipn-originator: the user who received it.
    pub originator: Option<OrDescriptor>,
    /// ipm-intended-recipient, if another than the originator of the notification.
    pub intended_recipient: Option<OrDescriptor>,
    /// conversion-eits, as a whole element.
    pub conversion_eits: Option<Vec<u8>>,
    /// notification-extensions.
    pub extensions: Vec<RawExtension>,
    /// What happened to the message.
    pub outcome: NotificationOutcome,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Vec<u8>>,
}

/// The three kinds of notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationOutcome {
    /// non-receipt-fields: a non-receipt notification (NRN).
    NonReceipt(NonReceipt),
    /// receipt-fields: a receipt notification (RN).
    Receipt(Receipt),
    /// other-notification-type-fields (ON): advice, and the answers of gateways
    /// ([`crate::Acp127Response`]).
    Other(Vec<RawExtension>),
}

/// ReceiptFields: the recipient has read the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// receipt-time; `None` where it cannot be read.
    pub time: Option<Utc>,
    /// acknowledgment-mode.
    pub mode: AcknowledgmentMode,
    /// suppl-receipt-info, Printable, up to 256 characters.
    pub supplementary: Option<String>,
    /// rn-extensions.
    pub extensions: Vec<RawExtension>,
}

/// Who acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcknowledgmentMode {
    /// manual, 0: the recipient.
    #[default]
    Manual,
    /// automatic, 1: the recipient's agent.
    Automatic,
}

/// NonReceiptFields: the recipient will not read the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonReceipt {
    /// non-receipt-reason.
    pub reason: NonReceiptReason,
    /// discard-reason.
    pub discard_reason: Option<DiscardReason>,
    /// auto-forward-comment, Printable, up to 256 characters.
    pub auto_forward_comment: Option<String>,
    /// returned-ipm: heading and body, as a whole element.
    pub returned: Option<Vec<u8>>,
    /// nrn-extensions.
    pub extensions: Vec<RawExtension>,
}

/// NonReceiptReasonField. Unknown numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonReceiptReason(pub i64);

impl NonReceiptReason {
    /// ipm-discarded.
    pub const DISCARDED: NonReceiptReason = NonReceiptReason(0);
    /// ipm-auto-forwarded.
    pub const AUTO_FORWARDED: NonReceiptReason = NonReceiptReason(1);
}

/// DiscardReasonField. Unknown numbers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardReason(pub i64);

impl DiscardReason {
    /// ipm-expired: its expiry time came before it was read.
    pub const EXPIRED: DiscardReason = DiscardReason(0);
    /// ipm-obsoleted: another message replaced it.
    pub const OBSOLETED: DiscardReason = DiscardReason(1);
    /// user-subscription-terminated.
    pub const SUBSCRIPTION_TERMINATED: DiscardReason = DiscardReason(2);
    /// 3: not-used in the ITU's edition, ipm-deleted in ISO's.
    pub const DELETED: DiscardReason = DiscardReason(3);
}

/// A notification that must not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNotification {
    /// No receipt-time.
    #[error("a receipt notification needs the time of receipt")]
    NoTime,
    /// A text beyond the bound or the character set.
    #[error("{0}: at most 256 printable characters are allowed")]
    Comment(&'static str),
    /// The message has no identifier to refer to.
    #[error("the message has no IPM identifier: it cannot be acknowledged")]
    NoSubject,
}

impl Notification {
    /// A receipt notification of the message `subject_ipm`, from the user who read it at `time`.
    pub fn receipt(subject_ipm: IpmIdentifier, from: OrDescriptor, time: Utc) -> Notification {
        Notification {
            subject_ipm,
            originator: Some(from),
            intended_recipient: None,
            conversion_eits: None,
            extensions: Vec::new(),
            outcome: NotificationOutcome::Receipt(Receipt {
                time: Some(time),
                ..Receipt::default()
            }),
            unknown: Vec::new(),
        }
    }

    /// Reads a whole content, which is a notification.
    ///
    /// # Errors
    /// As [`Notification::decode`], or a content that is a message.
    pub fn parse(content: &[u8]) -> Result<Notification, Error> {
        let element = Element::parse(content)?;
        match element.tag {
            NOTIFICATION => Notification::decode(&element).field("ipn"),
            tag => Err(Fault::Unexpected(tag)).field("InformationObject"),
        }
    }

    /// Reads an IPN, its members in any order.
    ///
    /// # Errors
    /// Malformed BER, a missing subject-ipm, or none of the three kinds; the field is named.
    pub fn decode(e: &Element<'_>) -> Result<Notification, Error> {
        let mut subject = Member::new("subject-ipm");
        let mut outcome = Member::new("choice");
        let mut originator = Member::new("ipn-originator");
        let mut recipient = Member::new("ipm-intended-recipient");
        let mut eits = Member::new("conversion-eits");
        let mut extensions = Member::new("notification-extensions");
        let unknown = read_set(e, |m| match m.tag {
            IPM_IDENTIFIER => subject.last(m, IpmIdentifier::decode),
            CHOICE => outcome.last(m, NotificationOutcome::decode),
            ORIGINATOR => originator.last(m, OrDescriptor::decode),
            INTENDED_RECIPIENT => recipient.last(m, OrDescriptor::decode),
            EITS => eits.last(m, |m| Ok(m.raw.to_vec())),
            EXTENSIONS => extensions.last(m, |m| decode_all(m, decode_extension)),
            _ => Ok(false),
        })?;
        Ok(Notification {
            subject_ipm: subject.required(IPM_IDENTIFIER)?,
            originator: originator.optional(),
            intended_recipient: recipient.optional(),
            conversion_eits: eits.optional(),
            extensions: extensions.or_default(),
            outcome: outcome.required(CHOICE)?,
            unknown: unknown.iter().map(|m| m.raw.to_vec()).collect(),
        })
    }

    /// The whole content: InformationObject with the notification in it.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.constructed(NOTIFICATION, |w| {
            self.subject_ipm.encode(w, IPM_IDENTIFIER);
            if let Some(originator) = &self.originator {
                originator.encode(w, ORIGINATOR);
            }
            if let Some(recipient) = &self.intended_recipient {
                recipient.encode(w, INTENDED_RECIPIENT);
            }
            if let Some(eits) = &self.conversion_eits {
                w.raw(eits);
            }
            write_extensions(w, EXTENSIONS, &self.extensions);
            w.constructed(CHOICE, |w| self.outcome.encode(w));
            self.unknown.iter().for_each(|member| w.raw(member));
        });
        w.into_vec()
    }

    /// Checks what a sender must keep to.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self) -> Result<(), InvalidNotification> {
        if self.subject_ipm.local.is_empty() && self.subject_ipm.user.is_none() {
            return Err(InvalidNotification::NoSubject);
        }
        let comment = |field, text: &Option<String>| match text {
            Some(text) if !is_comment(text) => Err(InvalidNotification::Comment(field)),
            _ => Ok(()),
        };
        match &self.outcome {
            NotificationOutcome::Receipt(receipt) => {
                comment("supplementary receipt information", &receipt.supplementary)?;
                receipt.time.map(drop).ok_or(InvalidNotification::NoTime)
            }
            NotificationOutcome::NonReceipt(non_receipt) => {
                comment("auto-forward comment", &non_receipt.auto_forward_comment)
            }
            NotificationOutcome::Other(_) => Ok(()),
        }
    }
}

fn is_comment(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c);
    text.len() <= MAX_COMMENT && text.chars().all(allowed)
}

fn write_extensions(w: &mut Writer, tag: Tag, extensions: &[RawExtension]) {
    if !extensions.is_empty() {
        w.constructed(tag, |w| extensions.iter().for_each(|e| e.encode(w)));
    }
}

impl NotificationOutcome {
    /// The CHOICE, around which its tag is explicit.
    fn decode(e: &Element<'_>) -> Result<NotificationOutcome, Error> {
        let e = e.only_child()?;
        match e.tag {
            tag if tag == Tag::context(0) => {
                NonReceipt::decode(&e).map(NotificationOutcome::NonReceipt)
            }
            tag if tag == Tag::context(1) => Receipt::decode(&e).map(NotificationOutcome::Receipt),
            tag if tag == Tag::context(2) => {
                decode_all(&e, decode_extension).map(NotificationOutcome::Other)
            }
            tag => Err(Fault::Unexpected(tag).into()),
        }
    }

    fn encode(&self, w: &mut Writer) {
        match self {
            NotificationOutcome::NonReceipt(fields) => fields.encode(w),
            NotificationOutcome::Receipt(fields) => fields.encode(w),
            NotificationOutcome::Other(fields) => {
                w.constructed(Tag::context(2), |w| fields.iter().for_each(|e| e.encode(w)));
            }
        }
    }
}

const RECEIPT_TIME: Tag = Tag::context(0);
const MODE: Tag = Tag::context(1);
const SUPPLEMENTARY: Tag = Tag::context(2);
const RN_EXTENSIONS: Tag = Tag::context(3);

impl Receipt {
    fn decode(e: &Element<'_>) -> Result<Receipt, Error> {
        let (mut time, mut mode) =
            (Member::new("receipt-time"), Member::new("acknowledgment-mode"));
        let mut supplementary = Member::new("suppl-receipt-info");
        let mut extensions = Member::new("rn-extensions");
        read_set(e, |m| match m.tag {
            RECEIPT_TIME => time.last(m, Element::utc_time),
            MODE => mode.last(m, Element::integer),
            SUPPLEMENTARY => supplementary.last(m, Element::text),
            RN_EXTENSIONS => extensions.last(m, |m| decode_all(m, decode_extension)),
            _ => Ok(false),
        })?;
        let automatic = mode.optional() == Some(1);
        Ok(Receipt {
            time: time.optional().flatten(),
            mode: match automatic {
                true => AcknowledgmentMode::Automatic,
                false => AcknowledgmentMode::Manual,
            },
            supplementary: supplementary.optional(),
            extensions: extensions.or_default(),
        })
    }

    fn encode(&self, w: &mut Writer) {
        w.constructed(Tag::context(1), |w| {
            if let Some(time) = self.time {
                w.utc_time(RECEIPT_TIME, time);
            }
            if self.mode == AcknowledgmentMode::Automatic {
                w.integer(MODE, 1);
            }
            if let Some(text) = &self.supplementary {
                w.string(SUPPLEMENTARY, text);
            }
            write_extensions(w, RN_EXTENSIONS, &self.extensions);
        });
    }
}

const REASON: Tag = Tag::context(0);
const DISCARD_REASON: Tag = Tag::context(1);
const COMMENT: Tag = Tag::context(2);
const RETURNED: Tag = Tag::context(3);
const NRN_EXTENSIONS: Tag = Tag::context(4);

impl NonReceipt {
    fn decode(e: &Element<'_>) -> Result<NonReceipt, Error> {
        let mut reason = Member::new("non-receipt-reason");
        let mut discard = Member::new("discard-reason");
        let mut comment = Member::new("auto-forward-comment");
        let mut returned = Member::new("returned-ipm");
        let mut extensions = Member::new("nrn-extensions");
        read_set(e, |m| match m.tag {
            REASON => reason.last(m, Element::integer),
            DISCARD_REASON => discard.last(m, Element::integer),
            COMMENT => comment.last(m, Element::text),
            RETURNED => returned.last(m, |m| Ok(m.raw.to_vec())),
            NRN_EXTENSIONS => extensions.last(m, |m| decode_all(m, decode_extension)),
            _ => Ok(false),
        })?;
        Ok(NonReceipt {
            reason: NonReceiptReason(reason.required(REASON)?),
            discard_reason: discard.optional().map(DiscardReason),
            auto_forward_comment: comment.optional(),
            returned: returned.optional(),
            extensions: extensions.or_default(),
        })
    }

    fn encode(&self, w: &mut Writer) {
        w.constructed(Tag::context(0), |w| {
            w.integer(REASON, self.reason.0);
            if let Some(DiscardReason(reason)) = self.discard_reason {
                w.integer(DISCARD_REASON, reason);
            }
            if let Some(comment) = &self.auto_forward_comment {
                w.string(COMMENT, comment);
            }
            if let Some(returned) = &self.returned {
                w.raw(returned);
            }
            write_extensions(w, NRN_EXTENSIONS, &self.extensions);
        });
    }
}

/// What happened, in words.
impl std::fmt::Display for NonReceipt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.reason {
            NonReceiptReason::AUTO_FORWARDED => {
                f.write_str("it was forwarded to another user and not read")?;
            }
            NonReceiptReason::DISCARDED => f.write_str("it was discarded and not read")?,
            NonReceiptReason(other) => write!(f, "it was not read, for reason {other}")?,
        }
        match self.discard_reason {
            None => Ok(()),
            Some(DiscardReason::EXPIRED) => f.write_str(": it had expired"),
            Some(DiscardReason::OBSOLETED) => f.write_str(": a later message replaced it"),
            Some(DiscardReason::SUBSCRIPTION_TERMINATED) => {
                f.write_str(": the user's subscription has ended")
            }
            Some(DiscardReason::DELETED) => f.write_str(": it was deleted"),
            Some(DiscardReason(other)) => write!(f, ": discard reason {other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Acp127Response;
    use p1::{ORAddress, ORName};
    use proptest::prelude::*;

    fn user(organization: &str) -> ORName {
        let organization = Some(organization.to_owned());
        ORAddress { organization, ..ORAddress::default() }.into()
    }

    fn subject() -> IpmIdentifier {
        IpmIdentifier { user: Some(user("A")), local: "M1".to_owned() }
    }

    #[test]
    fn a_receipt_notification_is_these_octets() {
        let time = Utc::from_utc_time(b"260504030201Z").unwrap();
        let mut notification = Notification::receipt(subject(), user("B").into(), time);
        let octets = [
            &[0xa1, 48, 0x6b, 13, 0x60, 7, 0x30, 5, 0x30, 3, 0x83, 1, b'A'][..],
            &[0x13, 2, b'M', b'1', 0xa1, 9, 0x60, 7, 0x30, 5, 0x83, 1, b'B'],
            &[0xa0, 17, 0xa1, 15, 0x80, 13],
            b"260504030201Z",
        ]
        .concat();
        let written = notification.encode();
        assert_eq!(Notification::parse(&written), Ok(notification.clone()));
        let tail = &octets[octets.len() - 19..];
        assert!(written.ends_with(tail), "{written:02x?}");
        assert_eq!(written[0], 0xa1);
        notification.validate().unwrap();
        notification.subject_ipm = IpmIdentifier::default();
        assert_eq!(notification.validate(), Err(InvalidNotification::NoSubject));
    }

    #[test]
    fn a_foreign_non_receipt_notification_is_read_with_its_reason() {
        // Indefinite lengths, another order, a comment, the message returned, an unknown member.
        let octets = [
            &[0xa1, 0x80, 0xa0, 0x80, 0xa0, 0x80][..],
            &[0xa3, 6, 0x31, 2, 0x6b, 0, 0x30, 0, 0x82, 2, b'O', b'K', 0x81, 1, 0, 0x80, 1, 0],
            &[0, 0, 0, 0, 0x85, 1, 9, 0x6b, 4, 0x13, 2, b'M', b'1', 0, 0],
        ]
        .concat();
        let read = Notification::parse(&octets).unwrap();
        assert_eq!((read.subject_ipm.local.as_str(), read.unknown.len()), ("M1", 1));
        let NotificationOutcome::NonReceipt(fields) = &read.outcome else { panic!("{read:?}") };
        assert_eq!(fields.to_string(), "it was discarded and not read: it had expired");
        assert_eq!(fields.auto_forward_comment.as_deref(), Some("OK"));
        assert_eq!(fields.returned.as_ref().map(Vec::len), Some(8));
        assert_eq!(Notification::parse(&read.encode()), Ok(read.clone()));
    }

    #[test]
    fn a_gateways_answer_is_read() {
        let octets = [
            &[0xa1, 0x80, 0x6b, 4, 0x13, 2, b'M', b'1', 0xa0, 0x80, 0xa2, 0x80, 0x30, 0x80][..],
            &[6, 8, 0x2b, 26, 0, 0xa2, 0x36, 0, 2, 16, 0x31, 0x80, 0x80, 2, 5, 0x40, 0x81, 13],
            b"260504030201Z",
            &[0x83, 2, b'R', b'X', 0x84, 2, b'Q', b'T', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        let read = Notification::parse(&octets).unwrap();
        let NotificationOutcome::Other(fields) = &read.outcome else { panic!("{read:?}") };
        let answer = Acp127Response::from_extension(&fields[0]).unwrap();
        assert!(answer.kinds.positive && !answer.kinds.negative && !answer.kinds.transfer);
        assert_eq!(answer.recipient.as_deref(), Some("RX"));
        assert_eq!(answer.supplementary.as_deref(), Some("QT"));
        assert_eq!(answer.receipt_time, Utc::from_utc_time(b"260504030201Z"));
        assert_eq!(Notification::parse(&read.encode()), Ok(read.clone()));
    }

    #[test]
    fn what_is_no_notification_is_refused_by_name() {
        let error = |octets: &[u8]| Notification::parse(octets).unwrap_err().to_string();
        assert!(error(&[0xa0, 0]).starts_with("InformationObject: unexpected [0]"));
        assert!(error(&[0xa1, 0]).contains("subject-ipm: missing"));
        let without_choice = [0xa1, 6, 0x6b, 4, 0x13, 2, b'M', b'1'];
        assert!(error(&without_choice).contains("choice: missing"));
        let other_choice = [0xa1, 10, 0x6b, 4, 0x13, 2, b'M', b'1', 0xa0, 2, 0xa7, 0];
        assert!(error(&other_choice).contains("choice: unexpected [7]"));
        let long = Receipt {
            time: Utc::from_utc_time(b"260504030201Z"),
            supplementary: Some("x".repeat(MAX_COMMENT + 1)),
            ..Receipt::default()
        };
        let mut n = Notification::receipt(subject(), user("B").into(), Utc(0));
        n.outcome = NotificationOutcome::Receipt(long);
        assert!(n.validate().unwrap_err().to_string().contains("256"));
    }

    proptest! {
        #[test]
        fn any_octets_are_answered_and_what_is_read_comes_back(
            octets in proptest::collection::vec(any::<u8>(), 0..80),
            time in proptest::option::of(0u64..2_000_000_000),
            text in proptest::option::of("[A-Z 0-9]{0,20}"),
            reason in 0i64..9, discard in proptest::option::of(0i64..9), kind in 0..3,
        ) {
            let _ = Notification::parse(&[&[0xa1, octets.len() as u8][..], &octets].concat());
            let time = time.map(|s| Utc(s * 1_000_000));
            let mut n = Notification::receipt(subject(), user("B").into(), Utc(0));
            n.outcome = match kind {
                0 => NotificationOutcome::Other(Vec::new()),
                1 => NotificationOutcome::Receipt(Receipt {
                    time,
                    mode: AcknowledgmentMode::Automatic,
                    supplementary: text,
                    extensions: Vec::new(),
                }),
                _ => NotificationOutcome::NonReceipt(NonReceipt {
                    reason: NonReceiptReason(reason),
                    discard_reason: discard.map(DiscardReason),
                    auto_forward_comment: text,
                    returned: None,
                    extensions: Vec::new(),
                }),
            };
            prop_assert_eq!(Notification::parse(&n.encode()), Ok(n));
        }
    }
}
