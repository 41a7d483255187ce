//! What happens, for the log: structured, in the field's terms, without secrets or content.

use base::{AssociationId, EntryId, Precedence, Utc, shown};
use scheduler::ChannelId;
use serde::Serialize;
use std::borrow::Cow;

/// How much an operator should care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum LogLevel {
    /// Everyday steps.
    Info,
    /// Worth a look.
    Warning,
    /// Something is wrong here.
    Error,
}

/// Most recipients of a message that an event names; it has the number of all.
pub const MAX_RECIPIENTS: usize = 1_000;

/// Most recipients in a line of the event log.
const MAX_LINE_RECIPIENTS: usize = 10;

/// From whom and to whom a message is: on the events with which it is first seen, and where it is delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parties {
    /// The canonical address of its originator; a report has none.
    pub originator: Option<String>,
    /// The canonical addresses of its recipients, the first [`MAX_RECIPIENTS`] of them. Of a report the
    /// one to whom it goes; of a delivery the one who got it.
    pub recipients: Vec<String>,
    /// How many there are.
    pub count: usize,
    /// Its content identifier.
    pub content_id: Option<String>,
    /// How many copies were queued, one for each next hop: where it was accepted, routed again or expanded.
    pub copies: Option<usize>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogEvent {
    /// How much an operator should care.
    pub level: LogLevel,
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
    /// Octets of its content, where they are known and it has one.
    pub bytes: Option<u64>,
    /// From whom and to whom, where that is first seen.
    pub parties: Option<Box<Parties>>,
    /// The MTS identifier on the other side of a report: of its subject on events of the report, of the
    /// report on the event that it was made for the message.
    pub related: Option<String>,
    /// When this MTA accepted the message, on what ends a copy of it.
    pub accepted: Option<Utc>,
    /// By which operator, where one ordered it.
    pub operator: Option<Box<OrderedBy>>,
    /// Details in words.
    pub detail: String,
}

/// An operator's name and number, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrderedBy(pub String);

impl LogEvent {
    /// One of which no more is known.
    pub fn new(level: LogLevel, kind: Kind) -> LogEvent {
        LogEvent {
            level,
            kind,
            association: None,
            channel: None,
            message: None,
            entry: None,
            precedence: None,
            bytes: None,
            parties: None,
            related: None,
            accepted: None,
            operator: None,
            detail: String::new(),
        }
    }

    /// Whether it is about one message, or a copy of one.
    pub fn is_about_a_message(&self) -> bool {
        self.message.is_some() || self.entry.is_some()
    }

    /// Whether it is kept to trace messages, or counted in reports on many.
    pub fn is_tracked(&self) -> bool {
        self.is_about_a_message()
            || self.is_an_order()
            || matches!(self.kind, Kind::SubmissionRefused | Kind::ReceiveFailed)
    }

    /// Whether an operator ordered it.
    pub fn is_an_order(&self) -> bool {
        self.operator.is_some()
    }

    /// Itself as a line of the event log: `place` is the name of its peer and of its channel.
    pub fn line<'a>(
        &'a self,
        utc: Utc,
        mta: &'a str,
        place: Option<(&'a str, &'a str)>,
    ) -> LogLine<'a> {
        LogLine {
            time: utc.to_string(),
            time_us: utc.0,
            mta,
            event: self.kind.name(),
            mts_id: self.message.as_deref().map(shown::line),
            entry: self.entry.map(|entry| entry.to_string()),
            precedence: self.precedence,
            peer: place.map(|(peer, _)| peer),
            channel: place.map(|(_, channel)| channel),
            association: self.association.map(|a| a.to_string()),
            bytes: self.bytes,
            originator: self
                .parties
                .as_ref()
                .and_then(|p| p.originator.as_deref())
                .map(shown::line),
            recipients: self.parties.as_ref().map_or_else(Vec::new, |p| {
                p.recipients.iter().take(MAX_LINE_RECIPIENTS).map(|r| shown::line(r)).collect()
            }),
            recipient_count: self.parties.as_ref().map(|p| p.count),
            content_id: self
                .parties
                .as_ref()
                .and_then(|p| p.content_id.as_deref())
                .map(shown::line),
            related: self.related.as_deref().map(shown::line),
            operator: self.operator.as_ref().map(|by| shown::line(&by.0)),
            detail: (!self.detail.is_empty()).then(|| shown::line(&self.detail)),
        }
    }
}

