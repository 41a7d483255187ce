//! The interface between the user of an association (an MTA, a user agent) and the stack.
//!
//! The contract of every machine: `handle(now, input)`, then `poll()` until `None`; `deadline()`
//! states when to pass in [`Input::Tick`]. The stack carries opaque octets; it knows no MTA.

use crate::session::service::ConnectionReference;
use base::ber::Oid;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;

/// Which end of the association we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Makes the TCP connection and asks for the association.
    Initiator,
    /// Accepts both.
    Responder,
}

/// One end's selectors: opaque octets. `None` is absent, which differs from empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Selectors {
    /// TSEL, up to 32 octets.
    pub transport: Option<Bytes>,
    /// SSEL, up to 16 octets.
    pub session: Option<Bytes>,
    /// PSEL.
    pub presentation: Option<Bytes>,
}

/// Whether a peer calls another selector than ours. An absent one fits any.
pub(crate) fn calls_another(called: Option<&Bytes>, ours: Option<&Bytes>) -> bool {
    called.zip(ours).is_some_and(|(called, ours)| called != ours)
}

/// The dialogue mode (X.218): which end may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Dialogue {
    /// Only the end with the initial turn sends.
    Monologue,
    /// The ends take turns.
    TwoWayAlternate,
}

/// The mode of an association: the mode-selector of its connect PPDU (X.226 8.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Mode {
    /// normal-mode (1): RTSE on ACSE and presentation.
    #[default]
    Normal,
    /// x410-1984-mode (0): RTSE on session, as in X.410 (1984).
    X410 {
        /// applicationProtocol of the RTORQ; `None` where absent.
        protocol: Option<i64>,
    },
}

impl Mode {
    /// applicationProtocol of P1 of 1984, also what one that is absent means.
    pub const P1_1984: i64 = 1;
    /// applicationProtocol of P1 of 1988.
    pub const P1_1988: i64 = 12;

    /// Whether ACSE and presentation are absent.
    pub fn is_x410(self) -> bool {
        matches!(self, Mode::X410 { .. })
    }
}

/// Proposals for RTSE (X.228 7.1.1).
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RtseParameters {
    /// Checkpoint size in units of 1,024 octets. As initiator 0 lets the responder choose; as
    /// responder 0 answers that there are no checkpoints, and else is the most we accept.
    pub checkpoint_size: u32,
    /// Most unconfirmed checkpoints, 1 or more.
    pub window: u32,
    /// Dialogue mode we propose (initiator). A responder accepts both.
    pub dialogue: Dialogue,
    /// Send indefinite lengths where BER leaves the choice (for peers that want it, and for tests).
    pub indefinite_lengths: bool,
    /// Longest time without progress: no octet received; or no checkpoint or end of activity confirmed
    /// while the peer's transport acknowledged too little ([`Input::Taken`],
    /// [`crate::stack::least_progress`]).
    pub transfer_timeout: Duration,
    /// How long a sender may pause after a checkpoint that we confirmed; a value below
    /// `transfer_timeout` has no effect.
    pub longest_pause: Duration,
}

/// The service above ACSE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// RTSE: half-duplex, activities (P1).
    Rtse(RtseParameters),
    /// ROSE directly on presentation, kernel and duplex (P3 mts-access).
    Rose,
}

/// One presentation context to propose: identifier (odd for an initiator) and abstract syntax.
/// The transfer syntax is always BER (2.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Presentation context identifier.
    pub id: i64,
    /// Abstract syntax name.
    pub abstract_syntax: Oid,
}

