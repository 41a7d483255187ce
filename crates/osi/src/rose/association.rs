//! The association around the operations: bind, unbind and abort.

use super::machine::{Refused, Rose, With};
use super::table::{Event, State, Table};
use crate::acse::{self, diagnostic};
use crate::api::{Dialogue, Indication, Mode, RefuseReason, Request, Role, Selectors};
use crate::presentation::service::Value;
use crate::rtse::pdu as bind;
use crate::session::service::requirements;
use crate::shown;
use crate::stack::Below;
use crate::table::{Entered, Lacking, Performed};
use base::ber::Oid;

impl Rose {
    /// Bind, requested.
    pub(super) fn send_bind(&mut self, below: &mut Below, with: With) -> Performed {
        let With::Request(Request::Open { bind: bare }) = with else { return Err(Lacking) };
        let octets = bind::wrap_argument(&bare);
        below.associate(acse::Request::Associate {
            reference: self.reference.clone(),
            requirements: requirements::DUPLEX,
            value: Value { context: self.context(below), octets },
        });
        Ok(())
    }

    /// Bind, accepted by us.
    pub(super) fn send_bind_result(&mut self, below: &mut Below, with: With) -> Performed {
        let With::Request(Request::Accept { bind: bare }) = with else { return Err(Lacking) };
        let octets = bind::wrap_result(&bare);
        let value = Value { context: self.context(below), octets };
        let requirements = requirements::DUPLEX;
        below.associate(acse::Request::Accept { requirements, value });
        Ok(())
    }

    /// Bind, refused by us.
    pub(super) fn send_bind_error(&mut self, below: &mut Below, with: With) -> Performed {
        let With::Request(Request::Refuse { reason, bind_error }) = with else {
            return Err(Lacking);
        };
        let context = self.context(below);
        let value = bind_error.map(|bare| Value { context, octets: bind::wrap_error(&bare) });
        below.associate(acse::Request::Reject {
            transient: reason == RefuseReason::Busy && value.is_none(),
            diagnostic: match reason {
                RefuseReason::ApplicationContext => diagnostic::APPLICATION_CONTEXT,
                _ => diagnostic::NO_REASON,
            },
            value,
        });
        let detail = format!("rose: refused by us, {reason:?} (X.219 9.2)");
        self.up.push_back(Indication::Aborted { reason: None, detail });
        Ok(())
    }

    /// Something from ACSE.
    pub(crate) fn association(&mut self, below: &mut Below, indication: acse::Indication) {
        use acse::Indication as I;
        match indication {
            I::Associate { .. } => self.associate(below, indication),
            I::Accepted(value) => {
                let value = value.filter(|v| v.context == self.context(below));
                let (event, with) = match value.map(|v| bind::unwrap_result(&v.octets)) {
                    Some(Ok(bind)) => (Event::BindCnf, With::Bound(bind)),
                    Some(Err(e)) => (Event::Invalid, With::Why(e.to_string())),
                    None => (Event::Invalid, With::Why("no bind result in the AARE".to_owned())),
                };
                self.on(below, event, with);
            }
            I::Rejected { transient, diagnostic, value, detail } => {
                let refused = Refused { transient, diagnostic, value, detail };
                self.on(below, Event::BindRefused, With::Refused(refused));
            }
            I::Release => {
                let event = self.release_event();
                self.on(below, event, With::Nothing);
            }
            I::Released => self.on(below, Event::ReleaseCnf, With::Nothing),
            I::Abort { value, detail } => {
                self.on(below, Event::AbortInd, With::Abort { value, detail });
            }
        }
    }

    /// What a release of the peer is: it may collide with our own.
    fn release_event(&self) -> Event {
        match (self.automaton.state(), self.role) {
            (State::Sta20, _) if self.release_due => Event::ReleaseIndBeforeReq,
            (State::Sta20, Role::Initiator) => Event::ReleaseCollisionInitiator,
            (State::Sta20, Role::Responder) => Event::ReleaseCollisionResponder,
            (
                State::Sta00 | State::Sta01 | State::Sta02 | State::Sta10 | State::Sta21,
                Role::Initiator | Role::Responder,
            ) => Event::ReleaseInd,
        }
    }

