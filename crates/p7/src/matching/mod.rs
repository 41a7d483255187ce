//! Whether an entry matches a filter (X.413 8.1.3; the logic is that of X.511 7.8).
//!
//! A filter item is true, false or *undefined*. It is undefined where a value of the entry is not of
//! the type that it should have, so that it cannot be compared; not of an undefined filter is
//! undefined, and of a false one is neither. An entry is selected where the whole filter is true.
//!
//! | | true where | undefined where |
//! |---|---|---|
//! | item | one value of the entry matches | none matches, and one cannot be compared |
//! | and | all are true | none is false, and one is undefined |
//! | or | one is true | none is true, and one is undefined |
//! | not | the inner filter is false | the inner filter is undefined |
//!
//! An attribute that the entry does not have makes every item about it false, as in X.511 (*unproven*
//! for X.413). A filter that no entry could match sensibly is an attribute-error, whatever the entries
//! hold: a type that the store does not have, a comparison that the type does not have, and an asserted
//! value of another type than the attribute's.

mod compare;

use crate::attributes::{self, Syntax};
use crate::entry::{Attribute, EntryInformation};
use crate::error::{AttributeProblem, AttributeProblemItem};
use crate::filter::{Assertion, Filter, FilterItem, Substring};
use crate::value::Value;
use base::ber::Oid;
use compare::{Comparable, has_substrings};
use std::borrow::Cow;
use std::cmp::Ordering;

/// The value of a filter or item. The order makes *and* the least and *or* the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Truth {
    /// It does not match.
    False,
    /// It cannot be decided.
    Undefined,
    /// It matches.
    True,
}

impl Truth {
    fn negated(self) -> Truth {
        match self {
            Truth::False => Truth::True,
            Truth::Undefined => Truth::Undefined,
            Truth::True => Truth::False,
        }
    }
}

impl From<bool> for Truth {
    fn from(value: bool) -> Truth {
        if value { Truth::True } else { Truth::False }
    }
}

/// What an entry has of an attribute type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// The store does not have attributes of this type.
    Unavailable,
    /// The entry has none.
    Absent,
    /// The values.
    Values(Cow<'a, [Value]>),
}

/// The attributes of one entry.
pub trait AttributeLookup {
    /// What the entry has of this type.
    fn find(&self, attribute_type: &Oid) -> Found<'_>;
}

impl AttributeLookup for Vec<Attribute> {
    fn find(&self, attribute_type: &Oid) -> Found<'_> {
        match self.iter().find(|a| a.attribute_type == *attribute_type) {
            Some(attribute) => Found::Values(Cow::Borrowed(&attribute.values)),
            None => Found::Absent,
        }
    }
}

impl AttributeLookup for EntryInformation {
    fn find(&self, attribute_type: &Oid) -> Found<'_> {
        self.attributes.find(attribute_type)
    }
}

/// Whether the entry matches: the filter is true, and neither false nor undefined.
///
/// # Errors
/// The filter does not fit the attribute types: see the module.
pub fn matches(filter: &Filter, entry: &dyn AttributeLookup) -> Result<bool, AttributeProblemItem> {
    Ok(evaluate(filter, entry)? == Truth::True)
}

/// The value of the filter for an entry. Every item is evaluated, so that an error does not depend on
/// the other items. The recursion is as deep as the filter, which a reader bounds.
///
/// # Errors
/// As [`matches()`].
pub fn evaluate(
    filter: &Filter,
    entry: &dyn AttributeLookup,
) -> Result<Truth, AttributeProblemItem> {
    match filter {
        Filter::Item(item) => evaluate_item(item, entry),
        Filter::And(all) => combined(all, entry, Truth::True, Ord::min),
        Filter::Or(all) => combined(all, entry, Truth::False, Ord::max),
        Filter::Not(inner) => evaluate(inner, entry).map(Truth::negated),
    }
}

fn combined(
    all: &[Filter],
    entry: &dyn AttributeLookup,
    empty: Truth,
    combine: fn(Truth, Truth) -> Truth,
) -> Result<Truth, AttributeProblemItem> {
    all.iter().try_fold(empty, |truth, filter| Ok(combine(truth, evaluate(filter, entry)?)))
}