/// The parameters of an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Our selectors. A responder refuses a called selector that is present and differs from ours
    /// where ours is `Some`.
    pub local: Selectors,
    /// The peer's (initiator: called selectors).
    pub remote: Selectors,
    /// The service above ACSE.
    pub service: Service,
    /// Initiator: the mode to propose, [`Mode::Normal`] for ROSE. A responder takes X.410 mode up where this is it;
    /// normal mode it takes up always.
    pub mode: Mode,
    /// Application contexts: an initiator proposes the first, a responder accepts any of them.
    pub application_contexts: Vec<Oid>,
    /// Initiator: the contexts to propose, ACSE's first. Responder: the abstract syntaxes it
    /// supports (identifiers are the initiator's to choose).
    pub contexts: Vec<Context>,
    /// Abstract syntax that carries the bind in the A-ASSOCIATE user information: for RTSE the one
    /// of RTORQ and RTTR (mta-rtse), for ROSE the one of the bind operation (mts).
    pub bind_syntax: Oid,
    /// Responder: the bind may come in one of these instead; P7 has another for each edition. Empty for RTSE.
    pub other_bind_syntaxes: Vec<Oid>,
    /// Abstract syntax of what is transferred: for RTSE of the APDU inside the EXTERNAL (mtse).
    /// Unused for ROSE, where each operation names its own.
    pub transfer_syntax_owner: Oid,
    /// Largest TPDU we propose or accept, in octets: a power of two from 128 to 8192, or `None` for
    /// RFC 1006's default of 65,531 octets of data.
    pub tpdu_size: Option<u32>,
    /// Longest wait for the peer while opening (all steps together), releasing or aborting, and for
    /// each answer of its provider.
    pub setup_timeout: Duration,
    /// ROSE: longest wait for the answer to an operation once its last octet was handed down, and
    /// for the next octet of an APDU that is being sent or received. Unused for RTSE.
    pub operation_timeout: Duration,
    /// The session connection reference to use (initiator): the user part is put in a BER OCTET
    /// STRING, the common part is a UTCTime; both are made by the caller so that they are unique.
    pub reference: ConnectionReference,
    /// Responder: there is no room for another association. Every connect request is answered with
    /// a disconnect request, reason congestion (X.224 13.5.3).
    pub turn_away: bool,
}

/// A protocol data unit whose content is pulled while it is sent.
///
/// The unit is `head`, then `content_length` octets asked for with [`Indication::NeedContent`],
/// then `tail`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// Octets before the content.
    pub head: Bytes,
    /// Octets of content.
    pub content_length: u64,
    /// Octets after the content.
    pub tail: Bytes,
}

impl Payload {
    /// A unit without pulled content.
    pub fn whole(head: impl Into<Bytes>) -> Payload {
        Payload { head: head.into(), content_length: 0, tail: Bytes::new() }
    }

    /// Octets of the whole unit.
    pub fn length(&self) -> u64 {
        self.head.len() as u64 + self.content_length + self.tail.len() as u64
    }
}

/// Where an interrupted transfer can resume: at its last confirmed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ResumePoint {
    /// The session connection the activity began on.
    pub reference: ConnectionReference,
    /// Activity identifier.
    pub activity: i64,
    /// Serial number of the last confirmed checkpoint, 1 or more.
    pub serial: u32,
    /// Octets of the RTSE user's encoded APDU before that checkpoint.
    pub octets: u64,
}

/// Why an association is refused (mapped to each layer's reason on the wire).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseReason {
    /// RTSE busy(0); try again later.
    Busy,
    /// RTSE cannotRecover(1).
    CannotRecover,
    /// RTSE validationFailure(2), which X.410 has instead of a bind error: our name or password.
    ValidationFailure,
    /// RTSE unacceptableDialogueMode(3), of X.410 too.
    DialogueMode,
    /// The bind error has the reason.
    Bind,
    /// The ACSE application context is not supported.
    ApplicationContext,
    /// No reason given, or one without a name here.
    Unspecified,
}

