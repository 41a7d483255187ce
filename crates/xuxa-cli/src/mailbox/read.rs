//! `xuxa read`: a message with its heading and text, or a report in words. The entry becomes processed, and stays.

use super::acknowledge;
use super::compose::InDoubt;
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
use p1::extension::Extensions;
use p1::p3::{MessageDeliveryEnvelope, ReportDelivery};
use p1::security_label::{SecurityLabel, of_envelope};
use p772::Notification;
use serde::Serialize;
use std::collections::BTreeMap;
use ua::heading::{self, Field};
use ua::store::Fetched;

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// Its number in `xuxa list`
    number: u32,
    /// Send the notification of receipt that its originator asked for, once
    #[arg(long)]
    acknowledge: bool,
}

/// The kind of a message in so many others that it is not shown.
const TOO_DEEP: &str = "message, not shown";

/// A reader must not take the message for one without a label.
const UNREADABLE: &str = "(a security label that cannot be read)";

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
    /// message-security-label of the envelope, as `xuxa send --label` takes it; of several, the highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// All of them, the highest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    /// Those inside a signed content (ESSSecurityLabel). Its signature is not verified.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels_inside: Vec<String>,
    /// What `--acknowledge` did.
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged: Option<acknowledge::Done>,
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
    /// Of a forwarded message: it cannot be read, or not whole.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    opaque: bool,
}

impl PartLine {
    /// What it is, in words.
    fn line(&self) -> String {
        let name = self.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
        format!("{}{name}, {}", self.kind, show::size(self.size))
    }
}

