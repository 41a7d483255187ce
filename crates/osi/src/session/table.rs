//! The state tables of X.225 annex A for the functional units of this workspace: kernel, duplex,
//! half-duplex, minor synchronize, activity management, exceptions. [`super::Machine`] does what
//! they say; a snapshot test prints them whole.
//!
//! Not here, since they cannot be reached: STA01A (an ABORT of ours always releases the transport
//! connection), STA01D and STA02B (no more than 10,240 octets of connect data), STA04A, STA05A,
//! STA06, STA10A, STA11A (major synchronize and resynchronize are not negotiated), STA15A to
//! STA15D (no transport expedited data, so no PREPARE), STA21, STA22 (capability data is not
//! negotiated).

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

macro_rules! arms {
    ($([$($when:ident),*] $action:ident => $next:ident, $clause:literal;)+) => {
        &[$(Arm {
            when: &[$(When::$when),*],
            action: Action::$action,
            next: State::$next,
            clause: concat!("X.225 ", $clause),
        }),+]
    };
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

/// Tables: requests and responses of the session user.
fn requested(state: State, event: Event) -> &'static [Arm] {
    use Event as E;
    use State as S;
    match (state, event) {
        // Connection.
        (S::Sta01, E::Sconreq) => arms!([] ConnectTransport => Sta01B, "7.1.2";),
        (S::Sta08, E::SconrspAccept) => arms!([] SendAccept => Sta713, "7.4.2";),
        (S::Sta08, E::SconrspReject) => arms!([] SendRefuse => Sta16, "7.5.2";),

        // Data.
        (S::Sta713, E::Sdtreq) => arms!([P03] SendData => Sta713, "7.11.2";),
        (S::Sta09, E::Sdtreq) => arms!([P04] SendData => Sta09, "7.11.2";),
        (S::Sta10B, E::Sdtreq) => arms!([P03] SendData => Sta10B, "7.11.2";),
        (S::Sta18, E::Sdtreq) => arms!([P70] SendData => Sta18, "7.11.2";),

        // Synchronization.
        (S::Sta713, E::Ssynmreq) => arms!([P15] SendMinorSync => Sta713, "7.20.2";),
        (S::Sta713, E::Ssynmrsp) => arms!([P18, P21] SendMinorSyncAck => Sta713, "7.21.2";),
        (S::Sta09, E::Ssynmrsp) => arms!([P18, P21] SendMinorSyncAck => Sta09, "7.21.2";),
        (S::Sta10B, E::Ssynmrsp) => {
            arms!([P18, NotP20, P21] SendMinorSyncAck => Sta10B, "7.21.2";)
        }
        (S::Sta713, E::Sactereq) => arms!([P71] SendActivityEnd => Sta04B, "7.35.2";),
        (S::Sta10B, E::Sactersp) => arms!([] SendActivityEndAck => Sta713, "7.36.2";),

        // Activity interrupt and discard.
        (S::Sta713 | S::Sta04B, E::Sactireq) => {
            arms!([P34, P39] SendInterrupt => Sta05B, "7.31.2";)
        }
        (S::Sta20, E::Sactireq) => arms!([P34, P11] SendInterrupt => Sta05B, "7.31.2";),
        (S::Sta713 | S::Sta04B, E::Sactdreq) => arms!([P34, P39] SendDiscard => Sta05C, "7.33.2";),
        (S::Sta20, E::Sactdreq) => arms!([P34, P11] SendDiscard => Sta05C, "7.33.2";),
        (S::Sta11B, E::Sactirsp) => arms!([] SendInterruptAck => Sta713, "7.32.2";),
        (S::Sta11C, E::Sactdrsp) => arms!([] SendDiscardAck => Sta713, "7.34.2";),

        // Activity start and resume.
        (S::Sta713, E::Sactsreq) => arms!([P45] SendActivityStart => Sta713, "7.29.2";),
        (S::Sta713, E::Sactrreq) => arms!([P45] SendActivityResume => Sta713, "7.30.2";),

        // Tokens and exceptions.
        (S::Sta713, E::Sgtreq) => arms!([P54] SendGiveTokens => Sta713, "7.16.2";),
        (S::Sta04B, E::Sgtreq) => arms!([P54] SendGiveTokens => Sta04B, "7.16.2";),
        (S::Sta10B, E::Sgtreq) => arms!([P54] SendGiveTokens => Sta10B, "7.16.2";),
        (S::Sta20, E::Sgtreq) => arms!([P58] SendGiveTokens => Sta713, "7.16.2";),
        (S::Sta713, E::Scgreq) => arms!([P55] SendGiveControl => Sta18, "7.18.2";),
        (S::Sta713, E::Sptreq) => arms!([P53] SendPleaseTokens => Sta713, "7.17.2";),
        (S::Sta09, E::Sptreq) => arms!([P53] SendPleaseTokens => Sta09, "7.17.2";),
        (S::Sta10B, E::Sptreq) => arms!([P53] SendPleaseTokens => Sta10B, "7.17.2";),
        // The user cannot know that the GTA is still out.
        (S::Sta18, E::Sptreq) => arms!([P53] HoldPleaseTokens => Sta18, "7.18.2";),
        (S::Sta713 | S::Sta09 | S::Sta10B, E::Suerreq) => {
            arms!([P50] SendException => Sta19, "7.28.2";)
        }

        // Release.
        (S::Sta713, E::Srelreq) => arms!([P63] SendFinish => Sta03, "7.6.2";),
        (S::Sta09, E::Srelreq) => arms!([NotP65] SendFinishInCollision => Sta09, "7.6.2";),
        (S::Sta09, E::Srelrsp) => arms!(
            [P69, P01] SendDisconnect => Sta03, "7.7.2";
            [P75] SendDisconnect => Sta16, "7.7.2";
            [P69] HoldDisconnect => Sta09, "7.7.2";
        ),

        // Abort.
        (S::Sta01 | S::Sta01B | S::Sta01C, E::Suabreq) => {
            arms!([] DisconnectTransport => Sta01, "7.9.2";)
        }
        (S::Sta16, E::Suabreq) => arms!([] Discard => Sta16, "7.9.2";),
        (_, E::Suabreq) => arms!([] SendAbort => Sta16, "7.9.2";),
        _ => &[],
    }
}

