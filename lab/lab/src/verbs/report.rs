//! `lab report`: the tables of a study's stored results.

use anyhow::{Context as _, Result};
use std::path::PathBuf;
use std::process::ExitCode;
use text::UsageError;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What `lab run --summary` wrote
    summary: PathBuf,
}

/// Most octets of a summary.
const MAX_SUMMARY: u64 = 16 << 20;

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let name = self.summary.display().to_string();
        let wrong = |what: String| UsageError::error(format!("{name}: {what}"));
        let octets = text::toml_file::read_bounded(&self.summary, MAX_SUMMARY).map_err(wrong)?;
        let stored = report::Summary::read(&String::from_utf8_lossy(&octets))
            .map_err(|error| wrong(format!("not what `lab run --summary` writes: {error}")))?;
        let now = runner::find(&stored.study).and_then(|found| found.inputs());
        let now = now.with_context(|| format!("{name}: the study that it is of"))?;
        super::print(&stored.markdown(&now))?;
        Ok(ExitCode::SUCCESS)
    }
}
