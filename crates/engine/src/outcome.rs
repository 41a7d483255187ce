//! What the engine's decisions are made of, and how they become durable.

use crate::journal::{Batch, BodySource, Digest, Op};
use crate::record::Record;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use p1::names::ORName;
use p1::p3::AccessError;

/// A copy to be queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// Its identifier.
    pub id: EntryId,
    /// Its level.
    pub precedence: Precedence,
    /// All else, the next hop among it.
    pub record: Record,
}

/// Something to recognise later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The key.
    pub key: Digest,
    /// Forgotten after this time.
    pub until: Utc,
    /// The answer to a repetition; empty for arrivals.
    pub record: Bytes,
}

/// What becomes durable with one commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Copies to queue: of the message, and reports made of it at once.
    pub entries: Vec<NewEntry>,
    /// Under which identifier the content is kept; `None` where no copy needs it.
    pub body: Option<BodyId>,
    /// Keys to remember.
    pub seen: Vec<Seen>,
}

/// A submission that is accepted once [`Submitted::accepted`] is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// What is to be committed.
    pub accepted: Accepted,
    /// The encoded result (MessageSubmissionResult or ProbeSubmissionResult) for the user.
    pub result: Bytes,
    /// MTS identifier, for the log.
    pub message: String,
    /// What else there is to say.
    pub notes: Vec<Note>,
}

/// An arrival over P1. It is accepted once [`Arrival::accepted`] is committed, even where nothing
/// of it is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// What is to be committed.
    pub accepted: Accepted,
    /// MTS identifier, for the log.
    pub message: String,
    /// What else there is to say.
    pub notes: Vec<Note>,
}

/// What comes of a copy that is done with: reports, where they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Concluded {
    /// Reports to queue and, where it is routed again, copies.
    pub entries: Vec<NewEntry>,
    /// Keys to remember.
    pub seen: Vec<Seen>,
    /// What there is to say.
    pub notes: Vec<Note>,
}

/// Something for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What happened.
    pub kind: NoteKind,
    /// In words.
    pub detail: String,
}

/// What happened beside the expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// Recipients were dropped that had been accepted before.
    Duplicate,
    /// An identifier came again with another content.
    IdentifierReused,
    /// A report was made.
    ReportMade,
    /// A report was thrown away.
    ReportDiscarded,
    /// Recipients failed.
    NonDelivery,
    /// A time in a trace is not believed, so that expiry does not count from it.
    TraceDoubted,
}

impl Note {
    pub(crate) fn new(kind: NoteKind, detail: impl Into<String>) -> Note {
        Note { kind, detail: detail.into() }
    }
}

/// Why a submission is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The originator is not the user that is bound.
    #[error("originator-name is not the bound user's")]
    OriginatorInvalid,
    /// These recipients are no O/R addresses at all.
    #[error("recipient-name is no O/R address with country, ADMD and a further attribute")]
    RecipientsImproper(Vec<ORName>),
    /// An extension critical for submission is not understood.
    #[error("unsupported critical extension: {0}")]
    UnsupportedCriticalFunction(String),
}

impl SubmitError {
    /// The error the operation returns (X.411 8.2.2).
    pub fn access_error(&self) -> AccessError {
        match self {
            SubmitError::OriginatorInvalid => AccessError::OriginatorInvalid,
            SubmitError::RecipientsImproper(names) => {
                AccessError::RecipientImproperlySpecified(names.clone())
            }
            SubmitError::UnsupportedCriticalFunction(_) => AccessError::UnsupportedCriticalFunction,
        }
    }
}

/// The durable change that accepts: the content, if any copy needs it, the copies and the keys.
pub fn batch(accepted: &Accepted, source: BodySource) -> Batch {
    let mut ops = Vec::with_capacity(1 + accepted.entries.len() + accepted.seen.len());
    if let Some(id) = accepted.body {
        ops.push(Op::PutBody { id, source });
    }
    ops.extend(put_entries(&accepted.entries));
    ops.extend(put_seen(&accepted.seen));
    ops
}

/// The durable changes that remember these.
pub fn put_seen(seen: &[Seen]) -> Vec<Op> {
    let put = |s: &Seen| Op::PutSeen { key: s.key, until: s.until, record: s.record.clone() };
    seen.iter().map(put).collect()
}

/// The durable changes that queue these.
pub fn put_entries(entries: &[NewEntry]) -> Vec<Op> {
    let put = |e: &NewEntry| Op::PutEntry {
        precedence: e.precedence,
        id: e.id,
        record: e.record.encode(),
    };
    entries.iter().map(put).collect()
}
