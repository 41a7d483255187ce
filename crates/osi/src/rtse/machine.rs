//! The reliable transfer protocol machine (X.228 clause 7), its dispatch and its timer.

use super::interrupted::InterruptedReceive;
use super::outflow::Outflow;
use super::pdu::{self, Rtab};
use super::receiver::Receiving;
use super::table::{Action, Event, State, cell};
use crate::acse;
use crate::api::{self, AbortReason, Config, Dialogue, Indication, RtseParameters};
use crate::presentation::service::{self as presentation, Value};
use crate::session::service::{self as session, ConnectionReference};
use crate::shown;
use crate::stack::Below;
use base::ber::Oid;
use base::time::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// The machine. It calls ACSE and presentation below; what it tells the user is taken from `up`.
#[derive(Debug)]
pub(crate) struct Rtse {
    pub(super) state: State,
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
    /// The last transfer whose end was confirmed: the sender may not have heard of it.
    pub(super) completed: Option<InterruptedReceive>,
    timer: Option<Instant>,
    pub(crate) up: VecDeque<Indication>,
}

impl Rtse {
    pub(crate) fn new(config: &Config, parameters: &RtseParameters) -> Rtse {
        Rtse {
            state: State::Sta00,
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
        let ours = self.state == State::Sta30 && !self.awaits_peer();
        format!("rtse {:?}{}", self.state, if ours { " ours" } else { "" })
    }

    pub(super) fn step(&mut self, event: Event) -> (Action, String) {
        let before = self.state;
        let found = cell(before, event);
        self.state = found.next;
        (found.action, format!("rtse: {event:?} in {before:?} ({})", found.clause))
    }

    /// Whether nothing is under way: associated, and no transfer or release begun.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Sta10 | State::Sta11)
    }

