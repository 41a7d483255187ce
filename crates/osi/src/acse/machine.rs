//! The association control protocol machine (X.227 clause 7).

use super::pdu::{Apdu, Diagnostic, diagnostic, result};
use super::table::{Action, Event, State, cell};
use crate::api::{Config, Role};
use crate::presentation::Presentation;
use crate::presentation::service::{self as presentation, Value};
use crate::profiles;
use crate::session::service::ConnectionReference;
use crate::shown;
use base::ber::Oid;
use bytes::Bytes;
use std::collections::VecDeque;

/// What the association user (RTSE or ROSE) asks; values are user information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A-ASSOCIATE.request.
    Associate { reference: ConnectionReference, requirements: u16, value: Value },
    /// A-ASSOCIATE.response, accepting.
    Accept { requirements: u16, value: Value },
    /// A-ASSOCIATE.response, rejecting.
    Reject { transient: bool, diagnostic: i64, value: Option<Value> },
    /// A-RELEASE.request.
    Release,
    /// A-RELEASE.response.
    ReleaseResponse,
    /// A-ABORT.request.
    Abort(Option<Value>),
}

/// What the association user is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Indication {
    /// A-ASSOCIATE.indication.
    Associate {
        application_context: Oid,
        session_selector: Option<Bytes>,
        presentation_selector: Option<Bytes>,
        reference: ConnectionReference,
        syntaxes: Vec<Oid>,
        value: Option<Value>,
    },
    /// A-ASSOCIATE.confirm, accepted.
    Accepted(Option<Value>),
    /// A-ASSOCIATE.confirm, rejected; `diagnostic` of acse-service-user where there was an AARE.
    Rejected { transient: bool, diagnostic: Option<i64>, value: Option<Value>, detail: String },
    /// A-RELEASE.indication.
    Release,
    /// A-RELEASE.confirm.
    Released,
    /// A-ABORT.indication: user information where the peer's user gave some.
    Abort { value: Option<Value>, detail: String },
}

/// What the peer said in these values, which cannot be read.
fn said(values: &[Value]) -> String {
    let all: Vec<u8> = values.iter().flat_map(|v| v.octets.iter().copied()).collect();
    shown::value(&all)
}

/// The machine. It calls the presentation below; what it tells is taken from `up`.
#[derive(Debug)]
pub(crate) struct Acse {
    state: State,
    role: Role,
    /// Proposed is the first; acceptable are all.
    application_contexts: Vec<Oid>,
    /// The application context of the association.
    agreed: Option<Oid>,
    pub(crate) up: VecDeque<Indication>,
}

impl Acse {
    pub(crate) fn new(config: &Config, role: Role) -> Acse {
        Acse {
            state: State::Sta0,
            role,
            application_contexts: config.application_contexts.clone(),
            agreed: None,
            up: VecDeque::new(),
        }
    }

    /// The state, for tests.
    #[cfg(test)]
    pub(crate) fn state(&self) -> String {
        format!("acse {:?}", self.state)
    }

    fn step(&mut self, event: Event) -> (Action, String) {
        let before = self.state;
        let found = cell(before, event);
        self.state = found.next;
        (found.action, format!("acse: {event:?} in {before:?} ({})", found.clause))
    }

    /// An APDU as a value of our own context.
    fn value(below: &Presentation, apdu: &Apdu) -> Value {
        let context = below.contexts().of(&profiles::acse()).unwrap_or(1);
        Value { context, octets: apdu.encode() }
    }

    fn name(&self) -> Oid {
        let ours = self.agreed.as_ref().or_else(|| self.application_contexts.first());
        ours.cloned().unwrap_or_else(profiles::application_context::mts_transfer)
    }

    /// A request of the association user.
    pub(crate) fn request(&mut self, below: &mut Presentation, request: Request) {
        let event = match &request {
            Request::Associate { .. } => Event::AAscReq,
            Request::Accept { .. } => Event::AAscRspAccept,
            Request::Reject { .. } => Event::AAscRspReject,
            Request::Release => Event::ARlsReq,
            Request::ReleaseResponse => Event::ARlsRsp,
            Request::Abort(_) => Event::AAbrReq,
        };
        match self.step(event) {
            (Action::Ignore, _) => {}
            (Action::Misuse, detail) => self.abort_provider(below, detail),
            (action, _) => self.perform(below, action, request),
        }
    }

