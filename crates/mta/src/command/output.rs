//! What commands share in what they print.

use crate::config::{self, Paths, Report, Routes, Site, Unreadable};
use comfy_table::{Table, presets};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// A table without lines: columns aligned, two spaces between them.
pub(super) fn table<const N: usize>(head: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(head);
    table
}

/// The table without the spaces before and after each line.
pub(super) fn trimmed(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end().trim_start_matches(' '))).collect()
}

/// Prints to standard output; a closed pipe is no matter.
pub(super) fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Prints one JSON object.
pub(super) fn print_json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&format!("{text}\n")),
        Err(error) => complain(&format!("this cannot be shown as JSON: {error}")),
    }
}

/// Prints to standard error.
pub(super) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "mta: {text}");
}

/// Prints what was found in a configuration file to standard error.
pub(super) fn complain_of(report: &Report) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let _ = std::io::stderr().lock().write_all(report.render(color).as_bytes());
}

/// The site of a configuration file, or `None` once it was said why there is none.
pub(super) fn load(path: &Path) -> Option<Site> {
    said(config::load(path))
}

/// The paths of a configuration file, or `None` once it was said why there are none.
pub(super) fn load_paths(path: &Path) -> Option<Paths> {
    said(config::load_paths(path))
}

/// The routes of a configuration file, or `None` once it was said why there are none.
pub(super) fn load_routes(path: &Path) -> Option<Routes> {
    said(config::load_routes(path))
}

/// What was read, once it was said what was found.
fn said<T>(read: Result<(Option<T>, Report), Unreadable>) -> Option<T> {
    match read {
        Ok((read, report)) => {
            complain_of(&report);
            read
        }
        Err(error) => {
            complain(&error.to_string());
            None
        }
    }
}
