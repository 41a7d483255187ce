//! The presentation protocol machine (X.226 clause 6).

#[cfg(test)]
mod cells;

use super::connect::Refusal;
use super::pdu::{self, AbortPpdu, ProviderReason, Verdict};
use super::receive::Receive;
use super::service::{Contexts, Indication, Request, Value};
use super::table::{Action, Event, Table};
use crate::api::{Config, Role, Service};
use crate::session::service as session;
use crate::shown;
use crate::table::{Automaton, Entered, Lacking, Performed, Step};
use base::ber::{Error, Fault, Oid};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Pieces of P-DATA below this many octets are put together before they go to the session.
const SMALL: usize = 4096;

/// A P-DATA.request that is not complete yet.
#[derive(Clone, Debug)]
struct Sending {
    small: BytesMut,
    trailer: Bytes,
}

/// The parameters of an event.
#[derive(Clone, Debug)]
pub(super) enum With {
    /// A request of ACSE, RTSE or ROSE.
    Request(Request),
    /// A CP that can be taken up: the contexts accepted, and the indication to issue.
    Cp { verdicts: Vec<Verdict>, contexts: Contexts, indication: Indication },
    /// A CP that cannot: a result for each context, and the error.
    Refusal(Vec<Verdict>, Refusal),
    /// An S-CONNECT confirm, accepting.
    Accept(session::Accept),
    /// An S-CONNECT confirm, refusing.
    Refuse(session::Refuse),
    /// A piece of an S-DATA, and whether it is the last.
    Data(Bytes, bool),
    /// An indication to pass up.
    Up(Indication),
    /// The values of an ARU.
    Aru(Vec<Value>),
    /// The diagnostic of a P-P-ABORT.
    Aborted(String),
    /// The event whose PPDU is invalid, and the error.
    Invalid(Event, Error),
    /// The diagnostic of an ARP for what is not wrong with the octets of a PPDU, with its reason and
    /// event-identifier.
    Detail(ProviderReason, Option<i64>, String),
}

