//! The record of what is sent. A message is more important than its record: where that cannot be
//! written, `xuxa` warns and submits all the same.

use crate::submission::{Accepted, Disposition, Failure, MtaAccess, Prepared};
use crate::terminal;
use ua::Clock;
use ua::sent::{Entry, SentLog, Submitted};

/// The profile's record.
pub(super) struct Record(SentLog);

impl Record {
    pub(super) fn new(access: &MtaAccess<'_>) -> Record {
        Record(SentLog::new(access.profile.sent_log()))
    }

    /// A submission begins: if nothing follows, it is in doubt.
    pub(super) fn begun(&self, message: &Prepared) {
        let time = Clock::utc().to_string();
        self.append(Entry::Begun(Submitted { time, ..message.record.clone() }));
    }

    pub(super) fn accepted(&self, message: &Prepared, accepted: &Accepted) {
        self.append(Entry::Accepted(Submitted {
            mts_identifier: accepted.result.identifier.to_string(),
            time: accepted.begun.to_string(),
            ..message.record.clone()
        }));
    }

    pub(super) fn failed(&self, message: &Prepared, failure: &Failure) {
        let outcome = match failure.disposition {
            Disposition::InDoubt => return,
            Disposition::Refused => "refused",
            Disposition::NotSent => "not_sent",
        };
        self.append(Entry::Ended {
            content_identifier: message.content_identifier.clone(),
            ipm: message.record.ipm.clone(),
            outcome: outcome.to_owned(),
            reason: failure.reason.clone(),
        });
    }

    fn append(&self, entry: Entry) {
        if let Err(error) = self.0.append(&[entry]) {
            let path = self.0.path().display();
            terminal::report_error(&format!(
                "warning: cannot write the record of what was sent, {path}: {error}"
            ));
        }
    }
}
