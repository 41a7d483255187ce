//! Copies in a queue that go into a mailbox, for tests and measurements.

use crate::delivery::Arriving;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use engine::journal::{BodySource, Digest, Op};
use engine::{Config, Content, Delivery, Engine, Record, Route, RouteTarget, canonical};
use p1::content_type::ContentType;
use p1::eits::EncodedInformationTypes;
use p1::extension::{Dialect, ExtensionField, Extensions};
use p1::flags::ReportRequest;
use p1::names::{GlobalDomainId, MtaName, ORAddress, ORName};
use p1::p3::{MessageSubmissionEnvelope, PerRecipientSubmissionFields};
use p772::{ContentBuilder, Heading, IpmIdentifier, Military};

/// Who submits.
const SMITH: &str = "C=XX;ADMD=;PRMD=alpha;S=Smith";
/// Who receives.
const JONES: &str = "C=XX;ADMD=;PRMD=alpha;S=Jones";
/// Nobody.
const NOBODY: &str = "C=XX;ADMD=;PRMD=alpha;S=Nobody";

/// Makes copies as the engine does.
#[derive(Debug)]
pub struct Copies {
    engine: Engine,
    made: u64,
    /// Each message-security-label of the messages that follow.
    pub labels: Vec<ExtensionField>,
}

/// A copy in the queue.
#[derive(Clone, Debug)]
pub struct Copy {
    /// Its entry.
    pub entry: EntryId,
    /// Its record.
    pub record: Record,
    /// Its delivery.
    pub delivery: Delivery,
    /// Its content; empty for a report.
    pub content: Bytes,
}

impl Copy {
    /// For [`crate::Mailbox::deliver`].
    pub fn arriving(&self) -> Arriving<'_> {
        let Copy { entry, record, delivery, content } = self;
        Arriving { entry: *entry, record, delivery, first: content }
    }

    /// The change that puts it into the queue.
    pub fn put(&self) -> Vec<Op> {
        let Copy { entry, record, content, .. } = self;
        let entry = Op::PutEntry {
            precedence: record.precedence,
            id: *entry,
            queue: record.next_hop.queue(),
            record: record.encode(),
        };
        let source = BodySource::Octets(content.clone());
        let body = record.body.map(|id| Op::PutBody { id, source });
        body.into_iter().chain([entry]).collect()
    }
}

/// 2026-01-02T03:04:05Z plus this many seconds.
pub fn at(seconds: u64) -> Utc {
    Utc((1_767_323_045 + seconds) * 1_000_000)
}

fn address(text: &str) -> ORAddress {
    text.parse().unwrap_or_default()
}

fn name(text: &str) -> ORName {
    ORName { address: address(text), directory_name: None }
}

impl Default for Copies {
    fn default() -> Copies {
        let domain = "C=XX;ADMD=;PRMD=alpha";
        Copies {
            engine: Engine::new(Config {
                mta: MtaName("mta1".to_owned()),
                domain: GlobalDomainId::new("XX", " ", Some("alpha")),
                routes: vec![Route { prefix: address(domain), to: RouteTarget::Local }],
                mailboxes: [SMITH, JONES].map(|text| canonical(&address(text))).into(),
                alternate_recipient: None,
                content_max: Default::default(),
                accepted_max: u64::MAX,
                returned_max: 10 << 20,
                forms: Default::default(),
                expire: Default::default(),
                classify: engine::classify::Policy::default(),
                clearances: Default::default(),
                salt: 0,
                epoch: 1,
            }),
            made: 0,
            labels: Vec::new(),
        }
    }
}

impl Copies {
    /// A message of this level and subject with a text of so many octets, accepted and delivered at `now`.
    /// `None` never comes.
    pub fn message(
        &mut self,
        now: Utc,
        level: Precedence,
        subject: &str,
        octets: usize,
    ) -> Option<Copy> {
        let content: Bytes = content(level, subject, octets)?.into();
        self.submit(now, level, JONES, content)
    }

    /// A message of this level and content. `None` never comes.
    pub fn message_of(&mut self, now: Utc, level: Precedence, content: Bytes) -> Option<Copy> {
        self.submit(now, level, JONES, content)
    }

    /// A report: that of a message to nobody. `None` never comes.
    pub fn report(&mut self, now: Utc, level: Precedence) -> Option<Copy> {
        self.submit(now, level, NOBODY, Bytes::new())
    }

    fn submit(&mut self, now: Utc, level: Precedence, to: &str, content: Bytes) -> Option<Copy> {
        self.made += 1;
        let mut key = [0; 32];
        key.first_chunk_mut::<8>()?.copy_from_slice(&self.made.to_be_bytes());
        let length = content.len() as u64;
        let described = Content { length, digest: key, ..Content::default() };
        let mailbox = canonical(&address(SMITH));
        let mut envelope = envelope(level, to);
        envelope.extensions.0.extend(self.labels.clone());
        let mut done =
            self.engine.submit(now, &mailbox, &envelope, &described, &[Digest(key)]).ok()?;
        let mut record = done.accepted.entries.pop()?.record;
        record.precedence = level;
        let body = BodyId(self.made);
        record.body = record.body.map(|_| body);
        let delivery = self.engine.delivery_argument(now, &record)?;
        let content = if record.body.is_some() { content } else { Bytes::new() };
        Some(Copy { entry: EntryId(self.made), record, delivery, content })
    }
}

fn envelope(level: Precedence, to: &str) -> MessageSubmissionEnvelope {
    let (priority, qualifier) = p1::grade::split(level);
    let extension = qualifier.extension(Dialect::Modern);
    MessageSubmissionEnvelope {
        originator: name(SMITH),
        // ia5-text.
        original_eits: Some(EncodedInformationTypes {
            built_in: 1 << 2,
            extended: Vec::new(),
            other: Vec::new(),
        }),
        content_type: ContentType::p772(),
        content_identifier: None,
        priority,
        indicators: Default::default(),
        deferred_delivery_time: None,
        recipients: vec![PerRecipientSubmissionFields {
            recipient: name(to),
            report_request: ReportRequest::NonDelivery,
            ..PerRecipientSubmissionFields::default()
        }],
        extensions: Extensions(extension.into_iter().collect()),
        unknown: Vec::new(),
    }
}

/// A military content.
fn content(level: Precedence, subject: &str, octets: usize) -> Option<Vec<u8>> {
    let heading = Heading {
        this_ipm: IpmIdentifier { user: None, local: "1".to_owned() },
        originator: Some(name(SMITH).into()),
        primary_recipients: vec![name(JONES).into()],
        subject: Some(subject.to_owned()),
        military: Military { primary_precedence: Some(level.into()), ..Military::default() },
        ..Heading::default()
    };
    Some(ContentBuilder::new(&heading).ok()?.text(&"x".repeat(octets)).finish())
}
