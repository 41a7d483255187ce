//! Values that can be compared, and strings within strings.

use super::Truth;
use crate::attributes::Syntax;
use crate::filter::Substring;
use crate::value::Value;
use base::Utc;
use base::ber::Oid;
use bytes::Bytes;
use p1::{MtsIdentifier, ORName};
use std::cmp::Ordering;

/// A value as it is compared.
pub(super) enum Comparable {
    Integer(i64),
    Boolean(bool),
    Time(Utc),
    Oid(Oid),
    /// In comparable form.
    Text(String),
    Octets(Bytes),
    OrName(Box<ORName>),
    MtsIdentifier(Box<MtsIdentifier>),
}

impl Comparable {
    /// The value and its type; `None` where it is malformed, or a time that is not of the calendar.
    pub(super) fn new(value: &Value) -> Option<(Syntax, Comparable)> {
        let syntax = Syntax::of_tag(value.element().ok()?.tag);
        let comparable = match syntax {
            Syntax::Integer | Syntax::Enumerated | Syntax::Priority => {
                Comparable::Integer(value.integer().ok()?)
            }
            Syntax::Boolean => Comparable::Boolean(value.boolean().ok()?),
            Syntax::Time => Comparable::Time(value.time().ok()?.utc?),
            Syntax::Oid => Comparable::Oid(value.oid().ok()?),
            Syntax::Text => Comparable::Text(folded(&value.text().ok()?).trim().to_owned()),
            Syntax::Octets => Comparable::Octets(value.octet_string().ok()?),
            Syntax::OrName => Comparable::OrName(Box::new(value.or_name().ok()?)),
            Syntax::MtsIdentifier => {
                Comparable::MtsIdentifier(Box::new(value.mts_identifier().ok()?))
            }
            Syntax::Null | Syntax::Other => Comparable::Octets(value.octets().clone()),
        };
        Some((syntax, comparable))
    }

    /// How this compares with another of the same type. Names and identifiers have no order: those
    /// that differ are less. `None` for different types.
    pub(super) fn compare(&self, other: &Comparable) -> Option<Ordering> {
        let equal = |same: bool| if same { Ordering::Equal } else { Ordering::Less };
        Some(match (self, other) {
            (Comparable::Integer(a), Comparable::Integer(b)) => a.cmp(b),
            (Comparable::Boolean(a), Comparable::Boolean(b)) => a.cmp(b),
            (Comparable::Time(a), Comparable::Time(b)) => a.cmp(b),
            (Comparable::Oid(a), Comparable::Oid(b)) => a.cmp(b),
            (Comparable::Text(a), Comparable::Text(b)) => a.cmp(b),
            (Comparable::Octets(a), Comparable::Octets(b)) => a.cmp(b),
            (Comparable::OrName(a), Comparable::OrName(b)) => equal(a.same_as(b)),
            (Comparable::MtsIdentifier(a), Comparable::MtsIdentifier(b)) => equal(a.same_as(b)),
            _ => return None,
        })
    }
}

/// A string in comparable form: lower case, and one space where there are several.
pub(super) fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut spaced = false;
    for c in text.chars() {
        if !(c == ' ' && spaced) {
            out.extend(c.to_lowercase());
        }
        spaced = c == ' ';
    }
    out
}

/// Whether the strings come in the text, one after the other without overlap. Undefined where an
/// initial string is not the first, or a final one not the last.
pub(super) fn has_substrings(text: &str, strings: &[(&Substring, String)]) -> Truth {
    let last = strings.len().saturating_sub(1);
    let misplaced = strings.iter().enumerate().any(|(at, (string, _))| match string {
        Substring::Initial(_) => at != 0,
        Substring::Any(_) => false,
        Substring::Final(_) => at != last,
    });
    if misplaced {
        return Truth::Undefined;
    }
    let mut rest = text;
    for (string, wanted) in strings {
        let after = match string {
            Substring::Initial(_) => rest.strip_prefix(wanted.as_str()),
            Substring::Any(_) => rest.split_once(wanted.as_str()).map(|(_, after)| after),
            Substring::Final(_) => rest.strip_suffix(wanted.as_str()).map(|_| ""),
        };
        match after {
            Some(after) => rest = after,
            None => return Truth::False,
        }
    }
    Truth::True
}
