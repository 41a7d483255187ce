//! An entry of a mailbox as a row of a table and as JSON.

use crate::show;
use base::{Precedence, Utc};
use p1::content_type::ContentType;
use serde::Serialize;
use ua::store::{Entry, Kind, Status};

/// One entry.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Line {
    pub number: u32,
    /// `message` or `report`.
    pub kind: String,
    /// `new`, `listed` or `processed`, before this command.
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precedence: Option<Precedence>,
    /// Of the message; of a report, that of the message it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mts_identifier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_identifier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub this_recipient: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Octets of content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submission_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_time: Option<String>,
    /// When it came into the mailbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_time: Option<String>,
    /// Attributes that the store sent and that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<&'static str>,
}

/// `message` or `report`.
pub(super) fn kind(kind: Kind) -> String {
    match kind {
        Kind::Message => "message".to_owned(),
        Kind::Report => "report".to_owned(),
        Kind::Other(number) => format!("entry type {number}"),
    }
}

fn status(status: Status) -> String {
    match status {
        Status::New => "new".to_owned(),
        Status::Listed => "listed".to_owned(),
        Status::Processed => "processed".to_owned(),
        Status::Other(number) => number.to_string(),
    }
}

impl Line {
    /// When it came, to the second.
    pub(super) fn time(&self) -> String {
        let time = self.delivery_time.as_deref().or(self.creation_time.as_deref());
        time.unwrap_or_default().replace(".000000Z", "Z")
    }
}

impl From<&Entry> for Line {
    fn from(entry: &Entry) -> Line {
        let name = |name: &p1::names::ORName| name.address.to_string();
        let text = |time: Utc| time.to_string();
        let content_type = entry.content_type.clone().map(ContentType::Extended);
        Line {
            number: entry.number,
            kind: kind(entry.kind),
            status: status(entry.status),
            precedence: entry.precedence,
            mts_identifier: entry.identifier.as_ref().map(ToString::to_string),
            content_identifier: entry.content_identifier.clone(),
            originator: entry.originator.as_ref().map(name),
            this_recipient: entry.recipient.as_ref().map(name),
            subject: entry.subject.clone(),
            content_type: content_type.as_ref().map(of_store),
            content_length: entry.size,
            submission_time: entry.submitted.map(text),
            delivery_time: entry.delivered.map(text),
            creation_time: entry.created.map(text),
            unreadable: entry.unreadable.clone(),
        }
    }
}

/// A content type as a store writes it: P2 and P22 by the identifiers of X.420 too.
fn of_store(content_type: &ContentType) -> String {
    match show::content_type(content_type) {
        oid if oid == "2.6.1.10.0" => "P2".to_owned(),
        oid if oid == "2.6.1.10.1" => "P22".to_owned(),
        other => other,
    }
}

/// The entries as a table, one row each.
pub(super) fn table(lines: &[Line]) -> show::Table {
    let header = ["number", "status", "precedence", "time", "from", "subject", "size"];
    let mut table = show::table(&header, &[0, 6]);
    for line in lines {
        let report = || format!("report on {}", line.mts_identifier.as_deref().unwrap_or("?"));
        let from = line.originator.clone().unwrap_or_else(|| match line.kind.as_str() {
            "report" => report(),
            _ => "-".to_owned(),
        });
        table.add_row([
            line.number.to_string(),
            line.status.clone(),
            line.precedence.map_or_else(|| "-".to_owned(), |p| p.to_string()),
            line.time(),
            from,
            line.subject.clone().unwrap_or_default(),
            line.content_length.map_or_else(|| "-".to_owned(), show::size),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_one_line_whatever_others_wrote() {
        let entry = Entry {
            number: 7,
            kind: Kind::Report,
            subject: Some("\u{1b}[2J\nforged row".to_owned()),
            size: Some(1_500),
            content_type: Some("2.6.1.10.1".parse().unwrap()),
            ..Entry::default()
        };
        let line = Line::from(&entry);
        assert_eq!((line.content_type.as_deref(), line.kind.as_str()), (Some("P22"), "report"));
        let table = table(&[line]).to_string();
        assert_eq!(table.lines().count(), 2, "{table}");
        assert!(!table.contains('\u{1b}') && table.contains("report on ?"), "{table}");
    }
}
