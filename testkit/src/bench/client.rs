//! The other end of a connection of a bench, played with a whole stack: a peer or a user.

use super::Bench;
use super::script::{Answer, Disposition, session_refusal};
use crate::build::{Submission, name};
use base::ber::{Element, Writer};
use base::{AssociationId, Instant};
use bytes::Bytes;
use node::{Input, ListenerId};
use osi::api::{Indication, Payload, Request, Role, Selectors};
use osi::profiles;
use osi::session::service::ConnectionReference;
use osi::stack::Association;
use p1::bind::{Credentials, MtaAuthentication, MtaBindArgument, MtaBindError};
use p1::p3::{DeliveryResult, MtsBind, MtsBindError, ObjectName, operation};
use p7::MsBindError;
use std::collections::BTreeMap;
use std::time::Duration;

/// The outcome of a bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is no answer yet.
    Nothing,
    /// The association is open.
    Open,
    /// The bind error, as text.
    Refused(String),
    /// Another layer refused it, with its detail.
    RefusedBelow(String),
    /// The association was aborted.
    Aborted(String),
}

/// What an invocation was answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAnswer {
    /// A result.
    Result,
    /// An error of this code.
    Error(i64),
    /// A reject.
    Reject,
}

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    P1,
    P3,
    P7,
}

/// A stack at the other end.
pub(super) struct Client {
    pub(super) stack: Association,
    spoken: Spoken,
    outcome: Outcome,
    /// The bind result.
    pub(super) bound: Bytes,
    /// A transfer of its failed.
    failed: bool,
    /// Invocations so far.
    invokes: i64,
    /// What its invocations were answered with.
    answers: Vec<(i64, ClientAnswer)>,
    /// What the node invoked and it has not answered.
    invoked: Option<(i64, i64)>,
    /// The result or error that arrives: of which invocation, and its octets so far.
    returning: Option<(i64, Vec<u8>)>,
    /// Results and parameters of errors that have come, whole.
    pub(super) returned: BTreeMap<i64, Vec<u8>>,
    /// The argument of an alert that arrives.
    argument: Vec<u8>,
    /// Alerts that have come: when, and their arguments.
    pub(super) alerts: Vec<(Instant, Vec<u8>)>,
}

impl Client {
    fn new(config: osi::api::Config, role: Role, spoken: Spoken) -> Client {
        let (outcome, bound) = (Outcome::Nothing, Bytes::new());
        let stack = Association::new(config, role);
        Client {
            stack,
            spoken,
            outcome,
            bound,
            failed: false,
            invokes: 0,
            answers: Vec::new(),
            invoked: None,
            returning: None,
            returned: BTreeMap::new(),
            argument: Vec::new(),
            alerts: Vec::new(),
        }
    }

    /// A peer to which the node connects.
    pub(super) fn responder() -> Client {
        let config = profiles::p1(Selectors::default(), Selectors::default(), <_>::default());
        Client::new(config, Role::Responder, Spoken::P1)
    }
}

pub(super) fn reference() -> ConnectionReference {
    ConnectionReference {
        user: Bytes::from_static(b"\x04\x01a"),
        common: Bytes::from_static(b"\x17\x0D260102030405Z"),
        additional: Bytes::new(),
    }
}

impl Bench {
    /// A peer connects and binds.
    pub fn mta(
        &mut self,
        listener: ListenerId,
        from: &str,
        name: &str,
        password: &str,
    ) -> AssociationId {
        let password = Credentials::simple(password.as_bytes().to_vec());
        self.mta_with(listener, from, MtaAuthentication::new(name, password))
    }

    /// A peer connects and binds with this argument.
    pub fn mta_with(
        &mut self,
        listener: ListenerId,
        from: &str,
        who: MtaAuthentication,
    ) -> AssociationId {
        let id = self.connect(listener, from);
        let mut writer = Writer::new();
        MtaBindArgument::Authenticated(who).write(&mut writer);
        let config = profiles::p1(Selectors::default(), Selectors::default(), reference());
        self.open(id, config, writer.into_vec().into(), Spoken::P1);
        id
    }

    /// A user of this surname connects and binds.
    pub fn user(&mut self, from: &str, surname: &str, password: &'static str) -> AssociationId {
        let id = self.connect(super::P3, from);
        self.user_on(id, surname, password);
        id
    }

    /// A user of this surname binds on a connection.
    pub fn user_on(&mut self, id: AssociationId, surname: &str, password: &'static str) {
        self.address_on(id, &super::user_address(surname), password);
    }

    /// A user of this address binds on a connection.
    pub fn address_on(&mut self, id: AssociationId, address: &str, password: &'static str) {
        let agent = ObjectName::UserAgent(name(address));
        self.user_with(id, &MtsBind::new(agent, Credentials::simple(password)));
    }

