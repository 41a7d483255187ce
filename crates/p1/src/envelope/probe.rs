use super::PerRecipientFields;
use super::common::{Common, EXTENSIONS, RECIPIENTS};
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::{Defaults, Extensions, Form};
use crate::flags::PerMessageIndicators;
use crate::names::{MtsIdentifier, ORName};
use crate::trace::{TraceElement, write_trace};
use crate::wire::{keep_all, tag, write_kept, write_latin1};
use base::ber::{Element, Error, Field, Member, Tag, Writer, read_set};
use bytes::Bytes;

/// ProbeTransferEnvelope: would such a message be delivered? (X.411 12.2.1.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProbeTransferEnvelope {
    /// probe-identifier.
    pub probe_identifier: MtsIdentifier,
    /// originator-name.
    pub originator: ORName,
    /// original-encoded-information-types.
    pub original_eits: Option<EncodedInformationTypes>,
    /// content-type.
    pub content_type: ContentType,
    /// content-identifier.
    pub content_identifier: Option<String>,
    /// content-length, octets.
    pub content_length: Option<i64>,
    /// per-message-indicators.
    pub indicators: PerMessageIndicators,
    /// per-domain-bilateral-information, the whole element.
    pub per_domain_bilateral: Option<Bytes>,
    /// per-recipient-fields.
    pub recipients: Vec<PerRecipientFields>,
    /// extensions.
    pub extensions: Extensions,
    /// trace-information, oldest first.
    pub trace: Vec<TraceElement>,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

const CONTENT_LENGTH: Tag = Tag::context(0);

impl ProbeTransferEnvelope {
    /// Reads it, under whichever tag; SET members in any order, unknown ones kept.
    ///
    /// # Errors
    /// Malformed, a mandatory member missing, or one twice.
    pub fn read(e: &Element<'_>) -> Result<ProbeTransferEnvelope, Error> {
        let mut common = Common::new("probe-identifier");
        let mut content_length = Member::new("content-length");
        let unknown = read_set(e, |m| match m.tag {
            CONTENT_LENGTH => content_length.once(m, Element::integer).field("content-length"),
            _ => common.take(m),
        });
        Ok(ProbeTransferEnvelope {
            unknown: keep_all(&unknown.field("probe-transfer-envelope")?),
            probe_identifier: common.identifier.required(tag::MTS_IDENTIFIER)?,
            originator: common.originator.required(tag::OR_NAME)?,
            original_eits: common.original_eits.optional(),
            content_type: common.content_type.required(tag::CONTENT_TYPE)?,
            content_identifier: common.content_identifier.optional(),
            content_length: content_length.optional(),
            indicators: common.indicators.or_default(),
            per_domain_bilateral: common.bilateral.optional(),
            recipients: common.recipients.required(RECIPIENTS)?,
            extensions: common.extensions.or_default(),
            trace: common.trace.required(tag::TRACE)?,
        })
    }

    /// Writes it under `tag`, with the members of the value of their DEFAULT that are to be written.
    pub fn write_as(&self, w: &mut Writer, tag: Tag, defaults: Defaults) {
        w.constructed(tag, |w| {
            self.probe_identifier.write(w);
            self.originator.write(w);
            if let Some(eits) = &self.original_eits {
                eits.write(w);
            }
            self.content_type.write(w);
            if let Some(identifier) = &self.content_identifier {
                write_latin1(w, tag::CONTENT_IDENTIFIER, identifier);
            }
            if let Some(length) = self.content_length {
                w.integer(CONTENT_LENGTH, length);
            }
            if defaults.writes(&self.indicators, &PerMessageIndicators::default()) {
                self.indicators.write(w);
            }
            write_kept(w, &self.per_domain_bilateral);
            write_trace(w, &self.trace, defaults);
            self.extensions.write_in(w, EXTENSIONS, defaults);
            w.constructed(RECIPIENTS, |w| {
                self.recipients.iter().for_each(|r| r.write(w, defaults));
            });
            write_kept(w, &self.unknown);
        });
    }

    /// Brings all extensions into this form, those of recipients too; gives how many it does not have
    /// and are left out (see [`Extensions::set_form`]).
    pub fn set_form(&mut self, form: Form) -> usize {
        let recipients = self.recipients.iter_mut().map(|r| r.extensions.set_form(form));
        recipients.sum::<usize>() + self.extensions.set_form(form)
    }
}
