//! A user at one of the sites: what tests ask of it, and what it made of its association.

use super::{End, World};
use bytes::Bytes;
use p1::flags::ReportRequest;
use p1::grade;
use p1::names::{ORAddress, ORName};
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use sim::{Submission, UserEvent};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    Message { identifier: String, content: Vec<u8> },
    Report { subject: String, delivered: bool },
}

pub(crate) struct User {
    /// Its end of the pipe it has now, or had last.
    pub(crate) end: End,
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
    /// The qualifier of what it submits is critical for transfer.
    pub(crate) critical: bool,
    pub(crate) refused: bool,
    /// Answers to submissions: MTS identifiers, or the error code.
    pub(crate) answers: Vec<Result<String, i64>>,
    pub(crate) delivered: Vec<Delivered>,
    machine: sim::User,
    /// Of what it submitted.
    contents: Vec<Bytes>,
    /// Identifier and content of what arrives.
    arriving: (String, Vec<u8>),
}

impl World {
    /// Makes a user and binds it.
    pub(crate) fn user(&mut self, site: usize, surname: &str, takes_deliveries: bool) -> usize {
        let address = super::address(site, surname);
        let name = ORName::from(address.parse::<ORAddress>().expect("an address"));
        self.users.push(User {
            end: End::User(self.users.len(), 0),
            address,
            password: "secret",
            takes_deliveries,
            silent: false,
            refuses: None,
            latest: None,
            deferred: None,
            critical: false,
            refused: false,
            answers: Vec::new(),
            delivered: Vec::new(),
            machine: sim::User::new(name, Bytes::new(), takes_deliveries),
            contents: Vec::new(),
            arriving: (String::new(), Vec::new()),
        });
        self.users.len() - 1
    }

    pub(crate) fn bind(&mut self, user: usize, site: usize) {
        self.close(self.users[user].end);
        let u = &mut self.users[user];
        if let End::User(_, binds) = &mut u.end {
            *binds += 1;
        }
        u.machine.closed();
        u.machine.set_bind(u.password.into(), u.takes_deliveries);
        u.refused = false;
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
        let mut qualifier = qualifier.extension(p1::Dialect::Modern);
        if let Some(qualifier) = qualifier.as_mut().filter(|_| self.users[user].critical) {
            qualifier.criticality = p1::Criticality::TRANSFER;
        }
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
            extensions: p1::Extensions(qualifier.into_iter().chain(latest).collect()),
            unknown: Vec::new(),
        };
        let (now, u) = (self.now, &mut self.users[user]);
        let (tag, size) = (u.contents.len(), content.len() as u64);
        u.contents.push(Bytes::copy_from_slice(content));
        u.machine.submit(now, Submission { tag, envelope, size });
        self.user_drain(user);
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
        self.users[user].machine.connected(self.now);
        self.user_drain(user);
    }

    pub(super) fn user_bytes(&mut self, end: End, bytes: &[u8]) {
        let Some(user) = self.user_at(end) else { return };
        self.users[user].machine.bytes(self.now, bytes);
        self.user_drain(user);
    }

    pub(super) fn user_closed(&mut self, end: End) {
        if let Some(user) = self.user_at(end) {
            self.users[user].machine.closed();
        }
    }

    pub(crate) fn is_bound(&self, user: usize) -> bool {
        self.users[user].machine.is_bound()
    }

    fn user_drain(&mut self, user: usize) {
        while let Some(heard) = self.users[user].machine.poll() {
            match heard {
                UserEvent::Write(bytes) => self.send(self.users[user].end, bytes),
                UserEvent::Close => self.close(self.users[user].end),
                heard => self.user_hears(user, heard),
            }
        }
    }

    fn user_hears(&mut self, user: usize, heard: UserEvent) {
        let (now, u) = (self.now, &mut self.users[user]);
        match heard {
            UserEvent::Refused(_) => u.refused = true,
            UserEvent::NeedContent { tag, offset, max } => {
                let content = &u.contents[tag];
                let start = offset as usize;
                u.machine.content(now, content.slice(start..(start + max).min(content.len())));
            }
            UserEvent::Answered { result, .. } => u.answers.push(result),
            UserEvent::Delivery(envelope) => {
                u.arriving = (envelope.identifier.to_string(), Vec::new());
            }
            UserEvent::Content(piece) => u.arriving.1.extend_from_slice(&piece),
            UserEvent::Delivered { .. } if u.silent => {}
            UserEvent::Delivered { invoke } => match u.refuses {
                Some(error) => u.machine.refuse(now, invoke, error),
                None => {
                    let (identifier, content) = std::mem::take(&mut u.arriving);
                    u.delivered.push(Delivered::Message { identifier, content });
                    u.machine.take(now, invoke);
                }
            },
            UserEvent::Report { invoke, report } => {
                for r in &report.recipients {
                    let delivered = matches!(r.report, p1::ReportType::Delivery { .. });
                    let subject = report.subject_identifier.to_string();
                    u.delivered.push(Delivered::Report { subject, delivered });
                }
                u.machine.take_report(now, invoke);
            }
            UserEvent::Broken(why) => panic!("the user cannot read what the MTA says: {why}"),
            UserEvent::Bound | UserEvent::Write(_) | UserEvent::Close => {}
        }
    }
}
