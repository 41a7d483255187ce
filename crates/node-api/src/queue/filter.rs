//! Which rows of the queue an operator wants: what the records and the state of an entry must have.

use crate::queue::row::QueueRow;
use p1::names::{AddressError, Attribute, ORAddress};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Conditions on rows of the queue; all that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueFilter {
    /// Octets of content, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size: Option<u64>,
    /// Octets of content, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    /// Seconds here, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_age: Option<u64>,
    /// Seconds here, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<u64>,
    /// One of [`QueueRow::STATES`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The originator, as [`AddressPart`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originator: Option<String>,
    /// A recipient that this entry is responsible for; as the originator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// A part of the MTS identifier or of the content identifier, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
}

/// A condition that selects nothing in particular: whoever wrote it did not mean all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// A text without characters.
    #[error("it is empty, which would mean everything")]
    Empty,
    /// A text that no address contains.
    #[error(
        "{0:?} is not a part of an O/R address: write attributes such as S=OPS;PRMD=NAPLES, or a word of one"
    )]
    NoPart(String),
    /// Attributes that cannot be read.
    #[error("no part of an O/R address: {0}")]
    Address(#[from] AddressError),
}

/// A part of an O/R address: attributes, all of which an address must have, or a word that one of its
/// values must contain. Upper and lower case are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressPart(Part);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Attributes(Vec<(Attribute, String)>),
    Word(String),
}

/// `S=OPS;PRMD=NAPLES`, `/S=OPS/PRMD=NAPLES/`, `g=anna`, `naples`.
impl FromStr for AddressPart {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<AddressPart, FilterError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(FilterError::Empty);
        }
        if text.contains('=') {
            let attributes = attributes(text)?;
            return match attributes.is_empty() {
                true => Err(FilterError::Empty),
                false => Ok(AddressPart(Part::Attributes(attributes))),
            };
        }
        let word = text.trim_matches(['/', ';']);
        let is_of_value = |c: char| u32::from(c) < 256 && !c.is_control();
        if !word.contains(char::is_alphanumeric) || !word.chars().all(is_of_value) {
            return Err(FilterError::NoPart(text.to_owned()));
        }
        Ok(AddressPart(Part::Word(p1::names::normalize(word))))
    }
}

/// Attributes in comparable form. A part needs no surname beside a given name.
fn attributes(text: &str) -> Result<Vec<(Attribute, String)>, AddressError> {
    let is_slashed = !text.contains(';') && text.contains('/') && !text.starts_with('/');
    let text = if is_slashed { format!("/{text}") } else { text.to_owned() };
    match text.parse::<ORAddress>() {
        Ok(address) => Ok(address.attributes()),
        Err(AddressError::NoSurname) => {
            let separator = if text.contains(';') || !text.starts_with('/') { ';' } else { '/' };
            let address = format!("{text}{separator}S=x").parse::<ORAddress>()?;
            let mut all = address.attributes();
            all.retain(|(attribute, _)| *attribute != Attribute::Surname);
            Ok(all)
        }
        Err(error) => Err(error),
    }
}

impl AddressPart {
    /// Whether this address, as text, has it.
    #[must_use]
    pub fn is_of(&self, address: &str) -> bool {
        let Ok(address) = address.parse::<ORAddress>() else { return false };
        let all = address.attributes();
        match &self.0 {
            Part::Attributes(wanted) => wanted.iter().all(|one| all.contains(one)),
            Part::Word(word) => all.iter().any(|(_, value)| value.contains(word)),
        }
    }
}

/// A text to look for, which is not empty.
///
/// # Errors
/// [`FilterError::Empty`].
pub fn text_part(text: &str) -> Result<&str, FilterError> {
    match text.trim() {
        "" => Err(FilterError::Empty),
        text => Ok(text),
    }
}