    fn perform(&mut self, below: &mut Presentation, action: Action, request: Request) {
        use presentation::Request as P;
        let down = match (action, request) {
            (Action::SendAarq, Request::Associate { reference, requirements, value }) => {
                let apdu = Apdu::Aarq {
                    version1: true,
                    application_context: self.name(),
                    information: Some(value),
                };
                P::Connect { reference, requirements, value: Self::value(below, &apdu) }
            }
            (Action::SendAareAccepted, Request::Accept { requirements, value }) => {
                let apdu = Apdu::Aare {
                    application_context: self.name(),
                    result: result::ACCEPTED,
                    diagnostic: Diagnostic::User(diagnostic::NULL),
                    information: Some(value),
                };
                P::Accept { requirements, value: Self::value(below, &apdu) }
            }
            (Action::SendAareRejected, Request::Reject { transient, diagnostic, value }) => {
                let apdu = self.rejection(transient, Diagnostic::User(diagnostic), value);
                P::Refuse { value: Self::value(below, &apdu) }
            }
            (Action::SendRlrq, _) => P::Release(Self::value(below, &Apdu::Rlrq)),
            (Action::SendRlre, _) => P::ReleaseResponse(Self::value(below, &Apdu::Rlre)),
            (Action::SendAbrt, Request::Abort(information)) => {
                let apdu = Apdu::Abrt { provider: false, information };
                P::Abort(Some(Self::value(below, &apdu)))
            }
            // No cell asks for anything else on a request.
            _ => return,
        };
        below.request(down);
    }

    fn rejection(
        &self,
        transient: bool,
        diagnostic: Diagnostic,
        information: Option<Value>,
    ) -> Apdu {
        Apdu::Aare {
            application_context: self.name(),
            result: if transient { result::REJECTED_TRANSIENT } else { result::REJECTED_PERMANENT },
            diagnostic,
            information,
        }
    }

    /// Aborts as the provider, whatever the state.
    pub(crate) fn abort_provider(&mut self, below: &mut Presentation, detail: String) {
        self.state = State::Sta0;
        let apdu = Apdu::Abrt { provider: true, information: None };
        below.request(presentation::Request::Abort(Some(Self::value(below, &apdu))));
        self.up.push_back(Indication::Abort { value: None, detail });
    }

    /// The first APDU among these values.
    fn decode(below: &Presentation, values: &[Value]) -> Result<Option<Apdu>, base::ber::Error> {
        let id = below.contexts().of(&profiles::acse());
        let apdu = values.iter().find(|v| Some(v.context) == id);
        apdu.map(|v| Apdu::decode(&v.octets)).transpose()
    }

    /// A primitive of connection or release from the presentation.
    pub(crate) fn indication(
        &mut self,
        below: &mut Presentation,
        indication: presentation::Indication,
    ) {
        use presentation::Indication as P;
        match indication {
            P::Connect { session_selector, presentation_selector, reference, values, .. } => {
                let calling = (session_selector, presentation_selector);
                self.associate(below, calling, reference, &values);
            }
            P::Accepted { values } => self.accepted(below, &values),
            P::Refused { values, transient, detail } => {
                self.refused(below, &values, transient, detail);
            }
            P::Release(values) => {
                let event = match self.role {
                    Role::Initiator => Event::RlrqInitiator,
                    Role::Responder => Event::RlrqResponder,
                };
                self.release(below, event, &values, Indication::Release);
            }
            P::Released(values) => {
                self.release(below, Event::Rlre, &values, Indication::Released);
            }
            P::UserAbort(values) => self.aborted(below, &values),
            P::ProviderAbort { detail } => {
                if !matches!(self.step(Event::PPAbInd), (Action::Ignore, _)) {
                    self.up.push_back(Indication::Abort { value: None, detail });
                }
            }
            P::ValueStart { .. }
            | P::ValueData(_)
            | P::ValueEnd
            | P::PleaseTokens(_)
            | P::Pass(_) => {}
        }
    }

    /// Steps on an event from below; false where it led to an abort or nothing.
    fn enter(&mut self, below: &mut Presentation, event: Event, why: Option<String>) -> bool {
        match self.step(event) {
            (Action::Ignore | Action::Misuse, _) => false,
            (Action::AbortProvider, detail) => {
                let detail = match why {
                    Some(why) => format!("{detail}: {why}"),
                    None => detail,
                };
                self.abort_provider(below, detail);
                false
            }
            _ => true,
        }
    }

    fn associate(
        &mut self,
        below: &mut Presentation,
        (session_selector, presentation_selector): (Option<Bytes>, Option<Bytes>),
        reference: ConnectionReference,
        values: &[Value],
    ) {
        let (version1, application_context, value) = match Self::decode(below, values) {
            Ok(Some(Apdu::Aarq { version1, application_context, information })) => {
                (version1, application_context, information)
            }
            Ok(_) => {
                self.enter(below, Event::Invalid, Some("no AARQ in the CP".to_owned()));
                return;
            }
            Err(e) => {
                self.enter(below, Event::Invalid, Some(e.to_string()));
                return;
            }
        };
        let known = self.application_contexts.contains(&application_context);
        if !version1 || !known {
            self.reject(below, version1, &application_context);
        } else if self.enter(below, Event::Aarq, None) {
            self.agreed = Some(application_context.clone());
            let syntaxes = below.contexts().0.iter().map(|(_, s)| s.clone()).collect();
            self.up.push_back(Indication::Associate {
                application_context,
                session_selector,
                presentation_selector,
                reference,
                syntaxes,
                value,
            });
        }
    }

