//! What reply and forward share: a new message to people, submitted over the association with the store.

use super::bind;
use super::line::Line;
use super::read::labels;
use super::sent;
use crate::profile;
use crate::show;
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::{Context as _, Result};
use base::rng::Rng;
use base::{Precedence, Utc};
use p1::content_type::ContentType;
use p1::extension::ExtensionField;
use p1::names::ORName;
use p1::p3::{MessageSubmissionEnvelope, SubmissionResult};
use p772::{Heading, IpmIdentifier, MAX_SUBJECT, Military, MmhsPrecedence, RecipientSpecifier};
use serde::Serialize;
use std::io::Read as _;
use std::time::Duration;
use tokio::time::timeout;
use ua::sent::{Entry as LogEntry, Submitted};
use ua::store::{Fetched, Store, StoreError};
use ua::{Clock, Content, Message};

/// How long a submission whose answer was lost is repeated.
const RETRY_FOR: Duration = Duration::from_secs(60);
/// Wait before each repetition.
const PAUSE: Duration = Duration::from_secs(1);
/// Most octets of a text from standard input.
const MAX_TEXT: u64 = 64 << 20;

/// The message may be accepted or not: the exit code is 4.
#[derive(Debug, thiserror::Error)]
#[error(
    "in doubt: no answer to submission {0}, and it may be accepted: look for a report or ask its recipients \
         before sending it again"
)]
pub(super) struct InDoubt(String);

/// A new message.
pub(super) struct Draft {
    pub to: Vec<ORName>,
    pub copy: Vec<ORName>,
    pub precedence: Precedence,
    pub subject: Option<String>,
    /// P22, without military fields.
    pub civil: bool,
    /// message-security-label of the envelope: what is forwarded is as secret as what came.
    pub labels: Vec<ExtensionField>,
}

/// The result.
#[derive(Debug, Serialize)]
struct Accepted<'a> {
    mts_identifier: String,
    content_identifier: &'a str,
    precedence: Precedence,
    to: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    submission_time: Option<String>,
    content_length: u64,
}

/// A draft with its names and time.
pub(super) struct Prepared {
    draft: Draft,
    originator: ORName,
    identifier: String,
    at: Utc,
}

/// A submission that is surely not accepted.
fn ended(record: &Submitted, error: &anyhow::Error) -> LogEntry {
    LogEntry::Ended {
        content_identifier: record.content_identifier.clone(),
        ipm: record.ipm.clone(),
        outcome: "not_sent".to_owned(),
        reason: format!("{error:#}"),
    }
}

/// Warns where what answers a labelled message goes without a label: a clearance may refuse it later.
pub(super) fn warn_of_label(access: &MtaAccess<'_>, fetched: &Fetched, given: bool) {
    let envelope = fetched.envelope.as_ref();
    let labels = envelope.map(|envelope| labels(&envelope.extensions)).unwrap_or_default();
    if let Some(label) = labels.first()
        && !given
        && access.profile.label.is_none()
    {
        terminal::report_error(&format!(
            "warning: the message has the security label {label}, and what answers it has none: \
             --label, or label in the profile"
        ));
    }
}

impl Draft {
    pub(super) fn prepare(self, access: &MtaAccess<'_>) -> Result<Prepared> {
        let at = Clock::utc();
        let seed = at.0 ^ u64::from(std::process::id()) << 44;
        let identifier = format!("{:016X}", Rng::new(seed).next_u64());
        Ok(Prepared { originator: access.profile.user()?, draft: self, identifier, at })
    }
}

impl Prepared {
    /// The heading, but for what relates it to another message.
    pub(super) fn heading(&self) -> Heading {
        let names = |all: &[ORName]| all.iter().cloned().map(RecipientSpecifier::from).collect();
        let draft = &self.draft;
        let precedence = MmhsPrecedence::from(draft.precedence);
        let military = Military {
            primary_precedence: Some(precedence),
            copy_precedence: (!draft.copy.is_empty()).then_some(precedence),
            authorised_at: Some(self.at),
            ..Military::default()
        };
        let user = Some(self.originator.clone());
        Heading {
            this_ipm: IpmIdentifier { user, local: self.identifier.clone() },
            originator: Some(self.originator.clone().into()),
            primary_recipients: names(&draft.to),
            copy_recipients: names(&draft.copy),
            subject: draft.subject.clone(),
            military: if draft.civil { Military::default() } else { military },
            ..Heading::default()
        }
    }

    fn envelope(&self) -> MessageSubmissionEnvelope {
        let draft = &self.draft;
        let everyone = draft.to.iter().chain(&draft.copy).cloned().collect();
        let of = (self.originator.clone(), draft.precedence);
        let message = Message::canned(of.0, everyone, of.1, 0, &self.identifier);
        let mut envelope = message.envelope();
        if draft.civil {
            envelope.content_type = ContentType::P22;
        }
        envelope.extensions.0.extend(draft.labels.clone());
        envelope
    }

