//! The session service (X.215) as RTSE and the kernel-with-duplex users of this workspace need it:
//! the primitives that cross the boundary between session and presentation.

use bytes::Bytes;
use std::fmt;

/// Functional units (X.225 8.3.1.16, session user requirements). A set of bits.
pub mod requirements {
    /// Half-duplex: the data token exists.
    pub const HALF_DUPLEX: u16 = 0x0001;
    /// Duplex: no data token.
    pub const DUPLEX: u16 = 0x0002;
    /// Minor synchronize.
    pub const MINOR_SYNC: u16 = 0x0008;
    /// Activity management.
    pub const ACTIVITY: u16 = 0x0040;
    /// Exceptions.
    pub const EXCEPTIONS: u16 = 0x0200;
    /// What RTSE needs (X.228 7.1.1.7): 0x0249.
    pub const RTSE: u16 = HALF_DUPLEX | MINOR_SYNC | ACTIVITY | EXCEPTIONS;
}

/// Session connection reference (X.225 8.3.1.5 to 8.3.1.8): names a session connection for recovery.
/// The fields are BER elements as RTSE makes them (X.228 7.1.1.6), carried here as opaque octets.
#[derive(
    Clone,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct ConnectionReference {
    /// Calling (or called) SS-user reference, up to 64 octets.
    pub user: Bytes,
    /// Common reference, up to 64 octets.
    pub common: Bytes,
    /// Additional reference information, up to 4 octets.
    pub additional: Bytes,
}

/// S-CONNECT request and indication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connect {
    /// Calling session selector, up to 16 octets; `None` where absent, which differs from empty.
    pub calling_selector: Option<Bytes>,
    /// Called session selector.
    pub called_selector: Option<Bytes>,
    /// Reference.
    pub reference: ConnectionReference,
    /// Proposed functional units.
    pub requirements: u16,
    /// User data, up to 10,240 octets.
    pub user_data: Bytes,
}

/// S-CONNECT response and confirm, positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accept {
    /// Responding session selector.
    pub responding_selector: Option<Bytes>,
    /// Functional units wanted (response) or in force (confirm).
    pub requirements: u16,
    /// User data.
    pub user_data: Bytes,
}

/// S-CONNECT response and confirm, negative: reason code of X.225 8.3.5.10.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refuse {
    /// 0, 1 and 2 are the SS-user's (2 carries user data); 129 and above the provider's.
    pub reason: u8,
    /// User data, with reason 2 only.
    pub user_data: Bytes,
}

/// S-ACTIVITY-RESUME parameters (X.225 8.3.30).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// New activity identifier, up to 6 octets.
    pub activity: Bytes,
    /// Old activity identifier.
    pub old_activity: Bytes,
    /// The synchronization point to go on from: the last confirmed one.
    pub serial: u32,
    /// Reference of the session connection the activity began on, where it was another one.
    pub old_reference: Option<ConnectionReference>,
}

/// Reason of S-ACTIVITY-INTERRUPT and -DISCARD and of exceptions (X.225 8.3.31, 8.3.33, 8.3.28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExceptionReason {
    /// 0.
    NonSpecific = 0,
    /// 1: the receiving ability is jeopardized.
    ReceivingAbilityJeopardized = 1,
    /// 3: SS-user sequence error.
    SequenceError = 3,
    /// 5: local SS-user error.
    LocalError = 5,
    /// 6: unrecoverable procedural error.
    Unrecoverable = 6,
    /// 128: demand data token.
    DemandDataToken = 128,
}

impl fmt::Display for ExceptionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            ExceptionReason::NonSpecific => "non-specific error",
            ExceptionReason::ReceivingAbilityJeopardized => "receiving ability jeopardized",
            ExceptionReason::SequenceError => "user sequence error",
            ExceptionReason::LocalError => "local user error",
            ExceptionReason::Unrecoverable => "unrecoverable procedural error",
            ExceptionReason::DemandDataToken => "demand data token",
        };
        write!(f, "{words} ({})", *self as u8)
    }
}

