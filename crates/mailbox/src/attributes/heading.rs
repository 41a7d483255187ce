//! Attributes of a heading (X.420 Annex C, STANAG 4406): its members, each as a value of its own type.

use super::envelope::{each, retagged};
use base::ber::{Element, Oid, Tag, universal as u};
use p7::Value;
use p7::attributes::{self as a, AttributeType};

/// IPMIdentifier's own tag.
const IPM_IDENTIFIER: Tag = Tag::application(11);
/// The member that has the extensions.
const EXTENSIONS: u32 = 15;
/// Content octets of 1.3.26.0.4406.0.2: the heading extensions of STANAG 4406.
const MILITARY: [u8; 7] = [0x2b, 26, 0, 0xa2, 0x36, 0, 2];
/// The extension distribution-codes, whose member 0 has the subject indicator codes.
const DISTRIBUTION_CODES: u8 = 6;

/// How the values of an attribute are in the heading.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Member `[n]`, whose type has this tag.
    Member(u32, Tag),
    /// The elements in member `[n]`.
    Each(u32),
    /// The value of a military extension.
    Extension(u8),
    /// The elements in the value of one.
    EachOf(u8),
}

fn place(kind: &AttributeType) -> Option<Place> {
    use Place::{Each, EachOf, Extension, Member};
    Some(match *kind {
        a::ORIGINATOR => Member(0, u::SET),
        a::REPLIED_TO_IPM => Member(5, IPM_IDENTIFIER),
        a::EXPIRY_TIME => Member(9, u::UTC_TIME),
        a::REPLY_TIME => Member(10, u::UTC_TIME),
        a::IMPORTANCE => Member(12, u::ENUMERATED),
        a::SENSITIVITY => Member(13, u::ENUMERATED),
        a::AUTO_FORWARDED => Member(14, u::BOOLEAN),
        a::AUTHORIZING_USERS => Each(1),
        a::PRIMARY_RECIPIENTS => Each(2),
        a::COPY_RECIPIENTS => Each(3),
        a::BLIND_COPY_RECIPIENTS => Each(4),
        a::OBSOLETED_IPMS => Each(6),
        a::RELATED_IPMS => Each(7),
        a::REPLY_RECIPIENTS => Each(11),
        a::COPY_PRECEDENCE => Extension(1),
        a::MESSAGE_TYPE => Extension(2),
        a::ADDRESS_LIST_INDICATOR => EachOf(3),
        a::EXEMPTED_ADDRESS => EachOf(4),
        a::EXTENDED_AUTHORISATION_INFO => Extension(5),
        a::DISTRIBUTION_CODES => Extension(DISTRIBUTION_CODES),
        a::HANDLING_INSTRUCTIONS => EachOf(7),
        a::MESSAGE_INSTRUCTIONS => EachOf(8),
        a::CODRESS_MESSAGE => Extension(9),
        a::ORIGINATOR_REFERENCE => Extension(10),
        a::OTHER_RECIPIENTS_INDICATOR => EachOf(11),
        a::PILOT_FORWARDING_INFO => EachOf(12),
        a::ACP127_MESSAGE_IDENTIFIER => Extension(13),
        a::ORIGINATOR_PLAD => Extension(14),
        _ => return None,
    })
}

/// The members of a heading. Of a member that comes twice the last counts, as for a reader of the heading.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    whole: Option<&'a [u8]>,
    members: Vec<Element<'a>>,
}

impl<'a> Members<'a> {
    /// Of this heading. One that is malformed has the members before the fault.
    pub(super) fn read(heading: &'a [u8]) -> Members<'a> {
        let mut members = Vec::new();
        let element = Element::parse_accepted(heading).and_then(|element| element.children());
        if let Ok(mut reader) = element {
            while let Ok(Some(member)) = reader.next() {
                members.push(member);
            }
        }
        Members { whole: Some(heading), members }
    }

    /// The values of an attribute of the heading.
    pub(super) fn values(&self, kind: &AttributeType) -> Vec<Value> {
        let Some(whole) = self.whole else { return Vec::new() };
        match *kind {
            a::HEADING => Value::from_octets(whole.to_vec()).into_iter().collect(),
            a::THIS_IPM => self.raw(IPM_IDENTIFIER).into_iter().collect(),
            a::SUBJECT_INDICATOR_CODE => self.codes(),
            _ => match place(kind) {
                Some(Place::Member(n, tag)) => self.member(n, tag, kind),
                Some(Place::Each(n)) => each(self.raw(Tag::context(n)).as_ref()),
                Some(Place::Extension(n)) => self.extension(n).into_iter().collect(),
                Some(Place::EachOf(n)) => each(self.extension(n).as_ref()),
                None => Vec::new(),
            },
        }
    }

    fn find(&self, tag: Tag) -> Option<&Element<'a>> {
        self.members.iter().rev().find(|member| member.tag == tag)
    }

    fn raw(&self, tag: Tag) -> Option<Value> {
        Value::from_octets(self.find(tag)?.raw.to_vec()).ok()
    }

    /// A member of one value; its default if it is absent.
    fn member(&self, n: u32, tag: Tag, kind: &AttributeType) -> Vec<Value> {
        let value = match self.find(Tag::context(n)) {
            Some(member) => retagged(member, tag),
            None if *kind == a::IMPORTANCE => Some(Value::from_enumerated(1)),
            None if *kind == a::AUTO_FORWARDED => Some(Value::from_boolean(false)),
            None => None,
        };
        value.into_iter().collect()
    }

    /// The value of the military extension `n`.
    fn extension(&self, n: u8) -> Option<Value> {
        let mut extensions = self.find(Tag::context(EXTENSIONS))?.children().ok()?;
        let mut value = None;
        while let Some(extension) = extensions.next().ok()? {
            let mut parts = extension.children().ok()?;
            let oid: Oid = parts.require(u::OID).ok()?.oid().ok()?;
            if oid.content().strip_prefix(&MILITARY) == Some(&[n]) {
                let element = parts.next().ok()??;
                // STANAG 4406 adds explicit tags to none of them; X.420 (1988) has the value as ANY.
                value = Value::from_octets(element.raw.to_vec()).ok();
            }
        }
        value
    }

    /// The subject indicator codes.
    fn codes(&self) -> Vec<Value> {
        let codes = || {
            let value = self.extension(DISTRIBUTION_CODES)?;
            let element = value.element().ok()?;
            let codes = element.children().ok()?.optional(Tag::context(0)).ok()??;
            Value::from_octets(codes.raw.to_vec()).ok()
        };
        each(codes().as_ref())
    }
}
