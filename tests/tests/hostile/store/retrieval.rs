//! Arguments of the retrieval port that go wrong: summarize, list, fetch, delete, register-MS.

use super::super::case::Case;
use super::super::octets::*;
use super::{ALL, DELETE, FETCH, FIRST, LIST, REGISTER, SUMMARIZE, invoke};

/// An attribute type: `{joint-iso-ccitt mhs(6) ms(4) at(3) n}`.
fn attribute(n: u8) -> Vec<u8> {
    vec![6, 4, 0x56, 4, 3, n]
}

/// entry-type, whose values are INTEGERs in any order of theirs; content; priority.
const ENTRY_TYPE: u8 = 16;
const CONTENT: u8 = 1;

/// A selector of these members, as the argument of a list.
fn selector(members: &[&[u8]]) -> Vec<u8> {
    tlv(0x31, &[&tlv(0xa1, &[&tlv(0x31, members)])])
}

/// A list by this filter.
fn filtered(filter: &[u8]) -> Vec<u8> {
    selector(&[&tlv(0xa2, &[filter])])
}

/// present of an attribute type.
fn present(attribute: &[u8]) -> Vec<u8> {
    tlv(0xa0, &[&tlv(0xa4, &[attribute])])
}

/// A range of numbers with these octets of its ends.
fn range(from: &[u8], to: &[u8]) -> Vec<u8> {
    let ends = [tlv(0xa0, &[&tlv(2, &[from])]), tlv(0xa1, &[&tlv(2, &[to])])].concat();
    selector(&[&tlv(0xa1, &[&tlv(0xa0, &[&tlv(0x30, &[&ends])])])])
}

/// A fetch of the number with these octets.
fn number(octets: &[u8]) -> Vec<u8> {
    tlv(0x31, &[&tlv(0xa2, &[&tlv(2, &[octets])])])
}

/// A delete of these.
fn deletes(numbers: &[u8]) -> Vec<u8> {
    tlv(0x31, &[&tlv(0xa2, &[&tlv(0x31, &[numbers])])])
}

fn sends(name: &str, operation: u8, argument: &[u8]) -> Case {
    Case::reader(name).sends(invoke(1, operation, argument))
}

pub(super) fn cases() -> Vec<Case> {
    [arguments(), selectors(), filters(), numbers(), registrations()]
        .into_iter()
        .flatten()
        .collect()
}

fn arguments() -> Vec<Case> {
    let operations = [
        ("summarize", SUMMARIZE),
        ("list", LIST),
        ("fetch", FETCH),
        ("delete", DELETE),
        ("register-MS", REGISTER),
    ];
    let mut cases = Vec::new();
    for (name, operation) in operations {
        let case =
            |what: &str, argument: &[u8]| sends(&format!("{name}: {what}"), operation, argument);
        cases.extend([
            case("no argument", &[]).must(
                "open, DT reject(1, 2)",
                "truncated: the element is longer than what holds it (X.690",
            ),
            case("NULL", &[5, 0])
                .must("open, DT reject(1, 2)", "Argument: unexpected [UNIVERSAL 5]"),
            case("a member longer than the SET", &[0x31, 4, 0xa1, 0x7f, 0x31, 0])
                .must("open, DT reject(1, 2)", "Argument: truncated: the element is longer than"),
            case(
                "a member of 2^31 octets",
                &[0x31, 8, 0xa1, 0x84, 0x7f, 0xff, 0xff, 0xff, 0x31, 0],
            )
            .must("open, DT reject(1, 2)", "Argument: truncated: the element is longer than"),
            case("an indefinite length that does not end", &[0x31, 0x80, 0xa1, 0x80, 0x31, 0])
                .must(
                    "open, DT reject(0, 1)",
                    "rose: RORJ GeneralProblem mistypedAPDU to the peer's APDU (X.229 7.5.1,",
                ),
            case("70,000 octets", &tlv(0x31, &[&tlv(0x8f, &[&[0; 70_000]])])).must(
                "open, DT reject(1, 3)",
                "receive_failed: argument: longer than the limit of 65536 octets",
            ),
            case("2,000 levels", &nested(0xa1, 2_000, &[0x31, 0]))
                .must("open, DT reject(1, 2)", "Argument: unexpected [1]"),
        ]);
    }
    cases
}

