//! What the node waits for: how each answer with a token continues.

use crate::api::channel_order::{ChannelOutcome, Disabled};
use crate::api::event::Parties;
use crate::api::lists::{ChangedLists, ListChange};
use crate::api::operator::{ActOutcome, Operator};
use crate::log::parties::Reported;
use base::ip_prefix::Origin;
use base::{AssociationId, BodyId, EntryId};
use bytes::Bytes;
use engine::journal::{Batch, Digest, Op, SpoolId};
use engine::{NewEntry, Note, Record};
use guard::NameDigest;
use guard::memory::MemoryCharge;
use mailbox::machine::Ticket;
use scheduler::ChannelId;

/// Why a spool is being synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncFor {
    /// A checkpoint at this many user octets.
    Checkpoint(u64),
    /// The end of the content: the commit follows.
    End,
}

/// Why the record of an entry that waits is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LateReason {
    /// Its content is damaged.
    Damaged,
    /// Its time is over.
    Expired,
    /// It waits for longer than its precedence allows.
    Overdue,
}

/// What follows once a commit is done.
#[derive(Debug)]
pub(crate) enum AfterCommit {
    /// Confirm the activity (RTSE), if the association still waits for this very arrival.
    Secure {
        /// The arrival.
        arrival: SpoolId,
        /// The keys that were being committed.
        keys: Vec<Digest>,
        /// MTS identifier, for the log.
        message: String,
        /// The spool the commit uses up, to be discarded if it fails.
        spool: Option<SpoolId>,
        /// From whom and to whom, for the log.
        parties: Box<Parties>,
        /// What a report is about, for the log.
        reported: Option<Reported>,
        /// The notes of the engine, for the log.
        notes: Vec<Note>,
    },
    /// Answer the submission with this result.
    SubmissionResult {
        invoke: i64,
        operation: i64,
        result: Bytes,
        /// The keys that were being committed.
        keys: Vec<Digest>,
        /// MTS identifier, for the log.
        message: String,
        /// The spool the commit uses up, to be discarded if it fails.
        spool: Option<SpoolId>,
        /// From whom and to whom, for the log.
        parties: Box<Parties>,
        /// The notes of the engine, for the log.
        notes: Vec<Note>,
    },
    /// A peer confirmed a transfer, or a user a delivery: it is forgotten here, with this batch.
    Sent {
        batch: Batch,
        /// Its content, where other copies may still need it; once for each hold on it.
        bodies: Vec<BodyId>,
    },
}

#[derive(Debug)]
pub(crate) enum PendingAnswer {
    /// A password is being checked.
    Verify { association: AssociationId, bind: VerifiedBind },
    /// A spool is being synced.
    Sync { spool: SpoolId, purpose: SyncFor },
    /// Keys are being looked up for what is in this spool.
    LookUp { spool: SpoolId },
    /// Changes are being committed.
    Commit {
        association: AssociationId,
        entries: Vec<NewEntry>,
        after: AfterCommit,
        /// What is held in memory until then.
        charge: Option<MemoryCharge>,
    },
    /// What an operator changed is being committed.
    Operation(HoldOperation),
    /// An operator's order for a channel is being committed.
    Channel(ChannelOperation),
    /// A record is being read, to be sent on this association.
    Load { association: AssociationId, entry: EntryId },
    /// The record of an entry is being read for an operator's order.
    OrderLoad { order: u64, entry: EntryId },
    /// Keys are being looked up for entries that an operator reroutes.
    OrderLookUp { order: u64 },
    /// Keys are being looked up for an entry that is routed again, perhaps to a mailbox.
    RerouteLookUp { entry: EntryId, record: Box<Record>, keys: Vec<Digest> },
    /// The record of an entry whose peer was removed is being read, to be routed again.
    Unrouted { entry: EntryId },
    /// A record is being read of an entry that has expired or is late.
    Late { entry: EntryId, why: LateReason },
    /// Part of a content is being read for the transfer of this number.
    Content { association: AssociationId, transfer: u64 },
    /// The record of an entry is being read, to be delivered into its mailbox.
    LoadStored { entry: EntryId },
    /// The front of a content is being read, for the same.
    Front { entry: EntryId },
    /// A mailbox of the message store waits.
    Mailbox(Ticket),
    /// Part of a content is being read for the result of a fetch.
    Fetched { association: AssociationId },
    /// The record of a deferred message is being read, to cancel it.
    CancelLoad(Cancelling),
    /// A cancelling is being committed.
    Cancel(Cancelling),
    /// A user of P3 changes his password.
    Password { association: AssociationId, invoke: i64 },
    /// What a user registers is being committed.
    Registration,
    /// Where our transfers may be resumed is being written.
    KeptSends,
    /// The record of what waits for a distribution list is being read.
    Expand { entry: EntryId },
    /// Whether a list expanded the same message before is being looked up.
    ExpandLookUp { entry: EntryId, record: Box<Record>, key: Digest },
    /// A change of distribution lists is being committed.
    Lists(ListOperation),
    /// A change that must be made is being tried again.
    Retry(PendingRetry),
}

