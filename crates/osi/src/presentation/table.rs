//! The presentation protocol machine's state table (X.226 Annex A), kernel.

use crate::table::{Cell, go};

/// States as X.226 Table A-2 names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Idle: no presentation connection.
    Stai0,
    /// Awaits CPA or CPR.
    Stai1,
    /// Awaits P-CONNECT response.
    Stai2,
    /// Connected: data transfer.
    Stat0,
}

/// All states.
#[cfg(test)]
pub(crate) const STATES: [State; 4] = [State::Stai0, State::Stai1, State::Stai2, State::Stat0];

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Events as X.226 Table A-1 lists them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event { $($(#[$doc])* $name),* }
        /// All events.
        #[cfg(test)]
        pub(crate) const EVENTS: &[Event] = &[$(Event::$name),*];
    };
}

events! {
    /// P-CONNECT request.
    PConReq,
    /// P-CONNECT response, accepting.
    PConRspAccept,
    /// P-CONNECT response, refusing.
    PConRspRefuse,
    /// P-DATA request, or a piece of it.
    PDtReq,
    /// P-RELEASE request.
    PRelReq,
    /// P-RELEASE response.
    PRelRsp,
    /// P-U-ABORT request.
    PUAbReq,
    /// P-TOKEN-PLEASE request and all that passes through (6.7 to 6.11).
    PassReq,
    /// S-CONNECT indication with a CP PPDU of normal mode.
    Cp,
    /// S-CONNECT indication with a CP PPDU we cannot take up.
    CpRefused,
    /// S-CONNECT confirm with a CPA PPDU.
    Cpa,
    /// S-CONNECT confirm, refused, with a CPR PPDU or none.
    Cpr,
    /// S-DATA indication, or a piece of it.
    Td,
    /// S-RELEASE indication.
    SRelInd,
    /// S-RELEASE confirm.
    SRelCnf,
    /// S-RELEASE confirm while a release of the peer awaits its response (collision).
    SRelCnfCollision,
    /// S-U-ABORT indication with an ARU PPDU or none.
    Aru,
    /// S-U-ABORT indication with an ARP PPDU.
    Arp,
    /// S-P-ABORT indication.
    SPAbInd,
    /// S-TOKEN-PLEASE indication and all that passes through (6.7 to 6.11).
    PassInd,
    /// A PPDU that is no PPDU or has an invalid parameter.
    Invalid,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sends CP in S-CONNECT request.
    SendCp,
    /// Sends CPA in S-CONNECT response.
    SendCpa,
    /// Sends CPR in a refusing S-CONNECT response.
    SendCpr,
    /// Issues P-CONNECT indication.
    PConInd,
    /// Sends CPR of our own; the user hears why.
    RefuseCp,
    /// Issues P-CONNECT confirm, accepting.
    PConCnfAccept,
    /// Issues P-CONNECT confirm, refusing.
    PConCnfRefuse,
    /// Sends TD in S-DATA request.
    SendTd,
    /// Issues P-DATA indication.
    PDtInd,
    /// Passes the primitive through, its user data framed.
    Pass,
    /// Sends ARU in S-U-ABORT request.
    SendAru,
    /// Issues P-U-ABORT indication.
    PUAbInd,
    /// Issues P-P-ABORT indication.
    PPAbInd,
    /// Sends ARP in S-U-ABORT request and issues P-P-ABORT indication.
    SendArp,
    /// Nothing: it crossed the end of the connection.
    Ignore,
    /// A request our own layers may not make here.
    Misuse,
}

/// The table.
pub(crate) fn cell(state: State, event: Event) -> Cell<State, Action> {
    use Action as A;
    use Event as E;
    use State::{Stai0, Stai1, Stai2, Stat0};
    match (event, state) {
        (E::PConReq, Stai0) => go(A::SendCp, Stai1, "X.226 6.2.4.1"),
        (E::Cp, Stai0) => go(A::PConInd, Stai2, "X.226 6.2.4.2"),
        (E::CpRefused, Stai0) => go(A::RefuseCp, Stai0, "X.226 6.2.4.7"),
        (E::PConRspAccept, Stai2) => go(A::SendCpa, Stat0, "X.226 6.2.4.4"),
        (E::PConRspRefuse, Stai2) => go(A::SendCpr, Stai0, "X.226 6.2.4.5"),
        (E::Cpa, Stai1) => go(A::PConCnfAccept, Stat0, "X.226 6.2.4.8"),
        (E::Cpr, Stai1) => go(A::PConCnfRefuse, Stai0, "X.226 6.2.4.9"),
        (E::PDtReq, Stat0) => go(A::SendTd, Stat0, "X.226 6.6.1"),
        (E::Td, Stat0) => go(A::PDtInd, Stat0, "X.226 6.6.1"),
        (E::PRelReq | E::PRelRsp, Stat0) => go(A::Pass, Stat0, "X.226 6.3"),
        (E::SRelInd, Stat0) => go(A::Pass, Stat0, "X.226 6.3"),
        (E::SRelCnf, Stat0) => go(A::Pass, Stai0, "X.226 6.3"),
        (E::SRelCnfCollision, Stat0) => go(A::Pass, Stat0, "X.226 6.3; X.225 7.6"),
        (E::PassReq | E::PassInd, Stat0) => go(A::Pass, Stat0, "X.226 6.7 to 6.11"),
        (E::PUAbReq, Stai1 | Stai2 | Stat0) => go(A::SendAru, Stai0, "X.226 6.4.1"),
        (E::PUAbReq, Stai0) => go(A::Ignore, Stai0, "X.226 6.4.1"),
        (E::Aru, Stai1 | Stai2 | Stat0) => go(A::PUAbInd, Stai0, "X.226 6.4.1"),
        (E::Arp, Stai1 | Stai2 | Stat0) => go(A::PPAbInd, Stai0, "X.226 6.4.2"),
        (E::SPAbInd, _) => go(A::PPAbInd, Stai0, "X.226 6.4.3"),
        (E::Invalid, Stai1 | Stai2 | Stat0) => go(A::SendArp, Stai0, "X.226 6.4.2.2"),
        (E::Aru | E::Arp | E::Invalid, Stai0) => go(A::Ignore, Stai0, "X.226 6.4"),
        // What was on its way when the connection ended.
        (E::Td | E::PassInd | E::SRelInd | E::SRelCnf | E::SRelCnfCollision, Stai0)
        | (E::Cpa | E::Cpr, Stai0) => go(A::Ignore, Stai0, "X.226 6.4"),
        (E::PConReq | E::PConRspAccept | E::PConRspRefuse, _)
        | (E::PDtReq | E::PRelReq | E::PRelRsp | E::PassReq, _) => {
            go(A::Misuse, state, "X.226 Annex A, A.4")
        }
        (E::Cp | E::CpRefused | E::Cpa | E::Cpr | E::Td, Stai1 | Stai2 | Stat0)
        | (E::SRelInd | E::SRelCnf | E::SRelCnfCollision | E::PassInd, Stai1 | Stai2) => {
            go(A::SendArp, Stai0, "X.226 6.4.2.2")
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_state_against_every_event() {
        let table = crate::table::print(&super::STATES, super::EVENTS, super::cell);
        insta::assert_snapshot!("presentation_table", table);
    }
}
