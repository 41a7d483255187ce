//! `xuxa send`: submits messages and says how long each took to be accepted.

use crate::client::{Client, Interrupted, Lost, Services, describe};
use crate::clock::Clock;
use crate::compose::{self, Message};
use crate::profile::Profile;
use crate::show;
use anyhow::{Context, Result, bail};
use base::Precedence;
use base::ber::Element;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use osi::api::{Indication, Payload, Request};
use osi::profiles::abstract_syntax;
use p1::p3::{AccessError, SubmissionResult, operation};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::path::Path;
use std::time::Duration;

/// How often a submission whose answer was lost is repeated.
const TRIES: u32 = 3;

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
    /// Of content.
    pub kbit_s: f64,
    /// How often it was submitted: more than once where an answer was lost.
    pub tries: u32,
}

/// The MTA answered a submission with an error: what it said.
#[derive(Debug, thiserror::Error)]
#[error("the MTA refused the message: {0}")]
pub(crate) struct NotAccepted(String);

/// How to reach the MTA.
pub(crate) struct Way<'a> {
    pub profile: &'a Profile,
    pub pcap: Option<&'a Path>,
    pub clock: Clock,
    pub interrupted: Interrupted,
    pub progress: bool,
}

/// Submits the messages one after the other on one association.
///
/// # Errors
/// The first message that could not be sent; what was accepted before it is in `sent`.
pub(crate) fn send(way: &Way<'_>, messages: &[Message], sent: &mut Vec<Sent>) -> Result<()> {
    let mut client = None;
    for message in messages {
        let mut tries = 0;
        let done = loop {
            tries += 1;
            let mut bound = match client.take() {
                Some(bound) => bound,
                None => bind(way)?,
            };
            match submit(way, &mut bound, message, tries) {
                Ok(done) => {
                    client = Some(bound);
                    break done;
                }
                // Whether the MTA took it is unknown: the same content identifier makes a
                // repetition harmless.
                Err(error) if error.is::<Lost>() && tries < TRIES && !way.is_interrupted() => {
                    eprintln!("{error}; submitting again as {}", message.content_identifier);
                }
                Err(error) if error.is::<Lost>() => {
                    let (id, dtg) = (&message.content_identifier, message.authorised_at);
                    return Err(error.context(format!(
                        "in doubt: no answer to submission {id}; send the same again with \
                         --content-identifier {id} --dtg {}",
                        dtg.to_utc_time()
                    )));
                }
                Err(error) => {
                    let _ = bound.unbind();
                    return Err(error);
                }
            }
        };
        sent.push(done);
    }
    match client {
        Some(client) => client.unbind(),
        None => Ok(()),
    }
}

impl Way<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupted.load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn bind(way: &Way<'_>) -> Result<Client> {
    Client::bind(way.profile, Services::Submission, way.pcap, way.clock, way.interrupted.clone())
}

fn submit(way: &Way<'_>, client: &mut Client, message: &Message, tries: u32) -> Result<Sent> {
    let framing = message.framing()?;
    let content_length = framing.content_length();
    let envelope = compose::envelope(&client.user, message);
    let mut head = envelope.argument_head(content_length);
    head.extend_from_slice(&framing.head);
    let mut hasher = Sha256::new();
    hasher.update(&framing.head);
    let argument = Payload {
        head: head.into(),
        content_length: framing.data_length,
        tail: Default::default(),
    };
    let start = way.clock.mono();
    let submitted_at = Clock::utc().to_string();
    let bar = progress(way.progress, framing.data_length);
    let invoke = 1 + i64::from(tries);
    client.request(Request::Invoke {
        invoke,
        syntax: abstract_syntax::msse(),
        operation: operation::MESSAGE_SUBMISSION,
        argument,
    })?;
    let mut answer = Answer::None;
    let mut octets = Vec::new();
    loop {
        match client.next(None)? {
            Some(Indication::NeedContent { offset, max }) => {
                let piece = message.source.read(offset, max)?;
                hasher.update(&piece);
                bar.set_position(offset + piece.len() as u64);
                client.request(Request::Content(piece))?;
            }
            Some(Indication::Returned { .. }) => answer = Answer::Result,
            Some(Indication::ReturnedError { error, .. }) => answer = Answer::Error(error),
            Some(Indication::Data { bytes, last }) => {
                octets.extend_from_slice(&bytes);
                if last {
                    break;
                }
            }
            Some(other @ Indication::Rejected { .. }) => {
                bail!(NotAccepted(describe(Some(&other))));
            }
            other => bail!(Lost(describe(other.as_ref()))),
        }
    }
    bar.finish_and_clear();
    let elapsed = way.clock.mono().since(start);
    let result = accepted(answer, &octets)?;
    Ok(Sent {
        mts_identifier: result.identifier.to_string(),
        content_identifier: message.content_identifier.clone(),
        precedence: message.precedence,
        size: message.source.len(),
        content_length,
        content_sha256: show::hex(&hasher.finalize()),
        submission_time: result.time.utc.map(|t| t.to_string()),
        submitted_at,
        submit_ms: elapsed.as_secs_f64() * 1e3,
        kbit_s: show::kbit_s(content_length, elapsed),
        tries,
    })
}

#[derive(Clone, Copy)]
enum Answer {
    None,
    Result,
    Error(i64),
}

fn accepted(answer: Answer, octets: &[u8]) -> Result<SubmissionResult> {
    match answer {
        Answer::Result => {
            let element = Element::parse(octets).context("in the submission result")?;
            SubmissionResult::read(&element).context("in the submission result")
        }
        Answer::Error(code) => {
            let parameter = Element::parse(octets).ok();
            match AccessError::read(code, parameter.as_ref()) {
                Ok(AccessError::RecipientImproperlySpecified(names)) => {
                    let names: Vec<String> = names.iter().map(|n| n.address.to_string()).collect();
                    bail!(NotAccepted(format!(
                        "recipient-improperly-specified: {}",
                        names.join(", ")
                    )))
                }
                Ok(error) => bail!(NotAccepted(error.name().to_owned())),
                Err(error) => bail!(NotAccepted(format!("error {code}: {error}"))),
            }
        }
        Answer::None => bail!(Lost("data without an answer".to_owned())),
    }
}

/// A bar on standard error for what takes long enough to look at.
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
