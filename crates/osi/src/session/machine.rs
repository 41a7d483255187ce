//! The session protocol machine: one session connection on one transport connection, driven by
//! [`super::table`].

#[cfg(test)]
mod cells;

use super::pdu::{AcceptSpdu, ConnectSpdu, Spdu, VERSION_1, VERSION_2};
use super::segments::Segments;
use super::service::{Connect, ConnectionReference, Indication, Request, requirements};
use super::table::{Action, Event, State, Table};
use super::tsdu::{Decoder, Item, Rejected};
use super::variables::{Facts, Variables};
use crate::api::{Role, calls_another};
use crate::lower::{LowerConfig, Misuse};
use crate::table::{Automaton, Entered, Lacking, Step};
use base::time::Instant;
use bytes::Bytes;
use std::collections::VecDeque;

/// The functional units this machine knows.
pub const SUPPORTED: u16 = requirements::HALF_DUPLEX
    | requirements::DUPLEX
    | requirements::MINOR_SYNC
    | requirements::ACTIVITY
    | requirements::EXCEPTIONS;

/// An output of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// T-CONNECT.request.
    ConnectTransport,
    /// T-DATA.request in pieces.
    Data {
        /// The piece.
        bytes: Bytes,
        /// Whether it ends the TSDU.
        last: bool,
    },
    /// End the TSDU being sent where it is.
    Truncate,
    /// T-DISCONNECT.request.
    DisconnectTransport,
    /// Indicates to the user.
    Indication(Indication),
}

/// The parameters of an event.
#[derive(Clone, Debug)]
pub(super) enum With {
    /// Nothing.
    Nothing,
    /// A primitive of the user.
    Request(Request),
    /// An SPDU of the peer.
    Spdu(Spdu),
    /// Octets that are not an SPDU.
    Rejected(Rejected),
    /// The transport connection's end.
    Lost {
        /// Reason of the peer's transport layer, where it refused the connection.
        refused: Option<u8>,
        /// For the log.
        detail: String,
    },
    /// An internal error, for the log.
    Fault(String),
}

/// What happens to the user information of the DT being received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Receiving {
    #[default]
    Discard,
    Deliver,
}

/// One session connection.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) config: LowerConfig,
    pub(super) automaton: Automaton<Table>,
    pub(super) deadline: Option<Instant>,
    pub(super) variables: Variables,
    pub(super) decoder: Decoder,
    pub(super) receiving: Receiving,
    /// Inside an SSDU that we send.
    pub(super) sending: bool,
    /// The protocol version in force, as a bit.
    pub(super) version: u8,
    /// Cuts what we send, where TSDUs have a maximum size.
    pub(super) segments: Option<Segments>,
    /// The S-CONNECT.request, until the transport connection is there.
    pub(super) request: Option<Connect>,
    /// Of the CN: reference, functional units, token setting.
    pub(super) reference: ConnectionReference,
    pub(super) proposed: u16,
    pub(super) token_setting: u8,
    /// TSDU maximum size that is answered, from and to the initiator.
    pub(super) tsdu_maximum: Option<(u16, u16)>,
    /// The provider's reason to refuse the CN being judged.
    pub(super) refusal: u8,
    /// What is wrong with the AC being judged.
    pub(super) unacceptable: Option<&'static str>,
    /// S-TOKEN-PLEASE user data kept in STA18.
    pub(super) please: Option<Bytes>,
    /// S-RELEASE.response user data kept in STA09.
    pub(super) response: Bytes,
    /// Why the connection was refused, for the log.
    pub(super) detail: Option<String>,
    pub(super) out: VecDeque<Output>,
}

impl Machine {
    /// A machine at rest.
    pub fn new(config: LowerConfig) -> Machine {
        let variables = Variables { vtca: config.role == Role::Responder, ..Variables::default() };
        Machine {
            config,
            automaton: Automaton::new(),
            deadline: None,
            variables,
            decoder: Decoder::default(),
            receiving: Receiving::default(),
            sending: false,
            version: VERSION_2,
            segments: None,
            request: None,
            reference: ConnectionReference::default(),
            proposed: 0,
            token_setting: 0,
            tsdu_maximum: None,
            refusal: 0,
            unacceptable: None,
            please: None,
            response: Bytes::new(),
            detail: None,
            out: VecDeque::new(),
        }
    }

