//! The military heading extensions (STANAG 4406 Annex A; object identifiers …0.2.n).

use crate::heading::{OrDescriptor, decode_all};
use crate::oids;
use crate::pilot::{InformationLabels, PilotInformation};
use base::ber::{Element, Error, Fault, Field, Member, Oid, Tag, Writer, read_set, universal as u};
use base::{Precedence, Utc};

/// Longest MilitaryString (ub-military-string).
pub const MAX_MILITARY_STRING: usize = 69;
/// Shortest and longest subject indicator code (lb-military-sic, ub-military-sic).
pub const SIC_LENGTH: std::ops::RangeInclusive<usize> = 3..=8;
/// Most subject indicator codes (ub-military-number-of-sics).
pub const MAX_SICS: usize = 8;

/// MMHSPrecedence: 0 to 15 are NATO's, of which 0 to 5 are defined; 16 to 31 are national.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MmhsPrecedence(u8);

impl MmhsPrecedence {
    /// From the INTEGER's value; `None` outside 0 to 31.
    pub fn new(value: i64) -> Option<MmhsPrecedence> {
        u8::try_from(value).ok().filter(|v| *v < 32).map(MmhsPrecedence)
    }

    /// The INTEGER's value, 0 to 31.
    pub fn value(self) -> u8 {
        self.0
    }

    /// The level where it is one of the six; `None` for reserved and national values.
    pub fn level(self) -> Option<Precedence> {
        Precedence::from_number(i64::from(self.0))
    }

    pub(crate) fn decode(e: &Element<'_>) -> Result<MmhsPrecedence, Error> {
        if e.tag != u::INTEGER {
            return Err(Fault::Unexpected(e.tag).into());
        }
        MmhsPrecedence::decode_value(e)
    }

    /// Under whichever tag.
    pub(crate) fn decode_value(e: &Element<'_>) -> Result<MmhsPrecedence, Error> {
        MmhsPrecedence::new(e.integer()?)
            .ok_or_else(|| Fault::Value("MMHSPrecedence, 0 to 31").into())
    }
}

impl From<Precedence> for MmhsPrecedence {
    fn from(level: Precedence) -> MmhsPrecedence {
        MmhsPrecedence(level.number())
    }
}

/// Message type: what the traffic is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageType {
    /// One of the constants here; 4 to 127 are reserved for NATO, 128 to 255 national.
    pub kind: u8,
    /// Name of the exercise, operation, project or drill.
    pub identifier: Option<String>,
}

const KIND: Tag = Tag::context(0);
const IDENTIFIER: Tag = Tag::context(1);

impl MessageType {
    /// TypeMessage exercise.
    pub const EXERCISE: u8 = 0;
    /// TypeMessage operation.
    pub const OPERATION: u8 = 1;
    /// TypeMessage project.
    pub const PROJECT: u8 = 2;
    /// TypeMessage drill.
    pub const DRILL: u8 = 3;

    fn decode(e: &Element<'_>) -> Result<MessageType, Error> {
        let (mut kind, mut identifier) = (Member::new("type"), Member::new("identifier"));
        read_set(e, |m| match m.tag {
            KIND => kind.last(m, Element::integer),
            IDENTIFIER => identifier.last(m, Element::text),
            _ => Ok(false),
        })?;
        let kind = u8::try_from(kind.required(KIND)?);
        let kind = kind.map_err(|_| Fault::Value("TypeMessage, 0 to 255"))?;
        Ok(MessageType { kind, identifier: identifier.optional() })
    }

    fn encode(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            w.integer(KIND, i64::from(self.kind));
            if let Some(identifier) = &self.identifier {
                w.string(IDENTIFIER, identifier);
            }
        });
    }
}

/// Distribution codes: the subject indicator codes, and room for others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistributionCodes {
    /// Subject indicator codes (SIC).
    pub sics: Vec<String>,
    /// DistributionExtensionFields, each as it stands in the encoding.
    pub extensions: Vec<Vec<u8>>,
}

const SICS: Tag = Tag::context(0);
const CODE_EXTENSIONS: Tag = Tag::context(1);

