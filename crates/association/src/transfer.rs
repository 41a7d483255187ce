//! A message that an association sends, and one that was cut off.

use base::rate_meter::RateMeter;
use base::{BodyId, EntryId, Instant, Precedence, Utc};
use bytes::Bytes;
use engine::Record;
use guard::blame::TransferPlace;
use osi::api::ResumePoint;
use osi::session::service::ConnectionReference;
use osi::stack::Association as Stack;
use p1::Form;
use scheduler::StartReason;
use sha2::{Digest as _, Sha256};

/// A digest of what a transfer begins with: a resumed transfer has the same octets.
pub type HeadDigest = [u8; 32];

/// A message being sent: to a peer in an activity, or to a user in a delivery operation.
#[derive(Debug)]
pub struct Sending {
    /// Identifies the transfer: content read for one transfer never goes into another.
    pub number: u64,
    /// The entry that is sent.
    pub entry: EntryId,
    /// Its precedence.
    pub precedence: Precedence,
    /// The durable record, once loaded.
    pub record: Option<Record>,
    /// The rule that let it start out of order.
    pub reason: StartReason,
    /// Its content, if it has one.
    pub body: Option<BodyId>,
    /// Octets of the content.
    pub content_length: u64,
    /// Octets of the content that were handed to the layers below.
    pub handed_out: u64,
    /// Octets that the association had written before it.
    pub written_before: u64,
    /// When its transfer began, and how fast it goes.
    pub started: Option<Instant>,
    /// Octets that were confirmed then, if it was resumed.
    pub started_at: u64,
    /// How fast it goes.
    pub meter: RateMeter,
    /// Where it may be resumed if the association is lost.
    pub resume: Option<ResumePoint>,
    /// How often it was resumed with no checkpoint confirmed since.
    pub resumes: u8,
    /// The associations it was lost with, the latest last.
    pub tried: Vec<ConnectionReference>,
    /// The form in which it began: a resumed transfer has the same octets.
    pub form: Option<Form>,
    /// What it begins with, and the digest that this must have where it is resumed.
    pub head: Bytes,
    /// What the head of the APDU must be, where a transfer goes on.
    pub expected: Option<HeadDigest>,
    /// Confirmed; the commit that deletes its entry is in progress.
    pub confirmed: bool,
    /// It pauses after a checkpoint, by rule 8.
    pub paused: bool,
    /// Octets of all of it, envelope included, once it began.
    pub total: u64,
    /// Content for it is being read from the disk.
    pub reading: bool,
    /// When to look whether it makes progress; of a transfer to a peer that began.
    pub stall_look: Option<Instant>,
    /// That it stalls was logged.
    pub stall_logged: bool,
    /// P3: the invoke identifier of the delivery, and when it was invoked.
    pub invoke: i64,
    /// The time that a delivery bears.
    pub delivery_time: Option<Utc>,
    /// MTS identifier as text, once the record is loaded.
    pub message: String,
}

impl Sending {
    /// One of this entry, of which nothing is read yet.
    pub fn new(
        entry: EntryId,
        precedence: Precedence,
        body: Option<BodyId>,
        reason: StartReason,
    ) -> Sending {
        Sending {
            number: 0,
            entry,
            precedence,
            reason,
            record: None,
            body,
            content_length: 0,
            handed_out: 0,
            written_before: 0,
            started: None,
            started_at: 0,
            meter: RateMeter::default(),
            resume: None,
            resumes: 0,
            tried: Vec::new(),
            form: None,
            head: Bytes::new(),
            expected: None,
            confirmed: false,
            paused: false,
            total: 0,
            reading: false,
            stall_look: None,
            stall_logged: false,
            invoke: 0,
            delivery_time: None,
            message: String::new(),
        }
    }
}

impl Sending {
    /// The digest of its head.
    pub fn head_digest(&self) -> HeadDigest {
        Sha256::digest(&self.head).into()
    }

    /// Where it may be resumed.
    pub fn resumption(&self) -> Option<Resumption> {
        Some(Resumption {
            point: self.resume.clone()?,
            form: self.form,
            tried: self.tried.clone(),
            resumes: self.resumes,
            head: self.expected.or_else(|| self.started.map(|_| self.head_digest())),
        })
    }

    /// Octets that its peer confirmed, on this association or before.
    pub fn confirmed_octets(&self) -> u64 {
        self.resume.as_ref().map_or(0, |point| point.octets)
    }

    /// How far it came on this association, once anything of it was sent.
    pub fn place(&self, stack: &Stack) -> Option<TransferPlace> {
        let confirmed = self.confirmed_octets();
        let taken = stack.taken().saturating_sub(self.written_before);
        let sent = self.started.is_some() && stack.written() > self.written_before;
        sent.then_some(TransferPlace { confirmed, taken })
    }

    /// Whether all of a delivery was handed to the layers below: without a result its user may have it.
    pub fn is_all_sent(&self) -> bool {
        self.started.is_some() && self.handed_out >= self.content_length
    }

    /// Octets of its content, where it has one and is loaded.
    pub fn bytes(&self) -> Option<u64> {
        (self.body.is_some() && self.record.is_some()).then_some(self.content_length)
    }
}

/// Most associations remembered of one transfer.
const MAX_TRIED: usize = 8;

/// Where a transfer may be resumed, and what must be as it was.
#[derive(Clone, Debug)]
pub struct Resumption {
    /// Where it goes on.
    pub point: ResumePoint,
    /// As in [`Sending`].
    pub form: Option<Form>,
    /// The associations on which that was tried.
    pub tried: Vec<ConnectionReference>,
    /// How often that was tried.
    pub resumes: u8,
    /// Of the head.
    pub head: Option<HeadDigest>,
}

impl Resumption {
    /// It was lost with this association, too.
    pub fn lost_with(&mut self, reference: &ConnectionReference) {
        if !self.tried.contains(reference) {
            if self.tried.len() >= MAX_TRIED {
                self.tried.remove(0);
            }
            self.tried.push(reference.clone());
        }
    }
}

/// A transfer that failed.
#[derive(Debug)]
pub struct FailedTransfer {
    /// The entry whose transfer failed.
    pub entry: EntryId,
    /// Where it may be resumed.
    pub resumption: Option<Resumption>,
    /// Where it may be resumed if the association proves to be lost.
    pub if_lost: Option<Resumption>,
    /// How far it had come, where anything of it was sent.
    pub place: Option<TransferPlace>,
    /// The peer refused it for good.
    pub refused: bool,
    /// Its record, for its report where it is given up, and its MTS identifier.
    pub record: Option<Box<Record>>,
    /// The message, for the log.
    pub message: String,
}
