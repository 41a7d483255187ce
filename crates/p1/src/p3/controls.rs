//! submission-control and delivery-control: their argument and their result.

use super::RefusedArgument;
use crate::content_type::ContentType;
use crate::extension::{ExtensionType, Extensions};
use crate::flags::Priority;
use crate::wire::{self, Kept, bound, tag};
use base::ber::universal as u;
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_distinct_set};
use bytes::Bytes;

/// Controls: the argument of submission-control and of delivery-control (X.411 8.2.1.4, 8.3.1.3), and
/// default-delivery-controls of register. What is absent stays as it was.
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
    /// permissible-content-types.
    pub content_types: Option<Vec<ContentType>>,
    /// extensions of an argument of 1994.
    pub extensions: Extensions,
    /// All other members (EITs, security context), as whole elements.
    pub other: Vec<Bytes>,
}

impl Default for Controls {
    /// The empty SET, which changes nothing.
    fn default() -> Controls {
        Controls {
            restrict: true,
            probes_or_reports: None,
            messages: None,
            max_content_length: None,
            lowest_priority: None,
            content_types: None,
            extensions: Extensions::default(),
            other: Vec::new(),
        }
    }
}

const RESTRICT: Tag = Tag::context(0);
const OPERATIONS: Tag = Tag::context(1);
const LENGTH: Tag = Tag::context(2);
const CONTENT_TYPES: Tag = Tag::context(4);
const SECURITY_CONTEXT: Tag = Tag::context(5);
const EXTENSIONS: Tag = Tag::context(6);

/// probe-submission-or-report-delivery.
const PROBES_OR_REPORTS: u32 = 0;
/// message-submission-or-message-delivery.
const MESSAGES: u32 = 1;

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
        let mut types = Member::new("permissible-content-types");
        let mut extensions = Member::new("extensions");
        let other = read_distinct_set(e, |m| match m.tag {
            RESTRICT => restrict.once(m, Element::boolean),
            OPERATIONS => operations.once(m, Element::bits),
            LENGTH => length.once(m, Element::integer),
            tag::PRIORITY => priority.once(m, Priority::read),
            CONTENT_TYPES => types.once(m, content_types),
            EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        })?;
        let operations = operations.optional();
        Ok(Controls {
            restrict: restrict.optional().unwrap_or(true),
            probes_or_reports: operations.as_ref().map(|bits| bits.get(0)),
            messages: operations.as_ref().map(|bits| bits.get(1)),
            max_content_length: length.optional(),
            lowest_priority: priority.optional(),
            content_types: types.optional(),
            extensions: extensions.or_default(),
            other: wire::keep_all(&other),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if !self.restrict {
                w.boolean(RESTRICT, false);
            }
            if self.probes_or_reports.is_some() || self.messages.is_some() {
                let bits = [(PROBES_OR_REPORTS, self.probes_or_reports), (MESSAGES, self.messages)];
                write_operations(w, OPERATIONS, bits.map(|(bit, on)| (bit, on == Some(true))));
            }
            if let Some(length) = self.max_content_length {
                w.integer(LENGTH, length);
            }
            if let Some(priority) = self.lowest_priority {
                priority.write(w);
            }
            if let Some(types) = &self.content_types {
                w.constructed(CONTENT_TYPES, |w| types.iter().for_each(|t| t.write(w)));
            }
            if !self.extensions.0.is_empty() {
                self.extensions.write_as(w, EXTENSIONS);
            }
            wire::write_kept(w, &self.other);
        });
    }

    /// The first member that this program has no control for: operation-refused names it. An extension
    /// counts if it is critical.
    ///
    /// # Errors
    /// A member that X.411 does not give.
    pub fn undone(&self) -> Result<Option<RefusedArgument>, Error> {
        if let Some(octets) = self.other.first() {
            let e = Element::parse(octets)?;
            return Ok(Some(match e.tag {
                // The form of 1994 and that of 1988.
                u::SEQUENCE | tag::EITS => RefusedArgument::PERMISSIBLE_EITS,
                SECURITY_CONTEXT => RefusedArgument::PERMISSIBLE_SECURITY_CONTEXT,
                other => return Err(Fault::Unexpected(other)).field("Controls"),
            }));
        }
        Ok(refused_extension(&self.extensions))
    }
}

