//! The association control protocol machine (X.227 clause 7).

#[cfg(test)]
mod cells;

use super::pdu::{Apdu, Diagnostic, diagnostic, result};
use super::table::{Action, Event, Table};
use crate::api::{Config, Role};
use crate::presentation::Presentation;
use crate::presentation::service::{self as presentation, Value};
use crate::profiles;
use crate::session::service::ConnectionReference;
use crate::shown;
use crate::table::{Automaton, Entered, Lacking, Performed, Step};
use base::ber::Oid;
use bytes::Bytes;
use std::collections::VecDeque;

/// Requests of the association user (RTSE or ROSE); values are user information.
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

/// Indications to the association user.
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

/// The parameters of an event.
#[derive(Clone, Debug)]
enum With {
    /// Nothing.
    Nothing,
    /// A request of the association user.
    Request(Request),
    /// An AARQ that can be taken up, as the indication to issue.
    Aarq(Indication),
    /// An AARQ that cannot: its version and application context.
    Unsupported { version1: bool, application_context: Oid },
    /// User information of an AARE.
    Information(Option<Value>),
    /// A refusal, as the confirm to issue.
    Rejected(Indication),
    /// The values of a P-U-ABORT.
    Abort(Vec<Value>),
    /// The fault of an APDU, as text.
    Wrong(String),
    /// The diagnostic of an abort.
    Detail(String),
}

/// Values of the peer that cannot be decoded, for the log.
fn shown(values: &[Value]) -> String {
    let all: Vec<u8> = values.iter().flat_map(|v| v.octets.iter().copied()).collect();
    shown::value(&all)
}

