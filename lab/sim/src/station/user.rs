//! A user at the end of a P3 association, as one machine: binds, submits one message after another, takes
//! them back, takes deliveries.

use base::Instant;
use base::ber::{Element, Writer};
use bytes::Bytes;
use osi::api::{Indication, Input, Output, Payload, Request, Role, Selectors};
use osi::profiles::{self, abstract_syntax};
use osi::stack::Association;
use p1::Credentials;
use p1::names::{MtsIdentifier, ORName};
use p1::p3::{
    ArgumentEvent, DeliveryParser, DeliveryResult, EMPTY_RESULT, MessageDeliveryEnvelope,
    MessageSubmissionEnvelope, MtsBind, ObjectName, ReportDelivery, SubmissionResult, operation,
};
use std::collections::VecDeque;

/// A message to submit. [`UserEvent::NeedContent`] requests its content.
#[derive(Clone, Debug)]
pub struct UserSubmission {
    /// Names the submission in events.
    pub tag: usize,
    /// The envelope.
    pub envelope: MessageSubmissionEnvelope,
    /// Octets of content.
    pub size: u64,
}

/// An output of a user: a request, or an event.
#[derive(Debug)]
pub enum UserEvent {
    /// Write to the connection.
    Write(Bytes),
    /// Close it.
    Close,
    /// The user is bound.
    Bound,
    /// The bind was refused, for this reason.
    Refused(String),
    /// Hand in 1 to `max` octets with [`SimulatedUser::content`].
    NeedContent {
        /// The submission.
        tag: usize,
        /// Position of the first octet.
        offset: u64,
        /// The most octets.
        max: usize,
    },
    /// A submission was answered.
    Answered {
        /// The submission.
        tag: usize,
        /// The MTS identifier, or the code of the error; -1 for a reject.
        result: Result<MtsIdentifier, i64>,
    },
    /// A cancelling was answered.
    Cancelled {
        /// The message.
        identifier: MtsIdentifier,
        /// The code of the error; -1 for a reject.
        result: Result<(), i64>,
    },
    /// A delivery begins.
    Delivery(Box<MessageDeliveryEnvelope>),
    /// Octets of its content.
    Content(Bytes),
    /// A delivery is complete; answer with [`SimulatedUser::take`] or [`SimulatedUser::refuse`].
    Delivered {
        /// Its invoke identifier.
        invoke: i64,
    },
    /// A report has arrived; answer with [`SimulatedUser::take_report`].
    Report {
        /// Its invoke identifier.
        invoke: i64,
        /// The report.
        report: Box<ReportDelivery>,
    },
    /// The MTA sent something that cannot be read.
    Broken(String),
}

/// What a user asks of his MTA, one at a time.
#[derive(Clone, Debug)]
enum Asked {
    Submission(UserSubmission),
    Cancelling(MtsIdentifier),
}

/// What received octets belong to.
#[derive(Debug)]
enum Unit {
    None,
    Result,
    Error(i64),
    Report(i64),
    Delivery(i64, Box<DeliveryParser>),
}

/// A user. After each call that takes a time, poll until there is nothing.
pub struct SimulatedUser {
    name: ORName,
    password: Bytes,
    deliveries: bool,
    stack: Option<Association>,
    bound: bool,
    waiting: VecDeque<Asked>,
    unanswered: Option<Asked>,
    unit: Unit,
    octets: Vec<u8>,
    invoke: i64,
    events: VecDeque<UserEvent>,
}

impl SimulatedUser {
    /// A user of this name, not bound; one that takes no deliveries does not propose the service.
    pub fn new(name: ORName, password: Bytes, deliveries: bool) -> SimulatedUser {
        SimulatedUser {
            name,
            password,
            deliveries,
            stack: None,
            bound: false,
            waiting: VecDeque::new(),
            unanswered: None,
            unit: Unit::None,
            octets: Vec::new(),
            invoke: 0,
            events: VecDeque::new(),
        }
    }

    /// The user's name.
    pub fn name(&self) -> &ORName {
        &self.name
    }

    /// Whether the user is bound.
    pub fn is_bound(&self) -> bool {
        self.bound
    }

    /// The password of the next bind, and whether it proposes the delivery service.
    pub fn set_bind(&mut self, password: Bytes, deliveries: bool) {
        (self.password, self.deliveries) = (password, deliveries);
    }