/// Events of the transport service and of the timer.
fn provided(state: State, event: Event) -> &'static [Arm] {
    use Event as E;
    use State as S;
    match (state, event) {
        (S::Sta01, E::Tconind) => arms!([] Discard => Sta01C, "6.1";),
        (S::Sta01B, E::Tconcnf) => arms!([] SendConnect => Sta02A, "7.1.2";),
        (S::Sta01B, E::Tdisind) => arms!([] ConnectFailed => Sta01, "6.6";),
        (S::Sta01 | S::Sta01C | S::Sta16, E::Tdisind) => arms!([] Discard => Sta01, "6.6";),
        (_, E::Tdisind) => arms!([] TransportLost => Sta01, "6.6";),
        (S::Sta01C, E::Tim) => arms!([] DisconnectTransport => Sta01, "6.6";),
        (S::Sta16, E::Tim) => arms!([] DisconnectTransport => Sta01, "7.9.2";),
        (S::Sta02A | S::Sta03 | S::Sta18, E::Tim) => arms!([] TimedOut => Sta16, "7.9.2";),
        _ => &[],
    }
}

/// Tables: SPDUs.
fn received(state: State, event: Event) -> &'static [Arm] {
    use Event as E;
    use State as S;
    match (state, event) {
        // Before and after a session connection.
        (S::Sta01C, E::Cn) => arms!(
            [P76] RefuseByProvider => Sta16, "7.5.2";
            [] ConnectIndication => Sta08, "7.1.3";
        ),
        (S::Sta01C, _) => arms!([] DisconnectTransport => Sta01, "A.4.1.2";),
        (S::Sta16, E::Aa | E::Ab | E::Cn) => arms!([] DisconnectTransport => Sta01, "7.9.3";),
        (S::Sta16, _) => arms!([] Discard => Sta16, "7.9.2";),
        (S::Sta01 | S::Sta01B, _) => &[],
        (_, E::Ab) => arms!([] AbortIndication => Sta01, "7.9.3";),

        // Connection.
        (S::Sta02A, E::Ac) => arms!([Acceptable] Accepted => Sta713, "7.4.3";),
        (S::Sta02A, E::Rf) => arms!([] Refused => Sta01, "7.5.3";),
        (S::Sta02A | S::Sta08, _) => &[],

        (S::Sta713, event) => received_in_data_transfer(event),
        (S::Sta19 | S::Sta20, event) => received_in_recovery(state, event),
        (S::Sta05B, E::Aia) => arms!([P34] InterruptConfirmed => Sta713, "7.32.3";),
        (S::Sta05C, E::Ada) => arms!([P34] DiscardConfirmed => Sta713, "7.34.3";),
        (S::Sta05B | S::Sta05C, event) => received_while_interrupting(state, event),

        // Release, with what may still be under way.
        (S::Sta03, E::Dt) => arms!([P05, P10] DataIndication => Sta03, "7.11.3";),
        (S::Sta03, E::Mia) => arms!([P17, P21] MinorSyncConfirmed => Sta03, "7.21.3";),
        (S::Sta03, E::Ed) => arms!([P52] UserException => Sta20, "7.28.3";),
        (S::Sta03, E::Er) => arms!([P52] ProviderException => Sta20, "7.27.3";),
        (S::Sta03, E::Pt) => arms!([P53] TokensPlease => Sta03, "7.17.3";),
        (S::Sta03, E::Dn) => arms!([] Released => Sta01, "7.7.3";),
        (S::Sta03, E::Fn) => arms!([NotP65] ReleaseCollision => Sta09, "7.6.3";),
        (S::Sta09, E::Dn) => arms!(
            [P69, Answered] ReleasedThenDisconnect => Sta16, "7.7.3";
            [P69] ReleasedInCollision => Sta09, "7.7.3";
        ),

        // Activity end.
        (S::Sta04B, E::Dt) => arms!([P05] DataIndication => Sta04B, "7.11.3";),
        (S::Sta04B, E::Aea) => arms!([P20] ActivityEndConfirmed => Sta713, "7.36.3";),
        (S::Sta04B, E::Mia) => arms!([P17, NotP20, P21] MinorSyncConfirmed => Sta04B, "7.21.3";),
        (S::Sta04B, E::Ed) => arms!(
            [P48, P03] UserException => Sta20, "7.28.3";
            [P48] UserException => Sta713, "7.28.3";
        ),
        (S::Sta04B, E::Er) => arms!(
            [P48, P03] ProviderException => Sta20, "7.27.3";
            [P48] ProviderException => Sta713, "7.27.3";
        ),
        (S::Sta04B, E::Gt) => arms!([P59] TokensGiven => Sta04B, "7.16.3";),
        (S::Sta04B, E::Pt) => arms!([P53] TokensPlease => Sta04B, "7.17.3";),
        (S::Sta10B, E::Ai) => arms!([P34, P40] Interrupted => Sta11B, "7.31.3";),
        (S::Sta10B, E::Ad) => arms!([P34, P40] Discarded => Sta11C, "7.33.3";),
        (S::Sta10B, E::Gt) => arms!([P59] TokensGiven => Sta10B, "7.16.3";),

        // Control given.
        (S::Sta18, E::Dt) => arms!([P70] DataIndication => Sta18, "7.11.3";),
        (S::Sta18, E::Gta) => arms!([] ControlTaken => Sta713, "7.19.3";),
        (S::Sta18, E::Pt) => arms!([P53] TokensPlease => Sta18, "7.17.3";),
        _ => &[],
    }
}

