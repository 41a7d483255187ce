//! The reliable transfer protocol machine's state table (X.228 Annex A), normal mode.

crate::table::state_table! {
    /// The table of reliable transfer.
    table "rtse";

    /// States: the first digit is the phase, as in X.228 Annex A.
    states { Sta00:
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

    /// Events: requests of the user, indications of ACSE and presentation, and what the machine
    /// finds itself while it sends.
    events {
        requests {
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
            /// RT-TRANSFER request that resumes an activity.
            ResumeReq,
            /// RT-TURN-GIVE request, two-way alternate.
            TurnGiveReq,
            /// RT-TURN-GIVE request in a monologue, which has no turn (X.218 8.5).
            TurnGiveReqMonologue,
            /// RT-CLOSE request.
            CloseReq,
            /// RT-U-ABORT request.
            UAbortReq,
        }
        answers {
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
        }
        received {
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
        }
        local {
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
            /// The association cannot go on: a misuse, or an activity that cannot be resumed.
            Fail,
        }
    }

    /// The actions that cells name.
    actions {
        /// Sends RTORQ in A-ASSOCIATE request.
        SendRtorq,
        /// Sends RTOAC in A-ASSOCIATE response.
        SendRtoac,
        /// Sends RTORJ in a rejecting A-ASSOCIATE response.
        SendRtorj,
        /// Issues RT-OPEN indication.
        OpenInd,
        /// Issues the indication of a recovery asked for.
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
        /// Remembers the checkpoint as confirmed: the confirm of the end covers it.
        CountCheckpoint,
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
        /// A transfer goes on, or an RTAB with the reason why not.
        ResumeInd,
        /// Hands the user octets.
        DataInd,
        /// Issues the indication of a checkpoint.
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
    }

    otherwise {
        misuse: "X.228 Annex A";
        late in Sta00: "X.228 7.7, 7.9";
        protocol_error -> Sta00: "X.228 7.7.4";
    }

    cells {
        // Association establishment, recovery and the turn.
        OpenReq in Sta00 => SendRtorq -> Sta01, "X.228 7.1.1.1";
        RtorqOpen in Sta00 => OpenInd -> Sta02, "X.228 7.1.1.2";
        RtorqRecover in Sta00 => RecoverInd -> Sta03, "X.228 7.8.3";
        OpenRspAccept in Sta02 => SendRtoac -> Sta11, "X.228 7.1.1.3";
        RecoverRspAccept in Sta03 => SendRtoac -> Sta11, "X.228 7.8.3";
        OpenRspRefuse in Sta02 => SendRtorj -> Sta00, "X.228 7.1.1.3";
        OpenRspRefuse in Sta03 => SendRtorj -> Sta00, "X.228 7.8.3";
        Rtoac in Sta01 => OpenCnf -> Sta10, "X.228 7.1.1.4";
        Rtorj in Sta01 => RefuseCnf -> Sta00, "X.228 7.1.1.4";
        TurnPleaseReq in Sta11 | Sta30 | Sta31 | Sta32 => SendRttp -> same, "X.228 7.4.1";
        // It crossed our own giving of the turn.
        Rttp in Sta11 | Sta30 | Sta31 | Sta32 => nothing -> same, "X.228 7.4.2";
        Rttp in Sta10 | Sta20 | Sta21 | Sta22 | Sta23 | Sta24 | Sta40
            => TurnPleaseInd -> same, "X.228 7.4.2";
        TurnGiveReq in Sta10 => GiveControl -> Sta11, "X.228 7.5.1";
        TurnGiveReqMonologue in Sta10 => nothing -> Sta10, "X.218 8.5";
        ControlGive in Sta11 => TurnGiveInd -> Sta10, "X.228 7.5.2";

        // Transfer, as the end with the turn sees it.
        TransferReq in Sta10 => StartActivity -> Sta20, "X.228 7.3.1";
        ResumeReq in Sta10 => ResumeActivity -> Sta20, "X.228 7.8.1";
        Content in Sta20 => SendContent -> Sta20, "X.228 7.3.3";
        ContentFailed in Sta20 => GiveUpContent -> Sta20, "X.228 7.7.2";
        InterruptReq in Sta20 | Sta21 => MarkInterrupt -> same, "X.228 7.7.1";
        PauseReq in Sta20 | Sta21 => MarkPause -> same, "X.228 7.3.4";
        SyncCnf in Sta20 | Sta21 => CheckpointConfirmed -> Sta20, "X.228 7.3.4";
        SyncCnf in Sta22 => CheckpointConfirmed -> Sta22, "X.228 7.3.4";
        Suspend in Sta20 => nothing -> Sta21, "X.228 7.3.4";
        AllSent in Sta20 => EndActivity -> Sta22, "X.228 7.3.5";
        EndCnf in Sta22 => TransferCnf -> Sta10, "X.228 7.3.6";
        Exception in Sta20 | Sta21 | Sta22 => HandleException -> same, "X.228 7.6.1";
        InterruptDue in Sta20 | Sta21 | Sta22 => InterruptActivity -> Sta23, "X.228 7.7.1";
        DiscardDue in Sta20 | Sta21 | Sta22 => DiscardActivity -> Sta24, "X.228 7.7.2";
        InterruptCnf in Sta23 => TransferInterruptedCnf -> Sta10, "X.228 7.7.1";
        DiscardCnf in Sta24 => TransferDiscardedCnf -> Sta10, "X.228 7.7.2";
        Timeout in Sta20 | Sta21 | Sta22 | Sta23 | Sta24
            => AbortProvider -> Sta00, "X.228 7.9.1";
        // Confirms and reports that crossed our interrupt or discard.
        SyncCnf | EndCnf | Exception in Sta23 | Sta24 => nothing -> same, "X.228 7.7";

        // Transfer, as the other end sees it.
        ActivityStart in Sta11 => TransferInd -> Sta30, "X.228 7.3.2";
        ActivityResume in Sta11 => ResumeInd -> Sta30, "X.228 7.8.1";
        Rttr in Sta30 => DataInd -> Sta30, "X.228 7.3.3";
        SyncInd in Sta30 => CheckpointInd -> Sta30, "X.228 7.3.4";
        Stored in Sta30 => ConfirmCheckpoint -> Sta30, "X.228 7.3.4";
        Stored in Sta31 => CountCheckpoint -> Sta31, "X.228 7.3.4";
        EndInd in Sta30 => TransferEndInd -> Sta31, "X.228 7.3.5";
        TransferRsp in Sta31 => ConfirmEnd -> Sta11, "X.228 7.3.6";
        TransferRefused in Sta30 | Sta31 => ReportException -> Sta32, "X.228 7.6.1";
        InterruptInd in Sta30 | Sta31 | Sta32 => Interrupted -> Sta11, "X.228 7.7.1";
        DiscardInd in Sta30 | Sta31 | Sta32 => Discarded -> Sta11, "X.228 7.7.2";
        // What the sender sent before the exception reached it.
        Rttr | SyncInd | EndInd in Sta32 => nothing -> Sta32, "X.228 7.6.1";
        Timeout in Sta30 => AbortProvider -> Sta00, "X.228 7.9.1";
        Timeout in Sta32 => AbortProvider -> Sta00, "X.228 7.6.1";
        // The service provider's own report comes to both ends; the sender acts on it.
        Exception in Sta30 | Sta31 | Sta32 => nothing -> Sta32, "X.228 7.6.2";

        // Release and abort.
        CloseReq in Sta10 => Release -> Sta40, "X.228 7.2.1";
        ReleaseInd in Sta10 | Sta11 => CloseInd -> Sta00, "X.228 7.2.2";
        ReleaseCnf in Sta40 => CloseCnf -> Sta00, "X.228 7.2.3";
        // The association ended while the user asked for its end.
        UAbortReq in Sta00 => nothing -> Sta00, "X.228 7.9.3";
        UAbortReq in any => SendRtab -> Sta00, "X.228 7.9.3";
        AbortInd in any => AbortInd -> Sta00, "X.228 7.9.2";
        // Also of an A-ASSOCIATE indication, which comes in the state before an association.
        Invalid in any => AbortProvider -> Sta00, "X.228 7.7.4";
        Fail in any => AbortProvider -> Sta00, "X.228 7.7.4";
    }
}
