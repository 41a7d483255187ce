//! Selector and selection: which entries, and which of their attributes (X.413 8.1).

use crate::entry::SequenceNumber;
use crate::filter::Filter;
use crate::limits::MAX_ATTRIBUTES;
use crate::wire::{self, explicit, require};
use base::ber::{Element, Error, Fault, Field, Member, Oid, Tag, Writer, read_set, universal as u};
use p1::Time;

/// Range. An absent end does not bound it; both ends are in the range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// sequence-number-range, 0.
    SequenceNumber {
        /// from.
        from: Option<SequenceNumber>,
        /// to.
        to: Option<SequenceNumber>,
    },
    /// creation-time-range, 1.
    CreationTime {
        /// from.
        from: Option<Time>,
        /// to.
        to: Option<Time>,
    },
}

/// OverrideRestrictions: which fetch-restrictions of the bind this operation does not apply. Bit `n`
/// of the BIT STRING is `1 << n` here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OverrideRestrictions(pub u32);

impl OverrideRestrictions {
    /// override-content-types-restriction.
    pub const CONTENT_TYPES: OverrideRestrictions = OverrideRestrictions(1);
    /// override-EITs-restriction.
    pub const EITS: OverrideRestrictions = OverrideRestrictions(1 << 1);
    /// override-attribute-length-restriction.
    pub const ATTRIBUTE_LENGTH: OverrideRestrictions = OverrideRestrictions(1 << 2);

    /// Whether every bit of `other` is set.
    pub fn contains(self, other: OverrideRestrictions) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Selector: the default takes all main entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// child-entries: child entries too, not only main entries.
    pub child_entries: bool,
    /// range.
    pub range: Option<Range>,
    /// filter.
    pub filter: Option<Filter>,
    /// limit: entries at most, 1 or more.
    pub limit: Option<i64>,
    /// override.
    pub override_restrictions: Option<OverrideRestrictions>,
}

const FROM: Tag = Tag::context(0);
const TO: Tag = Tag::context(1);
const NUMBERS: Tag = Tag::context(0);
const TIMES: Tag = Tag::context(1);
const CHILD_ENTRIES: Tag = Tag::context(0);
const RANGE: Tag = Tag::context(1);
const FILTER: Tag = Tag::context(2);
const LIMIT: Tag = Tag::context(3);
const OVERRIDE: Tag = Tag::context(4);

/// The two ends of either range: `[n]` around a SEQUENCE.
fn read_ends<T>(
    e: &Element<'_>,
    read: impl Fn(&Element<'_>) -> Result<T, Error>,
) -> Result<(Option<T>, Option<T>), Error> {
    let mut members = wire::inner(e, u::SEQUENCE)?.children()?;
    let from = members.optional(FROM).and_then(|e| e.map(|e| read(&e)).transpose());
    let from = from.field("from")?;
    let to = members.optional(TO).and_then(|e| e.map(|e| read(&e)).transpose()).field("to")?;
    members.finish()?;
    Ok((from, to))
}

impl Range {
    /// Reads the CHOICE.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<Range, Error> {
        match e.tag {
            NUMBERS => {
                let ends = read_ends(e, SequenceNumber::read_inner);
                let (from, to) = ends.field("sequence-number-range")?;
                Ok(Range::SequenceNumber { from, to })
            }
            TIMES => {
                let (from, to) = read_ends(e, wire::time).field("creation-time-range")?;
                Ok(Range::CreationTime { from, to })
            }
            other => Err(Fault::Unexpected(other)).field("range"),
        }
    }

    /// Appends the CHOICE.
    pub fn write(&self, w: &mut Writer) {
        match self {
            Range::SequenceNumber { from, to } => explicit(w, 0, |w| {
                w.constructed(u::SEQUENCE, |w| {
                    SequenceNumber::write_option(*from, w, 0);
                    SequenceNumber::write_option(*to, w, 1);
                });
            }),
            Range::CreationTime { from, to } => explicit(w, 1, |w| {
                w.constructed(u::SEQUENCE, |w| {
                    for (n, time) in (0..).zip([from, to]) {
                        if let Some(time) = time {
                            explicit(w, n, |w| time.write_as(w, u::UTC_TIME));
                        }
                    }
                });
            }),
        }
    }

    /// Whether the ends are in reverse order: the range-error of 1988. A time that is not of the
    /// calendar is not in any order.
    pub fn is_reversed(&self) -> bool {
        match self {
            Range::SequenceNumber { from: Some(from), to: Some(to) } => from > to,
            Range::CreationTime { from: Some(from), to: Some(to) } => match (from.utc, to.utc) {
                (Some(from), Some(to)) => from > to,
                _ => false,
            },
            _ => false,
        }
    }
}

