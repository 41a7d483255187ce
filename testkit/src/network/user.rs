//! A user at one of the sites: what tests ask of it, and the outcome of its association.

use super::reader::Reader;
use super::{Durable, End, Network};
use crate::build::{Submission, name};
use crate::sites::address;
use base::{Instant, Precedence, Utc};
use bytes::Bytes;
use p1::flags::ReportRequest;
use p1::grade;
use sim::UserEvent;

/// A delivery that a user took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// A message.
    Message {
        /// MTS identifier.
        identifier: String,
        /// Its content.
        content: Vec<u8>,
    },
    /// A report, for one recipient.
    Report {
        /// MTS identifier of the subject.
        subject: String,
        /// Whether it is a delivery report.
        delivered: bool,
    },
}

/// A user.
pub struct User {
    /// Its end of the connection it has now, or had last.
    pub end: End,
    /// Its address.
    pub address: String,
    /// The password it binds with.
    pub password: &'static str,
    /// Whether it proposes the delivery service.
    pub takes_deliveries: bool,
    /// Takes deliveries and never answers them.
    pub silent: bool,
    /// Answers deliveries of messages with this error.
    pub refuses: Option<i64>,
    /// latest-delivery-time of what it submits.
    pub latest: Option<Utc>,
    /// The alternate that it requests for each recipient (originator-requested-alternate-recipient).
    pub alternate: Option<String>,
    /// Of the envelopes that it submits.
    pub indicators: p1::PerMessageIndicators,
    /// originally-intended-recipient-name of each delivery that began, and of each recipient reported.
    pub intended: Vec<Option<String>>,
    /// deferred-delivery-time of what it submits.
    pub deferred: Option<Utc>,
    /// Asks for the content of what it submits with reports of non-delivery.
    pub wants_content: bool,
    /// The qualifier of what it submits is critical for transfer.
    pub critical: bool,
    /// content-type of what it submits.
    pub content_type: p1::ContentType,
    /// message-security-label of what it submits.
    pub label: Option<p1::SecurityLabel>,
    /// Its bind was refused.
    pub refused: bool,
    /// Answers to submissions: MTS identifiers, or the code of the error.
    pub answers: Vec<Result<String, i64>>,
    /// For each of them the number of the submission, from 0 on.
    pub answered: Vec<usize>,
    /// Answers to its cancellings, in order: the MTS identifier, and nothing or the code of the error.
    pub cancelled: Vec<(String, Result<(), i64>)>,
    /// The deliveries that it took, in order.
    pub delivered: Vec<Delivered>,
    /// For each of them the count of binds, and the time.
    pub took: Vec<(u32, Instant)>,
    /// For each of them that is a message its priority.
    pub priorities: Vec<Option<p1::Priority>>,
    /// For each of them that is a report the recipient that it is about.
    pub reported: Vec<Option<String>>,
    /// The content that each report returned, in order.
    pub returned: Vec<Option<Bytes>>,
    /// He reads his mailbox over P7.
    pub reader: Option<Reader>,
    /// What he submits goes through the message store.
    pub submits_to_store: bool,
    /// Of the message that arrives.
    priority: p1::Priority,
    machine: sim::SimulatedUser,
    /// Of what was accepted.
    pub(super) identifiers: Vec<p1::MtsIdentifier>,
    /// The contents that it submitted.
    pub(super) contents: Vec<Bytes>,
    /// Identifier and content of what arrives.
    arriving: (String, Vec<u8>),
}

