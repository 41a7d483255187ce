//! `xuxa read`: a message with its heading and text, or a report in words. The entry becomes processed, and stays.

use super::content::{Form, MAX_TEXT, Reader, Seen};
use super::line::Line;
use super::sent;
use super::with_store;
use crate::receive::ReportLine;
use crate::show;
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::Result;
use base::shown;
use clap::Args;
use p1::p3::ReportDelivery;
use p772::Notification;
use serde::Serialize;
use std::collections::BTreeMap;
use ua::heading::{self, Field};
use ua::store::Fetched;

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Its number in `xuxa list`
    number: u32,
}

/// The result as JSON.
#[derive(Debug, Serialize)]
struct Opened {
    #[serde(flatten)]
    entry: Line,
    /// Fields of the heading, by their labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    heading: BTreeMap<&'static str, Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartLine>,
    /// The outcome for each recipient, of a report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recipients: Vec<ReportLine>,
    /// The content is not one of P22 or P772.
    opaque: bool,
}

#[derive(Debug, Serialize)]
struct PartLine {
    /// `text`, `file`, `binary`, `message`, or a type by its identifier.
    kind: String,
    /// Octets of data.
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Of a forwarded message: its heading and parts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    heading: BTreeMap<&'static str, Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartLine>,
    /// Octets of the text that are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_shown: Option<u64>,
}

impl From<&Seen> for PartLine {
    fn from(part: &Seen) -> PartLine {
        let (kind, name) = match &part.form {
            Form::Text(..) => ("text".to_owned(), None),
            Form::File(name) => ("file".to_owned(), name.clone()),
            Form::Binary => ("binary".to_owned(), None),
            Form::Message(_) => ("message".to_owned(), None),
            Form::Other(what) => (what.clone(), None),
        };
        let not_shown = Some(part.missing()).filter(|missing| *missing > 0);
        let inner = match &part.form {
            Form::Message(forwarded) => Some(&forwarded.message),
            _ => None,
        };
        PartLine {
            kind,
            size: part.size,
            name,
            text: part.text(),
            heading: inner.map(labelled).unwrap_or_default(),
            parts: inner
                .map(|inner| inner.parts.iter().map(PartLine::from).collect())
                .unwrap_or_default(),
            not_shown,
        }
    }
}

/// The fields by their labels.
fn labelled(reader: &Reader) -> BTreeMap<&'static str, Vec<String>> {
    let mut labelled: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for field in fields(reader) {
        labelled.entry(field.label).or_default().push(field.value);
    }
    labelled
}

/// Runs `xuxa read`.
pub(super) async fn read(access: &MtaAccess<'_>, args: &ReadArgs, json: bool) -> Result<u8> {
    let mut reader = Reader::default();
    let fetched = with_store(access, async |store| {
        Ok(store.fetch(args.number, &mut reader, u64::MAX).await?)
    })
    .await?;
    sent::append(access, &sent::outcomes(&fetched, &reader));
    let opened = opened(&fetched, &reader);
    if json {
        terminal::print_json(&opened);
    } else {
        terminal::print(&in_words(&opened, &fields(&reader)));
    }
    Ok(0)
}

/// Of the heading, or of the notification that the content is instead.
fn fields(reader: &Reader) -> Vec<Field> {
    let notification = reader.notification.as_deref();
    match (&reader.heading, notification.and_then(|octets| Notification::parse(octets).ok())) {
        (Some(heading), _) => heading::fields(heading),
        (None, Some(notification)) => heading::notification(&notification),
        (None, None) => Vec::new(),
    }
}

fn opened(fetched: &Fetched, reader: &Reader) -> Opened {
    let of_report = |report: &ReportDelivery| {
        report.recipients.iter().map(ReportLine::from_recipient).collect()
    };
    Opened {
        entry: Line::from(&fetched.entry),
        heading: labelled(reader),
        parts: reader.parts.iter().map(PartLine::from).collect(),
        recipients: fetched.report.as_deref().map(of_report).unwrap_or_default(),
        opaque: reader.opaque || (reader.notification.is_some() && fields(reader).is_empty()),
    }
}