/// STA713.
fn received_in_data_transfer(event: Event) -> &'static [Arm] {
    use Event as E;
    match event {
        E::Dt => arms!([P05] DataIndication => Sta713, "7.11.3";),
        E::Mip => arms!([P14, P19] MinorSync => Sta713, "7.20.3";),
        E::Mia => arms!([P17, P21] MinorSyncConfirmed => Sta713, "7.21.3";),
        E::Ae => arms!([P72, P19] ActivityEnded => Sta10B, "7.35.3";),
        E::Ai => arms!([P34, P40] Interrupted => Sta11B, "7.31.3";),
        E::Ad => arms!([P34, P40] Discarded => Sta11C, "7.33.3";),
        E::As => arms!([P44] ActivityStarted => Sta713, "7.29.3";),
        E::Ar => arms!([P44] ActivityResumed => Sta713, "7.30.3";),
        E::Ed => arms!(
            [P50] UserException => Sta713, "7.28.3";
            [P51] UserException => Sta20, "7.28.3";
        ),
        E::Er => arms!(
            [P50] ProviderException => Sta713, "7.27.3";
            [P51] ProviderException => Sta20, "7.27.3";
        ),
        E::Gt => arms!([P59] TokensGiven => Sta713, "7.16.3";),
        E::Gtc => arms!([P62] ControlGiven => Sta713, "7.18.3";),
        E::Pt => arms!([P53] TokensPlease => Sta713, "7.17.3";),
        E::Fn => arms!([P68] ReleaseIndication => Sta09, "7.6.3";),
        _ => &[],
    }
}

