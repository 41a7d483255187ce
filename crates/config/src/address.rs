//! Values: O/R addresses and the names of management domains.

use super::domain_text;
use super::tree::Bad;
use super::value::text;
use p1::names::{AddressError, ORAddress};
use p1::text::Text;
use toml::de::DeValue;

/// An O/R address, or the leading attributes of one.
pub(super) fn or_address(value: &DeValue<'_>) -> Result<ORAddress, Bad> {
    const REMEDY: &str = "write attributes after slashes: \"/C=IT/ADMD=NET/PRMD=NAPLES/O=HQ\"";
    let text = text(value).map_err(|bad| Bad::new(bad.message, REMEDY))?;
    let address: ORAddress = text
        .parse()
        .map_err(|e: AddressError| Bad::new(format!("invalid O/R address: {e}"), REMEDY))?;
    if address == ORAddress::default() {
        return Err(Bad::new("the address has no attributes", REMEDY));
    }
    Ok(address)
}

/// A text is not the O/R address of anybody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAddress {
    /// It has no attributes by which somebody could be found.
    #[error(
        "the O/R address is empty: write attributes such as \"C=IT;ADMD=NET;PRMD=NAPLES;S=OPS\""
    )]
    Empty,
    /// It cannot be read.
    #[error("invalid O/R address: {0}")]
    Invalid(#[from] AddressError),
}

/// The canonical text of an O/R address that somebody may have.
///
/// # Errors
/// [`NoAddress`]: it cannot be read, or has no attributes.
pub fn whole_address(text: &str) -> Result<String, NoAddress> {
    let canonical = canonical_address(text)?;
    if canonical.is_empty() { Err(NoAddress::Empty) } else { Ok(canonical) }
}

/// The canonical text of an O/R address: the name of its mailbox.
pub fn canonical_address(text: &str) -> Result<String, AddressError> {
    text.parse::<ORAddress>().map(|address| engine::canonical(&address))
}

/// A country: two letters (ISO 3166) in either case, sent as capitals, or three digits (X.121).
pub(super) fn country(value: &DeValue<'_>) -> Result<Text, Bad> {
    let text = text(value)?;
    let letters = text.len() == 2 && text.bytes().all(|b| b.is_ascii_alphabetic());
    let digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
    if !letters && !digits {
        let remedy = "write two letters (ISO 3166) or three digits (X.121)";
        return Err(Bad::new(format!("invalid country {text:?}"), remedy));
    }
    Ok(domain_text(text.to_ascii_uppercase()))
}

/// The name of an administration or private management domain: PrintableString, 1 to 16.
pub(super) fn domain_name(value: &DeValue<'_>) -> Result<Text, Bad> {
    let text = text(value)?;
    let printable = |b: u8| b.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&b);
    if text.is_empty() || text.len() > 16 || !text.bytes().all(printable) {
        let remedy = "write 1 to 16 characters of PrintableString: letters, digits, '()+,-./:=? \
                      and space";
        return Err(Bad::new(format!("invalid domain name {text:?}"), remedy));
    }
    Ok(domain_text(text))
}
