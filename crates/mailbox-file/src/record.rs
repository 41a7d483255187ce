//! The lines of an index.

use crate::digest::Digest;
use crate::{FORMAT, VERSION};
use base::Precedence;
use serde::{Deserialize, Serialize};

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The O/R address whose mailbox it is.
    pub mailbox: String,
    /// When the export began, as in ISO 8601, UTC.
    pub exported_at: String,
}

impl Header {
    /// Of this version.
    #[must_use]
    pub fn new(mailbox: &str, exported_at: &str) -> Header {
        Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            mailbox: mailbox.to_owned(),
            exported_at: exported_at.to_owned(),
        }
    }
}

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A delivered message.
    Message,
    /// A delivered report.
    Report,
}

/// The retrieval-status (X.413).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// new.
    New,
    /// listed.
    Listed,
    /// processed.
    Processed,
}

/// Octets in a file of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Octets {
    /// How many.
    pub length: u64,
    /// Their SHA-256.
    pub sha256: Digest,
}

/// One entry. All but number, kind, status and the two files is there to be read without decoding; the envelope has
/// it too, and decides. Members that this version does not know are skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its sequence number in the mailbox it was exported from. Ascending.
    pub number: u32,
    /// Message or report.
    pub kind: Kind,
    /// Its status when it was exported.
    pub status: Status,
    /// The level at which the MTS handled it; the envelope of a P772 message may not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precedence: Option<Precedence>,
    /// MTS identifier, of the message or of the subject of the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mts_identifier: Option<String>,
    /// Content type, an object identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// O/R address of the originator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub originator: Option<String>,
    /// O/R address to which it was delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// Subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// When it came into the mailbox, as in ISO 8601, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// When the MTS delivered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<String>,
    /// When it was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<String>,
    /// The value of the attribute message-delivery-envelope (a SEQUENCE) or report-delivery-envelope (a SET): what a
    /// delivery (X.411 8.3.1) has beside the content.
    pub envelope: Octets,
    /// The content; a report has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Octets>,
}
