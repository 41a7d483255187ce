//! What comes from the layers below: ACSE and presentation.

use super::machine::{Rtse, With};
use super::open::Refused;
use super::table::{Event, State};
use crate::acse;
use crate::api::{AbortReason, Dialogue};
use crate::presentation::service as presentation;
use crate::session::service as session;
use crate::stack::Below;
use base::time::Instant;

impl Rtse {
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
}