/// The machine. It calls the presentation below; the user takes its indications from `up`.
#[derive(Clone, Debug)]
pub(crate) struct Acse {
    automaton: Automaton<Table>,
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
            automaton: Automaton::new(),
            role,
            application_contexts: config.application_contexts.clone(),
            agreed: None,
            up: VecDeque::new(),
        }
    }

    /// A machine in this state.
    #[cfg(test)]
    pub(crate) fn at(config: &Config, role: Role, state: super::table::State) -> Acse {
        Acse { automaton: Automaton::at(state), ..Acse::new(config, role) }
    }

    /// The state, for tests.
    #[cfg(test)]
    pub(crate) fn state(&self) -> String {
        format!("acse {:?}", self.automaton.state())
    }

    /// An APDU as a value of our own context.
    fn value(below: &Presentation, apdu: &Apdu) -> Value {
        let context = below.contexts().id_of(&profiles::acse()).unwrap_or(1);
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
        self.on(below, event, With::Request(request));
    }

    /// Aborts as the provider, whatever the state.
    pub(crate) fn fail(&mut self, below: &mut Presentation, detail: String) {
        self.on(below, Event::Fail, With::Detail(detail));
    }

    /// Takes an event and performs the action of its cell.
    fn on(&mut self, below: &mut Presentation, event: Event, with: With) {
        let entered = self.automaton.enter(event);
        match entered.step {
            Step::Do(action) => {
                if let Err(Lacking) = self.perform(below, &entered, action, with) {
                    self.fail(below, entered.fault());
                }
            }
            Step::Nothing => {}
            Step::Misuse => self.fail(below, entered.to_string()),
            Step::ProtocolError => self.abort(below, &entered, with),
        }
    }

    fn perform(
        &mut self,
        below: &mut Presentation,
        entered: &Entered<Table>,
        action: Action,
        with: With,
    ) -> Performed {
        use presentation::Request as P;
        match action {
            Action::SendAarq => self.send_aarq(below, with)?,
            Action::SendAareAccepted => self.send_aare_accepted(below, with)?,
            Action::SendAareRejected => self.send_aare_rejected(below, with)?,
            Action::RejectAarq => self.reject_aarq(below, with)?,
            Action::AAscInd => self.associate_indication(with)?,
            Action::AAscCnfAccept => self.associate_confirm(with)?,
            Action::AAscCnfReject => self.reject_confirm(with)?,
            Action::SendRlrq => below.request(P::Release(Self::value(below, &Apdu::Rlrq))),
            Action::SendRlre => below.request(P::ReleaseResponse(Self::value(below, &Apdu::Rlre))),
            Action::ARlsInd => self.up.push_back(Indication::Release),
            Action::ARlsCnf => self.up.push_back(Indication::Released),
            Action::SendAbrt => Self::send_abrt(below, with)?,
            Action::AbortProvider => self.abort(below, entered, with),
            Action::AAbInd => self.aborted(below, with)?,
            Action::APAbInd => self.provider_abort_indication(with)?,
        }
        Ok(())
    }

    /// A-ASSOCIATE.request.
    fn send_aarq(&mut self, below: &mut Presentation, with: With) -> Performed {
        let With::Request(Request::Associate { reference, requirements, value }) = with else {
            return Err(Lacking);
        };
        let apdu = Apdu::Aarq {
            version1: true,
            application_context: self.name(),
            information: Some(value),
        };
        let value = Self::value(below, &apdu);
        below.request(presentation::Request::Connect { reference, requirements, value });
        Ok(())
    }

    /// A-ASSOCIATE.response, accepting.
    fn send_aare_accepted(&mut self, below: &mut Presentation, with: With) -> Performed {
        let With::Request(Request::Accept { requirements, value }) = with else {
            return Err(Lacking);
        };
        let apdu = Apdu::Aare {
            application_context: self.name(),
            result: result::ACCEPTED,
            diagnostic: Diagnostic::User(diagnostic::NULL),
            information: Some(value),
        };
        let value = Self::value(below, &apdu);
        below.request(presentation::Request::Accept { requirements, value });
        Ok(())
    }

    /// A-ASSOCIATE.response, rejecting.
    fn send_aare_rejected(&mut self, below: &mut Presentation, with: With) -> Performed {
        let With::Request(Request::Reject { transient, diagnostic, value }) = with else {
            return Err(Lacking);
        };
        let apdu = self.rejection(transient, Diagnostic::User(diagnostic), value);
        below.request(presentation::Request::Refuse { value: Self::value(below, &apdu) });
        Ok(())
    }

    /// A-ASSOCIATE.indication.
    fn associate_indication(&mut self, with: With) -> Performed {
        let With::Aarq(indication) = with else { return Err(Lacking) };
        if let Indication::Associate { application_context, .. } = &indication {
            self.agreed = Some(application_context.clone());
        }
        self.up.push_back(indication);
        Ok(())
    }

    /// A-ASSOCIATE.confirm, accepted.
    fn associate_confirm(&mut self, with: With) -> Performed {
        let With::Information(value) = with else { return Err(Lacking) };
        self.up.push_back(Indication::Accepted(value));
        Ok(())
    }

    /// A-ASSOCIATE.confirm, rejected.
    fn reject_confirm(&mut self, with: With) -> Performed {
        let With::Rejected(indication) = with else { return Err(Lacking) };
        self.up.push_back(indication);
        Ok(())
    }

    /// A-ABORT.request.
    fn send_abrt(below: &mut Presentation, with: With) -> Performed {
        let With::Request(Request::Abort(information)) = with else { return Err(Lacking) };
        let apdu = Apdu::Abrt { provider: false, information };
        below.request(presentation::Request::Abort(Some(Self::value(below, &apdu))));
        Ok(())
    }

    /// A-P-ABORT.indication.
    fn provider_abort_indication(&mut self, with: With) -> Performed {
        let With::Detail(detail) = with else { return Err(Lacking) };
        self.up.push_back(Indication::Abort { value: None, detail });
        Ok(())
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

    /// Aborts as the provider.
    fn abort(&mut self, below: &mut Presentation, entered: &Entered<Table>, with: With) {
        let detail = match with {
            With::Detail(detail) => detail,
            With::Wrong(what) => format!("{entered}: {what}"),
            With::Nothing
            | With::Request(_)
            | With::Aarq(_)
            | With::Unsupported { .. }
            | With::Information(_)
            | With::Rejected(_)
            | With::Abort(_) => entered.to_string(),
        };
        let apdu = Apdu::Abrt { provider: true, information: None };
        below.request(presentation::Request::Abort(Some(Self::value(below, &apdu))));
        self.up.push_back(Indication::Abort { value: None, detail });
    }

    /// The first APDU among these values.
    fn decode(below: &Presentation, values: &[Value]) -> Result<Option<Apdu>, base::ber::Error> {
        let id = below.contexts().id_of(&profiles::acse());
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
                self.release(below, event, &values);
            }
            P::Released(values) => self.release(below, Event::Rlre, &values),
            P::UserAbort(values) => self.on(below, Event::Abrt, With::Abort(values)),
            P::ProviderAbort { detail } => {
                self.on(below, Event::PPAbInd, With::Detail(detail));
            }
            P::ValueStart { .. }
            | P::ValueData(_)
            | P::ValueEnd
            | P::PleaseTokens(_)
            | P::Pass(_) => {
                self.fail(below, "acse: internal error: P-DATA for its user".to_owned());
            }
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
                let wrong = "no AARQ in the CP".to_owned();
                return self.on(below, Event::Invalid, With::Wrong(wrong));
            }
            Err(e) => return self.on(below, Event::Invalid, With::Wrong(e.to_string())),
        };
        if !version1 || !self.application_contexts.contains(&application_context) {
            let with = With::Unsupported { version1, application_context };
            return self.on(below, Event::AarqUnsupported, with);
        }
        let syntaxes = below.contexts().0.iter().map(|(_, s)| s.clone()).collect();
        let indication = Indication::Associate {
            application_context,
            session_selector,
            presentation_selector,
            reference,
            syntaxes,
            value,
        };
        self.on(below, Event::Aarq, With::Aarq(indication));
    }

    /// Rejects an AARQ without asking the user.
    fn reject_aarq(&mut self, below: &mut Presentation, with: With) -> Performed {
        let With::Unsupported { version1, application_context: name } = with else {
            return Err(Lacking);
        };
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
        Ok(())
    }

    fn accepted(&mut self, below: &mut Presentation, values: &[Value]) {
        let wrong = match Self::decode(below, values) {
            Ok(Some(Apdu::Aare { result: result::ACCEPTED, application_context, .. }))
                if !self.application_contexts.contains(&application_context) =>
            {
                format!("application-context-name {application_context} in the AARE")
            }
            Ok(Some(Apdu::Aare { result: result::ACCEPTED, information, .. })) => {
                return self.on(below, Event::AareAccepted, With::Information(information));
            }
            Ok(_) => "no AARE accepted in the CPA".to_owned(),
            Err(e) => e.to_string(),
        };
        self.on(below, Event::Invalid, With::Wrong(wrong));
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
                let detail = format!("{detail}, with {e}: {}", shown(values));
                let (diagnostic, value) = (None, None);
                let rejected = Indication::Rejected { transient: false, diagnostic, value, detail };
                (Event::PConCnfRefused, rejected)
            }
        };
        self.on(below, event, With::Rejected(indication));
    }

    /// RLRQ or RLRE. Fielded peers also release without an APDU, which is accepted.
    fn release(&mut self, below: &mut Presentation, event: Event, values: &[Value]) {
        let wrong = match (Self::decode(below, values), event) {
            (Ok(None), _)
            | (Ok(Some(Apdu::Rlre)), Event::Rlre)
            | (Ok(Some(Apdu::Rlrq)), Event::RlrqInitiator | Event::RlrqResponder) => {
                return self.on(below, event, With::Nothing);
            }
            (Ok(Some(_)), _) => "another APDU than RLRQ or RLRE".to_owned(),
            (Err(e), _) => e.to_string(),
        };
        self.on(below, Event::Invalid, With::Wrong(wrong));
    }

    /// A-ABORT.indication.
    fn aborted(&mut self, below: &Presentation, with: With) -> Performed {
        let With::Abort(values) = with else { return Err(Lacking) };
        let (value, detail) = match Self::decode(below, &values) {
            Ok(Some(Apdu::Abrt { provider: true, information })) => {
                let detail = "acse: ABRT, source acse-service-provider (X.227 7.3.3)";
                let text = information.map(|value| shown::value(&value.octets));
                (None, text.map_or_else(|| detail.to_owned(), |text| format!("{detail}, {text}")))
            }
            Ok(Some(Apdu::Abrt { information, .. })) => {
                (information, "acse: ABRT, source acse-service-user (X.227 7.3.3)".to_owned())
            }
            // Some peers put the user's value in the ARU without an ABRT around it.
            Ok(_) => (values.first().cloned(), "acse: ARU without ABRT (X.227 7.3.3)".to_owned()),
            Err(e) => (None, format!("acse: ABRT: {e}: {}", shown(&values))),
        };
        self.up.push_back(Indication::Abort { value, detail });
        Ok(())
    }
}
