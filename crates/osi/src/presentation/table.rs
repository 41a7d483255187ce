//! The presentation protocol machine's state table (X.226 Annex A), kernel.

crate::table::state_table! {
    /// The table of the presentation layer.
    table "presentation";

    /// States as X.226 Table A-2 names them.
    states { Stai0:
        /// Idle: no presentation connection.
        Stai0,
        /// Awaits CPA or CPR.
        Stai1,
        /// Awaits P-CONNECT response.
        Stai2,
        /// Connected: data transfer.
        Stat0,
    }

    /// Events as X.226 Table A-1 lists them.
    events {
        requests {
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
        }
        answers {}
        received {
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
            /// Octets that are not a PPDU, or an invalid parameter: no cell, a protocol error if there
            /// is a connection.
            Invalid,
        }
        local {
            /// A request of our own layers was a misuse.
            Fail,
        }
    }

    /// The actions that cells name.
    actions {
        /// Sends CP in S-CONNECT request.
        SendCp,
        /// Sends CPA in S-CONNECT response.
        SendCpa,
        /// Sends CPR in a refusing S-CONNECT response.
        SendCpr,
        /// Issues P-CONNECT indication.
        PConInd,
        /// Sends CPR of our own; the user gets the reason.
        RefuseCp,
        /// Issues P-CONNECT confirm, accepting, or sends ARP where what was accepted does not do.
        PConCnfAccept,
        /// Issues P-CONNECT confirm, refusing.
        PConCnfRefuse,
        /// Sends TD in S-DATA request.
        SendTd,
        /// Issues P-DATA indication.
        PDtInd,
        /// Passes the request down, its user data framed.
        PassDown,
        /// Passes the primitive up, its user data without frame.
        PassUp,
        /// Sends ARU in S-U-ABORT request.
        SendAru,
        /// Issues P-U-ABORT indication.
        PUAbInd,
        /// Issues P-P-ABORT indication.
        PPAbInd,
        /// Sends ARP in S-U-ABORT request and issues P-P-ABORT indication.
        SendArp,
    }

    otherwise {
        misuse: "X.226 Annex A, A.4";
        late in Stai0: "X.226 6.4";
        protocol_error -> Stai0: "X.226 6.4.2.2";
    }

    cells {
        PConReq in Stai0 => SendCp -> Stai1, "X.226 6.2.4.1";
        Cp in Stai0 => PConInd -> Stai2, "X.226 6.2.4.2";
        CpRefused in Stai0 => RefuseCp -> Stai0, "X.226 6.2.4.7";
        PConRspAccept in Stai2 => SendCpa -> Stat0, "X.226 6.2.4.4";
        PConRspRefuse in Stai2 => SendCpr -> Stai0, "X.226 6.2.4.5";
        Cpa in Stai1 => PConCnfAccept -> Stat0, "X.226 6.2.4.8";
        Cpr in Stai1 => PConCnfRefuse -> Stai0, "X.226 6.2.4.9";
        PDtReq in Stat0 => SendTd -> Stat0, "X.226 6.6.1";
        Td in Stat0 => PDtInd -> Stat0, "X.226 6.6.1";
        PRelReq | PRelRsp in Stat0 => PassDown -> Stat0, "X.226 6.3";
        SRelInd in Stat0 => PassUp -> Stat0, "X.226 6.3";
        SRelCnf in Stat0 => PassUp -> Stai0, "X.226 6.3";
        SRelCnfCollision in Stat0 => PassUp -> Stat0, "X.226 6.3; X.225 7.6";
        PassReq in Stat0 => PassDown -> Stat0, "X.226 6.7 to 6.11";
        PassInd in Stat0 => PassUp -> Stat0, "X.226 6.7 to 6.11";
        PUAbReq in Stai1 | Stai2 | Stat0 => SendAru -> Stai0, "X.226 6.4.1";
        // The connection ended while the user asked for its end.
        PUAbReq in Stai0 => nothing -> Stai0, "X.226 6.4.1";
        Aru in Stai1 | Stai2 | Stat0 => PUAbInd -> Stai0, "X.226 6.4.1";
        Arp in Stai1 | Stai2 | Stat0 => PPAbInd -> Stai0, "X.226 6.4.2";
        SPAbInd in any => PPAbInd -> Stai0, "X.226 6.4.3";
        Fail in any => SendArp -> Stai0, "X.226 6.4.2.2";
    }
}
