//! Octets written by hand from the module of X.413 (1999), not by our own encoder. No implementation
//! was at hand to capture them from.

#![expect(clippy::unwrap_used, reason = "a test")]

use base::ber::{Element, Error, Fault, Oid, Tag, Writer, universal as u};
use p1::Credentials;
use p7::auto_action::AutoActionKind;
use p7::error::{
    AttributeProblem, DeleteProblem, FetchRestriction, SequenceNumberProblem, ServiceProblem,
};
use p7::limits::{MAX_ATTRIBUTES, MAX_FILTER_DEPTH, MAX_SEQUENCE_NUMBERS};
use p7::operation::*;
use p7::{
    AttributeSelection, BindProblem, EntryClass, Filter, FilterItem, MsBindArgument, MsBindError,
    MsBindResult, MsError, Range, Selector, SequenceNumber, attributes,
};

/// Octets of hexadecimal digits; spaces are for the reader.
fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|p| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap()).collect()
}

fn read<T>(text: &str, read: fn(&Element<'_>) -> Result<T, Error>) -> Result<T, Error> {
    read(&Element::parse(&hex(text))?)
}

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec()
}

fn oid(text: &str) -> Oid {
    text.parse().unwrap()
}

#[test]
fn fetch_of_the_content_of_entry_5() {
    let octets = "31 11 A2 03 02 01 05 A3 0A 31 08 31 06 06 04 56 04 03 01";
    let fetch = read(octets, FetchArgument::read).unwrap();
    let content = AttributeSelection::new(attributes::CONTENT.oid());
    assert_eq!(fetch, FetchArgument::precise(SequenceNumber(5), vec![content]));
    assert_eq!(written(|w| fetch.write(w)), hex(octets));
}

#[test]
fn list_of_what_is_new_with_subject_and_precedence() {
    // Its requested-attributes are [3]; [2] is not used.
    let octets = "31 37
        A1 18 31 16
          A2 0F A0 0D A0 0B 30 09 06 04 56 04 03 0F 02 01 00
          A3 03 02 01 64
        A3 1B 31 19
          31 06 06 04 56 01 07 04
          31 0F 06 08 2B 1A 00 A2 36 00 03 00 A0 03 02 01 01";
    let list = read(octets, ListArgument::read).unwrap();
    assert_eq!(list.entry_class, EntryClass::DELIVERY);
    assert_eq!(list.selector.limit, Some(100));
    let Some(Filter::Item(FilterItem::Equality(status))) = &list.selector.filter else { panic!() };
    assert_eq!(status.attribute_type, attributes::RETRIEVAL_STATUS.oid());
    assert_eq!(status.value.integer(), Ok(0));
    let precedence = AttributeSelection {
        attribute_type: attributes::PRIMARY_PRECEDENCE.oid(),
        from: Some(1),
        count: None,
    };
    let subject = AttributeSelection::new(attributes::SUBJECT.oid());
    assert_eq!(list.requested_attributes, Some(vec![subject, precedence]));
    assert_eq!(written(|w| list.write(w)), hex(octets));
}

#[test]
fn a_list_result_in_indefinite_lengths() {
    // One entry with entry-type; next 9; the members in another order than ours.
    let result = read(
        "31 80
           A1 80 30 80
             30 80 02 01 07 31 80 30 80 06 04 56 04 03 10 30 80 02 01 01 00 00 00 00 00 00 00 00
           00 00 00 00
           A0 03 02 01 09
         00 00",
        ListResult::read,
    )
    .unwrap();
    assert_eq!(result.next, Some(SequenceNumber(9)));
    let entry = &result.requested[0];
    assert_eq!(entry.sequence_number, SequenceNumber(7));
    let kind = entry.attribute(&attributes::ENTRY_TYPE.oid()).unwrap();
    assert_eq!(kind.values[0].integer(), Ok(1));
    let octets = "31 1D A0 03 02 01 09
        A1 16 30 14 30 12 02 01 07 31 0D 30 0B 06 04 56 04 03 10 30 03 02 01 01";
    assert_eq!(written(|w| result.write(w)), hex(octets));
}

#[test]
fn delete_takes_a_set_of_numbers_and_answers_null_in_1988() {
    let octets = "31 0A A2 08 31 06 02 01 05 02 01 07";
    let delete = read(octets, DeleteArgument::read).unwrap();
    assert_eq!(delete, DeleteArgument::new(vec![SequenceNumber(5), SequenceNumber(7)]));
    assert_eq!(written(|w| delete.write(w)), hex(octets));
    assert_eq!(read("05 00", DeleteResult::read), Ok(DeleteResult::Of1988));
    let result = read("31 07 A0 05 30 03 02 01 05", DeleteResult::read).unwrap();
    let expected =
        DeleteResult::Of1994 { entries_deleted: vec![SequenceNumber(5)], extensions: vec![] };
    assert_eq!(result, expected);
}

