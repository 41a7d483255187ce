//! A user at one of the sites: an association of P3, and what it made of it.

use super::{End, World};
use base::ber::{Element, Writer};
use bytes::Bytes;
use osi::api::{Indication, Input, Output, Payload, Request, Role, Selectors};
use osi::profiles::{self, abstract_syntax};
use osi::stack::Association;
use p1::Credentials;
use p1::flags::ReportRequest;
use p1::grade;
use p1::names::{ORAddress, ORName};
use p1::p3::{
    ArgumentEvent, DeliveryParser, DeliveryResult, EMPTY_RESULT, MessageSubmissionEnvelope,
    MtsBind, ObjectName, PerRecipientSubmissionFields, ReportDelivery, SubmissionResult, operation,
};
use std::collections::VecDeque;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    Message { identifier: String, content: Vec<u8> },
    Report { subject: String, delivered: bool },
}

/// A message to submit.
#[derive(Clone, Debug)]
struct Submission {
    envelope: MessageSubmissionEnvelope,
    content: Bytes,
}

pub(crate) struct User {
    /// Its end of the pipe it has now, or had last.
    pub(super) end: End,
    pub(crate) address: String,
    pub(crate) password: &'static str,
    pub(crate) takes_deliveries: bool,
    /// Takes deliveries and never answers them.
    pub(crate) silent: bool,
    /// Answers deliveries of messages with this error.
    pub(crate) refuses: Option<i64>,
    /// latest-delivery-time of what it submits.
    pub(crate) latest: Option<base::Utc>,
    /// deferred-delivery-time of what it submits.
    pub(crate) deferred: Option<base::Utc>,
    pub(crate) bound: bool,
    pub(crate) refused: bool,
    /// Answers to submissions: MTS identifiers, or the error code.
    pub(crate) answers: Vec<Result<String, i64>>,
    pub(crate) delivered: Vec<Delivered>,
    stack: Option<Association>,
    waiting: VecDeque<Submission>,
    sending: Option<Submission>,
    unit: Unit,
    octets: Vec<u8>,
    invoke: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    None,
    Result,
    Error(i64),
    Invocation { invoke: i64, operation: i64 },
}

impl World {
    /// Makes a user and binds it.
    pub(crate) fn user(&mut self, site: usize, surname: &str, takes_deliveries: bool) -> usize {
        let address = super::address(site, surname);
        self.users.push(User {
            end: End::User(self.users.len(), 0),
            address,
            password: "secret",
            takes_deliveries,
            silent: false,
            refuses: None,
            latest: None,
            deferred: None,
            bound: false,
            refused: false,
            answers: Vec::new(),
            delivered: Vec::new(),
            stack: None,
            waiting: VecDeque::new(),
            sending: None,
            unit: Unit::None,
            octets: Vec::new(),
            invoke: 0,
        });
        self.users.len() - 1
    }

    pub(crate) fn bind(&mut self, user: usize, site: usize) {
        self.close(self.users[user].end);
        let u = &mut self.users[user];
        if let End::User(_, binds) = &mut u.end {
            *binds += 1;
        }
        let mut config =
            profiles::p3(Selectors::default(), Selectors::default(), Default::default());
        if !u.takes_deliveries {
            config.contexts.retain(|c| c.abstract_syntax != abstract_syntax::mdse_88());
        }
        config.reference.user = "user".into();
        config.reference.common = "260101000000Z".into();
        (u.stack, u.bound, u.refused) =
            (Some(Association::new(config, Role::Initiator)), false, false);
        self.plug_user(user, site);
    }

