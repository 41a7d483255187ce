//! Control and administration: decoded as far as the answers of the standard need.

use super::AccessError;
use crate::bind::Credentials;
use crate::flags::Priority;
use crate::wire::{self, tag};
use base::ber::{
    Element, Error, Fault, Field, Member, Tag, Writer, read_distinct_set, universal as u,
};
use bytes::Bytes;
use rasn::{AsnType, Encode, Encoder as _};

/// Controls: the argument of submission-control and of delivery-control (X.411 8.2.1.4, 8.3.1.3).
/// What is absent is not restricted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controls {
    /// restrict: update the controls (the default), or remove them all.
    pub restrict: bool,
    /// permissible-operations, bit 0 of it: probe-submission or report-delivery.
    pub probes_or_reports: Option<bool>,
    /// permissible-operations, bit 1 of it: message-submission or message-delivery.
    pub messages: Option<bool>,
    /// permissible-maximum-content-length, octets.
    pub max_content_length: Option<i64>,
    /// permissible-lowest-priority.
    pub lowest_priority: Option<Priority>,
    /// All other members (content types, EITs, security context, extensions), as whole elements.
    pub other: Vec<Bytes>,
}

const RESTRICT: Tag = Tag::context(0);
const OPERATIONS: Tag = Tag::context(1);
const LENGTH: Tag = Tag::context(2);

impl Controls {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<Controls, Error> {
        if e.tag != u::SET {
            return Err(Fault::Unexpected(e.tag)).field("Controls");
        }
        let mut restrict = Member::new("restrict");
        let mut operations = Member::new("permissible-operations");
        let mut length = Member::new("permissible-maximum-content-length");
        let mut priority = Member::new("permissible-lowest-priority");
        let other = read_distinct_set(e, |m| match m.tag {
            RESTRICT => restrict.once(m, Element::boolean),
            OPERATIONS => operations.once(m, Element::bits),
            LENGTH => length.once(m, Element::integer),
            tag::PRIORITY => priority.once(m, Priority::read),
            _ => Ok(false),
        })?;
        let operations = operations.optional();
        Ok(Controls {
            restrict: restrict.optional().unwrap_or(true),
            probes_or_reports: operations.as_ref().map(|bits| bits.get(0)),
            messages: operations.as_ref().map(|bits| bits.get(1)),
            max_content_length: length.optional(),
            lowest_priority: priority.optional(),
            other: wire::keep_all(&other),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if !self.restrict {
                w.boolean(Tag::context(0), false);
            }
            if self.probes_or_reports.is_some() || self.messages.is_some() {
                let bits = [(0, self.probes_or_reports), (1, self.messages)];
                let set: Vec<u32> =
                    bits.iter().filter(|b| b.1 == Some(true)).map(|b| b.0).collect();
                w.named_bits(Tag::context(1), &set, 2);
            }
            if let Some(length) = self.max_content_length {
                w.integer(Tag::context(2), length);
            }
            if let Some(priority) = self.lowest_priority {
                priority.write(w);
            }
            wire::write_kept(w, &self.other);
        });
    }
}

/// Appends the result of either control operation when nothing waits: a Waiting of defaults.
pub fn write_waiting(w: &mut Writer) {
    w.constructed(u::SET, |_| {});
}

/// Checks that an argument is a RegisterArgument, a SET, and gives its members' tags: what is to be
/// registered (user-name `[APPLICATION 0]`, user-address 0, default-delivery-controls 2, ...).
///
/// # Errors
/// Malformed BER, or no SET.
pub fn read_register(e: &Element<'_>) -> Result<Vec<Tag>, Error> {
    if e.tag != u::SET {
        return Err(Fault::Unexpected(e.tag)).field("RegisterArgument");
    }
    let mut tags = Vec::new();
    let mut members = e.children().field("RegisterArgument")?;
    while let Some(member) = members.next().field("RegisterArgument")? {
        tags.push(member.tag);
    }
    Ok(tags)
}

/// ChangeCredentialsArgument (X.411 8.4.1.2).
#[derive(Clone, Debug, PartialEq, Eq, AsnType, Encode)]
#[rasn(set)]
pub struct ChangeCredentials {
    /// old-credentials.
    #[rasn(tag(explicit(0)))]
    pub old: Credentials,
    /// new-credentials.
    #[rasn(tag(explicit(1)))]
    pub new: Credentials,
}

const OLD: Tag = Tag::context(0);
const NEW: Tag = Tag::context(1);

impl ChangeCredentials {
    /// The octets of both passwords.
    ///
    /// # Errors
    /// What a user is answered whose credentials are not simple.
    pub fn passwords(&self) -> Result<(&[u8], &[u8]), AccessError> {
        match (&self.old, &self.new) {
            (Credentials::Simple(old), Credentials::Simple(new)) => {
                Ok((old.octets(), new.octets()))
            }
            (Credentials::Simple(_), _) => Err(AccessError::NewCredentialsUnacceptable),
            _ => Err(AccessError::OldCredentialsIncorrectlySpecified),
        }
    }

    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or either is missing; the field is named.
    pub fn read(e: &Element<'_>) -> Result<ChangeCredentials, Error> {
        let (mut old, mut new) = (Member::new("old-credentials"), Member::new("new-credentials"));
        let value = |m: &Element<'_>| Credentials::read(&m.only_child()?);
        read_distinct_set(e, |m| match m.tag {
            OLD => old.once(m, value),
            NEW => new.once(m, value),
            _ => Ok(false),
        })?;
        Ok(ChangeCredentials { old: old.required(OLD)?, new: new.required(NEW)? })
    }

    /// Appends the SET. Credentials is a CHOICE, which makes both tags explicit.
    pub fn write(&self, w: &mut Writer) {
        wire::encode(w, self);
    }
}
