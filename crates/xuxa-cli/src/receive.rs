//! `xuxa receive`: takes what the MTA delivers, keeps it, and only then confirms it.

use crate::inbox::{Inbox, Incoming, NotKept};
use crate::show;
use crate::submission::Way;
use anyhow::{Context, Result, bail};
use base::Precedence;
use base::ber::{Element, Writer};
use osi::api::{Indication, Problem, Request};
use p1::envelope::ReportType;
use p1::p3::{
    ArgumentEvent, DeliveryParser, DeliveryResult, EMPTY_RESULT, MessageDeliveryEnvelope,
    ReportDelivery, operation,
};
use p772::{Charset, ContentParser, Event, Heading, PartKind};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use ua::{Clock, Lost, Services, User, describe};

/// Without `--wait`, the end comes when what waited is there, or nothing came for so long.
const QUIET: Duration = Duration::from_secs(5);
/// Most octets of a report.
const MOST_REPORT: usize = 1 << 20;
/// Most octets of text shown.
const MOST_TEXT: usize = 256;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    /// Go on when nothing waits any more.
    pub wait: bool,
    /// Stop after so many deliveries.
    pub count: Option<u64>,
    /// Stop after so long.
    pub timeout: Option<Duration>,
}

/// One line of the result.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Received {
    Message(Box<Message>),
    Report(Report),
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Message {
    pub mts_identifier: String,
    pub originator: String,
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
    pub sics: Vec<String>,
    /// In the form of `xuxa send --message-type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_type: Option<String>,
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
    /// The beginning of the text, where the body has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Of the message reported on.
    pub mts_identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_identifier: Option<String>,
    pub recipients: Vec<ReportLine>,
    /// Delivered before: confirmed again, kept once.
    pub duplicate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ReportLine {
    pub recipient: String,
    pub delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<String>,
}

/// Takes deliveries until told to stop; how many still wait of those that did when it began, where
/// it was to take those.
pub(crate) async fn receive(
    way: &Way<'_>,
    inbox: &mut Inbox,
    until: Until,
    each: impl FnMut(&Received),
) -> Result<u64> {
    let mut user = way.bind(Services::Delivery).await?;
    let waiting = user.bound.messages_waiting.map_or(0, |w| {
        let counts = [w.urgent.messages, w.normal.messages, w.non_urgent.messages];
        counts.into_iter().map(|n| u64::try_from(n).unwrap_or(0)).sum::<u64>()
    });
    match deliveries(way, &mut user, inbox, until, waiting, each).await {
        Ok(count) => {
            user.unbind().await?;
            let all = until.wait || until.count.is_some();
            Ok(if all { 0 } else { waiting.saturating_sub(count) })
        }
        Err(error) => {
            user.abort().await;
            Err(error)
        }
    }
}

/// Takes deliveries; how many.
async fn deliveries(
    way: &Way<'_>,
    user: &mut User,
    inbox: &mut Inbox,
    until: Until,
    waiting: u64,
    mut each: impl FnMut(&Received),
) -> Result<u64> {
    let end = until.timeout.map(|t| way.clock.now() + t);
    let mut count = 0u64;
    loop {
        let enough = until.count.is_some_and(|n| count >= n)
            || (!until.wait && until.count.is_none() && count >= waiting);
        if enough {
            break;
        }
        let left = end.map(|at| at.since(way.clock.now()));
        let patience = if until.wait || until.count.is_some() {
            left
        } else {
            Some(left.map_or(QUIET, |l| l.min(QUIET)))
        };
        match user.next(patience).await? {
            None => break,
            Some(Indication::Invoked { invoke, operation }) => {
                let one = match operation {
                    operation::MESSAGE_DELIVERY => take_message(way, user, inbox, invoke).await,
                    operation::REPORT_DELIVERY => take_report(user, inbox, invoke).await,
                    _ => {
                        reject(user, invoke, UNRECOGNIZED_OPERATION).await?;
                        continue;
                    }
                };
                if let Err(error) = &one {
                    refuse(user, invoke, error).await?;
                }
                each(&one?);
                count += 1;
            }
            Some(Indication::Data { .. }) => {}
            other => bail!(Lost(describe(other.as_ref()))),
        }
    }
    Ok(count)
}

/// Invoke problems of a ROSE reject (X.229 clause 9).
const UNRECOGNIZED_OPERATION: Problem = Problem { kind: 1, value: 1 };
const MISTYPED: Problem = Problem { kind: 1, value: 2 };
const RESOURCE_LIMITATION: Problem = Problem { kind: 1, value: 3 };

/// Tells the MTA that a delivery was not taken, where it is still there to be told.
pub(crate) async fn refuse(user: &mut User, invoke: i64, error: &anyhow::Error) -> Result<()> {
    if error.is::<Lost>() {
        return Ok(());
    }
    // Neither of the two deliveries has an error for it (X.411 8.3.1).
    let ours = error.is::<NotKept>();
    reject(user, invoke, if ours { RESOURCE_LIMITATION } else { MISTYPED }).await
}

async fn reject(user: &mut User, invoke: i64, problem: Problem) -> Result<()> {
    user.request(Request::Reject { invoke: Some(invoke), problem });
    user.flush().await
}

/// What a content said of itself.
#[derive(Default)]
struct Reading {
    heading: Option<Box<Heading>>,
    size: u64,
    /// The beginning of the first text, undecoded: a piece may end within a character.
    text: Option<(Charset, Vec<u8>)>,
    in_text: bool,
    /// The content is of no kind we can read: it is kept all the same.
    opaque: bool,
}

async fn take_message(
    way: &Way<'_>,
    user: &mut User,
    inbox: &mut Inbox,
    invoke: i64,
) -> Result<Received> {
    let start = way.clock.now();
    let mut parser = DeliveryParser::default();
    let mut content = ContentParser::new();
    let mut reading = Reading::default();
    let mut hasher = Sha256::new();
    let mut length = 0u64;
    let mut head: Option<(Box<MessageDeliveryEnvelope>, String, Incoming)> = None;
    loop {
        let (bytes, last) = user.data().await?;
        let mut rest: &[u8] = &bytes;
        while let Some(event) = parser.next(&mut rest).context("in the message delivery")? {
            match event {
                ArgumentEvent::Envelope(envelope) => {
                    let identifier = envelope.identifier.to_string();
                    let incoming = inbox.begin(&identifier)?;
                    head = Some((envelope, identifier, incoming));
                }
                ArgumentEvent::Content(octets) => {
                    length += octets.len() as u64;
                    hasher.update(octets);
                    reading.take(&mut content, octets);
                    if let Some((_, _, incoming)) = &mut head {
                        incoming.write(octets)?;
                    }
                }
                ArgumentEvent::End => {}
            }
        }
        if last {
            break;
        }
    }
    let Some((envelope, identifier, incoming)) = head else {
        bail!("the MTA delivered a message without an envelope");
    };
    if !parser.is_done() {
        bail!("the MTA's message delivery was cut short");
    }
    let elapsed = way.clock.now().since(start);
    let kept = inbox.finish(incoming, &identifier, "content")?;
    let received_at = Clock::utc().to_string();
    let mut writer = Writer::new();
    DeliveryResult::default().write(&mut writer);
    user.answer(invoke, operation::MESSAGE_DELIVERY, writer.into_vec()).await?;
    let military = reading.heading.as_deref().map(|h| &h.military);
    Ok(Received::Message(Box::new(Message {
        mts_identifier: identifier,
        originator: envelope.originator.address.to_string(),
        precedence: military.and_then(|m| m.primary_precedence).and_then(|p| p.level()),
        priority: show::priority(envelope.priority).to_owned(),
        content_type: show::content_type(&envelope.content_type),
        content_identifier: envelope.content_identifier.clone(),
        subject: reading.heading.as_deref().and_then(|h| h.subject.clone()),
        sics: military.map(|m| m.distribution_codes.sics.clone()).unwrap_or_default(),
        message_type: military.and_then(|m| m.message_type.as_ref()).map(show::message_type),
        size: if reading.opaque { length } else { reading.size },
        content_length: length,
        content_sha256: show::hex(&hasher.finalize()),
        submission_time: envelope.submission_time.utc.map(|t| t.to_string()),
        delivery_time: envelope.delivery_time.utc.map(|t| t.to_string()),
        received_at,
        receive_ms: elapsed.as_secs_f64() * 1e3,
        kbit_s: show::kbit_s(length, elapsed),
        duplicate: kept.duplicate,
        text: reading.text(),
        file: kept.file.map(|p| p.display().to_string()),
    })))
}

impl Reading {
    /// The beginning of the first text.
    fn text(&self) -> Option<String> {
        let (charset, octets) = self.text.as_ref()?;
        let mut whole = octets.as_slice();
        if *charset == Charset::Utf8 && octets.len() == MOST_TEXT {
            // Cut there, perhaps within a character.
            if let Err(error) = std::str::from_utf8(octets)
                && error.error_len().is_none()
            {
                whole = octets.get(..error.valid_up_to()).unwrap_or(octets);
            }
        }
        Some(charset.decode(whole))
    }

    fn take(&mut self, parser: &mut ContentParser, octets: &[u8]) {
        let mut rest = octets;
        while !self.opaque {
            match parser.next(&mut rest) {
                Ok(None) => break,
                // The MTA carries contents of any type: one we cannot read is kept unread.
                Err(_) => self.opaque = true,
                Ok(Some(Event::Heading(heading))) => self.heading = Some(heading),
                Ok(Some(Event::PartBegin(kind))) => {
                    self.in_text = false;
                    if let (PartKind::Text(charset), None) = (kind, &self.text) {
                        self.in_text = true;
                        self.text = Some((charset, Vec::new()));
                    }
                }
                Ok(Some(Event::Data(data))) => {
                    self.size += data.len() as u64;
                    if let Some((_, text)) = self.text.as_mut().filter(|_| self.in_text) {
                        let room = MOST_TEXT.saturating_sub(text.len()).min(data.len());
                        text.extend_from_slice(data.get(..room).unwrap_or_default());
                    }
                }
                Ok(Some(Event::PartEnd)) => self.in_text = false,
                Ok(Some(Event::Notification(_) | Event::End)) => {}
            }
        }
    }
}

pub(crate) async fn take_report(
    user: &mut User,
    inbox: &mut Inbox,
    invoke: i64,
) -> Result<Received> {
    let mut octets = Vec::new();
    loop {
        let (bytes, last) = user.data().await?;
        if octets.len() + bytes.len() > MOST_REPORT {
            bail!("the MTA delivered a report of more than {MOST_REPORT} octets");
        }
        octets.extend_from_slice(&bytes);
        if last {
            break;
        }
    }
    let element = Element::parse(&octets).context("in the report delivery")?;
    let report = ReportDelivery::read(&element).context("in the report delivery")?;
    // A report is delivered without its own identifier: what says the same is the same report.
    let hash = show::hex(&Sha256::digest(&octets));
    let name =
        format!("report {} on {}", hash.get(..16).unwrap_or(&hash), report.subject_identifier);
    let mut incoming = inbox.begin(&name)?;
    incoming.write(&octets)?;
    let kept = inbox.finish(incoming, &name, "report")?;
    user.answer(invoke, operation::REPORT_DELIVERY, EMPTY_RESULT.to_vec()).await?;
    let recipients = report.recipients.iter().map(|r| {
        let mut line = ReportLine {
            recipient: r.actual_recipient.address.to_string(),
            delivered: false,
            delivery_time: None,
            reason: None,
            diagnostic: None,
        };
        match &r.report {
            ReportType::Delivery { time, .. } => {
                line.delivered = true;
                line.delivery_time = time.utc.map(|t| t.to_string());
            }
            ReportType::NonDelivery { reason, diagnostic } => {
                line.reason = Some(reason.to_string());
                line.diagnostic = diagnostic.as_ref().map(ToString::to_string);
            }
        }
        line
    });
    Ok(Received::Report(Report {
        mts_identifier: report.subject_identifier.to_string(),
        content_identifier: report.content_identifier.clone(),
        recipients: recipients.collect(),
        duplicate: kept.duplicate,
        file: kept.file.map(|p| p.display().to_string()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(charset: Charset, octets: &[u8]) -> Option<String> {
        Reading { text: Some((charset, octets.to_vec())), ..Reading::default() }.text()
    }

    #[test]
    fn text_is_read_in_its_own_characters_and_cut_between_them() {
        assert_eq!(text(Charset::Latin1, b"\xdcbung").as_deref(), Some("Übung"));
        assert_eq!(text(Charset::Utf8, "Übung".as_bytes()).as_deref(), Some("Übung"));
        let mut long = vec![b'x'; MOST_TEXT - 1];
        long.push(0xc3);
        assert_eq!(text(Charset::Utf8, &long), Some("x".repeat(MOST_TEXT - 1)));
        assert_eq!(Reading::default().text(), None);
    }
}