impl DistributionCodes {
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.sics.is_empty() && self.extensions.is_empty()
    }

    fn decode(e: &Element<'_>) -> Result<DistributionCodes, Error> {
        let (mut sics, mut extensions) = (Member::new("sics"), Member::new("dist-Extensions"));
        read_set(e, |m| match m.tag {
            SICS => sics.last(m, decode_strings),
            CODE_EXTENSIONS => {
                extensions.last(m, |m| decode_all(m, |field| Ok(field.raw.to_vec())))
            }
            _ => Ok(false),
        })?;
        Ok(DistributionCodes { sics: sics.or_default(), extensions: extensions.or_default() })
    }

    fn encode(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if !self.sics.is_empty() {
                w.constructed(SICS, |w| {
                    self.sics.iter().for_each(|sic| w.string(u::PRINTABLE_STRING, sic));
                });
            }
            if !self.extensions.is_empty() {
                w.constructed(CODE_EXTENSIONS, |w| self.extensions.iter().for_each(|e| w.raw(e)));
            }
        });
    }
}

/// Whether a recipient or list is addressed for action (primary) or for information (copy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// 0.
    Primary,
    /// 1.
    Copy,
}

const ADDRESSING: Tag = Tag::context(0);

impl Addressing {
    fn decode(e: &Element<'_>) -> Result<Addressing, Error> {
        match e.integer()? {
            0 => Ok(Addressing::Primary),
            1 => Ok(Addressing::Copy),
            _ => Err(Fault::Value("type, primary 0 or copy 1").into()),
        }
    }

    fn encode(self, w: &mut Writer) {
        w.integer(ADDRESSING, if self == Addressing::Primary { 0 } else { 1 });
    }
}

/// A recipient reached by other means than MMHS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRecipient {
    /// For action or for information.
    pub addressing: Addressing,
    /// Its designator.
    pub designator: String,
}

const DESIGNATOR: Tag = Tag::context(1);

impl OtherRecipient {
    fn decode(e: &Element<'_>) -> Result<OtherRecipient, Error> {
        let (mut addressing, mut designator) = (Member::new("type"), Member::new("designator"));
        read_set(e, |m| match m.tag {
            ADDRESSING => addressing.last(m, Addressing::decode),
            DESIGNATOR => designator.last(m, Element::text),
            _ => Ok(false),
        })?;
        Ok(OtherRecipient {
            addressing: addressing.required(ADDRESSING)?,
            designator: designator.required(DESIGNATOR)?,
        })
    }

    fn encode(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.addressing.encode(w);
            w.string(DESIGNATOR, &self.designator);
        });
    }
}

/// An address list among the recipients, and whose notifications or replies are asked for
/// (AddressListRequest: action 0, info 1, both 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressListDesignator {
    /// For action or for information.
    pub addressing: Addressing,
    /// The list.
    pub list: OrDescriptor,
    /// The members who are asked to notify: 0 action, 1 info, 2 both.
    pub notification_request: Option<u8>,
    /// The members who are asked to reply: 0 action, 1 info, 2 both.
    pub reply_request: Option<u8>,
}

const LIST_NAME: Tag = Tag::context(1);
const NOTIFICATION_REQUEST: Tag = Tag::context(2);
const REPLY_REQUEST: Tag = Tag::context(3);

impl AddressListDesignator {
    pub(crate) fn decode(e: &Element<'_>) -> Result<AddressListDesignator, Error> {
        let request = |member: &Element<'_>| match member.integer()? {
            n @ 0..=2 => Ok(n as u8),
            _ => Err(Error::from(Fault::Value("AddressListRequest, 0 to 2"))),
        };
        let (mut addressing, mut list) = (Member::new("type"), Member::new("listName"));
        let mut notification_request = Member::new("notificationRequest");
        let mut reply_request = Member::new("replyRequest");
        read_set(e, |m| match m.tag {
            ADDRESSING => addressing.last(m, Addressing::decode),
            LIST_NAME => list.last(m, OrDescriptor::decode),
            NOTIFICATION_REQUEST => notification_request.last(m, request),
            REPLY_REQUEST => reply_request.last(m, request),
            _ => Ok(false),
        })?;
        Ok(AddressListDesignator {
            addressing: addressing.required(ADDRESSING)?,
            list: list.required(LIST_NAME)?,
            notification_request: notification_request.optional(),
            reply_request: reply_request.optional(),
        })
    }

    fn encode(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.addressing.encode(w);
            self.list.encode(w, LIST_NAME);
            if let Some(request) = self.notification_request {
                w.integer(NOTIFICATION_REQUEST, i64::from(request));
            }
            if let Some(request) = self.reply_request {
                w.integer(REPLY_REQUEST, i64::from(request));
            }
        });
    }
}

