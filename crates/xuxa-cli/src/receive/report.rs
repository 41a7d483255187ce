//! A report: the outcome of a message that this user sent.

use super::reason_text;
use crate::show;
use anyhow::{Context as _, Result};
use base::ber::Element;
use bytes::Bytes;
use p1::envelope::ReportType;
use p1::p3::{PerRecipientReportDelivery, ReportDelivery};
use p772::{ContentEvent, ContentParser};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Longest report that is read, in octets: 32,767 recipients of 1 KiB each are half of it. A longer
/// one, which returns a content, is kept unread, and its length is shown.
const MAX_READ: usize = 64 << 20;

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ReceivedReport {
    /// MTS identifier of the report's subject; absent if the report is too long to read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mts_identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_identifier: Option<String>,
    /// Subject line of the message, if the report returns its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Date-time group of the message, if its record is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtg: Option<String>,
    /// Octets of the report.
    pub length: u64,
    /// The content of the message, if the report returns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<ReturnedContent>,
    pub recipients: Vec<ReportLine>,
    /// Delivered before: confirmed again, kept once.
    pub duplicate: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A content that came back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ReturnedContent {
    pub length: u64,
    pub sha256: String,
    /// Where it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl ReturnedContent {
    fn new(content: &[u8]) -> ReturnedContent {
        let sha256 = show::hex(&Sha256::digest(content));
        ReturnedContent { length: content.len() as u64, sha256, file: None }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ReportLine {
    pub recipient: String,
    /// Whom the message was sent to, if it was redirected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intended_recipient: Option<String>,
    pub delivered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_time: Option<String>,
    /// The reason in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The reason by the names of X.411.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnostic: Option<String>,
    /// Text that the MTA added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supplementary: Option<String>,
}

impl ReportLine {
    pub(crate) fn from_recipient(recipient: &PerRecipientReportDelivery) -> ReportLine {
        let intended = recipient.intended_recipient.as_ref();
        let mut line = ReportLine {
            recipient: recipient.actual_recipient.address.to_string(),
            intended_recipient: intended.map(|name| name.address.to_string()),
            supplementary: recipient.supplementary_information.clone(),
            ..ReportLine::default()
        };
        match &recipient.report {
            ReportType::Delivery { time, .. } => {
                line.delivered = true;
                line.delivery_time = time.utc.map(|t| t.to_string());
            }
            ReportType::NonDelivery { reason, diagnostic } => {
                line.because = Some(reason_text::not_delivered(*reason, *diagnostic));
                line.reason = Some(reason.to_string());
                line.diagnostic = diagnostic.as_ref().map(ToString::to_string);
            }
        }
        line
    }
}

/// A report being received.
#[derive(Default)]
pub(crate) struct ReportReading {
    /// All of it, up to [`MAX_READ`].
    octets: Vec<u8>,
    length: u64,
    hasher: Sha256,
}

impl ReportReading {
    /// The next octets.
    pub(crate) fn take(&mut self, octets: &[u8]) {
        self.length += octets.len() as u64;
        self.hasher.update(octets);
        if self.length <= MAX_READ as u64 {
            self.octets.extend_from_slice(octets);
        } else {
            // The beginning alone is not readable.
            self.octets = Vec::new();
        }
    }

    /// The identifier of the report in the inbox, what it reports, and the content that it returns. A report has no identifier of its
    /// own: reports with the same octets are the same.
    ///
    /// # Errors
    /// It is not a report.
    pub(crate) fn finish(self) -> Result<(String, ReceivedReport, Option<Bytes>)> {
        let hash = show::hex(&self.hasher.finalize());
        let hash = hash.get(..16).unwrap_or(&hash);
        if self.length > MAX_READ as u64 {
            let report = ReceivedReport { length: self.length, ..ReceivedReport::default() };
            return Ok((format!("report {hash}"), report, None));
        }
        // Invalid names are accepted: the MTA would repeat a refused report without end.
        let element = Element::parse_accepted(&self.octets).context("in the report delivery")?;
        let report = ReportDelivery::read(&element).context("in the report delivery")?;
        let subject = report.returned_content.as_deref().and_then(subject_of);
        let mts_identifier = report.subject_identifier.to_string();
        let name = format!("report {hash} on {mts_identifier}");
        let kept = ReceivedReport {
            mts_identifier,
            content_identifier: report.content_identifier.clone(),
            subject,
            dtg: None,
            length: self.length,
            returned: report.returned_content.as_deref().map(ReturnedContent::new),
            recipients: report.recipients.iter().map(ReportLine::from_recipient).collect(),
            duplicate: false,
            file: None,
        };
        Ok((name, kept, report.returned_content))
    }
}

/// The subject of a content that was returned.
fn subject_of(content: &[u8]) -> Option<String> {
    let mut rest = content;
    match ContentParser::new().next(&mut rest) {
        Ok(Some(ContentEvent::Heading(heading))) => heading.subject,
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::ber::Writer;
    use p1::extension::Extensions;
    use p1::names::{GlobalDomainId, MtsIdentifier, ORName};
    use p1::reason::{Diagnostic, NonDeliveryReason};
    use p772::{ContentBuilder, Heading};

    fn report(recipients: usize, returned: Option<Vec<u8>>) -> Vec<u8> {
        let domain = GlobalDomainId::new("XX", "NATO", Some("ACT"));
        let recipient = |n: usize| PerRecipientReportDelivery {
            actual_recipient: format!("/S=U{n}/O=HEADQUARTERS/PRMD=ACT/ADMD=NATO/C=XX")
                .parse::<ORName>()
                .unwrap(),
            report: ReportType::NonDelivery {
                reason: NonDeliveryReason::UNABLE_TO_TRANSFER,
                diagnostic: Some(Diagnostic::UNRECOGNISED_OR_NAME),
            },
            converted_eits: None,
            intended_recipient: None,
            supplementary_information: Some("no such user here".to_owned()),
            extensions: Extensions::default(),
            unknown: Vec::new(),
        };
        let report = ReportDelivery {
            subject_identifier: MtsIdentifier { domain, local: "A.7".to_owned() },
            content_identifier: Some("CID-7".to_owned()),
            content_type: None,
            original_eits: None,
            extensions: Extensions::default(),
            recipients: (0..recipients).map(recipient).collect(),
            returned_content: returned.map(Into::into),
            unknown: Vec::new(),
        };
        let mut w = Writer::new();
        report.write(&mut w);
        w.into_vec()
    }

    fn read(octets: &[u8]) -> Result<(String, ReceivedReport)> {
        let mut reading = ReportReading::default();
        octets.chunks(60_000).for_each(|piece| reading.take(piece));
        let (name, report, _) = reading.finish()?;
        Ok((name, report))
    }

    #[test]
    fn a_report_of_more_than_a_mebibyte_is_read() {
        let octets = report(14_000, None);
        assert!(octets.len() > 1 << 20, "{}", octets.len());
        let (name, report) = read(&octets).unwrap();
        assert!(name.starts_with("report ") && name.ends_with(";A.7]"), "{name}");
        assert_eq!((report.recipients.len(), report.length), (14_000, octets.len() as u64));
        let last = report.recipients.last().unwrap();
        assert!(last.recipient.contains("S=U13999"), "{last:?}");
        assert_eq!(last.because.as_deref(), Some("there is no such recipient"));
        assert_eq!(last.diagnostic.as_deref(), Some("unrecognised-OR-name"));
        assert_eq!(last.supplementary.as_deref(), Some("no such user here"));
    }

    #[test]
    fn a_report_names_its_message_and_its_subject_where_it_returns_it() {
        let mut heading = Heading { subject: Some("CONVOY".to_owned()), ..Heading::default() };
        heading.this_ipm.local = "M".to_owned();
        let content = ContentBuilder::new(&heading).unwrap().text("hello").finish();
        let sha256 = show::hex(&Sha256::digest(&content));
        let length = content.len() as u64;
        let (_, report) = read(&report(1, Some(content))).unwrap();
        assert_eq!(report.returned, Some(ReturnedContent { length, sha256, file: None }));
        assert_eq!(report.mts_identifier, "[/PRMD=ACT/ADMD=NATO/C=XX/;A.7]");
        assert_eq!(report.content_identifier.as_deref(), Some("CID-7"));
        assert_eq!(report.subject.as_deref(), Some("CONVOY"));
        assert!(read(b"\x30\x00").is_err());
    }

    #[test]
    fn a_report_too_long_to_read_is_shown_by_its_length() {
        let mut reading = ReportReading::default();
        let piece = vec![0; 1 << 20];
        (0..65).for_each(|_| reading.take(&piece));
        let (name, report, _) = reading.finish().unwrap();
        assert_eq!((report.length, report.recipients.len()), (65 << 20, 0));
        assert!(name.starts_with("report "), "{name}");
    }
}
