//! Every cell of the table, as the machine performs it.

use super::*;
use crate::acse::table::State as Acse;
use crate::api::{Payload, RefuseReason, Request as R, ResumePoint, Role, Service};
use crate::presentation::table::State as Presentation;
use crate::profiles;
use crate::rtse::table::State as S;
use crate::table::{cells, shown};

fn with(event: Event) -> With {
    let bind = Bytes::from_static(&[5, 0]);
    let reference = ConnectionReference::default();
    let payload = Payload { content_length: 4_000, ..Payload::default() };
    let point = ResumePoint { reference: reference.clone(), activity: 1, serial: 2, octets: 1_000 };
    let resume = session::Resume {
        activity: pdu::encode_integer(2),
        old_activity: pdu::encode_integer(1),
        serial: 2,
        old_reference: None,
    };
    match event {
        Event::OpenReq => With::Request(R::Open { bind }),
        Event::OpenRspAccept => With::Request(R::Accept { bind }),
        Event::RecoverRspAccept => With::Request(R::AcceptRecover(None)),
        Event::OpenRspRefuse => {
            With::Request(R::Refuse { reason: RefuseReason::Bind, bind_error: Some(bind) })
        }
        Event::TransferReq => With::Request(R::Transfer { payload, resume: None }),
        Event::ResumeReq => With::Request(R::Transfer { payload, resume: Some(point) }),
        Event::TurnGiveReq | Event::TurnGiveReqMonologue => With::Request(R::TurnGive),
        Event::CloseReq => With::Request(R::Release),
        Event::UAbortReq => With::Request(R::Abort(AbortReason::UserError)),
        Event::Content => With::Request(R::Content(Bytes::from_static(&[7; 10]))),
        Event::ContentFailed => With::Request(R::ContentFailed),
        Event::InterruptReq => With::Request(R::Interrupt),
        Event::PauseReq => With::Request(R::Pause(true)),
        Event::Stored => With::Request(R::Stored { octets: 100 }),
        Event::TransferRsp => With::Request(R::TransferSecured),
        Event::TransferRefused => With::Request(R::TransferRefused(AbortReason::TemporaryProblem)),
        Event::TurnPleaseReq => With::Request(R::TurnPlease(3)),
        Event::RtorqOpen => With::Open(Indication::TurnPlease(99)),
        Event::RtorqRecover => With::Recover(reference, Indication::TurnPlease(99)),
        Event::Rtoac => With::Opened(bind, 1, 2),
        Event::Rtorj => With::Refused(Refused {
            transient: true,
            diagnostic: None,
            value: None,
            detail: "acse: rejected".to_owned(),
        }),
        Event::ActivityStart => With::Activity(pdu::encode_integer(4)),
        Event::ActivityResume => With::Resume(resume),
        Event::Rttr => With::ValueStart,
        Event::SyncInd | Event::SyncCnf => With::Serial(1),
        Event::Exception => With::Exception(Some(ExceptionReason::NonSpecific)),
        Event::Rttp => With::Priority(3),
        Event::AbortInd => With::Aborted(None, "acse: ABRT".to_owned()),
        Event::Invalid => With::Wrong(AbortReason::InvalidParameter, "this is wrong".to_owned()),
        Event::Fail => With::Detail(AbortReason::LocalSystemProblem, "rtse: a misuse".to_owned()),
        Event::EndInd
        | Event::EndCnf
        | Event::InterruptInd
        | Event::InterruptCnf
        | Event::DiscardInd
        | Event::DiscardCnf
        | Event::ControlGive
        | Event::ReleaseInd
        | Event::ReleaseCnf
        | Event::Timeout
        | Event::AllSent
        | Event::Suspend
        | Event::InterruptDue
        | Event::DiscardDue => With::Nothing,
    }
}

/// The layers below as they stand when the event comes.
fn below(config: &Config, state: S, event: Event) -> Below {
    let (presentation, acse) = match (state, event) {
        (S::Sta00, Event::RtorqOpen | Event::RtorqRecover) | (S::Sta02 | S::Sta03, _) => {
            (Presentation::Stai2, Acse::Sta2)
        }
        (S::Sta00, _) => (Presentation::Stai0, Acse::Sta0),
        (_, Event::ReleaseInd) => (Presentation::Stat0, Acse::Sta4),
        (S::Sta40, _) => (Presentation::Stat0, Acse::Sta3),
        _ => (Presentation::Stat0, Acse::Sta5),
    };
    Below::at(config, Role::Initiator, presentation, acse)
}

