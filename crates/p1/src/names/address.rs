use crate::text::Text;
use crate::wire::{is_string, keep_child, latin1, list, next_string, tag, write_latin1};
use base::ber::{Element, Error, Fault, Field, Member, Reader, Tag, Writer, read_set, universal};
use bytes::Bytes;
use std::borrow::Cow;

/// An O/R address (X.411 ORAddress; X.402 clause 18). Empty by default.
///
/// The attributes of the extension part (common name, teletex and universal forms, postal ones) stay
/// as elements in `extensions`, in the order they came; accessors read the ones that matter here.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct ORAddress {
    /// country-name: X.121 country code (Numeric) or ISO 3166 alpha-2 (Printable).
    pub country: Option<Text>,
    /// administration-domain-name; a single space means any or none.
    pub admd: Option<Text>,
    /// network-address: X.121 digits, up to 15.
    pub network_address: Option<String>,
    /// terminal-identifier, up to 24 characters.
    pub terminal_identifier: Option<String>,
    /// private-domain-name, up to 16 characters.
    pub prmd: Option<Text>,
    /// organization-name, up to 64 characters.
    pub organization: Option<String>,
    /// numeric-user-identifier, up to 32 digits.
    pub numeric_user_identifier: Option<String>,
    /// personal-name.
    pub personal_name: Option<PersonalName>,
    /// organizational-unit-names, most significant first, at most 4 of up to 32 characters.
    pub organizational_units: Vec<String>,
    /// built-in domain-defined-attributes, at most 4.
    pub domain_defined: Vec<DomainDefinedAttribute>,
    /// extension-attributes.
    pub extensions: Vec<ExtensionAttribute>,
}

/// personal-name.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct PersonalName {
    /// surname, up to 40 characters.
    pub surname: String,
    /// given-name, up to 16 characters.
    pub given_name: Option<String>,
    /// initials, up to 5 characters, without the surname's.
    pub initials: Option<String>,
    /// generation-qualifier, up to 3 characters.
    pub generation_qualifier: Option<String>,
}

/// A domain-defined attribute: a pair only the recipient's domain understands.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct DomainDefinedAttribute {
    /// type, up to 8 characters.
    pub kind: String,
    /// value, up to 128 characters.
    pub value: String,
}

/// An extension attribute of an O/R address.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct ExtensionAttribute {
    /// extension-attribute-type (X.411 Annex, 0 to 256).
    pub number: i64,
    /// The whole element inside the explicit tag of extension-attribute-value.
    pub value: Bytes,
}

/// Numbers of extension attributes.
pub mod extension_attribute {
    /// common-name.
    pub const COMMON_NAME: i64 = 1;
    /// teletex-common-name.
    pub const TELETEX_COMMON_NAME: i64 = 2;
    /// teletex-organization-name.
    pub const TELETEX_ORGANIZATION_NAME: i64 = 3;
    /// teletex-personal-name.
    pub const TELETEX_PERSONAL_NAME: i64 = 4;
    /// teletex-organizational-unit-names.
    pub const TELETEX_ORGANIZATIONAL_UNIT_NAMES: i64 = 5;
    /// teletex-domain-defined-attributes.
    pub const TELETEX_DOMAIN_DEFINED_ATTRIBUTES: i64 = 6;
    /// pds-name.
    pub const PDS_NAME: i64 = 7;
    /// physical-delivery-country-name.
    pub const PHYSICAL_DELIVERY_COUNTRY_NAME: i64 = 8;
    /// postal-code.
    pub const POSTAL_CODE: i64 = 9;
    /// extended-network-address.
    pub const EXTENDED_NETWORK_ADDRESS: i64 = 22;
    /// terminal-type.
    pub const TERMINAL_TYPE: i64 = 23;
    /// universal-common-name.
    pub const UNIVERSAL_COMMON_NAME: i64 = 24;
}

/// An O/R name: an address, a directory name, or both (X.411 8.5.5).
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct ORName {
    /// The address; empty where only a directory name was given.
    pub address: ORAddress,
    /// The whole element inside the explicit tag of directory-name.
    pub directory_name: Option<Bytes>,
}

