//! `xuxa receive`: takes what the MTA delivers, keeps it, and only then confirms it.

mod acknowledge;
mod args;
mod copy;
mod matching;
mod reading;
mod reason_text;
mod report;

pub(crate) use args::{ReceiveArgs, run};
pub(crate) use matching::Matching;
pub(crate) use reading::Reading;
pub(crate) use report::{ReceivedReport, ReportLine};

use crate::extract::Extraction;
use crate::inbox::{Inbox, Incoming, Kept, NotKept, Taking, file_name};
use crate::mailbox::read::labels;
use crate::show;
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::{Context, Result, bail};
use base::ber::{Element, Writer};
use base::{Precedence, Utc};
use copy::copy_of;
use osi::api::{Indication, Problem, Request};
use p1::flags::Priority;
use p1::p3::{
    AccessError, ArgumentEvent, Controls, DeliveryParser, DeliveryResult, EMPTY_RESULT,
    MessageDeliveryEnvelope, Waiting, operation,
};
use p772::{Heading, Notification, NotificationOutcome, RecipientSpecifier};
use report::ReportReading;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use ua::{Clock, Lost, Services, User, describe};

/// Without `--wait`, receiving ends when all waiting deliveries were taken, or after this time
/// without one.
const QUIET: Duration = Duration::from_secs(5);
/// The conditions that end a reception.
#[derive(Clone, Debug, Default)]
pub(crate) struct Until {
    /// Continue when no delivery waits.
    pub wait: bool,
    /// Stop after this number of deliveries.
    pub count: Option<u64>,
    /// Stop after this time.
    pub timeout: Option<Duration>,
    /// Have the MTA hold back what is of a lower priority.
    pub at_least: Option<Priority>,
    /// Stop after the outcome of so many recipients of this message or probe, by its MTS identifier.
    pub reported: Option<(String, usize)>,
}

impl Until {
    /// Whether the last outcome came that was waited for.
    fn is_reported(&mut self, delivery: &Received) -> bool {
        let (Some((subject, left)), Received::Report(report)) = (&mut self.reported, delivery)
        else {
            return false;
        };
        if report.mts_identifier == *subject {
            *left = left.saturating_sub(report.recipients.len());
        }
        *left == 0
    }
}

/// Destination of deliveries.
pub(crate) struct To<'a> {
    pub inbox: &'a mut Inbox,
    /// Destination of the files in them, with `--extract`.
    pub files: Option<&'a Extraction>,
    /// Messages whose originators asked for a notification of receipt, with `--acknowledge`.
    pub asked: Option<Vec<Asked>>,
}

/// A message that asks for an acknowledgement.
pub(crate) struct Asked {
    pub mts_identifier: String,
    heading: Box<Heading>,
    envelope: Box<MessageDeliveryEnvelope>,
}

impl Asked {
    /// The precedence that the heading has, else the lowest that the envelope's priority allows.
    pub(crate) fn precedence(&self) -> Precedence {
        let level = self.heading.military.primary_precedence.and_then(|p| p.level());
        level.unwrap_or(match self.envelope.priority {
            Priority::Urgent => Precedence::Flash,
            Priority::Normal => Precedence::Priority,
            Priority::NonUrgent => Precedence::Deferred,
        })
    }

    /// The acknowledgement by the user who received it.
    pub(crate) fn acknowledge(
        &self,
        content_identifier: &str,
        time: Utc,
    ) -> Result<ua::receipt::Acknowledgement> {
        let precedence = self.precedence();
        let received = ua::receipt::Received {
            heading: &self.heading,
            originator: &self.envelope.originator,
            content_type: &self.envelope.content_type,
            precedence,
        };
        received.acknowledge(&self.envelope.this_recipient, time, content_identifier)
    }

    pub(crate) fn ipm(&self) -> String {
        ua::form::show_ipm(&self.heading.this_ipm)
    }
}