/// What STANAG 4406 adds to a heading. Every field is optional; all absent in a civil message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Military {
    /// Precedence for those addressed for action.
    pub primary_precedence: Option<MmhsPrecedence>,
    /// Precedence for those addressed for information.
    pub copy_precedence: Option<MmhsPrecedence>,
    /// Message type.
    pub message_type: Option<MessageType>,
    /// Address lists among the recipients.
    pub address_lists: Vec<AddressListDesignator>,
    /// Members of a list the message must not go to.
    pub exempted_addresses: Vec<OrDescriptor>,
    /// Extended authorisation information: the date-time group (DTG), when release was authorised.
    pub authorised_at: Option<Utc>,
    /// Subject indicator codes and other distribution codes.
    pub distribution_codes: DistributionCodes,
    /// Handling instructions.
    pub handling_instructions: Vec<String>,
    /// Message instructions (operating signals).
    pub message_instructions: Vec<String>,
    /// Codress message.
    pub codress: Option<i64>,
    /// The originator's own reference.
    pub originator_reference: Option<String>,
    /// Recipients reached by other means.
    pub other_recipients: Vec<OtherRecipient>,
    /// ACP 127 routing indicator, station serial number and file time.
    pub acp127_message_identifier: Option<String>,
    /// The originator's plain-language address designator.
    pub originator_plad: Option<String>,
    /// Pilot forwarding information: where a message that a pilot brings goes on to.
    pub pilot_forwarding: Vec<PilotInformation>,
    /// Information labels, which STANAG 4406 has replaced by the ESS security label.
    pub information_labels: Option<InformationLabels>,
}

/// An extension of X.420, kept as it came: of unknown type, or of a value we do not understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawExtension {
    /// Type.
    pub kind: Oid,
    /// Encoding of the value; absent means NULL.
    pub value: Option<Vec<u8>>,
}

impl RawExtension {
    pub(crate) fn encode(&self, w: &mut Writer) {
        w.constructed(u::SEQUENCE, |w| {
            w.oid(u::OID, &self.kind);
            if let Some(value) = &self.value {
                w.raw(value);
            }
        });
    }
}

/// Decodes an IPMSExtension: a type, and a value that may be absent.
pub(crate) fn decode_extension(e: &Element<'_>) -> Result<RawExtension, Error> {
    let mut parts = e.children()?;
    let kind = parts.require(u::OID).and_then(|e| e.oid()).field("extension type")?;
    let value = parts.next()?.map(|v| v.raw.to_vec());
    parts.finish()?;
    Ok(RawExtension { kind, value })
}

pub(crate) fn decode_strings(e: &Element<'_>) -> Result<Vec<String>, Error> {
    decode_all(e, |string| string.text())
}

fn encode_strings(w: &mut Writer, strings: &[String]) {
    w.constructed(u::SEQUENCE, |w| {
        strings.iter().for_each(|s| w.string(u::PRINTABLE_STRING, s));
    });
}

impl Military {
    /// Takes one extension in; `false` if it is unknown or repeated, or its value does not
    /// decode: then the caller keeps it raw.
    pub(crate) fn absorb(&mut self, extension: &RawExtension) -> bool {
        let Some(n) = oids::heading_extension_number(extension.kind.content()) else {
            return false;
        };
        let Some(value) = extension.value.as_deref() else { return false };
        Element::parse(value).and_then(|e| self.absorb_value(n, &e)).unwrap_or(false)
    }