#[test]
fn a_summary_counts_entries_by_value() {
    // 3 entries, 5 to 9; by retrieval-status: 1 absent, 2 new.
    let octets = "31 30
        A1 03 02 01 03
        A2 0C 30 0A A0 03 02 01 05 A1 03 02 01 09
        A3 1B 30 19 31 17
          A0 03 02 01 01
          A1 10 31 0E 30 0C 06 04 56 04 03 0F 02 01 00 02 01 02";
    let result = read(octets, SummarizeResult::read).unwrap();
    let span = Span { lowest: SequenceNumber(5), highest: SequenceNumber(9) };
    assert_eq!((result.count, result.span), (3, Some(span)));
    assert_eq!(result.summaries[0].absent, Some(1));
    let new = &result.summaries[0].present[0];
    assert_eq!(new.attribute_type, attributes::RETRIEVAL_STATUS.oid());
    assert_eq!((new.value.integer(), new.count), (Ok(0), 2));
    assert_eq!(written(|w| result.write(w)), hex(octets));
}

#[test]
fn summarize_of_a_range_of_times() {
    let octets = "31 25
        A1 19 31 17 A1 15 A1 13 30 11 A0 0F 17 0D 32 36 30 31 30 31 30 30 30 30 30 30 5A
        A2 08 30 06 06 04 56 04 03 10";
    let summarize = read(octets, SummarizeArgument::read).unwrap();
    let Some(Range::CreationTime { from: Some(from), to: None }) = &summarize.selector.range else {
        panic!()
    };
    assert_eq!(from.utc.unwrap().to_utc_time(), "260101000000Z");
    assert_eq!(summarize.summary_requests, [attributes::ENTRY_TYPE.oid()]);
    assert_eq!(written(|w| summarize.write(w)), hex(octets));
}

#[test]
fn register_ms_of_an_auto_alert_and_of_credentials() {
    let octets = "31 38
        A0 20 31 1E 30 1C 06 04 56 04 04 01 A1 14 31 12
          A0 10 A0 0E A2 0C 30 0A 06 04 56 04 03 27 02 02 01 00
        A4 14 30 12 A0 07 16 05 6669727374 A1 07 04 05 6F74686572";
    let register = read(octets, RegisterMsArgument::read).unwrap();
    let action = &register.auto_action_registrations[0];
    assert_eq!(action.auto_action_type, AutoActionKind::AutoAlert.oid());
    assert_eq!(action.identifier, 1);
    assert!(!register.is_of_1994());
    let change = register.change_credentials.as_ref().unwrap();
    let Credentials::Simple(old) = &change.old else { panic!() };
    let Credentials::Simple(new) = &change.new else { panic!() };
    assert!(old.matches(b"first") && new.matches(b"other"));
    assert!(!format!("{register:?}").contains("first"));
    assert_eq!(written(|w| register.write(w)), hex(octets));
    let result = RegisterMsResult::read(&Element::parse(&EMPTY_RESULT).unwrap());
    assert_eq!(result, Ok(RegisterMsResult::NoStatusInformation));
}

#[test]
fn an_alert_has_its_entry_under_2() {
    let octets = "31 0C A0 03 02 01 01 A2 05 30 03 02 01 2A";
    let alert = read(octets, AlertArgument::read).unwrap();
    assert_eq!(alert.registration_identifier, 1);
    assert_eq!(alert.new_entry.as_ref().unwrap().sequence_number, SequenceNumber(42));
    assert_eq!(written(|w| alert.write(w)), hex(octets));
}

#[test]
fn modify_of_notes() {
    // specific-entries 4; strict; remove-attribute message-notes (2.6.4.3.58)
    let octets = "31 1A
        A2 05 30 03 02 01 04
        A3 11 30 0F 31 0D A0 03 01 01 FF A2 06 06 04 56 04 03 3A";
    let modify = read(octets, ModifyArgument::read).unwrap();
    assert_eq!(modify.entries, ModifiedEntries::Specific(vec![SequenceNumber(4)]));
    let removed = Modification::RemoveAttribute(attributes::MESSAGE_NOTES.oid());
    assert_eq!(modify.modifications[0], EntryModification { strict: true, modification: removed });
    assert_eq!(written(|w| modify.write(w)), hex(octets));
}