/// One line of the result.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Received {
    Message(Box<ReceivedMessage>),
    Report(ReceivedReport),
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReceivedMessage {
    pub mts_identifier: String,
    pub originator: String,
    /// The recipient of this delivery.
    pub this_recipient: String,
    /// Whom the originator sent it to, if it was redirected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended_recipient: Option<String>,
    /// Recipients for action and for information, from the heading; blind ones count as the latter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
    /// From the heading, where the content is P772; else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precedence: Option<Precedence>,
    /// P1's three grades.
    pub priority: String,
    pub content_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_identifier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Date-time group of the heading, in the form of `xuxa send --dtg`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtg: Option<String>,
    pub sics: Vec<String>,
    /// In the form of `xuxa send --message-type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_type: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<String>,
    /// All fields of the heading, or of the notification, in a fixed order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heading: Vec<HeadingField>,
    /// message-security-label of the envelope, as `xuxa send --label` takes it; of several, the highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// All of them, the highest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// IPM identifier; that of the message in question where this is a notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipm: Option<String>,
    /// What the notification states, where this is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notification: Option<NotificationLine>,
    /// Octets of the body parts.
    pub size: u64,
    pub content_length: u64,
    pub content_sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_time: Option<String>,
    /// Our time when it was complete and kept.
    pub received_at: String,
    /// From the first octet of the delivery to the last.
    pub receive_ms: f64,
    pub kbit_s: f64,
    /// Delivered before: confirmed again, kept once.
    pub duplicate: bool,
    /// Another content was delivered under the same identifier: one of the two is forged.
    pub identifier_reused: bool,
    /// The beginning of the text, where the body has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether that is all of the body.
    #[serde(skip)]
    pub text_is_all: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The extracted files of its body.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extracted: Vec<String>,
    /// Files of its body beyond the limit; they are in the kept content.
    #[serde(skip_serializing_if = "is_none")]
    pub not_extracted: u64,
}

/// A field of a heading, its value unchanged.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HeadingField {
    pub field: &'static str,
    pub value: String,
}

/// A notification, and the message that it is about if we have sent that.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NotificationLine {
    pub read: bool,
    pub outcome: String,
    /// The user it comes from.
    pub recipient: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtg: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// A reception ended because a delivery could not be kept; this number still waits at the MTA.
#[derive(Debug, thiserror::Error)]
#[error("{0} messages still wait at the MTA")]
pub(crate) struct StillWaiting(pub u64);

/// Takes deliveries until `until`; returns how many that waited at the start still wait (0 with
/// `--wait` or `--count`).
///
/// # Errors
/// [`StillWaiting`] where the inbox could not keep a delivery.
pub(crate) async fn receive(
    access: &MtaAccess<'_>,
    to: &mut To<'_>,
    until: Until,
    each: impl FnMut(&Received),
) -> Result<u64> {
    let mut user = access.bind(Services::Delivery).await?;
    let waiting = user.bound.messages_waiting.map_or(0, |w| {
        let mut counts = [w.urgent.messages, w.normal.messages, w.non_urgent.messages];
        match until.at_least {
            Some(Priority::Urgent) => counts = [w.urgent.messages, 0, 0],
            Some(Priority::Normal) => counts = [w.urgent.messages, w.normal.messages, 0],
            Some(Priority::NonUrgent) | None => {}
        }
        counts.into_iter().map(|n| u64::try_from(n).unwrap_or(0)).sum::<u64>()
    });
    if let Some(lowest) = until.at_least {
        let controls = Controls { lowest_priority: Some(lowest), ..Controls::default() };
        user.request_controls(CONTROL, &controls);
    }
    let mut count = 0u64;
    let all = until.wait || until.count.is_some();
    match deliveries(access, &mut user, to, until, waiting, &mut count, each).await {
        Ok(()) => {
            user.unbind().await?;
            Ok(if all { 0 } else { waiting.saturating_sub(count) })
        }
        Err(error) => {
            user.abort().await;
            // The one that was not kept waits too, also if it came after the bind.
            let left = waiting.saturating_sub(count).max(1);
            Err(if error.is::<NotKept>() { error.context(StillWaiting(left)) } else { error })
        }
    }
}

