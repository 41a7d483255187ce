//! `xuxa import`: what can honestly be done with an exported mailbox over P7.

use super::export::{check_file, read_index};
use super::forward::labels;
use super::{InPart, bind, sent};
use crate::profile::Wrong;
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::{Context as _, Result, bail};
use base::Precedence;
use base::ber::Oid;
use bytes::Bytes;
use clap::Args;
use mailbox_file::{ENTRIES, INDEX, Record, content_name, envelope_name};
use p1::content_type::ContentType;
use p1::extension::ExtensionField;
use p1::names::ORName;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use ua::sent::{Entry as LogEntry, SentLog, Submitted as LogRecord};
use ua::store::{Store, StoreError, delivery_envelope};
use ua::{Clock, Content, Message, Source};

/// Checks an exported mailbox, or submits its messages anew.
///
/// P7 has no operation that puts a delivered message into a mailbox, so nothing can put it back as it was. With
/// --resubmit each message is submitted to yourself: its content is the same, octet for octet, and its security label; but
/// it is a new message with a new MTS identifier, new times and you as the originator of its envelope. Reports cannot be submitted.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct ImportArgs {
    /// The directory of `xuxa export`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Only check that all of it is there and unchanged
    #[arg(long, group = "what")]
    check: bool,
    /// Submit each message to yourself, as a new message
    #[arg(long, group = "what")]
    resubmit: bool,
}

/// Runs `xuxa import`.
pub(super) async fn import(access: &MtaAccess<'_>, args: &ImportArgs, json: bool) -> Result<u8> {
    let index = read_index(&args.dir.join(INDEX))?;
    let faulty: Vec<String> = index
        .records
        .iter()
        .filter_map(|record| check(&args.dir, record).err().map(|error| format!("{error:#}")))
        .collect();
    faulty.iter().for_each(|fault| terminal::report_error(fault));
    if args.check {
        let whole = index.records.len() - faulty.len();
        if json {
            terminal::print_json(&serde_json::json!({
                "mailbox": index.header.mailbox, "exported_at": index.header.exported_at,
                "whole": whole, "faulty": faulty,
            }));
        } else {
            let (mailbox, at) = (&index.header.mailbox, &index.header.exported_at);
            terminal::print(&format!("{whole} whole entries of {mailbox}, exported at {at}"));
        }
        return Ok(if faulty.is_empty() { 0 } else { 1 });
    }
    if !faulty.is_empty() {
        bail!("nothing is submitted, because files are missing or changed");
    }
    let messages: Vec<&Record> = index.records.iter().filter(|r| r.content.is_some()).collect();
    let reports = index.records.len() - messages.len();
    let Submitted { new, before } = resubmit(access, &args.dir, &messages).await?;
    if json {
        terminal::print_json(&serde_json::json!({
            "submitted": new, "submitted_before": before, "reports_left_out": reports,
        }));
    } else {
        terminal::print(&format!(
            "{} messages submitted anew, {reports} reports left out",
            new.len()
        ));
        if !before.is_empty() {
            terminal::report_error(&format!(
                "{} messages are not submitted again: the MTA has had them from an earlier import, and knows a \
                 submission for ten days; it delivers none of them a second time, even where the first copy was \
                 deleted",
                before.len()
            ));
        }
    }
    Ok(0)
}

fn check(dir: &Path, record: &Record) -> Result<()> {
    let entries = dir.join(ENTRIES);
    check_file(&entries.join(envelope_name(record.number)), &record.envelope)?;
    match &record.content {
        Some(content) => check_file(&entries.join(content_name(record.number)), content),
        None => Ok(()),
    }
}

/// MTS identifiers.
#[derive(Default)]
struct Submitted {
    /// Of what was accepted now.
    new: Vec<String>,
    /// Of what the MTA recognised: it was accepted by an earlier import.
    before: Vec<String>,
}