/// Why a user aborts (RTAB abortReason, X.228 table; ABRT for ROSE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AbortReason {
    /// 0.
    LocalSystemProblem = 0,
    /// 1.
    InvalidParameter = 1,
    /// 2.
    UnrecognizedActivity = 2,
    /// 3.
    TemporaryProblem = 3,
    /// 4.
    ProtocolError = 4,
    /// 5.
    PermanentProblem = 5,
    /// 6.
    UserError = 6,
    /// 7: the transfer the sender is about to resume was completed.
    TransferCompleted = 7,
}

/// ROSE reject problem (X.229 clause 9): the choice's tag (0 general, 1 invoke, 2 return result,
/// 3 return error) and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The choice's tag, 0 to 3: the list that `value` is from.
    pub kind: u8,
    /// Value in that list.
    pub value: i64,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::rose::pdu::problem::describe(*self, f)
    }
}

/// Inputs of an association.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Octets from the transport connection, in order, any division.
    Bytes(&'a [u8]),
    /// The peer closed its side, or the connection was lost.
    Eof,
    /// Total octets that the peer's transport has taken (TCP acknowledged them). A sufficient rise is
    /// progress of a sender, see [`crate::stack::Association::outstanding`].
    Taken(u64),
    /// The deadline passed.
    Tick,
    /// The user's request.
    Request(Request),
}

/// Requests of the user.
#[derive(Clone, PartialEq, Eq)]
pub enum Request {
    /// RT-OPEN or A-ASSOCIATE: the bind argument, a whole BER element (initiator, first request).
    Open {
        /// Bind argument.
        bind: Bytes,
    },
    /// RT-OPEN with recover (X.228 7.8.3): takes up a lost association (initiator, instead of `Open`).
    Recover {
        /// The lost association.
        reference: ConnectionReference,
        /// An interrupted transfer to us, for the peer to resume.
        received: Option<crate::rtse::InterruptedReceive>,
    },
    /// Accepts an [`Indication::Open`] with the bind result, a whole BER element.
    Accept {
        /// Bind result.
        bind: Bytes,
    },
    /// Accepts an [`Indication::RecoverAsked`], with the interrupted transfer of the lost association.
    AcceptRecover(Option<crate::rtse::InterruptedReceive>),
    /// Refuses an `Open` or `RecoverAsked`.
    Refuse {
        /// The reason that the peer receives.
        reason: RefuseReason,
        /// Bind error, a whole BER element (an INTEGER), with [`RefuseReason::Bind`].
        bind_error: Option<Bytes>,
    },
    /// RT-TRANSFER.request: begins an activity; the content is pulled. Needs the turn.
    Transfer {
        /// The RTSE user's APDU.
        payload: Payload,
        /// Resumes an earlier activity.
        resume: Option<ResumePoint>,
    },
    /// Answers [`Indication::NeedContent`]: 1 to `max` octets from `offset` on.
    Content(Bytes),
    /// The content cannot be read: the transfer is discarded, a ROSE association aborted.
    ContentFailed,
    /// Stops the transfer in progress after the next checkpoint (X.228 7.3.4); it can be resumed.
    Interrupt,
    /// RTSE: with `true`, sends nothing more of the transfer in progress from the next checkpoint on;
    /// with `false`, continues. The association stays as it is and no timer of ours runs. The peer
    /// only sees that nothing comes. A transfer without checkpoints does not pause.
    Pause(bool),
    /// Answers [`Indication::Checkpoint`]: that many user octets are stored.
    Stored {
        /// As in the indication; confirms it and all earlier ones.
        octets: u64,
    },
    /// Answers [`Indication::TransferEnd`]: the APDU is secured, the peer may forget it.
    TransferSecured,
    /// Answers [`Indication::TransferEnd`] or any data before it: this APDU cannot be taken. The
    /// peer gets an exception or an RTAB and keeps the APDU.
    TransferRefused(AbortReason),
    /// RT-TURN-PLEASE with a priority (0 highest).
    TurnPlease(i64),
    /// RT-TURN-GIVE; outside a transfer.
    TurnGive,
    /// RO-INVOKE.
    Invoke {
        /// Invoke identifier.
        invoke: i64,
        /// Abstract syntax of the operation's ASE.
        syntax: Oid,
        /// Local operation code.
        operation: i64,
        /// The argument.
        argument: Payload,
    },
    /// RO-RESULT.
    Result {
        /// Invoke identifier of the invocation answered.
        invoke: i64,
        /// Local operation code.
        operation: i64,
        /// The result.
        result: Payload,
    },
    /// RO-ERROR.
    Error {
        /// Invoke identifier of the invocation answered.
        invoke: i64,
        /// Local error code.
        error: i64,
        /// Its parameter, a whole BER element, or empty for none.
        parameter: Bytes,
    },
    /// RO-REJECT-U.
    Reject {
        /// Invoke identifier where known.
        invoke: Option<i64>,
        /// The problem that the reject names.
        problem: Problem,
    },
    /// RT-CLOSE or A-RELEASE.
    Release,
    /// Ends the transport connection without a release, for peers that fail at one; while nothing is in flight.
    Close,
    /// RT-U-ABORT or A-ABORT.
    Abort(AbortReason),
}

