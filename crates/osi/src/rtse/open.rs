//! Association establishment and recovery (X.228 7.1, 7.8.3).

use super::machine::{Rtse, With};
use super::pdu::{ConnectionData, Rtoac, Rtorj, Rtorq, normalized};
use super::table::Event;
use crate::acse::{self, diagnostic};
use crate::api::{AbortReason, Indication, RefuseReason, Request, Selectors};
use crate::presentation::service::Value;
use crate::session::service::requirements;
use crate::shown;
use crate::stack::Below;
use crate::table::{Lacking, Performed};
use bytes::Bytes;

/// An A-ASSOCIATE confirm, rejected.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) transient: bool,
    pub(super) diagnostic: Option<i64>,
    pub(super) value: Option<Value>,
    pub(super) detail: String,
}

/// Octets in one unit of checkpointSize.
const UNIT: u64 = 1024;

/// The sizes a responder answers with (7.1.1.3): 0 proposed lets it choose, 0 of its own means no
/// checkpoints; neither size grows.
fn negotiate(proposed: (u32, u32), ours: (u32, u32)) -> (u32, u32) {
    let checkpoint = if proposed.0 == 0 { ours.0 } else { ours.0.min(proposed.0) };
    (checkpoint, proposed.1.min(ours.1).max(1))
}

/// refuseReason (X.228 9).
fn refuse_reason(reason: RefuseReason) -> i64 {
    match reason {
        RefuseReason::Busy => 0,
        RefuseReason::CannotRecover => 1,
        RefuseReason::DialogueMode => 3,
        _ => 2,
    }
}

impl Rtse {
    fn agree(&mut self, checkpoint_size: u32, window: u32) {
        self.checkpoint = (checkpoint_size > 0).then(|| u64::from(checkpoint_size) * UNIT);
        self.window = usize::try_from(window.max(1)).unwrap_or(1);
    }

    /// RT-OPEN.request, or the recovery of an association.
    pub(super) fn send_rtorq(&mut self, below: &mut Below, with: With) -> Performed {
        match with {
            With::Request(Request::Open { bind }) => {
                self.request_open(below, ConnectionData::Open(bind));
            }
            With::Request(Request::Recover { reference, received }) => {
                self.interrupted.extend(received);
                self.recovering = Some(reference.clone());
                self.request_open(below, ConnectionData::Recover(reference));
            }
            _ => return Err(Lacking),
        }
        Ok(())
    }

    /// RT-OPEN.response, accepting, or the answer to a recovery.
    pub(super) fn send_rtoac(&mut self, below: &mut Below, with: With) -> Performed {
        match with {
            With::Request(Request::Accept { bind }) => {
                self.answer_open(below, ConnectionData::Open(bind));
            }
            With::Request(Request::AcceptRecover(kept)) => {
                self.interrupted.extend(kept);
                let reference = self.recovering.clone().unwrap_or_default();
                self.answer_open(below, ConnectionData::Recover(reference));
            }
            _ => return Err(Lacking),
        }
        Ok(())
    }

    /// RT-OPEN.indication.
    pub(super) fn open_indication(&mut self, with: With) -> Performed {
        let With::Open(indication) = with else { return Err(Lacking) };
        self.up.push_back(indication);
        Ok(())
    }

    /// The indication of a recovery that the peer asks for.
    pub(super) fn recover_indication(&mut self, with: With) -> Performed {
        let With::Recover(lost, indication) = with else { return Err(Lacking) };
        self.recovering = Some(lost);
        self.up.push_back(indication);
        Ok(())
    }

    /// RT-OPEN.confirm, positive.
    pub(super) fn opened(&mut self, with: With) -> Performed {
        let With::Opened(bind, checkpoint_size, window) = with else { return Err(Lacking) };
        self.agree(checkpoint_size, window);
        self.up.push_back(Indication::Opened { bind, reference: self.reference.clone() });
        Ok(())
    }

    fn request_open(&mut self, below: &mut Below, data: ConnectionData) {
        let rtorq = Rtorq {
            checkpoint_size: self.parameters.checkpoint_size,
            window: self.parameters.window.max(1),
            dialogue: self.parameters.dialogue,
            data,
            mode: self.mode,
        };
        let value = Value { context: self.context(below), octets: rtorq.encode() };
        below.associate(acse::Request::Associate {
            reference: self.proposed_reference.clone(),
            requirements: requirements::RTSE,
            value,
        });
    }

