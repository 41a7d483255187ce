//! `mta backup` and `mta restore`.

use super::output::{load_name, load_paths, print, print_error, print_json, progress};
use super::store::{OpenError, open, rate};
use super::{DONE, FAILED, WRONG};
use crate::admin::{Answer, AskError, Request, ask};
use crate::backup::{Backup, BackupError, BackupReport, Restored};
use crate::config::Paths;
use crate::driver::{SITE, STORE};
use base::shown;
use engine::journal::{Batch, Op};
use node::mailbox::delivery::MAX_NUMBER;
use node::mailbox::machine::NAMES;
use node::mailbox::{Mailboxes, Totals, ValueError};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::queue::commit_one;
use store::{BatchId, QueueStore, StoreError};
use store_check::pace::Pace;
use store_check::{StoreCheck, StoreReport};

/// So many sequence numbers of each mailbox are left out at a restore: more than were given since the backup was made.
const SKIPPED: u32 = 1_000_000;

/// Copies queue, mailboxes, users and epoch to a new directory. A running daemon does it beside its work, and
/// as its own user; the copy is what was acknowledged at one moment. Exit code 1 if there is no backup.
#[derive(Debug, clap::Args)]
pub(super) struct BackupArguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
    config: PathBuf,
    /// Copy at most this much a second: 20MB. Default: as fast as the disks.
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    rate: Option<u64>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The directory to make.
    directory: PathBuf,
}

/// Checks a backup and puts a copy of it into the data directory. The daemon must not be running. What was
/// sent after the backup is sent again: peers recognise it. What came after it is not in it.
#[derive(Debug, clap::Args)]
pub(super) struct RestoreArguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
    config: PathBuf,
    /// Set a queue that is there aside: queue.replaced-1.
    #[arg(long)]
    replace: bool,
    /// Restore what is left of a damaged backup.
    #[arg(long)]
    damaged: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The backup.
    directory: PathBuf,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(
        "{directory} is a backup of {found}, and this configuration is {own}: nothing was restored"
    )]
    OtherSite { directory: PathBuf, found: String, own: String },
    #[error("the daemon stopped: no backup was made")]
    Stopped,
    #[error("the daemon is running: stop it first")]
    Running,
    #[error("the daemon answers something else")]
    Other,
    #[error("a backup in {0} is being made: try again when it is done")]
    Busy(PathBuf),
    #[error("{0}")]
    Failed(String),
    #[error(
        "the backup is damaged ({records} queue entries, {contents} contents, {log_parts} parts \
         of the log lost): with --damaged the rest of it is restored"
    )]
    Damaged { records: usize, contents: usize, log_parts: u64 },
    #[error("{path}: {error}")]
    Path { path: PathBuf, error: io::Error },
}

pub(super) fn back_up(arguments: &BackupArguments) -> u8 {
    let Some(paths) = load_paths(&arguments.config) else { return WRONG };
    match make(&paths, &arguments.directory, arguments.rate) {
        Ok(report) if arguments.json => print_json(&report),
        Ok(report) => {
            let (entries, size) = (report.entries, report.octets / 1_000_000);
            let directory = report.directory.display().to_string();
            let directory = shown::line(&directory);
            print(&format!("{directory}: {entries} queue entries, {size} MB\n"));
        }
        Err(error) => return failed(&error),
    }
    DONE
}

fn failed(error: &Error) -> u8 {
    print_error(&error.to_string());
    FAILED
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|error| Error::Path { path: path.to_owned(), error })
}

/// By the daemon if it runs, else here.
fn make(paths: &Paths, directory: &Path, rate: Option<u64>) -> Result<BackupReport, Error> {
    let directory = absolute(directory)?;
    let request = Request::BackUp { begin: Some(directory.clone()), rate };
    let mut answer = match ask(&paths.admin_socket, &request) {
        Err(AskError::NoDaemon { .. }) => return make_here(paths, &directory, rate),
        answer => answer?,
    };
    loop {
        let Answer::Backup(report) = answer else { return Err(Error::Other) };
        if report.directory != directory {
            return Err(Error::Busy(report.directory));
        }
        show_progress(&report);
        if !report.running {
            return ended(*report);
        }
        std::thread::park_timeout(Duration::from_millis(300));
        answer = match ask(&paths.admin_socket, &Request::BackUp { begin: None, rate: None }) {
            Err(AskError::NoDaemon { .. }) => {
                progress(None);
                return Err(Error::Stopped);
            }
            answer => answer?,
        };
    }
}