/// For people: the envelope and heading, then texts, indented deeper, so that no text can imitate them.
fn in_words(opened: &Opened, fields: &[Field]) -> String {
    let mut out = String::new();
    let mut add = |label: &str, value: &str| {
        if !value.is_empty() {
            out.push_str(&format!("  {label:<12}  {}\n", shown::line(value)));
        }
    };
    let entry = &opened.entry;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    add("number", &format!("{}, {}, it was {}", entry.number, entry.kind, entry.status));
    add("precedence", &entry.precedence.map(|p| p.to_string()).unwrap_or_default());
    add("from", &text(&entry.originator));
    add("delivered to", &text(&entry.this_recipient));
    for field in fields {
        add(field.label, &field.value);
    }
    if fields.is_empty() {
        add("subject", &text(&entry.subject));
    }
    add("submitted", &text(&entry.submission_time));
    add("delivered", &text(&entry.delivery_time.clone().or(entry.creation_time.clone())));
    add(if entry.kind == "report" { "about" } else { "MTS id" }, &text(&entry.mts_identifier));
    add("content id", &text(&entry.content_identifier));
    add("content", &entry.content_length.map(show::size).unwrap_or_default());
    for part in opened.parts.iter().filter(|part| part.text.is_none()) {
        let name = part.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
        add("part", &format!("{}{name}, {}", part.kind, show::size(part.size)));
    }
    for line in &opened.recipients {
        add("recipient", &format!("{}: {}", line.recipient, show::outcome(line)));
    }
    if opened.opaque {
        let number = entry.number;
        add(
            "note",
            &format!("the content cannot be shown: xuxa fetch {number} writes it as it is"),
        );
    }
    texts(&mut out, &opened.parts, "    ");
    out.trim_end().to_owned()
}

/// The texts, each line after `indent`, and forwarded messages deeper.
fn texts(out: &mut String, parts: &[PartLine], indent: &str) {
    let mut add = |text: &str| {
        let text = shown::text(text.trim_end()).replace('\n', &format!("\n{indent}"));
        out.push_str(&format!("\n{indent}{text}\n"));
    };
    let mut inner = Vec::new();
    for part in parts {
        if let Some(text) = &part.text {
            add(text);
        }
        if let Some(missing) = part.not_shown {
            let (most, missing) = (show::size(MAX_TEXT as u64), show::size(missing));
            add(&format!("(the first {most} of text; {missing} more are in the content)"));
        }
        if part.kind == "message" {
            add("(a forwarded message:)");
            inner.push(part);
        }
    }
    for part in inner {
        let deeper = format!("{indent}    ");
        out.push('\n');
        for (label, values) in &part.heading {
            for value in values {
                out.push_str(&format!("{deeper}{label:<12}  {}\n", shown::line(value)));
            }
        }
        texts(out, &part.parts, &deeper);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p772::{ContentBuilder, Heading, IpmIdentifier};
    use std::io::Write as _;

    #[test]
    fn nothing_that_others_wrote_passes_for_the_heading() {
        let evil = "x\u{1b}[2J\n  from          forged";
        let heading = Heading {
            this_ipm: IpmIdentifier { user: None, local: "1".to_owned() },
            subject: Some(evil.to_owned()),
            ..Heading::default()
        };
        let content = ContentBuilder::new(&heading).unwrap().text("a\n  from          me").finish();
        let mut reader = Reader::default();
        reader.write_all(&content).unwrap();
        let opened = opened(&Fetched::default(), &reader);
        let shown = in_words(&opened, &fields(&reader));
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let lines = shown.lines().filter(|line| line.starts_with("  from"));
        assert_eq!(lines.count(), 0, "{shown}");
        assert!(shown.ends_with("\n    a\n      from          me"), "{shown}");
        assert_eq!(opened.heading["subject"], [evil]);
    }
}
