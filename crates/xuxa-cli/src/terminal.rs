//! Writes to standard output and standard error. Control characters in names, subjects and texts are
//! escaped: others chose them.

use base::shown;
use serde::Serialize;
use std::io::Write as _;

/// Prints lines to standard output; a closed pipe is no matter.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{}", shown::text(text));
}

/// Prints one JSON object.
pub(crate) fn print_json(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => _ = writeln!(std::io::stdout().lock(), "{}", shown::json(&text)),
        Err(error) => report_error(&format!("this cannot be shown as JSON: {error}")),
    }
}

/// Prints to standard error.
pub(crate) fn report_error(text: &str) {
    note(&format!("xuxa: {text}"));
}

/// Prints to standard error what is no complaint.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", shown::text(text));
}
