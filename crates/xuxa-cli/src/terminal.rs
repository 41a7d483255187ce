//! Writes to standard output and standard error. Control characters in names, subjects and texts are
//! escaped: others chose them.

use base::shown;
use serde::Serialize;
use std::io::Write as _;

/// Prints lines to standard output; a closed pipe is ignored.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{}", shown::text(text));
}

/// Prints one JSON object.
pub(crate) fn print_json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => _ = writeln!(std::io::stdout().lock(), "{}", shown::json(&text)),
        Err(error) => report_error(&format!("cannot write JSON: {error}")),
    }
}

/// Prints a line that begins with `xuxa:` to standard error.
pub(crate) fn report_error(text: &str) {
    print_to_stderr(&format!("xuxa: {text}"));
}

/// Prints a plain line to standard error.
pub(crate) fn print_to_stderr(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", shown::text(text));
}