impl<S: Durable> Network<S> {
    /// Makes a user. It is not bound.
    pub fn user(&mut self, site: usize, surname: &str, takes_deliveries: bool) -> usize {
        let address = address(site, surname);
        let machine = sim::SimulatedUser::new(name(&address), Bytes::new(), takes_deliveries);
        self.users.push(User {
            end: End::User(self.users.len(), 0),
            address,
            password: "secret",
            takes_deliveries,
            silent: false,
            refuses: None,
            latest: None,
            alternate: None,
            indicators: p1::PerMessageIndicators::default(),
            intended: Vec::new(),
            deferred: None,
            wants_content: false,
            critical: false,
            content_type: p1::ContentType::P22,
            label: None,
            refused: false,
            answers: Vec::new(),
            answered: Vec::new(),
            cancelled: Vec::new(),
            delivered: Vec::new(),
            took: Vec::new(),
            reported: Vec::new(),
            priorities: Vec::new(),
            priority: p1::Priority::default(),
            returned: Vec::new(),
            reader: None,
            submits_to_store: false,
            machine,
            identifiers: Vec::new(),
            contents: Vec::new(),
            arriving: (String::new(), Vec::new()),
        });
        self.users.len() - 1
    }

    /// A user binds at a site; a connection that it has is closed.
    pub fn bind(&mut self, user: usize, site: usize) {
        self.close(self.users[user].end);
        let u = &mut self.users[user];
        if let End::User(_, binds) = &mut u.end {
            *binds += 1;
        }
        u.machine.closed();
        u.machine.set_bind(u.password.into(), u.takes_deliveries);
        u.refused = false;
        self.connect_user(user, site);
    }

    /// Queues a message of this content; it goes as soon as the user is bound.
    pub fn submit(
        &mut self,
        user: usize,
        to: &[String],
        precedence: Precedence,
        content: &[u8],
        content_identifier: &str,
        report: ReportRequest,
    ) {
        let (priority, qualifier) = grade::split(precedence);
        let u = &mut self.users[user];
        let mut qualifier = qualifier.extension(p1::Dialect::Modern);
        if let Some(qualifier) = qualifier.as_mut().filter(|_| u.critical) {
            qualifier.criticality = p1::Criticality::TRANSFER;
        }
        let latest = u.latest.map(|at| {
            let number = p1::extension::number::LATEST_DELIVERY_TIME;
            p1::extension::ExtensionField::standard(number, Default::default(), |w| {
                p1::time::Time::from(at).write_as(w, base::ber::universal::UTC_TIME);
            })
        });
        let label = u.label.as_ref().map(|label| {
            let number = p1::extension::number::MESSAGE_SECURITY_LABEL;
            p1::extension::ExtensionField::standard(number, Default::default(), |w| {
                label.write(w, base::ber::universal::SET);
            })
        });
        let submission = Submission {
            priority,
            report,
            deferred: u.deferred,
            identifier: Some(content_identifier.to_owned()),
            ..Submission::new(&u.address, to.iter().cloned())
        };
        let mut envelope = submission.envelope();
        envelope.extensions =
            p1::Extensions(qualifier.into_iter().chain(latest).chain(label).collect());
        envelope.indicators = envelope.indicators | u.indicators;
        envelope.content_type = u.content_type.clone();
        if let Some(alternate) = &u.alternate {
            let name: p1::ORName = p1::ORName {
                address: alternate.parse().expect("an address"),
                directory_name: None,
            };
            let number = p1::extension::number::ORIGINATOR_REQUESTED_ALTERNATE_RECIPIENT;
            let critical = p1::Criticality { for_submission: true, ..Default::default() };
            let field = p1::ExtensionField::standard(number, critical, |w| name.write(w));
            for recipient in &mut envelope.recipients {
                recipient.extensions.set(field.clone());
            }
        }
        if u.wants_content {
            envelope.indicators =
                envelope.indicators | p1::PerMessageIndicators::CONTENT_RETURN_REQUEST;
        }
        let (tag, size) = (u.contents.len(), content.len() as u64);
        u.contents.push(Bytes::copy_from_slice(content));
        let submission = sim::UserSubmission { tag, envelope, size };
        if u.submits_to_store {
            return self.submit_to_store(user, submission);
        }
        u.machine.submit(self.now, submission);
        self.user_drain(user);
    }