    /// A new connection to his MTA is there: he binds. What was not answered on an earlier one waits
    /// again.
    pub fn connected(&mut self, now: Instant) {
        self.closed();
        let mut config =
            profiles::p3(Selectors::default(), Selectors::default(), Default::default());
        if !self.deliveries {
            config.contexts.retain(|c| c.abstract_syntax != abstract_syntax::mdse_88());
        }
        config.reference.user = "user".into();
        config.reference.common = "260101000000Z".into();
        self.stack = Some(Association::new(config, Role::Initiator));
        let password = Credentials::Simple(p1::bind::Password::new(
            self.password.clone(),
            p1::bind::PasswordForm::Ia5,
        ));
        let bind = MtsBind::new(ObjectName::UserAgent(self.name.clone()), password);
        let mut writer = Writer::new();
        bind.write(&mut writer);
        self.request(now, Request::Open { bind: writer.into_vec().into() });
    }

    /// Octets came.
    pub fn bytes(&mut self, now: Instant, bytes: &[u8]) {
        if let Some(stack) = &mut self.stack {
            stack.handle(now, Input::Bytes(bytes));
        }
        self.drain(now);
    }

    /// The connection is gone: what was not answered waits again, as `xuxa` would have it.
    pub fn closed(&mut self) {
        (self.stack, self.bound, self.unit) = (None, false, Unit::None);
        self.octets.clear();
        if let Some(unanswered) = self.unanswered.take() {
            self.waiting.push_front(unanswered);
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) {
        if let Some(stack) = &mut self.stack {
            stack.handle(now, Input::Tick);
        }
        self.drain(now);
    }

    /// The time at which the user needs a tick; `None` if nothing is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.stack.as_ref().and_then(Association::deadline)
    }

    /// Submits a message as soon as he is bound and those before are answered.
    pub fn submit(&mut self, now: Instant, submission: UserSubmission) {
        self.waiting.push_back(Asked::Submission(submission));
        self.go_on(now);
    }

    /// Takes back a message that waits for its deferred delivery time (X.411 8.2.1.3), as soon as he is
    /// bound and all before is answered.
    pub fn cancel(&mut self, now: Instant, identifier: MtsIdentifier) {
        self.waiting.push_back(Asked::Cancelling(identifier));
        self.go_on(now);
    }

    /// Octets of content, as asked for.
    pub fn content(&mut self, now: Instant, octets: Bytes) {
        self.request(now, Request::Content(octets));
    }

    /// Takes what was delivered.
    pub fn take(&mut self, now: Instant, invoke: i64) {
        let mut writer = Writer::new();
        DeliveryResult::default().write(&mut writer);
        let (operation, result) = (operation::MESSAGE_DELIVERY, Payload::whole(writer.into_vec()));
        self.request(now, Request::Result { invoke, operation, result });
    }

    /// Refuses what was delivered with this error.
    pub fn refuse(&mut self, now: Instant, invoke: i64, error: i64) {
        let parameter = Bytes::from_static(&[5, 0]);
        self.request(now, Request::Error { invoke, error, parameter });
    }

    /// Takes a report.
    pub fn take_report(&mut self, now: Instant, invoke: i64) {
        let (operation, result) = (operation::REPORT_DELIVERY, Payload::whole(&EMPTY_RESULT[..]));
        self.request(now, Request::Result { invoke, operation, result });
    }

    /// The next output; `None` once there is none.
    pub fn poll(&mut self) -> Option<UserEvent> {
        self.events.pop_front()
    }