/// A line of the event log, for JSON: what happened to a message, so that lines of several MTAs can
/// be joined by the MTS identifier and put on one clock. What is not known is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogLine<'a> {
    /// When the node handled it: RFC 3339 UTC with microseconds.
    pub time: String,
    /// The same in microseconds since 1970.
    pub time_us: u64,
    /// Our MTA name.
    pub mta: &'a str,
    /// [`Kind::name`].
    pub event: &'static str,
    /// MTS identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mts_id: Option<Cow<'a, str>>,
    /// Queue entry, here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// Its level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precedence: Option<Precedence>,
    /// From or to which peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<&'a str>,
    /// On which of its channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<&'a str>,
    /// On which association.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub association: Option<String>,
    /// Octets of content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Canonical address of the originator, where the message is first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originator: Option<Cow<'a, str>>,
    /// Canonical addresses of the first ten recipients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<Cow<'a, str>>,
    /// How many recipients there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient_count: Option<usize>,
    /// Content identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_id: Option<Cow<'a, str>>,
    /// The subject of a report, or the report on a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related: Option<Cow<'a, str>>,
    /// By which operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Cow<'a, str>>,
    /// Details in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Cow<'a, str>>,
}

/// A line of the event log that stands for lines which are missing there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap<'a> {
    /// When writing went on: RFC 3339 UTC with microseconds.
    pub time: String,
    /// The same in microseconds since 1970.
    pub time_us: u64,
    /// Our MTA name.
    pub mta: &'a str,
    /// Always `lines_lost`.
    pub event: &'static str,
    /// How many.
    pub count: u64,
}