    fn absorb_value(&mut self, n: u8, e: &Element<'_>) -> Result<bool, Error> {
        fn once<T>(slot: &mut Option<T>, value: T) -> Result<bool, Error> {
            let fresh = slot.is_none();
            slot.get_or_insert(value);
            Ok(fresh)
        }
        fn once_each<T>(slot: &mut Vec<T>, values: Vec<T>) -> Result<bool, Error> {
            // An empty list would vanish when sent on: leave it to the raw ones.
            let fresh = slot.is_empty() && !values.is_empty();
            if fresh {
                *slot = values;
            }
            Ok(fresh)
        }
        match n {
            0 => once(&mut self.primary_precedence, MmhsPrecedence::decode(e)?),
            1 => once(&mut self.copy_precedence, MmhsPrecedence::decode(e)?),
            2 => once(&mut self.message_type, MessageType::decode(e)?),
            3 => once_each(&mut self.address_lists, decode_all(e, AddressListDesignator::decode)?),
            4 => once_each(&mut self.exempted_addresses, decode_all(e, OrDescriptor::decode)?),
            5 => match e.utc_time()? {
                Some(time) => once(&mut self.authorised_at, time),
                None => Ok(false),
            },
            6 => {
                let codes = DistributionCodes::decode(e)?;
                let fresh = self.distribution_codes.is_empty() && !codes.is_empty();
                if fresh {
                    self.distribution_codes = codes;
                }
                Ok(fresh)
            }
            7 => once_each(&mut self.handling_instructions, decode_strings(e)?),
            8 => once_each(&mut self.message_instructions, decode_strings(e)?),
            9 => once(&mut self.codress, e.integer()?),
            10 => once(&mut self.originator_reference, e.text()?),
            11 => once_each(&mut self.other_recipients, decode_all(e, OtherRecipient::decode)?),
            12 => once_each(&mut self.pilot_forwarding, decode_all(e, PilotInformation::decode)?),
            13 => once(&mut self.acp127_message_identifier, e.text()?),
            14 => once(&mut self.originator_plad, e.text()?),
            17 => once(&mut self.information_labels, InformationLabels::decode(e)?),
            _ => Ok(false),
        }
    }

    /// Whether no extension would be written.
    pub fn is_empty(&self) -> bool {
        *self == Military::default()
    }

    pub(crate) fn encode(&self, w: &mut Writer) {
        let mut extension = |n: u8, value: &dyn Fn(&mut Writer)| {
            w.constructed(u::SEQUENCE, |w| {
                oids::write_heading_extension(w, n);
                value(w);
            });
        };
        for (n, precedence) in [(0, self.primary_precedence), (1, self.copy_precedence)] {
            if let Some(p) = precedence {
                extension(n, &|w| w.integer(u::INTEGER, i64::from(p.value())));
            }
        }
        if let Some(message_type) = &self.message_type {
            extension(2, &|w| message_type.encode(w));
        }
        if !self.address_lists.is_empty() {
            extension(3, &|w| {
                w.constructed(u::SEQUENCE, |w| self.address_lists.iter().for_each(|l| l.encode(w)));
            });
        }
        if !self.exempted_addresses.is_empty() {
            extension(4, &|w| {
                w.constructed(u::SEQUENCE, |w| {
                    self.exempted_addresses.iter().for_each(|a| a.encode(w, u::SET));
                });
            });
        }
        if let Some(time) = self.authorised_at {
            extension(5, &|w| w.utc_time(u::UTC_TIME, time));
        }
        if !self.distribution_codes.is_empty() {
            extension(6, &|w| self.distribution_codes.encode(w));
        }
        for (n, strings) in [(7, &self.handling_instructions), (8, &self.message_instructions)] {
            if !strings.is_empty() {
                extension(n, &|w| encode_strings(w, strings));
            }
        }
        if let Some(codress) = self.codress {
            extension(9, &|w| w.integer(u::INTEGER, codress));
        }
        if !self.other_recipients.is_empty() {
            extension(11, &|w| {
                w.constructed(u::SEQUENCE, |w| {
                    self.other_recipients.iter().for_each(|r| r.encode(w));
                });
            });
        }
        for (n, text) in [
            (10, &self.originator_reference),
            (13, &self.acp127_message_identifier),
            (14, &self.originator_plad),
        ] {
            if let Some(text) = text {
                extension(n, &|w| w.string(u::PRINTABLE_STRING, text));
            }
        }
        if !self.pilot_forwarding.is_empty() {
            extension(12, &|w| {
                w.constructed(u::SEQUENCE, |w| {
                    self.pilot_forwarding.iter().for_each(|p| p.encode(w));
                });
            });
        }
        if let Some(labels) = &self.information_labels {
            extension(17, &|w| labels.encode(w));
        }
    }
}