/// An operator's order for a channel.
#[derive(Debug)]
pub(crate) struct ChannelOperation {
    pub(crate) request: u64,
    pub(crate) channel: ChannelId,
    /// Its name.
    pub(crate) name: String,
    pub(crate) by: Operator,
    pub(crate) at_once: bool,
    /// What held before.
    pub(crate) before: Option<Disabled>,
    pub(crate) outcome: ChannelOutcome,
}

impl ChannelOperation {
    pub(crate) fn new(
        request: u64,
        channel: ChannelId,
        by: Operator,
        at_once: bool,
    ) -> ChannelOperation {
        let (name, outcome) = <_>::default();
        ChannelOperation { request, channel, name, by, at_once, before: None, outcome }
    }
}

/// A change that must be made: tried again until it is.
#[derive(Clone, Debug)]
pub(crate) struct PendingRetry {
    pub batch: Batch,
    /// What is queued once it is made.
    pub entries: Vec<NewEntry>,
    /// As in [`AfterCommit::Sent`].
    pub bodies: Vec<BodyId>,
    /// The operator's order that is carried out by it.
    pub order: Option<u64>,
    /// How often another node owned what it removes.
    pub fenced: u8,
}

/// How often a removal is tried that another node's ownership keeps from being made: for a minute. The entry may come
/// back to this node, which has concluded it.
const FENCED: u8 = 12;

impl PendingRetry {
    pub(crate) fn new(batch: Batch, entries: Vec<NewEntry>, bodies: Vec<BodyId>) -> PendingRetry {
        PendingRetry { batch, entries, bodies, order: None, fenced: 0 }
    }

    /// A change that queues nothing, and after which no content is released.
    pub(crate) fn alone(batch: Batch) -> PendingRetry {
        PendingRetry::new(batch, Vec::new(), Vec::new())
    }

    /// Another node owns what it removes. Whether it is tried again: what follows from it is made by that node.
    pub(crate) fn is_fenced(&mut self) -> bool {
        self.fenced = self.fenced.saturating_add(1);
        let makes =
            |op: &Op| matches!(op, Op::PutEntry { .. } | Op::PutBody { .. } | Op::PutSeen { .. });
        self.order.is_none() && self.fenced <= FENCED && !self.batch.iter().any(makes)
    }
}

/// What continues once a password is right.
#[derive(Debug)]
pub(crate) enum VerifiedBind {
    /// Accept the peer's bind.
    Initiator {
        /// Whom a failure is counted against, whether or not the association is still there.
        origin: Origin,
        name: NameDigest,
        /// Digest of what was presented: the same again is not counted again.
        password: NameDigest,
    },
    /// The responder's credentials in a bind result were checked.
    Responder,
    /// Accept the user's bind for this mailbox.
    User {
        mailbox: String,
        /// As above.
        origin: Origin,
        /// The password changed meanwhile: the result is about the old one.
        stale: bool,
    },
}

/// An operator's request, from its change in memory to its commit.
#[derive(Debug)]
pub(crate) struct HoldOperation {
    pub(crate) request: u64,
    pub(crate) hold: bool,
    pub(crate) by: Operator,
    pub(crate) changed: Vec<EntryId>,
    pub(crate) outcomes: Vec<(EntryId, ActOutcome)>,
}

/// A change of distribution lists that is being committed.
#[derive(Debug)]
pub(crate) struct ListOperation {
    pub(crate) request: u64,
    pub(crate) by: Operator,
    /// As it was ordered.
    pub(crate) change: Box<ListChange>,
    pub(crate) changed: ChangedLists,
}

/// A cancelling in progress.
#[derive(Clone, Debug)]
pub(crate) struct Cancelling {
    pub association: AssociationId,
    pub invoke: i64,
    pub message: String,
    pub entries: Vec<EntryId>,
}
