//! `lab report`: the tables of a study's stored results.

use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use text::UsageError;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What `lab run --summary` wrote; with --experiment several of one study, to be shown side by side
    #[arg(required = true)]
    summaries: Vec<PathBuf>,
    /// Only the rows of this experiment, with and without printed values; may be given several times
    #[arg(long = "experiment", value_name = "NAME")]
    experiments: Vec<String>,
    /// By the values of this parameter: the lowest row of each beside its bound
    #[arg(long, value_name = "PARAMETER", requires = "experiments")]
    by: Option<String>,
}

/// Most octets of a summary.
const MAX_SUMMARY: u64 = 16 << 20;

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let stored: Vec<report::Summary> =
            self.summaries.iter().map(|file| read(file)).collect::<Result<_>>()?;
        let (Some(first), others) = (stored.first(), stored.get(1..).unwrap_or_default()) else {
            return Ok(ExitCode::SUCCESS);
        };
        if let Some(other) = others.iter().find(|other| other.study != first.study) {
            let what = format!("they are of two studies: {} and {}", first.study, other.study);
            return Err(UsageError::error(what));
        }
        let now = match runner::find(&first.study) {
            Ok(found) => found.inputs().with_context(|| format!("the study {}", first.study))?,
            Err(_) => {
                let study = &first.study;
                super::note(&format!(
                    "{study} does not come with the program: whether it has changed is not known"
                ));
                first.inputs.clone()
            }
        };
        let page = match self.experiments.is_empty() {
            true if !others.is_empty() => {
                let what =
                    "one file, or several with --experiment: which rows are shown side by side";
                return Err(UsageError::error(what.to_owned()));
            }
            true => first.markdown(&now),
            false if self.by.is_some() && !others.is_empty() => {
                return Err(UsageError::error("--by shows one file"));
            }
            false if self.by.is_some() => {
                let by = self.by.as_deref().unwrap_or_default();
                let tables = stored.iter().flat_map(|result| {
                    self.experiments.iter().map(move |name| report::groups(result, name, by))
                });
                let tables: Result<Vec<String>, String> = tables.collect();
                tables.map_err(UsageError::error)?.join("\n")
            }
            false => report::side_by_side(&stored, &self.experiments, &now).map_err(|name| {
                UsageError::error(format!(
                    "no row is of an experiment {name:?}: see `lab list {}`",
                    first.study
                ))
            })?,
        };
        super::print(&page)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn read(file: &Path) -> Result<report::Summary> {
    let wrong = |what: String| UsageError::error(format!("{}: {what}", file.display()));
    let octets = text::toml_file::read_bounded(file, MAX_SUMMARY).map_err(wrong)?;
    let read = report::Summary::read(&String::from_utf8_lossy(&octets));
    read.map_err(|error| wrong(format!("not what `lab run --summary` writes: {error}")))
}
