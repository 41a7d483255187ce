//! What the strings of X.411 may hold and how long they may be, checked where they are read.
//!
//! Identifiers end up in logs, files and keys everywhere, so their bounds are the standard's
//! (MTSUpperBounds, X.411 annex B). Of other strings a few peers exceed the bounds; a relay must not
//! lose a message over that, so those are borne up to a bound of our own. Control characters are in
//! none of them.
//!
//! Only what arrives is held to them. What was accepted before, by an earlier version that knew no
//! such bounds, is read as it is ([`Element::is_accepted`]): it can be passed on, delivered or
//! reported, where a refusal would lose it.

use super::{ExtensionAttribute, GlobalDomainId, ORAddress, PersonalName, extension_attribute};
use crate::text::{StringType, Text};
use crate::wire::{is_string, latin1};
use base::ber::{Element, Error, Fault, Field, Tag, universal};

const UTF8_STRING: Tag = Tag::universal(12);
const UNIVERSAL_STRING: Tag = Tag::universal(28);
const BMP_STRING: Tag = Tag::universal(30);

/// How long a string may be, what it may hold, and where that stands.
struct Rule {
    least: usize,
    most: usize,
    allowed: fn(u8) -> bool,
    clause: &'static str,
}

/// local-identifier: a message without a name of its own could be no other than the next such one.
const LOCAL: Rule = Rule {
    least: 1,
    most: 32,
    allowed: is_printable_ia5,
    clause: "X.411 annex A LocalIdentifier, annex B ub-local-id-length",
};
/// MTAName. An empty one names nobody, and harms nobody.
const MTA: Rule = Rule {
    least: 0,
    most: 32,
    allowed: is_printable_ia5,
    clause: "X.411 annex A MTAName, annex B ub-mta-name-length",
};
/// Country, ADMD and PRMD of an identifier or a trace; some peers send letters beyond ASCII.
const COUNTRY: Rule = Rule {
    least: 0,
    most: 3,
    allowed: is_no_control,
    clause: "X.411 annex A CountryName, annex B ub-country-name-alpha-length",
};
const DOMAIN: Rule = Rule {
    least: 0,
    most: 16,
    allowed: is_no_control,
    clause: "X.411 annex A GlobalDomainIdentifier, annex B ub-domain-name-length",
};
/// ContentIdentifier: ub-content-id-length is 16; up to four times that is borne, for it is handed
/// through and no key of ours is made of it alone.
const CONTENT: Rule = Rule {
    least: 0,
    most: 64,
    allowed: is_no_control,
    clause: "X.411 annex A ContentIdentifier, annex B ub-content-id-length, four times of it borne",
};
/// Attributes of an O/R address: at most 128 by the standard, twice that is borne. Octets above 159
/// may be of any character set here.
const ATTRIBUTE: Rule = Rule {
    least: 0,
    most: 256,
    allowed: is_no_control,
    clause: "X.411 annex A ORAddress, annex B, twice its longest bound borne",
};
/// Attributes of the extension part: forms of those above, and postal ones of several lines.
const EXTENSION_ATTRIBUTE: &str = "X.411 annex A ExtensionAttributes";
/// Octets of one, encoded: the longest of the standard are postal addresses of six lines of 30 characters in
/// two forms, and 128 characters of four octets.
const MAX_EXTENSION_ATTRIBUTE: usize = 2_048;
/// Extension attributes of an address: ub-extension-attributes (X.411 annex B).
pub(super) const MAX_EXTENSION_ATTRIBUTES: usize = 256;
/// Organizational units of an address, and domain-defined attributes: four times ub-organizational-units and
/// ub-domain-defined-attributes (X.411 annex B).
pub(super) const MAX_PARTS: usize = 16;
/// SupplementaryInformation: ub-supplementary-info-length is 256; four times that is borne. It is a
/// text for people, and a report is not refused for how that is written.
const SUPPLEMENTARY: Rule = Rule {
    least: 0,
    most: 1_024,
    allowed: |_| true,
    clause: "X.411 annex B ub-supplementary-info-length, four times of it borne",
};

fn is_printable_ia5(octet: u8) -> bool {
    (0x20..0x7f).contains(&octet)
}

/// Neither C0, DEL nor, for octets are Latin-1 here, C1.
fn is_no_control(octet: u8) -> bool {
    !char::from(octet).is_control()
}

impl Rule {
    /// Checks a string made by [`latin1`].
    fn check(&self, text: &str) -> Result<(), Error> {
        let bad = |c: &char| u8::try_from(*c).is_ok_and(|octet| !(self.allowed)(octet));
        if let Some(c) = text.chars().find(bad) {
            return Err(Fault::Character(u8::try_from(c).unwrap_or_default(), self.clause).into());
        }
        let Rule { least, most, clause, .. } = *self;
        let length = text.chars().count();
        match (least..=most).contains(&length) {
            true => Ok(()),
            false => Err(Fault::Size { length, least, most, clause }.into()),
        }
    }

    fn read(&self, e: &Element<'_>) -> Result<String, Error> {
        let text = latin1(e)?;
        if !e.is_accepted() {
            self.check(&text)?;
        }
        Ok(text)
    }
}

/// local-identifier of an MTSIdentifier.
pub(super) fn local_identifier(e: &Element<'_>) -> Result<String, Error> {
    LOCAL.read(e).field("mts-identifier.local-identifier")
}

/// MTAName.
pub(super) fn mta_name(e: &Element<'_>) -> Result<String, Error> {
    MTA.read(e).field("mta-name")
}

