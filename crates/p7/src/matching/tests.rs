//! Filters over small entries.

use super::*;
use crate::attributes as a;
use crate::entry::{EntryType, RetrievalStatus, SequenceNumber};
use base::ber::universal as u;
use base::{Precedence, Utc};
use p1::Priority;

fn entry() -> Vec<Attribute> {
    vec![
        a::sequence_number(SequenceNumber(7)),
        a::retrieval_status(RetrievalStatus::LISTED),
        a::entry_type(EntryType::DELIVERED_MESSAGE),
        a::creation_time(Utc(1_000_000_000_000_000)),
        a::priority(Priority::Normal),
        a::subject("Movement  Order Seven"),
        a::primary_precedence(Precedence::Flash),
        a::content_type(&p1::ContentType::P22).unwrap(),
    ]
}

fn assertion(kind: a::AttributeType, value: Value) -> Assertion {
    Assertion { attribute_type: kind.oid(), value }
}

fn eq(kind: a::AttributeType, value: Value) -> Filter {
    Filter::equality(kind.oid(), value)
}

fn ge(kind: a::AttributeType, value: Value) -> Filter {
    Filter::Item(FilterItem::GreaterOrEqual(assertion(kind, value)))
}

fn le(kind: a::AttributeType, value: Value) -> Filter {
    Filter::Item(FilterItem::LessOrEqual(assertion(kind, value)))
}

fn truth(filter: &Filter) -> Truth {
    evaluate(filter, &entry()).unwrap()
}

fn problem(filter: &Filter) -> AttributeProblem {
    evaluate(filter, &entry()).unwrap_err().problem
}

fn not(filter: Filter) -> Filter {
    Filter::Not(Box::new(filter))
}

/// An item about a value that cannot be compared.
fn undefined() -> (Filter, EntryInformation) {
    let bad = Value::from_octets(&b"\x17\x01x"[..]).unwrap();
    let attributes = vec![a::CREATION_TIME.single(bad), a::sequence_number(SequenceNumber(1))];
    let filter = eq(a::CREATION_TIME, Value::from_utc(Utc(0)));
    (filter, EntryInformation { attributes, ..Default::default() })
}

#[test]
fn numbers_and_times_are_equal_and_ordered() {
    let number = Value::from_integer;
    assert_eq!(truth(&eq(a::SEQUENCE_NUMBER, number(7))), Truth::True);
    assert_eq!(truth(&eq(a::SEQUENCE_NUMBER, number(8))), Truth::False);
    assert_eq!(truth(&ge(a::SEQUENCE_NUMBER, number(7))), Truth::True);
    assert_eq!(truth(&ge(a::SEQUENCE_NUMBER, number(8))), Truth::False);
    assert_eq!(truth(&le(a::SEQUENCE_NUMBER, number(6))), Truth::False);
    // A filter for Flash and above.
    assert_eq!(truth(&ge(a::PRIMARY_PRECEDENCE, number(4))), Truth::True);
    assert_eq!(truth(&ge(a::PRIMARY_PRECEDENCE, number(5))), Truth::False);
    let at = |seconds: u64| Value::from_utc(Utc(seconds * 1_000_000));
    assert_eq!(truth(&ge(a::CREATION_TIME, at(999_999_999))), Truth::True);
    assert_eq!(truth(&le(a::CREATION_TIME, at(999_999_999))), Truth::False);
}

#[test]
fn identifiers_and_priorities_are_equal_and_not_ordered() {
    let p22 = Value::from_oid(&"2.6.1.10.1".parse().unwrap());
    assert_eq!(truth(&eq(a::CONTENT_TYPE, p22.clone())), Truth::True);
    assert_eq!(problem(&ge(a::CONTENT_TYPE, p22)), AttributeProblem::INAPPROPRIATE_MATCHING);
    let normal = Value::from_octets(&[0x47, 1, 0][..]).unwrap();
    assert_eq!(truth(&eq(a::PRIORITY, normal.clone())), Truth::True);
    assert_eq!(problem(&le(a::PRIORITY, normal)), AttributeProblem::INAPPROPRIATE_MATCHING);
}

