//! The reliable transfer protocol machine (X.228 clause 7), its dispatch and its timer.

#[cfg(test)]
mod cells;

use super::interrupted::InterruptedReceive;
use super::open::Refused;
use super::outflow::Outflow;
use super::pdu;
use super::receiver::Receiving;
use super::table::{Action, Event, State, Table};
use crate::acse;
use crate::api::{self, AbortReason, Config, Dialogue, Indication, Mode, RtseParameters};
use crate::presentation::service::Value;
use crate::session::service::{self as session, ConnectionReference, ExceptionReason};
use crate::stack::Below;
use crate::table::{Automaton, Entered, Lacking, Performed, Step};
use base::ber::Oid;
use base::time::Instant;
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

/// The parameters of an event.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
pub(crate) struct Rtse {
    pub(super) automaton: Automaton<Table>,
    pub(super) parameters: RtseParameters,
    /// Abstract syntax of our own APDUs.
    pub(super) syntax: Oid,
    /// Abstract syntax of the user's APDUs.
    pub(super) user_syntax: Oid,
    /// The mode of the association.
    pub(super) mode: Mode,
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
            mode: config.mode,
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
    pub(super) fn rearm(&mut self, now: Instant, before: State, progress: bool) {
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
            Step::Do(action) => {
                if let Err(Lacking) = self.perform(below, &entered, action, with) {
                    self.fail(below, AbortReason::LocalSystemProblem, entered.fault());
                }
            }
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

    fn perform(
        &mut self,
        below: &mut Below,
        entered: &Entered<Table>,
        action: Action,
        with: With,
    ) -> Performed {
        use Action as A;
        use session::Request as S;
        match action {
            // Open and recovery.
            A::SendRtorq => self.send_rtorq(below, with)?,
            A::SendRtoac => self.send_rtoac(below, with)?,
            A::SendRtorj => self.send_rtorj(below, with)?,
            A::OpenInd => self.open_indication(with)?,
            A::RecoverInd => self.recover_indication(with)?,
            A::OpenCnf => self.opened(with)?,
            A::RefuseCnf => self.refused(with)?,
            // Transfer, with the turn.
            A::StartActivity => self.start_activity(below, with)?,
            A::ResumeActivity => self.resume_activity(below, with)?,
            A::SendContent => self.content(below, with)?,
            A::GiveUpContent => self.content_failed(below),
            A::MarkInterrupt => self.mark_interrupt(),
            A::MarkPause => self.mark_pause(&with)?,
            A::CheckpointConfirmed => self.sync_confirmed(below, &with)?,
            A::EndActivity => {
                if let Some(outflow) = &mut self.outflow {
                    outflow.ended = true;
                }
                below.pass(S::ActivityEnd);
            }
            A::TransferCnf => self.end_confirmed(),
            A::HandleException => self.exception(below, &with)?,
            A::InterruptActivity => {
                below.pass(S::ActivityInterrupt(ExceptionReason::NonSpecific));
            }
            A::DiscardActivity => below.pass(S::ActivityDiscard(ExceptionReason::LocalError)),
            A::TransferInterruptedCnf => self.interrupt_confirmed(),
            A::TransferDiscardedCnf => self.discard_confirmed(),
            // Transfer, without the turn.
            A::TransferInd => self.activity_start(with)?,
            A::ResumeInd => self.activity_resume(below, with)?,
            A::DataInd => self.data(below, with)?,
            A::CheckpointInd => self.sync(below, &with)?,
            A::ConfirmCheckpoint => self.confirm_checkpoint(below, &with)?,
            A::CountCheckpoint => self.count_checkpoint(&with)?,
            A::TransferEndInd => self.activity_end(below),
            A::ConfirmEnd => self.secured(below),
            A::ReportException => self.refuse_transfer(below, &with)?,
            A::Interrupted => self.activity_interrupt(below),
            A::Discarded => self.activity_discard(below),
            // The turn.
            A::SendRttp => self.send_rttp(below, &with)?,
            A::TurnPleaseInd => self.turn_please_indication(&with)?,
            A::GiveControl => below.pass(S::GiveControl),
            A::TurnGiveInd => self.up.push_back(Indication::TurnGiven),
            // Release and abort.
            A::Release => below.associate(acse::Request::Release),
            A::CloseInd => self.close_indication(below),
            A::CloseCnf => self.up.push_back(Indication::Released),
            A::SendRtab => self.abort_user(below, &with)?,
            A::AbortInd => self.aborted(with)?,
            A::AbortProvider => self.abort_provider(below, entered, with)?,
        }
        Ok(())
    }

    /// Presentation context of our own APDUs.
    pub(super) fn context(&self, below: &Below) -> i64 {
        below.contexts().id_of(&self.syntax).unwrap_or_default()
    }

    /// Aborts for a malformed APDU.
    pub(super) fn invalid(&mut self, below: &mut Below, reason: AbortReason, what: String) {
        self.on(below, Event::Invalid, With::Wrong(reason, what));
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
            // Close is for what is below all layers.
            R::Invoke { .. } | R::Result { .. } | R::Error { .. } | R::Reject { .. } | R::Close => {
                return None;
            }
        })
    }
}