fn selectors() -> Vec<Case> {
    let requested = |attributes: &[u8]| {
        tlv(0x31, &[&[0xa1, 2, 0x31, 0], &tlv(0xa3, &[&tlv(0x31, &[attributes])])])
    };
    let one = tlv(0x31, &[&attribute(ENTRY_TYPE)]);
    let counted = |from: &[u8], count: &[u8]| {
        let ends = [tlv(0xa0, &[&tlv(2, &[from])]), tlv(0xa1, &[&tlv(2, &[count])])].concat();
        requested(&tlv(0x31, &[&attribute(ENTRY_TYPE), &ends]))
    };
    let summary = |attributes: &[u8]| {
        tlv(0x31, &[&[0xa1, 2, 0x31, 0], &tlv(0xa2, &[&tlv(0x30, &[attributes])])])
    };
    let limit = |octets: &[u8]| selector(&[&tlv(0xa3, &[&tlv(2, &[octets])])]);
    let class = |n: u8| tlv(0x31, &[&[0xa0, 3, 2, 1, n], &[0xa1, 2, 0x31, 0]]);
    let times = |from: &[u8], to: &[u8]| {
        let ends = [tlv(0xa0, &[&tlv(0x17, &[from])]), tlv(0xa1, &[&tlv(0x17, &[to])])].concat();
        selector(&[&tlv(0xa1, &[&tlv(0xa1, &[&tlv(0x30, &[&ends])])])])
    };
    vec![
        sends("list: no selector", LIST, &[0x31, 0])
            .must("open, DT reject(1, 2)", "list: selector: missing [1]"),
        sends("list: the selector twice", LIST, &tlv(0x31, &[&[0xa1, 2, 0x31, 0].repeat(2)]))
            .must("open, DT reject(1, 2)", "list: ListArgument: unexpected [1]"),
        sends("list: a member nobody knows", LIST, &tlv(0x31, &[&[0xa1, 2, 0x31, 0], &[0x9e, 0]]))
            .must("open, DT result", ""),
        sends("list: submitted messages", LIST, &class(1)).must("open, DT error 29", ""),
        sends("list: entry class 99", LIST, &class(99)).must("open, DT error 29", ""),
        sends("list: 1,025 attributes", LIST, &requested(&one.repeat(1_025))).must(
            "open, DT reject(1, 2)",
            "list: requested-attributes: more than the limit of 1024 elements",
        ),
        sends(
            "list: an attribute nobody knows",
            LIST,
            &requested(&tlv(0x31, &[&[6, 2, 0x51, 99]])),
        )
        .must("open, DT error 21", ""),
        sends("list: the content", LIST, &requested(&tlv(0x31, &[&attribute(CONTENT)])))
            .must("open, DT error 21", ""),
        sends("list: values from 0", LIST, &counted(&[0], &[1])).must("open, DT result", ""),
        sends("list: values from -1", LIST, &counted(&[0xff], &[0xff])).must("open, DT result", ""),
        sends("list: 2^62 values", LIST, &counted(&[1], &[0x40, 0, 0, 0, 0, 0, 0, 0]))
            .must("open, DT result", ""),
        sends("list: an attribute type that is empty", LIST, &requested(&[0x31, 2, 6, 0]))
            .must("open, DT reject(1, 2)", "list: type: invalid OBJECT IDENTIFIER (X.690 8.19)"),
        sends(
            "list: an attribute type of 5,000 octets",
            LIST,
            &requested(&tlv(0x31, &[&tlv(6, &[&[0x51; 5_000]])])),
        )
        .must("open, DT reject(1, 2)", "list: type: invalid OBJECT IDENTIFIER (X.690 8.19)"),
        sends("list: limit 0", LIST, &limit(&[0])).must("open, DT error 29", ""),
        sends("list: limit -1", LIST, &limit(&[0xff])).must("open, DT error 29", ""),
        sends("list: limit 2^62", LIST, &limit(&[0x40, 0, 0, 0, 0, 0, 0, 0]))
            .must("open, DT result", ""),
        sends("list: a limit of 9 octets", LIST, &limit(&[1, 0, 0, 0, 0, 0, 0, 0, 0]))
            .must("open, DT reject(1, 2)", "list: limit: invalid INTEGER (X.690 8.3)"),
        sends("list: a limit without octets", LIST, &limit(&[]))
            .must("open, DT reject(1, 2)", "list: limit: invalid INTEGER (X.690 8.3)"),
        sends("list: until before from", LIST, &times(b"260102000000Z", b"260101000000Z"))
            .must("open, DT error 25", ""),
        sends("list: the 31st of February", LIST, &times(b"260231000000Z", b"260301000000Z"))
            .must("open, DT error 29", ""),
        sends(
            "delete: until the 31st of February",
            DELETE,
            &times(b"260101000000Z", b"260231000000Z"),
        )
        .must("open, DT error 29", ""),
        sends("summarize: 65 attributes", SUMMARIZE, &summary(&attribute(ENTRY_TYPE).repeat(65)))
            .must(
                "open, DT reject(1, 2)",
                "summarize: summary-requests: more than the limit of 64 elements",
            ),
        sends("summarize: the content", SUMMARIZE, &summary(&attribute(CONTENT)))
            .must("open, DT error 21", ""),
        sends(
            "summarize: one attribute twice",
            SUMMARIZE,
            &summary(&attribute(ENTRY_TYPE).repeat(2)),
        )
        .must("open, DT result", ""),
    ]
}