/// Takes deliveries, and counts them in `count`.
async fn deliveries(
    access: &MtaAccess<'_>,
    user: &mut User,
    to: &mut To<'_>,
    mut until: Until,
    waiting: u64,
    count: &mut u64,
    mut each: impl FnMut(&Received),
) -> Result<()> {
    let end = until.timeout.map(|t| access.clock.now() + t);
    // The answer comes after what the MTA had begun to deliver, and has to be taken before the unbind.
    let mut is_control_open = until.at_least.is_some();
    loop {
        let enough = until.count.is_some_and(|n| *count >= n)
            || (!until.wait && until.count.is_none() && *count >= waiting);
        if enough && !is_control_open {
            break;
        }
        let left = end.map(|at| at.since(access.clock.now()));
        let patience = if !enough && (until.wait || until.count.is_some()) {
            left
        } else {
            Some(left.map_or(QUIET, |l| l.min(QUIET)))
        };
        match user.next(patience).await? {
            None => break,
            // Not confirmed: it waits at the MTA.
            Some(Indication::Invoked { .. }) if enough => {}
            Some(Indication::Invoked { invoke, operation }) => {
                let one = match operation {
                    operation::MESSAGE_DELIVERY => take_message(access, user, to, invoke).await,
                    operation::REPORT_DELIVERY => take_report(user, to.inbox, invoke).await,
                    _ => {
                        reject(user, invoke, UNRECOGNIZED_OPERATION).await?;
                        continue;
                    }
                };
                if let Err(error) = &one {
                    refuse(user, invoke, error).await?;
                }
                let one = one?;
                each(&one);
                *count += 1;
                if until.is_reported(&one) {
                    break;
                }
            }
            Some(Indication::Data { .. }) => {}
            Some(Indication::Returned { invoke: CONTROL }) => {
                is_control_open = false;
                if waits_below(user).await? {
                    terminal::report_error("messages of a lower priority wait at the MTA");
                }
            }
            Some(Indication::ReturnedError { invoke: CONTROL, error }) => {
                let error = AccessError::read(error, None).map(|e| e.name());
                let name = error.unwrap_or("an error");
                bail!("the MTA does not hold back what is of a lower priority: {name}");
            }
            other => bail!(Lost(describe(other.as_ref()))),
        }
    }
    Ok(())
}

/// The invoke identifier of delivery-control.
const CONTROL: i64 = 1;

/// Reads the result of delivery-control: whether anything of a lower priority waits.
async fn waits_below(user: &mut User) -> Result<bool> {
    let mut octets = Vec::new();
    loop {
        let (piece, last) = user.data().await?;
        octets.extend_from_slice(&piece);
        if octets.len() > MAX_WAITING {
            bail!(Lost("the result of delivery-control is longer than 64 KiB".to_owned()));
        }
        if last {
            let element = Element::parse(&octets).context("in the result of delivery-control")?;
            let waiting = Waiting::read(&element).context("in the result of delivery-control")?;
            return Ok(waiting.low_priority);
        }
    }
}

/// Longest result of delivery-control, octets.
const MAX_WAITING: usize = 64 << 10;

/// Invoke problems of a ROSE reject (X.229 clause 9).
const UNRECOGNIZED_OPERATION: Problem = Problem { kind: 1, value: 1 };
const MISTYPED: Problem = Problem { kind: 1, value: 2 };
const RESOURCE_LIMITATION: Problem = Problem { kind: 1, value: 3 };

/// Refuses a delivery, if the association still exists.
pub(crate) async fn refuse(user: &mut User, invoke: i64, error: &anyhow::Error) -> Result<()> {
    if error.is::<Lost>() {
        return Ok(());
    }
    // Neither delivery operation has a fitting error (X.411 8.3.1).
    let ours = error.is::<NotKept>();
    reject(user, invoke, if ours { RESOURCE_LIMITATION } else { MISTYPED }).await
}

async fn reject(user: &mut User, invoke: i64, problem: Problem) -> Result<()> {
    user.request(Request::Reject { invoke: Some(invoke), problem });
    user.flush().await
}

/// A message being received.
struct Coming<'a> {
    envelope: Box<MessageDeliveryEnvelope>,
    identifier: String,
    /// Its name in the inbox.
    copy: String,
    incoming: Incoming,
    reading: Reading<'a>,
    length: u64,
}

