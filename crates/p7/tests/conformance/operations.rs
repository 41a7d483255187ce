//! What an independent reader finds in our PDUs: tshark decodes P7 in the contexts of 1988. Both ends
//! are our own stack, from which tshark learns the presentation contexts; what counts is what it reads.

use crate::association::{Answer, Script, play, written};
use crate::tshark::{values, without_complaint};
use base::Utc;
use base::ber::universal as u;
use bytes::Bytes;
use p1::{Credentials, ORAddress};
use p7::auto_action::{AutoActionRegistration, AutoAlert};
use p7::error::{AttributeProblem, AttributeProblemItem, ServiceProblem};
use p7::filter::Substring;
use p7::operation::{self as op, EMPTY_RESULT};
use p7::{
    AttributeSelection, BindProblem, EntryInformation, EntryType, Filter, FilterItem,
    MsBindArgument, MsBindError, MsBindResult, MsError, Range, RetrievalStatus, Selector,
    SequenceNumber, Value, attributes as a,
};
use std::collections::VecDeque;

fn user() -> ORAddress {
    "/G=Anna/S=Bravo/O=HQ/PRMD=NAPLES/ADMD= /C=IT/".parse().unwrap()
}

fn entry() -> EntryInformation {
    let attributes = vec![
        a::sequence_number(SequenceNumber(5)),
        a::creation_time(Utc(1_700_000_000_000_000)),
        a::retrieval_status(RetrievalStatus::LISTED),
        a::entry_type(EntryType::DELIVERED_MESSAGE),
        a::content_length(2_345),
        a::content_identifier("REF1"),
        a::originator_name(&user().into()),
        a::priority(p1::Priority::Urgent),
        a::subject("Movement order"),
    ];
    EntryInformation { sequence_number: SequenceNumber(5), attributes, ..Default::default() }
}

fn selector() -> Selector {
    let status = Filter::equality(a::RETRIEVAL_STATUS.oid(), Value::from_integer(2));
    let movement = Substring::Initial(Value::from_text(u::TELETEX_STRING, "move"));
    let subject = Filter::Item(FilterItem::Substrings {
        attribute_type: a::SUBJECT.oid(),
        strings: vec![movement],
    });
    let report = Filter::Item(FilterItem::Present(a::REPORT_DELIVERY_ENVELOPE.oid()));
    Selector {
        range: Some(Range::SequenceNumber { from: Some(SequenceNumber(3)), to: None }),
        filter: Some(Filter::And(vec![status, subject, Filter::Not(Box::new(report))])),
        limit: Some(77),
        ..Selector::default()
    }
}

