//! Indirect submission: P3's operations on the association with the store (X.413 6.1).

use super::call::{Call, Port};
use super::{Store, StoreError};
use crate::content::Content;
use crate::label;
use base::ber::{Element, Writer};
use p1::names::MtsIdentifier;
use p1::p3::{MessageSubmissionEnvelope, ProbeSubmissionEnvelope, SubmissionResult, operation};

/// Why a submission has no result.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotSubmitted {
    /// The last octet was sent, and no answer came: the message may be accepted or not. A repetition has to be the
    /// same, octet for octet, for an MTA of ours to know it again.
    pub is_uncertain: bool,
    /// The reason.
    pub error: StoreError,
}

impl Store {
    /// Submits a message, streaming its content, and waits for the answer. A refusal is
    /// [`StoreError::Operation`] with [`p7::MsError::Access`].
    ///
    /// # Errors
    /// The refusal, or what ended the association.
    pub async fn submit(
        &mut self,
        envelope: &MessageSubmissionEnvelope,
        content: &Content,
    ) -> Result<SubmissionResult, NotSubmitted> {
        let mut envelope = envelope.clone();
        label::complete(&mut envelope.extensions, self.label.as_ref());
        let mut argument = envelope.argument_head(content.len());
        argument.extend_from_slice(&content.head);
        let length = argument.len() as u64 + content.source.len();
        let call = Call {
            name: "message-submission",
            operation: operation::MESSAGE_SUBMISSION,
            port: Port::Submission,
            argument,
            content: Some(content),
        };
        let before = self.connection.written();
        let submitted = match self.call(call).await {
            Ok(octets) => result(&octets, "message-submission"),
            Err(error) => Err(error),
        };
        submitted.map_err(|error| {
            // The frames of the layers below only add to it, so what is less is certainly not all.
            let is_whole = self.connection.written() - before >= length;
            let is_uncertain = match error {
                StoreError::Operation(_) | StoreError::Rejected(_) | StoreError::Source(_) => false,
                _ => is_whole,
            };
            NotSubmitted { is_uncertain, error }
        })
    }

    /// Submits a probe. A refusal is [`StoreError::Operation`] with [`p7::MsError::Access`].
    ///
    /// # Errors
    /// The refusal, or what ended the association.
    pub async fn probe(
        &mut self,
        envelope: &ProbeSubmissionEnvelope,
    ) -> Result<SubmissionResult, StoreError> {
        let mut envelope = envelope.clone();
        label::complete(&mut envelope.extensions, self.label.as_ref());
        let call = submission("probe-submission", operation::PROBE_SUBMISSION, |w| {
            envelope.write(w);
        });
        result(&self.call(call).await?, "probe-submission")
    }

    /// Cancels the delivery of a message that was deferred.
    ///
    /// # Errors
    /// [`StoreError::Operation`] with [`p7::MsError::Access`] (it is in transit already, or not known), or what ended
    /// the association.
    pub async fn cancel(&mut self, identifier: &MtsIdentifier) -> Result<(), StoreError> {
        let call =
            submission("cancel-deferred-delivery", operation::CANCEL_DEFERRED_DELIVERY, |w| {
                identifier.write(w);
            });
        self.call(call).await.map(drop)
    }
}

/// An operation of the submission port.
fn submission(
    name: &'static str,
    operation: i64,
    write: impl FnOnce(&mut Writer),
) -> Call<'static> {
    Call { port: Port::Submission, ..Call::retrieval(name, operation, write) }
}

fn result(octets: &[u8], operation: &'static str) -> Result<SubmissionResult, StoreError> {
    let malformed = StoreError::malformed(operation);
    let element = Element::parse(octets).map_err(&malformed)?;
    SubmissionResult::read(&element).map_err(malformed)
}
