//! The presentation protocol machine (X.226 clause 6).

use super::pdu::{
    self, AbortPpdu, Cp, CpError, Cpa, Cpr, Proposal, ProviderReason, Verdict, provider_reason,
};
use super::receive::Receive;
use super::service::{Contexts, Indication, Request, Value};
use super::table::{Action, Event, State, cell};
use crate::api::{Config, Role, Service};
use crate::session::service as session;
use crate::shown;
use base::ber::{Error, Fault, Oid};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Pieces of P-DATA below this many octets are put together before they go to the session.
const SMALL: usize = 4096;

/// A P-DATA.request that is not complete yet.
#[derive(Debug)]
struct Sending {
    small: BytesMut,
    trailer: Bytes,
}

/// The machine. Requests and indications go in by method; what it asks of the session and tells its
/// user is taken from `down` and `up`.
#[derive(Debug)]
pub(crate) struct Presentation {
    state: State,
    role: Role,
    local: crate::api::Selectors,
    remote: crate::api::Selectors,
    /// What we propose, or support.
    offered: Vec<crate::api::Context>,
    /// Abstract syntaxes without which there is no connection.
    required: Vec<Oid>,
    /// Session functional units without which there is no connection.
    requirements: u16,
    contexts: Contexts,
    verdicts: Vec<Verdict>,
    receiving: Option<Receive>,
    /// The last P-DATA ended before its User-data was complete.
    cut_short: bool,
    /// The peer's release awaits our response.
    answer_due: bool,
    sending: Option<Sending>,
    pub(crate) down: VecDeque<session::Request>,
    pub(crate) up: VecDeque<Indication>,
}

impl Presentation {
    pub(crate) fn new(config: &Config, role: Role) -> Presentation {
        let acse = crate::profiles::acse();
        let mut required = vec![acse, config.bind_syntax.clone()];
        let requirements = match config.service {
            Service::Rtse(_) => {
                required.push(config.transfer_syntax_owner.clone());
                session::requirements::RTSE
            }
            Service::Rose => session::requirements::DUPLEX,
        };
        let contexts = match role {
            Role::Initiator => {
                config.contexts.iter().map(|c| (c.id, c.abstract_syntax.clone())).collect()
            }
            Role::Responder => Vec::new(),
        };
        Presentation {
            state: State::Stai0,
            role,
            local: config.local.clone(),
            remote: config.remote.clone(),
            offered: config.contexts.clone(),
            required,
            requirements,
            contexts: Contexts(contexts),
            verdicts: Vec::new(),
            receiving: None,
            cut_short: false,
            answer_due: false,
            sending: None,
            down: VecDeque::new(),
            up: VecDeque::new(),
        }
    }

    /// The contexts in force; before the connection is accepted, the ones an initiator proposes.
    pub(crate) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Octets held on their way to the peer.
    pub(crate) fn held(&self) -> usize {
        self.sending.as_ref().map_or(0, |s| s.small.len() + s.trailer.len())
    }

    /// Most octets [`Presentation::held`] ever gives.
    pub(crate) const MAX_HELD: usize = SMALL + 6;

    fn step(&mut self, event: Event) -> (Action, &'static str) {
        let found = cell(self.state, event);
        self.state = found.next;
        (found.action, found.clause)
    }

    /// A request of ACSE, RTSE or ROSE.
    pub(crate) fn request(&mut self, request: Request) {
        let event = match &request {
            Request::Connect { .. } => Event::PConReq,
            Request::Accept { .. } => Event::PConRspAccept,
            Request::Refuse { .. } => Event::PConRspRefuse,
            Request::DataStart { .. } | Request::Data { .. } | Request::DataCut => Event::PDtReq,
            Request::Release(_) => Event::PRelReq,
            Request::ReleaseResponse(_) => Event::PRelRsp,
            Request::Abort(_) => Event::PUAbReq,
            Request::PleaseTokens(_) | Request::Pass(_) => Event::PassReq,
        };
        let before = self.state;
        match self.step(event) {
            (Action::Ignore, _) => {}
            (Action::Misuse, clause) => {
                let detail = format!("presentation: {event:?} in {before:?} ({clause})");
                self.abort_provider(ProviderReason::UnexpectedPpdu, None, detail);
            }
            _ => self.perform(request),
        }
    }

