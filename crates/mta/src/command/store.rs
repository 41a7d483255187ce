//! `mta store`: checks what is on disk, and gives up what is damaged.

mod database;
mod migrate;

use super::output::{load_paths, print, print_error, print_json, progress, table, trimmed};
use super::{DONE, FAILED, WRONG};
use crate::admin::{Answer, AskError, Request, ask};
use crate::config::Paths;
use crate::driver::STORE;
use base::quantity;
use clap::Subcommand;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{QueueStore, StoreError};
use store_check::pace::Pace;
use store_check::{StoreCheck, StoreReport};

/// Checks the queue and the contents on disk for damage, and repairs them.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Reads all records, contents and remembered keys, and compares them with their checksums. A running
    /// daemon does it beside its work. Exit code 1 if anything is damaged or set aside.
    Check {
        /// The configuration file.
        #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
        config: PathBuf,
        /// Read at most this much a second: 20MB. Default: as fast as the disk.
        #[arg(long, value_name = "SIZE", value_parser = rate)]
        rate: Option<u64>,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Makes the tables of a queue that is in a PostgreSQL database, or brings them to this release's version, and
    /// lets the role of the configuration use them. May be repeated. The password of the owner, if it takes one, is
    /// in MTA_OWNER_PASSWORD.
    Prepare {
        /// The configuration file.
        #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
        config: PathBuf,
        /// The database as the role that owns the tables: "host=127.0.0.1 dbname=mta user=mta_owner".
        #[arg(long, value_name = "URL")]
        owner_url: String,
    },
    /// Copies the queue of an MTA from its data directory to a PostgreSQL database, or back, while no daemon runs on
    /// either: entries, contents, mailboxes, remembered keys, users. The target must be empty. May be repeated: it goes on
    /// where it was interrupted. Both are compared as a whole at the end; until then no daemon starts on the
    /// target. The source stays as it is: start no daemon on it again.
    Migrate {
        /// The configuration of the MTA with the queue to be copied.
        #[arg(long = "config", value_name = "FROM")]
        from: PathBuf,
        /// The configuration of the same MTA with the queue to be made.
        #[arg(long, value_name = "TO")]
        to: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Shows what is damaged and would be given up; with --yes deletes it, so that the rest is whole. The
    /// daemon must not be running.
    Repair {
        /// The configuration file.
        #[arg(long, value_name = "FILE", env = "MTA_CONFIG")]
        config: PathBuf,
        /// Delete what is damaged.
        #[arg(long)]
        yes: bool,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn rate(text: &str) -> Result<u64, String> {
    match quantity::octets(text) {
        Ok(rate) if rate > 0 => Ok(rate),
        Ok(_) => Err("write a rate above 0".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Debug, thiserror::Error)]
enum CheckError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the daemon is running: stop it first (it works with what would be deleted)")]
    Running,
    #[error("the daemon answers something else")]
    Other,
    #[error("the check ended early: {0}")]
    Ended(String),
}

/// The queue of a site cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error("there is no queue in {0}: the daemon makes one when it starts first")]
    NoQueue(PathBuf),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) fn run(arguments: &Arguments) -> u8 {
    let (config, json) = match &arguments.verb {
        Verb::Prepare { config, owner_url } => {
            return database::prepare(config, owner_url);
        }
        Verb::Migrate { from, to, json } => return migrate::run(from, to, *json),
        Verb::Check { config, json, .. } | Verb::Repair { config, json, .. } => (config, *json),
    };
    let Some(paths) = load_paths(config) else { return WRONG };
    let done = match &arguments.verb {
        Verb::Check { rate, .. } => check(&paths, *rate),
        Verb::Repair { yes, .. } => repair(&paths, *yes),
        Verb::Prepare { .. } | Verb::Migrate { .. } => return WRONG,
    };
    match done {
        Ok((report, repaired)) => {
            if json {
                print_json(&report);
            } else {
                print(&text(&report, repaired));
            }
            let is_damaged = report.has_damage() && repaired != Some(true);
            if is_damaged || report.set_aside > 0 { FAILED } else { DONE }
        }
        Err(error) => {
            print_error(&error.to_string());
            FAILED
        }
    }
}

/// By the daemon if it runs, else here.
fn check(paths: &Paths, rate: Option<u64>) -> Result<(StoreReport, Option<bool>), CheckError> {
    let request = Request::CheckStore { begin: true, rate };
    let mut answer = match ask(&paths.admin_socket, &request) {
        Err(AskError::NoDaemon { .. }) => {
            let store = open(paths)?;
            let report = read(&*store, rate)?;
            store.close();
            return Ok((report, None));
        }
        answer => answer?,
    };
    loop {
        let Answer::Store(report) = answer else { return Err(CheckError::Other) };
        show_progress(&report);
        if !report.running {
            return ended(*report).map(|report| (report, None));
        }
        std::thread::park_timeout(Duration::from_millis(300));
        answer = ask(&paths.admin_socket, &Request::CheckStore { begin: false, rate: None })?;
    }
}

/// Opens the queue of a site whose daemon does not run.
pub(super) fn open(paths: &Paths) -> Result<Arc<dyn QueueStore>, OpenError> {
    let directory = paths.data_dir.join("queue");
    if !directory.is_dir() {
        return Err(OpenError::NoQueue(paths.data_dir.clone()));
    }
    Ok(store::open(&directory, STORE)?)
}

fn read(store: &dyn QueueStore, rate: Option<u64>) -> Result<StoreReport, CheckError> {
    let check = StoreCheck::default();
    check.run(store, Pace::new(store, rate, crate::clock::stopwatch()), show_progress);
    ended(check.report())
}

fn ended(report: StoreReport) -> Result<StoreReport, CheckError> {
    progress(None);
    match report.failed {
        Some(why) => Err(CheckError::Ended(why)),
        None => Ok(report),
    }
}

fn show_progress(report: &StoreReport) {
    progress(Some(&format!("{} MB read", report.octets / 1_000_000)));
}

/// What was damaged, and whether it was given up.
fn repair(paths: &Paths, yes: bool) -> Result<(StoreReport, Option<bool>), CheckError> {
    if is_running(&paths.admin_socket)? {
        return Err(CheckError::Running);
    }
    let store = open(paths)?;
    let report = read(&*store, None)?;
    let repairs = yes && report.has_damage();
    if repairs {
        store.repair()?;
    }
    store.close();
    Ok((report, Some(repairs)))
}

pub(super) fn is_running(socket: &Path) -> Result<bool, AskError> {
    match ask(socket, &Request::CheckStore { begin: false, rate: None }) {
        Err(AskError::NoDaemon { .. }) => Ok(false),
        Err(error) => Err(error),
        Ok(_) => Ok(true),
    }
}

/// `repaired`: of a repair, whether it was done.
fn text(report: &StoreReport, repaired: Option<bool>) -> String {
    let read = report.octets / 1_000_000;
    let mut text = format!("{} queue entries, {read} MB read\n", report.entries);
    if report.set_aside > 0 {
        text.push_str(&format!(
            "{} contents without a queue entry in queue/bodies/*.aside: the queue was lost, or a part of it; \
             restore a backup, or move these files away\n",
            report.set_aside
        ));
    }
    if !report.has_damage() {
        let what = if report.set_aside > 0 { "nothing else" } else { "nothing" };
        return text + what + " is damaged\n";
    }
    let mut rows = table(["DAMAGED", "PRECEDENCE", "WHAT IT MEANS"]);
    for record in &report.records {
        let what = "a message whose recipients and originator are lost";
        rows.add_row([
            format!("entry {}", record.entry),
            record.precedence.to_string(),
            what.to_owned(),
        ]);
    }
    for body in &report.contents {
        let what = "a content: its originator gets a non-delivery report when it is to be sent";
        rows.add_row([format!("content {body}"), String::new(), what.to_owned()]);
    }
    if report.log_parts > 0 {
        let what = "messages accepted, sent or deleted, and which is not known; a segment that is \
                    missing may have had thousands";
        rows.add_row([
            format!("{} parts of the log", report.log_parts),
            String::new(),
            what.to_owned(),
        ]);
    }
    if report.keys > 0 {
        let what = "a duplicate of a message remembered there is not recognised";
        rows.add_row([
            format!("{} blocks of remembered keys", report.keys),
            String::new(),
            what.to_owned(),
        ]);
    }
    text.push_str(&trimmed(&rows));
    text.push_str(match repaired {
        None => "stop the daemon, copy data_dir, then run `mta store repair`\n",
        Some(false) => {
            "nothing was changed; with --yes the damaged entries and contents are deleted\n"
        }
        Some(true) => "deleted; the rest is whole\n",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BodyId, EntryId, Precedence};
    use store_check::DamagedRecord;

    #[test]
    fn damage_is_named_with_what_it_means() {
        let mut report = StoreReport { entries: 3, octets: 2_500_000, ..StoreReport::default() };
        assert_eq!(text(&report, None), "3 queue entries, 2 MB read\nnothing is damaged\n");
        report.set_aside = 4;
        let shown = text(&report, None);
        assert!(shown.contains("4 contents without a queue entry"), "{shown}");
        assert!(shown.ends_with("nothing else is damaged\n"), "{shown}");
        report.records = vec![DamagedRecord { precedence: Precedence::Flash, entry: EntryId(7) }];
        report.contents = vec![BodyId(9)];
        report.log_parts = 2;
        let shown = text(&report, Some(false));
        for part in ["entry e7", "flash", "content b9", "2 parts of the log", "--yes"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
