//! The heading of an interpersonal or military message (X.420 7.1, STANAG 4406 Annex A).

use crate::acp127::{self, Acp127Notifications};
use crate::civil::AutoSubmitted;
use crate::military::{
    MAX_MILITARY_STRING, MAX_SICS, Military, RawExtension, SIC_LENGTH, decode_extension,
};
use crate::text;
use base::Utc;
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_set, universal as u};
use p1::ORName;

/// Longest subject, characters (ub-subject-field).
pub const MAX_SUBJECT: usize = 128;
/// Longest local part of a message's own identifier, characters (ub-local-ipm-identifier).
pub const MAX_LOCAL_IDENTIFIER: usize = 64;

/// Most entries of any list in a heading: as many as an envelope has recipients (ub-recipients).
pub const MAX_LIST: usize = 32_767;

/// `[APPLICATION 0]`, ORName's own tag.
const OR_NAME: Tag = Tag::application(0);
/// `[APPLICATION 11]`, IPMIdentifier's own tag.
pub(crate) const IPM_IDENTIFIER: Tag = Tag::application(11);

/// IPMIdentifier: names one message for ever, by user and the user's own number for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IpmIdentifier {
    /// user.
    pub user: Option<ORName>,
    /// user-relative-identifier, Printable, up to 64 characters.
    pub local: String,
}

impl IpmIdentifier {
    pub(crate) fn decode(e: &Element<'_>) -> Result<IpmIdentifier, Error> {
        let (mut user, mut local) = (Member::new("user"), Member::new("user-relative-identifier"));
        read_set(e, |m| match m.tag {
            OR_NAME => user.last(m, ORName::read),
            u::PRINTABLE_STRING => local.last(m, Element::text),
            _ => Ok(false),
        })?;
        Ok(IpmIdentifier { user: user.optional(), local: local.required(u::PRINTABLE_STRING)? })
    }

    pub(crate) fn encode(&self, w: &mut Writer, tag: Tag) {
        w.constructed(tag, |w| {
            if let Some(user) = &self.user {
                user.write(w);
            }
            w.string(u::PRINTABLE_STRING, &self.local);
        });
    }
}

/// ORDescriptor: a user, by O/R name, in words, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrDescriptor {
    /// formal-name.
    pub formal_name: Option<ORName>,
    /// free-form-name, Teletex, up to 64 characters.
    pub free_form_name: Option<String>,
    /// telephone-number, Printable, up to 32 characters.
    pub telephone_number: Option<String>,
}

impl From<ORName> for OrDescriptor {
    fn from(name: ORName) -> OrDescriptor {
        OrDescriptor { formal_name: Some(name), ..OrDescriptor::default() }
    }
}

const FREE_FORM_NAME: Tag = Tag::context(0);
const TELEPHONE_NUMBER: Tag = Tag::context(1);

impl OrDescriptor {
    pub(crate) fn decode(e: &Element<'_>) -> Result<OrDescriptor, Error> {
        let (mut formal, mut free) = (Member::new("formal-name"), Member::new("free-form-name"));
        let mut telephone = Member::new("telephone-number");
        read_set(e, |m| match m.tag {
            OR_NAME => formal.last(m, ORName::read),
            FREE_FORM_NAME => free.last(m, Element::text),
            TELEPHONE_NUMBER => telephone.last(m, Element::text),
            _ => Ok(false),
        })?;
        Ok(OrDescriptor {
            formal_name: formal.optional(),
            free_form_name: free.optional(),
            telephone_number: telephone.optional(),
        })
    }

    pub(crate) fn encode(&self, w: &mut Writer, tag: Tag) {
        w.constructed(tag, |w| {
            if let Some(name) = &self.formal_name {
                name.write(w);
            }
            if let Some(words) = &self.free_form_name {
                w.string(FREE_FORM_NAME, text::teletex(words));
            }
            if let Some(number) = &self.telephone_number {
                w.string(TELEPHONE_NUMBER, number);
            }
        });
    }
}