    /// A user binds on a connection with this argument.
    pub fn user_with(&mut self, id: AssociationId, bind: &MtsBind) {
        let mut writer = Writer::new();
        bind.write(&mut writer);
        let config = profiles::p3(Selectors::default(), Selectors::default(), reference());
        self.open(id, config, writer.into_vec().into(), Spoken::P3);
    }

    /// Somebody connects and asks for the recovery of the association that a peer of [`Bench::mta`] lost, if `is_right`, or
    /// of one that there never was.
    pub fn recovery(&mut self, listener: ListenerId, from: &str, is_right: bool) -> AssociationId {
        let id = self.connect(listener, from);
        let config = profiles::p1(Selectors::default(), Selectors::default(), reference());
        let mut lost = reference();
        if !is_right {
            lost.user = Bytes::from_static(b"\x04\x01b");
        }
        let request = Request::Recover { reference: lost, received: None };
        self.ask(id, config, request, Spoken::P1);
        id
    }

    pub(super) fn open(
        &mut self,
        id: AssociationId,
        config: osi::api::Config,
        bind: Bytes,
        spoken: Spoken,
    ) {
        self.ask(id, config, Request::Open { bind }, spoken);
    }

    fn ask(
        &mut self,
        id: AssociationId,
        mut config: osi::api::Config,
        request: Request,
        spoken: Spoken,
    ) {
        config.setup_timeout = Duration::from_secs(600);
        let client = Client::new(config, Role::Initiator, spoken);
        self.connections.get_mut(&id).expect("a connection").client = Some(client);
        self.request(id, request);
    }

    pub(super) fn client(&self, id: AssociationId) -> &Client {
        self.connections.get(&id).and_then(|c| c.client.as_ref()).expect("a client")
    }

    /// The outcome of a bind.
    pub fn outcome(&self, id: AssociationId) -> Outcome {
        self.client(id).outcome.clone()
    }

    /// Messages of all grades that wait, as the bind result states.
    pub fn messages_waiting(&self, id: AssociationId) -> i64 {
        let bound = Element::parse(&self.client(id).bound).expect("BER");
        let waiting = MtsBind::read(&bound).expect("a bind result").messages_waiting;
        let waiting = waiting.expect("messages-waiting");
        [waiting.urgent, waiting.normal, waiting.non_urgent].iter().map(|q| q.messages).sum()
    }

    /// Whether a transfer of a client failed.
    pub fn has_failed(&self, id: AssociationId) -> bool {
        self.client(id).failed
    }

    /// A client makes a request.
    pub fn request(&mut self, id: AssociationId, request: Request) {
        let now = self.now;
        let connection = self.connections.get_mut(&id).expect("a connection");
        let client = connection.client.as_mut().expect("a client");
        client.stack.handle(now, osi::api::Input::Request(request));
        self.drain_client(id);
        self.settle();
    }

    /// A client invokes the submission of a content of this length.
    pub fn submit(&mut self, id: AssociationId, submission: &Submission, length: u64) {
        let client = self.connections.get_mut(&id).and_then(|c| c.client.as_mut());
        let client = client.expect("a client");
        client.invokes += 1;
        let invoke = client.invokes;
        let head = submission.envelope().argument_head(length).into();
        let argument = Payload { head, content_length: length, tail: Bytes::new() };
        let (syntax, operation) =
            (profiles::abstract_syntax::msse(), operation::MESSAGE_SUBMISSION);
        self.request(id, Request::Invoke { invoke, syntax, operation, argument });
    }

    /// A client invokes an operation. Gives its invoke identifier.
    pub fn invoke(
        &mut self,
        id: AssociationId,
        (syntax, operation): (base::ber::Oid, i64),
        argument: Vec<u8>,
    ) -> i64 {
        let client = self.connections.get_mut(&id).and_then(|c| c.client.as_mut());
        let client = client.expect("a client");
        client.invokes += 1;
        let invoke = client.invokes;
        let argument = Payload::whole(argument);
        self.request(id, Request::Invoke { invoke, syntax, operation, argument });
        invoke
    }

    /// What an invocation of a client was answered with.
    pub fn answer_to(&self, id: AssociationId, invoke: i64) -> Option<ClientAnswer> {
        let answers = &self.client(id).answers;
        answers.iter().find(|(of, _)| *of == invoke).map(|(_, answer)| *answer)
    }

    /// The peer confirms the transfer that waited longest.
    pub fn confirm(&mut self) {
        let id = self.script.unconfirmed.pop_front().expect("a transfer that is not confirmed");
        self.request(id, Request::TransferSecured);
    }

    /// Carries out what a client's stack wants.
    pub(super) fn drain_client(&mut self, id: AssociationId) {
        while let Some(connection) = self.connections.get_mut(&id) {
            let Some(client) = &mut connection.client else { return };
            let Some(output) = client.stack.poll() else { return };
            match output {
                osi::api::Output::Send(bytes) => match self.withheld.get_mut(&id) {
                    Some(octets) => octets.extend_from_slice(&bytes),
                    None => self.inputs.push_back(Input::Bytes { association: id, bytes }),
                },
                osi::api::Output::Close => {
                    connection.gone = true;
                    self.inputs.push_back(Input::Closed { association: id, error: None });
                }
                osi::api::Output::Indication(indication) => self.indicated(id, indication),
            }
        }
    }

