//! `xuxa probe` and `xuxa cancel`: small operations of the submission port.

use crate::inbox::Inbox;
use crate::receive::{Matching, Received, ReportLine, To, Until, receive};
use crate::send::{Names, content_identifier};
use crate::submission::MtaAccess;
use crate::{INTERRUPTED, profile, quantity, show, terminal};
use anyhow::{Result, bail};
use base::{Utc, shown};
use clap::Args;
use p1::SecurityLabel;
use p1::content_type::ContentType;
use p1::eits::EncodedInformationTypes;
use p1::extension::Extensions;
use p1::flags::{PerMessageIndicators, ReportRequest};
use p1::p3::{PerRecipientSubmissionFields, ProbeSubmissionEnvelope};
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use ua::sent::{Entry, SentLog, Submitted};
use ua::{Clock, NotAccepted, Services};

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Recipient: an O/R address, or a name or group of the address book
    #[arg(long, required = true, value_name = "ADDRESS")]
    to: Vec<String>,
    /// Size of the message in question
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_size)]
    size: Option<u64>,
    /// Security label of the message in question, as `xuxa send` has it [default: that of the profile]
    #[arg(long, value_name = "POLICY/CLASS")]
    label: Option<SecurityLabel>,
    /// Ask for a civil message (P22) instead of a military one
    #[arg(long)]
    civil: bool,
    /// Wait so many seconds for the report and print it; what else is delivered meanwhile goes into the inbox
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// MTS identifier of the message, as `xuxa sent` shows it, or its content identifier
    #[arg(value_name = "ID")]
    id: String,
}

/// Runs `xuxa probe`: the answer comes as a report, which `xuxa receive` takes, or `--wait`.
pub(crate) async fn run(access: &MtaAccess<'_>, args: &ProbeArgs, json: bool) -> ExitCode {
    let outcome = match (probe(access, args).await, args.wait) {
        (Ok(probe), None) => {
            probe.print(json);
            Ok(ExitCode::SUCCESS)
        }
        (Ok(probe), Some(seconds)) => wait(access, probe, seconds, json).await,
        (Err(error), _) => Err(error),
    };
    let code = outcome.unwrap_or_else(|error| ended(Err(error)));
    if access.is_interrupted() { ExitCode::from(INTERRUPTED) } else { code }
}

/// A probe that was accepted, and what was reported of it.
#[derive(Debug, Serialize)]
struct Probed {
    mts_identifier: String,
    content_identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    submission_time: Option<String>,
    /// The number of recipients.
    #[serde(skip)]
    asked: usize,
    /// The outcomes that were waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    recipients: Option<Vec<ReportLine>>,
}

impl Probed {
    fn print(&self, json: bool) {
        if json {
            return terminal::print_json(self);
        }
        let id = &self.mts_identifier;
        let Some(lines) = &self.recipients else {
            return terminal::print(&format!(
                "probe {id}: the answer comes as a report, which `xuxa receive` takes"
            ));
        };
        for line in lines {
            // A message like it would be.
            let outcome = match line.delivered {
                true => "can be delivered".to_owned(),
                false => show::outcome(line),
            };
            terminal::print(&shown::line(&format!("{}: {outcome}", line.recipient)));
        }
        let missing = self.asked.saturating_sub(lines.len());
        if missing > 0 {
            terminal::report_error(&format!(
                "probe {id}: no answer for {missing} of {} recipients in time; `xuxa receive` takes a later one",
                self.asked
            ));
        }
    }
}

/// Waits for the reports on a probe: 0 if all its recipients can be reached, 3 if not, or if it is not known in time.
async fn wait(
    access: &MtaAccess<'_>,
    mut probe: Probed,
    seconds: u64,
    json: bool,
) -> Result<ExitCode> {
    let mut inbox = Inbox::open(&access.profile.inbox(), true)?;
    let mut to = To { inbox: &mut inbox, files: None, asked: None };
    let until = Until {
        wait: true,
        timeout: Some(Duration::from_secs(seconds)),
        reported: Some((probe.mts_identifier.clone(), probe.asked)),
        ..Until::default()
    };
    let mut record = Matching::new(access);
    let mut lines = Vec::new();
    let outcome = receive(access, &mut to, until, |delivery| {
        if let Received::Report(report) = record.matched(delivery)
            && report.mts_identifier == probe.mts_identifier
        {
            lines.extend(report.recipients);
        }
    })
    .await;
    let is_whole = lines.len() >= probe.asked && lines.iter().all(|line| line.delivered);
    probe.recipients = Some(lines);
    probe.print(json);
    outcome?;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// Runs `xuxa cancel`.
pub(crate) async fn cancel(access: &MtaAccess<'_>, args: &CancelArgs, json: bool) -> ExitCode {
    ended(cancel_one(access, args, json).await)
}

fn ended(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            ExitCode::from(if error.is::<profile::Wrong>() { 2 } else { 1 })
        }
    }
}