    fn perform(&mut self, request: Request) {
        match request {
            Request::Connect { reference, requirements, value } => {
                self.send_cp(reference, requirements, value);
            }
            Request::Accept { requirements, value } => self.send_cpa(requirements, value),
            Request::Refuse { value } => {
                let results = std::mem::take(&mut self.verdicts);
                let cpr = Cpr { results, provider_reason: None, values: vec![value] };
                self.refuse(pdu::encode_cpr(&cpr));
            }
            Request::DataStart { context, length } => {
                let (head, trailer) = pdu::data_frame(context, length);
                self.sending = Some(Sending { small: BytesMut::from(&*head), trailer });
            }
            Request::Data { bytes, last } => self.send_data(bytes, last),
            Request::DataCut => self.sending = None,
            Request::Release(value) => {
                let user_data = pdu::user_data(&value);
                self.down.push_back(session::Request::Release { user_data });
            }
            Request::ReleaseResponse(value) => {
                self.answer_due = false;
                let user_data = pdu::user_data(&value);
                self.down.push_back(session::Request::ReleaseResponse { user_data });
            }
            Request::Abort(value) => {
                let user_data = pdu::encode_aru(value.as_ref());
                self.down.push_back(session::Request::Abort { user_data });
            }
            Request::PleaseTokens(value) => {
                let user_data = pdu::user_data(&value);
                self.down.push_back(session::Request::PleaseTokens { user_data });
            }
            Request::Pass(request) => self.down.push_back(request),
        }
    }

    fn send_cp(
        &mut self,
        reference: session::ConnectionReference,
        requirements: u16,
        value: Value,
    ) {
        let contexts = self.offered.iter().map(|c| Proposal {
            id: c.id,
            abstract_syntax: c.abstract_syntax.clone(),
            ber: true,
        });
        let cp = Cp {
            calling: self.local.presentation.clone(),
            called: self.remote.presentation.clone(),
            contexts: contexts.collect(),
            values: vec![value],
        };
        self.down.push_back(session::Request::Connect(session::Connect {
            calling_selector: self.local.session.clone(),
            called_selector: self.remote.session.clone(),
            reference,
            requirements,
            user_data: pdu::encode_cp(&cp),
        }));
    }

    fn send_cpa(&mut self, requirements: u16, value: Value) {
        let cpa = Cpa {
            responding: self.local.presentation.clone(),
            results: std::mem::take(&mut self.verdicts),
            values: vec![value],
        };
        self.down.push_back(session::Request::Accept(session::Accept {
            responding_selector: self.local.session.clone(),
            requirements,
            user_data: pdu::encode_cpa(&cpa),
        }));
    }

    fn refuse(&mut self, user_data: Bytes) {
        self.down.push_back(session::Request::Refuse(session::Refuse { reason: 2, user_data }));
    }

    fn send_data(&mut self, bytes: Bytes, last: bool) {
        let Some(sending) = &mut self.sending else { return };
        let mut pieces = [Bytes::new(), Bytes::new(), Bytes::new()];
        let [first, second, third] = &mut pieces;
        if sending.small.len() + bytes.len() <= SMALL {
            sending.small.extend_from_slice(&bytes);
        } else {
            *first = sending.small.split().freeze();
            *second = bytes;
        }
        if last {
            sending.small.extend_from_slice(&sending.trailer);
            *third = sending.small.split().freeze();
            self.sending = None;
        }
        let count = pieces.iter().filter(|p| !p.is_empty()).count();
        for (n, bytes) in pieces.into_iter().filter(|p| !p.is_empty()).enumerate() {
            let last = last && n + 1 == count;
            self.down.push_back(session::Request::Data { bytes, last });
        }
    }

