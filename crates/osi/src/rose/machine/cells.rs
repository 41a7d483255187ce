//! Every cell of the table, as the machine performs it.

use super::*;
use crate::acse::table::State as Acse;
use crate::api::{Payload, RefuseReason};
use crate::presentation::table::State as Presentation;
use crate::profiles;
use crate::rose::pdu::problem;
use crate::table::{cells, shown};

fn value() -> Value {
    Value { context: 3, octets: Bytes::from_static(&[5, 0]) }
}

fn with(event: Event) -> With {
    let bind = Bytes::from_static(&[5, 0]);
    let problem = problem::DUPLICATE_INVOCATION;
    match event {
        Event::BindReq => With::Request(R::Open { bind }),
        Event::BindRspAccept => With::Request(R::Accept { bind }),
        Event::BindRspRefuse => {
            With::Request(R::Refuse { reason: RefuseReason::Bind, bind_error: Some(bind) })
        }
        Event::InvokeReq => With::Request(R::Invoke {
            invoke: 9,
            syntax: profiles::abstract_syntax::msse(),
            operation: 3,
            argument: Payload::whole(bind),
        }),
        Event::UnbindReq => With::Request(R::Release),
        Event::AbortReq => With::Request(R::Abort(api::AbortReason::UserError)),
        Event::AnswerReq => {
            With::Request(R::Result { invoke: 5, operation: 3, result: Payload::whole(bind) })
        }
        Event::Content => With::Request(R::Content(bind)),
        Event::ContentFailed => With::Detail("rose: the content cannot be read".to_owned()),
        Event::BindInd => {
            let reference = ConnectionReference::default();
            With::Bind(reference, Indication::Invoked { invoke: 0, operation: 0 })
        }
        Event::BindCnf => With::Bound(bind),
        Event::BindRefused => With::Refused(Refused {
            transient: true,
            diagnostic: None,
            value: None,
            detail: "acse: rejected".to_owned(),
        }),
        Event::Roiv => With::Invoked { invoke: 6, operation: 3 },
        Event::Answer => With::Answered(Indication::Returned { invoke: 4 }),
        Event::Rorj | Event::BadApdu => With::Rejected { invoke: Some(4), problem },
        Event::ReleaseInd
        | Event::ReleaseIndBeforeReq
        | Event::ReleaseCollisionInitiator
        | Event::ReleaseCollisionResponder
        | Event::ReleaseCnf => With::Nothing,
        Event::AbortInd => With::Abort { value: Some(value()), detail: "acse: ABRT".to_owned() },
        Event::Invalid | Event::Timeout => With::Why("this is wrong".to_owned()),
        Event::Fail => With::Detail("rose: a misuse".to_owned()),
    }
}

/// The layers below as they stand when the event comes.
fn below(config: &Config, state: State, event: Event) -> Below {
    let (presentation, acse) = match (state, event) {
        (State::Sta00, Event::BindInd) | (State::Sta02, _) => (Presentation::Stai2, Acse::Sta2),
        (State::Sta00, _) => (Presentation::Stai0, Acse::Sta0),
        (State::Sta01, _) => (Presentation::Stat0, Acse::Sta5),
        (_, Event::ReleaseInd | Event::ReleaseIndBeforeReq) => (Presentation::Stat0, Acse::Sta4),
        (_, Event::ReleaseCollisionInitiator) => (Presentation::Stat0, Acse::Sta6),
        (State::Sta21, Event::ReleaseCnf) => (Presentation::Stat0, Acse::Sta4),
        (State::Sta10, _) => (Presentation::Stat0, Acse::Sta5),
        (State::Sta20 | State::Sta21, _) => (Presentation::Stat0, Acse::Sta3),
    };
    Below::at(config, Role::Initiator, presentation, acse)
}

#[test]
fn every_cell_does_what_it_names() {
    let selectors = api::Selectors::default;
    let config = profiles::p3(selectors(), selectors(), ConnectionReference::default());
    let text = cells::<Table>(|state, event, _| {
        let mut below = below(&config, state, event);
        let mut rose = Rose::new(&config, Role::Initiator);
        rose.automaton = Automaton::at(state);
        rose.theirs.insert(5, 3);
        rose.ours.insert(4, None);
        if event == Event::Content {
            let argument = Payload { content_length: 2, ..Payload::default() };
            rose.enqueue(&mut below, 3, None, &[], &argument);
            rose.pump(&mut below);
            rose.up.clear();
        }
        rose.discarding = true;
        rose.on(&mut below, event, with(event));
        let (ours, theirs): (Vec<_>, Vec<_>) =
            (rose.ours.keys().collect(), rose.theirs.keys().collect());
        let mut text = format!("{} {}", below.outputs(), shown(&rose.up));
        text += &format!(" {ours:?} {theirs:?} {}", rose.queue.len());
        for (set, name) in [(rose.release_due, " release due"), (!rose.discarding, " kept")] {
            text += if set { name } else { "" };
        }
        format!("{text} -> {:?}", rose.automaton.state())
    });
    insta::assert_snapshot!("rose_cells", text);
}
