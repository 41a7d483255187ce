use super::PerRecipientFields;
use super::recipient::read_all;
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::Extensions;
use crate::flags::PerMessageIndicators;
use crate::names::{MtsIdentifier, ORName, content_identifier};
use crate::trace::{TraceElement, read_trace};
use crate::wire::{keep, tag};
use base::ber::{Element, Error, Member, Tag};
use bytes::Bytes;

pub(super) const BILATERAL: Tag = Tag::context(1);
pub(super) const RECIPIENTS: Tag = Tag::context(2);
pub(super) const EXTENSIONS: Tag = Tag::context(3);

/// The members a message's and a probe's envelope share, as they are collected.
pub(super) struct Common {
    pub(super) identifier: Member<MtsIdentifier>,
    pub(super) originator: Member<ORName>,
    pub(super) original_eits: Member<EncodedInformationTypes>,
    pub(super) content_type: Member<ContentType>,
    pub(super) content_identifier: Member<String>,
    pub(super) indicators: Member<PerMessageIndicators>,
    pub(super) bilateral: Member<Bytes>,
    pub(super) recipients: Member<Vec<PerRecipientFields>>,
    pub(super) extensions: Member<Extensions>,
    pub(super) trace: Member<Vec<TraceElement>>,
}

impl Common {
    /// Of an envelope whose identifier has this name.
    pub(super) const fn new(identifier: &'static str) -> Common {
        Common {
            identifier: Member::new(identifier),
            originator: Member::new("originator-name"),
            original_eits: Member::new("original-encoded-information-types"),
            content_type: Member::new("content-type"),
            content_identifier: Member::new("content-identifier"),
            indicators: Member::new("per-message-indicators"),
            bilateral: Member::new("per-domain-bilateral-information"),
            recipients: Member::new("per-recipient-fields"),
            extensions: Member::new("extensions"),
            trace: Member::new("trace-information"),
        }
    }

    /// Reads one member; `false` where it is none of these.
    pub(super) fn take(&mut self, m: &Element<'_>) -> Result<bool, Error> {
        match m.tag {
            tag::MTS_IDENTIFIER => self.identifier.once(m, MtsIdentifier::read),
            tag::OR_NAME => self.originator.once(m, ORName::read),
            tag::EITS => self.original_eits.once(m, EncodedInformationTypes::read),
            t if ContentType::has_tag(t) => self.content_type.once(m, ContentType::read),
            tag::CONTENT_IDENTIFIER => self.content_identifier.once(m, content_identifier),
            tag::PER_MESSAGE_INDICATORS => self.indicators.once(m, PerMessageIndicators::read),
            BILATERAL => self.bilateral.once(m, |m| Ok(keep(m))),
            RECIPIENTS => self.recipients.once(m, |m| read_all(m, PerRecipientFields::read)),
            EXTENSIONS => self.extensions.once(m, Extensions::read),
            tag::TRACE => self.trace.once(m, read_trace),
            _ => Ok(false),
        }
    }
}
