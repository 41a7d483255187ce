//! Filter: which entries of a range a selector takes (X.413 8.1.3). [`crate::matching`] evaluates it.

use crate::limits::{MAX_FILTER_DEPTH, MAX_FILTERS, MAX_SUBSTRINGS};
use crate::value::Value;
use crate::wire::{self, explicit, require};
use base::ber::{Element, Error, Fault, Field, Oid, Tag, Writer, universal as u};

/// Filter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    /// item, 0.
    Item(FilterItem),
    /// and, 1: all must match; without any, everything matches.
    And(Vec<Filter>),
    /// or, 2: one must match; without any, nothing matches.
    Or(Vec<Filter>),
    /// not, 3.
    Not(Box<Filter>),
}

/// AttributeValueAssertion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Assertion {
    /// attribute-type.
    pub attribute_type: Oid,
    /// attribute-value.
    pub value: Value,
}

/// FilterItem.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FilterItem {
    /// equality, 0.
    Equality(Assertion),
    /// substrings, 1.
    Substrings {
        /// type.
        attribute_type: Oid,
        /// strings, in the order in which they must come.
        strings: Vec<Substring>,
    },
    /// greater-or-equal, 2.
    GreaterOrEqual(Assertion),
    /// less-or-equal, 3.
    LessOrEqual(Assertion),
    /// present, 4.
    Present(Oid),
    /// approximate-match, 5.
    Approximate(Assertion),
    /// other-match, 6 (1994).
    Other {
        /// matching-rule.
        matching_rule: Oid,
        /// attribute-type.
        attribute_type: Oid,
        /// match-value.
        value: Value,
    },
}

/// One string of a substrings item: a value of the attribute's own type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Substring {
    /// initial, 0.
    Initial(Value),
    /// any, 1.
    Any(Value),
    /// final, 2.
    Final(Value),
}

const SUBSTRINGS: Tag = Tag::context(1);

impl Filter {
    /// The filter that only this attribute value matches.
    pub fn equality(attribute_type: Oid, value: Value) -> Filter {
        Filter::Item(FilterItem::Equality(Assertion { attribute_type, value }))
    }

    /// Reads the CHOICE.
    ///
    /// # Errors
    /// Malformed BER, deeper than [`MAX_FILTER_DEPTH`], or of more than [`MAX_FILTERS`] parts; the
    /// field is named.
    pub fn read(e: &Element<'_>) -> Result<Filter, Error> {
        Filter::read_within(e, MAX_FILTER_DEPTH, &mut 0).field("filter")
    }

    /// `levels` are those that are left; `count` counts the parts of the whole filter.
    fn read_within(e: &Element<'_>, levels: usize, count: &mut usize) -> Result<Filter, Error> {
        let levels = levels.checked_sub(1).ok_or(Fault::TooDeep(MAX_FILTER_DEPTH))?;
        *count += 1;
        if *count > MAX_FILTERS {
            return Err(Fault::TooMany(MAX_FILTERS as u64).into());
        }
        match tag_number(e) {
            Some(0) => Ok(Filter::Item(FilterItem::read(&e.only_child()?)?)),
            Some(1) => Filter::read_all(e, levels, count).map(Filter::And),
            Some(2) => Filter::read_all(e, levels, count).map(Filter::Or),
            Some(3) => {
                let inner = Filter::read_within(&e.only_child()?, levels, count)?;
                Ok(Filter::Not(Box::new(inner)))
            }
            _ => Err(Fault::Unexpected(e.tag).into()),
        }
    }

    fn read_all(e: &Element<'_>, levels: usize, count: &mut usize) -> Result<Vec<Filter>, Error> {
        let mut members = wire::inner(e, u::SET)?.children()?;
        let mut all = Vec::new();
        while let Some(member) = members.next()? {
            all.push(Filter::read_within(&member, levels, count)?);
        }
        Ok(all)
    }

    /// Appends the CHOICE. One that is deeper than [`MAX_FILTER_DEPTH`] is not read again.
    pub fn write(&self, w: &mut Writer) {
        match self {
            Filter::Item(item) => explicit(w, 0, |w| item.write(w)),
            Filter::And(all) => wire::write_list(w, 1, u::SET, all, Filter::write),
            Filter::Or(all) => wire::write_list(w, 2, u::SET, all, Filter::write),
            Filter::Not(inner) => explicit(w, 3, |w| inner.write(w)),
        }
    }
}

