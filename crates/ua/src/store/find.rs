//! Which entries of a mailbox: what a P7 filter can express, in the words of a user.

use super::{Kind, Status};
use base::ber::universal as u;
use base::{Precedence, Utc};
use p1::names::{MtsIdentifier, ORName};
use p7::attributes::{self as a, AttributeType};
use p7::filter::{Assertion, Substring};
use p7::{Filter, FilterItem, Value};

/// Conditions that an entry fulfils, all of them; the default is none, which every entry fulfils.
///
/// A store compares text without regard to case. It cannot search in an originator's name, only compare it whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Find(Vec<Filter>);

impl Find {
    /// Every entry.
    pub fn new() -> Find {
        Find::default()
    }

    /// Those that fulfil this too.
    #[must_use]
    pub fn and(mut self, filter: Filter) -> Find {
        self.0.push(filter);
        self
    }

    /// Those of one of these precedences.
    #[must_use]
    pub fn precedences(self, any: &[Precedence]) -> Find {
        let equal = |precedence: &Precedence| equality(&a::PRIMARY_PRECEDENCE, level(*precedence));
        match any {
            [one] => self.and(equal(one)),
            _ => self.and(Filter::Or(any.iter().map(equal).collect())),
        }
    }

    /// Those of this precedence or a higher one.
    #[must_use]
    pub fn at_least(self, precedence: Precedence) -> Find {
        let least = assertion(&a::PRIMARY_PRECEDENCE, level(precedence));
        self.and(Filter::Item(FilterItem::GreaterOrEqual(least)))
    }

    /// Those without a precedence.
    #[must_use]
    pub fn without_precedence(self) -> Find {
        let present = Filter::Item(FilterItem::Present(a::PRIMARY_PRECEDENCE.oid()));
        self.and(Filter::Not(Box::new(present)))
    }

    /// Those with this status.
    #[must_use]
    pub fn status(self, status: Status) -> Find {
        let number = match status {
            Status::New => 0,
            Status::Listed => 1,
            Status::Processed => 2,
            Status::Other(number) => number,
        };
        self.and(equality(&a::RETRIEVAL_STATUS, Value::from_integer(number)))
    }

    /// Messages only, or reports only.
    #[must_use]
    pub fn kind(self, kind: Kind) -> Find {
        let number = match kind {
            Kind::Message => 0,
            Kind::Report => 1,
            Kind::Other(number) => number,
        };
        self.and(equality(&a::ENTRY_TYPE, Value::from_integer(number)))
    }

    /// Those of this originator: the whole name.
    #[must_use]
    pub fn originator(self, name: &ORName) -> Find {
        self.and(equality(&a::ORIGINATOR_NAME, Value::from_or_name(name)))
    }

    /// Those whose subject has this text in it.
    #[must_use]
    pub fn subject(self, text: &str) -> Find {
        let any = Substring::Any(Value::from_text(u::TELETEX_STRING, text));
        let attribute_type = a::SUBJECT.oid();
        self.and(Filter::Item(FilterItem::Substrings { attribute_type, strings: vec![any] }))
    }

    /// Those with this subject indicator code.
    #[must_use]
    pub fn sic(self, code: &str) -> Find {
        self.and(equality(&a::SUBJECT_INDICATOR_CODE, Value::from_text(u::PRINTABLE_STRING, code)))
    }

    /// Those that came into the mailbox at this time or later; to the second.
    #[must_use]
    pub fn since(self, time: Utc) -> Find {
        let least = assertion(&a::CREATION_TIME, Value::from_utc(time));
        self.and(Filter::Item(FilterItem::GreaterOrEqual(least)))
    }

    /// The message with this MTS identifier, and not the reports about it.
    #[must_use]
    pub fn identifier(self, identifier: &MtsIdentifier) -> Find {
        let value = Value::new(|w| identifier.write(w));
        match value {
            Ok(value) => self.and(equality(&a::MESSAGE_IDENTIFIER, value)),
            // One element by construction: never.
            Err(_) => self.and(Filter::Or(Vec::new())),
        }
    }

    /// The reports about the message with this MTS identifier.
    #[must_use]
    pub fn reports_about(self, identifier: &MtsIdentifier) -> Find {
        let value = Value::new(|w| identifier.write(w));
        match value {
            Ok(value) => self.and(equality(&a::SUBJECT_SUBMISSION_IDENTIFIER, value)),
            Err(_) => self.and(Filter::Or(Vec::new())),
        }
    }

    /// The filter; `None` for every entry.
    pub fn filter(&self) -> Option<Filter> {
        match self.0.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            all => Some(Filter::And(all.to_vec())),
        }
    }
}

fn level(precedence: Precedence) -> Value {
    Value::from_integer(i64::from(precedence.number()))
}

fn assertion(kind: &AttributeType, value: Value) -> Assertion {
    Assertion { attribute_type: kind.oid(), value }
}

fn equality(kind: &AttributeType, value: Value) -> Filter {
    Filter::equality(kind.oid(), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p7::EntryInformation;
    use p7::matching::matches;

    fn entry(subject: &str, precedence: Precedence) -> EntryInformation {
        let attributes = vec![a::subject(subject), a::primary_precedence(precedence)];
        EntryInformation { attributes, ..Default::default() }
    }

    fn finds(find: &Find, entry: &EntryInformation) -> bool {
        find.filter().is_none_or(|filter| matches(&filter, entry).unwrap())
    }

    #[test]
    fn conditions_are_all_fulfilled() {
        let flash = entry("Fire in the harbour", Precedence::Flash);
        let routine = entry("Fire drill", Precedence::Routine);
        let found = |find: &Find| (finds(find, &flash), finds(find, &routine));
        assert_eq!(found(&Find::new()), (true, true));
        assert_eq!(found(&Find::new().at_least(Precedence::Immediate)), (true, false));
        assert_eq!(found(&Find::new().precedences(&[Precedence::Routine])), (false, true));
        let both = [Precedence::Routine, Precedence::Flash];
        assert_eq!(found(&Find::new().precedences(&both)), (true, true));
        assert_eq!(found(&Find::new().precedences(&[])), (false, false));
        assert_eq!(found(&Find::new().subject("FIRE")), (true, true));
        let find = Find::new().subject("fire").at_least(Precedence::Flash);
        assert_eq!(found(&find), (true, false));
        assert_eq!(found(&Find::new().without_precedence()), (false, false));
        assert_eq!(found(&Find::new().sic("ABC")), (false, false));
    }
}
