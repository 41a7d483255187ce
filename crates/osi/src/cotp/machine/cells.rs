//! Every cell of the table, as the machine performs it.

use super::*;
use crate::api::Role;
use crate::profiles;
use crate::session::service::ConnectionReference;
use crate::table::{Automaton, cells, shown};

fn machine(state: State) -> Machine {
    let selectors = crate::api::Selectors::default;
    let config = profiles::p1(selectors(), selectors(), ConnectionReference::default());
    let mut machine = Machine::new(LowerConfig::new(&config, Role::Initiator));
    machine.automaton = Automaton::at(state);
    machine
}

fn with(event: Event) -> With {
    let connect = Connect { destination: REFERENCE, source: 7, ..Connect::default() };
    match event {
        Event::Tconreq | Event::Tdisreq | Event::Dt => With::Nothing,
        Event::Tdtreq => With::Data(Bytes::from_static(b"data"), true),
        Event::Cr | Event::Cc => With::Connect(connect),
        Event::CrRefused => With::Refused(reason::NEGOTIATION_FAILED, "class 0 only"),
        Event::Dr => With::Reason(reason::CONGESTION),
        Event::Er => With::Ends(End::Rejected(2)),
        Event::Invalid => {
            With::Rejected(Rejected { error: pdu::Error::Type, header: vec![2, 0x10, 0] })
        }
        Event::Unreadable => {
            let mut octets = Bytes::from_static(&[9, 9, 9, 9]);
            With::Ends(End::Unreadable(tpkt::Decoder::default().next(&mut octets).unwrap_err()))
        }
        Event::Ndisind => With::Ends(End::Eof),
        Event::Timer => With::Ends(End::Timeout),
        Event::Fail => With::Ends(End::Misuse("transport: a misuse".to_owned())),
    }
}

fn outcome(machine: &mut Machine) -> String {
    let out: Vec<Output> = std::iter::from_fn(|| machine.poll()).collect();
    let delivering = if machine.delivering { " delivering" } else { "" };
    let wait = if machine.deadline.is_some() { " wait" } else { "" };
    format!("{} -> {:?}{delivering}{wait}", shown(&out), machine.automaton.state())
}

#[test]
fn every_cell_does_what_it_names() {
    let text = cells::<Table>(|state, event, _| {
        let mut machine = machine(state);
        machine.on(Instant::default(), event, with(event));
        outcome(&mut machine)
    });
    insta::assert_snapshot!("transport_cells", text);
}

#[test]
fn a_misuse_ends_the_connection() {
    for state in [State::Wfcc, State::Open] {
        let mut machine = machine(state);
        machine.connect(Instant::default());
        let detail = format!("transport: Tconreq in {state:?} (X.224 A.3)");
        let expected = [Output::Disconnected { refused: None, detail }, Output::Close];
        assert_eq!(std::iter::from_fn(|| machine.poll()).collect::<Vec<_>>(), expected);
        assert_eq!(machine.state(), State::Ended);
    }
}