    /// Has a user cancel the deferred delivery of a message that was accepted from it.
    pub fn cancel(&mut self, user: usize, identifier: &str) {
        let u = &mut self.users[user];
        let accepted = u.identifiers.iter().find(|accepted| accepted.to_string() == identifier);
        let identifier = accepted.expect("a message that was accepted").clone();
        u.machine.cancel(self.now, identifier);
        self.user_drain(user);
    }

    /// The user whose end this is, unless it has bound again since.
    fn user_at(&self, end: End) -> Option<usize> {
        match end {
            End::User(user, _) if self.users[user].end == end => Some(user),
            _ => None,
        }
    }

    pub(super) fn user_connected(&mut self, end: End) {
        let Some(user) = self.user_at(end) else { return };
        self.users[user].machine.connected(self.now);
        self.user_drain(user);
    }

    pub(super) fn user_octets(&mut self, end: End, octets: &[u8]) {
        let Some(user) = self.user_at(end) else { return };
        self.users[user].machine.bytes(self.now, octets);
        self.user_drain(user);
    }

    pub(super) fn user_closed(&mut self, end: End) {
        if let Some(user) = self.user_at(end) {
            self.users[user].machine.closed();
        }
    }

    /// Whether a user is bound.
    pub fn is_bound(&self, user: usize) -> bool {
        self.users[user].machine.is_bound()
    }

    fn user_drain(&mut self, user: usize) {
        while let Some(event) = self.users[user].machine.poll() {
            match event {
                UserEvent::Write(octets) => self.send(self.users[user].end, octets),
                UserEvent::Close => self.close(self.users[user].end),
                event => self.user_event(user, event),
            }
        }
    }

    fn user_event(&mut self, user: usize, event: UserEvent) {
        let (now, u) = (self.now, &mut self.users[user]);
        let End::User(_, bind) = u.end else { return };
        match event {
            UserEvent::Refused(_) => u.refused = true,
            UserEvent::NeedContent { tag, offset, max } => {
                let content = &u.contents[tag];
                let start = offset as usize;
                u.machine.content(now, content.slice(start..(start + max).min(content.len())));
            }
            UserEvent::Answered { tag, result } => {
                u.identifiers.extend(result.clone());
                u.answers.push(result.map(|identifier| identifier.to_string()));
                u.answered.push(tag);
            }
            UserEvent::Cancelled { identifier, result } => {
                u.cancelled.push((identifier.to_string(), result));
            }
            UserEvent::Delivery(envelope) => {
                u.arriving = (envelope.identifier.to_string(), Vec::new());
                u.priority = envelope.priority;
                u.intended.push(envelope.intended_recipient.as_ref().map(ToString::to_string));
            }
            UserEvent::Content(piece) => u.arriving.1.extend_from_slice(&piece),
            UserEvent::Delivered { .. } if u.silent => {}
            UserEvent::Delivered { invoke } => match u.refuses {
                Some(error) => u.machine.refuse(now, invoke, error),
                None => {
                    let (identifier, content) = std::mem::take(&mut u.arriving);
                    u.delivered.push(Delivered::Message { identifier, content });
                    u.took.push((bind, now));
                    u.reported.push(None);
                    u.priorities.push(Some(u.priority));
                    u.machine.take(now, invoke);
                }
            },
            UserEvent::Report { invoke, report } => {
                for r in &report.recipients {
                    let delivered = matches!(r.report, p1::ReportType::Delivery { .. });
                    let subject = report.subject_identifier.to_string();
                    u.delivered.push(Delivered::Report { subject, delivered });
                    u.took.push((bind, now));
                    u.reported.push(Some(r.actual_recipient.to_string()));
                    u.priorities.push(None);
                    u.intended.push(r.intended_recipient.as_ref().map(ToString::to_string));
                }
                u.returned.push(report.returned_content.clone());
                u.machine.take_report(now, invoke);
            }
            UserEvent::Broken(why) => panic!("the user cannot read what the MTA sends: {why}"),
            UserEvent::Bound | UserEvent::Write(_) | UserEvent::Close => {}
        }
    }
}
