//! The state tables of X.225 annex A for the functional units of this workspace: kernel, duplex,
//! half-duplex, minor synchronize, activity management, exceptions. [`super::Machine`] does what
//! they say; a snapshot test prints them whole.
//!
//! Not here, since they cannot be reached: STA01A (an ABORT of ours always releases the transport
//! connection), STA01D and STA02B (no more than 10,240 octets of connect data), STA04A, STA05A,
//! STA06, STA10A, STA11A (major synchronize and resynchronize are not negotiated), STA15A to
//! STA15D (no transport expedited data, so no PREPARE), STA21, STA22 (capability data is not
//! negotiated).

mod cells;

use cells::{provided, received, requested};

/// States, with the names of X.225 A.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Idle, no transport connection.
    Sta01,
    /// Wait for T-CONNECT confirm.
    Sta01B,
    /// Idle, transport connected.
    Sta01C,
    /// Wait for the ACCEPT SPDU.
    Sta02A,
    /// Wait for the DISCONNECT SPDU.
    Sta03,
    /// Wait for the ACTIVITY END ACK SPDU.
    Sta04B,
    /// Wait for the ACTIVITY INTERRUPT ACK SPDU.
    Sta05B,
    /// Wait for the ACTIVITY DISCARD ACK SPDU.
    Sta05C,
    /// Wait for S-CONNECT response.
    Sta08,
    /// Wait for S-RELEASE response.
    Sta09,
    /// Wait for S-ACTIVITY-END response.
    Sta10B,
    /// Wait for S-ACTIVITY-INTERRUPT response.
    Sta11B,
    /// Wait for S-ACTIVITY-DISCARD response.
    Sta11C,
    /// Wait for T-DISCONNECT indication.
    Sta16,
    /// Wait for the GIVE TOKENS ACK SPDU.
    Sta18,
    /// Wait for a recovery request or SPDU (initiator of the EXCEPTION DATA SPDU).
    Sta19,
    /// Wait for a recovery SPDU or request.
    Sta20,
    /// Data transfer.
    Sta713,
}

/// Incoming events, with the names of X.225 A.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// S-CONNECT request.
    Sconreq,
    /// S-CONNECT (accept) response.
    SconrspAccept,
    /// S-CONNECT (reject) response.
    SconrspReject,
    /// S-DATA request.
    Sdtreq,
    /// S-TOKEN-GIVE request.
    Sgtreq,
    /// S-CONTROL-GIVE request.
    Scgreq,
    /// S-TOKEN-PLEASE request.
    Sptreq,
    /// S-ACTIVITY-START request.
    Sactsreq,
    /// S-ACTIVITY-RESUME request.
    Sactrreq,
    /// S-ACTIVITY-INTERRUPT request.
    Sactireq,
    /// S-ACTIVITY-INTERRUPT response.
    Sactirsp,
    /// S-ACTIVITY-DISCARD request.
    Sactdreq,
    /// S-ACTIVITY-DISCARD response.
    Sactdrsp,
    /// S-ACTIVITY-END request.
    Sactereq,
    /// S-ACTIVITY-END response.
    Sactersp,
    /// S-SYNC-MINOR request.
    Ssynmreq,
    /// S-SYNC-MINOR response.
    Ssynmrsp,
    /// S-U-EXCEPTION-REPORT request.
    Suerreq,
    /// S-RELEASE request.
    Srelreq,
    /// S-RELEASE (accept) response.
    Srelrsp,
    /// S-U-ABORT request.
    Suabreq,
    /// T-CONNECT indication.
    Tconind,
    /// T-CONNECT confirm.
    Tconcnf,
    /// T-DISCONNECT indication.
    Tdisind,
    /// Timer.
    Tim,
    /// CONNECT.
    Cn,
    /// ACCEPT.
    Ac,
    /// REFUSE.
    Rf,
    /// DATA TRANSFER.
    Dt,
    /// GIVE TOKENS with a token item.
    Gt,
    /// PLEASE TOKENS with a token item.
    Pt,
    /// GIVE TOKENS CONFIRM.
    Gtc,
    /// GIVE TOKENS ACK.
    Gta,
    /// MINOR SYNC POINT.
    Mip,
    /// MINOR SYNC ACK.
    Mia,
    /// ACTIVITY START.
    As,
    /// ACTIVITY RESUME.
    Ar,
    /// ACTIVITY INTERRUPT.
    Ai,
    /// ACTIVITY INTERRUPT ACK.
    Aia,
    /// ACTIVITY DISCARD.
    Ad,
    /// ACTIVITY DISCARD ACK.
    Ada,
    /// ACTIVITY END.
    Ae,
    /// ACTIVITY END ACK.
    Aea,
    /// EXCEPTION DATA.
    Ed,
    /// EXCEPTION REPORT.
    Er,
    /// FINISH.
    Fn,
    /// DISCONNECT.
    Dn,
    /// ABORT.
    Ab,
    /// ABORT ACCEPT.
    Aa,
    /// What is no valid SPDU.
    Invalid,
}

