//! Output shared by the commands: tables, times, errors.

use crate::config::{self, Findings, Paths, Routes, Site, Unreadable};
use crate::data_dir;
use base::shown;
use comfy_table::{ContentArrangement, presets};
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Selects the daemon.
#[derive(Debug, clap::Args)]
pub(super) struct Daemon {
    /// The daemon's configuration file.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// The daemon's admin socket.
    #[arg(long, value_name = "PATH", global = true, conflicts_with = "config")]
    socket: Option<PathBuf>,
}

impl Daemon {
    /// The admin socket; `None` after printing why it is not known.
    pub(super) fn socket(&self) -> Option<PathBuf> {
        match (&self.socket, &self.config) {
            (Some(socket), _) => Some(socket.clone()),
            (None, Some(config)) => socket_of(config),
            (None, None) => {
                print_error("which daemon? write --config FILE or --socket PATH");
                None
            }
        }
    }
}

/// What to do without a readable configuration file.
const WITH_SOCKET: &str = "a running daemon can still be asked with --socket PATH";

/// The admin socket of a configuration file, which may have errors: the daemon runs with what it
/// read before. `None` after printing why it is not known.
fn socket_of(config: &Path) -> Option<PathBuf> {
    let (paths, report) = match config::recover_paths(config) {
        Ok(read) => read,
        Err(error) => {
            print_error(&error.to_string());
            print_error(WITH_SOCKET);
            return None;
        }
    };
    print_findings(&report);
    let socket = paths.map(|paths| paths.admin_socket);
    let is_wrong = report.any_fatal();
    match &socket {
        Some(socket) if is_wrong => print_error(&format!(
            "warning: {} has errors; a running daemon keeps its configuration, and is asked on {}",
            config.display(),
            socket.display()
        )),
        Some(_) => {}
        None => print_error(WITH_SOCKET),
    }
    socket
}

/// The cell of an empty value.
pub(super) fn dash() -> String {
    "-".to_owned()
}

/// An elapsed time: in tenths of a second, from one hour on in hours and minutes.
pub(super) fn age(seconds: f64) -> String {
    if seconds < 3_600.0 {
        return format!("{seconds:.1} s");
    }
    let minutes = seconds / 60.0;
    format!("{:.0} h {:02.0} min", (minutes / 60.0).floor(), (minutes % 60.0).floor())
}

/// Lines of a cell where a table has a width: what does not fit is cut, with an ellipsis.
const LINES: usize = 3;

/// A table whose cells are escaped for terminals, each on one line, or on [`LINES`] where its width is bounded.
pub(super) struct Table {
    rows: comfy_table::Table,
    is_cut: bool,
}

impl Table {
    pub(super) fn add_row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(|cell| shown::line(cell.as_ref()).into_owned());
        let mut row = comfy_table::Row::from(cells);
        if self.is_cut {
            row.max_height(LINES);
        }
        self.rows.add_row(row);
    }

    pub(super) fn row_count(&self) -> usize {
        self.rows.row_count()
    }
}

/// A table without rules: columns are aligned with two spaces between them.
pub(super) fn table<const N: usize>(head: [&str; N]) -> Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(presets::NOTHING);
    let width = width();
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        table.set_truncation_indicator("…");
    }
    table.set_header(head);
    Table { rows: table, is_cut: width.is_some() }
}

/// `--wide`: tables are as wide as what they show.
static WIDE: OnceLock<()> = OnceLock::new();

/// Tables are as wide as what they show.
pub(super) fn be_wide() {
    let _ = WIDE.set(());
}

/// Most characters of a line of a table: `COLUMNS`, or the width of the terminal. None where nothing
/// bounds it, for example in a pipe.
fn width() -> Option<u16> {
    if WIDE.get().is_some() {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || {
        let size = terminal_size::terminal_size().filter(|_| std::io::stdout().is_terminal());
        size.map(|(width, _)| width.0)
    };
    columns.or_else(terminal)
}

/// The table without the spaces before and after each line.
pub(super) fn trimmed(table: &Table) -> String {
    table
        .rows
        .lines()
        .map(|line| format!("{}\n", line.trim_end().trim_start_matches(' ')))
        .collect()
}

/// Prints to standard output, escaped for terminals. A closed pipe is ignored.
pub(super) fn print(text: &str) {
    control(&shown::text(text));
}

/// Prints terminal control sequences of our own. The text must not contain values from outside.
pub(super) fn control(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Shows how far a long command is, in one line that is rewritten in place; `None` removes it.
pub(super) fn progress(line: Option<&str>) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r{}\x1b[K", line.unwrap_or_default());
    }
}

/// Prints one JSON object.
pub(super) fn print_json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&format!("{}\n", shown::json(&text))),
        Err(error) => print_error(&format!("this cannot be shown as JSON: {error}")),
    }
}

/// Prints one line to standard error, whatever the text has: it may name a file.
pub(super) fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "mta: {}", shown::line(text));
}

/// Prints lines of our own to standard error.
pub(super) fn print_advice(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "mta: {}", shown::text(text));
}

/// Prints the errors and warnings of a configuration file to standard error.
pub(super) fn print_findings(report: &Findings) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let _ = std::io::stderr().lock().write_all(shown::coloured(&report.render(color)).as_bytes());
}

/// The site of a configuration file; `None` after printing its errors.
pub(super) fn load(path: &Path) -> Option<Site> {
    reported(config::load(path, &data_dir::unfit))
}

/// The paths of a configuration file; `None` after printing its errors.
pub(super) fn load_paths(path: &Path) -> Option<Paths> {
    reported(config::load_paths(path))
}

/// The MTA's name in a configuration file; `None` after printing its errors.
pub(super) fn load_name(path: &Path) -> Option<String> {
    reported(config::load_name(path))
}

/// The routes of a configuration file; `None` after printing its errors.
pub(super) fn load_routes(path: &Path) -> Option<Routes> {
    reported(config::load_routes(path))
}

/// Prints the findings and returns what was read.
fn reported<T>(read: Result<(Option<T>, Findings), Unreadable>) -> Option<T> {
    match read {
        Ok((read, report)) => {
            print_findings(&report);
            read
        }
        Err(error) => {
            print_error(&error.to_string());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_one_line_that_no_terminal_obeys() {
        let mut rows = table(["PEER", "LAST ERROR"]);
        rows.add_row(["act\u{1b}]0;x\u{7}", "it sent \r\nflash  queued\u{9b}2J\u{202e}"]);
        let text = trimmed(&rows);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains(|c| shown::is_obeyed(c) && c != '\n'), "{text:?}");
        assert!(text.contains("act\\u{1b}]0;x\\u{7}") && text.contains("\\r\\nflash"), "{text}");
    }
}