/// NotificationRequests: which notifications a recipient's agent is to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotificationRequests {
    /// rn: of receipt.
    pub receipt: bool,
    /// nrn: of non-receipt.
    pub non_receipt: bool,
    /// ipm-return: with the message itself.
    pub return_content: bool,
}

/// RecipientSpecifier: a recipient and what is asked of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecipientSpecifier {
    /// recipient.
    pub recipient: OrDescriptor,
    /// notification-requests.
    pub notification_requests: NotificationRequests,
    /// reply-requested.
    pub reply_requested: bool,
    /// acp127-notification-request, among the extensions: what a gateway to ACP 127 is to notify.
    pub acp127_request: Option<Acp127Notifications>,
    /// All other recipient-extensions.
    pub extensions: Vec<RawExtension>,
}

impl From<ORName> for RecipientSpecifier {
    fn from(name: ORName) -> RecipientSpecifier {
        RecipientSpecifier { recipient: name.into(), ..RecipientSpecifier::default() }
    }
}

impl NotificationRequests {
    fn decode(e: &Element<'_>) -> Result<NotificationRequests, Error> {
        let bits = e.bits()?;
        let (receipt, non_receipt, return_content) = (bits.get(0), bits.get(1), bits.get(2));
        Ok(NotificationRequests { receipt, non_receipt, return_content })
    }
}

const RECIPIENT: Tag = Tag::context(0);
const NOTIFICATION_REQUESTS: Tag = Tag::context(1);
const REPLY_REQUESTED: Tag = Tag::context(2);
const RECIPIENT_EXTENSIONS: Tag = Tag::context(3);

impl RecipientSpecifier {
    fn decode(e: &Element<'_>) -> Result<RecipientSpecifier, Error> {
        let mut recipient = Member::new("recipient");
        let mut requests = Member::new("notification-requests");
        let mut reply = Member::new("reply-requested");
        let mut extensions = Member::new("recipient-extensions");
        read_set(e, |m| match m.tag {
            RECIPIENT => recipient.last(m, OrDescriptor::decode),
            NOTIFICATION_REQUESTS => requests.last(m, NotificationRequests::decode),
            REPLY_REQUESTED => reply.last(m, Element::boolean),
            RECIPIENT_EXTENSIONS => extensions.last(m, |m| decode_all(m, decode_extension)),
            _ => Ok(false),
        })?;
        let (mut acp127_request, mut others) = (None, Vec::new());
        for extension in extensions.or_default() {
            match acp127::read_request(&extension).filter(|_| acp127_request.is_none()) {
                Some(request) => acp127_request = Some(request),
                None => others.push(extension),
            }
        }
        Ok(RecipientSpecifier {
            recipient: recipient.required(RECIPIENT)?,
            notification_requests: requests.or_default(),
            reply_requested: reply.or_default(),
            acp127_request,
            extensions: others,
        })
    }

    fn encode(&self, w: &mut Writer) {
        let asked = self.notification_requests;
        w.constructed(u::SET, |w| {
            self.recipient.encode(w, RECIPIENT);
            if asked != NotificationRequests::default() {
                let bits = [(0, asked.receipt), (1, asked.non_receipt), (2, asked.return_content)];
                let set: Vec<u32> = bits.iter().filter(|b| b.1).map(|b| b.0).collect();
                w.named_bits(NOTIFICATION_REQUESTS, &set, 0);
            }
            if self.reply_requested {
                w.boolean(REPLY_REQUESTED, true);
            }
            if !self.extensions.is_empty() || self.acp127_request.is_some() {
                w.constructed(RECIPIENT_EXTENSIONS, |w| {
                    if let Some(request) = self.acp127_request {
                        acp127::write_request(w, request);
                    }
                    self.extensions.iter().for_each(|e| e.encode(w));
                });
            }
        });
    }
}