/// Predicates, numbered as in X.225 A.5; dk, mi, ma are the data, synchronize-minor and
/// major/activity tokens. Those without a number there are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// We made the transport connection.
    P01,
    /// dk not available, or ours.
    P03,
    /// Duplex, no collision of releases.
    P04,
    /// dk not available, or the peer's.
    P05,
    /// No collision of releases.
    P10,
    /// ma available and ours.
    P11,
    /// Where there are activities: inside one. dk not available or the peer's, mi available and the
    /// peer's.
    P14,
    /// As P14, with both ours.
    P15,
    /// Inside an activity, minor synchronize; a confirmation may be received.
    P17,
    /// Inside an activity, minor synchronize; a confirmation may be sent.
    P18,
    /// Serial number = V(M).
    P19,
    /// Serial number = V(M) - 1.
    P20,
    /// Serial number is neither V(M) - 1.
    NotP20,
    /// V(M) > serial number >= V(A).
    P21,
    /// Activity management.
    P34,
    /// Inside an activity, ma available and ours.
    P39,
    /// ma available and the peer's.
    P40,
    /// Activity management, outside an activity, dk, mi and ma each not available or the peer's.
    P44,
    /// As P44, with all ours.
    P45,
    /// Exceptions and half-duplex.
    P48,
    /// Exceptions, inside an activity, dk available and the peer's.
    P50,
    /// As P50, with dk ours.
    P51,
    /// Exceptions, no activity management, dk ours.
    P52,
    /// Some of the tokens asked for are available.
    P53,
    /// All tokens to be given are available and ours.
    P54,
    /// Activity management, outside an activity, all tokens not available or ours.
    P55,
    /// As P54, dk among them.
    P58,
    /// All tokens given are available and the peer's.
    P59,
    /// As P59, dk not among them.
    P60,
    /// As P59, dk among them.
    P61,
    /// Activity management, outside an activity, all tokens not available or the peer's.
    P62,
    /// All tokens not available or ours, outside an activity.
    P63,
    /// No token is available.
    NotP65,
    /// All tokens not available or the peer's, outside an activity.
    P68,
    /// Collision of releases.
    P69,
    /// Duplex.
    P70,
    /// Inside an activity, dk, mi, ma ours (ma available).
    P71,
    /// Inside an activity, dk, mi, ma the peer's (ma available).
    P72,
    /// No collision of releases, or the DISCONNECT has come.
    P75,
    /// The CONNECT is not acceptable to the provider (8.3.5.10).
    P76,
    /// The ACCEPT selects version 2 and one of half-duplex and duplex (7.4.3).
    Acceptable,
    /// Our user has answered the release already.
    Answered,
}

