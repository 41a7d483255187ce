//! `cargo xtask ci`: all checks in one go, and a table of how each ended.

use std::time::Duration;

use anyhow::bail;
use clap::ValueEnum;
use comfy_table::{CellAlignment, Table, presets};

use crate::checks::{deny, edges, purity, ratio, tidy};
use crate::workspace::Workspace;
use crate::{Outcome, test};

/// One check, in the order of running: the quick ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// rustfmt leaves nothing to change.
    Fmt,
    /// No file, function or line that the project does not want.
    Tidy,
    /// The pure tier names no clock, socket, file, thread or randomness.
    Purity,
    /// The daemon is at most a fifth of the pure tier.
    Ratio,
    /// No forbidden dependency.
    Edges,
    /// No warning of the compiler or clippy.
    Clippy,
    /// Licences, banned crates, sources, advisories.
    Deny,
    /// All tests.
    Test,
    /// The documentation builds without a warning.
    Docs,
}

/// Runs all checks, goes on past a failed one, and names every failed one at the end.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this step (may be repeated).
    #[arg(long, value_name = "STEP", conflicts_with = "skip")]
    only: Vec<Step>,
    /// All but this step (may be repeated).
    #[arg(long, value_name = "STEP")]
    skip: Vec<Step>,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let steps = self.steps();
        if steps.is_empty() {
            bail!("every step is skipped");
        }
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["step", "result", "seconds"]);
        let mut failed = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            let name = step.name();
            println!("\n=== {} of {}: {name} ===", number + 1, steps.len());
            let (result, time) = timed(|| step.run(workspace));
            let word = match result {
                Ok(Outcome::Passed) => "passed",
                Ok(Outcome::PassedInPart) => "passed in part",
                Ok(Outcome::Failed) => "FAILED",
                Err(ref error) => {
                    println!("error: {error:#}");
                    "FAILED"
                }
            };
            println!("--- {name}: {word} in {:.1} s", time.as_secs_f64());
            table.add_row([name.clone(), word.to_owned(), format!("{:.1}", time.as_secs_f64())]);
            if !matches!(result, Ok(Outcome::Passed | Outcome::PassedInPart)) {
                failed.push(name);
            }
        }
        if let Some(column) = table.column_mut(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        println!("\n{table}");
        if !failed.is_empty() {
            println!("failed: {}", failed.join(", "));
        }
        Ok(Outcome::from_passed(failed.is_empty()))
    }

    fn steps(&self) -> Vec<Step> {
        let wanted = |step: &Step| {
            (self.only.is_empty() || self.only.contains(step)) && !self.skip.contains(step)
        };
        Step::value_variants().iter().copied().filter(wanted).collect()
    }
}

impl Step {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        match self {
            Step::Fmt => {
                workspace.cargo(&["fmt", "--all", "--check"]).succeeds().map(Outcome::from_passed)
            }
            Step::Tidy => tidy::Args {}.run(workspace),
            Step::Purity => purity::Args {}.run(workspace),
            Step::Ratio => ratio::Args {}.run(workspace),
            Step::Edges => edges::Args {}.run(workspace),
            Step::Clippy => workspace
                .cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
                .succeeds()
                .map(Outcome::from_passed),
            Step::Deny => deny::Args {}.run(workspace),
            Step::Test => test::Args::default().run(workspace),
            Step::Docs => workspace
                .cargo(&["doc", "--no-deps", "--workspace", "--document-private-items"])
                .env("RUSTDOCFLAGS", "-D warnings")
                .succeeds()
                .map(Outcome::from_passed),
        }
    }
}

/// Does the work and takes its time.
#[expect(clippy::disallowed_methods, reason = "a stopwatch for tables, no part of any machine")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_and_skip_choose_the_steps_in_their_order() {
        let steps = |only: &[Step], skip: &[Step]| {
            Args { only: only.to_vec(), skip: skip.to_vec() }.steps()
        };
        assert_eq!(steps(&[], &[]), Step::value_variants());
        assert_eq!(steps(&[Step::Test, Step::Fmt], &[]), [Step::Fmt, Step::Test]);
        let without = steps(&[], &[Step::Deny]);
        assert_eq!(without.len() + 1, Step::value_variants().len());
        assert!(!without.contains(&Step::Deny));
    }
}
