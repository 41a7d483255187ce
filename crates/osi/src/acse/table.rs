//! The association control protocol machine's state table (X.227 Annex A).

crate::table::state_table! {
    /// The table of association control.
    table "acse";

    /// States as X.227 Table A-2 names them.
    states { Sta0:
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

    /// Events as X.227 Table A-1 lists them.
    events {
        requests {
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
        }
        answers {}
        received {
            /// P-CONNECT indication with an AARQ we can take up.
            Aarq,
            /// P-CONNECT indication with an AARQ whose version or application context we do not
            /// support.
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
        local {
            /// The association cannot go on, for a reason outside this layer or a misuse.
            Fail,
        }
    }

    /// The actions that cells name.
    actions {
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
    }

    otherwise {
        misuse: "X.227 Annex A, A.4";
        late in Sta0: "X.227 7.3.3";
        protocol_error -> Sta0: "X.227 7.3.3.3";
    }

    cells {
        AAscReq in Sta0 => SendAarq -> Sta1, "X.227 7.1.3.1";
        Aarq in Sta0 => AAscInd -> Sta2, "X.227 7.1.3.2";
        AarqUnsupported in Sta0 => RejectAarq -> Sta0, "X.227 7.1.3.2";
        AAscRspAccept in Sta2 => SendAareAccepted -> Sta5, "X.227 7.1.3.3";
        AAscRspReject in Sta2 => SendAareRejected -> Sta0, "X.227 7.1.3.3";
        AareAccepted in Sta1 => AAscCnfAccept -> Sta5, "X.227 7.1.3.4";
        AareRejected | PConCnfRefused in Sta1 => AAscCnfReject -> Sta0, "X.227 7.1.3.4";
        ARlsReq in Sta5 => SendRlrq -> Sta3, "X.227 7.2.3.1";
        RlrqInitiator | RlrqResponder in Sta5 => ARlsInd -> Sta4, "X.227 7.2.3.2";
        ARlsRsp in Sta4 => SendRlre -> Sta0, "X.227 7.2.3.3";
        Rlre in Sta3 => ARlsCnf -> Sta0, "X.227 7.2.3.4";
        // Both ends asked at once: the initiator answers first (7.2.3.5).
        RlrqInitiator in Sta3 => ARlsInd -> Sta6, "X.227 7.2.3.5";
        RlrqResponder in Sta3 => ARlsInd -> Sta7, "X.227 7.2.3.5";
        ARlsRsp in Sta6 => SendRlre -> Sta3, "X.227 7.2.3.5";
        Rlre in Sta7 => ARlsCnf -> Sta4, "X.227 7.2.3.5";
        // The association ended while the user asked for its end.
        AAbrReq in Sta0 => nothing -> Sta0, "X.227 7.3.3.1";
        AAbrReq in any => SendAbrt -> Sta0, "X.227 7.3.3.1";
        Abrt in Sta1 | Sta2 | Sta3 | Sta4 | Sta5 | Sta6 | Sta7 => AAbInd -> Sta0, "X.227 7.3.3.2";
        PPAbInd in any => APAbInd -> Sta0, "X.227 7.3.4";
        // A P-CONNECT indication without an AARQ.
        Invalid in Sta0 => AbortProvider -> Sta0, "X.227 7.3.3.3";
        Fail in any => AbortProvider -> Sta0, "X.227 7.3.3.3";
    }
}
