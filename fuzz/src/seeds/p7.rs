//! Operations of P7.

use super::{Seed, hex, named, written};
use crate::targets::node::{STORED, USER, reader, with_items};
use base::ber::universal as u;
use bytes::Bytes;
use p1::{Credentials, Priority};
use p7::auto_action::AutoAlert;
use p7::error::{AttributeProblem, AttributeProblemItem, ServiceProblem};
use p7::filter::{Assertion, Substring};
use p7::operation::{
    self, AlertArgument, DeleteArgument, DeleteResult, FetchArgument, FetchItem, FetchResult,
    ListArgument, ListResult, RegisterMsArgument, RegisterMsResult, RegisteredInformation,
    SummarizeArgument,
};
use p7::{
    AttributeSelection, BindProblem, EntryInformation, EntryType, Filter, FilterItem,
    MsBindArgument, MsBindError, MsBindResult, MsError, Range, RetrievalStatus, Selector,
    SequenceNumber, Value, attributes,
};

/// New messages, urgent or about movements, from the third on.
fn selector() -> Selector {
    let status = Filter::equality(attributes::RETRIEVAL_STATUS.oid(), Value::from_integer(0));
    let movement = Substring::Initial(Value::from_text(u::TELETEX_STRING, "move"));
    let order = Substring::Any(Value::from_text(u::TELETEX_STRING, "order"));
    let subject = Filter::Item(FilterItem::Substrings {
        attribute_type: attributes::SUBJECT.oid(),
        strings: vec![movement, order],
    });
    let urgent = attributes::priority(Priority::Urgent);
    let urgent = urgent.values.into_iter().map(|v| Filter::equality(attributes::PRIORITY.oid(), v));
    let flash = FilterItem::GreaterOrEqual(Assertion {
        attribute_type: attributes::PRIMARY_PRECEDENCE.oid(),
        value: Value::from_integer(4),
    });
    let either = urgent.chain([subject, Filter::Item(flash)]).collect();
    let returned = Filter::Not(Box::new(Filter::Item(FilterItem::Present(
        attributes::PARENT_SEQUENCE_NUMBER.oid(),
    ))));
    Selector {
        range: Some(Range::SequenceNumber { from: Some(SequenceNumber(3)), to: None }),
        filter: Some(Filter::And(vec![status, Filter::Or(either), returned])),
        limit: Some(20),
        ..Selector::default()
    }
}

fn selection() -> Vec<AttributeSelection> {
    let recipients = AttributeSelection {
        attribute_type: attributes::OTHER_RECIPIENT_NAMES.oid(),
        from: Some(1),
        count: Some(10),
    };
    vec![AttributeSelection::new(attributes::SUBJECT.oid()), recipients]
}

