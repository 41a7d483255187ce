//! A mailbox as a maildir: each message as RFC 5322 with MIME parts, for people who only want to read.
//!
//! O/R addresses become addresses below `x400.invalid`, which nobody can reply to by mistake (RFC 2606); what mail
//! has no field for is in `X400-` fields. A message is held whole while it is written.

use super::{NotKept, Outcome, each_after, is_of_entry};
use crate::mailbox::with_store;
use crate::part::{Part, make_dir, sweep, sync_dir};
use crate::profile::Wrong;
use crate::receive::ReportLine;
use crate::show;
use crate::submission::MtaAccess;
use anyhow::{Context as _, Result, bail};
use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address;
use mail_builder::headers::text::Text;
use p1::names::ORName;
use p772::{Charset, ContentEvent, ContentParser, Heading, PartKind, RecipientSpecifier};
use std::io::{self, Write};
use std::path::Path;
use ua::heading;
use ua::store::{Fetched, Status, Store};

/// Prefix of messages that are being written.
const PREFIX: &str = ".xuxa-maildir";
/// Longest content, octets.
const MAX_CONTENT: u64 = 256 << 20;

/// Exports into a new maildir.
pub(super) async fn export(access: &MtaAccess<'_>, dir: &Path) -> Result<Outcome> {
    let cannot = || format!("cannot write into {}", dir.display());
    if dir.symlink_metadata().is_ok() && dir.read_dir().with_context(cannot)?.next().is_some() {
        bail!(Wrong(format!("{} is not empty: give a new directory", dir.display())));
    }
    for name in ["cur", "new", "tmp"] {
        make_dir(&dir.join(name)).with_context(cannot)?;
    }
    sweep(&dir.join("tmp"), PREFIX).with_context(cannot)?;
    let mut outcome = Outcome::default();
    with_store(access, async |store| {
        each_after(store, 0, async |store, number, before| {
            match entry(store, dir, number).await {
                Ok(()) => outcome.add(before),
                Err(error) if is_of_entry(&error) => {
                    outcome.left_out.push((number, format!("{error:#}")));
                }
                Err(error) => return Err(error),
            }
            Ok(())
        })
        .await
    })
    .await?;
    for name in ["cur", "new"] {
        sync_dir(&dir.join(name)).with_context(cannot)?;
    }
    Ok(outcome)
}

async fn entry(store: &mut Store, dir: &Path, number: u32) -> Result<()> {
    let mut parts = Parts::default();
    let fetched = store.fetch(number, &mut parts, u64::MAX).await?;
    if fetched.octets > MAX_CONTENT {
        bail!(NotKept::TooLong);
    }
    let mut part = Part::create(&dir.join("tmp"), PREFIX)?;
    message(&fetched, parts).write_to(io::BufWriter::new(&mut part as &mut dyn Write))?;
    part.sync()?;
    let seconds = fetched.entry.time().map_or(0, |time| time.0 / 1_000_000);
    // Names are ours alone: time and number.
    let (folder, flags) = match fetched.entry.status {
        Status::New => ("new", ""),
        _ => ("cur", ":2,S"),
    };
    let path = dir.join(folder).join(format!("{seconds}.{number:010}.xuxa{flags}"));
    if !part.publish(&path)? {
        bail!("{} exists", path.display());
    }
    Ok(())
}

/// An O/R address as one of mail.
fn address(name: &str) -> Address<'static> {
    let harmless = |c: char| if base::shown::is_obeyed(c) { ' ' } else { c };
    let name: String = name.chars().map(harmless).collect();
    let local = name.replace('\\', "\\\\").replace('"', "\\\"");
    Address::new_address(Some(name), format!("\"{local}\"@x400.invalid"))
}

fn addresses(all: &[RecipientSpecifier]) -> Address<'static> {
    Address::new_list(all.iter().map(|of| address(&heading::recipient(of))).collect())
}