/// A request of the session user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// S-CONNECT.request. The transport connection is made first, by itself.
    Connect(Connect),
    /// S-CONNECT.response (accept).
    Accept(Accept),
    /// S-CONNECT.response (reject). The transport connection ends with it.
    Refuse(Refuse),
    /// S-DATA.request, in pieces; `last` ends the SSDU. Needs the data token where half-duplex is in
    /// force. Between pieces only an abort, an activity interrupt or discard, or recovery after an
    /// exception may be asked; they cut the SSDU short. After an exception the peer discards it
    /// anyway; without one the peer may take it for an error of the layers above.
    Data {
        /// The piece.
        bytes: Bytes,
        /// Whether it ends the SSDU.
        last: bool,
    },
    /// S-TOKEN-GIVE.request of all tokens (X.225 7.16). Answers an exception as well.
    GiveTokens,
    /// S-CONTROL-GIVE.request (X.225 7.18): all tokens, outside an activity.
    GiveControl,
    /// S-TOKEN-PLEASE.request with user data.
    PleaseTokens {
        /// User data, up to 10,240 octets; 512 are what every peer takes.
        user_data: Bytes,
    },
    /// S-ACTIVITY-START.request.
    ActivityStart {
        /// Activity identifier, up to 6 octets.
        activity: Bytes,
    },
    /// S-ACTIVITY-RESUME.request.
    ActivityResume(Resume),
    /// S-ACTIVITY-INTERRUPT.request.
    ActivityInterrupt(ExceptionReason),
    /// S-ACTIVITY-INTERRUPT.response.
    ActivityInterruptResponse,
    /// S-ACTIVITY-DISCARD.request.
    ActivityDiscard(ExceptionReason),
    /// S-ACTIVITY-DISCARD.response.
    ActivityDiscardResponse,
    /// S-ACTIVITY-END.request.
    ActivityEnd,
    /// S-ACTIVITY-END.response.
    ActivityEndResponse,
    /// S-SYNC-MINOR.request, explicit confirmation wanted; the machine numbers it.
    MinorSync,
    /// S-SYNC-MINOR.response: confirms this and all earlier serial numbers.
    MinorSyncResponse {
        /// Serial number, 1 to 999999.
        serial: u32,
    },
    /// S-U-EXCEPTION-REPORT.request.
    ExceptionReport(ExceptionReason),
    /// S-RELEASE.request.
    Release {
        /// User data.
        user_data: Bytes,
    },
    /// S-RELEASE.response (affirmative).
    ReleaseResponse {
        /// User data.
        user_data: Bytes,
    },
    /// S-U-ABORT.request.
    Abort {
        /// User data, up to 10,240 octets.
        user_data: Bytes,
    },
}

/// An indication or confirm of the session provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indication {
    /// S-CONNECT.indication.
    Connect(Connect),
    /// S-CONNECT.confirm (accept).
    Accepted(Accept),
    /// S-CONNECT.confirm (reject), by the peer's user or its provider, or a refused transport.
    Refused(Refuse),
    /// S-DATA.indication, in pieces as they arrive; `last` ends the SSDU. The last may be empty.
    Data {
        /// The piece.
        bytes: Bytes,
        /// Whether it ends the SSDU.
        last: bool,
    },
    /// S-TOKEN-GIVE.indication.
    TokensGiven {
        /// Whether all tokens are ours now.
        all: bool,
    },
    /// S-CONTROL-GIVE.indication.
    ControlGiven,
    /// S-TOKEN-PLEASE.indication.
    TokensPlease {
        /// User data.
        user_data: Bytes,
    },
    /// S-ACTIVITY-START.indication.
    ActivityStart {
        /// Activity identifier.
        activity: Bytes,
    },
    /// S-ACTIVITY-RESUME.indication.
    ActivityResume(Resume),
    /// S-ACTIVITY-INTERRUPT.indication.
    ActivityInterrupt(ExceptionReason),
    /// S-ACTIVITY-INTERRUPT.confirm.
    ActivityInterruptConfirm,
    /// S-ACTIVITY-DISCARD.indication.
    ActivityDiscard(ExceptionReason),
    /// S-ACTIVITY-DISCARD.confirm.
    ActivityDiscardConfirm,
    /// S-ACTIVITY-END.indication.
    ActivityEnd {
        /// Serial number of the major synchronization point.
        serial: u32,
    },
    /// S-ACTIVITY-END.confirm.
    ActivityEndConfirm,
    /// S-SYNC-MINOR.indication.
    MinorSync {
        /// Serial number.
        serial: u32,
    },
    /// S-SYNC-MINOR.confirm: this and all earlier serial numbers are confirmed.
    MinorSyncConfirm {
        /// Serial number.
        serial: u32,
    },
    /// S-U-EXCEPTION-REPORT.indication.
    ExceptionReport(ExceptionReason),
    /// S-P-EXCEPTION-REPORT.indication (protocol error that did not end the connection).
    ProviderException,
    /// S-RELEASE.indication.
    Release {
        /// User data.
        user_data: Bytes,
    },
    /// S-RELEASE.confirm. The transport connection ends with it.
    Released {
        /// User data.
        user_data: Bytes,
    },
    /// S-U-ABORT.indication.
    UserAbort {
        /// User data.
        user_data: Bytes,
    },
    /// S-P-ABORT.indication: transport lost, protocol error, timer; with the reason for the log.
    ProviderAbort {
        /// The clause or field and what was wrong.
        reason: String,
    },
}