/// What to do, with the specific actions of X.225 A.6 in brackets where there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the event is discarded.
    Discard,
    /// TCONreq.
    ConnectTransport,
    /// TDISreq.
    DisconnectTransport,
    /// CN.
    SendConnect,
    /// SCONind.
    ConnectIndication,
    /// AC \[5, 11\].
    SendAccept,
    /// RF of the provider.
    RefuseByProvider,
    /// RF.
    SendRefuse,
    /// SCONcnf(accept) \[5, 11\].
    Accepted,
    /// SCONcnf(reject), TDISreq.
    Refused,
    /// SCONcnf(reject) or SPABind: there is no transport connection.
    ConnectFailed,
    /// DT.
    SendData,
    /// SDTind.
    DataIndication,
    /// GT \[11\].
    SendGiveTokens,
    /// SGTind \[11\].
    TokensGiven,
    /// PT.
    SendPleaseTokens,
    /// Keep the request until the GIVE TOKENS ACK \[10\].
    HoldPleaseTokens,
    /// SPTind.
    TokensPlease,
    /// GTC \[11\].
    SendGiveControl,
    /// GTA \[11\], SCGind.
    ControlGiven,
    /// The requests kept \[6\].
    ControlTaken,
    /// AS \[12, 26\].
    SendActivityStart,
    /// SACTSind \[12, 26\].
    ActivityStarted,
    /// AR \[12, 27\].
    SendActivityResume,
    /// SACTRind \[12, 27\].
    ActivityResumed,
    /// AI.
    SendInterrupt,
    /// SACTIind.
    Interrupted,
    /// AIA \[30\].
    SendInterruptAck,
    /// SACTIcnf \[29\].
    InterruptConfirmed,
    /// AD.
    SendDiscard,
    /// SACTDind.
    Discarded,
    /// ADA \[30\].
    SendDiscardAck,
    /// SACTDcnf \[29\].
    DiscardConfirmed,
    /// AE \[13, 24\].
    SendActivityEnd,
    /// SACTEind \[13, 31\].
    ActivityEnded,
    /// AEA \[14, 22\].
    SendActivityEndAck,
    /// SACTEcnf \[14, 22\].
    ActivityEndConfirmed,
    /// MIP \[24\].
    SendMinorSync,
    /// SSYNmind \[23\].
    MinorSync,
    /// MIA \[25\].
    SendMinorSyncAck,
    /// SSYNmcnf \[25\].
    MinorSyncConfirmed,
    /// Count the serial number, tell nobody \[23\].
    CountMinorSync,
    /// Count the serial number, tell nobody \[31\].
    CountActivityEnd,
    /// Count the confirmation, tell nobody \[25\].
    CountMinorSyncAck,
    /// ED.
    SendException,
    /// SUERind.
    UserException,
    /// SPERind.
    ProviderException,
    /// FN \[8\].
    SendFinish,
    /// FN \[8, 18\].
    SendFinishInCollision,
    /// SRELind \[8\].
    ReleaseIndication,
    /// SRELind \[8, 18\].
    ReleaseCollision,
    /// SRELcnf, TDISreq.
    Released,
    /// SRELcnf \[32\].
    ReleasedInCollision,
    /// SRELcnf \[32\], then the DN kept.
    ReleasedThenDisconnect,
    /// Keep the response until the peer's DISCONNECT \[10\].
    HoldDisconnect,
    /// DN.
    SendDisconnect,
    /// AB of our user.
    SendAbort,
    /// SUABind or SPABind, TDISreq.
    AbortIndication,
    /// SPABind.
    TransportLost,
    /// AB, SPABind: the peer did not answer in time.
    TimedOut,
    /// AB with reflected octets, SPABind.
    ProtocolError,
    /// The fault of our own user.
    Misuse,
}

/// One way through a cell: taken where all of `when` hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Predicates.
    pub when: &'static [When],
    /// What to do.
    pub action: Action,
    /// The state after it.
    pub next: State,
    /// The clause of X.225.
    pub clause: &'static str,
}

/// All states.
pub const STATES: [State; 18] = [
    State::Sta01,
    State::Sta01B,
    State::Sta01C,
    State::Sta02A,
    State::Sta03,
    State::Sta04B,
    State::Sta05B,
    State::Sta05C,
    State::Sta08,
    State::Sta09,
    State::Sta10B,
    State::Sta11B,
    State::Sta11C,
    State::Sta16,
    State::Sta18,
    State::Sta19,
    State::Sta20,
    State::Sta713,
];

