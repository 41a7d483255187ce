//! `mta record strip`: a copy of a recording without contents.

use super::{Recorded, RecordingError};
use crate::command::output::{print, print_error};
use crate::command::{DONE, FAILED, WRONG};
use crate::driver::recording::create;
use record::strip::Stripper;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Makes something of a recording of `mta run --record`.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Copies a recording without contents, for reading only: mta replay --show prints it, and nothing runs it.
    /// Names, addresses and identifiers stay.
    Strip {
        /// The recording.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The copy, which must not exist.
        #[arg(value_name = "COPY")]
        copy: PathBuf,
    },
}

pub(in crate::command) fn run(arguments: &Arguments) -> u8 {
    let Verb::Strip { file, copy } = &arguments.verb;
    strip(file, copy).unwrap_or_else(|error| {
        print_error(&error.to_string());
        WRONG
    })
}

/// Copies. Of a recording that cannot be read to its end nothing is left.
fn strip(file: &Path, copy: &Path) -> Result<u8, RecordingError> {
    let (mut recorded, header) = Recorded::open(file)?;
    let mut stripper = match Stripper::new(&header) {
        Ok(stripper) => stripper,
        Err(error) => {
            print_error(&format!("{}: {error}", file.display()));
            return Ok(WRONG);
        }
    };
    let unwritable = |error| {
        print_error(&format!("cannot write {}: {error}", copy.display()));
        Ok(FAILED)
    };
    let mut to = match Copy::create(copy) {
        Ok(to) => to,
        Err(error) => return unwritable(error),
    };
    let mut octets = Vec::new();
    loop {
        octets.clear();
        stripper.take(&mut octets);
        if let Err(error) = to.file.write_all(&octets) {
            return unwritable(error);
        }
        let Some(record) = recorded.next()? else { break };
        if let Err(error) = stripper.record(record) {
            print_error(&format!("{}: {error}", file.display()));
            return Ok(WRONG);
        }
    }
    to.is_whole = true;
    let cut = match recorded.torn() {
        0 => String::new(),
        torn => {
            format!("; the recording was cut off within a record: {torn} octets of it are left out")
        }
    };
    print(&format!("copied without contents to {}{cut}\n", copy.display()));
    Ok(DONE)
}

/// A copy that is being made: it is removed again if it does not become whole.
struct Copy<'a> {
    path: &'a Path,
    file: File,
    is_whole: bool,
}

impl Copy<'_> {
    fn create(path: &Path) -> std::io::Result<Copy<'_>> {
        Ok(Copy { path, file: create(path)?, is_whole: false })
    }
}

impl Drop for Copy<'_> {
    fn drop(&mut self) {
        if !self.is_whole
            && let Err(error) = std::fs::remove_file(self.path)
        {
            print_error(&format!("cannot remove {}: {error}", self.path.display()));
        }
    }
}
