//! The record of what was sent, for the verbs on a mailbox. A message is more important than its record: where that
//! cannot be written, `xuxa` warns.

use super::content::Reader;
use crate::receive::ReportLine;
use crate::submission::MtaAccess;
use crate::terminal;
use p772::NotificationOutcome;
use ua::sent::{Entry as LogEntry, SentLog};
use ua::store::Fetched;

/// Adds to the profile's record.
pub(super) fn append(access: &MtaAccess<'_>, entries: &[LogEntry]) {
    let log = SentLog::new(access.profile.sent_log());
    if !entries.is_empty()
        && let Err(error) = log.append(entries)
    {
        let path = log.path().display();
        terminal::report_error(&format!(
            "warning: cannot write the record of what was sent, {path}: {error}"
        ));
    }
}

/// What a report or a notification states, as lines of the record.
pub(crate) fn outcomes(fetched: &Fetched, reader: &Reader) -> Vec<LogEntry> {
    if let Some(report) = &fetched.report {
        let line = |recipient| {
            let line = ReportLine::from_recipient(recipient);
            LogEntry::Reported {
                mts_identifier: report.subject_identifier.to_string(),
                recipient: line.recipient,
                delivered: line.delivered,
                detail: line.delivery_time.or(line.because).unwrap_or_default(),
            }
        };
        return report.recipients.iter().map(line).collect();
    }
    let notification = reader.notification.as_ref();
    let notification = notification.and_then(|octets| p772::Notification::parse(octets).ok());
    let Some(notification) = notification else { return Vec::new() };
    let named = notification.originator.as_ref().and_then(|o| o.formal_name.as_ref());
    let recipient =
        named.or(fetched.entry.originator.as_ref()).map(|name| name.address.to_string());
    vec![LogEntry::Notified {
        ipm: ua::form::show_ipm(&notification.subject_ipm),
        recipient: recipient.unwrap_or_default(),
        read: matches!(notification.outcome, NotificationOutcome::Receipt(_)),
        detail: ua::heading::outcome(&notification.outcome),
    }]
}