impl QueueFilter {
    /// Whether its conditions select something.
    ///
    /// # Errors
    /// A condition that is empty, or no part of an address.
    pub fn check(&self) -> Result<(), FilterError> {
        for part in [&self.originator, &self.recipient].into_iter().flatten() {
            part.parse::<AddressPart>()?;
        }
        self.identifier.as_deref().map_or(Ok(()), |text| text_part(text).map(drop))
    }

    /// Whether a row may match, by what is known of it without its record.
    #[must_use]
    pub fn may_match(&self, row: &QueueRow) -> bool {
        let age = row.age_seconds;
        // Ages are far below 2^53 seconds.
        self.min_size.is_none_or(|least| row.size >= least)
            && self.max_size.is_none_or(|most| row.size <= most)
            && self.min_age.is_none_or(|least| age >= least as f64)
            && self.max_age.is_none_or(|most| age <= most as f64)
            && self.state.as_ref().is_none_or(|state| row.state == *state)
    }

    /// Whether records have to be read in full for it.
    #[must_use]
    pub fn is_deep(&self) -> bool {
        self.recipient.is_some() || self.identifier.is_some()
    }

    /// Whether a row matches; it was completed from its record.
    #[must_use]
    pub fn matches(&self, row: &QueueRow) -> bool {
        // A condition that is none selects nothing.
        let part = |text: &String| text.parse::<AddressPart>().ok();
        let contains = |text: &Option<String>, part: &str| {
            text.as_ref().is_some_and(|text| text.to_lowercase().contains(&part.to_lowercase()))
        };
        self.may_match(row)
            && self.originator.as_ref().is_none_or(|text| {
                let address = row.originator.as_ref();
                part(text).zip(address).is_some_and(|(part, address)| part.is_of(address))
            })
            && self.recipient.as_ref().is_none_or(|text| {
                part(text).is_some_and(|part| row.recipients.iter().any(|r| part.is_of(&r.address)))
            })
            && self.identifier.as_deref().is_none_or(|text| {
                text_part(text).is_ok_and(|part| {
                    contains(&row.mts_id, part) || contains(&row.content_id, part)
                })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_address_is_found_however_it_is_written() {
        let text = "/G=Anna/S=Ops/PRMD=NAPLES/ADMD=NET/C=IT/";
        let is_of = |part: &str| part.parse::<AddressPart>().unwrap().is_of(text);
        for part in [
            "naples",
            "/S=OPS/",
            "s=ops",
            "S=OPS;PRMD=Naples",
            "S=OPS/PRMD=NAPLES",
            "G=anna",
            "/PRMD=NAPLES/G=ANNA",
            "G=anna;PRMD=naples",
            "C=IT;ADMD=NET;PRMD=NAPLES;S=Ops;G=Anna",
            " /naples/ ",
            "C=IT;ADMD=;S=ops",
        ] {
            assert!(is_of(part), "{part}");
        }
        for part in ["C=IT;ADMD=NET;PRMD=NAPLES;S=Other", "rome", "S=OP", "S=NAPLES", "prmd", "/"] {
            assert!(!part.parse::<AddressPart>().is_ok_and(|part| part.is_of(text)), "{part}");
        }
    }

    #[test]
    fn a_condition_that_means_everything_is_none() {
        let filter = |recipient: &str| QueueFilter {
            recipient: Some(recipient.to_owned()),
            ..QueueFilter::default()
        };
        for text in
            ["", " ", "S=", "s= ", "/", ";", "=", "ADMD=", "FOO=bar", "S", "@@", "a\nb", "S=a;S=b"]
        {
            let is_word = text == "S";
            assert_eq!(filter(text).check().is_ok(), is_word, "{text:?}");
        }
        let identifier = |text: &str| QueueFilter {
            identifier: Some(text.to_owned()),
            ..QueueFilter::default()
        };
        assert_eq!(identifier("").check(), Err(FilterError::Empty));
        assert_eq!(identifier("  ").check(), Err(FilterError::Empty));
        assert!(identifier(".42").check().is_ok());
    }
}