    fn indicated(&mut self, id: AssociationId, indication: Indication) {
        let (now, script) = (self.now, &mut self.script);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (channel, disposition) =
            (connection.channel.unwrap_or(0), script.disposition(connection.entry));
        let Some(client) = &mut connection.client else { return };
        let request = match indication {
            Indication::Open { dialogue, .. } => match script.answer(channel) {
                Answer::Session(reason) => {
                    let bytes = session_refusal(reason);
                    return self.inputs.push_back(Input::Bytes { association: id, bytes });
                }
                _ => {
                    script.proposed.push(dialogue);
                    script.bind_request(channel, dialogue)
                }
            },
            Indication::RecoverAsked { .. } => {
                script.recoveries += 1;
                if let Answer::Session(reason) = script.answer(channel) {
                    let bytes = session_refusal(reason);
                    return self.inputs.push_back(Input::Bytes { association: id, bytes });
                }
                script.recovery_request(channel)
            }
            Indication::TransferStart { .. } => {
                script.checkpoints.push((channel, client.stack.checkpoint()));
                return;
            }
            Indication::Checkpoint { octets } => Request::Stored { octets },
            Indication::TransferEnd => match disposition {
                Disposition::Take => Request::TransferSecured,
                Disposition::Keep => return script.unconfirmed.push_back(id),
                Disposition::Abort(reason) => Request::Abort(reason),
                Disposition::Refuse(reason) => Request::TransferRefused(reason),
                Disposition::Cut => return self.cut_at_the_end(id),
            },
            Indication::Invoked { invoke, operation } => {
                client.invoked = Some((invoke, operation));
                return;
            }
            Indication::Data { bytes, last } => {
                let Some((invoke, operation)) = client.take_data(&bytes, last) else { return };
                let result = if operation == p7::operation::ALERT {
                    client.alerts.push((now, std::mem::take(&mut client.argument)));
                    Payload::whole(p7::operation::EMPTY_RESULT.to_vec())
                } else {
                    script.delivered += 1;
                    let mut writer = Writer::new();
                    DeliveryResult::default().write(&mut writer);
                    Payload::whole(writer.into_vec())
                };
                Request::Result { invoke, operation, result }
            }
            other => return client.learn(other),
        };
        client.stack.handle(now, osi::api::Input::Request(request));
    }

    fn cut_at_the_end(&mut self, id: AssociationId) {
        self.forget(id);
        if let Some(octets) = self.script.taken {
            self.inputs.push_back(Input::Taken { association: id, octets });
            self.script.taken = Some(octets + 50);
        }
        let error = Some("connection reset".to_owned());
        self.inputs.push_back(Input::Closed { association: id, error });
    }
}

impl Client {
    /// Octets of what arrives; what the node invoked, once its argument is whole.
    fn take_data(&mut self, bytes: &[u8], last: bool) -> Option<(i64, i64)> {
        if let Some((_, octets)) = &mut self.returning {
            octets.extend_from_slice(bytes);
            if last {
                self.returned.extend(self.returning.take());
            }
            return None;
        }
        if self.invoked.is_some_and(|(_, operation)| operation == p7::operation::ALERT) {
            self.argument.extend_from_slice(bytes);
        }
        if last { self.invoked.take() } else { None }
    }

    /// Notes the outcome of its bind or its transfer.
    fn learn(&mut self, indication: Indication) {
        self.outcome = match indication {
            Indication::Opened { bind, .. } => {
                self.bound = bind;
                Outcome::Open
            }
            Indication::Refused { bind_error: Some(error), .. } => {
                let error = Element::parse(&error).expect("BER");
                Outcome::Refused(match self.spoken {
                    Spoken::P1 => MtaBindError::read(&error).expect("a bind error").to_string(),
                    Spoken::P3 => MtsBindError::read(&error).expect("a bind error").to_string(),
                    Spoken::P7 => MsBindError::read(&error).expect("a bind error").to_string(),
                })
            }
            Indication::Refused { detail, .. } => Outcome::RefusedBelow(detail),
            Indication::Aborted { detail, .. } => Outcome::Aborted(detail),
            Indication::TransferFailed { .. } => {
                self.failed = true;
                return;
            }
            Indication::Returned { invoke } => {
                self.returning = Some((invoke, Vec::new()));
                return self.answers.push((invoke, ClientAnswer::Result));
            }
            Indication::ReturnedError { invoke, error } => {
                self.returning = Some((invoke, Vec::new()));
                return self.answers.push((invoke, ClientAnswer::Error(error)));
            }
            Indication::Rejected { invoke: Some(invoke), .. } => {
                return self.answers.push((invoke, ClientAnswer::Reject));
            }
            _ => return,
        };
    }
}
