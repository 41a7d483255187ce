//! A row of the queue, and what its record has of it.

use base::shown::line;
use base::{EntryId, Precedence, Utc};
use engine::Record;
use p1::apdu::MtsApduHead;
use p1::envelope::{PerRecipientFields, PerRecipientReportFields, ReportType};
use p1::extension::Extensions;
use p1::security_label::of_envelope;
use p1::{ContentLabels, SecurityLabel};
use serde::{Deserialize, Serialize};

/// One copy of a message, probe or report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    /// Its entry.
    pub entry: String,
    /// Its MTS identifier; absent where its record could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mts_id: Option<String>,
    /// `message`, `probe` or `report`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Who sent it; a report has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub originator: Option<String>,
    /// The peer it goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Whether that peer is no longer configured: the copy is about to be routed again. If it was removed
    /// before the start, its name is not known, and `peer` is its identifier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// The other node of the site that has it, or `nobody`; absent for what this node has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The mailbox it goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mailbox: Option<String>,
    /// Its level.
    pub precedence: Precedence,
    /// Octets of content.
    pub size: u64,
    /// When we accepted it, RFC 3339.
    pub accepted: String,
    /// For how long it has been here.
    pub age_seconds: f64,
    /// `ready`, `delayed`, `held`, `held_by_operator`, `in_transfer`, `stalled`, `paused`,
    /// `expired`, or `elsewhere` where another node of the site has it.
    pub state: String,
    /// The rule that holds it, and what it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_because: Option<String>,
    /// It is delayed until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_until: Option<String>,
    /// The channel it is in transfer on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Octets the peer confirmed so far, envelope included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_confirmed: Option<u64>,
    /// Octets of all of it, envelope included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_total: Option<u64>,
    /// When its transfer began or last made progress: octets confirmed, or taken by the peer's TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_progress: Option<String>,
    /// How fast, over the last 10 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_kbit_s: Option<f64>,
    /// When it is given up; absent where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// The recipients that this entry is responsible for; of a report, whom it is about. Only where asked
    /// for: of one entry, or where they are a condition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<RowRecipient>,
    /// Further recipients that are not shown, and those that other entries or MTAs are responsible for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_recipients: usize,
    /// Its content identifier; where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_id: Option<String>,
    /// Its content type; where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Its security labels, as POLICY/CLASSIFICATION/MARK, or `unreadable`, those inside its content with the
    /// words `in the content`; where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Of which message a report is; where asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The domains that it came through, with the time of arrival; where asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
    /// Each reason why it is not in transfer, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// The channels that could carry it, as `PEER/CHANNEL`, where operators disabled all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disabled_channels: Vec<String>,
    /// Its last error, since the start of the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error_at: Option<String>,
    /// How often its transfer failed.
    pub failures: u32,
    /// It has waited for longer than its precedence allows.
    pub overdue: bool,
}

/// A recipient of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowRecipient {
    /// O/R address.
    pub address: String,
    /// `waiting`: this entry carries it. `delivered` or `failed`: by this report.
    pub state: String,
}

/// Most recipients shown of one entry.
const MAX_RECIPIENTS: usize = 100;

