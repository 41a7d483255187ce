//! The results of the engine's decisions, and the durable changes they become.

use crate::journal::{Batch, BodySource, Digest, Op};
use crate::record::Record;
use base::{BodyId, EntryId, Precedence, Utc};
use bytes::Bytes;
use p1::names::ORName;
use p1::p3::{AccessError, SecurityProblem};

/// A copy to be queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// Its identifier.
    pub id: EntryId,
    /// Its level.
    pub precedence: Precedence,
    /// The other fields, including the next hop.
    pub record: Record,
}

/// A key to remember.
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
    /// Copies to queue: of the message, and reports made at once.
    pub entries: Vec<NewEntry>,
    /// The identifier of the stored content; `None` if no copy needs it.
    pub body: Option<BodyId>,
    /// Keys to remember.
    pub seen: Vec<Seen>,
}

/// A submission that is accepted once [`Submitted::accepted`] is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The changes that the store must commit before the answer.
    pub accepted: Accepted,
    /// The encoded result (MessageSubmissionResult or ProbeSubmissionResult) for the user.
    pub result: Bytes,
    /// MTS identifier, for the log.
    pub message: String,
    /// Notes for the log.
    pub notes: Vec<Note>,
}

/// An arrival over P1. It is accepted once [`Arrival::accepted`] is committed, even if nothing of
/// it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The changes that the store must commit before the confirm.
    pub accepted: Accepted,
    /// MTS identifier, for the log.
    pub message: String,
    /// Notes for the log.
    pub notes: Vec<Note>,
}

/// The result of finishing a copy: reports, where requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Concluded {
    /// Reports to queue and, if the copy is rerouted, new copies.
    pub entries: Vec<NewEntry>,
    /// Keys to remember.
    pub seen: Vec<Seen>,
    /// Notes for the log.
    pub notes: Vec<Note>,
}

/// A note for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The kind of event, by which the log names it.
    pub kind: NoteKind,
    /// The MTS identifier of the report that was made.
    pub report: Option<String>,
    /// Readable text.
    pub detail: String,
}

/// The kinds of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// Recipients were dropped that had been accepted before.
    Duplicate,
    /// An identifier arrived again with another content.
    IdentifierReused,
    /// A list was expanded, or not because it was before.
    Expanded,
    /// A report was made.
    ReportMade,
    /// A report was discarded.
    ReportDiscarded,
    /// A report goes without the content that its originator asked for, or that it had.
    ContentNotReturned,
    /// Recipients failed.
    NonDelivery,
    /// The copies for users here do not name the other recipients, which were to be disclosed.
    NotDisclosed,
    /// Recipients were redirected.
    Redirected,
    /// A trace time is implausible, so expiry does not count from it.
    TraceDoubted,
}

impl Note {
    pub(crate) fn new(kind: NoteKind, detail: impl Into<String>) -> Note {
        Note { kind, report: None, detail: detail.into() }
    }
}

/// Why a submission is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The originator is not the user that is bound.
    #[error("originator-name is not the bound user's")]
    OriginatorInvalid,
    /// These recipients have invalid O/R addresses.
    #[error("recipient-name is not an O/R address with country, ADMD and a further attribute")]
    RecipientsImproper(Vec<ORName>),
    /// An extension critical for submission is not understood.
    #[error("unsupported critical extension: {0}")]
    UnsupportedCriticalFunction(String),
    /// The user is not cleared for the security label.
    #[error("the user is not cleared for {0} (message-security-label; see [[clearance]])")]
    NotCleared(p1::NotCleared),
    /// It is not in the security-context of the association.
    #[error("outside the security-context of the association: {0}")]
    OutsideContext(p1::OutsideContext),
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
            SubmitError::NotCleared(_) => {
                AccessError::Security(SecurityProblem::SECURITY_POLICY_VIOLATION)
            }
            SubmitError::OutsideContext(_) => {
                AccessError::Security(SecurityProblem::SECURITY_CONTEXT_FAILURE)
            }
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

/// The durable changes that remember these keys.
pub fn put_seen(seen: &[Seen]) -> Vec<Op> {
    let put = |s: &Seen| Op::PutSeen {
        key: s.key,
        until: s.until,
        record: s.record.clone(),
        absent: false,
    };
    seen.iter().map(put).collect()
}

/// The durable changes that queue these.
pub fn put_entries(entries: &[NewEntry]) -> Vec<Op> {
    let put = |e: &NewEntry| Op::PutEntry {
        precedence: e.precedence,
        id: e.id,
        queue: e.record.next_hop.queue(),
        record: e.record.encode(),
    };
    entries.iter().map(put).collect()
}