    fn answer_open(&mut self, below: &mut Below, data: ConnectionData) {
        let (checkpoint_size, window) = self.answer;
        self.agree(checkpoint_size, window);
        let rtoac = Rtoac { checkpoint_size, window, data, mode: self.mode };
        let value = Value { context: self.context(below), octets: rtoac.encode() };
        below.associate(acse::Request::Accept { requirements: requirements::RTSE, value });
    }

    /// RT-OPEN.response or the answer to a recovery, refusing.
    pub(super) fn send_rtorj(&mut self, below: &mut Below, with: With) -> Performed {
        let With::Request(Request::Refuse { reason, bind_error }) = with else {
            return Err(Lacking);
        };
        // refuseReason belongs to X.410 mode, which has no bind errors; in normal mode a reason without a bind
        // error is left to ACSE, where busy is a transient rejection.
        let rtorj = match below.is_x410() {
            true => Rtorj { reason: Some(refuse_reason(reason)), ..Rtorj::default() },
            false => Rtorj { bind_error, ..Rtorj::default() },
        };
        let value = Value { context: self.context(below), octets: rtorj.encode() };
        let diagnostic = match reason {
            RefuseReason::ApplicationContext => diagnostic::APPLICATION_CONTEXT,
            _ => diagnostic::NO_REASON,
        };
        below.associate(acse::Request::Reject {
            transient: reason == RefuseReason::Busy && rtorj.bind_error.is_none(),
            diagnostic,
            value: Some(value),
        });
        let detail = format!("rtse: refused by us, {reason:?} (X.228 7.1.1.3)");
        self.up.push_back(Indication::Aborted { reason: None, detail });
        Ok(())
    }

    /// An RTORQ that is none, or malformed: X.410 mode has a refuseReason for it, normal mode has not.
    pub(super) fn refuse_invalid(&mut self, below: &mut Below, detail: String) {
        let reason = Some(refuse_reason(RefuseReason::ValidationFailure));
        let octets = Rtorj { reason, ..Rtorj::default() }.encode();
        below.associate(acse::Request::Reject {
            transient: false,
            diagnostic: diagnostic::NO_REASON,
            value: Some(Value { context: self.context(below), octets }),
        });
        self.up.push_back(Indication::Aborted { reason: None, detail });
    }

    /// A-ASSOCIATE.indication.
    pub(super) fn associate(&mut self, below: &mut Below, indication: acse::Indication) {
        let acse::Indication::Associate {
            application_context,
            session_selector,
            presentation_selector,
            reference,
            syntaxes,
            value,
        } = indication
        else {
            return;
        };
        let value = value.filter(|v| v.context == self.context(below));
        let is_x410 = below.is_x410();
        let rtorq = match value.map(|v| Rtorq::decode(&v.octets, is_x410)) {
            Some(Ok(rtorq)) => rtorq,
            Some(Err(e)) => {
                return self.invalid(below, AbortReason::InvalidParameter, e.to_string());
            }
            None => {
                let what = "no RTORQ in the AARQ".to_owned();
                return self.invalid(below, AbortReason::ProtocolError, what);
            }
        };
        self.reference = normalized(&reference);
        self.dialogue = rtorq.dialogue;
        self.mode = rtorq.mode;
        let ours = (self.parameters.checkpoint_size, self.parameters.window);
        self.answer = negotiate((rtorq.checkpoint_size, rtorq.window), ours);
        match rtorq.data {
            ConnectionData::Open(bind) => {
                let indication = Indication::Open {
                    bind,
                    application_context,
                    calling: Selectors {
                        transport: None,
                        session: session_selector,
                        presentation: presentation_selector,
                    },
                    reference: self.reference.clone(),
                    syntaxes,
                    dialogue: rtorq.dialogue,
                    mode: rtorq.mode,
                };
                self.on(below, Event::RtorqOpen, With::Open(indication));
            }
            ConnectionData::Recover(lost) => {
                let indication = Indication::RecoverAsked {
                    reference: lost.clone(),
                    association: self.reference.clone(),
                    dialogue: rtorq.dialogue,
                };
                self.on(below, Event::RtorqRecover, With::Recover(lost, indication));
            }
        }
    }

