//! Output shared by the commands: tables, times, errors.

use crate::config::{self, Findings, Paths, Routes, Site, StoreEngine, Unreadable};
use base::shown;
use comfy_table::{ContentArrangement, presets};
use disk_room::data_dir;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The configuration file that `MTA_CONFIG` names, for commands without `--config`.
pub(super) fn config_of_environment() -> Option<PathBuf> {
    std::env::var_os("MTA_CONFIG").filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// Selects the daemon.
#[derive(Debug, clap::Args)]
pub(super) struct Daemon {
    /// The daemon's configuration file [env: MTA_CONFIG].
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
            // Not an attribute of the argument: --socket would conflict with the variable.
            (None, None) => match config_of_environment() {
                Some(config) => socket_of(&config),
                None => {
                    print_error(
                        "which daemon? write --config FILE or --socket PATH, or set MTA_CONFIG",
                    );
                    None
                }
            },
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

/// Lines of a value below its row: what does not fit is cut, with an ellipsis.
const LINES: usize = 3;

/// Columns that stay side by side, however narrow the terminal is.
const MIN_COLUMNS: usize = 2;

/// A table without rules, whose cells are escaped for terminals: columns are aligned with two spaces between
/// them, a row is a line. Where a width bounds it, the last columns that do not fit go below their row.
pub(super) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    width: Option<usize>,
    together: usize,
}

impl Table {
    /// The last columns, this number of them, go below their rows together: where one does not fit, none is beside
    /// the others.
    pub(super) fn keep_together(&mut self, columns: usize) {
        self.together = columns;
    }

    pub(super) fn add_row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().map(|cell| shown::line(cell.as_ref()).into_owned());
        self.rows.push(cells.collect());
    }

    pub(super) fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// The lines of the first columns: one for the head and one for each row, if they fit.
    fn columns(&self, count: usize) -> Vec<String> {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(self.head.iter().take(count));
        for row in &self.rows {
            table.add_row(row.iter().take(count));
        }
        let of_narrow = count == MIN_COLUMNS && self.width.is_some();
        if let (true, Some(width)) = (of_narrow, self.width) {
            let width = u16::try_from(width).unwrap_or(u16::MAX);
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        // The preset has a space before the first column.
        let lines = table.lines().map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned());
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    /// Whether these lines fit.
    fn fits(&self, lines: &[String]) -> bool {
        self.width.is_none_or(|width| lines.iter().all(|line| line.chars().count() <= width))
    }

    /// What of a row does not stand in the first columns: each value that there is, after the name of its column.
    fn below(&self, row: &[String], count: usize) -> Vec<String> {
        let cells = self.head.iter().zip(row).skip(count);
        let there_are = cells.filter(|(_, cell)| !matches!(cell.as_str(), "-" | "0" | ""));
        let values: Vec<String> = there_are.map(|(name, cell)| format!("{name}: {cell}")).collect();
        let width = self.width.unwrap_or(usize::MAX);
        values.iter().flat_map(|value| wrapped(value, width, 2, LINES)).collect()
    }
}

/// The words of a text in lines of this width, all of them indented; a word that is too long is cut in parts.
/// What needs more lines is cut, with an ellipsis.
pub(super) fn wrapped(text: &str, width: usize, indent: usize, most: usize) -> Vec<String> {
    let room = width.saturating_sub(indent).max(10);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.len() > room {
            lines.push(String::new());
        } else if used > 0 {
            lines.last_mut().into_iter().for_each(|line| line.push(' '));
        }
        while word.len() > room {
            let rest = word.split_off(room);
            lines.last_mut().into_iter().for_each(|line| line.extend(&word));
            lines.push(String::new());
            word = rest;
        }
        lines.last_mut().into_iter().for_each(|line| line.extend(&word));
    }
    if lines.len() > most {
        lines.truncate(most);
        if let Some(line) = lines.last_mut() {
            while line.chars().count() >= room {
                line.pop();
            }
            line.push('…');
        }
    }
    let before = " ".repeat(indent);
    lines.iter().map(|line| format!("{before}{line}")).collect()
}

