//! The remote operation protocol machine's state table (X.229 Annex A), with the bind and unbind
//! that ACSE carries for it.

use crate::table::{Cell, go};

/// States; the first digit tells the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Idle: unassociated.
    Sta00,
    /// Awaiting A-ASSOCIATE confirm.
    Sta01,
    /// Awaiting the answer to a bind.
    Sta02,
    /// Associated: operations.
    Sta10,
    /// Awaiting A-RELEASE confirm.
    Sta20,
    /// The same after a collision, the peer's release still to be answered.
    Sta21,
}

/// All states.
#[cfg(test)]
pub(crate) const STATES: [State; 6] =
    [State::Sta00, State::Sta01, State::Sta02, State::Sta10, State::Sta20, State::Sta21];

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Events: requests of the user, APDUs and what ACSE tells.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event { $($(#[$doc])* $name),* }
        /// All events.
        #[cfg(test)]
        pub(crate) const EVENTS: &[Event] = &[$(Event::$name),*];
    };
}

events! {
    /// Bind request.
    BindReq,
    /// Bind response, accepting.
    BindRspAccept,
    /// Bind response, refusing.
    BindRspRefuse,
    /// RO-INVOKE request.
    InvokeReq,
    /// RO-RESULT, RO-ERROR or RO-REJECT-U request.
    AnswerReq,
    /// Content that was asked for.
    Content,
    /// The content cannot be had.
    ContentFailed,
    /// Unbind request.
    UnbindReq,
    /// A-ABORT request.
    AbortReq,
    /// A-ASSOCIATE indication with a bind argument.
    BindInd,
    /// A-ASSOCIATE confirm with a bind result.
    BindCnf,
    /// A-ASSOCIATE confirm, rejected.
    BindRefused,
    /// ROIV.
    Roiv,
    /// RORS or ROER.
    Answer,
    /// RORJ.
    Rorj,
    /// An APDU to be rejected, or one of an unknown invocation.
    BadApdu,
    /// A-RELEASE indication.
    ReleaseInd,
    /// A-RELEASE indication to the initiator while its own release is not confirmed.
    ReleaseCollisionInitiator,
    /// The same to the responder.
    ReleaseCollisionResponder,
    /// A-RELEASE confirm.
    ReleaseCnf,
    /// A-ABORT or A-P-ABORT indication.
    AbortInd,
    /// The operation timer expired.
    Timeout,
    /// User information that is no bind, or a value in a context that carries no operations.
    Invalid,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sends the bind argument in A-ASSOCIATE request.
    SendBind,
    /// Sends the bind result in A-ASSOCIATE response.
    SendBindResult,
    /// Sends the bind error in a rejecting A-ASSOCIATE response.
    SendBindError,
    /// Sends an APDU once those before it are sent.
    SendApdu,
    /// Sends content of an APDU.
    SendContent,
    /// A-RELEASE request once all APDUs are sent.
    Release,
    /// A-ABORT request.
    Abort,
    /// Issues the bind indication.
    BindInd,
    /// Issues the bind confirm, positive.
    BindCnf,
    /// Issues the bind confirm, negative.
    RefuseCnf,
    /// Issues RO-INVOKE indication.
    InvokeInd,
    /// Issues RO-RESULT or RO-ERROR indication.
    AnswerInd,
    /// Issues RO-REJECT-U or RO-REJECT-P indication.
    RejectInd,
    /// Sends RORJ.
    SendRorj,
    /// A-RELEASE response; the association is over.
    ReleaseRsp,
    /// A-RELEASE response, the confirm of our own is still to come.
    ReleaseRspFirst,
    /// A-RELEASE response once our own release is confirmed.
    ReleaseRspLater,
    /// The association is over.
    ReleaseCnf,
    /// A-RELEASE response that waited for this confirm.
    ReleaseCnfThenRsp,
    /// Issues A-ABORT indication.
    AbortInd,
    /// A-ABORT request, and tells the user.
    AbortProvider,
    /// It crossed the end of what it belongs to.
    Ignore,
    /// A request the user may not make here.
    Misuse,
}

/// The table.
pub(crate) fn cell(state: State, event: Event) -> Cell<State, Action> {
    use Action as A;
    use Event as E;
    use State::{Sta00, Sta01, Sta02, Sta10, Sta20, Sta21};
    match (event, state) {
        (E::BindReq, Sta00) => go(A::SendBind, Sta01, "X.219 9.2; X.227 7.1.3.1"),
        (E::BindInd, Sta00) => go(A::BindInd, Sta02, "X.219 9.2; X.227 7.1.3.2"),
        (E::BindRspAccept, Sta02) => go(A::SendBindResult, Sta10, "X.219 9.2; X.227 7.1.3.3"),
        (E::BindRspRefuse, Sta02) => go(A::SendBindError, Sta00, "X.219 9.2; X.227 7.1.3.3"),
        (E::BindCnf, Sta01) => go(A::BindCnf, Sta10, "X.219 9.2; X.227 7.1.3.4"),
        (E::BindRefused, Sta01) => go(A::RefuseCnf, Sta00, "X.219 9.2; X.227 7.1.3.4"),
        (E::InvokeReq, Sta10) => go(A::SendApdu, Sta10, "X.229 7.1.1"),
        (E::AnswerReq, Sta10) => go(A::SendApdu, Sta10, "X.229 7.2.1, 7.3.1, 7.4.1"),
        (E::Content, Sta10 | Sta20) => go(A::SendContent, state, "X.229 8.1"),
        (E::ContentFailed, Sta10 | Sta20) => go(A::AbortProvider, Sta00, "X.227 7.3.3.1"),
        (E::Roiv, Sta10) => go(A::InvokeInd, Sta10, "X.229 7.1.2"),
        (E::Answer, Sta10 | Sta20 | Sta21) => go(A::AnswerInd, state, "X.229 7.2.2, 7.3.2"),
        (E::Rorj, Sta10 | Sta20 | Sta21) => go(A::RejectInd, state, "X.229 7.4.2, 7.5.2"),
        (E::BadApdu, Sta10) => go(A::SendRorj, Sta10, "X.229 7.5.1"),
        (E::Roiv | E::BadApdu, Sta20 | Sta21) => go(A::Ignore, state, "X.227 7.2.3"),
        (E::UnbindReq, Sta10) => go(A::Release, Sta20, "X.219 9.3; X.227 7.2.3.1"),
        (E::ReleaseInd, Sta10) => go(A::ReleaseRsp, Sta00, "X.219 9.3; X.227 7.2.3.2"),
        (E::ReleaseCollisionInitiator, Sta20) => go(A::ReleaseRspFirst, Sta20, "X.227 7.2.3.5"),
        (E::ReleaseCollisionResponder, Sta20) => go(A::ReleaseRspLater, Sta21, "X.227 7.2.3.5"),
        (E::ReleaseCnf, Sta20) => go(A::ReleaseCnf, Sta00, "X.227 7.2.3.4"),
        (E::ReleaseCnf, Sta21) => go(A::ReleaseCnfThenRsp, Sta00, "X.227 7.2.3.5"),
        (E::AbortReq, Sta00) => go(A::Ignore, Sta00, "X.227 7.3.3.1"),
        (E::AbortReq, _) => go(A::Abort, Sta00, "X.227 7.3.3.1"),
        (E::AbortInd, _) => go(A::AbortInd, Sta00, "X.227 7.3.3.2, 7.3.4"),
        (E::Timeout, Sta10 | Sta20 | Sta21) => {
            go(A::AbortProvider, Sta00, "X.219 9; X.227 7.3.3.1")
        }
        (E::Timeout, _) => go(A::Ignore, state, "X.219 9"),
        (E::Invalid, _) => go(A::AbortProvider, Sta00, "X.227 7.3.3.1"),
        (E::AnswerReq | E::Content | E::ContentFailed, _) => {
            go(A::Ignore, state, "X.227 7.2.3: it crossed a release")
        }
        (E::BindReq | E::BindRspAccept | E::BindRspRefuse | E::InvokeReq | E::UnbindReq, _) => {
            go(A::Misuse, state, "X.229 Annex A")
        }
        (_, Sta00) => go(A::Ignore, Sta00, "X.227 7.3.3"),
        (
            E::BindInd
            | E::BindCnf
            | E::BindRefused
            | E::Roiv
            | E::Answer
            | E::Rorj
            | E::BadApdu
            | E::ReleaseInd
            | E::ReleaseCollisionInitiator
            | E::ReleaseCollisionResponder
            | E::ReleaseCnf,
            _,
        ) => go(A::AbortProvider, Sta00, "X.229 Annex A"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_state_against_every_event() {
        let table = crate::table::print(&super::STATES, super::EVENTS, super::cell);
        insta::assert_snapshot!("rose_table", table);
    }
}