    /// Rejects an AARQ without asking the user.
    fn reject(&mut self, below: &mut Presentation, version1: bool, name: &Oid) {
        if !self.enter(below, Event::AarqUnsupported, None) {
            return;
        }
        let (code, detail) = if version1 {
            let detail = format!("acse: refused: application context {name} (X.227 7.1.3.2)");
            (Diagnostic::User(diagnostic::APPLICATION_CONTEXT), detail)
        } else {
            let detail = "acse: refused: no common version (X.227 7.1.3.2)".to_owned();
            (Diagnostic::Provider(2), detail)
        };
        let apdu = self.rejection(false, code, None);
        below.request(presentation::Request::Refuse { value: Self::value(below, &apdu) });
        self.up.push_back(Indication::Abort { value: None, detail });
    }

    fn accepted(&mut self, below: &mut Presentation, values: &[Value]) {
        match Self::decode(below, values) {
            Ok(Some(Apdu::Aare { result: result::ACCEPTED, application_context, .. }))
                if !self.application_contexts.contains(&application_context) =>
            {
                let why = format!("application-context-name {application_context} in the AARE");
                self.enter(below, Event::Invalid, Some(why));
            }
            Ok(Some(Apdu::Aare { result: result::ACCEPTED, information, .. })) => {
                if self.enter(below, Event::AareAccepted, None) {
                    self.up.push_back(Indication::Accepted(information));
                }
            }
            Ok(_) => {
                self.enter(below, Event::Invalid, Some("no AARE accepted in the CPA".to_owned()));
            }
            Err(e) => {
                self.enter(below, Event::Invalid, Some(e.to_string()));
            }
        }
    }

    fn refused(
        &mut self,
        below: &mut Presentation,
        values: &[Value],
        transient: bool,
        detail: String,
    ) {
        let (event, indication) = match Self::decode(below, values) {
            Ok(Some(Apdu::Aare { result, diagnostic, information, .. })) => {
                let transient = result == result::REJECTED_TRANSIENT;
                let detail = format!("acse: AARE, result {result}, {diagnostic:?} (X.227 7.1.3.4)");
                let diagnostic = match diagnostic {
                    Diagnostic::User(code) => Some(code),
                    Diagnostic::Provider(_) => None,
                };
                let value = information;
                let rejected = Indication::Rejected { transient, diagnostic, value, detail };
                (Event::AareRejected, rejected)
            }
            Ok(_) => {
                let (diagnostic, value) = (None, None);
                let rejected = Indication::Rejected { transient, diagnostic, value, detail };
                (Event::PConCnfRefused, rejected)
            }
            Err(e) => {
                let detail = format!("{detail}, with {e}: {}", said(values));
                let (diagnostic, value) = (None, None);
                let rejected = Indication::Rejected { transient: false, diagnostic, value, detail };
                (Event::PConCnfRefused, rejected)
            }
        };
        if self.enter(below, event, None) {
            self.up.push_back(indication);
        }
    }

    /// RLRQ or RLRE. A release without APDU is met in the field and is as good.
    fn release(
        &mut self,
        below: &mut Presentation,
        event: Event,
        values: &[Value],
        up: Indication,
    ) {
        let wrong = match (Self::decode(below, values), event) {
            (Ok(None), _) => None,
            (Ok(Some(Apdu::Rlre)), Event::Rlre) => None,
            (Ok(Some(Apdu::Rlrq)), Event::RlrqInitiator | Event::RlrqResponder) => None,
            (Ok(Some(_)), _) => Some("another APDU than RLRQ or RLRE".to_owned()),
            (Err(e), _) => Some(e.to_string()),
        };
        let event = if wrong.is_some() { Event::Invalid } else { event };
        if self.enter(below, event, wrong) {
            self.up.push_back(up);
        }
    }

    fn aborted(&mut self, below: &Presentation, values: &[Value]) {
        if matches!(self.step(Event::Abrt), (Action::Ignore, _)) {
            return;
        }
        let (value, detail) = match Self::decode(below, values) {
            Ok(Some(Apdu::Abrt { provider: true, information })) => {
                let detail = "acse: ABRT, source acse-service-provider (X.227 7.3.3)";
                let said = information.map(|value| shown::value(&value.octets));
                (None, said.map_or_else(|| detail.to_owned(), |said| format!("{detail}, {said}")))
            }
            Ok(Some(Apdu::Abrt { information, .. })) => {
                (information, "acse: ABRT, source acse-service-user (X.227 7.3.3)".to_owned())
            }
            // Some put the user's value in the ARU without an ABRT around it.
            Ok(_) => (values.first().cloned(), "acse: ARU without ABRT (X.227 7.3.3)".to_owned()),
            Err(e) => (None, format!("acse: ABRT: {e}: {}", said(values))),
        };
        self.up.push_back(Indication::Abort { value, detail });
    }
}