impl Gap<'_> {
    /// So many lines could not be written before this one.
    pub fn new(utc: Utc, mta: &str, count: u64) -> Gap<'_> {
        Gap { time: utc.to_string(), time_us: utc.0, mta, event: "lines_lost", count }
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Kind {
    /// The wall clock was set while we ran: the times of what is queued follow it.
    ClockSet,
    /// The wall clock jumped, and is not trusted: nothing expires.
    ClockDoubted,
    /// It is trusted again: it was steady, or an operator accepts it.
    ClockTrusted,
    /// Recipients of a message or probe were redirected to alternates.
    Redirected,
    /// A trace has a time that is not credible: somebody's clock is wrong.
    TraceDoubted,
    /// An association is open.
    AssociationOpened,
    /// A peer or user was refused.
    AssociationRefused,
    /// An association ended in order.
    AssociationReleased,
    /// An association was aborted or lost.
    AssociationLost,
    /// A channel is tried before its wait is over; the detail has the reason.
    WaitEnded,
    /// The hours of a scheduled channel began or ended.
    WindowChanged,
    /// An operator disabled, enabled or disconnected a channel.
    ChannelOrdered,
    /// A user submitted a message; the commit is done.
    Submitted,
    /// A submission was refused.
    SubmissionRefused,
    /// A message, probe or report arrived over P1; the commit is done.
    Received,
    /// A transfer repeated what was taken before; nothing was stored twice.
    DuplicateDropped,
    /// The identifier of what was delivered came again with another content, which is delivered too.
    IdentifierReused,
    /// An arrival could not be taken.
    ReceiveFailed,
    /// A message has waited for longer than its precedence allows; it waits on.
    Overdue,
    /// The time of a message is over: it is given up.
    Expired,
    /// The originator cancelled a deferred message.
    Cancelled,
    /// A transfer stands behind a checkpoint while a higher one is in transfer.
    Paused,
    /// A transfer that was paused continues.
    Resumed,
    /// MINIMIZE begins, changes or ends.
    Minimize,
    /// A message would start, but a higher one to the same peer holds it; logged once for each.
    Held,
    /// A distribution list was expanded, or not because it was before.
    Expanded,
    /// An operator changed a distribution list.
    ListChanged,
    /// An operator holds a message.
    OperatorHeld,
    /// An operator released a message.
    OperatorReleased,
    /// An operator ended a message's wait after a failure.
    OperatorRetried,
    /// An operator rerouted a message.
    OperatorRerouted,
    /// An operator gave a message up, with a non-delivery report.
    OperatorExpired,
    /// An operator deleted a message, without a report.
    OperatorDeleted,
    /// An operator ordered something; the detail has the outcome.
    OperatorOrder,
    /// A transfer to a peer began; the detail names the rule where one beside order let it.
    TransferStarted,
    /// The peer confirmed a transfer.
    TransferConfirmed,
    /// Nothing of a transfer was confirmed or taken for `stall`; logged once for each.
    TransferStalled,
    /// A transfer did not succeed; it will be tried again.
    TransferFailed,
    /// A message or report was delivered to its user.
    Delivered,
    /// A transfer failed by the fault of its message, or at the same place again: it alone is delayed.
    MessageBlamed,
    /// Different messages failed on a channel, and none got through in between: it backs off.
    ChannelBlamed,
    /// Transfers of a message failed too often while others got through: it is given up.
    GivenUp,
    /// A delivery did not succeed.
    DeliveryFailed,
    /// A report was made.
    ReportMade,
    /// Recipients could not be served; there is a report where one was asked for.
    NonDelivery,
    /// The configuration changed; the detail names the key and the change.
    Reconfigured,
    /// An entry takes another route, because its peer is no longer configured.
    Rerouted,
    /// A report goes without the content that its originator asked for, or that it had.
    ContentNotReturned,
    /// Copies for users here do not name the other recipients, although the originator discloses them.
    NotDisclosed,
    /// A report was discarded, or, at the start, contents that no copy needs.
    Discarded,
    /// A peer's handshake arrived with another mark than its channel's.
    MarkMismatch,
    /// The store failed.
    StoreFailed,
    /// The disk has little room: these precedences are refused, or no longer.
    SpaceLow,
    /// The disk has room again: all precedences are taken.
    SpaceBack,
    /// The disk changed or lost a record or a content: its message is set aside, or reported.
    Damaged,
    /// The recording of inputs ended before the node: at its limit, or because it could not be written.
    RecordingEnded,
}

