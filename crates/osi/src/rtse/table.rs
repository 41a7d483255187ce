//! The reliable transfer protocol machine's state table (X.228 Annex A), normal mode.

use crate::table::{Cell, go};

/// States: the first digit tells the phase, as in X.228 Annex A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Idle: unassociated.
    Sta00,
    /// Awaiting A-ASSOCIATE confirm.
    Sta01,
    /// Awaiting RT-OPEN response.
    Sta02,
    /// Awaiting the answer to a recovery.
    Sta03,
    /// Associated, the turn is ours.
    Sta10,
    /// Associated, the turn is the peer's.
    Sta11,
    /// Sending an APDU.
    Sta20,
    /// Sending, suspended: the window is full, or an interrupt awaits its confirms.
    Sta21,
    /// Awaiting P-ACTIVITY-END confirm.
    Sta22,
    /// Awaiting P-ACTIVITY-INTERRUPT confirm.
    Sta23,
    /// Awaiting P-ACTIVITY-DISCARD confirm.
    Sta24,
    /// Receiving an APDU.
    Sta30,
    /// Awaiting RT-TRANSFER response.
    Sta31,
    /// Awaiting the end of an activity after an exception report.
    Sta32,
    /// Awaiting A-RELEASE confirm.
    Sta40,
}

/// All states.
#[cfg(test)]
pub(crate) const STATES: [State; 15] = [
    State::Sta00,
    State::Sta01,
    State::Sta02,
    State::Sta03,
    State::Sta10,
    State::Sta11,
    State::Sta20,
    State::Sta21,
    State::Sta22,
    State::Sta23,
    State::Sta24,
    State::Sta30,
    State::Sta31,
    State::Sta32,
    State::Sta40,
];

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Events: requests of the user, indications of ACSE and presentation, and what the machine
        /// finds out itself while it sends.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event { $($(#[$doc])* $name),* }
        /// All events.
        #[cfg(test)]
        pub(crate) const EVENTS: &[Event] = &[$(Event::$name),*];
    };
}