    fn associate(&mut self, below: &mut Below, indication: acse::Indication) {
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
        let is_bind =
            |value: &Value, syntax: &Oid| below.contexts().id_of(syntax) == Some(value.context);
        if let Some(value) = &value
            && let Some(other) = self.other_syntaxes.iter().find(|other| is_bind(value, other))
        {
            self.syntax = other.clone();
        }
        let value = value.filter(|value| is_bind(value, &self.syntax));
        let bind = match value.map(|v| bind::unwrap_argument(&v.octets)) {
            Some(Ok(bind)) => bind,
            Some(Err(e)) => return self.on(below, Event::Invalid, With::Why(e.to_string())),
            None => {
                let why = "no bind argument in the AARQ".to_owned();
                return self.on(below, Event::Invalid, With::Why(why));
            }
        };
        let indication = Indication::Open {
            bind,
            application_context,
            calling: Selectors {
                transport: None,
                session: session_selector,
                presentation: presentation_selector,
            },
            reference: reference.clone(),
            syntaxes,
            dialogue: Dialogue::TwoWayAlternate,
            mode: Mode::Normal,
        };
        self.on(below, Event::BindInd, With::Bind(reference, indication));
    }

    /// Bind, confirmed.
    pub(super) fn bind_confirm(&mut self, with: With) -> Performed {
        let With::Bound(bind) = with else { return Err(Lacking) };
        let reference = self.reference.clone();
        self.up.push_back(Indication::Opened { bind, reference });
        Ok(())
    }

    /// Bind, asked for by the peer.
    pub(super) fn bind_indication(&mut self, with: With) -> Performed {
        let With::Bind(reference, indication) = with else { return Err(Lacking) };
        self.reference = reference;
        self.up.push_back(indication);
        Ok(())
    }

    /// Bind, refused by the peer.
    pub(super) fn refused(&mut self, with: With) -> Performed {
        let With::Refused(refused) = with else { return Err(Lacking) };
        let Refused { transient, diagnostic: code, value, mut detail } = refused;
        let bind_error = match value.map(|v| (bind::unwrap_error(&v.octets), v)) {
            Some((Ok(error), _)) => Some(error),
            Some((Err(e), value)) => {
                detail = format!("{detail}; {e}: {}", shown::value(&value.octets));
                None
            }
            None => None,
        };
        let reason = match &bind_error {
            Some(_) => RefuseReason::Bind,
            None if code == Some(diagnostic::APPLICATION_CONTEXT) => {
                RefuseReason::ApplicationContext
            }
            None if transient => RefuseReason::Busy,
            None => RefuseReason::Unspecified,
        };
        self.up.push_back(Indication::Refused { reason, bind_error, detail });
        Ok(())
    }

    /// A-RELEASE.response at once.
    pub(super) fn release_response(&mut self, below: &mut Below) {
        self.release_due = false;
        below.associate(acse::Request::ReleaseResponse);
        self.up.push_back(Indication::Released);
    }

    /// The end of a collision of releases: ours is confirmed, and the peer's answered.
    pub(super) fn release_confirm_then_response(&mut self, below: &mut Below) {
        below.associate(acse::Request::ReleaseResponse);
        self.up.push_back(Indication::Released);
    }

    /// An abort that the user asks for.
    pub(super) fn abort_user(&mut self, below: &mut Below, with: &With) -> Performed {
        let With::Request(Request::Abort(reason)) = *with else { return Err(Lacking) };
        self.abort(below, format!("rose: aborted by us, {reason:?}"));
        Ok(())
    }

    /// An abort for an invalid APDU, a failure of ours or a timer.
    pub(super) fn abort_provider(
        &mut self,
        below: &mut Below,
        entered: &Entered<Table>,
        with: With,
    ) -> Performed {
        match with {
            With::Detail(detail) => self.abort(below, detail),
            With::Why(why) => self.abort(below, format!("{entered}: {why}")),
            _ => return Err(Lacking),
        }
        Ok(())
    }

    /// A-ABORT request, and the indication of it.
    pub(super) fn abort(&mut self, below: &mut Below, detail: String) {
        self.queue.clear();
        self.release_due = false;
        below.associate(acse::Request::Abort(None));
        self.up.push_back(Indication::Aborted { reason: None, detail });
    }

    /// An abort by the peer, its user or its provider.
    pub(super) fn aborted(&mut self, with: With) -> Performed {
        let With::Abort { value, detail } = with else { return Err(Lacking) };
        let detail = match value {
            Some(value) => format!("{detail}, {}", shown::value(&value.octets)),
            None => detail,
        };
        self.queue.clear();
        self.up.push_back(Indication::Aborted { reason: None, detail });
        Ok(())
    }
}