    /// An indication of the session.
    pub(crate) fn indication(&mut self, indication: session::Indication) {
        use session::Indication as S;
        match indication {
            S::Connect(connect) => self.connect(connect),
            S::Accepted(accept) => self.accepted(&accept),
            S::Refused(refuse) => self.refused(&refuse),
            S::Data { bytes, last } => {
                if self.is_whole(false) && self.enter(Event::Td) {
                    self.data(bytes, last);
                }
            }
            S::Release { user_data } => {
                if !self.is_whole(false) {
                    return;
                }
                self.answer_due = true;
                self.framed(Event::SRelInd, &user_data, Indication::Release);
            }
            S::Released { user_data } => {
                let event = if self.answer_due { Event::SRelCnfCollision } else { Event::SRelCnf };
                self.framed(event, &user_data, Indication::Released);
            }
            S::TokensPlease { user_data } => {
                self.framed(Event::PassInd, &user_data, Indication::PleaseTokens);
            }
            S::UserAbort { user_data } => self.aborted(&user_data),
            S::ProviderAbort { reason } => {
                self.step(Event::SPAbInd);
                self.up.push_back(Indication::ProviderAbort { detail: reason });
            }
            other => {
                let ends_activity =
                    matches!(other, S::ActivityDiscard(_) | S::ActivityInterrupt(_));
                if self.is_whole(ends_activity) && self.enter(Event::PassInd) {
                    self.up.push_back(Indication::Pass(other));
                }
            }
        }
    }

    /// Steps on an event from below; whether it is to be handed on. Aborts where it is unexpected.
    fn enter(&mut self, event: Event) -> bool {
        let before = self.state;
        match self.step(event) {
            (Action::Ignore | Action::Misuse, _) => false,
            (Action::SendArp, clause) => {
                let detail = format!("presentation: {event:?} in {before:?} ({clause})");
                let reason = match event {
                    Event::Td => ProviderReason::UnexpectedPpdu,
                    _ => ProviderReason::UnexpectedSessionPrimitive,
                };
                self.abort_provider(reason, event_identifier(event), detail);
                false
            }
            _ => true,
        }
    }

    /// A primitive whose user data is User-data held whole.
    fn framed(&mut self, event: Event, octets: &[u8], up: impl FnOnce(Vec<Value>) -> Indication) {
        let values = pdu::decode_values(octets);
        if !self.enter(event) {
            return;
        }
        match values {
            Ok(values) => self.up.push_back(up(values)),
            Err(e) => self.invalid(event, &e),
        }
    }

    fn data(&mut self, bytes: Bytes, last: bool) {
        let receive = self.receiving.get_or_insert_with(Receive::new);
        let up = &mut self.up;
        let nothing = receive.is_untouched() && bytes.is_empty();
        let result = receive.push(bytes, &self.contexts, &mut |i| up.push_back(i));
        let complete = receive.is_complete();
        if let Err(e) = result {
            return self.invalid(Event::Td, &e);
        }
        if last && nothing {
            // Nobody cuts short what has not begun.
            let e = Error { fault: Fault::Truncated, field: Some("User-data") };
            return self.invalid(Event::Td, &e);
        }
        if last {
            self.receiving = None;
            self.cut_short = !complete;
            // Without activities nothing can excuse it.
            if self.requirements & session::requirements::ACTIVITY == 0 {
                self.is_whole(false);
            }
        }
    }

    /// Whether the last P-DATA was whole. A sender may cut one short by ending its activity (X.225
    /// 7.32, 7.33); everything else after one is its error.
    fn is_whole(&mut self, ends_activity: bool) -> bool {
        let cut_short = std::mem::take(&mut self.cut_short);
        if ends_activity {
            self.receiving = None;
        } else if cut_short {
            let e = Error { fault: Fault::Truncated, field: Some("User-data") };
            self.invalid(Event::Td, &e);
            return false;
        }
        true
    }

    fn invalid(&mut self, event: Event, error: &Error) {
        self.state = State::Stat0;
        if matches!(self.step(Event::Invalid), (Action::SendArp, _)) {
            let detail = format!("presentation: {event:?}: {error} (X.226 6.4.2.2)");
            self.abort_provider(ProviderReason::InvalidParameter, event_identifier(event), detail);
        }
    }

    fn abort_provider(&mut self, reason: ProviderReason, event: Option<i64>, detail: String) {
        self.state = State::Stai0;
        self.receiving = None;
        self.sending = None;
        let user_data = pdu::encode_arp(reason, event);
        self.down.push_back(session::Request::Abort { user_data });
        self.up.push_back(Indication::ProviderAbort { detail });
    }