    /// Queues a message of this content; it goes as soon as the user is bound.
    pub(crate) fn submit(
        &mut self,
        user: usize,
        to: &[String],
        precedence: base::Precedence,
        content: &[u8],
        content_identifier: &str,
        report: ReportRequest,
    ) {
        let (priority, qualifier) = grade::split(precedence);
        let name = |text: &str| ORName::from(text.parse::<ORAddress>().expect("an address"));
        let recipients = to.iter().map(|to| PerRecipientSubmissionFields {
            recipient: name(to),
            report_request: report,
            ..Default::default()
        });
        let latest = self.users[user].latest.map(|at| {
            let number = p1::extension::number::LATEST_DELIVERY_TIME;
            p1::extension::ExtensionField::standard(number, Default::default(), |w| {
                p1::time::Time::from(at).write_as(w, base::ber::universal::UTC_TIME);
            })
        });
        let envelope = MessageSubmissionEnvelope {
            originator: name(&self.users[user].address),
            original_eits: None,
            content_type: p1::ContentType::P22,
            content_identifier: Some(content_identifier.to_owned()),
            priority,
            indicators: Default::default(),
            deferred_delivery_time: self.users[user].deferred.map(p1::time::Time::from),
            recipients: recipients.collect(),
            extensions: p1::Extensions(
                qualifier.extension(p1::Dialect::Modern).into_iter().chain(latest).collect(),
            ),
            unknown: Vec::new(),
        };
        let content = Bytes::copy_from_slice(content);
        self.users[user].waiting.push_back(Submission { envelope, content });
        self.user_go_on(user);
    }

    fn user_request(&mut self, user: usize, request: Request) {
        let now = self.now;
        if let Some(stack) = &mut self.users[user].stack {
            stack.handle(now, Input::Request(request));
        }
        self.user_drain(user);
    }

    fn user_go_on(&mut self, user: usize) {
        let u = &mut self.users[user];
        if !u.bound || u.sending.is_some() {
            return;
        }
        let Some(next) = u.waiting.pop_front() else { return };
        u.invoke += 1;
        let argument = Payload {
            head: next.envelope.argument_head(next.content.len() as u64).into(),
            content_length: next.content.len() as u64,
            tail: Bytes::new(),
        };
        let invoke = u.invoke;
        u.sending = Some(next);
        let syntax = abstract_syntax::msse();
        let operation = operation::MESSAGE_SUBMISSION;
        self.user_request(user, Request::Invoke { invoke, syntax, operation, argument });
    }

    /// The user this end belongs to, unless it has bound again since.
    fn user_at(&self, end: End) -> Option<usize> {
        match end {
            End::User(user, _) if self.users[user].end == end => Some(user),
            _ => None,
        }
    }

    pub(super) fn user_connected(&mut self, end: End) {
        let Some(user) = self.user_at(end) else { return };
        let u = &self.users[user];
        let name = ORName::from(u.address.parse::<ORAddress>().expect("an address"));
        let bind = MtsBind::new(ObjectName::UserAgent(name), Credentials::simple(u.password));
        let mut writer = Writer::new();
        bind.write(&mut writer);
        self.user_request(user, Request::Open { bind: writer.into_vec().into() });
    }

    pub(super) fn user_bytes(&mut self, end: End, bytes: &[u8]) {
        let Some(user) = self.user_at(end) else { return };
        let now = self.now;
        if let Some(stack) = &mut self.users[user].stack {
            stack.handle(now, Input::Bytes(bytes));
        }
        self.user_drain(user);
    }

    /// The connection is gone: what was not answered waits again, as `xuxa` would have it.
    pub(super) fn user_closed(&mut self, end: End) {
        let Some(user) = self.user_at(end) else { return };
        let u = &mut self.users[user];
        (u.stack, u.bound, u.unit) = (None, false, Unit::None);
        u.octets.clear();
        if let Some(unanswered) = u.sending.take() {
            u.waiting.push_front(unanswered);
        }
    }

    pub(crate) fn is_bound(&self, user: usize) -> bool {
        self.users[user].bound
    }

    fn user_drain(&mut self, user: usize) {
        while let Some(output) = self.users[user].stack.as_mut().and_then(Association::poll) {
            match output {
                Output::Send(bytes) => self.send(self.users[user].end, bytes),
                Output::Close => self.close(self.users[user].end),
                Output::Indication(indication) => self.user_hears(user, indication),
            }
        }
    }