#[test]
fn a_bind_with_restrictions() {
    let octets = "31 48
        60 14 30 12 61 04 13 02 49 54 62 03 13 01 20 83 05 41 4C 50 48 41
        A2 08 16 06 73 65 63 72 65 74
        A4 21 31 1F
          A0 0E 31 0C 06 04 56 01 0A 01 06 04 56 01 0A 00
          A1 08 31 06 06 04 56 03 04 02
          A2 03 02 01 64
        A5 03 01 01 FF";
    let bind = read(octets, MsBindArgument::read).unwrap();
    assert!(bind.ms_configuration_request);
    let restrictions = bind.fetch_restrictions.clone().unwrap();
    assert_eq!(restrictions.allowed_content_types, [oid("2.6.1.10.1"), oid("2.6.1.10.0")]);
    assert_eq!(restrictions.allowed_eits, [oid("2.6.3.4.2")]);
    assert_eq!(restrictions.maximum_attribute_length, Some(100));
    assert_eq!(written(|w| bind.write(w)), hex(octets));
    // An empty identifier is not an EIT.
    let octets = "31 2A
        60 14 30 12 61 04 13 02 49 54 62 03 13 01 20 83 05 41 4C 50 48 41
        A2 08 16 06 73 65 63 72 65 74
        A4 08 31 06 A1 04 31 02 06 00";
    assert_eq!(read(octets, MsBindArgument::read).unwrap_err().field, Some("allowed-EITs"));
}

#[test]
fn bind_results_and_errors_of_both_editions() {
    // [9] is known, and explicit: a primitive one is refused.
    let error = read("31 08 A2 04 16 02 6F6B 89 00", MsBindResult::read).unwrap_err();
    assert_eq!(error.field, Some("bind-result-extensions"));
    let octets = "31 15 A2 04 16 02 6F6B A3 08 31 06 06 04 56 04 04 01 A5 03 01 01 FF";
    let result = read(octets, MsBindResult::read).unwrap();
    assert!(result.alert_indication);
    assert_eq!(result.available_auto_actions, [AutoActionKind::AutoAlert.oid()]);
    assert_eq!(written(|w| result.write(w)), hex(octets));
    let error = read("0A 01 00", MsBindError::read).unwrap();
    assert_eq!(error, MsBindError::Unqualified(BindProblem::AUTHENTICATION_ERROR));
    assert_eq!(error.to_string(), "authentication-error");
    let error = read("31 0B A0 03 0A 01 02 A1 04 1B 02 6E6F", MsBindError::read).unwrap();
    assert_eq!(error.problem(), BindProblem::UNABLE_TO_ESTABLISH_ASSOCIATION);
}

fn error(code: i64, text: &str) -> MsError {
    let octets = hex(text);
    let error = MsError::read(code, Some(&Element::parse(&octets).unwrap())).unwrap();
    assert_eq!(written(|w| error.write_parameter(w)), octets);
    assert_eq!(error.code(), code);
    error
}

#[test]
fn errors_have_the_tags_of_the_module() {
    let MsError::Attribute(items) =
        error(21, "31 18 A0 16 31 14 31 12 A0 03 02 01 02 A1 06 06 04 56 04 03 1F A2 03 47 01 02")
    else {
        panic!()
    };
    assert_eq!(items[0].problem, AttributeProblem::INAPPROPRIATE_MATCHING);
    assert_eq!(items[0].attribute_type, attributes::PRIORITY.oid());
    assert_eq!(items[0].value.as_ref().unwrap().integer(), Ok(2));
    // The problems of a sequence-number-error are [1], those of others [0].
    let numbers = error(28, "31 10 A1 0E 31 0C 31 0A A0 03 02 01 00 A1 03 02 01 05");
    assert_eq!(numbers, MsError::no_such_entry(SequenceNumber(5)));
    let expected = vec![(SequenceNumberProblem::NO_SUCH_ENTRY, SequenceNumber(5))];
    assert_eq!(numbers, MsError::SequenceNumber(expected));
    let MsError::Delete { problems, .. } =
        error(23, "31 10 A0 0E 31 0C 31 0A A0 03 02 01 00 A1 03 02 01 05")
    else {
        panic!()
    };
    assert_eq!(problems, [(DeleteProblem::CHILD_ENTRY_SPECIFIED, SequenceNumber(5))]);
    // The problem of a fetch restriction is [3].
    let MsError::FetchRestriction(items) =
        error(24, "31 10 A0 0E 31 0C 31 0A A3 03 02 01 03 A2 03 02 01 64")
    else {
        panic!()
    };
    assert_eq!(items[0].restriction, FetchRestriction::AttributeLength(100));
    let busy = error(27, "31 05 A0 03 02 01 00");
    assert_eq!(busy, MsError::service(ServiceProblem::BUSY));
    assert_eq!(busy.to_string(), "service-error: busy");
    assert_eq!(error(26, "02 01 0E").to_string(), "security-error: operation-security-failure");
    assert_eq!(error(25, "31 05 A0 03 02 01 00").to_string(), "range-error: reversed");
    assert_eq!(error(29, "05 00"), MsError::InvalidParameters);
    assert_eq!(error(34, "31 0B A0 03 02 01 02 A1 04 03 02 07 80").name(), "entry-class-error");
    // P3's, of register-MS.
    assert_eq!(error(6, "05 00").name(), "new-credentials-unacceptable");
}

