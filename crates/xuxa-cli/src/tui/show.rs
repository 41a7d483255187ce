//! Entries and contents of a mailbox as the interface shows them.

use crate::mailbox::content::{Form, Reader, Seen};
use crate::mailbox::read::labels;
use crate::receive::ReportLine;
use base::Utc;
use p1::names::ORName;
use p1::p3::ReportDelivery;
use ua::store::{Entry, Fetched, Kind as EntryKind, Status};
use xuxa_tui::model::{File, Kind, Opened, Receipt, Row};

/// The words of an O/R address that people know a user by: of its domain, organisation and name.
pub(super) fn short_name(name: &ORName) -> String {
    let address = name.address.to_string();
    let value = |key: &str| {
        let begins = |part: &&str| part.split_once('=').is_some_and(|(k, _)| k == key);
        address
            .split('/')
            .find(begins)
            .and_then(|part| part.split_once('='))
            .map(|(_, value)| value)
    };
    let keys = ["PRMD", "O", "OU1", "OU2", "CN", "G", "S"];
    let words: Vec<&str> = keys.iter().filter_map(|key| value(key)).collect();
    if words.is_empty() { address } else { words.join(" ") }
}

/// A row of the list; `name` finds the short name of an address.
pub(crate) fn row(entry: &Entry, name: impl Fn(&ORName) -> Option<String>) -> Row {
    let from = entry.originator.as_ref().map(|from| name(from).unwrap_or_else(|| short_name(from)));
    let is_report = entry.kind == EntryKind::Report;
    let about = || entry.content_identifier.as_ref().map(|id| format!("about message {id}"));
    let subject = entry.subject.clone().or_else(|| if is_report { about() } else { None });
    Row {
        number: u64::from(entry.number),
        kind: if is_report { Kind::Report } else { Kind::Message },
        precedence: super::pages::level(entry),
        is_unread: entry.status != Status::Processed,
        from: from.unwrap_or_else(|| if is_report { "the MTS".to_owned() } else { String::new() }),
        subject: subject.unwrap_or_default(),
        time: entry.delivered.or(entry.created).unwrap_or_default(),
        size: entry.size.unwrap_or(0),
    }
}

/// An entry that was fetched. `me` is not among the recipients of an answer to all.
pub(super) fn opened(
    fetched: &Fetched,
    reader: &Reader,
    me: &ORName,
    name: impl Fn(&ORName) -> Option<String>,
) -> Opened {
    let mut row = row(&fetched.entry, name);
    row.is_unread = false;
    let mut opened = Opened {
        row,
        fields: Vec::new(),
        text: String::new(),
        text_left: 0,
        files: Vec::new(),
        answer_to: Vec::new(),
        others_to: Vec::new(),
        others_copy: Vec::new(),
        receipt: Receipt::NotAsked,
    };
    envelope_fields(&mut opened, fetched);
    if let Some(report) = &fetched.report {
        opened.text = report_text(report);
        opened.row.kind =
            match report.recipients.iter().all(|r| ReportLine::from_recipient(r).delivered) {
                true => Kind::Delivery,
                false => Kind::NonDelivery,
            };
        return opened;
    }
    body(&mut opened, fetched, reader);
    if let Some(heading) = &reader.heading {
        heading_fields(&mut opened, heading, fetched, me);
    }
    // Whatever the heading has, how the message is to be handled is seen first.
    let labels = fetched.envelope.as_deref().map(|envelope| labels(&envelope.extensions));
    for label in labels.unwrap_or_default().into_iter().rev() {
        opened.fields.insert(0, ("Label".to_owned(), label));
    }
    opened
}

fn envelope_fields(opened: &mut Opened, fetched: &Fetched) {
    let mut add = |label: &str, value: Option<String>| {
        let value = value.filter(|value| !value.is_empty());
        opened.fields.extend(value.map(|value| (label.to_owned(), value)));
    };
    let time = |time: Option<Utc>| time.map(|time| time.to_string());
    let entry = &fetched.entry;
    add("Submitted", time(entry.submitted));
    add("Delivered", time(entry.delivered));
    add("Identifier", entry.identifier.as_ref().map(ToString::to_string));
    add("Content id", entry.content_identifier.clone());
}

/// A line for each recipient, and the message that it is about.
fn report_text(report: &ReportDelivery) -> String {
    let mut text = format!("About the message {}", report.subject_identifier);
    if let Some(identifier) = &report.content_identifier {
        text.push_str(&format!(", content identifier {identifier}"));
    }
    text.push_str("\n\n");
    for recipient in &report.recipients {
        let line = ReportLine::from_recipient(recipient);
        let outcome = if line.delivered { "DELIVERED to" } else { "NOT DELIVERED to" };
        text.push_str(&format!("{outcome} {}", line.recipient));
        let details = [
            line.delivery_time.map(|time| format!(" at {time}")),
            line.because.map(|because| format!(": {because}")),
            line.supplementary.map(|more| format!(" ({more})")),
        ];
        text.extend(details.into_iter().flatten());
        text.push('\n');
    }
    text
}

