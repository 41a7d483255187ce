//! `xuxa export`: the whole mailbox into a directory, to keep (docs/mailbox-format.md) or to read as mail.

mod maildir;

use super::with_store;
use crate::part::{Part, make_dir, sweep, sync_dir};
use crate::profile::Wrong;
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use mailbox_file::{
    Digest, ENTRIES, Header, INDEX, Index, Kind, Octets, Record, Status, Summed, content_name,
    envelope_name,
};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use ua::Clock;
use ua::store::{self, Fetched, Find, Order, Pages, Store};

/// Prefix of what is being written.
const PREFIX: &str = ".xuxa-export";
/// Entries in one list. A list makes new entries listed: more than the one that is exported next would lose their
/// status where an export ends early.
const PAGE: u32 = 1;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Into this directory: a new one, or one in which an export of this mailbox ended early, which is continued
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// As a maildir: RFC 5322 messages with MIME parts, for mail programs; not for import
    #[arg(long)]
    maildir: bool,
}

/// Runs `xuxa export`.
pub(super) async fn export(access: &MtaAccess<'_>, args: &ExportArgs, json: bool) -> Result<u8> {
    let outcome = match args.maildir {
        true => maildir::export(access, &args.dir).await?,
        false => keep(access, &args.dir).await?,
    };
    if json {
        terminal::print_json(&serde_json::json!({
            "exported": outcome.exported, "already_there": outcome.already,
            "made_processed": outcome.made_processed, "not_exported": outcome.left_out,
        }));
    } else {
        let dir = args.dir.display();
        terminal::print(&format!("{} entries exported into {dir}", outcome.exported));
        if outcome.made_processed > 0 {
            terminal::report_error(&format!(
                "{} of them were not read before, and are processed in the mailbox now: P7 has no other way to \
                 fetch a content",
                outcome.made_processed
            ));
        }
    }
    for (number, why) in &outcome.left_out {
        terminal::report_error(&format!("entry {number} is not exported: {why}"));
    }
    Ok(if outcome.left_out.is_empty() { 0 } else { 3 })
}

/// What was exported.
#[derive(Debug, Default)]
struct Outcome {
    exported: u64,
    /// By an earlier export that ended early.
    already: u64,
    /// Exported, and new or listed before.
    made_processed: u64,
    /// Numbers of the others, and why.
    left_out: Vec<(u32, String)>,
}

impl Outcome {
    fn add(&mut self, before: store::Status) {
        self.exported += 1;
        self.made_processed += u64::from(before != store::Status::Processed);
    }
}

/// Entries that came after the last one that was exported, one after the other, with their numbers and status.
async fn each_after(
    store: &mut Store,
    last: u32,
    mut work: impl AsyncFnMut(&mut Store, u32, store::Status) -> Result<()>,
) -> Result<()> {
    let mut pages = Pages::new(&Find::new(), Order::Arrival, PAGE).from(last.saturating_add(1));
    loop {
        let page = store.next_page(&mut pages).await?;
        if page.is_empty() {
            return Ok(());
        }
        for entry in page {
            work(store, entry.number, entry.status).await?;
        }
    }
}