/// Outputs of an association.
#[derive(Clone, Debug)]
pub enum Output {
    /// Write these octets to the transport connection, in order.
    Send(Bytes),
    /// Close the transport connection once all is written. Nothing follows.
    Close,
    /// Indicates to the user.
    Indication(Indication),
}

/// Indications and confirms to the user.
#[derive(Clone)]
pub enum Indication {
    /// A peer asks for an association: answer `Accept` or `Refuse`.
    Open {
        /// Bind argument: a whole BER element.
        bind: Bytes,
        /// The application context it asked for.
        application_context: Oid,
        /// The peer's selectors.
        calling: Selectors,
        /// Names this association if it has to be recovered.
        reference: ConnectionReference,
        /// The abstract syntaxes agreed on: they determine which operations the peer accepts (P3).
        syntaxes: Vec<Oid>,
        /// RTSE: the dialogue mode the peer asked for; [`Dialogue::TwoWayAlternate`] for ROSE.
        dialogue: Dialogue,
        /// The mode that the peer asked for. In X.410 mode the application context is mts-transfer, and no bind
        /// error can be answered: only a reason.
        mode: Mode,
    },
    /// A peer asks to recover a lost association: answer `AcceptRecover` or `Refuse`.
    RecoverAsked {
        /// The association it means.
        reference: ConnectionReference,
        /// Names this association if it has to be recovered in its turn.
        association: ConnectionReference,
        /// The dialogue mode the peer asked for.
        dialogue: Dialogue,
    },
    /// The association is open (initiator).
    Opened {
        /// Bind result: a whole BER element; empty after a recovery.
        bind: Bytes,
        /// Names this association if it has to be recovered.
        reference: ConnectionReference,
    },
    /// The peer refused. The association is over.
    Refused {
        /// The reason that the peer gave.
        reason: RefuseReason,
        /// Bind error: a whole BER element.
        bind_error: Option<Bytes>,
        /// For the log: the layer, its code, its clause.
        detail: String,
    },
    /// Pass in `Content` from `offset` of the pulled content, 1 to `max` octets. The next indication
    /// comes only after the answer: a late answer is the flow control.
    NeedContent {
        /// Offset in the pulled content.
        offset: u64,
        /// Most octets.
        max: usize,
    },
    /// RTSE: the peer begins a transfer.
    TransferStart {
        /// Activity identifier.
        activity: i64,
    },
    /// RTSE: an interrupted transfer continues; no data indicated before is repeated.
    TransferResumed {
        /// Activity identifier.
        activity: i64,
    },
    /// Octets of the user's APDU (RTSE) or of an argument, result or error parameter (ROSE: begun by
    /// `Invoked`, `Returned`, `ReturnedError`; its own tag and length included).
    Data {
        /// The octets.
        bytes: Bytes,
        /// Whether they end the unit; the last may be empty.
        last: bool,
    },
    /// RTSE: a checkpoint arrived; answer `Stored` when `octets` are stored.
    Checkpoint {
        /// User octets before it.
        octets: u64,
    },
    /// RTSE: the transfer ended; answer `TransferSecured` after the durable commit.
    TransferEnd,
    /// RTSE: the peer gave the transfer up, or interrupted it.
    TransferStopped {
        /// Whether it may be resumed.
        may_resume: bool,
    },
    /// RTSE: the transfer exceeds a limit of ours. No more data of it is indicated; the user refuses
    /// it ([`Request::TransferRefused`]), and the association continues.
    TransferFaulty {
        /// For the log: the layer, the clause or field, what was wrong.
        detail: String,
    },
    /// RTSE sender: the peer has stored up to this point.
    Progress(ResumePoint),
    /// RTSE sender: the transfer pauses, as [`Request::Pause`] asked; each time once.
    Paused,
    /// RTSE sender: RT-TRANSFER.confirm positive; the peer is responsible.
    TransferConfirmed,
    /// RTSE sender: the transfer did not succeed; the APDU is still ours.
    TransferFailed {
        /// The last confirmed checkpoint; `None` if the transfer must start anew.
        resume: Option<ResumePoint>,
        /// Whether the receiver refused this APDU permanently: an exception report with
        /// unrecoverable procedural error (X.228 7.6.1).
        refused: bool,
        /// Whether the end of the activity was sent, and neither confirmed nor refused: the peer may have the APDU.
        in_doubt: bool,
        /// For the log.
        detail: String,
    },
    /// The peer asks for the turn.
    TurnPlease(i64),
    /// The turn is ours.
    TurnGiven,
    /// RO-INVOKE: data follows.
    Invoked {
        /// Invoke identifier.
        invoke: i64,
        /// Local operation code.
        operation: i64,
    },
    /// RO-RESULT: data follows (an empty last piece where there is no result).
    Returned {
        /// Invoke identifier.
        invoke: i64,
    },
    /// RO-ERROR: data follows (an empty last piece where there is no parameter).
    ReturnedError {
        /// Invoke identifier.
        invoke: i64,
        /// Local error code.
        error: i64,
    },
    /// RO-REJECT-P: an APDU of the peer was rejected by this layer. For information only.
    Faulty {
        /// Invoke identifier where known.
        invoke: Option<i64>,
        /// The problem in the reject.
        problem: Problem,
        /// For the log: the layer, the clause or field, what was wrong.
        detail: String,
    },
    /// RO-REJECT by the peer.
    Rejected {
        /// Invoke identifier where known.
        invoke: Option<i64>,
        /// The problem that the peer's reject names.
        problem: Problem,
    },
    /// The association was released in order, by either end. Nothing follows.
    Released,
    /// The association was aborted or lost. Nothing follows.
    Aborted {
        /// RTAB's reason where the peer's RTSE user gave one.
        reason: Option<AbortReason>,
        /// For the log: the layer, the clause or field, what was wrong.
        detail: String,
    },
}