/// Importance, as the originator sees it; the MTS does not look at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Importance {
    /// low, 0.
    Low,
    /// normal, 1.
    #[default]
    Normal,
    /// high, 2.
    High,
}

/// Sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitivity {
    /// personal, 1.
    Personal,
    /// private, 2.
    Private,
    /// company-confidential, 3.
    CompanyConfidential,
}

/// Heading. A time that cannot be read is as good as absent: it must not lose a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heading {
    /// this-IPM.
    pub this_ipm: IpmIdentifier,
    /// originator.
    pub originator: Option<OrDescriptor>,
    /// authorizing-users.
    pub authorizing_users: Vec<OrDescriptor>,
    /// primary-recipients: for action.
    pub primary_recipients: Vec<RecipientSpecifier>,
    /// copy-recipients: for information.
    pub copy_recipients: Vec<RecipientSpecifier>,
    /// blind-copy-recipients.
    pub blind_copy_recipients: Vec<RecipientSpecifier>,
    /// replied-to-IPM.
    pub replied_to: Option<IpmIdentifier>,
    /// obsoleted-IPMs.
    pub obsoleted: Vec<IpmIdentifier>,
    /// related-IPMs.
    pub related: Vec<IpmIdentifier>,
    /// subject, Teletex, up to 128 characters.
    pub subject: Option<String>,
    /// expiry-time.
    pub expiry_time: Option<Utc>,
    /// reply-time: when a reply is due.
    pub reply_time: Option<Utc>,
    /// reply-recipients.
    pub reply_recipients: Vec<OrDescriptor>,
    /// importance.
    pub importance: Importance,
    /// sensitivity.
    pub sensitivity: Option<Sensitivity>,
    /// auto-forwarded.
    pub auto_forwarded: bool,
    /// incomplete-copy, among the extensions: body parts or recipients are missing.
    pub incomplete_copy: bool,
    /// languages, among the extensions: codes of ISO 639.
    pub languages: Vec<String>,
    /// auto-submitted, among the extensions: how far a person took part in the submission.
    pub auto_submitted: Option<AutoSubmitted>,
    /// The extensions of STANAG 4406.
    pub military: Military,
    /// All other extensions, as they came.
    pub extensions: Vec<RawExtension>,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Vec<u8>>,
}