/// A machine in this state: where it sends, content is awaited and checkpoint 1 is not confirmed;
/// where it receives, checkpoint 1 awaits its confirm.
fn machine(config: &Config, below: &mut Below, state: S) -> Rtse {
    let Service::Rtse(parameters) = &config.service else { panic!("P1 is on RTSE") };
    let mut rtse = Rtse::new(config, parameters);
    rtse.checkpoint = Some(1_024);
    rtse.window = 3;
    rtse.recovering = Some(ConnectionReference::default()).filter(|_| state == S::Sta03);
    match state {
        S::Sta20 | S::Sta21 | S::Sta22 | S::Sta23 | S::Sta24 => {
            let payload = Payload { content_length: 4_000, ..Payload::default() };
            let request = With::Request(R::Transfer { payload, resume: None });
            rtse.start_activity(below, request).unwrap();
            let outflow = rtse.outflow.as_mut().unwrap();
            let length = usize::try_from(outflow.begin()).unwrap();
            assert!(outflow.sent(length));
            outflow.checkpoint_set();
            outflow.begin();
            outflow.waiting = Some(1_000);
        }
        S::Sta30 | S::Sta31 | S::Sta32 => {
            rtse.activity_start(With::Activity(pdu::encode_integer(7))).unwrap();
            rtse.sync(below, &With::Serial(1)).unwrap();
        }
        _ => {}
    }
    rtse.up.clear();
    rtse.automaton = Automaton::at(state);
    rtse
}

/// An RTTR with all of an APDU, a NULL.
fn whole_apdu(rtse: &mut Rtse, below: &mut Below) {
    let rttr = [0x04, 9, 0x28, 7, 2, 1, 5, 0xa0, 2, 5, 0];
    for with in [With::ValueStart, With::ValueData(Bytes::copy_from_slice(&rttr)), With::ValueEnd] {
        rtse.data(below, with).unwrap();
    }
}

/// Activity 1, interrupted after its second checkpoint.
fn interrupted_apdu(rtse: &mut Rtse, below: &mut Below) {
    rtse.activity_start(With::Activity(pdu::encode_integer(1))).unwrap();
    rtse.sync(below, &With::Serial(1)).unwrap();
    rtse.sync(below, &With::Serial(2)).unwrap();
    assert_eq!(rtse.stored(0), Some(2));
    rtse.interrupted.extend(rtse.receiving.take().map(Receiving::interrupted));
}

fn outcome(rtse: &Rtse, below: &Below) -> String {
    let mut text = format!("{} {}", below.outputs(), shown(&rtse.up));
    if let Some(outflow) = &rtse.outflow {
        text += &format!(
            " outflow {} {:?} {} {} {:?}",
            outflow.next,
            outflow.waiting,
            outflow.interrupt,
            outflow.pause,
            outflow.confirmed(),
        );
    }
    if let Some(receiving) = &rtse.receiving {
        text += &format!(" receiving {} {:?}", receiving.is_confirmed(), receiving.is_open());
    }
    let kept = (rtse.interrupted.len(), rtse.completed.is_some(), rtse.recovering.is_some());
    format!("{text} {kept:?} {:?} -> {:?}", rtse.window, rtse.automaton.state())
}

#[test]
fn every_cell_does_what_it_names() {
    let selectors = api::Selectors::default;
    let config = profiles::p1(selectors(), selectors(), ConnectionReference::default());
    let text = cells::<Table>(|state, event, _| {
        let mut below = below(&config, state, event);
        let mut rtse = machine(&config, &mut below, state);
        match event {
            Event::EndInd => whole_apdu(&mut rtse, &mut below),
            Event::ActivityResume => interrupted_apdu(&mut rtse, &mut below),
            _ => {}
        }
        rtse.up.clear();
        below.forget();
        rtse.on(&mut below, event, with(event));
        outcome(&rtse, &below)
    });
    insta::assert_snapshot!("rtse_cells", text);
}
