use super::address::is_printable;
use super::{DomainDefinedAttribute, ORAddress, ORName, PersonalName};
use crate::text::{StringType, Text};
use base::shown;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Why a text is not an O/R address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A part without `=`.
    #[error("{0:?} has no `=`: write KEY=value, and a backslash before a separator within a value")]
    NoValue(String),
    /// A key that names no attribute.
    #[error(
        "unknown attribute {0:?}: use C, ADMD, PRMD, O, OU1 to OU4, G, I, S, Q, CN, X.121, T-ID, N-ID or DDA:type"
    )]
    UnknownKey(String),
    /// An attribute given twice.
    #[error("{0} is given twice")]
    Twice(String),
    /// An attribute with an empty value.
    #[error("{0} is empty")]
    Empty(String),
    /// A value longer than X.411 allows.
    #[error("{key} is longer than {most} characters")]
    TooLong {
        /// The key.
        key: String,
        /// The bound.
        most: usize,
    },
    /// A character the attribute's string type does not have.
    #[error("{key} cannot hold {character:?}")]
    Character {
        /// The key.
        key: String,
        /// The first such character.
        character: char,
    },
    /// An organizational unit above which one is missing.
    #[error("OU{0} without OU{above}", above = .0 - 1)]
    UnitGap(usize),
    /// More than four organizational units.
    #[error("more than 4 organizational units")]
    TooManyUnits,
    /// More than four domain-defined attributes.
    #[error("more than 4 domain-defined attributes")]
    TooManyDomainDefined,
    /// Given name, initials or generation without a surname.
    #[error("a personal name needs S, the surname")]
    NoSurname,
}

/// `/G=John/S=Smith/O=HQ/OU1=G6/PRMD=NAPLES/ADMD=NET/C=IT`: the most specific attribute first, `/`, `;`
/// and `\` in a value after a backslash. Extension attributes but for the common name have no text
/// form and are left out.
impl fmt::Display for ORAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut put = |key: &str, value: Option<&str>| -> fmt::Result {
            let Some(value) = value else { return Ok(()) };
            write!(f, "/{key}={}", escape(value, "/;\\"))
        };
        if let Some(name) = &self.personal_name {
            put("G", name.given_name.as_deref())?;
            put("I", name.initials.as_deref())?;
            put("S", Some(&name.surname))?;
            put("Q", name.generation_qualifier.as_deref())?;
        }
        put("CN", self.common_name().as_deref())?;
        put("X.121", self.network_address.as_deref())?;
        put("N-ID", self.numeric_user_identifier.as_deref())?;
        put("T-ID", self.terminal_identifier.as_deref())?;
        for pair in &self.domain_defined {
            put(&format!("DDA:{}", escape(&pair.kind, "/;\\=")), Some(&pair.value))?;
        }
        put("O", self.organization.as_deref())?;
        for (n, unit) in (1..).zip(&self.organizational_units) {
            put(&format!("OU{n}"), Some(unit))?;
        }
        let text = |t: &Option<Text>| t.as_ref().map(|t| t.value.clone());
        put("PRMD", text(&self.prmd).as_deref())?;
        put("ADMD", text(&self.admd).as_deref())?;
        put("C", text(&self.country).as_deref())
    }
}

/// With a backslash before each of `special`, and control characters as [`shown::line`] has them.
fn escape(text: &str, special: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if special.contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    match shown::line(&out) {
        Cow::Borrowed(_) => out,
        Cow::Owned(shown) => shown,
    }
}

/// The address alone.
impl fmt::Display for ORName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.address, f)
    }
}

impl FromStr for ORName {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<ORName, AddressError> {
        text.parse::<ORAddress>().map(ORName::from)
    }
}

/// Reads `/C=IT/ADMD=NET/..` and `C=IT;ADMD=NET;..` (a leading slash and semicolons also go together),
/// in any order. Keys: C, ADMD or A, PRMD or P, O, OU1 to OU4 or OU in order, G, I, S, Q or GQ, CN,
/// X.121, T-ID, N-ID, DDA:type or DD.type, in either case. A backslash takes the next character as it
/// is. `ADMD=` without a value is the single space. An empty text is an address without attributes.
impl FromStr for ORAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<ORAddress, AddressError> {
        let mut form = Form::default();
        for (key, value) in split(text.trim_start())? {
            form.put(key.trim(), &value)?;
        }
        form.finish()
    }
}

/// The key and value of each part between separators, backslashes taken away.
fn split(text: &str) -> Result<Vec<(String, String)>, AddressError> {
    let slashed = text.strip_prefix('/');
    let text = slashed.unwrap_or(text);
    let separator = if slashed.is_some() && !has_bare(text, ';') { '/' } else { ';' };
    let mut pairs = Vec::new();
    let (mut key, mut value) = (String::new(), None::<String>);
    let mut chars = text.chars().chain([separator]);
    while let Some(c) = chars.next() {
        if c == separator {
            match value.take() {
                Some(value) => pairs.push((std::mem::take(&mut key), value)),
                None if key.trim().is_empty() => key.clear(),
                None => return Err(AddressError::NoValue(key)),
            }
        } else if c == '=' && value.is_none() {
            value = Some(String::new());
        } else {
            let taken = if c == '\\' { chars.next().unwrap_or(c) } else { c };
            value.as_mut().unwrap_or(&mut key).push(taken);
        }
    }
    Ok(pairs)
}