impl Selector {
    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER; the field is named.
    pub fn read(e: &Element<'_>) -> Result<Selector, Error> {
        let mut children = Member::new("child-entries");
        let (mut range, mut filter) = (Member::new("range"), Member::new("filter"));
        let (mut limit, mut overriding) = (Member::new("limit"), Member::new("override"));
        let members = read_set(require(e, u::SET).field("selector")?, |m| match m.tag {
            CHILD_ENTRIES => children.once(m, wire::boolean),
            RANGE => range.once(m, |m| Range::read(&m.only_child()?)),
            FILTER => filter.once(m, |m| Filter::read(&m.only_child()?)),
            LIMIT => limit.once(m, wire::integer),
            OVERRIDE => overriding.once(m, |m| wire::bits(m).map(OverrideRestrictions)),
            _ => Ok(false),
        });
        members.field("selector")?;
        Ok(Selector {
            child_entries: children.or_default(),
            range: range.optional(),
            filter: filter.optional(),
            limit: limit.optional(),
            override_restrictions: overriding.optional(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            wire::write_boolean(w, 0, self.child_entries, false);
            if let Some(range) = &self.range {
                explicit(w, 1, |w| range.write(w));
            }
            if let Some(filter) = &self.filter {
                explicit(w, 2, |w| filter.write(w));
            }
            if let Some(limit) = self.limit {
                wire::write_integer(w, 3, limit);
            }
            if let Some(overriding) = self.override_restrictions {
                wire::write_bits(w, 4, overriding.0);
            }
        });
    }

    /// `[n] Selector`.
    pub(crate) fn read_inner(e: &Element<'_>) -> Result<Selector, Error> {
        Selector::read(&e.only_child()?)
    }
}

/// AttributeSelection: an attribute, or some of its values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttributeSelection {
    /// type.
    pub attribute_type: Oid,
    /// from: the first value, counted from 1.
    pub from: Option<i64>,
    /// count: values at most.
    pub count: Option<i64>,
}

impl AttributeSelection {
    /// All values of an attribute.
    pub fn new(attribute_type: Oid) -> AttributeSelection {
        AttributeSelection { attribute_type, from: None, count: None }
    }

    /// Reads the SET.
    ///
    /// # Errors
    /// Malformed BER, or no type; the field is named.
    pub fn read(e: &Element<'_>) -> Result<AttributeSelection, Error> {
        let mut attribute_type = Member::new("type");
        let (mut from, mut count) = (Member::new("from"), Member::new("count"));
        let members = read_set(require(e, u::SET).field("attribute-selection")?, |m| match m.tag {
            u::OID => attribute_type.once(m, Element::oid),
            FROM => from.once(m, wire::integer),
            TO => count.once(m, wire::integer),
            _ => Ok(false),
        });
        members.field("attribute-selection")?;
        Ok(AttributeSelection {
            attribute_type: attribute_type.required(u::OID)?,
            from: from.optional(),
            count: count.optional(),
        })
    }

    /// Appends the SET.
    pub fn write(&self, w: &mut Writer) {
        w.constructed(u::SET, |w| {
            w.oid(u::OID, &self.attribute_type);
            for (n, number) in (0..).zip([self.from, self.count]) {
                if let Some(number) = number {
                    wire::write_integer(w, n, number);
                }
            }
        });
    }
}

/// `[n] EntryInformationSelection`.
pub(crate) fn read_selection(e: &Element<'_>) -> Result<Vec<AttributeSelection>, Error> {
    wire::list(e, u::SET, MAX_ATTRIBUTES, AttributeSelection::read)
}

/// Writes `[n] EntryInformationSelection`; an empty one is not the same as none.
pub(crate) fn write_selection(w: &mut Writer, n: u32, all: Option<&Vec<AttributeSelection>>) {
    if let Some(all) = all {
        wire::write_list(w, n, u::SET, all, AttributeSelection::write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_has_explicit_members_in_any_order() {
        // limit 2; range of numbers from 3; child-entries TRUE; override attribute lengths; [9] unknown
        let octets = [
            0x31, 0x1d, 0xa3, 3, 2, 1, 2, 0xa1, 9, 0xa0, 7, 0x30, 5, 0xa0, 3, 2, 1, 3, 0xa0, 3, 1,
            1, 0xff, 0xa4, 4, 3, 2, 5, 0x20, 0x89, 0,
        ];
        let selector = Selector::read(&Element::parse(&octets[..]).unwrap()).unwrap();
        let range = Range::SequenceNumber { from: Some(SequenceNumber(3)), to: None };
        let expected = Selector {
            child_entries: true,
            range: Some(range),
            filter: None,
            limit: Some(2),
            override_restrictions: Some(OverrideRestrictions::ATTRIBUTE_LENGTH),
        };
        assert_eq!(selector, expected);
        let mut w = Writer::new();
        Selector::default().write(&mut w);
        assert_eq!(w.as_slice(), [0x31, 0]);
    }

    #[test]
    fn implicit_tags_are_refused_with_the_field() {
        let error = Selector::read(&Element::parse(&[0x31, 3, 0x83, 1, 2]).unwrap()).unwrap_err();
        assert_eq!(error.field, Some("limit"));
    }

    #[test]
    fn ends_can_be_in_reverse_order() {
        let number = |n| Some(SequenceNumber(n));
        assert!(Range::SequenceNumber { from: number(3), to: number(2) }.is_reversed());
        assert!(!Range::SequenceNumber { from: number(3), to: number(3) }.is_reversed());
        assert!(!Range::SequenceNumber { from: number(3), to: None }.is_reversed());
        let time = |seconds: u64| Some(Time::from(base::Utc(seconds * 1_000_000)));
        assert!(Range::CreationTime { from: time(2_000_000), to: time(1_000_000) }.is_reversed());
    }
}