/// The first critical extension, as operation-refused names it.
pub(super) fn refused_extension(extensions: &Extensions) -> Option<RefusedArgument> {
    let critical = extensions.0.iter().find(|field| {
        let c = field.criticality;
        c.for_submission || c.for_transfer || c.for_delivery
    })?;
    Some(RefusedArgument::Extension(Kept(wire::written(|w| match &critical.kind {
        ExtensionType::Standard(number) => w.integer(Tag::context(0), *number),
        ExtensionType::Private(oid) => w.oid(Tag::context(3), oid),
    }))))
}

/// A SET OF ContentType, under whichever tag.
pub(super) fn content_types(e: &Element<'_>) -> Result<Vec<ContentType>, Error> {
    wire::list(e, bound::CONTENT_TYPES, ContentType::read)
}

fn write_operations(w: &mut Writer, tag: Tag, bits: [(u32, bool); 2]) {
    let set: Vec<u32> = bits.iter().filter(|(_, on)| *on).map(|(bit, _)| *bit).collect();
    w.named_bits(tag, &set, 2);
}

/// Waiting: the result of either control operation, what the controls hold back (X.411 8.2.1.4.2,
/// 8.3.1.3.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// waiting-operations, bit 0 of it: probe-submission or report-delivery.
    pub probes_or_reports: bool,
    /// waiting-operations, bit 1 of it: message-submission or message-delivery.
    pub messages: bool,
    /// waiting-messages, long-content: longer than the controls permit.
    pub long_content: bool,
    /// waiting-messages, low-priority: of a lower priority than the controls permit.
    pub low_priority: bool,
    /// waiting-messages, other-security-labels.
    pub other_security_labels: bool,
    /// waiting-content-types.
    pub content_types: Vec<ContentType>,
}

const WAITING_OPERATIONS: Tag = Tag::context(0);
const WAITING_MESSAGES: Tag = Tag::context(1);
const WAITING_CONTENT_TYPES: Tag = Tag::context(2);

impl Waiting {
    /// Whether nothing waits.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Waiting::default()
    }

    /// Reads the SET. Waiting encoded information types and extensions are left out.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<Waiting, Error> {
        if e.tag != u::SET {
            return Err(Fault::Unexpected(e.tag)).field("Waiting");
        }
        let mut operations = Member::new("waiting-operations");
        let mut messages = Member::new("waiting-messages");
        let mut types = Member::new("waiting-content-types");
        read_distinct_set(e, |m| match m.tag {
            WAITING_OPERATIONS => operations.once(m, wire::bits),
            WAITING_MESSAGES => messages.once(m, wire::bits),
            WAITING_CONTENT_TYPES => types.once(m, content_types),
            _ => Ok(false),
        })?;
        let (operations, messages) = (operations.or_default(), messages.or_default());
        Ok(Waiting {
            probes_or_reports: operations & 1 << PROBES_OR_REPORTS != 0,
            messages: operations & 1 << MESSAGES != 0,
            long_content: messages & 1 != 0,
            low_priority: messages & 1 << 1 != 0,
            other_security_labels: messages & 1 << 2 != 0,
            content_types: types.or_default(),
        })
    }

    /// Appends the SET, without members of their default.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            if self.probes_or_reports || self.messages {
                let bits = [(PROBES_OR_REPORTS, self.probes_or_reports), (MESSAGES, self.messages)];
                write_operations(w, WAITING_OPERATIONS, bits);
            }
            let flags = [self.long_content, self.low_priority, self.other_security_labels];
            if flags.contains(&true) {
                let bits = (0_u32..).zip(flags).filter(|(_, on)| *on).map(|(bit, _)| bit);
                w.named_bits(WAITING_MESSAGES, &bits.collect::<Vec<_>>(), 3);
            }
            if !self.content_types.is_empty() {
                let types = &self.content_types;
                w.constructed(WAITING_CONTENT_TYPES, |w| types.iter().for_each(|t| t.write(w)));
            }
        });
    }
}
