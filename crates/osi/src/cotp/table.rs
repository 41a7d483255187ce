//! The state table of class 0 over TCP (X.224 annex A, RFC 1006 section 5). [`super::Machine`]
//! does what it says; a snapshot test prints it whole.

/// States (X.224 annex A), with the names of the annex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// CLOSED: the TCP connection is there, the transport connection is not.
    Closed,
    /// WFCC: a CR is sent.
    Wfcc,
    /// OPEN.
    Open,
    /// A DR or ER is sent: wait for the peer to close TCP.
    Closing,
    /// The TCP connection is gone or given up. Nothing follows.
    Ended,
}

/// Events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// T-CONNECT.request.
    Tconreq,
    /// T-DATA.request.
    Tdtreq,
    /// T-DISCONNECT.request.
    Tdisreq,
    /// A CR that can be accepted.
    Cr,
    /// A CR to be refused: class or called selector.
    CrRefused,
    /// A CC for class 0.
    Cc,
    /// A DR.
    Dr,
    /// A DT within the size negotiated.
    Dt,
    /// An ER.
    Er,
    /// A TPDU that is invalid.
    Invalid,
    /// A TPKT that is invalid: the stream cannot be read on.
    Unreadable,
    /// The TCP connection ended.
    Ndisind,
    /// The wait is over.
    Timer,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Send a CR.
    SendCr,
    /// Send a CC; T-CONNECT.indication, answered at once.
    Accept,
    /// Send a DR that says why.
    Refuse,
    /// T-CONNECT.confirm.
    Confirm,
    /// Send DTs.
    SendDt,
    /// T-DATA.indication.
    Deliver,
    /// T-DISCONNECT.indication and close TCP.
    Disconnected,
    /// Send an ER, T-DISCONNECT.indication.
    Reject,
    /// Close TCP.
    Close,
    /// Our own user's fault.
    Misuse,
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What to do.
    pub action: Action,
    /// The state after it.
    pub next: State,
    /// The clause that says so.
    pub clause: &'static str,
}

/// All states.
pub const STATES: [State; 5] =
    [State::Closed, State::Wfcc, State::Open, State::Closing, State::Ended];

/// All events.
pub const EVENTS: [Event; 13] = [
    Event::Tconreq,
    Event::Tdtreq,
    Event::Tdisreq,
    Event::Cr,
    Event::CrRefused,
    Event::Cc,
    Event::Dr,
    Event::Dt,
    Event::Er,
    Event::Invalid,
    Event::Unreadable,
    Event::Ndisind,
    Event::Timer,
];

/// The table.
pub const fn cell(state: State, event: Event) -> Cell {
    use Action as A;
    use Event as E;
    use State as S;
    let (action, next, clause) = match (state, event) {
        (S::Closed, E::Tconreq) => (A::SendCr, S::Wfcc, "X.224 6.5"),
        (S::Closed, E::Cr) => (A::Accept, S::Open, "X.224 6.5"),
        (S::Closed, E::CrRefused) => (A::Refuse, S::Closing, "X.224 6.6"),
        (S::Wfcc, E::Cc) => (A::Confirm, S::Open, "X.224 6.5"),
        (S::Wfcc, E::Dr) => (A::Disconnected, S::Ended, "X.224 6.6"),
        (S::Open, E::Tdtreq) => (A::SendDt, S::Open, "X.224 6.3"),
        (S::Open, E::Dt) => (A::Deliver, S::Open, "X.224 6.3"),
        // Class 0 releases by closing the network connection; some peers say DR before it.
        (S::Open | S::Wfcc | S::Closed, E::Tdisreq) => (A::Close, S::Ended, "X.224 6.7.1"),
        (S::Open, E::Dr) => (A::Disconnected, S::Ended, "X.224 6.7.1"),
        (S::Closed, E::Dr) => (A::Disconnected, S::Ended, "X.224 6.6"),
        (S::Open | S::Wfcc | S::Closed, E::Er) => (A::Disconnected, S::Ended, "X.224 6.22"),
        (S::Open, E::Cr | E::CrRefused | E::Cc | E::Invalid)
        | (S::Wfcc, E::Cr | E::CrRefused | E::Dt | E::Invalid)
        | (S::Closed, E::Cc | E::Dt | E::Invalid) => (A::Reject, S::Closing, "X.224 6.22"),
        (S::Open | S::Wfcc | S::Closed, E::Unreadable) => (A::Disconnected, S::Ended, "RFC 1006 6"),
        (S::Open | S::Wfcc | S::Closed, E::Ndisind) => (A::Disconnected, S::Ended, "X.224 6.8"),
        (S::Wfcc | S::Closed, E::Timer) => (A::Disconnected, S::Ended, "X.224 6.5"),
        (S::Open, E::Timer) => (A::Nothing, S::Open, "X.224 A.3"),
        // What is still under way from the peer does not matter any more.
        (S::Closing, E::Ndisind | E::Timer | E::Tdisreq | E::Dr | E::Unreadable) => {
            (A::Close, S::Ended, "X.224 6.8")
        }
        (S::Closing, E::Tdtreq) => (A::Nothing, S::Closing, "X.224 6.8"),
        (S::Closing, E::Cr | E::CrRefused | E::Cc | E::Dt | E::Er | E::Invalid) => {
            (A::Nothing, S::Closing, "X.224 6.8")
        }
        (S::Ended, E::Tconreq) => (A::Misuse, S::Ended, "X.224 A.3"),
        (S::Ended, _) => (A::Nothing, S::Ended, "X.224 6.8"),
        (_, E::Tconreq | E::Tdtreq) => (A::Misuse, state, "X.224 A.3"),
    };
    Cell { action, next, clause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    #[test]
    fn every_state_against_every_event() {
        let mut text = String::new();
        for state in STATES {
            writeln!(text, "{state:?}").unwrap();
            for event in EVENTS {
                let Cell { action, next, clause } = cell(state, event);
                let (event, action, next) =
                    (format!("{event:?}"), format!("{action:?}"), format!("{next:?}"));
                writeln!(text, "  {event:<11} {action:<13} -> {next:<8} {clause}").unwrap();
            }
        }
        insta::assert_snapshot!("cotp_state_table", text);
    }
}
