use super::PerRecipientFields;
use super::recipient::read_all;
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::Extensions;
use crate::flags::PerMessageIndicators;
use crate::names::{MtsIdentifier, ORName, content_identifier};
use crate::trace::{TraceElement, read_trace};
use crate::wire::{keep, once, tag};
use base::ber::{Element, Error, Field, Tag};
use bytes::Bytes;

pub(super) const BILATERAL: Tag = Tag::context(1);
pub(super) const RECIPIENTS: Tag = Tag::context(2);
pub(super) const EXTENSIONS: Tag = Tag::context(3);

/// The members a message's and a probe's envelope share, as they are collected.
#[derive(Default)]
pub(super) struct Common {
    pub(super) identifier: Option<MtsIdentifier>,
    pub(super) originator: Option<ORName>,
    pub(super) original_eits: Option<EncodedInformationTypes>,
    pub(super) content_type: Option<ContentType>,
    pub(super) content_identifier: Option<String>,
    pub(super) indicators: Option<PerMessageIndicators>,
    pub(super) bilateral: Option<Bytes>,
    pub(super) recipients: Option<Vec<PerRecipientFields>>,
    pub(super) extensions: Option<Extensions>,
    pub(super) trace: Option<Vec<TraceElement>>,
    pub(super) unknown: Vec<Bytes>,
}

impl Common {
    /// Takes one member in; what no envelope has is kept.
    pub(super) fn take(&mut self, m: &Element<'_>) -> Result<(), Error> {
        match m.tag {
            tag::MTS_IDENTIFIER => once(&mut self.identifier, m, MtsIdentifier::read(m)?),
            tag::OR_NAME => {
                once(&mut self.originator, m, ORName::read(m).field("originator-name")?)
            }
            tag::EITS => {
                let eits = EncodedInformationTypes::read(m);
                once(&mut self.original_eits, m, eits.field("original-encoded-information-types")?)
            }
            t if ContentType::has_tag(t) => {
                once(&mut self.content_type, m, ContentType::read(m).field("content-type")?)
            }
            tag::CONTENT_IDENTIFIER => {
                once(&mut self.content_identifier, m, content_identifier(m)?)
            }
            tag::PER_MESSAGE_INDICATORS => {
                once(&mut self.indicators, m, PerMessageIndicators::read(m)?)
            }
            BILATERAL => once(&mut self.bilateral, m, keep(m)),
            RECIPIENTS => once(&mut self.recipients, m, read_all(m, PerRecipientFields::read)?),
            EXTENSIONS => once(&mut self.extensions, m, Extensions::read(m)?),
            tag::TRACE => once(&mut self.trace, m, read_trace(m)?),
            _ => {
                self.unknown.push(keep(m));
                Ok(())
            }
        }
    }
}
