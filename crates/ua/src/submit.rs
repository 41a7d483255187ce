//! One message-submission (X.411 8.2.1.1).

use crate::connection::{INTERRUPTED, describe};
use crate::content::Content;
use crate::label;
use crate::user::{Lost, User};
use anyhow::{Context, Result, bail};
use base::ber::{Element, Oid, Writer};
use osi::api::{Indication, Payload, Request};
use osi::profiles::abstract_syntax;
use p1::names::MtsIdentifier;
use p1::p3::{
    AccessError, MessageSubmissionEnvelope, ProbeSubmissionEnvelope, SubmissionResult, operation,
};

/// The MTA answered a submission with this error.
#[derive(Debug, thiserror::Error)]
#[error("the MTA refused the message: {0}")]
pub struct NotAccepted(pub String);

/// The result of one attempt.
#[derive(Debug)]
pub struct Attempt {
    /// The last octet was sent: without an answer, the MTA may have accepted the message or not.
    pub complete: bool,
    /// The MTA's answer; [`NotAccepted`], [`Lost`], or what prevented the submission.
    pub outcome: Result<SubmissionResult>,
}

/// Submits and waits for the answer; calls `each` with every piece of the content sent.
pub async fn submit(
    user: &mut User,
    invoke: i64,
    envelope: &MessageSubmissionEnvelope,
    content: &Content,
    each: impl FnMut(&[u8]),
) -> Attempt {
    let mut end = None;
    let outcome = converse(user, invoke, envelope, content, &mut end, each).await;
    // If the end could not be written, the MTA has at most a part.
    Attempt { complete: end.is_some_and(|end| user.written() >= end), outcome }
}

/// `end` is set to the final value of [`User::written`] once the last octet is requested.
async fn converse(
    user: &mut User,
    invoke: i64,
    envelope: &MessageSubmissionEnvelope,
    content: &Content,
    end: &mut Option<u64>,
    mut each: impl FnMut(&[u8]),
) -> Result<SubmissionResult> {
    let mut envelope = envelope.clone();
    label::complete(&mut envelope.extensions, user.label.as_ref());
    let mut head = envelope.argument_head(content.len());
    head.extend_from_slice(&content.head);
    each(&content.head);
    let body = content.source.len();
    let argument = Payload { head: head.into(), content_length: body, tail: Default::default() };
    user.request(Request::Invoke {
        invoke,
        syntax: abstract_syntax::msse(),
        operation: operation::MESSAGE_SUBMISSION,
        argument,
    });
    *end = (body == 0).then(|| user.requested());
    let mut answer = Answer::None;
    let mut octets = Vec::new();
    loop {
        match user.next(None).await? {
            // No more can be sent: the remaining input has the reason.
            Some(Indication::NeedContent { .. }) if user.is_over() => {}
            // Before the last piece is sent, the MTA has not accepted the message.
            Some(Indication::NeedContent { .. }) if user.is_interrupted() => {
                bail!(Lost(INTERRUPTED.to_owned()));
            }
            Some(Indication::NeedContent { offset, max }) => {
                let piece = content.source.read(offset, max)?;
                each(&piece);
                let is_last = offset + piece.len() as u64 >= body;
                user.request(Request::Content(piece));
                *end = is_last.then(|| user.requested());
            }
            Some(Indication::Returned { .. }) => answer = Answer::Result,
            Some(Indication::ReturnedError { error, .. }) => answer = Answer::Error(error),
            Some(Indication::Data { bytes, last }) => {
                octets.extend_from_slice(&bytes);
                if last {
                    return accepted(answer, &octets);
                }
            }
            Some(other @ Indication::Rejected { .. }) => {
                bail!(NotAccepted(describe(Some(&other))));
            }
            other => bail!(Lost(describe(other.as_ref()))),
        }
    }
}

/// Invokes an operation of the submission port whose argument is small, and waits for its answer.
async fn invoke(user: &mut User, operation: i64, argument: Vec<u8>) -> Result<(Answer, Vec<u8>)> {
    invoke_on(user, abstract_syntax::msse(), operation, argument).await
}

