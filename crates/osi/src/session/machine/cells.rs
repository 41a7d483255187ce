//! Every cell of the table, as the machine performs it.

use super::super::pdu::{AcceptSpdu, Enclosure, Error, disconnect};
use super::super::service::{ExceptionReason, Refuse, Resume};
use super::*;
use crate::profiles;
use crate::session::service::Accept;
use crate::table::{Automaton, cells, find, shown};

const RTSE: u16 = requirements::RTSE;
const NO_ACTIVITY: u16 =
    requirements::HALF_DUPLEX | requirements::MINOR_SYNC | requirements::EXCEPTIONS;

/// Situations: which variables, and what the event brings.
fn situations() -> Vec<(Variables, Facts)> {
    let mut all = Vec::new();
    let bools = [false, true];
    for (fu, owned) in [(RTSE, 0x15), (RTSE, 0), (requirements::DUPLEX, 0), (NO_ACTIVITY, 5)] {
        for bits in 0..64 {
            let bit = |n: u32| bools[(bits >> n) & 1];
            let (vact, vsc, vtca) = (bit(0), bit(1), bit(5));
            let (vcoll, vdnr, answered) = (bit(2), bit(3), bit(4));
            let (va, vm, vr) = (1, 3, 1);
            let variables =
                Variables { vtca, fu, owned, vact, vsc, va, vm, vr, vcoll, vdnr, answered };
            for serial in [3, 2, 1] {
                for tokens in [variables.available(), variables.available() & !1] {
                    for acceptable in bools {
                        all.push((variables.clone(), Facts { serial, tokens, acceptable }));
                    }
                }
            }
        }
    }
    all
}

fn resume() -> Resume {
    let (activity, old_activity) = (Bytes::from_static(b"2"), Bytes::from_static(b"1"));
    Resume { activity, old_activity, serial: 2, old_reference: None }
}

fn connect() -> ConnectSpdu {
    ConnectSpdu {
        reference: ConnectionReference::default(),
        versions: VERSION_2,
        tsdu_maximum: None,
        token_setting: 0,
        requirements: RTSE,
        calling: None,
        called: None,
        overflow: false,
        user_data: Bytes::new(),
    }
}

fn request(event: Event, serial: u32) -> Option<Request> {
    use ExceptionReason::NonSpecific;
    let (user_data, activity) = (Bytes::from_static(b"user"), Bytes::from_static(b"1"));
    let (calling_selector, called_selector, responding_selector) = (None, None, None);
    let (reference, requirements) = (ConnectionReference::default(), RTSE);
    Some(match event {
        Event::Sconreq => Request::Connect(Connect {
            calling_selector,
            called_selector,
            reference,
            requirements,
            user_data,
        }),
        Event::SconrspAccept => {
            Request::Accept(Accept { responding_selector, requirements, user_data })
        }
        Event::SconrspReject => Request::Refuse(Refuse { reason: 2, user_data }),
        Event::Sdtreq => Request::Data { bytes: user_data, last: true },
        Event::Sgtreq => Request::GiveTokens,
        Event::Scgreq => Request::GiveControl,
        Event::Sptreq => Request::PleaseTokens { user_data },
        Event::Sactsreq => Request::ActivityStart { activity },
        Event::Sactrreq => Request::ActivityResume(resume()),
        Event::Sactireq => Request::ActivityInterrupt(NonSpecific),
        Event::Sactirsp => Request::ActivityInterruptResponse,
        Event::Sactdreq => Request::ActivityDiscard(NonSpecific),
        Event::Sactdrsp => Request::ActivityDiscardResponse,
        Event::Sactereq => Request::ActivityEnd,
        Event::Sactersp => Request::ActivityEndResponse,
        Event::Ssynmreq => Request::MinorSync,
        Event::Ssynmrsp => Request::MinorSyncResponse { serial },
        Event::Suerreq => Request::ExceptionReport(NonSpecific),
        Event::Srelreq => Request::Release { user_data },
        Event::Srelrsp => Request::ReleaseResponse { user_data },
        Event::Suabreq => Request::Abort { user_data },
        _ => return None,
    })
}

