//! P1 of 1984 (X.411 of the Red Book): the form of all that goes to a peer of that time.
//!
//! A decoder of 1984 refuses what it does not know, so each APDU is brought into the form of 1984 before it is
//! written (downgraded, X.419 Annex B): no extensions, no object identifiers, no attributes of later addresses.
//! What is read needs none of this: each APDU of 1984 is one of 1988 without the later members.
//!
//! The members, bits and codes of 1984 are *unproven*: neither its text nor APDUs of such a peer were at hand.
//!
//! Some messages cannot go at all: see [`NoForm`]. Who routes checks that first ([`content_type_has_form`],
//! [`names::has_form`]).

pub mod names;
mod report;

use crate::apdu::MtsApduHead;
use crate::content_type::ContentType;
use crate::eits::EncodedInformationTypes;
use crate::envelope::{MessageTransferEnvelope, PerRecipientFields, ProbeTransferEnvelope};
use crate::extension::{CommonName, Dialect};
use crate::flags::{PerMessageIndicators, PerRecipientIndicators};
use crate::trace::{OtherActions, TraceElement};
use crate::wire::{tag, written};
use base::ber::{Class, Element, Oid, Tag, Writer};
use bytes::Bytes;

/// Why something has no form in 1984.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoForm {
    /// A content type other than P2 (interpersonal-messaging-1984), which has a number or an object identifier.
    #[error("content type {0}")]
    ContentType(ContentType),
    /// An O/R name without an address.
    #[error("a name without an address")]
    NoAddress,
    /// numeric-user-identifier and private-domain-name in one address (X.419 B.2.8).
    #[error("an address with a numeric user identifier and a private domain")]
    NumericInPrivateDomain,
    /// A common-name, where no attribute is configured for it or none can have its characters.
    #[error("an address with a common name")]
    CommonName,
    /// Another extension attribute, by number.
    #[error("an address with extension attribute {0}")]
    Attribute(i64),
}

/// Whether a message or probe of this content type has a form: 1984 has P2 alone.
///
/// # Errors
/// [`NoForm::ContentType`].
pub fn content_type_has_form(content_type: &ContentType) -> Result<(), NoForm> {
    match content_type.is_p2() {
        true => Ok(()),
        false => Err(NoForm::ContentType(content_type.clone())),
    }
}

/// Bits 0 to 3 of PerMessageIndicators: those that 1984 has as PerMessageFlag.
const MESSAGE_FLAGS: u32 = 0b1111;
/// Bits 0 to 4 of PerRecipientIndicators: those that 1984 has as PerRecipientFlag.
const RECIPIENT_FLAGS: u32 = 0b1_1111;
/// Bits 0 to 9 of the encoded information types: those of 1984.
const TYPES: u32 = 0b11_1111_1111;
/// Parameters of facsimile and teletex, and presentation capabilities: members 1 to 3 of
/// EncodedInformationTypes in 1984.
const PARAMETERS: std::ops::RangeInclusive<u32> = 1..=3;
/// Content octets of the object identifier of a type that has a bit as well (id-eit, X.411 Annex A): 2.6.3.4, then
/// the bit.
const ID_EIT: [u8; 3] = [0x56, 3, 4];

/// Brings an APDU into the form of 1984; gives how many extensions are left out. Recipients that the receiver is
/// not responsible for and whose names have no form are left out. An originator or recipient that has no form, and
/// that must not be lost, stays as it is: who routes does not let it come here.
pub(crate) fn set_form(head: &mut MtsApduHead, common_name: CommonName) -> usize {
    match head {
        MtsApduHead::Message(envelope) => message(envelope, common_name),
        MtsApduHead::Probe(envelope) => probe(envelope, common_name),
        MtsApduHead::Report(of) => report::report(of, common_name),
    }
}

fn message(envelope: &mut MessageTransferEnvelope, common_name: CommonName) -> usize {
    let MessageTransferEnvelope {
        message_identifier: _,
        originator,
        original_eits,
        content_type,
        content_identifier: _,
        priority: _,
        indicators,
        deferred_delivery_time: _,
        per_domain_bilateral,
        recipients: all,
        extensions,
        trace: passed,
        unknown,
    } = envelope;
    names::set_form(originator, common_name);
    original_eits.iter_mut().for_each(eits);
    set_content_type(content_type);
    *indicators = PerMessageIndicators(indicators.0 & MESSAGE_FLAGS);
    *per_domain_bilateral = per_domain_bilateral.take().and_then(bilateral);
    trace(passed);
    unknown.clear();
    recipients(all, common_name) + extensions.set_form(Dialect::RedBook1984(common_name).into())
}

