//! What happens, for the log: structured, in the field's terms, without secrets or content.

use crate::api::ChannelId;
use base::{AssociationId, EntryId, Precedence};

/// How much an operator should care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everyday steps.
    Info,
    /// Worth a look.
    Warning,
    /// Something is wrong here.
    Error,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// How much an operator should care.
    pub level: Level,
    /// What happened.
    pub kind: Kind,
    /// On which association, where there is one.
    pub association: Option<AssociationId>,
    /// On which channel, where there is one.
    pub channel: Option<ChannelId>,
    /// About which message: its MTS identifier as text.
    pub message: Option<String>,
    /// About which queue entry.
    pub entry: Option<EntryId>,
    /// At which precedence.
    pub precedence: Option<Precedence>,
    /// What else there is to say.
    pub detail: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An association is open.
    AssociationOpened,
    /// A peer or user was refused.
    AssociationRefused,
    /// An association ended in order.
    AssociationReleased,
    /// An association was aborted or lost.
    AssociationLost,
    /// A user submitted a message; the commit is done.
    Submitted,
    /// A submission was refused.
    SubmissionRefused,
    /// A message, probe or report arrived over P1; the commit is done.
    Received,
    /// A transfer repeated what was taken before; nothing was stored twice.
    DuplicateDropped,
    /// An arrival could not be taken.
    ReceiveFailed,
    /// A message could start but for a higher one to the same peer; said once for each.
    Held,
    /// A transfer to a peer began; the detail names the rule where one beside order let it.
    TransferStarted,
    /// The peer confirmed a transfer.
    TransferConfirmed,
    /// A transfer did not succeed; it will be tried again.
    TransferFailed,
    /// A message or report was delivered to its user.
    Delivered,
    /// A delivery did not succeed.
    DeliveryFailed,
    /// A report was made.
    ReportMade,
    /// Recipients could not be served; a report says so where one was asked for.
    NonDelivery,
    /// An entry goes another way, because its peer is configured no more.
    Rerouted,
    /// A report was thrown away, or, at the start, contents that no copy needs.
    Discarded,
    /// A peer's handshake arrived with another mark than its channel's.
    MarkMismatch,
    /// The store failed.
    StoreFailed,
}

impl Kind {
    /// snake_case name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::AssociationOpened => "association_opened",
            Kind::AssociationRefused => "association_refused",
            Kind::AssociationReleased => "association_released",
            Kind::AssociationLost => "association_lost",
            Kind::Submitted => "submitted",
            Kind::SubmissionRefused => "submission_refused",
            Kind::Received => "received",
            Kind::DuplicateDropped => "duplicate_dropped",
            Kind::ReceiveFailed => "receive_failed",
            Kind::Held => "held",
            Kind::TransferStarted => "transfer_started",
            Kind::TransferConfirmed => "transfer_confirmed",
            Kind::TransferFailed => "transfer_failed",
            Kind::Delivered => "delivered",
            Kind::DeliveryFailed => "delivery_failed",
            Kind::ReportMade => "report_made",
            Kind::NonDelivery => "non_delivery",
            Kind::Rerouted => "rerouted",
            Kind::Discarded => "discarded",
            Kind::MarkMismatch => "mark_mismatch",
            Kind::StoreFailed => "store_failed",
        }
    }
}
