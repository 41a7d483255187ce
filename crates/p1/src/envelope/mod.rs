//! Transfer envelopes of messages, probes and reports (X.411 12.2.1).

pub mod clearance;
mod common;
pub mod history;
mod message;
mod probe;
mod recipient;
mod report;
pub mod security_context;
pub mod security_label;

pub use message::MessageTransferEnvelope;
pub use probe::ProbeTransferEnvelope;
pub use recipient::PerRecipientFields;
pub(crate) use report::RETURNED_CONTENT;
pub use report::{
    LastTrace, PerRecipientReportFields, ReportTransferContent, ReportTransferEnvelope, ReportType,
};
