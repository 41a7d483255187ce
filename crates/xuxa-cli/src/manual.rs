//! `xuxa completion` and `xuxa man`: made from the declarations of the options.

use crate::terminal;
use anyhow::{Context as _, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Directory for the pages: xuxa.1 and one for each verb
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Runs `xuxa completion`: the script goes to standard output.
pub(crate) fn completion(args: &CompletionArgs) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "xuxa", &mut script);
    match std::io::Write::write_all(&mut std::io::stdout().lock(), &script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Runs `xuxa man`.
pub(crate) fn man(args: &ManArgs) -> ExitCode {
    match pages(&args.directory) {
        Ok(count) => {
            terminal::print(&format!("{count} pages in {}", args.directory.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            terminal::report_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes the pages; returns their number.
fn pages(directory: &Path) -> Result<usize> {
    let shown = directory.display();
    fs::create_dir_all(directory).with_context(|| format!("cannot make {shown}"))?;
    clap_mangen::generate_to(crate::Cli::command().disable_help_subcommand(true), directory)
        .with_context(|| format!("cannot write the pages into {shown}"))?;
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {shown}"))?;
    let is_page = |e: &fs::DirEntry| e.file_name().to_string_lossy().starts_with("xuxa");
    Ok(entries.flatten().filter(is_page).count())
}
