//! The reliable transfer protocol machine (X.228 clause 7), its dispatch and its timer.

#[cfg(test)]
mod cells;

use super::interrupted::InterruptedReceive;
use super::open::Refused;
use super::outflow::Outflow;
use super::pdu::{self, Rtab};
use super::receiver::Receiving;
use super::table::{Action, Event, State, Table};
use crate::acse;
use crate::api::{self, AbortReason, Config, Dialogue, Indication, RtseParameters};
use crate::presentation::service::{self as presentation, Value};
use crate::session::service::{self as session, ConnectionReference, ExceptionReason};
use crate::shown;
use crate::stack::Below;
use crate::table::{Automaton, Entered, Step};
use base::ber::Oid;
use base::time::Instant;
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

/// What an event carries.
#[derive(Debug)]
pub(super) enum With {
    /// Nothing.
    Nothing,
    /// A request of the user.
    Request(api::Request),
    /// An RTORQ, as the indication to issue.
    Open(Indication),
    /// An RTORQ that recovers: the association lost, and the indication to issue.
    Recover(ConnectionReference, Indication),
    /// An RTOAC: bind result, checkpoint size in units of 1024 octets, window.
    Opened(Bytes, u32, u32),
    /// An A-ASSOCIATE confirm, rejected.
    Refused(Refused),
    /// The activity identifier of an activity that begins.
    Activity(Bytes),
    /// The parameters of an activity that goes on.
    Resume(session::Resume),
    /// A presentation data value begins.
    ValueStart,
    /// Octets of it.
    ValueData(Bytes),
    /// It ends.
    ValueEnd,
    /// The serial number of a checkpoint.
    Serial(u32),
    /// The reason of an exception; `None` where the session provider reports it.
    Exception(Option<ExceptionReason>),
    /// The priority of an RTTP.
    Priority(i64),
    /// An abort of the peer: user information, and the diagnostic.
    Aborted(Option<Value>, String),
    /// What is wrong with an APDU; the event and the state go before it.
    Wrong(AbortReason, String),
    /// The whole diagnostic of an abort.
    Detail(AbortReason, String),
}

/// The machine. It calls ACSE and presentation below; the user takes its indications from `up`.
#[derive(Debug)]
pub(crate) struct Rtse {
    pub(super) automaton: Automaton<Table>,
    pub(super) parameters: RtseParameters,
    /// Abstract syntax of our own APDUs.
    pub(super) syntax: Oid,
    /// Abstract syntax of the user's APDUs.
    pub(super) user_syntax: Oid,
    /// Dialogue mode in force.
    pub(super) dialogue: Dialogue,
    /// Octets between checkpoints in force.
    pub(crate) checkpoint: Option<u64>,
    /// Window in force.
    pub(super) window: usize,
    /// What the responder will answer: checkpoint size and window.
    pub(super) answer: (u32, u32),
    /// The session connection reference we use as initiator.
    pub(super) proposed_reference: ConnectionReference,
    /// Names this association.
    pub(super) reference: ConnectionReference,
    /// The association that is being recovered.
    pub(super) recovering: Option<ConnectionReference>,
    pub(super) outflow: Option<Outflow>,
    pub(super) origin: Option<api::ResumePoint>,
    pub(super) next_activity: i64,
    pub(super) receiving: Option<Receiving>,
    pub(super) interrupted: VecDeque<InterruptedReceive>,
    /// The last transfer whose end was confirmed: the sender may not have received the confirm.
    pub(super) completed: Option<InterruptedReceive>,
    timer: Option<Instant>,
    pub(crate) up: VecDeque<Indication>,
}

impl Rtse {
    pub(crate) fn new(config: &Config, parameters: &RtseParameters) -> Rtse {
        Rtse {
            automaton: Automaton::new(),
            parameters: parameters.clone(),
            syntax: config.bind_syntax.clone(),
            user_syntax: config.transfer_syntax_owner.clone(),
            dialogue: parameters.dialogue,
            checkpoint: None,
            window: 1,
            answer: (0, 1),
            proposed_reference: config.reference.clone(),
            reference: pdu::normalized(&config.reference),
            recovering: None,
            outflow: None,
            origin: None,
            next_activity: 1,
            receiving: None,
            interrupted: VecDeque::new(),
            completed: None,
            timer: None,
            up: VecDeque::new(),
        }
    }