fn spdu(event: Event, Facts { serial, tokens, .. }: Facts) -> Option<Spdu> {
    use ExceptionReason::LocalError;
    let user_data = Bytes::from_static(b"user");
    let reference = ConnectionReference::default();
    Some(match event {
        Event::Cn => Spdu::Connect(connect()),
        Event::Ac => Spdu::Accept(AcceptSpdu {
            reference,
            version: Some(VERSION_2),
            tsdu_maximum: None,
            token_setting: None,
            please: 0,
            requirements: RTSE,
            responding: None,
            user_data,
        }),
        Event::Rf => Spdu::Refuse { reference, requirements: None, reason: 1, user_data },
        Event::Fn => Spdu::Finish { keep: false, user_data },
        Event::Dn => Spdu::Disconnect { user_data },
        Event::Ab => Spdu::Abort { disconnect: disconnect::USER, reflect: Bytes::new(), user_data },
        Event::Aa => Spdu::AbortAccept,
        Event::Dt => Spdu::Data(Enclosure::WHOLE),
        Event::Gt => Spdu::GiveTokens(tokens),
        Event::Pt => Spdu::PleaseTokens { tokens, user_data },
        Event::Gtc => Spdu::GiveControl,
        Event::Gta => Spdu::GiveControlAck,
        Event::Mip => Spdu::MinorSync { serial, explicit: true },
        Event::Mia => Spdu::MinorSyncAck(serial),
        Event::As => Spdu::ActivityStart(Bytes::from_static(b"1")),
        Event::Ar => Spdu::ActivityResume(resume()),
        Event::Ai => Spdu::ActivityInterrupt(LocalError),
        Event::Aia => Spdu::ActivityInterruptAck,
        Event::Ad => Spdu::ActivityDiscard(LocalError),
        Event::Ada => Spdu::ActivityDiscardAck,
        Event::Ae => Spdu::ActivityEnd(serial),
        Event::Aea => Spdu::ActivityEndAck(serial),
        Event::Ed => Spdu::ExceptionData(LocalError),
        Event::Er => Spdu::ExceptionReport,
        _ => return None,
    })
}

fn with(event: Event, facts: Facts) -> With {
    if let Some(request) = request(event, facts.serial) {
        return With::Request(request);
    }
    if let Some(spdu) = spdu(event, facts) {
        return With::Spdu(spdu);
    }
    match event {
        Event::Tdisind => With::Lost { refused: Some(3), detail: "transport: lost".to_owned() },
        Event::Invalid => With::Rejected(Rejected {
            error: Error::Identifier(99),
            reflect: Bytes::from_static(&[99]),
        }),
        Event::Fail => With::Fault("session: a fault".to_owned()),
        _ => With::Nothing,
    }
}

fn machine(state: State, variables: Variables) -> Machine {
    let selectors = crate::api::Selectors::default;
    let config = profiles::p1(selectors(), selectors(), ConnectionReference::default());
    let mut machine = Machine::new(LowerConfig::new(&config, Role::Initiator));
    machine.automaton = Automaton::at(state);
    machine.variables = variables;
    machine.proposed = RTSE;
    machine.please = Some(Bytes::from_static(b"please"));
    machine.response = Bytes::from_static(b"response");
    if let Some(Request::Connect(connect)) = request(Event::Sconreq, 0) {
        machine.request = Some(connect).filter(|_| state == State::Sta01B);
    }
    machine
}

fn outcome(machine: &mut Machine, before: &Variables) -> String {
    let out: Vec<Output> = std::iter::from_fn(|| machine.poll()).collect();
    let mut text = format!("{} -> {:?}", shown(&out), machine.automaton.state());
    if machine.variables != *before {
        text += &format!(" {:?}", machine.variables);
    }
    if machine.receiving == Receiving::Deliver {
        text += " delivering";
    }
    if machine.please != Some(Bytes::from_static(b"please")) {
        text += &format!(" please {:?}", machine.please);
    }
    if machine.response != b"response"[..] {
        text += &format!(" response {:?}", machine.response);
    }
    if let Some(detail) = &machine.detail {
        text += &format!(" detail {detail}");
    }
    text + if machine.deadline.is_some() { " wait" } else { "" }
}

#[test]
fn every_cell_does_what_it_names() {
    let situations = situations();
    let text = cells::<Table>(|state, event, row| {
        let counts = |(variables, facts): &&(Variables, Facts)| {
            find::<Table>(state, event, |when| variables.holds(when, facts)).row == Some(row)
        };
        let (variables, facts) = situations.iter().find(counts).expect("a row that can count");
        let mut machine = machine(state, variables.clone());
        machine.on(Instant::default(), event, facts, with(event, *facts));
        outcome(&mut machine, variables)
    });
    insta::assert_snapshot!("session_cells", text);
}
