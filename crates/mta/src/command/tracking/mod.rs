//! What was tracked: `mta trace`, `mta report` and `mta events`. All read the files, and of a site of several
//! nodes its database; no daemon has to run.

pub(super) mod events;
pub(super) mod report;
pub(super) mod trace;

use super::output::{load_engine, load_paths, print_error};
use super::{FAILED, WRONG};
use crate::clock::Clock;
use crate::driver::database_options;
use base::Utc;
use std::path::{Path, PathBuf};
use tracking::moment::{NoMoment, moment};
use tracking::{Reader, Source as Events};

/// Whose events.
#[derive(Debug, clap::Args)]
pub(super) struct Source {
    /// The daemon's configuration file [env: MTA_CONFIG]. The daemon need not run.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A directory of tracked events, such as a copy of tracking in a data directory.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    dir: Option<PathBuf>,
    /// Of a site of several nodes: what this one tracked alone.
    #[arg(long, value_name = "NAME", conflicts_with = "dir")]
    node: Option<String>,
}

impl Source {
    /// Opens it; an exit code after printing why not.
    fn open(&self) -> Result<Box<dyn Events>, u8> {
        let config = self.config.clone();
        let config = config.or_else(super::output::config_of_environment);
        match (&self.dir, config) {
            (Some(dir), _) => Ok(Box::new(Reader::open(dir).map_err(failed)?)),
            (None, Some(config)) => self.open_configured(&config),
            (None, None) => {
                print_error("whose events? write --config FILE or --dir DIR, or set MTA_CONFIG");
                Err(WRONG)
            }
        }
    }

    /// Those of a node's whole site; without a site, or where its database is not known, those of the files.
    fn open_configured(&self, config: &Path) -> Result<Box<dyn Events>, u8> {
        let directory = load_paths(config).ok_or(WRONG)?.tracking();
        let engine = load_engine(config);
        if let Some((database, node)) = engine.as_ref().and_then(|engine| engine.node()) {
            let only = self.node.as_deref();
            let place = (&*database.url, &database_options(database));
            let events = postgres_store::site_events(&directory, &node.name, only, place);
            return Ok(Box::new(events.map_err(failed)?));
        }
        if engine.is_none() {
            print_error(
                "warning: the database is not asked; this is what this node alone has tracked",
            );
        }
        if self.node.is_some() {
            print_error("--node is of a site of several nodes: the configuration has no [cluster]");
            return Err(WRONG);
        }
        Ok(Box::new(Reader::open(&directory).map_err(failed)?))
    }
}

fn failed(error: impl std::fmt::Display) -> u8 {
    print_error(&error.to_string());
    FAILED
}

/// A time as an argument.
fn time(text: &str) -> Result<Utc, NoMoment> {
    moment(text, Clock::start().now().utc)
}

/// Whether a time begins before its end; prints an error if not.
fn is_period(since: Option<Utc>, until: Option<Utc>) -> bool {
    let is_period = since.zip(until).is_none_or(|(since, until)| since <= until);
    if !is_period {
        print_error("--until is before --since: there is nothing between them");
    }
    is_period
}

/// Names what could not be read.
fn print_notes(events: &dyn Events) {
    for note in events.notes() {
        print_error(&format!("warning: {note}"));
    }
}
