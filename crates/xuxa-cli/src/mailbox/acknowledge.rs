//! `xuxa acknowledge`: the notification of receipt that the originator of a message asked for, once. The record of what
//! was sent knows which messages are acknowledged, whoever did it: this verb, `xuxa receive` or the terminal interface.

use super::compose;
use super::content::Reader;
use super::with_store;
use crate::profile::Wrong;
use crate::send::content_identifier;
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::{Context as _, Result, bail};
use base::Precedence;
use clap::Args;
use p1::SecurityLabel;
use p1::names::ORName;
use serde::Serialize;
use std::fmt;
use ua::Clock;
use ua::receipt::{Acknowledgement, Received, requested_of};
use ua::sent::{Entry as LogEntry, SentLog};
use ua::store::{Fetched, Kind, Store};

#[derive(Debug, Args)]
pub(crate) struct AcknowledgeArgs {
    /// Its number in `xuxa list`
    number: u32,
    /// Security label of the notification, as `xuxa send` has it [default: that of the profile]
    #[arg(long, value_name = "POLICY/CLASS")]
    label: Option<SecurityLabel>,
}

/// What was done.
#[derive(Debug, Serialize)]
pub(crate) struct Done {
    number: u32,
    /// The message was acknowledged before, and nothing was sent.
    already: bool,
    /// Whom the notification went to.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// MTS identifier of the notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    notification: Option<String>,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number;
        match (&self.to, &self.notification) {
            (Some(to), Some(identifier)) => {
                write!(f, "acknowledged: a notification of receipt went to {to} ({identifier})")
            }
            _ => write!(f, "entry {number} was acknowledged before: nothing was sent"),
        }
    }
}

/// Why a message is not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAsked {
    #[error("it is a report, which nobody acknowledges")]
    Report,
    #[error("it is not a message that can be read")]
    Unreadable,
    #[error("its originator did not ask this user for a notification of receipt")]
    Nothing,
}

/// The notification to submit, and the identifier of the delivery; `None`: it is acknowledged already.
pub(crate) struct Begun {
    pub made: Acknowledgement,
    delivery: String,
    ipm: String,
}

impl Begun {
    /// The line of the record once the MTA has the notification.
    pub(crate) fn done(&self, notification: String) -> LogEntry {
        LogEntry::Acknowledged {
            mts_identifier: self.delivery.clone(),
            ipm: self.ipm.clone(),
            notification,
        }
    }
}

/// Begins the acknowledgement of an entry that was fetched; `None` if it was acknowledged before.
///
/// # Errors
/// [`NotAsked`], a record that cannot be written, or a message that nobody can acknowledge.
pub(crate) fn begin(
    log: &SentLog,
    me: &ORName,
    fetched: &Fetched,
    reader: &Reader,
) -> Result<Option<Begun>> {
    if fetched.entry.kind == Kind::Report {
        bail!(NotAsked::Report);
    }
    let (Some(heading), Some(envelope)) = (&reader.heading, &fetched.envelope) else {
        bail!(NotAsked::Unreadable);
    };
    if !requested_of(heading, envelope, me).receipt {
        bail!(NotAsked::Nothing);
    }
    let received = Received {
        heading,
        originator: &envelope.originator,
        content_type: &envelope.content_type,
        precedence: fetched.entry.precedence.unwrap_or(Precedence::Routine),
    };
    // What cannot be made is not begun.
    received.acknowledge(me, Clock::utc(), &content_identifier(0))?;
    let delivery = envelope.identifier.to_string();
    let begun = log.acknowledge(&delivery, &content_identifier(0), Clock::utc());
    let begun = begun.with_context(|| {
        format!("the record {} cannot be written, so nothing is sent", log.path().display())
    })?;
    let Some((identifier, time)) = begun else { return Ok(None) };
    let made = received.acknowledge(me, time, &identifier)?;
    Ok(Some(Begun { made, delivery, ipm: ua::form::show_ipm(&heading.this_ipm) }))
}

/// Whether this user has acknowledged a delivery.
pub(crate) fn is_done(log: &SentLog, fetched: &Fetched) -> bool {
    let delivery = fetched.envelope.as_ref().map(|envelope| envelope.identifier.to_string());
    let read = || log.read().map(|sent| sent.acknowledged).unwrap_or_default();
    delivery.is_some_and(|delivery| read().contains(&delivery))
}

/// Sends the notification for an entry that was fetched, unless it was sent before.
pub(super) async fn send(
    access: &MtaAccess<'_>,
    store: &mut Store,
    fetched: &Fetched,
    reader: &Reader,
    label: Option<&SecurityLabel>,
) -> Result<Done> {
    let number = fetched.entry.number;
    let log = SentLog::new(access.profile.sent_log());
    let Some(mut begun) = begin(&log, &access.profile.user()?, fetched, reader)? else {
        return Ok(Done { number, already: true, to: None, notification: None });
    };
    compose::warn_of_label(access, fetched, label.is_some());
    begun.made.envelope.extensions.0.extend(label.map(ua::label::field));
    let result = compose::surely(access, store, &begun.made.envelope, &begun.made.content).await?;
    let notification = result.identifier.to_string();
    super::sent::append(access, &[begun.done(notification.clone())]);
    let to = Some(begun.made.to.address.to_string());
    Ok(Done { number, already: false, to, notification: Some(notification) })
}

/// Runs `xuxa acknowledge`.
pub(super) async fn acknowledge(
    access: &MtaAccess<'_>,
    args: &AcknowledgeArgs,
    json: bool,
) -> Result<u8> {
    let number = args.number;
    let done = with_store(access, async |store| {
        let mut reader = Reader::default();
        let fetched = store.fetch(number, &mut reader, u64::MAX).await?;
        match send(access, store, &fetched, &reader, args.label.as_ref()).await {
            Err(error) if error.is::<NotAsked>() => {
                Err(Wrong(format!("entry {number} is not acknowledged: {error}")).into())
            }
            other => other,
        }
    })
    .await?;
    match json {
        true => terminal::print_json(&done),
        false => terminal::print(&done.to_string()),
    }
    Ok(0)
}
