use super::PerRecipientFields;
use super::common::{Common, EXTENSIONS, RECIPIENTS};
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::extension::{Defaults, Extensions, Form};
use crate::flags::{PerMessageIndicators, Priority};
use crate::names::{MtsIdentifier, ORName};
use crate::time::Time;
use crate::trace::{TraceElement, write_trace};
use crate::wire::{keep_all, tag, write_kept, write_latin1};
use base::ber::{Element, Error, Field, Member, Tag, Writer, read_set, universal};
use bytes::Bytes;

/// MessageTransferEnvelope (X.411 12.2.1.1, Figure 4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MessageTransferEnvelope {
    /// message-identifier.
    pub message_identifier: MtsIdentifier,
    /// originator-name.
    pub originator: ORName,
    /// original-encoded-information-types.
    pub original_eits: Option<EncodedInformationTypes>,
    /// content-type.
    pub content_type: ContentType,
    /// content-identifier, Printable, 1 to 16 characters: the originator's own reference.
    pub content_identifier: Option<String>,
    /// priority.
    pub priority: Priority,
    /// per-message-indicators.
    pub indicators: PerMessageIndicators,
    /// deferred-delivery-time: not to be delivered before.
    pub deferred_delivery_time: Option<Time>,
    /// per-domain-bilateral-information, the whole element.
    pub per_domain_bilateral: Option<Bytes>,
    /// per-recipient-fields, 1 to 32767.
    pub recipients: Vec<PerRecipientFields>,
    /// extensions, the internal trace among them.
    pub extensions: Extensions,
    /// trace-information, oldest first, 1 to 512.
    pub trace: Vec<TraceElement>,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

const DEFERRED: Tag = Tag::context(0);

impl MessageTransferEnvelope {
    /// Reads it; SET members in any order, unknown ones kept.
    ///
    /// # Errors
    /// Malformed, a mandatory member missing, or one twice.
    pub fn read(e: &Element<'_>) -> Result<MessageTransferEnvelope, Error> {
        let mut common = Common::new("message-identifier");
        let mut priority = Member::new("priority");
        let mut deferred = Member::new("deferred-delivery-time");
        let unknown = read_set(e, |m| match m.tag {
            tag::PRIORITY => priority.once(m, Priority::read).field("priority"),
            DEFERRED => deferred.once(m, Time::read).field("deferred-delivery-time"),
            _ => common.take(m),
        });
        Ok(MessageTransferEnvelope {
            unknown: keep_all(&unknown.field("message-transfer-envelope")?),
            message_identifier: common.identifier.required(tag::MTS_IDENTIFIER)?,
            originator: common.originator.required(tag::OR_NAME)?,
            original_eits: common.original_eits.optional(),
            content_type: common.content_type.required(tag::CONTENT_TYPE)?,
            content_identifier: common.content_identifier.optional(),
            priority: priority.or_default(),
            indicators: common.indicators.or_default(),
            deferred_delivery_time: deferred.optional(),
            per_domain_bilateral: common.bilateral.optional(),
            recipients: common.recipients.required(RECIPIENTS)?,
            extensions: common.extensions.or_default(),
            trace: common.trace.required(tag::TRACE)?,
        })
    }

    /// Writes it, with the members of the value of their DEFAULT that are to be written.
    pub fn write(&self, w: &mut Writer, defaults: Defaults) {
        w.constructed(universal::SET, |w| {
            self.message_identifier.write(w);
            self.originator.write(w);
            if let Some(eits) = &self.original_eits {
                eits.write(w);
            }
            self.content_type.write(w);
            if let Some(identifier) = &self.content_identifier {
                write_latin1(w, tag::CONTENT_IDENTIFIER, identifier);
            }
            if defaults.writes(&self.priority, &Priority::default()) {
                self.priority.write(w);
            }
            if defaults.writes(&self.indicators, &PerMessageIndicators::default()) {
                self.indicators.write(w);
            }
            if let Some(time) = &self.deferred_delivery_time {
                time.write_as(w, DEFERRED);
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
