//! Which rows of the queue an operator wants: what the records and the state of an entry must have.

use crate::queue::row::QueueRow;
use engine::canonical;
use p1::names::ORAddress;
use serde::{Deserialize, Serialize};

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
    /// The originator: an O/R address, or a part of one, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originator: Option<String>,
    /// A recipient that this entry is responsible for; as the originator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// A part of the MTS identifier or of the content identifier, in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
}

impl QueueFilter {
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
        let has = |part: &String, text: &Option<String>| {
            text.as_ref().is_some_and(|text| contains(text, part))
        };
        self.may_match(row)
            && self.originator.as_ref().is_none_or(|part| has(part, &row.originator))
            && self
                .recipient
                .as_ref()
                .is_none_or(|part| row.recipients.iter().any(|r| contains(&r.address, part)))
            && self
                .identifier
                .as_ref()
                .is_none_or(|part| has(part, &row.mts_id) || has(part, &row.content_id))
    }
}

/// Whether a text has this part: as it is written, or as O/R addresses.
fn contains(text: &str, part: &str) -> bool {
    let lower = |text: &str| text.to_lowercase();
    if lower(text).contains(&lower(part)) {
        return true;
    }
    let address = |text: &str| text.parse::<ORAddress>().ok().map(|address| canonical(&address));
    match (address(text), address(part)) {
        (Some(text), Some(part)) => text.contains(&part),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_address_is_found_however_it_is_written() {
        let text = "/S=Ops/PRMD=NAPLES/ADMD=NET/C=IT/";
        for part in ["naples", "/S=OPS/", "C=IT;ADMD=NET;PRMD=NAPLES;S=Ops"] {
            assert!(contains(text, part), "{part}");
        }
        for part in ["C=IT;ADMD=NET;PRMD=NAPLES;S=Other", "rome"] {
            assert!(!contains(text, part), "{part}");
        }
    }
}