events! {
    /// RT-OPEN request, or the recovery of an association.
    OpenReq,
    /// RT-OPEN response, accepting.
    OpenRspAccept,
    /// Recovery response, accepting.
    RecoverRspAccept,
    /// RT-OPEN or recovery response, refusing.
    OpenRspRefuse,
    /// RT-TRANSFER request.
    TransferReq,
    /// RT-TRANSFER request that goes on with an activity.
    ResumeReq,
    /// Content that was asked for.
    Content,
    /// The content cannot be had.
    ContentFailed,
    /// The user wants the transfer interrupted.
    InterruptReq,
    /// The user wants the transfer to pause, or to go on.
    PauseReq,
    /// Octets up to a checkpoint are stored.
    Stored,
    /// RT-TRANSFER response: secured.
    TransferRsp,
    /// The user cannot take the APDU.
    TransferRefused,
    /// RT-TURN-PLEASE request.
    TurnPleaseReq,
    /// RT-TURN-GIVE request.
    TurnGiveReq,
    /// RT-CLOSE request.
    CloseReq,
    /// RT-U-ABORT request.
    UAbortReq,
    /// A-ASSOCIATE indication with RTORQ open.
    RtorqOpen,
    /// A-ASSOCIATE indication with RTORQ recover.
    RtorqRecover,
    /// A-ASSOCIATE confirm with RTOAC.
    Rtoac,
    /// A-ASSOCIATE confirm, rejected, with RTORJ or without.
    Rtorj,
    /// P-ACTIVITY-START indication.
    ActivityStart,
    /// P-ACTIVITY-RESUME indication.
    ActivityResume,
    /// P-DATA indication, or a piece of it: RTTR.
    Rttr,
    /// P-SYNC-MINOR indication.
    SyncInd,
    /// P-SYNC-MINOR confirm.
    SyncCnf,
    /// P-ACTIVITY-END indication.
    EndInd,
    /// P-ACTIVITY-END confirm.
    EndCnf,
    /// P-ACTIVITY-INTERRUPT indication.
    InterruptInd,
    /// P-ACTIVITY-INTERRUPT confirm.
    InterruptCnf,
    /// P-ACTIVITY-DISCARD indication.
    DiscardInd,
    /// P-ACTIVITY-DISCARD confirm.
    DiscardCnf,
    /// P-U-EXCEPTION-REPORT or P-P-EXCEPTION-REPORT indication.
    Exception,
    /// P-TOKEN-PLEASE indication: RTTP.
    Rttp,
    /// P-CONTROL-GIVE indication.
    ControlGive,
    /// A-RELEASE indication.
    ReleaseInd,
    /// A-RELEASE confirm.
    ReleaseCnf,
    /// A-ABORT or A-P-ABORT indication, with RTAB or without.
    AbortInd,
    /// An APDU that is none, or malformed.
    Invalid,
    /// The transfer timer expired.
    Timeout,
    /// All octets of the APDU went out.
    AllSent,
    /// No further checkpoint may be set, or an interrupt awaits the confirms.
    Suspend,
    /// The activity is to be interrupted: a checkpoint is confirmed.
    InterruptDue,
    /// The activity is to be discarded: no checkpoint is confirmed, or the content is gone.
    DiscardDue,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sends RTORQ in A-ASSOCIATE request.
    SendRtorq,
    /// Sends RTOAC in A-ASSOCIATE response.
    SendRtoac,
    /// Sends RTORJ in a rejecting A-ASSOCIATE response.
    SendRtorj,
    /// Issues RT-OPEN indication.
    OpenInd,
    /// Tells the user of a recovery asked for.
    RecoverInd,
    /// Issues RT-OPEN confirm, positive.
    OpenCnf,
    /// Issues RT-OPEN confirm, negative.
    RefuseCnf,
    /// P-ACTIVITY-START request, then RTTRs.
    StartActivity,
    /// P-ACTIVITY-RESUME request, then RTTRs.
    ResumeActivity,
    /// Sends content in an RTTR.
    SendContent,
    /// Ends the transfer without content.
    GiveUpContent,
    /// Remembers to interrupt at the next checkpoint.
    MarkInterrupt,
    /// Remembers to pause at the next checkpoint, or goes on.
    MarkPause,
    /// P-SYNC-MINOR response.
    ConfirmCheckpoint,
    /// P-ACTIVITY-END response.
    ConfirmEnd,
    /// P-U-EXCEPTION-REPORT request, or RTAB.
    ReportException,
    /// Sends RTTP in P-TOKEN-PLEASE request.
    SendRttp,
    /// P-CONTROL-GIVE request.
    GiveControl,
    /// A-RELEASE request.
    Release,
    /// A-ABORT request with RTAB.
    SendRtab,
    /// A transfer begins.
    TransferInd,
    /// A transfer goes on, or an RTAB tells why not.
    ResumeInd,
    /// Hands the user octets.
    DataInd,
    /// Tells the user of a checkpoint.
    CheckpointInd,
    /// Takes a checkpoint's confirm and goes on sending.
    CheckpointConfirmed,
    /// Issues RT-TRANSFER indication.
    TransferEndInd,
    /// Issues RT-TRANSFER confirm, positive.
    TransferCnf,
    /// P-ACTIVITY-INTERRUPT response; keeps what was received.
    Interrupted,
    /// P-ACTIVITY-DISCARD response.
    Discarded,
    /// Issues RT-TRANSFER confirm, negative, with where to go on.
    TransferInterruptedCnf,
    /// Issues RT-TRANSFER confirm, negative.
    TransferDiscardedCnf,
    /// Decides between interrupt and discard.
    HandleException,
    /// P-ACTIVITY-END request.
    EndActivity,
    /// P-ACTIVITY-INTERRUPT request.
    InterruptActivity,
    /// P-ACTIVITY-DISCARD request.
    DiscardActivity,
    /// Issues RT-TURN-PLEASE indication.
    TurnPleaseInd,
    /// Issues RT-TURN-GIVE indication.
    TurnGiveInd,
    /// A-RELEASE response; issues RT-CLOSE indication.
    CloseInd,
    /// Issues RT-CLOSE confirm.
    CloseCnf,
    /// Issues RT-U-ABORT or RT-P-ABORT indication.
    AbortInd,
    /// Sends RTAB and issues RT-P-ABORT indication.
    AbortProvider,
    /// Nothing changes but the state.
    Nothing,
    /// It crossed the end of what it belongs to.
    Ignore,
    /// A request the user may not make here.
    Misuse,
}

/// The table.
pub(crate) fn cell(state: State, event: Event) -> Cell<State, Action> {
    opening(state, event)
        .or_else(|| sending(state, event))
        .or_else(|| receiving(state, event))
        .or_else(|| ending(state, event))
        .unwrap_or_else(|| otherwise(state, event))
}

type Found = Option<Cell<State, Action>>;