impl Kind {
    /// snake_case name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ClockSet => "clock_set",
            Kind::ClockDoubted => "clock_doubted",
            Kind::ClockTrusted => "clock_trusted",
            Kind::Redirected => "redirected",
            Kind::TraceDoubted => "trace_doubted",
            Kind::AssociationOpened => "association_opened",
            Kind::AssociationRefused => "association_refused",
            Kind::AssociationReleased => "association_released",
            Kind::AssociationLost => "association_lost",
            Kind::WaitEnded => "wait_ended",
            Kind::WindowChanged => "window_changed",
            Kind::ChannelOrdered => "channel_ordered",
            Kind::Submitted => "submitted",
            Kind::SubmissionRefused => "submission_refused",
            Kind::Received => "received",
            Kind::DuplicateDropped => "duplicate_dropped",
            Kind::IdentifierReused => "identifier_reused",
            Kind::ReceiveFailed => "receive_failed",
            Kind::Overdue => "overdue",
            Kind::Expired => "expired",
            Kind::Cancelled => "cancelled",
            Kind::Paused => "paused",
            Kind::Resumed => "resumed",
            Kind::Minimize => "minimize",
            Kind::Held => "held",
            Kind::Expanded => "expanded",
            Kind::ListChanged => "list_changed",
            Kind::OperatorHeld => "operator_held",
            Kind::OperatorReleased => "operator_released",
            Kind::OperatorRetried => "operator_retried",
            Kind::OperatorRerouted => "operator_rerouted",
            Kind::OperatorExpired => "operator_expired",
            Kind::OperatorDeleted => "operator_deleted",
            Kind::OperatorOrder => "operator_order",
            Kind::TransferStarted => "transfer_started",
            Kind::TransferConfirmed => "transfer_confirmed",
            Kind::TransferStalled => "transfer_stalled",
            Kind::TransferFailed => "transfer_failed",
            Kind::MessageBlamed => "message_blamed",
            Kind::ChannelBlamed => "channel_blamed",
            Kind::GivenUp => "given_up",
            Kind::Delivered => "delivered",
            Kind::DeliveryFailed => "delivery_failed",
            Kind::ReportMade => "report_made",
            Kind::NonDelivery => "non_delivery",
            Kind::Reconfigured => "reconfigured",
            Kind::Rerouted => "rerouted",
            Kind::ContentNotReturned => "content_not_returned",
            Kind::NotDisclosed => "not_disclosed",
            Kind::Discarded => "discarded",
            Kind::MarkMismatch => "mark_mismatch",
            Kind::StoreFailed => "store_failed",
            Kind::SpaceLow => "space_low",
            Kind::SpaceBack => "space_back",
            Kind::Damaged => "damaged",
            Kind::RecordingEnded => "recording_ended",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_is_known_and_no_more() {
        let mut event = LogEvent {
            association: Some(AssociationId(7)),
            message: Some("[/C=IT/;a\n\u{9b}2J]".to_owned()),
            entry: Some(EntryId(9)),
            precedence: Some(Precedence::Flash),
            bytes: Some(1_000),
            detail: "1000 octets of content".to_owned(),
            ..LogEvent::new(LogLevel::Info, Kind::TransferStarted)
        };
        assert!(event.is_about_a_message());
        let line = event.line(Utc(1_767_323_045_678_901), "MTA-A", Some(("act", "flash")));
        assert_eq!(
            serde_json::to_string(&line).unwrap(),
            "{\"time\":\"2026-01-02T03:04:05.678901Z\",\"time_us\":1767323045678901,\
             \"mta\":\"MTA-A\",\"event\":\"transfer_started\",\
             \"mts_id\":\"[/C=IT/;a\\\\n\\\\u{9b}2J]\",\"entry\":\"e9\",\"precedence\":\"flash\",\
             \"peer\":\"act\",\"channel\":\"flash\",\"association\":\"a7\",\"bytes\":1000,\
             \"detail\":\"1000 octets of content\"}"
        );
        event =
            LogEvent { message: None, association: None, precedence: None, bytes: None, ..event };
        event.detail.clear();
        assert!(event.is_about_a_message());
        assert_eq!(
            serde_json::to_string(&event.line(Utc(0), "MTA-A", None)).unwrap(),
            "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"time_us\":0,\"mta\":\"MTA-A\",\
             \"event\":\"transfer_started\",\"entry\":\"e9\"}"
        );
        event.entry = None;
        assert!(!event.is_about_a_message());
    }

    #[test]
    fn a_line_names_ten_recipients_and_the_number_of_all() {
        let parties = Parties {
            originator: Some("/c=it/s=\u{1b}ops".to_owned()),
            recipients: (0..12).map(|n| format!("/c=it/s=r{n}")).collect(),
            count: 12,
            content_id: Some("m1".to_owned()),
            copies: Some(2),
        };
        let event = LogEvent {
            parties: Some(Box::new(parties)),
            related: Some("[/C=IT/;r]".to_owned()),
            ..LogEvent::new(LogLevel::Info, Kind::Received)
        };
        let line = event.line(Utc(0), "MTA-A", None);
        assert_eq!(line.originator.as_deref(), Some("/c=it/s=\\u{1b}ops"));
        assert_eq!((line.recipients.len(), line.recipient_count), (10, Some(12)));
        assert_eq!(
            (line.content_id.as_deref(), line.related.as_deref()),
            (Some("m1"), Some("[/C=IT/;r]"))
        );
    }
}
