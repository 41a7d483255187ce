//! The cells of the state tables (X.225 tables ).

use super::{Action, Arm, Event, State, When};

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

/// Tables: requests and responses of the session user.
pub(super) fn requested(state: State, event: Event) -> &'static [Arm] {
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
pub(super) fn provided(state: State, event: Event) -> &'static [Arm] {
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
pub(super) fn received(state: State, event: Event) -> &'static [Arm] {
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
