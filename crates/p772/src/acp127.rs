//! Notifications across a gateway to ACP 127 (STANAG 4406 Annex A): what an originator asks for, and
//! what the gateway answers.

use crate::heading::decode_all;
use crate::military::{AddressListDesignator, RawExtension};
use crate::oids;
use base::Utc;
use base::ber::{Element, Error, Member, Tag, Writer, read_set, universal as u};

/// acp127-notification-request, among the extensions of a recipient.
const REQUEST: u8 = 15;
/// acp127-notification-response, among the fields of a notification of another type.
const RESPONSE: u8 = 16;

/// Acp127NotificationType.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acp127Notifications {
    /// acp127-nn: negative.
    pub negative: bool,
    /// acp127-pn: positive.
    pub positive: bool,
    /// acp127-tn: of transfer.
    pub transfer: bool,
}

impl Acp127Notifications {
    /// `None` where other bits are set: they would be lost.
    fn decode(e: &Element<'_>) -> Result<Option<Acp127Notifications>, Error> {
        let bits = e.bits()?;
        let known = (3..bits.len()).all(|n| !bits.get(n));
        let (negative, positive, transfer) = (bits.get(0), bits.get(1), bits.get(2));
        Ok(known.then_some(Acp127Notifications { negative, positive, transfer }))
    }

    fn encode(self, w: &mut Writer) {
        let bits = [(0, self.negative), (1, self.positive), (2, self.transfer)];
        let set: Vec<u32> = bits.iter().filter(|b| b.1).map(|b| b.0).collect();
        w.named_bits(u::BIT_STRING, &set, 0);
    }
}

/// The request in a recipient's extension; `None` for any other extension.
pub(crate) fn read_request(extension: &RawExtension) -> Option<Acp127Notifications> {
    let n = oids::heading_extension_number(extension.kind.content());
    let value = extension.value.as_deref().filter(|_| n == Some(REQUEST))?;
    Element::parse(value).and_then(|e| Acp127Notifications::decode(&e)).ok().flatten()
}

pub(crate) fn write_request(w: &mut Writer, request: Acp127Notifications) {
    w.constructed(u::SEQUENCE, |w| {
        oids::write_heading_extension(w, REQUEST);
        request.encode(w);
    });
}

/// Acp127NotificationResponse: what a gateway reports of a message that it passed on, or could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acp127Response {
    /// acp127-notification-type.
    pub kinds: Acp127Notifications,
    /// receipt-time; `None` where it cannot be read.
    pub receipt_time: Option<Utc>,
    /// addressListIndicator.
    pub address_lists: Vec<AddressListDesignator>,
    /// acp127-recipient.
    pub recipient: Option<String>,
    /// acp127-supp-info.
    pub supplementary: Option<String>,
}

const KINDS: Tag = Tag::context(0);
const RECEIPT_TIME: Tag = Tag::context(1);
const ADDRESS_LISTS: Tag = Tag::context(2);
const RECIPIENT: Tag = Tag::context(3);
const SUPPLEMENTARY: Tag = Tag::context(4);

impl Acp127Response {
    /// From a field of a notification; `None` for any other, or one that does not decode.
    pub fn from_extension(extension: &RawExtension) -> Option<Acp127Response> {
        let n = oids::heading_extension_number(extension.kind.content());
        let value = extension.value.as_deref().filter(|_| n == Some(RESPONSE))?;
        Element::parse(value).and_then(|e| Acp127Response::decode(&e)).ok()
    }

    fn decode(e: &Element<'_>) -> Result<Acp127Response, Error> {
        let mut kinds = Member::new("acp127-notification-type");
        let mut time = Member::new("receipt-time");
        let mut lists = Member::new("addressListIndicator");
        let mut recipient = Member::new("acp127-recipient");
        let mut supplementary = Member::new("acp127-supp-info");
        read_set(e, |m| match m.tag {
            KINDS => kinds.last(m, Acp127Notifications::decode),
            RECEIPT_TIME => time.last(m, Element::utc_time),
            ADDRESS_LISTS => lists.last(m, |m| decode_all(m, AddressListDesignator::decode)),
            RECIPIENT => recipient.last(m, Element::text),
            SUPPLEMENTARY => supplementary.last(m, Element::text),
            _ => Ok(false),
        })?;
        Ok(Acp127Response {
            kinds: kinds.required(KINDS)?.unwrap_or_default(),
            receipt_time: time.optional().flatten(),
            address_lists: lists.or_default(),
            recipient: recipient.optional(),
            supplementary: supplementary.optional(),
        })
    }
}