pub(super) fn table<const N: usize>(head: [&'static str; N]) -> Table {
    Table { head: head.to_vec(), rows: Vec::new(), width: width(), together: 1 }
}

/// `--wide`: tables are as wide as what they show.
static WIDE: OnceLock<()> = OnceLock::new();

/// Tables are as wide as what they show.
pub(super) fn be_wide() {
    let _ = WIDE.set(());
}

/// Most characters of a line of a table: `COLUMNS`, or the width of the terminal. None where nothing
/// bounds it, for example in a pipe.
pub(super) fn width() -> Option<usize> {
    if WIDE.get().is_some() {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || {
        let size = terminal_size::terminal_size().filter(|_| std::io::stdout().is_terminal());
        size.map(|(width, _)| usize::from(width.0))
    };
    columns.or_else(terminal)
}

/// The lines of a table.
pub(super) fn trimmed(table: &Table) -> String {
    let all = table.head.len();
    let least = all.min(MIN_COLUMNS);
    let apart = |count: &usize| *count == all || *count + table.together <= all || *count == least;
    let tried = (least..=all).rev().filter(apart).map(|count| (count, table.columns(count)));
    let found = tried.into_iter().find(|(count, lines)| *count == least || table.fits(lines));
    let (count, lines) = found.unwrap_or_default();
    let mut text = String::new();
    let is_a_line_each = lines.len() == table.rows.len() + 1;
    for (number, line) in lines.iter().enumerate() {
        text.push_str(line);
        text.push('\n');
        let row = number.checked_sub(1).and_then(|row| table.rows.get(row));
        for below in row.filter(|_| is_a_line_each).map_or(vec![], |row| table.below(row, count)) {
            text.push_str(&below);
            text.push('\n');
        }
    }
    if !is_a_line_each {
        for line in table.rows.iter().flat_map(|row| table.below(row, count)) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
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

/// Prints a JSON object in one line.
pub(super) fn print_json_line(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => print(&format!("{}\n", shown::json(&text))),
        Err(error) => print_error(&format!("this cannot be shown as JSON: {error}")),
    }
}

/// Asks whether something is meant. Who cannot be asked is refused with this text.
pub(super) fn agrees(question: &str, refusal: &str) -> bool {
    if !std::io::stdin().is_terminal() {
        print_error(refusal);
        return false;
    }
    let _ = write!(std::io::stderr(), "{question} Go on? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
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

/// The paths of a configuration file, and where its queue and users are; `None` after printing its errors.
pub(super) fn load_places(path: &Path) -> Option<(Paths, StoreEngine)> {
    reported(config::load_places(path))
}

/// The MTA's name in a configuration file; `None` after printing its errors.
pub(super) fn load_name(path: &Path) -> Option<String> {
    reported(config::load_name(path))
}

/// Where the queue of a configuration file is; `None` after printing its errors.
pub(super) fn load_engine(path: &Path) -> Option<StoreEngine> {
    reported(config::load_engine(path))
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
    fn columns_that_do_not_fit_go_below_their_row() {
        let mut rows = table(["PEER", "CHANNEL", "QUEUED", "LAST ERROR"]);
        rows.width = Some(30);
        rows.add_row(["act", "routine", "2", "no connection: 10.0.0.1:5100: refused by all"]);
        rows.add_row(["act", "flash", "-", "-"]);
        assert_eq!(
            trimmed(&rows),
            "PEER  CHANNEL  QUEUED\nact   routine  2\n  LAST ERROR: no connection:\n  \
             10.0.0.1:5100: refused by\n  all\nact   flash    -\n"
        );
        rows.width = Some(18);
        assert_eq!(
            trimmed(&rows).lines().take(4).collect::<Vec<_>>(),
            ["PEER  CHANNEL", "act   routine", "  QUEUED: 2", "  LAST ERROR: no"]
        );
        rows.width = Some(30);
        rows.keep_together(2);
        assert!(trimmed(&rows).starts_with("PEER  CHANNEL\nact   routine\n  QUEUED: 2\n"));
        rows.width = None;
        assert!(trimmed(&rows).starts_with("PEER  CHANNEL  QUEUED  LAST ERROR\nact "));
    }

    #[test]
    fn a_long_value_is_wrapped_and_cut() {
        assert_eq!(wrapped("one two three", 10, 2, 3), ["  one two", "  three"]);
        assert_eq!(wrapped("abcdefghijklmno p", 12, 2, 3), ["  abcdefghij", "  klmno p"]);
        assert_eq!(wrapped("a b c d e f g h i j", 12, 2, 1), ["  a b c d e…"]);
    }

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