/// Whether `wanted` stands in `text` without a backslash before it.
fn has_bare(text: &str, wanted: char) -> bool {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == wanted {
            return true;
        }
    }
    false
}

/// An address as it is put together.
#[derive(Default)]
struct Form {
    address: ORAddress,
    surname: Option<String>,
    person: PersonalName,
    units: [Option<String>; 4],
}

fn set<T>(slot: &mut Option<T>, key: &str, value: T) -> Result<(), AddressError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(AddressError::Twice(key.to_owned())),
    }
}

/// A value of 1 to `most` characters, all of them allowed.
fn checked(
    key: &str,
    value: &str,
    most: usize,
    allowed: fn(char) -> bool,
) -> Result<String, AddressError> {
    let value = value.trim();
    if value.is_empty() {
        return Err(AddressError::Empty(key.to_owned()));
    }
    if value.chars().count() > most {
        return Err(AddressError::TooLong { key: key.to_owned(), most });
    }
    match value.chars().find(|c| !allowed(*c)) {
        Some(character) => Err(AddressError::Character { key: key.to_owned(), character }),
        None => Ok(value.to_owned()),
    }
}

fn is_digit_or_space(c: char) -> bool {
    c.is_ascii_digit() || c == ' '
}

fn is_latin1(c: char) -> bool {
    u32::from(c) < 256 && !c.is_control()
}

impl Form {
    fn put(&mut self, key: &str, value: &str) -> Result<(), AddressError> {
        let upper = key.to_ascii_uppercase();
        let printable = |most| checked(key, value, most, is_printable);
        let domain = |most| printable(most).map(Text::printable);
        let a = &mut self.address;
        match upper.as_str() {
            "C" => {
                let mut text = domain(3)?;
                // X.402 compares without case, but the code itself is in capitals (ISO 3166).
                text.value.make_ascii_uppercase();
                if text.value.bytes().all(|b| b.is_ascii_digit()) {
                    text.kind = StringType::Numeric;
                }
                set(&mut a.country, key, text)
            }
            "ADMD" | "A" if value.trim().is_empty() => set(&mut a.admd, key, Text::printable(" ")),
            "ADMD" | "A" => set(&mut a.admd, key, domain(16)?),
            "PRMD" | "P" => set(&mut a.prmd, key, domain(16)?),
            "O" => set(&mut a.organization, key, printable(64)?),
            "G" => set(&mut self.person.given_name, key, printable(16)?),
            "I" => set(&mut self.person.initials, key, printable(5)?),
            "S" => set(&mut self.surname, key, printable(40)?),
            "Q" | "GQ" => set(&mut self.person.generation_qualifier, key, printable(3)?),
            "CN" => {
                if a.common_name().is_some() {
                    return Err(AddressError::Twice(key.to_owned()));
                }
                a.set_common_name(&checked(key, value, 64, is_latin1)?);
                Ok(())
            }
            "X.121" | "X121" => {
                set(&mut a.network_address, key, checked(key, value, 15, is_digit_or_space)?)
            }
            "T-ID" => set(&mut a.terminal_identifier, key, printable(24)?),
            "N-ID" | "UA-ID" => set(
                &mut a.numeric_user_identifier,
                key,
                checked(key, value, 32, is_digit_or_space)?,
            ),
            _ => self.put_repeated(key, &upper, value),
        }
    }

    /// The attributes there are several of.
    fn put_repeated(&mut self, key: &str, upper: &str, value: &str) -> Result<(), AddressError> {
        if let Some(number) = upper.strip_prefix("OU") {
            let unit = checked(key, value, 32, is_printable)?;
            let index = match number {
                "" => self.units.iter().position(Option::is_none),
                _ => number.parse::<usize>().ok().and_then(|n| n.checked_sub(1)),
            };
            let slot = index.and_then(|i| self.units.get_mut(i));
            return set(slot.ok_or(AddressError::TooManyUnits)?, key, unit);
        }
        if upper.starts_with("DDA:") || upper.starts_with("DD.") {
            let kind = key.split_once([':', '.']).map(|(_, kind)| kind).unwrap_or_default();
            let pairs = &mut self.address.domain_defined;
            if pairs.len() == 4 {
                return Err(AddressError::TooManyDomainDefined);
            }
            pairs.push(DomainDefinedAttribute {
                kind: checked(key, kind, 8, is_printable)?,
                value: checked(key, value, 128, is_printable)?,
            });
            return Ok(());
        }
        Err(AddressError::UnknownKey(key.to_owned()))
    }

