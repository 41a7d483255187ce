//! `xuxa send`: submits messages and says how long each took to be accepted.

use crate::client::{Client, INTERRUPTED, Interrupted, Lost, Refused, Services, describe};
use crate::clock::Clock;
use crate::compose::{self, Message};
use crate::profile::{Profile, Wrong};
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

/// Waits between two attempts to submit again: the first, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

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

/// A message that was not accepted, or not as far as we know.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Unsent {
    pub content_identifier: String,
    /// Date-time group of the heading, as `--dtg` takes it: sent again with both, it is the same
    /// submission.
    pub dtg: String,
    pub precedence: Precedence,
    /// Octets of the body.
    pub size: u64,
    /// How often it was submitted.
    pub tries: u32,
    pub reason: String,
}

/// What became of the messages.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// The MTA answered with an MTS identifier.
    pub messages: Vec<Sent>,
    /// All of it went out, and no answer came: the MTA may have taken it or not.
    pub in_doubt: Vec<Unsent>,
    /// The MTA answered that it does not take it.
    pub refused: Vec<Unsent>,
    /// The MTA has not taken it, for it never had all of it.
    pub not_sent: Vec<Unsent>,
    /// It was our own configuration.
    #[serde(skip)]
    pub is_wrong_use: bool,
    /// All was done, but the end of the association was not in order.
    #[serde(skip)]
    pub unbind: Option<String>,
}

impl Outcome {
    fn add(&mut self, message: &Message, failure: &Failure) {
        let unsent = Unsent {
            content_identifier: message.content_identifier.clone(),
            dtg: message.authorised_at.to_utc_time(),
            precedence: message.precedence,
            size: message.source.len(),
            tries: failure.tries,
            reason: failure.reason.clone(),
        };
        match failure.fate {
            Fate::InDoubt => self.in_doubt.push(unsent),
            Fate::Refused => self.refused.push(unsent),
            Fate::NotSent => self.not_sent.push(unsent),
        }
    }
}

/// Why a message has no answer that accepts it.
struct Failure {
    fate: Fate,
    tries: u32,
    reason: String,
    is_wrong_use: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InDoubt,
    Refused,
    NotSent,
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

/// Submits the messages one after the other, on one association while it lasts. One that is refused
/// or in doubt does not keep the others back; one that does not even leave us does, and so does
/// Ctrl-C.
pub(crate) fn send(way: &Way<'_>, messages: &[Message], retry_for: Duration) -> Outcome {
    let mut outcome = Outcome::default();
    let mut client = None;
    let mut rest = messages.iter();
    for message in rest.by_ref() {
        match send_one(way, &mut client, message, retry_for) {
            Ok(sent) => outcome.messages.push(sent),
            Err(failure) => {
                outcome.add(message, &failure);
                outcome.is_wrong_use |= failure.is_wrong_use;
                if failure.fate == Fate::NotSent {
                    break;
                }
            }
        }
        if way.is_interrupted() {
            break;
        }
    }
    for message in rest {
        let reason = match way.is_interrupted() {
            true => "not tried: interrupted".to_owned(),
            false => "not tried, for the one before it could not be sent".to_owned(),
        };
        let not_tried = Failure { fate: Fate::NotSent, tries: 0, reason, is_wrong_use: false };
        outcome.add(message, &not_tried);
    }
    outcome.unbind =
        client.and_then(|client| client.unbind().err()).map(|error| format!("{error:#}"));
    outcome
}

/// Submits a message, and where no answer comes, again: the same content identifier and the same
/// octets make the repetition harmless.
fn send_one(
    way: &Way<'_>,
    client: &mut Option<Client>,
    message: &Message,
    retry_for: Duration,
) -> Result<Sent, Failure> {
    let (mut tries, mut pause) = (0, Duration::ZERO);
    // Set once an answer was lost: when to give up, and whether the MTA had all of the message.
    let (mut until, mut doubt) = (None, false);
    loop {
        let (error, again) = match client.take().map_or_else(|| bind(way), Ok) {
            // An MTA that was not there to begin with is not waited for.
            Err(error) => {
                let again = tries > 0 && !is_for_good(&error);
                (error, again)
            }
            Ok(mut bound) => {
                tries += 1;
                let mut complete = false;
                match submit(way, &mut bound, message, tries, &mut complete) {
                    Ok(sent) => {
                        *client = Some(bound);
                        return Ok(sent);
                    }
                    Err(error) => {
                        let answered = error.is::<NotAccepted>();
                        doubt |= complete && !answered;
                        // Answered in the middle of it, the rest of it would still have to go.
                        let again = error.is::<Lost>();
                        if answered && complete {
                            *client = Some(bound);
                        } else if way.is_interrupted() || !again {
                            bound.abort();
                        }
                        (error, again)
                    }
                }
            }
        };
        let now = way.clock.mono();
        let until = *until.get_or_insert(now + retry_for);
        if !again || way.is_interrupted() || now + pause >= until {
            let fate = match () {
                () if doubt => Fate::InDoubt,
                () if error.is::<NotAccepted>() => Fate::Refused,
                () => Fate::NotSent,
            };
            let is_wrong_use = error.is::<Wrong>();
            return Err(Failure { fate, tries, reason: format!("{error:#}"), is_wrong_use });
        }
        if pause.is_zero() {
            eprintln!("xuxa: {error:#}; submitting {} again", message.content_identifier);
        }
        Clock::pause(pause);
        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    }
}

/// Whether trying to bind again does not help.
fn is_for_good(error: &anyhow::Error) -> bool {
    error.is::<Wrong>() || error.downcast_ref::<Refused>().is_some_and(|refused| refused.for_good)
}

impl Way<'_> {
    fn is_interrupted(&self) -> bool {
        self.interrupted.load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn bind(way: &Way<'_>) -> Result<Client> {
    Client::bind(way.profile, Services::Submission, way.pcap, way.clock, way.interrupted.clone())
}

/// Submits once; `complete` is set when the last octet has gone out.
fn submit(
    way: &Way<'_>,
    client: &mut Client,
    message: &Message,
    tries: u32,
    complete: &mut bool,
) -> Result<Sent> {
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
    *complete = framing.data_length == 0 && !client.is_over();
    let mut answer = Answer::None;
    let mut octets = Vec::new();
    loop {
        match client.next(None)? {
            // No more goes out: what is left to hear says why.
            Some(Indication::NeedContent { .. }) if client.is_over() => {}
            // While the MTA lacks a piece, it has not taken the message.
            Some(Indication::NeedContent { .. }) if way.is_interrupted() => {
                bail!(Lost(INTERRUPTED.to_owned()));
            }
            Some(Indication::NeedContent { offset, max }) => {
                let piece = message.source.read(offset, max)?;
                hasher.update(&piece);
                let end = offset + piece.len() as u64;
                bar.set_position(end);
                client.request(Request::Content(piece))?;
                // Of what could not be written the MTA has a part at most.
                *complete = end >= framing.data_length && !client.is_over();
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
