//! The end of an association: release and abort (X.228 7.2, 7.9).

use super::machine::{Rtse, With};
use super::pdu::{self, Rtab};
use super::table::{State, Table};
use crate::acse;
use crate::api::{AbortReason, Indication, Request};
use crate::presentation::service::Value;
use crate::shown;
use crate::stack::Below;
use crate::table::{Entered, Lacking, Performed};

impl Rtse {
    /// RT-CLOSE.indication, answered at once.
    pub(super) fn close_indication(&mut self, below: &mut Below) {
        below.associate(acse::Request::ReleaseResponse);
        self.up.push_back(Indication::Released);
    }

    /// RT-U-ABORT.request.
    pub(super) fn abort_user(&mut self, below: &mut Below, with: &With) -> Performed {
        let With::Request(Request::Abort(reason)) = *with else { return Err(Lacking) };
        self.send_rtab(below, reason);
        let detail = format!("rtse: aborted by us, {reason:?} (X.228 7.9.3)");
        self.fail_transfer(&detail, true);
        self.up.push_back(Indication::Aborted { reason: None, detail });
        Ok(())
    }

    /// RT-P-ABORT, for an invalid APDU, a failure of ours or a timer.
    pub(super) fn abort_provider(
        &mut self,
        below: &mut Below,
        entered: &Entered<Table>,
        with: With,
    ) -> Performed {
        match with {
            With::Detail(reason, detail) => self.abort(below, reason, detail),
            With::Wrong(_, what) if entered.before == State::Sta00 && below.is_x410() => {
                self.refuse_invalid(below, format!("{entered}: {what}"));
            }
            With::Wrong(reason, what) => self.abort(below, reason, format!("{entered}: {what}")),
            With::Nothing => self.timed_out(below, entered),
            _ => return Err(Lacking),
        }
        Ok(())
    }

    /// The transfer timer expired.
    fn timed_out(&mut self, below: &mut Below, entered: &Entered<Table>) {
        let awaited = awaited(entered.before);
        let detail = format!("{entered}: {awaited} within the transfer timeout");
        self.abort(below, AbortReason::TemporaryProblem, detail);
    }

    /// RT-P-ABORT: our own doing.
    pub(super) fn abort(&mut self, below: &mut Below, reason: AbortReason, detail: String) {
        self.send_rtab(below, reason);
        self.fail_transfer(&detail, true);
        self.up.push_back(Indication::Aborted { reason: None, detail });
    }

    fn send_rtab(&mut self, below: &mut Below, reason: AbortReason) {
        let value = Value { context: self.context(below), octets: pdu::encode_rtab(reason) };
        below.associate(acse::Request::Abort(Some(value)));
    }

    /// An abort by the peer, its user or its provider.
    pub(super) fn aborted(&mut self, with: With) -> Performed {
        let With::Aborted(value, mut detail) = with else { return Err(Lacking) };
        let reason = match value.as_ref().map(|v| (v, Rtab::decode(&v.octets))) {
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
        Ok(())
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