fn evaluate_item(
    item: &FilterItem,
    entry: &dyn AttributeLookup,
) -> Result<Truth, AttributeProblemItem> {
    let attribute_type = item.attribute_type();
    let values = match entry.find(attribute_type) {
        Found::Unavailable => {
            let problem = AttributeProblem::UNAVAILABLE_ATTRIBUTE_TYPE;
            return Err(fault(problem, attribute_type, None));
        }
        Found::Absent => Cow::Borrowed(&[][..]),
        Found::Values(values) => values,
    };
    match item {
        FilterItem::Present(_) => Ok(Truth::from(!values.is_empty())),
        FilterItem::Equality(assertion) | FilterItem::Approximate(assertion) => {
            compared(assertion, &values, false, Ordering::is_eq)
        }
        FilterItem::GreaterOrEqual(assertion) => {
            compared(assertion, &values, true, Ordering::is_ge)
        }
        FilterItem::LessOrEqual(assertion) => compared(assertion, &values, true, Ordering::is_le),
        FilterItem::Substrings { strings, .. } => substrings(attribute_type, strings, &values),
        FilterItem::Other { .. } => {
            Err(fault(AttributeProblem::INAPPROPRIATE_MATCHING, attribute_type, None))
        }
    }
}

fn fault(
    problem: AttributeProblem,
    attribute_type: &Oid,
    value: Option<&Value>,
) -> AttributeProblemItem {
    let attribute_type = attribute_type.clone();
    AttributeProblemItem { problem, attribute_type, value: value.cloned() }
}

/// The asserted value, if it has the attribute's type, and that type.
fn asserted(
    attribute_type: &Oid,
    value: &Value,
) -> Result<(Syntax, Comparable), AttributeProblemItem> {
    let invalid = || fault(AttributeProblem::INVALID_ATTRIBUTE_VALUE, attribute_type, Some(value));
    let (own, comparable) = Comparable::new(value).ok_or_else(invalid)?;
    match attributes::find(attribute_type).map(|kind| kind.syntax) {
        None | Some(Syntax::Other) => Ok((own, comparable)),
        Some(syntax) if syntax == own => Ok((syntax, comparable)),
        Some(_) => Err(invalid()),
    }
}

/// The greatest of the values of the single comparisons: one match is enough.
fn any(values: &[Value], compare: impl Fn(&Value) -> Truth) -> Truth {
    values.iter().map(compare).max().unwrap_or(Truth::False)
}

fn compared(
    assertion: &Assertion,
    values: &[Value],
    ordering: bool,
    fits: fn(Ordering) -> bool,
) -> Result<Truth, AttributeProblemItem> {
    let (syntax, wanted) = asserted(&assertion.attribute_type, &assertion.value)?;
    if ordering && !syntax.is_ordered() {
        let problem = AttributeProblem::INAPPROPRIATE_MATCHING;
        return Err(fault(problem, &assertion.attribute_type, Some(&assertion.value)));
    }
    Ok(any(values, |value| match Comparable::new(value) {
        Some((own, found)) if own == syntax => {
            found.compare(&wanted).map_or(Truth::Undefined, |order| Truth::from(fits(order)))
        }
        _ => Truth::Undefined,
    }))
}

fn substrings(
    attribute_type: &Oid,
    strings: &[Substring],
    values: &[Value],
) -> Result<Truth, AttributeProblemItem> {
    let known = attributes::find(attribute_type).map(|kind| kind.syntax);
    let inappropriate = |value: Option<&Value>| {
        fault(AttributeProblem::INAPPROPRIATE_MATCHING, attribute_type, value)
    };
    if known.is_some_and(|syntax| syntax != Syntax::Other && !syntax.has_substrings()) {
        return Err(inappropriate(None));
    }
    let mut texts = Vec::new();
    for string in strings {
        let text = string.value().text().map_err(|_| inappropriate(Some(string.value())))?;
        texts.push((string, compare::folded(&text)));
    }
    Ok(any(values, |value| match value.text() {
        Ok(text) => has_substrings(&compare::folded(&text), &texts),
        Err(_) => Truth::Undefined,
    }))
}

#[cfg(test)]
mod tests;
