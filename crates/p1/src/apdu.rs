//! MTS-APDU: what a transfer carries (X.411 12.2, MTAAbstractService).

use crate::envelope::{
    MessageTransferEnvelope, ProbeTransferEnvelope, ReportTransferContent, ReportTransferEnvelope,
};

/// Everything of an MTS-APDU but a message's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MtsApduHead {
    /// message: its content follows.
    Message(Box<MessageTransferEnvelope>),
    /// probe.
    Probe(Box<ProbeTransferEnvelope>),
    /// report.
    Report(Box<Report>),
}

/// Report.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// envelope.
    pub envelope: ReportTransferEnvelope,
    /// content.
    pub content: ReportTransferContent,
}
