//! `xuxa send`: submits messages and shows the time until each was accepted.

mod args;
mod envelope;
mod heading;
mod names;
mod record;
mod template;

pub(crate) use args::{SendArgs, content_identifier, run};
pub(crate) use names::Names;
pub(crate) use template::arguments as template;

use crate::show;
use crate::submission::{Accepted, Disposition, Failure, MtaAccess, Prepared, Watch, submit};
use base::Precedence;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use record::Record;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::time::Duration;

/// One line of the result.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sent {
    pub mts_identifier: String,
    pub content_identifier: String,
    pub precedence: Precedence,
    /// Octets of the body.
    pub size: u64,
    /// Octets of the whole content: heading and body.
    pub content_length: u64,
    /// SHA-256 of the whole content.
    pub content_sha256: String,
    pub submission_time: Option<String>,
    /// Our time when the first octet was sent.
    pub submitted_at: String,
    /// From the first octet sent to the answer.
    pub submit_ms: f64,
    /// Rate of the content.
    pub kbit_s: f64,
    /// Number of submissions: more than 1 after a lost answer.
    pub tries: u32,
}

/// A message that was not accepted, or is in doubt.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Unsent {
    pub content_identifier: String,
    /// Date-time group of the heading, as `--dtg` takes it. Repeated with content identifier and
    /// date-time group, it is the same submission.
    pub dtg: String,
    pub precedence: Precedence,
    /// Octets of the body.
    pub size: u64,
    /// Number of submissions.
    pub tries: u32,
    pub reason: String,
}

/// The outcome of all messages.
#[derive(Debug, Default, Serialize)]
pub(crate) struct SendOutcome {
    /// The MTA answered with an MTS identifier.
    pub messages: Vec<Sent>,
    /// All of it was sent without an answer: the MTA may have accepted it or not.
    pub in_doubt: Vec<Unsent>,
    /// The MTA refused it.
    pub refused: Vec<Unsent>,
    /// The MTA never received all of it.
    pub not_sent: Vec<Unsent>,
    /// The cause is our own configuration.
    #[serde(skip)]
    pub is_wrong_use: bool,
    /// Error of the unbind, after all submissions.
    #[serde(skip)]
    pub unbind: Option<String>,
}

impl SendOutcome {
    fn add(&mut self, message: &Prepared, failure: &Failure) {
        let unsent = Unsent {
            content_identifier: message.content_identifier.clone(),
            dtg: message.dtg.to_utc_time(),
            precedence: message.precedence,
            size: message.size(),
            tries: failure.tries,
            reason: failure.reason.clone(),
        };
        match failure.disposition {
            Disposition::InDoubt => self.in_doubt.push(unsent),
            Disposition::Refused => self.refused.push(unsent),
            Disposition::NotSent => self.not_sent.push(unsent),
        }
    }
}

/// Submits the messages one after the other, on one association while it lasts. It continues after a
/// refused message or one in doubt, and stops after one that could not be sent, or Ctrl-C.
pub(crate) async fn send(
    access: &MtaAccess<'_>,
    messages: &[Prepared],
    retry_for: Duration,
) -> SendOutcome {
    let mut outcome = SendOutcome::default();
    let mut user = None;
    let mut rest = messages.iter();
    let log = Record::new(access);
    for message in rest.by_ref() {
        log.begun(message);
        let mut watch = Watching::new(access.progress, message);
        let submitted = submit(access, &mut user, message, retry_for, &mut watch).await;
        watch.bar.finish_and_clear();
        match submitted {
            Ok(accepted) => {
                log.accepted(message, &accepted);
                outcome.messages.push(watch.sent(message, &accepted));
            }
            Err(failure) => {
                log.failed(message, &failure);
                outcome.add(message, &failure);
                outcome.is_wrong_use |= failure.is_wrong_use;
                if failure.disposition == Disposition::NotSent {
                    break;
                }
            }
        }
        if access.is_interrupted() {
            break;
        }
    }
    for message in rest {
        let reason = match access.is_interrupted() {
            true => "interrupted",
            false => "the one before it could not be sent",
        };
        outcome.add(message, &Failure::not_tried(reason));
    }
    if let Some(user) = user {
        outcome.unbind = user.unbind().await.err().map(|error| format!("{error:#}"));
    }
    outcome
}

/// The hash of the octets sent, and the progress bar.
struct Watching {
    hasher: Sha256,
    bar: ProgressBar,
}

impl Watching {
    fn new(progress_wanted: bool, message: &Prepared) -> Watching {
        Watching { hasher: Sha256::new(), bar: progress(progress_wanted, message.content.len()) }
    }

    fn sent(self, message: &Prepared, accepted: &Accepted) -> Sent {
        let content_length = message.content.len();
        Sent {
            mts_identifier: accepted.result.identifier.to_string(),
            content_identifier: message.content_identifier.clone(),
            precedence: message.precedence,
            size: message.size(),
            content_length,
            content_sha256: show::hex(&self.hasher.finalize()),
            submission_time: accepted.result.time.utc.map(|t| t.to_string()),
            submitted_at: accepted.begun.to_string(),
            submit_ms: accepted.elapsed.as_secs_f64() * 1e3,
            kbit_s: show::kbit_s(content_length, accepted.elapsed),
            tries: accepted.tries,
        }
    }
}

impl Watch for Watching {
    fn begin(&mut self) {
        self.hasher = Sha256::new();
        self.bar.set_position(0);
    }

    fn piece(&mut self, octets: &[u8]) {
        self.hasher.update(octets);
        self.bar.inc(octets.len() as u64);
    }
}

/// A progress bar on standard error, for large messages.
fn progress(wanted: bool, octets: u64) -> ProgressBar {
    if !wanted || octets < 1_000_000 {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(octets), ProgressDrawTarget::stderr());
    let style = "{bar:40.cyan} {decimal_bytes:>9} of {decimal_total_bytes} {decimal_bytes_per_sec:>11} {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
