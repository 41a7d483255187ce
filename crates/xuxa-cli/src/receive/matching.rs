//! What was received is matched with the record of what was sent.

use super::{Received, ReceivedMessage, ReceivedReport};
use crate::submission::MtaAccess;
use crate::terminal;
use ua::sent::{Entry, Sent, SentLog};

/// The record of what was sent, as of the beginning, and where reports and notifications are added.
pub(crate) struct Matching {
    log: SentLog,
    sent: Sent,
}

impl Matching {
    pub(crate) fn new(access: &MtaAccess<'_>) -> Matching {
        let log = SentLog::new(access.profile.sent_log());
        let sent = log.read().unwrap_or_else(|error| {
            let path = log.path().display();
            terminal::report_error(&format!("warning: cannot read {path}: {error}"));
            Sent::default()
        });
        Matching { log, sent }
    }

    /// The line with the subject and date-time group of the message that it is about. What it states
    /// of a message of ours is added to the record.
    pub(crate) fn matched(&mut self, line: &Received) -> Received {
        let mut line = line.clone();
        let entries = match &mut line {
            Received::Report(report) => self.report(report),
            Received::Message(message) => self.notification(message).into_iter().collect(),
        };
        if !entries.is_empty()
            && let Err(error) = self.log.append(&entries)
        {
            let path = self.log.path().display();
            terminal::report_error(&format!("warning: cannot write {path}: {error}"));
        }
        line
    }

    fn report(&mut self, report: &mut ReceivedReport) -> Vec<Entry> {
        // The message may have been sent since we began.
        if self.sent.by_mts(&report.mts_identifier).is_none() {
            self.sent = self.log.read().unwrap_or_default();
        }
        let Some(message) = self.sent.by_mts(&report.mts_identifier) else { return Vec::new() };
        report.dtg = Some(message.submitted.dtg.clone());
        if report.subject.is_none() {
            report.subject.clone_from(&message.submitted.subject);
        }
        let entry = |line: &super::ReportLine| Entry::Reported {
            mts_identifier: report.mts_identifier.clone(),
            recipient: line.recipient.clone(),
            delivered: line.delivered,
            detail: match line.delivered {
                true => line.delivery_time.clone().unwrap_or_default(),
                false => line.because.clone().unwrap_or_default(),
            },
        };
        report.recipients.iter().map(entry).collect()
    }

    fn notification(&mut self, message: &mut ReceivedMessage) -> Option<Entry> {
        let (notification, ipm) = (message.notification.as_mut()?, message.ipm.as_ref()?);
        if self.sent.by_ipm(ipm).next().is_none() {
            self.sent = self.log.read().unwrap_or_default();
        }
        let known = self.sent.by_ipm(ipm).next()?;
        notification.subject.clone_from(&known.submitted.subject);
        notification.dtg = Some(known.submitted.dtg.clone());
        Some(Entry::Notified {
            ipm: ipm.clone(),
            recipient: notification.recipient.clone(),
            read: notification.read,
            detail: notification.outcome.clone(),
        })
    }
}
