//! The association control protocol machine's state table (X.227 Annex A).

use crate::table::{Cell, go};

/// States as X.227 Table A-2 names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Idle: unassociated.
    Sta0,
    /// Awaiting AARE.
    Sta1,
    /// Awaiting A-ASSOCIATE response.
    Sta2,
    /// Awaiting RLRE.
    Sta3,
    /// Awaiting A-RELEASE response.
    Sta4,
    /// Associated.
    Sta5,
    /// Awaiting A-RELEASE response, collision, association initiator.
    Sta6,
    /// Awaiting RLRE, collision, association responder.
    Sta7,
}

/// All states.
#[cfg(test)]
pub(crate) const STATES: [State; 8] = [
    State::Sta0,
    State::Sta1,
    State::Sta2,
    State::Sta3,
    State::Sta4,
    State::Sta5,
    State::Sta6,
    State::Sta7,
];

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Events as X.227 Table A-1 lists them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event { $($(#[$doc])* $name),* }
        /// All events.
        #[cfg(test)]
        pub(crate) const EVENTS: &[Event] = &[$(Event::$name),*];
    };
}

events! {
    /// A-ASSOCIATE request.
    AAscReq,
    /// A-ASSOCIATE response, accepting.
    AAscRspAccept,
    /// A-ASSOCIATE response, rejecting.
    AAscRspReject,
    /// A-RELEASE request.
    ARlsReq,
    /// A-RELEASE response, affirmative.
    ARlsRsp,
    /// A-ABORT request.
    AAbrReq,
    /// P-CONNECT indication with an AARQ we can take up.
    Aarq,
    /// P-CONNECT indication with an AARQ whose version or application context we do not support.
    AarqUnsupported,
    /// P-CONNECT confirm, accepted, with AARE accepted.
    AareAccepted,
    /// P-CONNECT confirm, refused, with AARE rejected.
    AareRejected,
    /// P-CONNECT confirm, refused, without AARE.
    PConCnfRefused,
    /// P-RELEASE indication with RLRQ (association initiator).
    RlrqInitiator,
    /// P-RELEASE indication with RLRQ (association responder).
    RlrqResponder,
    /// P-RELEASE confirm with RLRE.
    Rlre,
    /// P-U-ABORT indication, with ABRT or without.
    Abrt,
    /// P-P-ABORT indication.
    PPAbInd,
    /// An APDU that is none, or malformed.
    Invalid,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sends AARQ in P-CONNECT request.
    SendAarq,
    /// Sends AARE accepted.
    SendAareAccepted,
    /// Sends AARE rejected in a refusing P-CONNECT response.
    SendAareRejected,
    /// The same, the rejection being our own.
    RejectAarq,
    /// Issues A-ASSOCIATE indication.
    AAscInd,
    /// Issues A-ASSOCIATE confirm, accepted.
    AAscCnfAccept,
    /// Issues A-ASSOCIATE confirm, rejected.
    AAscCnfReject,
    /// Sends RLRQ.
    SendRlrq,
    /// Sends RLRE.
    SendRlre,
    /// Issues A-RELEASE indication.
    ARlsInd,
    /// Issues A-RELEASE confirm.
    ARlsCnf,
    /// Sends ABRT, source acse-service-user.
    SendAbrt,
    /// Sends ABRT, source acse-service-provider, and issues A-ABORT indication.
    AbortProvider,
    /// Issues A-ABORT indication.
    AAbInd,
    /// Issues A-P-ABORT indication.
    APAbInd,
    /// Nothing: it crossed the end of the association.
    Ignore,
    /// A request the association user may not make here.
    Misuse,
}

/// The table.
pub(crate) fn cell(state: State, event: Event) -> Cell<State, Action> {
    use Action as A;
    use Event as E;
    use State::{Sta0, Sta1, Sta2, Sta3, Sta4, Sta5, Sta6, Sta7};
    match (event, state) {
        (E::AAscReq, Sta0) => go(A::SendAarq, Sta1, "X.227 7.1.3.1"),
        (E::Aarq, Sta0) => go(A::AAscInd, Sta2, "X.227 7.1.3.2"),
        (E::AarqUnsupported, Sta0) => go(A::RejectAarq, Sta0, "X.227 7.1.3.2"),
        (E::AAscRspAccept, Sta2) => go(A::SendAareAccepted, Sta5, "X.227 7.1.3.3"),
        (E::AAscRspReject, Sta2) => go(A::SendAareRejected, Sta0, "X.227 7.1.3.3"),
        (E::AareAccepted, Sta1) => go(A::AAscCnfAccept, Sta5, "X.227 7.1.3.4"),
        (E::AareRejected | E::PConCnfRefused, Sta1) => go(A::AAscCnfReject, Sta0, "X.227 7.1.3.4"),
        (E::ARlsReq, Sta5) => go(A::SendRlrq, Sta3, "X.227 7.2.3.1"),
        (E::RlrqInitiator | E::RlrqResponder, Sta5) => go(A::ARlsInd, Sta4, "X.227 7.2.3.2"),
        (E::ARlsRsp, Sta4) => go(A::SendRlre, Sta0, "X.227 7.2.3.3"),
        (E::Rlre, Sta3) => go(A::ARlsCnf, Sta0, "X.227 7.2.3.4"),
        // Both ends asked at once: the initiator answers first (7.2.3.5).
        (E::RlrqInitiator, Sta3) => go(A::ARlsInd, Sta6, "X.227 7.2.3.5"),
        (E::RlrqResponder, Sta3) => go(A::ARlsInd, Sta7, "X.227 7.2.3.5"),
        (E::ARlsRsp, Sta6) => go(A::SendRlre, Sta3, "X.227 7.2.3.5"),
        (E::Rlre, Sta7) => go(A::ARlsCnf, Sta4, "X.227 7.2.3.5"),
        (E::AAbrReq, Sta0) => go(A::Ignore, Sta0, "X.227 7.3.3.1"),
        (E::AAbrReq, _) => go(A::SendAbrt, Sta0, "X.227 7.3.3.1"),
        (E::Abrt, Sta0) => go(A::Ignore, Sta0, "X.227 7.3.3"),
        (E::Abrt, _) => go(A::AAbInd, Sta0, "X.227 7.3.3.2"),
        (E::PPAbInd, _) => go(A::APAbInd, Sta0, "X.227 7.3.4"),
        (E::Invalid, Sta0) => go(A::AbortProvider, Sta0, "X.227 7.3.3.3"),
        (
            E::RlrqInitiator | E::RlrqResponder | E::Rlre | E::AareAccepted | E::AareRejected,
            Sta0,
        )
        | (E::PConCnfRefused, Sta0) => go(A::Ignore, Sta0, "X.227 7.3.3"),
        (E::AAscReq | E::AAscRspAccept | E::AAscRspReject | E::ARlsReq | E::ARlsRsp, _) => {
            go(A::Misuse, state, "X.227 Annex A, A.4")
        }
        (
            E::Aarq
            | E::AarqUnsupported
            | E::AareAccepted
            | E::AareRejected
            | E::PConCnfRefused
            | E::RlrqInitiator
            | E::RlrqResponder
            | E::Rlre
            | E::Invalid,
            _,
        ) => go(A::AbortProvider, Sta0, "X.227 7.3.3.3"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_state_against_every_event() {
        let table = crate::table::print(&super::STATES, super::EVENTS, super::cell);
        insta::assert_snapshot!("acse_table", table);
    }
}