/// Association establishment, recovery and the turn.
fn opening(state: State, event: Event) -> Found {
    use Action as A;
    use Event as E;
    use State::{Sta00, Sta01, Sta02, Sta03, Sta10, Sta11, Sta30, Sta31, Sta32};
    Some(match (event, state) {
        (E::OpenReq, Sta00) => go(A::SendRtorq, Sta01, "X.228 7.1.1.1"),
        (E::RtorqOpen, Sta00) => go(A::OpenInd, Sta02, "X.228 7.1.1.2"),
        (E::RtorqRecover, Sta00) => go(A::RecoverInd, Sta03, "X.228 7.8.3"),
        (E::OpenRspAccept, Sta02) => go(A::SendRtoac, Sta11, "X.228 7.1.1.3"),
        (E::RecoverRspAccept, Sta03) => go(A::SendRtoac, Sta11, "X.228 7.8.3"),
        (E::OpenRspRefuse, Sta02) => go(A::SendRtorj, Sta00, "X.228 7.1.1.3"),
        (E::OpenRspRefuse, Sta03) => go(A::SendRtorj, Sta00, "X.228 7.8.3"),
        (E::Rtoac, Sta01) => go(A::OpenCnf, Sta10, "X.228 7.1.1.4"),
        (E::Rtorj, Sta01) => go(A::RefuseCnf, Sta00, "X.228 7.1.1.4"),
        (E::TurnPleaseReq, Sta11 | Sta30 | Sta31 | Sta32) => go(A::SendRttp, state, "X.228 7.4.1"),
        // The turn came while the user asked for it.
        (E::TurnPleaseReq, Sta10) => go(A::Ignore, state, "X.228 7.4.1"),
        (E::Rttp, Sta00) => go(A::Ignore, state, "X.228 7.4.2"),
        (E::Rttp, Sta11 | Sta30 | Sta31 | Sta32) => go(A::Ignore, state, "X.228 7.4.2"),
        (E::Rttp, s) if !matches!(s, Sta01 | Sta02 | Sta03) => {
            go(A::TurnPleaseInd, state, "X.228 7.4.2")
        }
        (E::TurnGiveReq, Sta10) => go(A::GiveControl, Sta11, "X.228 7.5.1"),
        (E::ControlGive, Sta11) => go(A::TurnGiveInd, Sta10, "X.228 7.5.2"),
        _ => return None,
    })
}

/// Transfer, as the end with the turn sees it.
fn sending(state: State, event: Event) -> Found {
    use Action as A;
    use Event as E;
    use State::{Sta10, Sta20, Sta21, Sta22, Sta23, Sta24};
    Some(match (event, state) {
        (E::TransferReq, Sta10) => go(A::StartActivity, Sta20, "X.228 7.3.1"),
        (E::ResumeReq, Sta10) => go(A::ResumeActivity, Sta20, "X.228 7.8.1"),
        (E::Content, Sta20) => go(A::SendContent, Sta20, "X.228 7.3.3"),
        (E::ContentFailed, Sta20) => go(A::GiveUpContent, Sta20, "X.228 7.7.2"),
        (E::InterruptReq, Sta20 | Sta21) => go(A::MarkInterrupt, state, "X.228 7.7.1"),
        (E::PauseReq, Sta20 | Sta21) => go(A::MarkPause, state, "X.228 7.3.4"),
        (E::SyncCnf, Sta20 | Sta21) => go(A::CheckpointConfirmed, Sta20, "X.228 7.3.4"),
        (E::SyncCnf, Sta22) => go(A::CheckpointConfirmed, Sta22, "X.228 7.3.4"),
        (E::Suspend, Sta20) => go(A::Nothing, Sta21, "X.228 7.3.4"),
        (E::AllSent, Sta20) => go(A::EndActivity, Sta22, "X.228 7.3.5"),
        (E::EndCnf, Sta22) => go(A::TransferCnf, Sta10, "X.228 7.3.6"),
        (E::Exception, Sta20 | Sta21 | Sta22) => go(A::HandleException, state, "X.228 7.6.1"),
        (E::InterruptDue, Sta20 | Sta21 | Sta22) => go(A::InterruptActivity, Sta23, "X.228 7.7.1"),
        (E::DiscardDue, Sta20 | Sta21 | Sta22) => go(A::DiscardActivity, Sta24, "X.228 7.7.2"),
        (E::InterruptCnf, Sta23) => go(A::TransferInterruptedCnf, Sta10, "X.228 7.7.1"),
        (E::DiscardCnf, Sta24) => go(A::TransferDiscardedCnf, Sta10, "X.228 7.7.2"),
        (E::Timeout, Sta20 | Sta21 | Sta22 | Sta23 | Sta24) => {
            go(A::AbortProvider, State::Sta00, "X.228 7.9.1")
        }
        // Confirms and reports that crossed our interrupt or discard.
        (E::SyncCnf | E::EndCnf | E::Exception, Sta23 | Sta24) => go(A::Ignore, state, "X.228 7.7"),
        _ => return None,
    })
}

