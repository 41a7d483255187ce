use crate::extension::{Defaults, Extensions};
use crate::flags::PerRecipientIndicators;
use crate::names::ORName;
use crate::wire::{bound, keep_all, list, tag, write_kept};
use base::ber::{Element, Error, Fault, Field, Member, Tag, Writer, read_set, universal};
use bytes::Bytes;

/// PerRecipientMessageTransferFields, and PerRecipientProbeTransferFields, which have the same form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PerRecipientFields {
    /// recipient-name.
    pub recipient: ORName,
    /// originally-specified-recipient-number, from 1; the same in every copy.
    pub number: u32,
    /// per-recipient-indicators.
    pub indicators: PerRecipientIndicators,
    /// explicit-conversion, by number.
    pub explicit_conversion: Option<i64>,
    /// extensions.
    pub extensions: Extensions,
    /// Members this program does not know, as whole elements.
    pub unknown: Vec<Bytes>,
}

const NUMBER: Tag = Tag::context(0);
const INDICATORS: Tag = Tag::context(1);
const CONVERSION: Tag = Tag::context(2);
const EXTENSIONS: Tag = Tag::context(3);

/// originally-specified-recipient-number.
pub(super) fn read_number(e: &Element<'_>) -> Result<u32, Error> {
    let name = "originally-specified-recipient-number";
    u32::try_from(e.integer().field(name)?)
        .map_err(|_| Fault::Value("OriginallySpecifiedRecipientNumber"))
        .field(name)
}

impl PerRecipientFields {
    /// Reads one recipient's fields.
    ///
    /// # Errors
    /// Malformed, or a mandatory member missing.
    pub fn read(e: &Element<'_>) -> Result<PerRecipientFields, Error> {
        let mut recipient = Member::new("per-recipient-fields.recipient-name");
        let mut number = Member::new("originally-specified-recipient-number");
        let mut indicators = Member::new("per-recipient-indicators");
        let mut conversion = Member::new("explicit-conversion");
        let mut extensions = Member::new("per-recipient-fields.extensions");
        let unknown = read_set(e, |m| match m.tag {
            tag::OR_NAME => recipient.once(m, ORName::read),
            NUMBER => number.once(m, read_number),
            INDICATORS => indicators.once(m, PerRecipientIndicators::read),
            CONVERSION => conversion.once(m, Element::integer),
            EXTENSIONS => extensions.once(m, Extensions::read),
            _ => Ok(false),
        });
        Ok(PerRecipientFields {
            unknown: keep_all(&unknown.field("per-recipient-fields")?),
            recipient: recipient.required(tag::OR_NAME)?,
            number: number.required(NUMBER)?,
            indicators: indicators.required(INDICATORS)?,
            explicit_conversion: conversion.optional(),
            extensions: extensions.or_default(),
        })
    }

    /// Writes them, with the members of the value of their DEFAULT that are to be written.
    pub fn write(&self, w: &mut Writer, defaults: Defaults) {
        w.constructed(universal::SET, |w| {
            self.recipient.write(w);
            w.integer(NUMBER, i64::from(self.number));
            self.indicators.write_as(w, INDICATORS);
            if let Some(conversion) = self.explicit_conversion {
                w.integer(CONVERSION, conversion);
            }
            self.extensions.write_in(w, EXTENSIONS, defaults);
            write_kept(w, &self.unknown);
        });
    }
}

/// Reads all recipients' fields: 1 to 32767.
pub(super) fn read_all<T>(
    e: &Element<'_>,
    read: impl Fn(&Element<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let all = list(e, bound::RECIPIENTS, read).field("per-recipient-fields")?;
    if all.is_empty() {
        return Err(Fault::Missing(universal::SET)).field("per-recipient-fields");
    }
    Ok(all)
}