/// The number of a context tag.
fn tag_number(e: &Element<'_>) -> Option<u32> {
    (e.tag == Tag::context(e.tag.number)).then_some(e.tag.number)
}

impl Assertion {
    /// `[n] AttributeValueAssertion`.
    fn read(e: &Element<'_>) -> Result<Assertion, Error> {
        let mut members = wire::inner(e, u::SEQUENCE)?.children()?;
        let attribute_type =
            members.require(u::OID).and_then(|e| e.oid()).field("attribute-type")?;
        let value = members.next().field("attribute-value")?;
        let value = Value::keep(&value.ok_or(Fault::Truncated).field("attribute-value")?)?;
        members.finish().field("attribute-value")?;
        Ok(Assertion { attribute_type, value })
    }

    fn write(&self, w: &mut Writer, n: u32) {
        explicit(w, n, |w| {
            w.constructed(u::SEQUENCE, |w| {
                w.oid(u::OID, &self.attribute_type);
                self.value.write(w);
            });
        });
    }
}

impl FilterItem {
    /// The attribute type that the item is about.
    pub fn attribute_type(&self) -> &Oid {
        match self {
            FilterItem::Equality(assertion)
            | FilterItem::GreaterOrEqual(assertion)
            | FilterItem::LessOrEqual(assertion)
            | FilterItem::Approximate(assertion) => &assertion.attribute_type,
            FilterItem::Substrings { attribute_type, .. }
            | FilterItem::Present(attribute_type)
            | FilterItem::Other { attribute_type, .. } => attribute_type,
        }
    }

    /// Reads the CHOICE.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<FilterItem, Error> {
        match tag_number(e) {
            Some(0) => Assertion::read(e).map(FilterItem::Equality).field("equality"),
            Some(1) => read_substrings(e).field("substrings"),
            Some(2) => Assertion::read(e).map(FilterItem::GreaterOrEqual).field("greater-or-equal"),
            Some(3) => Assertion::read(e).map(FilterItem::LessOrEqual).field("less-or-equal"),
            Some(4) => wire::oid(e).map(FilterItem::Present).field("present"),
            Some(5) => Assertion::read(e).map(FilterItem::Approximate).field("approximate-match"),
            Some(6) => read_other(e).field("other-match"),
            _ => Err(Fault::Unexpected(e.tag)).field("filter-item"),
        }
    }

    /// Appends the CHOICE.
    pub fn write(&self, w: &mut Writer) {
        match self {
            FilterItem::Equality(assertion) => assertion.write(w, 0),
            FilterItem::Substrings { attribute_type, strings } => {
                w.constructed(SUBSTRINGS, |w| {
                    w.constructed(u::SEQUENCE, |w| {
                        w.oid(u::OID, attribute_type);
                        w.constructed(u::SEQUENCE, |w| strings.iter().for_each(|s| s.write(w)));
                    });
                });
            }
            FilterItem::GreaterOrEqual(assertion) => assertion.write(w, 2),
            FilterItem::LessOrEqual(assertion) => assertion.write(w, 3),
            FilterItem::Present(attribute_type) => wire::write_oid(w, 4, attribute_type),
            FilterItem::Approximate(assertion) => assertion.write(w, 5),
            FilterItem::Other { matching_rule, attribute_type, value } => {
                explicit(w, 6, |w| {
                    w.constructed(u::SEQUENCE, |w| {
                        wire::write_oid(w, 0, matching_rule);
                        wire::write_oid(w, 1, attribute_type);
                        explicit(w, 2, |w| value.write(w));
                    });
                });
            }
        }
    }
}

fn read_substrings(e: &Element<'_>) -> Result<FilterItem, Error> {
    let mut members = wire::inner(e, u::SEQUENCE)?.children()?;
    let attribute_type = members.require(u::OID)?.oid()?;
    let strings = members.require(u::SEQUENCE)?;
    let strings = p1::wire::list(&strings, MAX_SUBSTRINGS, Substring::read)?;
    members.finish()?;
    Ok(FilterItem::Substrings { attribute_type, strings })
}