fn message(fetched: &Fetched, parts: Parts) -> MessageBuilder<'static> {
    let entry = &fetched.entry;
    let text = |name: &ORName| name.address.to_string();
    let heading = parts.heading;
    let mut builder = MessageBuilder::new();
    let seconds = |time: base::Utc| i64::try_from(time.0 / 1_000_000).unwrap_or(0);
    builder = builder.date(entry.submitted.or(entry.time()).map_or(0, seconds));
    builder = builder.from(address(&entry.originator.as_ref().map_or("MTS".to_owned(), text)));
    let to = heading.as_deref().map(|h| h.primary_recipients.as_slice()).unwrap_or_default();
    match (to, &entry.recipient) {
        ([], Some(recipient)) => builder = builder.to(address(&text(recipient))),
        ([], None) => {}
        (to, _) => builder = builder.to(addresses(to)),
    }
    if let Some(copy) = heading.as_deref().map(|h| &h.copy_recipients).filter(|c| !c.is_empty()) {
        builder = builder.cc(addresses(copy));
    }
    let subject = entry.subject.clone().or_else(|| heading.as_ref()?.subject.clone());
    let report = fetched.report.as_ref().map(|_| "Report".to_owned());
    builder = builder.subject(single(&subject.or(report).unwrap_or_default()));
    let mut fields = vec![("Number", entry.number.to_string())];
    let mut add = |name: &'static str, value: Option<String>| {
        fields.extend(value.map(|value| (name, value)));
    };
    add("Precedence", entry.precedence.map(|p| p.to_string()));
    add("MTS-Identifier", entry.identifier.as_ref().map(ToString::to_string));
    add("Content-Type", entry.content_type.as_ref().map(ToString::to_string));
    add("Content-Identifier", entry.content_identifier.clone());
    add("Delivered-To", entry.recipient.as_ref().map(text));
    add("Delivery-Time", entry.delivered.map(|time| time.to_string()));
    for field in heading.as_deref().map(heading::fields).unwrap_or_default() {
        fields.push(("Heading", format!("{}: {}", field.label, field.value)));
    }
    let id = format!("{}.{}", entry.number, entry.time().map_or(0, |time| time.0));
    builder = builder.message_id(format!("{id}@x400.invalid"));
    for (name, value) in fields {
        builder = builder.header(format!("X400-{name}"), Text::new(single(&value)));
    }
    body(builder, fetched, parts.all)
}

/// One line, without what a reader of mail may obey.
fn single(text: &str) -> String {
    text.chars().map(|c| if base::shown::is_obeyed(c) { ' ' } else { c }).collect()
}

fn body(
    mut builder: MessageBuilder<'static>,
    fetched: &Fetched,
    parts: Vec<Collected>,
) -> MessageBuilder<'static> {
    if let Some(report) = &fetched.report {
        let lines = report.recipients.iter().map(|recipient| {
            let line = ReportLine::from_recipient(recipient);
            format!("{}: {}\n", line.recipient, show::outcome(&line))
        });
        return builder.text_body(lines.collect::<String>());
    }
    let mut has_text = false;
    for (number, part) in parts.into_iter().enumerate() {
        let name = part.name.map(|name| single(&name)).filter(|name| !name.is_empty());
        match part.charset {
            Some(charset) if !has_text => {
                has_text = true;
                builder = builder.text_body(charset.decode(&part.octets));
            }
            Some(charset) => {
                let name = format!("text-{number}.txt");
                builder = builder.attachment("text/plain", name, charset.decode(&part.octets));
            }
            None => {
                let name = name.unwrap_or_else(|| format!("part-{number}.bin"));
                builder = builder.attachment("application/octet-stream", name, part.octets);
            }
        }
    }
    if !has_text {
        builder = builder.text_body("");
    }
    builder
}

/// A body part.
#[derive(Debug)]
struct Collected {
    charset: Option<Charset>,
    name: Option<String>,
    octets: Vec<u8>,
}