    /// A primitive of the user.
    ///
    /// # Errors
    /// [`Misuse`] where the table or a parameter's range forbids it; nothing is changed then.
    pub fn request(&mut self, now: Instant, request: Request) -> Result<(), Misuse> {
        let event = event_of_request(&request);
        super::limits::check(&request)?;
        if self.version == VERSION_1 {
            super::limits::check_version_1(&request)?;
        }
        self.serial_fits(event)?;
        let acceptable = match &request {
            Request::Accept(accept) => one_way(self.proposed & accept.requirements & SUPPORTED),
            Request::Connect(connect) => one_way(connect.requirements),
            _ => true,
        };
        if !acceptable {
            return Err(Misuse {
                request: primitive(event),
                why: "needs one of half-duplex and duplex".to_owned(),
                clause: "X.225 7.4.2",
            });
        }
        let facts = self.facts_of_request(&request);
        let state = self.automaton.state();
        let cuts_short =
            matches!(event, Event::Sdtreq | Event::Suabreq | Event::Sactireq | Event::Sactdreq);
        if self.sending && !cuts_short && state != State::Sta20 {
            let why = format!("inside an SSDU, state {state:?}");
            return Err(Misuse { request: primitive(event), why, clause: "X.225 7.11.2" });
        }
        let entered = self.enter(event, &facts);
        if entered.step == Step::Misuse {
            let why = format!("state {state:?}");
            return Err(Misuse { request: primitive(event), why, clause: entered.clause });
        }
        self.take(now, &entered, With::Request(request));
        Ok(())
    }

    /// T-CONNECT indication (responder) or confirm (initiator).
    pub fn transport_connected(&mut self, now: Instant) {
        let event = if self.variables.vtca { Event::Tconind } else { Event::Tconcnf };
        self.on(now, event, &Facts::default(), With::Nothing);
    }

    /// T-DISCONNECT.indication.
    pub fn transport_lost(&mut self, now: Instant, refused: Option<u8>, detail: String) {
        self.on(now, Event::Tdisind, &Facts::default(), With::Lost { refused, detail });
    }

    /// T-DATA.indication in pieces.
    pub fn data(&mut self, now: Instant, bytes: Bytes, last: bool) {
        match self.decoder.push(bytes, last) {
            Ok(items) => items.into_iter().for_each(|item| self.item(now, item)),
            Err(rejected) => {
                self.receiving = Receiving::Discard;
                self.on(now, Event::Invalid, &Facts::default(), With::Rejected(rejected));
            }
        }
    }