/// All events.
pub const EVENTS: [Event; 50] = [
    Event::Sconreq,
    Event::SconrspAccept,
    Event::SconrspReject,
    Event::Sdtreq,
    Event::Sgtreq,
    Event::Scgreq,
    Event::Sptreq,
    Event::Sactsreq,
    Event::Sactrreq,
    Event::Sactireq,
    Event::Sactirsp,
    Event::Sactdreq,
    Event::Sactdrsp,
    Event::Sactereq,
    Event::Sactersp,
    Event::Ssynmreq,
    Event::Ssynmrsp,
    Event::Suerreq,
    Event::Srelreq,
    Event::Srelrsp,
    Event::Suabreq,
    Event::Tconind,
    Event::Tconcnf,
    Event::Tdisind,
    Event::Tim,
    Event::Cn,
    Event::Ac,
    Event::Rf,
    Event::Dt,
    Event::Gt,
    Event::Pt,
    Event::Gtc,
    Event::Gta,
    Event::Mip,
    Event::Mia,
    Event::As,
    Event::Ar,
    Event::Ai,
    Event::Aia,
    Event::Ad,
    Event::Ada,
    Event::Ae,
    Event::Aea,
    Event::Ed,
    Event::Er,
    Event::Fn,
    Event::Dn,
    Event::Ab,
    Event::Aa,
    Event::Invalid,
];

impl Event {
    /// Whether our own user caused it.
    pub const fn is_request(self) -> bool {
        (self as u8) <= Event::Suabreq as u8
    }

    /// Whether an SPDU of the peer caused it.
    pub const fn is_spdu(self) -> bool {
        (self as u8) >= Event::Cn as u8
    }
}

impl State {
    /// Whether the session connection is being made, is there, or is being released.
    const fn in_use(self) -> bool {
        !matches!(self, State::Sta01 | State::Sta01B | State::Sta01C | State::Sta16)
    }
}

/// The cell of `state` and `event`: the first arm whose predicates hold counts. Where none does,
/// [`otherwise`] says what happens.
pub fn cell(state: State, event: Event) -> &'static [Arm] {
    if event.is_request() {
        requested(state, event)
    } else if event.is_spdu() {
        received(state, event)
    } else {
        provided(state, event)
    }
}

/// What an empty cell, or one without a fitting arm, means (X.225 A.4.1): a request is a fault of our
/// user, an SPDU a protocol error, a transport event too late to matter.
pub fn otherwise(state: State, event: Event) -> Arm {
    let (action, next, clause) = match event {
        event if event.is_request() => (Action::Misuse, state, "X.225 A.4.1.1"),
        event if event.is_spdu() && state.in_use() => {
            (Action::ProtocolError, State::Sta16, "X.225 A.4.1.2")
        }
        _ => (Action::Discard, state, "X.225 A.4.1.3"),
    };
    Arm { when: &[], action, next, clause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn line(text: &mut String, event: Event, arm: &Arm) {
        let (event, action, next) =
            (format!("{event:?}"), format!("{:?}", arm.action), format!("{:?}", arm.next));
        let when: Vec<String> = arm.when.iter().map(|when| format!("{when:?}")).collect();
        let when = when.join(" & ");
        writeln!(text, "  {event:<13} {when:<18} {action:<22} -> {next:<6} {}", arm.clause)
            .unwrap();
    }

    #[test]
    fn every_state_against_every_event() {
        let mut text = String::new();
        for state in STATES {
            writeln!(text, "{state:?}").unwrap();
            for event in EVENTS {
                let arms = cell(state, event);
                arms.iter().for_each(|arm| line(&mut text, event, arm));
                if arms.last().is_none_or(|arm| !arm.when.is_empty()) {
                    line(&mut text, event, &otherwise(state, event));
                }
            }
        }
        insta::assert_snapshot!("session_state_table", text);
    }

    #[test]
    fn the_lists_are_complete_and_in_order() {
        for (n, event) in EVENTS.into_iter().enumerate() {
            assert_eq!(event as usize, n);
        }
        for (n, state) in STATES.into_iter().enumerate() {
            assert_eq!(state as usize, n);
        }
        assert!(Event::Suabreq.is_request() && !Event::Tconind.is_request());
        assert!(Event::Cn.is_spdu() && !Event::Tim.is_spdu());
    }

    #[test]
    fn an_arm_without_predicates_ends_its_cell() {
        for state in STATES {
            for event in EVENTS {
                let arms = cell(state, event);
                for arm in arms.iter().rev().skip(1) {
                    assert!(!arm.when.is_empty(), "{state:?} {event:?}");
                }
            }
        }
    }
}