impl From<&Seen> for PartLine {
    fn from(part: &Seen) -> PartLine {
        let (kind, name) = match &part.form {
            Form::Text(..) => ("text".to_owned(), None),
            Form::File(name) => ("file".to_owned(), name.clone()),
            Form::Binary => ("binary".to_owned(), None),
            Form::Message(_) => ("message".to_owned(), None),
            Form::TooDeep => (TOO_DEEP.to_owned(), None),
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
            opaque: inner.is_some_and(|inner| inner.opaque),
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

/// The message-security-labels of an envelope, as `xuxa send --label` takes one: the highest first.
pub(crate) fn labels(extensions: &Extensions) -> Vec<String> {
    let text = |label: Result<SecurityLabel, _>| match label {
        Ok(label) => label.to_string(),
        // A reader must not take the message for one without a label.
        Err(_) => UNREADABLE.to_owned(),
    };
    of_envelope(extensions).into_iter().map(text).collect()
}

/// The security labels inside the content, where it is signed.
fn labels_inside(envelope: &MessageDeliveryEnvelope, reader: &Reader) -> Vec<String> {
    let found = reader.signed.labels(&envelope.content_type);
    let text = |label: &bytes::Bytes| match SecurityLabel::parse_ess(label) {
        Ok(label) => label.to_string(),
        Err(_) => UNREADABLE.to_owned(),
    };
    let unreadable = found.unreadable.then(|| UNREADABLE.to_owned());
    found.labels.iter().map(text).chain(unreadable).collect()
}

/// Runs `xuxa read`.
pub(super) async fn read(access: &MtaAccess<'_>, args: &ReadArgs, json: bool) -> Result<u8> {
    let mut reader = Reader::default();
    with_store(access, async |store| {
        let fetched = store.fetch(args.number, &mut reader, u64::MAX).await?;
        sent::append(access, &sent::outcomes(&fetched, &reader));
        let mut opened = opened(&fetched, &reader);
        if !json {
            terminal::print(&in_words(&opened, &fields(&reader)));
        }
        let mut code = 0;
        if args.acknowledge {
            match acknowledge::send(access, store, &fetched, &reader, None).await {
                Ok(done) if json => opened.acknowledged = Some(done),
                Ok(done) => terminal::report_error(&done.to_string()),
                // It is shown in any case.
                Err(error) => {
                    terminal::report_error(&format!("not acknowledged: {error:#}"));
                    code = if error.is::<InDoubt>() { 4 } else { 3 };
                }
            }
        }
        if json {
            terminal::print_json(&opened);
        }
        Ok(code)
    })
    .await
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
    let envelope = fetched.envelope.as_deref();
    let labels = envelope.map(|envelope| labels(&envelope.extensions)).unwrap_or_default();
    Opened {
        entry: Line::from(&fetched.entry),
        heading: labelled(reader),
        parts: reader.parts.iter().map(PartLine::from).collect(),
        recipients: fetched.report.as_deref().map(of_report).unwrap_or_default(),
        label: labels.first().cloned(),
        labels,
        labels_inside: envelope.map(|envelope| labels_inside(envelope, reader)).unwrap_or_default(),
        acknowledged: None,
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
    opened.labels.iter().for_each(|label| add("label", label));
    opened.labels_inside.iter().for_each(|label| add("label inside", label));
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
        add("part", &part.line());
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
        out.push('\n');
        let deeper = format!("{indent}    ");
        let mut add = |label: &str, value: &str| {
            out.push_str(&format!("{deeper}{label:<12}  {}\n", shown::line(value)));
        };
        for (label, values) in &part.heading {
            values.iter().for_each(|value| add(label, value));
        }
        part.parts
            .iter()
            .filter(|part| part.text.is_none())
            .for_each(|part| add("part", &part.line()));
        if part.opaque {
            add("note", "this message cannot be read, or not whole");
        }
        texts(out, &part.parts, &deeper);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p1::ContentType;
    use p1::extension::{Criticality, ExtensionField, number};
    use p1::p3::MessageDeliveryEnvelope;
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

    #[test]
    fn each_label_of_the_envelope_is_shown_also_where_it_cannot_be_read() {
        let mut envelope = envelope();
        assert!(labels(&envelope.extensions).is_empty());
        let of = |write: &dyn Fn(&mut base::ber::Writer)| {
            let kind = number::MESSAGE_SECURITY_LABEL;
            ExtensionField::standard(kind, Criticality::default(), |w| write(w))
        };
        let given = |text: &str| {
            let label: SecurityLabel = text.parse().unwrap();
            of(&|w| label.write(w, base::ber::universal::SET))
        };
        let (low, high) = ("1.3.26.0.4406.0.5.1/unmarked", "1.3.26.0.4406.0.5.1/top-secret");
        envelope.extensions = Extensions(vec![given(low), given(high)]);
        assert_eq!(labels(&envelope.extensions), [high, low]);
        let fetched = Fetched { envelope: Some(Box::new(envelope.clone())), ..Fetched::default() };
        let opened = opened(&fetched, &Reader::default());
        let shown = in_words(&opened, &[]);
        assert!(shown.contains(&format!("label         {high}\n  label         {low}")), "{shown}");
        let json = serde_json::to_value(&opened).unwrap();
        assert_eq!((&json["label"], &json["labels"][1]), (&high.into(), &low.into()));
        envelope.extensions.0.push(of(&|w| w.null(base::ber::universal::NULL)));
        assert!(labels(&envelope.extensions)[0].contains("cannot be read"));
    }

    /// The content that `openssl cms -verify` accepts.
    #[test]
    fn the_label_inside_a_signed_content_is_shown() {
        let hex = include_str!("../../../p1/src/cms/verified.hex");
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let content: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
        let envelope = MessageDeliveryEnvelope {
            content_type: "1.2.840.113549.1.9.16.1.6".parse().map(ContentType::Extended).unwrap(),
            ..envelope()
        };
        let fetched = Fetched { envelope: Some(Box::new(envelope)), ..Fetched::default() };
        let shown = |content: &[u8]| {
            let mut reader = Reader::default();
            content.chunks(100).for_each(|piece| reader.write_all(piece).unwrap());
            in_words(&opened(&fetched, &reader), &[])
        };
        let label = "label inside  1.3.26.0.4406.0.5.1/secret/RELEASABLE TO X (and 1 category)";
        assert!(shown(&content).contains(label), "{}", shown(&content));
        assert!(
            shown(&content[..700]).contains("label inside  (a security label that cannot be read)")
        );
    }

    fn envelope() -> MessageDeliveryEnvelope {
        let name = |text: &str| text.parse::<p1::names::ORName>().unwrap();
        MessageDeliveryEnvelope {
            identifier: p1::names::MtsIdentifier {
                domain: p1::names::GlobalDomainId::new("XX", " ", None),
                local: "M1".to_owned(),
            },
            delivery_time: base::Utc(0).into(),
            content_type: ContentType::p772(),
            originator: name("/S=A/C=XX"),
            original_eits: None,
            priority: p1::flags::Priority::Normal,
            implicit_conversion_prohibited: false,
            other_recipients: Vec::new(),
            this_recipient: name("/S=B/C=XX"),
            intended_recipient: None,
            converted_eits: None,
            submission_time: base::Utc(0).into(),
            content_identifier: None,
            extensions: Extensions::default(),
            unknown: Vec::new(),
        }
    }
}