    /// The deadline may have passed.
    pub fn tick(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.on(now, Event::Tim, &Facts::default(), With::Nothing);
        }
    }

    /// When to call [`Machine::tick`].
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Octets held between calls: of a TSDU that is being collected, and user data of ours that waits
    /// for the peer.
    pub fn held(&self) -> usize {
        let request = self.request.as_ref().map_or(0, |r| r.user_data.len());
        let please = self.please.as_ref().map_or(0, Bytes::len);
        let segments = self.segments.as_ref().map_or(0, Segments::held);
        self.decoder.held() + request + please + self.response.len() + segments
    }

    /// Most octets [`Machine::held`] ever gives, but for those of segmenting.
    pub const MAX_HELD: usize = super::tsdu::LIMIT + 3 * super::pdu::MAX_USER_DATA;

    /// Most octets of segmenting: with a peer that knows version 1 only.
    pub const MAX_SEGMENTS: usize = Segments::MAX_HELD;

    /// The state, for tests.
    #[cfg(test)]
    pub(crate) fn state(&self) -> State {
        self.automaton.state()
    }

    /// Whether there are tokens and all are ours.
    pub fn owns_tokens(&self) -> bool {
        let available = self.variables.available();
        available != 0 && self.variables.owned & available == available
    }

    /// Why the connection was refused, for the log.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    fn item(&mut self, now: Instant, item: Item) {
        match item {
            Item::Spdu(spdu) => {
                let event = event_of_spdu(&spdu);
                let facts = self.facts_of_spdu(&spdu);
                if event == Event::Dt {
                    self.receiving = Receiving::Discard;
                }
                self.on(now, event, &facts, With::Spdu(spdu));
            }
            Item::Data { bytes, last } => {
                // The state may have changed since the DT began, by an exception of ours.
                let wanted = self.automaton.offers(Event::Dt, Action::DataIndication);
                if self.receiving == Receiving::Deliver && wanted {
                    self.indicate(Indication::Data { bytes, last });
                } else {
                    self.receiving = Receiving::Discard;
                }
            }
        }
    }

    fn enter(&mut self, event: Event, facts: &Facts) -> Entered<Table> {
        self.automaton.enter_if(event, |when| self.variables.holds(when, facts))
    }

    /// Takes an event and performs the action of its cell.
    fn on(&mut self, now: Instant, event: Event, facts: &Facts, with: With) {
        let entered = self.enter(event, facts);
        self.take(now, &entered, with);
    }

    /// Gives the connection up after an internal error.
    pub(super) fn fail(&mut self, now: Instant, detail: String) {
        self.on(now, Event::Fail, &Facts::default(), With::Fault(detail));
    }

    fn take(&mut self, now: Instant, entered: &Entered<Table>, with: With) {
        let state = self.automaton.state();
        if state != entered.before {
            // [3], [4]: TIM runs while we wait for the end, and, as a local matter, for what the
            // peer's provider has to answer by itself. What its user answers is for the layers above
            // to bound.
            self.deadline = match state {
                State::Sta01C | State::Sta02A | State::Sta03 | State::Sta16 | State::Sta18 => {
                    Some(now + self.config.setup_timeout)
                }
                _ => None,
            };
        }
        match entered.step {
            Step::Do(action) => {
                if let Err(Lacking) = self.perform(now, entered, action, with) {
                    self.fail(now, entered.fault());
                }
            }
            Step::Nothing => {}
            Step::Misuse => self.fail(now, entered.to_string()),
            Step::ProtocolError => self.protocol_error(entered, with),
        }
    }

    fn facts_of_request(&self, request: &Request) -> Facts {
        match request {
            Request::MinorSyncResponse { serial } => Facts { serial: *serial, ..Facts::default() },
            Request::GiveTokens | Request::PleaseTokens { .. } => {
                Facts { tokens: self.variables.available(), ..Facts::default() }
            }
            _ => Facts::default(),
        }
    }

    fn facts_of_spdu(&mut self, spdu: &Spdu) -> Facts {
        match spdu {
            Spdu::MinorSync { serial, .. }
            | Spdu::MinorSyncAck(serial)
            | Spdu::ActivityEnd(serial)
            | Spdu::ActivityEndAck(serial) => Facts { serial: *serial, ..Facts::default() },
            Spdu::GiveTokens(tokens) | Spdu::PleaseTokens { tokens, .. } => {
                Facts { tokens: *tokens, ..Facts::default() }
            }
            Spdu::Connect(connect) => {
                let refusal = self.judge(connect);
                self.refusal = refusal.unwrap_or_default();
                Facts { acceptable: refusal.is_none(), ..Facts::default() }
            }
            Spdu::Accept(accept) => {
                self.unacceptable = self.fault_of(accept);
                Facts { acceptable: self.unacceptable.is_none(), ..Facts::default() }
            }
            _ => Facts::default(),
        }
    }

    /// The provider's reason to refuse a CN (X.225 8.3.5.10).
    fn judge(&self, connect: &ConnectSpdu) -> Option<u8> {
        const SELECTOR_UNKNOWN: u8 = 129;
        const VERSION_UNSUPPORTED: u8 = 132;
        const RESTRICTION: u8 = 134;
        if calls_another(connect.called.as_ref(), self.config.local.session.as_ref()) {
            return Some(SELECTOR_UNKNOWN);
        }
        if connect.versions & self.config.versions() == 0 {
            return Some(VERSION_UNSUPPORTED);
        }
        let too_much = connect.overflow || connect.user_data.len() > super::pdu::MAX_USER_DATA;
        too_much.then_some(RESTRICTION)
    }

    /// The field of an AC that answers what we did not propose (X.225 7.4.3).
    fn fault_of(&self, accept: &AcceptSpdu) -> Option<&'static str> {
        // Absent, it is version 1 (X.225 8.3.2).
        if accept.version.is_some_and(|version| version & self.config.versions() == 0) {
            return Some("version number");
        }
        let units = accept.requirements & self.proposed & SUPPORTED;
        (!one_way(units)).then_some("session user requirements")
    }

    pub(super) fn indicate(&mut self, indication: Indication) {
        self.out.push_back(Output::Indication(indication));
    }
}

/// Whether half-duplex or duplex is chosen, not both.
fn one_way(units: u16) -> bool {
    (units & (requirements::HALF_DUPLEX | requirements::DUPLEX)).is_power_of_two()
}