    /// When to call [`Rtse::tick`].
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.timer
    }

    /// The deadline passed.
    pub(crate) fn tick(&mut self, now: Instant, below: &mut Below) {
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            let before = self.state;
            if let (Action::AbortProvider, detail) = self.step(Event::Timeout) {
                let detail =
                    format!("{detail}: {} within the transfer timeout", self.awaited(before));
                self.abort_provider(below, AbortReason::TemporaryProblem, detail);
            }
        }
    }

    /// What did not happen when the transfer timer expired.
    fn awaited(&self, state: State) -> &'static str {
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
    /// user is not asked on. A receiver whose user owes confirms is itself what is waited for.
    fn awaits_peer(&self) -> bool {
        match self.state {
            State::Sta30 => self.receiving.as_ref().is_none_or(Receiving::is_confirmed),
            State::Sta20 => !self.outflow.as_ref().is_some_and(Outflow::holds),
            State::Sta21 | State::Sta22 | State::Sta23 | State::Sta24 | State::Sta32 => true,
            _ => false,
        }
    }

    /// Whether a transfer of ours waits for the peer: to take octets, to confirm.
    pub(crate) fn awaits_answer(&self) -> bool {
        let sending = matches!(
            self.state,
            State::Sta20 | State::Sta21 | State::Sta22 | State::Sta23 | State::Sta24
        );
        sending && self.awaits_peer()
    }

    /// The peer's transport took octets of ours. A slow line may need longer than the timer for what
    /// the window lets us send, let alone for a checkpoint.
    pub(crate) fn peer_took(&mut self, now: Instant) {
        if self.awaits_answer() {
            self.rearm(now, self.state, true);
        }
    }

    /// Runs the transfer timer while the peer is awaited; what moves the transfer starts it anew.
    fn rearm(&mut self, now: Instant, before: State, progress: bool) {
        let waiting = self.awaits_peer();
        if !waiting {
            self.timer = None;
        } else if self.timer.is_none() || progress || before != self.state {
            let receiving = self.receiving.as_ref().filter(|_| self.state == State::Sta30);
            let pause = match receiving {
                Some(receiving) if receiving.is_at_checkpoint() => self.parameters.longest_pause,
                _ => Duration::ZERO,
            };
            self.timer = Some(now + self.parameters.transfer_timeout.max(pause));
        }
    }

    /// A request of the user.
    pub(crate) fn request(&mut self, now: Instant, below: &mut Below, request: api::Request) {
        let before = self.state;
        let Some(event) = event_of(&request) else {
            let detail = "rtse: a request of ROSE (X.218 clause 8)".to_owned();
            return self.abort_provider(below, AbortReason::LocalSystemProblem, detail);
        };
        match self.step(event) {
            (Action::Ignore, _) => {}
            (Action::Misuse, detail) => {
                self.abort_provider(below, AbortReason::LocalSystemProblem, detail);
            }
            (action, _) => self.perform(below, action, request),
        }
        self.pump(below);
        self.rearm(now, before, matches!(event, Event::Content | Event::Stored));
    }

    fn perform(&mut self, below: &mut Below, action: Action, request: api::Request) {
        use api::Request as R;
        match (action, request) {
            (Action::SendRtorq, R::Open { bind }) => {
                self.send_rtorq(below, pdu::ConnectionData::Open(bind));
            }
            (Action::SendRtorq, R::Recover { reference, received }) => {
                self.interrupted.extend(received);
                self.recovering = Some(reference.clone());
                self.send_rtorq(below, pdu::ConnectionData::Recover(reference));
            }
            (Action::SendRtoac, R::Accept { bind }) => {
                self.send_rtoac(below, pdu::ConnectionData::Open(bind));
            }
            (Action::SendRtoac, R::AcceptRecover(state)) => self.accept_recover(below, state),
            (Action::SendRtorj, R::Refuse { reason, bind_error }) => {
                self.send_rtorj(below, reason, bind_error);
            }
            (Action::StartActivity | Action::ResumeActivity, R::Transfer { payload, resume }) => {
                self.transfer(below, &payload, resume);
            }
            (Action::SendContent, R::Content(bytes)) => self.content(below, bytes),
            (Action::GiveUpContent, _) => self.content_failed(below),
            (Action::MarkInterrupt, _) => self.mark_interrupt(),
            (Action::MarkPause, R::Pause(on)) => self.mark_pause(on),
            (Action::ConfirmCheckpoint, R::Stored { octets }) => self.stored(below, octets),
            (Action::ConfirmEnd, _) => self.secured(below),
            (Action::ReportException, R::TransferRefused(reason)) => {
                self.refuse_transfer(below, reason);
            }
            (Action::SendRttp, R::TurnPlease(priority)) => {
                let octets = pdu::encode_integer(priority);
                let value = Value { context: self.context(below), octets };
                if self.dialogue == Dialogue::TwoWayAlternate {
                    below.present(presentation::Request::PleaseTokens(value));
                }
            }
            (Action::GiveControl, _) => {
                if self.dialogue == Dialogue::TwoWayAlternate {
                    below.pass(session::Request::GiveControl);
                } else {
                    // There is no turn to give (X.218 8.5).
                    self.state = State::Sta10;
                }
            }
            (Action::Release, _) => below.associate(acse::Request::Release),
            (Action::SendRtab, R::Abort(reason)) => self.abort_user(below, reason),
            // No cell asks for anything else on a request.
            _ => {}
        }
    }

    /// Presentation context of our own APDUs.
    pub(super) fn context(&self, below: &Below) -> i64 {
        below.contexts().of(&self.syntax).unwrap_or_default()
    }

    /// Something from ACSE.
    pub(crate) fn association(
        &mut self,
        now: Instant,
        below: &mut Below,
        indication: acse::Indication,
    ) {
        use acse::Indication as I;
        let before = self.state;
        match indication {
            I::Associate { .. } => self.associate(below, indication),
            I::Accepted(value) => self.accepted(below, value),
            I::Rejected { transient, diagnostic, value, detail } => {
                self.rejected(transient, diagnostic, value, detail);
            }
            I::Release => {
                if self.enter(below, Event::ReleaseInd) {
                    below.associate(acse::Request::ReleaseResponse);
                    self.up.push_back(Indication::Released);
                }
            }
            I::Released => {
                if self.enter(below, Event::ReleaseCnf) {
                    self.up.push_back(Indication::Released);
                }
            }
            I::Abort { value, detail } => {
                self.step(Event::AbortInd);
                self.aborted(value.as_ref(), detail);
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
        let before = self.state;
        let mut progress = false;
        match indication {
            P::ValueStart { context } => {
                progress = self.state == State::Sta30;
                self.value_start(below, context);
            }
            P::ValueData(bytes) => {
                progress = self.state == State::Sta30;
                self.value_data(below, bytes);
            }
            P::ValueEnd => self.value_end(below),
            P::PleaseTokens(values) => self.turn_asked(below, &values),
            P::Pass(indication) => {
                progress = matches!(
                    indication,
                    session::Indication::MinorSyncConfirm { .. }
                        | session::Indication::MinorSync { .. }
                );
                self.passed(below, indication);
            }
            _ => {}
        }
        self.pump(below);
        self.rearm(now, before, progress);
    }

    /// Steps on an event from below; false where it led to an abort or nothing.
    pub(super) fn enter(&mut self, below: &mut Below, event: Event) -> bool {
        match self.step(event) {
            (Action::Ignore | Action::Misuse, _) => false,
            (Action::AbortProvider, detail) => {
                self.abort_provider(below, AbortReason::ProtocolError, detail);
                false
            }
            _ => true,
        }
    }

    /// Aborts for a malformed APDU.
    pub(super) fn invalid(&mut self, below: &mut Below, reason: AbortReason, what: &str) {
        if let (Action::AbortProvider, detail) = self.step(Event::Invalid) {
            self.abort_provider(below, reason, format!("{detail}: {what}"));
        }
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
                return self.invalid(below, AbortReason::InvalidParameter, &what);
            }
        };
        if self.enter(below, Event::Rttp) {
            self.up.push_back(Indication::TurnPlease(priority));
        }
    }

    fn passed(&mut self, below: &mut Below, indication: session::Indication) {
        use session::Indication as S;
        match indication {
            S::ActivityStart { activity } => self.activity_start(below, &activity),
            S::ActivityResume(resume) => self.activity_resume(below, &resume),
            S::MinorSync { serial } => self.sync(below, serial),
            S::ActivityEnd { .. } => self.activity_end(below),
            S::ActivityInterrupt(_) => self.activity_interrupt(below),
            S::ActivityDiscard(_) => self.activity_discard(below),
            S::MinorSyncConfirm { serial } => self.sync_confirmed(below, serial),
            S::ActivityEndConfirm => self.end_confirmed(below),
            S::ActivityInterruptConfirm => self.interrupt_confirmed(below),
            S::ActivityDiscardConfirm => self.discard_confirmed(below),
            S::ExceptionReport(reason) => self.exception(below, Some(reason)),
            S::ProviderException => self.exception(below, None),
            S::ControlGiven | S::TokensGiven { .. } if self.dialogue == Dialogue::Monologue => {
                let what = "tokens given in a monologue, which has no turn (X.218 8.5)";
                self.invalid(below, AbortReason::ProtocolError, what);
            }
            S::TokensGiven { all: false } => {
                let what = "some of the tokens given, where the turn is all of them (X.228 7.5)";
                self.invalid(below, AbortReason::ProtocolError, what);
            }
            S::ControlGiven | S::TokensGiven { all: true } => {
                if self.enter(below, Event::ControlGive) {
                    self.up.push_back(Indication::TurnGiven);
                }
            }
            other => {
                let what = format!("unexpected {other:?}");
                self.invalid(below, AbortReason::ProtocolError, &what);
            }
        }
    }

    fn abort_user(&mut self, below: &mut Below, reason: AbortReason) {
        self.send_rtab(below, reason);
        let detail = format!("rtse: aborted by us, {reason:?} (X.228 7.9.3)");
        self.fail_transfer(&detail, true);
        self.up.push_back(Indication::Aborted { reason: None, detail });
    }

    /// RT-P-ABORT: our own doing.
    pub(super) fn abort_provider(
        &mut self,
        below: &mut Below,
        reason: AbortReason,
        detail: String,
    ) {
        self.state = State::Sta00;
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
}

fn event_of(request: &api::Request) -> Option<Event> {
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
        R::TurnGive => Event::TurnGiveReq,
        R::Release => Event::CloseReq,
        R::Abort(_) => Event::UAbortReq,
        R::Invoke { .. } | R::Result { .. } | R::Error { .. } | R::Reject { .. } => return None,
    })
}
