//! What was tracked: `mta trace` and `mta report`. Both read the files; no daemon has to run.

pub(super) mod report;
pub(super) mod trace;

use super::FAILED;
use super::output::{load_paths, print_error};
use crate::clock::Clock;
use base::{Utc, shown};
use std::path::PathBuf;
use tracking::Reader;
use tracking::moment::{NoMoment, moment};

/// Whose events.
#[derive(Debug, clap::Args)]
pub(super) struct Source {
    /// The daemon's configuration file [env: MTA_CONFIG]. The daemon need not run.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A directory of tracked events, such as a copy of tracking in a data directory.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    dir: Option<PathBuf>,
}

impl Source {
    /// Opens it; an exit code after printing why not.
    fn open(&self) -> Result<Reader, u8> {
        let config = self.config.clone();
        let config = config.or_else(super::output::config_of_environment);
        let directory = match (&self.dir, config) {
            (Some(dir), _) => dir.clone(),
            (None, Some(config)) => load_paths(&config).ok_or(super::WRONG)?.tracking(),
            (None, None) => {
                print_error("whose events? write --config FILE or --dir DIR, or set MTA_CONFIG");
                return Err(super::WRONG);
            }
        };
        Reader::open(&directory).map_err(|gone| {
            print_error(&gone.to_string());
            FAILED
        })
    }
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
fn warn_of_damage(reader: &Reader) {
    for damage in reader.damage() {
        let file = damage.file.display();
        print_error(&format!("warning: {file}: {}; the rest is shown", shown::line(&damage.why)));
    }
}
