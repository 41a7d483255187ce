//! `cargo xtask bench`: builds what measures, and has it measure.

use crate::Outcome;
use crate::workspace::Workspace;

/// Measures the product, in release builds, each beside what the machine itself can do; `--help`
/// lists them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// What to measure, and how
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let run = ["run", "--release", "--quiet", "--package", "bench", "--"];
        let arguments: Vec<&str> =
            run.into_iter().chain(self.arguments.iter().map(String::as_str)).collect();
        Err(workspace.cargo(&arguments).become_it())
    }
}