    fn request(&mut self, now: Instant, request: Request) {
        if let Some(stack) = &mut self.stack {
            stack.handle(now, Input::Request(request));
        }
        self.drain(now);
    }

    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.stack.as_mut().and_then(Association::poll) {
            match output {
                Output::Send(bytes) => self.events.push_back(UserEvent::Write(bytes)),
                Output::Close => self.events.push_back(UserEvent::Close),
                Output::Indication(indication) => self.handle_indication(indication),
            }
        }
        if self.bound && self.unanswered.is_none() && !self.waiting.is_empty() {
            self.go_on(now);
        }
    }

    fn go_on(&mut self, now: Instant) {
        if !self.bound || self.unanswered.is_some() {
            return;
        }
        let Some(next) = self.waiting.pop_front() else { return };
        self.invoke += 1;
        let (operation, argument) = match &next {
            Asked::Submission(next) => {
                let argument = Payload {
                    head: next.envelope.argument_head(next.size).into(),
                    content_length: next.size,
                    tail: Bytes::new(),
                };
                (operation::MESSAGE_SUBMISSION, argument)
            }
            Asked::Cancelling(identifier) => {
                let mut writer = Writer::new();
                identifier.write(&mut writer);
                (operation::CANCEL_DEFERRED_DELIVERY, Payload::whole(writer.into_vec()))
            }
        };
        self.unanswered = Some(next);
        let (invoke, syntax) = (self.invoke, abstract_syntax::msse());
        self.request(now, Request::Invoke { invoke, syntax, operation, argument });
    }

    fn handle_indication(&mut self, indication: Indication) {
        match indication {
            Indication::Opened { .. } => {
                self.bound = true;
                self.events.push_back(UserEvent::Bound);
            }
            Indication::Refused { detail, .. } => self.events.push_back(UserEvent::Refused(detail)),
            Indication::NeedContent { offset, max } => {
                if let Some(Asked::Submission(UserSubmission { tag, .. })) = self.unanswered {
                    self.events.push_back(UserEvent::NeedContent { tag, offset, max });
                }
            }
            Indication::Returned { .. } => self.unit = Unit::Result,
            Indication::ReturnedError { error, .. } => self.unit = Unit::Error(error),
            Indication::Invoked { invoke, operation: operation::REPORT_DELIVERY } => {
                self.unit = Unit::Report(invoke);
            }
            Indication::Invoked { invoke, .. } => {
                self.unit = Unit::Delivery(invoke, <_>::default());
            }
            Indication::Data { bytes, last } => self.data(&bytes, last),
            Indication::Rejected { .. } => self.failed(-1),
            _ => {}
        }
    }

    fn data(&mut self, bytes: &[u8], last: bool) {
        if let Unit::Delivery(invoke, parser) = &mut self.unit {
            let invoke = *invoke;
            if let Err(error) = delivery(parser, bytes, &mut self.events) {
                self.unit = Unit::None;
                return self.events.push_back(UserEvent::Broken(error));
            }
            if last {
                self.unit = Unit::None;
                self.events.push_back(UserEvent::Delivered { invoke });
            }
            return;
        }
        self.octets.extend_from_slice(bytes);
        if last {
            self.whole();
        }
    }

    /// A unit that was put together is whole.
    fn whole(&mut self) {
        let octets = std::mem::take(&mut self.octets);
        match std::mem::replace(&mut self.unit, Unit::None) {
            Unit::None | Unit::Delivery(..) => {}
            Unit::Error(code) => self.failed(code),
            Unit::Result => self.succeeded(&octets),
            Unit::Report(invoke) => {
                match Element::parse_accepted(&octets).and_then(|e| ReportDelivery::read(&e)) {
                    Ok(report) => {
                        let report = Box::new(report);
                        self.events.push_back(UserEvent::Report { invoke, report });
                    }
                    Err(error) => self.events.push_back(UserEvent::Broken(error.to_string())),
                }
            }
        }
    }

    /// The result of what he asked came whole.
    fn succeeded(&mut self, octets: &[u8]) {
        let event = match self.unanswered.take() {
            Some(Asked::Submission(UserSubmission { tag, .. })) => {
                match Element::parse(octets).and_then(|e| SubmissionResult::read(&e)) {
                    Ok(result) => UserEvent::Answered { tag, result: Ok(result.identifier) },
                    Err(error) => UserEvent::Broken(error.to_string()),
                }
            }
            Some(Asked::Cancelling(identifier)) if octets == EMPTY_RESULT => {
                UserEvent::Cancelled { identifier, result: Ok(()) }
            }
            Some(Asked::Cancelling(_)) => UserEvent::Broken("a result of a cancelling".to_owned()),
            None => return,
        };
        self.events.push_back(event);
    }

    /// What he asked was answered with an error, or rejected.
    fn failed(&mut self, code: i64) {
        let event = match self.unanswered.take() {
            Some(Asked::Submission(UserSubmission { tag, .. })) => {
                UserEvent::Answered { tag, result: Err(code) }
            }
            Some(Asked::Cancelling(identifier)) => {
                UserEvent::Cancelled { identifier, result: Err(code) }
            }
            None => return,
        };
        self.events.push_back(event);
    }
}

/// Reads on in the argument of a delivery.
fn delivery(
    parser: &mut DeliveryParser,
    bytes: &[u8],
    events: &mut VecDeque<UserEvent>,
) -> Result<(), String> {
    let mut rest = bytes;
    while let Some(event) = parser.next(&mut rest).map_err(|error| error.to_string())? {
        match event {
            ArgumentEvent::Envelope(envelope) => events.push_back(UserEvent::Delivery(envelope)),
            ArgumentEvent::Content(piece) => {
                events.push_back(UserEvent::Content(Bytes::copy_from_slice(piece)));
            }
            ArgumentEvent::End => {}
        }
    }
    Ok(())
}