/// Every element inside, read by `one`, at most [`MAX_LIST`].
pub(crate) fn decode_all<T>(
    e: &Element<'_>,
    one: impl Fn(&Element<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut out = Vec::new();
    let mut members = e.children()?;
    while let Some(member) = members.next()? {
        if out.len() == MAX_LIST {
            return Err(Fault::TooMany(MAX_LIST as u64).into());
        }
        out.push(one(&member)?);
    }
    Ok(out)
}

impl Heading {
    /// What it asks of this user: of the recipients that have its address, all together.
    pub fn requests_of(&self, user: &ORName) -> NotificationRequests {
        let all = [&self.primary_recipients, &self.copy_recipients, &self.blind_copy_recipients];
        let is_user = |specifier: &&RecipientSpecifier| {
            let name = specifier.recipient.formal_name.as_ref();
            name.is_some_and(|name| name.address.same_as(&user.address))
        };
        let mut asked = NotificationRequests::default();
        for specifier in all.into_iter().flatten().filter(is_user) {
            let more = specifier.notification_requests;
            asked.receipt |= more.receipt;
            asked.non_receipt |= more.non_receipt;
            asked.return_content |= more.return_content;
        }
        asked
    }

    /// Reads a Heading, its members in any order.
    ///
    /// # Errors
    /// Malformed BER, or a missing this-IPM; the field is named.
    pub fn decode(e: &Element<'_>) -> Result<Heading, Error> {
        let mut heading = Heading::default();
        let mut this_ipm = Member::new("this-IPM");
        let unknown = read_set(e, |m| match m.tag {
            IPM_IDENTIFIER => this_ipm.last(m, IpmIdentifier::decode),
            tag if tag == Tag::context(tag.number) => heading.decode_member(m),
            _ => Ok(false),
        })?;
        heading.this_ipm = this_ipm.required(IPM_IDENTIFIER)?;
        heading.unknown = unknown.iter().map(|m| m.raw.to_vec()).collect();
        Ok(heading)
    }

    /// Reads a member of context class; `false` where X.420 has none of this number.
    fn decode_member(&mut self, e: &Element<'_>) -> Result<bool, Error> {
        match e.tag.number {
            0 => self.originator = Some(OrDescriptor::decode(e).field("originator")?),
            1 => {
                self.authorizing_users =
                    decode_all(e, OrDescriptor::decode).field("authorizing-users")?;
            }
            2 => {
                self.primary_recipients =
                    decode_all(e, RecipientSpecifier::decode).field("primary-recipients")?;
            }
            3 => {
                self.copy_recipients =
                    decode_all(e, RecipientSpecifier::decode).field("copy-recipients")?;
            }
            4 => {
                self.blind_copy_recipients =
                    decode_all(e, RecipientSpecifier::decode).field("blind-copy-recipients")?;
            }
            5 => self.replied_to = Some(IpmIdentifier::decode(e).field("replied-to-IPM")?),
            6 => self.obsoleted = decode_all(e, IpmIdentifier::decode).field("obsoleted-IPMs")?,
            7 => self.related = decode_all(e, IpmIdentifier::decode).field("related-IPMs")?,
            8 => self.subject = Some(e.only_child().and_then(|e| e.text()).field("subject")?),
            9 => self.expiry_time = e.utc_time().field("expiry-time")?,
            10 => self.reply_time = e.utc_time().field("reply-time")?,
            11 => {
                self.reply_recipients =
                    decode_all(e, OrDescriptor::decode).field("reply-recipients")?;
            }
            12 => {
                self.importance = match e.integer().field("importance")? {
                    0 => Importance::Low,
                    2 => Importance::High,
                    _ => Importance::Normal,
                };
            }
            13 => {
                self.sensitivity = match e.integer().field("sensitivity")? {
                    1 => Some(Sensitivity::Personal),
                    2 => Some(Sensitivity::Private),
                    3 => Some(Sensitivity::CompanyConfidential),
                    _ => None,
                };
            }
            14 => self.auto_forwarded = e.boolean().field("auto-forwarded")?,
            15 => {
                for extension in decode_all(e, decode_extension).field("extensions")? {
                    if !self.military.absorb(&extension) && !self.absorb_civil(&extension) {
                        self.extensions.push(extension);
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Appends the Heading.
    pub fn encode(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            self.this_ipm.encode(w, IPM_IDENTIFIER);
            if let Some(originator) = &self.originator {
                originator.encode(w, Tag::context(0));
            }
            encode_all(w, 1, &self.authorizing_users, |w, user| user.encode(w, u::SET));
            encode_all(w, 2, &self.primary_recipients, |w, r| r.encode(w));
            encode_all(w, 3, &self.copy_recipients, |w, r| r.encode(w));
            encode_all(w, 4, &self.blind_copy_recipients, |w, r| r.encode(w));
            if let Some(replied_to) = &self.replied_to {
                replied_to.encode(w, Tag::context(5));
            }
            encode_all(w, 6, &self.obsoleted, |w, ipm| ipm.encode(w, IPM_IDENTIFIER));
            encode_all(w, 7, &self.related, |w, ipm| ipm.encode(w, IPM_IDENTIFIER));
            if let Some(subject) = &self.subject {
                w.constructed(Tag::context(8), |w| {
                    w.string(u::TELETEX_STRING, text::teletex(subject));
                });
            }
            for (n, time) in [(9, self.expiry_time), (10, self.reply_time)] {
                if let Some(time) = time {
                    w.utc_time(Tag::context(n), time);
                }
            }
            encode_all(w, 11, &self.reply_recipients, |w, user| user.encode(w, u::SET));
            match self.importance {
                Importance::Low => w.integer(Tag::context(12), 0),
                Importance::Normal => {}
                Importance::High => w.integer(Tag::context(12), 2),
            }
            if let Some(sensitivity) = self.sensitivity {
                let value = match sensitivity {
                    Sensitivity::Personal => 1,
                    Sensitivity::Private => 2,
                    Sensitivity::CompanyConfidential => 3,
                };
                w.integer(Tag::context(13), value);
            }
            if self.auto_forwarded {
                w.boolean(Tag::context(14), true);
            }
            let civil = self.has_civil();
            if civil || !self.extensions.is_empty() || !self.military.is_empty() {
                w.constructed(Tag::context(15), |w| {
                    self.military.encode(w);
                    self.encode_civil(w);
                    self.extensions.iter().for_each(|e| e.encode(w));
                });
            }
            self.unknown.iter().for_each(|member| w.raw(member));
        });
    }

    /// Checks what a sender must keep to: character sets and upper bounds. A receiver does not:
    /// peers exceed them.
    ///
    /// # Errors
    /// The first field that does not hold, by name, with its bound.
    pub fn validate(&self) -> Result<(), InvalidHeading> {
        let local = &self.this_ipm.local;
        check(printable(local, 1..=MAX_LOCAL_IDENTIFIER), "this-IPM", "1 to 64 printable")?;
        if let Some(subject) = &self.subject {
            let fits = subject.chars().count() <= MAX_SUBJECT;
            check(fits, "subject", "at most 128")?;
        }
        let military = &self.military;
        let sics = &military.distribution_codes.sics;
        check(sics.len() <= MAX_SICS, "subject indicator codes", "at most 8 codes of 3 to 8")?;
        for sic in sics {
            check(printable(sic, SIC_LENGTH), "subject indicator code", "3 to 8 printable")?;
        }
        let strings = |field, strings: &[String]| {
            strings.iter().try_for_each(|s| check(military_string(s), field, "1 to 69 printable"))
        };
        strings("handling-instructions", &military.handling_instructions)?;
        strings("message-instructions", &military.message_instructions)?;
        strings("originator-reference", military.originator_reference.as_slice())?;
        strings("acp127-message-identifier", military.acp127_message_identifier.as_slice())?;
        strings("originator-plad", military.originator_plad.as_slice())?;
        let kind = military.message_type.as_ref().and_then(|t| t.identifier.as_ref());
        strings("message-type identifier", kind.map(std::slice::from_ref).unwrap_or_default())?;
        for other in &military.other_recipients {
            strings("other-recipients", std::slice::from_ref(&other.designator))?;
        }
        for pilot in &military.pilot_forwarding {
            strings("pilot-forwarding-info handling", &pilot.handling)?;
        }
        for language in &self.languages {
            check(printable(language, 2..=5), "languages", "2 to 5 printable")?;
        }
        Ok(())
    }
}

fn encode_all<T>(w: &mut Writer, n: u32, all: &[T], one: impl Fn(&mut Writer, &T)) {
    if !all.is_empty() {
        w.constructed(Tag::context(n), |w| all.iter().for_each(|x| one(w, x)));
    }
}

fn printable(value: &str, length: std::ops::RangeInclusive<usize>) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c);
    length.contains(&value.len()) && value.chars().all(allowed)
}

fn military_string(value: &str) -> bool {
    printable(value, 1..=MAX_MILITARY_STRING)
}

fn check(holds: bool, field: &'static str, bound: &'static str) -> Result<(), InvalidHeading> {
    if holds { Ok(()) } else { Err(InvalidHeading { field, bound }) }
}

/// A heading that must not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {bound} characters are allowed")]
pub struct InvalidHeading {
    /// The field, in the standard's terms.
    pub field: &'static str,
    /// The bound of the standard, in characters, as text.
    pub bound: &'static str,
}