fn read_other(e: &Element<'_>) -> Result<FilterItem, Error> {
    let mut members = wire::inner(e, u::SEQUENCE)?.children()?;
    let matching_rule = wire::oid(&members.require(Tag::context(0))?)?;
    let attribute_type = wire::oid(&members.require(Tag::context(1))?)?;
    let value = Value::keep_inner(&members.require(Tag::context(2))?)?;
    members.finish()?;
    Ok(FilterItem::Other { matching_rule, attribute_type, value })
}

impl Substring {
    /// The string.
    pub fn value(&self) -> &Value {
        match self {
            Substring::Initial(value) | Substring::Any(value) | Substring::Final(value) => value,
        }
    }

    fn read(e: &Element<'_>) -> Result<Substring, Error> {
        require(e, Tag::context(e.tag.number))?;
        let value = Value::keep_inner(e)?;
        match e.tag.number {
            0 => Ok(Substring::Initial(value)),
            1 => Ok(Substring::Any(value)),
            2 => Ok(Substring::Final(value)),
            _ => Err(Fault::Unexpected(e.tag).into()),
        }
    }

    fn write(&self, w: &mut Writer) {
        let number = match self {
            Substring::Initial(_) => 0,
            Substring::Any(_) => 1,
            Substring::Final(_) => 2,
        };
        explicit(w, number, |w| self.value().write(w));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(octets: &[u8]) -> Result<Filter, Error> {
        Filter::read(&Element::parse(octets)?)
    }

    fn written(filter: &Filter) -> Vec<u8> {
        let mut w = Writer::new();
        filter.write(&mut w);
        w.into_vec()
    }

    #[test]
    fn every_tag_is_explicit() {
        // and { equality entry-type (2.6.4.3.16) 0, not { present 2.6.4.3.1 } }
        let octets = [
            0xa1, 0x1d, 0x31, 0x1b, 0xa0, 0x0d, 0xa0, 0x0b, 0x30, 9, 6, 4, 0x56, 4, 3, 16, 2, 1, 0,
            0xa3, 0x0a, 0xa0, 8, 0xa4, 6, 6, 4, 0x56, 4, 3, 1,
        ];
        let filter = read(&octets).unwrap();
        let entry_type: Oid = "2.6.4.3.16".parse().unwrap();
        let content: Oid = "2.6.4.3.1".parse().unwrap();
        let present = Filter::Item(FilterItem::Present(content));
        let equality = Filter::equality(entry_type, Value::from_integer(0));
        assert_eq!(filter, Filter::And(vec![equality, Filter::Not(Box::new(present))]));
        assert_eq!(written(&filter), octets);
    }

    #[test]
    fn substrings_have_values_of_the_attributes_type() {
        // subject (2.6.1.7.4): initial "AB", final "Z", TeletexStrings
        let octets = [
            0xa0, 0x19, 0xa1, 0x17, 0x30, 0x15, 6, 4, 0x56, 1, 7, 4, 0x30, 0x0d, 0xa0, 4, 20, 2,
            b'A', b'B', 0xa2, 5, 0x34, 3, 20, 1, b'Z',
        ];
        let filter = read(&octets).unwrap();
        let Filter::Item(FilterItem::Substrings { strings, .. }) = &filter else { panic!() };
        let texts: Vec<_> = strings.iter().map(|s| s.value().text().unwrap()).collect();
        assert_eq!(texts, ["AB", "Z"]);
        assert_eq!(written(&filter), octets);
    }

    #[test]
    fn depth_and_size_have_limits() {
        let present = Filter::Item(FilterItem::Present("2.6.4.3.1".parse().unwrap()));
        let nested = |depth: usize| {
            (1..depth).fold(present.clone(), |filter, _| Filter::Not(Box::new(filter)))
        };
        let deepest = nested(MAX_FILTER_DEPTH);
        assert_eq!(read(&written(&deepest)), Ok(deepest));
        let error = read(&written(&nested(MAX_FILTER_DEPTH + 1))).unwrap_err();
        assert_eq!(error.fault, Fault::TooDeep(MAX_FILTER_DEPTH));
        assert_eq!(error.field, Some("filter"));
        let many = |count| Filter::Or(vec![present.clone(); count]);
        assert!(read(&written(&many(MAX_FILTERS - 1))).is_ok());
        let error = read(&written(&many(MAX_FILTERS))).unwrap_err();
        assert_eq!(error.fault, Fault::TooMany(MAX_FILTERS as u64));
    }
}