/// All body parts of a content, or, if it cannot be read, the content as the only one.
#[derive(Debug, Default)]
struct Parts {
    parser: ContentParser,
    heading: Option<Box<Heading>>,
    all: Vec<Collected>,
    opaque: bool,
    taken: u64,
}

impl Parts {
    fn push(&mut self, charset: Option<Charset>, name: Option<String>) {
        self.all.push(Collected { charset, name, octets: Vec::new() });
    }

    fn take(&mut self, event: ContentEvent<'_>) {
        match event {
            ContentEvent::Heading(heading) => self.heading = Some(heading),
            ContentEvent::Notification(octets) => {
                self.push(None, Some("notification.bin".to_owned()));
                self.extend(&octets);
            }
            ContentEvent::PartBegin(PartKind::Text(charset)) => self.push(Some(charset), None),
            ContentEvent::PartBegin(PartKind::File { name }) => self.push(None, name),
            ContentEvent::PartBegin(_) => self.push(None, None),
            ContentEvent::Data(octets) => self.extend(&octets),
            ContentEvent::PartEnd | ContentEvent::End => {}
        }
    }

    fn extend(&mut self, octets: &[u8]) {
        if let Some(part) = self.all.last_mut() {
            part.octets.extend_from_slice(octets);
        }
    }
}

impl Write for Parts {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.taken += octets.len() as u64;
        if self.taken > MAX_CONTENT {
            // Nothing is held of one that is too long; the caller counts its octets.
            self.all = Vec::new();
            return Ok(octets.len());
        }
        let mut rest = octets;
        while !self.opaque {
            match self.parser.next(&mut rest) {
                Ok(Some(event)) => self.take(event),
                Ok(None) => return Ok(octets.len()),
                Err(_) => {
                    self.opaque = true;
                    self.push(None, Some("unreadable.bin".to_owned()));
                }
            }
        }
        // What could be read stays, and the rest is as it came.
        self.extend(rest);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p772::{ContentBuilder, IpmIdentifier, PartForm};
    use ua::store::Entry;

    fn mail(subject: &str) -> String {
        let heading = Heading {
            this_ipm: IpmIdentifier { user: None, local: "1".to_owned() },
            primary_recipients: vec!["/C=XX/S=B".parse::<ORName>().unwrap().into()],
            ..Heading::default()
        };
        let file = PartForm::File { name: Some("a\r\nX: y.bin".to_owned()) };
        let content = ContentBuilder::new(&heading).unwrap().text("Übung").part(&file, &[7; 9]);
        let mut parts = Parts::default();
        parts.write_all(&content.finish()).unwrap();
        let entry = Entry {
            number: 7,
            subject: Some(subject.to_owned()),
            originator: Some("/C=XX/S=A".parse().unwrap()),
            created: Some(base::Utc(1_767_323_045_000_000)),
            ..Entry::default()
        };
        message(&Fetched { entry, ..Fetched::default() }, parts).write_to_string().unwrap()
    }

    #[test]
    fn a_message_is_mail_that_others_can_read() {
        let mail = mail("Fire");
        for part in [
            "Subject: Fire\r\n",
            "X400-Number: 7\r\n",
            "MIME-Version: 1.0",
            "text/plain",
            "@x400.invalid",
        ] {
            assert!(mail.contains(part), "{part}: {mail}");
        }
        let date = mail.lines().find(|line| line.starts_with("Date:")).unwrap();
        assert!(date.contains("2 Jan 2026 03:04:05"), "{date}");
    }

    #[test]
    fn no_field_can_be_forged() {
        let mail = mail("a\r\nBcc: everyone\r\n\r\nbody");
        let (fields, _) = mail.split_once("\r\n\r\n").unwrap();
        let begins = |name: &str| fields.lines().any(|line| line.starts_with(name));
        assert!(!begins("Bcc") && !begins("X:") && begins("Subject"), "{fields}");
        assert!(!mail.lines().any(|line| line.starts_with("X: y")), "{mail}");
    }
}
