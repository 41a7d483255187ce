//! P3: the protocol between a user agent or message store and its MTA (X.411 clause 8, X.419).
//!
//! The operations are ROSE invocations. Here are their arguments, results and errors; invocation
//! identifiers and the ROSE frame belong to the layer below. An argument that carries a content is
//! never held whole: it is written as a head, which the content's octets follow, and read by an
//! [`ArgumentParser`].

mod admin;
mod bind;
mod controls;
mod delivery;
mod error;
mod parser;
mod register;
mod report;
mod submission;
#[cfg(test)]
mod tests;

pub use admin::ChangeCredentials;
pub use bind::{DeliveryQueue, MessagesWaiting, MtsBind, MtsBindError, ObjectName};
pub use controls::{Controls, Waiting};
pub use delivery::{DeliveryResult, MessageDeliveryEnvelope};
pub use error::{AccessError, RefusedArgument, SecurityProblem};
pub use parser::{ArgumentEvent, ArgumentHead, ArgumentParser, DeliveryParser, SubmissionParser};
pub use register::{MAX_CONTENT_LENGTH, RegisterArgument};
pub use report::{PerRecipientReportDelivery, ReportDelivery};
pub use submission::{
    MessageSubmissionEnvelope, PerRecipientSubmissionFields, ProbeSubmissionEnvelope,
    SubmissionResult,
};

/// Local operation codes (X.419, MTSAccessProtocol).
pub mod operation {
    /// register, invoked by the user.
    pub const REGISTER: i64 = 1;
    /// submission-control, invoked by the MTS.
    pub const SUBMISSION_CONTROL: i64 = 2;
    /// delivery-control, invoked by the user: the same code, in the other direction.
    pub const DELIVERY_CONTROL: i64 = 2;
    /// message-submission, invoked by the user.
    pub const MESSAGE_SUBMISSION: i64 = 3;
    /// probe-submission, invoked by the user.
    pub const PROBE_SUBMISSION: i64 = 4;
    /// message-delivery, invoked by the MTS.
    pub const MESSAGE_DELIVERY: i64 = 5;
    /// report-delivery, invoked by the MTS.
    pub const REPORT_DELIVERY: i64 = 6;
    /// cancel-deferred-delivery, invoked by the user. Its argument is an MTSIdentifier.
    pub const CANCEL_DEFERRED_DELIVERY: i64 = 7;
    /// change-credentials, invoked by either.
    pub const CHANGE_CREDENTIALS: i64 = 8;
}

/// The result of an operation that returns nothing but success: NULL (register, change-credentials,
/// cancel-deferred-delivery, report-delivery).
pub const EMPTY_RESULT: [u8; 2] = [5, 0];