    fn aborted(&mut self, user_data: &[u8]) {
        match pdu::decode_abort(user_data) {
            Ok(AbortPpdu::User(values)) => {
                if matches!(self.step(Event::Aru), (Action::PUAbInd, _)) {
                    self.up.push_back(Indication::UserAbort(values));
                }
            }
            Ok(AbortPpdu::Provider { reason, event }) => {
                if matches!(self.step(Event::Arp), (Action::PPAbInd, _)) {
                    let detail = format!(
                        "presentation: the peer sent ARP, provider-reason {reason:?}, \
                         event-identifier {event:?} (X.226 6.4.2)"
                    );
                    self.up.push_back(Indication::ProviderAbort { detail });
                }
            }
            Err(e) => {
                // The connection is gone whatever the user data says.
                if matches!(self.step(Event::Aru), (Action::PUAbInd, _)) {
                    let said = shown::value(user_data);
                    let detail = format!("presentation: S-U-ABORT with {e}: {said}");
                    self.up.push_back(Indication::ProviderAbort { detail });
                }
            }
        }
    }

    fn connect(&mut self, connect: session::Connect) {
        let cp = match pdu::decode_cp(&connect.user_data) {
            Ok(cp) => cp,
            Err(e) => return self.refuse_cp(Vec::new(), e),
        };
        let verdicts = self.judge(&cp.contexts);
        let contexts = Contexts(
            cp.contexts
                .iter()
                .zip(&verdicts)
                .filter(|(_, v)| **v == Verdict::Acceptance)
                .map(|(p, _)| (p.id, p.abstract_syntax.clone()))
                .collect(),
        );
        let wrong_selector = matches!((&cp.called, &self.local.presentation),
            (Some(called), Some(ours)) if called != ours);
        let missing = self.required.iter().find(|s| contexts.of(s).is_none());
        let lacking = self.requirements & !connect.requirements;
        if self.role == Role::Initiator {
            return self.reject_cp(
                verdicts,
                provider_reason::NOT_SPECIFIED,
                "S-CONNECT indication to an initiator",
            );
        } else if wrong_selector {
            let reason = provider_reason::ADDRESS_UNKNOWN;
            return self.reject_cp(verdicts, reason, "called-presentation-selector is not ours");
        } else if let Some(missing) = missing {
            let detail = format!("abstract syntax {missing} was not proposed with BER");
            return self.reject_cp(verdicts, provider_reason::NOT_SPECIFIED, &detail);
        } else if lacking != 0 {
            let detail = format!("session requirements lack {lacking:#06x}");
            return self.reject_cp(verdicts, provider_reason::NOT_SPECIFIED, &detail);
        }
        if !self.enter(Event::Cp) {
            return;
        }
        self.verdicts = verdicts;
        self.contexts = contexts.clone();
        self.up.push_back(Indication::Connect {
            session_selector: connect.calling_selector,
            presentation_selector: cp.calling,
            reference: connect.reference,
            requirements: connect.requirements,
            contexts,
            values: cp.values,
        });
    }

    fn judge(&self, proposals: &[Proposal]) -> Vec<Verdict> {
        let judge = |p: &Proposal| {
            if !self.offered.iter().any(|c| c.abstract_syntax == p.abstract_syntax) {
                Verdict::ProviderRejection(1)
            } else if !p.ber {
                Verdict::ProviderRejection(2)
            } else {
                Verdict::Acceptance
            }
        };
        proposals.iter().map(judge).collect()
    }