/// The machine. Requests and indications go in by method; its requests to the session are taken from
/// `down`, its indications from `up`.
#[derive(Clone, Debug)]
pub(crate) struct Presentation {
    automaton: Automaton<Table>,
    pub(super) role: Role,
    pub(super) local: crate::api::Selectors,
    pub(super) remote: crate::api::Selectors,
    /// The contexts that this end proposes as initiator, or supports as responder.
    pub(super) offered: Vec<crate::api::Context>,
    /// Abstract syntaxes without which there is no connection: of each of these sets one.
    required: Vec<Vec<Oid>>,
    /// Session functional units without which there is no connection.
    pub(super) requirements: u16,
    pub(super) contexts: Contexts,
    pub(super) verdicts: Vec<Verdict>,
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
        let mut binds = vec![config.bind_syntax.clone()];
        if role == Role::Responder {
            binds.extend_from_slice(&config.other_bind_syntaxes);
        }
        let mut required = vec![vec![acse], binds];
        let requirements = match config.service {
            Service::Rtse(_) => {
                required.push(vec![config.transfer_syntax_owner.clone()]);
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
            automaton: Automaton::new(),
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

    /// A machine in this state, with all contexts proposed in force.
    #[cfg(test)]
    pub(crate) fn at(config: &Config, role: Role, state: super::table::State) -> Presentation {
        let contexts = config.contexts.iter().map(|c| (c.id, c.abstract_syntax.clone()));
        let contexts = Contexts(contexts.collect());
        let automaton = Automaton::at(state);
        Presentation { automaton, contexts, ..Presentation::new(config, role) }
    }

    /// The contexts in force; before the connection is accepted, the ones an initiator proposes.
    pub(crate) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// An abstract syntax that these contexts lack.
    pub(super) fn missing(&self, contexts: &Contexts) -> Option<&Oid> {
        let lacks = |set: &&Vec<Oid>| set.iter().all(|syntax| contexts.id_of(syntax).is_none());
        self.required.iter().find(lacks)?.first()
    }

    /// Octets that are held and not yet sent to the peer.
    pub(crate) fn held(&self) -> usize {
        self.sending.as_ref().map_or(0, |s| s.small.len() + s.trailer.len())
    }

    /// Most octets [`Presentation::held`] ever gives.
    pub(crate) const MAX_HELD: usize = SMALL + 6;

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
        self.on(event, With::Request(request));
    }

    /// Takes an event and performs the action of its cell.
    pub(super) fn on(&mut self, event: Event, with: With) {
        let entered = self.automaton.enter(event);
        match entered.step {
            Step::Do(action) => {
                if let Err(Lacking) = self.perform(action, with) {
                    self.fail(entered.fault());
                }
            }
            Step::Nothing => {}
            Step::Misuse => self.fail(entered.to_string()),
            Step::ProtocolError => self.protocol_error(&entered, with),
        }
    }

    /// Gives the connection up after a misuse.
    fn fail(&mut self, detail: String) {
        let with = With::Detail(ProviderReason::UnexpectedPpdu, None, detail);
        self.on(Event::Fail, with);
    }

    fn perform(&mut self, action: Action, with: With) -> Performed {
        match action {
            Action::SendCp => self.send_cp(with)?,
            Action::SendCpa => self.send_cpa(with)?,
            Action::SendCpr => self.send_cpr(with)?,
            Action::PConInd => self.connect_indication(with)?,
            Action::RefuseCp => self.refuse_cp(with)?,
            Action::PConCnfAccept => self.accepted(with)?,
            Action::PConCnfRefuse => self.refused(with)?,
            Action::SendTd => self.send_td(with)?,
            Action::PDtInd => self.data(with)?,
            Action::PassDown => self.pass_down(with)?,
            Action::PassUp => self.pass_up(with)?,
            Action::SendAru => self.send_aru(with)?,
            Action::PUAbInd => self.user_abort_indication(with)?,
            Action::PPAbInd => self.provider_abort_indication(with)?,
            Action::SendArp => self.fail_with_arp(with)?,
        }
        Ok(())
    }

    /// A primitive that the session carries under its own name.
    fn pass_down(&mut self, with: With) -> Performed {
        let With::Request(request) = with else { return Err(Lacking) };
        let down = match request {
            Request::Release(value) => {
                session::Request::Release { user_data: pdu::user_data(&value) }
            }
            Request::ReleaseResponse(value) => {
                self.answer_due = false;
                session::Request::ReleaseResponse { user_data: pdu::user_data(&value) }
            }
            Request::PleaseTokens(value) => {
                session::Request::PleaseTokens { user_data: pdu::user_data(&value) }
            }
            Request::Pass(request) => request,
            Request::Connect { .. }
            | Request::Accept { .. }
            | Request::Refuse { .. }
            | Request::DataStart { .. }
            | Request::Data { .. }
            | Request::DataCut
            | Request::Abort(_) => return Err(Lacking),
        };
        self.down.push_back(down);
        Ok(())
    }

    /// A primitive that the session indicates under its own name.
    fn pass_up(&mut self, with: With) -> Performed {
        let With::Up(indication) = with else { return Err(Lacking) };
        self.answer_due |= matches!(indication, Indication::Release(_));
        self.up.push_back(indication);
        Ok(())
    }

    /// TD, in pieces.
    fn send_td(&mut self, with: With) -> Performed {
        match with {
            With::Request(Request::DataStart { context, length }) => {
                let (head, trailer) = pdu::data_frame(context, length);
                self.sending = Some(Sending { small: BytesMut::from(&*head), trailer });
            }
            With::Request(Request::Data { bytes, last }) => self.send_data(bytes, last),
            With::Request(Request::DataCut) => self.sending = None,
            _ => return Err(Lacking),
        }
        Ok(())
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
            S::Accepted(accept) => self.on(Event::Cpa, With::Accept(accept)),
            S::Refused(refuse) => self.on(Event::Cpr, With::Refuse(refuse)),
            S::Data { bytes, last } => {
                if self.is_whole(false) {
                    self.on(Event::Td, With::Data(bytes, last));
                }
            }
            S::Release { user_data } => {
                if self.is_whole(false) {
                    self.framed(Event::SRelInd, &user_data, Indication::Release);
                }
            }
            S::Released { user_data } => {
                let event = if self.answer_due { Event::SRelCnfCollision } else { Event::SRelCnf };
                self.framed(event, &user_data, Indication::Released);
            }
            S::TokensPlease { user_data } => {
                self.framed(Event::PassInd, &user_data, Indication::PleaseTokens);
            }
            S::UserAbort { user_data } => self.aborted(&user_data),
            S::ProviderAbort { reason } => self.on(Event::SPAbInd, With::Aborted(reason)),
            other => {
                let ends_activity =
                    matches!(other, S::ActivityDiscard(_) | S::ActivityInterrupt(_));
                if self.is_whole(ends_activity) {
                    self.on(Event::PassInd, With::Up(Indication::Pass(other)));
                }
            }
        }
    }

    /// Aborts for what the peer sent.
    fn protocol_error(&mut self, entered: &Entered<Table>, with: With) {
        use ProviderReason as R;
        match with {
            With::Invalid(event, error) => {
                let detail = format!("presentation: {event:?}: {error} ({})", entered.clause);
                self.send_arp(R::InvalidParameter, event_identifier(event), detail);
            }
            With::Detail(reason, event, detail) => self.send_arp(reason, event, detail),
            With::Request(_)
            | With::Cp { .. }
            | With::Refusal(..)
            | With::Accept(_)
            | With::Refuse(_)
            | With::Data(..)
            | With::Up(_)
            | With::Aru(_)
            | With::Aborted(_) => {
                let reason = match entered.event {
                    Event::Td => R::UnexpectedPpdu,
                    _ => R::UnexpectedSessionPrimitive,
                };
                self.send_arp(reason, event_identifier(entered.event), entered.to_string());
            }
        }
    }

