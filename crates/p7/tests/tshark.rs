//! What an independent reader finds in our PDUs: tshark decodes P7 in the contexts of 1988. Both ends
//! are our own stack, from which tshark learns the presentation contexts; what counts is what it reads.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test")]

use base::ber::{Oid, Writer, universal as u};
use base::{Instant, Utc};
use bytes::Bytes;
use capture::{CaptureWriter, CapturedConnection, Opener};
use osi::api::{
    Config, Context, Indication, Input, Output, Payload, RefuseReason, Request, Role, Selectors,
    Service,
};
use osi::stack::Association;
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
use std::process::Command;
use std::time::Duration;

const PORT: u16 = 5_007;

fn syntax(n: u64) -> Oid {
    Oid::from_arcs(&[2, 6, 0, 2, n]).unwrap()
}

/// ms-access-88: contexts 1 ACSE, 3 ms-88, 5 mrse-88.
fn config() -> Config {
    let syntaxes = ["2.2.1.0.1".parse().unwrap(), syntax(9), syntax(5)];
    let contexts = (0..).zip(syntaxes);
    Config {
        local: Selectors::default(),
        remote: Selectors::default(),
        service: Service::Rose,
        application_contexts: vec![Oid::from_arcs(&[2, 6, 0, 1, 4]).unwrap()],
        contexts: contexts
            .map(|(n, abstract_syntax)| Context { id: 2 * n + 1, abstract_syntax })
            .collect(),
        bind_syntax: syntax(9),
        other_bind_syntaxes: Vec::new(),
        transfer_syntax_owner: syntax(9),
        tpdu_size: None,
        setup_timeout: Duration::from_secs(30),
        operation_timeout: Duration::from_secs(30),
        reference: Default::default(),
        turn_away: false,
    }
}

fn written(write: impl FnOnce(&mut Writer)) -> Bytes {
    let mut w = Writer::new();
    write(&mut w);
    w.into_vec().into()
}

/// How the store answers.
#[derive(Clone)]
enum Answer {
    Result(Bytes),
    Error(i64, Bytes),
}

/// One association: the bind, its answer, and operations of the user with the answers of the store.
struct Script {
    bind: Bytes,
    bind_answer: Result<Bytes, Bytes>,
    operations: VecDeque<(i64, Bytes, Answer)>,
}

impl Script {
    /// The requests that an indication leads to.
    fn react(
        &mut self,
        indication: &Indication,
        answers: &mut VecDeque<Answer>,
    ) -> Option<Request> {
        match *indication {
            Indication::Open { .. } => Some(match &self.bind_answer {
                Ok(result) => Request::Accept { bind: result.clone() },
                Err(error) => {
                    Request::Refuse { reason: RefuseReason::Bind, bind_error: Some(error.clone()) }
                }
            }),
            Indication::Invoked { invoke, operation } => Some(match answers.pop_front()? {
                Answer::Result(octets) => {
                    Request::Result { invoke, operation, result: Payload::whole(octets) }
                }
                Answer::Error(error, parameter) => Request::Error { invoke, error, parameter },
            }),
            Indication::Opened { .. } => Some(self.next(answers)),
            Indication::Data { last: true, .. } if answers.is_empty() => Some(self.next(answers)),
            _ => None,
        }
    }

    fn next(&mut self, answers: &mut VecDeque<Answer>) -> Request {
        let Some((operation, argument, answer)) = self.operations.pop_front() else {
            return Request::Release;
        };
        answers.push_back(answer);
        let argument = Payload::whole(argument);
        Request::Invoke { invoke: operation, syntax: syntax(5), operation, argument }
    }
}