/// Invokes an operation of a port whose argument is small, and waits for its answer.
pub(crate) async fn invoke_on(
    user: &mut User,
    syntax: Oid,
    operation: i64,
    argument: Vec<u8>,
) -> Result<(Answer, Vec<u8>)> {
    user.request(Request::Invoke {
        invoke: 1,
        syntax,
        operation,
        argument: Payload::whole(argument),
    });
    let (mut answer, mut octets) = (Answer::None, Vec::new());
    loop {
        match user.next(None).await? {
            Some(Indication::Returned { .. }) => answer = Answer::Result,
            Some(Indication::ReturnedError { error, .. }) => answer = Answer::Error(error),
            Some(Indication::Data { bytes, last }) => {
                octets.extend_from_slice(&bytes);
                if octets.len() > MAX_ANSWER {
                    bail!(Lost("the answer is longer than 1 MiB".to_owned()));
                }
                if last {
                    return Ok((answer, octets));
                }
            }
            Some(other @ Indication::Rejected { .. }) => {
                bail!(NotAccepted(describe(Some(&other))));
            }
            other => bail!(Lost(describe(other.as_ref()))),
        }
    }
}

/// Longest answer to a small operation, octets.
const MAX_ANSWER: usize = 1 << 20;

impl User {
    /// Submits a probe: the MTS answers with a report for each recipient whether a message of this
    /// type and length could be delivered (X.411 8.2.1.2).
    ///
    /// # Errors
    /// [`NotAccepted`] or [`Lost`].
    pub async fn probe(&mut self, envelope: &ProbeSubmissionEnvelope) -> Result<SubmissionResult> {
        let mut envelope = envelope.clone();
        label::complete(&mut envelope.extensions, self.label.as_ref());
        let mut argument = Writer::new();
        envelope.write(&mut argument);
        let (answer, octets) =
            invoke(self, operation::PROBE_SUBMISSION, argument.into_vec()).await?;
        accepted(answer, &octets)
    }

    /// Cancels the deferred delivery of a message that this user submitted (X.411 8.2.1.3).
    ///
    /// # Errors
    /// [`NotAccepted`] with the MTA's error in words, or [`Lost`].
    pub async fn cancel_deferred(&mut self, identifier: &MtsIdentifier) -> Result<()> {
        let mut argument = Writer::new();
        identifier.write(&mut argument);
        let (answer, octets) =
            invoke(self, operation::CANCEL_DEFERRED_DELIVERY, argument.into_vec()).await?;
        match answer {
            Answer::Result => Ok(()),
            Answer::Error(7) => bail!(NotAccepted(
                "message-submission-identifier-invalid: it gave no message this identifier"
                    .to_owned()
            )),
            Answer::Error(8) => bail!(NotAccepted(
                "deferred-delivery-cancellation-rejected: no message of yours with this identifier is \
                 deferred there, or no longer, or this MTA cancels none"
                    .to_owned()
            )),
            answer => accepted(answer, &octets).map(drop),
        }
    }
}

/// submission-control-violated, in words. The answer does not have the limit.
const TOO_LONG: &str = "submission-control-violated: the content is longer than the MTA takes (`content` of \
                        [limits] in the configuration of ours), or it takes no messages for now";

/// What an invocation was answered with.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    None,
    Result,
    Error(i64),
}

pub(crate) fn accepted(answer: Answer, octets: &[u8]) -> Result<SubmissionResult> {
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
                // To a submission it is the one error that is about the length of the content.
                Ok(AccessError::ControlViolated) => bail!(NotAccepted(TOO_LONG.to_owned())),
                Ok(error) => bail!(NotAccepted(error.to_string())),
                Err(error) => bail!(NotAccepted(format!("error {code}: {error}"))),
            }
        }
        Answer::None => bail!(Lost("data without an answer".to_owned())),
    }
}