/// `Debug` as derived, except that fields named `bind` show their length only: a bind carries the
/// password. Also the names of the variants. Every variant and field is listed, so that the compiler
/// refuses one that is missing here.
macro_rules! shown {
    ($shown:ty { $($variant:ident $({ $($field:ident),+ })? $(($only:ident))?,)+ }) => {
        impl $shown {
            /// The variant's name, without its contents.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => stringify!($variant),)+
                }
            }
        }

        impl fmt::Debug for $shown {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant $({ $($field),+ })? $(($only))? => {
                        shown!(@one f, $variant $({ $($field),+ })? $(($only))?)
                    })+
                }
            }
        }
    };
    (@one $f:ident, $variant:ident) => { $f.write_str(stringify!($variant)) };
    (@one $f:ident, $variant:ident ($only:ident)) => {
        $f.debug_tuple(stringify!($variant)).field($only).finish()
    };
    (@one $f:ident, $variant:ident { $($field:ident),+ }) => {
        $f.debug_struct(stringify!($variant))
            $(.field(stringify!($field), shown!(@field $field $field)))+
            .finish()
    };
    (@field bind $bind:ident) => { &Undisclosed($bind.len()) };
    (@field $name:ident $field:ident) => { $field };
}

shown!(Request {
    Open { bind },
    Recover { reference, received },
    Accept { bind },
    AcceptRecover(left),
    Refuse { reason, bind_error },
    Transfer { payload, resume },
    Content(octets),
    ContentFailed,
    Interrupt,
    Pause(on),
    Stored { octets },
    TransferSecured,
    TransferRefused(reason),
    TurnPlease(priority),
    TurnGive,
    Invoke { invoke, syntax, operation, argument },
    Result { invoke, operation, result },
    Error { invoke, error, parameter },
    Reject { invoke, problem },
    Release,
    Close,
    Abort(reason),
});