#[test]
fn what_is_wrong_is_named() {
    let error = read("31 05 A3 03 02 01 05", FetchArgument::read).unwrap_err();
    assert_eq!(
        (error.field, error.fault),
        (Some("requested-attributes"), Fault::Unexpected(u::INTEGER))
    );
    let error = read("31 00", FetchArgument::read).unwrap_err();
    assert_eq!((error.field, error.fault), (Some("item"), Fault::Missing(Tag::context(1))));
    let error = read("30 00", ListArgument::read).unwrap_err();
    assert_eq!((error.field, error.fault), (Some("ListArgument"), Fault::Unexpected(u::SEQUENCE)));
    let error = MsError::read(28, None).unwrap_err();
    assert_eq!(error.field, Some("sequence-number-error"));
    let twice = "31 0F A2 03 02 01 05 A0 03 02 01 00 A0 03 02 01 00";
    let error = read(twice, FetchArgument::read).unwrap_err();
    assert_eq!(
        (error.field, error.fault),
        (Some("FetchArgument"), Fault::Unexpected(Tag::context(0)))
    );
}

#[test]
fn every_part_of_a_pdu_is_an_error() {
    let octets = hex("31 11 A2 03 02 01 05 A3 0A 31 08 31 06 06 04 56 04 03 01");
    for end in 0..octets.len() {
        assert!(Element::parse(&octets[..end]).and_then(|e| FetchArgument::read(&e)).is_err());
    }
    assert_eq!(Selector::read(&Element::parse(&hex("31 00")).unwrap()), Ok(Selector::default()));
}

#[test]
fn the_deepest_filter_fits_into_an_argument() {
    let name: p1::ORAddress = "/S=Bravo/PRMD=NAPLES/ADMD= /C=IT/".parse().unwrap();
    let item = Filter::equality(
        attributes::ORIGINATOR_NAME.oid(),
        attributes::originator_name(&name.into()).values.remove(0),
    );
    let deepest = (1..MAX_FILTER_DEPTH).fold(item, |filter, _| Filter::And(vec![filter]));
    let selector = Selector { filter: Some(deepest.clone()), ..Selector::default() };
    let list = ListArgument { selector, ..ListArgument::default() };
    let octets = written(|w| list.write(w));
    assert_eq!(ListArgument::read(&Element::parse(&octets).unwrap()), Ok(list));
    let selector = Selector { filter: Some(Filter::Not(Box::new(deepest))), ..Selector::default() };
    let octets = written(|w| ListArgument { selector, ..ListArgument::default() }.write(w));
    let error = ListArgument::read(&Element::parse(&octets).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "filter: nested deeper than the limit of 10");
}

#[test]
fn lists_have_limits() {
    let numbers = |count: usize| {
        let delete = DeleteArgument::new(vec![SequenceNumber(1); count]);
        let octets = written(|w| delete.write(w));
        DeleteArgument::read(&Element::parse(&octets).unwrap()).map(|_| ())
    };
    assert_eq!(numbers(MAX_SEQUENCE_NUMBERS), Ok(()));
    let error = numbers(MAX_SEQUENCE_NUMBERS + 1).unwrap_err();
    assert_eq!(error.fault, Fault::TooMany(MAX_SEQUENCE_NUMBERS as u64));
    let attributes = |count: usize| {
        let content = AttributeSelection::new(attributes::CONTENT.oid());
        let fetch = FetchArgument::precise(SequenceNumber(1), vec![content; count]);
        let octets = written(|w| fetch.write(w));
        FetchArgument::read(&Element::parse(&octets).unwrap()).map(|_| ())
    };
    assert_eq!(attributes(MAX_ATTRIBUTES), Ok(()));
    let error = attributes(MAX_ATTRIBUTES + 1).unwrap_err();
    assert_eq!(error.field, Some("requested-attributes"));
}
