//! The receipt notifications of what was received, submitted after the deliveries.

use super::Asked;
use crate::send::content_identifier;
use crate::submission::{MtaAccess, Prepared, Watch, submit};
use crate::terminal;
use anyhow::{Context as _, Result};
use std::time::Duration;
use ua::Clock;
use ua::sent::{Entry, SentLog};

/// How long to repeat a submission whose answer was lost.
const RETRY_FOR: Duration = Duration::from_secs(60);

struct Unwatched;

impl Watch for Unwatched {
    fn begin(&mut self) {}
    fn piece(&mut self, _: &[u8]) {}
}

/// Submits a notification for each message that was not acknowledged before; returns how many could
/// not be submitted.
pub(crate) async fn acknowledge(access: &MtaAccess<'_>, asked: Vec<Asked>) -> usize {
    let log = SentLog::new(access.profile.sent_log());
    let (mut user, mut failed) = (None, 0);
    for (number, message) in asked.iter().enumerate() {
        let prepared = match prepare(&log, message, number) {
            Ok(Some(prepared)) => prepared,
            Ok(None) => continue,
            Err(error) => {
                let id = &message.mts_identifier;
                terminal::report_error(&format!("{id} is not acknowledged: {error:#}"));
                failed += 1;
                continue;
            }
        };
        match submit(access, &mut user, &prepared, RETRY_FOR, &mut Unwatched).await {
            Ok(accepted) => {
                let entry = Entry::Acknowledged {
                    mts_identifier: message.mts_identifier.clone(),
                    ipm: message.ipm(),
                    notification: accepted.result.identifier.to_string(),
                };
                if let Err(error) = log.append(&[entry]) {
                    let path = log.path().display();
                    terminal::report_error(&format!("warning: cannot write {path}: {error}"));
                }
            }
            Err(failure) => {
                let (id, reason) = (&message.mts_identifier, failure.reason);
                terminal::report_error(&format!("{id} is not acknowledged: {reason}"));
                failed += 1;
            }
        }
    }
    if let Some(user) = user {
        let _ = user.unbind().await;
    }
    failed
}

/// `None`: it is acknowledged already. A notification whose answer was lost has the same octets again.
fn prepare(log: &SentLog, message: &Asked, number: usize) -> Result<Option<Prepared>> {
    let (new, now) = (content_identifier(number), Clock::utc());
    // What cannot be made is not begun.
    message.acknowledge(&new, now)?;
    let begun = log.acknowledge(&message.mts_identifier, &new, now);
    let begun = begun.with_context(|| format!("cannot write {}", log.path().display()))?;
    let Some((content_identifier, time)) = begun else { return Ok(None) };
    let made = message.acknowledge(&content_identifier, time)?;
    Ok(Some(Prepared {
        precedence: message.precedence(),
        content_identifier,
        dtg: Clock::utc(),
        envelope: made.envelope,
        content: made.content,
        record: ua::sent::Submitted::default(),
        size: 0,
    }))
}
