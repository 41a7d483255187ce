//! Which levels of precedence a filter can match at all.

use base::Precedence;
use base::ber::Oid;
use p7::attributes::PRIMARY_PRECEDENCE;
use p7::matching::{AttributeLookup, Found, Truth, evaluate};
use p7::{AttributeProblemItem, Filter, Value};
use std::borrow::Cow;

/// An item of which only the level is known.
struct Level([Value; 1]);

impl AttributeLookup for Level {
    fn find(&self, attribute_type: &Oid) -> Found<'_> {
        match PRIMARY_PRECEDENCE.is(attribute_type) {
            true => Found::Values(Cow::Borrowed(&self.0)),
            false => Found::Unavailable,
        }
    }
}

/// What a filter is for items of this level: undefined if that depends on the item. The recursion is as deep as the
/// filter, which a reader bounds.
pub(super) fn of_level(filter: &Filter, level: Precedence) -> Truth {
    let value = Value::from_integer(i64::from(level.number()));
    truth(filter, &Level([value]))
}

fn truth(filter: &Filter, level: &Level) -> Truth {
    match filter {
        // What is not about the level is not known, and neither is what is an error.
        Filter::Item(_) => evaluate(filter, level).unwrap_or(Truth::Undefined),
        Filter::And(all) => all.iter().map(|one| truth(one, level)).min().unwrap_or(Truth::True),
        Filter::Or(all) => all.iter().map(|one| truth(one, level)).max().unwrap_or(Truth::False),
        Filter::Not(one) => match truth(one, level) {
            Truth::True => Truth::False,
            Truth::False => Truth::True,
            Truth::Undefined => Truth::Undefined,
        },
    }
}

/// An item with none of the attributes that the store has.
struct Nothing;

impl AttributeLookup for Nothing {
    fn find(&self, attribute_type: &Oid) -> Found<'_> {
        match crate::attributes::available(attribute_type) {
            Some(_) => Found::Absent,
            None => Found::Unavailable,
        }
    }
}

/// Checks that a filter fits the attribute types, whatever the items are.
pub(crate) fn check(filter: &Filter) -> Result<(), AttributeProblemItem> {
    evaluate(filter, &Nothing).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p7::FilterItem;
    use p7::attributes as a;
    use p7::filter::Assertion;

    fn assertion(value: i64) -> Assertion {
        let attribute_type = PRIMARY_PRECEDENCE.oid();
        Assertion { attribute_type, value: Value::from_integer(value) }
    }

    fn levels(filter: &Filter) -> Vec<u8> {
        let all = Precedence::ALL.into_iter();
        let may_match = |level: &Precedence| of_level(filter, *level) != Truth::False;
        all.filter(may_match).map(Precedence::number).collect()
    }

    #[test]
    fn a_filter_of_levels_leaves_out_the_others() {
        let flash = Filter::Item(FilterItem::Equality(assertion(4)));
        let high = Filter::Item(FilterItem::GreaterOrEqual(assertion(3)));
        let subject = Filter::Item(FilterItem::Present(a::SUBJECT.oid()));
        let not = |filter: &Filter| Filter::Not(Box::new(filter.clone()));
        assert_eq!(levels(&flash), [4]);
        assert_eq!(levels(&high), [3, 4, 5]);
        assert_eq!(levels(&not(&flash)), [0, 1, 2, 3, 5]);
        assert_eq!(levels(&subject), [0, 1, 2, 3, 4, 5]);
        assert_eq!(levels(&not(&subject)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(levels(&Filter::And(vec![subject.clone(), flash.clone()])), [4]);
        assert_eq!(levels(&Filter::Or(vec![subject, flash.clone()])), [0, 1, 2, 3, 4, 5]);
        assert_eq!(levels(&Filter::And(vec![high, not(&flash)])), [3, 5]);
        assert_eq!(levels(&Filter::Or(vec![])), [0; 0]);
    }

    #[test]
    fn a_filter_is_checked_before_any_item() {
        let unknown = Filter::Item(FilterItem::Present(a::MESSAGE_NOTES.oid()));
        assert!(check(&unknown).is_err());
        let wrong = Assertion { value: Value::from_boolean(true), ..assertion(0) };
        assert!(check(&Filter::Item(FilterItem::Equality(wrong))).is_err());
        assert_eq!(check(&Filter::Item(FilterItem::Equality(assertion(4)))), Ok(()));
    }
}