const STANDARD: Tag = universal::SEQUENCE;
const DOMAIN_DEFINED: Tag = universal::SEQUENCE;
const EXTENSION: Tag = universal::SET;
const NETWORK_ADDRESS: Tag = Tag::context(0);
const TERMINAL_IDENTIFIER: Tag = Tag::context(1);
const PRIVATE_DOMAIN: Tag = Tag::context(2);
const ORGANIZATION: Tag = Tag::context(3);
const NUMERIC_USER: Tag = Tag::context(4);
const PERSONAL_NAME: Tag = Tag::context(5);
const ORGANIZATIONAL_UNITS: Tag = Tag::context(6);
const DIRECTORY_NAME: Tag = Tag::context(0);

impl ORAddress {
    /// The extension attribute of this number.
    pub fn extension(&self, number: i64) -> Option<&ExtensionAttribute> {
        self.extensions.iter().find(|a| a.number == number)
    }

    /// common-name, or teletex-common-name where only that is there.
    pub fn common_name(&self) -> Option<String> {
        use extension_attribute::{COMMON_NAME, TELETEX_COMMON_NAME};
        self.extension_text(COMMON_NAME).or_else(|| self.extension_text(TELETEX_COMMON_NAME))
    }

    /// Sets common-name: a PrintableString where the characters allow it, else teletex-common-name.
    pub fn set_common_name(&mut self, name: &str) {
        use extension_attribute::{COMMON_NAME, TELETEX_COMMON_NAME};
        self.extensions.retain(|a| ![COMMON_NAME, TELETEX_COMMON_NAME].contains(&a.number));
        let (number, tag) = if name.chars().all(is_printable) {
            (COMMON_NAME, universal::PRINTABLE_STRING)
        } else {
            (TELETEX_COMMON_NAME, universal::TELETEX_STRING)
        };
        let mut w = Writer::new();
        write_latin1(&mut w, tag, name);
        self.extensions.push(ExtensionAttribute { number, value: w.into_vec().into() });
    }

    /// The characters of an extension attribute that is a simple string.
    pub(super) fn extension_text(&self, number: i64) -> Option<String> {
        let e = Element::parse(&self.extension(number)?.value).ok()?;
        is_string(e.tag).then(|| latin1(&e).ok()).flatten()
    }