fn make_here(paths: &Paths, directory: &Path, rate: Option<u64>) -> Result<BackupReport, Error> {
    let store = open(paths)?;
    let backup = Backup::default();
    backup.begins(directory);
    backup.run(&*store, &paths.data_dir, rate, |report| {
        show_progress(report);
        true
    });
    store.close();
    ended(backup.report())
}

fn show_progress(report: &BackupReport) {
    progress(Some(&format!("{} MB copied", report.octets / 1_000_000)));
}

fn ended(report: BackupReport) -> Result<BackupReport, Error> {
    progress(None);
    match report.failed {
        Some(why) => Err(Error::Failed(why)),
        None => Ok(report),
    }
}

/// The result of a restore.
#[derive(Serialize)]
struct RestoreReport {
    /// What was read and found.
    #[serde(flatten)]
    check: StoreReport,
    /// What was there before, under its new names.
    set_aside: Vec<PathBuf>,
}

/// What a restored queue does, for one who has forgotten that it is old.
const RESTORED: &str = "what was cancelled, deleted, expired or held after the backup was made waits again, and goes once \
                        the daemon runs: start it without its lines to the peers where that matters, and look at `mta queue list`\n";

pub(super) fn restore(arguments: &RestoreArguments) -> u8 {
    let Some(paths) = load_paths(&arguments.config) else { return WRONG };
    let Some(own) = load_name(&arguments.config) else { return WRONG };
    match put_back(&paths, &own, arguments) {
        Ok(report) if arguments.json => print_json(&report),
        Ok(RestoreReport { check, set_aside }) => {
            let mut text = format!("{} queue entries are restored\n", check.entries);
            for path in set_aside {
                let path = path.display().to_string();
                text.push_str(&format!("set aside: {}\n", shown::line(&path)));
            }
            if check.entries > 0 {
                text.push_str(RESTORED);
            }
            print(&text);
        }
        Err(error) => return failed(&error),
    }
    DONE
}

/// Mailboxes may have given numbers since the backup was made: none of them is given again.
fn skip_numbers(store: &dyn QueueStore) -> Result<(), Error> {
    let Some(names) = store.meta(NAMES)? else { return Ok(()) };
    let unreadable = |error: ValueError| Error::Failed(format!("{NAMES}: {error}"));
    let mut mailboxes = Mailboxes::default();
    mailboxes.recovered(&names).map_err(unreadable)?;
    let mut batch = Batch::new();
    for id in mailboxes.numbers() {
        // One without totals had nothing yet.
        let value = store.meta(&Totals::name(id))?;
        let totals = value.map(|value| Totals::decode(&value)).transpose();
        let mut totals = totals.map_err(unreadable)?.unwrap_or_default();
        totals.last = totals.last.saturating_add(SKIPPED).min(MAX_NUMBER);
        batch.push(Op::PutMeta { name: Totals::name(id), value: totals.encode() });
    }
    Ok(commit_one(store, BatchId(0), batch)?)
}

fn put_back(
    paths: &Paths,
    own: &str,
    arguments: &RestoreArguments,
) -> Result<RestoreReport, Error> {
    match ask(&paths.admin_socket, &Request::BackUp { begin: None, rate: None }) {
        Err(AskError::NoDaemon { .. }) => {}
        Err(error) => return Err(error.into()),
        Ok(_) => return Err(Error::Running),
    }
    let from = absolute(&arguments.directory)?;
    let restored = Restored::copy(&from, &paths.data_dir, arguments.replace)?;
    let store = store::open(&restored.queue(), STORE)?;
    // Its messages would be routed from here, and reported as not delivered.
    if let Ok(Some(found)) = store.meta(SITE)
        && found != own.as_bytes()
    {
        store.close();
        let found = String::from_utf8_lossy(&found).into_owned();
        return Err(Error::OtherSite { directory: from, found, own: own.to_owned() });
    }
    let check = StoreCheck::default();
    check.run(&*store, Pace::new(&*store, None, crate::clock::stopwatch()), |_| ());
    let numbers = skip_numbers(&*store);
    store.close();
    numbers?;
    let check = check.report();
    if let Some(why) = check.failed {
        return Err(Error::Failed(why));
    }
    if check.has_damage() && !arguments.damaged {
        let (records, contents) = (check.records.len(), check.contents.len());
        return Err(Error::Damaged { records, contents, log_parts: check.log_parts });
    }
    let set_aside = restored.put_in_place()?;
    Ok(RestoreReport { check, set_aside })
}
