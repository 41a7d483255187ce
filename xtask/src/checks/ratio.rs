//! `cargo xtask ratio`: the daemon stays a thin shell around the pure tier.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};

use crate::Outcome;
use crate::checks::rooms::lines_of_code;
use crate::checks::source::test_files;
use crate::workspace::{PURE, Workspace, crate_of};

/// The folder of the MTA and its client.
const PRODUCT: &str = "crates/";
/// The crate that drives the pure tier.
const SHELL: &str = "mta";
/// Most lines of the shell, in hundredths of the pure tier's.
const MAX_PERCENT: usize = 20;

/// Compares the daemon's lines of code with those of the MTA's own pure crates (the lab's do not
/// count); fails above a fifth.
#[derive(clap::Args)]
pub(crate) struct Args {}

impl Args {
    pub(crate) fn run(self, workspace: &Workspace) -> anyhow::Result<Outcome> {
        let files = workspace.files()?;
        let tests = test_files(&files);
        let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
        for file in files.iter().filter(|f| f.is_rust() && !tests.contains(&f.path)) {
            if let Some(name) = crate_of(&file.path).filter(|_| file.path.starts_with(PRODUCT)) {
                *lines.entry(name).or_default() += lines_of_code(&file.text);
            }
        }
        let of = |name: &str| lines.get(name).copied().unwrap_or(0);
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(["crate", "lines of code, tests excepted"]);
        for name in PURE.iter().filter(|name| lines.contains_key(*name)) {
            table.add_row([(*name).to_owned(), of(name).to_string()]);
        }
        let (pure, shell) = (PURE.iter().map(|name| of(name)).sum::<usize>(), of(SHELL));
        table.add_row(["the MTA's pure crates".to_owned(), pure.to_string()]);
        table.add_row([SHELL.to_owned(), shell.to_string()]);
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        println!("{table}");
        println!(
            "{SHELL} is {} % of the MTA's pure crates, {MAX_PERCENT} % at most",
            percent(shell, pure)
        );
        Ok(Outcome::from_passed(thin(shell, pure)))
    }
}

fn thin(shell: usize, pure: usize) -> bool {
    shell * 100 <= pure * MAX_PERCENT
}

/// Rounded up, so that the figure never looks better than it is.
fn percent(shell: usize, pure: usize) -> usize {
    (shell * 100).div_ceil(pure.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blanks_and_tests_do_not_count() {
        let text = "//! Doc.\n\nfn a() { // why\n    /* long\n    comment */\n}\n#[cfg(test)]\nmod t {\n fn b() {}\n}\n";
        assert_eq!(lines_of_code(text), 2);
    }

    #[test]
    fn a_fifth_passes_and_more_does_not() {
        assert!(thin(200, 1000));
        assert!(!thin(201, 1000));
        assert_eq!((percent(200, 1000), percent(201, 1000)), (20, 21));
    }
}
