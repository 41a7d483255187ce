//! Output shared by the commands: tables, times, errors.

use crate::config::{self, Findings, Paths, Routes, Site, StoreEngine, Unreadable};
use base::shown;
use disk_room::data_dir;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
pub(super) use tables::{be_wide, table, trimmed};

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