impl<'a> Coming<'a> {
    fn begin(to: &mut To<'a>, envelope: Box<MessageDeliveryEnvelope>) -> Result<Coming<'a>> {
        let identifier = envelope.identifier.to_string();
        let copy = copy_of(&identifier, &envelope.extensions);
        let incoming = to.inbox.begin(&copy)?;
        let otherwise = || format!("{}.bin", file_name(&identifier, ""));
        let files = to.files.map(|files| files.message(otherwise()));
        let reading = Reading::new(files);
        Ok(Coming { envelope, incoming, reading, identifier, copy, length: 0 })
    }

    fn take(&mut self, octets: &[u8]) -> Result<()> {
        self.length += octets.len() as u64;
        self.reading.take(octets)?;
        self.incoming.write(octets)
    }
}

async fn take_message(
    access: &MtaAccess<'_>,
    user: &mut User,
    to: &mut To<'_>,
    invoke: i64,
) -> Result<Received> {
    let start = access.clock.now();
    let mut parser = DeliveryParser::default();
    let mut coming: Option<Coming<'_>> = None;
    loop {
        let (bytes, last) = user.data().await?;
        let mut rest: &[u8] = &bytes;
        while let Some(event) = parser.next(&mut rest).context("in the message delivery")? {
            match (event, &mut coming) {
                (ArgumentEvent::Envelope(envelope), _) => {
                    coming = Some(Coming::begin(to, envelope)?);
                }
                (ArgumentEvent::Content(octets), Some(coming)) => coming.take(octets)?,
                (ArgumentEvent::Content(_) | ArgumentEvent::End, _) => {}
            }
        }
        if last {
            break;
        }
    }
    let Some(mut coming) = coming else {
        bail!("the MTA delivered a message without an envelope");
    };
    if !parser.is_done() {
        bail!("the MTA's message delivery was cut short");
    }
    let elapsed = access.clock.now().since(start);
    let files = coming.reading.files();
    let not_extracted = files.as_ref().map_or(0, |files| files.left_out);
    let mut extracted = Vec::new();
    let publish = |taking: &mut Taking<'_>| {
        extracted = files.map_or(Ok(Vec::new()), |files| files.publish(taking))?;
        Ok(())
    };
    let kept = to.inbox.finish(coming.incoming, &coming.copy, "content", publish)?;
    let received_at = Clock::utc().to_string();
    let mut writer = Writer::new();
    DeliveryResult::default().write(&mut writer);
    user.answer(invoke, operation::MESSAGE_DELIVERY, writer.into_vec()).await?;
    let summary = Summary { envelope: &coming.envelope, reading: &coming.reading, kept, extracted };
    let length = coming.length;
    let mut message = summary.message(coming.identifier.clone(), length);
    if let (Some(asked), Some(heading)) = (&mut to.asked, coming.reading.heading.take())
        && ua::receipt::requested_of(&heading, &coming.envelope, &coming.envelope.this_recipient)
            .receipt
    {
        let mts_identifier = coming.identifier;
        asked.push(Asked { mts_identifier, heading, envelope: coming.envelope });
    }
    message.not_extracted = not_extracted;
    message.received_at = received_at;
    message.receive_ms = elapsed.as_secs_f64() * 1e3;
    message.kbit_s = show::kbit_s(length, elapsed);
    Ok(Received::Message(Box::new(message)))
}

/// Envelope and content of a message, and the outcome.
struct Summary<'a> {
    envelope: &'a MessageDeliveryEnvelope,
    reading: &'a Reading<'a>,
    kept: Kept,
    extracted: Vec<PathBuf>,
}