fn filters() -> Vec<Case> {
    let kind = attribute(ENTRY_TYPE);
    let equals = |attribute: &[u8], value: &[u8]| {
        tlv(0xa0, &[&tlv(0xa0, &[&tlv(0x30, &[attribute, value])])])
    };
    let not = |levels: usize| nested(0xa3, levels, &present(&kind));
    let many = tlv(0xa1, &[&tlv(0x31, &[&present(&kind).repeat(300)])]);
    let substrings =
        |strings: &[u8]| tlv(0xa0, &[&tlv(0xa1, &[&tlv(0x30, &[&kind, &tlv(0x30, &[strings])])])]);
    let list =
        |name: &str, filter: &[u8]| sends(&format!("filter: {name}"), LIST, &filtered(filter));
    let alert = tlv(0x31, &[&tlv(0xa0, &[&not(11)])]);
    let registered = tlv(0x30, &[&[6, 4, 0x56, 4, 4, 1], &tlv(0xa1, &[&alert])]);
    vec![
        list("9 levels of not", &not(9)).must("open, DT result", ""),
        list("10 levels of not", &not(10))
            .must("open, DT reject(1, 2)", "list: filter: nested deeper than the limit of 10"),
        list("3,000 levels of not", &not(3_000))
            .must("open, DT reject(1, 2)", "list: filter: nested deeper than the limit of 10"),
        list("300 items", &many)
            .must("open, DT reject(1, 2)", "list: filter: more than the limit of 256 elements"),
        list("no part of and", &[0xa1, 2, 0x31, 0]).must("open, DT result", ""),
        list("no part of or", &[0xa2, 2, 0x31, 0]).must("open, DT result", ""),
        list("not of nothing", &[0xa3, 0]).must(
            "open, DT reject(1, 2)",
            "list: filter: truncated: the element is longer than what holds it",
        ),
        list("of no known kind", &[0xa7, 2, 5, 0])
            .must("open, DT reject(1, 2)", "list: filter: unexpected [7]"),
        list("a universal tag", &[0x31, 0])
            .must("open, DT reject(1, 2)", "list: filter: unexpected [UNIVERSAL 17]"),
        list("no value", &tlv(0xa0, &[&tlv(0xa0, &[&tlv(0x30, &[&kind])])])).must(
            "open, DT reject(1, 2)",
            "list: attribute-value: truncated: the element is longer than what holds",
        ),
        list("two values", &equals(&kind, &[2, 1, 0, 2, 1, 1]))
            .must("open, DT reject(1, 2)", "list: attribute-value: trailing octets"),
        list("a value of another type", &equals(&kind, &[4, 1, 7])).must("open, DT error 21", ""),
        list("a value of 9 octets", &equals(&kind, &[2, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0]))
            .must("open, DT error 21", ""),
        list("an attribute nobody knows", &equals(&[6, 2, 0x51, 99], &[2, 1, 0]))
            .must("open, DT error 21", ""),
        list("of the content", &equals(&attribute(CONTENT), &[4, 1, 7]))
            .must("open, DT result", ""),
        list("no substrings", &substrings(&[])).must("open, DT error 21", ""),
        list("65 substrings", &substrings(&[0xa1, 3, 0x14, 1, b'x'].repeat(65)))
            .must("open, DT reject(1, 2)", "list: substrings: more than the limit of 64 elements"),
        list("substrings of an INTEGER", &substrings(&[0xa1, 3, 2, 1, 7]))
            .must("open, DT error 21", ""),
        sends(
            "filter: 11 levels in an alert",
            REGISTER,
            &tlv(0x31, &[&tlv(0xa0, &[&tlv(0x31, &[&registered])])]),
        )
        .must("open, DT error 29", ""),
        sends("filter: 11 levels in a fetch", FETCH, &filtered(&not(11)))
            .must("open, DT reject(1, 2)", "fetch: filter: nested deeper than the limit of 10"),
        sends("filter: 11 levels in a delete", DELETE, &filtered(&not(11)))
            .must("open, DT reject(1, 2)", "delete: filter: nested deeper than the limit of 10"),
        sends("filter: 11 levels in a summary", SUMMARIZE, &filtered(&not(11)))
            .must("open, DT reject(1, 2)", "summarize: filter: nested deeper than the limit of 10"),
    ]
}