/// STA05B and STA05C: what was under way when our AI or AD left is discarded.
fn received_while_interrupting(state: State, event: Event) -> &'static [Arm] {
    use Event as E;
    macro_rules! stay {
        ([$($when:ident),*] $clause:literal) => {
            if matches!(state, State::Sta05B) {
                arms!([$($when),*] Discard => Sta05B, $clause;)
            } else {
                arms!([$($when),*] Discard => Sta05C, $clause;)
            }
        };
    }
    match event {
        E::Dt => stay!([P05] "7.31.2"),
        E::Aea => stay!([] "7.31.2"),
        E::Mia => stay!([P17] "7.31.2"),
        E::Mip => stay!([P14] "7.31.2"),
        E::Ed | E::Er => stay!([P48] "7.31.2"),
        E::Gt => stay!([P59] "7.31.2"),
        E::Pt => stay!([P53] "7.31.2"),
        _ => &[],
    }
}

/// STA19 and STA20: after an exception only recovery counts.
fn received_in_recovery(state: State, event: Event) -> &'static [Arm] {
    use Event as E;
    let reporter = matches!(state, State::Sta19);
    macro_rules! stay {
        ([$($when:ident),*] $action:ident $clause:literal) => {
            if reporter {
                arms!([$($when),*] $action => Sta19, $clause;)
            } else {
                arms!([$($when),*] $action => Sta20, $clause;)
            }
        };
    }
    match event {
        E::Dt if reporter => arms!([] Discard => Sta19, "7.28.2";),
        E::Dt => arms!([P05] Discard => Sta20, "7.28.3";),
        E::Mip => stay!([P14, P19] CountMinorSync "7.28.2"),
        E::Mia => stay!([P17, P21] CountMinorSyncAck "7.28.2"),
        E::Ae => stay!([P72, P19] CountActivityEnd "7.28.2"),
        E::Aea if !reporter => arms!([P20] Discard => Sta20, "7.28.3";),
        E::Ai => arms!([P34, P40] Interrupted => Sta11B, "7.31.3";),
        E::Ad => arms!([P34, P40] Discarded => Sta11C, "7.33.3";),
        E::Ed if reporter => arms!([P50] UserException => Sta19, "7.28.3";),
        E::Er if reporter => arms!([P50] ProviderException => Sta19, "7.27.3";),
        E::Gt if reporter => arms!(
            [P61] TokensGiven => Sta713, "7.16.3";
            [P60] TokensGiven => Sta19, "7.16.3";
        ),
        E::Gt => arms!(
            [P61] TokensGiven => Sta713, "7.16.3";
            [P60] TokensGiven => Sta20, "7.16.3";
        ),
        E::Pt => stay!([P53] Discard "7.28.2"),
        E::Fn => stay!([P68] Discard "7.28.2"),
        _ => &[],
    }
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