    fn refuse_cp(&mut self, results: Vec<Verdict>, error: CpError) {
        match error {
            CpError::X410Mode => {
                if self.enter(Event::CpRefused) {
                    self.refuse(pdu::encode_cpr_x410());
                    let detail = "presentation: CP asks for X.410 mode, which is not supported \
                                  (X.226 6.2.5.1)";
                    self.up.push_back(Indication::ProviderAbort { detail: detail.to_owned() });
                }
            }
            CpError::Version => {
                let reason = provider_reason::VERSION;
                self.reject_cp(results, reason, "protocol-version lacks version 1");
            }
            CpError::DefaultContext => {
                let reason = provider_reason::DEFAULT_CONTEXT;
                self.reject_cp(results, reason, "default-context-name is not supported");
            }
            CpError::Malformed(e) => {
                let reason = match (&e.fault, e.field) {
                    (Fault::TooDeep(_) | Fault::TooMany(_) | Fault::TooLong(_), _) => {
                        provider_reason::LOCAL_LIMIT
                    }
                    (_, Some("User-data" | "PDV-list" | "presentation-data-values")) => {
                        provider_reason::USER_DATA
                    }
                    _ => provider_reason::NOT_SPECIFIED,
                };
                self.reject_cp(results, reason, &e.to_string());
            }
        }
    }

    /// Refuses a CP for the provider's reason.
    fn reject_cp(&mut self, results: Vec<Verdict>, reason: i64, detail: &str) {
        if self.enter(Event::CpRefused) {
            let cpr = Cpr { results, provider_reason: Some(reason), values: Vec::new() };
            self.refuse(pdu::encode_cpr(&cpr));
            let detail = format!("presentation: refused: {detail} (X.226 6.2.4.7)");
            self.up.push_back(Indication::ProviderAbort { detail });
        }
    }

    fn accepted(&mut self, accept: &session::Accept) {
        let cpa = pdu::decode_cpa(&accept.user_data);
        if !self.enter(Event::Cpa) {
            return;
        }
        let cpa = match cpa {
            Ok(cpa) => cpa,
            Err(e) => return self.invalid(Event::Cpa, &e),
        };
        if cpa.results.len() != self.offered.len() {
            let fault = Fault::Value("one result for each context proposed");
            let field = Some("presentation-context-definition-result-list");
            return self.invalid(Event::Cpa, &Error { fault, field });
        }
        let accepted = self.offered.iter().zip(&cpa.results);
        self.contexts = Contexts(
            accepted
                .filter(|(_, v)| **v == Verdict::Acceptance)
                .map(|(c, _)| (c.id, c.abstract_syntax.clone()))
                .collect(),
        );
        let lacking = self.requirements & !accept.requirements;
        let problem = if let Some(s) = self.required.iter().find(|s| self.contexts.of(s).is_none())
        {
            Some(format!("presentation: the peer accepted no context of {s} (X.226 6.2.4.8)"))
        } else if lacking != 0 {
            Some(format!("session: the peer did not accept requirements {lacking:#06x}"))
        } else {
            None
        };
        match problem {
            Some(detail) => self.abort_provider(ProviderReason::InvalidParameter, Some(1), detail),
            None => self.up.push_back(Indication::Accepted { values: cpa.values }),
        }
    }

    fn refused(&mut self, refuse: &session::Refuse) {
        if !self.enter(Event::Cpr) {
            return;
        }
        let mut detail = crate::session::refusal(refuse.reason);
        let mut transient = crate::session::is_congestion(refuse.reason);
        let mut values = Vec::new();
        if !refuse.user_data.is_empty() {
            match pdu::decode_cpr(&refuse.user_data) {
                Ok(cpr) => {
                    if let Some(reason) = cpr.provider_reason {
                        transient = reason == provider_reason::TEMPORARY_CONGESTION;
                        let name = provider_reason::name(reason);
                        detail = format!(
                            "presentation: CPR, provider-reason {reason}: {name} (X.226 6.2.5.5)"
                        );
                    }
                    values = cpr.values;
                }
                Err(e) => {
                    detail = format!("{detail}, with {e}: {}", shown::value(&refuse.user_data));
                }
            }
        }
        self.up.push_back(Indication::Refused { values, transient, detail });
    }
}

/// event-identifier of an ARP PPDU (8.2) for an event from below.
fn event_identifier(event: Event) -> Option<i64> {
    match event {
        Event::Cp | Event::CpRefused => Some(0),
        Event::Cpa => Some(1),
        Event::Cpr => Some(2),
        Event::Td => Some(7),
        Event::SRelInd => Some(14),
        Event::SRelCnf | Event::SRelCnfCollision => Some(15),
        _ => None,
    }
}
