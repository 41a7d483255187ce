//! The state table of class 0 over TCP (X.224 annex A, RFC 1006 section 5).

crate::table::state_table! {
    /// The table of the transport layer.
    table "transport";

    /// States (X.224 annex A), with the names of the annex.
    states { Closed:
        /// CLOSED: the TCP connection is there, the transport connection is not.
        Closed,
        /// WFCC: a CR is sent.
        Wfcc,
        /// OPEN.
        Open,
        /// A DR or ER is sent: wait for the peer to close TCP.
        Closing,
        /// The TCP connection is gone or given up. Nothing follows.
        Ended,
    }

    /// Events.
    events {
        requests {
            /// T-CONNECT.request.
            Tconreq,
            /// T-DATA.request.
            Tdtreq,
            /// T-DISCONNECT.request.
            Tdisreq,
        }
        answers {}
        received {
            /// A CR that can be accepted.
            Cr,
            /// A CR to be refused: class or called selector.
            CrRefused,
            /// A CC for class 0.
            Cc,
            /// A DR.
            Dr,
            /// A DT within the size negotiated.
            Dt,
            /// An ER.
            Er,
            /// A TPDU that is invalid: no cell, a protocol error wherever TCP is up.
            Invalid,
        }
        local {
            /// A TPKT that is invalid: the stream cannot be read on.
            Unreadable,
            /// The TCP connection ended.
            Ndisind,
            /// The wait is over.
            Timer,
            /// A request of our own user was a misuse.
            Fail,
        }
    }

    /// The actions that cells name.
    actions {
        /// Send a CR.
        SendCr,
        /// Send a CC; T-CONNECT.indication, answered at once.
        Accept,
        /// Send a DR with its reason.
        Refuse,
        /// T-CONNECT.confirm.
        Confirm,
        /// Send DTs.
        SendDt,
        /// T-DATA.indication: the user data that follows is delivered.
        Deliver,
        /// T-DISCONNECT.indication and close TCP.
        Disconnected,
        /// Close TCP.
        Close,
    }

    otherwise {
        misuse: "X.224 A.3";
        late in Closing | Ended: "X.224 6.8";
        protocol_error -> Closing: "X.224 6.22";
    }

    cells {
        Tconreq in Closed => SendCr -> Wfcc, "X.224 6.5";
        Cr in Closed => Accept -> Open, "X.224 6.5";
        CrRefused in Closed => Refuse -> Closing, "X.224 6.6";
        Cc in Wfcc => Confirm -> Open, "X.224 6.5";
        Dr in Wfcc | Closed => Disconnected -> Ended, "X.224 6.6";
        Tdtreq in Open => SendDt -> Open, "X.224 6.3";
        Dt in Open => Deliver -> Open, "X.224 6.3";
        // Class 0 releases by closing the network connection; some peers send a DR before it.
        Tdisreq in Open | Wfcc | Closed => Close -> Ended, "X.224 6.7.1";
        Dr in Open => Disconnected -> Ended, "X.224 6.7.1";
        Er in Open | Wfcc | Closed => Disconnected -> Ended, "X.224 6.22";
        Unreadable in Open | Wfcc | Closed => Disconnected -> Ended, "RFC 1006 6";
        Ndisind in Open | Wfcc | Closed => Disconnected -> Ended, "X.224 6.8";
        Timer in Wfcc | Closed => Disconnected -> Ended, "X.224 6.5";
        Fail in Open | Wfcc | Closed => Disconnected -> Ended, "X.224 A.3";
        Ndisind | Timer | Tdisreq | Dr | Unreadable | Fail in Closing
            => Close -> Ended, "X.224 6.8";
        // What our user sends while the peer closes.
        Tdtreq in Closing | Ended => nothing -> same, "X.224 6.8";
        Tdisreq in Ended => nothing -> Ended, "X.224 6.8";
    }
}