/// Plays the script; gives the octets as they passed, with who sent them: the user is `true`.
fn play(mut script: Script) -> Vec<(bool, Bytes)> {
    let mut ends = [Role::Initiator, Role::Responder].map(|role| Association::new(config(), role));
    let mut passed = Vec::new();
    let mut answers = VecDeque::new();
    let mut inputs = VecDeque::from([(0, Err(Request::Open { bind: script.bind.clone() }))]);
    let mut responded = false;
    while let Some((end, input)) = inputs.pop_front() {
        let stack = &mut ends[end];
        match input {
            Ok(octets) => {
                let octets: Bytes = octets;
                stack.handle(Instant(0), Input::Bytes(&octets));
            }
            Err(request) => stack.handle(Instant(0), Input::Request(request)),
        }
        while let Some(output) = ends[end].poll() {
            match output {
                Output::Send(octets) => {
                    passed.push((end == 0, octets.clone()));
                    inputs.push_back((1 - end, Ok(octets)));
                }
                Output::Close => {}
                // The store answers an invocation once its argument is whole.
                Output::Indication(Indication::Invoked { invoke, operation }) => {
                    let invoked = Indication::Invoked { invoke, operation };
                    responded = true;
                    if let Some(request) = script.react(&invoked, &mut answers) {
                        inputs.push_back((end, Err(request)));
                    }
                }
                Output::Indication(Indication::Data { last: true, .. }) if end == 1 => {}
                Output::Indication(indication) => {
                    if let Some(request) = script.react(&indication, &mut answers) {
                        inputs.push_back((end, Err(request)));
                    }
                }
            }
        }
    }
    assert!(responded || script.bind_answer.is_err());
    assert!(script.operations.is_empty() || script.bind_answer.is_err());
    passed
}

/// Values of fields, joined with commas, that tshark finds in an association.
fn tshark(passed: &[(bool, Bytes)], fields: &[&str]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p7.pcapng");
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    let time = Utc(1_700_000_000_000_000);
    let address = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let (local, remote) = (address(40_000), address(PORT));
    let connection = CapturedConnection { local, remote, opener: Opener::Local, tos: 0 };
    writer.connection(time, connection).unwrap();
    for (ours, octets) in passed {
        if *ours { writer.sent(time, octets) } else { writer.received(time, octets) }.unwrap();
    }
    std::fs::write(&path, writer.into_inner()).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(&path).args(["-d", &format!("tcp.port=={PORT},tpkt")]);
    command.args(["-T", "fields", "-E", "occurrence=a", "-E", "separator=;", "-E", "aggregator=,"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().expect("tshark runs: `cargo xtask test` installs it");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(';').collect()).collect();
    let column = |n: usize| {
        let cells = rows.iter().map(|row| row[n]).filter(|cell| !cell.is_empty());
        cells.collect::<Vec<_>>().join(",")
    };
    (0..fields.len()).map(column).collect()
}

/// What tshark shows where it does not understand.
const BAD: &[&str] = &["_ws.malformed", "ros.unknown_ros_pdu", "ros.dissector_oid_not_implemented"];

/// Fails where tshark complains.
fn without_complaint(passed: &[(bool, Bytes)]) {
    let available = Command::new("tshark").args(["-G", "fields"]).output().unwrap();
    let available = String::from_utf8_lossy(&available.stdout).into_owned();
    let names: Vec<&str> = available.lines().filter_map(|l| l.split('\t').nth(2)).collect();
    let bad = names.into_iter().filter(|name| {
        BAD.contains(name) || name.starts_with("ber.error.") || name.starts_with("ber.unknown")
    });
    let bad: Vec<&str> = bad.collect();
    assert!(bad.len() > 5);
    for (field, values) in bad.iter().zip(tshark(passed, &bad)) {
        assert_eq!(values, "", "{field}");
    }
    let severities = tshark(passed, &["_ws.expert.severity"]).remove(0);
    const WARNING: u64 = 0x0060_0000;
    let worst = severities.split(',').filter_map(|s| s.parse::<u64>().ok()).max().unwrap_or(0);
    assert!(worst < WARNING, "{:?}", tshark(passed, &["_ws.expert.message"]));
}

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
    for ((field, value), found) in expected.iter().zip(tshark(&passed, &fields)) {
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
    assert_eq!(tshark(&passed, &["p7.unqualified_error"]), ["0"]);
}