    /// A primitive whose user data is User-data held whole.
    fn framed(&mut self, event: Event, octets: &[u8], up: impl FnOnce(Vec<Value>) -> Indication) {
        match pdu::decode_values(octets) {
            Ok(values) => self.on(event, With::Up(up(values))),
            Err(e) => self.on(Event::Invalid, With::Invalid(event, e)),
        }
    }

    /// P-DATA.indication, in pieces.
    fn data(&mut self, with: With) -> Performed {
        let With::Data(bytes, last) = with else { return Err(Lacking) };
        if let Err(error) = self.receive(bytes, last) {
            self.invalid(Event::Td, error);
        }
        Ok(())
    }

    fn receive(&mut self, bytes: Bytes, last: bool) -> Result<(), Error> {
        let receive = self.receiving.get_or_insert_with(Receive::new);
        let up = &mut self.up;
        let nothing = receive.is_untouched() && bytes.is_empty();
        let result = receive.push(bytes, &self.contexts, &mut |i| up.push_back(i));
        let complete = receive.is_complete();
        result?;
        if last && nothing {
            // Nobody cuts short what has not begun.
            return Err(Error { fault: Fault::Truncated, field: Some("User-data") });
        }
        if last {
            self.receiving = None;
            self.cut_short = !complete;
            // Without activities nothing can excuse it.
            if self.requirements & session::requirements::ACTIVITY == 0 {
                self.is_whole(false);
            }
        }
        Ok(())
    }

    /// Whether the last P-DATA was whole. A sender may cut one short by ending its activity (X.225
    /// 7.32, 7.33); everything else after one is its error.
    fn is_whole(&mut self, ends_activity: bool) -> bool {
        let cut_short = std::mem::take(&mut self.cut_short);
        if ends_activity {
            self.receiving = None;
        } else if cut_short {
            let e = Error { fault: Fault::Truncated, field: Some("User-data") };
            self.invalid(Event::Td, e);
            return false;
        }
        true
    }

    pub(super) fn invalid(&mut self, event: Event, error: Error) {
        self.on(Event::Invalid, With::Invalid(event, error));
    }

    /// P-U-ABORT.request.
    fn send_aru(&mut self, with: With) -> Performed {
        let With::Request(Request::Abort(value)) = with else { return Err(Lacking) };
        let user_data = pdu::encode_aru(value.as_ref());
        self.down.push_back(session::Request::Abort { user_data });
        Ok(())
    }

    /// P-U-ABORT.indication. An ARU that cannot be read is indicated as an abort by the provider.
    fn user_abort_indication(&mut self, with: With) -> Performed {
        match with {
            With::Aru(values) => self.up.push_back(Indication::UserAbort(values)),
            with => self.provider_abort_indication(with)?,
        }
        Ok(())
    }

    /// P-P-ABORT.indication.
    fn provider_abort_indication(&mut self, with: With) -> Performed {
        let With::Aborted(detail) = with else { return Err(Lacking) };
        self.up.push_back(Indication::ProviderAbort { detail });
        Ok(())
    }

    /// An abort by this provider for another reason than the octets of a PPDU.
    fn fail_with_arp(&mut self, with: With) -> Performed {
        let With::Detail(reason, event, detail) = with else { return Err(Lacking) };
        self.send_arp(reason, event, detail);
        Ok(())
    }

    fn send_arp(&mut self, reason: ProviderReason, event: Option<i64>, detail: String) {
        self.receiving = None;
        self.sending = None;
        let user_data = pdu::encode_arp(reason, event);
        self.down.push_back(session::Request::Abort { user_data });
        self.up.push_back(Indication::ProviderAbort { detail });
    }

    fn aborted(&mut self, user_data: &[u8]) {
        match pdu::decode_abort(user_data) {
            Ok(AbortPpdu::User(values)) => self.on(Event::Aru, With::Aru(values)),
            Ok(AbortPpdu::Provider { reason, event }) => {
                let detail = format!(
                    "presentation: the peer sent ARP, provider-reason {reason:?}, \
                     event-identifier {event:?} (X.226 6.4.2)"
                );
                self.on(Event::Arp, With::Aborted(detail));
            }
            Err(e) => {
                // The connection is gone whatever the user data is.
                let text = shown::value(user_data);
                let detail = format!("presentation: S-U-ABORT with {e}: {text}");
                self.on(Event::Aru, With::Aborted(detail));
            }
        }
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