fn probe(envelope: &mut ProbeTransferEnvelope, common_name: CommonName) -> usize {
    let ProbeTransferEnvelope {
        probe_identifier: _,
        originator,
        original_eits,
        content_type,
        content_identifier: _,
        content_length: _,
        indicators,
        per_domain_bilateral,
        recipients: all,
        extensions,
        trace: passed,
        unknown,
    } = envelope;
    names::set_form(originator, common_name);
    original_eits.iter_mut().for_each(eits);
    set_content_type(content_type);
    *indicators = PerMessageIndicators(indicators.0 & MESSAGE_FLAGS);
    *per_domain_bilateral = per_domain_bilateral.take().and_then(bilateral);
    trace(passed);
    unknown.clear();
    recipients(all, common_name) + extensions.set_form(Dialect::RedBook1984(common_name).into())
}

/// P2 has its number in 1984, and no object identifier.
fn set_content_type(content_type: &mut ContentType) {
    if content_type.is_p2() {
        *content_type = ContentType::P2;
    }
}

/// The recipients of a message or a probe.
fn recipients(all: &mut Vec<PerRecipientFields>, common_name: CommonName) -> usize {
    let stays = |r: &PerRecipientFields| {
        r.indicators.responsible() || names::has_form(&r.recipient, common_name).is_ok()
    };
    all.retain(stays);
    let mut left_out = 0;
    for fields in all {
        let PerRecipientFields {
            recipient,
            number: _,
            indicators,
            explicit_conversion: _,
            extensions,
            unknown,
        } = fields;
        names::set_form(recipient, common_name);
        *indicators = recipient_flags(*indicators);
        left_out += extensions.set_form(Dialect::RedBook1984(common_name).into());
        unknown.clear();
    }
    left_out
}

fn recipient_flags(indicators: PerRecipientIndicators) -> PerRecipientIndicators {
    PerRecipientIndicators(indicators.0 & RECIPIENT_FLAGS)
}

/// A type that 1984 does not know is *undefined* there, the bit that 1988 names unknown.
fn eits(types: &mut EncodedInformationTypes) {
    let EncodedInformationTypes { built_in, extended, other } = types;
    let bit = |oid: Oid| match oid.content().strip_prefix(&ID_EIT) {
        Some([bit @ 0..=9]) => 1 << bit,
        _ => EncodedInformationTypes::UNKNOWN,
    };
    let named = extended.drain(..).map(bit).fold(0, |all, bit| all | bit);
    *built_in = *built_in & TYPES | named;
    let is_parameter = |octets: &Bytes| {
        Element::parse(octets)
            .is_ok_and(|e| e.tag.class == Class::Context && PARAMETERS.contains(&e.tag.number))
    };
    other.retain(is_parameter);
}

/// Trace elements have no other-actions: a redirection or an expansion is not seen by those of 1984.
fn trace(elements: &mut [TraceElement]) {
    for element in elements {
        let additional = &mut element.additional;
        additional.converted_eits.iter_mut().for_each(eits);
        additional.other_actions = OtherActions::default();
        additional.unknown.clear();
    }
}

/// The elements of per-domain-bilateral-information whose domain is a country and an ADMD: 1984 has none for a
/// private domain. `None` where there are none, or they are malformed.
fn bilateral(whole: Bytes) -> Option<Bytes> {
    let e = Element::parse(&whole).ok()?;
    let mut members = e.children().ok()?;
    let (mut kept, mut all) = (Vec::new(), true);
    while let Some(member) = members.next().ok()? {
        match is_bilateral(&member) {
            Some(true) => kept.push(member.raw),
            Some(false) => all = false,
            None => return None,
        }
    }
    match (all, kept.is_empty()) {
        (true, _) => Some(whole),
        (false, true) => None,
        (false, false) => {
            let raw = |w: &mut Writer| kept.iter().for_each(|raw| w.raw(raw));
            Some(written(|w| w.constructed(Tag::context(1), raw)))
        }
    }
}

/// Whether an element is for a country and an ADMD; `None` where it is malformed.
fn is_bilateral(e: &Element<'_>) -> Option<bool> {
    let mut members = e.children().ok()?;
    let (country, domain) = (members.next().ok()??, members.next().ok()??);
    Some(country.tag == tag::COUNTRY && domain.tag == tag::ADMD)
}