async fn resubmit(access: &MtaAccess<'_>, dir: &Path, records: &[&Record]) -> Result<Submitted> {
    let log = SentLog::new(access.profile.sent_log());
    // The MTA answers a repetition with the identifier of the first, which the record has.
    let sent = log.read().map(|sent| sent.messages).unwrap_or_default();
    let known: BTreeSet<String> = sent.into_iter().map(|m| m.submitted.mts_identifier).collect();
    let me = access.profile.user()?;
    let mut store = bind(access).await?;
    let mut submitted = Submitted::default();
    for record in records {
        let one = one(&mut store, &me, dir, record).await;
        match one.with_context(|| format!("entry {}", record.number)) {
            Ok(one) if known.contains(&one.mts_identifier) => {
                submitted.before.push(one.mts_identifier);
            }
            Ok(one) => {
                submitted.new.push(one.mts_identifier.clone());
                sent::append(access, &[LogEntry::Accepted(one)]);
            }
            Err(error) => {
                store.abort().await;
                return Err(match submitted.new.len() {
                    0 => error,
                    // The same content under the same content identifier is the same submission.
                    done => error.context(InPart(format!(
                        "{done} messages are submitted; the same command again submits none of them twice"
                    ))),
                });
            }
        }
    }
    let _ = store.unbind().await;
    Ok(submitted)
}

/// What the record of what was sent has of it.
async fn one(store: &mut Store, me: &ORName, dir: &Path, record: &Record) -> Result<LogRecord> {
    let path = dir.join(ENTRIES).join(content_name(record.number));
    let content = Content { head: Bytes::new(), source: Source::open(&path)? };
    let precedence = record.precedence.unwrap_or(Precedence::Routine);
    let sum = record.content.map(|content| content.sha256.to_string()).unwrap_or_default();
    let identifier = sum.get(..16).unwrap_or("IMPORTED").to_uppercase();
    let message = Message::canned(me.clone(), vec![me.clone()], precedence, 0, &identifier);
    let mut envelope = message.envelope();
    envelope.content_type = content_type(record.content_type.as_deref())?;
    envelope.extensions.0.extend(labels_of(dir, record)?);
    let result = store.submit(&envelope, &content).await;
    let result = result.map_err(|not| -> StoreError { not.error })?;
    let now = Clock::utc();
    Ok(LogRecord {
        mts_identifier: result.identifier.to_string(),
        ipm: identifier.clone(),
        content_identifier: identifier,
        dtg: now.to_utc_time(),
        subject: record.subject.clone(),
        recipients: vec![me.address.to_string()],
        precedence: precedence.to_string(),
        size: record.content.map(|content| content.length).unwrap_or_default(),
        time: now.to_string(),
        ..LogRecord::default()
    })
}

/// The labels of the delivery: what is submitted anew is as secret as it was.
fn labels_of(dir: &Path, record: &Record) -> Result<Vec<ExtensionField>> {
    let path = dir.join(ENTRIES).join(envelope_name(record.number));
    let octets = std::fs::read(&path)?;
    let envelope = delivery_envelope(&octets).with_context(|| {
        format!("{} is not a MessageDeliveryEnvelope: its label cannot be kept", path.display())
    })?;
    Ok(labels(&envelope))
}

/// The content type of an identifier; P2 and P22 are numbers in an envelope.
fn content_type(oid: Option<&str>) -> Result<ContentType> {
    match oid {
        None => Ok(ContentType::UNIDENTIFIED),
        Some("2.6.1.10.0") => Ok(ContentType::P2),
        Some("2.6.1.10.1") => Ok(ContentType::P22),
        Some(oid) => match oid.parse::<Oid>() {
            Ok(oid) => Ok(ContentType::Extended(oid)),
            Err(_) => bail!(Wrong(format!("{oid:?} is not a content type"))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_those_of_envelopes() {
        assert_eq!(content_type(Some("2.6.1.10.1")).unwrap(), ContentType::P22);
        assert_eq!(content_type(Some("1.3.26.0.4406.0.4.1")).unwrap(), ContentType::p772());
        assert_eq!(content_type(None).unwrap(), ContentType::UNIDENTIFIED);
        assert!(content_type(Some("x")).is_err());
    }
}