impl Summary<'_> {
    fn notification(&self, notification: &Notification) -> NotificationLine {
        let from = notification.originator.as_ref();
        let recipient = from.or(notification.intended_recipient.as_ref());
        let otherwise = || self.envelope.originator.address.to_string();
        NotificationLine {
            read: matches!(notification.outcome, NotificationOutcome::Receipt(_)),
            outcome: ua::heading::outcome(&notification.outcome),
            recipient: recipient.map_or_else(otherwise, ua::heading::user),
            subject: None,
            dtg: None,
        }
    }

    /// The line of the result, without the measured values.
    fn message(self, mts_identifier: String, length: u64) -> ReceivedMessage {
        let (envelope, reading) = (self.envelope, self.reading);
        let heading = reading.heading.as_deref();
        let military = heading.map(|h| &h.military);
        let names = |all: &[RecipientSpecifier]| all.iter().map(show::recipient).collect();
        let mut copy: Vec<String> = heading.map_or(Vec::new(), |h| names(&h.copy_recipients));
        copy.extend(heading.map_or(Vec::new(), |h| names(&h.blind_copy_recipients)));
        let path = |path: PathBuf| path.display().to_string();
        let notification = reading.notification.as_deref();
        let mut fields = heading.map_or(Vec::new(), ua::heading::fields);
        fields.extend(notification.map_or(Vec::new(), ua::heading::notification));
        let labels = labels(&envelope.extensions);
        ReceivedMessage {
            mts_identifier,
            originator: envelope.originator.address.to_string(),
            this_recipient: envelope.this_recipient.address.to_string(),
            intended_recipient: envelope
                .intended_recipient
                .as_ref()
                .map(|name| name.address.to_string()),
            to: heading.map_or(Vec::new(), |h| names(&h.primary_recipients)),
            copy,
            precedence: military.and_then(|m| m.primary_precedence).and_then(|p| p.level()),
            priority: show::priority(envelope.priority).to_owned(),
            content_type: show::content_type(&envelope.content_type),
            content_identifier: envelope.content_identifier.clone(),
            subject: heading.and_then(|h| h.subject.clone()),
            dtg: military.and_then(|m| m.authorised_at).map(Utc::to_utc_time),
            sics: military.map(|m| m.distribution_codes.sics.clone()).unwrap_or_default(),
            message_type: military.and_then(|m| m.message_type.as_ref()).map(show::message_type),
            instructions: military.map(|m| m.message_instructions.clone()).unwrap_or_default(),
            heading: fields
                .into_iter()
                .map(|f| HeadingField { field: f.label, value: f.value })
                .collect(),
            label: labels.first().cloned(),
            labels,
            ipm: heading
                .map(|h| &h.this_ipm)
                .or(notification.map(|n| &n.subject_ipm))
                .map(ua::form::show_ipm),
            notification: notification.map(|n| self.notification(n)),
            size: if reading.opaque { length } else { reading.size },
            content_length: length,
            content_sha256: self.kept.sha256,
            submission_time: envelope.submission_time.utc.map(|t| t.to_string()),
            delivery_time: envelope.delivery_time.utc.map(|t| t.to_string()),
            received_at: String::new(),
            receive_ms: 0.0,
            kbit_s: 0.0,
            duplicate: self.kept.duplicate,
            identifier_reused: self.kept.identifier_reused,
            text: reading.text(),
            text_is_all: reading.text_is_all(),
            file: self.kept.file.map(path),
            extracted: self.extracted.into_iter().map(path).collect(),
            not_extracted: 0,
        }
    }
}

/// Takes a report of any length: it is streamed to the inbox.
pub(crate) async fn take_report(
    user: &mut User,
    inbox: &mut Inbox,
    invoke: i64,
) -> Result<Received> {
    let mut incoming = inbox.begin("report")?;
    let mut reading = ReportReading::default();
    loop {
        let (bytes, last) = user.data().await?;
        incoming.write(&bytes)?;
        reading.take(&bytes);
        if last {
            break;
        }
    }
    let (name, mut report, content) = reading.finish()?;
    if let (Some(content), Some(returned)) = (content, &mut report.returned) {
        let hash = returned.sha256.get(..16).unwrap_or_default();
        let file = inbox.keep(&format!("returned {hash}"), "content", &content)?;
        returned.file = file.map(|path| path.display().to_string());
    }
    let kept = inbox.finish(incoming, &name, "report", |_| Ok(()))?;
    user.answer(invoke, operation::REPORT_DELIVERY, EMPTY_RESULT.to_vec()).await?;
    report.duplicate = kept.duplicate;
    report.file = kept.file.map(|p| p.display().to_string());
    Ok(Received::Report(report))
}