fn numbers() -> Vec<Case> {
    vec![
        sends("fetch: of what is there", FETCH, &FIRST).must("open, DT result", ""),
        sends("fetch: number 0", FETCH, &number(&[0])).must("open, DT error 28", ""),
        sends("fetch: number -1", FETCH, &number(&[0xff]))
            .must("open, DT reject(1, 2)", "fetch: item: invalid SequenceNumber (X.413 6.3)"),
        sends("fetch: number 2^31", FETCH, &number(&[0, 0x80, 0, 0, 0]))
            .must("open, DT error 28", ""),
        sends("fetch: number 2^32", FETCH, &number(&[1, 0, 0, 0, 0]))
            .must("open, DT reject(1, 2)", "fetch: item: invalid SequenceNumber (X.413 6.3)"),
        sends("fetch: number 2^64", FETCH, &number(&[1, 0, 0, 0, 0, 0, 0, 0, 0]))
            .must("open, DT reject(1, 2)", "fetch: item: invalid INTEGER (X.690 8.3)"),
        sends("fetch: a number without octets", FETCH, &number(&[]))
            .must("open, DT reject(1, 2)", "fetch: item: invalid INTEGER (X.690 8.3)"),
        sends(
            "fetch: a number and a search",
            FETCH,
            &tlv(0x31, &[&[0xa1, 2, 0x31, 0], &[0xa2, 3, 2, 1, 9]]),
        )
        .must("open, DT error 28", ""),
        sends("fetch: a search that finds nothing", FETCH, &range(&[9], &[12]))
            .must("open, DT result", ""),
        sends("list: from 9 to 3", LIST, &range(&[9], &[3])).must("open, DT error 25", ""),
        sends("list: from -1", LIST, &range(&[0xff], &[3]))
            .must("open, DT reject(1, 2)", "list: from: invalid SequenceNumber (X.413 6.3)"),
        sends("list: to 2^32", LIST, &range(&[1], &[1, 0, 0, 0, 0]))
            .must("open, DT reject(1, 2)", "list: to: invalid SequenceNumber (X.413 6.3)"),
        sends(
            "list: from 2^32-1 to 2^32-1",
            LIST,
            &range(&[0, 0xff, 0xff, 0xff, 0xff], &[0, 0xff, 0xff, 0xff, 0xff]),
        )
        .must("open, DT result", ""),
        sends("delete: no numbers", DELETE, &deletes(&[])).must("open, DT result", ""),
        sends("delete: what is not there", DELETE, &deletes(&[2, 1, 9]))
            .must("open, DT error 28", ""),
        sends("delete: what is there and what is not", DELETE, &deletes(&[2, 1, 1, 2, 1, 9]))
            .sends(invoke(2, LIST, &ALL))
            .must("open, DT error 28, DT result", ""),
        sends("delete: one number a hundred times", DELETE, &deletes(&[2, 1, 1].repeat(100)))
            .must("open, DT result", ""),
        sends("delete: number -1", DELETE, &deletes(&[2, 1, 0xff]))
            .must("open, DT reject(1, 2)", "delete: items: invalid SequenceNumber (X.413 6.3)"),
        sends(
            "delete: 20,000 numbers that are not there",
            DELETE,
            &deletes(&[2, 1, 9].repeat(20_000)),
        )
        .must("open, DT error 28", ""),
        sends("delete: everything, twice", DELETE, &ALL)
            .sends(invoke(2, DELETE, &ALL))
            .sends(invoke(3, FETCH, &FIRST))
            .must("open, DT result, DT result, DT error 28", ""),
    ]
}