/// Texts one behind the other, forwarded messages with their headings in between; files by their names.
fn parts(opened: &mut Opened, texts: &mut Vec<String>, of: &[Seen], indent: &str) {
    let mut add = |text: &str| {
        let text = text.trim_end().replace('\n', &format!("\n{indent}"));
        texts.push(format!("{indent}{text}"));
    };
    let mut inner = Vec::new();
    for part in of {
        match &part.form {
            Form::Text(..) => {
                add(&part.text().unwrap_or_default());
                opened.text_left += part.missing();
            }
            Form::File(name) => {
                let name = name.clone().unwrap_or_else(|| "a file without a name".to_owned());
                opened.files.push(File { name, size: part.size });
            }
            Form::Binary => {
                opened
                    .files
                    .push(File { name: "octets without a name".to_owned(), size: part.size });
            }
            Form::Message(message) => {
                inner.push(&message.message);
                add(&format!("[forwarded message {}, below]", inner.len()));
            }
            Form::TooDeep => add("[a forwarded message in too many others, not shown]"),
            Form::Other(kind) => add(&format!("[a body part of type {kind}, not shown]")),
        }
    }
    for (at, message) in inner.into_iter().enumerate() {
        let deeper = format!("{indent}    ");
        let mut heading = format!("{indent}[forwarded message {}]\n", at + 1);
        let fields = message.heading.as_deref().map(ua::heading::fields).unwrap_or_default();
        for field in fields {
            let value = field.value.replace('\n', &format!("\n{deeper}              "));
            heading.push_str(&format!("{deeper}{:<12}  {value}\n", field.label));
        }
        if message.opaque {
            heading.push_str(&format!("{deeper}[it cannot be read, or not whole]\n"));
        }
        texts.push(heading.trim_end().to_owned());
        parts(opened, texts, &message.parts, &deeper);
    }
}

/// The text, or what there is instead of one.
fn body(opened: &mut Opened, fetched: &Fetched, reader: &Reader) {
    let mut texts = Vec::new();
    parts(opened, &mut texts, &reader.parts, "");
    opened.text = texts.join("\n\n");
    if reader.opaque {
        opened.text = format!(
            "The content cannot be read as a message. `xuxa fetch {}` writes it into a file.",
            fetched.entry.number
        );
    }
    if let Some(octets) = &reader.notification
        && let Ok(notification) = p772::Notification::parse(octets)
    {
        opened.row.kind = Kind::Notification;
        let fields = ua::heading::notification(&notification);
        opened.text = fields.iter().map(|f| format!("{}: {}\n", f.label, f.value)).collect();
    }
}

fn heading_fields(opened: &mut Opened, heading: &p772::Heading, fetched: &Fetched, me: &ORName) {
    let fields = ua::heading::fields(heading);
    let shown = fields.into_iter().map(|field| (field.label.to_owned(), field.value));
    let of_envelope = std::mem::take(&mut opened.fields);
    opened.fields = shown.chain(of_envelope).collect();
    let formal = |specifier: &p772::RecipientSpecifier| specifier.recipient.formal_name.clone();
    let text = |name: ORName| name.address.to_string();
    let others = |list: &[p772::RecipientSpecifier]| -> Vec<String> {
        let names = list.iter().filter_map(formal);
        names.filter(|name| !name.address.same_as(&me.address)).map(text).collect()
    };
    let to: Vec<ORName> = match heading.reply_recipients.is_empty() {
        true => {
            let named = heading.originator.as_ref().and_then(|o| o.formal_name.clone());
            named.or_else(|| fetched.entry.originator.clone()).into_iter().collect()
        }
        false => heading.reply_recipients.iter().filter_map(|o| o.formal_name.clone()).collect(),
    };
    opened.answer_to = to.into_iter().map(text).collect();
    opened.others_to = others(&heading.primary_recipients);
    opened.others_copy = others(&heading.copy_recipients);
    let requests = match &fetched.envelope {
        Some(envelope) => ua::receipt::requested_of(heading, envelope, me),
        None => ua::receipt::requested(heading, me),
    };
    if requests.receipt {
        opened.receipt = Receipt::Asked;
    }
    if let Some(subject) = &heading.subject {
        opened.row.subject.clone_from(subject);
    }
}
