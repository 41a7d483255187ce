//! Takes over the queue of an earlier release, which was a redb database.
//!
//! The database stays as it is until all of it is durable in the log. Then the file `format` is written,
//! which marks the log as complete, and a note takes the place of the database, so that an earlier
//! release does not begin an empty queue beside this one.

use super::LogStore;
use super::commit::Staged;
use crate::bodies::Bodies;
use crate::disk::Disk;
use crate::error::StoreError;
use crate::redb_store::{DATABASE, Exported, Options, RedbStore};
use crate::spool::Content;
use engine::journal::{BodySource, Op};
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The version of the format of the log, and the file that holds it.
const FORMAT: u64 = 1;
const FORMAT_FILE: &str = "log/format";
const NEW_FORMAT_FILE: &str = "log/format.new";

/// What a redb database begins with.
const MAGIC: &[u8] = b"redb";

const NOTE: &[u8] = b"The queue of this directory is in log/. Earlier releases cannot read it.\n";
const NEW_NOTE: &str = "queue.redb.note";

/// Small files that belong to the log: the version of its format, and the note for earlier releases.
pub(super) const MARKS: [&str; 2] = [FORMAT_FILE, DATABASE];

/// What was there before an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No segment: the store is new, or its log is lost.
    Nothing,
    Log,
}

fn io(error: std::io::Error) -> StoreError {
    StoreError::io("opening the log", error)
}

fn has(
    disk: &dyn Disk,
    directory: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<bool, StoreError> {
    let files = match disk.list(Path::new(directory)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        files => files.map_err(io)?,
    };
    Ok(files.iter().any(|(name, _)| wanted(name)))
}

/// Checks the version of the log, and takes over a database of an earlier release.
pub(super) fn prepare(disk: &Arc<dyn Disk>, options: Options) -> Result<Found, StoreError> {
    let has_format = has(&**disk, "log", |name| name == "format")?;
    let has_segments = has(&**disk, "log", |name| name.ends_with(".segment"))?;
    if has_format {
        check_format(&**disk)?;
    }
    let database = is_database(&**disk)?;
    if database && !has_format {
        import(disk, options)?;
    } else if !has_format {
        // A log without the file is complete: only an import, whose database is still there, is not.
        write_format(&**disk)?;
    }
    if database || !has(&**disk, "", |name| name == DATABASE)? {
        leave_note(&**disk)?;
    }
    Ok(if database || has_segments { Found::Log } else { Found::Nothing })
}

fn check_format(disk: &dyn Disk) -> Result<(), StoreError> {
    let files = disk.list(Path::new("log")).map_err(io)?;
    let length = files.iter().find(|(name, _)| name == "format").map_or(0, |(_, length)| *length);
    let length = usize::try_from(length.min(64)).unwrap_or(0);
    let octets = disk.read_range(Path::new(FORMAT_FILE), 0, length).map_err(io)?;
    let text = String::from_utf8_lossy(&octets);
    let found = text.split(' ').nth(1).and_then(|number| number.parse::<u64>().ok());
    match found.filter(|found| text == format_text(*found)) {
        Some(found) if found > FORMAT => Err(StoreError::Newer { found, known: FORMAT }),
        Some(_) => Ok(()),
        None => {
            tracing::error!("the file log/format is damaged: version {FORMAT} is assumed");
            Ok(())
        }
    }
}

/// The content of the file: the version and a checksum, so that a changed digit is no other version.
fn format_text(version: u64) -> String {
    let text = format!("format {version} ");
    let sum = xxh3_64(text.as_bytes());
    format!("{text}{sum:016x}\n")
}

/// Whether there is a database, and not the note in its place.
fn is_database(disk: &dyn Disk) -> Result<bool, StoreError> {
    if !has(disk, "", |name| name == DATABASE)? {
        return Ok(false);
    }
    match disk.read_range(Path::new(DATABASE), 0, NOTE.len()) {
        Ok(octets) => Ok(octets != NOTE),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            let begins = disk.read_range(Path::new(DATABASE), 0, MAGIC.len());
            Ok(begins.is_ok_and(|octets| octets == MAGIC))
        }
        Err(error) => Err(io(error)),
    }
}

fn write_format(disk: &dyn Disk) -> Result<(), StoreError> {
    disk.create_dir(Path::new("log")).map_err(io)?;
    disk.sync_dir(Path::new("")).map_err(io)?;
    replace(disk, NEW_FORMAT_FILE, FORMAT_FILE, format_text(FORMAT).as_bytes())?;
    disk.sync_dir(Path::new("log")).map_err(io)
}

fn leave_note(disk: &dyn Disk) -> Result<(), StoreError> {
    replace(disk, NEW_NOTE, DATABASE, NOTE)?;
    disk.sync_dir(Path::new("")).map_err(io)
}

/// Writes a file under another name, and renames it.
fn replace(disk: &dyn Disk, new: &str, name: &str, octets: &[u8]) -> Result<(), StoreError> {
    remove(disk, new)?;
    let mut file = disk.create(Path::new(new)).map_err(io)?;
    file.append(octets).map_err(io)?;
    file.sync().map_err(io)?;
    disk.rename(Path::new(new), Path::new(name)).map_err(io)
}

fn remove(disk: &dyn Disk, name: &str) -> Result<(), StoreError> {
    match disk.unlink(Path::new(name)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(error)),
        _ => Ok(()),
    }
}

/// Copies the whole database into a log, which an interrupted attempt may have begun.
fn import(disk: &Arc<dyn Disk>, options: Options) -> Result<(), StoreError> {
    for directory in ["log", "keys"] {
        disk.create_dir(Path::new(directory)).map_err(io)?;
        for (name, _) in disk.list(Path::new(directory)).map_err(io)? {
            disk.unlink(&Path::new(directory).join(name)).map_err(io)?;
        }
    }
    let from = RedbStore::with_disk(Arc::clone(disk), options)?;
    let entries = crate::QueueStore::entry_count(&from)?;
    tracing::info!(entries, "the queue of an earlier release is taken over");
    let to = LogStore::build(Arc::clone(disk), options, None)?;
    let bodies = Bodies::open(Arc::clone(disk))?;
    from.export(|part| {
        let ops = part.into_iter().filter_map(|one| staged(&bodies, one).transpose());
        let ops: Vec<_> = ops.collect::<Result<_, StoreError>>()?;
        to.import(&Staged::new(ops))?;
        while to.tidy_once()? {}
        Ok(())
    })?;
    drop((from, to));
    write_format(&**disk)?;
    tracing::info!(entries, "the queue was taken over");
    Ok(())
}

/// The change with its content; `None` if its file is lost, which is named.
fn staged(bodies: &Bodies, part: Exported) -> Result<Option<(Op, Option<Content>)>, StoreError> {
    match part {
        Exported::Op(op @ Op::PutBody { .. }) => {
            let Op::PutBody { source: BodySource::Octets(octets), .. } = &op else {
                return Ok(None);
            };
            let content = Content::Inline(octets.clone());
            Ok(Some((op, Some(content))))
        }
        Exported::Op(op) => Ok(Some((op, None))),
        Exported::File { id, number, length } => {
            let sums = match bodies.sums(number, length) {
                Ok(sums) => sums,
                Err(error) => {
                    tracing::error!(body = %id, %error, "the file of a content is missing or short");
                    Vec::new().into()
                }
            };
            let source = BodySource::Octets(bytes::Bytes::new());
            let content = Content::File { number, length, sums };
            Ok(Some((Op::PutBody { id, source }, Some(content))))
        }
    }
}