fn registrations() -> Vec<Case> {
    let registers = |name: &str, octets: &[u8]| {
        let all = tlv(0x31, &[&tlv(0xa0, &[&tlv(0x31, &[octets])])]);
        sends(&format!("register-MS: {name}"), REGISTER, &all)
    };
    let action = |kind: u8, rest: &[u8]| tlv(0x30, &[&[6, 4, 0x56, 4, 4, kind], rest]);
    let alert = |identifier: &[u8]| {
        action(1, &[tlv(0xa0, &[&tlv(2, &[identifier])]), vec![0xa1, 2, 0x31, 0]].concat())
    };
    let change = |old: &[u8], new: &[u8]| {
        tlv(0x31, &[&tlv(0xa4, &[&tlv(0x30, &[&tlv(0xa0, &[old]), &tlv(0xa1, &[new])])])])
    };
    let password = tlv(0x16, &[b"secret"]);
    let defaults =
        |oid: &[u8], n: usize| tlv(0x31, &[&tlv(0xa2, &[&tlv(0x31, &[&oid.repeat(n)])])]);
    let removed = tlv(0x31, &[&tlv(0xa1, &[&tlv(0x31, &[&action(1, &[0xa0, 3, 2, 1, 9])])])]);
    vec![
        registers("an auto-forward without arguments", &action(0, &[0xa1, 2, 0x31, 0]))
            .must("open, DT error 29", ""),
        registers("an auto-action nobody knows", &tlv(0x30, &[&[6, 2, 0x51, 99]]))
            .must("open, DT error 22", ""),
        registers("an alert without a parameter", &action(1, &[])).must("open, DT error 29", ""),
        registers("an alert that is an INTEGER", &action(1, &[0xa1, 3, 2, 1, 7]))
            .must("open, DT error 29", ""),
        registers("alert 0", &alert(&[0])).must("open, DT error 29", ""),
        registers("alert -1", &alert(&[0xff])).must("open, DT error 29", ""),
        registers("alert 2^62", &alert(&[0x40, 0, 0, 0, 0, 0, 0, 0])).must("open, DT error 29", ""),
        registers(
            "257 alerts",
            &(0..=256u16).flat_map(|n| alert(&n.to_be_bytes())).collect::<Vec<u8>>(),
        )
        .must(
            "open, DT reject(1, 2)",
            "register-MS: auto-action-registrations: more than the limit of 256",
        ),
        registers(
            "200 alerts",
            &(0..200u16).flat_map(|n| alert(&n.to_be_bytes())).collect::<Vec<u8>>(),
        )
        .must("open, DT error 29", ""),
        sends("register-MS: what was not registered is removed", REGISTER, &removed)
            .must("open, DT error 22", ""),
        sends("register-MS: 1,025 defaults", REGISTER, &defaults(&attribute(ENTRY_TYPE), 1_025))
            .must(
                "open, DT reject(1, 2)",
                "register-MS: list-attribute-defaults: more than the limit of 1024",
            ),
        sends("register-MS: a default nobody knows", REGISTER, &defaults(&[6, 2, 0x51, 99], 1))
            .must("open, DT error 21", ""),
        sends(
            "register-MS: strong credentials",
            REGISTER,
            &change(&password, &tlv(0xa0, &[&[0x31, 0]])),
        )
        .must("open, DT error 6", ""),
        sends(
            "register-MS: new credentials alone",
            REGISTER,
            &tlv(0x31, &[&tlv(0xa4, &[&tlv(0x30, &[&tlv(0xa1, &[&password])])])]),
        )
        .must("open, DT reject(1, 2)", "register-MS: old-credentials: unexpected [1]"),
        sends(
            "register-MS: a password of 5,000 octets",
            REGISTER,
            &change(&password, &tlv(0x16, &[&[b'p'; 5_000]])),
        )
        .must("open, DT result", ""),
        sends("register-MS: an empty password", REGISTER, &change(&password, &[0x16, 0]))
            .must("open, DT result", ""),
    ]
}