/// Exports into our own format.
async fn keep(access: &MtaAccess<'_>, dir: &Path) -> Result<Outcome> {
    let user = access.profile.user()?.address.to_string();
    let mut kept = Kept::open(dir, &user)?;
    let mut outcome = Outcome { already: kept.already, ..Outcome::default() };
    let last = kept.last;
    with_store(access, async |store| {
        each_after(store, last, async |store, number, before| {
            match kept.entry(store, number, before).await {
                Ok(()) => outcome.add(before),
                // Deleted meanwhile, or not one of ours.
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
    Ok(outcome)
}

/// Whether an error is about one entry, and the next can be exported.
fn is_of_entry(error: &anyhow::Error) -> bool {
    error.is::<NotKept>()
        || error.downcast_ref::<store::StoreError>().is_some_and(|error| {
            matches!(error, store::StoreError::Operation(_) | store::StoreError::Rejected(_))
        })
}

/// Why an entry cannot be exported.
#[derive(Debug, thiserror::Error)]
enum NotKept {
    #[error("the store does not give its envelope")]
    NoEnvelope,
    #[error("it is neither a message nor a report")]
    Kind,
    #[error("it is longer than a mail program takes")]
    TooLong,
}

/// A directory in our own format that is being written.
struct Kept {
    dir: PathBuf,
    index: File,
    last: u32,
    already: u64,
}

impl Kept {
    /// Makes the directory, or continues: only entries after the last one in its index are missing.
    fn open(dir: &Path, user: &str) -> Result<Kept> {
        let cannot = || format!("cannot write into {}", dir.display());
        let path = dir.join(INDEX);
        let is_new = match path.symlink_metadata() {
            Ok(_) => false,
            Err(_) if dir.symlink_metadata().is_ok() && dir.read_dir()?.next().is_some() => {
                let dir = dir.display();
                bail!(Wrong(format!(
                    "{dir} is not empty, and not an export: give another directory"
                )));
            }
            Err(_) => true,
        };
        make_dir(&dir.join(ENTRIES)).with_context(cannot)?;
        sweep(dir, PREFIX).with_context(cannot)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let mut index = options.open(&path).with_context(cannot)?;
        let (mut last, mut already) = (0, 0);
        if is_new {
            let header = Header::new(user, &Clock::utc().to_string());
            index.write_all(mailbox_file::line(&header)?.as_bytes()).with_context(cannot)?;
        } else {
            let read = read_index(&path)?;
            if read.header.mailbox != user {
                bail!(Wrong(format!(
                    "{} is of another mailbox: {}",
                    dir.display(),
                    read.header.mailbox
                )));
            }
            last = read.records.last().map_or(0, |record| record.number);
            already = read.records.len() as u64;
            // A line that was cut off names an entry that is exported again.
            index.set_len(read.whole).with_context(cannot)?;
        }
        Ok(Kept { dir: dir.to_owned(), index, last, already })
    }

    /// Exports an entry: its files are on the disk before the index has it.
    async fn entry(&mut self, store: &mut Store, number: u32, before: store::Status) -> Result<()> {
        let mut part = Summing::create(&self.dir)?;
        let fetched = store.fetch(number, &mut part, u64::MAX).await?;
        let Some(octets) = fetched.envelope_octets.clone() else { bail!(NotKept::NoEnvelope) };
        let mut envelope = Summing::create(&self.dir)?;
        envelope.write_all(&octets)?;
        let entries = self.dir.join(ENTRIES);
        let envelope = envelope.place(&entries.join(envelope_name(number)))?;
        let content = match fetched.entry.kind {
            store::Kind::Message => Some(part.place(&entries.join(content_name(number)))?),
            store::Kind::Report => None,
            store::Kind::Other(_) => bail!(NotKept::Kind),
        };
        sync_dir(&entries)?;
        let record = Record { status: status(before), ..record(&fetched, envelope, content) };
        self.index.write_all(mailbox_file::line(&record)?.as_bytes())?;
        Ok(self.index.sync_data()?)
    }
}

/// A file that is being written, and the digest of what is.
struct Summing {
    part: Part,
    summed: Summed,
}

impl Summing {
    fn create(dir: &Path) -> Result<Summing> {
        let part = Part::create(dir, PREFIX);
        let part = part.with_context(|| format!("cannot write into {}", dir.display()))?;
        Ok(Summing { part, summed: Summed::default() })
    }

    /// Gives it its name. What an export left there that ended before its index had it is replaced.
    fn place(self, path: &Path) -> Result<Octets> {
        self.part.sync()?;
        if !self.part.publish(path)? {
            std::fs::remove_file(path)?;
            if !self.part.publish(path)? {
                bail!("{} was made by another program meanwhile", path.display());
            }
        }
        let (length, sha256) = self.summed.finish();
        Ok(Octets { length, sha256 })
    }
}

impl Write for Summing {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.part.write(octets)?;
        self.summed.take(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn status(status: store::Status) -> Status {
    match status {
        store::Status::New => Status::New,
        store::Status::Listed => Status::Listed,
        store::Status::Processed | store::Status::Other(_) => Status::Processed,
    }
}

fn record(fetched: &Fetched, envelope: Octets, content: Option<Octets>) -> Record {
    let entry = &fetched.entry;
    let name = |name: &p1::names::ORName| name.address.to_string();
    let time = |time: base::Utc| time.to_string();
    Record {
        number: entry.number,
        kind: if content.is_some() { Kind::Message } else { Kind::Report },
        status: status(entry.status),
        precedence: entry.precedence,
        mts_identifier: entry.identifier.as_ref().map(ToString::to_string),
        content_type: entry.content_type.as_ref().map(ToString::to_string),
        originator: entry.originator.as_ref().map(name),
        recipient: entry.recipient.as_ref().map(name),
        subject: entry.subject.clone(),
        created: entry.created.map(time),
        delivered: entry.delivered.map(time),
        submitted: entry.submitted.map(time),
        envelope,
        content,
    }
}

/// An index that was read.
pub(super) struct ReadIndex {
    pub header: Header,
    pub records: Vec<Record>,
    /// Octets up to the end of the last whole line.
    pub whole: u64,
}

/// Reads an index up to its last whole line.
pub(super) fn read_index(path: &Path) -> Result<ReadIndex> {
    let shown = || path.display().to_string();
    let file = File::open(path).with_context(shown)?;
    let mut lines = BufReader::new(file);
    let (mut index, mut records, mut whole) = (Index::default(), Vec::new(), 0);
    loop {
        let mut line = Vec::new();
        let most = mailbox_file::MAX_LINE as u64 + 2;
        let read = (&mut lines).take(most).read_until(b'\n', &mut line).with_context(shown)?;
        if !line.ends_with(b"\n") && (read as u64) < most {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        records.extend(index.read(&text).with_context(shown)?);
        whole += read as u64;
    }
    Ok(ReadIndex { header: index.finish().with_context(shown)?, records, whole })
}

/// Whether a file, and not a link to one, is what the index has.
pub(super) fn check_file(path: &Path, expected: &Octets) -> Result<()> {
    let shown = || path.display().to_string();
    if !path.symlink_metadata().with_context(shown)?.is_file() {
        bail!("{} is not a file", shown());
    }
    let mut file = File::open(path).with_context(shown)?;
    let (mut summed, mut buffer) = (Summed::default(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => summed.take(buffer.get(..read).unwrap_or_default()),
        }
    }
    let (length, sha256): (u64, Digest) = summed.finish();
    if (Octets { length, sha256 }) != *expected {
        bail!("{} is not what was exported: its length or digest differs", path.display());
    }
    Ok(())
}
