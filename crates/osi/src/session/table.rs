//! The state tables of X.225 annex A for the functional units of this workspace: kernel, duplex,
//! half-duplex, minor synchronize, activity management, exceptions.
//!
//! Not here, since they cannot be reached: STA01A (an ABORT of ours always releases the transport
//! connection), STA01D and STA02B (no more than 10,240 octets of connect data), STA04A, STA05A,
//! STA06, STA10A, STA11A (major synchronize and resynchronize are not negotiated), STA15A to
//! STA15D (no transport expedited data, so no PREPARE), STA21, STA22 (capability data is not
//! negotiated).

use super::predicates::When;

crate::table::state_table! {
    /// The table of the session layer (X.225 tables ).
    table "session" with When;

    /// States, with the names of X.225 A.3.
    states { Sta01:
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
    events {
        requests {
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
        }
        answers {}
        received {
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
            /// An invalid SPDU.
            Invalid,
        }
        local {
            /// T-CONNECT indication.
            Tconind,
            /// T-CONNECT confirm.
            Tconcnf,
            /// T-DISCONNECT indication.
            Tdisind,
            /// Timer.
            Tim,
            /// The connection cannot go on: an internal error.
            Fail,
        }
    }

    /// What to do, with the specific actions of X.225 A.6 in brackets where there are any.
    actions {
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
        /// Count the serial number, no indication \[23\].
        CountMinorSync,
        /// Count the serial number, no indication \[31\].
        CountActivityEnd,
        /// Count the confirmation, no indication \[25\].
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
        /// AB, SPABind: an internal error.
        AbortProvider,
        /// Keep the reason for the log: there is no session connection yet that it could end.
        KeepReason,
    }

    // X.225 A.4.1.
    otherwise {
        misuse: "X.225 A.4.1.1";
        late in Sta01 | Sta01B | Sta16: "X.225 A.4.1.3";
        protocol_error -> Sta16: "X.225 A.4.1.2";
    }

    cells {
        // Connection.
        Sconreq in Sta01 => ConnectTransport -> Sta01B, "X.225 7.1.2";
        SconrspAccept in Sta08 => SendAccept -> Sta713, "X.225 7.4.2";
        SconrspReject in Sta08 => SendRefuse -> Sta16, "X.225 7.5.2";
        Tconind in Sta01 => nothing -> Sta01C, "X.225 6.1";
        Tconcnf in Sta01B => SendConnect -> Sta02A, "X.225 7.1.2";
        Cn in Sta01C [P76] => RefuseByProvider -> Sta16, "X.225 7.5.2";
        Cn in Sta01C => ConnectIndication -> Sta08, "X.225 7.1.3";
        Ac | Rf | Dt | Gt | Pt | Gtc | Gta | Mip | Mia | As | Ar | Ai | Aia | Ad | Ada | Ae | Aea | Ed | Er | Fn | Dn | Ab | Aa | Invalid in Sta01C => DisconnectTransport -> Sta01, "X.225 A.4.1.2";
        Ac in Sta02A [Acceptable] => Accepted -> Sta713, "X.225 7.4.3";
        Rf in Sta02A => Refused -> Sta01, "X.225 7.5.3";

        // Data.
        Sdtreq in Sta713 | Sta10B [P03] => SendData -> same, "X.225 7.11.2";
        Sdtreq in Sta09 [P04] => SendData -> Sta09, "X.225 7.11.2";
        Sdtreq in Sta18 [P70] => SendData -> Sta18, "X.225 7.11.2";
        Dt in Sta713 | Sta04B [P05] => DataIndication -> same, "X.225 7.11.3";
        Dt in Sta03 [P05, P10] => DataIndication -> Sta03, "X.225 7.11.3";
        Dt in Sta18 [P70] => DataIndication -> Sta18, "X.225 7.11.3";

        // Synchronization and the end of an activity.
        Ssynmreq in Sta713 [P15] => SendMinorSync -> Sta713, "X.225 7.20.2";
        Ssynmrsp in Sta713 | Sta09 [P18, P21] => SendMinorSyncAck -> same, "X.225 7.21.2";
        Ssynmrsp in Sta10B [P18, NotP20, P21] => SendMinorSyncAck -> Sta10B, "X.225 7.21.2";
        Mip in Sta713 [P14, P19] => MinorSync -> Sta713, "X.225 7.20.3";
        Mia in Sta713 | Sta03 [P17, P21] => MinorSyncConfirmed -> same, "X.225 7.21.3";
        Mia in Sta04B [P17, NotP20, P21] => MinorSyncConfirmed -> Sta04B, "X.225 7.21.3";
        Sactereq in Sta713 [P71] => SendActivityEnd -> Sta04B, "X.225 7.35.2";
        Sactersp in Sta10B => SendActivityEndAck -> Sta713, "X.225 7.36.2";
        Ae in Sta713 [P72, P19] => ActivityEnded -> Sta10B, "X.225 7.35.3";
        Aea in Sta04B [P20] => ActivityEndConfirmed -> Sta713, "X.225 7.36.3";

        // Activity interrupt and discard.
        Sactireq in Sta713 | Sta04B [P34, P39] => SendInterrupt -> Sta05B, "X.225 7.31.2";
        Sactireq in Sta20 [P34, P11] => SendInterrupt -> Sta05B, "X.225 7.31.2";
        Sactdreq in Sta713 | Sta04B [P34, P39] => SendDiscard -> Sta05C, "X.225 7.33.2";
        Sactdreq in Sta20 [P34, P11] => SendDiscard -> Sta05C, "X.225 7.33.2";
        Sactirsp in Sta11B => SendInterruptAck -> Sta713, "X.225 7.32.2";
        Sactdrsp in Sta11C => SendDiscardAck -> Sta713, "X.225 7.34.2";
        Ai in Sta713 | Sta10B | Sta19 | Sta20 [P34, P40] => Interrupted -> Sta11B, "X.225 7.31.3";
        Ad in Sta713 | Sta10B | Sta19 | Sta20 [P34, P40] => Discarded -> Sta11C, "X.225 7.33.3";
        Aia in Sta05B [P34] => InterruptConfirmed -> Sta713, "X.225 7.32.3";
        Ada in Sta05C [P34] => DiscardConfirmed -> Sta713, "X.225 7.34.3";
        // Data in transit when our AI or AD was sent are discarded.
        Dt in Sta05B | Sta05C [P05] => nothing -> same, "X.225 7.31.2";
        Aea in Sta05B | Sta05C => nothing -> same, "X.225 7.31.2";
        Mia in Sta05B | Sta05C [P17] => nothing -> same, "X.225 7.31.2";
        Mip in Sta05B | Sta05C [P14] => nothing -> same, "X.225 7.31.2";
        Ed | Er in Sta05B | Sta05C [P48] => nothing -> same, "X.225 7.31.2";
        Gt in Sta05B | Sta05C [P59] => nothing -> same, "X.225 7.31.2";
        Pt in Sta05B | Sta05C [P53] => nothing -> same, "X.225 7.31.2";

        // Activity start and resume.
        Sactsreq in Sta713 [P45] => SendActivityStart -> Sta713, "X.225 7.29.2";
        Sactrreq in Sta713 [P45] => SendActivityResume -> Sta713, "X.225 7.30.2";
        As in Sta713 [P44] => ActivityStarted -> Sta713, "X.225 7.29.3";
        Ar in Sta713 [P44] => ActivityResumed -> Sta713, "X.225 7.30.3";

        // Tokens.
        Sgtreq in Sta713 | Sta04B | Sta10B [P54] => SendGiveTokens -> same, "X.225 7.16.2";
        Sgtreq in Sta20 [P58] => SendGiveTokens -> Sta713, "X.225 7.16.2";
        Scgreq in Sta713 [P55] => SendGiveControl -> Sta18, "X.225 7.18.2";
        Sptreq in Sta713 | Sta09 | Sta10B [P53] => SendPleaseTokens -> same, "X.225 7.17.2";
        // The user cannot know that the GTA is still out.
        Sptreq in Sta18 [P53] => HoldPleaseTokens -> Sta18, "X.225 7.18.2";
        Gt in Sta713 | Sta04B | Sta10B [P59] => TokensGiven -> same, "X.225 7.16.3";
        Gtc in Sta713 [P62] => ControlGiven -> Sta713, "X.225 7.18.3";
        Gta in Sta18 => ControlTaken -> Sta713, "X.225 7.19.3";
        Pt in Sta713 | Sta03 | Sta04B | Sta18 [P53] => TokensPlease -> same, "X.225 7.17.3";

        // Exceptions. After one only recovery counts.
        Suerreq in Sta713 | Sta09 | Sta10B [P50] => SendException -> Sta19, "X.225 7.28.2";
        Ed in Sta713 [P50] => UserException -> Sta713, "X.225 7.28.3";
        Ed in Sta713 [P51] => UserException -> Sta20, "X.225 7.28.3";
        Ed in Sta03 [P52] => UserException -> Sta20, "X.225 7.28.3";
        Ed in Sta04B [P48, P03] => UserException -> Sta20, "X.225 7.28.3";
        Ed in Sta04B [P48] => UserException -> Sta713, "X.225 7.28.3";
        Ed in Sta19 [P50] => UserException -> Sta19, "X.225 7.28.3";
        Er in Sta713 [P50] => ProviderException -> Sta713, "X.225 7.27.3";
        Er in Sta713 [P51] => ProviderException -> Sta20, "X.225 7.27.3";
        Er in Sta03 [P52] => ProviderException -> Sta20, "X.225 7.27.3";
        Er in Sta04B [P48, P03] => ProviderException -> Sta20, "X.225 7.27.3";
        Er in Sta04B [P48] => ProviderException -> Sta713, "X.225 7.27.3";
        Er in Sta19 [P50] => ProviderException -> Sta19, "X.225 7.27.3";
        Dt in Sta19 => nothing -> Sta19, "X.225 7.28.2";
        Dt in Sta20 [P05] => nothing -> Sta20, "X.225 7.28.3";
        Mip in Sta19 | Sta20 [P14, P19] => CountMinorSync -> same, "X.225 7.28.2";
        Mia in Sta19 | Sta20 [P17, P21] => CountMinorSyncAck -> same, "X.225 7.28.2";
        Ae in Sta19 | Sta20 [P72, P19] => CountActivityEnd -> same, "X.225 7.28.2";
        Aea in Sta20 [P20] => nothing -> Sta20, "X.225 7.28.3";
        Gt in Sta19 | Sta20 [P61] => TokensGiven -> Sta713, "X.225 7.16.3";
        Gt in Sta19 | Sta20 [P60] => TokensGiven -> same, "X.225 7.16.3";
        Pt in Sta19 | Sta20 [P53] => nothing -> same, "X.225 7.28.2";
        Fn in Sta19 | Sta20 [P68] => nothing -> same, "X.225 7.28.2";

        // Release.
        Srelreq in Sta713 [P63] => SendFinish -> Sta03, "X.225 7.6.2";
        Srelreq in Sta09 [NotP65] => SendFinishInCollision -> Sta09, "X.225 7.6.2";
        Srelrsp in Sta09 [P69, P01] => SendDisconnect -> Sta03, "X.225 7.7.2";
        Srelrsp in Sta09 [P75] => SendDisconnect -> Sta16, "X.225 7.7.2";
        Srelrsp in Sta09 [P69] => HoldDisconnect -> Sta09, "X.225 7.7.2";
        Fn in Sta713 [P68] => ReleaseIndication -> Sta09, "X.225 7.6.3";
        Fn in Sta03 [NotP65] => ReleaseCollision -> Sta09, "X.225 7.6.3";
        Dn in Sta03 => Released -> Sta01, "X.225 7.7.3";
        Dn in Sta09 [P69, Answered] => ReleasedThenDisconnect -> Sta16, "X.225 7.7.3";
        Dn in Sta09 [P69] => ReleasedInCollision -> Sta09, "X.225 7.7.3";

        // Abort.
        Suabreq in Sta01 | Sta01B | Sta01C => DisconnectTransport -> Sta01, "X.225 7.9.2";
        Suabreq in Sta16 => nothing -> Sta16, "X.225 7.9.2";
        Suabreq in any => SendAbort -> Sta16, "X.225 7.9.2";
        Aa | Ab | Cn in Sta16 => DisconnectTransport -> Sta01, "X.225 7.9.3";
        Ab in Sta02A | Sta03 | Sta04B | Sta05B | Sta05C | Sta08 | Sta09 | Sta10B | Sta11B | Sta11C
            | Sta18 | Sta19 | Sta20 | Sta713 => AbortIndication -> Sta01, "X.225 7.9.3";
        Tdisind in Sta01B => ConnectFailed -> Sta01, "X.225 6.6";
        Tdisind in Sta01 | Sta01C | Sta16 => KeepReason -> Sta01, "X.225 6.6";
        Tdisind in any => TransportLost -> Sta01, "X.225 6.6";
        Tim in Sta01C => DisconnectTransport -> Sta01, "X.225 6.6";
        Tim in Sta16 => DisconnectTransport -> Sta01, "X.225 7.9.2";
        Tim in Sta02A | Sta03 | Sta18 => TimedOut -> Sta16, "X.225 7.9.2";
        Fail in Sta01 | Sta01B | Sta01C => DisconnectTransport -> Sta01, "X.225 7.9.2";
        Fail in Sta16 => nothing -> Sta16, "X.225 7.9.2";
        Fail in any => AbortProvider -> Sta16, "X.225 7.9.2";
    }
}