    /// organizational-unit-names, or the teletex form where only that is there.
    pub(super) fn units(&self) -> Cow<'_, [String]> {
        let number = extension_attribute::TELETEX_ORGANIZATIONAL_UNIT_NAMES;
        if let ([], Some(teletex)) = (self.organizational_units.as_slice(), self.extension(number))
            && let Ok(e) = Element::parse(&teletex.value)
            && let Ok(units) = list(&e, usize::MAX, latin1)
        {
            return Cow::Owned(units);
        }
        Cow::Borrowed(&self.organizational_units)
    }

    /// personal-name, or the teletex form where only that is there.
    pub(super) fn name_of_person(&self) -> Option<Cow<'_, PersonalName>> {
        if let Some(name) = &self.personal_name {
            return Some(Cow::Borrowed(name));
        }
        let teletex = self.extension(extension_attribute::TELETEX_PERSONAL_NAME)?;
        let e = Element::parse(&teletex.value).ok()?;
        PersonalName::read(&e).ok().map(Cow::Owned)
    }

    /// Reads the parts of an address from the front of `inner`.
    fn read_parts(inner: &mut Reader<'_>) -> Result<ORAddress, Error> {
        let name = "built-in-standard-attributes";
        let standard = inner.require(STANDARD).field(name)?;
        let mut address = ORAddress::default();
        address.read_standard(&standard).field(name)?;
        if let Some(e) = inner.optional(DOMAIN_DEFINED).field("domain-defined-attributes")? {
            let most = if standard.is_accepted() { usize::MAX } else { super::bounds::MAX_PARTS };
            address.domain_defined =
                list(&e, most, DomainDefinedAttribute::read).field("domain-defined-attributes")?;
        }
        if let Some(e) = inner.optional(EXTENSION).field("extension-attributes")? {
            let most = if standard.is_accepted() {
                usize::MAX
            } else {
                super::bounds::MAX_EXTENSION_ATTRIBUTES
            };
            address.extensions =
                list(&e, most, ExtensionAttribute::read).field("extension-attributes")?;
        }
        if !standard.is_accepted() {
            super::bounds::address(&address)?;
        }
        Ok(address)
    }

    fn read_standard(&mut self, e: &Element<'_>) -> Result<(), Error> {
        let mut inner = e.children()?;
        let text = |e: Element<'_>| Text::read(&e.only_child()?);
        let string = |e: Element<'_>| latin1(&e);
        self.country = inner.optional(tag::COUNTRY)?.map(text).transpose()?;
        self.admd = inner.optional(tag::ADMD)?.map(text).transpose()?;
        self.network_address = inner.optional(NETWORK_ADDRESS)?.map(string).transpose()?;
        self.terminal_identifier = inner.optional(TERMINAL_IDENTIFIER)?.map(string).transpose()?;
        self.prmd = inner.optional(PRIVATE_DOMAIN)?.map(text).transpose()?;
        self.organization = inner.optional(ORGANIZATION)?.map(string).transpose()?;
        self.numeric_user_identifier = inner.optional(NUMERIC_USER)?.map(string).transpose()?;
        self.personal_name =
            inner.optional(PERSONAL_NAME)?.map(|e| PersonalName::read(&e)).transpose()?;
        if let Some(units) = inner.optional(ORGANIZATIONAL_UNITS)? {
            let most = if e.is_accepted() { usize::MAX } else { super::bounds::MAX_PARTS };
            self.organizational_units = list(&units, most, latin1)?;
        }
        inner.finish()
    }

    fn write_parts(&self, w: &mut Writer) {
        w.constructed(STANDARD, |w| self.write_standard(w));
        if !self.domain_defined.is_empty() {
            w.constructed(DOMAIN_DEFINED, |w| {
                self.domain_defined.iter().for_each(|a| a.write(w));
            });
        }
        if !self.extensions.is_empty() {
            w.constructed(EXTENSION, |w| self.extensions.iter().for_each(|a| a.write(w)));
        }
    }

    fn write_standard(&self, w: &mut Writer) {
        let text = |w: &mut Writer, tag, text: &Option<Text>| {
            if let Some(text) = text {
                w.constructed(tag, |w| text.write(w));
            }
        };
        let string = |w: &mut Writer, tag, string: &Option<String>| {
            if let Some(string) = string {
                write_latin1(w, tag, string);
            }
        };
        text(w, tag::COUNTRY, &self.country);
        text(w, tag::ADMD, &self.admd);
        string(w, NETWORK_ADDRESS, &self.network_address);
        string(w, TERMINAL_IDENTIFIER, &self.terminal_identifier);
        text(w, PRIVATE_DOMAIN, &self.prmd);
        string(w, ORGANIZATION, &self.organization);
        string(w, NUMERIC_USER, &self.numeric_user_identifier);
        if let Some(name) = &self.personal_name {
            name.write(w);
        }
        if !self.organizational_units.is_empty() {
            w.constructed(ORGANIZATIONAL_UNITS, |w| {
                for unit in &self.organizational_units {
                    write_latin1(w, universal::PRINTABLE_STRING, unit);
                }
            });
        }
    }

    /// Reads a bare ORAddress (SEQUENCE), under whichever tag.
    ///
    /// # Errors
    /// Malformed, an attribute out of place, or one with a control character.
    pub fn read(e: &Element<'_>) -> Result<ORAddress, Error> {
        let mut inner = e.children()?;
        let address = ORAddress::read_parts(&mut inner)?;
        inner.finish()?;
        Ok(address)
    }

    /// Writes a bare ORAddress under `tag`.
    pub fn write_as(&self, w: &mut Writer, tag: Tag) {
        w.constructed(tag, |w| self.write_parts(w));
    }
}