/// Bind and arguments.
pub fn arguments() -> Vec<Seed> {
    let bind = MsBindArgument::new(super::p1::address(USER).into(), Credentials::simple("secret"));
    let list = ListArgument {
        selector: selector(),
        requested_attributes: Some(selection()),
        ..ListArgument::default()
    };
    let summarize = SummarizeArgument {
        selector: selector(),
        summary_requests: vec![attributes::RETRIEVAL_STATUS.oid()],
        ..SummarizeArgument::default()
    };
    let mut search = FetchArgument::precise(SequenceNumber(5), selection());
    search.item = FetchItem::Search(selector());
    let alert = AutoAlert { filter: selector().filter, ..AutoAlert::default() };
    let register = RegisterMsArgument {
        auto_action_registrations: vec![alert.registration(2)],
        list_attribute_defaults: Some(vec![attributes::SUBJECT.oid()]),
        fetch_attribute_defaults: Some(vec![]),
        ..RegisterMsArgument::default()
    };
    let alerted = AlertArgument { registration_identifier: 2, new_entry: Some(entry()) };
    let delete = DeleteArgument::new(vec![SequenceNumber(5), SequenceNumber(7)]);
    let modify = hex("31 1A A2 05 30 03 02 01 04
        A3 11 30 0F 31 0D A0 03 01 01 FF A2 06 06 04 56 04 03 3A");
    named(&[
        ("bind", written(|w| bind.write(w))),
        ("list", written(|w| list.write(w))),
        ("summarize", written(|w| summarize.write(w))),
        ("fetch", hex("31 11 A2 03 02 01 05 A3 0A 31 08 31 06 06 04 56 04 03 01")),
        ("search", written(|w| search.write(w))),
        ("register", written(|w| register.write(w))),
        ("alert", written(|w| alerted.write(w))),
        ("auto-alert", written(|w| alert.write(w))),
        ("delete", written(|w| delete.write(w))),
        ("modify", modify),
    ])
}

/// A summary of a whole mailbox.
pub fn summarize_all() -> Bytes {
    written(|w| SummarizeArgument::default().write(w)).into()
}

/// The octets of users of the message store: one that reads all of a mailbox and deletes it, one that asks what
/// cannot be answered, one that submits.
pub fn node() -> Vec<Seed> {
    let list = ListArgument { requested_attributes: Some(selection()), ..Default::default() };
    let found = ListArgument { selector: selector(), ..Default::default() };
    let mut search = FetchArgument::precise(SequenceNumber(1), selection());
    search.item = FetchItem::Search(Selector::default());
    let alert = AutoAlert::default().registration(1);
    let register = RegisterMsArgument {
        auto_action_registrations: vec![alert],
        list_attribute_defaults: Some(vec![attributes::SUBJECT.oid()]),
        ..RegisterMsArgument::default()
    };
    let fetch = |number| FetchArgument::precise(SequenceNumber(number), vec![]);
    let delete = |number| DeleteArgument::new(vec![SequenceNumber(number)]);
    let whole = [
        (operation::SUMMARIZE, summarize_all()),
        (operation::REGISTER_MS, written(|w| register.write(w)).into()),
        (operation::LIST, written(|w| list.write(w)).into()),
        (operation::LIST, written(|w| found.write(w)).into()),
        (operation::FETCH, written(|w| fetch(1).write(w)).into()),
        (operation::FETCH, written(|w| search.write(w)).into()),
        (operation::DELETE, written(|w| delete(1).write(w)).into()),
    ];
    let wrong = [
        (operation::FETCH, written(|w| fetch(99).write(w)).into()),
        (operation::DELETE, written(|w| delete(99).write(w)).into()),
        (operation::LIST, Bytes::from_static(&[0x31, 0])),
        (99, Bytes::from_static(&[5, 0])),
    ];
    let submission = super::p3::submission_of(STORED);
    let submits = [(p1::p3::operation::MESSAGE_SUBMISSION, submission)];
    let record = |units: &[(i64, Bytes)]| with_items().converse(2, &mut reader(units));
    named(&[
        ("whole", record(&whole)),
        ("wrong", record(&wrong)),
        ("submits", record(&submits)),
        ("nothing", record(&[])),
    ])
}

fn entry() -> EntryInformation {
    let name = super::p1::address(USER).into();
    let attributes = vec![
        attributes::sequence_number(SequenceNumber(5)),
        attributes::entry_type(EntryType::DELIVERED_MESSAGE),
        attributes::retrieval_status(RetrievalStatus::NEW),
        attributes::originator_name(&name),
        attributes::subject("Movement order"),
        attributes::content(b"content"),
    ];
    EntryInformation { sequence_number: SequenceNumber(5), attributes, ..Default::default() }
}

/// Results and errors, also those of the bind.
pub fn results() -> Vec<Seed> {
    let bind = MsBindResult::new(Credentials::simple("ok"));
    let qualified = MsBindError::Qualified {
        problem: BindProblem::UNABLE_TO_ESTABLISH_ASSOCIATION,
        information: Some("later".to_owned()),
        extension_errors: vec![],
    };
    let list = ListResult {
        next: Some(SequenceNumber(9)),
        requested: vec![entry(), entry()],
        ..ListResult::default()
    };
    let fetch = FetchResult {
        entry_information: Some(entry()),
        list: vec![SequenceNumber(7)],
        ..FetchResult::default()
    };
    let deleted =
        DeleteResult::Of1994 { entries_deleted: vec![SequenceNumber(5)], extensions: vec![] };
    let registered = RegisterMsResult::Registered(RegisteredInformation {
        list_attribute_defaults: vec![attributes::SUBJECT.oid()],
        auto_action_registrations: vec![AutoAlert::default().registration(1)],
        ..RegisteredInformation::default()
    });
    let summary = hex("31 30 A1 03 02 01 03 A2 0C 30 0A A0 03 02 01 05 A1 03 02 01 09
        A3 1B 30 19 31 17 A0 03 02 01 01 A1 10 31 0E 30 0C 06 04 56 04 03 0F 02 01 00 02 01 02");
    let attribute = MsError::from(AttributeProblemItem {
        problem: AttributeProblem::INAPPROPRIATE_MATCHING,
        attribute_type: attributes::PRIORITY.oid(),
        value: Some(Value::from_integer(2)),
    });
    let missing = MsError::no_such_entry(SequenceNumber(5));
    let busy = MsError::service(ServiceProblem::BUSY);
    named(&[
        ("bind", written(|w| bind.write(w))),
        ("bind-error", written(|w| qualified.write(w))),
        ("list", written(|w| list.write(w))),
        ("fetch", written(|w| fetch.write(w))),
        ("deleted", written(|w| deleted.write(w))),
        ("registered", written(|w| registered.write(w))),
        ("summary", summary),
        ("attribute-error", written(|w| attribute.write_parameter(w))),
        ("sequence-number-error", written(|w| missing.write_parameter(w))),
        ("service-error", written(|w| busy.write_parameter(w))),
    ])
}