    /// The state, and whether it waits for our user though it is one of transfer, for tests.
    #[cfg(test)]
    pub(crate) fn state(&self) -> String {
        let ours = self.automaton.state() == State::Sta30 && !self.awaits_peer();
        format!("rtse {:?}{}", self.automaton.state(), if ours { " ours" } else { "" })
    }

    /// Whether nothing is in progress: associated, and no transfer or release begun.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.automaton.state(), State::Sta10 | State::Sta11)
    }

    /// When to call [`Rtse::tick`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.timer
    }

    /// The deadline passed.
    pub(crate) fn tick(&mut self, now: Instant, below: &mut Below) {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.on(below, Event::Timeout, With::Nothing);
        }
    }

    /// What did not happen when the transfer timer expired.
    fn awaited(state: State) -> &'static str {
        match state {
            State::Sta20 => "the peer took nothing",
            State::Sta30 => "nothing came",
            State::Sta21 => "no checkpoint was confirmed and the peer took nothing",
            State::Sta32 => "no answer",
            _ => "no answer, and the peer took nothing",
        }
    }

    /// Whether the next step of a transfer is the peer's. While it takes what we send, our user
    /// supplies content and starts the timer anew; while it stops, the connection is full and our
    /// user is not asked for more. If our user has confirms pending, the peer waits for this end.
    fn awaits_peer(&self) -> bool {
        match self.automaton.state() {
            State::Sta30 => self.receiving.as_ref().is_none_or(Receiving::is_confirmed),
            State::Sta20 => !self.outflow.as_ref().is_some_and(Outflow::holds),
            State::Sta21 | State::Sta22 | State::Sta23 | State::Sta24 | State::Sta32 => true,
            _ => false,
        }
    }

    /// Whether a transfer of ours waits for the peer: to take octets, to confirm.
    pub(crate) fn awaits_answer(&self) -> bool {
        let sending = matches!(
            self.automaton.state(),
            State::Sta20 | State::Sta21 | State::Sta22 | State::Sta23 | State::Sta24
        );
        sending && self.awaits_peer()
    }

    /// The peer's transport took octets of ours. A slow line may need longer than the timer for what
    /// the window lets us send, let alone for a checkpoint.
    pub(crate) fn peer_took(&mut self, now: Instant) {
        if self.awaits_answer() {
            self.rearm(now, self.automaton.state(), true);
        }
    }

    /// Runs the transfer timer while the peer is awaited; what moves the transfer starts it anew.
    fn rearm(&mut self, now: Instant, before: State, progress: bool) {
        let waiting = self.awaits_peer();
        if !waiting {
            self.timer = None;
        } else if self.timer.is_none() || progress || before != self.automaton.state() {
            let receiving =
                self.receiving.as_ref().filter(|_| self.automaton.state() == State::Sta30);
            let pause = match receiving {
                Some(receiving) if receiving.is_at_checkpoint() => self.parameters.longest_pause,
                _ => Duration::ZERO,
            };
            self.timer = Some(now + self.parameters.transfer_timeout.max(pause));
        }
    }

    /// A request of the user.
    pub(crate) fn request(&mut self, now: Instant, below: &mut Below, request: api::Request) {
        let before = self.automaton.state();
        let Some(event) = self.event_of(&request) else {
            let detail = "rtse: a request of ROSE (X.218 clause 8)".to_owned();
            return self.fail(below, AbortReason::LocalSystemProblem, detail);
        };
        self.on(below, event, With::Request(request));
        self.pump(below);
        self.rearm(now, before, matches!(event, Event::Content | Event::Stored));
    }

    /// Takes an event and performs the action of its cell.
    pub(super) fn on(&mut self, below: &mut Below, event: Event, with: With) {
        let entered = self.automaton.enter(event);
        match entered.step {
            Step::Do(action) => self.perform(below, &entered, action, with),
            Step::Nothing => {}
            Step::Misuse => {
                self.fail(below, AbortReason::LocalSystemProblem, entered.to_string());
            }
            Step::ProtocolError => {
                self.abort(below, AbortReason::ProtocolError, entered.to_string());
            }
        }
    }

    /// Aborts the association, whatever the state.
    pub(super) fn fail(&mut self, below: &mut Below, reason: AbortReason, detail: String) {
        self.on(below, Event::Fail, With::Detail(reason, detail));
    }

    fn perform(&mut self, below: &mut Below, entered: &Entered<Table>, action: Action, with: With) {
        use Action as A;
        use With as W;
        use api::Request as R;
        match (action, with) {
            (A::SendRtorq, W::Request(request)) => self.open(below, entered, request),
            (A::SendRtoac, W::Request(R::Accept { bind })) => self.accept_open(below, bind),
            (A::SendRtoac, W::Request(R::AcceptRecover(kept))) => self.accept_recover(below, kept),
            (A::SendRtorj, W::Request(R::Refuse { reason, bind_error })) => {
                self.send_rtorj(below, reason, bind_error);
            }
            (A::OpenInd, W::Open(indication)) => self.up.push_back(indication),
            (A::RecoverInd, W::Recover(lost, indication)) => {
                self.recovering = Some(lost);
                self.up.push_back(indication);
            }
            (A::OpenCnf, W::Opened(bind, checkpoint_size, window)) => {
                self.opened(bind, checkpoint_size, window);
            }
            (A::RefuseCnf, W::Refused(refused)) => self.refused(refused),
            (A::StartActivity, W::Request(R::Transfer { payload, resume: None })) => {
                self.start_activity(below, &payload);
            }
            (A::ResumeActivity, W::Request(R::Transfer { payload, resume: Some(point) })) => {
                self.resume_activity(below, &payload, point);
            }
            (A::SendContent, W::Request(R::Content(bytes))) => self.content(below, bytes),
            (A::GiveUpContent, _) => self.content_failed(below),
            (A::MarkInterrupt, _) => self.mark_interrupt(),
            (A::MarkPause, W::Request(R::Pause(on))) => self.mark_pause(on),
            (A::ConfirmCheckpoint, W::Request(R::Stored { octets })) => {
                if let Some(serial) = self.stored(octets) {
                    below.pass(session::Request::MinorSyncResponse { serial });
                }
            }
            (A::CountCheckpoint, W::Request(R::Stored { octets })) => {
                self.stored(octets);
            }
            (A::ConfirmEnd, _) => self.secured(below),
            (A::ReportException, W::Request(R::TransferRefused(reason))) => {
                self.refuse_transfer(below, reason);
            }
            (A::SendRttp, W::Request(R::TurnPlease(priority))) => self.send_rttp(below, priority),
            (A::GiveControl, _) => below.pass(session::Request::GiveControl),
            (A::Release, _) => below.associate(acse::Request::Release),
            (A::SendRtab, W::Request(R::Abort(reason))) => self.abort_user(below, reason),
            (A::TransferInd, W::Activity(activity)) => self.activity_start(&activity),
            (A::ResumeInd, W::Resume(resume)) => self.activity_resume(below, &resume),
            (A::DataInd, W::ValueStart) => self.value_start(),
            (A::DataInd, W::ValueData(bytes)) => self.value_data(below, bytes),
            (A::DataInd, W::ValueEnd) => self.value_end(below),
            (A::CheckpointInd, W::Serial(serial)) => self.sync(below, serial),
            (A::CheckpointConfirmed, W::Serial(serial)) => self.sync_confirmed(below, serial),
            (A::TransferEndInd, _) => self.activity_end(below),
            (A::TransferCnf, _) => self.end_confirmed(),
            (A::Interrupted, _) => self.activity_interrupt(below),
            (A::Discarded, _) => self.activity_discard(below),
            (A::TransferInterruptedCnf, _) => self.interrupt_confirmed(),
            (A::TransferDiscardedCnf, _) => self.discard_confirmed(),
            (A::HandleException, W::Exception(reason)) => self.exception(below, reason),
            (A::EndActivity, _) => below.pass(session::Request::ActivityEnd),
            (A::InterruptActivity, _) => {
                below.pass(session::Request::ActivityInterrupt(ExceptionReason::NonSpecific));
            }
            (A::DiscardActivity, _) => {
                below.pass(session::Request::ActivityDiscard(ExceptionReason::LocalError));
            }
            (A::TurnPleaseInd, W::Priority(priority)) => {
                self.up.push_back(Indication::TurnPlease(priority));
            }
            (A::TurnGiveInd, _) => self.up.push_back(Indication::TurnGiven),
            (A::CloseInd, _) => {
                below.associate(acse::Request::ReleaseResponse);
                self.up.push_back(Indication::Released);
            }
            (A::CloseCnf, _) => self.up.push_back(Indication::Released),
            (A::AbortInd, W::Aborted(value, detail)) => self.aborted(value.as_ref(), detail),
            (A::AbortProvider, W::Detail(reason, detail)) => self.abort(below, reason, detail),
            (A::AbortProvider, W::Wrong(reason, what)) => {
                self.abort(below, reason, format!("{entered}: {what}"));
            }
            (A::AbortProvider, W::Nothing) => self.timed_out(below, entered),
            (
                A::SendRtorq
                | A::SendRtoac
                | A::SendRtorj
                | A::OpenInd
                | A::RecoverInd
                | A::OpenCnf
                | A::RefuseCnf
                | A::StartActivity
                | A::ResumeActivity
                | A::SendContent
                | A::MarkPause
                | A::ConfirmCheckpoint
                | A::CountCheckpoint
                | A::ReportException
                | A::SendRttp
                | A::SendRtab
                | A::TransferInd
                | A::ResumeInd
                | A::DataInd
                | A::CheckpointInd
                | A::CheckpointConfirmed
                | A::HandleException
                | A::TurnPleaseInd
                | A::AbortInd
                | A::AbortProvider,
                _,
            ) => self.fail(below, AbortReason::LocalSystemProblem, entered.fault()),
        }
    }

    /// The transfer timer expired.
    fn timed_out(&mut self, below: &mut Below, entered: &Entered<Table>) {
        let awaited = Self::awaited(entered.before);
        let detail = format!("{entered}: {awaited} within the transfer timeout");
        self.abort(below, AbortReason::TemporaryProblem, detail);
    }

    fn send_rttp(&mut self, below: &mut Below, priority: i64) {
        if self.dialogue == Dialogue::TwoWayAlternate {
            let octets = pdu::encode_integer(priority);
            let value = Value { context: self.context(below), octets };
            below.present(presentation::Request::PleaseTokens(value));
        }
    }

    /// Presentation context of our own APDUs.
    pub(super) fn context(&self, below: &Below) -> i64 {
        below.contexts().id_of(&self.syntax).unwrap_or_default()
    }

    /// Something from ACSE.
    pub(crate) fn association(
        &mut self,
        now: Instant,
        below: &mut Below,
        indication: acse::Indication,
    ) {
        use acse::Indication as I;
        let before = self.automaton.state();
        match indication {
            I::Associate { .. } => self.associate(below, indication),
            I::Accepted(value) => self.accepted(below, value),
            I::Rejected { transient, diagnostic, value, detail } => {
                let refused = Refused { transient, diagnostic, value, detail };
                self.on(below, Event::Rtorj, With::Refused(refused));
            }
            I::Release => self.on(below, Event::ReleaseInd, With::Nothing),
            I::Released => self.on(below, Event::ReleaseCnf, With::Nothing),
            I::Abort { value, detail } => {
                self.on(below, Event::AbortInd, With::Aborted(value, detail));
            }
        }
        self.rearm(now, before, false);
    }

    /// Something from the presentation.
    pub(crate) fn presentation(
        &mut self,
        now: Instant,
        below: &mut Below,
        indication: presentation::Indication,
    ) {
        use presentation::Indication as P;
        let before = self.automaton.state();
        let mut progress = false;
        match indication {
            P::ValueStart { context } => {
                progress = self.automaton.state() == State::Sta30;
                if context == self.context(below) {
                    self.on(below, Event::Rttr, With::ValueStart);
                } else {
                    let what = format!("P-DATA in context {context}, not RTSE's");
                    self.invalid(below, AbortReason::ProtocolError, what);
                }
            }
            P::ValueData(bytes) => {
                progress = self.automaton.state() == State::Sta30;
                self.on(below, Event::Rttr, With::ValueData(bytes));
            }
            P::ValueEnd => self.on(below, Event::Rttr, With::ValueEnd),
            P::PleaseTokens(values) => self.turn_asked(below, &values),
            P::Pass(indication) => {
                progress = matches!(
                    indication,
                    session::Indication::MinorSyncConfirm { .. }
                        | session::Indication::MinorSync { .. }
                );
                self.passed(below, indication);
            }
            P::Connect { .. }
            | P::Accepted { .. }
            | P::Refused { .. }
            | P::Release(_)
            | P::Released(_)
            | P::UserAbort(_)
            | P::ProviderAbort { .. } => {
                let detail = "rtse: internal error: a primitive of ACSE".to_owned();
                self.fail(below, AbortReason::LocalSystemProblem, detail);
            }
        }
        self.pump(below);
        self.rearm(now, before, progress);
    }

    /// Aborts for a malformed APDU.
    pub(super) fn invalid(&mut self, below: &mut Below, reason: AbortReason, what: String) {
        self.on(below, Event::Invalid, With::Wrong(reason, what));
    }

    fn turn_asked(&mut self, below: &mut Below, values: &[Value]) {
        let value = values.iter().find(|v| v.context == self.context(below));
        let priority = match value.map(|v| pdu::decode_rttp(&v.octets)) {
            // Without an RTTP the priority is not known: the lowest that is usual.
            None => 0,
            Some(Ok(priority)) => priority,
            Some(Err(e)) => {
                let octets = value.map(|v| shown::octets(&v.octets)).unwrap_or_default();
                let what = format!("{e}: {octets}");
                return self.invalid(below, AbortReason::InvalidParameter, what);
            }
        };
        self.on(below, Event::Rttp, With::Priority(priority));
    }

    fn passed(&mut self, below: &mut Below, indication: session::Indication) {
        use session::Indication as S;
        let (event, with) = match indication {
            S::ActivityStart { activity } => (Event::ActivityStart, With::Activity(activity)),
            S::ActivityResume(resume) => (Event::ActivityResume, With::Resume(resume)),
            S::MinorSync { serial } => (Event::SyncInd, With::Serial(serial)),
            S::ActivityEnd { .. } => (Event::EndInd, With::Nothing),
            S::ActivityInterrupt(_) => (Event::InterruptInd, With::Nothing),
            S::ActivityDiscard(_) => (Event::DiscardInd, With::Nothing),
            S::MinorSyncConfirm { serial } => (Event::SyncCnf, With::Serial(serial)),
            S::ActivityEndConfirm => (Event::EndCnf, With::Nothing),
            S::ActivityInterruptConfirm => (Event::InterruptCnf, With::Nothing),
            S::ActivityDiscardConfirm => (Event::DiscardCnf, With::Nothing),
            S::ExceptionReport(reason) => (Event::Exception, With::Exception(Some(reason))),
            S::ProviderException => (Event::Exception, With::Exception(None)),
            S::ControlGiven | S::TokensGiven { .. } if self.dialogue == Dialogue::Monologue => {
                let what = "tokens given in a monologue, which has no turn (X.218 8.5)".to_owned();
                (Event::Invalid, With::Wrong(AbortReason::ProtocolError, what))
            }
            S::TokensGiven { all: false } => {
                let what = "some of the tokens given, where the turn is all of them (X.228 7.5)";
                (Event::Invalid, With::Wrong(AbortReason::ProtocolError, what.to_owned()))
            }
            S::ControlGiven | S::TokensGiven { all: true } => (Event::ControlGive, With::Nothing),
            other => {
                let what = format!("unexpected {other:?}");
                (Event::Invalid, With::Wrong(AbortReason::ProtocolError, what))
            }
        };
        self.on(below, event, with);
    }

    fn abort_user(&mut self, below: &mut Below, reason: AbortReason) {
        self.send_rtab(below, reason);
        let detail = format!("rtse: aborted by us, {reason:?} (X.228 7.9.3)");
        self.fail_transfer(&detail, true);
        self.up.push_back(Indication::Aborted { reason: None, detail });
    }

    /// RT-P-ABORT: our own doing.
    fn abort(&mut self, below: &mut Below, reason: AbortReason, detail: String) {
        self.send_rtab(below, reason);
        self.fail_transfer(&detail, true);
        self.up.push_back(Indication::Aborted { reason: None, detail });
    }

    pub(super) fn send_rtab(&mut self, below: &mut Below, reason: AbortReason) {
        let value = Value { context: self.context(below), octets: pdu::encode_rtab(reason) };
        below.associate(acse::Request::Abort(Some(value)));
    }

    fn aborted(&mut self, value: Option<&Value>, mut detail: String) {
        let reason = match value.map(|v| (v, Rtab::decode(&v.octets))) {
            None => None,
            Some((_, Ok(rtab))) => {
                detail = format!("rtse: the peer sent RTAB, {rtab} (X.228 7.9); {detail}");
                rtab.known_reason()
            }
            Some((value, Err(e))) => {
                detail = format!("{detail}, {e}: {}", shown::value(&value.octets));
                None
            }
        };
        let resumed = self.outflow.as_ref().is_some_and(|o| o.resumed);
        if reason == Some(AbortReason::TransferCompleted) && resumed {
            self.outflow = None;
            self.up.push_back(Indication::TransferConfirmed);
        }
        self.fail_transfer(&detail, reason != Some(AbortReason::UnrecognizedActivity));
        self.up.push_back(Indication::Aborted { reason, detail });
    }

    /// What the association left of a transfer that was being received, so that it can go on.
    pub(crate) fn take_interrupted(&mut self) -> Option<InterruptedReceive> {
        match self.receiving.take() {
            // Never an older one beside it: the user has the octets of this one.
            Some(current) => Some(current.interrupted()).filter(|r| r.serial() > 0),
            // No transfer began since one was completed.
            None => self.completed.take().or_else(|| self.interrupted.pop_back()),
        }
    }

    fn event_of(&self, request: &api::Request) -> Option<Event> {
        use api::Request as R;
        Some(match request {
            R::Open { .. } | R::Recover { .. } => Event::OpenReq,
            R::Accept { .. } => Event::OpenRspAccept,
            R::AcceptRecover(_) => Event::RecoverRspAccept,
            R::Refuse { .. } => Event::OpenRspRefuse,
            R::Transfer { resume: None, .. } => Event::TransferReq,
            R::Transfer { resume: Some(_), .. } => Event::ResumeReq,
            R::Content(_) => Event::Content,
            R::ContentFailed => Event::ContentFailed,
            R::Interrupt => Event::InterruptReq,
            R::Pause(_) => Event::PauseReq,
            R::Stored { .. } => Event::Stored,
            R::TransferSecured => Event::TransferRsp,
            R::TransferRefused(_) => Event::TransferRefused,
            R::TurnPlease(_) => Event::TurnPleaseReq,
            R::TurnGive if self.dialogue == Dialogue::Monologue => Event::TurnGiveReqMonologue,
            R::TurnGive => Event::TurnGiveReq,
            R::Release => Event::CloseReq,
            R::Abort(_) => Event::UAbortReq,
            R::Invoke { .. } | R::Result { .. } | R::Error { .. } | R::Reject { .. } => {
                return None;
            }
        })
    }
}