#[test]
fn strings_ignore_case_repeated_spaces_and_their_type() {
    let subject = |text: &str| Value::from_text(u::PRINTABLE_STRING, text);
    assert_eq!(truth(&eq(a::SUBJECT, subject(" movement order   seven "))), Truth::True);
    assert_eq!(truth(&eq(a::SUBJECT, subject("movement order"))), Truth::False);
    assert_eq!(truth(&ge(a::SUBJECT, subject("LOG"))), Truth::True);
    let item = |strings: Vec<Substring>| {
        Filter::Item(FilterItem::Substrings { attribute_type: a::SUBJECT.oid(), strings })
    };
    let (initial, any, end) = (
        |t: &str| Substring::Initial(Value::from_text(u::TELETEX_STRING, t)),
        |t: &str| Substring::Any(Value::from_text(u::TELETEX_STRING, t)),
        |t: &str| Substring::Final(Value::from_text(u::TELETEX_STRING, t)),
    );
    let cases = [
        (vec![initial("move")], Truth::True),
        (vec![initial("ment")], Truth::False),
        (vec![any("ORDER"), end("even")], Truth::True),
        (vec![any("t order"), any("seven")], Truth::True),
        (vec![any("seven"), any("order")], Truth::False),
        // They do not overlap.
        (vec![any("order"), any("der")], Truth::False),
        (vec![initial("movement order seven"), end("seven")], Truth::False),
        (vec![], Truth::True),
        (vec![any("order"), initial("move")], Truth::Undefined),
        (vec![end("seven"), any("x")], Truth::Undefined),
    ];
    for (strings, expected) in cases {
        assert_eq!(truth(&item(strings.clone())), expected, "{strings:?}");
    }
}

#[test]
fn comparisons_that_a_type_does_not_have_are_refused() {
    let strings = vec![Substring::Any(Value::from_text(u::IA5_STRING, "1"))];
    let item =
        Filter::Item(FilterItem::Substrings { attribute_type: a::SEQUENCE_NUMBER.oid(), strings });
    assert_eq!(problem(&item), AttributeProblem::INAPPROPRIATE_MATCHING);
    let strings = vec![Substring::Any(Value::from_integer(1))];
    let item = Filter::Item(FilterItem::Substrings { attribute_type: a::SUBJECT.oid(), strings });
    assert_eq!(problem(&item), AttributeProblem::INAPPROPRIATE_MATCHING);
    let other = Filter::Item(FilterItem::Other {
        matching_rule: "2.6.4.12.1".parse().unwrap(),
        attribute_type: a::SUBJECT.oid(),
        value: Value::from_integer(1),
    });
    assert_eq!(problem(&other), AttributeProblem::INAPPROPRIATE_MATCHING);
    let wrong = eq(a::SEQUENCE_NUMBER, Value::from_text(u::IA5_STRING, "7"));
    assert_eq!(problem(&wrong), AttributeProblem::INVALID_ATTRIBUTE_VALUE);
    // Whatever the other parts are, and whether or not the entry has the attribute.
    let never = Filter::And(vec![Filter::Or(vec![]), wrong]);
    assert_eq!(problem(&never), AttributeProblem::INVALID_ATTRIBUTE_VALUE);
    let absent = ge(a::CONTENT, Value::from_octet_string(b"x"));
    assert_eq!(problem(&absent), AttributeProblem::INAPPROPRIATE_MATCHING);
}

#[test]
fn a_type_that_the_store_does_not_have_is_refused() {
    struct Nothing;
    impl AttributeLookup for Nothing {
        fn find(&self, _: &Oid) -> Found<'_> {
            Found::Unavailable
        }
    }
    let filter = Filter::Item(FilterItem::Present(a::SUBJECT.oid()));
    let error = matches(&filter, &Nothing).unwrap_err();
    assert_eq!(error.problem, AttributeProblem::UNAVAILABLE_ATTRIBUTE_TYPE);
    assert_eq!(error.attribute_type, a::SUBJECT.oid());
}

#[test]
fn an_absent_attribute_is_false_and_its_negation_true() {
    let absent = eq(a::CONTENT_LENGTH, Value::from_integer(5));
    assert_eq!(truth(&absent), Truth::False);
    assert_eq!(truth(&not(absent)), Truth::True);
    assert_eq!(truth(&Filter::Item(FilterItem::Present(a::CONTENT_LENGTH.oid()))), Truth::False);
    assert_eq!(truth(&Filter::Item(FilterItem::Present(a::SUBJECT.oid()))), Truth::True);
}

#[test]
fn undefined_is_neither_true_nor_false() {
    let (unknown, entry) = undefined();
    let yes = eq(a::SEQUENCE_NUMBER, Value::from_integer(1));
    let no = eq(a::SEQUENCE_NUMBER, Value::from_integer(2));
    let value = |filter: Filter| evaluate(&filter, &entry).unwrap();
    let pair = |a: &Filter, b: &Filter| vec![a.clone(), b.clone()];
    assert_eq!(value(unknown.clone()), Truth::Undefined);
    assert_eq!(value(not(unknown.clone())), Truth::Undefined);
    assert_eq!(matches(&unknown, &entry), Ok(false));
    assert_eq!(matches(&not(unknown.clone()), &entry), Ok(false));
    assert_eq!(value(Filter::And(pair(&unknown, &no))), Truth::False);
    assert_eq!(value(Filter::And(pair(&unknown, &yes))), Truth::Undefined);
    assert_eq!(value(Filter::Or(pair(&unknown, &no))), Truth::Undefined);
    assert_eq!(value(Filter::Or(pair(&unknown, &yes))), Truth::True);
    assert_eq!(value(Filter::And(vec![])), Truth::True);
    assert_eq!(value(Filter::Or(vec![])), Truth::False);
}
