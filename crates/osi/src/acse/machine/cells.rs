//! Every cell of the table, as the machine performs it.

use super::super::table::State;
use super::*;
use crate::presentation::table::State as Below;
use crate::table::{cells, shown};

fn value() -> Value {
    Value { context: 3, octets: Bytes::from_static(&[5, 0]) }
}

fn with(event: Event) -> With {
    let reference = ConnectionReference::default();
    let requirements = crate::session::service::requirements::RTSE;
    let rejected = || {
        let (value, detail) = (Some(value()), "acse: rejected".to_owned());
        With::Rejected(Indication::Rejected { transient: true, diagnostic: None, value, detail })
    };
    let application_context = profiles::application_context::mts_access();
    match event {
        Event::AAscReq => {
            With::Request(Request::Associate { reference, requirements, value: value() })
        }
        Event::AAscRspAccept => With::Request(Request::Accept { requirements, value: value() }),
        Event::AAscRspReject => {
            With::Request(Request::Reject { transient: true, diagnostic: 1, value: None })
        }
        Event::ARlsReq => With::Request(Request::Release),
        Event::ARlsRsp => With::Request(Request::ReleaseResponse),
        Event::AAbrReq => With::Request(Request::Abort(Some(value()))),
        Event::Aarq => With::Aarq(Indication::Associate {
            application_context,
            session_selector: None,
            presentation_selector: None,
            reference,
            syntaxes: Vec::new(),
            value: Some(value()),
        }),
        Event::AarqUnsupported => With::Unsupported { version1: true, application_context },
        Event::AareAccepted => With::Information(Some(value())),
        Event::AareRejected | Event::PConCnfRefused => rejected(),
        Event::RlrqInitiator | Event::RlrqResponder | Event::Rlre => With::Nothing,
        Event::Abrt => With::Abort(vec![value()]),
        Event::PPAbInd | Event::Fail => With::Detail("presentation: lost".to_owned()),
        Event::Invalid => With::Wrong("no APDU".to_owned()),
    }
}

#[test]
fn every_cell_does_what_it_names() {
    let selectors = crate::api::Selectors::default;
    let config = profiles::p1(selectors(), selectors(), ConnectionReference::default());
    let text = cells::<Table>(|state: State, event, _| {
        let mut acse = Acse::at(&config, Role::Initiator, state);
        let below = match event {
            Event::AAscReq => Below::Stai0,
            Event::AAscRspAccept | Event::AAscRspReject | Event::Aarq | Event::AarqUnsupported => {
                Below::Stai2
            }
            _ => Below::Stat0,
        };
        let mut below = Presentation::at(&config, Role::Initiator, below);
        acse.on(&mut below, event, with(event));
        let agreed = acse.agreed.as_ref().map(|name| format!(" agreed {name}"));
        let agreed = agreed.unwrap_or_default();
        let (down, up) = (shown(&below.down), shown(&acse.up));
        format!("{down} {up} -> {:?}{agreed}", acse.automaton.state())
    });
    insta::assert_snapshot!("acse_cells", text);
}