    fn finish(mut self) -> Result<ORAddress, AddressError> {
        let mut units = self.units.into_iter();
        self.address.organizational_units = units.by_ref().map_while(|u| u).collect();
        if units.any(|u| u.is_some()) {
            return Err(AddressError::UnitGap(self.address.organizational_units.len() + 2));
        }
        match self.surname {
            Some(surname) => {
                self.address.personal_name = Some(PersonalName { surname, ..self.person });
            }
            None if self.person != PersonalName::default() => return Err(AddressError::NoSurname),
            None => {}
        }
        Ok(self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_styles_in_any_order() {
        let slash: ORAddress =
            "/C=IT/ADMD=NET/PRMD=NAPLES/O=HQ/OU1=G6/OU2=OPS/S=Smith/G=John".parse().unwrap();
        let semicolons: ORAddress =
            "g=John; s=Smith; o=HQ; ou=G6; ou=OPS; p=NAPLES; a=NET; c=IT;".parse().unwrap();
        let mixed: ORAddress =
            "/G=John;S=Smith;O=HQ;OU1=G6;OU2=OPS;PRMD=NAPLES;ADMD=NET;C=IT".parse().unwrap();
        assert_eq!(slash, semicolons);
        assert_eq!(slash, mixed);
        assert_eq!(
            slash.to_string(),
            "/G=John/S=Smith/O=HQ/OU1=G6/OU2=OPS/PRMD=NAPLES/ADMD=NET/C=IT"
        );
    }

    #[test]
    fn rare_attributes_survive() {
        let text = "/S=O'Hara/CN=Duty Officer/X.121=22222/N-ID=77/T-ID=tty1/DDA:RFC-822=a(a)b.c/O=A\\/B/PRMD=P/ADMD= /C=222";
        let address: ORAddress = text.parse().unwrap();
        assert_eq!(address.to_string(), text);
        assert_eq!(address.organization.as_deref(), Some("A/B"));
        assert_eq!(address.admd, Some(Text::printable(" ")));
        assert_eq!(address.country.unwrap().kind, StringType::Numeric);
        assert_eq!("C=GB;ADMD=".parse::<ORAddress>(), "C=GB;ADMD= ;".parse());
    }

    #[test]
    fn a_country_is_the_same_in_either_case_and_sent_in_capitals() {
        let small: ORAddress = "/S=Smith/PRMD=P/ADMD= /C=gb".parse().unwrap();
        let capital: ORAddress = "/S=Smith/PRMD=P/ADMD= /C=GB".parse().unwrap();
        assert_eq!(small, capital);
        assert_eq!(small.to_string(), "/S=Smith/PRMD=P/ADMD= /C=GB");
        // One that came so from a peer goes on so, and is the same address.
        let came = ORAddress { country: Some(Text::printable("gb")), ..capital.clone() };
        assert!(came.same_as(&capital) && came.matches(&capital).is_some());
        assert_eq!(came.attributes(), capital.attributes());
    }

    #[test]
    fn a_common_name_beyond_printable_is_teletex() {
        let address: ORAddress = "/CN=Jos\u{e9}_1/C=ES".parse().unwrap();
        assert_eq!(address.extensions[0].number, 2);
        assert_eq!(address.common_name().unwrap(), "Jos\u{e9}_1");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| text.parse::<ORAddress>().unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                "C",
                "X=1",
                "C=IT;C=IT",
                "O=",
                "PRMD=12345678901234567",
                "O=a@b",
                "OU2=x",
                "OU5=x",
                "OU=1;OU=2;OU=3;OU=4;OU=5",
                "G=John",
                "DDA:t=1;DDA:t=1;DDA:t=1;DDA:t=1;DDA:t=1",
            ]
            .map(error)
            .join("\n"),
            @r#"
        "C" has no `=`: write KEY=value, and a backslash before a separator within a value
        unknown attribute "X": use C, ADMD, PRMD, O, OU1 to OU4, G, I, S, Q, CN, X.121, T-ID, N-ID or DDA:type
        C is given twice
        O is empty
        PRMD is longer than 16 characters
        O cannot hold '@'
        OU2 without OU1
        more than 4 organizational units
        more than 4 organizational units
        a personal name needs S, the surname
        more than 4 domain-defined attributes
        "#
        );
    }

    #[test]
    fn comparison_follows_x402() {
        let a: ORAddress = "/CN=Duty  Officer/O=hq/PRMD=Naples/ADMD= /C=it".parse().unwrap();
        let mut b: ORAddress = "/O= HQ /PRMD=NAPLES/C=IT".parse().unwrap();
        assert!(!a.same_as(&b));
        // teletex-common-name, `duty officer`
        let value = [&[0x14, 12][..], b"DUTY officer"].concat();
        b.extensions.push(super::super::ExtensionAttribute { number: 2, value: value.into() });
        assert!(a.same_as(&b));
        let pattern = |text: &str| a.matches(&text.parse().unwrap());
        assert_eq!(pattern("/PRMD=NAPLES/ADMD= /C=IT"), Some(2));
        assert_eq!(pattern("/O=HQ/PRMD=NAPLES/C=IT"), Some(3));
        assert_eq!(pattern("/O=HQ2/PRMD=NAPLES/C=IT"), None);
        assert_eq!(pattern("/PRMD=NAPLES/ADMD=X/C=IT"), None);
        assert_eq!(pattern(""), Some(0));
    }
}
