//! The remote operation protocol machine's state table (X.229 Annex A), with the bind and unbind
//! that ACSE carries for it.

crate::table::state_table! {
    /// The table of remote operations.
    table "rose";

    /// States; the first digit is the phase.
    states { Sta00:
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

    /// Events: requests of the user, APDUs, and indications of ACSE.
    events {
        requests {
            /// Bind request.
            BindReq,
            /// Bind response, accepting.
            BindRspAccept,
            /// Bind response, refusing.
            BindRspRefuse,
            /// RO-INVOKE request.
            InvokeReq,
            /// Unbind request.
            UnbindReq,
            /// A-ABORT request.
            AbortReq,
        }
        answers {
            /// RO-RESULT, RO-ERROR or RO-REJECT-U request.
            AnswerReq,
            /// Content that was asked for.
            Content,
            /// The content cannot be had.
            ContentFailed,
        }
        received {
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
            /// A-RELEASE indication while our own release waits for APDUs to be sent: it is not sent
            /// yet, so there is no collision.
            ReleaseIndBeforeReq,
            /// A-RELEASE indication to the initiator while its own release is not confirmed.
            ReleaseCollisionInitiator,
            /// The same to the responder.
            ReleaseCollisionResponder,
            /// A-RELEASE confirm.
            ReleaseCnf,
            /// A-ABORT or A-P-ABORT indication.
            AbortInd,
            /// User information that is not a bind, or a value in a context that carries no operations.
            Invalid,
        }
        local {
            /// The operation timer expired.
            Timeout,
            /// The association cannot go on: a misuse, or a limit of ours.
            Fail,
        }
    }

    /// The actions that cells name.
    actions {
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
        /// A-RELEASE response; the confirm of our own request is pending.
        ReleaseRspFirst,
        /// The association is over.
        ReleaseCnf,
        /// A-RELEASE response that waited for this confirm.
        ReleaseCnfThenRsp,
        /// Issues A-ABORT indication.
        AbortInd,
        /// A-ABORT request, and A-ABORT indication to the user.
        AbortProvider,
    }

    otherwise {
        misuse: "X.229 Annex A";
        late in Sta00: "X.227 7.2.3, 7.3.3";
        protocol_error -> Sta00: "X.229 Annex A";
    }

    cells {
        BindReq in Sta00 => SendBind -> Sta01, "X.219 9.2; X.227 7.1.3.1";
        BindInd in Sta00 => BindInd -> Sta02, "X.219 9.2; X.227 7.1.3.2";
        BindRspAccept in Sta02 => SendBindResult -> Sta10, "X.219 9.2; X.227 7.1.3.3";
        BindRspRefuse in Sta02 => SendBindError -> Sta00, "X.219 9.2; X.227 7.1.3.3";
        BindCnf in Sta01 => BindCnf -> Sta10, "X.219 9.2; X.227 7.1.3.4";
        BindRefused in Sta01 => RefuseCnf -> Sta00, "X.219 9.2; X.227 7.1.3.4";
        InvokeReq in Sta10 => SendApdu -> Sta10, "X.229 7.1.1";
        AnswerReq in Sta10 => SendApdu -> Sta10, "X.229 7.2.1, 7.3.1, 7.4.1";
        Content in Sta10 | Sta20 => SendContent -> same, "X.229 8.1";
        ContentFailed in Sta10 | Sta20 => AbortProvider -> Sta00, "X.227 7.3.3.1";
        Roiv in Sta10 => InvokeInd -> Sta10, "X.229 7.1.2";
        Answer in Sta10 | Sta20 | Sta21 => AnswerInd -> same, "X.229 7.2.2, 7.3.2";
        Rorj in Sta10 | Sta20 | Sta21 => RejectInd -> same, "X.229 7.4.2, 7.5.2";
        BadApdu in Sta10 => SendRorj -> Sta10, "X.229 7.5.1";
        // They crossed our release.
        Roiv | BadApdu in Sta20 | Sta21 => nothing -> same, "X.227 7.2.3";
        UnbindReq in Sta10 => Release -> Sta20, "X.219 9.3; X.227 7.2.3.1";
        ReleaseInd in Sta10 => ReleaseRsp -> Sta00, "X.219 9.3; X.227 7.2.3.2";
        ReleaseIndBeforeReq in Sta20 => ReleaseRsp -> Sta00, "X.219 9.3; X.227 7.2.3.2";
        ReleaseCollisionInitiator in Sta20 => ReleaseRspFirst -> Sta20, "X.227 7.2.3.5";
        // The response follows our confirm.
        ReleaseCollisionResponder in Sta20 => nothing -> Sta21, "X.227 7.2.3.5";
        ReleaseCnf in Sta20 => ReleaseCnf -> Sta00, "X.227 7.2.3.4";
        ReleaseCnf in Sta21 => ReleaseCnfThenRsp -> Sta00, "X.227 7.2.3.5";
        // The association ended while the user asked for its end.
        AbortReq in Sta00 => nothing -> Sta00, "X.227 7.3.3.1";
        AbortReq in any => Abort -> Sta00, "X.227 7.3.3.1";
        AbortInd in any => AbortInd -> Sta00, "X.227 7.3.3.2, 7.3.4";
        Timeout in Sta10 | Sta20 | Sta21 => AbortProvider -> Sta00, "X.219 9; X.227 7.3.3.1";
        // Also of an A-ASSOCIATE indication, which comes in the state before an association.
        Invalid in any => AbortProvider -> Sta00, "X.227 7.3.3.1";
        Fail in any => AbortProvider -> Sta00, "X.227 7.3.3.1";
    }
}