fn operations() -> VecDeque<(i64, Bytes, Answer)> {
    let list = op::ListArgument {
        selector: selector(),
        requested_attributes: Some(vec![AttributeSelection::new(a::SUBJECT.oid())]),
        ..Default::default()
    };
    let listed = op::ListResult {
        next: Some(SequenceNumber(81)),
        requested: vec![entry()],
        extensions: vec![],
    };
    let content = AttributeSelection::new(a::CONTENT.oid());
    let fetch = op::FetchArgument::precise(SequenceNumber(5), vec![content]);
    let fetched = op::FetchResult {
        entry_information: Some(EntryInformation {
            sequence_number: SequenceNumber(5),
            ..Default::default()
        }),
        list: vec![SequenceNumber(91), SequenceNumber(92)],
        ..Default::default()
    };
    let content = b"no message, but some octets";
    let fetched = [fetched.head(content.len() as u64), content.to_vec()].concat();
    let summarize =
        op::SummarizeArgument { summary_requests: vec![a::ENTRY_TYPE.oid()], ..Default::default() };
    let present = op::SummaryValue {
        attribute_type: a::ENTRY_TYPE.oid(),
        value: Value::from_integer(1),
        count: 21,
    };
    let span = op::Span { lowest: SequenceNumber(4), highest: SequenceNumber(44) };
    let summarized = op::SummarizeResult {
        count: 23,
        span: Some(span),
        summaries: vec![op::Summary { absent: Some(2), present: vec![present] }],
        ..Default::default()
    };
    // tshark does not know the parameters of auto-actions.
    let alert = AutoActionRegistration { parameter: None, ..AutoAlert::default().registration(9) };
    let register = op::RegisterMsArgument {
        auto_action_registrations: vec![alert],
        list_attribute_defaults: Some(vec![a::SUBJECT.oid()]),
        ..Default::default()
    };
    let delete = op::DeleteArgument::new(vec![SequenceNumber(61), SequenceNumber(62)]);
    let missing = MsError::no_such_entry(SequenceNumber(62));
    let attribute = MsError::from(AttributeProblemItem {
        problem: AttributeProblem::INAPPROPRIATE_MATCHING,
        attribute_type: a::PRIORITY.oid(),
        value: None,
    });
    let busy = MsError::service(ServiceProblem::BUSY);
    let error = |e: &MsError| Answer::Error(e.code(), written(|w| e.write_parameter(w)));
    let deletion = written(|w| delete.write(w));
    VecDeque::from([
        (op::LIST, written(|w| list.write(w)), Answer::Result(written(|w| listed.write(w)))),
        (op::FETCH, written(|w| fetch.write(w)), Answer::Result(fetched.into())),
        (
            op::SUMMARIZE,
            written(|w| summarize.write(w)),
            Answer::Result(written(|w| summarized.write(w))),
        ),
        (
            op::REGISTER_MS,
            written(|w| register.write(w)),
            Answer::Result(Bytes::from_static(&EMPTY_RESULT)),
        ),
        (op::DELETE, deletion.clone(), Answer::Result(Bytes::from_static(&EMPTY_RESULT))),
        (op::DELETE, deletion, error(&missing)),
        (op::LIST, written(|w| list.write(w)), error(&attribute)),
        (op::LIST, written(|w| list.write(w)), error(&busy)),
    ])
}

#[test]
fn operations_of_1988_are_decoded_by_tshark() {
    let bind = MsBindArgument::new(user().into(), Credentials::simple("secret"));
    let mut result = MsBindResult::new(Credentials::simple("store"));
    result.alert_indication = true;
    let passed = play(Script {
        bind: written(|w| bind.write(w)),
        bind_answer: Ok(written(|w| result.write(w))),
        operations: operations(),
    });
    without_complaint(&passed);
    let expected = [
        ("p7.initiator_name_element", "1"),
        ("p7.alert_indication", "1"),
        ("p7.count", "23,21"),
        ("p7.limit", "77,77,77"),
        ("p7.lowest", "4"),
        ("p7.highest", "44"),
        ("p7.absent", "2"),
        ("p7.next", "81"),
        ("p7.precise", "5"),
        ("p7.sequence_number", "5,5,62"),
        ("p7.SequenceNumber", "5,91,92,61,62,61,62"),
        ("p7.registration_identifier", "9"),
        // As compared, of the entry, and as compared twice more; and the entry's type, and that
        // of the summary.
        ("p7.RetrievalStatus", "2,1,2,2"),
        ("p7.EntryType", "0,1"),
        ("p7.AttributeType", "2.6.4.3.16,2.6.1.7.4"),
        ("p7.CreationTime", "23-11-14 22:13:20 (UTC)"),
        ("p7.problem", "0,2"),
        ("p7.serviceErrorParameter.problem", "0"),
        ("ros.errcode", "28,21,27"),
    ];
    let fields: Vec<&str> = expected.iter().map(|(field, _)| *field).collect();
    for ((field, value), found) in expected.iter().zip(values(&passed, &fields)) {
        assert_eq!(found, *value, "{field}");
    }
}

#[test]
fn a_refused_bind_is_decoded_by_tshark() {
    let bind = MsBindArgument::new(user().into(), Credentials::simple("wrong"));
    let error = MsBindError::Unqualified(BindProblem::AUTHENTICATION_ERROR);
    let passed = play(Script {
        bind: written(|w| bind.write(w)),
        bind_answer: Err(written(|w| error.write(w))),
        operations: VecDeque::new(),
    });
    without_complaint(&passed);
    assert_eq!(values(&passed, &["p7.unqualified_error"]), ["0"]);
}
