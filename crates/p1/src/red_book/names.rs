//! O/R names in 1984: the built-in attributes alone, and for a common name the domain-defined attribute `Common`
//! (RFC 1328 section 3.2) where both MTAs have agreed on it.

use super::NoForm;
use crate::apdu::MtsApduHead;
use crate::extension::{CommonName, Dialect};
use crate::names::{
    DomainDefinedAttribute, ORAddress, ORName, extension_attribute as ext, is_printable,
};

/// The type of the attribute that has the common name (RFC 1328 section 3.2).
const COMMON: &str = "Common";
/// Most domain-defined attributes of an address (ub-domain-defined-attributes).
const MAX_DOMAIN_DEFINED: usize = 4;
/// Most characters of the value of one (ub-domain-defined-attribute-value-length).
const MAX_VALUE: usize = 128;

/// Extension attributes that are another form of a built-in one: teletex and universal forms of the organization,
/// the person and the organizational units.
const ORGANIZATION: [i64; 2] = [ext::TELETEX_ORGANIZATION_NAME, 25];
const PERSON: [i64; 2] = [ext::TELETEX_PERSONAL_NAME, 26];
const UNITS: [i64; 2] = [ext::TELETEX_ORGANIZATIONAL_UNIT_NAMES, 27];

/// Whether this name has a form: its address, as the directory name is left out.
///
/// # Errors
/// What of it has none. Another form of an attribute that is there in its built-in form too is left out, and is
/// none of these.
pub fn has_form(name: &ORName, common_name: CommonName) -> Result<(), NoForm> {
    common(name, common_name).map(drop)
}

/// The attribute for the common name, where there is one, of a name that has a form.
fn common(
    name: &ORName,
    common_name: CommonName,
) -> Result<Option<DomainDefinedAttribute>, NoForm> {
    let address = &name.address;
    if *address == ORAddress::default() {
        return Err(NoForm::NoAddress);
    }
    if address.numeric_user_identifier.is_some() && address.prmd.is_some() {
        return Err(NoForm::NumericInPrivateDomain);
    }
    let has_printable = address.extension(ext::COMMON_NAME).is_some();
    let mut has_common = false;
    for attribute in &address.extensions {
        match attribute.number {
            ext::COMMON_NAME | ext::TELETEX_COMMON_NAME => has_common = true,
            ext::UNIVERSAL_COMMON_NAME if has_printable => {}
            n if ORGANIZATION.contains(&n) && address.organization.is_some() => {}
            n if PERSON.contains(&n) && address.personal_name.is_some() => {}
            n if UNITS.contains(&n) && !address.organizational_units.is_empty() => {}
            other => return Err(NoForm::Attribute(other)),
        }
    }
    if !has_common {
        return Ok(None);
    }
    let value = address.common_name().filter(|value| fits(value)).ok_or(NoForm::CommonName)?;
    let taken = address.domain_defined.iter().any(is_common);
    match common_name {
        CommonName::DomainDefined
            if !taken && address.domain_defined.len() < MAX_DOMAIN_DEFINED =>
        {
            Ok(Some(DomainDefinedAttribute { kind: COMMON.to_owned(), value }))
        }
        _ => Err(NoForm::CommonName),
    }
}

/// Whether a PrintableString of the attribute can have it.
fn fits(value: &str) -> bool {
    !value.is_empty() && value.len() <= MAX_VALUE && value.chars().all(is_printable)
}

fn is_common(attribute: &DomainDefinedAttribute) -> bool {
    attribute.kind.eq_ignore_ascii_case(COMMON)
}

/// Brings a name into its form, if it has one.
pub(super) fn set_form(name: &mut ORName, common_name: CommonName) {
    if let Ok(common) = common(name, common_name) {
        name.directory_name = None;
        name.address.extensions.clear();
        name.address.domain_defined.extend(common);
    }
}

/// The same of a name in a report, which goes in any case: what has no form is left out of the name. The recipient's
/// number identifies him to the originator.
pub(super) fn set_reported_form(name: &mut ORName, common_name: CommonName) {
    set_form(name, common_name);
    name.directory_name = None;
    name.address.extensions.clear();
}

/// Makes a common name of the attribute `Common` in all names of an APDU, where the dialect of the peer that sent
/// it has them so.
pub(crate) fn restore(head: &mut MtsApduHead, dialect: Dialect) {
    if dialect != Dialect::RedBook1984(CommonName::DomainDefined) {
        return;
    }
    match head {
        MtsApduHead::Message(e) => {
            restore_one(&mut e.originator);
            e.recipients.iter_mut().for_each(|r| restore_one(&mut r.recipient));
        }
        MtsApduHead::Probe(e) => {
            restore_one(&mut e.originator);
            e.recipients.iter_mut().for_each(|r| restore_one(&mut r.recipient));
        }
        MtsApduHead::Report(report) => {
            restore_one(&mut report.envelope.destination);
            for recipient in &mut report.content.recipients {
                restore_one(&mut recipient.actual_recipient);
                recipient.intended_recipient.iter_mut().for_each(restore_one);
            }
        }
    }
}

/// Of one name: it has no common name yet, and the attribute once.
fn restore_one(name: &mut ORName) {
    let address = &mut name.address;
    let mut found = (0..).zip(&address.domain_defined).filter(|(_, a)| is_common(a));
    let (first, second) = (found.next().map(|(at, _)| at), found.next());
    if let (Some(at), None, None) = (first, second, address.common_name()) {
        let common = address.domain_defined.remove(at);
        address.set_common_name(&common.value);
    }
}
