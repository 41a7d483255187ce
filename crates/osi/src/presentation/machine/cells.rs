//! Every cell of the table, as the machine performs it.

use super::super::pdu::CpError;
use super::super::table::State;
use super::*;
use crate::profiles;
use crate::session::service::{ConnectionReference, requirements};
use crate::table::{cells, shown};

fn value() -> Value {
    Value { context: 3, octets: Bytes::from_static(&[5, 0]) }
}

/// What an event brings, in one or several forms.
fn with(event: Event) -> Vec<With> {
    let reference = ConnectionReference::default();
    let requirements = requirements::RTSE;
    let request = |request| vec![With::Request(request)];
    let released = || vec![With::Up(Indication::Released(vec![value()]))];
    match event {
        Event::PConReq => request(Request::Connect { reference, requirements, value: value() }),
        Event::PConRspAccept => request(Request::Accept { requirements, value: value() }),
        Event::PConRspRefuse => request(Request::Refuse { value: value() }),
        Event::PDtReq => vec![
            With::Request(Request::DataStart { context: 3, length: Some(2) }),
            With::Request(Request::Data { bytes: value().octets, last: true }),
        ],
        Event::PRelReq => request(Request::Release(value())),
        Event::PRelRsp => request(Request::ReleaseResponse(value())),
        Event::PUAbReq => request(Request::Abort(Some(value()))),
        Event::PassReq => vec![
            With::Request(Request::PleaseTokens(value())),
            With::Request(Request::Pass(session::Request::ActivityEnd)),
        ],
        Event::Cp => {
            let contexts = Contexts(vec![(3, profiles::abstract_syntax::mta_rtse())]);
            let indication = Indication::Accepted { values: vec![value()] };
            vec![With::Cp { verdicts: vec![Verdict::Acceptance], contexts, indication }]
        }
        Event::CpRefused => {
            let verdicts = vec![Verdict::Acceptance];
            vec![With::Refusal(verdicts, Refusal::Ppdu(CpError::Version))]
        }
        Event::Cpa => {
            let cpa = pdu::Cpa {
                responding: None,
                results: vec![Verdict::Acceptance; 3],
                values: vec![value()],
            };
            let (responding_selector, user_data) = (None, pdu::encode_cpa(&cpa));
            vec![With::Accept(session::Accept { responding_selector, requirements, user_data })]
        }
        Event::Cpr => {
            vec![With::Refuse(session::Refuse { reason: 1, user_data: Bytes::new() })]
        }
        Event::Td => vec![With::Data(pdu::user_data(&value()), true)],
        Event::SRelInd => vec![With::Up(Indication::Release(vec![value()]))],
        Event::SRelCnf | Event::SRelCnfCollision => released(),
        Event::Aru => vec![With::Aru(vec![value()])],
        Event::Arp | Event::SPAbInd => vec![With::Aborted("session: lost".to_owned())],
        Event::PassInd => vec![With::Up(Indication::PleaseTokens(vec![value()]))],
        Event::Invalid => {
            let error = Error { fault: Fault::Truncated, field: Some("User-data") };
            vec![With::Invalid(Event::Td, error)]
        }
        Event::Fail => {
            let detail = "presentation: a misuse".to_owned();
            vec![With::Detail(ProviderReason::UnexpectedPpdu, None, detail)]
        }
    }
}

#[test]
fn every_cell_does_what_it_names() {
    let selectors = crate::api::Selectors::default;
    let config = profiles::p1(selectors(), selectors(), ConnectionReference::default());
    let text = cells::<Table>(|state: State, event, _| {
        let mut machine = Presentation::at(&config, Role::Initiator, state);
        for with in with(event) {
            machine.on(event, with);
        }
        let (down, up) = (shown(&machine.down), shown(&machine.up));
        let answer = if machine.answer_due { " answer due" } else { "" };
        format!("{down} {up} -> {:?}{answer}", machine.automaton.state())
    });
    insta::assert_snapshot!("presentation_cells", text);
}