shown!(Indication {
    Open { bind, application_context, calling, reference, syntaxes, dialogue, mode },
    RecoverAsked { reference, association, dialogue },
    Opened { bind, reference },
    Refused { reason, bind_error, detail },
    NeedContent { offset, max },
    TransferStart { activity },
    TransferResumed { activity },
    Data { bytes, last },
    Checkpoint { octets },
    TransferEnd,
    TransferStopped { may_resume },
    TransferFaulty { detail },
    Progress(point),
    Paused,
    TransferConfirmed,
    TransferFailed { resume, refused, in_doubt, detail },
    TurnPlease(priority),
    TurnGiven,
    Invoked { invoke, operation },
    Returned { invoke },
    ReturnedError { invoke, error },
    Faulty { invoke, problem, detail },
    Rejected { invoke, problem },
    Released,
    Aborted { reason, detail },
});

/// Octets that are not shown, by their number.
struct Undisclosed(usize);

impl fmt::Debug for Undisclosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} octets)", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bind_is_shown() {
        let bind = Bytes::from_static(b"vesuvio");
        let reference = ConnectionReference {
            user: Bytes::from_static(b"u"),
            common: Bytes::from_static(b"c"),
            additional: Bytes::new(),
        };
        let open = Indication::Open {
            bind: bind.clone(),
            application_context: Oid::from_arcs(&[2, 6, 0]).unwrap(),
            calling: Selectors::default(),
            reference: reference.clone(),
            syntaxes: Vec::new(),
            dialogue: Dialogue::Monologue,
            mode: Mode::Normal,
        };
        let opened = Indication::Opened { bind: bind.clone(), reference };
        let asked = [Request::Open { bind: bind.clone() }, Request::Accept { bind }];
        for shown in [
            format!("{open:?}"),
            format!("{opened:#?}"),
            format!("{:?}", Output::Indication(opened)),
            format!("{asked:?}"),
            format!("{:?}", Input::Request(asked[0].clone())),
        ] {
            assert!(shown.contains("bind: (7 octets)"), "{shown}");
            // Neither as text nor as a list of octets.
            assert!(!shown.contains("vesuvio") && !shown.contains("118"), "{shown}");
        }
        assert_eq!((asked[1].name(), open.name()), ("Accept", "Open"));
    }

    #[test]
    fn all_else_is_shown_as_derived() {
        assert_eq!(format!("{:?}", Request::Release), "Release");
        assert_eq!(format!("{:?}", Request::TurnPlease(3)), "TurnPlease(3)");
        let data = Indication::Data { bytes: Bytes::from_static(b"ab"), last: true };
        assert_eq!(format!("{data:?}"), r#"Data { bytes: b"ab", last: true }"#);
    }
}