async fn probe(access: &MtaAccess<'_>, args: &ProbeArgs) -> Result<Probed> {
    let names = Names::load(access.profile)?;
    let mut recipients = Vec::new();
    for text in &args.to {
        recipients.extend(names.all(text)?);
    }
    let identifier = content_identifier(0);
    let envelope = ProbeSubmissionEnvelope {
        originator: access.profile.user()?,
        original_eits: Some(EncodedInformationTypes::default()),
        content_type: if args.civil { ContentType::P22 } else { ContentType::p772() },
        content_identifier: Some(identifier.clone()),
        content_length: args.size.and_then(|size| i64::try_from(size).ok()),
        indicators: PerMessageIndicators::default(),
        recipients: recipients
            .iter()
            .map(|name| PerRecipientSubmissionFields {
                recipient: name.clone(),
                report_request: ReportRequest::Report,
                ..PerRecipientSubmissionFields::default()
            })
            .collect(),
        extensions: Extensions(args.label.iter().map(ua::label::field).collect()),
        unknown: Vec::new(),
    };
    let now = Clock::utc();
    let mut user = access.bind(Services::Submission).await?;
    let result = user.probe(&envelope).await;
    let result = match result {
        Ok(result) => result,
        Err(error) => {
            user.abort().await;
            return Err(error);
        }
    };
    let addresses = recipients.iter().map(|name| name.address.to_string()).collect();
    let mts_identifier = result.identifier.to_string();
    record(
        access,
        Entry::Accepted(Submitted {
            mts_identifier: mts_identifier.clone(),
            time: now.to_string(),
            ..Submitted::probe(&identifier, addresses, now)
        }),
    );
    user.unbind().await?;
    Ok(Probed {
        mts_identifier,
        content_identifier: identifier,
        submission_time: result.time.utc.map(|time: Utc| time.to_string()),
        asked: recipients.len(),
        recipients: None,
    })
}

async fn cancel_one(access: &MtaAccess<'_>, args: &CancelArgs, json: bool) -> Result<()> {
    let wanted = args.id.trim();
    let by_content = || {
        let sent = SentLog::new(access.profile.sent_log()).read().ok()?;
        let found = sent.messages.iter().rev().map(|message| &message.submitted);
        let mut found = found.filter(|s| s.content_identifier == wanted);
        found.find(|s| !s.mts_identifier.is_empty()).map(|s| s.mts_identifier.clone())
    };
    let text =
        if wanted.starts_with('[') { wanted.to_owned() } else { by_content().unwrap_or_default() };
    let identifier = ua::form::mts_identifier(&text).map_err(|_| {
        profile::Wrong(format!(
            "{wanted:?} is neither an MTS identifier, as [/PRMD=P/ADMD=A/C=XX/;LOCAL], nor the content \
             identifier of a message in the record (xuxa sent)"
        ))
    })?;
    let mut user = access.bind(Services::Submission).await?;
    if let Err(error) = user.cancel_deferred(&identifier).await {
        user.abort().await;
        let why = match error.downcast_ref::<NotAccepted>() {
            // What the MTA refused is not a message.
            Some(NotAccepted(why)) => why.clone(),
            None => format!("{error:#}"),
        };
        bail!("{identifier} is not cancelled: {why}");
    }
    record(access, Entry::Cancelled { mts_identifier: identifier.to_string() });
    user.unbind().await?;
    if json {
        terminal::print_json(&json!({ "cancelled": identifier.to_string() }));
    } else {
        terminal::print(&format!("{identifier} is cancelled"));
    }
    Ok(())
}

fn record(access: &MtaAccess<'_>, entry: Entry) {
    let log = SentLog::new(access.profile.sent_log());
    if let Err(error) = log.append(&[entry]) {
        let path = log.path().display();
        terminal::report_error(&format!("warning: cannot write {path}: {error}"));
    }
}