/// Transfer, as the other end sees it.
fn receiving(state: State, event: Event) -> Found {
    use Action as A;
    use Event as E;
    use State::{Sta11, Sta30, Sta31, Sta32};
    Some(match (event, state) {
        (E::ActivityStart, Sta11) => go(A::TransferInd, Sta30, "X.228 7.3.2"),
        (E::ActivityResume, Sta11) => go(A::ResumeInd, Sta30, "X.228 7.8.1"),
        (E::Rttr, Sta30) => go(A::DataInd, Sta30, "X.228 7.3.3"),
        (E::SyncInd, Sta30) => go(A::CheckpointInd, Sta30, "X.228 7.3.4"),
        (E::Stored, Sta30 | Sta31) => go(A::ConfirmCheckpoint, state, "X.228 7.3.4"),
        (E::EndInd, Sta30) => go(A::TransferEndInd, Sta31, "X.228 7.3.5"),
        (E::TransferRsp, Sta31) => go(A::ConfirmEnd, Sta11, "X.228 7.3.6"),
        (E::TransferRefused, Sta30 | Sta31) => go(A::ReportException, Sta32, "X.228 7.6.1"),
        (E::InterruptInd, Sta30 | Sta31 | Sta32) => go(A::Interrupted, Sta11, "X.228 7.7.1"),
        (E::DiscardInd, Sta30 | Sta31 | Sta32) => go(A::Discarded, Sta11, "X.228 7.7.2"),
        // What the sender sent before it heard of the exception.
        (E::Rttr | E::SyncInd | E::EndInd, Sta32) => go(A::Ignore, Sta32, "X.228 7.6.1"),
        (E::Timeout, Sta30) => go(A::AbortProvider, State::Sta00, "X.228 7.9.1"),
        (E::Timeout, Sta32) => go(A::AbortProvider, State::Sta00, "X.228 7.6.1"),
        // The service provider's own report comes to both ends; the sender acts on it.
        (E::Exception, Sta30 | Sta31 | Sta32) => go(A::Nothing, Sta32, "X.228 7.6.2"),
        _ => return None,
    })
}

/// Release and abort.
fn ending(state: State, event: Event) -> Found {
    use Action as A;
    use Event as E;
    use State::{Sta00, Sta10, Sta11, Sta40};
    Some(match (event, state) {
        (E::CloseReq, Sta10) => go(A::Release, Sta40, "X.228 7.2.1"),
        (E::ReleaseInd, Sta10 | Sta11) => go(A::CloseInd, Sta00, "X.228 7.2.2"),
        (E::ReleaseCnf, Sta40) => go(A::CloseCnf, Sta00, "X.228 7.2.3"),
        (E::UAbortReq, Sta00) => go(A::Ignore, Sta00, "X.228 7.9.3"),
        (E::UAbortReq, _) => go(A::SendRtab, Sta00, "X.228 7.9.3"),
        (E::AbortInd, _) => go(A::AbortInd, Sta00, "X.228 7.9.2"),
        _ => return None,
    })
}

/// What no clause asks for: requests too late to matter, faults of our user, faults of the peer.
fn otherwise(state: State, event: Event) -> Cell<State, Action> {
    use Action as A;
    use Event as E;
    use State::Sta00;
    match event {
        E::Content
        | E::ContentFailed
        | E::InterruptReq
        | E::PauseReq
        | E::Stored
        | E::TransferRsp
        | E::TransferRefused
        | E::TurnPleaseReq => go(A::Ignore, state, "X.228 7.7, 7.9: it was cut off meanwhile"),
        E::OpenReq
        | E::OpenRspAccept
        | E::RecoverRspAccept
        | E::OpenRspRefuse
        | E::TransferReq
        | E::ResumeReq
        | E::TurnGiveReq
        | E::CloseReq => go(A::Misuse, state, "X.228 Annex A"),
        E::Timeout | E::AllSent | E::Suspend | E::InterruptDue | E::DiscardDue | E::UAbortReq => {
            go(A::Ignore, state, "X.228 Annex A")
        }
        E::Invalid => go(A::AbortProvider, Sta00, "X.228 7.7.4"),
        _ if state == Sta00 => go(A::Ignore, Sta00, "X.228 7.9"),
        _ => go(A::AbortProvider, Sta00, "X.228 7.7.4"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_state_against_every_event() {
        let table = crate::table::print(&super::STATES, super::EVENTS, super::cell);
        insta::assert_snapshot!("rtse_table", table);
    }
}