    fn user_hears(&mut self, user: usize, indication: Indication) {
        let u = &mut self.users[user];
        match indication {
            Indication::Opened { .. } => {
                u.bound = true;
                self.user_go_on(user);
            }
            Indication::Refused { .. } => u.refused = true,
            Indication::NeedContent { offset, max } => {
                let content = &u.sending.as_ref().expect("a submission under way").content;
                let start = offset as usize;
                let piece = content.slice(start..(start + max).min(content.len()));
                // The drain goes on after the answer: the machine is polled to the end first.
                let now = self.now;
                self.user_drain(user);
                if let Some(stack) = &mut self.users[user].stack {
                    stack.handle(now, Input::Request(Request::Content(piece)));
                }
            }
            Indication::Returned { .. } => u.unit = Unit::Result,
            Indication::ReturnedError { error, .. } => u.unit = Unit::Error(error),
            Indication::Invoked { invoke, operation } => {
                u.unit = Unit::Invocation { invoke, operation }
            }
            Indication::Data { bytes, last } => {
                u.octets.extend_from_slice(&bytes);
                if last {
                    self.user_unit(user);
                }
            }
            Indication::Rejected { .. } => {
                u.sending = None;
                u.answers.push(Err(-1));
                self.user_go_on(user);
            }
            _ => {}
        }
    }

    fn user_unit(&mut self, user: usize) {
        let u = &mut self.users[user];
        let octets = std::mem::take(&mut u.octets);
        match std::mem::replace(&mut u.unit, Unit::None) {
            Unit::None => {}
            Unit::Result => {
                let element = Element::parse(&octets).expect("a result");
                let result = SubmissionResult::read(&element).expect("a submission result");
                u.answers.push(Ok(result.identifier.to_string()));
                u.sending = None;
                self.user_go_on(user);
            }
            Unit::Error(code) => {
                u.answers.push(Err(code));
                u.sending = None;
                self.user_go_on(user);
            }
            Unit::Invocation { invoke, operation: operation::REPORT_DELIVERY } => {
                let element = Element::parse(&octets).expect("a report delivery");
                let report = ReportDelivery::read(&element).expect("a report delivery");
                for r in &report.recipients {
                    let delivered = matches!(r.report, p1::ReportType::Delivery { .. });
                    let subject = report.subject_identifier.to_string();
                    u.delivered.push(Delivered::Report { subject, delivered });
                }
                let result = Payload::whole(&EMPTY_RESULT[..]);
                let operation = operation::REPORT_DELIVERY;
                self.user_request(user, Request::Result { invoke, operation, result });
            }
            Unit::Invocation { .. } if u.silent => {}
            Unit::Invocation { invoke, .. } if u.refuses.is_some() => {
                let error = u.refuses.unwrap_or_default();
                let parameter = Bytes::from_static(&[5, 0]);
                self.user_request(user, Request::Error { invoke, error, parameter });
            }
            Unit::Invocation { invoke, operation } => {
                let mut parser = DeliveryParser::default();
                let (mut rest, mut content, mut identifier) =
                    (&octets[..], Vec::new(), String::new());
                while let Some(event) = parser.next(&mut rest).expect("a message delivery") {
                    match event {
                        ArgumentEvent::Envelope(e) => identifier = e.identifier.to_string(),
                        ArgumentEvent::Content(piece) => content.extend_from_slice(piece),
                        ArgumentEvent::End => {}
                    }
                }
                assert!(parser.is_done());
                u.delivered.push(Delivered::Message { identifier, content });
                let mut writer = Writer::new();
                DeliveryResult::default().write(&mut writer);
                let result = Payload::whole(writer.into_vec());
                self.user_request(user, Request::Result { invoke, operation, result });
            }
        }
    }
}