    /// A-ASSOCIATE.confirm, accepted.
    pub(super) fn accepted(&mut self, below: &mut Below, value: Option<Value>) {
        let value = value.filter(|v| v.context == self.context(below));
        let is_x410 = below.is_x410();
        let rtoac = match value.map(|v| Rtoac::decode(&v.octets, is_x410)) {
            Some(Ok(rtoac)) => rtoac,
            Some(Err(e)) => {
                return self.invalid(below, AbortReason::InvalidParameter, e.to_string());
            }
            None => {
                let what = "no RTOAC in the AARE".to_owned();
                return self.invalid(below, AbortReason::ProtocolError, what);
            }
        };
        let bind = match (rtoac.data, &self.recovering) {
            (ConnectionData::Open(bind), None) => bind,
            (ConnectionData::Recover(_), Some(_)) => Bytes::new(),
            _ => {
                let what = "connectionDataAC is not the choice connectionDataRQ had".to_owned();
                return self.invalid(below, AbortReason::ProtocolError, what);
            }
        };
        let (proposed, answered) = (self.parameters.checkpoint_size, rtoac.checkpoint_size);
        if proposed != 0 && answered > proposed {
            let what = format!("checkpointSize {answered} of the RTOAC, {proposed} was proposed");
            return self.invalid(below, AbortReason::InvalidParameter, what);
        }
        // Without checkpoints the window means nothing.
        let (proposed, window) = (self.parameters.window.max(1), rtoac.window);
        if answered > 0 && !(1..=proposed).contains(&window) {
            let what = format!("windowSize {window} of the RTOAC, {proposed} was proposed");
            return self.invalid(below, AbortReason::InvalidParameter, what);
        }
        let with = With::Opened(bind, rtoac.checkpoint_size, window.min(proposed));
        self.on(below, Event::Rtoac, with);
    }

    /// RT-OPEN.confirm, negative: A-ASSOCIATE.confirm, rejected.
    pub(super) fn refused(&mut self, with: With) -> Performed {
        let With::Refused(refused) = with else { return Err(Lacking) };
        let Refused { transient, diagnostic: code, value, mut detail } = refused;
        let octets = value.map(|v| v.octets).unwrap_or_default();
        let rtorj = match Rtorj::decode(&octets) {
            Ok(rtorj) => rtorj,
            Err(_) if octets.is_empty() => Rtorj::default(),
            Err(e) => Rtorj { unread: Some(e), ..Rtorj::default() },
        };
        if let Some(e) = &rtorj.unread {
            detail = format!("{detail}; {e}: {}", shown::value(&octets));
        }
        if let Some(reason) = rtorj.reason {
            detail = format!("{detail}; RTORJ refuseReason {reason} (X.228 9.1)");
        }
        let reason = match (&rtorj.bind_error, rtorj.reason) {
            (Some(_), _) => RefuseReason::Bind,
            (None, Some(0)) => RefuseReason::Busy,
            (None, Some(1)) => RefuseReason::CannotRecover,
            (None, Some(2)) => RefuseReason::ValidationFailure,
            (None, Some(3)) => RefuseReason::DialogueMode,
            (None, _) if code == Some(diagnostic::APPLICATION_CONTEXT) => {
                RefuseReason::ApplicationContext
            }
            (None, None) if self.recovering.is_some() && code.is_some() && !transient => {
                RefuseReason::CannotRecover
            }
            (None, None) if transient => RefuseReason::Busy,
            _ => RefuseReason::Unspecified,
        };
        self.up.push_back(Indication::Refused { reason, bind_error: rtorj.bind_error, detail });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_negotiated_down() {
        assert_eq!(negotiate((0, 3), (64, 16)), (64, 3), "0 lets the responder choose");
        assert_eq!(negotiate((63, 3), (0, 16)), (0, 3), "0 answers that there are none");
        assert_eq!(negotiate((63, 20), (64, 16)), (63, 16));
        assert_eq!(negotiate((100, 0), (64, 0)), (64, 1), "a window has one checkpoint or more");
    }
}