/// Whether a PrintableString may hold this character (X.680 41.4).
pub(crate) fn is_printable(c: char) -> bool {
    c.is_ascii_alphanumeric() || " '()+,-./:=?".contains(c)
}

const SURNAME: Tag = Tag::context(0);
const GIVEN_NAME: Tag = Tag::context(1);
const INITIALS: Tag = Tag::context(2);
const GENERATION_QUALIFIER: Tag = Tag::context(3);

impl PersonalName {
    fn read(e: &Element<'_>) -> Result<PersonalName, Error> {
        let part = || Member::new("personal-name");
        let (mut surname, mut given_name, mut initials) = (part(), part(), part());
        let mut generation_qualifier = part();
        read_set(e, |m| {
            let slot = match m.tag {
                SURNAME => &mut surname,
                GIVEN_NAME => &mut given_name,
                INITIALS => &mut initials,
                GENERATION_QUALIFIER => &mut generation_qualifier,
                _ => return Err(Fault::Unexpected(m.tag).into()),
            };
            slot.once(m, latin1)
        })?;
        Ok(PersonalName {
            surname: surname.required(SURNAME)?,
            given_name: given_name.optional(),
            initials: initials.optional(),
            generation_qualifier: generation_qualifier.optional(),
        })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(PERSONAL_NAME, |w| {
            write_latin1(w, Tag::context(0), &self.surname);
            let rest = [&self.given_name, &self.initials, &self.generation_qualifier];
            for (number, part) in (1..).zip(rest) {
                if let Some(part) = part {
                    write_latin1(w, Tag::context(number), part);
                }
            }
        });
    }
}

impl DomainDefinedAttribute {
    fn read(e: &Element<'_>) -> Result<DomainDefinedAttribute, Error> {
        let mut inner = e.children()?;
        let kind = latin1(&next_string(&mut inner)?)?;
        let value = latin1(&next_string(&mut inner)?)?;
        inner.finish()?;
        Ok(DomainDefinedAttribute { kind, value })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(universal::SEQUENCE, |w| {
            write_latin1(w, universal::PRINTABLE_STRING, &self.kind);
            write_latin1(w, universal::PRINTABLE_STRING, &self.value);
        });
    }
}

impl ExtensionAttribute {
    fn read(e: &Element<'_>) -> Result<ExtensionAttribute, Error> {
        let mut inner = e.children()?;
        let number = inner.require(Tag::context(0))?.integer()?;
        let value = keep_child(&inner.require(Tag::context(1))?)?;
        inner.finish()?;
        Ok(ExtensionAttribute { number, value })
    }

    fn write(&self, w: &mut Writer) {
        w.constructed(universal::SEQUENCE, |w| {
            w.integer(Tag::context(0), self.number);
            w.constructed(Tag::context(1), |w| w.raw(&self.value));
        });
    }
}

impl ORName {
    /// Reads it, under whichever tag.
    ///
    /// # Errors
    /// Malformed, an attribute out of place, or one with a control character.
    pub fn read(e: &Element<'_>) -> Result<ORName, Error> {
        let mut inner = e.children().field("or-name")?;
        let address = ORAddress::read_parts(&mut inner).field("or-address")?;
        let directory_name = inner
            .optional(DIRECTORY_NAME)
            .and_then(|e| e.map(|e| keep_child(&e)).transpose())
            .field("directory-name")?;
        inner.finish().field("or-name")?;
        Ok(ORName { address, directory_name })
    }

    /// Writes it under its own tag.
    pub fn write(&self, w: &mut Writer) {
        self.write_as(w, tag::OR_NAME);
    }

    /// Writes it under `tag`, where an implicit one takes the place of its own.
    pub fn write_as(&self, w: &mut Writer, tag: Tag) {
        w.constructed(tag, |w| {
            self.address.write_parts(w);
            if let Some(name) = &self.directory_name {
                w.constructed(DIRECTORY_NAME, |w| w.raw(name));
            }
        });
    }
}

impl From<ORAddress> for ORName {
    fn from(address: ORAddress) -> ORName {
        ORName { address, directory_name: None }
    }
}
