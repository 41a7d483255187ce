//! Values as they are shown: octets and texts without secrets, selectors, object identifiers, numbers with names.

use super::Masks;
use base::ber::{Class, Element, Error, Fault, Oid, Tag};
use bytes::Bytes;
use osi::shown;

/// Most characters of a text.
const MAX_TEXT: usize = 64;

impl Masks {
    /// The octets with every secret in them replaced.
    pub(super) fn masked(&self, octets: &[u8], by: u8) -> Vec<u8> {
        let mut octets = octets.to_vec();
        for secret in &self.0 {
            let mut at = 0;
            while let Some(rest) = octets.get_mut(at..).filter(|rest| rest.len() >= secret.len()) {
                if rest.starts_with(secret) {
                    rest.iter_mut().take(secret.len()).for_each(|octet| *octet = by);
                }
                at += 1;
            }
        }
        octets
    }

    /// Octets in hexadecimal, at most 64; those of texts, of credentials and of secrets as `..`.
    pub(super) fn hex(&self, octets: &[u8]) -> String {
        let mut octets = self.masked(octets, b'.');
        hide_credentials(&mut octets);
        shown::octets(&octets)
    }

    /// A text in quotes, without control characters.
    pub(super) fn quoted(&self, octets: &[u8]) -> String {
        let masked = self.masked(octets, b'*');
        let cut = masked.get(..MAX_TEXT).unwrap_or(&masked);
        let more = if cut.len() < masked.len() { "..." } else { "" };
        format!("\"{}{more}\"", cut.escape_ascii())
    }

    /// A selector: its text if it has one, else hexadecimal, as the configuration has it.
    pub(super) fn selector(&self, octets: Option<&[u8]>) -> String {
        match octets {
            None => "absent".to_owned(),
            Some([]) => "empty".to_owned(),
            Some(octets) if octets.iter().all(|octet| (0x20..0x7f).contains(octet)) => {
                self.quoted(octets)
            }
            Some(octets) => {
                let masked = self.masked(octets, b'*');
                let hex: String = masked.iter().take(32).map(|o| format!("{o:02x}")).collect();
                format!("{{ hex = \"{hex}\" }}")
            }
        }
    }
}

/// Hides what has the form of simple credentials, a string alone under `[1]` (X.411 8.1.1, 12.1.1), wherever it
/// begins: an SPDU has a bind in it and is not BER itself.
fn hide_credentials(octets: &mut [u8]) {
    for at in 0..octets.len() {
        let Some([0xA1, _, 0x04 | 0x16 | 0x24 | 0x36, length, rest @ ..]) = octets.get_mut(at..)
        else {
            continue;
        };
        let length = if *length < 0x80 { usize::from(*length) } else { rest.len() };
        rest.iter_mut().take(length).for_each(|octet| *octet = b'.');
    }
}

/// The encoding CHOICE of PDV-list and EXTERNAL: `[0]` single-ASN1-type, `[1]` octet-aligned, `[2]` arbitrary.
pub(super) fn read_encoding(e: &Element<'_>) -> Result<Bytes, Error> {
    match e.tag {
        Tag { class: Class::Context, number: 0 } => Ok(Bytes::copy_from_slice(e.only_child()?.raw)),
        Tag { class: Class::Context, number: 1 } => Ok(e.octets()?.into_owned().into()),
        Tag { class: Class::Context, number: 2 } => Ok(e.bits()?.octets.into_owned().into()),
        other => Err(Fault::Unexpected(other).into()),
    }
}

/// A number with a separator between thousands.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The name of an object identifier, if it is one of ours.
pub(super) fn oid_name(oid: &Oid) -> Option<&'static str> {
    Some(match oid.to_string().as_str() {
        "2.2.1.0.1" => "ACSE",
        "2.3.2" => "RTSE",
        "2.1.1" => "BER",
        "2.6.0.1.0" => "mts-access, P3",
        "2.6.0.1.4" => "ms-access, P7",
        "2.6.0.1.6" => "mts-transfer, P1",
        "2.6.0.1.11" => "ms-access 1994, P7",
        "2.6.0.2.1" => "msse",
        "2.6.0.2.2" => "mdse",
        "2.6.0.2.5" => "mrse",
        "2.6.0.2.6" => "mase",
        "2.6.0.2.7" => "mtse",
        "2.6.0.2.8" => "mts-rtse",
        "2.6.0.2.9" => "ms",
        "2.6.0.2.11" => "mts",
        "2.6.0.2.12" => "mta-rtse",
        _ => return None,
    })
}

/// An object identifier with its name.
pub(super) fn oid(oid: &Oid) -> String {
    match oid_name(oid) {
        Some(name) => format!("{oid} ({name})"),
        None => oid.to_string(),
    }
}

/// A number with the name that a standard gives it, from a list that begins at 0.
pub(super) fn named(number: i64, names: &[&str]) -> String {
    let name = usize::try_from(number).ok().and_then(|number| names.get(number));
    match name {
        Some(name) => format!("{name} ({number})"),
        None => format!("{number}, a number without a name"),
    }
}