/// A label that cannot be read.
const UNREADABLE: &str = "unreadable";

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The message-security-labels among these, and those inside the content, as text: the highest first.
fn labels(extensions: &Extensions, content: &ContentLabels) -> Option<String> {
    let text = |label: Result<SecurityLabel, _>| match label {
        Ok(label) => line(&label.to_string()).into_owned(),
        Err(_) => UNREADABLE.to_owned(),
    };
    let outer = of_envelope(extensions).into_iter().map(text);
    let inner = content.labels.iter().map(|label| text(SecurityLabel::parse_ess(label)));
    let inner = inner.chain(content.unreadable.then(|| UNREADABLE.to_owned()));
    let all: Vec<String> =
        outer.chain(inner.map(|label| format!("{label} in the content"))).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

impl QueueRow {
    /// What [`QueueRow::state`] may be.
    pub const STATES: [&str; 9] = [
        "ready",
        "held",
        "held_by_operator",
        "delayed",
        "in_transfer",
        "stalled",
        "paused",
        "expired",
        "elsewhere",
    ];

    /// One of which no more is known: it is ready.
    #[must_use]
    pub fn bare(entry: EntryId, precedence: Precedence, accepted: Utc) -> QueueRow {
        QueueRow {
            entry: entry.to_string(),
            mts_id: None,
            kind: None,
            originator: None,
            peer: None,
            removed: false,
            node: None,
            mailbox: None,
            precedence,
            size: 0,
            accepted: accepted.to_string(),
            age_seconds: 0.0,
            state: "ready".to_owned(),
            held_because: None,
            delayed_until: None,
            channel: None,
            bytes_confirmed: None,
            bytes_total: None,
            last_progress: None,
            rate_kbit_s: None,
            expires: None,
            recipients: Vec::new(),
            other_recipients: 0,
            content_id: None,
            content_type: None,
            label: None,
            subject: None,
            trace: Vec::new(),
            waits_for: Vec::new(),
            disabled_channels: Vec::new(),
            last_error: None,
            last_error_at: None,
            failures: 0,
            overdue: false,
        }
    }

    /// Fills in what only its whole record has.
    pub fn describe_fully(&mut self, record: &[u8]) {
        let Ok(record) = Record::decode(record) else { return };
        let shown = |text: &str| line(text).into_owned();
        let time = |at: &p1::time::Time| match at.utc {
            Some(utc) => utc.to_string(),
            None => "at an invalid time".to_owned(),
        };
        let (recipients, trace) = match &record.head {
            MtsApduHead::Message(e) => {
                self.content_id = e.content_identifier.as_deref().map(shown);
                self.content_type = Some(e.content_type.to_string());
                (&e.recipients, &e.trace)
            }
            MtsApduHead::Probe(e) => {
                self.content_id = e.content_identifier.as_deref().map(shown);
                self.content_type = Some(e.content_type.to_string());
                (&e.recipients, &e.trace)
            }
            MtsApduHead::Report(report) => return self.describe_report(report),
        };
        self.label = match &record.head {
            MtsApduHead::Message(e) => labels(&e.extensions, &record.content_labels),
            MtsApduHead::Probe(e) => labels(&e.extensions, &record.content_labels),
            MtsApduHead::Report(_) => None,
        };
        let all = recipients.len();
        let mine = recipients.iter().filter(|r| r.indicators.responsible());
        let row = |r: &PerRecipientFields| RowRecipient {
            address: shown(&r.recipient.to_string()),
            state: "waiting".to_owned(),
        };
        self.recipients = mine.take(MAX_RECIPIENTS).map(row).collect();
        self.other_recipients = all - self.recipients.len();
        let element =
            |t: &p1::trace::TraceElement| shown(&format!("{} {}", time(&t.arrival_time), t.domain));
        self.trace = trace.iter().map(element).collect();
    }

    fn describe_report(&mut self, report: &p1::apdu::Report) {
        let content = &report.content;
        self.label = labels(&report.envelope.extensions, &ContentLabels::default());
        self.subject = Some(line(&content.subject_identifier.to_string()).into_owned());
        self.content_id = content.content_identifier.as_deref().map(|c| line(c).into_owned());
        let state = |report: &ReportType| match report {
            ReportType::Delivery { .. } => "delivered",
            ReportType::NonDelivery { .. } => "failed",
        };
        let row = |r: &PerRecipientReportFields| RowRecipient {
            address: line(&r.actual_recipient.to_string()).into_owned(),
            state: state(&r.last_trace.report).to_owned(),
        };
        self.recipients = content.recipients.iter().take(MAX_RECIPIENTS).map(row).collect();
        self.other_recipients = content.recipients.len() - self.recipients.len();
    }

    /// Fills in what only its record has; a malformed record adds nothing.
    pub fn describe(&mut self, record: &[u8]) {
        // Not all of it: that takes long where there are many recipients.
        let (Ok(brief), Ok(originator)) = (Record::peek(record), Record::originator(record)) else {
            return;
        };
        self.kind = Some(format!("{:?}", brief.kind).to_lowercase());
        self.originator = originator.map(|name| line(&name.to_string()).into_owned());
        self.mts_id = Some(line(&brief.message).into_owned());
    }
}
