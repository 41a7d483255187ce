//! `xuxa extract`: the files of a message, as they went in.

use super::with_store;
use crate::extract::Extraction;
use crate::part::Naming;
use crate::profile::Wrong;
use crate::receive::Reading;
use crate::show;
use crate::submission::MtaAccess;
use crate::terminal;
use anyhow::{Result, bail};
use clap::Args;
use sha2::{Digest as _, Sha256};
use std::io::{self, Write};
use std::path::PathBuf;
use ua::store::Kind;

#[derive(Debug, Args)]
pub(crate) struct ExtractArgs {
    /// Its number in `xuxa list`
    number: u32,
    /// Into this directory, which is made if it does not exist; if a name is taken, a number is added
    #[arg(long, value_name = "DIR", default_value = ".")]
    into: PathBuf,
}

/// Passes a content on to the reader of its files.
pub(crate) struct Extracting<'a> {
    reading: Reading<'a>,
    hasher: Sha256,
}

impl<'a> Extracting<'a> {
    /// Begins with an entry, whose files without a name are called after its number.
    pub(crate) fn begin(extraction: &'a Extraction, number: u32) -> Extracting<'a> {
        let files = extraction.message(format!("message-{number}.bin"));
        Extracting { reading: Reading::new(Some(files)), hasher: Sha256::new() }
    }

    /// Gives the files their names; returns their paths, and how many were left out.
    ///
    /// # Errors
    /// The content cannot be read, or a file cannot be written.
    pub(crate) fn finish(mut self, number: u32) -> Result<(Vec<PathBuf>, u64)> {
        if self.reading.opaque {
            bail!(
                "the content of entry {number} cannot be read: xuxa fetch {number} writes it as it is"
            );
        }
        let Some(files) = self.reading.files() else { bail!("no files were read") };
        let left_out = files.left_out;
        let mut unrecorded = Unrecorded { sha256: show::hex(&self.hasher.finalize()) };
        Ok((files.publish(&mut unrecorded)?, left_out))
    }
}

impl Write for Extracting<'_> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.hasher.update(octets);
        self.reading.take(octets).map_err(|error| io::Error::other(format!("{error:#}")))?;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// No record is kept of which file has which name: extracting again writes the files again.
struct Unrecorded {
    sha256: String,
}

impl Naming for Unrecorded {
    fn names(&self) -> &[String] {
        &[]
    }

    fn record(&mut self, _names: Vec<String>) -> Result<()> {
        Ok(())
    }

    fn mark(&self, number: usize) -> String {
        let hash = Sha256::new().chain_update(&self.sha256).chain_update(number.to_string());
        show::hex(hash.finalize().get(..8).unwrap_or_default())
    }
}

/// Runs `xuxa extract`.
pub(super) async fn extract(access: &MtaAccess<'_>, args: &ExtractArgs, json: bool) -> Result<u8> {
    let number = args.number;
    let extraction = Extraction::open(&args.into)?;
    let mut to = Extracting::begin(&extraction, number);
    let fetched =
        with_store(access, async |store| Ok(store.fetch(number, &mut to, u64::MAX).await?)).await?;
    if fetched.entry.kind == Kind::Report {
        bail!(Wrong(format!("entry {number} is a report, without files: xuxa read {number}")));
    }
    let (paths, left_out) = to.finish(number)?;
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if json {
        terminal::print_json(&serde_json::json!({
            "number": number, "extracted": paths, "not_extracted": left_out,
        }));
    } else if paths.is_empty() {
        terminal::print(&format!("entry {number} has no files"));
    } else {
        paths.iter().for_each(|path| terminal::print(path));
    }
    if left_out > 0 {
        terminal::report_error(&format!(
            "{left_out} more files are in its content only: xuxa fetch {number} writes all of it"
        ));
        return Ok(3);
    }
    Ok(0)
}