/// The names of a domain.
pub(super) fn domain(domain: &GlobalDomainId) -> Result<(), Error> {
    let GlobalDomainId { country, admd, prmd } = domain;
    COUNTRY.check(&country.value).field("global-domain-identifier.country-name")?;
    DOMAIN.check(&admd.value).field("global-domain-identifier.administration-domain-name")?;
    let Some(prmd) = prmd else { return Ok(()) };
    DOMAIN.check(&prmd.value).field("global-domain-identifier.private-domain-identifier")
}

/// ContentIdentifier, of any service.
///
/// # Errors
/// Malformed BER, or another length than 1 to 16 characters.
pub fn content_identifier(e: &Element<'_>) -> Result<String, Error> {
    CONTENT.read(e).field("content-identifier")
}

/// SupplementaryInformation, of any service.
pub(crate) fn supplementary_information(e: &Element<'_>) -> Result<String, Error> {
    SUPPLEMENTARY.read(e).field("supplementary-information")
}

/// The attributes of an address, in whichever form.
pub(super) fn address(address: &ORAddress) -> Result<(), Error> {
    let check = |value: Option<&str>, name| match value {
        Some(value) => ATTRIBUTE.check(value).field(name),
        None => Ok(()),
    };
    let text = |text: &'_ Option<Text>, name| match text {
        // Its octets above 127 are parts of characters, which may look like C1 one by one.
        Some(Text { kind: StringType::Other(number), value }) if *number == UTF8_STRING.number => {
            let octets = crate::wire::latin1_octets(value);
            characters(UTF8_STRING, &octets, false, ATTRIBUTE.clause).field(name)
        }
        Some(text) => check(Some(&text.value), name),
        None => Ok(()),
    };
    text(&address.country, "country-name")?;
    text(&address.admd, "administration-domain-name")?;
    text(&address.prmd, "private-domain-name")?;
    check(address.network_address.as_deref(), "network-address")?;
    check(address.terminal_identifier.as_deref(), "terminal-identifier")?;
    check(address.organization.as_deref(), "organization-name")?;
    check(address.numeric_user_identifier.as_deref(), "numeric-user-identifier")?;
    if let Some(name) = &address.personal_name {
        let PersonalName { surname, given_name, initials, generation_qualifier } = name;
        let parts = [Some(surname), given_name.as_ref(), initials.as_ref()];
        for part in parts.into_iter().chain([generation_qualifier.as_ref()]) {
            check(part.map(String::as_str), "personal-name")?;
        }
    }
    for unit in &address.organizational_units {
        check(Some(unit), "organizational-unit-names")?;
    }
    for pair in &address.domain_defined {
        check(Some(&pair.kind), "domain-defined-attributes.type")?;
        check(Some(&pair.value), "domain-defined-attributes.value")?;
    }
    let common = extension_attribute::COMMON_NAME;
    check(address.extension_text(common).as_deref(), "common-name")?;
    address.extensions.iter().try_for_each(extension)
}

/// The strings of an extension attribute, at any depth. Octets that are not BER are passed on
/// unchanged, and never shown.
fn extension(attribute: &ExtensionAttribute) -> Result<(), Error> {
    let (length, most) = (attribute.value.len(), MAX_EXTENSION_ATTRIBUTE);
    if length > most {
        let fault = Fault::Size { length, least: 0, most, clause: EXTENSION_ATTRIBUTE };
        return Err(Error::from(fault)).field("extension-attributes");
    }
    // The forms of names are strings throughout, those of a person under implicit tags. In others an
    // octet may be anything but where it stands in a character string.
    let is_name = attribute.number <= extension_attribute::TELETEX_DOMAIN_DEFINED_ATTRIBUTES;
    let is_teletex = is_name && attribute.number != extension_attribute::COMMON_NAME;
    let is_text = |e: &Element<'_>| match e.constructed {
        true => is_string(e.tag),
        false => is_name || e.tag.is_character_string(),
    };
    let Ok(whole) = Element::parse(&attribute.value) else { return Ok(()) };
    let (mut open, mut next) = (Vec::new(), Some(whole));
    loop {
        match next.take() {
            Some(e) if is_text(&e) => {
                if let Ok(octets) = e.octets() {
                    let switches = is_teletex || e.tag == universal::TELETEX_STRING;
                    let checked = characters(e.tag, &octets, switches, EXTENSION_ATTRIBUTE);
                    checked.field("extension-attributes")?;
                }
            }
            Some(e) => open.extend(e.children()),
            None => {}
        }
        while next.is_none() {
            let Some(level) = open.last_mut() else { return Ok(()) };
            next = level.next().unwrap_or_default();
            if next.is_none() {
                open.pop();
            }
        }
    }
}

/// The controls by which T.61 changes character sets: LS1, LS0, SS2, ESC, SS3.
const SWITCHES: [u8; 5] = [0x0e, 0x0f, 0x19, 0x1b, 0x1d];

/// That there are no control characters in a string of this type, but those that change its
/// character set where it has several.
fn characters(tag: Tag, octets: &[u8], switches: bool, clause: &'static str) -> Result<(), Error> {
    let allowed = |octet: u8| is_no_control(octet) || (switches && SWITCHES.contains(&octet));
    let control = |c: u32| u8::try_from(c).ok().filter(|octet| !allowed(*octet));
    let wide = |octet: &[u8]| octet.iter().fold(0, |c, octet| c << 8 | u32::from(*octet));
    let found = match tag {
        BMP_STRING => octets.chunks(2).map(wide).find_map(control),
        UNIVERSAL_STRING => octets.chunks(4).map(wide).find_map(control),
        UTF8_STRING => match std::str::from_utf8(octets) {
            Ok(text) => text.chars().map(u32::from).find_map(control),
            Err(_) => octets.iter().copied().map(u32::from).find_map(control),
        },
        _ => octets.iter().copied().map(u32::from).find_map(control),
    };
    match found {
        Some(octet) => Err(Fault::Character(octet, clause).into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