    fn record(&self, size: u64) -> Submitted {
        let recipients = self.draft.to.iter().chain(&self.draft.copy);
        Submitted {
            ipm: ua::form::show_ipm(&self.heading().this_ipm),
            content_identifier: self.identifier.clone(),
            dtg: self.at.to_utc_time(),
            subject: self.draft.subject.clone(),
            recipients: recipients.map(|name| name.address.to_string()).collect(),
            precedence: self.draft.precedence.to_string(),
            size,
            time: self.at.to_string(),
            ..Submitted::default()
        }
    }

    /// Submits, again where the answer was lost, and shows the result.
    pub(super) async fn submit(
        &self,
        access: &MtaAccess<'_>,
        store: &mut Store,
        content: &Content,
        json: bool,
    ) -> Result<()> {
        let envelope = self.envelope();
        let mut record = self.record(content.len());
        sent::append(access, &[LogEntry::Begun(record.clone())]);
        let result = surely(access, store, &envelope, content).await;
        let result = match result {
            Ok(result) => result,
            Err(error) => {
                if !error.is::<InDoubt>() {
                    sent::append(access, &[ended(&record, &error)]);
                }
                return Err(error);
            }
        };
        record.mts_identifier = result.identifier.to_string();
        sent::append(access, &[LogEntry::Accepted(record)]);
        let accepted = Accepted {
            mts_identifier: result.identifier.to_string(),
            content_identifier: &self.identifier,
            precedence: self.draft.precedence,
            to: envelope.recipients.iter().map(|to| to.recipient.address.to_string()).collect(),
            submission_time: result.time.utc.map(|time| time.to_string()),
            content_length: content.len(),
        };
        if json {
            terminal::print_json(&accepted);
        } else {
            let (id, precedence) = (&accepted.mts_identifier, accepted.precedence);
            let (size, to) = (show::size(content.len()), accepted.to.join("; "));
            terminal::print(&format!("accepted: {id}, {precedence}, {size}, to {to}"));
        }
        Ok(())
    }
}

/// Submits, and again where the answer was lost: our MTA answers a repetition of the same octets with the first MTS
/// identifier.
pub(super) async fn surely(
    access: &MtaAccess<'_>,
    store: &mut Store,
    envelope: &MessageSubmissionEnvelope,
    content: &Content,
) -> Result<SubmissionResult> {
    let identifier = envelope.content_identifier.as_deref().unwrap_or_default();
    let until = access.clock.now() + RETRY_FOR;
    let mut is_in_doubt = false;
    loop {
        let error = match store.submit(envelope, content).await {
            Ok(result) => return Ok(result),
            Err(not) => {
                is_in_doubt |= not.is_uncertain;
                not.error
            }
        };
        let mut lost = matches!(error, StoreError::Lost(_));
        let mut error = anyhow::Error::from(error);
        while lost && access.clock.now() < until && !access.is_interrupted() {
            terminal::report_error(&format!("{error:#}; submitting {identifier} again"));
            let _ = timeout(PAUSE, access.interrupted.wait()).await;
            match bind(access).await {
                Ok(again) => {
                    *store = again;
                    break;
                }
                Err(other) => {
                    lost = matches!(
                        other.downcast_ref::<StoreError>(),
                        Some(StoreError::NotConnected(_) | StoreError::Lost(_))
                    );
                    error = other;
                }
            }
        }
        if !lost || access.clock.now() >= until || access.is_interrupted() {
            return Err(match is_in_doubt {
                true => error.context(InDoubt(identifier.to_owned())),
                false => error,
            });
        }
    }
}

/// A subject with a prefix, once; cut where a heading would not hold it.
pub(super) fn subject(prefix: &str, of: Option<&str>) -> Option<String> {
    let of = of?;
    let has = of.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let whole = if has { of.to_owned() } else { format!("{prefix}{of}") };
    Some(whole.chars().take(MAX_SUBJECT).collect())
}

/// A text, or standard input for `-`.
pub(super) fn text(given: &str) -> Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut octets = Vec::new();
    let mut input = std::io::stdin().lock().take(MAX_TEXT + 1);
    input.read_to_end(&mut octets).context("cannot read standard input")?;
    if octets.len() as u64 > MAX_TEXT {
        anyhow::bail!(profile::Wrong("standard input is longer than 64 MiB of text".to_owned()));
    }
    String::from_utf8(octets).map_err(|_| {
        profile::Wrong("standard input is not UTF-8 text: send it as a file".to_owned()).into()
    })
}

/// The precedence of the message that is answered or forwarded, unless another is given.
pub(super) fn precedence(given: Option<Precedence>, of: &Line) -> Precedence {
    given.or(of.precedence).unwrap_or(Precedence::Routine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_comes_once_and_a_subject_is_not_too_long() {
        let re = |of| subject("Re: ", of);
        assert_eq!(re(Some("Fire")).as_deref(), Some("Re: Fire"));
        assert_eq!(re(Some("RE: Fire")).as_deref(), Some("RE: Fire"));
        assert_eq!(re(Some("é")).as_deref(), Some("Re: é"));
        assert_eq!(re(None), None);
        assert_eq!(re(Some(&"x".repeat(200))).unwrap().len(), MAX_SUBJECT);
    }
}
