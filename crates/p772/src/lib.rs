//! P22 and STANAG 4406 (P772) contents: headings, precedences, body parts.
//!
//! Both have the same shape (X.420 InformationObject); a P772 heading carries the military
//! extensions of [`Military`]. A [`ContentBuilder`] writes a content, a [`ContentParser`] reads one,
//! and neither holds the data of a body part, which may be of any size. [`peek_precedence`] finds
//! the precedences in a content's first octets.

mod acp127;
mod civil;
mod encode;
mod file;
mod forwarded;
mod heading;
mod military;
mod notification;
mod oids;
mod parser;
mod peek;
mod pilot;
#[cfg(test)]
mod tests;
mod text;

pub use acp127::{Acp127Notifications, Acp127Response};
pub use civil::AutoSubmitted;
pub use encode::{ContentBuilder, Framing, MAX_FILE_NAME, PartForm};
pub use forwarded::{Forwarded, content_header, mm_message};
pub use heading::{
    Heading, Importance, InvalidHeading, IpmIdentifier, MAX_LIST, MAX_LOCAL_IDENTIFIER,
    MAX_SUBJECT, NotificationRequests, OrDescriptor, RecipientSpecifier, Sensitivity,
};
pub use military::{
    AddressListDesignator, Addressing, DistributionCodes, MAX_MILITARY_STRING, MAX_SICS,
    MessageType, Military, MmhsPrecedence, OtherRecipient, RawExtension, SIC_LENGTH,
};
pub use notification::{
    AcknowledgmentMode, DiscardReason, InvalidNotification, MAX_COMMENT, NonReceipt,
    NonReceiptReason, Notification, NotificationOutcome, Receipt,
};
pub use parser::{
    ContentEvent, ContentParser, MAX_BODY_PARTS, MAX_HEADING, MAX_PARAMETERS, PartKind,
};
pub use peek::{HeadingPrecedence, PEEK_OCTETS, peek_precedence};
pub use pilot::{BodyPartLabel, InformationLabels, PilotInformation};
pub use text::Charset;