fn event_of_request(request: &Request) -> Event {
    match request {
        Request::Connect(_) => Event::Sconreq,
        Request::Accept(_) => Event::SconrspAccept,
        Request::Refuse(_) => Event::SconrspReject,
        Request::Data { .. } => Event::Sdtreq,
        Request::GiveTokens => Event::Sgtreq,
        Request::GiveControl => Event::Scgreq,
        Request::PleaseTokens { .. } => Event::Sptreq,
        Request::ActivityStart { .. } => Event::Sactsreq,
        Request::ActivityResume(_) => Event::Sactrreq,
        Request::ActivityInterrupt(_) => Event::Sactireq,
        Request::ActivityInterruptResponse => Event::Sactirsp,
        Request::ActivityDiscard(_) => Event::Sactdreq,
        Request::ActivityDiscardResponse => Event::Sactdrsp,
        Request::ActivityEnd => Event::Sactereq,
        Request::ActivityEndResponse => Event::Sactersp,
        Request::MinorSync => Event::Ssynmreq,
        Request::MinorSyncResponse { .. } => Event::Ssynmrsp,
        Request::ExceptionReport(_) => Event::Suerreq,
        Request::Release { .. } => Event::Srelreq,
        Request::ReleaseResponse { .. } => Event::Srelrsp,
        Request::Abort { .. } => Event::Suabreq,
    }
}

fn event_of_spdu(spdu: &Spdu) -> Event {
    match spdu {
        Spdu::Connect(_) => Event::Cn,
        Spdu::Accept(_) => Event::Ac,
        Spdu::Refuse { .. } => Event::Rf,
        Spdu::Finish { .. } => Event::Fn,
        Spdu::Disconnect { .. } => Event::Dn,
        Spdu::Abort { .. } => Event::Ab,
        Spdu::AbortAccept => Event::Aa,
        Spdu::Data(_) => Event::Dt,
        Spdu::GiveTokens(_) => Event::Gt,
        Spdu::PleaseTokens { .. } => Event::Pt,
        Spdu::GiveControl => Event::Gtc,
        Spdu::GiveControlAck => Event::Gta,
        Spdu::MinorSync { .. } => Event::Mip,
        Spdu::MinorSyncAck(_) => Event::Mia,
        Spdu::ActivityStart(_) => Event::As,
        Spdu::ActivityResume(_) => Event::Ar,
        Spdu::ActivityInterrupt(_) => Event::Ai,
        Spdu::ActivityInterruptAck => Event::Aia,
        Spdu::ActivityDiscard(_) => Event::Ad,
        Spdu::ActivityDiscardAck => Event::Ada,
        Spdu::ActivityEnd(_) => Event::Ae,
        Spdu::ActivityEndAck(_) => Event::Aea,
        Spdu::ExceptionData(_) => Event::Ed,
        Spdu::ExceptionReport => Event::Er,
    }
}

/// The service's name of a request event.
pub(super) fn primitive(event: Event) -> &'static str {
    match event {
        Event::Sconreq => "S-CONNECT.request",
        Event::SconrspAccept | Event::SconrspReject => "S-CONNECT.response",
        Event::Sdtreq => "S-DATA.request",
        Event::Sgtreq => "S-TOKEN-GIVE.request",
        Event::Scgreq => "S-CONTROL-GIVE.request",
        Event::Sptreq => "S-TOKEN-PLEASE.request",
        Event::Sactsreq => "S-ACTIVITY-START.request",
        Event::Sactrreq => "S-ACTIVITY-RESUME.request",
        Event::Sactireq => "S-ACTIVITY-INTERRUPT.request",
        Event::Sactirsp => "S-ACTIVITY-INTERRUPT.response",
        Event::Sactdreq => "S-ACTIVITY-DISCARD.request",
        Event::Sactdrsp => "S-ACTIVITY-DISCARD.response",
        Event::Sactereq => "S-ACTIVITY-END.request",
        Event::Sactersp => "S-ACTIVITY-END.response",
        Event::Ssynmreq => "S-SYNC-MINOR.request",
        Event::Ssynmrsp => "S-SYNC-MINOR.response",
        Event::Suerreq => "S-U-EXCEPTION-REPORT.request",
        Event::Srelreq => "S-RELEASE.request",
        Event::Srelrsp => "S-RELEASE.response",
        Event::Suabreq => "S-U-ABORT.request",
        _ => "not a request",
    }
}
